/** The report: head line, notes and tabs. The same for the widget and for the self-contained HTML. */

import { loadBokeh } from "./bokeh_runtime";
import { h, onPage, uniqueId } from "./dom";
import { unbroken } from "./format";
import { factList } from "./items/facts";
import { linkTo, prose } from "./items/findings";
import { mountItems } from "./items/index";
import { asBytes, gunzipText, tableReader } from "./payload";
import { stateOf } from "./state";
import itemSheet from "./items/items.css";
import sheet from "./style.css";
import tabulatorSheet from "tabulator-tables/dist/css/tabulator_simple.min.css";
import { watchTheme } from "./theme";
import type { Answer, Context, Head, Model, Mounted, Spec, Tab } from "./types";

const FORMAT = 1;

interface Panel {
  tab: Tab;
  button: HTMLButtonElement;
  element: HTMLElement;
  /** Set when the tab was first shown. */
  mounted?: Promise<Mounted>;
}

/** Shows the model's report in `el`. Returns how to take it away again. */
export async function render({ model, el }: { model: Model; el: HTMLElement }): Promise<() => void> {
  const spec = model.get("spec") as Spec;
  if (spec.format !== FORMAT) {
    throw new Error(`This report has format ${spec.format}; this front end reads format ${FORMAT}.`);
  }
  const controller = new AbortController();
  const theme = watchTheme(controller.signal);
  const context: Context = {
    table: tableReader(model),
    bokeh: () =>
      loadBokeh(spec.bokeh_version, async () => {
        const packed = model.get("bokeh") as ArrayBufferView | null;
        if (!packed) throw new Error("The report holds no copy of BokehJS.");
        return gunzipText(asBytes(packed));
      }),
    theme,
    model,
    state: stateOf(spec.id),
    signal: controller.signal,
  };

  const alone = spec.head === null;
  const root = h("div", { class: `tfprof-report tfprof-app tex2jax_ignore mathjax_ignore${alone ? " tfprof-alone" : ""}` });
  const showTheme = () => root.setAttribute("data-tfprof-theme", theme.dark ? "dark" : "light");
  showTheme();
  theme.onChange(showTheme);
  const styles = h("style");
  styles.textContent = tabulatorSheet + sheet + itemSheet;
  root.append(styles);
  if (spec.head !== null) root.append(head(spec.head), ...answer(spec.head.answer, model));
  root.append(...notes(spec.notes));

  // JupyterLab's shortcuts take the keys of what has the focus (arrows of a slider) unless it says so itself: an element around it can't.
  root.addEventListener("focusin", ({ target }) => (target as Element).setAttribute("data-lm-suppress-shortcuts", "true"), { signal: controller.signal });

  const panels = spec.tabs.map((tab) => makePanel(tab, spec.tabs.length > 1));
  const tablist = h("div", { class: "tfprof-tablist", role: "tablist", "aria-label": "Tools", "data-lm-suppress-shortcuts": "true" });
  tablist.append(...panels.map((panel) => panel.button));
  if (panels.length > 1) root.append(tablist);
  root.append(...panels.map((panel) => panel.element));

  const show = (wanted: string | null) => {
    const chosen = panels.find((panel) => panel.tab.id === wanted) ?? panels[0];
    for (const panel of panels) {
      const on = panel === chosen;
      panel.button.setAttribute("aria-selected", String(on));
      panel.button.tabIndex = on ? 0 : -1;
      panel.element.hidden = !on;
    }
    if (chosen === undefined) return;
    // Some front ends (nbclassic, Voilà) put a widget's element on the page only once it is filled.
    if (chosen.mounted === undefined) {
      chosen.mounted = onPage(root, controller.signal).then(() => mountItems(chosen.element, chosen.tab.items, context));
    } else void chosen.mounted.then((mounted) => mounted.resize());
  };
  const choose = (panel: Panel) => {
    model.set("tab", panel.tab.id);
    model.save_changes();
    show(panel.tab.id);
  };
  for (const panel of panels) panel.button.addEventListener("click", () => choose(panel));
  tablist.addEventListener("keydown", (event) => {
    const at = panels.findIndex((panel) => panel.button === event.target);
    const last = panels.length - 1;
    const next = { ArrowLeft: at === 0 ? last : at - 1, ArrowRight: at === last ? 0 : at + 1, Home: 0, End: last }[event.key];
    const panel = next === undefined || at < 0 ? undefined : panels[next];
    if (panel === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    panel.button.focus();
    choose(panel);
  });
  const follow = () => show(model.get("tab"));
  model.on("change:tab", follow);

  el.replaceChildren(root);
  follow();
  return () => {
    model.off("change:tab", follow);
    controller.abort();
    for (const panel of panels) void panel.mounted?.then((mounted) => mounted.dispose());
    root.remove();
  };
}

function makePanel(tab: Tab, several: boolean): Panel {
  const [buttonId, panelId] = [uniqueId("tab"), uniqueId("panel")];
  const role = several ? { role: "tabpanel", "aria-labelledby": buttonId } : { role: "region", "aria-label": tab.title };
  return {
    tab,
    button: h("button", { type: "button", class: "tfprof-tab", role: "tab", id: buttonId, "aria-controls": panelId }, tab.title),
    element: h("div", { class: "tfprof-panel", id: panelId, ...role, "data-tab": tab.id }),
  };
}

function head({ title, facts }: Head): HTMLElement {
  return h(
    "header",
    { class: "tfprof-head" },
    title ? h("div", { class: "tfprof-title" }, title) : null,
    factList(facts, "tfprof-headfacts"),
  );
}

/** What is slow and what to change, before anything else. */
function answer(said: Answer | undefined, model: Model): HTMLElement[] {
  if (said === undefined) return [];
  const links = said.links.map((link) => linkTo(link, { model })).filter((link) => link !== null);
  return [
    h(
      "div",
      { class: "tfprof-answer" },
      h(
        "div",
        {},
        h("div", { class: "tfprof-answer-text" }, said.text),
        said.detail ? h("div", { class: "tfprof-answer-detail" }, unbroken(said.detail)) : null,
        said.action.length > 0 ? h("div", { class: "tfprof-answer-action" }, h("strong", {}, "Change first:"), prose(said.action)) : null,
      ),
      links.length > 0 ? h("div", { class: "tfprof-links" }, ...links) : null,
    ),
  ];
}

function notes(texts: string[]): HTMLElement[] {
  if (texts.length === 0) return [];
  const list = h("ul", {}, ...texts.map((text) => h("li", {}, text)));
  const few = texts.length <= 2;
  return [
    h("details", { class: "tfprof-notes", open: few }, h("summary", {}, texts.length === 1 ? "1 note" : `${texts.length} notes`), list),
  ];
}

