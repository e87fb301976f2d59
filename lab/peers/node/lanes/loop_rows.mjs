// loop_hold_300k: how late a timer of 1 ms is while 300,000 rows go in, in one call, and come out as objects.
//
// The samples are the delays of both. `many_300k_*` and `rows_300k_*` are those of each, `idle_*` those of an idle loop, the
// control; the collector's pauses are in all of them.

import assert from "../assert.mjs";
import { setTimeout as pause } from "node:timers/promises";

import { DELETE_T, INSERT_T, T, tRow, tRows } from "../data.mjs";
import { Timing } from "../measure.mjs";
import { delays } from "./own_calls.mjs";

const SELECT = "SELECT id, name, value FROM t";
const IDLE_MS = 200;

/** Makes the call in a turn of its own, beside a timer, and answers what it answered. */
async function beside(samples, call) {
  const answer = new Promise((resolve, reject) => {
    setTimeout(async () => {
      try {
        resolve(await call());
      } catch (error) {
        reject(error);
      }
    }, 2);
  });
  await delays(samples, answer);
  return answer;
}

function run(trial) {
  const rows = tRows(trial.size(300_000, 3_000)).map(Object.values);
  return trial.opened(async (peer) => {
    await peer.execute(T);
    const timing = new Timing();
    const kinds = { idle: [], many_300k: [], rows_300k: [] };
    const rounds = trial.size(3, 1);
    for (let round = 0; round < rounds; round++) {
      timing.pause();
      await peer.execute(DELETE_T);
      await beside(kinds.idle, () => pause(IDLE_MS));
      timing.resume();
      assert.equal(await beside(kinds.many_300k, () => peer.many(INSERT_T, rows)), rows.length, "rows written");
      const found = await beside(kinds.rows_300k, () => peer.query(SELECT));
      timing.pause();
      assert.equal(found.length, rows.length, "rows read");
      const { name, value } = found.at(-1);
      assert.deepEqual({ name, value }, tRow(rows.length - 1), "the last row");
      timing.resume();
    }
    timing.samples.push(...kinds.many_300k, ...kinds.rows_300k);
    for (const [kind, samples] of Object.entries(kinds)) timing.kind(kind, samples);
    return timing.end(rounds * 2);
  });
}

export const LANES = [
  { name: "loop_hold_300k", about: "how late a timer of 1 ms is while 300,000 rows go in and come out", tag: "focused",
    group: "node", ops_unit: "calls", awaits: true, run },
];
