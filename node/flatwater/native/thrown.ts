/**
 * What a function of the program has thrown, on its way from the worker thread to the call.
 *
 * Owns: its form as bytes. Invariant: anything can be thrown; an error keeps its message, its stack and its cause, its name, and the
 * properties of its own that can be copied.
 */

import { types } from "node:util";
import { deserialize, serialize } from "node:v8";

/** The forms of what was thrown, the best one first. */
const FORMS: ((thrown: any) => unknown[])[] = [
  (thrown) => (types.isNativeError(thrown) ? [thrown, { ...thrown, name: String(thrown.name) }] : [thrown]),
  (thrown) => [thrown, { name: String(thrown.name) }],
  (thrown) => [thrown],
  (thrown) => [String(thrown)],
];

export function toBytes(thrown: unknown): Uint8Array {
  for (const form of FORMS) {
    try {
      return serialize(form(thrown));
    } catch {
      // A property, or all of it, cannot be read or copied, such as a function.
    }
  }
  return serialize([undefined]);
}

export function fromBytes(bytes: Uint8Array): unknown {
  const [thrown, own] = deserialize(bytes) as [unknown, { name?: string } | undefined];
  if (own === undefined || !types.isNativeError(thrown)) {
    return thrown;
  }
  const { name, ...others } = own;
  if (name !== undefined && thrown.name !== name) {
    Object.defineProperty(thrown, "name", { value: name, configurable: true, writable: true });
  }
  return Object.assign(thrown, others);
}
