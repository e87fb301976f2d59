// The programs of this folder do what they say.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { open } from "flatwater";

/** Starts a program in a folder of its own. Its output is shown if the test fails. */
function start(t, program, args, env) {
  const cwd = mkdtempSync(join(tmpdir(), "programs-"));
  const file = fileURLToPath(new URL(`../${program}`, import.meta.url));
  const child = spawn(process.execPath, [file, ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  child.stdout.setEncoding("utf8");
  t.after(() => {
    child.kill("SIGKILL");
    rmSync(cwd, { recursive: true });
  });
  return { child, cwd, said: once(child.stdout, "data") };
}

/** A request on a connection of its own, so that any process may get it, with a time after which it is given up. */
async function visit(port, patience) {
  const request = get({
    port,
    agent: false,
    signal: AbortSignal.timeout(patience),
  });
  const [response] = await once(request, "response");
  assert.equal(response.statusCode, 200);
  return json(response);
}

/** A program that says nothing fails its test. */
const HANGS = { timeout: 120_000 };

const sum = (visits) => visits.reduce((all, { count }) => all + count, 0);

test(
  "four processes count on one file, and one that is killed is replaced",
  HANGS,
  async (t) => {
    const { child, cwd, said } = start(t, "cluster.mjs", ["visits.db"], {
      PORT: "0",
    });
    const [address] = await said;
    const { port } = new URL(address.trim());
    let visits = [];
    let requests = 0;
    while (visits.length < 4) {
      const all = await Promise.all(
        Array.from({ length: 10 }, () => visit(port, 60_000)),
      );
      requests += 10;
      visits = all.sort((one, other) => sum(one) - sum(other)).at(-1);
    }
    assert.equal(sum(visits), requests);
    process.kill(visits[0].process, "SIGKILL");
    while (visits.length < 5) {
      // One that the killed process had is never answered.
      visits = await visit(port, 5_000).catch(() => visits);
    }
    child.kill("SIGTERM");
    assert.deepEqual(await once(child, "exit"), [0, null]);
    const db = await open(join(cwd, "visits.db"), {
      readOnly: true,
    });
    assert.equal(await db.queryValue("PRAGMA integrity_check"), "ok");
    assert.equal(await db.queryValue("SELECT count(*) FROM visits"), 5);
    await db.close();
  },
);

test(
  "a worker streams a table to a file, and the main thread writes meanwhile",
  HANGS,
  async (t) => {
    const rows = Number(process.env.FLATWATER_EXAMPLE_ROWS ?? 100_000);
    const { child, cwd, said } = start(t, "export.mjs", ["r.db", "r.csv"], {
      ROWS: rows,
    });
    const ended = once(child, "exit");
    const [text] = await said;
    const [, written, , beats] = /(\d+) rows in (.*), and (\d+) writes/.exec(
      text,
    );
    assert.equal(Number(written), rows);
    assert.ok(Number(beats) > 0);
    assert.deepEqual(await ended, [0, null]);
    const lines = readFileSync(join(cwd, "r.csv"), "utf8").split("\n");
    assert.equal(lines.length, rows + 2);
    assert.equal(lines[0], "id,sensor,value");
    assert.equal(lines[rows], `${rows},sensor ${rows % 100},${rows / 8}`);
  },
);
