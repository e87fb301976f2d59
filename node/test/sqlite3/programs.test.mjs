// Random programs do what they do in node-sqlite3, where that is installed (`npm rebuild sqlite3` in node/suites/sqlite3), with what
// programs do wrong in them: wrong parameters, statements that do not compile, calls after the end, a close that is too early.
// FLATWATER_SEED=<number> runs those of a seed again.
//
// Not compared: a callback that throws, behind which node-sqlite3 hangs; what `each` has called back with before it fails; the order of
// calls that are made side by side; a RETURNING of which only the first row is taken, behind which node-sqlite3 tells older counts;
// a DROP of what is not there, which fails here when it runs, and not when it is compiled.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import ours from "../../dist/sqlite3.mjs";
import { randomOf } from "../random.mjs";

const PROGRAMS = Number(process.env.FLATWATER_PROGRAMS ?? 150);
const seed = Number(process.env.FLATWATER_SEED ?? Date.now() % 2 ** 31);

function peer() {
  try {
    return createRequire(new URL("../../suites/sqlite3/", import.meta.url))("sqlite3");
  } catch {
    return undefined;
  }
}

const SCHEMA = `CREATE TABLE t (id INTEGER PRIMARY KEY, a, b TEXT UNIQUE); CREATE TABLE u (x NOT NULL CHECK (x <> 13));
  CREATE TRIGGER told AFTER UPDATE ON t BEGIN INSERT INTO u VALUES (new.id); END; INSERT INTO t VALUES (1, 1, 'a')`;
const SLOTS = 3;

/** The statements of programs, each with a function that makes its parameters. */
function sqlOf({ below, pick }) {
  const value = () =>
    pick([null, below(9), 2 ** 33 + below(3), below(99) / 8, "a", "é", true, new Date(below(9)), /x/]);
  const odd = () => pick([undefined, NaN, -0, {}, Buffer.of(below(256)), 10n, value(), value(), value()]);
  const id = () => 1 + below(9);
  return () =>
    pick([
      ["INSERT INTO t (a, b) VALUES (?, ?)", () => [odd(), pick(["a", "b", "c", null])]],
      ["INSERT INTO t VALUES ($id, :a, @b)", () => ({ $id: id(), ":a": value(), "@b": pick(["x", "y"]) })],
      ["INSERT INTO t (id) VALUES (?)", () => [id()]],
      ["INSERT OR REPLACE INTO t (id, a) VALUES (?2, ?1)", () => [value(), id()]],
      ["INSERT OR FAIL INTO t (b) VALUES ('p'), (?), ('q')", () => [pick(["a", "b", "r"])]],
      ["INSERT INTO t (a) VALUES (?), (?) RETURNING id, a", () => [value(), value()]],
      ["UPDATE t SET a = ? WHERE id > ?", () => [value(), id()]],
      ["DELETE FROM t WHERE id = ?", () => [id()]],
      ["DELETE FROM u", () => []],
      ["INSERT INTO u VALUES (?)", () => [pick([13, null, 1, 2])]],
      ["SELECT id, a, b, typeof(a) AS kind FROM t ORDER BY id", () => []],
      ["SELECT id FROM t WHERE id >= ? ORDER BY id", () => [id()]],
      ["SELECT ? AS a, ? AS b, typeof(?2) AS c", () => [odd(), odd()]],
      ["SELECT last_insert_rowid() AS id, changes() AS n, total_changes() AS all_of_them", () => []],
      ["SELECT 1 AS a, 2 AS a", () => []],
      [pick(["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "RELEASE s", "ROLLBACK TO s"]), () => []],
      [
        pick([
          "CREATE TABLE v (x)",
          "DROP TABLE IF EXISTS v",
          "CREATE TEMP TABLE w (x)",
          "SELECT * FROM v",
          "PRAGMA user_version",
        ]),
        () => [],
      ],
      [
        pick([
          "",
          "-- nothing",
          "SELEC 1",
          "SELECT * FROM nowhere",
          "SELECT 1 AS a; SELECT 2",
          "INSERT INTO t (id) VALUES (",
        ]),
        () => [],
      ],
      [
        pick(["INSERT INTO t (a) VALUES (?)", "SELECT ? AS a"]),
        () => pick([[1, 2], { $a: 1 }, { a: 1 }, { 1: 5 }, { 2: 5 }, [], 7]),
      ],
    ]);
}

const isWhole = (text) => !text.endsWith("(");
const takesAll = (text) => (text.includes("RETURNING") ? "all" : undefined);

/** Makes a program: rounds of calls, each made in one go. */
function programOf(random) {
  const { below, pick, list } = random;
  const sql = sqlOf(random);
  const run = () => {
    const [text, params] = sql();
    return ["db", takesAll(text) ?? pick(["run", "run", "get", "all", "each", "map"]), text, params()];
  };
  const exec = () => [
    "db",
    "exec",
    list(4, () => sql()[0])
      .filter(isWhole)
      .join("; "),
    undefined,
  ];
  const ways = ["run", "get", "get", "all", "each", "reset", "bind"];
  const used = (at, params, text = "") =>
    list(6, () => ["slot", takesAll(text) ?? pick(ways), at, below(3) === 0 ? params() : undefined]);
  const prepared = () => {
    const at = below(SLOTS);
    const [text, params] = sql();
    const ends = list(3, () => ["slot", "finalize", at, undefined]);
    return [["prepare", text, at, below(2) === 0 ? params() : undefined], ...used(at, params, text), ...ends];
  };
  const rounds = list(12, () =>
    pick([
      () => list(5, run),
      () => list(5, run),
      () => [exec()],
      () => [run(), exec(), ["db", "wait", undefined, undefined], run()],
      () => used(below(SLOTS), sql()[1], "RETURNING"),
      prepared,
      () => [["nested", list(3, run), run(), run()]],
    ])(),
  );
  return [...rounds, [["db", "close", undefined, undefined]], [["end"]]];
}

const shown = (value) => (value instanceof Error ? [value.message, value.errno, value.code] : value);

/** Notes what callbacks are called with, and waits for those that are always called. */
class Log {
  lines = [];
  /** Of calls of `each`, whose callbacks node-sqlite3 calls a little later than others. */
  eachs = [];
  #number = 0;
  #awaited = new Set();
  #idle = () => {};

  /** A callback. `of`: what it belongs to, if it is to be waited for. */
  told(of = undefined, isEach = false) {
    const [at, lines] = [this.#number++, isEach ? this.eachs : this.lines];
    const key = of === undefined ? undefined : { of };
    if (key !== undefined) this.#awaited.add(key);
    const done = () => this.#drop((one) => one === key);
    return function (...given) {
      const counts = !given[0] && this?.constructor?.name === "Statement" ? [this.lastID, this.changes] : null;
      lines.push([at, given.map(shown), counts]);
      done();
    };
  }

  /** Waits no more for what belongs to a statement that does not compile, whose callbacks are never called. */
  isLost(of) {
    this.#drop((one) => one.of === of);
  }

  #drop(which) {
    for (const one of this.#awaited) if (which(one)) this.#awaited.delete(one);
    if (this.#awaited.size === 0) this.#idle();
  }

  async idle() {
    if (this.#awaited.size > 0) await new Promise((resolve) => (this.#idle = resolve));
  }
}

/** Runs a program, and resolves with what its callbacks were called with, in their order. */
async function ran(sqlite3, program) {
  const db = new sqlite3.Database(":memory:");
  await new Promise((resolve) => db.exec(SCHEMA, resolve));
  db.serialize();
  const [log, slots] = [new Log(), []];
  const argsOf = (params) => (params === undefined ? [] : [params]);
  const prepare = (text, at, params) => {
    // One that is lost would keep the database open.
    slots[at]?.of.finalize(log.told());
    const slot = { of: db.prepare(text, ...argsOf(params)), isLost: false };
    slot.of.on("error", (error) => {
      log.lines.push(["event", shown(error)]);
      slot.isLost ||= error.errno !== sqlite3.RANGE;
      if (slot.isLost) log.isLost(slot);
    });
    slots[at] = slot;
  };
  const onSlot = (name, slot, params) => {
    if (slot === undefined) return;
    const last = name === "each" && !slot.isFinal && !slot.isLost ? slot : undefined;
    slot.isFinal ||= name === "finalize";
    const takes = name !== "finalize" && name !== "reset" ? argsOf(params) : [];
    slot.of[name](...takes, ...(name === "each" ? [log.told(undefined, true)] : []), log.told(last, name === "each"));
  };
  const step = ([what, name, third, params]) => {
    switch (what) {
      case "db":
        return db[name](
          ...argsOf(third),
          ...argsOf(params),
          ...(name === "each" ? [log.told(undefined, true)] : []),
          log.told(db, name === "each"),
        );
      case "slot":
        return onSlot(name, slots[third], params);
      case "prepare":
        return prepare(name, third, params);
      case "nested":
        return db.serialize(() => {
          name.forEach(step);
          db.serialize(() => step(third));
          step(params);
        });
      default:
        for (const slot of slots) onSlot("finalize", slot, undefined);
        return void [db.close(log.told(db)), db.close(log.told(db)), db.run("SELECT 1", log.told(db))];
    }
  };
  for (const round of program) {
    round.forEach(step);
    // Behind a close that fails node-sqlite3 lets calls wait.
    if (round[0]?.[0] !== "end" && round[0]?.[1] !== "close") db.wait(log.told(db));
    await log.idle();
  }
  return [log.lines, log.eachs.sort(([a], [b]) => a - b)];
}

test("random programs do what they do in node-sqlite3", async (t) => {
  const theirs = peer();
  if (theirs === undefined) return t.skip("node-sqlite3 is not installed");
  for (let at = 0; at < PROGRAMS; at++) {
    const program = programOf(randomOf(seed + at));
    const [expected, actual] = [await ran(theirs, program), await ran(ours, program)];
    assert.deepEqual(actual, expected, `FLATWATER_SEED=${seed + at} FLATWATER_PROGRAMS=1`);
  }
});
