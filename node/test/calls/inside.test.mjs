// A call that is made in a transaction's function and would wait for that transaction is refused, wherever the database is.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "../../dist/index.mjs";
import { folder } from "../support.mjs";

const PLACES = {
  "a file": { path: "wal.db" },
  "a file with its own journal": { path: "keep.db", journal: "keep" },
  memory: {},
};

/** Each is made on the database, or what belongs to it, in the function. */
const CALLS = {
  execute: ({ db }) => db.execute("INSERT INTO t VALUES (2)"),
  executeMany: ({ db }) => db.executeMany("INSERT INTO t VALUES (?)", [[2]]),
  "executeMany of many": ({ db }) => db.executeMany("INSERT INTO t VALUES (?)", Array(5_000).fill([2])),
  batch: ({ db }) => db.batch(["INSERT INTO t VALUES (2)"]),
  executeScript: ({ db }) => db.executeScript("INSERT INTO t VALUES (2)"),
  query: ({ db }) => db.query("SELECT * FROM t"),
  queryJson: ({ db }) => db.queryJson("SELECT * FROM t"),
  streamJson: ({ db }) => new Response(db.streamJson("SELECT * FROM t")).text(),
  batches: ({ db }) => db.batches("SELECT * FROM t").next(),
  stream: ({ db }) => db.stream("SELECT * FROM t").next(),
  openBlob: async ({ db }) => (await db.openBlob("large", "b", 1)).close(),
  "reading a large value": ({ blob }) => blob.read(1),
  "writing a large value": ({ blob }) => blob.write(new Uint8Array(1)),
  live: ({ db }) => db.live("SELECT * FROM t").next(),
  "live, made before": ({ live }) => live.next(),
  liveGroup: ({ db }) => db.liveGroup(["SELECT * FROM t"]).next(),
  changes: ({ db }) => db.live("SELECT rowid AS id, * FROM t").changes().next(),
  "changes, made before": ({ changes }) => changes.next(),
  transaction: ({ db }) => db.transaction(() => 1),
  snapshot: async ({ db }) => (await db.snapshot()).close(),
  prepare: ({ db }) => db.prepare("SELECT a + 1 FROM t"),
  columns: ({ select }) => select.columns(),
  "run of a statement": ({ insert }) => insert.run(),
  "all of a statement": ({ select }) => select.all(),
  "iterate of a statement": ({ select }) => select.iterate().next(),
  migrate: ({ db }) => db.migrate([["1", "CREATE TABLE u (a)"]]),
  backup: ({ db, to }) => db.backup(to),
  vacuum: ({ db }) => db.vacuum(),
  vacuumInto: ({ db, to }) => db.vacuumInto(to),
  incrementalVacuum: ({ db }) => db.incrementalVacuum(3),
  serialize: ({ db }) => db.serialize(),
  checkpoint: ({ db }) => db.checkpoint("truncate"),
  "a passive checkpoint": ({ db }) => db.checkpoint(),
  close: ({ db }) => db.close(),
  "the end of a block": ({ db }) => db[Symbol.asyncDispose](),
};

/** Those that are refused wherever it is. */
const WRITES = /^(execute|batch$|writing|transaction|run of|migrate|vacuum$|incrementalVacuum|close|the end)/;

for (const [place, { path, ...options }] of Object.entries(PLACES)) {
  for (const [name, call] of Object.entries(CALLS)) {
    test(`${name} in a transaction's function, in ${place}: it is answered or refused, and the transaction commits`, async (t) => {
      const dir = folder(t);
      const db = await open(path === undefined ? ":memory:" : `${dir}/${path}`, options);
      t.after(() => db.close());
      await db.executeScript("CREATE TABLE t (a); CREATE TABLE large (b); INSERT INTO large VALUES (zeroblob(100))");
      const given = {
        db,
        to: `${dir}/to.db`,
        blob: await db.openBlob("large", "b", 1),
        insert: await db.prepare("INSERT INTO t VALUES (3)"),
        select: await db.prepare("SELECT a FROM t"),
        live: db.live("SELECT * FROM t"),
        changes: db.live("SELECT rowid AS id, a FROM t").changes(),
      };
      await db.transaction(async (tx) => {
        await tx.execute("INSERT INTO t VALUES (1)");
        const error = await call(given).then(
          () => undefined,
          (error) => error,
        );
        if (error !== undefined || WRITES.test(name)) {
          assert.equal(error?.kind, "misuse", error);
          assert.match(error.message, /which would deadlock|would wait for the end of the transaction/);
        }
      });
      assert.deepEqual(await db.queryValues("SELECT a FROM t"), [1]);
      await given.live.return();
      await given.changes.return();
    });
  }
}
