// The structure of the package: no file imports from itself by way of others, not even a type, and no folder has more files than one
// can look through.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { test } from "node:test";

/** The files of a folder and of the folders in it, by their paths from it. */
function files(folder) {
  const names = readdirSync(new URL(`../${folder}/`, import.meta.url), { recursive: true });
  return names.map((name) => name.replaceAll("\\", "/")).filter((name) => name.includes("."));
}

function graph() {
  const names = files("flatwater");
  const edge = (name) => {
    const text = readFileSync(new URL(`../flatwater/${name}`, import.meta.url), "utf8");
    const found = [...text.matchAll(/from "(\.\.?\/[\w./-]+)\.js"/g)].map(([, to]) => join(dirname(name), `${to}.ts`));
    assert.deepEqual(
      found.filter((to) => !names.includes(to)),
      [],
      name,
    );
    return [name, new Set(found)];
  };
  return new Map(names.map(edge));
}

/** The same of the folders: a file beside the folders is an entry, and stands above them. */
function ofFolders(edges) {
  const folders = new Map();
  for (const [from, to] of edges) {
    const others = [...to].map(dirname).filter((folder) => folder !== dirname(from));
    folders.set(dirname(from), new Set([...(folders.get(dirname(from)) ?? []), ...others]));
  }
  return folders;
}

function inCircles(edges) {
  const reached = (start) => {
    const [seen, waiting] = [new Set(), [...edges.get(start)]];
    while (waiting.length > 0) {
      const name = waiting.pop();
      if (!seen.has(name)) {
        seen.add(name);
        waiting.push(...edges.get(name));
      }
    }
    return seen;
  };
  return [...edges.keys()].filter((name) => reached(name).has(name));
}

test("files and folders import from each other in no circle", () => {
  const edges = graph();
  assert.ok([...edges.values()].reduce((sum, to) => sum + to.size, 0) > 100, "the test sees imports");
  assert.deepEqual(inCircles(edges), []);
  assert.deepEqual(inCircles(ofFolders(edges)), []);
  const circle = new Map([
    ["a", new Set(["b"])],
    ["b", new Set(["c"])],
    ["c", new Set(["b"])],
  ]);
  assert.deepEqual(inCircles(circle), ["b", "c"]);
});

test("no folder has more than 25 files", () => {
  for (const tree of ["flatwater", "test"]) {
    const counts = new Map();
    for (const folder of files(tree).map(dirname)) {
      counts.set(folder, (counts.get(folder) ?? 0) + 1);
    }
    assert.ok(counts.size > 3, "the test sees folders");
    assert.deepEqual(
      [...counts].filter(([, count]) => count > 25),
      [],
      tree,
    );
  }
});
