// Writes the entries for `import`, which are the same module as those for `require`: there is one state.
import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";

const dist = new URL("../dist/", import.meta.url);
const names = process.argv[2] === undefined ? Object.keys(createRequire(import.meta.url)("../dist/index.js")) : [];
const lines = names.filter((name) => name !== "__esModule").map((name) => `export const ${name} = flatwater.${name};`);
writeFileSync(new URL("index.mjs", dist), `import flatwater from "./index.js";\n\n${lines.join("\n")}\n`);
writeFileSync(new URL("index.d.mts", dist), `export * from "./index.js";\n`);
