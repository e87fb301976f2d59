// What lanes check with: Node's strict assertions. Rows of node:sqlite have no prototype, and are equal to those that have one.

import strict from "node:assert/strict";

const plain = (value) => {
  if (Array.isArray(value)) return value.map(plain);
  return value !== null && typeof value === "object" && Object.getPrototypeOf(value) === null ? { ...value } : value;
};

function assert(...given) {
  strict(...given);
}

export default Object.assign(assert, strict, {
  deepEqual: (actual, expected, message) => strict.deepEqual(plain(actual), expected, message),
});
