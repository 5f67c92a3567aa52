/**
 * Light or dark: as the page around the report says, else as the system says.
 *
 * Each notebook front end marks its theme in its own way, and some (VS Code) outside of the frame that
 * the output is in, so the documents of the ancestors are asked too, from the inside out.
 */

import type { Theme } from "./types";

const MARKS = ["class", "theme", "data-theme", "data-bs-theme", "data-jp-theme-light", "data-vscode-theme-kind"];

/** Classes: of Quarto, and of Tailwind (MyST, marimo). */
const DARK = ["quarto-dark", "dark"];
const LIGHT = ["quarto-light", "light"];

/** What one element says; undefined when it says nothing. */
function elementIsDark(element: Element | null): boolean | undefined {
  if (element === null) return undefined;
  const jupyter = element.getAttribute("data-jp-theme-light");
  if (jupyter !== null) return jupyter === "false";
  const vscode = element.getAttribute("data-vscode-theme-kind");
  if (vscode !== null) return vscode === "vscode-dark" || vscode === "vscode-high-contrast";
  const { classList } = element;
  if (DARK.some((name) => classList.contains(name))) return true;
  if (LIGHT.some((name) => classList.contains(name))) return false;
  // pydata-sphinx-theme and others (data-theme), Bootstrap (data-bs-theme), Colab (theme).
  for (const name of ["data-theme", "data-bs-theme", "theme"]) {
    const value = element.getAttribute(name);
    if (value === "dark" || value === "light") return value === "dark";
  }
  return undefined;
}

/** The document and those around it that may be read, from the inside out. */
function documents(view: Window): Document[] {
  const found: Document[] = [];
  for (let at: Window = view; ; at = at.parent) {
    try {
      found.push(at.document);
    } catch {
      break; // of another origin: that and what is around it cannot be read
    }
    if (at.parent === at) break;
  }
  return found;
}

export function pageIsDark(view: Window = window): boolean {
  for (const doc of documents(view)) {
    for (const element of [doc.body, doc.documentElement]) {
      const dark = elementIsDark(element);
      if (dark !== undefined) return dark;
    }
  }
  return view.matchMedia("(prefers-color-scheme: dark)").matches;
}

/** The page's theme, followed until `signal` aborts. */
export function watchTheme(signal: AbortSignal, view: Window = window): Theme {
  let dark = pageIsDark(view);
  const callbacks = new Set<(dark: boolean) => void>();
  const update = () => {
    const now = pageIsDark(view);
    if (now === dark) return;
    dark = now;
    for (const callback of [...callbacks]) callback(dark);
  };
  const observer = new MutationObserver(update);
  for (const doc of documents(view)) {
    for (const element of [doc.body, doc.documentElement]) {
      if (element) observer.observe(element, { attributes: true, attributeFilter: MARKS });
    }
  }
  view.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update, { signal });
  signal.addEventListener("abort", () => {
    observer.disconnect();
    callbacks.clear();
  });
  return {
    get dark() {
      return dark;
    },
    onChange(callback) {
      callbacks.add(callback);
      return () => callbacks.delete(callback);
    },
  };
}
