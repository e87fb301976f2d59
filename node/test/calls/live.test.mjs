// Live queries.
import assert from "node:assert/strict";
import { test } from "node:test";
import { database, folder, run, until } from "../support.mjs";
import { open } from "../../dist/index.mjs";

test("a live query yields its result, and again when a commit has changed it", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)");
  const live = db.live("SELECT id, a FROM t ORDER BY id");
  assert.deepEqual((await live.next()).value, []);
  await db.execute("INSERT INTO t (a) VALUES (?)", ["x"]);
  assert.deepEqual((await live.next()).value, [{ id: 1, a: "x" }]);
  await db.transaction(async (tx) => {
    await tx.execute("INSERT INTO t (a) VALUES ('y')");
    await tx.execute("DELETE FROM t WHERE id = 1");
  });
  assert.deepEqual((await live.next()).value, [{ id: 2, a: "y" }]);
  await live.return();
  await until(() => db.stats().live.subscribers === 0);
});

test("changes are what was inserted, updated and deleted", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)");
  await db.execute("INSERT INTO t (a) VALUES ('x'), ('y')");
  const changes = db.live("SELECT id, a FROM t").changes();
  const next = async () => (await changes.next()).value;
  const none = { full: undefined, inserted: [], updated: [], deleted: [] };
  assert.deepEqual(await next(), {
    ...none,
    full: [
      { id: 1, a: "x" },
      { id: 2, a: "y" },
    ],
  });
  await db.execute("UPDATE t SET a = 'z' WHERE id = 2");
  assert.deepEqual(await next(), { ...none, updated: [{ old: { id: 2, a: "y" }, new: { id: 2, a: "z" } }] });
  await db.batch(["DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (7, 'n')"]);
  assert.deepEqual(await next(), { ...none, inserted: [{ id: 7, a: "n" }], deleted: [{ id: 1, a: "x" }] });
  await changes.return();
});

test("a group is of one point in time", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  const group = db.liveGroup(["SELECT a FROM t", ["SELECT count(*) AS n FROM t WHERE a > ?", [0]]]);
  assert.deepEqual((await group.next()).value, [[], [{ n: 0 }]]);
  await db.execute("INSERT INTO t VALUES (1)");
  assert.deepEqual((await group.next()).value, [[{ a: 1 }], [{ n: 1 }]]);
  await group.return();
});

test("leaving the loop leaves the query, and a close ends it", async (t) => {
  const path = `${folder(t)}/a.db`;
  const db = await open(path);
  await db.execute("CREATE TABLE t (a)");
  for await (const rows of db.live("SELECT a FROM t")) {
    assert.deepEqual(rows, []);
    break;
  }
  await until(() => db.stats().live.subscribers === 0);
  const live = db.live("SELECT a FROM t");
  await live.next();
  const next = live.next();
  await db.close();
  assert.deepEqual(await next, { done: true, value: undefined });
});

test("the end of a live query is the end of what is awaited of it", async (t) => {
  const db = await database(t);
  const live = db.live("SELECT 1 AS a");
  await live.next();
  const next = live.next();
  await live.return();
  assert.deepEqual(await next, { done: true, value: undefined });
  assert.deepEqual(await live.next(), { done: true, value: undefined });
});

test("an error in a live query is that of its next result", async (t) => {
  const db = await database(t);
  await assert.rejects(db.live("SELECT * FROM nowhere").next(), { kind: "sql" });
  await assert.rejects(db.live("SELECT 9007199254740993 AS big").next(), /column "big"/);
  await assert.rejects(db.live(1).next(), { kind: "misuse" });
  await assert.rejects(db.live("SELECT ?", [undefined]).changes().next(), { kind: "misuse" });
  await assert.rejects(db.liveGroup(["SELECT 1", 2]).next(), { kind: "misuse" });
});

test("a commit of another process changes a live query", async (t) => {
  const path = `${folder(t)}/a.db`;
  const db = await open(path);
  t.after(() => db.close());
  await db.execute("CREATE TABLE t (a)");
  const live = db.live("SELECT count(*) AS n FROM t");
  assert.deepEqual((await live.next()).value, [{ n: 0 }]);
  const next = live.next();
  const source = `const db = await open(${JSON.stringify(path)}); await db.execute("INSERT INTO t VALUES (1)"); await db.close();`;
  assert.equal((await run(source)).code, 0);
  assert.deepEqual((await next).value, [{ n: 1 }]);
  await live.return();
});

test("several parts may be awaited at once", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  const live = db.live("SELECT count(*) AS n FROM t");
  const parts = [live.next(), live.next(), live.next()];
  assert.deepEqual((await parts[0]).value, [{ n: 0 }]);
  await db.execute("INSERT INTO t VALUES (1)");
  assert.deepEqual((await parts[1]).value, [{ n: 1 }]);
  await live.return();
  assert.deepEqual(await parts[2], { done: true, value: undefined });
  const batches = db.batches(
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 5000) SELECT x FROM c",
  );
  const all = await Promise.all(Array.from({ length: 40 }, () => batches.next()));
  assert.deepEqual(
    all.flatMap(({ value }) => value ?? []).map(({ x }) => x),
    Array.from({ length: 5000 }, (_, at) => at + 1),
  );
});
