// What SQLite gets from functions in JavaScript, and what they get from it: from those of a module, and from the same on the loop.
import assert from "node:assert/strict";
import { channel } from "node:diagnostics_channel";
import { threadId } from "node:worker_threads";
import { database, numbers } from "../support.mjs";
import { both } from "./ways.mjs";

const numbered = (count) => `${numbers(count)} SELECT x FROM c`;

both("a function is called with the values of SQLite, and returns what may be a parameter", async (t, given) => {
  const db = await database(t, given);
  assert.deepEqual(await db.queryOne("SELECT double(21) AS a, double(NULL) AS b, DOUBLE(1.25) AS c"), {
    a: 42,
    b: null,
    c: 2.5,
  });
  const values = [
    null,
    -1,
    1.5,
    -0,
    Infinity,
    "",
    "ä😀",
    "a\0b",
    "x".repeat(100_000),
    new Uint8Array(),
    new Uint8Array([0, 255]),
  ];
  for (const value of values) {
    const [returned, isSame, type] = await db.queryOne(
      "SELECT same(:v), same(:v) IS :v, typeof(same(:v)) = typeof(:v)",
      { v: value },
      { rows: "array" },
    );
    assert.deepEqual([isSame, type], [1, 1], String(value));
    assert.deepEqual(
      typeof value === "object" && value ? [...returned] : returned,
      typeof value === "object" && value ? [...value] : value,
    );
  }
  const kinds = "SELECT kind_of(NULL), kind_of(1), kind_of(1.5), kind_of('a'), kind_of(x'00')";
  assert.deepEqual(await db.queryOne(kinds, [], { rows: "array" }), ["null", "number", "number", "string", "bytes"]);
  const of = (name) => db.queryValue("SELECT result_of(?)", [name], { integers: "auto" });
  assert.deepEqual(await Promise.all(["undefined", "true", "bigint", "date"].map(of)), [
    null,
    1,
    2n ** 62n,
    "1970-01-01 00:00:00",
  ]);
  assert.deepEqual([...(await of("bytes"))], [1, 2]);
});

both("an integer beyond 2^53 reaches a function as a bigint, if it asks for that, or not at all", async (t, given) => {
  const db = await database(t, given);
  const [big, all] = ["9007199254740993", { integers: "auto" }];
  assert.equal(await db.queryValue(`SELECT same(${big})`, [], all), 9007199254740993n);
  assert.equal(await db.queryValue("SELECT same(-9223372036854775807 - 1)", [], all), -(2n ** 63n));
  assert.equal(await db.queryValue("SELECT same(9007199254740991)"), 9007199254740991);
  assert.deepEqual(await db.queryValue("SELECT big(1)"), "bigint");
  await assert.rejects(db.queryValue(`SELECT exact(${big})`), ({ message }) => {
    assert.match(
      message,
      /the function exact was not called: its argument 1 is beyond 2\^53 -- say \{ integers: "auto" \}/,
    );
    assert.doesNotMatch(message, /9007/);
    return true;
  });
});

both("a function has as many arguments as it declares, or any number", async (t, given) => {
  const db = await database(t, given);
  assert.deepEqual(
    await db.queryOne("SELECT count_of(), count_of(1), count_of(1, 2, 3)", [], { rows: "array" }),
    [0, -1, 3],
  );
  const most = Array.from({ length: 100 }, (_, at) => at);
  assert.equal(await db.queryValue(`SELECT count_of(${most})`), 100);
  await assert.rejects(db.query("SELECT double(1, 2)"), { kind: "sql", message: /wrong number of arguments/ });
});

both("an aggregate begins anew for each group, also for one without rows", async (t, given) => {
  const db = await database(t, given);
  await db.executeScript("CREATE TABLE t (a, b); INSERT INTO t VALUES ('x', 1), ('yy', 1), ('z', 2)");
  assert.deepEqual(await db.query("SELECT b, longest(a), joined(a, b) FROM t GROUP BY b", [], { rows: "array" }), [
    [1, "yy", "x,1,yy,1"],
    [2, "z", "z,2"],
  ]);
  assert.deepEqual(await db.queryOne("SELECT sum_of(b) AS s, longest(a) AS l FROM t WHERE b > 9"), { s: 0, l: "" });
  assert.equal(await db.queryValue(`SELECT sum_of(x) FROM (${numbered(10_000)})`), 50_005_000);
});

both("an aggregate with `inverse` can be used with OVER", async (t, given) => {
  const db = await database(t, given);
  const windows = "SELECT sum_of(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM";
  assert.deepEqual(await db.queryValues(`${windows} (${numbered(4)})`), [3, 6, 9, 7]);
  const running = await db.queryValues(`SELECT sum_of(x) OVER (ORDER BY x) - x * (x + 1) / 2 FROM (${numbered(500)})`);
  assert.deepEqual(new Set(running), new Set([0]));
  const empty = "SELECT sum_of(x) OVER (ORDER BY x ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING) FROM";
  assert.deepEqual(await db.queryValues(`${empty} (${numbered(3)})`), [3, 0, 0]);
  await assert.rejects(db.query("SELECT longest('a') OVER ()"), { kind: "sql", message: /longest/ });
});

both("a collation orders and finds texts", async (t, given) => {
  const db = await database(t, given);
  await db.executeScript(
    "CREATE TABLE t (a TEXT COLLATE by_length UNIQUE); INSERT INTO t VALUES ('long'), ('a'), ('no')",
  );
  assert.deepEqual(await db.queryValues("SELECT a FROM t ORDER BY a"), ["a", "no", "long"]);
  assert.equal(await db.queryValue("SELECT a FROM t WHERE a = ?", ["four"]), "long");
  await assert.rejects(db.execute("INSERT INTO t VALUES ('b')"), { kind: "constraint" });
  const own = (await db.queryValues(`SELECT 'a' || x AS a FROM (${numbered(300)}) ORDER BY a COLLATE picky`)).join();
  assert.equal(
    own,
    Array.from({ length: 300 }, (_, at) => `a${at + 1}`)
      .sort()
      .join(),
  );
});

both("a schema may use a function if it is deterministic, and not `directOnly`", async (t, given) => {
  const db = await database(t, given);
  await db.executeScript(
    "CREATE TABLE t (a); CREATE INDEX i ON t (double(a)); CREATE VIEW direct_view AS SELECT direct()",
  );
  await assert.rejects(db.execute("CREATE INDEX j ON t (exact(a))"), { kind: "sql", message: /non-deterministic/ });
  await assert.rejects(db.query("SELECT * FROM direct_view"), { kind: "sql", message: /direct/ });
  assert.equal(await db.queryValue("SELECT direct()"), 1);
});

both(
  "functions are there when migrations run, in transactions, snapshots, streams and connections of one's own",
  async (t, given) => {
    const migrations = [["1", "CREATE TABLE t (a, d AS (double(a)) STORED); INSERT INTO t VALUES (1), (2)"]];
    const db = await database(t, { ...given, migrations });
    assert.deepEqual(await db.queryValues("SELECT d FROM t"), [2, 4]);
    await db.transaction(async (tx) => {
      await tx.execute("INSERT INTO t VALUES (?)", [3]);
      assert.equal(await tx.queryValue("SELECT max(double(d)) FROM t"), 12);
    });
    const snapshot = await db.snapshot();
    assert.equal(await snapshot.queryValue("SELECT sum_of(d) FROM t"), 12);
    snapshot.close();
    const own = db.connection();
    for (let round = 0; round < 20; round++) {
      assert.equal(await own.queryValue("SELECT max(double(d)) FROM t"), 12);
      assert.equal((await own.execute("UPDATE t SET a = a WHERE double(a) = ?", [2])).changes, 1);
    }
    await own.close();
    const all = [];
    for await (const { d } of db.stream("SELECT double(a) AS d FROM t")) {
      all.push(d);
    }
    assert.deepEqual(all, [2, 4, 6]);
    const live = db.live("SELECT sum_of(double(a)) AS s FROM t");
    assert.deepEqual((await live.next()).value, [{ s: 12 }]);
    await db.execute("INSERT INTO t VALUES (10)");
    assert.deepEqual((await live.next()).value, [{ s: 32 }]);
    await live.return();
  },
);

both("no statement that may call a function runs on the thread of the loop", async (t, given) => {
  const db = await database(t, given);
  await db.executeScript(`
    CREATE TABLE plain (a);
    CREATE TABLE by_index (a); CREATE INDEX i ON by_index (double(a));
    CREATE TABLE partly (a); CREATE INDEX p ON partly (a) WHERE double(a) > 2;
    CREATE TABLE generated (a, d AS (double(a)));
    CREATE TABLE checked (a CHECK (not_bad(a)));
    CREATE TABLE watched (a); CREATE TRIGGER w AFTER INSERT ON watched BEGIN INSERT INTO plain VALUES (double(new.a)); END;
    CREATE TABLE ordered (a TEXT COLLATE by_length PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE defaults (a, d DEFAULT (double(4)));
    CREATE VIEW viewed AS SELECT double(a) AS d FROM generated;`);
  const texts = [
    "SELECT double(?)",
    "INSERT INTO by_index VALUES (?)",
    "INSERT INTO partly VALUES (?)",
    "INSERT INTO generated VALUES (?)",
    "SELECT d FROM generated WHERE a = ?",
    "INSERT INTO checked VALUES (?)",
    "INSERT INTO watched VALUES (?)",
    "INSERT OR REPLACE INTO ordered VALUES (?)",
    "SELECT a FROM ordered WHERE a = ?",
    "INSERT INTO defaults (a) VALUES (?)",
    "SELECT d FROM viewed LIMIT ?",
    "SELECT sum_of(a) FROM plain WHERE a > ?",
    "SELECT ? = 'b' COLLATE by_length",
  ];
  const ran = [];
  const hear = (event) => ran.push(event);
  const events = channel("tracing:flatwater.statement:asyncEnd");
  events.subscribe(hear);
  t.after(() => events.unsubscribe(hear));
  for (const sql of texts) {
    for (let round = 0; round < 20; round++) {
      await db.run(sql, [round]);
    }
  }
  // The index has the values that are looked for, so this calls nothing.
  const callsNothing = "SELECT a FROM by_index WHERE double(a) = ?";
  for (let round = 0; round < 20; round++) {
    await db.query(callsNothing, [round]);
  }
  const onLoop = new Set(ran.filter(({ ranOn }) => ranOn === "caller").map(({ sql }) => sql));
  assert.deepEqual([...onLoop], [callsNothing]);
  assert.equal((await db.queryValue("SELECT thread()")) === threadId, "functionsOnLoop" in given);
});

both("readers that call functions at once are served one after the other", async (t, given) => {
  const db = await database(t, { ...given, readers: 4 });
  const sums = await Promise.all(
    Array.from({ length: 12 }, () => db.queryValue(`SELECT sum(double(x)) FROM (${numbered(300)})`)),
  );
  assert.deepEqual(new Set(sums), new Set([90_300]));
});
