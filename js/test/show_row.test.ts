import { describe, expect, it } from "vitest";
import { stepAt } from "../src/items/step_click";
import { LocalModel } from "../src/local_model";
import { isChosen, isWanted, onRowWish, showRow, type RowWish } from "../src/show_row";
import { Rows } from "../src/timeline/rows";
import { tableFromArrays } from "@uwdata/flechette";

const model = () => new LocalModel({ spec: { tabs: [{ id: "op_stats" }, { id: "kernels" }, { id: "memory" }, { id: "trace" }] }, tab: "trace", host: null });

describe("a row that is wanted", () => {
  const wish: RowWish = { tab: "kernels", fields: { kernel_name: "gemm", op_name: "a/MatMul", host: "w" }, choose: ["GPU_0_bfc"] };

  it("is told to what is in its tab, now and later, and again when it is asked for again", () => {
    const shown = model();
    const panels = ["kernels", "op_stats"].map((tab) => {
      const panel = document.createElement("div");
      panel.dataset["tab"] = tab;
      return panel.appendChild(document.createElement("div"));
    });
    const seen: string[] = [];
    const stops = panels.map((element, i) => onRowWish(element, { model: shown }, () => seen.push(`early ${i}`)));
    showRow(shown, wish);
    expect(shown.get("tab")).toBe("kernels");
    stops.push(onRowWish(panels[0]!, { model: shown }, () => seen.push("late")));
    showRow(shown, wish);
    expect(seen).toEqual(["early 0", "late", "early 0", "late"]);
    stops.forEach((stop) => stop());
    showRow(shown, wish);
    expect(seen).toHaveLength(4);
  });

  it("is known by the fields that a table has", () => {
    expect(isWanted({ kernel_name: "gemm", op_name: "a/MatMul", rank: 1 }, wish)).toBe(true);
    expect(isWanted({ kernel_name: "gemm", rank: 1 }, wish)).toBe(true);
    expect(isWanted({ kernel_name: "gemm", op_name: "b/MatMul" }, wish)).toBe(false);
    expect(isWanted({ name: "gemm" }, wish)).toBe(false);
    expect(["GPU_0_bfc", "GPU_0_bfc (12 MiB)", "GPU_0_bfc2", "GPU"].map((label) => isChosen(label, wish))).toEqual([true, true, false, false]);
  });

  it("is offered only where there is such a row", async () => {
    const tables: Record<string, any> = {
      ops: tableFromArrays({ name: ["a/MatMul", "b/Relu"] }),
      kernels: tableFromArrays({ kernel_name: ["gemm"], op_name: ["a/MatMul"] }),
    };
    const shown = model();
    const rows = new Rows({ model: shown, table: async (name) => tables[name] ?? Promise.reject(new Error("none")) });
    const labels = async (name: string, op: string, onDevice: boolean) => (await rows.linksOf({ name, op, onDevice })).map(({ label }) => label);
    expect(await labels("gemm", "a/MatMul", true)).toEqual(["Op in TensorFlow stats", "Kernel in GPU kernels"]);
    expect(await labels("MatMul", "a/MatMul", false)).toEqual(["Op in TensorFlow stats"]);
    expect(await labels("other", "c/Add", true)).toEqual([]);
    (await rows.linksOf({ name: "gemm", op: "a/MatMul", onDevice: true }))[1]!.run();
    expect(shown.get("row")).toEqual({ tab: "kernels", fields: { kernel_name: "gemm", op_name: "a/MatMul" } });
    const [memory] = rows.linkOfMemory({ allocator: "PU_0_bfc", op: "(null)", time_ms: 5 });
    memory!.run();
    expect(shown.get("row")).toEqual({ tab: "memory", fields: {}, choose: ["PU_0_bfc", "GPU_0_bfc", "gPU_0_bfc"], time_ms: 5 });
    const alone = new Rows({ model: new LocalModel({ spec: { tabs: [{ id: "trace" }] } }), table: async () => tables["ops"] });
    expect(await alone.linksOf({ name: "gemm", op: "a/MatMul", onDevice: true })).toEqual([]);
  });
});

describe("a click on a step's column", () => {
  const data = { x: [1, 2, 3.5], width: [1, 1, 2], step: [1, 2, "3 to 4"], start: [10, 20, 30], total: [5, 10, 20], host: ["a", "b", "a"] };

  it("leads to the step, or to where several begin, and to nothing beside them", () => {
    expect(stepAt(data, 2.3, "train")).toEqual({ range_ms: [19, 31], spot: { start_ms: 20, kind: "step", name: "train 2" }, host: "b" });
    expect(stepAt(data, 3.5, "train")).toEqual({ range_ms: [28, 52], spot: undefined, host: "a" });
    expect(stepAt({ ...data, host: undefined } as never, 1, "")).toEqual({ range_ms: [9.5, 15.5], spot: { start_ms: 10, kind: "step", name: "1" }, host: undefined });
    expect(stepAt(data, 0.2, "train")).toBeNull();
  });
});
