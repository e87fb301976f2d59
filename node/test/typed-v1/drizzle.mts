// The types of Drizzle 1.0 on this package, as a program sees them. It is compiled, and does not run.
import { defineRelations, eq } from "drizzle-orm";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { drizzle, migrate } from "../../dist/drizzle-v1.mjs";
import { open, type ExecuteResult } from "../../dist/index.mjs";

const users = sqliteTable("users", { id: integer().primaryKey(), name: text().notNull() });
const posts = sqliteTable("posts", { title: text().notNull(), author: integer() });
const relations = defineRelations({ users, posts }, (r) => ({
  users: { posts: r.many.posts({ from: r.users.id, to: r.posts.author }) },
}));

const client = await open("app.db");
const db = drizzle(client, { relations });
await migrate(db, { migrationsFolder: "drizzle" });
const done: ExecuteResult = await db.insert(users).values({ name: "Ada" });
const all: { id: number; name: string }[] = await db.select().from(users);
const one = await db.query.users.findFirst({ with: { posts: true } });
const titles: string[] | undefined = one?.posts.map(({ title }) => title);
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
export { all, count, done, names, titles };
