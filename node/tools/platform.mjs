// Makes the package of one platform, which has the native module: `node tools/platform.mjs <library> <folder> [<folder of the package>]`.
// The package is `flatwater`, unless another folder is given.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const [library, folder, of = root] = process.argv.slice(2);
const own = JSON.parse(readFileSync(join(of, "package.json"), "utf8"));
const { glibcVersionRuntime } = process.report.getReport().header;
const libc = process.platform === "linux" ? (glibcVersionRuntime ? "glibc" : "musl") : undefined;
const suffix = libc === undefined ? "" : libc === "glibc" ? "-gnu" : "-musl";
const platform = `${process.platform}-${process.arch}${suffix}`;
// As `flatwater/native/addon.ts` looks for it.
const name = `${own.name.startsWith("@") ? `${own.name}-` : "@flatwater/"}${platform}`;
const made = {
  name,
  version: own.version,
  description: `The native module of ${own.name} for ${platform}`,
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
