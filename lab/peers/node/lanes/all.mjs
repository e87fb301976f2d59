// Every lane that this peer runs. What a lane does is said in the file of the same name in kit/src/lanes.

import * as inserts from "./inserts.mjs";
import * as noop from "./noop.mjs";
import * as reads from "./reads.mjs";

export const ALL = [inserts, reads, noop].flatMap((module) => module.LANES);
