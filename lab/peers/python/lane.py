"""What a lane is.

Owns: a lane's description and the trial it is given to run in. Leaves out: the lanes.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from data import expect


@dataclass(frozen=True)
class Lane:
    group: str
    name: str
    about: str
    ops_unit: str
    # Answers the figures of a trial.
    run: Callable
    # It stands first on the page.
    release: bool = False
    # Several tasks call the peer at once.
    tasks: bool = False
    # Rows are read by name.
    names: bool = False
    # SQL calls a function of the program.
    functions: bool = False

    def info(self):
        """The description that `--list` prints."""
        tag = "release" if self.release else "focused"
        return dict(name=self.name, about=self.about, tag=tag, group=self.group, ops_unit=self.ops_unit)


@dataclass(frozen=True)
class Trial:
    """One run of one lane."""

    # The class of the peer.
    kind: type
    dir: Path
    quick: bool

    def size(self, full, quick):
        """A number of operations: the full one, or that of the quick form."""
        return quick if self.quick else full

    @contextlib.asynccontextmanager
    async def open(self, synchronous="NORMAL"):
        """Opens the peer on a fresh database, and closes it."""
        peer = await self.kind.open(str(self.dir / "lab.db"), synchronous)
        try:
            expect(await peer.query("PRAGMA journal_mode"), [("wal",)], "the peer's journal mode")
            yield peer
        finally:
            await peer.close()
