/**
 * What a program defines, in a module of functions or for its own loop.
 *
 * Owns: reading the arguments of a definition. Invariant: what is wrong in one is an error of the program's, which names the function. Leaves out: names and numbers that SQLite refuses, which `open` tells.
 */

import { types } from "node:util";
import { misuse, whole } from "../native/errors.js";
import type { AggregateOptions, FunctionOptions, Functions } from "./types.js";

export const [FUNCTION, AGGREGATE, WINDOW, COLLATION] = [0, 1, 2, 3] as const;
const INTEGERS = ["number", "auto", "bigint"];
const OPTIONS = ["deterministic", "directOnly", "integers", "varargs"];
const OF_AGGREGATES = [...OPTIONS, "start", "step", "inverse", "result"];

/** As the native module reads it, and its code. */
export type Definition = [
  name: string,
  kind: number,
  args: number,
  deterministic: boolean,
  directOnly: boolean,
  integers: number,
  code: Code,
];

type Any = (...args: any[]) => any;
export type Code = { call: Any } | { start: unknown; step: Any; inverse: Any | undefined; result: Any | undefined };

export class Defined implements Functions {
  readonly all: Definition[] = [];
  /** All was defined. */
  isOver = false;

  function(name: string, given: FunctionOptions | Any, code?: Any): void {
    const [options, call] = typeof given === "function" ? [{}, given] : [given, code];
    if (typeof call !== "function") {
      throw wrong(`the function ${name} needs a function in JavaScript: function(name, [options], code)`);
    }
    checkAwaited(`the function ${name}`, call);
    checked(name, options, OPTIONS);
    this.add(name, FUNCTION, call.length, options, { call });
  }

  aggregate(name: string, options: AggregateOptions): void {
    checked(name, options, OF_AGGREGATES);
    const { start = null, step, inverse, result } = options;
    for (const [of, code] of Object.entries({ step, inverse, result })) {
      if (typeof code !== "function" && (code !== undefined || of === "step")) {
        throw wrong(`the aggregate ${name} needs a function as its ${of}`);
      }
      checkAwaited(`the ${of} of ${name}`, code);
    }
    // The first parameter is the total.
    const count = Math.max(step.length, inverse?.length ?? 0, 1) - 1;
    this.add(name, inverse ? WINDOW : AGGREGATE, count, options, { start, step, inverse, result });
  }

  collation(name: string, compare: (one: string, other: string) => number): void {
    if (typeof compare !== "function") {
      throw wrong(`the collation ${name} needs a function that compares two strings`);
    }
    this.add(name, COLLATION, 2, {}, { call: compare });
  }

  private add(name: string, kind: number, count: number, options: FunctionOptions, code: Code): void {
    const { deterministic = false, directOnly = false, varargs = false, integers = "number" } = options;
    if (this.isOver) {
      throw wrong(`${name} is defined too late: the functions of the database are known`);
    }
    if (typeof name !== "string") {
      throw wrong("the name of a function must be a string");
    }
    for (const [option, value] of Object.entries({ deterministic, directOnly, varargs })) {
      if (typeof value !== "boolean") {
        throw wrong(`the option "${option}" of ${name} must be true or false`);
      }
    }
    if (!INTEGERS.includes(integers)) {
      throw wrong(`the option "integers" of ${name} must be "number", "auto" or "bigint"`);
    }
    const of = INTEGERS.indexOf(integers);
    this.all.push([whole(name, "the name"), kind, varargs ? -1 : count, deterministic, directOnly, of, code]);
  }
}

function checked(name: string, options: object, known: string[]): void {
  if (typeof options !== "object" || options === null) {
    throw wrong(`the options of ${name} must be an object`);
  }
  const unknown = Object.keys(options).find((option) => !known.includes(option));
  if (unknown !== undefined) {
    const hint = unknown === "safeIntegers" ? `say { integers: "bigint" }` : `there are ${known.join(", ")}`;
    throw wrong(`${name} has no option "${unknown}"`, hint);
  }
}

function checkAwaited(what: string, code: unknown): void {
  if (types.isAsyncFunction(code)) {
    throw wrong(`${what} is async: what SQLite calls must return its result`);
  }
}

function wrong(message: string, hint?: string) {
  return misuse(message, hint, "invalid_function");
}
