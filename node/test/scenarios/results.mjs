// What a step expects of the result of its call.
import assert from "node:assert/strict";
import { same, sameRow, sameRows, value } from "./values.mjs";

/** Checks that there is no field that a driver does not know. */
export function known(given, fields) {
  for (const field of Object.keys(given)) {
    assert.ok(fields.includes(field), `${field} is not known`);
  }
}

/** Compares the result of a call. */
export function ended(step, verb, result) {
  switch (verb) {
    case "execute":
      return executed(step, result);
    case "execute_many":
      return assert.equal(result, step.changes ?? result);
    case "run":
      assert.deepEqual(result.columns, step.columns ?? result.columns);
      return results([step.result ?? {}], [result]);
    case "batch":
      return "results" in step && results(step.results, result);
    case "query":
      assert.deepEqual(result.columns, step.columns);
      return "rows" in step && sameRows(step.rows, result);
    case "query_many":
      return "returned" in step && sameRows(step.returned, result);
    case "query_one":
    case "query_optional":
      if ("row" in step) {
        assert.equal(result === undefined, step.row === null);
        sameRow(step.row ?? [], result ?? []);
      }
      return;
    case "query_value":
      return "value" in step && same(step.value, result);
    case "query_optional_value":
      return "value" in step && same(step.value, result ?? null);
    case "query_values":
      return "values" in step && sameRow(step.values, result);
    case "query_json":
      return "json" in step && assert.equal(result.toString(), step.json);
    case "incremental_vacuum":
      return assert.equal(result, step.pages ?? result);
    case "open_blob":
      return assert.equal(result.blob.length, step.bytes ?? result.blob.length);
    case "read_blob":
      return "value" in step && assert.deepEqual(new Uint8Array(result), value(step.value));
    case "migrate":
      return "applied" in step && assert.deepEqual(result, step.applied);
  }
}

function executed(expected, found) {
  assert.equal(found.changes, expected.changes ?? found.changes);
  if ("last_insert_rowid" in expected) {
    assert.equal(found.lastInsertRowid, expected.last_insert_rowid);
  }
}

function results(expected, found) {
  assert.equal(found.length, expected.length);
  for (const [at, one] of expected.entries()) {
    known(one, ["changes", "last_insert_rowid", "rows"]);
    executed(one, found[at]);
    if ("rows" in one) {
      assert.equal(found[at].rows === undefined, one.rows === null);
      sameRows(
        one.rows ?? [],
        (found[at].rows ?? []).map((row) => Object.values(row)),
      );
    }
  }
}
