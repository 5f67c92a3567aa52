import { beforeEach, expect, test, vi } from "vitest";
import { LocalModel, registerLink } from "../src/local_model";

const page = globalThis as any;
beforeEach(() => delete page.__tfprof_links);

const values = (more = {}) => ({ tab: null, range_ms: null, selection: null, ...more });
const signal = () => new AbortController().signal;

test("changes are told once, and only if they are changes", () => {
  const model = new LocalModel(values());
  const callback = vi.fn();
  model.on("change:tab", callback);
  model.set("tab", "ops");
  model.set("tab", "ops");
  expect(callback).toHaveBeenCalledTimes(1);
  model.off("change:tab", callback);
  model.set("tab", "overview");
  expect(callback).toHaveBeenCalledTimes(1);
});

test.each(["report first", "link first"])("a link joins them: %s", (order) => {
  const report = new LocalModel(values());
  const kernel = new LocalModel(values({ tab: "trace" }));
  if (order === "link first") registerLink("r1", kernel);
  report.link("r1", signal());
  if (order === "report first") registerLink("r1", kernel);
  expect(report.get("tab")).toBe("trace");
  report.set("range_ms", [1, 2]);
  expect(kernel.get("range_ms")).toBeNull();
  report.save_changes();
  expect(kernel.get("range_ms")).toEqual([1, 2]);
  kernel.set("selection", { events: [3] });
  expect(report.get("selection")).toEqual({ events: [3] });
});

test("what the reader set before the link came is what counts", () => {
  const report = new LocalModel(values());
  report.set("tab", "ops");
  report.save_changes();
  report.link("r1", signal());
  const kernel = new LocalModel(values({ tab: "overview", range_ms: [0, 5] }));
  registerLink("r1", kernel);
  expect(kernel.get("tab")).toBe("ops");
  expect(report.get("range_ms")).toEqual([0, 5]);
});

test("other reports are not touched", () => {
  const report = new LocalModel(values());
  report.link("r1", signal());
  registerLink("r2", new LocalModel(values({ tab: "trace" })));
  expect(report.get("tab")).toBeNull();
});

test("only the linked traits reach the kernel", () => {
  const report = new LocalModel(values({ spec: {} }));
  const kernel = new LocalModel(values());
  report.link("r1", signal());
  registerLink("r1", kernel);
  report.set("spec", { id: "x" });
  report.save_changes();
  expect(kernel.get("spec")).toBeUndefined();
});

test("after a kernel's restart the new link takes over", () => {
  const report = new LocalModel(values());
  const [old, fresh] = [new LocalModel(values()), new LocalModel(values())];
  report.link("r1", signal());
  const unlink = registerLink("r1", old);
  registerLink("r1", fresh);
  unlink();
  report.set("tab", "ops");
  report.save_changes();
  expect(fresh.get("tab")).toBe("ops");
  expect(old.get("tab")).toBeNull();
});

test("a report that is taken away hears no more", () => {
  const controller = new AbortController();
  const report = new LocalModel(values());
  const kernel = new LocalModel(values());
  report.link("r1", controller.signal);
  registerLink("r1", kernel);
  controller.abort();
  kernel.set("tab", "ops");
  expect(report.get("tab")).toBeNull();
});
