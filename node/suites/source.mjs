// The sources of another project, at a version, from its repository: nothing of them is kept here.
import { execFileSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Where repositories are: `FLATWATER_GIT=/srv/mirror/` takes those of a folder. */
const base = process.env.FLATWATER_GIT ?? "https://github.com/";

/** The folder with these paths of a repository, of a tag that is this commit. Null if the repository cannot be reached. */
export function source(repository, tag, commit, paths) {
  const folder = fileURLToPath(new URL(`target/${repository.replace("/", "+")}-${tag}`, import.meta.url));
  const git = (...args) => execFileSync("git", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  if (!existsSync(folder)) {
    try {
      const from = `${base}${repository}`;
      git("clone", "--quiet", "--depth=1", "--filter=blob:none", "--sparse", `--branch=${tag}`, from, folder);
      git("-C", folder, "sparse-checkout", "set", "--no-cone", ...paths.map((path) => `/${path}`));
    } catch {
      rmSync(folder, { recursive: true, force: true });
      return null;
    }
  }
  const is = git("-C", folder, "rev-parse", "HEAD");
  if (is !== commit) {
    throw new Error(`${repository} ${tag} is ${is}, not ${commit}`);
  }
  return folder;
}
