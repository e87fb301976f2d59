// Prisma's client, made for a schema, and its schema engine on the driver adapter: `node prisma.mjs`.
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("prisma/", import.meta.url));
const cli = join(dirname(createRequire(folder).resolve("prisma/package.json")), "build/index.js");
// What makes the client needs no engine, and would load one.
const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: "1" };
const run = (stdout, ...args) =>
  spawnSync(process.execPath, args, { cwd: folder, env, stdio: ["ignore", stdout, "inherit"] }).status === 0;

const passed =
  run("ignore", cli, "generate", "--schema", "schema.prisma") &&
  run("inherit", "--test", "--test-reporter=dot", "client.test.mjs", "engine.test.mjs");
process.exitCode = passed ? 0 : 1;
