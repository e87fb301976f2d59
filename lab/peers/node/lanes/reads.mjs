// point_query and query_{10,100,1k,10k}. Rows are what the library answers, objects; every field is touched.

import assert from "../assert.mjs";

import { SELECT_ITEM, SELECT_ITEMS, expectRows, fillItems, items, touchItems } from "../data.mjs";
import { Timing } from "../measure.mjs";
import { readFloor } from "./noop.mjs";

const POINTS = 1000;

function point(trial) {
  const count = trial.size(50_000, 500);
  return trial.open((peer) => {
    fillItems(peer, POINTS);
    const expected = items(POINTS).map((row) => touchItems([row]));
    const floor = readFloor(trial, peer);
    const ask = (at) => touchItems(peer.query(SELECT_ITEM, at + 1));
    for (let i = 0; i < count / 100; i++) ask(i % POINTS);
    const timing = new Timing();
    for (let i = 0; i < count; i++) {
      const at = i % POINTS;
      assert.equal(timing.time(() => ask(at)), expected[at], "a row is not what was written");
    }
    return timing.end(count, floor);
  });
}

function every(trial, rows, queries) {
  const count = trial.size(queries, 5);
  return trial.open((peer) => {
    fillItems(peer, rows);
    expectRows(peer, SELECT_ITEMS, items(rows));
    const expected = touchItems(items(rows));
    const timing = new Timing();
    for (let i = 0; i < count; i++) {
      const sum = timing.time(() => touchItems(peer.query(SELECT_ITEMS)));
      assert.equal(sum, expected, "the rows are not those that were written");
    }
    return timing.end(count);
  });
}

const lane = { tag: "release", group: "reads", ops_unit: "queries" };
const SIZES = [["10", 10, 20_000], ["100", 100, 5_000], ["1k", 1_000, 1_000], ["10k", 10_000, 200]];
export const LANES = [
  { ...lane, name: "point_query", about: "one row by primary key, awaited one after another", run: point },
  ...SIZES.map(([word, rows, queries]) => ({
    ...lane,
    name: `query_${word}`,
    about: `all ${rows} rows of 6 columns, every field touched`,
    run: (trial) => every(trial, rows, queries),
  })),
];
