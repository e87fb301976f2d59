// What holds for both versions of Drizzle.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { folder, numbers } from "../../support.mjs";

/** `flatwater` is the package, `adapter` its entry, `orm` and `core` are those of Drizzle; `write` writes a folder of migrations. */
export function facts({ flatwater, adapter, orm, core, write }) {
  const { drizzle, migrate } = adapter;
  const { eq, gt, sql } = orm;
  const users = core.sqliteTable("users", {
    id: core.integer("id").primaryKey(),
    name: core.text("name").notNull().unique(),
    isAdmin: core.integer("is_admin", { mode: "boolean" }).notNull().default(false),
    since: core.integer("since", { mode: "timestamp_ms" }),
    settings: core.text("settings", { mode: "json" }),
    picture: core.blob("picture", { mode: "buffer" }),
    balance: core.blob("balance", { mode: "bigint" }),
  });
  const TABLE = `CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, is_admin INTEGER NOT NULL DEFAULT 0,
    since INTEGER, settings TEXT, picture BLOB, balance BLOB)`;

  async function opened(t, options, config) {
    const client = await flatwater.open(join(folder(t), "test.db"), options);
    t.after(() => client.close());
    await client.execute(TABLE);
    return drizzle(client, config);
  }
  const names = async (db) =>
    (await db.select({ name: users.name }).from(users).orderBy(users.id)).map((row) => row.name);
  const insert = (db, name) => db.insert(users).values({ name });
  const kind = (kind) => (error) => error.cause?.kind === kind;

  test("values of all kinds are stored and come back", async (t) => {
    const db = await opened(t);
    const ada = {
      id: 1,
      name: "Ada",
      isAdmin: true,
      since: new Date("2026-01-02T03:04:05.678Z"),
      settings: { theme: ["dark", null] },
      picture: Buffer.from([0, 1, 255]),
      balance: 12345678901234567890n,
    };
    assert.deepEqual(await insert(db, "nobody"), { changes: 1, lastInsertRowid: 1 });
    assert.deepEqual(await db.delete(users), { changes: 1, lastInsertRowid: null });
    assert.deepEqual(await db.insert(users).values(ada).returning(), [ada]);
    assert.deepEqual(await db.select().from(users), [ada]);
    assert.deepEqual(await db.select().from(users).where(gt(users.id, 1)).get(), undefined);
    assert.deepEqual(await db.update(users).set({ name: "Eve" }).where(eq(users.id, 1)).returning({ is: users.name }), [
      { is: "Eve" },
    ]);
    const other = core.alias(users, "other");
    const [joined] = await db.select().from(users).leftJoin(other, eq(other.id, users.id));
    assert.equal(joined.other.name, "Eve");
    assert.equal(await db.$count(users), 1);
  });

  test("a column that the table does not have is an error, and not its name", async (t) => {
    const db = await opened(t);
    await insert(db, "Ada");
    const wrong = core.sqliteTable("users", { id: core.integer("id").primaryKey(), gone: core.text("gone") });
    await assert.rejects(async () => db.select().from(wrong), kind("sql"));
    await assert.rejects(async () => db.delete(wrong).where(eq(wrong.gone, "gone")), kind("sql"));
    assert.deepEqual(await names(db), ["Ada"]);
  });

  test("raw SQL is run as what it is", async (t) => {
    const db = await opened(t);
    assert.deepEqual(await db.run(sql`INSERT INTO users (name) VALUES (${"Ada"}), ('returning')`), {
      changes: 2,
      lastInsertRowid: 2,
    });
    assert.deepEqual(await db.run(sql`UPDATE users SET name = 'Bob' WHERE id = 2 RETURNING id`), {
      changes: 1,
      lastInsertRowid: null,
    });
    assert.equal((await db.run(sql`PRAGMA user_version`)).changes, 0);
    assert.deepEqual(await db.all(sql`SELECT id, name FROM users ORDER BY id`), [
      { id: 1, name: "Ada" },
      { id: 2, name: "Bob" },
    ]);
    assert.deepEqual(await db.get(sql`SELECT name FROM users`), { name: "Ada" });
    assert.deepEqual(await db.values(sql`SELECT id, name FROM users WHERE id = 1`), [[1, "Ada"]]);
    assert.deepEqual(await db.all(sql`CREATE TABLE pets (name)`), []);
  });

  test("a Date is stored by a column that says how, and a time without a zone is in UTC", async (t) => {
    const db = await opened(t);
    const at = new Date("2026-03-08T07:30:00.123Z");
    await insert(db, "Ada");
    const refused = (error) => /parameter 1 is a Date in raw SQL/.test((error.cause ?? error).message);
    await assert.rejects(async () => db.update(users).set({ since: sql`${at}` }), refused);
    await assert.rejects(async () => db.all(sql`SELECT ${at} AS a`), refused);
    await assert.rejects(async () => db.run(sql`UPDATE users SET since = ${at}`), refused);
    await assert.rejects(async () => db.batch([db.update(users).set({ since: sql`${at}` })]), refused);
    const since = async () => (await db.select().from(users))[0].since;
    assert.equal(await since(), null);
    await db.update(users).set({ since: sql`${sql.param(at, users.since)}` });
    assert.deepEqual(await since(), at);
    assert.equal(await db.$count(users, gt(users.since, new Date(at.getTime() - 1))), 1);
    await db.update(users).set({ since: sql`strftime('%Y-%m-%d %H:%M:%f', ${at.toISOString()})` });
    assert.deepEqual(await since(), at);
  });

  test("a statement that comes while its transaction ends is refused", async (t) => {
    const db = await opened(t);
    for (let ticks = 0; ticks < 30; ticks++) {
      const after = async (make) => {
        for (let tick = 0; tick < ticks; tick++) await null;
        await make().catch(() => {});
      };
      let late;
      const failing = db.transaction(async (tx) => {
        late = [after(() => insert(tx, "late"))];
        const inner = tx.transaction(async (nested) => {
          late.push(after(() => insert(nested, "late in it")));
          throw new RangeError("not today");
        });
        await assert.rejects(inner, RangeError);
        throw new RangeError("not today");
      });
      await assert.rejects(failing, RangeError);
      await Promise.all(late);
    }
    assert.deepEqual(await names(db), []);
  });

  test("a prepared query takes its values when it is run", async (t) => {
    const db = await opened(t);
    const add = db
      .insert(users)
      .values({ name: sql.placeholder("name") })
      .prepare();
    for (const name of ["Ada", "Bob"]) {
      await add.run({ name });
    }
    const find = db
      .select()
      .from(users)
      .where(eq(users.name, sql.placeholder("name")))
      .prepare();
    assert.equal((await find.get({ name: "Bob" })).id, 2);
    assert.equal(await find.get({ name: "Eve" }), undefined);
    assert.equal((await find.all({ name: "Ada" })).length, 1);
    assert.equal((await find.values({ name: "Ada" }))[0][1], "Ada");
  });

  test("a transaction is committed, or rolled back with the error of its function", async (t) => {
    const db = await opened(t);
    const made = await db.transaction(async (tx) => {
      await insert(tx, "Ada");
      assert.deepEqual(await names(tx), ["Ada"]);
      // Another connection does not see it.
      assert.deepEqual(await names(db), []);
      return "made";
    });
    assert.equal(made, "made");
    const failing = db.transaction(async (tx) => {
      await insert(tx, "Bob");
      throw new RangeError("not today");
    });
    await assert.rejects(failing, RangeError);
    await assert.rejects(
      db.transaction(async (tx) => {
        await insert(tx, "Bob");
        tx.rollback();
      }),
      orm.TransactionRollbackError,
    );
    assert.deepEqual(await names(db), ["Ada"]);
  });

  test("a nested transaction is a savepoint", async (t) => {
    const db = await opened(t);
    await db.transaction(async (tx) => {
      await insert(tx, "kept");
      const undone = tx.transaction(async (inner) => {
        await insert(inner, "undone");
        await inner.transaction((innermost) => insert(innermost, "undone too"));
        inner.rollback();
      });
      await assert.rejects(undone, orm.TransactionRollbackError);
      await tx.transaction((inner) => insert(inner, "kept too"));
    });
    assert.deepEqual(await names(db), ["kept", "kept too"]);
  });

  test("a write on the database in the function of a transaction is refused at once", async (t) => {
    const db = await opened(t);
    await db.transaction(async (tx) => {
      await insert(tx, "Ada");
      await assert.rejects(async () => insert(db, "Bob"), kind("misuse"));
    });
    await insert(db, "Bob");
    assert.deepEqual(await names(db), ["Ada", "Bob"]);
  });

  test("a batch is done or not, and has the result of each of its queries", async (t) => {
    const db = await opened(t);
    const found = await db.batch([
      db.insert(users).values({ name: "Ada", isAdmin: true }).returning(),
      insert(db, "Bob"),
      db.select().from(users),
      db.select({ is: users.isAdmin }).from(users).where(eq(users.id, 1)),
      db.run(sql`UPDATE users SET is_admin = 1`),
      db.all(sql`SELECT name FROM users ORDER BY id`),
      db.get(sql`SELECT count(*) AS count FROM users`),
      db.values(sql`SELECT id FROM users ORDER BY id`),
    ]);
    assert.equal(found[0][0].isAdmin, true);
    assert.deepEqual(found[1], { changes: 1, lastInsertRowid: 2 });
    assert.deepEqual(
      found[2].map(({ name, isAdmin }) => [name, isAdmin]),
      [
        ["Ada", true],
        ["Bob", false],
      ],
    );
    assert.deepEqual(found.slice(3), [
      [{ is: true }],
      { changes: 2, lastInsertRowid: null },
      [{ name: "Ada" }, { name: "Bob" }],
      { count: 2 },
      [[1], [2]],
    ]);
    const failing = db.batch([insert(db, "Eve"), insert(db, "Ada")]);
    await assert.rejects(failing, { code: "SQLITE_CONSTRAINT_UNIQUE" });
    assert.deepEqual(await names(db), ["Ada", "Bob"]);
  });

  test("an error has that of the package as its cause", async (t) => {
    const db = await opened(t);
    await insert(db, "Ada");
    await assert.rejects(
      async () => insert(db, "Ada"),
      ({ cause }) => cause instanceof flatwater.FlatwaterError && cause.code === "SQLITE_CONSTRAINT_UNIQUE",
    );
    await assert.rejects(
      async () => db.all(sql`SELECT * FROM usrs`),
      ({ cause }) => /users/.test(cause.hint),
    );
  });

  test("queries and transactions run at once, and timers run meanwhile", async (t) => {
    const db = await opened(t);
    let ticks = 0;
    const timer = setInterval(() => ticks++, 1);
    let ticksBeside = 0;
    const slow = db.get(sql`${sql.raw(numbers(1_000_000))} SELECT count(*) AS count FROM c`);
    const at = Array.from({ length: 30 }, (_, at) => at);
    await Promise.all([
      slow.then(() => (ticksBeside = ticks)),
      ...at.map(async (at) => insert(db, `query ${at}`)),
      ...at.map((at) =>
        db.transaction(async (tx) => {
          await insert(tx, `first ${at}`);
          await insert(tx, `second ${at}`);
        }),
      ),
    ]);
    clearInterval(timer);
    assert.equal(await db.$count(users), 90);
    assert.ok(ticksBeside > 0);
  });

  test("queries are logged and cached as Drizzle is told", async (t) => {
    const logged = [];
    const logger = { logQuery: (query, params) => logged.push([query, params]) };
    const db = await opened(t, {}, { logger });
    await insert(db, "Ada");
    await db.batch([db.select({ name: users.name }).from(users)]);
    assert.deepEqual(
      logged.map(([query]) => query.split(" ")[0]),
      ["insert", "select"],
    );
    assert.ok(logged[0][1].includes("Ada"));
    const same = drizzle({ client: db.$client, logger });
    assert.deepEqual(await names(same), ["Ada"]);
    assert.equal(logged.length, 3);
  });

  const STEPS = {
    "20260101000000_pets": [
      "CREATE TABLE owners (id INTEGER PRIMARY KEY, name TEXT)",
      "INSERT INTO owners VALUES (1, 'Ada');",
    ],
    "20260102000000_rows": [
      "CREATE TABLE pets (name TEXT, owner REFERENCES owners ON DELETE CASCADE) -- of whom",
      "INSERT INTO pets VALUES ('Rex', 1)",
    ],
  };
  // What drizzle-kit writes to change a column. With foreign keys on, DROP TABLE would delete the pets.
  const REBUILD = {
    "20260103000000_rebuild": [
      "PRAGMA foreign_keys=OFF;",
      "\nCREATE TABLE `__new_owners` (`id` integer PRIMARY KEY, `name` text NOT NULL);\n",
      'INSERT INTO `__new_owners`("id", "name") SELECT "id", "name" FROM `owners`;',
      "DROP TABLE `owners`;",
      "ALTER TABLE `__new_owners` RENAME TO `owners`;",
      "\nPRAGMA foreign_keys=ON;",
    ],
  };

  /** A folder of migrations, each a list of statements. */
  function migrations(t, steps) {
    const made = folder(t);
    mkdirSync(join(made, "meta"));
    const texts = Object.entries(steps).map(([name, all]) => [name, all.join("--> statement-breakpoint\n")]);
    write(made, texts);
    return { migrationsFolder: made };
  }

  test("migrations are applied once, however many apply them", async (t) => {
    const db = await opened(t);
    const others = await Promise.all([0, 1, 2].map(() => flatwater.open(db.$client.path)));
    t.after(() => Promise.all(others.map((other) => other.close())));
    const all = [db, ...others.map((client) => drizzle(client))];
    const folder = migrations(t, STEPS);
    await Promise.all(all.map((db) => migrate(db, folder)));
    assert.deepEqual(await db.values(sql`SELECT name, owner FROM pets`), [["Rex", 1]]);
    const history = await db.values(sql`SELECT rowid, hash FROM __drizzle_migrations`);
    assert.deepEqual(
      history.map(([row]) => row),
      [1, 2],
    );
    await Promise.all(all.map((db) => migrate(db, migrations(t, { ...STEPS, ...REBUILD }))));
    assert.deepEqual(await db.values(sql`SELECT name, owner FROM pets`), [["Rex", 1]]);
    const orphan = async () => db.run(sql`INSERT INTO pets VALUES ('Tom', 7)`);
    await assert.rejects(orphan, ({ cause }) => cause.code === "SQLITE_CONSTRAINT_FOREIGNKEY");
  });

  test("migrations of which one fails are not applied at all", async (t) => {
    const db = await opened(t);
    const steps = { ...STEPS, "20260104000000_fails": ["INSERT INTO absent VALUES (1)"] };
    await assert.rejects(migrate(db, { ...migrations(t, steps), migrationsTable: "it's" }), { kind: "sql" });
    assert.deepEqual(await db.values(sql`SELECT name FROM sqlite_schema WHERE name = 'pets'`), []);
    await migrate(db, { ...migrations(t, STEPS), migrationsTable: "it's" });
    assert.deepEqual(await db.values(sql`SELECT count(*) FROM "it's"`), [[2]]);
    const dangling = { ...STEPS, "20260105000000_dangles": ["PRAGMA foreign_keys=OFF", "DELETE FROM owners"] };
    await assert.rejects(migrate(db, { ...migrations(t, dangling), migrationsTable: "it's" }), { kind: "constraint" });
    assert.deepEqual(await db.values(sql`SELECT count(*) FROM owners`), [[1]]);
  });
}
