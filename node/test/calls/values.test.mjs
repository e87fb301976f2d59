// Every value that is bound comes back as it was stored, in every form of rows; every other is refused with its place.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FlatwaterError, open } from "../../dist/index.mjs";
import { database, numbers, run } from "../support.mjs";

const SAFE = 2n ** 53n;
const big = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const text = fc.oneof(
  fc.string({ unit: "binary", size: "medium" }),
  fc.string({ unit: "grapheme" }),
  fc.constantFrom("", "\0", "a\0b", "\ufeffa", "\ufffd", "\u{10ffff}", "ä".repeat(20_000)),
);
const blob = fc.uint8Array({ size: "medium" });
const number = fc.oneof(
  fc.double({ noNaN: true }),
  fc.maxSafeInteger(),
  fc.constantFrom(0, -0, 2 ** 53, 2 ** 53 - 1, -(2 ** 53), 2 ** 63, 1e300, Infinity, -Infinity, 5e-324),
);
const edge = fc.constantFrom(SAFE, SAFE + 1n, -SAFE, -SAFE - 1n, 2n ** 63n - 1n, -(2n ** 63n), 0n);
const value = fc.oneof(fc.constant(null), fc.boolean(), number, big, edge, text, blob);

const isBigAsBound = (given) =>
  typeof given === "bigint" || typeof given === "boolean" || (Number.isSafeInteger(given) && !Object.is(given, -0));

/** What a value is when it is read. */
function read(given, integers) {
  if (!isBigAsBound(given)) {
    return given;
  }
  const integer = BigInt(given);
  const isExact = integer >= -SAFE && integer <= SAFE;
  return integers === "bigint" || !isExact ? integer : Number(integer);
}

const isInexact = (given) => typeof given === "bigint" && (given < -SAFE || given > SAFE);

test("a value comes back as it was stored, for each way with integers and each form of rows", async (t) => {
  const db = await database(t);
  const one = async (given, integers, rows) => {
    const names = given.map((_, at) => `c${at}`);
    const sql = `SELECT ${names.map((name) => `:${name} AS ${name}`).join()}`;
    const params = rows === "array" ? given : Object.fromEntries(names.map((name, at) => [name, given[at]]));
    const row = db.queryOne(sql, params, { integers, rows });
    const inexact = given.findIndex(isInexact);
    if (integers === "number" && inexact >= 0) {
      return assert.rejects(row, { kind: "decode", message: new RegExp(`column "c${inexact}" is beyond 2\\^53`) });
    }
    const expected = given.map((value) => read(value, integers));
    assert.deepStrictEqual(rows === "array" ? await row : Object.values(await row), expected);
  };
  const ways = [fc.constantFrom("number", "auto", "bigint"), fc.constantFrom("array", "object")];
  await fc.assert(fc.asyncProperty(fc.array(value, { minLength: 1, maxLength: 12 }), ...ways, one), { numRuns: 400 });
});

test("values of all kinds in one column come back, on every road, as numbers of chunks as large as they are", async (t) => {
  const db = await database(t, { integers: "auto" });
  await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)");
  const roads = (given) => [
    async () => db.executeMany("INSERT INTO t (a, b) VALUES (?, ?)", given),
    async () => db.executeMany(`INSERT INTO t (a, b) VALUES (:a, :b)`, toObjects(given)),
    async () => db.batch(given.map((row) => ["INSERT INTO t (a, b) VALUES (?, ?)", row])),
    async () => Promise.all(given.map((row) => db.execute("INSERT INTO t (a, b) VALUES (?, ?)", row))),
  ];
  const one = async (some, repeated, road) => {
    const given = Array.from({ length: repeated }, () => some).flat();
    await db.execute("DELETE FROM t");
    await roads(given)[road]();
    const expected = given.map((row) => row.map((value) => read(value, "auto")));
    const select = "SELECT a, b FROM t ORDER BY id";
    assert.deepStrictEqual(await db.query(select, [], { rows: "array" }), expected);
    assert.deepStrictEqual(await db.query(select), toObjects(expected));
    const streamed = [];
    for await (const row of db.stream(select, [], { rows: "array" })) streamed.push(row);
    assert.deepStrictEqual(streamed, expected);
  };
  const rows = fc.array(fc.tuple(value, value), { minLength: 1, maxLength: 40 });
  await fc.assert(fc.asyncProperty(rows, fc.constantFrom(1, 3, 40), fc.nat(3), one), { numRuns: 30 });
});

const toObjects = (rows) => rows.map(([a, b]) => ({ a, b }));

test("a column has any name", async (t) => {
  const db = await database(t);
  const name = fc.oneof(
    fc.string({ unit: "binary" }).filter((name) => !name.includes("\0")),
    fc.constantFrom("__proto__", "constructor", "toString", "1", "-1", "a b", "`", '"', "\\", "\n", "\u2028", ""),
  );
  const one = async (names) => {
    const columns = names.map((name, at) => `${at} AS \`${name.replaceAll("`", "``")}\``);
    const [row] = await db.query(`SELECT ${columns.join()}`);
    assert.equal(Object.getPrototypeOf(row), Object.prototype);
    assert.deepEqual(new Set(Object.keys(row)), new Set(names));
    names.forEach((name, at) => assert.equal(Object.getOwnPropertyDescriptor(row, name).value, at));
  };
  const names = fc.uniqueArray(name, { minLength: 1, maxLength: 8 });
  await fc.assert(fc.asyncProperty(names, one), { numRuns: 200 });
  await assert.rejects(db.query("SELECT 1 AS a, 2 AS a"), { kind: "misuse", message: /two columns are named "a"/ });
  const twice = "SELECT 'x' AS a, 2 AS b, 'yz' AS a, 'w' AS c";
  assert.deepEqual(await db.query(twice, [], { rows: "array" }), [["x", 2, "yz", "w"]]);
  assert.deepEqual(await db.query(twice, [], { rows: "merged" }), [{ a: "yz", b: 2, c: "w" }]);
});

test("rows are the same in a program that forbids generated code", async () => {
  const program = `
    const db = await open(":memory:", { integers: "auto" });
    const values = "VALUES (1, 'ä', NULL, x'01ff'), (NULL, NULL, 2, x''), (9007199254740993, 'b', 'c', NULL)";
    const select = \`WITH t(a, b, c, __proto__) AS (\${values}) SELECT * FROM t\`;
    const rows = [...(await db.query(select)), ...(await db.query(select, [], { rows: "array" }))];
    const show = (_, value) => (typeof value === "bigint" ? value + "n" : value instanceof Uint8Array ? [...value] : value);
    console.log(JSON.stringify(rows.map((row) => Object.entries(row)), show));`;
  const generated = await run(program);
  const interpreted = await run(program, { flags: ["--disallow-code-generation-from-strings"] });
  assert.equal(generated.errors, "");
  assert.ok(generated.output.includes("9007199254740993n") && generated.output.includes("__proto__"));
  assert.equal(interpreted.output, generated.output);
});

test("bytes are those of the view, and a blob that is read has memory of its own", async (t) => {
  const db = await database(t);
  const bytes = Uint8Array.from({ length: 64 }, (_, at) => at);
  const views = [
    [bytes.subarray(3, 9), bytes.subarray(3, 9)],
    [Buffer.from(bytes).subarray(1, 5), bytes.subarray(1, 5)],
    [new DataView(bytes.buffer, 8, 4), bytes.subarray(8, 12)],
    [new Uint16Array(bytes.buffer, 4, 3), bytes.subarray(4, 10)],
    [new Float64Array(bytes.buffer, 8, 1), bytes.subarray(8, 16)],
    [bytes.buffer, bytes],
    [new ArrayBuffer(0), new Uint8Array()],
  ];
  for (const [given, expected] of views) {
    const read = await db.queryValue("SELECT ?", [given]);
    assert.deepStrictEqual(read, new Uint8Array(expected));
    assert.equal(read.buffer.byteLength, read.byteLength);
  }
  const many = await db.query(`${numbers(20_000)} SELECT x, zeroblob(x % 40) AS blob FROM c`);
  for (const { x, blob } of many) {
    assert.equal(blob.buffer.byteLength, x % 40);
  }
});

test("a Date is stored in UTC, in the form that SQLite's functions read and that sorts by time", async (t) => {
  const db = await database(t);
  const dates = fc.date({
    min: new Date("0000-01-01"),
    max: new Date("9999-12-31T23:59:59.999Z"),
    noInvalidDate: true,
  });
  const form = (date) => date.toISOString().replace("T", " ").replace(".000Z", "").replace("Z", "000");
  const one = async (a, b) => {
    const sql = "SELECT ?1, ?2, ?1 < ?2, CAST(round(unixepoch(?1, 'subsec') * 1000) AS INTEGER)";
    const [first, second, isBefore, ms] = await db.queryOne(sql, [a, b], { rows: "array" });
    assert.deepEqual([first, second, isBefore, ms], [form(a), form(b), Number(a < b), a.getTime()]);
  };
  await fc.assert(fc.asyncProperty(dates, dates, one), { numRuns: 100 });
  await fc.assert(
    fc.asyncProperty(dates, async (date) => {
      const second = new Date(Math.floor(date.getTime() / 1000) * 1000);
      await one(second, date);
      assert.equal(await db.queryValue("SELECT datetime(?1) = ?1", [second]), 1);
    }),
    { numRuns: 100 },
  );
});

test("pages by a time that SQLite wrote have each row once", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, at DEFAULT CURRENT_TIMESTAMP)");
  const written = [1, 10, 999].map((ms) => [new Date(Date.UTC(2024, 1, 29, 10, 0, 0, ms))]);
  await db.executeMany("INSERT INTO t (at) VALUES (?)", written);
  for (let added = 0; added < 4; added++) {
    await db.execute("INSERT INTO t DEFAULT VALUES");
  }
  const seen = [];
  let last = [new Date(0), 0];
  const sql = "SELECT at, id FROM t WHERE (at, id) > (?, ?) ORDER BY at, id LIMIT 1";
  for (let row; (row = await db.queryOptional(sql, last));) {
    last = [new Date(`${row.at}Z`), row.id];
    assert.ok((await db.queryValues("SELECT id FROM t WHERE at = ?", [last[0]])).includes(row.id));
    seen.push(row.id);
  }
  assert.deepEqual(seen, [1, 2, 3, 4, 5, 6, 7]);
});

test("what cannot be stored is refused with its place, before anything runs", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a, b)");
  const half = "half of a surrogate pair cannot be stored";
  const refused = [
    [undefined, "undefined cannot be stored"],
    [NaN, "NaN cannot be stored"],
    [Symbol("secret"), "a symbol cannot be stored"],
    [() => "secret", "a function cannot be stored"],
    [["secret"], "an array cannot be stored"],
    [{ secret: 1 }, "an object cannot be stored"],
    [new Map(), "an object cannot be stored"],
    [Promise.resolve(1), "a promise cannot be stored -- await it"],
    [new Date(NaN), "the Date is invalid"],
    [new Date(8.64e15), "a Date beyond the years 0 to 9999 cannot be stored"],
    [new Date("-000001-12-31T23:59:59Z"), "a Date beyond the years 0 to 9999 cannot be stored"],
    [2n ** 63n, "a bigint beyond 64 bits cannot be stored"],
    [-(2n ** 63n) - 1n, "a bigint beyond 64 bits cannot be stored"],
    ["secret\ud83d", half],
    ["\ude00", half],
    [`${"ä".repeat(1000)}\ud83d.`, half],
  ];
  for (const [given, what] of refused) {
    const [list, named] = ["INSERT INTO t VALUES (?, ?)", "INSERT INTO t VALUES (:a, :b)"];
    const calls = [
      [() => db.execute(list, [1, given]), "parameter 2: "],
      [() => db.execute(named, { a: 1, b: given }), 'parameter "b": '],
      [() => db.query(`${list} RETURNING a`, [given, 1]), "parameter 1: "],
      [() => db.queryValue("SELECT ?", [given]), "parameter 1: "],
      [
        () =>
          db.executeMany(list, [
            [1, 2],
            [3, given],
          ]),
        "row 1: parameter 2: ",
      ],
      [() => db.executeMany(named, [{ a: given, b: 1 }]), 'row 0: parameter "a": '],
      [
        () =>
          db.batch([
            [list, [1, 2]],
            [list, [given, 2]],
          ]),
        "statement 1: parameter 1: ",
      ],
      [() => db.stream("SELECT ?", [given]).next(), "parameter 1: "],
    ];
    for (const [call, place] of calls) {
      await assert.rejects(call(), (error) => {
        assert.ok(error instanceof FlatwaterError && error.kind === "misuse");
        assert.ok(error.message.startsWith(place + what), error.message);
        assert.ok([list, named, `${list} RETURNING a`, "SELECT ?"].includes(error.sql), error.sql);
        assert.ok(!error.stack.includes("secret"));
        return true;
      });
    }
  }
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), 0);
});

test("a text that has no halves of surrogate pairs is stored, and any other refused", async (t) => {
  const db = await database(t);
  const units = fc.array(fc.oneof(fc.nat(0xffff), fc.integer({ min: 0xd7f0, max: 0xe010 })), { maxLength: 600 });
  const one = async (units) => {
    const text = String.fromCharCode(...units);
    const call = db.queryValue("SELECT ?", [text]);
    if (text.isWellFormed()) {
      assert.equal(await call, text);
    } else {
      await assert.rejects(call, { kind: "misuse" });
      assert.equal(await db.queryValue("SELECT ?", [text.toWellFormed()]), text.toWellFormed());
    }
  };
  await fc.assert(fc.asyncProperty(units, one), { numRuns: 300 });
});

test("a text in the database that is not UTF-8 is read with replacement characters", async (t) => {
  const db = await database(t);
  assert.equal(await db.queryValue("SELECT CAST(x'61ff62' AS TEXT)"), "a\ufffdb");
  assert.deepEqual(
    await db.queryValue("SELECT CAST(CAST(x'61ff62' AS TEXT) AS BLOB)"),
    Uint8Array.of(0x61, 0xff, 0x62),
  );
});

test("integers of a database are as its option says, and of a call as that says", async (t) => {
  const db = await database(t, { integers: "bigint" });
  await db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b REAL)");
  const { lastInsertRowid } = await db.execute("INSERT INTO t VALUES (?, 1)", [2n ** 60n]);
  assert.equal(lastInsertRowid, 2n ** 60n);
  const expected = [{ a: 2n ** 60n, b: 1 }];
  assert.deepStrictEqual(await db.query("SELECT * FROM t"), expected);
  assert.deepStrictEqual(await db.query("SELECT * FROM t", [], { integers: "auto" }), expected);
  await assert.rejects(db.query("SELECT * FROM t", [], { integers: "number" }), /column "a" is beyond 2\^53/);
  const [result] = await db.batch(["UPDATE t SET b = 2 RETURNING *"]);
  assert.deepStrictEqual(result.rows, [{ a: 2n ** 60n, b: 2 }]);
  await db.transaction(async (tx) => {
    assert.equal(await tx.queryValue("SELECT 1"), 1n);
    await tx.transaction(async (inner) => assert.equal(await inner.queryValue("SELECT 1"), 1n));
  });
  const snapshot = await db.snapshot();
  assert.equal(await snapshot.queryValue("SELECT 1"), 1n);
  snapshot.close();
  const other = await open(":memory:");
  await other.execute("CREATE TABLE t (a)");
  await assert.rejects(
    other.batch(["INSERT INTO t VALUES (9007199254740993) RETURNING a"]),
    /column "a" is beyond 2\^53/,
  );
  await other.close();
});
