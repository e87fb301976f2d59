// The garbage collector may run at any moment: between any two steps of a call, and in any code of the program that a call runs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { folder, numbers, run } from "../support.mjs";

/** Collects, and lets tasks run that follow from it, after each microtask for a while. */
const SETUP = (file) => `
  import { tracingChannel } from "node:diagnostics_channel";
  import assert from "node:assert/strict";
  const db = await open(${JSON.stringify(file)});
  await db.executeScript("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b); CREATE TABLE l (b); INSERT INTO l VALUES (zeroblob(100000))");
  /** Awaits a call, with a collection before each turn of the loop in which it waits. */
  const awaited = async (call) => {
    gc();
    let isOver = false;
    const over = () => (isOver = true);
    call.then(over, over);
    while (!isOver) {
      gc();
      await new Promise((resolve) => setImmediate(resolve));
    }
    gc();
    return call;
  };
  /** A row whose values collect when they are read. */
  const row = (...values) => values.reduce((all, value, at) =>
    Object.defineProperty(all, at, { enumerable: true, configurable: true, get() { gc(); return value; } }), new Array(values.length));
`;

const PROGRAMS = {
  "values are read": `
    for (const value of [null, 1, 1.5, 7n, "text", "ä", "x".repeat(20000), new Uint8Array(2000).fill(7), new Date(0)]) {
      const expected = await db.queryOne("SELECT ? AS a, typeof(?) AS b", [value, value]);
      assert.deepEqual(await awaited(db.queryOne("SELECT ? AS a, typeof(?) AS b", row(value, value))), expected);
      const named = { get a() { gc(); return value; }, get b() { gc(); return value; } };
      assert.deepEqual(await awaited(db.queryOne("SELECT :a AS a, typeof(:b) AS b", named)), expected);
      assert.equal(await awaited(db.executeMany("INSERT INTO t (a, b) VALUES (?, ?)", [row(value, 1), [1, value], row(2, value)])), 3);
      const results = await awaited(db.batch([["SELECT ? AS a", row(value)], ["INSERT INTO t (a) VALUES (?)", row(value)]]));
      assert.deepEqual(results[0].rows[0].a, expected.a);
    }
    await awaited(db.executeMany("INSERT INTO t (a) VALUES (?)", (function* () { for (let at = 0; at < 20; at++) { gc(); yield [at]; } })()));
    await awaited(db.executeMany("INSERT INTO t (a) VALUES (?)", (async function* () { for (let at = 0; at < 20; at++) { gc(); yield [at]; } })()));
    assert.equal(await db.queryValue("SELECT count(*) FROM t"), 9 * 4 + 40);`,
  "results are made": `
    const many = "${numbers(3_000)} SELECT x, 'text ' || x AS y, zeroblob(x % 7) AS z FROM c";
    const all = await db.query(many);
    assert.deepEqual(await awaited(db.query(many)), all);
    let made = 0;
    await awaited(db.query(many, [], { as: { parse(row) { if (made++ % 100 === 0) gc(); return row; } } }));
    assert.equal(made, 3000);
    assert.deepEqual(JSON.parse(await awaited(db.queryJson("SELECT 'ä' AS a"))), [{ a: "ä" }]);
    let at = 0;
    for await (const one of db.stream(many)) { if (at % 100 === 0) gc(); assert.deepEqual(one, all[at++]); }
    assert.equal(at, 3000);
    const kept = [];
    for await (const batch of db.batches(many)) { gc(); kept.push(...batch); }
    gc();
    assert.deepEqual(kept, all);`,
  "transactions nest, and are undone": `
    for (let at = 0; at < 10; at++) {
      await awaited(db.transaction(async (tx) => {
        gc();
        await awaited(tx.execute("INSERT INTO t (a) VALUES (1)"));
        await awaited(tx.transaction(async (inner) => { await awaited(inner.execute("INSERT INTO t (a) VALUES (2)")); throw new RangeError("undone"); }).catch(() => gc()));
        gc();
      }));
    }
    assert.equal(await db.queryValue("SELECT count(*) FROM t"), 10);`,
  "results are delivered again and again": `
    const live = db.live("SELECT a FROM t");
    const changes = db.live("SELECT id, a FROM t").changes();
    assert.deepEqual((await awaited(live.next())).value, []);
    await awaited(changes.next());
    for (let at = 1; at <= 20; at++) {
      await awaited(db.execute("INSERT INTO t (a) VALUES (?)", ["x".repeat(at)]));
      let rows;
      do rows = (await awaited(live.next())).value; while (rows.length < at);
      assert.equal(rows.at(-1).a.length, at);
      assert.ok((await awaited(changes.next())).value.inserted.length > 0);
    }
    await live.return();
    await changes.return();`,
  "calls fail and are given up": `
    for (let at = 0; at < 20; at++) {
      await assert.rejects(awaited(db.query("SELEC")), { kind: "sql" });
      await assert.rejects(awaited(db.execute("INSERT INTO t (a) VALUES (?)", row(undefined))), { kind: "misuse" });
      const controller = new AbortController();
      const call = db.query("${numbers(1_000_000_000)} SELECT count(*) FROM c", [], { signal: controller.signal });
      gc();
      controller.abort();
      await assert.rejects(awaited(call), { name: "AbortError" });
    }`,
  "objects are dropped in every state": `
    const { signal } = new AbortController();
    for (let at = 0; at < 30; at++) {
      db.live("SELECT a FROM t", [], { signal });
      db.live("SELECT a FROM t").next();
      db.batches("SELECT a FROM t");
      db.stream("${numbers(5_000)} SELECT x FROM c").next();
      db.stream("${numbers(5_000)} SELECT x FROM c").readable();
      db.snapshot();
      db.prepare("SELECT 1").then((statement) => { statement.iterate().next(); });
      db.transaction(() => new Promise(() => {}), { timeout: 1 }).catch(() => {});
      db.openBlob("l", "b", 1).then((blob) => { blob.read(10); });
      db.query("${numbers(5_000)} SELECT x FROM c");
      open(":memory:").then((other) => { other.query("SELECT 1"); });
      await awaited(db.queryValue("SELECT 1"));
    }
    // What was dropped is let go of: the writer is free, and so are the readers.
    while (db.stats().readersHeld > 0) { gc(); await new Promise((resolve) => setTimeout(resolve, 1)); }
    assert.equal((await awaited(db.execute("INSERT INTO t (a) VALUES (1)"))).changes, 1);`,
  "calls are traced": `
    const events = [];
    const subscriber = Object.fromEntries(["start", "end", "asyncStart", "asyncEnd", "error"].map((name) => [name, (context) => { gc(); events.push([name, context.operation]); }]));
    const channel = tracingChannel("flatwater.statement");
    channel.subscribe(subscriber);
    await awaited(db.query("SELECT 1"));
    await awaited(db.query("SELEC").catch(() => {}));
    for await (const _ of db.stream("SELECT 1")) gc();
    channel.unsubscribe(subscriber);
    assert.ok(events.length >= 12);`,
};

for (const [name, program] of Object.entries(PROGRAMS)) {
  test(`the collector may run whenever ${name}`, async (t) => {
    const source = `${SETUP(`${folder(t)}/a.db`)}\n${program}\nawait db.close();\ngc();\nconsole.log("done");`;
    const { code, signal, output, errors } = await run(source, { flags: ["--expose-gc"] });
    assert.deepEqual([code, signal, output], [0, null, "done\n"], errors);
  });
}
