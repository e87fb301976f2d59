// A database on a server: the same methods on the stand-in for an rqlite cluster, which is a process of its own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { open } from "../dist/index.mjs";
import { cluster, needsSqld, sqld } from "./servers.mjs";
import { database } from "./support.mjs";

/** One that is closed when the test is over. */
async function opened(t, address, options) {
  const server = await open(address, options);
  t.after(() => server.close());
  return server;
}

/** What a program does with a database. Returns all that it got. */
async function program(db) {
  await db.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT UNIQUE, score REAL, picture BLOB)");
  const insert = "INSERT INTO users (name, score, picture) VALUES (?, ?, ?)";
  const got = [await db.execute(insert, ["Ada", 1, new Uint8Array([0, 255])])];
  got.push(await db.execute("UPDATE users SET score = :by WHERE name = :who", { by: 2.5, who: "Ada" }));
  got.push(
    await db.executeMany(
      insert,
      Array.from({ length: 300 }, (_, number) => [`user ${number}`, number, null]),
    ),
  );
  got.push(await db.query("SELECT * FROM users ORDER BY id LIMIT 3"));
  got.push(await db.queryValue("SELECT count(*) FROM users"));
  got.push(await db.queryOptional("SELECT * FROM users WHERE id = 9999"));
  got.push(String(await db.queryJson("SELECT id, name FROM users ORDER BY id LIMIT 2")));
  got.push(
    await db.batch([["INSERT INTO users (name) VALUES (?)", ["Bob"]], ["DELETE FROM users WHERE name = 'Bob'"]]),
  );
  got.push(await db.query("INSERT INTO users (name) VALUES ('Eve') RETURNING id, name"));
  await db.executeScript("CREATE TABLE a (x); INSERT INTO a VALUES (1); INSERT INTO a VALUES (2)");
  const migration = [["0001_tags", "CREATE TABLE tags (a); INSERT INTO tags VALUES (1)"]];
  got.push(await db.migrate(migration), await db.migrate(migration));
  for (const wrong of ["INSERT INTO users (name) VALUES ('Ada')", "UPDATE users SET missing = 1", "INSERT INTO"]) {
    const { kind, message, code } = await db.execute(wrong).then(assert.fail, (error) => error);
    got.push({ kind, message, code });
  }
  return got;
}

test("a program gets the same on a file and on a server", async (t) => {
  const { address } = await cluster(t);
  const server = await open(address);
  assert.deepEqual(await program(server), await program(await database(t)));
  const inserted = await Promise.all(
    Array.from({ length: 50 }, (_, number) => server.execute("INSERT INTO a VALUES (?)", [number])),
  );
  assert.ok(inserted.every(({ changes }) => changes === 1));
  await server.close();
  await assert.rejects(server.query("SELECT 1"), { kind: "closed" });
});

test("what a server has not is refused with a hint", async (t) => {
  const { address } = await cluster(t);
  const server = await opened(t, address);
  await server.execute("CREATE TABLE t (a)");
  const refused = { kind: "misuse", message: /on a server/ };
  await assert.rejects(
    server.transaction(() => assert.fail("it has begun")),
    { kind: "misuse", message: /no interactive transactions/ },
  );
  await assert.rejects(server.snapshot(), refused);
  await assert.rejects(async () => {
    for await (const change of server.live("SELECT a FROM t").changes()) {
      assert.fail(inspect(change));
    }
  }, refused);
  await assert.rejects(server.vacuum(), refused);
  assert.throws(() => server.stats(), refused);
  assert.equal(await server.queryValue("SELECT count(*) FROM t"), 0);
});

test("an address has its settings and keeps its secret", async (t) => {
  const { address } = await cluster(t);
  await assert.rejects(open(`${address}/?levle=weak`), { kind: "misuse", message: /levle/ });
  await assert.rejects(open(address, { readers: 2 }), { kind: "misuse", message: /readers.*on a server/ });
  await assert.rejects(open(address, { raeders: 2 }), { kind: "misuse" });
  const server = await opened(t, `${address}/?level=strong&timeout=5s`, { timeout: 60_000 });
  assert.match(server.path, /^rqlite:\/\/127/);
  assert.doesNotMatch(inspect(server, { depth: 9 }), /secret/);
});

test("a lost answer is no second write, and no server is a timeout", async (t) => {
  const { address, order } = await cluster(t);
  const server = await opened(t, address);
  await server.execute("CREATE TABLE t (a)");
  await order({ script: ["drop_after", "drop_after"] });
  assert.equal((await server.execute("INSERT INTO t VALUES (1)")).changes, 1);
  assert.equal(await server.queryValue("SELECT count(*) FROM t"), 1);
  await order({ headless: true });
  await assert.rejects(server.execute("INSERT INTO t VALUES (2)", [], { timeout: 300 }), { kind: "timeout" });
});

/** Waits for a result of a live query. */
async function until(live, expected) {
  for await (const [{ n }] of live) {
    if (n === expected) {
      return;
    }
  }
  assert.fail("it is over");
}

test("a live query tells of what others write", async (t) => {
  const { address } = await cluster(t);
  const [server, other] = [await opened(t, address), await opened(t, address)];
  await server.execute("CREATE TABLE t (a)");
  const seen = until(server.live("SELECT count(*) AS n FROM t"), 3);
  await other.execute("INSERT INTO t VALUES (1), (2)");
  await server.execute("INSERT INTO t VALUES (3)");
  await seen;
});

test("a transaction on a libSQL server is that of a file", needsSqld, async (t) => {
  const [server, file] = [await opened(t, await sqld(t)), await database(t)];
  const program = async (db) => {
    await db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b UNIQUE)");
    const got = [];
    const insert = (on, b) => on.execute("INSERT INTO t (b) VALUES (?)", [b]);
    await db.transaction(async (tx) => {
      got.push(await insert(tx, 1), tx.inTransaction, db.inTransaction);
      await tx.transaction((inner) => insert(inner, 2));
      await assert.rejects(
        tx.transaction(async (inner) => {
          await insert(inner, 3);
          throw new Error("undo");
        }),
        /undo/,
      );
      await assert.rejects(insert(tx, 2), { kind: "constraint" });
      await assert.rejects(insert(db, 9), { kind: "misuse", message: /inside its own transaction/ });
      got.push(await tx.query("SELECT * FROM t"));
    });
    await assert.rejects(
      db.transaction(async (tx) => {
        await insert(tx, 5);
        throw new Error("undo all");
      }),
      /undo all/,
    );
    got.push(await db.query("SELECT * FROM t"));
    return got;
  };
  assert.deepEqual(await program(server), await program(file));
  const seen = until(server.live("SELECT count(*) AS n FROM t"), 3);
  await server.transaction((tx) => tx.execute("INSERT INTO t (b) VALUES (7)"));
  await seen;
});
