// Memory does not grow with the number of calls, whatever becomes of them. FLATWATER_LEAK_CALLS=100000 makes so many of each kind.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ENDLESS, folder, run } from "../support.mjs";

const ROUNDS = 5;
const ALL = Number(process.env.FLATWATER_LEAK_CALLS ?? 2_400);
/** So many calls of each kind in each round. The first round is not measured. */
const CALLS = Math.ceil(ALL / (ROUNDS + 1));
/** What seems to grow is measured again: memory that is kept for later calls grows once, a leak always. */
const TRIES = 4;
/** So many KiB may be more after a round: in the heap of JavaScript and what it refers to, and of the native module. */
const MOST = [48, 16];

/** What is measured together: bodies of functions of `db`, and of the number of the call. */
const KINDS = {
  results: {
    "an insert": `await db.execute("INSERT INTO t (a) VALUES (?)", [at]); if (at % 500 === 0) await db.execute("DELETE FROM t");`,
    "rows as objects": `await db.query("SELECT x, 'text ' || x AS y, zeroblob(9) AS z FROM ten");`,
    "rows as arrays, with bigints": `await db.query("SELECT x, 9007199254740993 FROM ten", [], { rows: "array", integers: "auto" });`,
    "one row by name": `await db.queryOne("SELECT :a AS a, :b AS b", { a: at, b: "text" });`,
    "a class": `await db.query("SELECT x FROM ten", [], { as: class {} });`,
    JSON: `await db.queryJson("SELECT x FROM ten");`,
  },
  writes: {
    "many rows of parameters": `await db.executeMany("UPDATE ten SET y = ? WHERE x = ?", [[at, 1], [at, 2], [at, 3]]);`,
    "a batch with rows": `await db.batch([["UPDATE ten SET y = ? RETURNING x, y", [at]], "SELECT x FROM ten"]);`,
    "a transaction": `await db.transaction(async (tx) => { await tx.execute("UPDATE ten SET y = 1"); await tx.transaction(() => {}); });`,
    "a transaction that throws": `await db.transaction(async (tx) => { await tx.execute("UPDATE ten SET y = 1"); throw 1; }).catch(() => {});`,
  },
  parts: {
    "a stream": `for await (const _ of db.stream("SELECT x FROM ten"));`,
    "a stream that is left": `for await (const _ of db.stream("SELECT x FROM ten")) break;`,
    "JSON as a stream": `await new Response(db.streamJson("SELECT x FROM ten")).text();`,
    "a snapshot": `const snapshot = await db.snapshot(); await snapshot.query("SELECT x FROM ten"); snapshot.close();`,
    "a live query": `const live = db.live("SELECT x, y FROM ten"); await live.next(); await live.return();`,
    "a change": `await db.execute("UPDATE ten SET y = ? WHERE x = 3", ["change " + at]); await changes.next();`,
  },
  others: {
    "a prepared statement": `await (await db.prepare("SELECT x FROM ten WHERE x > ?")).pluck().all(3);`,
    "a large value in parts": `const blob = await db.openBlob("b", "v", 1); await blob.read(9); blob.close();`,
  },
  errors: {
    "a constraint that fails": `await db.execute("INSERT INTO ten (x) VALUES (?)", [1]).catch(() => {});`,
    "a syntax error": `await db.query("SELEC").catch(() => {});`,
    "a value that is refused": `await db.query("SELECT ?", [undefined]).catch(() => {}); await db.executeMany("SELECT ?", [[NaN]]).catch(() => {});`,
    "an option that is refused": `await db.query("SELECT 1", [], { timout: 1 }).catch(() => {});`,
    "a row that is refused": `await db.query("SELECT x, 9007199254740993 AS big FROM ten").catch(() => {});`,
  },
  "calls that are given up": {
    "a call whose signal was aborted": `await db.query("SELECT 1", [], { signal: AbortSignal.abort() }).catch(() => {});`,
    "a query that is given up": `const controller = new AbortController(); const call = db.query("${ENDLESS}", [], { signal: controller.signal }); controller.abort(); await call.catch(() => {});`,
    "a write that is given up": `const controller = new AbortController(); const call = db.execute("UPDATE ten SET y = (${ENDLESS})", [], { signal: controller.signal }); controller.abort(); await call.catch(() => {});`,
    "a deadline": `await db.query("SELECT x FROM ten", [], { timeout: 0 }).catch(() => {});`,
  },
  "calls side by side": {
    "a call that is traced": `channel.subscribe(subscriber); await db.query("SELECT x FROM ten"); channel.unsubscribe(subscriber);`,
    "objects that are dropped": `db.batches("SELECT x FROM ten"); db.live("SELECT x FROM ten");`,
    "calls side by side": `await Promise.all([db.execute("UPDATE ten SET y = 2"), db.query("SELECT x FROM ten"), db.queryValue("SELECT 1")]);`,
  },
  texts: {
    "texts that differ": `await db.query(\`SELECT \${at} AS n\${at}\`);`,
  },
};
/** Those that take longer. After 256 statements what is known of their columns is let go of. */
const RARE = { databases: `const other = await open(":memory:"); await other.query("SELECT 1"); await other.close();` };

/** A number of calls, and a multiple of `of` unless there are fewer. */
const wholly = (calls, of) => (calls < of ? Math.ceil(calls) : Math.round(calls / of) * of);

test("memory does not grow with calls of any kind", async (t) => {
  const shown = (bodies) => bodies.map((body) => `async (at) => { ${body} }`).join(", ");
  const kinds = Object.entries(KINDS).map(([name, bodies]) => [name, shown(Object.values(bodies)), CALLS]);
  kinds.push(...Object.entries(RARE).map(([name, body]) => [name, shown([body]), wholly(CALLS / 20, 256)]));
  // After 1024 texts what was made for them is let go of.
  const all = kinds.map(
    ([name, calls, count]) =>
      `[${JSON.stringify(name)}, [${calls}], ${name === "texts" ? wholly(Math.max(1024, count), 1024) : count}]`,
  );
  const { code, output, errors } = await run(
    `
    import { createRequire } from "node:module";
    const { native } = createRequire(${JSON.stringify(import.meta.url)})("../../dist/native/addon.js");
    import { tracingChannel } from "node:diagnostics_channel";
    const channel = tracingChannel("flatwater.statement");
    const subscriber = { asyncEnd() {} };
    const db = await open(${JSON.stringify(`${folder(t)}/a.db`)});
    await db.executeScript(\`CREATE TABLE t (a); CREATE TABLE ten (x INTEGER PRIMARY KEY, y);
      INSERT INTO ten (x) VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10);
      CREATE TABLE b (v); INSERT INTO b VALUES (zeroblob(100))\`);
    const changes = db.live("SELECT x, y FROM ten").changes();
    await changes.next();
    // What is dropped is let go of by the collector, and after it by a task.
    const used = async () => {
      for (let turn = 0; turn < 3; turn++) {
        gc();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      const { heapUsed, external } = process.memoryUsage();
      return [heapUsed + external, native.allocated() ?? 0];
    };
    const measured = async (calls, count) => {
      const rounds = [];
      let before;
      for (let round = 0, at = 0; round <= ${ROUNDS}; round++) {
        for (const end = at + count; at < end; at++) {
          for (const call of calls) await call(at);
        }
        const now = await used();
        // The first one fills what is kept for later calls.
        if (round > 0) rounds.push(now.map((bytes, of) => (bytes - before[of]) / 1024));
        before = now;
      }
      // That of the middle: in one round memory is kept for later calls, in another it is given back.
      return [0, 1].map((of) => rounds.map((round) => round[of]).sort((a, b) => a - b)[${ROUNDS >> 1}]);
    };
    const grown = {};
    for (const [name, calls, count] of [${all.join(",\n")}]) {
      for (let tries = 0; tries < ${TRIES}; tries++) {
        grown[name] = await measured(calls, count);
        if (grown[name].every((size, of) => size <= ${JSON.stringify(MOST)}[of])) break;
      }
    }
    await changes.return();
    await db.close();
    console.log(JSON.stringify(grown));`,
    { flags: ["--expose-gc"], timeout: 900_000 + ALL * 60 },
  );
  assert.equal(code, 0, errors);
  const grown = JSON.parse(output);
  assert.equal(Object.keys(grown).length, kinds.length);
  if (process.env.FLATWATER_LEAK_CALLS) console.log(grown);
  for (const [kind, [heap, memory]] of Object.entries(grown)) {
    assert.ok(
      heap <= MOST[0] && memory <= MOST[1],
      `${kind}: each round ${heap} KiB in the heap, ${memory} KiB of the native module`,
    );
  }
});
