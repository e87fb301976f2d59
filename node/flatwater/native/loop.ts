/**
 * Calls and the event loop: what waits, and when it goes on.
 *
 * Owns: the array of numbers that the native module shares, the calls that wait, and the turns of the loop. Invariants: a call whose
 * answer is ready makes no wake; what goes on in one turn takes about a millisecond, then timers and I/O are served; an open database
 * does not keep the process alive, a call that waits does. Leaves out: what an answer becomes (`rows`, and the readers).
 *
 * A promise that is resolved goes on before the loop does, and Node calls what was queued from other threads one after the other in
 * one turn. So only `setImmediate` gives timers and I/O their turn: a delivery that is late in a turn waits for it, and so does a call
 * that has used up the share of its turn.
 */

import { native, type Answer, type Fields } from "./addon.js";
import { FlatwaterError, notApplied, outcomeUnknown } from "./errors.js";

export const DONE = -1;
export const FAILED = -2;
const YIELDS = -3;

/** In a chunk of rows: where the token is under which there is more; negative if there is none. */
export const MORE = 3;

/** How long answers are delivered in one turn, in milliseconds, and how many at once. */
const TURN_MS = 1;
export const SLICE_MS = 0.5;
const AT_ONCE = 64;
/** A call that was aborted waits for its outcome for so long. What can be interrupted ends much sooner. */
const OUTCOME_MS = 5_000;

/** Reads the answers of one call. */
export interface Reader<T> {
  /** Reads a chunk of rows. */
  chunk?(text: string): void;
  /** Returns the result of the last answer. */
  end(answer: Answer): T;
  /** What is undone may not be all. */
  commitsSeveral?: boolean;
}

/** What cancels a call: a signal, or what does the same for a part of what goes on. */
export interface Cancels {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", cancel: () => void, options: { once: true }): void;
  removeEventListener(type: "abort", cancel: () => void): void;
}

/** Another copy of this module may have made it. */
const FAILURE = Symbol.for("flatwater.failure");

/** Why a call failed; the error is made of it in the code that awaits, so that its stack shows that. */
class Failed {
  readonly [FAILURE] = true;

  constructor(readonly fields: Fields) {}
}

/** Who is told after each poll of a call. */
export interface Hears {
  hear(): void;
}

interface Call {
  reader: Reader<unknown>;
  resolve(value: unknown): void;
  reject(reason: unknown): void;
  /** Under which it waits or goes on. */
  token: number;
  /** It was cancelled, and its outcome is awaited. */
  cancelled: { reason: unknown } | undefined;
  /** What ends that wait. */
  bound: NodeJS.Timeout | undefined;
  trace: Hears | undefined;
}

/** What the calls of one environment have in common, also those of several copies of this module: test runners load it anew. */
interface Shared {
  cells: Float64Array<ArrayBuffer>;
  waiting: Map<number, Call>;
  /** The calls that go on in the next turn. */
  next: Call[];
  /** When the first delivery of this turn began; 0 if there was none. */
  turnBegan: number;
  isImmediateSet: boolean;
  /** When the first part of this turn was there at once, or the first call failed at once; 0 if there was none. */
  readySince: number;
  /** Tokens are to be read in the next turn. */
  isDue: boolean;
}

// Kept, because test runners replace them.
const { setImmediate, setTimeout, clearTimeout } = globalThis;
export const now = performance.now.bind(performance);

const owner = native as { shared?: Shared };
/** This copy is the first. */
export const isFirst = owner.shared === undefined;
const shared = (owner.shared ??= {
  cells: new Float64Array(64 * 1024),
  waiting: new Map(),
  next: [],
  turnBegan: 0,
  isImmediateSet: false,
  readySince: 0,
  isDue: false,
});
const { waiting } = shared;

/** What both sides use: the numbers of an answer, and tokens. */
export const { cells } = shared;
/** The same memory as integers of 64 bits. */
export const bigs = new BigInt64Array(cells.buffer);

if (isFirst) {
  native.begin(cells, woken);
  // Node ends a process without ending its environment.
  process.once("exit", () => native.ended());
}

/** The promise for an answer: settled if it is there. */
export function settle<T>(answer: Answer, reader: Reader<T>, signal?: Cancels, trace?: Hears): Promise<T> {
  trace?.hear();
  if (answer === DONE) {
    return Promise.resolve(reader.end(answer));
  }
  if (answer === FAILED) {
    return rejected(new FlatwaterError(native.failure()));
  }
  if (typeof answer === "string" && cells[MORE]! < 0) {
    reader.chunk?.(answer);
    return Promise.resolve(reader.end(answer));
  }
  return wait(answer, reader, signal, trace);
}

/** A loop of calls that fail at once lets timers run too. */
function rejected(error: unknown): Promise<never> {
  const due = dueTurn();
  return due === undefined ? Promise.reject(error) : due.then(() => Promise.reject(error));
}

/** Says that something was there at once that the native module does not count. Returns the next turn, if it is to be awaited first. */
export function dueTurn(): Promise<void> | undefined {
  if (shared.readySince === 0) {
    shared.readySince = now();
    setTurn();
    return undefined;
  }
  return now() - shared.readySince > TURN_MS ? nextTurn() : undefined;
}

/** An async function, so that the stack of its error shows the code that awaits it. */
async function wait<T>(
  answer: Answer,
  reader: Reader<T>,
  signal: Cancels | undefined,
  trace: Hears | undefined,
): Promise<T> {
  let call: Call | undefined;
  const promise = new Promise<unknown>((resolve, reject) => {
    call = { reader, resolve, reject, token: -1, cancelled: undefined, bound: undefined, trace };
    take(answer, call);
  });
  const cancel = () => giveUp(call!, signal!.reason);
  const listens = signal !== undefined && call!.token >= 0;
  if (listens) {
    signal.addEventListener("abort", cancel, { once: true });
    // Reading the values may have run code of the program.
    if (signal.aborted) {
      cancel();
    }
  }
  try {
    return (await promise) as T;
  } catch (error) {
    throw isFailed(error) ? new FlatwaterError(error.fields) : error;
  } finally {
    if (listens) {
      signal.removeEventListener("abort", cancel);
      clearTimeout(call!.bound);
    }
  }
}

function isFailed(error: unknown): error is Failed {
  return typeof error === "object" && error !== null && FAILURE in error;
}

/** Polls a call, and goes on with it. Never throws. */
function advance(call: Call): void {
  const { token } = call;
  let answer: Answer;
  try {
    answer = native.poll(token);
    call.trace?.hear();
  } catch (error) {
    // An answer that Node cannot hold, such as a text beyond its longest.
    return fail(call, error);
  }
  take(answer, call);
}

/** Goes on with a call until it is over, waits, or has used up its slice. Never throws. */
function take(answer: Answer, call: Call): void {
  let end = 0;
  call.token = -1;
  try {
    while (typeof answer === "string") {
      const token = cells[MORE]!;
      call.token = token;
      call.reader.chunk?.(answer);
      if (token < 0) {
        return finish(call, answer);
      }
      const time = now();
      end ||= time + SLICE_MS;
      if (time >= end) {
        return goOnNext(call);
      }
      answer = native.poll(token);
      call.trace?.hear();
    }
    if (typeof answer !== "number" || answer === DONE) {
      finish(call, answer);
    } else if (answer === FAILED) {
      call.token = -1;
      fail(call, new Failed(native.failure()));
    } else if (answer === YIELDS) {
      call.token = cells[0]!;
      goOnNext(call);
    } else {
      call.token = answer;
      if (waiting.size === 0) {
        native.keepAlive(true);
      }
      waiting.set(answer, call);
    }
  } catch (error) {
    // A row that cannot be made. The rest of the result is of no use.
    if (call.token >= 0) {
      native.giveUp(call.token);
    }
    fail(call, error);
  }
}

function finish(call: Call, answer: Answer): void {
  call.token = -1;
  call.resolve(call.reader.end(answer));
}

/** The error of a call that was cancelled is the reason of that, unless it failed for another one. */
function fail(call: Call, reason: unknown): void {
  call.token = -1;
  const wasEnded = call.cancelled !== undefined && isFailed(reason) && reason.fields.kind === "cancelled";
  call.reject(wasEnded ? reasonOf(call) : reason);
}

/** Gives a call up. One that may have written, or may still, settles when its outcome is known: it is undone, or has its result. */
function giveUp(call: Call, reason: unknown): void {
  const { token } = call;
  if (token < 0 || call.cancelled) {
    return;
  }
  call.cancelled = { reason };
  if (native.giveUp(token)) {
    call.bound = setTimeout(() => call.reject(outcomeUnknown(reason, OUTCOME_MS)), OUTCOME_MS);
    return;
  }
  leave(token);
  shared.next = shared.next.filter((other) => other !== call);
  call.token = -1;
  call.reject(reasonOf(call));
}

/** What migrations committed before stays. */
function reasonOf({ cancelled, reader }: Call): unknown {
  return reader.commitsSeveral ? cancelled!.reason : notApplied(cancelled!.reason);
}

function leave(token: number): Call | undefined {
  const call = waiting.get(token);
  if (call !== undefined) {
    waiting.delete(token);
    if (waiting.size === 0) {
      native.keepAlive(false);
    }
  }
  return call;
}

/** Node calls it when answers have come. */
function woken(): void {
  if (shared.turnBegan !== 0 && now() - shared.turnBegan > TURN_MS) {
    shared.isDue = true;
    setTurn();
  } else {
    deliver();
  }
}

/** Delivers what has come, at most so much that its continuations are short too. */
function deliver(): void {
  shared.turnBegan ||= now();
  setTurn();
  const count = native.drain(AT_ONCE);
  shared.isDue = cells[cells.length - 1]! > 0;
  // The polls put their answers where the tokens are.
  const calls: Call[] = [];
  for (const token of cells.slice(0, count)) {
    const call = leave(token);
    if (call !== undefined) {
      calls.push(call);
    }
  }
  advanceAll(calls);
}

/** Goes on with calls for about a millisecond. The others go on in the next turn. */
function advanceAll(calls: Call[]): void {
  const began = now();
  for (const [at, call] of calls.entries()) {
    if (now() - began > TURN_MS) {
      shared.next = calls.slice(at).concat(shared.next);
      return setTurn();
    }
    if (call.token >= 0) {
      advance(call);
    }
  }
}

function goOnNext(call: Call): void {
  shared.next.push(call);
  setTurn();
}

function setTurn(): void {
  if (!shared.isImmediateSet) {
    shared.isImmediateSet = true;
    setImmediate(turn);
  }
}

/** Timers and I/O have been served. */
function turn(): void {
  shared.isImmediateSet = false;
  shared.turnBegan = 0;
  shared.readySince = 0;
  native.hadTurn();
  const calls = shared.next;
  shared.next = [];
  advanceAll(calls);
  if (shared.isDue) {
    deliver();
  }
}

/** Resolves in the next turn of the loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
