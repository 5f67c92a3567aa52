import { h, uniqueId } from "../dom";
import { isChosen, onRowWish } from "../show_row";
import type { Context, Mounted, SwitchItem } from "../types";
import { mountItems } from "./index";

/** Shows one case at a time; a case is mounted when it is first chosen, and kept. */
export async function mountSwitch(host: HTMLElement, item: SwitchItem, ctx: Context): Promise<Mounted> {
  const mounted = new Map<string, { element: HTMLElement; items: Promise<Mounted> }>();
  const body = h("div", { class: "tfprof-cases" });
  const kept = `switch:${item.id}`;
  const { trait } = item;
  const known = (value: unknown) => item.options.some((option) => option.value === value);
  // The option without a value stands for none of them: all hosts, where others are a host each.
  const told = (value: string) => (value === "" ? null : item.options.find((option) => option.value === value)!.label);
  const named = () => item.options.find(({ value }) => trait !== undefined && told(value) === (ctx.model.get(trait) ?? null))?.value;
  let shown = named() ?? (known(ctx.state.get(kept)) ? ctx.state.get(kept) : item.value);
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
  const choose = (value: string) => {
    shown = value;
    ctx.state.set(kept, value);
    if (trait !== undefined) {
      ctx.model.set(trait, told(value));
      ctx.model.save_changes();
    }
    return show(value);
  };
  const choices = item.options.length <= 4 ? buttons(item, shown, choose) : dropDown(item, shown, choose);
  host.append(choices.element, body);
  const change = (value: string | undefined) => {
    if (value === undefined || value === shown) return;
    shown = value;
    choices.select(value);
    void show(value);
  };
  const follow = () => change(named());
  const stop = onRowWish(host, ctx, (wish) => change(item.options.find(({ label }) => isChosen(label, wish))?.value));
  if (trait !== undefined) ctx.model.on(`change:${trait}`, follow);
  await show(shown);
  const visible = () => [...mounted.values()].filter(({ element }) => !element.hidden);
  return {
    dispose: () => {
      stop();
      if (trait !== undefined) ctx.model.off(`change:${trait}`, follow);
      mounted.forEach(({ items }) => void items.then((each) => each.dispose()));
    },
    resize: () => visible().forEach(({ items }) => void items.then((each) => each.resize())),
  };
}

interface Choices {
  element: HTMLElement;
  /** Marks another option as the chosen one. */
  select(value: string): void;
}

function dropDown(item: SwitchItem, shown: string, choose: (value: string) => unknown): Choices {
  const select = h(
    "select",
    { id: uniqueId("switch") },
    ...item.options.map(({ value, label }) => h("option", { value, selected: value === shown }, label)),
  );
  select.addEventListener("change", () => choose(select.value));
  const element = h("div", { class: "tfprof-switch" }, h("label", { for: select.id }, item.label), select);
  return { element, select: (value) => void (select.value = value) };
}

/** Few options stand side by side; radio buttons bring their own keys. */
function buttons(item: SwitchItem, shown: string, choose: (value: string) => unknown): Choices {
  const name = uniqueId("switch");
  const choices = h("div", { class: "tfprof-choices", "data-lm-suppress-shortcuts": "true" });
  const inputs = new Map<string, HTMLInputElement>();
  for (const { value, label } of item.options) {
    const input = h("input", { type: "radio", name, value, checked: value === shown });
    inputs.set(value, input);
    input.addEventListener("change", () => choose(value));
    choices.append(h("label", {}, input, h("span", {}, label)));
  }
  const legend = h("span", { id: `${name}-label` }, item.label);
  const element = h("div", { class: "tfprof-switch", role: "radiogroup", "aria-labelledby": legend.id }, legend, choices);
  return { element, select: (value) => void (inputs.get(value)!.checked = true) };
}
