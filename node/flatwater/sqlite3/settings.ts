/**
 * What `configure` sets on a connection.
 *
 * Owns: reading an option. Invariant: a wrong one is refused before anything is changed. Leaves out: when it is set (`core`).
 */

import { native } from "../native/addon.js";
import { TELLS, type Core } from "./core.js";

/** What sets an option. Throws for one that cannot be set. */
export function optionOf(core: Core, option: string, first: unknown, second: unknown, count: number): () => void {
  if (typeof option === "string" && Object.hasOwn(TELLS, option)) {
    return () => core.tell(option, Boolean(first));
  }
  if (option === "busyTimeout") {
    if (typeof first !== "number") {
      throw new TypeError("Value must be an integer");
    }
    return () => void core.connection.run(`PRAGMA busy_timeout = ${first | 0}`).catch(() => {});
  }
  if (option !== "limit") {
    throw new TypeError(`${option} is not a valid configuration option`);
  }
  if (count < 2) {
    throw new TypeError("Expected 3arguments");
  }
  if (typeof first !== "number") {
    throw new TypeError("limit id must be an integer");
  }
  if (typeof second !== "number") {
    throw new TypeError("limit value must be an integer");
  }
  return () => void native.limit(core.connection["handle"], first | 0, second | 0);
}
