/**
 * Calls of functions, as the native module makes them.
 *
 * Owns: what each method does, and the totals of aggregates. Runs on the thread of the functions; threads of databases wait for what it
 * returns. Invariant: nothing that a function does ends the thread; its failure is that of its statement. Leaves out: the values, which the
 * native module makes and reads, and which code has which number.
 */

import { native } from "../native/addon.js";
import { toBytes } from "../native/thrown.js";
import type { Code } from "./defined.js";

/** The methods, as `node/src/functions/request.rs` has them. */
const [CALL, STEP, INVERSE, RESULT, RELEASE] = [0, 1, 2, 4, 7];

/** Where the code is that has a number. */
export interface Codes {
  get(at: number): Code | undefined;
  /** No database has it any more. */
  delete(at: number): void;
}

export class Calling {
  /** By the number of their group. */
  private readonly totals = new Map<number, unknown>();

  constructor(private readonly codes: Codes) {}

  readonly call = (method: number, at: number, instance: number, ...args: unknown[]): unknown => {
    try {
      if (method === RELEASE) {
        this.codes.delete(at);
        return undefined;
      }
      const code = this.codes.get(at)!;
      if ("call" in code) {
        const result: unknown = code.call.apply(undefined, args);
        return method === CALL ? plain(result) : ordered(result);
      }
      return this.aggregated(code, method, instance, args);
    } catch (error) {
      native.threw(`threw ${nameOf(error)}`, toBytes(error));
      return undefined;
    }
  };

  private aggregated(code: Exclude<Code, { call: unknown }>, method: number, instance: number, args: unknown[]) {
    const { totals } = this;
    if (method > RESULT) {
      totals.delete(instance);
      return undefined;
    }
    if (!totals.has(instance)) {
      totals.set(instance, plain(typeof code.start === "function" ? code.start() : code.start));
    }
    const total = totals.get(instance);
    if (method === STEP || method === INVERSE) {
      const next = plain((method === STEP ? code.step : code.inverse)!(total, ...args));
      if (next !== undefined) {
        totals.set(instance, next);
      }
      return undefined;
    }
    if (method === RESULT) {
      totals.delete(instance);
    }
    return plain(code.result ? code.result(total) : total);
  }
}

/** A promise cannot be waited for here. What becomes of it concerns nobody. */
function plain(result: unknown): unknown {
  if (typeof result === "object" && result !== null && "then" in result && typeof result.then === "function") {
    native.threw("returned a promise: what SQLite calls must return its result", undefined);
    const nothing = () => undefined;
    result.then(nothing, nothing);
    return undefined;
  }
  return result;
}

function ordered(order: unknown): unknown {
  if (typeof order !== "number" || Number.isNaN(order)) {
    plain(order);
    native.threw("returned no number", undefined);
  }
  return order;
}

function nameOf(error: unknown): string {
  try {
    return error instanceof Error ? String(error.name) : error === null ? "null" : typeof error;
  } catch {
    return "an error";
  }
}
