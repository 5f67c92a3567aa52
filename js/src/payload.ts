/** Unpacks what Python packed (display/payload.py): base64, gzip, JSON and Arrow. */

import { tableFromIPC } from "@uwdata/flechette";
import type { Model, Spec, Table } from "./types";

/** Newer browsers do by themselves, in a tenth of the time, what is most of the work before a big report's first picture. */
const native = (Uint8Array as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64?.bind(Uint8Array);

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  if (native !== undefined) return native(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** Binary traits come as DataView (anywidget); our own pages give Uint8Array. */
export function asBytes(data: ArrayBufferView | ArrayBuffer): Uint8Array<ArrayBuffer> {
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  return new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength);
}

export async function gunzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser is too old for the interactive report (it has no DecompressionStream).");
  }
  const { readable, writable } = new DecompressionStream("gzip");
  const writer = writable.getWriter();
  // Where the data is damaged, reading fails too, and that is waited for.
  writer.write(bytes).catch(() => {});
  writer.close().catch(() => {});
  return new Uint8Array(await new Response(readable).arrayBuffer());
}

export async function gunzipText(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return new TextDecoder().decode(await gunzip(bytes));
}

export async function unpackTable(packed: ArrayBufferView): Promise<Table> {
  return tableFromIPC(await gunzip(asBytes(packed)));
}

/** The tables of a model; each is unpacked when it is first asked for, and once. */
export function tableReader(model: Model): (name: string) => Promise<Table> {
  const unpacked = new Map<string, Promise<Table>>();
  const bundles = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();
  const bytesOf = async (name: string): Promise<Uint8Array<ArrayBuffer>> => {
    const packed = (model.get("tables") as Record<string, ArrayBufferView> | undefined)?.[name];
    if (packed === undefined) throw new Error(`The report holds no table named "${name}".`);
    return gunzip(asBytes(packed));
  };
  const unpack = async (name: string): Promise<Table> => {
    const bundle = (model.get("spec") as Spec | undefined)?.bundles?.find(({ tables }) => tables.includes(name));
    if (bundle === undefined) return tableFromIPC(await bytesOf(name));
    let whole = bundles.get(bundle.name);
    if (whole === undefined) bundles.set(bundle.name, (whole = bytesOf(bundle.name)));
    const at = bundle.tables.indexOf(name);
    const start = bundle.sizes.slice(0, at).reduce((sum, size) => sum + size, 0);
    // A copy, so that its columns are aligned.
    return tableFromIPC((await whole).slice(start, start + bundle.sizes[at]!));
  };
  return (name) => {
    let table = unpacked.get(name);
    if (table === undefined) {
      table = unpack(name);
      unpacked.set(name, table);
    }
    return table;
  };
}
