// Options of calls: those that do not exist, and values of another form.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { join } from "node:path";
import { open, process } from "../../dist/index.mjs";
import { database, folder } from "../support.mjs";

const refused = (call, message) => assert.rejects(async () => call(), { kind: "misuse", message });

test("an option that does not exist is answered with the nearest one, or with what there is instead", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  await refused(() => db.query("SELECT 1", [], { timout: 5 }), /no option "timout"; did you mean "timeout"\?/);
  await refused(() => db.query("SELECT 1", [], { row: "array" }), /did you mean "rows"\?/);
  await refused(() => db.queryOne("SELECT 1", [], { raw: true }), /ask for \{ rows: 'array' \}/);
  await refused(() => db.query("SELECT 1", [], { safeIntegers: true }), /integers: 'bigint'/);
  await refused(() => db.execute("DELETE FROM t", [], { rows: "array" }), /there are: signal, timeout/);
  await refused(() => db.executeMany("INSERT INTO t VALUES (?)", [[1]], { signl: 1 }), /did you mean "signal"/);
  await refused(() => db.batch(["SELECT 1"], { timeuot: 1 }), /did you mean "timeout"/);
  await refused(() => db.executeScript("SELECT 1", { time_out: 1 }), /did you mean "timeout"/);
  await refused(() => db.queryJson("SELECT 1", [], { embeded: ["a"] }), /did you mean "embed"/);
  await refused(() => db.queryValues("SELECT 1", [], { timout: 1 }), /did you mean "timeout"/);
  await refused(() => db.transaction(async () => {}, { timout: 1 }), /did you mean "timeout"/);
  await refused(() => db.snapshot({ timout: 1 }), /did you mean "timeout"/);
  await refused(() => db.migrate([], { ignoremissing: true }), /did you mean "ignoreMissing"/);
  await refused(() => db.backup("b.db", { progres: 1 }), /did you mean "progress"/);
  await refused(() => db.openBlob("t", "a", 1, { timout: 1 }), /did you mean "timeout"/);
  await refused(() => db.batches("SELECT 1", [], { timout: 1 }).next(), /did you mean "timeout"/);
  await refused(() => db.live("SELECT 1", [], { debouce: 1 }).next(), /did you mean "debounce"/);
  await refused(() => db.live("SELECT 1", [], { throtle: 1 }).changes().next(), /did you mean "throttle"/);
  await refused(() => db.liveGroup(["SELECT 1"], { throtle: 1 }).next(), /did you mean "throttle"/);
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), 0);
});

test("the types of `open` have the options of the engine, and no others", () => {
  const engine = readFileSync(new URL("../../../crates/flatwater-bridge/src/options.rs", import.meta.url), "utf8");
  const types = readFileSync(new URL("../../dist/handles/options.d.ts", import.meta.url), "utf8");
  const own = {
    Options: [
      "functions",
      "functionsOnLoop",
      "integers",
      "key",
      "loadExtension",
      "migrations",
      "rows",
      "tuning",
      "types",
    ],
    Tuning: [],
  };
  for (const [table, type] of [
    ["OPTIONS", "Options"],
    ["TUNING", "Tuning"],
  ]) {
    const of = (text, from, to, each) => {
      const part = text.slice(text.indexOf(from));
      return [...part.slice(0, part.indexOf(to)).matchAll(each)].map((found) => found[1]);
    };
    const there = of(engine, `pub const ${table}:`, "\n];", /^ {4}\("(\w+)"/gm);
    const camel = there.map((name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase()));
    const typed = of(types, `export interface ${type} {`, "\n}", /^ {4}(\w+)\?:/gm);
    assert.ok(typed.length > 10);
    assert.deepEqual(typed.sort(), [...camel, ...own[type]].sort());
  }
});

test("the types of `stats` have the counters of a database, and no others", async (t) => {
  const types = readFileSync(new URL("../../dist/handles/stats.d.ts", import.meta.url), "utf8");
  const typed = (type) => {
    const part = types.slice(types.indexOf(`export interface ${type} {`));
    const found = part.slice(0, part.indexOf("\n}")).matchAll(/^ {4}readonly (\w+): ([\w<>, ]+)/gm);
    return new Map([...found].map(([, name, of]) => [name, of]));
  };
  const db = await database(t);
  await db.executeMany("CREATE TABLE t (a)", [[]]);
  const same = (counters, type) => {
    const of = typed(type);
    assert.deepEqual([...of.keys()].sort(), Object.keys(counters).sort(), type);
    for (const [name, value] of Object.entries(counters)) {
      const known = of.get(name).trim();
      if (typeof value === "object" && value !== null && name !== "calls") {
        same(value, known);
      } else if (value !== null && name !== "calls") {
        assert.equal(typeof value, known.replace(/ .*/, ""), name);
      }
    }
  };
  const stats = db.stats();
  same(stats, "Stats");
  same(stats.calls.executeMany, "CallStats");
  const kinds = types.slice(types.indexOf("type CallKind ="), types.indexOf(";", types.indexOf("type CallKind =")));
  const engine = readFileSync(new URL("../../../crates/flatwater/src/stats/mod.rs", import.meta.url), "utf8");
  const part = engine.slice(
    engine.indexOf("\ncall_kinds! {"),
    engine.indexOf("\n}", engine.indexOf("\ncall_kinds! {")),
  );
  const counted = [...part.matchAll(/"(\w+)"/g)].map(([, name]) =>
    name.replace(/_(.)/g, (_, one) => one.toUpperCase()),
  );
  assert.ok(counted.length > 10);
  assert.deepEqual(
    [...kinds.matchAll(/"(\w+)"/g)].map(([, name]) => name),
    counted,
  );
});

test("an option that is undefined is not given", async (t) => {
  const db = await database(t);
  assert.deepEqual(await db.query("SELECT 1 AS a", [], { timout: undefined, rows: undefined }), [{ a: 1 }]);
});

test("a value of another form is refused", async (t) => {
  const db = await database(t);
  const query = (options) => () => db.query("SELECT 1", [], options);
  await refused(query(5), /options must be an object/);
  await refused(query([1]), /options must be an object/);
  await refused(query(null), /options must be an object/);
  await refused(query({ signal: {} }), /signal must be an AbortSignal/);
  await refused(query({ signal: null }), /signal must be an AbortSignal/);
  await refused(query({ as: "Point" }), /as must be a class, a Standard Schema, or have a method `parse`/);
  await refused(query({ as: null }), /as must be a class/);
  await refused(() => db.queryOne("SELECT 1", [], { as: {} }), /as must be a class/);
  await refused(
    query({ as: (row) => row.a }),
    /as is a function, and must be a class -- pass a function as the method `parse`/,
  );
  const json = (options) => () => db.queryJson("SELECT 1 AS j", [], options);
  await refused(json({ embed: "j" }), /embed must be an array of the names of columns/);
  await refused(json({ embed: [1] }), /embed must be an array/);
  await refused(json({ arrays: "yes" }), /arrays must be true or false/);
  await refused(json({ bigIntegersAsStrings: 1 }), /bigIntegersAsStrings must be true or false/);
  await refused(() => db.migrate([], { ignoreMissing: "yes" }), /ignoreMissing must be true or false/);
  await refused(() => db.live("SELECT 1", [], { debounce: "5" }).next(), /debounce must be a number of milliseconds/);
  await refused(() => db.live("SELECT 1", [], { throttle: -1 }).next(), /throttle must be a number/);
  await refused(() => db.live("SELECT 1", [], { signal: {} }).next(), /signal must be an AbortSignal/);
  await refused(() => db.batches("SELECT 1", [], { signal: 1 }).next(), /signal must be an AbortSignal/);
  await refused(() => db.transaction("BEGIN"), /a transaction takes a function/);
  await refused(() => db.transaction({ timeout: 1 }, async () => {}), /a transaction takes a function/);
  await refused(() => open(5), /the path must be a string or a URL/);
  await refused(() => open(undefined), /the path must be a string or a URL/);
  assert.throws(() => process.setMaxOpen("many"), { kind: "misuse" });
  await refused(() => process.closeAll(), /wait must be a number of milliseconds/);
  assert.deepEqual(await db.query("SELECT 1 AS a"), [{ a: 1 }]);
});

test("all databases of the process are closed at once, and may be opened again", async (t) => {
  const paths = ["a.db", "b.db"].map((name) => join(folder(t), name));
  const databases = await Promise.all(paths.map((path) => open(path)));
  const written = databases.map((db) => db.execute("CREATE TABLE t (a)"));
  await process.closeAll(1_000);
  await Promise.all(written);
  for (const db of databases) {
    await assert.rejects(db.query("SELECT a FROM t"), { kind: "closed", code: "FLATWATER_DATABASE_CLOSED" });
    await db.close();
  }
  const again = await open(paths[0]);
  assert.deepEqual(await again.query("SELECT a FROM t"), []);
  await again.close();
});
