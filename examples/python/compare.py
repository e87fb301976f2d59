"""The chat on Flatwater and on aiosqlite, in turns: the same traffic, the time until a message is seen, and what a
cancelled query leaves behind. FLATWATER_DEMO_SECONDS (4) is how long each side has for its traffic.

Owns the traffic and its checks. The sides are `chat.py` and `chat_aiosqlite.py`.
"""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import chat
import chat_aiosqlite

SIDES = {"Flatwater": chat, "aiosqlite": chat_aiosqlite}
SECONDS = float(os.environ.get("FLATWATER_DEMO_SECONDS", 4))
TURNS = 2
MEMBERS = 50
EVERY_SECONDS = 0.04
READS_PER_MESSAGE = 9
SEEN = 50
LONG = "WITH RECURSIVE i (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < 5000000) SELECT sum(i) FROM i"
BOOKS = "SELECT (SELECT count(*) FROM messages), (SELECT sum(messages) FROM rooms)"


async def timed(samples, call):
    began = time.perf_counter()
    await call
    samples.append(time.perf_counter() - began)


async def read(side, db, room):
    return [(message["sender"], message["body"]) for message in await side.last(db, room)]


async def member(side, db, number, figures):
    """Reads a room or sends to it, at a pace that is the same on both sides."""
    room, began = f"room {number % 5}", time.perf_counter() + EVERY_SECONDS * number / MEMBERS
    for action in range(int(SECONDS / TURNS / EVERY_SECONDS)):
        await asyncio.sleep(max(0, began + action * EVERY_SECONDS - time.perf_counter()))
        if (number + action) % (READS_PER_MESSAGE + 1) == 0:
            await timed(figures["send"], side.send(db, room, f"member {number}", "so it goes"))
        else:
            await timed(figures["read the last 20"], read(side, db, room))


async def traffic(side, db, figures):
    await asyncio.gather(*(member(side, db, number, figures) for number in range(MEMBERS)))


async def seen(side, db, figures):
    """How long it takes until a message is shown to who follows its room."""
    shown = asyncio.Queue()
    reader = asyncio.create_task(side.follow(db, "watched", shown.put_nowait))
    await shown.get()
    for number in range(SEEN):
        await asyncio.sleep(0.005)
        await side.send(db, "watched", "Ada", str(number))
        began = time.perf_counter()
        while (await shown.get())[0]["body"] != str(number):
            pass
        figures["seen after it was sent"].append(time.perf_counter() - began)
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)


async def ask(db, sql):
    """All rows, by either library."""
    return [tuple(row) for row in await (db.query(sql) if hasattr(db, "query") else db.execute_fetchall(sql))]


async def cancelled(side, db, figures):
    """How long the next read takes after a long query was cancelled."""
    query = asyncio.create_task(ask(db, LONG))
    await asyncio.sleep(0.05)
    query.cancel()
    await timed(figures["read after a cancelled query"], read(side, db, "watched"))
    await asyncio.gather(query, return_exceptions=True)


async def check(db, figures):
    sent = len(figures["send"]) + len(figures["seen after it was sent"])
    if (found := await ask(db, BOOKS)) != [(sent, sent)]:
        sys.exit(f"{sent} messages were sent, and the database has {found}")


async def main():
    kinds = ("send", "read the last 20", "seen after it was sent", "read after a cancelled query")
    figures = {name: {kind: [] for kind in kinds} for name in SIDES}
    with tempfile.TemporaryDirectory() as folder:
        dbs = {name: await side.open_chat(str(Path(folder, f"{name}.db"))) for name, side in SIDES.items()}
        for act in (traffic, seen, cancelled):
            for turn in range(TURNS):
                for name, side in list(SIDES.items())[:: -1 if turn % 2 else 1]:
                    await act(side, dbs[name], figures[name])
        for name, db in dbs.items():
            await check(db, figures[name])
            await db.close()
    print(f"{MEMBERS} members of a chat, {SECONDS:g} s for each library, in turns; every message was counted.\n")
    print(f"{'':30}{'':>12}{'calls':>9}{'p50 ms':>11}{'p99 ms':>11}")
    for kind in kinds:
        for name in SIDES:
            ordered = sorted(figures[name][kind])
            p50, p99 = (ordered[min(int(len(ordered) * at), len(ordered) - 1)] * 1000 for at in (0.5, 0.99))
            print(f"{kind if name == 'Flatwater' else '':30}{name:>12}{len(ordered):>9}{p50:>11.3f}{p99:>11.3f}")


asyncio.run(main())
