// Bundles the page's script and style into dist/, from where the lab puts them into the page.
import { build } from "esbuild";

await build({
  entryPoints: { page: "src/main.js" },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "ascii",
  legalComments: "eof",
  outdir: "dist",
  logLevel: "warning",
});
