import { h } from "../dom";
import { formatPlain } from "../format";
import type { Fact, FactsItem, Mounted } from "../types";

function swatch(fact: Fact): HTMLElement | null {
  if (fact.color === undefined) return null;
  const mark = h("span", { class: fact.hatch ? "tfprof-swatch tfprof-hatch" : "tfprof-swatch", "aria-hidden": "true" });
  mark.style.backgroundColor = fact.color;
  return mark;
}

export function factList(facts: Fact[], className: string): HTMLElement {
  return h(
    "dl",
    { class: className },
    ...facts.map((fact) =>
      h(
        "div",
        { class: "tfprof-fact", title: fact.hint },
        h("dt", {}, swatch(fact), fact.label),
        h("dd", {}, formatPlain(fact.value)),
      ),
    ),
  );
}

export function mountFacts(host: HTMLElement, item: FactsItem): Mounted {
  if (item.title) host.append(h("h4", { class: "tfprof-heading" }, item.title));
  const legend = item.rows.some((fact) => fact.color !== undefined);
  host.append(factList(item.rows, legend ? "tfprof-legend" : "tfprof-facts"));
  return { dispose() {}, resize() {} };
}
