/**
 * Calls that wait, in their order.
 *
 * Owns: a queue whose front is taken in constant time, however many wait, and refusing all that wait.
 */

import type { AsyncResource } from "node:async_hooks";
import { MISUSE } from "./constants.js";
import { emit, errorOf, tell, type Callback, type Emits } from "./failures.js";

export interface Call {
  begin(): void;
  callback: Callback | undefined;
  where: AsyncResource;
  isExclusive?: boolean;
}

/** From how many calls on those that were taken are let go. */
const MANY = 1024;

export class Line {
  private calls: Call[] = [];
  private from = 0;

  get length(): number {
    return this.calls.length - this.from;
  }

  get first(): Call | undefined {
    return this.calls[this.from];
  }

  push(call: Call): void {
    this.calls.push(call);
  }

  /** Takes the first. */
  take(): Call {
    const call = this.calls[this.from]!;
    this.from++;
    if (this.from >= MANY && this.from * 2 >= this.calls.length) {
      this.calls = this.calls.slice(this.from);
      this.from = 0;
    }
    return call;
  }

  /** Takes all. */
  clear(): Call[] {
    const calls = this.calls.slice(this.from);
    this.calls = [];
    this.from = 0;
    return calls;
  }

  /** Tells all that they come too late; the object itself, if none has a callback. */
  refuse(message: string, self: Emits): void {
    const calls = this.clear();
    if (calls.length === 0) {
      return;
    }
    const error = errorOf({ status: MISUSE, message });
    let wasTold = false;
    for (const { callback, where } of calls) {
      tell(where, callback, self, error);
      wasTold ||= callback !== undefined;
    }
    if (!wasTold) {
      emit(self, "error", error);
    }
  }
}
