/** Types of functions in JavaScript. */

import type { SqlValue } from "../values/sql.js";

/** An argument of a function: of NULL, INTEGER, REAL, TEXT and BLOB. */
export type FunctionArgument = null | number | bigint | string | Uint8Array;

/** What a function may return: what may be a parameter. Undefined is NULL. */
export type FunctionResult = SqlValue | undefined | void;

/** What SQLite is told of a function. */
export interface FunctionOptions {
  /** The result depends on the arguments alone: indexes and generated columns need that. Default false. */
  deterministic?: boolean | undefined;
  /** The schema of a file must not call it: no trigger, view, index, CHECK or generated column. Default false. */
  directOnly?: boolean | undefined;
  /** What integers become. Default `number`, which fails for one beyond 2^53. */
  integers?: "number" | "auto" | "bigint" | undefined;
  /** It takes any number of arguments. Default false: as many as the function declares. */
  varargs?: boolean | undefined;
}

/** An aggregate function; with `inverse` one that can be used with OVER as well. */
export interface AggregateOptions<Total = any> extends FunctionOptions {
  /** The total before the first row of a group, or a function that makes it. Default null. */
  start?: Total | (() => Total);
  /** Called with the arguments of each row. What it returns is the total from then on; undefined leaves it as it is. */
  step(total: Total, ...args: any[]): Total | void;
  /** Takes a row out of the total again, when it leaves the window. */
  inverse?(total: Total, ...args: any[]): Total | void;
  /** Makes the result of the total. Default: the total. */
  result?(total: Total): FunctionResult;
}

/** What the function gets that a module of functions exports, or that `functionsOnLoop` is. The methods are those of better-sqlite3. */
export interface Functions {
  /** Defines a function of as many arguments as `code` declares. */
  function(name: string, code: (...args: any[]) => FunctionResult): void;
  function(name: string, options: FunctionOptions, code: (...args: any[]) => FunctionResult): void;
  /** Defines an aggregate function. */
  aggregate<Total = any>(name: string, options: AggregateOptions<Total>): void;
  /** Defines a collation: `compare` returns a number below 0, 0, or one above. It must always order the same way. */
  collation(name: string, compare: (one: string, other: string) => number): void;
}

/** What a module of functions exports as its default. */
export type DefineFunctions = (db: Functions) => void | Promise<void>;
