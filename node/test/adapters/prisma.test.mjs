// The driver adapter for Prisma, by the contract that Prisma's client relies on.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { bindMigrationAwareSqlAdapterFactory, ColumnTypeEnum } from "@prisma/driver-adapter-utils";
import { open } from "../../dist/index.mjs";
import { PrismaFlatwater } from "../../dist/prisma.mjs";
import { folder, numbers } from "../support.mjs";

const scalar = (scalarType) => ({ scalarType, arity: "scalar" });
const query = (sql, ...given) => ({
  sql,
  args: given.map(([value]) => value),
  argTypes: given.map(([, type]) => scalar(type)),
});
const TABLE = `CREATE TABLE "User" ("id" INTEGER PRIMARY KEY AUTOINCREMENT, "email" TEXT NOT NULL UNIQUE, "big" BIGINT,
  "price" DECIMAL, "real" REAL, "ok" BOOLEAN, "at" DATETIME, "raw" BLOB, "doc" JSONB);`;

async function adapter(t, options, more) {
  const made = await new PrismaFlatwater({ url: `file:${join(folder(t), "test.db")}`, ...options }, more).connect();
  t.after(() => made.dispose());
  await made.executeScript(TABLE);
  return made;
}
const insert = (on, email) => on.executeRaw(query(`INSERT INTO "User" ("email") VALUES (?)`, [email, "string"]));
const emails = async (on) => (await on.queryRaw(query(`SELECT "email" FROM "User" ORDER BY "id"`))).rows.flat();
const kind =
  (kind, more = {}) =>
  (error) => {
    assert.equal(error.name, "DriverAdapterError");
    const { originalCode, originalMessage, ...cause } = error.cause;
    assert.deepEqual(cause, { kind, ...more });
    return true;
  };

test("a result has the types of its columns' tables, and values as Prisma takes them", async (t) => {
  const on = await adapter(t);
  const values = [
    ["ada@example.org", "string"],
    ["9007199254740993", "bigint"],
    ["1.5", "decimal"],
    ["2.25", "float"],
    [true, "boolean"],
    ["2026-01-02T03:04:05.678Z", "datetime"],
    [Buffer.from([0, 255]).toString("base64"), "bytes"],
    ['{"a":[1]}', "json"],
  ];
  const sql = `INSERT INTO "User" ("email", "big", "price", "real", "ok", "at", "raw", "doc") VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
  assert.equal(await on.executeRaw(query(sql, ...values)), 1);
  const found = await on.queryRaw(query(`SELECT *, count(*) AS "count", max("big") FROM "User"`));
  assert.deepEqual(found.columnNames.slice(0, 3), ["id", "email", "big"]);
  const { Int32, Int64, Text, Numeric, Double, Boolean, DateTime, Bytes, Json } = ColumnTypeEnum;
  assert.deepEqual(found.columnTypes, [
    Int32,
    Text,
    Int64,
    Numeric,
    Double,
    Boolean,
    DateTime,
    Bytes,
    Json,
    Int64,
    Int64,
  ]);
  const [[id, email, big, price, real, ok, at, raw, doc, count]] = found.rows;
  assert.deepEqual([id, email, big, price, real, ok], [1, "ada@example.org", "9007199254740993", 1.5, 2.25, 1]);
  assert.deepEqual([at, raw, doc, count], ["2026-01-02T03:04:05.678+00:00", new Uint8Array([0, 255]), '{"a":[1]}', 1]);
  const none = await on.queryRaw(query(`SELECT "big", 1 + 1 AS "two" FROM "User" WHERE "id" = 7`));
  assert.deepEqual(none, { columnNames: ["big", "two"], columnTypes: [Int64, Int32], rows: [] });
});

test("an integer of an expression is a bigint, and a real without a fraction is none", async (t) => {
  const on = await adapter(t);
  const { Int64, UnknownNumber } = ColumnTypeEnum;
  const sql = `SELECT count(*), 1 + 1, 2.0, avg(column1), sum(column1 / 1.0), max(column1) FROM (VALUES (1), (3))`;
  assert.deepEqual(await on.queryRaw(query(sql)).then(({ columnTypes, rows }) => [columnTypes, rows]), [
    [Int64, Int64, UnknownNumber, UnknownNumber, UnknownNumber, Int64],
    [[2, 2, 2, 2, 4, 3]],
  ]);
});

test("dates may be stored as milliseconds", async (t) => {
  const on = await adapter(t, {}, { timestampFormat: "unixepoch-ms" });
  const at = "2026-01-02T03:04:05.678Z";
  const sql = `INSERT INTO "User" ("email", "at") VALUES ('a', ?) RETURNING "at", typeof("at")`;
  const { rows } = await on.queryRaw(query(sql, [at, "datetime"]));
  assert.deepEqual(rows, [[at, "integer"]]);
});

test("statements are run as what they are", async (t) => {
  const on = await adapter(t);
  assert.deepEqual(await on.queryRaw(query("CREATE TABLE pets (name)")), {
    columnNames: [],
    columnTypes: [],
    rows: [],
  });
  assert.equal(await on.executeRaw(query(`INSERT INTO pets VALUES ('Rex'), ('Tom') RETURNING name`)), 2);
  assert.equal(await on.executeRaw(query("SELECT * FROM pets")), 0);
  assert.deepEqual((await on.queryRaw(query("PRAGMA user_version"))).rows, [[0]]);
  assert.deepEqual(on.getConnectionInfo(), { maxBindValues: 32_766, supportsRelationJoins: false });
  const many = Array.from({ length: 32_766 }, (_, at) => [at, "int"]);
  const { rows } = await on.queryRaw(
    query(`SELECT count(*) FROM pets WHERE rowid IN (${many.map(() => "?")})`, ...many),
  );
  assert.deepEqual(rows, [[2]]);
});

test("a transaction is committed or rolled back by calls, and sends no COMMIT", async (t) => {
  const on = await adapter(t);
  const kept = await on.startTransaction("SERIALIZABLE");
  assert.deepEqual(kept.options, { usePhantomQuery: true });
  await insert(kept, "kept");
  assert.deepEqual(await emails(kept), ["kept"]);
  assert.deepEqual(await emails(on), []);
  await kept.commit();
  const undone = await on.startTransaction();
  await insert(undone, "undone");
  await undone.rollback();
  assert.deepEqual(await emails(on), ["kept"]);
  await assert.rejects(insert(undone, "late"), kind("TransactionAlreadyClosed", { cause: "the transaction is over" }));
});

test("a write outside of a transaction that is open waits for it", async (t) => {
  const on = await adapter(t);
  const tx = await on.startTransaction();
  await insert(tx, "first");
  const outside = insert(on, "second");
  await insert(tx, "first too");
  await tx.commit();
  await outside;
  assert.deepEqual(await emails(on), ["first", "first too", "second"]);
});

test("a transaction that the idle limit has ended says so", async (t) => {
  const on = await adapter(t, { tuning: { transactionIdle: 1 } });
  const tx = await on.startTransaction();
  const over = ({ cause: { kind, cause } }) =>
    kind === "TransactionAlreadyClosed" && /^the transaction is over/.test(cause);
  // On a busy machine it is over before, or meanwhile.
  await insert(tx, "never").catch((error) => assert.ok(over(error) || error.cause.kind === "SocketTimeout"));
  // It waits until the transaction is rolled back.
  await insert(on, "next");
  await assert.rejects(insert(tx, "late"), over);
  await tx.rollback();
  assert.deepEqual(await emails(on), ["next"]);
});

test("savepoints are kept, undone, and may be used again", async (t) => {
  const on = await adapter(t);
  const tx = await on.startTransaction();
  await insert(tx, "kept");
  await tx.createSavepoint("one");
  await insert(tx, "undone");
  await tx.createSavepoint("two");
  await insert(tx, "undone too");
  await tx.rollbackToSavepoint("one");
  await insert(tx, "after");
  await tx.releaseSavepoint("one");
  await tx.commit();
  assert.deepEqual(await emails(on), ["kept", "after"]);
});

test("an isolation level that is not SERIALIZABLE is refused", async (t) => {
  const on = await adapter(t);
  for (const level of ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SNAPSHOT"]) {
    await assert.rejects(on.startTransaction(level), kind("InvalidIsolationLevel", { level }));
  }
  await insert(on, "the writer is free");
});

test("15 interactive transactions at once all succeed, and timers run meanwhile", async (t) => {
  const on = await adapter(t);
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  const slow = on.queryRaw(query(`${numbers(1_000_000)} SELECT count(*) FROM c`));
  const one = async (at) => {
    const tx = await on.startTransaction();
    await insert(tx, `first ${at}`);
    const { rows } = await tx.queryRaw(query(`SELECT count(*) FROM "User"`));
    await insert(tx, `second ${at}`);
    await tx.commit();
    return rows[0][0];
  };
  const counts = await Promise.all(Array.from({ length: 15 }, (_, at) => one(at)));
  // Each sees those before it.
  assert.deepEqual(
    counts,
    Array.from({ length: 15 }, (_, at) => 2 * at + 1),
  );
  await slow;
  clearInterval(timer);
  assert.ok(ticks > 0);
});

test("errors have the kinds of Prisma", async (t) => {
  const on = await adapter(t);
  await insert(on, "ada");
  await on.executeScript(`CREATE TABLE "Pet" ("a" NOT NULL, "b", "owner" REFERENCES "User", UNIQUE ("a", "b"), CHECK ("a" <> 'x'));
    CREATE UNIQUE INDEX "lower" ON "Pet" (lower("a")); INSERT INTO "Pet" VALUES ('Rex', 1, NULL);`);
  const run = (sql) => on.executeRaw(query(sql));
  const unique = (fields, table) => kind("UniqueConstraintViolation", { constraint: { fields }, table });
  await assert.rejects(insert(on, "ada"), unique(["email"], "User"));
  await assert.rejects(run(`INSERT INTO "User" ("id", "email") VALUES (1, 'eve')`), unique(["id"], "User"));
  await assert.rejects(
    run(`INSERT INTO "Pet" VALUES ('Rex', 1, NULL)`),
    kind("UniqueConstraintViolation", { constraint: { index: "lower" }, table: "Pet" }),
  );
  await assert.rejects(
    run(`DROP INDEX "lower"`).then(() => run(`INSERT INTO "Pet" VALUES ('Rex', 1, NULL)`)),
    unique(["a", "b"], "Pet"),
  );
  await assert.rejects(
    run(`INSERT INTO "Pet" ("b") VALUES (2)`),
    kind("NullConstraintViolation", { constraint: { fields: ["a"] } }),
  );
  await assert.rejects(
    run(`INSERT INTO "Pet" VALUES ('Tom', 2, 7)`),
    kind("ForeignKeyConstraintViolation", { constraint: { foreignKey: {} } }),
  );
  await assert.rejects(run(`SELECT * FROM absent`), kind("TableDoesNotExist", { table: "absent" }));
  await assert.rejects(run(`SELECT absent FROM "Pet"`), kind("ColumnNotFound", { column: "absent" }));
  await assert.rejects(run(`INSERT INTO "Pet" (absent) VALUES (1)`), kind("ColumnNotFound", { column: "absent" }));
  await assert.rejects(
    run(`INSERT INTO "Pet" VALUES ('x', 2, NULL)`),
    ({ cause }) => cause.kind === "sqlite" && cause.extendedCode === 275,
  );
  await assert.rejects(run("SELEC 1"), ({ cause }) => cause.kind === "sqlite" && cause.extendedCode === 1);
  const other = await adapter(t, { busyTimeout: 1 });
  await other.dispose();
  await assert.rejects(emails(other), kind("ConnectionClosed"));
  const directory = new PrismaFlatwater({ url: folder(t) });
  await assert.rejects(directory.connect(), ({ cause }) => cause.kind === "sqlite");
});

test("an error of the call itself stays as it is", async (t) => {
  const on = await adapter(t);
  await assert.rejects(on.executeRaw(query("BEGIN")), { name: "FlatwaterError", kind: "misuse" });
  await assert.rejects(on.queryRaw(query("SELECT ?", [undefined, "unknown"])), {
    kind: "misuse",
    message: /parameter 1/,
  });
});

test("a script that turns foreign keys off rebuilds a table, and keeps what refers to it", async (t) => {
  const on = await adapter(t);
  await on.executeScript(`CREATE TABLE "Pet" ("owner" REFERENCES "User" ON DELETE CASCADE); INSERT INTO "User" ("email") VALUES ('ada');
    INSERT INTO "Pet" VALUES (1);`);
  await on.executeScript(`-- RedefineTables
PRAGMA defer_foreign_keys=ON;
PRAGMA foreign_keys=OFF;
CREATE TABLE "new_User" ("id" INTEGER PRIMARY KEY, "email" TEXT);
INSERT INTO "new_User" ("id", "email") SELECT "id", "email" FROM "User";
DROP TABLE "User";
ALTER TABLE "new_User" RENAME TO "User";
PRAGMA foreign_keys=ON;
PRAGMA defer_foreign_keys=OFF;
`);
  assert.deepEqual((await on.queryRaw(query(`SELECT count(*) FROM "Pet"`))).rows, [[1]]);
  await assert.rejects(
    on.executeScript(`INSERT INTO "Pet" VALUES (7)`),
    kind("ForeignKeyConstraintViolation", { constraint: { foreignKey: {} } }),
  );
  await assert.rejects(
    on.executeScript("CREATE TABLE half (a); CREATE TABLE half (a);"),
    ({ cause }) => cause.kind === "sqlite",
  );
  assert.deepEqual((await on.queryRaw(query("SELECT name FROM sqlite_schema WHERE name = 'half'"))).rows, []);
});

test("of a script nothing is changed that stands in quotes or comments", async (t) => {
  const on = await adapter(t);
  const text = "a\nPRAGMA foreign_keys=OFF;\nCOMMIT;\nb";
  await on.executeScript(`CREATE TABLE note (t); INSERT INTO note VALUES ('${text}'); -- PRAGMA foreign_keys=OFF;
    CREATE TRIGGER told AFTER INSERT ON note BEGIN
      UPDATE note SET t = t || '; END;';
    END;
    /* PRAGMA foreign_keys=OFF; */ INSERT INTO note VALUES ('PRAGMA foreign_keys=OFF;')`);
  const { rows } = await on.queryRaw(query("SELECT t FROM note ORDER BY rowid"));
  assert.deepEqual(rows, [[`${text}; END;`], ["PRAGMA foreign_keys=OFF;; END;"]]);
});

const CHILDREN = `CREATE TABLE "Pet" ("owner" REFERENCES "User" ON DELETE CASCADE); INSERT INTO "User" ("email") VALUES ('ada');
  INSERT INTO "Pet" VALUES (1);`;
const REBUILD = `CREATE TABLE "new_User" ("id" INTEGER PRIMARY KEY, "email" TEXT);
  INSERT INTO "new_User" SELECT "id", "email" FROM "User"; DROP TABLE "User"; ALTER TABLE "new_User" RENAME TO "User";`;

test("foreign keys are off in a script that says so, however it is written", async (t) => {
  for (const off of [
    "PRAGMA foreign_keys=OFF;",
    "pragma main . [foreign_keys] = 'no' ;",
    'PRAGMA "foreign_keys"(0); BEGIN;',
    "CREATE TABLE IF NOT EXISTS first (a); PRAGMA/**/Foreign_Keys(false);",
    "BEGIN; PRAGMA foreign_keys = off;",
  ]) {
    const on = await adapter(t);
    await on.executeScript(CHILDREN);
    const end = off.includes("BEGIN") ? "END TRANSACTION" : "";
    await on.executeScript(`${off} ${REBUILD} PRAGMA foreign_keys=ON; ${end}`);
    assert.deepEqual((await on.queryRaw(query(`SELECT count(*) FROM "Pet"`))).rows, [[1]], off);
    await assert.rejects(on.executeScript(`DELETE FROM "User"; INSERT INTO "Pet" VALUES (7)`));
    await assert.rejects(on.executeScript(`${off} DELETE FROM "User"; ${end}`), /foreign key violations/, off);
    assert.deepEqual(await emails(on), ["ada"]);
  }
});

test("what Prisma's schema engine sends is done", async (t) => {
  const on = await adapter(t);
  await on.executeScript(CHILDREN);
  assert.equal(await on.executeRaw(query("PRAGMA main.locking_mode=EXCLUSIVE")), 0);
  await on.executeScript(` PRAGMA defer_foreign_keys = 1; DELETE FROM "User"; DELETE FROM "Pet"; `);
  assert.deepEqual(await emails(on), []);
  const drop = `-- DropTable\nPRAGMA foreign_keys=off;\nDROP TABLE "Pet";\nPRAGMA foreign_keys=on;\n`;
  assert.equal(await on.executeRaw(query(drop)), 0);
  assert.deepEqual((await on.queryRaw(query("SELECT name FROM sqlite_schema WHERE name = 'Pet'"))).rows, []);
  // Alone it would have no effect.
  for (const keys of ["PRAGMA foreign_keys = OFF", "PRAGMA foreign_keys = OFF; PRAGMA foreign_keys = OFF"]) {
    await assert.rejects(on.executeRaw(query(keys)), { kind: "misuse" });
    await assert.rejects(on.executeScript(keys), { kind: "misuse" });
  }
  // A rebuild comes statement by statement.
  await on.executeScript(
    `${CHILDREN.replace('CREATE TABLE "Pet"', 'CREATE TABLE IF NOT EXISTS "Pet"').replaceAll("1)", "2)")}`,
  );
  const each = async (...all) => {
    for (const sql of all) await on.executeRaw(query(sql));
  };
  await each(
    "PRAGMA defer_foreign_keys=ON",
    "PRAGMA foreign_keys=OFF",
    ...REBUILD.split(";").filter((sql) => sql.trim()),
  );
  const other = await open(on["database"].path);
  t.after(() => other.close());
  assert.equal(await other.queryValue(`SELECT count(*) FROM sqlite_schema WHERE sql LIKE '%AUTOINCREMENT%'`), 1);
  await each("PRAGMA foreign_keys=ON", "PRAGMA defer_foreign_keys=OFF");
  assert.equal(await other.queryValue(`SELECT count(*) FROM sqlite_schema WHERE sql LIKE '%AUTOINCREMENT%'`), 0);
  assert.equal(await other.queryValue(`SELECT count(*) FROM "Pet"`), 1);
  await assert.rejects(each("PRAGMA defer_foreign_keys=ON", "SELECT 1", "PRAGMA foreign_keys=OFF"), { kind: "misuse" });
  await assert.rejects(each(`INSERT INTO "Pet" VALUES (7)`));
  await assert.rejects(on.executeRaw(query("DELETE FROM User; DELETE FROM User")), { kind: "misuse" });
  await assert.rejects(on.executeScript("CREATE TABLE a (a); ROLLBACK"), { kind: "misuse" });
});

test("each value of a raw query is its own, whatever the others of its column are", async (t) => {
  const on = await adapter(t);
  const { Int32, Int64, Text, Numeric, Double, Boolean, DateTime, Bytes, Json, UnknownNumber } = ColumnTypeEnum;
  const blob = new Uint8Array([0, 255]);
  const big = 9007199254740993n;
  const column = async (declared, ...values) => {
    await on.executeScript(`DROP TABLE IF EXISTS one; CREATE TABLE one (v ${declared})`);
    for (const value of values) await on["database"].execute("INSERT INTO one VALUES (?)", [value]);
    const { columnTypes, rows } = await on.queryRaw(query("SELECT v FROM one ORDER BY rowid"));
    return [columnTypes[0], ...rows.flat()];
  };
  for (const [declared, given, type, expected = given] of [
    ["", [], Int32],
    ["", [null], Int32],
    ["", [blob, "hello world!"], UnknownNumber],
    ["", [big, 2.5], Numeric, [String(big), 2.5]],
    ["", [5, null, big], Int64, [5, null, String(big)]],
    ["", [5, null], Int64],
    ["", [5, 2.5, null], UnknownNumber],
    ["", [big, "a", 5], UnknownNumber],
    ["", ["a", null], Text],
    ["", [null, blob], Bytes],
    ["INTEGER", [1, null], Int32],
    ["INTEGER", [1, 2.5], UnknownNumber],
    ["INTEGER", [1, "a"], UnknownNumber],
    ["INTEGER", [1, big], Int64, [1, String(big)]],
    ["BIGINT", [1, 2], Int64],
    ["BIGINT", [big, 0.5], Numeric, [String(big), 0.5]],
    ["REAL", [1.5, "a"], UnknownNumber],
    ["REAL", [1, 0.5], Double],
    ["NUMERIC", [big, 1], Int64, [String(big), 1]],
    ["DECIMAL", [big, 0.5], Numeric, [String(big), 0.5]],
    ["DECIMAL", ["a", 1], UnknownNumber],
    ["BLOB", ["text"], Text],
    ["BLOB", [blob, "text"], UnknownNumber],
    ["BOOLEAN", [1, 0, null], Boolean],
    ["BOOLEAN", [1, 2], UnknownNumber],
    ["JSONB", ['{"a":1}', "5", null], Json, ['{"a":1}', "5", null]],
    ["JSONB", [blob, "{}"], UnknownNumber],
    ["TEXT", ["a", blob], Text],
    ["DATETIME", [1767323045678], DateTime, ["2026-01-02T03:04:05.678Z"]],
    ["DATETIME", ["2026-01-02T03:04:05.678+00:00"], DateTime],
    ["DATETIME", ["tomorrow", 5], UnknownNumber],
    ["DATETIME", [blob], UnknownNumber],
  ]) {
    const [found, ...values] = await column(declared, ...given);
    assert.deepEqual(values, expected, `${declared} ${given}`);
    assert.equal(found, type, `${declared} ${given}`);
  }
});

test("a time without a zone is in UTC", async (t) => {
  const on = await adapter(t);
  const times = {
    "2026-03-08 07:30:00": "2026-03-08T07:30:00.000Z",
    "2026-03-08T07:30": "2026-03-08T07:30:00.000Z",
    "2026-03-08 07:30:00.123456": "2026-03-08T07:30:00.123Z",
    "2026-03-08": "2026-03-08T00:00:00.000Z",
    "2026-03-08 07:30:00 +02:00": "2026-03-08T05:30:00.000Z",
    "2026-03-08 07:30:00+02": "2026-03-08T05:30:00.000Z",
    "2026-03-08T07:30:00Z": "2026-03-08T07:30:00.000Z",
    "07:30:00": "1970-01-01T07:30:00.000Z",
  };
  for (const [stored, expected] of Object.entries(times)) {
    await on["database"].execute(`INSERT OR REPLACE INTO "User" ("id", "email", "at") VALUES (1, 'ada', ?)`, [stored]);
    const { columnTypes, rows } = await on.queryRaw(query(`SELECT "at" FROM "User"`));
    assert.equal(columnTypes[0], ColumnTypeEnum.DateTime);
    assert.equal(new Date(rows[0][0]).toISOString(), expected, stored);
  }
});

test("what has ended a transaction is told by all that comes after it", async (t) => {
  const on = await adapter(t);
  await insert(on, "ada");
  const ended = (run) => async () => {
    const tx = await on.startTransaction();
    await insert(tx, "never");
    await assert.rejects(
      tx.executeRaw(query(`INSERT OR ROLLBACK INTO "User" ("email") VALUES ('ada')`)),
      kind("UniqueConstraintViolation", { constraint: { fields: ["email"] }, table: "User" }),
    );
    await assert.rejects(run(tx), (error) => {
      assert.equal(error.cause.kind, "TransactionAlreadyClosed");
      assert.match(error.cause.cause, /the transaction is over: .*UNIQUE constraint failed: User.email/);
      return true;
    });
    await tx.rollback();
  };
  await ended((tx) => insert(tx, "late"))();
  await ended((tx) => tx.commit())();
  assert.deepEqual(await emails(on), ["ada"]);
});

test("a text of RAISE is told, and a RESTRICT is a foreign key", async (t) => {
  const on = await adapter(t);
  await on.executeScript(`CREATE TABLE "Pet" ("owner" REFERENCES "User" ON DELETE RESTRICT); INSERT INTO "User" ("email") VALUES ('ada');
    INSERT INTO "Pet" VALUES (1); CREATE TRIGGER no AFTER UPDATE ON "Pet" BEGIN SELECT RAISE(ABORT, 'no such table: of mine'); END;`);
  await assert.rejects(on.executeRaw(query(`UPDATE "Pet" SET "owner" = NULL`)), ({ cause }) => {
    assert.deepEqual([cause.kind, cause.message, cause.extendedCode], ["sqlite", "no such table: of mine", 1811]);
    return true;
  });
  await assert.rejects(
    on.executeRaw(query(`DELETE FROM "User"`)),
    kind("ForeignKeyConstraintViolation", { constraint: { foreignKey: {} } }),
  );
});

test("names with dots and commas are told as they are", async (t) => {
  const on = await adapter(t);
  await on.executeScript(
    `CREATE TABLE odd ("a.b" NOT NULL, "c, d", UNIQUE ("a.b", "c, d")); INSERT INTO odd VALUES (1, 2)`,
  );
  const unique = { constraint: { fields: ["a.b", "c, d"] }, table: "odd" };
  await assert.rejects(
    on.executeRaw(query("INSERT INTO odd VALUES (1, 2)")),
    kind("UniqueConstraintViolation", unique),
  );
  const none = { constraint: { fields: ["a.b"] } };
  await assert.rejects(on.executeRaw(query("INSERT INTO odd VALUES (NULL, 2)")), kind("NullConstraintViolation", none));
  const table = { table: "my own" };
  await assert.rejects(on.queryRaw(query(`SELECT * FROM "my own"`)), kind("TableDoesNotExist", table));
});

test("a url is a path, and what is wrong with it is said before a file is made", async (t) => {
  const place = folder(t);
  const connect = async (url, options) => {
    const made = await new PrismaFlatwater({ url, ...options }).connect();
    await made.dispose();
    return made;
  };
  const at = (name) => join(place, name);
  for (const [url, options] of [
    [`file:${at("a.db")}?connection_limit=1`],
    [`FILE:${at("b.db")}?socket_timeout=5&connection_limit=1`],
    [at("c.db")],
    [pathToFileURL(at("d d.db")).href],
    [`file:${at("a.db")}`, { busyTimeout: 7 }],
    ["file::memory:"],
    [":memory:"],
  ]) {
    await connect(url, options);
  }
  assert.deepEqual(readdirSync(place).sort(), ["a.db", "b.db", "c.db", "d d.db"]);
  for (const url of [
    undefined,
    null,
    7,
    "",
    "file:",
    `"file:${at("q.db")}"`,
    ` file:${at("q.db")}`,
    `file:${at("q.db")}?mode=ro`,
    `file:${at("q.db")}?socket_timeout=soon`,
    "libsql://host",
    "file://host/q.db",
  ]) {
    await assert.rejects(connect(url), { name: "FlatwaterError", kind: "misuse", message: /^url / }, String(url));
  }
  assert.equal(readdirSync(place).length, 4);
  const format = new PrismaFlatwater({ url: at("a.db") }, { timestampFormat: "iso" });
  await assert.rejects(format.connect(), { kind: "misuse", message: /timestampFormat/ });
});

test("Prisma's own wrapper of an adapter takes it, and a shadow database is another one", async (t) => {
  const url = join(folder(t), "test.db");
  const factory = bindMigrationAwareSqlAdapterFactory(new PrismaFlatwater({ url }));
  const adapter = (await factory.connect()).value;
  t.after(() => adapter.dispose());
  assert.ok((await adapter.executeScript(TABLE)).ok);
  const failed = await adapter.executeRaw(query(`INSERT INTO "User" ("email") VALUES (NULL)`));
  assert.equal(failed.error.kind, "NullConstraintViolation");
  const tx = (await adapter.startTransaction()).value;
  assert.equal((await tx.executeRaw(query(`INSERT INTO "User" ("email") VALUES ('ada')`))).value, 1);
  assert.ok((await tx.commit()).ok);
  const shadow = (await factory.connectToShadowDb()).value;
  t.after(() => shadow.dispose());
  assert.deepEqual((await shadow.queryRaw(query("SELECT count(*) FROM sqlite_schema"))).value.rows, [[0]]);
  const required = createRequire(import.meta.url)("../../dist/prisma.js");
  assert.equal(required.PrismaFlatwater, PrismaFlatwater);
});
