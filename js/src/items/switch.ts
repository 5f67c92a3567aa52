import { h, uniqueId } from "../dom";
import type { Context, Mounted, SwitchItem } from "../types";
import { mountItems } from "./index";

/** Shows one case at a time; a case is mounted when it is first chosen, and kept. */
export async function mountSwitch(host: HTMLElement, item: SwitchItem, ctx: Context): Promise<Mounted> {
  const mounted = new Map<string, { element: HTMLElement; items: Promise<Mounted> }>();
  const body = h("div", { class: "tfprof-cases" });
  const show = async (value: string) => {
    let chosen = mounted.get(value);
    for (const [other, { element }] of mounted) element.hidden = other !== value;
    if (chosen === undefined) {
      const element = h("div");
      body.append(element);
      chosen = { element, items: mountItems(element, item.cases[value] ?? [], ctx) };
      mounted.set(value, chosen);
      await chosen.items;
    } else {
      (await chosen.items).resize();
    }
  };
  host.append(item.options.length <= 4 ? buttons(item, show) : dropDown(item, show), body);
  await show(item.value);
  const visible = () => [...mounted.values()].filter(({ element }) => !element.hidden);
  return {
    dispose: () => mounted.forEach(({ items }) => void items.then((each) => each.dispose())),
    resize: () => visible().forEach(({ items }) => void items.then((each) => each.resize())),
  };
}

function dropDown(item: SwitchItem, show: (value: string) => unknown): HTMLElement {
  const select = h(
    "select",
    { id: uniqueId("switch") },
    ...item.options.map(({ value, label }) => h("option", { value, selected: value === item.value }, label)),
  );
  select.addEventListener("change", () => show(select.value));
  return h("div", { class: "tfprof-switch" }, h("label", { for: select.id }, item.label), select);
}

/** Few options stand side by side; radio buttons bring their own keys. */
function buttons(item: SwitchItem, show: (value: string) => unknown): HTMLElement {
  const name = uniqueId("switch");
  const choices = h("div", { class: "tfprof-choices", "data-lm-suppress-shortcuts": "true" });
  for (const { value, label } of item.options) {
    const input = h("input", { type: "radio", name, value, checked: value === item.value });
    input.addEventListener("change", () => show(value));
    choices.append(h("label", {}, input, h("span", {}, label)));
  }
  const legend = h("span", { id: `${name}-label` }, item.label);
  return h("div", { class: "tfprof-switch", role: "radiogroup", "aria-labelledby": legend.id }, legend, choices);
}
