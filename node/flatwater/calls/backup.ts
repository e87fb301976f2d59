/**
 * A backup that tells how far it is.
 *
 * Owns: what its caller is told. Invariants: the callback runs in the async context of the call, after what was read of the answer; one
 * that throws ends the backup with its error. Leaves out: copying, which the engine does.
 */

import { AsyncResource } from "node:async_hooks";
import { misuse } from "../native/errors.js";
import type { Reader } from "../native/loop.js";
import { decode } from "../values/rows.js";
import type { CallOptions } from "./calls.js";

/** How far a backup is. */
export interface BackupProgress {
  totalPages: number;
  remainingPages: number;
}

export interface BackupOptions extends CallOptions {
  /**
   * Called while pages are copied, for steps of 64 pages; for several at once if the loop is busy. Its last call has no pages left; the
   * file is then synced, and gets its name. It must not await: what it returns is ignored.
   */
  progress?: ((progress: BackupProgress) => void) | undefined;
}

/** Reads the parts of a backup, which are rows of two numbers. */
export function progressReader(progress: unknown): Reader<void> {
  if (typeof progress !== "function") {
    throw misuse("progress must be a function");
  }
  const tell = AsyncResource.bind(progress as (progress: BackupProgress) => void, "flatwater.backup");
  return {
    chunk(text) {
      const rows: [number, number][] = [];
      decode(text, "array", rows);
      for (const [totalPages, remainingPages] of rows) {
        tell({ totalPages, remainingPages });
      }
    },
    end: () => undefined,
  };
}
