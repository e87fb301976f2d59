// Drizzle's own tests for SQLite, those of its two versions: `node drizzle.mjs`.
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { source } from "./source.mjs";
import { workspace } from "./workspace.mjs";

const VERSIONS = [
  {
    entry: "drizzle",
    tag: "0.45.2",
    commit: "273c78071d4841b497f5144734b38294df7ec64b",
    packages: { "drizzle-orm": "node_modules/drizzle-orm" },
    paths: ["integration-tests/tests/", "integration-tests/drizzle2/"],
    files: ["tests/sqlite/libsql.test.ts", "tests/relational/turso.test.ts"],
    // It reads what it wrote without awaiting that.
    without: ["join view as subquery"],
  },
  {
    entry: "drizzle-v1",
    tag: "v1.0.0-rc.4",
    commit: "748058e837d9c4247330e3d45580cbdae52bffda",
    packages: { "drizzle-orm": "node_modules/drizzle-orm-v1" },
    paths: ["integration-tests/tests/", "integration-tests/drizzle2/"],
    files: ["tests/sqlite/libsql.test.ts"],
    without: [
      "join view as subquery",
      // They make their tables with the sources of drizzle-kit.
      "[Mm]appers: ",
      "insert; prepared statement with placeholder in .values",
      "prepared statement with placeholder in .inArray",
      "sql.Aliased in cte",
      "RQB v2 simple find many - with text pks",
      // What drizzle-kit asks of its own drivers.
      "migrator : --init",
    ],
  },
];

const config = fileURLToPath(new URL("drizzle/vitest.config.mjs", import.meta.url));
const vitest = join(createRequire(import.meta.url).resolve("vitest/package.json"), "..", "vitest.mjs");
const only = process.argv[2];

for (const { entry, tag, commit, packages, paths, files, without } of VERSIONS) {
  if (only !== undefined && only !== entry) {
    continue;
  }
  const folder = source("drizzle-team/drizzle-orm", tag, commit, paths);
  if (folder === null) {
    console.log(`skipped: the tests of Drizzle ${tag} need its repository`);
    continue;
  }
  const cwd = workspace(join(folder, "integration-tests"), packages);
  const env = {
    ...process.env,
    FLATWATER_SUITE_ENTRY: entry,
    FLATWATER_SUITE_FILES: files.join(","),
    FLATWATER_SUITE_WITHOUT: without.join("|"),
  };
  const { status } = spawnSync(process.execPath, [vitest, "run", "--config", config, "--root", cwd], {
    cwd,
    env,
    stdio: "inherit",
  });
  if (status !== 0) {
    process.exit(1);
  }
}
