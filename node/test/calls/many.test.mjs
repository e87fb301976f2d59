// Rows of parameters: they are stored as they are, whichever way each of them is read.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "../../dist/index.mjs";
import { database } from "../support.mjs";

async function filled(t, rows) {
  const db = await database(t, { integers: "auto" });
  await db.execute("CREATE TABLE t (a, b)");
  await db.executeMany("INSERT INTO t VALUES (?, ?)", rows);
  return db;
}

const stored = (db) => db.query("SELECT a, b FROM t ORDER BY rowid", [], { rows: "array" });

test("rows of plain values and of others are stored in their order", async (t) => {
  const long = "x".repeat(20_000);
  const rows = [
    [1, "ä"],
    [null, "\u{1f600}"],
    [-0, ""],
    [true, 2 ** 60],
    ["", "a\0b"],
    [1n, "a bigint"],
    [2, "after it"],
    [new Uint8Array([1, 2]), "bytes"],
    [long, "a long text"],
    [`${long}\u{1f600}`, "another"],
    [false, -1.5],
  ];
  const expected = rows.map((row) =>
    row.map((value) => (typeof value === "boolean" || value === 1n ? Number(value) : value)),
  );
  // So many that they come in several parts, and in several slices.
  const times = 1_500;
  const db = await filled(t, Array.from({ length: times }, () => rows).flat());
  const all = await stored(db);
  assert.equal(all.length, times * rows.length);
  for (let at = 0; at < all.length; at += rows.length) {
    assert.deepStrictEqual(all.slice(at, at + rows.length), expected);
  }
});

test("the first row that is refused is named, of whichever kind those before it are", async (t) => {
  const db = await filled(t, []);
  const insert = "INSERT INTO t VALUES (?, ?)";
  for (const before of [[], Array(700).fill([1, "plain"]), [...Array(9).fill([1, 2]), [1n, 2n], [1, "x"]]]) {
    const refused = [
      [["\ud83d", "\ude00"], "parameter 1: half of a surrogate pair"],
      [[1, NaN], "parameter 2: NaN"],
      [[undefined, 1], "parameter 1: undefined"],
      [[, 1], "parameter 1: undefined"],
      [[1, Symbol("s")], "parameter 2: a symbol"],
      [1, "parameters must be an array"],
    ];
    for (const [row, message] of refused) {
      await assert.rejects(db.executeMany(insert, [...before, row, [1, 1]]), {
        kind: "misuse",
        message: new RegExp(`^row ${before.length}: ${message}`),
      });
    }
    await assert.rejects(db.executeMany(insert, [...before, [1]]), { kind: "misuse" });
  }
  assert.deepEqual(await stored(db), []);
});

test("a row that is wider than others are read at once is one row", async (t) => {
  const db = await filled(t, []);
  for (const width of [3, 4_095, 4_096, 30_000]) {
    const row = Array.from({ length: width }, (_, at) => at);
    const insert = `INSERT INTO t (a) SELECT column1 FROM (VALUES ${row.map(() => "(?)").join()})`;
    assert.equal(await db.executeMany(insert, [row, row]), 2 * width);
    assert.equal(await db.queryValue("SELECT sum(a) FROM t"), width * (width - 1));
    await db.execute("DELETE FROM t");
  }
});

test("code of the program that makes calls while its rows are read disturbs none", async (t) => {
  const db = await filled(t, []);
  await db.execute("CREATE TABLE inner_ (x)");
  const calls = [];
  const row = (at) =>
    Object.defineProperty([at, `row ${at}`], 1, {
      get() {
        calls.push(db.executeMany("INSERT INTO inner_ VALUES (?)", [[at], [`inner ${at}`]]));
        calls.push(db.queryOne("SELECT 'text' AS a, 7 AS b"));
        return `row ${at}`;
      },
    });
  const rows = Array.from({ length: 50 }, (_, at) => row(at));
  assert.equal(await db.executeMany("INSERT INTO t VALUES (?, ?)", rows), 50);
  for (const [at, answer] of (await Promise.all(calls)).entries()) {
    assert.deepEqual(answer, at % 2 === 0 ? 2 : { a: "text", b: 7 });
  }
  assert.deepEqual(
    await stored(db),
    rows.map((_, at) => [at, `row ${at}`]),
  );
  const inner = await db.queryValues("SELECT x FROM inner_ ORDER BY rowid");
  assert.deepEqual(
    inner,
    rows.flatMap((_, at) => [at, `inner ${at}`]),
  );
});

test("an exception of the program while its rows are read is that of the call, and the next call is read as any", async (t) => {
  const db = await filled(t, []);
  const fails = Object.defineProperty([1, 2], 0, {
    get() {
      throw new RangeError("from the program");
    },
  });
  const insert = "INSERT INTO t VALUES (?, ?)";
  await assert.rejects(db.executeMany(insert, [["a", "b"], fails]), RangeError);
  assert.equal(await db.executeMany(insert, [["a", "b"]]), 1);
  assert.deepEqual(await stored(db), [["a", "b"]]);
});

test("what is no statement of a batch is refused by its number, and nothing is stored", async (t) => {
  const db = await filled(t, []);
  const plain = ["INSERT INTO t VALUES (?, ?)", [1, "plain"]];
  const other = ["INSERT INTO t VALUES (?, ?)", [1n, "other"]];
  for (const before of [[], [plain], [plain, plain], [other], [plain, other], Array(5_000).fill(plain)]) {
    // The last is a place without a statement.
    for (const missing of [
      [undefined],
      [null],
      [[]],
      [[undefined, [2, 2]]],
      [[, [2, 2]]],
      [5],
      [{}],
      [[null]],
      Array(1),
    ]) {
      for (const after of [[], [plain], [other]]) {
        await assert.rejects(db.batch([...before].concat(missing, after)), {
          kind: "misuse",
          message: `statement ${before.length} must be SQL, or an array of SQL and parameters`,
        });
      }
    }
  }
  assert.deepEqual(await stored(db), []);
  await assert.rejects(db.liveGroup(["SELECT 1", , "SELECT 2"]).next(), { kind: "misuse", message: /^SQL must be/ });
  assert.throws(() => sql("SELECT 1"), { kind: "misuse", message: /tag of a template/ });
});

test("statements of all forms run in their order, each with its own values", async (t) => {
  const db = await filled(t, []);
  const long = `INSERT INTO t VALUES (?, '${"ä".repeat(20_000)}')`;
  const some = (at) => [
    ["INSERT INTO t VALUES (?, ?)", [at, "first"]],
    ["INSERT INTO t VALUES (?, ?)", ["\u{1f600}", at]],
    ["INSERT INTO t VALUES ('ä', '\u{1f600}')"],
    "INSERT INTO t VALUES (1, NULL)",
    "INSERT INTO t VALUES (1, NULL)",
    ["INSERT INTO t VALUES (:a, :b)", { a: at, b: "named" }],
    sql`INSERT INTO t VALUES (${at}, ${"template"})`,
    [long, [at]],
    ["INSERT INTO t VALUES (?, ?)", [BigInt(at), new Uint8Array([1])]],
    ["INSERT INTO t VALUES (?, ?)", [at, "last"]],
  ];
  const expected = (at) => [
    [at, "first"],
    ["\u{1f600}", at],
    ["ä", "\u{1f600}"],
    [1, null],
    [1, null],
    [at, "named"],
    [at, "template"],
    [at, "ä".repeat(20_000)],
    [at, new Uint8Array([1])],
    [at, "last"],
  ];
  const times = Array.from({ length: 60 }, (_, at) => at);
  const results = await db.batch(times.flatMap(some));
  assert.deepEqual(new Set(results.map(({ changes }) => changes)), new Set([1]));
  assert.deepStrictEqual(await stored(db), times.flatMap(expected));
  // Those before the first that is not plain, and those after the last.
  await db.execute("DELETE FROM t");
  const many = Array.from({ length: 5_000 }, (_, at) => ["INSERT INTO t VALUES (?, ?)", [at, `text ${at}`]]);
  await db.batch([...many, ...some(7), ...many]);
  const rows = many.map(([, values]) => values);
  assert.deepStrictEqual(await stored(db), [...rows, ...expected(7), ...rows]);
});

test("the rows of all runs come in their order, as a query has them", async (t) => {
  const db = await database(t, { integers: "auto" });
  await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a, at DATETIME)");
  const insert = "INSERT INTO t (a, at) VALUES (?, '2026-11-30 12:00:00') RETURNING id, a, at";
  const first = await db.queryMany(insert, [["x"], [2n ** 60n]], {
    integers: "bigint",
    types: "standard",
    rows: "array",
  });
  const at = new Date("2026-11-30T12:00:00Z");
  assert.deepEqual(first, [
    [1n, "x", at],
    [2n, 2n ** 60n, at],
  ]);
  async function* values() {
    for (let a = 0; a < 3000; a++) {
      yield [a];
    }
  }
  class Made {
    get difference() {
      return this.id - this.a;
    }
  }
  const later = await db.queryMany(insert, values(), { as: Made });
  assert.deepEqual(
    later.map((row) => row.difference),
    Array(3000).fill(3),
  );
  await db.begin().then(async (tx) => {
    assert.deepEqual(await tx.queryMany("DELETE FROM t WHERE id = ? RETURNING a", [[1], [1]]), [{ a: "x" }]);
    await tx.commit();
  });
  assert.deepEqual(await db.queryMany(insert, []), []);
  const refused = { kind: "misuse", code: "FLATWATER_RETURNS_ROWS", message: /`queryMany`/ };
  await assert.rejects(db.executeMany(insert, [[1]]), refused);
  await assert.rejects(db.queryMany(insert, [[1]], { types: { none: "json" } }), { code: "FLATWATER_NO_SUCH_COLUMN" });
  await assert.rejects(db.queryMany(insert, [[1]], { arrays: true }), { code: "FLATWATER_INVALID_OPTION" });
  await assert.rejects(db.queryMany(insert, [[1]], { signal: AbortSignal.abort() }), { name: "AbortError" });
  // The statement that named a column that is not there has run.
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), 3002);
});
