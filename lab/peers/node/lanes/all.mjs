// Every lane that this peer runs. What a lane does is said in kit/src/lanes.

import * as chat from "./chat.mjs";
import * as feed from "./feed.mjs";
import * as inserts from "./inserts.mjs";
import * as json from "./json_rows.mjs";
import * as kysely from "./kysely.mjs";
import * as loopRows from "./loop_rows.mjs";
import * as many from "./many.mjs";
import * as memory from "./memory.mjs";
import * as noop from "./noop.mjs";
import * as own from "./own_calls.mjs";
import * as reads from "./reads.mjs";
import * as selects from "./selects.mjs";
import * as shapes from "./shapes.mjs";
import * as startup from "./startup.mjs";
import * as transactions from "./transactions.mjs";

const MODULES = [inserts, many, reads, selects, shapes, json, transactions, noop, chat, feed, memory, startup, own, loopRows, kysely];
export const ALL = MODULES.flatMap((module) => module.LANES).concat(own.AWAITED);
