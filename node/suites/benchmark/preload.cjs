// Loaded before each program of better-sqlite3's benchmark, which stays as it is: adds the entries of this package to what it loads.
// Its own library is the one of the lab. FLATWATER_SHORT: small tables and short trials, whose figures say nothing.
"use strict";
const Module = require("node:module");
const { basename, dirname, join } = require("node:path");
const { driver, types } = require("./driver.cjs");

const lab = Module.createRequire(join(__dirname, "../../../lab/peers/node/"));
const isShort = process.env.FLATWATER_SHORT !== undefined;
const load = Module._load;

Module._load = function (request, parent, isMain) {
  if (request === "../.") {
    return lab("better-sqlite3");
  }
  const exports = load.call(this, request, parent, isMain);
  if (request === "./drivers") {
    exports.delete("node-sqlite3");
    exports.set("flatwater", driver);
  } else if (request.startsWith("./types/")) {
    exports.flatwater = types[basename(request)];
  } else if (request === "nodemark" && isShort) {
    return (run, setup) => exports(run, setup, 20);
  }
  return exports;
};

const compile = Module.prototype._compile;
Module.prototype._compile = function (text, file) {
  const isSeed = isShort && file.endsWith(join(basename(dirname(file)), "seed.js"));
  return compile.call(this, isSeed ? text.replaceAll("count: 10000", "count: 200") : text, file);
};
