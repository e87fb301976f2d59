// The test suites that run on `flatwater/sqlite3`, and which of their tests do not, with the reason.
import { cpSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const LOCKING = "PRAGMA locking_mode = EXCLUSIVE is refused: other connections of the process use the file";

const CLOCK = "fails on node-sqlite3 too, because the clock of an earlier test is still there";

/** The file that the tests of `each` read: a million rows. */
function bigFile(folder) {
  const path = join(folder, "test/support/big.db");
  const { Database } = createRequire(join(folder, "/"))("flatwater/sqlite3");
  const rows =
    "WITH n(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM n WHERE x < 999999) SELECT x, hex(randomblob(20)) FROM n";
  const sql = `PRAGMA user_version = 1; CREATE TABLE IF NOT EXISTS foo (id INT, txt TEXT); DELETE FROM foo; INSERT INTO foo ${rows}`;
  writeFileSync(join(folder, "index.js"), 'module.exports = require("sqlite3");\n');
  return new Promise((resolve, reject) => {
    const db = new Database(path);
    db.exec(sql, (error) => db.close((other) => ((error ?? other) ? reject(error ?? other) : resolve())));
  });
}

export const SUITES = [
  {
    name: "node-sqlite3",
    repository: "TryGhost/node-sqlite3",
    tag: "v6.0.1",
    commit: "a7badced76a78ccd191dd740e287f8ace025003b",
    paths: ["test/"],
    prepare: bigFile,
    args: ["test/*.test.js"],
    without: {
      "should interrupt queries": "`each` reads all rows before the first callback, and this query has no end",
      "throw when calling Database() without new": "the text is V8's for classes, not Node-API's",
      "can backup from temp to main": "a backup is of the database itself into a file",
      "can backup from main to temp": "a backup is of the database itself into a file",
      "cannot backup to a locked db": LOCKING,
      "default retryErrors will retry on a locked/busy db": LOCKING,
    },
  },
  {
    name: "Knex",
    repository: "knex/knex",
    tag: "3.3.0",
    commit: "e25d54bcb707714a17f5a5744eba5c4246bb4d1d",
    paths: ["test/", "lib/", "bin/", "scripts/", "knex.js", "package.json"],
    args: [
      ...["test/prep-db-mocha.js", "test/integration-test-suite.js", "test/integration2/**/*.spec.js"],
      // Those need the drivers of other databases.
      ...[
        "better-sqlite3",
        "cockroachdb",
        "mariadb",
        "mssql",
        "mysql",
        "mysql2",
        "oracledb",
        "postgres-cockroach",
      ].flatMap((other) => ["--ignore", `test/integration2/dialects/${other}.spec.js`]),
    ],
    without: {},
  },
  {
    name: "Sequelize",
    repository: "sequelize/sequelize",
    tag: "v6.37.8",
    commit: "cb7f99ad05de56137672ab95586359ff6ceba004",
    paths: ["test/", "index.js", "package.json"],
    prepare: (folder) =>
      cpSync(new URL("node_modules/sequelize/lib", import.meta.url), join(folder, "lib"), { recursive: true }),
    args: [
      ...["--no-config", "test/integration/**/*.test.js"],
      ...["abstract", "db2", "mariadb", "mssql", "mysql", "oracle", "postgres", "snowflake"].flatMap((other) => [
        "--ignore",
        `test/integration/dialects/${other}/**`,
      ]),
    ],
    without: {
      "should store the current date in touchedAt": CLOCK,
      "does not overwrite createdAt time on update": CLOCK,
      "does not overwrite createdAt when supplied as an explicit insert value when using fields": CLOCK,
      "works when two separate uniqueKeys are passed": CLOCK,
      "close connection and remove journal and wal files":
        "PRAGMA journal_mode = DELETE is refused: the file stays in WAL",
    },
  },
];
