// The draws are those of the other languages. Run with `node --test` in this folder.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Traffic, zipf } from "./traffic.mjs";

test("the draws are those of the kit", () => {
  const traffic = new Traffic();
  const places = zipf(100);
  const times = (draw) => Array.from({ length: 8 }, draw);
  assert.deepEqual(times(() => traffic.below(1000)), [195, 968, 619, 593, 341, 700, 840, 256]);
  assert.deepEqual(times(() => traffic.place(places)), [4, 46, 1, 2, 1, 29, 2, 67]);
});
