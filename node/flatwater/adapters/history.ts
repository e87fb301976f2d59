/**
 * Migrations of other libraries, whose history is a table of theirs.
 *
 * Owns: applying steps that the history lacks. Invariants: all of them are committed together with their rows, or none; a step is applied
 * once, however many processes begin at the same time: a row has the number that is the next one, and two of them cannot have it.
 * Foreign keys are off meanwhile and checked before the commit, as in the engine's own migrations. Leaves out: what a library's folder
 * and table look like.
 */

import type { Database } from "../handles/database.js";
import { FlatwaterError, misuse } from "../native/errors.js";

/** Statements, and the row that says that they were applied. */
export interface Step {
  statements: readonly string[];
  row: Readonly<Record<string, string | number>>;
}

/** The steps that are missing, and the number of the last row of the history. */
export interface Missing {
  steps: readonly Step[];
  last: number;
}

/** Applies what is missing. Another process may apply it meanwhile; then it is asked anew what is. */
export async function applyMissing(database: Database, table: string, find: () => Promise<Missing>): Promise<void> {
  for (let missing = await find(); missing.steps.length > 0;) {
    try {
      return await database.executeScript(script(table, missing, database.isServer));
    } catch (error) {
      const now = await find();
      if (!(error instanceof FlatwaterError) || now.last === missing.last) {
        throw error;
      }
      missing = now;
    }
  }
}

/**
 * A script with a transaction of its own: the engine runs it as it runs the dump of a database. There a PRAGMA `foreign_keys` of a
 * step does nothing: they are off already, and on again afterwards. On a server a script is one transaction by itself, and foreign keys
 * are enforced as it was started.
 */
function script(table: string, { steps, last }: Missing, isOnServer: boolean): string {
  const all = steps.flatMap(({ statements, row }, at) => [
    `INSERT INTO ${name(table)} (${["rowid", ...Object.keys(row).map(name)].join(", ")}) ` +
      `VALUES (${[last + 1 + at, ...Object.values(row).map(literal)].join(", ")})`,
    ...statements,
  ]);
  if (isOnServer) {
    return all.join("\n;\n");
  }
  return ["PRAGMA foreign_keys=OFF", "BEGIN", ...all, "COMMIT;"].join("\n;\n");
}

export function name(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}

function literal(value: string | number): string {
  if (typeof value === "number") {
    return String(value);
  }
  if (value.includes("\0")) {
    throw misuse("the name of a migration must not contain a NUL character");
  }
  return `'${value.replaceAll("'", "''")}'`;
}
