// The program that the Node peers are: lists its lanes, or runs one trial of one lane and prints its figures.
//
// Owns: the command line and the JSON on standard output. Leaves out: fresh directories and repetition, which are the
// tool's work.

import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { ALL } from "./lanes/all.mjs";
import { Trial } from "./trial.mjs";

const OPTIONS = {
  as: { type: "string", default: "node-better-sqlite3" },
  package: { type: "string", default: fileURLToPath(new URL("../../../node/dist/index.mjs", import.meta.url)) },
  list: { type: "boolean" },
  lane: { type: "string" },
  dir: { type: "string" },
  quick: { type: "boolean", default: false },
};

const PEERS = {
  "node-better-sqlite3": "./peers/better_sqlite3.mjs",
  "node-sqlite": "./peers/node_sqlite.mjs",
  "node-flatwater": "./peers/flatwater.mjs",
};

/**
 * The lanes of a peer. Those that were not made for a library that awaits are for the others, and some need what not every library
 * has. A peer that this Node does not have has none.
 */
const lanesOf = (Peer) =>
  Peer === undefined
    ? []
    : ALL.filter((lane) => (Peer.awaits ? lane.awaits : !lane.only) && (!lane.needs || lane.needs in Peer.prototype));

/** SQLite's version and compile options, as the peer itself answers them. */
async function sqlite(Peer) {
  if (Peer === undefined) return { sqlite: "none", compile_options: [] };
  const peer = Peer.awaits ? await Peer.open(":memory:") : new Peer(":memory:");
  try {
    const [{ version }] = await peer.query("SELECT sqlite_version() AS version");
    const options = await peer.query("PRAGMA compile_options");
    return { sqlite: version, compile_options: options.map((row) => row.compile_options) };
  } finally {
    await peer.close();
  }
}

async function listing(name, { Peer, VERSION }) {
  const lanes = lanesOf(Peer).map(({ run: _, awaits: __, only: ___, needs: ____, ...info }) => info);
  return { peer: name, version: VERSION, ...(await sqlite(Peer)), lanes };
}

async function trial(peer, { Peer, VERSION }, name, dir, quick) {
  const lanes = lanesOf(Peer);
  const lane = lanes.find((known) => known.name === name);
  if (!lane) throw new Error(`${peer} has no lane "${name}"; it has ${lanes.map((known) => known.name).join(", ")}`);
  if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) throw new Error(`${dir} is not a directory`);
  if (existsSync(join(dir, "lab.db"))) {
    throw new Error(`${dir} has a database of an earlier trial in it; give a fresh directory`);
  }
  const figures = await lane.run(new Trial(Peer, dir, quick));
  return { lane: name, peer, peer_version: VERSION, ...(await sqlite(Peer)), ...figures };
}

async function main() {
  const { values: given } = parseArgs({ options: OPTIONS });
  const module = PEERS[given.as];
  if (module === undefined) throw new Error(`there is no peer "${given.as}"; there are ${Object.keys(PEERS).join(", ")}`);
  process.env.FLATWATER_PACKAGE = given.package;
  const peer = await import(module);
  if (given.list && given.lane === undefined) return listing(given.as, peer);
  if (given.list || given.lane === undefined) throw new Error("give either --list, or --lane LANE --dir DIR [--quick]");
  if (given.dir === undefined) throw new Error("--lane needs --dir");
  return trial(given.as, peer, given.lane, given.dir, given.quick);
}

try {
  console.log(JSON.stringify(await main()));
} catch (error) {
  console.error(`${error.name}: ${error.message}`);
  process.exitCode = 1;
}
