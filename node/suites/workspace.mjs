// A folder with packages of its own: for programs that need other versions than the package's own tests do.
import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Makes the folder, in which `flatwater` is a copy of the package, and each other package is the folder it is given with. */
export function workspace(folder, packages) {
  const modules = join(folder, "node_modules");
  rmSync(modules, { recursive: true, force: true });
  const own = join(modules, "flatwater");
  mkdirSync(join(own, "dist"), { recursive: true });
  cpSync(join(root, "package.json"), join(own, "package.json"));
  for (const name of readdirSync(join(root, "dist"))) {
    const from = join(root, "dist", name);
    if (name.endsWith(".node")) {
      symlinkSync(from, join(own, "dist", name));
    } else {
      cpSync(from, join(own, "dist", name), { recursive: true });
    }
  }
  for (const [name, from] of Object.entries(packages)) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(root, from), join(modules, name));
  }
  return folder;
}
