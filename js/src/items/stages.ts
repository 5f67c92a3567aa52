/** Stages of a pipeline, one below the other, each reading from the ones below it: a table whose first column is a tree. */

import { h, shortenedName } from "../dom";
import type { Mounted, Stage, StageCell, StagesItem } from "../types";

function cell({ text, share }: StageCell): HTMLElement {
  const bar = share === undefined ? null : h("span", { class: "tfprof-stage-bar", "aria-hidden": "true" });
  if (bar !== null) bar.style.width = `${100 * Math.max(0, Math.min(1, share!))}%`;
  return h("td", {}, h("span", { class: "tfprof-stage-value" }, text), bar);
}

function stageRow(stage: Stage): HTMLElement {
  const name = h(
    "th",
    { scope: "row", title: stage.hint },
    h("span", { class: "tfprof-node", "aria-hidden": "true" }),
    shortenedName(stage.name),
    ...stage.tags.map((tag) => h("span", { class: "tfprof-tag" }, tag)),
    stage.marked ? h("span", { class: "tfprof-tag tfprof-tag-marked" }, stage.marked) : null,
  );
  name.style.setProperty("--depth", String(stage.depth));
  return h("tr", { class: stage.marked ? "tfprof-stage-marked" : null }, name, ...stage.cells.map(cell));
}

export function mountStages(host: HTMLElement, item: StagesItem): Mounted {
  if (item.title) host.append(h("h4", { class: "tfprof-heading" }, item.title));
  const head = item.columns.map(({ title, hint }) => h("th", { scope: "col", title: hint }, h("span", { class: hint ? "tfprof-hinted" : null }, title)));
  host.append(
    h(
      "div",
      { class: "tfprof-stages", tabindex: "0", role: "region", "aria-label": item.title ?? "Stages", "data-lm-suppress-shortcuts": "true" },
      h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...item.rows.map(stageRow))),
    ),
  );
  if (item.note) host.append(h("div", { class: "tfprof-caption" }, item.note));
  return { dispose() {}, resize() {} };
}
