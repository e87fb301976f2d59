#!/bin/sh
# Builds the load twice, without and with SQLITE_ENABLE_SETLK_TIMEOUT, and measures both in turns.
#
#   lab/experiments/programs/setlk-timeout/run.sh            the probe and five runs a side, five minutes
#   lab/experiments/programs/setlk-timeout/run.sh --probe    only what strace sees
#   lab/experiments/programs/setlk-timeout/run.sh --quick    shows that it works; its figures are no evidence
set -eu
cd "$(dirname "$0")"
flags=$(sed -n 's/^LIBSQLITE3_FLAGS = "\(.*\)"$/\1/p' ../../../../.cargo/config.toml)
export LIBSQLITE3_FLAGS="$flags"
cargo build --quiet --release --locked --features driver --target-dir target/plain
LIBSQLITE3_FLAGS="$flags -DSQLITE_ENABLE_SETLK_TIMEOUT=1" \
    cargo build --quiet --release --locked --bin load --target-dir target/setlk
exec target/plain/release/setlk --plain target/plain/release/load --flagged target/setlk/release/load "$@"
