import { h, shortenedName } from "../dom";
import { formatPlain, unbroken } from "../format";
import type { Fact, FactsItem, Mounted } from "../types";

function swatch(fact: Fact): HTMLElement | null {
  if (fact.color === undefined) return null;
  const mark = h("span", { class: fact.hatch ? "tfprof-swatch tfprof-hatch" : "tfprof-swatch", "aria-hidden": "true" });
  mark.style.backgroundColor = fact.color;
  return mark;
}

/** A value, whose words don't part at their hyphens (`worker-1`) unless one alone has no room. */
function value(fact: Fact): (Node | string)[] {
  const words = unbroken(formatPlain(fact.value)).split(/(?<= )/);
  return words.map((word) => (/\w-\w/.test(word) ? h("span", { class: "tfprof-word" }, word) : word));
}

export function factList(facts: Fact[], className: string): HTMLElement {
  return h(
    "dl",
    { class: className },
    ...facts.map((fact) =>
      h(
        "div",
        { class: "tfprof-fact", title: fact.hint },
        h("dt", {}, fact.label),
        h("dd", {}, ...value(fact)),
      ),
    ),
  );
}

/** A long name cut in the middle; one that is short for what its hint tells begins with what matters. */
function legendLabel({ label, hint }: Fact): HTMLElement {
  // Our own words, as names of categories are, wrap.
  if (/^[A-Z][a-z]+( [a-z]+)+$/.test(label)) return h("span", {}, label);
  return hint ? h("span", { class: "tfprof-name" }, h("span", {}, label)) : shortenedName(label);
}

/** Facts with colours are the legend of the chart beside them: a line each. */
function legend(facts: Fact[]): HTMLElement {
  return h(
    "dl",
    { class: "tfprof-legend" },
    ...facts.map((fact) => {
      return h(
        "div",
        { class: fact.wide ? "tfprof-fact tfprof-fact-wide" : "tfprof-fact", title: fact.hint },
        h("dt", {}, swatch(fact), fact.color === undefined ? fact.label : legendLabel(fact)),
        h("dd", {}, ...value(fact)),
      );
    }),
  );
}

export function mountFacts(host: HTMLElement, item: FactsItem): Mounted {
  if (item.title) host.append(h("h4", { class: "tfprof-heading" }, item.title));
  const isLegend = item.rows.some((fact) => fact.color !== undefined);
  host.append(isLegend ? legend(item.rows) : factList(item.rows, "tfprof-facts"));
  return { dispose() {}, resize() {} };
}
