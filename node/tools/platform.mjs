// Makes the package of one platform, which has the native module: `node tools/platform.mjs <library> <folder> [<folder of the package>
// [<platform>]]`. The package is `flatwater` and the platform that which runs this, unless others are given.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const [library, folder, of = root, platform = ownPlatform()] = process.argv.slice(2);
const own = JSON.parse(readFileSync(join(of, "package.json"), "utf8"));
const [os, cpu, libc] = platform.split("-");
// As `flatwater/native/addon.ts` looks for it.
const name = `${own.name.startsWith("@") ? `${own.name}-` : "@flatwater/"}${platform}`;
const made = {
  name,
  version: own.version,
  description: `The native module of ${own.name} for ${platform}`,
  license: own.license,
  repository: own.repository,
  engines: own.engines,
  os: [os],
  cpu: [cpu],
  ...(libc === undefined ? {} : { libc: [libc === "gnu" ? "glibc" : libc] }),
  main: "flatwater.node",
  files: ["flatwater.node", "LICENSE-*"],
};
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, "package.json"), `${JSON.stringify(made, null, 2)}\n`);
copyFileSync(library, join(folder, "flatwater.node"));

function ownPlatform() {
  const { glibcVersionRuntime } = process.report.getReport().header;
  const libc = process.platform !== "linux" ? "" : glibcVersionRuntime ? "-gnu" : "-musl";
  return `${process.platform}-${process.arch}${libc}`;
}
