// The worker thread of a module: when it is there, what ends it, and what is left of calls that it does not answer.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { open } from "../../dist/index.mjs";
import { native } from "../../dist/native/addon.js";
import { database, folder, numbers, run, until } from "../support.mjs";

const functions = new URL("./defined.mjs", import.meta.url);
const entry = new URL("../../dist/index.mjs", import.meta.url).href;
/** Resolves when no thread is left that serves functions. */
const ended = () => until(() => native.serving.size === 0);

test("databases share the worker of a module, which ends with the last of them", async (t) => {
  const [one, two] = [await database(t, { functions }), await open(":memory:", { functions })];
  const thread = await one.queryValue("SELECT thread()");
  assert.equal(await two.queryValue("SELECT thread()"), thread);
  await one.close();
  assert.equal(await two.queryValue("SELECT thread()"), thread);
  assert.equal(native.serving.size, 1);
  await two.close();
  await ended();
  const again = await database(t, { functions });
  assert.notEqual(await again.queryValue("SELECT thread()"), thread);
});

test("handles of one file have its functions, until the last is closed", async (t) => {
  const path = join(folder(t), "test.db");
  const one = await open(path, { functions });
  const two = await open(path);
  await one.close();
  assert.equal(await two.queryValue("SELECT double(4)"), 8);
  const three = await open(path, { functions });
  assert.equal(await three.queryValue("SELECT double(4)"), 8);
  await Promise.all([two.close(), three.close()]);
  await ended();
});

for (const sql of ["SELECT forever()", "SELECT 'a' < 'b' COLLATE endless"]) {
  test(`a deadline and an abort end a statement in the middle of a function: ${sql}`, async (t) => {
    const db = await database(t, { functions });
    await db.execute("CREATE TABLE t (a)");
    await assert.rejects(db.query(sql, [], { timeout: 20 }), { kind: "timeout", applied: "no" });
    const write = `INSERT INTO t ${sql}`;
    await assert.rejects(db.execute(write, [], { timeout: 20 }), { kind: "timeout", applied: "no" });
    const abort = new AbortController();
    const aborted = db.query(sql, [], { signal: abort.signal });
    setImmediate(() => abort.abort(new Error("enough")));
    await assert.rejects(aborted, { message: "enough" });
    await assert.rejects(
      db.transaction(async (tx) => {
        await tx.execute("INSERT INTO t VALUES (1)");
        await tx.execute(write, [], { timeout: 20 });
      }),
      { kind: "timeout" },
    );
    // The worker is in its function still. What needs none runs, and the database closes.
    assert.equal(await db.queryValue("SELECT count(*) FROM t"), 0);
    await db.close();
    await ended();
  });
}

test("an aggregate in the middle of a statement that is ended waits for nobody", async (t) => {
  const db = await database(t, { functions });
  const sql = `SELECT sum_of(x), forever() FROM (${numbers(1000)} SELECT x FROM c)`;
  await assert.rejects(db.query(sql, [], { timeout: 20 }), { kind: "timeout" });
});

test("a close ends what waits for a function that never answers, and its worker", async (t) => {
  const db = await open(join(folder(t), "test.db"), { functions, tuning: { closeWait: 10 } });
  await db.execute("CREATE TABLE t (a)");
  const calls = [db.query("SELECT forever()"), db.execute("INSERT INTO t SELECT forever()")];
  const settled = Promise.allSettled(calls);
  await db.close();
  assert.deepEqual(
    (await settled).map(({ status }) => status),
    ["rejected", "rejected"],
  );
  await ended();
});

test("when the worker ends its calls fail, and the next `open` begins another, for all handles", async (t) => {
  const path = join(folder(t), "test.db");
  const [db, memory] = [await open(path, { functions }), await open(":memory:", { functions })];
  const message = /^the function \w+ (was not called|did not return): the worker thread of its module has ended/;
  const ofEnded = /^the function ends_worker did not return: the worker thread of its module has ended/;
  await assert.rejects(db.query("SELECT ends_worker()"), { kind: "sql", code: "SQLITE_ERROR", message: ofEnded });
  await assert.rejects(db.query("SELECT double(1)"), { message });
  await assert.rejects(memory.query("SELECT sum_of(1)"), { message });
  assert.equal(await db.queryValue("SELECT 1"), 1);
  const again = await open(path, { functions });
  for (const handle of [again, db, memory]) {
    assert.equal(await handle.queryValue("SELECT double(1)"), 2);
  }
  await Promise.all([again, db, memory].map((handle) => handle.close()));
});

test("a worker that ends in the middle of calls answers each of them", async (t) => {
  const db = await database(t, { functions, readers: 4 });
  const calls = ["double(1)", "ends_worker()", "double(2)", "sum_of(3)", "double(4)"].map((call) =>
    db.query(`SELECT ${call}`),
  );
  const settled = await Promise.allSettled(calls);
  assert.ok(settled.filter(({ status }) => status === "rejected").length >= 1);
});

test("what fails in a worker between calls is a warning of the process, and not its end", async () => {
  const source = `
    const db = await open(":memory:", { functions: new URL(${JSON.stringify(functions.href)}) });
    const warned = new Promise((resolve) => process.once("warning", resolve));
    // Nothing of a worker keeps the process alive.
    const alive = setInterval(() => {}, 1_000);
    await db.query("SELECT fails_later()");
    console.log((await warned).message);
    await db.query("SELECT double(1)").catch((error) => console.log(error.message));
    clearInterval(alive);
    await db.close();`;
  const { code, output } = await run(source);
  assert.equal(code, 0, output);
  assert.match(
    output,
    /^The worker thread of the functions in .*defined\.mjs has ended: ReferenceError.*assertNothing/,
  );
  assert.match(output, /the function double was not called: the worker thread of its module has ended/);
});

test("a worker keeps no process alive", async () => {
  const source = `const db = await open(":memory:", { functions: new URL(${JSON.stringify(functions.href)}) });
    console.log(await db.queryValue("SELECT double(21)"));`;
  for (const end of ["", "process.exit(0);", "db.query('SELECT forever()'); setImmediate(() => process.exit(0));"]) {
    const { code, output, errors } = await run(`${source}\n${end}`);
    assert.deepEqual([code, output], [0, "42\n"], errors);
  }
});

test("a write whose function runs when the process exits is finished", async (t) => {
  const path = join(folder(t), "test.db");
  const source = `const db = await open(${JSON.stringify(path)}, { functions: new URL(${JSON.stringify(functions.href)}) });
    await db.execute("CREATE TABLE t (a)");
    db.execute("INSERT INTO t ${numbers(500)} SELECT double(x) FROM c");
    setImmediate(() => process.exit(0));`;
  const { code, errors } = await run(source);
  assert.equal(code, 0, errors);
  const db = await open(path);
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), 500);
  await db.close();
});

test("threads of Node that open one file have a worker each, and outlive each other's", async (t) => {
  const path = join(folder(t), "test.db");
  const db = await open(path, { functions });
  const thread = await db.queryValue("SELECT thread()");
  const source = `
    import { open } from ${JSON.stringify(entry)};
    import { parentPort } from "node:worker_threads";
    const db = await open(${JSON.stringify(path)}, { functions: new URL(${JSON.stringify(functions.href)}) });
    parentPort.postMessage(await db.queryValue("SELECT double(2)"));
    setInterval(() => {}, 1000);`;
  const other = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`));
  assert.equal(await new Promise((resolve, reject) => other.once("message", resolve).once("error", reject)), 4);
  await other.terminate();
  assert.equal(await db.queryValue("SELECT thread()"), thread);
  await db.close();
  await ended();
});

test("a process of a cluster has a worker of its own", async (t) => {
  const path = join(folder(t), "test.db");
  const file = join(folder(t), "cluster.mjs");
  writeFileSync(
    file,
    `import cluster from "node:cluster";
    import { open } from ${JSON.stringify(entry)};
    if (cluster.isPrimary) {
      for (let at = 0; at < 2; at++) {
        cluster.fork().on("message", (sum) => console.log(sum));
      }
    } else {
      const db = await open(${JSON.stringify(path)}, { functions: new URL(${JSON.stringify(functions.href)}) });
      process.send(await db.queryValue("SELECT sum_of(double(x)) FROM (${numbers(10)} SELECT x FROM c)"), () => process.disconnect());
    }`,
  );
  const { code, output, errors } = await run(
    `await import(${JSON.stringify(pathToFileURL(file).href)})`.replace(/^/, "process.argv[1] = ''; "),
    {},
  );
  assert.equal(code, 0, errors);
  assert.equal(output, "110\n110\n");
});

test("a function may begin a call of the database, and cannot wait for it", async (t) => {
  const place = folder(t);
  const path = join(place, "test.db");
  const file = join(place, "calls.mjs");
  writeFileSync(
    file,
    `import { open } from ${JSON.stringify(entry)};
    export default async (define) => {
      const db = await open(${JSON.stringify(path)});
      define.function("noted", (what) => {
        void db.execute("INSERT INTO notes VALUES (?)", [what]);
        return what;
      });
      define.function("waits", () => db.query("SELECT 1"));
    };`,
  );
  const db = await open(path, { functions: pathToFileURL(file) });
  await db.executeScript("CREATE TABLE notes (a); CREATE TABLE t (a)");
  await db.execute("INSERT INTO t SELECT noted('a')");
  await until(async () => (await db.queryValue("SELECT count(*) FROM notes")) === 1);
  await assert.rejects(db.query("SELECT waits()"), { message: /returned a promise/ });
  await db.close();
});
