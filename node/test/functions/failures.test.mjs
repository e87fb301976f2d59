// Functions that fail: what their statements, their transactions and the program get.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { test } from "node:test";
import { FlatwaterError, open } from "../../dist/index.mjs";
import { database, folder } from "../support.mjs";
import { both } from "./ways.mjs";

const functions = new URL("./defined.mjs", import.meta.url);

const failure = async (call) => {
  const error = await call.then(
    () => assert.fail("it did not fail"),
    (error) => error,
  );
  assert.ok(error instanceof FlatwaterError, error);
  return error;
};

both("what a function throws is the cause of the error, with its stack and its properties", async (t, given) => {
  const db = await database(t, given);
  const { message, kind, code, sql, cause } = await failure(db.query("SELECT throws('error')"));
  assert.deepEqual(
    [message, kind, code, sql],
    ["the function throws threw Refused", "sql", "SQLITE_ERROR", "SELECT throws('error')"],
  );
  assert.ok(cause instanceof Error);
  assert.deepEqual([cause.name, cause.message, cause.code], ["Refused", "no", "E_REFUSED"]);
  assert.match(cause.stack, /defined\.mjs:\d+/);
  const caused = await failure(db.query("SELECT throws('caused')"));
  assert.deepEqual([caused.cause.message, caused.cause.cause.message], ["outer", "inner"]);
  assert.ok(caused.cause.cause instanceof TypeError);
  const uncopied = await failure(db.query("SELECT throws('uncopied')"));
  assert.ok(uncopied.cause instanceof RangeError);
  const text = await failure(db.query("SELECT throws('text')"));
  assert.deepEqual([text.message, text.cause], ["the function throws threw string", "a text"]);
  const getter = await failure(db.query("SELECT throws('getter')"));
  assert.deepEqual([getter.cause instanceof RangeError, getter.cause.message], [true, "g"]);
  const proxy = await failure(db.query("SELECT throws('proxy')"));
  assert.deepEqual([proxy.message, proxy.cause], ["the function throws threw an error", undefined]);
  const nothing = await failure(db.query("SELECT throws('undefined')"));
  assert.deepEqual([nothing.message, nothing.cause], ["the function throws threw undefined", undefined]);
  assert.equal(await db.queryValue("SELECT double(1)"), 2);
});

both("a result that cannot be stored fails the statement, and says why", async (t, given) => {
  const db = await database(t, given);
  const wrong = {
    promise: /^the function result_of returned a promise/,
    array: /^the result of the function result_of: an array cannot be stored$/,
    object: /an object cannot be stored/,
    nan: /NaN cannot be stored/,
    half: /half of a surrogate pair/,
    function: /a function cannot be stored/,
    wide: /a bigint beyond 64 bits/,
  };
  for (const [name, message] of Object.entries(wrong)) {
    assert.match((await failure(db.query(`SELECT result_of('${name}')`))).message, message);
  }
});

both("an aggregate that fails ends its statement, and the next one begins anew", async (t, given) => {
  const db = await database(t, given);
  await db.executeScript("CREATE TABLE t (a); INSERT INTO t VALUES ('good'), ('bad'), ('better')");
  for (let round = 0; round < 3; round++) {
    const { message, cause } = await failure(db.query("SELECT longest(a) FROM t"));
    assert.deepEqual([message, cause.code], ["the function longest threw Refused", "E_REFUSED"]);
  }
  assert.equal(await db.queryValue("SELECT longest(a) FROM t WHERE a <> 'bad'"), "better");
});

both("a collation that fails ends its statement, and leaves nothing of it", async (t, given) => {
  const db = await database(t, given);
  await db.executeScript("CREATE TABLE t (a TEXT COLLATE picky PRIMARY KEY); INSERT INTO t VALUES ('good')");
  const { message, cause } = await failure(db.execute("INSERT INTO t VALUES ('fine'), ('bad')"));
  assert.deepEqual([message, cause.message], ["the collation picky threw Refused", "bad"]);
  assert.deepEqual(await db.queryValues("SELECT a FROM t"), ["good"]);
  await db.transaction(async (tx) => {
    await tx.execute("INSERT INTO t VALUES ('one')");
    await failure(tx.execute("INSERT INTO t VALUES ('two'), ('bad')"));
    await tx.execute("INSERT INTO t VALUES ('three')");
  });
  assert.deepEqual(await db.queryValues("SELECT a FROM t"), ["good", "one", "three"]);
  const unsure = await failure(db.query("SELECT 'a' < 'b' COLLATE unsure"));
  assert.equal(unsure.message, "the collation unsure returned no number");
});

both("in a transaction a failure undoes its statement alone", async (t, given) => {
  const db = await database(t, given);
  await db.execute("CREATE TABLE t (a CHECK (not_bad(a)))");
  await db.transaction(async (tx) => {
    await tx.execute("INSERT INTO t VALUES ('one')");
    const { cause } = await failure(tx.execute("INSERT INTO t VALUES ('two'), ('bad')"));
    assert.equal(cause.message, "bad");
  });
  assert.deepEqual(await db.queryValues("SELECT a FROM t"), ["one"]);
});

test("a module that cannot be loaded fails `open`, which opens nothing", async (t) => {
  const place = folder(t);
  const path = join(place, "test.db");
  const of = (text) => {
    const file = join(place, `${Math.random()}.mjs`);
    writeFileSync(file, text);
    return open(path, { functions: pathToFileURL(file) });
  };
  const wrong = {
    "export default": [SyntaxError],
    "import './absent.mjs'": [Error, /absent/],
    "throw new TypeError('at the top')": [TypeError, /at the top/],
    "export const define = 1": [Error, /exports a function as its default/],
    "export default () => { throw new RangeError('in it') }": [RangeError, /in it/],
    "export default async () => { throw new RangeError('later') }": [RangeError, /later/],
    "export default (db) => db.function('f')": [Error, /the function f needs a function/],
    "export default (db) => db.function('f', { deterministc: true }, () => 1)": [
      Error,
      /f has no option "deterministc"/,
    ],
    "export default (db) => db.function('f', { safeIntegers: true }, () => 1)": [Error, /say \{ integers: "bigint" \}/],
    "export default (db) => db.function('f', { integers: 'all' }, () => 1)": [Error, /"integers" of f must be/],
    "export default (db) => db.function('f', { varargs: 1 }, () => 1)": [Error, /"varargs" of f must be true or false/],
    "export default (db) => db.function('f', null, () => 1)": [Error, /the options of f must be an object/],
    "export default (db) => db.function(5, () => 1)": [Error, /name of a function must be a string/],
    "export default (db) => db.aggregate('f', {})": [Error, /the aggregate f needs a function as its step/],
    "export default (db) => db.aggregate('f', { step() {}, inverse: 1 })": [Error, /as its inverse/],
    "export default (db) => db.collation('f', {})": [Error, /the collation f needs a function/],
    "process.exit(1)": [Error, /worker thread has ended/],
  };
  for (const [text, [type, message = /./]] of Object.entries(wrong)) {
    const { kind, code, cause, message: said } = await failure(of(text));
    assert.deepEqual([kind, code], ["misuse", "FLATWATER_INVALID_FUNCTION"], text);
    assert.match(said, /^the module of functions .*\.mjs cannot be loaded/);
    assert.ok(cause instanceof type, `${text}: ${cause}`);
    assert.match(cause.message, message, text);
  }
  for (const [name, message] of [
    ["''", /needs a name/],
    ["'a\\0b'", /NUL byte/],
    ["'f'.repeat(300)", /longer than 255 bytes/],
  ]) {
    const refused = await failure(of(`export default (db) => db.function(${name}, () => 1)`));
    assert.match(refused.message, message);
  }
  const many = Array.from({ length: 1001 }, (_, at) => `a${at}`);
  assert.match(
    (await failure(of(`export default (db) => db.function('f', (${many}) => 1)`))).message,
    /SQLite refuses to register f/,
  );
  assert.match(
    (await failure(of("export default (db) => db.collation('nocase', () => 0)"))).message,
    /collation of SQLite's/,
  );
  for (const given of [() => {}, {}, 5, null, ""]) {
    const { code, message } = await failure(open(path, { functions: given }));
    assert.deepEqual([code, /URL or the path of a module/.test(message)], ["FLATWATER_INVALID_OPTION", true]);
  }
  const late = await of(
    "export default (db) => { globalThis.later = db; db.function('f', () => { later.function('g', () => 1) }) }",
  );
  assert.match((await failure(late.query("SELECT f()"))).cause.message, /g is defined too late/);
  await late.close();
});

test("a module of CommonJS, a path and what TypeScript makes of a module are loaded too", async (t) => {
  const place = folder(t);
  const of = async (name, text) => {
    const file = join(place, name);
    writeFileSync(file, text);
    const db = await open(":memory:", { functions: file });
    assert.equal(await db.queryValue("SELECT f()"), 1, name);
    await db.close();
  };
  await of("one.cjs", "module.exports = (db) => db.function('f', () => 1)");
  await of("two.cjs", "exports.__esModule = true; exports.default = (db) => db.function('f', () => 1)");
  await of(
    "posts.cjs",
    "require('node:worker_threads').parentPort.postMessage('its own'); module.exports = (db) => db.function('f', () => 1)",
  );
  await of("three.mjs", "export default async (db) => { await null; db.function('f', () => 1) }");
});

test("a database on a server has no functions", async () => {
  const error = await failure(open("rqlite://127.0.0.1:1", { functions }));
  assert.deepEqual(
    [error.code, /"functions" needs a database of this process/.test(error.message)],
    ["FLATWATER_INVALID_OPTION", true],
  );
});
