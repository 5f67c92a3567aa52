import { expect, test } from "vitest";
import type { Model } from "../src/types";
import { withSpec } from "../src/widget";

test("the spec's text is unpacked once, with its keys in their order; all else is the model's own", () => {
  const state: Record<string, unknown> = { spec: '{"b": 1, "a": {"z": 2, "y": 3}}', tab: "trace" };
  const model = {
    state,
    get(name: string) {
      return this.state[name];
    },
    set(name: string, value: unknown) {
      this.state[name] = value;
    },
  };
  const unpacked = withSpec(model as unknown as Model);
  const spec = unpacked.get("spec") as Record<string, object>;
  expect(Object.keys(spec)).toEqual(["b", "a"]);
  expect(Object.keys(spec["a"]!)).toEqual(["z", "y"]);
  expect(unpacked.get("spec")).toBe(spec);
  unpacked.set("tab", "memory");
  expect(unpacked.get("tab")).toBe("memory");
  state["spec"] = '{"c": 1}';
  expect(unpacked.get("spec")).toEqual({ c: 1 });
  state["spec"] = { plain: true };
  expect(unpacked.get("spec")).toEqual({ plain: true });
});
