// What tests of the dialect share.
import { Kysely } from "kysely";
import { open } from "../../../dist/index.mjs";
import { FlatwaterDialect } from "../../../dist/kysely.mjs";
import { folder } from "../../support.mjs";

/** A Kysely instance with a table, and its database. */
export async function kysely(t, options, path = `${folder(t)}/test.db`) {
  const database = await open(path, options);
  const db = new Kysely({ dialect: new FlatwaterDialect({ database }) });
  t.after(() => db.destroy());
  await db.schema
    .createTable("person")
    .addColumn("id", "integer", (column) => column.primaryKey().autoIncrement())
    .addColumn("name", "text", (column) => column.notNull().unique())
    .addColumn("age", "integer", (column) => column.defaultTo(18))
    .execute();
  return { db, database };
}

export const insert = (db, name) => db.insertInto("person").values({ name }).executeTakeFirstOrThrow();
export const names = async (db) =>
  (await db.selectFrom("person").select("name").orderBy("id").execute()).map(({ name }) => name);
