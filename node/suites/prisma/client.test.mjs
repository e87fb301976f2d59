// Prisma's client on the driver adapter.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { PrismaFlatwater } from "../../dist/prisma.mjs";
import { folder, numbers } from "../../test/support.mjs";

const { Prisma, PrismaClient } = createRequire(import.meta.url)("./target/client/index.js");

// As `prisma migrate diff` writes it for the schema.
const TABLES = `
CREATE TABLE "User" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    "email" TEXT NOT NULL,
    "big" BIGINT,
    "price" DECIMAL,
    "real" REAL,
    "ok" BOOLEAN NOT NULL DEFAULT true,
    "at" DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "raw" BLOB,
    "doc" JSONB
);
CREATE TABLE "Post" (
    "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    "title" TEXT NOT NULL,
    "authorId" INTEGER NOT NULL,
    CONSTRAINT "Post_authorId_fkey" FOREIGN KEY ("authorId") REFERENCES "User" ("id") ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE UNIQUE INDEX "User_email_key" ON "User"("email");
`;

async function client(t, options) {
  const adapter = new PrismaFlatwater({ url: `file:${join(folder(t), "test.db")}` });
  const tables = await adapter.connect();
  await tables.executeScript(TABLES);
  await tables.dispose();
  const prisma = new PrismaClient({ adapter, ...options });
  t.after(() => prisma.$disconnect());
  return prisma;
}
const emails = async (on) => (await on.user.findMany({ orderBy: { id: "asc" } })).map(({ email }) => email);

test("values of all kinds are stored and come back", async (t) => {
  const prisma = await client(t);
  const data = {
    email: "ada@example.org",
    big: 9007199254740993n,
    price: new Prisma.Decimal("1.5"),
    real: 0.25,
    ok: false,
    at: new Date("2026-01-02T03:04:05.678Z"),
    raw: new Uint8Array([0, 1, 255]),
    doc: { tags: ["a", null], n: 1 },
  };
  const made = await prisma.user.create({ data });
  assert.equal(made.id, 1);
  const found = await prisma.user.findUniqueOrThrow({ where: { email: data.email } });
  for (const user of [made, found]) {
    assert.ok(user.price.equals(data.price));
    assert.deepEqual({ ...user, price: data.price, raw: new Uint8Array(user.raw) }, { id: 1, ...data });
  }
  const nothing = await prisma.user.create({ data: { email: "eve" } });
  assert.deepEqual([nothing.big, nothing.price, nothing.raw, nothing.doc, nothing.ok], [null, null, null, null, true]);
  assert.equal(await prisma.user.count({ where: { at: { lt: new Date("2026-06-01") } } }), 1);
  assert.equal((await prisma.user.aggregate({ _sum: { real: true }, _max: { big: true } }))._max.big, data.big);
});

test("nested writes, relations and raw queries work", async (t) => {
  const prisma = await client(t);
  await prisma.user.create({ data: { email: "ada", posts: { create: [{ title: "one" }, { title: "two" }] } } });
  const [user] = await prisma.user.findMany({
    include: { posts: { orderBy: { id: "desc" }, select: { title: true } } },
  });
  assert.deepEqual(user.posts, [{ title: "two" }, { title: "one" }]);
  const rows = await prisma.$queryRaw`SELECT id, title FROM Post WHERE title = ${"one"}`;
  assert.deepEqual(rows, [{ id: 1, title: "one" }]);
  assert.equal(await prisma.$executeRaw`UPDATE Post SET title = ${"both"}`, 2);
  assert.equal((await prisma.post.updateMany({ data: { title: "all" } })).count, 2);
  assert.equal((await prisma.user.delete({ where: { id: 1 } })).email, "ada");
  assert.equal(await prisma.post.count(), 0);
  const many = Array.from({ length: 1000 }, (_, at) => ({ email: `user ${at}` }));
  assert.equal((await prisma.user.createMany({ data: many })).count, 1000);
  const ids = (await prisma.user.findMany({ select: { id: true } })).map(({ id }) => id);
  assert.equal((await prisma.user.findMany({ where: { id: { in: ids } } })).length, 1000);
});

test("each row of a raw query has its own value", async (t) => {
  const prisma = await client(t);
  const column = async (...values) => {
    const rows = values.map((value, at) => `SELECT ${at} AS o, ${value} AS v`).join(" UNION ALL ");
    return (await prisma.$queryRawUnsafe(`SELECT v FROM (${rows}) ORDER BY o`)).map(({ v }) => v);
  };
  assert.deepEqual(await column("x'00'", "'hello world!'"), [new Uint8Array([0]), "hello world!"]);
  assert.deepEqual((await column("9007199254740993", "2.5")).map(String), ["9007199254740993", "2.5"]);
  assert.deepEqual(await column("5", "count(*)"), [5n, 1n]);
  assert.deepEqual(await column("2.0", "2.5"), [2, 2.5]);
  assert.deepEqual(await column("5", "9007199254740993", "NULL"), [5n, 9007199254740993n, null]);
  assert.deepEqual(await column("9007199254740993", "'a'", "x''"), [9007199254740993n, "a", new Uint8Array()]);
  await prisma.$executeRaw`INSERT INTO User (email, at, real, big, doc) VALUES ('ada', '2026-03-08 07:30:00', 'text', 2.5, '5')`;
  const [user] = await prisma.$queryRaw`SELECT at, real, big, doc FROM User`;
  assert.deepEqual(user, { at: new Date("2026-03-08T07:30:00Z"), real: "text", big: 2.5, doc: 5 });
  const [{ at }] = await prisma.user.findMany({ select: { at: true } });
  assert.deepEqual(at, user.at);
  await assert.rejects(prisma.user.findMany({ select: { real: true } }), /real/);
});

test("a statement that comes after the end of its transaction is refused", async (t) => {
  const prisma = await client(t);
  for (let ticks = 0; ticks < 60; ticks += 3) {
    let late;
    const failing = prisma.$transaction(async (tx) => {
      late = (async () => {
        for (let tick = 0; tick < ticks; tick++) await null;
        await tx.user.create({ data: { email: `late ${ticks}` } });
      })().catch(() => {});
      throw new RangeError("not today");
    });
    await assert.rejects(failing, RangeError);
    await late;
  }
  assert.deepEqual(await emails(prisma), []);
});

test("an error has Prisma's code", async (t) => {
  const prisma = await client(t);
  await prisma.user.create({ data: { email: "ada" } });
  await assert.rejects(prisma.user.create({ data: { email: "ada" } }), { code: "P2002" });
  await assert.rejects(prisma.post.create({ data: { title: "of nobody", authorId: 7 } }), { code: "P2003" });
  await assert.rejects(prisma.$queryRaw`SELECT * FROM absent`, { code: "P2010" });
  await assert.rejects(prisma.user.findUniqueOrThrow({ where: { id: 7 } }), { code: "P2025" });
});

test("15 interactive transactions at once all succeed, beside a slow query", async (t) => {
  const prisma = await client(t);
  const slow = prisma.$queryRawUnsafe(`${numbers(1_000_000)} SELECT count(*) AS count FROM c`);
  const one = (at) =>
    prisma.$transaction(
      async (tx) => {
        const user = await tx.user.create({ data: { email: `user ${at}` } });
        await tx.post.create({ data: { title: "first", authorId: user.id } });
        return tx.post.count();
      },
      { maxWait: 60_000, timeout: 60_000 },
    );
  const counts = await Promise.all(Array.from({ length: 15 }, (_, at) => one(at)));
  assert.deepEqual(
    counts.sort((a, b) => a - b),
    Array.from({ length: 15 }, (_, at) => at + 1),
  );
  assert.equal(Number((await slow)[0].count), 1_000_000);
});

test("a transaction is undone with the error of its function, or all of a list with that of one", async (t) => {
  const prisma = await client(t);
  const failing = prisma.$transaction(async (tx) => {
    await tx.user.create({ data: { email: "never" } });
    throw new RangeError("not today");
  });
  await assert.rejects(failing, RangeError);
  const twice = [0, 1].map(() => prisma.user.create({ data: { email: "twice" } }));
  await assert.rejects(prisma.$transaction(twice), { code: "P2002" });
  const levels = { isolationLevel: "Serializable" };
  await prisma.$transaction((tx) => tx.user.create({ data: { email: "kept" } }), levels);
  assert.deepEqual(await emails(prisma), ["kept"]);
});

test("a transaction that takes too long is rolled back, and gives the writer back", async (t) => {
  const prisma = await client(t);
  let goOn;
  const waits = new Promise((resolve) => (goOn = resolve));
  const late = prisma.$transaction(
    async (tx) => {
      await tx.user.create({ data: { email: "late" } });
      await waits;
      await tx.user.create({ data: { email: "later" } });
    },
    { timeout: 50 },
  );
  // It waits for the transaction before it, until that is rolled back.
  await prisma.user.create({ data: { email: "next" } });
  goOn();
  await assert.rejects(late, { code: "P2028" });
  assert.deepEqual(await emails(prisma), ["next"]);
});
