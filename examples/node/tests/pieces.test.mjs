// The queue, the cache and the outbox of this folder do what they say.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "flatwater";
import { Cache, CACHE } from "../cache.mjs";
import { drain, OUTBOX, post } from "../outbox.mjs";
import { add, JOBS, work } from "../queue.mjs";

async function database(t, tables) {
  const db = await open(":memory:", { migrations: [["001", tables]] });
  t.after(() => db.close());
  return db;
}

/** Resolves when a query returns this value. */
async function until(db, sql, value) {
  for await (const [row] of db.live(sql)) {
    if (Object.values(row)[0] === value) return;
  }
}

test("a job is done, or tried again until it is dead", async (t) => {
  const db = await database(t, JOBS);
  const [ended, seen] = [new AbortController(), []];
  const handle = ({ name }, { tries }) => {
    seen.push(`${name} ${tries}`);
    if (name === "bad" || (name === "late" && tries < 2))
      throw new Error("not yet");
  };
  const options = { signal: ended.signal, most: 3, backoff: () => 0 };
  const working = work(db, handle, options);
  await until(db, "SELECT count(*) FROM jobs", 0);
  for (const name of ["good", "bad", "late"]) await add(db, { name });
  await until(db, "SELECT count(*) FROM jobs WHERE NOT is_dead", 0);
  ended.abort();
  await working;
  const each = ["bad 1", "bad 2", "bad 3", "good 1", "late 1", "late 2"];
  assert.deepEqual(seen.sort(), each);
  const dead = await db.query("SELECT payload, tries, error FROM jobs");
  assert.deepEqual(dead, [
    { payload: '{"name":"bad"}', tries: 3, error: "Error: not yet" },
  ]);
});

test("a job is done once by several workers, in a while, and again if its worker was too slow", async (t) => {
  const db = await database(t, JOBS);
  const [ended, seen] = [new AbortController(), []];
  const workers = [1, 2, 3].map(() =>
    work(db, ({ n }) => void seen.push(n), ended),
  );
  await db.transaction(async (tx) => {
    for (let n = 0; n < 20; n++)
      await add(tx, { n }, { delay: n % 2 ? 0.05 : 0 });
  });
  await until(db, "SELECT count(*) FROM jobs", 0);
  ended.abort();
  await Promise.all(workers);
  assert.deepEqual(
    seen.sort((a, b) => a - b),
    Array.from({ length: 20 }, (_, n) => n),
  );
  const slow = new AbortController();
  let tries = 0;
  const again = work(
    db,
    async (_, job) => {
      tries = job.tries;
      // The first has its job no more when it ends.
      if (tries === 1) await until(db, "SELECT tries FROM jobs", 2);
    },
    { signal: slow.signal, lease: 0.01 },
  );
  const other = work(db, (_, job) => void (tries = job.tries), slow);
  await add(db, {});
  await until(db, "SELECT count(*) FROM jobs", 0);
  slow.abort();
  await Promise.all([again, other]);
  assert.equal(tries, 2);
});

test("a value is made once, and not returned after its time", async (t) => {
  const db = await database(t, CACHE);
  const cache = new Cache(db);
  let made = 0;
  const make = async () => ({ made: ++made });
  const all = [1, 2, 3].map(() => cache.getOrMake("a", 60, make));
  assert.deepEqual(
    await Promise.all(all),
    [1, 1, 1].map((made) => ({ made })),
  );
  assert.deepEqual(await cache.get("a"), { made: 1 });
  for (let n = 0; n < 5; n++) await cache.set(`old ${n}`, n, -1);
  assert.equal(await cache.get("old 1"), undefined);
  assert.equal(await cache.sweep(2), 5);
  await cache.delete("a");
  assert.equal(await db.queryValue("SELECT count(*) FROM cache"), 0);
  await assert.rejects(
    cache.getOrMake("b", 60, () => Promise.reject(new Error("no"))),
    /no/,
  );
  assert.deepEqual(await cache.getOrMake("b", 60, make), { made: 2 });
});

test("messages are sent in their order if they are committed, and again after a failure", async (t) => {
  const db = await database(t, OUTBOX);
  const [ended, sent] = [new AbortController(), []];
  let fails = 2;
  const send = ({ id, payload }) => {
    if (payload === "b" && fails-- > 0) throw new Error("down");
    sent.push([id, payload]);
  };
  const draining = drain(db, send, { signal: ended.signal, pause: 1 });
  await db.transaction(async (tx) => {
    for (const payload of ["a", "b", "c"]) await post(tx, "t", payload);
  });
  const undone = db.transaction(async (tx) => {
    await post(tx, "t", "never");
    throw new Error("undone");
  });
  await assert.rejects(undone, /undone/);
  await until(db, "SELECT count(*) FROM outbox", 0);
  ended.abort();
  await draining;
  assert.deepEqual(sent, [
    [1, "a"],
    [2, "b"],
    [3, "c"],
  ]);
});
