/** Mounts items by their kind. An item that fails shows its own message and leaves the others alone. */

import { errorMessage, h } from "../dom";
import { mountTimeline } from "../timeline/index";
import type { Context, Item, Mounted, RowItem } from "../types";
import { mountFacts } from "./facts";
import { mountFigure } from "./figure";
import { mountFindings, prose } from "./findings";
import { mountHeld } from "./held";
import { mountStages } from "./stages";
import { mountStepper } from "./stepper";
import { mountSwitch } from "./switch";
import { mountTable } from "./table";
import { mountText } from "./text";
import { mountTimelines } from "./timelines";

async function mountRow(host: HTMLElement, item: RowItem, ctx: Context): Promise<Mounted> {
  const row = h("div", { class: "tfprof-row" });
  host.append(row);
  const children = await Promise.all(
    item.children.map((child, i) => {
      const cell = h("div", { class: "tfprof-cell" });
      cell.style.setProperty("--weight", String(item.weights?.[i] ?? 1));
      row.append(cell);
      return mountItem(cell, child, ctx);
    }),
  );
  return group(children);
}

function mountKind(host: HTMLElement, item: Item, ctx: Context): Mounted | Promise<Mounted> {
  switch (item.kind) {
    case "text":
      return mountText(host, item);
    case "facts":
      return mountFacts(host, item);
    case "figure":
      return mountFigure(host, item, ctx);
    case "table":
      return mountTable(host, item, ctx);
    case "row":
      return mountRow(host, item, ctx);
    case "switch":
      return mountSwitch(host, item, ctx);
    case "section":
      host.append(h("h3", { class: "tfprof-section" }, item.title));
      return { dispose() {}, resize() {} };
    case "change":
      host.append(h("div", { class: "tfprof-labelled" }, h("strong", {}, `${item.label}:`), prose(item.change)));
      return { dispose() {}, resize() {} };
    case "findings":
      return mountFindings(host, item, ctx);
    case "stages":
      return mountStages(host, item);
    case "held":
      return mountHeld(host, item, ctx);
    case "stepper":
      return mountStepper(host, item, ctx);
    case "timeline":
      return mountTimeline(host, item, ctx);
    case "timelines":
      return mountTimelines(host, item, ctx);
    default:
      throw new Error(`This front end knows no item of kind "${(item as { kind: string }).kind}".`);
  }
}

async function mountItem(host: HTMLElement, item: Item, ctx: Context): Promise<Mounted> {
  const place = h("div", { class: `tfprof-item tfprof-item-${item.kind}` });
  host.append(place);
  try {
    return await mountKind(place, item, ctx);
  } catch (error) {
    console.error("tfprof_widgets:", error);
    const what = "title" in item && item.title ? `"${item.title}"` : `This ${item.kind}`;
    place.replaceChildren(
      h("div", { class: "tfprof-text tfprof-error", role: "alert" }, `${what} could not be shown: ${errorMessage(error)}`),
    );
    return { dispose() {}, resize() {} };
  }
}

function group(mounted: Mounted[]): Mounted {
  return {
    dispose: () => mounted.forEach((each) => each.dispose()),
    resize: () => mounted.forEach((each) => each.resize()),
  };
}

/** Mounts all the items in order; they load side by side. Never fails: see `mountItem`. */
export async function mountItems(host: HTMLElement, items: Item[], ctx: Context): Promise<Mounted> {
  return group(await Promise.all(items.map((item) => mountItem(host, item, ctx))));
}
