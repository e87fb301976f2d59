// What tests share: a database in a folder of its own, and programs in processes of their own.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { open } from "../dist/index.mjs";

/** A query that ends only when it is interrupted. */
export const ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
export const numbers = (count) => `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT ${count})`;

export function folder(t) {
  const made = mkdtempSync(join(tmpdir(), "flatwater-"));
  t.after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** A database that is closed when the test is over. */
export async function database(t, options) {
  const db = await open(join(folder(t), "test.db"), options);
  t.after(() => db.close());
  return db;
}

/** Resolves when the condition holds. */
export async function until(condition) {
  while (!(await condition())) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** The one of the lab. It is compiled for one version of Node. */
export function betterSqlite3() {
  try {
    const Peer = createRequire(new URL("../../lab/peers/node/", import.meta.url))("better-sqlite3");
    new Peer(":memory:").close();
    return Peer;
  } catch (error) {
    return error.code === "MODULE_NOT_FOUND" || error.code === "ERR_DLOPEN_FAILED" ? undefined : assert.fail(error);
  }
}

/** Runs a program, and resolves with what it printed and how it ended. */
export function run(source, { flags = [], args = [], env = {}, timeout = 120_000 } = {}) {
  const entry = new URL("../dist/index.mjs", import.meta.url).href;
  const text = `import * as flatwater from ${JSON.stringify(entry)};\nconst { open, sql } = flatwater;\n${source}`;
  return new Promise((resolve, reject) => {
    // Where the packages are found that the program imports.
    const cwd = fileURLToPath(new URL("..", import.meta.url));
    const child = spawn(process.execPath, [...flags, "--input-type=module", "-e", text, ...args], {
      cwd,
      timeout,
      env: { ...process.env, ...env },
    });
    let output = "";
    let errors = "";
    child.stdout.on("data", (data) => (output += data));
    child.stderr.on("data", (data) => (errors += data));
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal, output, errors }));
  });
}
