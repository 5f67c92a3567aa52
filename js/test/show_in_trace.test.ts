import { describe, expect, it } from "vitest";
import { LocalModel } from "../src/local_model";
import { goTo, hasTrace, showInTrace } from "../src/show_in_trace";

const model = () => new LocalModel({ spec: { tabs: [{ id: "overview" }, { id: "trace" }] }, tab: "overview", range_ms: null, highlight: null });

describe("showInTrace", () => {
  it("opens the trace, highlights, and keeps the time shown unless it is told one", () => {
    const shown = model();
    showInTrace(shown, { highlight: "MatMul" });
    expect(["tab", "highlight", "range_ms"].map((name) => shown.get(name))).toEqual(["trace", "MatMul", null]);
    showInTrace(shown, { range_ms: [1, 2] });
    expect(["tab", "highlight", "range_ms"].map((name) => shown.get(name))).toEqual(["trace", "MatMul", [1, 2]]);
  });

  it("highlights the same name again when it is asked to", () => {
    const shown = model();
    const seen: unknown[] = [];
    shown.on("change:highlight", () => seen.push(shown.get("highlight")));
    showInTrace(shown, { highlight: "MatMul" });
    showInTrace(shown, { highlight: "MatMul" });
    expect(seen).toEqual(["MatMul", null, "MatMul"]);
  });

  it("follows links to tools, and to places in the trace", () => {
    const shown = model();
    goTo(shown, "overview");
    expect(shown.get("tab")).toBe("overview");
    goTo(shown, "trace?highlight=a%2Fb%3AMatMul%26c&range_ms=1.5,20");
    expect(["tab", "highlight", "range_ms"].map((name) => shown.get(name))).toEqual(["trace", "a/b:MatMul&c", [1.5, 20]]);
    goTo(shown, "trace?range_ms=1,x");
    expect(shown.get("range_ms")).toEqual([1.5, 20]);
  });

  it("knows whether there is a trace", () => {
    expect(hasTrace(model())).toBe(true);
    expect(hasTrace(new LocalModel({ spec: { tabs: [{ id: "overview" }] } }))).toBe(false);
    expect(hasTrace(new LocalModel({}))).toBe(false);
  });
});
