/**
 * The worker threads that serve modules of functions.
 *
 * Owns: starting one for each module that databases of this environment have, and ending it. Invariants: a worker does not keep the
 * process alive once it is ready; it ends when no database of the process uses its module, also in the middle of a function. Leaves out:
 * what it serves (`worker`), and who uses a module, which the native module knows.
 */

import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { inspect } from "node:util";
import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";
import { native } from "../native/addon.js";
import { codeOf, FlatwaterError, misuse } from "../native/errors.js";
import { cells } from "../native/loop.js";
import { fromBytes } from "../native/thrown.js";

interface Serving {
  worker: Worker;
  /** Which module it was started for: a module that nobody used any more is another one. */
  module: number;
  ready: Promise<void>;
  isReady: boolean;
}

/** By URL. All copies of the package in an environment have these. */
const serving = ((native as { serving?: Map<string, Serving> }).serving ??= new Map<string, Serving>());

/** Loads a module of functions. Returns the number of what keeps it until a database does. */
export async function functionsOf(given: unknown): Promise<number> {
  const url = urlOf(given);
  native.functionsOf(url, endUnused);
  const [handle, module, workers] = [cells[0]!, cells[1]!, cells[2]!];
  try {
    let served = serving.get(url);
    // One that was ready and serves nothing is about to end.
    if (served?.module !== module || (served.isReady && workers === 0)) {
      void served?.worker.terminate();
      served = start(url, module);
    }
    await served.ready;
  } catch (error) {
    native.release(handle);
    throw error;
  }
  return handle;
}

/** Ends the workers of modules that no database uses any more, also in the middle of a function. */
function endUnused(): void {
  for (const [url, { worker, module }] of serving) {
    if (native.usedModule(url) !== module) {
      void worker.terminate();
    }
  }
}

function urlOf(given: unknown): string {
  if (given instanceof URL) {
    return given.href;
  }
  if (typeof given !== "string" || given === "") {
    throw misuse(
      'the option "functions" must be the URL or the path of a module',
      'pass new URL("./functions.mjs", import.meta.url); for functions of this thread there is the option "functionsOnLoop"',
      "invalid_option",
    );
  }
  return /^[a-z]{2,}:/i.test(given) ? given : pathToFileURL(given).href;
}

function start(url: string, module: number): Serving {
  const { port1: told, port2: port } = new MessageChannel();
  const execArgv = inherited();
  const worker = new Worker(join(__dirname, "worker.js"), {
    workerData: { url, port },
    transferList: [port],
    ...(execArgv === undefined ? {} : { execArgv }),
    name: "functions",
  });
  const served: Serving = { worker, module, ready: Promise.resolve(), isReady: false };
  served.ready = new Promise<void>((resolve, reject) => {
    const hear = (failed: Uint8Array | undefined) => {
      told.close();
      if (failed !== undefined) {
        void worker.terminate();
        return reject(notLoaded(url, fromBytes(failed)));
      }
      served.isReady = true;
      worker.unref();
      resolve();
    };
    told.once("message", hear);
    worker.on("error", (error: unknown) => {
      reject(notLoaded(url, error));
      if (served.isReady) {
        process.emitWarning(`The worker thread of the functions in ${url} has ended: ${inspect(error)}`);
      }
    });
    worker.once("exit", () => {
      // What it has told may be heard after its end.
      const last = receiveMessageOnPort(told) as { message: Uint8Array | undefined } | undefined;
      if (last !== undefined) {
        hear(last.message);
      }
      told.close();
      reject(notLoaded(url, new Error("its worker thread has ended")));
      if (serving.get(url)?.worker === worker) {
        serving.delete(url);
      }
    });
  });
  serving.set(url, served);
  return served;
}

/**
 * The options of this process but those of a text that is given on the command line, of which a worker would run it too. Undefined if there
 * are none of these: then Node passes on what a worker may have.
 */
function inherited(): string[] | undefined {
  const of = process.execArgv;
  const isText = (option: string) => ["-e", "-p", "-pe", "--eval", "--print"].includes(option);
  const others = of.filter(
    (option, at) => !isText(option) && !isText(of[at - 1] ?? "") && !option.startsWith("--input-type"),
  );
  return others.length === of.length ? undefined : others;
}

function notLoaded(url: string, cause: unknown): FlatwaterError {
  const path = url.startsWith("file:") ? fileURLToPath(url) : url.slice(0, 100);
  const error = new FlatwaterError({
    message: `the module of functions ${path} cannot be loaded`,
    kind: "misuse",
    code: codeOf("invalid_function"),
  });
  error.cause = cause;
  return error;
}
