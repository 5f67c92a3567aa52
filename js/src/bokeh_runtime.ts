/**
 * BokehJS as a guest on a page that may have its own: `window.Bokeh` is neither replaced nor removed, a
 * module loader on the page (`require`, `define`) doesn't swallow it, and it runs once per page and version.
 */

type Registry = Record<string, Promise<any> | undefined>;
type Slots = Record<string, ((run: (root: object) => void) => void) | undefined>;

declare global {
  // Shared by all the reports on a page, whichever bundle (widget.js, inline.js) they came with.
  var __tfprof_bokeh: Registry | undefined;
  var __tfprof_slots: Slots | undefined;
}

function onPage(version: string): any {
  const other = (globalThis as any).Bokeh;
  if (other?.version === version) return other;
  return other?.[version];
}

/**
 * Runs BokehJS with a root of its own. Its wrapper hangs `Bokeh` on `this`; `require` and its kin are
 * hidden from it. A script element runs wherever the report's own inline script was allowed to, and
 * `Function` is the way out for pages that allow only that.
 */
function run(code: string): any {
  const slots = (globalThis.__tfprof_slots ??= {});
  const key = Math.random().toString(36).slice(2);
  const root: { Bokeh?: any } = {};
  slots[key] = (body) => body.call(root, root);
  const wrapped = `globalThis.__tfprof_slots[${JSON.stringify(key)}](function (_root, define, exports, module, require) {${code}\n});`;
  const script = document.createElement("script");
  script.textContent = wrapped;
  document.head.append(script);
  script.remove();
  if (root.Bokeh === undefined) new Function(wrapped)();
  delete slots[key];
  if (root.Bokeh === undefined) throw new Error("BokehJS did not start; the browser's console may say why.");
  return root.Bokeh;
}

/** BokehJS of the given version: the page's copy if there is one, else that of `source`, run once. */
export function loadBokeh(version: string, source: () => Promise<string>): Promise<any> {
  const registry = (globalThis.__tfprof_bokeh ??= {});
  const loaded = registry[version];
  if (loaded !== undefined) return loaded;
  const loading = (async () => onPage(version) ?? run(await source()))();
  registry[version] = loading;
  // A failure isn't kept: the next report on the page may have a whole copy.
  loading.catch(() => delete registry[version]);
  return loading;
}
