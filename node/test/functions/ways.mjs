// The two ways of functions in JavaScript, with the same definitions.
import { test } from "node:test";
import define from "./defined.mjs";

export const functions = new URL("./defined.mjs", import.meta.url);

/** Runs a test with functions of a module, and once more with the same on the loop. */
export function both(name, body) {
  test(`${name} (a module)`, (t) => body(t, { functions }));
  test(`${name} (the loop)`, (t) => body(t, { functionsOnLoop: define }));
}
