/**
 * Errors whose stack says which call they are of.
 *
 * Owns: replacing the methods that take callbacks. Invariant: each is replaced once.
 */

import { inspect } from "node:util";

interface Told extends Error {
  isAugmented?: boolean;
}

/** Has the errors of a method's callbacks tell where the method was called. */
export function extendTrace(prototype: object, name: string): void {
  const methods = prototype as Record<string, (...args: unknown[]) => unknown>;
  const old = methods[name]!;
  const of = `${prototype.constructor.name}#${name}`;
  methods[name] = function replaced(this: unknown, ...args: unknown[]): unknown {
    const callback = args.at(-1);
    if (typeof callback === "function") {
      const here = new Error();
      const call = `${of}(${args.map((one) => inspect(one, false, 0)).join(", ")})`;
      args[args.length - 1] = function replacement(this: unknown, ...told: unknown[]): unknown {
        augment(told[0], call, here);
        return callback.apply(this, told);
      };
    }
    return old.apply(this, args);
  };
}

function augment(error: unknown, call: string, here: Error): void {
  const told = error as Told | null | undefined;
  if (told?.stack && !told.isAugmented) {
    const lines = [...frames(told), `--> in ${call}`, ...frames(here).slice(1)];
    told.stack = lines.join("\n");
    Object.defineProperty(told, "isAugmented", { value: true });
  }
}

function frames(error: Error): string[] {
  return (error.stack ?? "").split("\n").filter((line) => !line.includes(__filename));
}
