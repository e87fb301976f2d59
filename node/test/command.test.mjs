// The script of the package `@flatwater/cli`: it runs the program of this platform.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const of = fileURLToPath(new URL("../cli", import.meta.url));

/** A folder with the package, and what its script prints with these arguments. */
function installed(t) {
  const at = mkdtempSync(join(tmpdir(), "flatwater-"));
  t.after(() => rmSync(at, { recursive: true, force: true }));
  const cli = join(at, "node_modules/@flatwater/cli");
  mkdirSync(cli, { recursive: true });
  copyFileSync(join(of, "flatwater.js"), join(cli, "flatwater.js"));
  return {
    at,
    run: (...given) => spawnSync(process.execPath, [join(cli, "flatwater.js"), ...given], { encoding: "utf8" }),
  };
}

test("the program of this platform runs with the arguments, and its exit code is passed on", (t) => {
  const { at, run } = installed(t);
  const missing = run();
  assert.equal(missing.status, 1);
  const [name] = missing.stderr.match(/@flatwater\/cli-\w+-\w+(-gnu|-musl)?/);
  if (process.platform === "win32") {
    return;
  }
  const platform = join(at, "node_modules", name);
  mkdirSync(platform);
  writeFileSync(join(platform, "package.json"), JSON.stringify({ name }));
  const program = '#!/bin/sh\necho "$@"\n[ "$1" != killed ] || kill -TERM $$\nexit 3\n';
  writeFileSync(join(platform, "flatwater"), program, { mode: 0o755 });
  const ended = run("check", "a b");
  assert.deepEqual([ended.status, ended.stdout, ended.stderr], [3, "check a b\n", ""]);
  assert.equal(run("killed").status, 128 + 15);
});
