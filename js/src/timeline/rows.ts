/** Rows of the report's tables that an event belongs to: of its op, of its kernel, of the memory that it takes. */

import { showRow, type RowWish } from "../show_row";
import type { Context, Spec } from "../types";

export interface RowLink {
  label: string;
  hint: string;
  run(): void;
}

/** An event, as far as tables know it. */
export interface Known {
  name: string;
  /** Empty for what is of no op. */
  op: string;
  onDevice: boolean;
}

/** A change of memory. */
export interface Change {
  allocator: string;
  op: string;
  time_ms: number;
}

export class Rows {
  private readonly texts = new Map<string, Promise<ReadonlySet<string>>>();

  constructor(private readonly ctx: Pick<Context, "table" | "model">) {}

  private has(tab: string): boolean {
    return (this.ctx.model.get("spec") as Spec | undefined)?.tabs.some(({ id }) => id === tab) ?? false;
  }

  /** The distinct texts of a table's column; none if there is no such table. */
  private textsOf(table: string, field: string): Promise<ReadonlySet<string>> {
    const key = `${table}/${field}`;
    let found = this.texts.get(key);
    if (found === undefined) {
      found = this.ctx.table(table).then(
        (rows) => new Set(Array.from({ length: rows.numRows }, (_, i) => String(rows.getChild(field)?.at(i)))),
        () => new Set<string>(),
      );
      this.texts.set(key, found);
    }
    return found;
  }

  private link(label: string, hint: string, wish: RowWish): RowLink {
    return { label, hint, run: () => showRow(this.ctx.model, wish) };
  }

  async linksOf({ name, op, onDevice }: Known): Promise<RowLink[]> {
    const links: RowLink[] = [];
    const host = this.ctx.model.get("host") as string | null | undefined;
    const ofHost: Record<string, string> = host ? { host } : {};
    if (op !== "" && this.has("op_stats") && (await this.textsOf("ops", "name")).has(op)) {
      const fields = { name: op, host_or_device: onDevice ? "Device" : "Host" };
      links.push(this.link("Op in TensorFlow stats", "The op's row of the table", { tab: "op_stats", fields }));
    }
    if (onDevice && this.has("kernels") && (await this.textsOf("kernels", "kernel_name")).has(name)) {
      const known = await this.textsOf("kernels", "op_name");
      const fields = { kernel_name: name, ...(known.has(op) ? { op_name: op } : {}), ...ofHost };
      links.push(this.link("Kernel in GPU kernels", "The kernel's row of the table", { tab: "kernels", fields }));
    }
    return links;
  }

  /** To what the allocator held after a change of memory. */
  linkOfMemory({ allocator, op, time_ms }: Change): RowLink[] {
    if (!this.has("memory")) return [];
    const host = this.ctx.model.get("host") as string | null | undefined;
    // Some files lack the first letter of the name, which the report gives back: PU_0_bfc.
    const choose = [allocator, `G${allocator}`, `g${allocator}`, ...(host ? [host] : [])];
    const fields: Record<string, string> = op === "" || op === "(null)" ? {} : { op_name: op };
    const wish = { tab: "memory", fields, choose, time_ms };
    return [this.link("Memory held then", `What ${allocator} held after the allocation`, wish)];
  }
}
