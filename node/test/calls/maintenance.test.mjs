// Large values in parts, and what keeps a file in order.
import assert from "node:assert/strict";
import { test } from "node:test";
import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { open } from "../../dist/index.mjs";
import { database, folder, numbers } from "../support.mjs";

test("a large value is read and written in parts", async (t) => {
  const db = await database(t);
  await db.executeScript("CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (7, zeroblob(100000))");
  const blob = await db.openBlob("t", "a", 7);
  assert.equal(blob.length, 100_000);
  blob.seek(99_997);
  await blob.write(new Uint8Array([1, 2, 3]));
  await assert.rejects(blob.write(new Uint8Array([4])), { name: "FlatwaterError" });
  await assert.rejects(blob.write("text"), { kind: "misuse" });
  blob.seek(99_996);
  assert.deepEqual([...(await blob.read(3))], [0, 1, 2]);
  assert.deepEqual([...(await blob.read())], [3]);
  assert.equal((await blob.read()).length, 0);
  blob.close();
  await assert.rejects(blob.read(1), { kind: "misuse" });
  await assert.rejects(db.openBlob("t", "a", 8), { name: "FlatwaterError" });
  await db.transaction(async (tx) => {
    const inside = await tx.openBlob("t", "a", 7n);
    await inside.write(new Uint8Array([9]));
    assert.equal(await tx.queryValue("SELECT hex(substr(a, 1, 1)) FROM t"), "09");
    assert.equal(await db.queryValue("SELECT hex(substr(a, 1, 1)) FROM t"), "00");
  });
});

test("vacuums give space back, and say how much", async (t) => {
  const directory = folder(t);
  const db = await open(`${directory}/a.db`, { tuning: { autoVacuum: "incremental" } });
  await db.execute("CREATE TABLE t (a)");
  await db.execute(`INSERT INTO t ${numbers(2000)} SELECT zeroblob(1000) FROM c`);
  await db.execute("DELETE FROM t");
  assert.equal(await db.incrementalVacuum(10), 10);
  await db.vacuumInto(`${directory}/copy.db`);
  assert.ok(statSync(`${directory}/copy.db`).size < 20_000);
  await db.vacuum();
  assert.ok(statSync(`${directory}/a.db`).size < 40_000);
  const bytes = await db.serialize();
  assert.equal(bytes.subarray(0, 15).toString(), "SQLite format 3");
  await db.backup(`${directory}/backup.db`);
  await assert.rejects(db.backup(`${directory}/backup.db`), { name: "FlatwaterError" });
  await db.close();
});

test("migrations are applied once", async (t) => {
  const path = `${folder(t)}/a.db`;
  const migrations = [
    ["001_users", "CREATE TABLE users (id INTEGER PRIMARY KEY)"],
    ["002_name", "ALTER TABLE users ADD COLUMN name"],
  ];
  const db = await open(path, { migrations: migrations.slice(0, 1) });
  assert.deepEqual(await db.migrate(migrations), ["002_name"]);
  assert.deepEqual(await db.migrate(migrations), []);
  await assert.rejects(db.migrate([["001_users", "CREATE TABLE other (a)"]]), { name: "FlatwaterError" });
  await db.close();
});

test("writes of a large value that are not awaited one by one do not overlap", async (t) => {
  const db = await database(t);
  await db.executeScript("CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, zeroblob(8))");
  const blob = await db.openBlob("t", "a", 1);
  await Promise.all([blob.write(new Uint8Array([1, 1, 1, 1])), blob.write(new Uint8Array([2, 2, 2, 2]))]);
  assert.equal(await db.queryValue("SELECT hex(a) FROM t"), "0101010102020202");
  for (const position of [-5, 1.5, 9]) assert.throws(() => blob.seek(position), { kind: "misuse" });
  await assert.rejects(db.checkpoint("TRUNCATE"), { kind: "misuse" });
  await assert.rejects(db.incrementalVacuum(1.5), { kind: "misuse" });
});

test("a database is opened of the bytes of another one", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  await db.execute("INSERT INTO t VALUES (7)");
  const bytes = await db.serialize();
  for (const deserialize of [bytes, new Uint8Array(bytes).buffer]) {
    const copy = await open(":memory:", { tuning: { deserialize } });
    assert.deepEqual(await copy.query("SELECT a FROM t"), [{ a: 7 }]);
    await copy.execute("DELETE FROM t");
    await copy.close();
  }
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), 1);
  await assert.rejects(open(":memory:", { tuning: { deserialize: "text" } }), {
    kind: "misuse",
    message: /must be bytes/,
  });
});

test("a file of strangers is only read, and its steps are limited", async (t) => {
  const path = `${folder(t)}/a.db`;
  const own = await open(path);
  await own.executeScript(`CREATE TABLE t (a); INSERT INTO t VALUES (1);
    CREATE VIEW endless AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c`);
  await own.close();
  const db = await open(path, { tuning: { untrusted: true, stepLimit: 100_000 } });
  assert.equal(await db.queryValue("SELECT a FROM t"), 1);
  await assert.rejects(db.execute("DELETE FROM t"), { name: "FlatwaterError" });
  await assert.rejects(db.query("SELECT * FROM endless"), { name: "FlatwaterError" });
  await db.close();
});

test("a result of a file of strangers is no larger than its limit, which the error names", async (t) => {
  const path = `${folder(t)}/a.db`;
  const own = await open(path);
  await own.executeScript(`CREATE TABLE t (a); INSERT INTO t VALUES (1);
    CREATE VIEW huge AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)
      SELECT x, zeroblob(10000) AS b FROM c`);
  await own.close();
  const ends = (call, limit) =>
    assert.rejects(
      async () => call(),
      (error) => {
        assert.equal(error.kind, "sql");
        assert.ok(error.hint.includes(`\`tuning\` key \`${limit}\``), error.message);
        return true;
      },
    );
  const db = await open(path, { tuning: { untrusted: true } });
  await ends(() => db.query("SELECT * FROM huge"), "resultLimit");
  await db.close();
  const low = await open(path, { tuning: { untrusted: true, resultLimit: 1 << 20, memoryLimit: 32 << 20 } });
  await ends(() => low.query("SELECT * FROM huge"), "resultLimit");
  await ends(() => low.queryValues("SELECT b FROM huge"), "resultLimit");
  await ends(() => low.queryJson("SELECT x FROM huge"), "resultLimit");
  await ends(() => low.live("SELECT * FROM huge").next(), "resultLimit");
  const snapshot = await low.snapshot();
  await ends(() => snapshot.query("SELECT * FROM huge"), "resultLimit");
  await snapshot.close();
  const long = "printf('%.*c', 10000000, 'x')";
  await ends(() => low.query(`SELECT ${[long, long, long, long, long]} FROM t`), "memoryLimit");
  // Of a stream each part has the limit.
  let rows = 0;
  for await (const row of low.stream("SELECT * FROM huge")) {
    assert.equal(row.b.length, 10_000);
    if (++rows === 1000) {
      break;
    }
  }
  assert.equal(await low.queryValue("SELECT a FROM t"), 1);
  await low.close();
});

test("a key is refused with what to do", async (t) => {
  const path = `${folder(t)}/a.db`;
  for (const key of ["passphrase", new Uint8Array(32)]) {
    await assert.rejects(open(path, { key }), (error) => {
      assert.match(error.message, /install the package `@flatwater\/sqlcipher` in place of `flatwater`/);
      return !error.message.includes("passphrase");
    });
  }
  for (const key of [7, new Uint8Array(31), ["a"]]) {
    await assert.rejects(open(path, { key }), { kind: "misuse", message: /a passphrase, or the 32 bytes/ });
  }
});

test("an extension is loaded on each connection, and one that fails is named", async (t) => {
  const directory = folder(t);
  const source = new URL("../../../crates/flatwater/tests/it/functions/extension.c", import.meta.url).pathname;
  execFileSync("cc", ["-shared", "-fPIC", "-o", `${directory}/own.so`, source]);
  const path = `${directory}/a.db`;
  for (const loadExtension of [
    `${directory}/own`,
    [`${directory}/own`],
    [[`${directory}/own.so`, "sqlite3_extension_init"]],
  ]) {
    const db = await open(path, { loadExtension });
    assert.deepEqual(await Promise.all([db.queryValue("SELECT twice(4)"), db.queryValue("SELECT twice(5)")]), [8, 10]);
    await db.close();
  }
  await assert.rejects(open(path, { loadExtension: [[`${directory}/own`, "fails"]] }), /planted/);
  await assert.rejects(open(path, { loadExtension: "./nowhere" }), { kind: "open", message: /nowhere/ });
  await assert.rejects(open(path, { loadExtension: 7 }), { kind: "misuse", message: /must be a path/ });
  await assert.rejects(open(path, { loadExtension: [[]] }), { kind: "misuse" });
});
