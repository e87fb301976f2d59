"""The program that the Python peers are: lists its lanes, or runs one trial of one lane and prints its figures.

Owns: the command line and the JSON on standard output. Leaves out: fresh directories and repetition, which are the
tool's work.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path

import lanes
from lane import Trial
from peers import PEERS, load


def arguments():
    parser = argparse.ArgumentParser(description="Measures one library in one lane.")
    parser.add_argument("--as", dest="peer", choices=PEERS, required=True, help="which of this program's peers to be")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--list", action="store_true", help="print what this peer is and the lanes it runs")
    what.add_argument("--lane", help="run one trial of this lane")
    parser.add_argument("--dir", type=Path, help="the fresh directory for all files of the trial")
    parser.add_argument("--quick", action="store_true", help="the lane's small form")
    given = parser.parse_args()
    if given.lane and not given.dir:
        parser.error("--lane needs --dir")
    return given


async def about(name):
    """What the peer is; SQLite's version and compile options as the peer itself answers them."""
    peer = await load(name).open(":memory:", "NORMAL")
    try:
        [(sqlite,)] = await peer.query("SELECT sqlite_version()")
        options = [option for (option,) in await peer.query("PRAGMA compile_options")]
    finally:
        await peer.close()
    return {"peer": name, "version": peer.version, "sqlite": sqlite, "compile_options": options}


async def listing(name):
    return {**await about(name), "lanes": [lane.info() for lane in offered(name).values()]}


async def trial(name, lane, directory, quick):
    known = offered(name)
    if lane not in known:
        raise ValueError(f"{name} has no lane {lane!r}; it has {', '.join(known)}")
    if not directory.is_dir():
        raise ValueError(f"{directory} is not a directory")
    if (directory / "lab.db").exists():
        raise ValueError(f"{directory} has a database of an earlier trial in it; give a fresh directory")
    figures = await known[lane].run(Trial(load(name), directory, quick))
    described = await about(name)
    described["peer_version"] = described.pop("version")
    return {"lane": lane, **described, **figures}


def offered(name):
    """The lanes of a peer by name."""
    peer = load(name)
    able = [lane for lane in lanes.ALL if not (peer.one_thread and lane.tasks)]
    able = [lane for lane in able if peer.has_functions or not lane.functions]
    return {lane.name: lane for lane in able if peer.has_names or not lane.names}


def main():
    given = arguments()
    work = listing(given.peer) if given.list else trial(given.peer, given.lane, given.dir, given.quick)
    try:
        print(json.dumps(asyncio.run(work)))
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
