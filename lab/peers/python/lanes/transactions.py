"""transaction_interactive, transaction_batched, transaction_loop, transaction_reads, snapshot_reads, savepoints,
savepoints_deep.

A sample is one whole transaction, awaited statement by statement. A nested one is SAVEPOINT to RELEASE, or the
library's own nested transaction.
"""

from functools import partial

from data import DELETE_T, INSERT_T, SELECT_ITEM, SELECT_ITEMS, T, expect, expect_rows, expect_t, fill_items, items, same, t_rows
from lane import Lane
from measure import Timing

SEEDS = 100
READ = 500


async def transaction(peer, body):
    """Runs `body` in an immediate transaction; an error ends the trial and with it the connection."""
    await peer.begin()
    answer = await body
    await peer.commit()
    return answer


async def change(peer):
    await peer.execute("INSERT INTO ints VALUES (?)", (999,))
    [(counted,)] = await peer.query("SELECT count(*) FROM ints")
    if counted > 50:
        await peer.execute("DELETE FROM ints WHERE n = ?", (999,))
    return counted


async def interactive(trial):
    count = trial.size(3_000, 30)
    async with trial.open() as peer:
        await peer.execute("CREATE TABLE ints (n INTEGER NOT NULL)")
        await peer.many("INSERT INTO ints VALUES (?)", [(n,) for n in range(SEEDS)])
        timing = Timing()
        for _ in range(count):
            counted = await timing.time(transaction(peer, change(peer)))
            expect(counted, SEEDS + 1, "rows counted in the transaction")
        figures = timing.end(count)
        await expect_rows(peer, "SELECT n FROM ints ORDER BY n", [(n,) for n in range(SEEDS)])
        return figures


async def batched(peer, rows):
    await peer.each(INSERT_T, rows)


async def loop(peer, rows):
    for row in rows:
        await peer.execute(INSERT_T, row)


async def shallow(peer, rows):
    for row in rows:
        await peer.savepoint()
        await peer.execute(INSERT_T, row)
        await peer.release()


async def deep(peer, rows):
    if rows:
        await peer.savepoint()
        await peer.execute(INSERT_T, rows[0])
        await deep(peer, rows[1:])
        await peer.release()


async def writes(trial, body, rows, count):
    """Transactions that write the rows `0..rows` of `t`, which is emptied between them."""
    count = trial.size(count, 3)
    rows = t_rows(rows)
    async with trial.open() as peer:
        await peer.execute(T)
        timing = Timing()
        for _ in range(count):
            timing.pause()
            await peer.execute(DELETE_T)
            timing.resume()
            await timing.time(transaction(peer, body(peer, rows)))
        figures = timing.end(count * len(rows))
        await expect_t(peer, len(rows))
        return figures


async def reads(trial):
    count = trial.size(1_000, 5)
    async with trial.open() as peer:
        await fill_items(peer, READ)
        expected = items(READ)
        timing = Timing()
        for _ in range(count):
            right = await timing.time(transaction(peer, same(peer, expected, SELECT_ITEMS)))
            expect(right, True, "the rows are those that were written")
        return timing.end(count)


async def snapshot(peer, at):
    await peer.open_snapshot()
    rows = [await peer.query(SELECT_ITEM, (at + n + 1,)) for n in range(3)]
    await peer.close_snapshot()
    return rows


async def snapshots(trial):
    count = trial.size(10_000, 50)
    async with trial.open() as peer:
        await fill_items(peer, READ)
        expected = [[row] for row in items(READ)]
        timing = Timing()
        for n in range(count):
            at = n % (READ - 2)
            rows = await timing.time(snapshot(peer, at))
            expect(rows, expected[at : at + 3], "the rows of a snapshot")
        return timing.end(count)


LANES = [
    Lane("transactions", "transaction_interactive", "insert, count, delete if there are many, commit", "transactions",
         interactive, release=True),
    Lane("transactions", "transaction_batched", "1000 rows by one call inside a transaction", "rows",
         partial(writes, body=batched, rows=1000, count=150), release=True),
    Lane("transactions", "transaction_loop", "100 single inserts inside a transaction", "rows",
         partial(writes, body=loop, rows=100, count=300), release=True),
    Lane("transactions", "transaction_reads", "500 rows of 6 columns read inside a transaction", "transactions", reads,
         release=True),
    Lane("transactions", "snapshot_reads", "3 rows by primary key, all of one point in time", "snapshots", snapshots,
         release=True),
    Lane("transactions", "savepoints", "50 nested transactions one after another, an insert in each", "savepoints",
         partial(writes, body=shallow, rows=50, count=200), release=True),
    Lane("transactions", "savepoints_deep", "5 nested transactions inside each other, an insert in each", "savepoints",
         partial(writes, body=deep, rows=5, count=1000)),
]
