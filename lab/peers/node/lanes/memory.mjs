// memory_query_10k: what holding a result of 10,000 rows of 6 columns costs in memory, the engine's heap included.

import assert from "../assert.mjs";

import { INSERT_ITEM, ITEMS, SELECT_ITEMS, items, touchItems } from "../data.mjs";
import { Timing, peakRss, resetPeak, rss } from "../measure.mjs";

function run(trial) {
  const [rows, count] = [trial.size(10_000, 1_000), trial.size(20, 2)];
  return trial.opened(async (peer) => {
    await peer.execute(ITEMS);
    const cells = items(rows).map(({ id: _, ...row }) => Object.values(row));
    assert.equal(await peer.many(INSERT_ITEM, cells), rows, "rows were not written");
    const expected = touchItems(items(rows));
    // Fills the page cache, and is no part of the growth.
    await peer.query("SELECT count(*), sum(length(description)) FROM items");
    const canReset = resetPeak();
    const before = rss();
    const held = await peer.query(SELECT_ITEMS);
    const [after, peak] = [rss(), peakRss()];
    assert.equal(touchItems(held), expected, "the rows are not those that were written");
    const timing = new Timing();
    for (let i = 0; i < count; i++) {
      const began = process.hrtime.bigint();
      const sum = touchItems(await peer.query(SELECT_ITEMS));
      timing.samples.push(Number(process.hrtime.bigint() - began));
      assert.equal(sum, expected, "the rows are not those that were written");
    }
    if (before !== null) {
      timing.extra.result_bytes = Math.max(after - before, 0);
      if (canReset) timing.extra.peak_growth_bytes = Math.max(peak - before, 0);
    }
    return timing.end(count);
  });
}

export const LANES = [
  { name: "memory_query_10k", about: "memory that a result of 10,000 rows takes", tag: "release", group: "process",
    ops_unit: "queries", awaits: true, run },
];
