// Rows become what a Standard Schema makes of them (https://standardschema.dev).
import assert from "node:assert/strict";
import { test } from "node:test";
import { database } from "../support.mjs";

/** A schema as a library has it: of rows with a name, which is in capitals afterwards. */
const named = (validate) => ({ "~standard": { version: 1, vendor: "test", validate } });
const shout = (row) =>
  typeof row.name === "string"
    ? { value: { name: row.name.toUpperCase() } }
    : {
        issues: [
          { message: `expected a text, received ${row.name}`, path: ["name"] },
          { message: "no", path: [{ key: "name" }] },
        ],
      };

async function withUsers(t) {
  const db = await database(t);
  await db.executeScript("CREATE TABLE users (name); INSERT INTO users VALUES ('Ada'), ('Eve')");
  return db;
}

const sql = "SELECT name FROM users ORDER BY rowid";

test("rows are what a schema returns, in every call that takes one, also if it is awaited", async (t) => {
  const db = await withUsers(t);
  // ArkType's are functions, zod's have `parse` too.
  const all = [
    named(shout),
    named(async (row) => shout(row)),
    Object.assign(() => assert.fail("it is no class"), named(shout)),
    { parse: () => assert.fail("the schema comes first"), ...named(shout) },
  ];
  for (const as of all) {
    assert.deepEqual(await db.query(sql, [], { as }), [{ name: "ADA" }, { name: "EVE" }]);
    assert.deepEqual(await db.queryOne(sql, [], { as }), { name: "ADA" });
    assert.equal(await db.queryOptional("SELECT name FROM users WHERE 0", [], { as }), undefined);
    const statement = (await db.prepare(sql)).with({ as });
    assert.deepEqual(await statement.all(), [{ name: "ADA" }, { name: "EVE" }]);
    const rows = [];
    for await (const row of statement.iterate()) {
      rows.push(row);
    }
    assert.deepEqual(rows, [{ name: "ADA" }, { name: "EVE" }]);
  }
});

test("a row that does not fit is an error with its number and place, and the issues as its cause", async (t) => {
  const db = await withUsers(t);
  await db.execute("INSERT INTO users VALUES (12345)");
  const fails = {
    kind: "decode",
    code: "FLATWATER_UNREADABLE_VALUE",
    message: /^row 2 does not fit the schema \(test\) at name -- /,
  };
  for (const as of [named(shout), named(async (row) => shout(row))]) {
    const error = await db.query(sql, [], { as }).catch((error) => error);
    assert.throws(() => {
      throw error;
    }, fails);
    assert.ok(!error.message.includes("12345"));
    assert.equal(error.cause.length, 2);
    assert.equal(error.applied, undefined);
    const rows = (await db.prepare(sql)).with({ as }).iterate();
    await rows.next();
    await rows.next();
    await assert.rejects(rows.next(), fails);
    await rows.return();
    const write = "INSERT INTO users VALUES (7) RETURNING name";
    await assert.rejects(db.query(write, [], { as }), { kind: "decode", applied: "yes", message: /executed/ });
    await assert.rejects(db.queryOne(write, [], { as }), { kind: "decode", applied: "yes" });
  }
  const whole = named(() => ({ issues: [{ message: "no" }] }));
  await assert.rejects(db.queryOne(sql, [], { as: whole }), { message: /^row 0 does not fit the schema \(test\) -- / });
});
