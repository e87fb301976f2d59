// One run of one lane.
//
// Owns: the fresh database and the sizes of the lane's forms. Leaves out: the lanes.

import assert from "node:assert/strict";
import { join } from "node:path";

import { Peer } from "./peer.mjs";

export class Trial {
  constructor(dir, quick) {
    this.dir = dir;
    this.quick = quick;
  }

  /** A number of operations: the full one, or that of the quick form. */
  size(full, quick) {
    return this.quick ? quick : full;
  }

  /** Opens the peer on a fresh database, answers what `use` does with it, and closes it. */
  open(use, synchronous = "NORMAL") {
    const peer = new Peer(join(this.dir, "lab.db"), synchronous);
    try {
      assert.deepEqual(peer.query("PRAGMA journal_mode"), [{ journal_mode: "wal" }], "the peer's journal mode");
      return use(peer);
    } finally {
      peer.close();
    }
  }
}
