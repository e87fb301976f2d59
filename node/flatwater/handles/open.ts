/**
 * Opening a database.
 *
 * Owns: what JavaScript has of its options: functions, and how results are read. Invariant: an `open` that fails opens nothing, and keeps
 * no function. Leaves out: the other options, which the native module reads.
 */

import { formOf, INTEGERS, integersOf, number, type Integers } from "../calls/calls.js";
import { STORED, typesOf, type ReadAs } from "../calls/types.js";
import { functionsOf } from "../functions/module.js";
import { definedOnLoop, kept } from "../functions/on_loop.js";
import { native } from "../native/addon.js";
import { misuse, whole } from "../native/errors.js";
import { settle } from "../native/loop.js";
import { debug } from "../native/tracing.js";
import { Database } from "./database.js";
import type { Options } from "./options.js";

/**
 * Opens or creates a database. `rqlite://host:4001` and `libsql://host` are databases on servers: they have the methods that run
 * statements, and are asked before the promise is fulfilled.
 */
export function open(path: string | URL, options: Options = {}): Promise<Database> {
  return opened(path, options, false);
}

/** The same. `joins`: if this process has the file open already, the options are those of the first. @internal */
export async function opened(path: string | URL, options: Options, joins: boolean): Promise<Database> {
  const file = path instanceof URL ? path.href : path;
  if (typeof file !== "string") {
    throw misuse("the path must be a string or a URL");
  }
  const isObject = typeof options === "object" && options !== null && !Array.isArray(options);
  const { rows: form, types, ...others } = isObject ? options : ({} as Options);
  const readAs: ReadAs = {
    integers: integersOf(others.integers as Integers | undefined, INTEGERS.number),
    types: typesOf(types, STORED, false),
    rows: formOf({ rows: form }),
  };
  whole(file, "the path");
  const onLoop = await definedOnLoop(others.functionsOnLoop);
  const functions = others.functions === undefined ? -1 : await functionsOf(others.functions);
  let handle: number;
  try {
    handle = await settle(
      native.open(file, isObject ? others : options, functions, onLoop, ...kept(onLoop), joins),
      number,
    );
  } finally {
    native.release(functions);
  }
  const server = native.name(handle);
  const database = new Database(handle, readAs, server ?? file, server !== undefined);
  if (server !== undefined) {
    try {
      await database.query("SELECT 1");
    } catch (error) {
      await database.close();
      throw error;
    }
  }
  debug("opened %s", database.path);
  return database;
}
