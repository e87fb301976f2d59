/**
 * A large value that is read and written in parts.
 *
 * Owns: the position. Invariant: nothing is held between two calls: another write may change the row, and then a call fails. Leaves
 * out: reading and writing, which the engine does.
 */

import { native } from "../native/addon.js";
import { misuse } from "../native/errors.js";
import { place } from "../native/flow.js";
import { settle } from "../native/loop.js";
import { unused } from "../native/unused.js";
import { nothing, timeoutOf, value, type CallOptions } from "./calls.js";
import { CALL_OPTIONS, check } from "./given.js";

/** A text or a blob of one row. It has a length that does not change, and a position. */
export class BlobHandle {
  /** Where the next read or write is, in bytes. */
  position = 0;

  /** @internal */
  constructor(
    private readonly handle: number,
    /** In bytes. */
    readonly length: number,
  ) {
    unused.register(this, handle, this);
  }

  /** Resolves with at most so many bytes from the position on, and moves it. Without a number: all that is left. */
  async read(bytes = this.length, options?: CallOptions): Promise<Buffer> {
    check(options, CALL_OPTIONS);
    const from = this.position;
    const most = Math.min(whole(bytes), this.length - from);
    const answer = native.readBlob(this.handle, from, most, timeoutOf(options), place());
    // At the call, so that several in a row are of different parts.
    this.position += most;
    return this.moved(from, settle(answer, value, options?.signal)) as Promise<Buffer>;
  }

  /** Writes bytes at the position, and moves it. The value does not grow. */
  async write(bytes: Uint8Array | ArrayBuffer, options?: CallOptions): Promise<void> {
    check(options, CALL_OPTIONS);
    const from = this.position;
    const answer = native.writeBlob(this.handle, from, bytes, timeoutOf(options), place());
    this.position += bytes.byteLength ?? 0;
    await this.moved(from, settle(answer, nothing, options?.signal));
  }

  /** Moves the position. */
  seek(position: number): void {
    if (whole(position) > this.length) {
      throw misuse(`the value has ${this.length} bytes`, undefined, "blob_bounds");
    }
    this.position = position;
  }

  /** Moves the position back if the call fails. */
  private async moved<T>(from: number, call: Promise<T>): Promise<T> {
    try {
      return await call;
    } catch (error) {
      this.position = from;
      throw error;
    }
  }

  /** Lets the value go. */
  close(): void {
    unused.unregister(this);
    native.release(this.handle);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}

function whole(number: number): number {
  if (!Number.isInteger(number) || number < 0) {
    throw misuse("a position and a number of bytes must be whole numbers, and not negative");
  }
  return number;
}
