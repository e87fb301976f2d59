// noop_execute, noop_select: calls that do nothing, which is the cost of asking.

import assert from "../assert.mjs";

import { INSERT_T, T, expectT } from "../data.mjs";
import { Timing, timed } from "../measure.mjs";

/** Latencies of a write that does nothing, on a peer that has the table `t`. */
function writes(peer, count) {
  const samples = [];
  for (let i = 0; i < count; i++) {
    const changed = timed(samples, () => peer.execute("UPDATE t SET value = 0 WHERE 1 = 0"));
    assert.equal(changed, 0, "an UPDATE that matches nothing changed rows");
  }
  return samples;
}

/** Latencies of a read that reads nothing. */
function reads(peer, count) {
  const samples = [];
  for (let i = 0; i < count; i++) {
    const rows = timed(samples, () => peer.query("SELECT 1 AS one"));
    assert.ok(rows.length === 1 && rows[0].one === 1, "SELECT 1 answered something else");
  }
  return samples;
}

/** The floor of a write, for a lane's `work_us`. */
export const writeFloor = (trial, peer) => writes(peer, trial.size(2_000, 50));

/** The floor of a read, for a lane's `work_us`. */
export const readFloor = (trial, peer) => reads(peer, trial.size(2_000, 50));

function execute(trial) {
  const count = trial.size(20_000, 200);
  return trial.open((peer) => {
    peer.execute(T);
    peer.execute(INSERT_T, "item_0", 0);
    writes(peer, count / 10);
    const timing = new Timing();
    timing.samples = writes(peer, count);
    const figures = timing.end(count);
    expectT(peer, 1);
    return figures;
  });
}

function select(trial) {
  const count = trial.size(50_000, 500);
  return trial.open((peer) => {
    peer.execute(T);
    reads(peer, count / 10);
    const timing = new Timing();
    timing.samples = reads(peer, count);
    return timing.end(count);
  });
}

const lane = { tag: "focused", group: "profile", ops_unit: "calls" };
export const LANES = [
  { ...lane, name: "noop_execute", about: "an UPDATE that matches nothing, awaited", run: execute },
  { ...lane, name: "noop_select", about: "SELECT 1, awaited", run: select },
];
