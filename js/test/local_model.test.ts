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

/** A kernel's model that keeps what it is sent, and answers when told to. */
class Kernel extends LocalModel {
  sent: any[] = [];
  broken = false;
  private hearing: ((...args: any[]) => void)[] = [];

  send(content: unknown): void {
    if (this.broken) throw new Error("Kernel is dead");
    this.sent.push(content);
  }

  override on(event: string, callback: (...args: any[]) => void): void {
    if (event === "msg:custom") this.hearing.push(callback);
    else super.on(event, callback);
  }

  answer(content: object, buffers: ArrayBufferView[] = []): void {
    for (const hear of this.hearing) hear(content, buffers);
  }
}

test("questions get their own answers", async () => {
  const report = new LocalModel(values());
  report.link("r1", signal());
  await expect(report.ask({ kind: "a" })).rejects.toThrow("No kernel");
  expect(report.linked).toBe(false);
  const told = vi.fn();
  report.on("change:linked", told);
  const kernel = new Kernel(values());
  registerLink("r1", kernel);
  expect(report.linked).toBe(true);
  expect(told).toHaveBeenCalledTimes(1);
  const [first, second, third] = [report.ask({ kind: "a" }), report.ask({ kind: "b" }), report.ask({ kind: "c" })];
  const [one, two, three] = kernel.sent.map(({ question }) => question);
  expect(new Set([one, two, three]).size).toBe(3);
  const bytes = Uint8Array.of(1);
  kernel.answer({ question: two, tables: ["events"], n: 2 }, [bytes]);
  kernel.answer({ question: one, tables: [], n: 1 });
  kernel.answer({ question: three, tables: [], error: "wrong" });
  kernel.answer({ question: 99, tables: [] });
  expect(await second).toEqual({ content: { question: two, tables: ["events"], n: 2 }, tables: { events: bytes } });
  expect((await first).content["n"]).toBe(1);
  await expect(third).rejects.toThrow("wrong");
});

test("when the kernel goes, nobody waits for it", async () => {
  const report = new LocalModel(values());
  report.link("r1", signal());
  const kernel = new Kernel(values());
  const unlink = registerLink("r1", kernel);
  const waiting = report.ask({ kind: "a" });
  unlink();
  await expect(waiting).rejects.toThrow("gone");
  expect(report.linked).toBe(false);
  // One that was shut down shows it only when it is spoken to.
  registerLink("r1", kernel);
  kernel.broken = true;
  await expect(report.ask({ kind: "a" })).rejects.toThrow("gone");
  expect(report.linked).toBe(false);
});
