// What is asked of a database as a whole: checks, plans, and backups that tell how far they are.
import assert from "node:assert/strict";
import { existsSync, openSync, readdirSync, readFileSync, writeSync, closeSync } from "node:fs";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";
import { open } from "../../dist/index.mjs";
import { database, folder, numbers } from "../support.mjs";

async function collected(iterable) {
  const all = [];
  for await (const one of iterable) {
    all.push(one);
  }
  return all;
}

/** A file in which an entry of an index is missing. */
async function damaged(t) {
  const path = `${folder(t)}/damaged.db`;
  const db = await open(path, { tuning: { pageSize: 4096 } });
  await db.executeScript("CREATE TABLE sound (a); CREATE TABLE t (a); CREATE INDEX by_a ON t (a)");
  await db.executeMany(
    "INSERT INTO t VALUES (?)",
    Array.from({ length: 20 }, (_, at) => [`marked ${at}`]),
  );
  const page = await db.queryValue("SELECT rootpage FROM sqlite_schema WHERE name = 'by_a'");
  await db.checkpoint("truncate");
  await db.close();
  const bytes = readFileSync(path).subarray((page - 1) * 4096, page * 4096);
  const file = openSync(path, "r+");
  for (let at = bytes.indexOf("marked"); at >= 0; at = bytes.indexOf("marked", at + 1)) {
    writeSync(file, "xarked", (page - 1) * 4096 + at);
  }
  closeSync(file);
  return path;
}

test("a sound database has no problems, and a damaged one a sentence for each", async (t) => {
  const sound = await database(t);
  await sound.execute("CREATE TABLE t (a)");
  assert.deepEqual(await collected(sound.integrityCheck()), []);
  const db = await open(await damaged(t));
  t.after(() => db.close());
  const problems = await collected(db.integrityCheck());
  assert.ok(problems.length >= 20, problems.join("\n"));
  assert.ok(problems.every((problem) => /by_a/.test(problem) && !problem.includes("\n")));
  assert.deepEqual(await collected(db.integrityCheck({ table: "t" })).then((all) => all.length > 10), true);
  assert.deepEqual(await collected(db.integrityCheck({ table: "sound" })), []);
  assert.deepEqual(await collected(db.integrityCheck({ quick: true })), []);
  // Leaving the loop gives the connection back.
  for await (const problem of db.integrityCheck()) {
    assert.match(problem, /by_a/);
    break;
  }
  assert.equal(db.stats().readersHeld, 0);
});

test("what is wrong with a check is told by its first problem", async (t) => {
  const db = await database(t);
  const refused = (options, message) => assert.rejects(db.integrityCheck(options).next(), { kind: "misuse", message });
  await refused({ tabel: "t" }, /did you mean "table"/);
  await refused({ table: 5 }, /must be names/);
  await refused({ quick: 1 }, /quick must be true or false/);
  await refused(5, /options must be an object/);
  await assert.rejects(db.integrityCheck({ database: "other" }).next(), { kind: "sql" });
  await assert.rejects(db.integrityCheck({ timeout: 0 }).next(), { kind: "timeout" });
  await assert.rejects(db.integrityCheck({ signal: AbortSignal.abort(new RangeError()) }).next(), RangeError);
  const check = db.integrityCheck();
  await check.return();
  assert.deepEqual(await check.next(), { done: true, value: undefined });
});

test("a plan is a tree of lines, and the statement does not run", async (t) => {
  const db = await database(t);
  await db.executeScript("CREATE TABLE t (a, b); CREATE INDEX by_a ON t (a)");
  assert.match(await db.queryPlan("SELECT b FROM t WHERE a = ?"), /^SEARCH t USING INDEX by_a \(a=\?\)\n$/);
  assert.match(await db.queryPlan("SELECT 1 UNION SELECT 2"), /^MERGE \(UNION\)\n  LEFT\n    SCAN CONSTANT ROW\n/);
  await db.queryPlan("DELETE FROM t");
  await assert.rejects(db.queryPlan("SELEC 1"), { kind: "sql", offset: 0 });
  await assert.rejects(db.queryPlan("SELECT 1; SELECT 2"), { kind: "misuse" });
  await assert.rejects(db.queryPlan(5), { kind: "misuse" });
  await assert.rejects(db.queryPlan("SELECT 1", { timeout: 0 }), { kind: "timeout" });
  await assert.rejects(db.queryPlan("SELECT 1", { timout: 0 }), { kind: "misuse" });
});

async function large(t) {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  await db.execute(`INSERT INTO t ${numbers(3_000)} SELECT randomblob(2000) FROM c`);
  return db;
}

test("a backup tells how far it is, in the context of its call", async (t) => {
  const db = await large(t);
  const to = `${folder(t)}/copy.db`;
  const told = [];
  const context = new AsyncLocalStorage();
  await context.run("here", () =>
    db.backup(to, {
      progress: (progress) => {
        assert.equal(context.getStore(), "here");
        told.push(progress);
      },
    }),
  );
  const pages = await db.queryValue("PRAGMA page_count");
  assert.ok(told.length >= 1 && told.every(({ totalPages }) => totalPages === pages), JSON.stringify(told));
  const left = told.map(({ remainingPages }) => remainingPages);
  assert.deepEqual(
    left,
    left.toSorted((a, b) => b - a),
  );
  assert.equal(left.at(-1), 0);
  const copy = await open(to);
  assert.equal(await copy.queryValue("SELECT count(*) FROM t"), 3_000);
  await copy.close();
  await assert.rejects(db.backup(to, { progress: 5 }), { message: /progress must be a function/ });
  await assert.rejects(db.backup(to, { progress: () => {} }), { kind: "misuse", message: /exists already/ });
});

test("a callback may make calls; one that throws, and a signal, end the backup and leave no file", async (t) => {
  const db = await large(t);
  const directory = folder(t);
  const calls = [];
  await db.backup(`${directory}/a.db`, { progress: () => calls.push(db.queryValue("SELECT count(*) FROM t")) });
  assert.ok((await Promise.all(calls)).every((count) => count === 3_000));
  const error = new RangeError("from the program");
  const progress = () => {
    throw error;
  };
  await assert.rejects(db.backup(`${directory}/b.db`, { progress }), (thrown) => thrown === error);
  const controller = new AbortController();
  const aborts = { signal: controller.signal, progress: () => controller.abort(error) };
  await assert
    .rejects(db.backup(`${directory}/c.db`, aborts), (thrown) => thrown === error || thrown === undefined)
    .catch(
      // All pages may have been copied by then.
      () => assert.ok(existsSync(`${directory}/c.db`)),
    );
  await db.close();
  assert.deepEqual(
    readdirSync(directory).filter((name) => !["a.db", "c.db"].includes(name)),
    [],
  );
});

test("an export needs encryption, and says so", async (t) => {
  const db = await database(t);
  for (const options of [undefined, {}, { key: "a passphrase" }, { key: new Uint8Array(32) }]) {
    await assert.rejects(db.export(`${folder(t)}/a.db`, options), { name: "FlatwaterError" });
  }
  await assert.rejects(db.export(5), { kind: "misuse", message: /path must be a string/ });
  await assert.rejects(db.export("a.db", { key: 5 }), { kind: "misuse" });
  for (const call of [db.rekey("a passphrase"), db.hasKey(new Uint8Array(32))]) {
    await assert.rejects(call, { kind: "misuse", message: /`@flatwater\/sqlcipher` in place of/ });
  }
  await assert.rejects(db.rekey(5), { kind: "misuse", message: /a passphrase, or the 32 bytes/ });
  await assert.rejects(db.export("a.db", { kye: "a" }), { message: /did you mean "key"/ });
});

test("streams, batches and streamed JSON have a deadline for each fetch", async (t) => {
  const db = await database(t);
  const endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c WHERE x < 0";
  const late = { kind: "timeout", code: "FLATWATER_DEADLINE" };
  await assert.rejects(db.stream(endless, [], { timeout: 10 }).next(), late);
  await assert.rejects(db.batches(endless, [], { timeout: 10 }).next(), late);
  await assert.rejects(new Response(db.streamJson(endless, [], { timeout: 10 })).text(), late);
  await assert.rejects(db.stream("SELECT 1", [], { timeout: -1 }).next(), { kind: "misuse" });
  const all = await collected(db.stream(`${numbers(50_000)} SELECT x FROM c`, [], { timeout: 60_000 }));
  assert.equal(all.length, 50_000);
});

test("a live query has a deadline for its first result, and none for a change", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  const endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c, t WHERE x < 0";
  await db.execute("INSERT INTO t VALUES (1)");
  for (const live of [db.live(endless, [], { timeout: 10 }), db.liveGroup([endless], { timeout: 10 })]) {
    await assert.rejects(live.next(), { kind: "timeout", code: "FLATWATER_DEADLINE", applied: "no", retryable: true });
    assert.deepEqual(await live.next(), { done: true, value: undefined });
  }
  await assert.rejects(db.live(endless, [], { timeout: 10 }).changes().next(), { kind: "timeout" });
  await assert.rejects(db.live("SELECT 1", [], { timeout: "soon" }).next(), { kind: "misuse" });
  const live = db.live("SELECT a FROM t", [], { timeout: 10_000 });
  assert.deepEqual((await live.next()).value, [{ a: 1 }]);
  const next = live.next();
  await db.execute("INSERT INTO t VALUES (2)");
  assert.deepEqual((await next).value, [{ a: 1 }, { a: 2 }]);
  await live.return();
});
