// Makes the package of one platform, which has the native module: `node tools/platform.mjs <library> <folder>`.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [library, folder] = process.argv.slice(2);
const own = JSON.parse(readFileSync(new URL("../package.json", import.meta.url)));
const { glibcVersionRuntime } = process.report.getReport().header;
const libc = process.platform === "linux" ? (glibcVersionRuntime ? "glibc" : "musl") : undefined;
const suffix = libc === undefined ? "" : libc === "glibc" ? "-gnu" : "-musl";
const name = `${process.platform}-${process.arch}${suffix}`;
const made = {
  name: `@flatwater/${name}`,
  version: own.version,
  description: `The native module of flatwater for ${name}`,
  license: own.license,
  repository: own.repository,
  engines: own.engines,
  os: [process.platform],
  cpu: [process.arch],
  ...(libc === undefined ? {} : { libc: [libc] }),
  main: "flatwater.node",
  files: ["flatwater.node"],
};
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, "package.json"), `${JSON.stringify(made, null, 2)}\n`);
copyFileSync(library, join(folder, "flatwater.node"));
