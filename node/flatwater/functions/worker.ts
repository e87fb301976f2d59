/**
 * The program of a worker thread that serves a module of functions.
 *
 * Owns: loading the module, and calling its functions. Threads of databases wait for what it returns. Invariant: nothing that a function
 * does ends the thread; its failure is that of its statement. Leaves out: the values, which the native module makes and reads.
 */

import { workerData, type MessagePort } from "node:worker_threads";
import { native } from "../native/addon.js";
import { misuse } from "../native/errors.js";
import { toBytes } from "../native/thrown.js";
import { Defined, type Code } from "./defined.js";
import type { DefineFunctions } from "./types.js";

/** The methods, as `node/src/functions/request.rs` has them. */
const [CALL, STEP, INVERSE, RESULT] = [0, 1, 2, 4];
const FAILED = -2;

const defined = new Defined();
/** The totals of aggregates, by the number of their group. */
const totals = new Map<number, unknown>();

function call(method: number, at: number, instance: number, ...args: unknown[]): unknown {
  try {
    const code = defined.all[at]![6];
    if ("call" in code) {
      const result: unknown = code.call.apply(undefined, args);
      return method === CALL ? plain(result) : ordered(result);
    }
    return aggregated(code, method, instance, args);
  } catch (error) {
    native.threw(`threw ${nameOf(error)}`, toBytes(error));
    return undefined;
  }
}

function aggregated(code: Exclude<Code, { call: unknown }>, method: number, instance: number, args: unknown[]) {
  if (method > RESULT) {
    totals.delete(instance);
    return undefined;
  }
  if (!totals.has(instance)) {
    totals.set(instance, typeof code.start === "function" ? code.start() : code.start);
  }
  const total = totals.get(instance);
  if (method === STEP || method === INVERSE) {
    const next: unknown = (method === STEP ? code.step : code.inverse)!(total, ...args);
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

/** A promise cannot be waited for here. */
function plain(result: unknown): unknown {
  if (typeof result === "object" && result !== null && "then" in result && typeof result.then === "function") {
    native.threw("returned a promise: what SQLite calls must return its result", undefined);
    return undefined;
  }
  return result;
}

function ordered(order: unknown): unknown {
  if (typeof order !== "number" || Number.isNaN(order)) {
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

/** Node calls it when functions are to be called. */
function woken(): void {
  native.serve(call);
}

async function load(url: string): Promise<void> {
  const module = (await import(url)) as { default?: DefineFunctions | { default?: DefineFunctions } };
  // What TypeScript makes of `export default` for CommonJS.
  const define = typeof module.default === "object" ? module.default.default : module.default;
  if (typeof define !== "function") {
    throw misuse("a module of functions exports a function as its default", "export default (db) => { ... }");
  }
  await define(defined);
  defined.isOver = true;
  if (native.serveFunctions(url, defined.all, woken) === FAILED) {
    process.exit();
  }
}

// The module may use the port of its parent.
const { url, port } = workerData as { url: string; port: MessagePort };
load(url).then(
  () => port.postMessage(undefined),
  (error: unknown) => port.postMessage(toBytes(error)),
);
