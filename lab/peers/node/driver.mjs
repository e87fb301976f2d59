// The program that the Node peer is: lists its lanes, or runs one trial of one lane and prints its figures.
//
// Owns: the command line and the JSON on standard output. Leaves out: fresh directories and repetition, which are the
// tool's work.

import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { ALL } from "./lanes/all.mjs";
import { NAME, Peer, VERSION } from "./peer.mjs";
import { Trial } from "./trial.mjs";

const OPTIONS = {
  list: { type: "boolean" },
  lane: { type: "string" },
  dir: { type: "string" },
  quick: { type: "boolean", default: false },
};

/** SQLite's version and compile options, as the peer itself answers them. */
function sqlite() {
  const peer = new Peer(":memory:");
  try {
    const [{ version }] = peer.query("SELECT sqlite_version() AS version");
    return { sqlite: version, compile_options: peer.query("PRAGMA compile_options").map((row) => row.compile_options) };
  } finally {
    peer.close();
  }
}

function listing() {
  const lanes = ALL.map(({ run: _, ...info }) => info);
  return { peer: NAME, version: VERSION, ...sqlite(), lanes };
}

function trial(name, dir, quick) {
  const lane = ALL.find((known) => known.name === name);
  if (!lane) throw new Error(`${NAME} has no lane "${name}"; it has ${ALL.map((known) => known.name).join(", ")}`);
  if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) throw new Error(`${dir} is not a directory`);
  if (existsSync(join(dir, "lab.db"))) {
    throw new Error(`${dir} has a database of an earlier trial in it; give a fresh directory`);
  }
  const figures = lane.run(new Trial(dir, quick));
  return { lane: name, peer: NAME, peer_version: VERSION, ...sqlite(), ...figures };
}

function main() {
  const { values: given } = parseArgs({ options: OPTIONS });
  if (given.list && given.lane === undefined) return listing();
  if (given.list || given.lane === undefined) throw new Error("give either --list, or --lane LANE --dir DIR [--quick]");
  if (given.dir === undefined) throw new Error("--lane needs --dir");
  return trial(given.lane, given.dir, given.quick);
}

try {
  console.log(JSON.stringify(main()));
} catch (error) {
  console.error(`${error.name}: ${error.message}`);
  process.exitCode = 1;
}
