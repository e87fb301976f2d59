// The script of the package `@flatwater/cli`: it runs the program of this platform.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const of = fileURLToPath(new URL("../cli", import.meta.url));
const tools = fileURLToPath(new URL("../tools/platform.mjs", import.meta.url));

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

test(
  "the program of this platform runs with the arguments, and its exit code is passed on",
  { skip: process.platform === "win32" },
  (t) => {
    const { at, run } = installed(t);
    const program = join(at, "program");
    writeFileSync(program, '#!/bin/sh\necho "$@"\n[ "$1" != killed ] || kill -TERM $$\nexit 3\n', { mode: 0o755 });
    const made = join(at, "made");
    assert.equal(spawnSync(process.execPath, [tools, program, made, of, "flatwater"]).status, 0);
    const { name, files, os } = JSON.parse(readFileSync(join(made, "package.json"), "utf8"));
    assert.deepEqual([files, os], [["flatwater"], [process.platform]]);
    const platform = join(at, "node_modules", name);
    mkdirSync(platform, { recursive: true });
    for (const file of ["flatwater", "package.json"]) {
      copyFileSync(join(made, file), join(platform, file));
    }
    const ended = run("check", "a b");
    assert.deepEqual([ended.status, ended.stdout, ended.stderr], [3, "check a b\n", ""]);
    assert.equal(run("killed").status, 128 + 15);
  },
);

test("a package that was left out is named", (t) => {
  const ended = installed(t).run();
  assert.equal(ended.status, 1);
  assert.match(ended.stderr, /there is no package @flatwater\/cli-/);
});
