#!/bin/sh
# Measures functions in JavaScript, of the package for Node and of better-sqlite3 (the lab's), in turns.
#
#   lab/experiments/programs/functions-in-javascript/run.sh [rows] [rounds]
set -eu
cd "$(dirname "$0")"
root=../../../..
[ -d "$root/lab/peers/node/node_modules/better-sqlite3/build" ] || npm --prefix "$root/lab/peers/node" ci --silent
cargo build --release --quiet -p flatwater-node
target=$(cd "$root" && cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
node "$root/node/tools/build.mjs" "$target/release" "$PWD/target" index
exec node measure.mjs "$@"
