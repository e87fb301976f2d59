/**
 * Objects that are dropped without an end.
 *
 * Owns: letting go of what the native module has for one, when the collector has found it. Leaves out: the objects, which take
 * themselves out when they end.
 */

import { native } from "./addon.js";

/** By the number that an object has natively. */
export const unused = new FinalizationRegistry<number>((handle) => native.release(handle));
