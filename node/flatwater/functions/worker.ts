/**
 * The program of a worker thread that serves a module of functions.
 *
 * Owns: loading the module, and the turns of the thread's loop between calls of its functions. Leaves out: a call (`calling`).
 */

import { workerData, type MessagePort } from "node:worker_threads";
import { native } from "../native/addon.js";
import { misuse } from "../native/errors.js";
import { toBytes } from "../native/thrown.js";
import { Calling } from "./calling.js";
import { Defined } from "./defined.js";
import type { DefineFunctions } from "./types.js";

const FAILED = -2;

const defined = new Defined();
const { call } = new Calling({ get: (at) => defined.all[at]?.[6], delete: () => undefined });

/** Node calls it when functions are to be called. */
function woken(): void {
  if (native.serve(call, false)) {
    setImmediate(woken);
  }
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
