import { h } from "../dom";
import { formatPlain } from "../format";
import type { Fact, FactsItem, Mounted } from "../types";

export function factList(facts: Fact[], className: string): HTMLElement {
  return h(
    "dl",
    { class: className },
    ...facts.map((fact) =>
      h(
        "div",
        { class: "tfprof-fact", title: fact.hint },
        h("dt", {}, fact.label),
        h("dd", {}, formatPlain(fact.value)),
      ),
    ),
  );
}

export function mountFacts(host: HTMLElement, item: FactsItem): Mounted {
  if (item.title) host.append(h("h4", { class: "tfprof-heading" }, item.title));
  host.append(factList(item.rows, "tfprof-facts"));
  return { dispose() {}, resize() {} };
}
