// Processes and worker threads that end, in every state.
import assert from "node:assert/strict";
import { test } from "node:test";
import { existsSync } from "node:fs";
import { open } from "../../dist/index.mjs";
import { ENDLESS, folder, numbers, run } from "../support.mjs";

const path = (t) => `${folder(t)}/a.db`;

test("process.exit loses no acknowledged write, and leaves no WAL", async (t) => {
  const file = path(t);
  const { code, output, errors } = await run(`
    const db = await open(${JSON.stringify(file)});
    await db.execute("CREATE TABLE t (a)");
    let done = 0;
    for (let at = 0; at < 2000; at++) db.execute("INSERT INTO t VALUES (1)").then(() => done++);
    setImmediate(() => { console.log(done); process.exit(0); });`);
  assert.equal(code, 0, errors);
  assert.equal(existsSync(`${file}-wal`), false);
  const db = await open(file);
  assert.ok((await db.queryValue("SELECT count(*) FROM t")) >= Number(output));
  await db.close();
});

const STATES = {
  "a write runs": `db.execute("INSERT INTO t ${ENDLESS.replace("count(*)", "x")}").catch(() => {});`,
  "a query runs": `db.query("${ENDLESS}").catch(() => {});`,
  "a transaction is open": `db.transaction(() => new Promise(() => {})).catch(() => {});`,
  "a stream is half read": `await db.stream("${ENDLESS.replace("count(*)", "x")}").next();`,
  "a live query waits": `const live = db.live("SELECT a FROM t"); await live.next(); live.next();`,
  "a snapshot is open": `await db.snapshot();`,
  "rows are being taken": `db.executeMany("INSERT INTO t VALUES (?)", Array.from({ length: 300000 }, () => [1])).catch(() => {});`,
  "rows are being made": `db.query("${numbers(1_000_000)} SELECT x, 'text ' || x AS y FROM c").catch(() => {});`,
  "rows of a batch are being made": `await db.executeScript("CREATE TABLE IF NOT EXISTS u (id INTEGER PRIMARY KEY, a)");
    await db.execute("INSERT OR IGNORE INTO u ${numbers(50_000)} SELECT x, x FROM c");
    db.batch(["UPDATE u SET a = a + 1 RETURNING a", "UPDATE u SET a = a + 1 RETURNING a"]).catch(() => {});`,
  "a change is being made": `await db.executeScript("CREATE TABLE IF NOT EXISTS u (id INTEGER PRIMARY KEY, a)");
    await db.execute("INSERT OR IGNORE INTO u ${numbers(50_000)} SELECT x, x FROM c");
    const changes = db.live("SELECT id, a FROM u").changes(); await changes.next();
    await db.execute("UPDATE u SET a = a + 1"); changes.next();`,
  "calls are traced": `const { tracingChannel } = await import("node:diagnostics_channel");
    tracingChannel("flatwater.statement").subscribe({ asyncEnd() {}, error() {} });
    db.query("${ENDLESS}").catch(() => {}); db.stream("${ENDLESS}").next();`,
  "many statements run": `db.executeMany("INSERT INTO t SELECT x + ? FROM (${ENDLESS.replace("count(*)", "x")})", [[1], [2]]).catch(() => {});`,
  "JSON is being written": `db.queryJson("${numbers(1_000_000)} SELECT x, 'text ' || x AS y FROM c").catch(() => {});`,
  "a file is copied": `await db.executeScript("CREATE TABLE IF NOT EXISTS other (a); INSERT INTO other VALUES (zeroblob(20000000))");
    for (let at = 0; at < 3; at++) db.backup("FILE." + process.pid + "." + at + "." + Math.random()).catch(() => {});
    db.serialize().catch(() => {}); db.vacuum().catch(() => {}); db.checkpoint("full").catch(() => {});`,
  "migrations are applied": `db.migrate([["1", "CREATE TABLE u AS ${ENDLESS}"]]).catch(() => {});`,
  "a large value is open": `await db.executeScript("CREATE TABLE IF NOT EXISTS b (v); INSERT OR IGNORE INTO b (rowid, v) VALUES (1, zeroblob(9000000))");
    const blob = await db.openBlob("b", "v", 1); await blob.read(10); blob.read().catch(() => {}); blob.write(new Uint8Array(9)).catch(() => {});`,
  "calls wait for the writer": `await db.execute("CREATE TABLE IF NOT EXISTS other (a)");
    db.transaction(() => new Promise(() => {})).catch(() => {});
    for (let at = 0; at < 100; at++) { db.execute("INSERT INTO other VALUES (1)").catch(() => {}); db.transaction(() => {}).catch(() => {}); }`,
  "it closes": `db.execute("INSERT INTO t ${ENDLESS.replace("count(*)", "x")}").catch(() => {}); db.close().catch(() => {});`,
  "calls are given up": `for (let at = 0; at < 20; at++) {
      const controller = new AbortController();
      db.query("${ENDLESS}", [], { signal: controller.signal }).catch(() => {});
      db.execute("INSERT INTO t ${ENDLESS.replace("count(*)", "x")}", [], { signal: controller.signal }).catch(() => {});
      controller.abort();
    }`,
  "an opening waits": `open(${JSON.stringify("FILE")} + "2", { migrations: [["1", "CREATE TABLE u AS ${ENDLESS}"]] }).catch(() => {});`,
};

for (const [state, source] of Object.entries(STATES)) {
  const program = (file) => `
    const db = await open(${JSON.stringify(file)}, { tuning: { closeWait: 200 } });
    await db.execute("CREATE TABLE IF NOT EXISTS t (a)");
    ${source.replaceAll("FILE", file)}
    await new Promise((resolve) => setTimeout(resolve, 10));`;

  test(`a process may exit while ${state}`, async (t) => {
    const file = path(t);
    const { code, signal, errors } = await run(`${program(file)}\nprocess.exit(3);`);
    assert.deepEqual([code, signal], [3, null], errors);
    const db = await open(file);
    assert.equal(await db.queryValue("PRAGMA integrity_check"), "ok");
    await db.execute("INSERT INTO t VALUES (1)");
    await db.close();
  });

  test(`a worker thread may be terminated while ${state}, and another goes on with the file`, async (t) => {
    const file = path(t);
    const entry = new URL("../../dist/index.mjs", import.meta.url).href;
    const worker = `
      import { parentPort } from "node:worker_threads";
      import { open } from ${JSON.stringify(entry)};
      ${program(file)}
      parentPort.postMessage("there");
      setInterval(() => {}, 1000);`;
    const { code, output, errors } = await run(`
      import { Worker } from "node:worker_threads";
      const own = await open(${JSON.stringify(file)}, { tuning: { closeWait: 200 } });
      await own.execute("CREATE TABLE IF NOT EXISTS t (a)");
      for (let at = 0; at < 3; at++) {
        const url = new URL("data:text/javascript," + encodeURIComponent(${JSON.stringify(worker)}));
        const worker = new Worker(url);
        await new Promise((resolve, reject) => { worker.once("message", resolve); worker.once("error", reject); });
        await worker.terminate();
        await own.execute("INSERT INTO t VALUES (1)");
      }
      console.log(await own.queryValue("SELECT count(*) FROM t"));
      await own.close();`);
    assert.deepEqual([code, output], [0, "3\n"], errors);
  });
}

test("an error in a transaction that nobody awaits ends the program, and undoes it", async (t) => {
  const file = path(t);
  const { code, errors } = await run(`
    const db = await open(${JSON.stringify(file)});
    await db.execute("CREATE TABLE t (a)");
    db.transaction(async (tx) => { await tx.execute("INSERT INTO t VALUES (1)"); throw new Error("from the program"); });`);
  assert.equal(code, 1);
  assert.match(errors, /from the program/);
  const db = await open(file);
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), 0);
  await db.close();
});

test("what is dropped without an end is let go of", async (t) => {
  const { code, output, errors } = await run(
    `
    import { readdirSync } from "node:fs";
    const files = () => readdirSync("/proc/self/fd").length;
    const before = files();
    const use = async (at) => {
      const db = await open(${JSON.stringify(path(t))} + at);
      await db.execute("CREATE TABLE IF NOT EXISTS t (a)");
      db.live("SELECT a FROM t");
      db.batches("SELECT a FROM t");
      (await db.snapshot());
      db.transaction(() => new Promise(() => {}));
      await db.queryValue("SELECT 1");
    };
    for (let at = 0; at < 20; at++) await use(at);
    while (files() > before + 10) {
      gc();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    console.log("let go of");`,
    { flags: ["--expose-gc"] },
  );
  assert.deepEqual([code, output], [0, "let go of\n"], errors);
});

test("a package that is loaded anew shares the loop with the one before", async (t) => {
  const { code, output, errors } = await run(`
    import { createRequire } from "node:module";
    const require = createRequire(${JSON.stringify(new URL("../../dist/", import.meta.url).href)});
    const load = () => require("./index.js");
    const one = await load().open(":memory:", { tuning: { inline: false } });
    const before = one.queryValue("SELECT 1");
    for (const name of Object.keys(require.cache)) if (!name.endsWith(".node")) delete require.cache[name];
    const other = await load().open(${JSON.stringify(path(t))});
    console.log(await before, await one.queryValue("SELECT 2"), await other.queryValue("SELECT 3"));
    await other.close();
    await one.close();`);
  assert.deepEqual([code, output], [0, "1 2 3\n"], errors);
});

test("timers that a test runner replaces do not stop the package", async () => {
  const { code, output, errors } = await run(`
    const db = await open(":memory:");
    const { setImmediate } = globalThis;
    globalThis.setImmediate = () => {};
    performance.now = () => 0;
    for (let at = 0; at < 20000; at++) await db.queryValue("SELECT 1");
    globalThis.setImmediate = setImmediate;
    console.log("on");
    await db.close();`);
  assert.deepEqual([code, output], [0, "on\n"], errors);
});

test("a worker thread may be terminated after any of its calls, and what was acknowledged is there", async (t) => {
  const file = path(t);
  const entry = new URL("../../dist/index.mjs", import.meta.url).href;
  // One call of each kind after the other, and others beside them. The number of the last one that was made is told before it is
  // awaited, and how many inserts were acknowledged.
  const worker = `
    import { parentPort, workerData } from "node:worker_threads";
    import { open } from ${JSON.stringify(entry)};
    let calls = 0;
    let inserts = 0;
    const made = (call) => {
      const end = new Int32Array(workerData.shared);
      if (++calls === workerData.last) { Atomics.store(end, 0, inserts); parentPort.postMessage("there"); }
      return call;
    };
    const db = await made(open(${JSON.stringify(file)}, { tuning: { closeWait: 200 } }));
    const beside = setInterval(() => { db.queryValue("SELECT count(*) FROM t").catch(() => {}); }, 1);
    for (;;) {
      await made(db.execute("INSERT INTO t VALUES (?)", [workerData.last])); inserts++;
      await made(db.query("${numbers(3_000)} SELECT x, 'text' || x AS y FROM c"));
      await made(db.executeMany("INSERT INTO other VALUES (?)", [[1], [2], [3]]));
      await made(db.batch(["INSERT INTO other VALUES (1)", "SELECT count(*) FROM other"]));
      await made(db.transaction(async (tx) => { await made(tx.execute("INSERT INTO other VALUES (1)")); await made(tx.transaction(() => {})); }));
      const snapshot = await made(db.snapshot());
      await made(snapshot.queryValue("SELECT 1")); snapshot.close();
      for await (const _ of db.stream("${numbers(3_000)} SELECT x FROM c")) { await made(); break; }
      const live = db.live("SELECT count(*) AS n FROM t"); await made(live.next()); made(live.next()); await live.return();
      await made(db.queryJson("SELECT a FROM t"));
      await made(db.checkpoint());
      const other = await made(open(":memory:")); await made(other.query("SELECT 1")); await made(other.close());
    }`;
  const { code, signal, output, errors } = await run(`
    import { Worker } from "node:worker_threads";
    const own = await open(${JSON.stringify(file)}, { tuning: { closeWait: 200 } });
    await own.executeScript("CREATE TABLE t (a); CREATE TABLE other (a)");
    const url = new URL("data:text/javascript," + encodeURIComponent(${JSON.stringify(worker)}));
    for (let last = 1; last <= 40; last++) {
      const shared = new SharedArrayBuffer(4);
      const worker = new Worker(url, { workerData: { last, shared } });
      await new Promise((resolve, reject) => { worker.once("message", resolve); worker.once("error", reject); });
      await worker.terminate();
      const inserts = await own.queryValue("SELECT count(*) FROM t WHERE a = ?", [last]);
      const acknowledged = new Int32Array(shared)[0];
      if (inserts < acknowledged) throw new Error(last + ": " + inserts + " of " + acknowledged);
    }
    console.log(await own.queryValue("PRAGMA integrity_check"));
    await own.close();`);
  assert.deepEqual([code, signal, output], [0, null, "ok\n"], errors);
});
