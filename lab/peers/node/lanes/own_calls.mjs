// A library's own calls: awaited where it returns promises, and called where it is synchronous.
//
// Nothing of the lab is between the lane and the call, so calls of a microsecond can be told apart. A lane for a library that awaits
// is one for a synchronous library too: what that does on the loop's thread is what its users have.

import assert from "../assert.mjs";

import { INSERT_T, T, items, ITEMS, INSERT_ITEM, SELECT_ITEM, tRows } from "../data.mjs";
import { Timing } from "../measure.mjs";

const POINTS = 1000;
const AT_ONCE = 100;
const now = process.hrtime.bigint;

/** Makes one call after another with each of the parameters, keeps how long each took, and answers the answers. */
async function ask(peer, call, params, samples) {
  const answers = [];
  if (peer.constructor.awaits) {
    for (const given of params) {
      const began = now();
      const answer = await call(given);
      samples.push(Number(now() - began));
      answers.push(answer);
    }
  } else {
    for (const given of params) {
      const began = now();
      const answer = call(given);
      samples.push(Number(now() - began));
      answers.push(answer);
    }
  }
  return answers;
}

async function fill(peer, count) {
  await peer.execute(ITEMS);
  const rows = items(count).map(({ id: _, ...row }) => Object.values(row));
  assert.equal(await peer.many(INSERT_ITEM, rows), count, "rows were not written");
}

async function expectCount(peer, count) {
  assert.deepEqual(await peer.query("SELECT count(*) AS n FROM t"), [{ n: count }], "rows are missing");
}

function oneRow(trial) {
  const count = trial.size(50_000, 500);
  return trial.opened(async (peer) => {
    await fill(peer, POINTS);
    const rows = items(POINTS);
    const keys = rows.map(({ id }) => [id]);
    const call = peer.one(SELECT_ITEM);
    assert.deepEqual(await ask(peer, call, keys, []), rows, "the rows that were written");
    const timing = new Timing();
    for (let at = 0; at < count; at += POINTS) {
      const part = keys.slice(0, Math.min(POINTS, count - at));
      const answers = await ask(peer, call, part, timing.samples);
      timing.pause();
      assert.deepEqual(answers, rows.slice(0, part.length), "the rows that were written");
      timing.resume();
    }
    return timing.end(count);
  });
}

function oneInsert(trial) {
  const rows = tRows(trial.size(50_000, 200)).map(Object.values);
  return trial.opened(async (peer) => {
    await peer.execute(T);
    const timing = new Timing();
    await ask(peer, peer.write(INSERT_T), rows, timing.samples);
    const figures = timing.end(rows.length);
    await expectCount(peer, rows.length);
    return figures;
  });
}

function insertAtOnce(trial, synchronous) {
  const rounds = trial.size(synchronous === "FULL" ? 200 : 500, 3);
  // Not timed: a round is short, and Node has compiled the code of both sides after a few hundred.
  const first = trial.size(200, 1);
  const rows = tRows(AT_ONCE).map(Object.values);
  const run = async (peer) => {
    await peer.execute(T);
    const write = peer.write(INSERT_T);
    for (let round = 0; round < first; round++) await Promise.all(rows.map(write));
    const timing = new Timing();
    for (let round = 0; round < rounds; round++) {
      const began = now();
      await Promise.all(rows.map(write));
      timing.samples.push(Number(now() - began));
    }
    const figures = timing.end(rounds * AT_ONCE);
    await expectCount(peer, (first + rounds) * AT_ONCE);
    return figures;
  };
  return trial.opened(run, synchronous);
}

function many(trial) {
  const rounds = trial.size(500, 3);
  const rows = tRows(AT_ONCE).map(Object.values);
  return trial.opened(async (peer) => {
    await peer.execute(T);
    const timing = new Timing();
    await ask(peer, () => peer.many(INSERT_T, rows), Array.from({ length: rounds }), timing.samples);
    const figures = timing.end(rounds * AT_ONCE);
    await expectCount(peer, rounds * AT_ONCE);
    return figures;
  });
}

function batch(trial) {
  const rounds = trial.size(500, 3);
  const statements = tRows(AT_ONCE).map((row) => [INSERT_T, Object.values(row)]);
  return trial.opened(async (peer) => {
    await peer.execute(T);
    const timing = new Timing();
    for (let round = 0; round < rounds; round++) {
      const [results] = await ask(peer, () => peer.batch(statements), [undefined], timing.samples);
      assert.ok(results.length === AT_ONCE && results.every(({ changes }) => changes === 1));
    }
    const figures = timing.end(rounds * AT_ONCE);
    await expectCount(peer, rounds * AT_ONCE);
    return figures;
  });
}

function allRows(trial, count, queries, isJson) {
  const rounds = trial.size(queries, 3);
  const sql = "SELECT id, name, value FROM items";
  return trial.opened(async (peer) => {
    await fill(peer, count);
    const expected = items(count).map(({ id, name, value }) => ({ id, name, value }));
    const call = isJson ? () => peer.json(sql) : () => peer.query(sql);
    const [first] = await ask(peer, call, [undefined], []);
    assert.deepEqual(isJson ? JSON.parse(first) : first, expected, "the rows that were written");
    const timing = new Timing();
    for (let round = 0; round < rounds; round++) {
      const [rows] = await ask(peer, call, [undefined], timing.samples);
      assert.equal(rows.length, first.length);
    }
    return timing.end(rounds);
  });
}

function transaction(trial) {
  const rounds = trial.size(10_000, 20);
  return trial.opened(async (peer) => {
    await peer.execute(T);
    const write = peer.constructor.awaits ? undefined : peer.write(INSERT_T);
    const timing = new Timing();
    const body = peer.constructor.awaits
      ? async (execute) => {
          await execute(INSERT_T, ["first", 1]);
          await execute(INSERT_T, ["second", 2]);
        }
      : () => {
          write(["first", 1]);
          write(["second", 2]);
        };
    await ask(peer, peer.transaction(body), Array.from({ length: rounds }), timing.samples);
    const figures = timing.end(rounds);
    await expectCount(peer, rounds * 2);
    return figures;
  });
}

/** How late a timer of 1 ms comes, until `done`. */
export async function delays(samples, done) {
  let is = false;
  const end = () => (is = true);
  done.then(end, end);
  while (!is) {
    const began = now();
    await new Promise((resolve) => setTimeout(resolve, 1));
    samples.push(Math.max(Number(now() - began) - 1_000_000, 0));
  }
}

function hold(trial) {
  const rounds = trial.size(10, 1);
  const steps = trial.size(6_000_000, 100_000);
  const sql = `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT ${steps}) SELECT count(*) AS n FROM c`;
  return trial.opened(async (peer) => {
    const timing = new Timing();
    for (let round = 0; round < rounds; round++) {
      const asked = new Promise((resolve) => setTimeout(() => resolve(peer.query(sql)), 2));
      await delays(timing.samples, asked);
      assert.deepEqual(await asked, [{ n: steps }]);
    }
    return timing.end(rounds);
  });
}

function turns(trial, tasks) {
  const time = trial.size(3_000, 100);
  return trial.opened(async (peer) => {
    await fill(peer, POINTS);
    const call = peer.one(SELECT_ITEM);
    let goesOn = true;
    let calls = 0;
    const task = async () => {
      while (goesOn) {
        await call([(calls++ % POINTS) + 1]);
      }
    };
    const timing = new Timing();
    const ends = new Promise((resolve) => setTimeout(resolve, time)).then(() => (goesOn = false));
    const all = Promise.all(Array.from({ length: tasks }, task));
    await Promise.all([delays(timing.samples, ends), all]);
    return timing.end(calls);
  });
}

const lane = { awaits: true, tag: "focused", group: "node" };
export const LANES = [
  { ...lane, name: "one_row", about: "one row by its key, as an object", ops_unit: "queries", run: oneRow },
  { ...lane, name: "one_insert", about: "one insert after another", ops_unit: "inserts", run: oneInsert },
  ...[["", "NORMAL"], ["_full", "FULL"]].map(([form, synchronous]) => ({
    ...lane, name: `insert_at_once_100${form}`, about: `100 inserts at once, synchronous=${synchronous}`, ops_unit: "inserts",
    run: (trial) => insertAtOnce(trial, synchronous),
  })),
  { ...lane, name: "rows_in_100", about: "100 rows of parameters in one call", ops_unit: "rows", run: many },
  { ...lane, name: "batch_of_100", about: "100 statements with their parameters in one call", ops_unit: "statements",
    run: batch },
  ...[["10", 10, 10_000], ["1k", 1_000, 500], ["10k", 10_000, 50]].map(([word, count, queries]) => ({
    ...lane, name: `objects_${word}`, about: `${count} rows of 3 columns as objects`, ops_unit: "queries",
    run: (trial) => allRows(trial, count, queries, false),
  })),
  { ...lane, name: "json_of_10k", about: "10,000 rows of 3 columns as JSON in UTF-8", ops_unit: "queries",
    run: (trial) => allRows(trial, 10_000, 50, true) },
  { ...lane, name: "transaction_of_2", about: "a transaction of two inserts, each step awaited", ops_unit: "transactions",
    run: transaction },
  { ...lane, name: "loop_hold", about: "how late a timer of 1 ms is beside a long statement", ops_unit: "statements", run: hold },
];
/** Tasks that call a synchronous library in a loop never let a timer run. */
export const AWAITED = [100, 1_000].map((tasks) => ({
  ...lane, name: `loop_turns_${tasks}`, about: `how late a timer of 1 ms is beside ${tasks} tasks that await in a loop`,
  ops_unit: "queries", run: (trial) => turns(trial, tasks), only: true,
}));
