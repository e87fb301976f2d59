// Random programs of calls do what they do in better-sqlite3. FLATWATER_SEED=<number> runs those of a seed again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { here, there, Undone } from "./programs/sides.mjs";
import { randomOf } from "./random.mjs";
import { betterSqlite3, database } from "./support.mjs";

const PROGRAMS = 1000;
const seed = Number(process.env.FLATWATER_SEED ?? Date.now() % 2 ** 31);

const SCHEMA = `DROP TABLE IF EXISTS log; DROP TABLE IF EXISTS u; DROP TABLE IF EXISTS t;
  CREATE TABLE t (id INTEGER PRIMARY KEY, a, b TEXT UNIQUE, c REAL CHECK (c IS NULL OR c < 1000));
  CREATE TABLE u (t INTEGER REFERENCES t ON DELETE CASCADE, x NOT NULL);
  CREATE TABLE log (what);
  CREATE TRIGGER told AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (old.id || ' ' || new.id); END`;

const TEXTS = ["", "a", "b", "ä", "\u{1f600}", "x".repeat(300), "0", "12", "1e3", "it's", "\0z"];

/** Makes the steps of a program: data, so that it can be shown. */
function programOf({ below, pick, list }) {
  const value = () => {
    const blob = Uint8Array.from(list(20, () => below(256)));
    const number = pick([below(10), -below(5), below(1000) / 8, 2 ** 52 + below(9), -0.5, 1e300]);
    return pick([null, number, number, below(20), pick(TEXTS), pick(TEXTS), blob]);
  };
  const id = () => 1 + below(12);
  const write = () =>
    pick([
      () => ["INSERT INTO t (a, b, c) VALUES (?, ?, ?)", [value(), pick(TEXTS), value()]],
      () => ["INSERT INTO t VALUES (:id, :a, :b, NULL)", { id: id(), a: value(), b: pick(TEXTS) }],
      () => ["INSERT OR IGNORE INTO t (b) VALUES (?), (?)", [pick(TEXTS), pick(TEXTS)]],
      () => ["REPLACE INTO t (id, a, b) VALUES (?, ?, ?)", [id(), value(), pick(TEXTS)]],
      () => ["INSERT INTO t (b, a) VALUES (?, ?) ON CONFLICT (b) DO UPDATE SET a = excluded.a", [pick(TEXTS), value()]],
      () => ["UPDATE t SET a = ?, c = c + 1 WHERE id > ?", [value(), id()]],
      () => ["UPDATE t SET id = id + 1 WHERE id = ?", [id()]],
      () => ["DELETE FROM t WHERE id = ?", [id()]],
      () => ["DELETE FROM t WHERE typeof(a) = ?", [pick(["text", "integer", "real", "blob", "null"])]],
      () => ["INSERT INTO u VALUES (?, ?)", [id(), value()]],
      () => ["INSERT INTO nowhere VALUES (?)", [1]],
      () => ["INSERT INTO t (a) VALUES (?", [1]],
    ])();
  const returning = () => {
    const [sql, params] = write();
    return [`${sql} RETURNING *`, params];
  };
  const read = () =>
    pick([
      () => ["SELECT * FROM t ORDER BY id", []],
      () => ["SELECT id, a, typeof(a) AS kind, hex(b) AS b FROM t WHERE id >= :id ORDER BY id", { id: id() }],
      () => ["SELECT count(*) AS n, sum(c) AS c, max(b) AS b, group_concat(a, ',' ORDER BY id) AS a FROM t", []],
      () => ["SELECT t.id, u.x FROM t LEFT JOIN u ON u.t = t.id ORDER BY t.id, u.rowid", []],
      () => ["SELECT what FROM log ORDER BY rowid", []],
      () => ["SELECT ? AS a, ? AS b, ? AS c", [value(), value(), value()]],
      () => ["SELECT abs(?) AS a", [pick([-5, 2.5, "x", null])]],
      () => ["SELECT x FROM nowhere", []],
      () => [
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT ?) SELECT x, x / 2.0 AS y FROM c",
        [below(900)],
      ],
    ])();
  const twice = () => ["SELECT t.*, u.*, id FROM t LEFT JOIN u ON u.t = t.id ORDER BY t.id, u.rowid", []];
  const SIMPLE = [
    "run",
    "run",
    "run",
    "all",
    "all",
    "get",
    "pluck",
    "raw",
    "iterate",
    "returning",
    "any",
    "bigint",
    "merged",
  ];
  const SEVERAL = ["many", "many_returning", "batch", "script", "tx", "begun"];
  const step = (depth, kinds = [...SIMPLE, ...SEVERAL, depth > 0 ? "savepoint" : "own"]) => {
    const kind = pick(kinds);
    switch (kind) {
      case "merged":
        return { kind, of: twice() };
      case "any":
        return { kind, of: pick([write, returning, read])() };
      case "many_returning":
        return {
          kind,
          of: ["INSERT INTO t (a, b) VALUES (?, ?) RETURNING id, b", list(8, () => [value(), pick(TEXTS)])],
        };
      case "savepoint":
        return { kind, ends: pick(["release", "rollbackTo"]), steps: list(4, () => step(depth + 1, SIMPLE)) };
      case "own":
        return { kind, ends: pick(["COMMIT", "ROLLBACK"]), steps: list(6, () => step(depth + 1, SIMPLE)) };
      case "begun":
        return depth > 2
          ? { kind: "all", of: read() }
          : { kind, ends: pick(["commit", "rollback"]), steps: list(6, () => step(depth + 1)) };
      case "run":
        return { kind, of: write() };
      case "returning":
        return { kind: "all", of: returning() };
      case "many":
        return { kind, of: ["INSERT INTO t (a, b) VALUES (?, ?)", list(8, () => [value(), pick(TEXTS)])] };
      case "batch":
        return { kind, of: list(5, () => pick([write, returning])()) };
      case "script":
        return {
          kind,
          of: list(4, () =>
            pick(["DELETE FROM log", "INSERT INTO t (a) VALUES (1)", "INSERT INTO u VALUES (1, NULL)"]),
          ),
        };
      case "tx":
        return depth > 2
          ? { kind: "all", of: read() }
          : { kind, fails: below(3) === 0, steps: list(6, () => step(depth + 1)) };
      default:
        return { kind, of: read() };
    }
  };
  return Array.from({ length: 4 + below(12) }, () => step(0));
}

/** What two outcomes have in common: bytes are arrays of numbers, and an error is its code. */
function plain(value) {
  if (value instanceof Uint8Array) return { bytes: [...value] };
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, value]) => [name, plain(value)]));
}
const failure = (error) => ({ failed: error instanceof Undone ? "undone" : error.code });

const Peer = betterSqlite3();

test(
  "random programs do what they do in better-sqlite3",
  { skip: Peer === undefined && "it needs the better-sqlite3 of lab/peers/node, for this Node" },
  async (t) => {
    const db = await database(t);
    const peer = new Peer(":memory:");
    peer.pragma("foreign_keys = ON");
    t.after(() => peer.close());
    for (let at = 0; at < PROGRAMS; at++) {
      const program = programOf(randomOf(seed + at));
      program.push(
        { kind: "all", of: ["SELECT * FROM t ORDER BY id", []] },
        { kind: "all", of: ["SELECT rowid, * FROM u", []] },
      );
      await db.executeScript(SCHEMA);
      peer.exec(SCHEMA);
      let [ours, theirs] = [[], []];
      const record = async (call) => ours.push(plain((await call().catch(failure)) ?? null));
      const note = (call) => {
        let result;
        try {
          result = call() ?? null;
        } catch (error) {
          result = failure(error);
        }
        theirs.push(plain(result));
      };
      for (const step of program) {
        await record(() => here(db, step, record));
        note(() => there(peer, step, note));
        for (const [at, outcome] of ours.entries()) {
          // There it is that of an earlier statement.
          if (outcome?.lastInsertRowid === null && theirs[at] !== null) theirs[at].lastInsertRowid = null;
        }
        const shown = `FLATWATER_SEED=${seed + at}, ${JSON.stringify(step)}`;
        assert.deepEqual(ours, theirs, shown);
      }
    }
  },
);
