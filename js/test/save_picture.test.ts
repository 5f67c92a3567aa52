import { describe, expect, test } from "vitest";
import { fileName, legendOf, pictureSvg } from "../src/save_picture";

const SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="100"><rect width="5" height="5"/></svg>';
const view = { export: () => ({ to_blob: async () => new Blob([SVG], { type: "image/svg+xml" }) }) };

describe("the file's name", () => {
  test.each([
    ["In [3]", "Step time: 12 steps", "svg", "In-3_Step-time-12-steps.svg"],
    [undefined, "Trace", "png", "Trace.png"],
    ["../../etc/passwd", "a/b\\c", "png", "etc-passwd_a-b-c.png"],
    ["", "", "svg", "chart.svg"],
    ["Größe", "測試", "svg", "Größe_測試.svg"],
  ])("%s, %s", (report, chart, extension, name) => {
    expect(fileName(report, chart, extension)).toBe(name);
  });

  test("is no longer than file systems take", () => {
    expect(fileName("x".repeat(500), "y", "svg").length).toBeLessThan(130);
  });
});

describe("the picture", () => {
  test("has the chart with its title, labels and legend", async () => {
    const labels = [{ x: 4, y: 20, width: 90, text: "python (main)", bold: true }];
    const legend = [{ color: "#f00", label: "<b>MatMul</b>", value: "10 ms" }];
    const svg = await pictureSvg({ title: "Trace & more", view, labels, left: 100, legend }, false);
    const texts = [...svg.querySelectorAll("text")].map((text) => text.textContent);
    expect(texts).toEqual(["Trace & more", "python (main)", "<b>MatMul</b>: 10 ms"]);
    expect(Number(svg.getAttribute("width"))).toBe(12 + 100 + 200 + 12);
    expect(svg.querySelector("b")).toBeNull();
    expect(svg.querySelector("rect")!.getAttribute("fill")).toBe("#ffffff");
  });

  test("is dark on a dark page", async () => {
    const svg = await pictureSvg({ title: "", view }, true);
    expect(svg.querySelector("rect")!.getAttribute("fill")).toBe("#16191d");
    expect(svg.getAttribute("fill")).toBe("#e6e9ed");
  });

  test("has no character that XML forbids", async () => {
    const svg = await pictureSvg({ title: "a\u0000b\u001b[31m\tc", view }, false);
    expect(svg.querySelector("text")!.textContent).toBe("a\ufffdb\ufffd[31m\tc");
  });
});

test("the legend is that of the chart's row", () => {
  document.body.innerHTML = `<div class="tfprof-row"><div id="chart"></div><dl class="tfprof-legend">
    <div class="tfprof-fact"><dt><span class="tfprof-swatch" style="background-color: red"></span><span class="tfprof-name" title="a/long/name">a/lo…</span></dt><dd>5 ms</dd></div>
    <div class="tfprof-fact tfprof-fact-wide"><dt>a remark</dt><dd></dd></div></dl></div><div id="other"></div>`;
  expect(legendOf(document.getElementById("chart")!)).toEqual([{ color: "red", label: "a/long/name", value: "5 ms" }]);
  expect(legendOf(document.getElementById("other")!)).toEqual([]);
});
