// Quantiles are those of the calls. Run with `node --test` in this folder.

import assert from "node:assert/strict";
import { test } from "node:test";

import { curve, ordered, quantileUs } from "./measure.mjs";

const calls = (count) => ordered(Array.from({ length: count }, (_, i) => (count - i) * 1000));

test("quantiles are those of the calls", () => {
  for (const [quantile, expected] of [[0.5, 500], [0.9, 900], [0.95, 950], [0.99, 990], [0.999, 999]]) {
    assert.equal(quantileUs(calls(1000), quantile), expected);
  }
});

test("a single call is every quantile", () => {
  assert.equal(quantileUs(ordered([317]), 0.5), 0.317);
  assert.deepEqual(curve(ordered([317])), [[0, 0.317], [1, 0.317]]);
});

test("a curve rises to the maximum and has no point beyond its calls", () => {
  const points = curve(calls(100_000));
  assert.ok(points.length >= 35 && points.length <= 45);
  points.slice(1).forEach(([quantile, us], at) => assert.ok(points[at][0] < quantile && points[at][1] <= us));
  assert.deepEqual(points.at(-1), [1, 100_000]);
  assert.equal(curve(calls(1000)).filter(([quantile]) => quantile > 0.999).length, 1);
});
