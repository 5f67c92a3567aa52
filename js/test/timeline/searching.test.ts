import { describe, expect, it } from "vitest";
import { Searching } from "../../src/timeline/searching";
import type { Timeline } from "../../src/timeline/timeline";

describe("a search that waits for what is folded away", () => {
  it("gives way to what is looked for meanwhile", async () => {
    let loaded = () => {};
    const said: string[] = [];
    const timeline = {
      names: { name: ["one", "two"], op: ["", ""], role: ["", ""] },
      stores: new Map(),
      tracks: [],
      item: { hidden: "hidden" },
      loadHidden: () => new Promise<void>((resolve) => (loaded = resolve)),
      toolbar: { showHits: (text: string) => said.push(text), setSearch: () => {} },
      live: {},
      invalidate: () => {},
      onDemand: null,
    };
    const searching = new Searching(timeline as unknown as Timeline);
    const first = searching.search("one", "text");
    await searching.search("", "text");
    loaded();
    await first;
    expect(searching.hits).toBeNull();
    expect(said).toEqual([""]);
  });
});
