/**
 * A result as JSON that leaves as it is fetched.
 *
 * Owns: making one document of the documents of the batches. Invariant: what was read is the beginning of a JSON array, and of a whole one
 * if the stream ends without an error. Leaves out: writing JSON, which the engine does.
 */

import { misuse } from "../native/errors.js";
import { DONE, type Reader } from "../native/loop.js";
import type { Trace } from "../native/tracing.js";
import { readableOf } from "./batches.js";
import type { CallOptions } from "./calls.js";
import { check, JSON_OPTIONS, switchOf } from "./given.js";
import { Parts } from "./parts.js";
import { STORED } from "./types.js";

const ARRAYS = 1;
const STRINGS = 2;

/** How {@link Session.queryJson} writes rows. */
export interface JsonOptions extends CallOptions {
  /** Rows as arrays of their values. Several columns may then have the same name. */
  arrays?: boolean | undefined;
  /** Integers beyond 2^53 - 1 as strings. Otherwise as numbers, which `JSON.parse` rounds. */
  bigIntegersAsStrings?: boolean | undefined;
  /** The names of columns whose texts are JSON, and become parts of the document. */
  embed?: readonly string[] | undefined;
}

/** The form of JSON, as the native module takes it. */
export function formOfJson(options: JsonOptions | undefined): number {
  return (switchOf(options, "arrays") ? ARRAYS : 0) + (switchOf(options, "bigIntegersAsStrings") ? STRINGS : 0);
}

export function embeddedOf(options: JsonOptions | undefined): readonly string[] | undefined {
  const embedded: unknown = options?.embed;
  const isList = Array.isArray(embedded) && embedded.every((name) => typeof name === "string");
  if (embedded !== undefined && !isList) {
    throw misuse("embed must be an array of the names of columns", 'such as { embed: ["tags"] }');
  }
  return embedded as readonly string[] | undefined;
}

/** A document for each batch. */
class Documents extends Parts<Buffer> {
  /** @internal */
  constructor(begin: () => number, options: JsonOptions | undefined, trace: Trace | undefined) {
    const checked = () => {
      check(options, JSON_OPTIONS);
      return { integers: 0, types: STORED, isOwn: false, handle: begin() };
    };
    super(checked, options?.signal, trace);
  }

  protected reader(): Reader<Buffer | undefined> {
    return { end: (answer) => (answer === DONE ? undefined : (answer as Buffer)) };
  }
}

/** One document, as a stream of the web. */
export function jsonStream(
  begin: () => number,
  options: JsonOptions | undefined,
  trace: Trace | undefined,
): ReadableStream<Uint8Array> {
  const documents = new Documents(begin, options, trace);
  let isBegun = false;
  let isOver = false;
  const next = async (): Promise<IteratorResult<Uint8Array, undefined>> => {
    if (isOver) {
      return { done: true, value: undefined };
    }
    const { done, value } = await documents.next();
    if (done) {
      isOver = true;
      return { done: false, value: Buffer.from(isBegun ? "]" : "[]") };
    }
    // Each is an array of its own, with at least one row.
    value[0] = (isBegun ? "," : "[").charCodeAt(0);
    isBegun = true;
    return { done: false, value: value.subarray(0, -1) };
  };
  return readableOf({ next, return: () => documents.return() });
}
