/** Stages of a pipeline, one below the other, each reading from the ones below it: a table whose first column is a tree. */

import { h, shortenedName } from "../dom";
import type { Mounted, Stage, StageCell, StagesItem } from "../types";

function cell({ text, share }: StageCell): HTMLElement {
  const bar = share === undefined ? null : h("span", { class: "tfprof-stage-bar", "aria-hidden": "true" });
  if (bar !== null) bar.style.width = `${100 * Math.max(0, Math.min(1, share!))}%`;
  return h("td", {}, h("span", { class: "tfprof-stage-value" }, text), bar);
}

export interface Branch {
  level: number;
  /** From where to where in the row the line goes: all through it, down to its middle, or from there on. */
  part: "through" | "up" | "down";
}

/** The lines of the tree in each row, each at the level of the stage that they come from. */
export function branchesOf(depths: number[]): Branch[][] {
  return depths.map((depth, row) => {
    const branches: Branch[] = [];
    for (let level = 0; level < depth; level++) {
      const next = depths.slice(row + 1).find((other) => other <= level + 1);
      // Another stage below reads into the one of this level; or this row's is the last that does.
      if (next === level + 1) branches.push({ level, part: "through" });
      else if (level === depth - 1) branches.push({ level, part: "up" });
    }
    if (depths[row + 1] === depth + 1) branches.push({ level: depth, part: "down" });
    return branches;
  });
}

function line(level: number, part: string): HTMLElement {
  const drawn = h("span", { class: `tfprof-branch tfprof-branch-${part}`, "aria-hidden": "true" });
  drawn.style.setProperty("--level", String(level));
  return drawn;
}

function stageRow(stage: Stage, branches: Branch[]): HTMLElement {
  const name = h(
    "th",
    { scope: "row", title: stage.hint },
    ...branches.map(({ level, part }) => line(level, part)),
    stage.depth > 0 ? line(stage.depth - 1, "to") : null,
    h("span", { class: "tfprof-node", "aria-hidden": "true" }),
    h(
      "div",
      { class: "tfprof-stage-name" },
      shortenedName(stage.name),
      ...stage.tags.map((tag) => h("span", { class: "tfprof-tag" }, tag)),
      stage.marked ? h("span", { class: "tfprof-tag tfprof-tag-marked" }, stage.marked) : null,
    ),
  );
  name.style.setProperty("--depth", String(stage.depth));
  return h("tr", { class: stage.marked ? "tfprof-stage-marked" : null }, name, ...stage.cells.map(cell));
}

export function mountStages(host: HTMLElement, item: StagesItem): Mounted {
  const head = item.columns.map(({ title, hint }) => h("th", { scope: "col", title: hint }, h("span", { class: hint ? "tfprof-hinted" : null }, title)));
  const branches = branchesOf(item.rows.map(({ depth }) => depth));
  const beyond = h("span", { class: "tfprof-more" });
  const region = h(
    "div",
    { class: "tfprof-stages", tabindex: "0", role: "region", "aria-label": item.title ?? "Stages", "data-lm-suppress-shortcuts": "true" },
    h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...item.rows.map((row, i) => stageRow(row, branches[i]!)))),
  );
  host.append(h("div", { class: "tfprof-tabletools" }, item.title ? h("h4", { class: "tfprof-heading" }, item.title) : null, beyond), region);
  if (item.note) host.append(h("div", { class: "tfprof-caption" }, item.note));
  // Where scroll bars hide, nothing else says that a table goes on to the right.
  const sayWhatIsBeyond = () => {
    const edge = region.scrollLeft + region.clientWidth + 1;
    const hidden = head.filter(({ offsetLeft, offsetWidth }, i) => i > 0 && offsetLeft + offsetWidth > edge).length;
    beyond.textContent = hidden > 0 && region.clientWidth > 0 ? `${hidden} more ${hidden === 1 ? "column" : "columns"} →` : "";
  };
  region.addEventListener("scroll", sayWhatIsBeyond, { passive: true });
  const observer = new ResizeObserver(sayWhatIsBeyond);
  observer.observe(region);
  return { dispose: () => observer.disconnect(), resize: sayWhatIsBeyond };
}
