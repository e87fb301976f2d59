// Transactions, and what is refused in them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AsyncResource } from "node:async_hooks";
import { database, until } from "../support.mjs";

const count = (on) => on.queryValue("SELECT count(*) FROM t");

async function withTable(t, options) {
  const db = await database(t, options);
  await db.execute("CREATE TABLE t (a)");
  return db;
}

test("a transaction commits what its function did, and returns what it returned", async (t) => {
  const db = await withTable(t);
  const result = await db.transaction(async (tx) => {
    assert.ok(tx.inTransaction);
    await tx.execute("INSERT INTO t VALUES (1)");
    assert.equal(await count(tx), 1);
    assert.equal(await count(db), 0, "another connection sees nothing of it");
    return "done";
  });
  assert.deepEqual([result, await count(db)], ["done", 1]);
});

test("a function that throws rolls back, and its error comes out", async (t) => {
  const db = await withTable(t);
  const error = new RangeError("from the program");
  const body = async (tx) => {
    await tx.execute("INSERT INTO t VALUES (1)");
    throw error;
  };
  await assert.rejects(db.transaction(body), (thrown) => thrown === error);
  await assert.rejects(
    db.transaction((tx) => {
      tx.execute("INSERT INTO t VALUES (1)");
      throw error;
    }),
    (thrown) => thrown === error,
  );
  assert.equal(await count(db), 0);
});

test("a transaction is of no use after its end", async (t) => {
  const db = await withTable(t);
  let kept;
  await db.transaction(async (tx) => (kept = tx));
  assert.equal(kept.inTransaction, false);
  await assert.rejects(kept.execute("INSERT INTO t VALUES (1)"), { kind: "misuse" });
});

test("a nested transaction is undone alone", async (t) => {
  const db = await withTable(t);
  await db.transaction(async (tx) => {
    await tx.execute("INSERT INTO t VALUES (1)");
    await assert.rejects(
      tx.transaction(async (inner) => {
        await inner.execute("INSERT INTO t VALUES (2)");
        // The outer one, from inside: it runs in the inner one.
        await tx.execute("INSERT INTO t VALUES (3)");
        throw new RangeError();
      }),
      RangeError,
    );
    await tx.transaction((inner) => inner.execute("INSERT INTO t VALUES (4)"));
  });
  assert.deepEqual(await db.query("SELECT a FROM t ORDER BY a"), [{ a: 1 }, { a: 4 }]);
});

test("using the database to write inside its own transaction is refused at once", async (t) => {
  const db = await withTable(t);
  await db.transaction(async (tx) => {
    await assert.rejects(db.execute("INSERT INTO t VALUES (1)"), {
      kind: "misuse",
      message: /inside its own transaction/,
    });
    await assert.rejects(db.batch(["INSERT INTO t VALUES (1)"]), { kind: "misuse" });
    await assert.rejects(
      db.transaction(async () => {}),
      { kind: "misuse" },
    );
    await Promise.resolve();
    assert.equal(await count(db), 0, "a read needs no writer");
    await tx.execute("INSERT INTO t VALUES (2)");
  });
  await db.execute("INSERT INTO t VALUES (3)");
  assert.equal(await count(db), 2);
});

test("what goes on after the end of a transaction may use the database", async (t) => {
  const db = await withTable(t);
  let later;
  let ended;
  const end = new Promise((resolve) => (ended = resolve));
  await db.transaction(async (tx) => {
    await tx.execute("INSERT INTO t VALUES (1)");
    later = end.then(() => db.execute("INSERT INTO t VALUES (2)"));
  });
  ended();
  await later;
  assert.equal(await count(db), 2);
});

test("a write elsewhere waits for the transaction", async (t) => {
  const db = await withTable(t);
  // As another request of a server is: not in the context of the transaction's function.
  const elsewhere = new AsyncResource("request");
  let write;
  await db.transaction(async (tx) => {
    await tx.execute("INSERT INTO t VALUES (1)");
    write = elsewhere.runInAsyncScope(() => db.execute("INSERT INTO t VALUES (2)"));
    await until(() => db.stats().writesWaiting > 0);
    await tx.execute("INSERT INTO t VALUES (3)");
  });
  await write;
  assert.deepEqual(await db.query("SELECT a FROM t ORDER BY rowid"), [{ a: 1 }, { a: 3 }, { a: 2 }]);
});

test("a deadline ends the wait for the writer, and nothing is begun", async (t) => {
  const db = await withTable(t);
  let release;
  const held = db.transaction(() => new Promise((resolve) => (release = resolve)));
  await until(() => release !== undefined);
  await assert.rejects(db.execute("INSERT INTO t VALUES (1)", [], { timeout: 20 }), { kind: "timeout", applied: "no" });
  const body = () => assert.fail("the function must not run");
  await assert.rejects(db.transaction(body, { timeout: 20 }), { kind: "timeout" });
  release();
  await held;
  assert.equal(await count(db), 0);
});

test("an idle transaction is rolled back, and says so", async (t) => {
  const db = await withTable(t, { tuning: { transactionIdle: 20 } });
  await assert.rejects(
    db.transaction(async (tx) => {
      await tx.execute("INSERT INTO t VALUES (1)");
      await until(() => !tx.inTransaction);
      await tx.execute("INSERT INTO t VALUES (2)");
    }),
    { kind: "expired", code: "FLATWATER_TRANSACTION_IDLE", retryable: false, message: /was not used for 20ms/ },
  );
  assert.equal(await count(db), 0);
  await db.execute("INSERT INTO t VALUES (3)");
});

test("a snapshot reads at one point in time", async (t) => {
  const db = await withTable(t);
  const snapshot = await db.snapshot();
  assert.equal(await count(snapshot), 0);
  await db.execute("INSERT INTO t VALUES (1)");
  assert.equal(await count(snapshot), 0);
  await assert.rejects(snapshot.execute("INSERT INTO t VALUES (2)"), { kind: "misuse" });
  snapshot.close();
  await assert.rejects(count(snapshot), { kind: "misuse" });
  assert.equal(await count(db), 1);
});

test("a begin that is given up leaves no transaction open", async (t) => {
  const db = await withTable(t, { tuning: { transactionIdle: 3_600_000 } });
  const reason = new RangeError("given up");
  for (let turns = 0; turns < 30; turns++) {
    const controller = new AbortController();
    const write = db.execute("INSERT INTO t VALUES (1)", [], { timeout: 3_600_000 });
    const ends = db.transaction(() => {}, { signal: controller.signal }).catch((error) => assert.equal(error, reason));
    let left = turns % 4;
    await until(() => left-- === 0);
    controller.abort(reason);
    await write;
    await ends;
    // It would wait for a transaction that nobody has.
    await db.execute("INSERT INTO t VALUES (2)");
  }
});

test("a write inside of another database's transaction in its own is refused at once", async (t) => {
  const [one, other] = [await withTable(t), await withTable(t)];
  await one.transaction(() =>
    other.transaction(async (tx) => {
      await assert.rejects(one.execute("INSERT INTO t VALUES (1)"), { message: /inside its own transaction/ });
      await assert.rejects(other.execute("INSERT INTO t VALUES (1)"), { message: /inside its own transaction/ });
      await tx.execute("INSERT INTO t VALUES (2)");
    }),
  );
  assert.deepEqual([await count(one), await count(other)], [0, 1]);
});
