// The scenarios that hold in every language (docs/design/conformance.md), run on this package: each on a file and in memory.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { open } from "../dist/index.mjs";
import { Program } from "./scenarios/program.mjs";
import { LACKING } from "./scenarios/values.mjs";
import { folder } from "./support.mjs";

const HERE = new URL("../../conformance/scenarios/", import.meta.url);
const SCENARIOS = readdirSync(HERE)
  .filter((name) => name.endsWith(".json"))
  .sort()
  .flatMap((name) => JSON.parse(readFileSync(new URL(name, HERE), "utf8")).scenarios);

/** Scenarios that do not hold here, and why. */
const NOT_HERE = {
  reals_keep_their_bits: "a number without a fraction is bound as INTEGER, because JavaScript has one type for both",
  a_function_is_there_for_the_calls_that_begin_later:
    "functions in JavaScript are those of a module, which `open` loads",
  a_collation_of_sqlites_own_is_not_replaced: "the same",
  a_transaction_has_a_function_from_its_next_statement_on: "the same",
  what_a_schema_needs_is_named_when_it_is_missing: "the same",
  a_closed_database_gets_no_functions: "the same",
};

/** What Bun and Deno do not run: modules of functions, which are loaded by worker threads of Node. */
const isNode = process.versions.bun === undefined && process.versions.deno === undefined;
const isOfFunctions = (scenario) => !isNode && "create" in scenario.steps[0];

/** True if a parameter has a type that JavaScript does not have. */
function lacksType(of) {
  if (of === null || typeof of !== "object") {
    return false;
  }
  const names = Array.isArray(of) ? [] : Object.keys(of);
  return (names.length === 1 && LACKING.has(names[0])) || Object.values(of).some(lacksType);
}

const places = (scenario) => ("needs_a_file" in scenario ? ["file"] : ["file", "memory"]);

async function run(t, scenario, place) {
  const directory = folder(t);
  const path = place === "memory" ? ":memory:" : `${directory}/scenario.db`;
  await new Program(path, directory).run(scenario);
  const writesFile = scenario.steps.some((step) => "write_file" in step);
  if (existsSync(path) && !writesFile) {
    const db = await open(path);
    assert.equal(await db.queryValue("PRAGMA integrity_check"), "ok");
    await db.close();
  }
}

// With `types` a date, a time of day and a UUID are texts.
const possible = SCENARIOS.filter((scenario) => scenario.options?.types !== undefined || !lacksType(scenario.steps));

for (const scenario of possible.filter(({ name }) => !(name in NOT_HERE))) {
  for (const place of places(scenario)) {
    test(`${scenario.name} (${place})`, { skip: isOfFunctions(scenario) }, (t) => run(t, scenario, place));
  }
}

test("scenarios are left out for their types only, or by name and for a reason that holds", async (t) => {
  t.diagnostic(`${SCENARIOS.length - possible.length} have parameters of types that JavaScript does not have`);
  assert.ok(SCENARIOS.length >= 150 && SCENARIOS.length - possible.length <= 3);
  for (const name of Object.keys(NOT_HERE)) {
    const scenario = possible.find((one) => one.name === name);
    assert.ok(scenario, `${name} is no scenario that could run`);
    await assert.rejects(run(t, scenario, "file"), undefined, `${name} holds: take it out of the table`);
  }
});

const WRONG = [
  { query: "SELECT 1", rows: [[2]] },
  { query: "SELECT 1", rows: [["1"]] },
  { query: "SELECT 1 AS a", columns: ["b"] },
  { query: "SELECT 1", error: { kind: "sql" } },
  { query: "SELEC 1", error: { kind: "misuse" } },
  { query: "SELEC 1", error: { kind: "sql", at: "1" } },
  { query: "SELEC 1", error: { kind: "sql", hides: "SELEC" } },
  { query_one: "SELECT 1", row: null },
  { query_value: "SELECT 1", value: null },
  { query_json: "SELECT 1 AS a", json: "[]" },
  { execute: "CREATE TABLE t (a)", changes: 1 },
  { transaction: [], as: "tx", raised: "x" },
  { query: "SELECT 1", start: "never awaited" },
  { query: "SELECT 1", rwos: [] },
  { qurey: "SELECT 1" },
];

for (const step of WRONG) {
  test(`a wrong expectation fails: ${JSON.stringify(step)}`, async (t) => {
    const run = new Program(":memory:", folder(t)).run({ name: "a_b", steps: [step] });
    await assert.rejects(run, assert.AssertionError);
  });
}
