/**
 * Names of other libraries, answered with those of this one.
 *
 * Owns: the table, and what is said. Invariant: only names that do not exist are answered. Leaves out: misspelt options, which the
 * native module knows.
 */

import { misuse } from "../native/errors.js";

const INSTEAD: Record<string, string> = {
  all: "`query` resolves with all rows; a prepared statement has `all`",
  get: "`queryOne` or `queryOptional` resolves with the first row; a prepared statement has `get`",
  run: "`execute` runs a statement; a prepared statement has `run`",
  exec: "`executeScript` runs the statements of a text",
  each: "`stream` yields the rows one by one",
  pragma: "run the PRAGMA with `query`; what belongs to a connection is an option of `open`",
  table: "virtual tables can be defined in Rust only",
  unsafeMode: "there is no unsafe mode",
  serialize: "calls need not be serialized: `transaction` makes several statements one",
  parallelize: "calls run side by side by themselves",
  function:
    "`open` has them: the option `functions` is the URL of a module, `functionsOnLoop` defines some of this thread",
  aggregate:
    "`open` has them: the option `functions` is the URL of a module, `functionsOnLoop` defines some of this thread",
  loadExtension: "`open` has the option `loadExtension`",
  defaultSafeIntegers: "the option `integers` of `open` says what integers become",
  commit: "a transaction commits when its function returns; one of `begin()` has `commit`",
  rollback: "a transaction rolls back when its function throws; one of `begin()` has `rollback`",
  begin: "a database and a transaction have it; on a connection of your own run BEGIN as text",
  savepoint: "transactions have savepoints",
};

/** Makes the names of other libraries throw what to use instead. */
export function unknownNames(prototype: object): void {
  for (const [name, hint] of Object.entries(INSTEAD)) {
    if (!(name in prototype)) {
      Object.defineProperty(prototype, name, {
        configurable: true,
        get(): never {
          throw misuse(`there is no \`${name}\` here`, hint);
        },
      });
    }
  }
}
