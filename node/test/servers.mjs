// Servers for tests: the stand-in for an rqlite cluster, and a real libSQL server where `SQLD` names its program.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { open } from "../dist/index.mjs";

/** Three nodes, and what controls them. */
export async function cluster(t) {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const child = spawn("cargo", ["run", "--quiet", "-p", "rqlite-double"], {
    cwd: root,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  const { nodes, control } = JSON.parse(line);
  t.after(async () => {
    const ended = once(child, "exit");
    child.stdin.end();
    await ended;
  });
  const order = (given) => fetch(`http://${control}/`, { method: "POST", body: JSON.stringify(given) });
  return { address: `rqlite://ada:secret@${nodes.join(",")}`, order };
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

/** What a test of a libSQL server needs. */
export const needsSqld = { skip: process.env.SQLD === undefined && "needs SQLD=/path/to/sqld" };

/** A libSQL server; its address. */
export async function sqld(t) {
  const folder = mkdtempSync(join(tmpdir(), "flatwater-sqld-"));
  const port = await freePort();
  const listens = ["--http-listen-addr", `127.0.0.1:${port}`, "--db-path", join(folder, "db"), "--no-welcome"];
  const child = spawn(process.env.SQLD, listens, { cwd: folder, stdio: "ignore" });
  t.after(async () => {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true });
  });
  const address = `libsql://127.0.0.1:${port}/?tls=0&timeout=60s`;
  // It answers when it is there.
  const first = await open(address);
  await first.close();
  assert.equal(child.exitCode, null);
  return address;
}
