/** SQLite that never stalls the event loop, as fast as calling it directly. */

export * as process from "./process.js";
export type { BackupOptions, BackupProgress } from "./calls/backup.js";
export { BlobHandle } from "./calls/blob.js";
export type { RunOptions, RunResult } from "./calls/batch.js";
export { Batches, RowStream, type BatchesOptions } from "./calls/batches.js";
export { IntegrityCheck, type CheckOptions } from "./calls/check.js";
export type {
  As,
  BatchStatement,
  CallOptions,
  ExecuteResult,
  Integers,
  QueryOptions,
  Statement,
} from "./calls/calls.js";
export { Connection, type ConnectionOptions } from "./handles/connection.js";
export type { CheckpointInfo, CheckpointMode, ExportOptions } from "./calls/care.js";
export { Database } from "./handles/database.js";
export type {
  AggregateOptions,
  DefineFunctions,
  FunctionArgument,
  FunctionOptions,
  FunctionResult,
  Functions,
} from "./functions/types.js";
export { FlatwaterError, type Constraint, type ErrorKind } from "./native/errors.js";
export { open } from "./handles/open.js";
export { Snapshot } from "./handles/snapshot.js";
export { Live, type Change, type LiveOptions, type LiveStatement } from "./handles/live.js";
export type { Migrations, Options, Tuning } from "./handles/options.js";
export type { JsonOptions } from "./calls/json.js";
export { Session, type Row } from "./handles/session.js";
export { PreparedStatement, type ColumnDefinition, type StatementOptions } from "./handles/statement.js";
export type { StandardSchema } from "./calls/as.js";
export type { Types, TypeWord } from "./calls/types.js";
export { sql, Sql, type DecimalValue, type Params, type ParamValue, type SqlValue } from "./values/sql.js";
export type {
  CallKind,
  CallStats,
  InlineStats,
  LeaseStats,
  LiveStats,
  Stats,
  TurnStats,
  WalBlocker,
  WalStats,
} from "./handles/stats.js";
export type { StatementEvent } from "./native/tracing.js";
export { BegunTransaction, Transaction } from "./handles/transaction.js";
