"""noop_execute, noop_select: calls that do nothing, which is the cost of asking."""

from data import INSERT_T, T, expect, expect_t
from lane import Lane
from measure import Timing, timed


async def writes(peer, count):
    """Latencies of a write that does nothing, on a peer that has the table `t`."""
    samples = []
    before = await peer.total_changes()
    for _ in range(count):
        await timed(samples, peer.execute("UPDATE t SET value = 0 WHERE 1 = 0"))
    expect(await peer.total_changes(), before, "rows changed after an UPDATE that matches nothing")
    return samples


async def reads(peer, count):
    """Latencies of a read that reads nothing."""
    samples = []
    for _ in range(count):
        rows = await timed(samples, peer.query("SELECT 1"))
        expect(rows, [(1,)], "SELECT 1")
    return samples


async def write_floor(trial, peer):
    """The floor of a write, for a lane's `work_us`."""
    return await writes(peer, trial.size(2_000, 50))


async def read_floor(trial, peer):
    """The floor of a read, for a lane's `work_us`."""
    return await reads(peer, trial.size(2_000, 50))


async def execute(trial):
    count = trial.size(20_000, 200)
    async with trial.open() as peer:
        await peer.execute(T)
        await peer.execute(INSERT_T, ("item_0", 0.0))
        await writes(peer, count // 10)
        timing = Timing()
        timing.samples = await writes(peer, count)
        figures = timing.end(count)
        await expect_t(peer, 1)
        return figures


async def select(trial):
    count = trial.size(50_000, 500)
    async with trial.open() as peer:
        await peer.execute(T)
        await reads(peer, count // 10)
        timing = Timing()
        timing.samples = await reads(peer, count)
        return timing.end(count)


LANES = [
    Lane("profile", "noop_execute", "an UPDATE that matches nothing, awaited", "calls", execute),
    Lane("profile", "noop_select", "SELECT 1, awaited", "calls", select),
]
