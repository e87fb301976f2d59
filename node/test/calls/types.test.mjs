// Standard types: what the values of columns mean, by their declared types or as the program says.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "../../dist/index.mjs";
import { database, folder, numbers, run } from "../support.mjs";

const SCHEMA = `CREATE TABLE events (id INTEGER PRIMARY KEY, day DATE, at_time TIME, made DATETIME, seen TIMESTAMP, done BOOLEAN, data JSON,
  key UUID, price DECIMAL TEXT, plain TEXT)`;
const ROW = {
  id: 1,
  day: "2024-02-29",
  at_time: "23:05:06.500000",
  made: new Date("2024-02-29T22:05:06.123Z"),
  seen: new Date("2024-02-29T00:00:00.000Z"),
  done: true,
  data: { a: [1, null, "x"] },
  key: "67e55044-10b1-426f-9247-bb680e5fe0c8",
  price: "12.50",
  plain: "2024-02-29",
};
const INSERT = "INSERT INTO events VALUES (:id, :day, :at_time, :made, :seen, :done, :data, :key, :price, :plain)";

async function withEvents(t, options = { types: "standard" }) {
  const db = await database(t, options);
  await db.execute(SCHEMA);
  await db.execute(INSERT, ROW);
  return db;
}

test("values are stored and read as the declared types of their columns mean, in every call", async (t) => {
  const db = await withEvents(t);
  const sql = "SELECT * FROM events";
  assert.deepEqual(await db.query(sql), [ROW]);
  assert.deepEqual(await db.queryOne(sql), ROW);
  assert.deepEqual(await db.queryOptional(sql), ROW);
  assert.deepEqual(await db.queryValue("SELECT made FROM events"), ROW.made);
  assert.deepEqual(await db.queryValues("SELECT data FROM events"), [ROW.data]);
  assert.deepEqual((await db.run(sql)).rows, [ROW]);
  assert.deepEqual((await db.batch([sql]))[0].rows, [ROW]);
  for await (const row of db.stream(sql)) {
    assert.deepEqual(row, ROW);
  }
  const live = db.live(sql);
  assert.deepEqual((await live.next()).value, [ROW]);
  await live.return();
  const changes = db.live(sql).changes();
  assert.deepEqual((await changes.next()).value.full, [ROW]);
  await changes.return();
  assert.deepEqual(await (await db.prepare(sql)).get(), ROW);
  await db.transaction(async (tx) => assert.deepEqual(await tx.query(sql), [ROW]));
  const own = db.connection();
  assert.deepEqual(await own.query(sql), [ROW]);
  await own.close();
  assert.deepEqual(await db.query("UPDATE events SET plain = plain RETURNING done, data"), [
    { done: true, data: ROW.data },
  ]);
  // What is stored, and what no column declares.
  assert.deepEqual(await db.queryOne("SELECT made || '' AS made, data || '' AS data, done + 0 AS done FROM events"), {
    made: "2024-02-29 22:05:06.123000",
    data: '{"a":[1,null,"x"]}',
    done: 1,
  });
});

test("they are off by default, and a call may say something else", async (t) => {
  const db = await withEvents(t, {}).catch(() => undefined);
  assert.equal(db, undefined, "an object is bound with types only");
  const stored = await database(t);
  await stored.execute(SCHEMA);
  await stored.execute(INSERT, { ...ROW, data: JSON.stringify(ROW.data) });
  const sql = "SELECT done, made, id FROM events";
  const plain = { done: 1, made: "2024-02-29 22:05:06.123000", id: 1 };
  assert.deepEqual(await stored.queryOne(sql), plain);
  assert.deepEqual(await stored.queryOne(sql, [], { types: "standard" }), { done: true, made: ROW.made, id: 1 });
  assert.deepEqual(await stored.queryOne(sql, [], { types: { ID: "unix_seconds", made: "stored" } }), {
    done: true,
    made: plain.made,
    id: new Date(1000),
  });
  const typed = await withEvents(t, { types: { "events.id": "unix_milliseconds" } });
  assert.deepEqual(await typed.queryValue("SELECT id FROM events"), new Date(1));
  assert.deepEqual(await typed.queryOne(sql, [], { types: "stored" }), plain);
  assert.deepEqual(await typed.queryOne(sql, [], { types: "standard" }), {
    done: true,
    made: ROW.made,
    id: new Date(1),
  });
  assert.deepEqual(await typed.queryOne(sql, [], { types: { id: "stored" } }), { done: true, made: ROW.made, id: 1 });
  const statement = (await typed.prepare(sql)).with({ types: "stored" });
  assert.deepEqual(await statement.get(), plain);
  for await (const row of typed.stream(sql, [], { types: { made: "stored" } })) {
    assert.equal(row.made, plain.made);
  }
});

test("times without a zone are in UTC, and others forms of SQLite are read if the program says which they are", async (t) => {
  const db = await database(t, { types: "standard" });
  await db.execute("CREATE TABLE t (a DATETIME)");
  for (const [stored, read] of [
    ["2024-07-01 12:00:00", "2024-07-01T12:00:00.000Z"],
    ["2024-07-01T12:00", "2024-07-01T12:00:00.000Z"],
    ["2024-07-01", "2024-07-01T00:00:00.000Z"],
    ["2024-07-01 12:00:00.123456", "2024-07-01T12:00:00.123Z"],
    ["2024-07-01 12:00:00+02:00", "2024-07-01T10:00:00.000Z"],
    ["1969-12-31 23:59:59.999", "1969-12-31T23:59:59.999Z"],
  ]) {
    assert.equal(
      (
        await db.queryValue("SELECT a FROM (SELECT a FROM t UNION ALL SELECT ?)", [stored], {
          types: { a: "datetime" },
        })
      ).toISOString(),
      read,
    );
  }
  const number = (value, word) => db.queryValue("SELECT ? AS a", [value], { types: { a: word } });
  assert.deepEqual(await number(1_709_208_184, "unix_seconds"), new Date(1_709_208_184_000));
  assert.deepEqual(await number(1_709_208_184_123, "unix_milliseconds"), new Date(1_709_208_184_123));
  assert.deepEqual(await number(2440587.5, "julian_day"), new Date(0));
  await assert.rejects(number(1_709_208_184, "datetime"), { kind: "decode", hint: /unix_seconds/ });
});

test("the zone of the process makes no difference", async () => {
  const { code, output, errors } = await run(
    `const db = await open(":memory:", { types: "standard" });
     await db.execute("CREATE TABLE t (a DATETIME)");
     await db.execute("INSERT INTO t VALUES ('2024-07-01 12:00:00')");
     console.log((await db.queryValue("SELECT a FROM t")).toISOString());
     await db.close();`,
    { env: { TZ: "America/New_York" } },
  );
  assert.deepEqual([code, output, errors], [0, "2024-07-01T12:00:00.000Z\n", ""]);
});

test("a value that has not the meaning of its column is an error with column and row, and without the value", async (t) => {
  const db = await database(t, { types: "standard" });
  await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a BOOLEAN, b DATETIME, c JSON, d UUID, e DATE, f DECIMAL)");
  const refused = async (column, value, kind) => {
    await db.execute(`INSERT INTO t (${column}) VALUES (NULL), (?)`, [value]);
    const error = await db.query(`SELECT ${column} FROM t ORDER BY id`).catch((error) => error);
    assert.equal(error.kind, "decode", `${column} ${value}: ${error}`);
    assert.equal(error.code, "FLATWATER_UNREADABLE_VALUE");
    assert.match(error.message, new RegExp(`\\b${column}\\b.*${kind}.*row 1\\b|\\b${column}\\b.*row 1\\b.*${kind}`));
    assert.ok(!error.message.includes("secret"));
    await db.execute("DELETE FROM t");
  };
  await refused("a", 2, "INTEGER");
  await refused("a", "secret", "TEXT");
  await refused("b", "secret", "TEXT");
  await refused("b", 5, "INTEGER");
  await refused("c", "secret", "TEXT");
  await refused("c", new Uint8Array(3), "BLOB");
  await refused("d", "secret", "TEXT");
  await refused("e", "2024-02-30", "TEXT");
  await refused("f", "secret", "TEXT");
  const write = "INSERT INTO t (a) VALUES (7) RETURNING a";
  await assert.rejects(db.query(write), { kind: "decode", message: /; the call was executed/ });
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), 1);
  // Far behind the first chunk, and in a later batch.
  await db.execute("DELETE FROM t");
  await db.execute(`INSERT INTO t (id, a, c) ${numbers(30_000)} SELECT x, 1, '{}' FROM c`);
  await db.execute("UPDATE t SET a = 5 WHERE id = 25001");
  await assert.rejects(db.query("SELECT a FROM t ORDER BY id"), { kind: "decode", message: /row 25000\b/ });
  const streamed = async (sql) => {
    for await (const _ of db.stream(sql));
  };
  await assert.rejects(streamed("SELECT a FROM t ORDER BY id"), { kind: "decode", message: /row 25000\b/ });
  await db.execute("UPDATE t SET c = '{' WHERE id = 25001");
  await assert.rejects(db.query("SELECT c FROM t ORDER BY id"), { kind: "decode", message: /row 25000\b/ });
  await assert.rejects(streamed("SELECT c FROM t ORDER BY id"), { kind: "decode", message: /row 25000\b/ });
});

test("columns of several kinds, and of NULL, are read value by value", async (t) => {
  const db = await database(t, { types: "standard" });
  await db.execute("CREATE TABLE t (a JSON, b BOOLEAN, c DATETIME)");
  await db.executeScript(
    "INSERT INTO t VALUES (NULL, NULL, NULL), ('[1]', 0, NULL), (5, 1, '2024-01-01'), ('null', NULL, NULL), ('\"\u{1f600}\"', 1, NULL)",
  );
  const rows = await db.query("SELECT * FROM t", [], { rows: "array" });
  assert.deepEqual(rows, [
    [null, null, null],
    [[1], false, null],
    [5, true, new Date("2024-01-01")],
    [null, null, null],
    ["\u{1f600}", true, null],
  ]);
  assert.deepEqual(await db.query("SELECT * FROM t WHERE 0"), []);
});

test("a program that forbids generated code reads the same", async (t) => {
  const path = `${folder(t)}/a.db`;
  const program = `const db = await open(${JSON.stringify(path)}, { types: "standard" });
    await db.execute("CREATE TABLE IF NOT EXISTS t (a JSON, b BOOLEAN, c DATETIME, d TEXT)");
    await db.execute("INSERT INTO t VALUES (?, ?, ?, 'text'), (5, NULL, NULL, 'more')", [{ x: 1 }, true, new Date(5)]);
    console.log(JSON.stringify(await db.query("SELECT * FROM t")));
    const expand = (await db.prepare("SELECT a, d, 1 + 1 AS two FROM t")).expand();
    console.log(JSON.stringify(await expand.all()));
    await db.close();`;
  const { code, output, errors } = await run(program, { flags: ["--disallow-code-generation-from-strings"] });
  assert.equal(code, 0, errors);
  const date = new Date(5).toISOString();
  assert.deepEqual(
    output
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
    [
      [
        { a: { x: 1 }, b: true, c: date, d: "text" },
        { a: 5, b: null, c: null, d: "more" },
      ],
      [
        { t: { a: { x: 1 }, d: "text" }, $: { two: 2 } },
        { t: { a: 5, d: "more" }, $: { two: 2 } },
      ],
    ],
  );
});

test("arrays and plain objects are bound as JSON where there are types, in every call", async (t) => {
  const db = await database(t, { types: "standard" });
  await db.execute("CREATE TABLE t (a JSON)");
  const insert = "INSERT INTO t VALUES (?)";
  await db.execute(insert, [{ a: 1 }]);
  await db.executeMany(insert, [[[1, 2]], [{ b: null }], ["5"], [null]]);
  await db.batch([[insert, [{ c: "\ud83d\ude00" }]]]);
  await (await db.prepare(insert)).run([["d"]]);
  const sql = "SELECT a FROM t ORDER BY rowid";
  const all = [{ a: 1 }, [1, 2], { b: null }, 5, null, { c: "\u{1f600}" }, ["d"]];
  assert.deepEqual(await db.queryValues(sql), all);
  assert.deepEqual(await db.queryValues("SELECT a FROM t WHERE a = ?", [{ a: 1 }]), [{ a: 1 }]);
  class Point {}
  for (const value of [new Map(), new Point(), /x/, Symbol("x"), () => {}]) {
    await assert.rejects(db.execute(insert, [value]), { kind: "misuse", code: "FLATWATER_INVALID_VALUE" });
  }
  const circle = {};
  circle.self = circle;
  await assert.rejects(async () => db.execute(insert, [circle]), TypeError);
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), all.length);
  const json = await db.queryJson("SELECT a FROM t WHERE a = ?", [{ a: 1 }]);
  assert.equal(json.toString(), '[{"a":"{\\"a\\":1}"}]', "documents are as they are stored");
});

test("what is bound as JSON later is as it was at the call", async (t) => {
  const db = await database(t, { types: "standard" });
  await db.execute("CREATE TABLE t (a JSON)");
  const rows = Array.from({ length: 20_000 }, (_, number) => [{ number, list: [number] }]);
  const done = db.executeMany("INSERT INTO t VALUES (?)", rows);
  for (const [row] of rows) {
    row.number = -1;
    row.list.push(-1);
  }
  await done;
  const wrong = "SELECT count(*) FROM t WHERE a ->> '$.number' <> rowid - 1 OR json_array_length(a, '$.list') <> 1";
  assert.equal(await db.queryValue(wrong), 0);
});

test("what is wrong with types is told", async (t) => {
  const db = await database(t, { types: "standard" });
  const refused = (types, expected) => assert.rejects(db.query("SELECT 1 AS a", [], { types }), expected);
  await refused("standart", { kind: "misuse", code: "FLATWATER_INVALID_OPTION" });
  await refused({ a: "datetim" }, { kind: "misuse", message: /"datetime"/ });
  await refused({ a: 5 }, { kind: "misuse" });
  await refused(["a"], { kind: "misuse" });
  await refused({ b: "json" }, { code: "FLATWATER_NO_SUCH_COLUMN", message: /"b".*the result has a/ });
  await assert.rejects(open(":memory:", { types: "all" }), { kind: "misuse" });
  await assert.rejects(open(":memory:", { types: { a: "x" } }), { kind: "misuse" });
  await assert.rejects(db.batches("SELECT 1 AS a", [], { types: { b: "json" } }).next(), { kind: "misuse" });
  await assert.rejects(db.live("SELECT 1 AS a", [], { types: { a: "x" } }).next(), { kind: "misuse" });
});

test("rows have the default form of the database, unless a call says another", async (t) => {
  const db = await database(t, { rows: "array" });
  const sql = "SELECT 1 AS a, 2 AS b";
  assert.deepEqual(await db.query(sql), [[1, 2]]);
  assert.deepEqual(await db.queryOne(sql), [1, 2]);
  assert.deepEqual((await db.run(sql)).rows, [[1, 2]]);
  assert.deepEqual((await db.batch([sql]))[0].rows, [[1, 2]]);
  assert.deepEqual((await db.batches(sql).next()).value, [[1, 2]]);
  const live = db.live(sql);
  assert.deepEqual((await live.next()).value, [[1, 2]]);
  await live.return();
  const statement = await db.prepare(sql);
  assert.deepEqual(
    [await statement.get(), await statement.raw().get()],
    [
      [1, 2],
      [1, 2],
    ],
  );
  assert.deepEqual(await db.query(sql, [], { rows: "object" }), [{ a: 1, b: 2 }]);
  await db.transaction(async (tx) => assert.deepEqual(await tx.query(sql), [[1, 2]]));
  await assert.rejects(open(":memory:", { rows: "list" }), { kind: "misuse" });
});

/** As the classes of decimal.js, big.js and bignumber.js. */
class Decimal {
  #text;

  constructor(text) {
    this.#text = text;
  }

  toFixed() {
    return this.#text;
  }

  valueOf() {
    return this.#text;
  }
}

test("decimals of libraries are bound with all their digits, or refused where a column of numbers would round them", async (t) => {
  const db = await database(t, { types: "standard" });
  await db.execute("CREATE TABLE t (number DECIMAL(10, 2), text DECIMAL TEXT)");
  const kept = ["12.5", "-0.1", "123456789012.345", "9223372036854775807", "0.000000000000001"];
  for (const text of kept) {
    await db.execute("DELETE FROM t");
    const decimal = new Decimal(text);
    await db.execute("INSERT INTO t VALUES (:decimal, :decimal)", { decimal });
    assert.deepEqual(await db.queryOne("SELECT * FROM t"), { number: text, text });
    assert.equal(await db.queryValue("SELECT count(*) FROM t WHERE number = ?", [decimal]), 1);
  }
  await db.execute("DELETE FROM t");
  const hint = /-- pass value\.toFixed\(\) for a column declared TEXT or DECIMAL TEXT/;
  for (const text of ["1234567890123456.5", "9223372036854775808", "NaN", "Infinity"]) {
    const many = db.executeMany("INSERT INTO t VALUES (?, ?)", [
      [1, 1],
      [1, new Decimal(text)],
    ]);
    await assert.rejects(many, ({ kind, message }) => {
      assert.match(message, /^row 1: parameter 2: (a column of numbers keeps 15 digits|NaN and infinity)/);
      assert.match(message, hint);
      return kind === "misuse" && !message.includes("1234");
    });
  }
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), 0);
  for (const other of [
    new Number(5),
    new (class {})(),
    new Map(),
    Object.assign(new Decimal("1"), { toFixed: () => 5 }),
  ]) {
    await assert.rejects(db.execute("INSERT INTO t (text) VALUES (?)", [other]), { kind: "misuse" }, String(other));
  }
  const thrown = new Decimal("1");
  thrown.toFixed = () => assert.fail("the program's own");
  await assert.rejects(db.execute("INSERT INTO t (text) VALUES (?)", [thrown]), { message: "the program's own" });
  const stored = await database(t);
  await assert.rejects(stored.query("SELECT ?", [new Decimal("1")]), /an object cannot be stored/);
});
