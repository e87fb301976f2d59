// The types of Drizzle on this package, as a program sees them. It is compiled, and does not run.
import { eq, relations } from "drizzle-orm";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { drizzle, migrate } from "../../dist/drizzle.mjs";
import { open, type ExecuteResult } from "../../dist/index.mjs";

const users = sqliteTable("users", { id: integer().primaryKey(), name: text().notNull() });
const posts = sqliteTable("posts", { title: text().notNull(), author: integer().references(() => users.id) });
const usersRelations = relations(users, ({ many }) => ({ posts: many(posts) }));

const client = await open("app.db");
const db = drizzle(client, { schema: { users, posts, usersRelations } });
await migrate(db, { migrationsFolder: "drizzle" });
const done: ExecuteResult = await db.insert(users).values({ name: "Ada" });
const all: { id: number; name: string }[] = await db.select().from(users);
const one: { id: number; name: string } | undefined = await db.query.users.findFirst();
const [added, found] = await db.batch([db.insert(users).values({ name: "Bob" }).returning(), db.select().from(users)]);
const names: string[] = [...added, ...found].map(({ name }) => name);
const count: number = await db.transaction(async (tx) => {
  await tx.transaction(async (inner) => inner.update(users).set({ name: "Eve" }).where(eq(users.id, 1)));
  return (await tx.select().from(users)).length;
});
// @ts-expect-error There is no such column.
await db.insert(users).values({ nme: "Ada" });
// @ts-expect-error There is no such table.
db.query.usrs;
await db.$client.close();
await drizzle({ client, logger: true }).select().from(users);
export { all, count, done, names, one };
