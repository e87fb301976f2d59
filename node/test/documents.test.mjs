// The code of the documents runs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readdirSync, readFileSync } from "node:fs";
import { folder, run } from "./support.mjs";

const root = new URL("../../", import.meta.url);
const guide = readdirSync(new URL("docs/guide/", root)).map((name) => `docs/guide/${name}`);

for (const page of ["README.md", "node/README.md", ...guide]) {
  const text = readFileSync(new URL(page, root), "utf8");
  const blocks = [...text.matchAll(/^```js\n(.*?)^```/gms)].map(([, code]) => code);
  for (const [at, code] of blocks.entries()) {
    test(`${page}, block ${at + 1} of ${blocks.length}`, async (t) => {
      // The names of the package are there already, and not every Node has `await using`.
      const source = code.replace(/^import .* from "flatwater";\n/gm, "").replaceAll("await using ", "const ");
      const opens = source.includes("await db.close()") ? source : `${source}\nawait db.close();`;
      const { code: ended, errors } = await run(`process.chdir(${JSON.stringify(folder(t))});\n${opens}`);
      assert.equal(ended, 0, errors);
    });
  }
}
