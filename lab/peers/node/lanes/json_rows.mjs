// json_10k: 10,000 rows of 6 columns as the bytes of a JSON array of objects, by JSON.stringify.

import assert from "../assert.mjs";

import { SELECT_ITEMS, fillItems, items } from "../data.mjs";
import { Timing } from "../measure.mjs";

function run(trial) {
  const [rows, calls] = [trial.size(10_000, 1_000), trial.size(60, 2)];
  return trial.open((peer) => {
    fillItems(peer, rows);
    const first = peer.json(SELECT_ITEMS);
    assert.deepEqual(JSON.parse(first), items(rows), "the JSON does not hold the rows that were written");
    const timing = new Timing();
    for (let call = 0; call < calls; call++) {
      const again = timing.time(() => peer.json(SELECT_ITEMS));
      assert.equal(again.length, first.length, "the JSON has another length");
    }
    timing.extra.json_bytes = first.length;
    return timing.end(calls);
  });
}

export const LANES = [
  { name: "json_10k", about: "10,000 rows of 6 columns as JSON bytes", tag: "release", group: "reads",
    ops_unit: "queries", run },
];
