// Builds the package: `node tools/build.mjs <folder of the native library> [<folder for the package's code> [<entry> ...]]`.
//
// The entries for `import` are the same module as those for `require`, so there is one state. Those for Drizzle are compiled for both:
// a program has to have the same classes of Drizzle as they have, and Drizzle has two copies of them.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const [, , from, to = join(root, "dist"), ...given] = process.argv;
const [libraries, dist] = [resolve(from), resolve(to)];
// Away from here, the libraries that an entry is for are not found.
const entries = given.length > 0 ? given : ["index", "kysely", "prisma", "opentelemetry", "prometheus", "sqlite3"];
const twice = given.length > 0 ? [] : ["drizzle", "drizzle-v1"];

const library = ["libflatwater_node.so", "libflatwater_node.dylib", "flatwater_node.dll"]
  .map((name) => join(libraries, name))
  .find(existsSync);
if (library === undefined) {
  throw new Error(`there is no native library in ${libraries}`);
}
mkdirSync(dist, { recursive: true });
// The entries are made of what the module exports, which needs the native library.
copyFileSync(library, join(dist, "flatwater.node"));
const tsc = createRequire(import.meta.url)
  .resolve("typescript/package.json")
  .replace("package.json", "bin/tsc");
const compile = (...args) => execFileSync(process.execPath, [tsc, ...args], { stdio: "inherit" });
compile("-p", root, "--outDir", dist);
for (const entry of twice) {
  const [project, modules] = [join(root, `tsconfig.${entry}.json`), join(dist, ".modules")];
  compile("-p", project, "--outDir", dist);
  compile("-p", project, "--module", "esnext", "--outDir", modules);
  renameSync(join(modules, `${entry}.js`), join(dist, `${entry}.mjs`));
  renameSync(join(modules, `${entry}.d.ts`), join(dist, `${entry}.d.mts`));
  rmSync(modules, { recursive: true });
}
const require = createRequire(join(dist, "/"));
for (const entry of entries) {
  const names = Object.keys(require(`./${entry}.js`)).filter((name) => name !== "__esModule");
  const lines = names.map((name) => `export ${name === "default" ? name : `const ${name} =`} flatwater.${name};`);
  writeFileSync(join(dist, `${entry}.mjs`), `import flatwater from "./${entry}.js";\n\n${lines.join("\n")}\n`);
  const types = names.includes("default") ? `export { default } from "./${entry}.js";\n` : "";
  writeFileSync(join(dist, `${entry}.d.mts`), `export * from "./${entry}.js";\n${types}`);
}
