// parameterised, churn_{40,64,128}: selects with parameters and many texts.

import assert from "../assert.mjs";

import { INSERT_T, T, fillItems, items, tRow, tRows, text, times } from "../data.mjs";
import { Timing } from "../measure.mjs";

const BY_CATEGORY = "SELECT id, name, value FROM items WHERE category = ? ORDER BY id";
const CATEGORIES = 10;
const ROWS = 1000;

function touch(rows) {
  let sum = 0;
  for (const row of rows) sum += row.id + text(row.name) + row.value;
  return sum;
}

function parameterised(trial) {
  const [rows, count] = [trial.size(5_000, 500), trial.size(2_000, 20)];
  return trial.open((peer) => {
    fillItems(peer, rows);
    peer.execute("CREATE INDEX items_category ON items (category)");
    const names = times(CATEGORIES, (at) => `category_${at}`);
    const expected = names.map((name) => touch(items(rows).filter((row) => row.category === name)));
    const timing = new Timing();
    for (let i = 0; i < count; i++) {
      const at = i % CATEGORIES;
      const sum = timing.time(() => touch(peer.query(BY_CATEGORY, names[at])));
      assert.equal(sum, expected[at], `the rows of ${names[at]} are not those that were written`);
    }
    return timing.end(count);
  });
}

function churn(trial, texts) {
  const count = trial.size(20_000, 2 * texts);
  const statements = times(texts, (n) => `SELECT name, value + ${n} AS value FROM t WHERE id = ?`);
  const touched = (rows) => (rows.length === 1 ? text(rows[0].name) + rows[0].value : NaN);
  return trial.open((peer) => {
    peer.execute(T);
    peer.many(INSERT_T, tRows(ROWS).map(Object.values));
    const timing = new Timing();
    for (let i = 0; i < count; i++) {
      const [at, row] = [i % texts, i % ROWS];
      const sum = timing.time(() => touched(peer.query(statements[at], row + 1)));
      const { name, value } = tRow(row);
      assert.equal(sum, touched([{ name, value: value + at }]), `row ${row} is not what was written`);
    }
    return timing.end(count);
  });
}

const lane = { group: "reads", ops_unit: "queries" };
export const LANES = [
  { ...lane, tag: "release", name: "parameterised", about: "about 500 rows of 3 columns by an indexed parameter",
    run: parameterised },
  ...[40, 64, 128].map((texts) => ({
    ...lane,
    tag: "focused",
    name: `churn_${texts}`,
    about: `point queries that rotate through ${texts} texts`,
    run: (trial) => churn(trial, texts),
  })),
];
