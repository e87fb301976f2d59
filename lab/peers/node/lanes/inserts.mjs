// insert_sequential, single_insert and insert_concurrent_1 with `_full`: small INSERTs, each a write of its own. More
// tasks than one are not for a library that works on the calling thread.

import { DELETE_T, INSERT_T, T, expectT, tRows } from "../data.mjs";
import { Timing } from "../measure.mjs";
import { writeFloor } from "./noop.mjs";

const AT_ONCE = 100;

function insert(timing, peer, rows) {
  for (const { name, value } of rows) timing.time(() => peer.execute(INSERT_T, name, value));
}

function sequential(trial) {
  const rows = tRows(trial.size(50_000, 200));
  return trial.open((peer) => {
    peer.execute(T);
    const floor = writeFloor(trial, peer);
    const timing = new Timing();
    insert(timing, peer, rows);
    const figures = timing.end(rows.length, floor);
    expectT(peer, rows.length);
    return figures;
  });
}

function single(trial) {
  const rounds = trial.size(100, 3);
  const rows = tRows(AT_ONCE);
  return trial.open((peer) => {
    peer.execute(T);
    const floor = writeFloor(trial, peer);
    const timing = new Timing();
    for (let round = 0; round < rounds; round++) {
      timing.pause();
      peer.execute(DELETE_T);
      timing.resume();
      insert(timing, peer, rows);
    }
    const figures = timing.end(rounds * AT_ONCE, floor);
    expectT(peer, AT_ONCE);
    return figures;
  });
}

function one(trial, synchronous) {
  const rows = tRows(trial.size(synchronous === "FULL" ? 10_000 : 40_000, 200));
  const run = (peer) => {
    peer.execute(T);
    const timing = new Timing();
    insert(timing, peer, rows);
    const figures = timing.end(rows.length);
    expectT(peer, rows.length);
    return figures;
  };
  return trial.open(run, synchronous);
}

const lane = { tag: "release", ops_unit: "inserts" };
export const LANES = [
  { ...lane, group: "writes", name: "insert_sequential", about: "small inserts, awaited one after another",
    run: sequential },
  { ...lane, group: "profile", tag: "focused", name: "single_insert",
    about: "small inserts into a small table, above the noop", run: single },
  ...[["", "NORMAL"], ["_full", "FULL"]].map(([form, synchronous]) => ({
    ...lane,
    group: "group",
    name: `insert_concurrent_1${form}`,
    about: `1 task(s) that insert, durability ${synchronous.toLowerCase()}, Node's one thread`,
    run: (trial) => one(trial, synchronous),
  })),
];
