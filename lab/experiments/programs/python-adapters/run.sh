#!/bin/sh
# Builds the package as it is published, and measures its adapters beside aiosqlite.
#
#   lab/experiments/programs/python-adapters/run.sh [--runs 5] [--json FILE]
#   lab/experiments/programs/python-adapters/run.sh --quick    shows that it works; its figures are no evidence
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH= cd -- "$here/../../../.." && pwd)
made=${CARGO_TARGET_DIR:-$root/target}/python-adapters
[ -x "$made/bin/python" ] || python3 -m venv "$made"
"$made/bin/python" -m pip install --quiet --disable-pip-version-check \
    'maturin>=1.10,<2' aiosqlite==0.22.1 'sqlalchemy[asyncio]==2.1.9'
"$made/bin/maturin" build --release --locked --quiet --manifest-path "$root/python/Cargo.toml" \
    --interpreter "$made/bin/python" --out "$made/wheels"
"$made/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-index --no-deps \
    --find-links "$made/wheels" flatwater
exec "$made/bin/python" "$here/measure.py" "$@"
