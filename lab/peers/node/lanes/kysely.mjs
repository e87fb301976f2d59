// kysely_point: one row by its key through Kysely, on the dialect for each library.

import assert from "../assert.mjs";

import { INSERT_ITEM, ITEMS, items } from "../data.mjs";
import { Timing } from "../measure.mjs";

const POINTS = 1000;
const COLUMNS = ["id", "name", "description", "value", "category", "created_at"];
const now = process.hrtime.bigint;

function run(trial) {
  const count = trial.size(20_000, 200);
  const rows = items(POINTS);
  return trial.opened(async (peer) => {
    await peer.execute(ITEMS);
    const written = await peer.many(INSERT_ITEM, rows.map(({ id: _, ...row }) => Object.values(row)));
    assert.equal(written, POINTS, "rows were not written");
    const db = await peer.kysely();
    const ask = (id) => db.selectFrom("items").select(COLUMNS).where("id", "=", id).executeTakeFirst();
    for (let at = 0; at < count / 20; at++) await ask((at % POINTS) + 1);
    const timing = new Timing();
    for (let at = 0; at < count; at++) {
      const id = (at % POINTS) + 1;
      const began = now();
      const row = await ask(id);
      timing.samples.push(Number(now() - began));
      assert.ok(row.id === id && row.name === rows[id - 1].name, "a row is not what was written");
    }
    assert.deepEqual(await ask(POINTS), rows[POINTS - 1], "a row is not what was written");
    return timing.end(count);
  });
}

export const LANES = [
  { name: "kysely_point", about: "one row by its key through Kysely", tag: "focused", group: "node", ops_unit: "queries",
    awaits: true, needs: "kysely", run },
];
