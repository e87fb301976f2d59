// The event loop has its turns, and the process lives as long as it should.
import assert from "node:assert/strict";
import { test } from "node:test";
import { database, numbers, run } from "../support.mjs";

/** Counts the turns in which timers are served. */
function timer(t) {
  const counted = { ticks: 0 };
  const interval = setInterval(() => counted.ticks++, 1);
  t.after(() => clearInterval(interval));
  return counted;
}

for (const tasks of [1, 100, 1000]) {
  for (const inline of [true, false]) {
    test(`${tasks} tasks that await in a loop let timers run, ${inline ? "answered at once" : "answered by workers"}`, async (t) => {
      const db = await database(t, { tuning: { inline } });
      await db.executeScript("CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)");
      const counted = timer(t);
      const task = async () => {
        while (counted.ticks < 20) {
          await db.queryValue("SELECT id FROM t WHERE id = ?", [1]);
        }
      };
      await Promise.all(Array.from({ length: tasks }, task));
    });
  }
}

test("calls that fail at once in a loop let timers run", async (t) => {
  const db = await database(t);
  await db.close();
  const counted = timer(t);
  while (counted.ticks < 20) {
    await assert.rejects(db.query("SELECT 1"), { kind: "closed" });
  }
});

test("live queries whose result is there at once let timers run in a loop", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  const kept = db.live("SELECT a FROM t");
  await kept.next();
  const counted = timer(t);
  while (counted.ticks < 20) {
    const live = db.live("SELECT a FROM t");
    assert.deepEqual((await live.next()).value, []);
    await live.return();
  }
  await kept.return();
});

test("tasks that write in a loop let timers run", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  const counted = timer(t);
  const task = async () => {
    while (counted.ticks < 20) {
      await db.execute("INSERT INTO t VALUES (1)");
    }
  };
  await Promise.all(Array.from({ length: 10 }, task));
});

test("a large result and many rows of parameters take several turns", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a, b)");
  let turns = 0;
  let counts = true;
  const count = () => {
    turns++;
    if (counts) setImmediate(count);
  };
  setImmediate(count);
  const rows = Array.from({ length: 100_000 }, (_, at) => [at, `text ${at}`]);
  let before = turns;
  await db.executeMany("INSERT INTO t VALUES (?, ?)", rows);
  assert.ok(turns - before > 5, `${turns - before} turns for the rows of parameters`);
  before = turns;
  const all = await db.query("SELECT a, b FROM t");
  assert.equal(all.length, 100_000);
  assert.deepEqual(all[99_999], { a: 99_999, b: "text 99999" });
  assert.ok(turns - before > 5, `${turns - before} turns for the result`);
  counts = false;
});

test("an open database does not keep the process alive, a call that waits does", async () => {
  const idle = await run(`
    const db = await open(":memory:");
    await db.query("SELECT 1");
    console.log("open");`);
  assert.deepEqual([idle.code, idle.output], [0, "open\n"]);
  const waits = await run(`
    const db = await open(":memory:", { tuning: { inline: false } });
    db.query("${numbers(200_000)} SELECT count(*) AS n FROM c").then(([row]) => console.log(row.n));`);
  assert.deepEqual([waits.code, waits.output], [0, "200000\n"]);
  const live = await run(`
    const db = await open(":memory:");
    const live = db.live("SELECT 1 AS a");
    console.log((await live.next()).value[0].a);
    await live.return();`);
  assert.deepEqual([live.code, live.output], [0, "1\n"]);
});

test("an exception of a row is that of its call, and the others go on", async (t) => {
  const db = await database(t, { tuning: { inline: false } });
  const calls = Array.from({ length: 20 }, (_, at) =>
    db.query(at % 2 === 0 ? "SELECT 1 AS a, 2 AS a" : "SELECT 1 AS a"),
  );
  const settled = await Promise.allSettled(calls);
  settled.forEach((result, at) => {
    if (at % 2 === 0) {
      assert.match(result.reason.message, /two columns are named "a"/);
    } else {
      assert.deepEqual(result.value, [{ a: 1 }]);
    }
  });
});
