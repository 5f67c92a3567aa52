/**
 * The app inside the self-contained HTML (display/html.py). Its boot script unpacks this file, runs it
 * once per page, and asks it to mount the report's root.
 */

import { LocalModel } from "./local_model";
import { fromBase64, gunzipText } from "./payload";
import { render } from "./render";
import { keepTraits, keptTraits, stateOf } from "./state";

declare global {
  /** App by the hash of its code, so that reports of different versions can share a page. */
  var __tfprof_apps: Record<string, { mount(root: HTMLElement): Promise<void> }> | undefined;
}

/** The block's bytes. `null` when the page has lost it (some tools drop what they don't know). */
function block(root: HTMLElement, name: string): Uint8Array<ArrayBuffer> | null {
  const script = root.querySelector(`script[data-tfprof="${CSS.escape(name)}"]`);
  return script === null ? null : fromBase64(script.textContent ?? "");
}

/** The tables by name, decoded from the page when asked for. */
function tablesOf(root: HTMLElement): Record<string, Uint8Array> {
  const tables = {};
  for (const script of root.querySelectorAll<HTMLElement>("script[data-tfprof^='table:']")) {
    const name = script.dataset["tfprof"]!.slice("table:".length);
    Object.defineProperty(tables, name, { enumerable: true, get: () => fromBase64(script.textContent ?? "") });
  }
  return tables;
}

interface Report {
  root: HTMLElement;
  host: HTMLElement;
  model: LocalModel;
  id: string;
  /** Takes the view away; `null` while there is none. */
  hide: (() => void) | null;
}

/** Reports in view. Each holds its unpacked data, so those that left the page must not stay here. */
const shown = new Set<Report>();

function setStatic(report: Report, hidden: boolean): void {
  const summary = report.root.querySelector<HTMLElement>(":scope > .tfprof-static");
  if (summary !== null) summary.hidden = hidden;
}

async function show(report: Report): Promise<void> {
  const controller = new AbortController();
  report.hide = () => controller.abort();
  const remove = await render({ model: report.model, el: report.host });
  report.model.link(report.id, controller.signal);
  controller.signal.addEventListener("abort", () => {
    remove();
    setStatic(report, false);
    report.hide = null;
    shown.delete(report);
  });
  shown.add(report);
  // Only now: whatever failed before this line, the summary stays in view.
  setStatic(report, true);
}

async function mount(root: HTMLElement): Promise<void> {
  const host = root.querySelector<HTMLElement>(":scope > .tfprof-mount");
  const packed = block(root, "spec");
  if (host === null || packed === null) throw new Error("This report's HTML is not whole.");
  // A cell that is run again leaves its former report behind. Nothing tells when; so, now.
  for (const report of shown) if (!report.root.isConnected) report.hide?.();
  const spec = JSON.parse(await gunzipText(packed));
  const values = { spec, tables: tablesOf(root), ...keptTraits(stateOf(spec.id)) };
  Object.defineProperty(values, "bokeh", { enumerable: true, get: () => block(root, "bokeh") });
  const report: Report = { root, host, model: new LocalModel(values), id: spec.id, hide: null };
  keepTraits(stateOf(spec.id), report.model);
  await show(report);
  // Notebooks also take outputs off the page that they put back later (scrolled away, moved).
  new IntersectionObserver((entries) => {
    if (report.hide === null && entries.some((entry) => entry.isIntersecting)) void show(report);
  }).observe(root);
}

const key = (globalThis as any).__tfprof_app_key as string;
(globalThis.__tfprof_apps ??= {})[key] = { mount };
