// The types of a module of functions. It is compiled, and not run.
import type { DefineFunctions, Options } from "flatwater";

const define: DefineFunctions = (db) => {
  db.function("shout", { deterministic: true }, (text: string) => text.toUpperCase());
  db.function("nothing", () => undefined);
  db.aggregate("longest", {
    start: "",
    step: (longest, text: string) => (text.length > longest.length ? text : longest),
  });
  db.aggregate("joined", {
    start: (): string[] => [],
    step: (all, ...texts: string[]) => void all.push(...texts),
    result: (all) => all.join(),
  });
  db.collation("by_length", (one, other) => one.length - other.length);
  // @ts-expect-error -- misspelt
  db.function("f", { deterministc: true }, () => 1);
  // @ts-expect-error -- no result
  db.function("f", () => ({}));
  // @ts-expect-error -- no order
  db.collation("c", (one, other) => one < other);
};

export default define;

export const options: Options[] = [
  { functions: new URL("./functions.mjs", import.meta.url) },
  { functions: "functions.mjs" },
  // @ts-expect-error -- a function of this thread
  { functions: define },
  { functionsOnLoop: define },
  { functions: "functions.mjs", functionsOnLoop: (db) => db.function("now_ms", () => Date.now()) },
  // @ts-expect-error -- a module
  { functionsOnLoop: "functions.mjs" },
];
