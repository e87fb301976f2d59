// better-sqlite3's benchmark with this package as one of its drivers: `node benchmark.mjs [<search term> ...]`, as the benchmark itself
// takes them. FLATWATER_PACKAGE is the package's entry, an optimised build.
import { execFileSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { source } from "./source.mjs";

const VERSION = ["v12.11.1", "4cbc39ca582fecb6b51dd920dfdd338ba4b72230"];
const folder = source("WiseLibs/better-sqlite3", ...VERSION, ["benchmark/"]);
if (folder === null) {
  console.log("skipped: the benchmark needs better-sqlite3's repository");
} else {
  const lab = fileURLToPath(new URL("../../lab/peers/node/", import.meta.url));
  if (!existsSync(join(lab, "node_modules/better-sqlite3/build"))) {
    execFileSync("npm", ["ci", "--silent"], { cwd: lab, stdio: "inherit" });
  }
  const preload = fileURLToPath(new URL("benchmark/preload.cjs", import.meta.url));
  const env = {
    FLATWATER_PACKAGE: new URL("../dist/index.mjs", import.meta.url).href,
    ...process.env,
  };
  const args = ["--require", preload, join(folder, "benchmark/index.js"), ...process.argv.slice(2)];
  const program = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "inherit"] });
  let hasFailed = false;
  // It goes on after a driver that fails.
  program.stdout.setEncoding("utf8").on("data", (text) => {
    hasFailed ||= text.includes("ERROR");
    process.stdout.write(text);
  });
  program.on("close", (code) => (process.exitCode = code !== 0 || hasFailed ? 1 : 0));
}
