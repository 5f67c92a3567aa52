import { h } from "../dom";
import { unbroken } from "../format";
import type { Mounted, TextItem } from "../types";

export function mountText(host: HTMLElement, item: TextItem): Mounted {
  const label = { plain: "", info: "Note", warning: "Warning", error: "Error" }[item.level];
  host.append(
    h(
      "div",
      { class: `tfprof-text tfprof-${item.level}`, role: item.level === "plain" ? null : "note" },
      // The level in words too: colour alone doesn't reach everybody.
      label ? h("strong", { class: "tfprof-level" }, label) : null,
      h("span", {}, unbroken(item.text)),
    ),
  );
  return { dispose() {}, resize() {} };
}
