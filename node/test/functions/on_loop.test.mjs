// Functions on the loop: they have the variables of the program, the loop goes on beside them, and what they begin themselves.
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { join } from "node:path";
import { test } from "node:test";
import { open } from "../../dist/index.mjs";
import { database, ENDLESS, folder, numbers, run, until } from "../support.mjs";

const CALLS = ENDLESS.replace("count(*)", "sum(f(x))");
/** One function, `f`. */
const f = (code, options = {}) => ({ functionsOnLoop: (db) => db.function("f", options, code) });

test("functions have the variables of the program, those of each database their own", async (t) => {
  const counters = [0, 0];
  const of = (at) => f(() => ++counters[at]);
  const [one, two] = [await database(t, of(0)), await open(":memory:", of(1))];
  await Promise.all([one.query(`${numbers(100)} SELECT f() FROM c`), two.query("SELECT f()"), two.query("SELECT f()")]);
  assert.deepEqual(counters, [100, 2]);
  await two.close();
});

test("handles of one file have the functions of its last `open` that defines them", async (t) => {
  const path = join(folder(t), "test.db");
  const handles = [
    await open(
      path,
      f(() => "first"),
    ),
    await open(path),
  ];
  assert.equal(await handles[1].queryValue("SELECT f()"), "first");
  handles.push(
    await open(
      path,
      f(() => "last"),
    ),
  );
  for (const handle of handles) {
    assert.equal(await handle.queryValue("SELECT f()"), "last");
  }
  await handles.pop().close();
  assert.equal(await handles[0].queryValue("SELECT f()"), "last");
  await Promise.all(handles.map((handle) => handle.close()));
});

test("a module's functions and those on the loop are there together", async (t) => {
  const functions = new URL("./defined.mjs", import.meta.url);
  const db = await database(t, { functions, ...f((x) => x + 1) });
  assert.equal(await db.queryValue("SELECT f(double(f(2)))"), 7);
});

test("timers and I/O have their turn beside a statement that calls a function for each row", async (t) => {
  const db = await database(
    t,
    f((x) => x % 2),
  );
  const abort = new AbortController();
  let ticks = 0;
  const timer = setInterval(() => ++ticks === 5 && abort.abort(new Error("enough")), 1);
  await assert.rejects(db.query(CALLS, [], { signal: abort.signal }), { message: "enough" });
  clearInterval(timer);
  assert.equal(await db.queryValue("SELECT f(3)"), 1);
});

test("many statements at once, of reads and writes, are all answered", async (t) => {
  const db = await database(t, { readers: 4, ...f((x) => 2 * x) });
  await db.execute("CREATE TABLE t (a)");
  const sums = Array.from({ length: 30 }, () =>
    db.queryValue(`SELECT sum(f(x)) FROM (${numbers(100)} SELECT x FROM c)`),
  );
  const writes = Array.from({ length: 30 }, (_, at) => db.execute("INSERT INTO t VALUES (f(?))", [at]));
  assert.deepEqual(new Set(await Promise.all(sums)), new Set([10_100]));
  await Promise.all(writes);
  assert.equal(await db.queryValue("SELECT sum(f(a)) FROM t"), 1_740);
});

for (const path of ["file", ":memory:"]) {
  test(`a function begins calls of its own database, which are served after it (${path})`, async (t) => {
    const begun = [];
    const place = path === "file" ? join(folder(t), "test.db") : path;
    const db = await open(
      place,
      f((what) => {
        begun.push(db.queryValue("SELECT count(*) FROM t"), db.execute("INSERT INTO t VALUES (?)", [what]));
        return what;
      }),
    );
    await db.execute("CREATE TABLE t (a)");
    await db.query("SELECT f('read')");
    await db.execute("INSERT INTO t VALUES (f('write'))");
    await Promise.all(begun);
    const tx = await db.begin();
    await tx.execute("INSERT INTO t VALUES (f('in a transaction'))");
    await tx.commit();
    await Promise.all(begun);
    assert.equal(
      await db.queryValue("SELECT group_concat(a, ', ') FROM (SELECT a FROM t ORDER BY a)"),
      [...["in a transaction", "in a transaction", "read", "write", "write"]].join(", "),
    );
    await db.close();
  });
}

test("a function runs in the async context of the program's start, inside of no transaction", async (t) => {
  const context = new AsyncLocalStorage();
  const path = join(folder(t), "test.db");
  const other = await database(t);
  await other.execute("CREATE TABLE t (a)");
  const seen = [];
  const db = await other.transaction((tx) =>
    context.run("open", () =>
      open(
        path,
        f(() => void seen.push(context.getStore(), other.execute("INSERT INTO t VALUES (1)"))),
      ),
    ),
  );
  await context.run("query", () => other.transaction(() => db.query("SELECT f()")));
  assert.equal(seen[0], undefined);
  assert.equal((await seen[1]).changes, 1);
  await db.close();
});

test("an async function is refused when it is defined, and a promise when it is returned", async (t) => {
  const path = join(folder(t), "test.db");
  const wrong = {
    "the function f": (db) => db.function("f", async () => 1),
    "the step of f": (db) => db.aggregate("f", { async step() {} }),
    "the result of f": (db) => db.aggregate("f", { step() {}, result: async () => 1 }),
  };
  for (const [what, functionsOnLoop] of Object.entries(wrong)) {
    await assert.rejects(open(path, { functionsOnLoop }), {
      code: "FLATWATER_INVALID_FUNCTION",
      message: `${what} is async: what SQLite calls must return its result`,
    });
  }
  const db = await database(t, {
    functionsOnLoop(define) {
      define.function("f", () => Promise.reject(new Error("nobody hears it")));
      define.aggregate("stepped", { step: (_, x) => Promise.resolve(x) });
      define.aggregate("started", { start: () => Promise.resolve(1), step: (_, x) => x });
      define.collation("c", () => Promise.reject(new Error("nobody hears it")));
    },
  });
  for (const sql of ["SELECT f()", "SELECT stepped(1)", "SELECT started(1)"]) {
    await assert.rejects(db.query(sql), { kind: "sql", message: /returned a promise: what SQLite calls must return/ });
  }
  await assert.rejects(db.query("SELECT 'a' < 'b' COLLATE c"), { message: "the collation c returned no number" });
});

test("what `functionsOnLoop` must be, what it throws, and what SQLite refuses", async (t) => {
  const path = join(folder(t), "test.db");
  for (const functionsOnLoop of ["functions.mjs", {}, 5, null]) {
    await assert.rejects(open(path, { functionsOnLoop }), {
      code: "FLATWATER_INVALID_OPTION",
      message: /must be a function that/,
    });
  }
  const reason = new Error("the program's own");
  await assert.rejects(open(path, { functionsOnLoop: () => Promise.reject(reason) }), (error) => error === reason);
  await assert.rejects(
    open(path, { functionsOnLoop: (db) => db.collation("nocase", () => 0) }),
    /collation of SQLite's/,
  );
  await assert.rejects(
    open(
      "rqlite://127.0.0.1:1",
      f(() => 1),
    ),
    /"functionsOnLoop" needs a database of this process/,
  );
  const late = [];
  const db = await database(t, { functionsOnLoop: (define) => late.push(define) });
  assert.throws(() => late[0].function("f", () => 1), { message: /f is defined too late/ });
  await db.close();
});

test("the code of functions is let go with the last database that has it, and with an `open` that fails", async () => {
  const source = `
    const gone = [];
    const registry = new FinalizationRegistry((name) => gone.push(name));
    async function opened(name, options = {}, file = ":memory:") {
      const held = { name };
      registry.register(held, name);
      return open(file, { ...options, functionsOnLoop: (db) => db.function("name", () => held.name) });
    }
    async function all() {
      const closed = await opened("closed");
      await closed.query("SELECT name()");
      await closed.close();
      await opened("refused", { durability: "none" }).catch(() => {});
      await opened("not opened", {}, "/nowhere/at/all.db").catch(() => {});
      await opened("of a server", {}, "rqlite://127.0.0.1:1").catch(() => {});
      const dropped = await opened("dropped");
      return dropped.queryValue("SELECT name()");
    }
    console.log(await all());
    while (gone.length < 5) {
      gc();
      await new Promise(setImmediate);
    }
    console.log(gone.sort().join());`;
  const { code, output, errors } = await run(source, { flags: ["--expose-gc"] });
  assert.equal(code, 0, errors);
  assert.equal(output, "dropped\nclosed,dropped,not opened,of a server,refused\n");
});
