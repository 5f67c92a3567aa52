import { beforeEach, describe, expect, test, vi } from "vitest";
import { loadBokeh } from "../src/bokeh_runtime";

/** The head and tail of a real bokeh.min.js, with a body that shows what it can see. */
const source = (version: string) => `'use strict';
/*! Copyright */
(function(root, factory) {
  const bokeh = factory();
  bokeh.__bokeh__ = true;
  if (typeof root.Bokeh === "undefined" || typeof root.Bokeh.__bokeh__ === "undefined") {
    root.Bokeh = bokeh;
  }
  const Bokeh = root.Bokeh;
  Bokeh[bokeh.version] = bokeh;
})(this, function() {
  globalThis.runs = (globalThis.runs ?? 0) + 1;
  return {version: "${version}", saw: [typeof define, typeof require, typeof module, typeof exports]};
}); // no line break at the end`;

const page = globalThis as any;

beforeEach(() => {
  for (const name of ["Bokeh", "define", "require", "runs", "__tfprof_bokeh"]) delete page[name];
});

describe("BokehJS on a page", () => {
  test("that has none leaves the page without one", async () => {
    const Bokeh = await loadBokeh("3.9.2", async () => source("3.9.2"));
    expect(Bokeh.version).toBe("3.9.2");
    expect("Bokeh" in page).toBe(false);
  });

  test("of another version leaves that alone", async () => {
    const other = { version: "2.4.3", __bokeh__: true };
    page.Bokeh = other;
    const Bokeh = await loadBokeh("3.9.2", async () => source("3.9.2"));
    expect(Bokeh.version).toBe("3.9.2");
    expect(page.Bokeh).toBe(other);
    expect(Object.keys(other)).toEqual(["version", "__bokeh__"]);
  });

  test("whose Bokeh is something else leaves that alone, too", async () => {
    page.Bokeh = "a camera's blur";
    await loadBokeh("3.9.2", async () => source("3.9.2"));
    expect(page.Bokeh).toBe("a camera's blur");
  });

  test.each([
    ["itself", { version: "3.9.2" }],
    ["beside another", { version: "3.8.0", "3.9.2": { version: "3.9.2" } }],
  ])("that has the same version, %s, is not given a second one", async (_where, there: any) => {
    page.Bokeh = there;
    const code = vi.fn(async () => source("3.9.2"));
    const Bokeh = await loadBokeh("3.9.2", code);
    expect(Bokeh).toBe(there["3.9.2"] ?? there);
    expect(code).not.toHaveBeenCalled();
  });

  test("with a module loader is not swallowed by it", async () => {
    page.define = Object.assign(vi.fn(), { amd: {} });
    page.require = vi.fn();
    const Bokeh = await loadBokeh("3.9.2", async () => source("3.9.2"));
    expect(Bokeh.saw).toEqual(["undefined", "undefined", "undefined", "undefined"]);
    expect(page.define).not.toHaveBeenCalled();
  });

  test("runs once for many, and once a version", async () => {
    const code = vi.fn(async () => source("3.9.2"));
    const [one, two] = await Promise.all([loadBokeh("3.9.2", code), loadBokeh("3.9.2", code)]);
    expect(one).toBe(two);
    expect(page.runs).toBe(1);
    await loadBokeh("3.9.1", async () => source("3.9.1"));
    expect(page.runs).toBe(2);
  });

  test("is tried again after a failure", async () => {
    await expect(loadBokeh("3.9.2", () => Promise.reject(new Error("torn")))).rejects.toThrow("torn");
    expect((await loadBokeh("3.9.2", async () => source("3.9.2"))).version).toBe("3.9.2");
  });
});
