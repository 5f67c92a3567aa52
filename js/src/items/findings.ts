/** What to change, the most promising first; each opens to its evidence and links. */

import { h } from "../dom";
import { goTo, scrollToReport } from "../show_in_trace";
import type { Context, Finding, FindingsItem, Link, Mounted, Prose, Spec } from "../types";

/** A tool of the report as a button that goes there; TensorFlow's pages as plain links, which load nothing. */
export function linkTo({ label, href }: Link, ctx: Pick<Context, "model">): HTMLElement | null {
  if (href.startsWith("tool:")) {
    // A tool alone has no other to go to.
    const tabs = (ctx.model.get("spec") as Spec | undefined)?.tabs;
    if (tabs !== undefined && !tabs.some((tab) => tab.id === href.slice("tool:".length).split("?")[0])) return null;
    const button = h("button", { type: "button", class: "tfprof-link" }, label);
    button.addEventListener("click", () => {
      goTo(ctx.model, href.slice("tool:".length));
      scrollToReport(button);
    });
    return button;
  }
  if (!href.startsWith("https://")) return null;
  return h("a", { class: "tfprof-link", href, target: "_blank", rel: "noopener noreferrer" }, `${label} ↗`);
}

/** Words with code among them; where that is more than a name, a button copies it. */
export function prose(parts: Prose[]): HTMLElement {
  const code = parts.filter((part) => part.code && /[=@]|\(.+\)/.test(part.text)).map((part) => part.text);
  const body = h("span", {}, ...parts.map((part) => (part.code ? h("code", {}, part.text) : part.text)));
  if (code.length === 0) return h("div", { class: "tfprof-change" }, body);
  const copy = h("button", { type: "button", class: "tfprof-button" }, "Copy code");
  copy.addEventListener("click", () => void copyText(code.join("\n"), body).then((done) => (copy.textContent = done ? "Copied" : "Select and copy")));
  return h("div", { class: "tfprof-change" }, body, copy);
}

/** Pages without a secure origin have no clipboard to write to: then the text is selected, for the reader to copy. */
async function copyText(text: string, shown: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    document.getSelection()?.selectAllChildren(shown);
    return false;
  }
}

function finding(row: Finding, rank: number, ctx: Context): HTMLElement {
  const links = row.links.map((link) => linkTo(link, ctx)).filter((each) => each !== null);
  return h(
    "li",
    {},
    h(
      "details",
      { class: "tfprof-finding" },
      h(
        "summary",
        {},
        h("span", { class: "tfprof-rank", "aria-hidden": "true" }, String(rank)),
        h("span", { class: "tfprof-finding-title" }, row.title),
        h("span", { class: "tfprof-finding-note" }, row.note),
      ),
      h(
        "div",
        { class: "tfprof-finding-body" },
        h("p", {}, row.statement),
        row.change.length > 0 ? h("div", {}, h("h5", {}, "Change"), prose(row.change)) : null,
        row.evidence.length > 0
          ? h(
              "div",
              {},
              h("h5", {}, "Evidence"),
              h("dl", { class: "tfprof-evidence" }, ...row.evidence.flatMap(({ label, value }) => [h("dt", {}, label), h("dd", {}, String(value))])),
            )
          : null,
        links.length > 0 ? h("div", { class: "tfprof-links" }, ...links) : null,
      ),
    ),
  );
}

export function mountFindings(host: HTMLElement, item: FindingsItem, ctx: Context): Mounted {
  if (item.title) host.append(h("h4", { class: "tfprof-heading" }, item.title));
  host.append(h("ol", { class: "tfprof-findings" }, ...item.rows.map((row, i) => finding(row, i + 1, ctx))));
  return { dispose() {}, resize() {} };
}
