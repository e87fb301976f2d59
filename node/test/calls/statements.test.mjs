// Prepared statements: the forms of their rows, and the options of their calls.
import assert from "node:assert/strict";
import { test } from "node:test";
import { betterSqlite3, database, ENDLESS } from "../support.mjs";

const SCHEMA = `CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE posts (id INTEGER PRIMARY KEY, author, title);
  INSERT INTO users VALUES (1, 'Ada'), (9007199254740993, 'Eve'); INSERT INTO posts VALUES (7, 1, 'Tea')`;
const JOIN = "SELECT u.*, p.*, upper(name) AS big, 1 AS one FROM users u JOIN posts p ON p.author = u.id";

test("expanded rows are objects by their tables, and the forms exclude each other", async (t) => {
  const db = await database(t);
  await db.executeScript(SCHEMA);
  const join = await db.prepare(JOIN);
  const expanded = {
    users: { id: 1, name: "Ada" },
    posts: { id: 7, author: 1, title: "Tea" },
    $: { big: "ADA", one: 1 },
  };
  assert.deepEqual(await join.expand().get(), expanded);
  assert.deepEqual(await join.all(), [expanded]);
  for await (const row of join.iterate()) {
    assert.deepEqual(row, expanded);
  }
  assert.deepEqual(await join.raw().get(), [1, "Ada", 7, 1, "Tea", "ADA", 1]);
  assert.equal(await join.pluck().get(), 1);
  assert.equal(await join.raw(false).get(), 1, "what is off already changes nothing");
  assert.deepEqual(await join.expand().get(), expanded);
  await assert.rejects(join.expand(false).get(), { code: "FLATWATER_DUPLICATE_COLUMN" });
  const Peer = betterSqlite3();
  if (Peer !== undefined) {
    const peer = new Peer(":memory:");
    peer.exec(SCHEMA);
    assert.deepEqual(peer.prepare(JOIN).expand().get(), expanded);
    peer.close();
  }
});

test("integers are safe where they are asked for", async (t) => {
  const db = await database(t);
  await db.executeScript(SCHEMA);
  const last = await db.prepare("SELECT id FROM users ORDER BY id DESC");
  await assert.rejects(last.get(), { kind: "decode", message: /beyond 2\^53/ });
  assert.deepEqual(await last.safeIntegers().all(), [{ id: 9007199254740993n }, { id: 1n }]);
  assert.equal(await last.pluck().get(), 9007199254740993n);
  assert.deepEqual((await last.iterate().next()).value, 9007199254740993n);
  await assert.rejects(last.safeIntegers(false).get(), { kind: "decode" });
  const auto = last.pluck(false).with({ integers: "auto" });
  await assert.rejects(auto.get(), { kind: "decode" }, "what was said of the statement comes first");
  const first = await db.prepare("SELECT id FROM users ORDER BY id DESC");
  assert.deepEqual(await first.with({ integers: "auto" }).all(), [{ id: 9007199254740993n }, { id: 1 }]);
});

test("a statement takes every option of a call, and the one it was made of stays as it was", async (t) => {
  const db = await database(t);
  await db.executeScript(SCHEMA);
  const endless = await db.prepare(`SELECT (${ENDLESS}) AS a WHERE ?`);
  const late = endless.with({ timeout: 10 });
  await assert.rejects(late.get(1), { kind: "timeout" });
  await assert.rejects(late.all(1), { kind: "timeout" });
  await assert.rejects(late.run(1), { kind: "timeout" });
  await assert.rejects(late.iterate(1).next(), { kind: "timeout" });
  await assert.rejects(late.pluck().get(1), { kind: "timeout" });
  assert.equal(await endless.get(0), undefined);
  const reason = new RangeError("given up");
  const aborted = endless.with({ signal: AbortSignal.abort(reason) });
  await assert.rejects(aborted.get(1), (error) => error === reason);
  await assert.rejects(aborted.columns(), (error) => error === reason);
  class User {
    get shout() {
      return `${this.name}!`;
    }
  }
  const users = (await db.prepare("SELECT name FROM users ORDER BY name")).with({ as: User });
  assert.equal((await users.get()).shout, "Ada!");
  assert.deepEqual(
    (await users.all()).map((user) => user.shout),
    ["Ada!", "Eve!"],
  );
  for await (const user of users.with({ timeout: 60_000 }).iterate()) {
    assert.ok(user instanceof User);
    break;
  }
  await assert.rejects(users.pluck().get(), { kind: "misuse", message: /`pluck` takes one value/ });
  await assert.rejects(users.iterate().next(), { kind: "misuse" });
  assert.throws(() => endless.with({ timout: 5 }), { message: /did you mean "timeout"/ });
  await assert.rejects(endless.with({ timeout: "soon" }).get(1), { kind: "misuse" });
  await db.transaction(async (tx) => {
    const inside = users.pluck(false).in(tx).with({ integers: "bigint" });
    assert.equal((await inside.get()).shout, "Ada!");
  });
});
