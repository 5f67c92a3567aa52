/** Front end of `display.widget.ReportWidget`. */

import { render as renderReport } from "./render";
import type { Model } from "./types";

/**
 * The widget's model with its spec unpacked. It travels as JSON text: notebooks that are saved with their widgets sort the keys of objects, and
 * Bokeh's figures must be read in their order.
 */
export function withSpec(model: Model): Model {
  let text: unknown;
  let spec: unknown;
  const get = (name: string): unknown => {
    const value = model.get(name);
    if (name !== "spec" || typeof value !== "string") return value;
    if (value !== text) [text, spec] = [value, JSON.parse(value)];
    return spec;
  };
  return new Proxy(model, {
    get(target, key) {
      if (key === "get") return get;
      const value: unknown = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function render({ model, el }: { model: Model; el: HTMLElement }): Promise<() => void> {
  return renderReport({ model: withSpec(model), el });
}

export default { render };
