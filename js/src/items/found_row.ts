/** In a table, the row that is wanted elsewhere in the report: scrolled into view and marked. */

import type { RowComponent, Tabulator } from "tabulator-tables";
import { isWanted, onRowWish, type RowWish } from "../show_row";
import type { Context } from "../types";

export class FoundRow {
  private wish: RowWish | null = null;
  private found: unknown = null;
  private table: Tabulator | null = null;
  private replacing = false;
  private stop = () => {};

  /** `clear` takes all filters away, for a row that they hide. */
  constructor(
    private readonly grid: HTMLElement,
    private readonly clear: () => void,
  ) {}

  /** Tabulator's `rowFormatter`. */
  readonly format = (row: RowComponent): void => {
    row.getElement().classList.toggle("tfprof-found", this.found !== null && row.getData() === this.found);
  };

  attach(table: Tabulator, ctx: Pick<Context, "model">): void {
    this.table = table;
    this.stop = onRowWish(this.grid, ctx, (wish) => {
      this.wish = wish;
      // After all who follow the wish: one of them may give the table other rows.
      void Promise.resolve().then(() => this.look());
    });
  }

  dispose(): void {
    this.stop();
    this.table = null;
  }

  /** Around the giving of other rows. */
  async replace(give: () => Promise<unknown>): Promise<void> {
    this.replacing = true;
    this.found = null;
    await give();
    this.replacing = false;
    await this.look();
  }

  /** Looks for what is still wanted: also when the table is shown again. */
  async look(): Promise<void> {
    const { wish, table } = this;
    if (wish === null || table === null || this.replacing || this.grid.offsetParent === null) return;
    const find = () => table.getRows("active").find((row) => isWanted(row.getData() as Record<string, unknown>, wish));
    if (find() === undefined && table.getData().some((row) => isWanted(row as Record<string, unknown>, wish))) this.clear();
    const row = find();
    if (row === undefined) return;
    this.wish = null;
    this.found = row.getData();
    await table.scrollToRow(row, "center", false);
    for (const each of table.getRows("visible")) this.format(each);
    const element = row.getElement();
    element.tabIndex = -1;
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block: "center" });
  }
}
