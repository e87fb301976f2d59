// The functions of the tests.
import { threadId } from "node:worker_threads";

class Refused extends Error {
  name = "Refused";
  code = "E_REFUSED";
}

function fails() {
  throw new Error("it cannot be read");
}

const results = {
  undefined,
  promise: Promise.resolve(1),
  array: [1],
  object: {},
  nan: NaN,
  half: "\ud800",
  function: () => {},
  wide: 2n ** 64n,
  true: true,
  date: new Date(0),
  bigint: 2n ** 62n,
  bytes: new Uint8Array([1, 2]),
};

const thrown = {
  error: () => new Refused("no"),
  caused: () => new Error("outer", { cause: new TypeError("inner") }),
  text: () => "a text",
  getter: () => Object.defineProperty(new RangeError("g"), "code", { enumerable: true, get: () => fails() }),
  proxy: () => new Proxy({}, { get: () => fails(), ownKeys: () => fails(), getPrototypeOf: () => fails() }),
  undefined: () => undefined,
  uncopied: () => Object.assign(new RangeError("with a function"), { f() {} }),
};

/** @type {import("flatwater").DefineFunctions} */
export default (db) => {
  db.function("double", { deterministic: true }, (value) => (value === null ? null : 2 * value));
  db.function("same", { deterministic: true, integers: "auto" }, (value) => value);
  db.function("big", { integers: "bigint" }, (value) => typeof value);
  db.function("exact", (value) => value);
  db.function("count_of", { varargs: true }, (...values) => values.length);
  db.function("count_of", (_) => -1);
  db.function("kind_of", (value) => (value === null ? "null" : value instanceof Uint8Array ? "bytes" : typeof value));
  db.function("result_of", (name) => results[name]);
  db.function("throws", (name) => {
    throw thrown[name]();
  });
  db.function("thread", () => threadId);
  db.function("direct", { directOnly: true }, () => 1);
  db.function("not_bad", { deterministic: true }, (value) => {
    if (value === "bad") {
      throw new Refused("bad");
    }
    return 1;
  });
  db.function("forever", () => {
    for (;;);
  });
  db.function("ends_worker", () => process.exit(3));
  db.function("fails_later", () => void setImmediate(() => assertNothing()));
  db.aggregate("sum_of", { start: 0, step: (sum, value) => sum + value, inverse: (sum, value) => sum - value });
  db.aggregate("longest", {
    start: () => ({ text: "" }),
    step(total, text) {
      if (text === "bad") {
        throw new Refused("bad");
      }
      total.text = text.length > total.text.length ? text : total.text;
    },
    result: ({ text }) => text,
  });
  db.aggregate("joined", {
    varargs: true,
    start: () => [],
    step: (all, ...texts) => all.concat(texts),
    result: (all) => all.join(),
  });
  db.collation("by_length", (one, other) => one.length - other.length);
  db.collation("picky", (one, other) => {
    if (one === "bad" || other === "bad") {
      throw new Refused("bad");
    }
    return one < other ? -1 : Number(one > other);
  });
  db.collation("unsure", () => NaN);
  db.collation("endless", () => {
    for (;;);
  });
};
