// many_{100,1k,10k}, many_wide_10k, merge_rounds: one statement over many rows, in one transaction.

import assert from "../assert.mjs";

import {
  DELETE_T, INSERT_T, INSERT_WIDE, SELECT_ITEMS, SELECT_WIDE, T, WIDE, expectRows, expectT, fillItems, items, tRows,
  times, wideRow,
} from "../data.mjs";
import { Timing } from "../measure.mjs";
import { writeFloor } from "./noop.mjs";

const MERGE =
  "INSERT OR REPLACE INTO items (id, name, description, value, category, created_at) VALUES (?, ?, ?, ?, ?, ?)";
const MERGED = 1000;
const ROUND = 100;

/** Calls that each write all rows into an empty table. */
function callsOf(peer, calls, empty, insert, rows) {
  peer.many(insert, rows);
  const timing = new Timing();
  for (let call = 0; call < calls; call++) {
    timing.pause();
    peer.execute(empty);
    timing.resume();
    const changed = timing.time(() => peer.many(insert, rows));
    assert.equal(changed, rows.length, "rows were not written");
  }
  return timing.end(calls * rows.length);
}

function many(trial, count, calls) {
  return trial.open((peer) => {
    peer.execute(T);
    const rows = tRows(count).map(Object.values);
    const figures = callsOf(peer, trial.size(calls, 2), DELETE_T, INSERT_T, rows);
    expectT(peer, count);
    return figures;
  });
}

function wide(trial) {
  return trial.open((peer) => {
    peer.execute(WIDE);
    const rows = times(trial.size(10_000, 500), wideRow);
    const cells = rows.map(Object.values);
    const figures = callsOf(peer, trial.size(10, 2), "DELETE FROM wide", INSERT_WIDE, cells);
    expectRows(peer, SELECT_WIDE, rows);
    return figures;
  });
}

function merge(trial) {
  const rounds = trial.size(1_000, MERGED / ROUND);
  const merged = items(MERGED).map((row) => ({ ...row, value: row.value + 0.25 }));
  const cells = merged.map(Object.values);
  const blocks = times(MERGED / ROUND, (at) => cells.slice(at * ROUND, (at + 1) * ROUND));
  return trial.open((peer) => {
    fillItems(peer, MERGED);
    peer.execute(T);
    const floor = writeFloor(trial, peer);
    const timing = new Timing();
    for (let round = 0; round < rounds; round++) {
      const changed = timing.time(() => peer.many(MERGE, blocks[round % blocks.length]));
      assert.equal(changed, ROUND, "rows were not replaced");
    }
    const figures = timing.end(rounds * ROUND, floor);
    expectRows(peer, SELECT_ITEMS, merged);
    return figures;
  });
}

const lane = { tag: "release", group: "writes", ops_unit: "rows" };
const SIZES = [["100", 100, 500], ["1k", 1_000, 150], ["10k", 10_000, 20]];
export const LANES = [
  ...SIZES.map(([word, rows, calls]) => ({
    ...lane,
    name: `many_${word}`,
    about: `one INSERT over ${rows} rows of 2 parameters, in one transaction`,
    run: (trial) => many(trial, rows, calls),
  })),
  { ...lane, name: "many_wide_10k", about: "one INSERT over 10,000 rows of 20 mixed parameters, in one transaction",
    run: wide },
  { ...lane, tag: "focused", group: "profile", name: "merge_rounds",
    about: "100 rows of 6 parameters replaced per call, above the noop", run: merge },
];
