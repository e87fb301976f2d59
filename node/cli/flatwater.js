#!/usr/bin/env node
// Runs the program of this platform, which a package beside this one has.
//
// Owns: finding it, and passing on how it ended. Leaves out: everything that the program does.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

/** The package with the program of this platform, as `tools/platform.mjs` names it. */
function platformPackage() {
  const isGlibc = () => process.report.getReport().header.glibcVersionRuntime !== undefined;
  const suffix = process.platform !== "linux" ? "" : isGlibc() ? "-gnu" : "-musl";
  return `@flatwater/cli-${process.platform}-${process.arch}${suffix}`;
}

function fail(message) {
  console.error(`error: ${message}`);
  process.exit(1);
}

function program() {
  const name = platformPackage();
  try {
    return require.resolve(`${name}/flatwater${process.platform === "win32" ? ".exe" : ""}`);
  } catch {
    fail(`there is no package ${name}: it comes along with @flatwater/cli, unless optional packages are left out`);
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });
// A terminal sends Ctrl-C to both, and the program decides what it ends.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => fail(`the program cannot be run: ${error.message}`));
child.on("exit", (code, signal) => {
  process.exitCode = signal === null ? code : 128 + constants.signals[signal];
});
