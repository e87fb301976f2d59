// transaction_interactive, transaction_batched, transaction_loop, transaction_reads, savepoints, savepoints_deep.
//
// A sample is one whole transaction. The library's transactions are functions that nest, and are made once.

import assert from "../assert.mjs";

import {
  DELETE_T, INSERT_T, SELECT_ITEMS, T, expectRows, expectT, fillItems, items, tRows, times, touchItems,
} from "../data.mjs";
import { Timing } from "../measure.mjs";

const SEEDS = 100;
const READ = 500;

function interactive(trial) {
  const count = trial.size(3_000, 30);
  return trial.open((peer) => {
    peer.execute("CREATE TABLE ints (n INTEGER NOT NULL)");
    peer.many("INSERT INTO ints VALUES (?)", times(SEEDS, (n) => [n]));
    const change = peer.transaction(() => {
      peer.execute("INSERT INTO ints VALUES (?)", 999);
      const [{ counted }] = peer.query("SELECT count(*) AS counted FROM ints");
      if (counted > 50) peer.execute("DELETE FROM ints WHERE n = ?", 999);
      return counted;
    });
    const timing = new Timing();
    for (let i = 0; i < count; i++) assert.equal(timing.time(change), SEEDS + 1, "the transaction counted wrong");
    const figures = timing.end(count);
    expectRows(peer, "SELECT n FROM ints ORDER BY n", times(SEEDS, (n) => ({ n })));
    return figures;
  });
}

function batched(peer) {
  return (rows) => peer.each(INSERT_T, rows);
}

function loop(peer) {
  return (rows) => rows.forEach(([name, value]) => peer.execute(INSERT_T, name, value));
}

function shallow(peer) {
  const step = peer.nested(([name, value]) => peer.execute(INSERT_T, name, value));
  return (rows) => rows.forEach((row) => step(row));
}

function deep(peer) {
  const step = peer.nested(([[name, value], ...others]) => {
    peer.execute(INSERT_T, name, value);
    if (others.length > 0) step(others);
  });
  return step;
}

/** Transactions that write the rows `0..rows` of `t`, which is emptied between them. */
function writes(trial, body, length, full) {
  const count = trial.size(full, 3);
  const rows = tRows(length).map(Object.values);
  return trial.open((peer) => {
    peer.execute(T);
    const write = peer.transaction(body(peer));
    const timing = new Timing();
    for (let i = 0; i < count; i++) {
      timing.pause();
      peer.execute(DELETE_T);
      timing.resume();
      timing.time(() => write(rows));
    }
    const figures = timing.end(count * length);
    expectT(peer, length);
    return figures;
  });
}

function reads(trial) {
  const count = trial.size(1_000, 5);
  return trial.open((peer) => {
    fillItems(peer, READ);
    const expected = touchItems(items(READ));
    const read = peer.transaction(() => touchItems(peer.query(SELECT_ITEMS)));
    const timing = new Timing();
    for (let i = 0; i < count; i++) {
      assert.equal(timing.time(read), expected, "the rows are not those that were written");
    }
    return timing.end(count);
  });
}

const lane = { tag: "release", group: "transactions" };
export const LANES = [
  { ...lane, name: "transaction_interactive", about: "insert, count, delete if there are many, commit",
    ops_unit: "transactions", run: interactive },
  { ...lane, name: "transaction_batched", about: "1000 rows by one call inside a transaction", ops_unit: "rows",
    run: (trial) => writes(trial, batched, 1000, 150) },
  { ...lane, name: "transaction_loop", about: "100 single inserts inside a transaction", ops_unit: "rows",
    run: (trial) => writes(trial, loop, 100, 300) },
  { ...lane, name: "transaction_reads", about: "500 rows of 6 columns read inside a transaction",
    ops_unit: "transactions", run: reads },
  { ...lane, name: "savepoints", about: "50 nested transactions one after another, an insert in each",
    ops_unit: "savepoints", run: (trial) => writes(trial, shallow, 50, 200) },
  { ...lane, tag: "focused", name: "savepoints_deep", ops_unit: "savepoints",
    about: "5 nested transactions inside each other, an insert in each",
    run: (trial) => writes(trial, deep, 5, 1000) },
];
