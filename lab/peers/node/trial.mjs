// One run of one lane.
//
// Owns: the fresh database and the sizes of the lane's forms. Leaves out: the lanes.

import assert from "./assert.mjs";
import { join } from "node:path";

export class Trial {
  constructor(Peer, dir, quick) {
    this.Peer = Peer;
    this.dir = dir;
    this.quick = quick;
  }

  /** A number of operations: the full one, or that of the quick form. */
  size(full, quick) {
    return this.quick ? quick : full;
  }

  /** Opens the peer on a fresh database, answers what `use` does with it, and closes it. */
  open(use, synchronous = "NORMAL") {
    const peer = new this.Peer(join(this.dir, "lab.db"), synchronous);
    try {
      assert.deepEqual(peer.query("PRAGMA journal_mode"), [{ journal_mode: "wal" }], "the peer's journal mode");
      return use(peer);
    } finally {
      peer.close();
    }
  }

  /** The same for a lane that awaits. */
  async opened(use, synchronous = "NORMAL") {
    const path = join(this.dir, "lab.db");
    const peer = this.Peer.awaits ? await this.Peer.open(path, synchronous) : new this.Peer(path, synchronous);
    try {
      assert.deepEqual(await peer.query("PRAGMA journal_mode"), [{ journal_mode: "wal" }], "the peer's journal mode");
      return await use(peer);
    } finally {
      await peer.close();
    }
  }
}
