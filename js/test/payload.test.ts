import { gzipSync } from "node:zlib";
import { tableFromArrays, tableToIPC } from "@uwdata/flechette";
import { expect, test, vi } from "vitest";
import { asBytes, fromBase64, gunzipText, tableReader } from "../src/payload";
import type { Model } from "../src/types";

const bytes = (data: Uint8Array) => new Uint8Array(data) as Uint8Array<ArrayBuffer>;

function modelOf(tables: Record<string, unknown>): Model {
  const get = vi.fn((name: string) => (name === "tables" ? tables : undefined));
  return { get, set() {}, save_changes() {}, on() {}, off() {} };
}

test("base64 gives the bytes back", () => {
  const data = Uint8Array.from({ length: 256 }, (_, i) => i);
  expect(fromBase64(Buffer.from(data).toString("base64"))).toEqual(data);
});

test("a part of a buffer stays that part", () => {
  const buffer = new Uint8Array([1, 2, 3, 4]).buffer;
  expect([...asBytes(new DataView(buffer, 1, 2))]).toEqual([2, 3]);
});

test("gzipped text keeps what is not ASCII", async () => {
  expect(await gunzipText(bytes(gzipSync("µs – ✓")))).toBe("µs – ✓");
});

test("tables of a bundle are unpacked together, and once", async () => {
  const parts = [["a"], ["b", "c"]].map((name) => tableToIPC(tableFromArrays({ name }), {})!);
  const packed = bytes(gzipSync(Buffer.concat(parts)));
  const read = vi.fn(() => new DataView(packed.buffer));
  const tables = {};
  Object.defineProperty(tables, "both", { get: read, enumerable: true });
  const spec = { bundles: [{ name: "both", tables: ["x", "y"], sizes: parts.map((part) => part.length) }] };
  const get = (name: string) => ({ tables, spec })[name as "tables" | "spec"];
  const table = tableReader({ get, set() {}, save_changes() {}, on() {}, off() {} });
  const [y, x] = await Promise.all([table("y"), table("x")]);
  expect(y!.toArray()).toMatchObject([{ name: "b" }, { name: "c" }]);
  expect(x!.toArray()).toMatchObject([{ name: "a" }]);
  expect(read).toHaveBeenCalledTimes(1);
  await expect(table("z")).rejects.toThrow("no table");
});

test("a table is unpacked when asked for, and once", async () => {
  const ipc = tableToIPC(tableFromArrays({ name: ["a", "b"], value: new Float64Array([1, 2.5]) }), {})!;
  const packed = bytes(gzipSync(ipc));
  const tables = {};
  const read = vi.fn(() => new DataView(packed.buffer));
  Object.defineProperty(tables, "ops", { get: read, enumerable: true });
  const table = tableReader(modelOf(tables));
  expect(read).not.toHaveBeenCalled();
  const [first, second] = await Promise.all([table("ops"), table("ops")]);
  expect(first).toBe(second);
  expect(read).toHaveBeenCalledTimes(1);
  expect(first.toArray()).toMatchObject([{ name: "a", value: 1 }, { name: "b", value: 2.5 }]);
});

test("a table that isn't there is named", async () => {
  await expect(tableReader(modelOf({}))("ops")).rejects.toThrow('no table named "ops"');
});
