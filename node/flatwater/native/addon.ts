/**
 * The native module.
 *
 * Owns: finding and loading it, and the types of its functions. Each copy of this module has one of its own, with its own state.
 * Leaves out: what its answers mean (`loop`).
 */

/** A token from 0 on, one of the codes of `loop`, the text of a chunk of rows, or a value. */
export type Answer = number | string | Uint8Array | string[];

/** A statement of a script: its text; what it does, in upper case; of a PRAGMA its name, in lower case, and whether it is set on or off. */
export type ScriptStatement = readonly [text: string, verb: string, pragma: string, value: "" | "on" | "off"];

/** The constraint that failed, as far as SQLite tells. */
export interface Constraint {
  readonly kind: "unique" | "primary_key" | "not_null" | "check" | "foreign_key" | "trigger" | "data_type" | "other";
  /** SQLite does not name that of a foreign key and of a trigger. */
  readonly table: string | undefined;
  /** In the order of the constraint; empty where SQLite names none. */
  readonly columns: readonly string[];
  /** The name of the index on an expression, or of the CHECK; of a CHECK without a name, its text. */
  readonly name: string | undefined;
}

/** What an error of the engine consists of. */
export interface Fields {
  message: string;
  kind: string;
  code: string;
  constraint?: Constraint;
  errcode?: number;
  sql?: string;
  offset?: number;
  hint?: string;
  applied?: "no" | "yes" | "unknown";
  retryable?: boolean;
  /** What a function of the program has thrown, as bytes. */
  thrown?: Uint8Array;
  /** An error of the operating system. */
  cause?: { message: string; errno?: number; code?: string };
}

export interface Native {
  begin(cells: Float64Array, woken: () => void): void;
  drain(most: number): number;
  poll(token: number): Answer;
  giveUp(token: number): boolean;
  hadTurn(): void;
  keepAlive(on: boolean): void;
  ended(): void;
  failure(): Fields;
  columns(schema: number): string[];
  declaredTypes(schema: number): string[];
  tables(schema: number): string[];
  bytes(): Uint8Array;
  unknown(what: string, name: string, known: string[]): string;
  hasRows(sql: string): boolean;
  statements(script: string): ScriptStatement[];
  described(sql: string): string[];
  sqliteVersion(): [version: string, source: string, number: number];
  tell(connection: number, events: number): number;
  told(connection: number): (readonly [event: string, ...given: (string | number)[]])[];
  limit(connection: number, limit: number, value: number): number;
  listen(target: number, on: boolean): void;
  event(): object | undefined;
  openBlob(target: number, table: string, column: string, rowid: bigint, timeout: number, place: number): Answer;
  readBlob(blob: number, position: number, bytes: number, timeout: number, place: number): Answer;
  writeBlob(blob: number, position: number, bytes: unknown, timeout: number, place: number): Answer;
  functionsOf(url: string, unused: () => void): Answer;
  usedModule(url: string): number;
  serveFunctions(url: string, definitions: unknown[], woken: () => void): Answer;
  serve(
    call: (method: number, at: number, instance: number, ...args: unknown[]) => unknown,
    isOnLoop: boolean,
  ): boolean;
  threw(said: string, thrown: Uint8Array | undefined): void;
  open(
    path: string,
    options: unknown,
    functions: number,
    onLoop: unknown[] | undefined,
    first: number,
    woken: () => void,
    joins: boolean,
  ): Answer;
  close(database: number, place: number): Answer;
  closeAll(wait: number): Answer;
  run(
    operation: number,
    target: number,
    sql: string,
    params: unknown,
    timeout: number,
    place: number,
    integers: number,
    types: number,
  ): Answer;
  queryJson(
    target: number,
    sql: string,
    params: unknown,
    timeout: number,
    place: number,
    form: number,
    embedded: readonly string[] | undefined,
    types: number,
  ): Answer;
  types(pairs: readonly string[], around: number, isOfCall: boolean): number;
  end(transaction: number, commits: boolean, timeout: number): Answer;
  inTransaction(handle: number): boolean;
  savepoint(transaction: number, step: number, name: string, timeout: number, place: number): Answer;
  connection(database: number, busyTimeout: number, foreignKeys: boolean | undefined, place: number): number;
  closeConnection(connection: number): Answer;
  interrupt(connection: number): number;
  totalChanges(connection: number): number;
  release(handle: number): number;
  migrate(target: number, migrations: unknown, ignores: boolean, timeout: number, place: number): Answer;
  queryPlan(database: number, sql: string, timeout: number, place: number): Answer;
  export(database: number, path: string, key: unknown, timeout: number, place: number): Answer;
  rekey(database: number, key: unknown, timeout: number, place: number): Answer;
  hasKey(database: number, key: unknown, timeout: number, place: number): Answer;
  pagesSql(database: number, name: string): string | undefined;
  checkSql(name: string, table: string | undefined, quick: boolean): string;
  problems(row: string): string[];
  batches(
    target: number,
    sql: string,
    params: unknown,
    place: number,
    timeout: number,
    types: number,
    form?: number,
    embedded?: readonly string[],
  ): number;
  live(
    database: number,
    queries: unknown[],
    debounce: number,
    throttle: number,
    changes: boolean,
    types: number,
  ): number;
  next(handle: number, integers: number, place: number, types: number): Answer;
  rows(target: number, takesPlace: boolean, sql: string | undefined, types: number): number;
  addRows(rows: number, from: readonly unknown[], at: number): number;
  addPlain(many: number, numbers: Float64Array, count: number, text: string): number;
  runMany(rows: number, timeout: number, place: number, integers: number, types: number, wantsRows: boolean): Answer;
  stats(database: number): number | object;
  name(database: number): string | undefined;
  allocated(): number | undefined;
  setMaxOpen(databases: number): void;
}

/** The package of this platform that has the native module. */
function platform(): string {
  const { platform, arch, report } = process;
  if (platform !== "linux") {
    return `${platform}-${arch}`;
  }
  const header = (report.getReport() as { header?: { glibcVersionRuntime?: string } }).header;
  return `linux-${arch}-${header?.glibcVersionRuntime ? "gnu" : "musl"}`;
}

/** The name of the package: the same code is two, each with native modules of its own. */
function ownName(): string {
  return (require("../../package.json") as { name: string }).name;
}

/** True in the package that encrypts files. One that is built elsewhere for a test has no name, and does not. */
export function hasEncryption(): boolean {
  try {
    return ownName().startsWith("@");
  } catch {
    return false;
  }
}

function load(): Native {
  try {
    // Beside the package's own code: built in place.
    return require("../flatwater.node") as Native;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") {
      throw error;
    }
  }
  const own = ownName();
  const name = `${own.startsWith("@") ? `${own}-` : "@flatwater/"}${platform()}`;
  try {
    return require(name) as Native;
  } catch (error) {
    throw new Error(`${own} has no native module for this platform: the package ${name} is not installed`, {
      cause: error,
    });
  }
}

export const native: Native = load();
