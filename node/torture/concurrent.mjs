// Random calls at the same time, some of which are aborted, and whose arguments are changed when they were made, do what those of them
// that resolved do one after the other in better-sqlite3: in the order of the calls. A transaction has the place of its beginning.
//
//     node torture/concurrent.mjs [seconds] [seed]
//
// Each round has a seed of its own, which is printed if it fails, and is run alone by `node torture/concurrent.mjs 0 <seed>`.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { open } from "../dist/index.mjs";
import { betterSqlite3 } from "../test/support.mjs";

const Peer = betterSqlite3();
if (Peer === undefined) {
  console.log("skipped: better-sqlite3 is not installed for this version of Node (cd lab/peers/node && npm ci)");
  process.exit();
}
const seconds = Number(process.argv[2] ?? 60);
const first = Number(process.argv[3] ?? Date.now() % 2 ** 31);

/** Random numbers of a seed (mulberry32). */
function randomOf(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (count) => Math.floor(next() * count);
  return { below, pick: (all) => all[below(all.length)] };
}

const SCHEMA = "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER NOT NULL, b, UNIQUE (b))";
/** What they leave depends on their order. */
const WRITES = [
  ["INSERT INTO t (a, b) VALUES (?, ?)", (r, key) => [r.below(1000), key]],
  ["INSERT INTO t (a, b) VALUES (?, ?)", (r, key) => [r.below(1000), Uint8Array.of(key >> 16, key >> 8, key)]],
  ["INSERT INTO t (a, b) VALUES (?, ?)", (r) => [r.below(1000), r.below(5)]],
  ["UPDATE t SET a = (a * 31 + ?) % 100003", (r) => [r.below(1000)]],
  ["UPDATE t SET a = a + ? WHERE id % 3 = ?", (r) => [r.below(10), r.below(3)]],
  ["DELETE FROM t WHERE a % 7 = ?", (r) => [r.below(7)]],
  ["INSERT INTO t (a, b) SELECT count(*) + ?, NULL FROM t", (r) => [r.below(10)]],
];

/** Changes all that a call was given. */
function spoil(given) {
  for (const one of given) {
    if (Array.isArray(one)) spoil(one);
    else if (ArrayBuffer.isView(one)) one.fill(255);
  }
  given.fill("changed");
  given.length = 0;
}

async function round(seed, folder) {
  const r = randomOf(seed);
  const inMemory = r.below(3) === 0;
  const path = inMemory ? ":memory:" : join(folder, `${seed}.db`);
  const db = await open(path, { durability: r.pick(["normal", "full"]), tuning: { inline: r.below(2) === 0 } });
  const peer = new Peer(":memory:");
  await db.execute(SCHEMA);
  peer.exec(SCHEMA);
  let keys = 100;
  const values = (make) => make(r, keys++);

  /** Makes a call; returns what it does elsewhere, in its place, when it is known whether it was done. */
  const call = (on) => {
    const [text, make] = r.pick(WRITES);
    const controller = new AbortController();
    const options = r.below(3) === 0 ? { signal: controller.signal } : {};
    let steps, made;
    switch (r.pick(["execute", "returning", "many", "batch", "large", "iterable"])) {
      case "execute": {
        const row = values(make);
        steps = [[text, structuredClone(row)]];
        made = on.execute(text, row, options);
        spoil(row);
        break;
      }
      case "returning": {
        const row = values(make);
        steps = [[text, structuredClone(row)]];
        made = on.query(`${text} RETURNING id`, row, r.below(2) === 0 ? options : { ...options, as: class {} });
        spoil(row);
        break;
      }
      case "batch": {
        const many = r.pick([1, 3, 40]);
        const given = Array.from({ length: many }, () => {
          const [sql, of] = r.pick(WRITES);
          return [sql, values(of)];
        });
        steps = structuredClone(given);
        made = on.batch(given, options);
        spoil(given);
        break;
      }
      default: {
        const rows = Array.from({ length: r.pick([1, 5, 2_000]) }, () => values(WRITES[r.below(2)][1]));
        const insert = WRITES[0][0];
        steps = structuredClone(rows).map((row) => [insert, row]);
        const isIterable = r.below(3) === 0;
        made = on.executeMany(insert, isIterable ? yielded(rows) : rows, options);
        if (!isIterable) spoil(rows);
      }
    }
    let turns = r.below(12);
    const turn = () => (turns-- === 0 ? controller.abort() : setImmediate(turn));
    turn();
    return { steps, settled: settled(made) };
  };

  /** One object, again and again. */
  function* yielded(rows) {
    const one = [];
    for (const row of rows) {
      one.splice(0, one.length, ...row);
      yield one;
    }
  }

  const settled = (made) =>
    made.then(
      () => "done",
      (error) => {
        if (error.name === "AbortError") assert.equal(error.applied, "no");
        else assert.ok(["constraint", "cancelled", "misuse"].includes(error.kind), error);
        assert.notEqual(error.applied, "unknown");
        return error.kind ?? "aborted";
      },
    );

  const transaction = () => {
    const calls = [];
    const controller = new AbortController();
    const made = db.transaction(
      async (tx) => {
        for (let left = r.below(6); left > 0; left--) {
          const one = call(tx);
          calls.push(one);
          // What is not awaited is a part of it too.
          if (r.below(2) === 0) await one.settled;
        }
        if (r.below(5) === 0) throw Object.assign(new Error("rolled back"), { kind: "constraint" });
      },
      { signal: controller.signal },
    );
    if (r.below(6) === 0) setImmediate(() => controller.abort());
    return { calls, settled: settled(made) };
  };

  const all = [];
  for (let left = 2 + r.below(30); left > 0; left--) {
    all.push(r.below(5) === 0 ? transaction() : call(db));
    if (r.below(4) === 0) await new Promise((resolve) => setImmediate(resolve));
    if (r.below(8) === 0) await all[r.below(all.length)].settled;
  }

  const bound = (value) => (typeof value === "number" ? BigInt(value) : value);
  const repeat = async ({ steps, calls, settled }) => {
    if ((await settled) !== "done") return;
    if (calls !== undefined) {
      for (const one of calls) await repeat(one);
      return;
    }
    peer.transaction(() => steps.forEach(([sql, row]) => peer.prepare(sql).run(...row.map(bound))))();
  };
  for (const one of all) await repeat(one);
  const query = "SELECT id, a, b FROM t ORDER BY id";
  const ours = await db.query(query, [], { rows: "array" });
  const theirs = peer.prepare(query).raw().all();
  const plain = (rows) => rows.map((row) => row.map((value) => (ArrayBuffer.isView(value) ? `x${[...value]}` : value)));
  assert.deepEqual(plain(ours), plain(theirs));
  assert.equal(await db.queryValue("PRAGMA integrity_check"), "ok");
  await db.close();
  peer.close();
}

const folder = mkdtempSync(join(tmpdir(), "flatwater-torture-"));
const end = performance.now() + seconds * 1_000;
let rounds = 0;
do {
  const seed = seconds === 0 ? first : (first + rounds) % 2 ** 31;
  try {
    await round(seed, folder);
  } catch (error) {
    console.error(`round ${seed} failed: node torture/concurrent.mjs 0 ${seed}`);
    throw error;
  }
  rounds++;
} while (performance.now() < end);
rmSync(folder, { recursive: true, force: true });
console.log(`${rounds} rounds, from seed ${first}`);
