/**
 * A large value that is read and written in parts.
 *
 * Owns: the position. Invariant: nothing is held between two calls: another write may change the row, and then a call fails. Leaves
 * out: reading and writing, which the engine does.
 */

import { native } from "./addon.js";
import { nothing, throwIfAborted, timeoutOf, value, type CallOptions } from "./calls.js";
import { place } from "./flow.js";
import { settle } from "./loop.js";

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
  async read(bytes = Number.MAX_SAFE_INTEGER, options?: CallOptions): Promise<Buffer> {
    throwIfAborted(options);
    const most = Math.max(Math.min(bytes, this.length - this.position), 0);
    const answer = native.readBlob(this.handle, this.position, most, timeoutOf(options));
    const read = (await settle(answer, value, options?.signal)) as Buffer;
    this.position += read.length;
    return read;
  }

  /** Writes bytes at the position, and moves it. The value does not grow. */
  async write(bytes: Uint8Array | ArrayBuffer, options?: CallOptions): Promise<void> {
    throwIfAborted(options);
    const answer = native.writeBlob(this.handle, this.position, bytes, timeoutOf(options), place());
    await settle(answer, nothing, options?.signal);
    this.position += bytes.byteLength;
  }

  /** Moves the position. */
  seek(position: number): void {
    this.position = position;
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

/** What was dropped without an end. */
const unused = new FinalizationRegistry<number>((handle) => native.release(handle));
