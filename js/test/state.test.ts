// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import { mountSwitch } from "../src/items/switch";
import { LocalModel } from "../src/local_model";
import { render } from "../src/render";
import { keepTraits, keptTraits, stateOf } from "../src/state";
import type { Context, SwitchItem } from "../src/types";

beforeEach(() => void (globalThis.__tfprof_states = undefined));

const text = (words: string) => ({ kind: "text" as const, text: words, level: "plain" as const });
const spec = (id: string, tabs = ["a", "b"], head: object | null = { facts: [] }) => ({
  format: 1,
  id,
  version: "1",
  bokeh_version: "3",
  head,
  tabs: tabs.map((tab) => ({ id: tab, title: tab.toUpperCase(), items: [text(`in ${tab}`)] })),
  notes: [],
});
/** The model of an output of a report, as `inline.ts` makes it. */
function output(id: string, given = spec(id)): LocalModel {
  const model = new LocalModel({ spec: given, tables: {}, ...keptTraits(stateOf(id)) });
  keepTraits(stateOf(id), model);
  return model;
}
const hosts: SwitchItem = {
  kind: "switch",
  id: "trace_host",
  label: "Host",
  trait: "host",
  options: ["w0", "w1", "w2", "w3", "w4"].map((label, i) => ({ value: `${i}`, label })),
  value: "0",
  cases: Object.fromEntries([0, 1, 2, 3, 4].map((i) => [`${i}`, [text(`of w${i}`)]])),
};
const idle: SwitchItem = { ...hosts, id: "idle", options: hosts.options.slice(0, 2) };
delete idle.trait;
const context = (model: LocalModel, id: string) => ({ model, state: stateOf(id) }) as unknown as Context;
const shown = (host: HTMLElement) => host.querySelector(".tfprof-cases > :not([hidden])")!.textContent;

test("a report that is shown again starts in the tab and at the time it was left, others don't", async () => {
  const first = output("r1");
  await render({ model: first, el: document.createElement("div") });
  first.set("tab", "b");
  first.set("range_ms", [1, 2]);
  const again = document.createElement("div");
  const model = output("r1");
  await render({ model, el: again });
  expect(again.querySelector("[role=tab][aria-selected=true]")!.textContent).toBe("B");
  expect(model.get("range_ms")).toEqual([1, 2]);
  expect(output("r2").get("tab")).toBeNull();
});

test("a switch shows the case that was chosen before", async () => {
  const first = document.body.appendChild(document.createElement("div")); // else a click changes nothing
  await mountSwitch(first, idle, context(output("r1"), "r1"));
  first.querySelectorAll("input")[1]!.click();
  await vi.waitFor(() => expect(shown(first)).toBe("of w1"));
  const again = document.createElement("div");
  await mountSwitch(again, idle, context(output("r1"), "r1"));
  expect(shown(again)).toBe("of w1");
  expect(again.querySelectorAll("input")[1]!.checked).toBe(true);
});

test("the host goes from the page to the model and back, and to every other switch of hosts", async () => {
  const model = output("r1");
  const [one, other] = [document.createElement("div"), document.createElement("div")];
  await mountSwitch(one, hosts, context(model, "r1"));
  await mountSwitch(other, { ...hosts, id: "memory_host" }, context(model, "r1"));
  const select = one.querySelector("select")!;
  select.value = "3";
  select.dispatchEvent(new Event("change"));
  expect(model.get("host")).toBe("w3");
  await vi.waitFor(() => expect(shown(other)).toBe("of w3"));
  model.set("host", "w1");
  await vi.waitFor(() => expect([shown(one), shown(other)]).toEqual(["of w1", "of w1"]));
  expect(select.value).toBe("1");
  model.set("host", "nobody");
  expect(shown(one)).toBe("of w1");
});

test("a tool alone has no tab bar and no head, and is named all the same", async () => {
  const el = document.createElement("div");
  document.body.append(el); // what isn't on the page waits
  await render({ model: output("r1", spec("r1", ["a"], null)), el });
  expect(el.querySelector("[role=tab], .tfprof-head, .tfprof-answer")).toBeNull();
  expect(el.querySelector("[role=region]")!.getAttribute("aria-label")).toBe("A");
  await vi.waitFor(() => expect(el.textContent).toContain("in a"));
});

test("all hosts are the trait's null: a switch that shows one host at a time stays at it", async () => {
  const model = output("r1");
  const all: SwitchItem = { ...hosts, id: "overview_host", options: [{ value: "", label: "All hosts" }, ...hosts.options], value: "", cases: { ...hosts.cases, "": [text("of all")] } };
  const [one, other] = [document.createElement("div"), document.createElement("div")];
  await mountSwitch(one, all, context(model, "r1"));
  await mountSwitch(other, hosts, context(model, "r1"));
  expect([shown(one), shown(other)]).toEqual(["of all", "of w0"]);
  const select = one.querySelector("select")!;
  const choose = (value: string) => {
    select.value = value;
    select.dispatchEvent(new Event("change"));
  };
  choose("2");
  await vi.waitFor(() => expect([shown(one), shown(other)]).toEqual(["of w2", "of w2"]));
  choose("");
  await vi.waitFor(() => expect([shown(one), shown(other)]).toEqual(["of all", "of w2"]));
  expect(model.get("host")).toBeNull();
});
