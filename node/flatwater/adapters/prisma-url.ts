/**
 * Where the database of Prisma is.
 *
 * Owns: reading the `url` of an adapter: a path, with `file:` before it or without, and what Prisma's other engines take behind a question
 * mark. Invariant: what is wrong with it is said before a file is opened or created. Leaves out: options, which are beside it.
 */

import { fileURLToPath } from "node:url";
import { misuse } from "../native/errors.js";

/** What Prisma's own engine takes for SQLite. There is one pool of connections here, which has its own limits. */
const WITHOUT_EFFECT = new Set(["connection_limit", "pool_timeout", "connect_timeout"]);

/** The path of the file, and what the url says of options. */
export function placeOf(url: unknown): { path: string; busyTimeout?: number } {
  if (typeof url !== "string" || url === "") {
    const given = url === "" ? "empty" : url === undefined ? "missing" : `a ${typeof url}`;
    throw misuse(`url is ${given}`, `new PrismaFlatwater({ url: "file:app.db" }); is the environment variable set?`);
  }
  if (url !== url.trim() || url.startsWith('"') || url.startsWith("'")) {
    throw misuse("url has quotes or white space around it", "write it as it is: file:app.db");
  }
  const colon = url.indexOf(":");
  const scheme = url.slice(0, Math.max(colon, 0)).toLowerCase();
  // One letter is a drive, and none is `:memory:`.
  const isUrl = scheme.length > 1 && !scheme.includes("/") && !scheme.includes("\\") && !scheme.includes(".");
  if (isUrl && scheme !== "file") {
    throw misuse(`url begins with ${scheme}:, which is no file`, "the url of a file is file:app.db");
  }
  const rest = isUrl ? url.slice(colon + 1) : url;
  const [place, query] = cut(rest, "?");
  const path = isUrl && place.startsWith("//") ? fileOf(`file:${place}`) : place;
  if (path === "") {
    throw misuse("url has no path", "the url of a file is file:app.db");
  }
  return { path, ...optionsOf(query) };
}

function optionsOf(query: string): { busyTimeout?: number } {
  const options: { busyTimeout?: number } = {};
  for (const [name, value] of new URLSearchParams(query)) {
    const seconds = Number(value);
    if (name === "socket_timeout" && value !== "" && seconds >= 0) {
      options.busyTimeout = seconds * 1000;
    } else if (!WITHOUT_EFFECT.has(name)) {
      throw misuse(
        `url has ${JSON.stringify(`${name}=${value}`)} behind its path`,
        "the options of `open` are given beside it: new PrismaFlatwater({ url, busyTimeout: 5000 })",
      );
    }
  }
  return options;
}

function fileOf(url: string): string {
  try {
    return fileURLToPath(url);
  } catch (error) {
    throw misuse(`url is no path: ${(error as Error).message}`, "the url of a file is file:app.db");
  }
}

function cut(text: string, at: string): [before: string, behind: string] {
  const index = text.indexOf(at);
  return index < 0 ? [text, ""] : [text.slice(0, index), text.slice(index + 1)];
}
