// Writes the public API of the package for Node, a page for each entry: `node report.mjs`; with `--check` it compares them.
//
// Owns: which entries there are (those of the package), and that nothing but a difference of the API fails. It reads the
// declarations in `node/dist`. Leaves out: finding the API, which API Extractor does.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Extractor, ExtractorConfig } from "@microsoft/api-extractor";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "../../node");
const check = process.argv.includes("--check");
const { exports } = JSON.parse(
  readFileSync(join(root, "package.json"), "utf8"),
);
const entries = Object.values(exports).flatMap(
  (entry) => entry.require?.types ?? [],
);

const silent = { default: { logLevel: "none" } };
let changed = false;
for (const declarations of entries) {
  const entry = declarations.replace("./dist/", "").replace(".d.ts", "");
  const config = ExtractorConfig.prepare({
    configObjectFullPath: undefined,
    packageJsonFullPath: join(root, "package.json"),
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: join(root, declarations),
      compiler: {
        overrideTsconfig: {
          compilerOptions: {
            target: "es2022",
            module: "nodenext",
            moduleResolution: "nodenext",
            lib: ["es2023", "esnext.disposable", "dom", "dom.asynciterable"],
            types: ["node"],
            typeRoots: [join(root, "node_modules/@types")],
            strict: true,
            skipLibCheck: true,
          },
          files: [join(root, declarations)],
        },
      },
      apiReport: {
        enabled: true,
        reportFileName: `${entry}.api.md`,
        reportFolder: here,
        reportTempFolder: join(here, "node_modules/.reports"),
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      newlineKind: "lf",
      messages: {
        compilerMessageReporting: { default: { logLevel: "error" } },
        extractorMessageReporting: silent,
        tsdocMessageReporting: silent,
      },
    },
  });
  const result = Extractor.invoke(config, {
    localBuild: !check,
    messageCallback: (message) => {
      if (message.messageId.startsWith("console-")) message.logLevel = "none";
    },
  });
  if (result.errorCount > 0) process.exit(1);
  if (check && result.apiReportChanged) {
    changed = true;
    const diff = spawnSync(
      "diff",
      ["-u", config.reportFilePath, config.reportTempFilePath],
      { encoding: "utf8" },
    );
    console.error(diff.stdout);
  }
}
process.exit(changed ? 1 : 0);
