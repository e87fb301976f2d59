// Ends in the middle of functions on a loop: of statements, of databases, of the thread, and of the process.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { open } from "../../dist/index.mjs";
import { database, ENDLESS, folder, numbers, run } from "../support.mjs";

const entry = new URL("../../dist/index.mjs", import.meta.url).href;
const CALLS = ENDLESS.replace("count(*)", "sum(f(x))");
const f = (code) => ({ functionsOnLoop: (db) => db.function("f", code) });

/** A thread that has opened the file with a function `held`, which returns when it is told to, and one that does not wait. */
async function holding(t, path) {
  const flags = new Int32Array(new SharedArrayBuffer(8));
  const source = `
    import { open } from ${JSON.stringify(entry)};
    import { parentPort, workerData } from "node:worker_threads";
    const { path, flags } = workerData;
    const db = await open(path, {
      functionsOnLoop(define) {
        define.function("plain", (value) => value);
        define.function("held", () => {
          Atomics.store(flags, 0, 1);
          Atomics.notify(flags, 0);
          Atomics.wait(flags, 1, 0);
          return 1;
        });
        define.collation("held_order", () => {
          Atomics.store(flags, 0, 1);
          Atomics.notify(flags, 0);
          Atomics.wait(flags, 1, 0);
          return 0;
        });
      },
    });
    parentPort.on("message", async (sql) => {
      let settled;
      do {
        settled = await db.run(sql, [], { timeout: 50 }).then(() => "done", (error) => error.kind + " " + error.applied);
      } while (Atomics.load(flags, 0) === 0);
      parentPort.postMessage(settled);
    });
    parentPort.postMessage("opened");`;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`), {
    workerData: { path, flags },
  });
  const heard = () => new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
  assert.equal(await heard(), "opened");
  const release = () => {
    Atomics.store(flags, 1, 1);
    Atomics.notify(flags, 1);
  };
  t.after(async () => {
    release();
    await worker.terminate();
  });
  /** Resolves when the function has begun. */
  const begun = () => Atomics.waitAsync(flags, 0, 0).value;
  return { worker, heard, begun, release };
}

for (const held of ["held()", "'a' < 'b' COLLATE held_order"]) {
  test(`a deadline ends a statement whose function never returns, and the writer goes on: ${held}`, async (t) => {
    const path = join(folder(t), "test.db");
    const db = await open(path);
    t.after(() => db.close());
    await db.execute("CREATE TABLE t (a)");
    const { worker, heard, begun, release } = await holding(t, path);
    worker.postMessage(`INSERT INTO t SELECT ${held}`);
    await begun();
    // The loop of that thread stands still. Its statement has ended when this one gets the writer.
    await db.execute("INSERT INTO t VALUES (2)");
    assert.deepEqual(await db.queryValues("SELECT a FROM t"), [2]);
    await assert.rejects(db.query(`SELECT ${held}`, [], { timeout: 20 }), { kind: "timeout", applied: "no" });
    const abort = new AbortController();
    const aborted = db.query(`SELECT ${held}`, [], { signal: abort.signal });
    setImmediate(() => abort.abort(new Error("enough")));
    await assert.rejects(aborted, { message: "enough" });
    release();
    assert.equal(await heard(), "timeout no");
    assert.equal(await db.queryValue("SELECT plain(3)"), 3);
  });
}

test("a thread that is terminated in the middle of a function fails all that waits for its loop", async (t) => {
  const path = join(folder(t), "test.db");
  const db = await open(path);
  t.after(() => db.close());
  await db.execute("CREATE TABLE t (a)");
  const { worker, begun } = await holding(t, path);
  const held = [db.query("SELECT held()")];
  await begun();
  const waiting = [db.query("SELECT plain(1)"), db.execute("INSERT INTO t VALUES (plain(1))")];
  const settled = Promise.allSettled([...held, ...waiting]);
  await worker.terminate();
  for (const { reason } of await settled) {
    assert.match(
      reason.message,
      /^the function (held|plain) (did not return|was not called): the thread whose loop it runs on has ended -- `open`/,
    );
    assert.deepEqual([reason.kind, reason.code], ["sql", "SQLITE_ERROR"]);
  }
  await assert.rejects(db.query("SELECT plain(1)"), /has ended/);
  const again = await open(path, { functionsOnLoop: (define) => define.function("plain", (value) => value) });
  assert.equal(await db.queryValue("SELECT plain(1)"), 1);
  await again.close();
});

test("an abort and a close from inside of the function end its own statement", async (t) => {
  const abort = new AbortController();
  const db = await database(t, {
    tuning: { closeWait: 10 },
    functionsOnLoop(define) {
      define.function("f", (x) => (x === 10 ? abort.abort(new Error("enough")) : x));
      define.function("closes", (x) => void (x === 10 && closing.push(db.close())));
    },
  });
  const closing = [];
  await assert.rejects(db.query(CALLS, [], { signal: abort.signal }), { message: "enough" });
  await assert.rejects(
    db.query(CALLS.replace("f(x)", "closes(x)")),
    ({ kind }) => kind === "closed" || kind === "cancelled",
  );
  await Promise.all(closing);
  await assert.rejects(db.query("SELECT 1"), { kind: "closed" });
});

test("a close ends reads and writes that go on calling a function", async (t) => {
  const db = await open(join(folder(t), "test.db"), { tuning: { closeWait: 10 }, ...f((x) => x) });
  await db.execute("CREATE TABLE t (a)");
  const settled = Promise.allSettled([db.query(CALLS), db.execute(`INSERT INTO t ${CALLS}`)]);
  await db.close();
  assert.deepEqual(
    (await settled).map(({ status }) => status),
    ["rejected", "rejected"],
  );
});

test("the process exits in the middle of functions at once, and keeps nothing of their writes", async (t) => {
  for (const [of, end, expected] of [
    ["in the function", "process.exit(7)", 7],
    ["while a function is waited for", "setImmediate(() => process.exit(7))", 7],
    ["by an error that nothing catches", "setImmediate(() => { throw new Error('uncaught'); })", 1],
  ]) {
    const path = join(folder(t), "test.db");
    const source = `
      const db = await open(process.argv[1], { functionsOnLoop: (define) => define.function("f", (x) => {
        if (x === 50) ${end};
        return x;
      }) });
      await db.execute("CREATE TABLE t (a)");
      await db.execute(${JSON.stringify(`INSERT INTO t ${numbers(1_000_000)} SELECT f(x) FROM c`)});`;
    const { code, errors } = await run(source, { args: [path] });
    assert.equal(code, expected, `${of}: ${errors}`);
    const db = await open(path);
    assert.equal(await db.queryValue("SELECT count(*) FROM t"), 0, of);
    await db.close();
  }
});

test("a statement that calls a function keeps the process alive until it is over, and an open database does not", async () => {
  const source = `
    const db = await open(":memory:", { functionsOnLoop: (define) => define.function("f", (x) => x) });
    db.queryValue(${JSON.stringify(`SELECT sum(f(x)) FROM (${numbers(200)} SELECT x FROM c)`)}).then(console.log);`;
  const { code, output, errors } = await run(source);
  assert.deepEqual([code, output], [0, "20100\n"], errors);
});
