// Makes the package `@flatwater/sqlcipher`, which is `flatwater` with another native module: `node tools/sqlcipher.mjs <folder of the
// native library>`. Its code, its entries and what it needs are those of `flatwater`; its README is its own.
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = join(root, "sqlcipher");
const { scripts, devDependencies, ...own } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const made = {
  ...own,
  name: "@flatwater/sqlcipher",
  description: "Encrypted SQLite for Node: the package flatwater with SQLCipher",
  repository: { ...own.repository, directory: "node/sqlcipher" },
  keywords: [...own.keywords, "sqlcipher", "encryption"],
};
writeFileSync(join(folder, "package.json"), `${JSON.stringify(made, null, 2)}\n`);
rmSync(join(folder, "dist"), { recursive: true, force: true });
const build = join(root, "tools/build.mjs");
execFileSync(process.execPath, [build, resolve(process.argv[2]), join(folder, "dist")], { stdio: "inherit" });
