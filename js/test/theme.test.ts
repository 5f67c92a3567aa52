import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { pageIsDark, watchTheme } from "../src/theme";

/** A window whose system theme and ancestors are chosen. */
function view(systemDark: boolean, parent?: Window) {
  const listeners: (() => void)[] = [];
  const media = { matches: systemDark, addEventListener: (_: string, callback: () => void) => listeners.push(callback) };
  const doc = document.implementation.createHTMLDocument("");
  const made: any = { document: doc, matchMedia: () => media };
  made.parent = parent ?? made;
  return { view: made as Window, doc, media, system: (dark: boolean) => ((media.matches = dark), listeners.forEach((each) => each())) };
}

describe("what the page says", () => {
  const cases: [string, (doc: Document) => void, boolean][] = [
    ["JupyterLab dark", (doc) => doc.body.setAttribute("data-jp-theme-light", "false"), true],
    ["JupyterLab light", (doc) => doc.body.setAttribute("data-jp-theme-light", "true"), false],
    ["VS Code dark", (doc) => doc.body.setAttribute("data-vscode-theme-kind", "vscode-dark"), true],
    ["VS Code high contrast", (doc) => doc.body.setAttribute("data-vscode-theme-kind", "vscode-high-contrast"), true],
    ["VS Code high contrast light", (doc) => doc.body.setAttribute("data-vscode-theme-kind", "vscode-high-contrast-light"), false],
    ["Sphinx dark", (doc) => doc.documentElement.setAttribute("data-theme", "dark"), true],
    ["Bootstrap light", (doc) => doc.documentElement.setAttribute("data-bs-theme", "light"), false],
    ["Colab dark", (doc) => doc.documentElement.setAttribute("theme", "dark"), true],
    ["Quarto dark", (doc) => doc.body.classList.add("quarto-dark"), true],
    ["Quarto light", (doc) => doc.body.classList.add("quarto-light"), false],
    ["MyST dark", (doc) => doc.documentElement.classList.add("dark"), true],
    ["MyST light", (doc) => doc.documentElement.classList.add("light"), false],
  ];
  test.each(cases)("%s", (_name, mark, dark) => {
    // The system says the opposite.
    const { view: own, doc } = view(!dark);
    mark(doc);
    expect(pageIsDark(own)).toBe(dark);
  });

  test("a document around the frame counts, the own one counts more", () => {
    const outer = view(false);
    const inner = view(false, outer.view);
    outer.doc.body.setAttribute("data-vscode-theme-kind", "vscode-dark");
    expect(pageIsDark(inner.view)).toBe(true);
    inner.doc.documentElement.setAttribute("data-theme", "light");
    expect(pageIsDark(inner.view)).toBe(false);
  });

  test("an ancestor of another origin is passed over", () => {
    const outer = {} as Window;
    Object.defineProperty(outer, "document", { get: () => { throw new Error("SecurityError"); } });
    expect(pageIsDark(view(true, outer).view)).toBe(true);
  });

  test.each(["auto", "system", ""])("data-theme=%o leaves it to the system", (value) => {
    const { view: own, doc } = view(true);
    doc.documentElement.setAttribute("data-theme", value);
    expect(pageIsDark(own)).toBe(true);
  });
});

describe("following", () => {
  let controller: AbortController;
  beforeEach(() => void (controller = new AbortController()));
  afterEach(() => controller.abort());

  test("the page's mark", async () => {
    document.body.setAttribute("data-jp-theme-light", "true");
    const theme = watchTheme(controller.signal);
    const callback = vi.fn();
    const stop = theme.onChange(callback);
    expect(theme.dark).toBe(false);
    document.body.setAttribute("data-jp-theme-light", "false");
    await vi.waitFor(() => expect(callback).toHaveBeenCalledWith(true));
    expect(theme.dark).toBe(true);
    stop();
    document.body.setAttribute("data-jp-theme-light", "true");
    await vi.waitFor(() => expect(theme.dark).toBe(false));
    expect(callback).toHaveBeenCalledTimes(1);
    document.body.removeAttribute("data-jp-theme-light");
  });

  test("the system, where the page says nothing", () => {
    const { view: own, system } = view(false);
    const theme = watchTheme(controller.signal, own);
    const callback = vi.fn();
    theme.onChange(callback);
    system(true);
    expect(callback).toHaveBeenCalledWith(true);
  });
});
