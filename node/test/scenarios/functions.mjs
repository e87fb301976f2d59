// The functions and collations that scenarios name (conformance/rust/src/program/functions.rs), under the names that the URL says:
// `functions.mjs?double=f` defines `double` as `f`.
const integer = { deterministic: true, integers: "auto" };
const total = { ...integer, start: null, step: (sum, value) => (sum ?? 0) + value };

const DEFINED = {
  double: (db, name) => db.function(name, integer, (value) => (value === null ? null : 2 * value)),
  triple: (db, name) => db.function(name, integer, (value) => (value === null ? null : 3 * value)),
  arguments: (db, name) => db.function(name, { ...integer, varargs: true }, (...values) => values.length),
  total: (db, name) => db.aggregate(name, total),
  moving: (db, name) => db.aggregate(name, { ...total, inverse: (sum, value) => sum - value }),
  reversed: (db, name) => db.collation(name, (one, other) => Buffer.compare(Buffer.from(other), Buffer.from(one))),
  checked: (db, name) =>
    db.function(name, integer, (value) => {
      if (value === "bad") {
        throw new Error("the program's own");
      }
      return value;
    }),
};

export default (db) => {
  for (const [of, name] of new URL(import.meta.url).searchParams) {
    DEFINED[of](db, name);
  }
};
