/** What is done for a file as a whole: types of options and results. */

import type { CallOptions } from "./calls.js";

/** How much of the WAL a checkpoint waits for, as in SQLite. */
export type CheckpointMode = "passive" | "full" | "restart" | "truncate";

/** What a checkpoint did. */
export interface CheckpointInfo {
  /** Frames in the WAL. */
  frames: number;
  /** How many of them are in the database. */
  copied: number;
}

export interface ExportOptions extends CallOptions {
  /** A passphrase, or the 32 bytes of the key itself. Without one the copy is plain. */
  key?: string | Uint8Array | undefined;
}

export interface MigrateOptions extends CallOptions {
  /** Migrations that were applied and are not in the list are no error: the database is newer than the program. */
  ignoreMissing?: boolean | undefined;
}
