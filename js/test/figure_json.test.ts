import { describe, expect, test } from "vitest";
import { figureHeight, PALETTES, prepareFigure } from "../src/figure_json";
import { plainText } from "../src/plain_text";
import type { FigureJson } from "../src/types";

const figure = (root: unknown): FigureJson => ({ root_id: "p1", version: "3.9.2", doc: { version: "3.9.2", title: "", roots: [root] } });
const rootOf = (json: FigureJson) => json.doc.roots[0] as any;
const TEX = [/\$\$/, /\\\[/, /\\\(/];

describe("mathematics", () => {
  test.each(["$$x$$", "a $$$$ b", "\\(y\\)", "\\[z\\]", "$$\\($$"])("%s is none", (text) => {
    const plain = plainText(text);
    for (const tex of TEX) expect(plain).not.toMatch(tex);
    expect(plain.replaceAll("\u200b", "")).toBe(text);
  });

  test("a text without it is left alone", () => expect(plainText("cost: $5 (\\o/)")).toBe("cost: $5 (\\o/)"));

  test("is taken out of every text of a figure, and names still match each other", () => {
    const json = figure({
      type: "object", name: "Figure", id: "p1",
      attributes: {
        y_range: { type: "object", name: "FactorRange", id: "r1", attributes: { factors: ["$$x$$"] } },
        data: { type: "map", entries: [["name", ["$$x$$"]]] },
        callback: { type: "object", name: "CustomJS", id: "c1", attributes: { code: "/\\(/.test('$$x$$')" } },
      },
    });
    const { attributes } = rootOf(prepareFigure(json, false).figure);
    expect(attributes.y_range.attributes.factors[0]).toBe(plainText("$$x$$"));
    expect(attributes.data.entries[0][1][0]).toBe(attributes.y_range.attributes.factors[0]);
    expect(attributes.callback.attributes.code).toBe("/\\(/.test('$$x$$')");
  });
});

describe("the house style", () => {
  const axis = (attributes = {}) => ({ type: "object", name: "LinearAxis", id: "a1", attributes });
  const plot = (attributes = {}) => figure({ type: "object", name: "Figure", id: "p1", attributes: { left: [axis(attributes)] } });

  test.each([[true, "dark"], [false, "light"]] as const)("dark=%s", (dark, name) => {
    const { figure: made, coloured } = prepareFigure(plot(), dark);
    const { attributes } = rootOf(made);
    expect(attributes.background_fill_color).toBe(PALETTES[name].paper);
    expect(attributes.left[0].attributes.major_label_text_color).toBe(PALETTES[name].muted);
    expect(coloured).toContainEqual({ id: "a1", attribute: "major_label_text_color", token: "muted" });
  });

  test("leaves what the view has set", () => {
    const { figure: made, coloured } = prepareFigure(plot({ axis_line_color: null }), true);
    expect(rootOf(made).attributes.left[0].attributes.axis_line_color).toBeNull();
    expect(coloured.some(({ attribute }) => attribute === "axis_line_color")).toBe(false);
  });

  test("a category axis has more to colour than a linear one", () => {
    expect("group_text_color" in rootOf(prepareFigure(plot(), true).figure).attributes.left[0].attributes).toBe(false);
  });

  test("white lines are gaps: they take the background's colour", () => {
    const glyph = { type: "object", name: "VBar", id: "g1", attributes: { line_color: { type: "value", value: "white" } } };
    const { figure: made } = prepareFigure(figure(glyph), true);
    expect(rootOf(made).attributes.line_color).toEqual({ type: "value", value: PALETTES.dark.paper });
  });

  test("the payload's own figure stays as it is", () => {
    const json = plot();
    const before = JSON.stringify(json);
    prepareFigure(json, true);
    expect(JSON.stringify(json)).toBe(before);
  });
});

test("the room that a figure takes", () => {
  const plot = (height: number) => ({ name: "Figure", attributes: { height } });
  expect(figureHeight(plot(240))).toBe(240);
  expect(figureHeight({ name: "Column", attributes: { children: [plot(240), plot(100)] } })).toBe(340);
  expect(figureHeight({ name: "Row", attributes: { children: [plot(240), plot(100)] } })).toBe(240);
  expect(figureHeight({ name: "Figure", attributes: {} })).toBe(0);
});
