/**
 * Reads at one point in time.
 *
 * Owns: the handle. Invariant: one that is closed or collected gives its connection back.
 */

import { native } from "../native/addon.js";
import { unused } from "../native/unused.js";
import { Session } from "./session.js";

/** Reads at one point in time. */
export class Snapshot extends Session {
  /** Gives the connection back. */
  close(): void {
    unused.unregister(this);
    native.release(this.handle);
    this.handle = -1;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}
