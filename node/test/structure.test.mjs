// The structure of the package: no file imports from itself by way of others, not even a type.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const folder = new URL("../flatwater/", import.meta.url);

function graph() {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".d.ts"))
    .map((name) => name.slice(0, -3));
  const edge = (name) => {
    const text = readFileSync(new URL(`${name}.ts`, folder), "utf8");
    const found = [...text.matchAll(/from "\.\/([\w-]+)\.js"/g)].map(([, to]) => to);
    return [name, new Set(found.filter((to) => names.includes(to)))];
  };
  return new Map(names.map(edge));
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

test("files import from each other in no circle", () => {
  const edges = graph();
  assert.ok([...edges.values()].reduce((sum, to) => sum + to.size, 0) > 100, "the test sees imports");
  assert.deepEqual(inCircles(edges), []);
  const circle = new Map([
    ["a", new Set(["b"])],
    ["b", new Set(["c"])],
    ["c", new Set(["b"])],
  ]);
  assert.deepEqual(inCircles(circle), ["b", "c"]);
});
