/**
 * The options of `open`.
 *
 * Owns: their types and what they mean. The native module checks them. Times are in milliseconds.
 */

import type { Integers } from "./calls.js";
import type { Migrations } from "./database.js";

/** What a service sets. Every option has a default. */
export interface Options {
  /** Other database files, each under the name by which SQL refers to it. */
  attach?: Record<string, string>;
  /** How long a call waits for a lock of another process. Default 30,000. */
  busyTimeout?: number;
  /** How long `close` waits for calls that run. */
  closeWait?: number;
  /** Create the file if it is not there. Default true. */
  create?: boolean;
  /** The content of a database in memory, as `serialize` returns it. The path is `:memory:`. */
  deserialize?: Uint8Array | ArrayBuffer;
  /**
   * Take a name in double quotes for a text if there is no column of that name, as SQLite does by itself. Default false: a
   * misspelt column is an error. Views and triggers of the file that have such texts need it.
   */
  doubleQuotedStrings?: boolean;
  /** What survives a loss of power: the database without its last commits, or all commits. Default `normal`. */
  durability?: "normal" | "full";
  /** Check foreign keys. Default true. */
  foreignKeys?: boolean;
  /** What integers become. Default `number`. */
  integers?: Integers;
  /** The key of an encrypted file. The package is built without encryption, and refuses it. */
  key?: string | Uint8Array;
  /** Extensions that are loaded on each connection: a path, or an array of paths and of paths with their entry points. */
  loadExtension?: string | readonly (string | readonly [path: string, entry: string])[];
  /** Applied before `open` resolves. */
  migrations?: Migrations;
  /** SQL that runs on each new connection. */
  onOpen?: string | string[];
  /** Default false. */
  readOnly?: boolean;
  /** Connections that read. */
  readers?: number;
  /** The deadline of each call that has none of its own. */
  timeout?: number;
  /** After so long without a call a transaction is rolled back. Default 30,000. */
  transactionIdle?: number;
  /** What most programs leave as it is. */
  tuning?: Tuning;
  /** The file may come from strangers: it is read-only unless `readOnly` is false, and what its schema may do is limited. */
  untrusted?: boolean;
}

/** What most programs leave as it is. */
export interface Tuning {
  autoVacuum?: "none" | "full" | "incremental";
  checkpoint?: "managed" | "external";
  fairness?: "auto" | "off";
  group?: boolean;
  inline?: boolean;
  journal?: "wal" | "keep";
  secondCopy?: "refuse" | "warn" | "off";
  tempStore?: "auto" | "file" | "memory";
  [option: string]: unknown;
}
