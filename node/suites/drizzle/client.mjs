// In place of libsql's client, which Drizzle's tests open: a database of this package.
import { mkdtempSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

// Of the tests' workspace.
const { open } = createRequire(join(process.cwd(), "/"))("flatwater");
// The tests drop tables that others refer to.
const database = await open(join(mkdtempSync(join(tmpdir(), "flatwater-")), "test.db"), { foreignKeys: false });

export function createClient() {
  return Object.create(database, {
    // Drizzle's tests make tables by calls of the client.
    execute: {
      value: (statement, params) =>
        typeof statement === "string"
          ? database.execute(statement, params)
          : database.batch([[statement.sql, statement.args]]).then(([{ rows = [] }]) => ({ rows })),
    },
    close: { value: () => {} },
  });
}
