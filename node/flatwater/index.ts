/** SQLite that never stalls the event loop, as fast as calling it directly. */

import { native } from "./addon.js";
import { misuse } from "./errors.js";

export { BlobHandle } from "./blob.js";
export type { BatchResult } from "./batch.js";
export { Batches, RowStream, type BatchesOptions } from "./batches.js";
export type { As, BatchStatement, CallOptions, ExecuteResult, Integers, QueryOptions, Statement } from "./calls.js";
export { Database, open, Snapshot, type CheckpointMode } from "./database.js";
export { FlatwaterError, type Kind } from "./errors.js";
export { Live, type Change, type LiveOptions, type LiveStatement } from "./live.js";
export type { Migrations, Options, Tuning } from "./options.js";
export type { JsonOptions } from "./json.js";
export { Session, type Row } from "./session.js";
export { PreparedStatement, type ColumnDefinition } from "./statement.js";
export { sql, Sql, type Params, type SqlValue } from "./sql.js";
export type { Stats } from "./stats.js";
export type { QueryContext } from "./tracing.js";
export { Transaction } from "./transaction.js";

/** Keeps at most so many databases of this process open; others are parked until they are used. */
export function setMaxOpen(databases: number): void {
  if (!Number.isInteger(databases) || databases < 1) {
    throw misuse("the number of databases must be a whole number, from 1 on");
  }
  native.setMaxOpen(databases);
}
