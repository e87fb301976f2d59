/**
 * What becomes of the rows of a statement.
 *
 * Owns: calling back for each without holding the loop, and the object of `map`.
 */

import { nextTurn, now } from "../native/loop.js";
import type { Row } from "./core.js";

/** How long callbacks for rows hold the loop, in milliseconds. */
const SLICE_MS = 1;

/** Calls back for each row. Timers and I/O have their turn in between. */
export async function deliver(rows: Row[], told: (row: Row) => void): Promise<void> {
  let began = now();
  for (const row of rows) {
    told(row);
    if (now() - began > SLICE_MS) {
      await nextTurn();
      began = now();
    }
  }
}

/** An object: from the first column to the second, or to the row if it has more. */
export function mapOf(rows: Row[]): Record<string, unknown> {
  const [key = "", value = "", more] = Object.keys(rows[0] ?? {});
  return Object.fromEntries(rows.map((row) => [String(row[key]), more === undefined ? row[value] : row]));
}
