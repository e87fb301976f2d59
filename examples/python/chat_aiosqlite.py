"""The chat of `chat.py` with aiosqlite: one lock for all who write, and a reader who asks again and again."""

import asyncio

import aiosqlite
from chat import COUNT, INSERT, LAST, SCHEMA

SETTINGS = "PRAGMA journal_mode = wal; PRAGMA synchronous = normal; PRAGMA foreign_keys = on;"
ASK_AGAIN = 0.02
writing = asyncio.Lock()


async def open_chat(path):
    db = await aiosqlite.connect(path)
    db.row_factory = aiosqlite.Row
    await db.executescript(SETTINGS + SCHEMA)
    return db


async def send(db, room, sender, body):
    async with writing:
        try:
            await db.execute(INSERT, (room, sender, body))
            await db.execute(COUNT, (room,))
            await db.commit()
        except BaseException:
            await db.rollback()
            raise


async def last(db, room):
    async with db.execute(LAST, (room,)) as cursor:
        return await cursor.fetchall()


async def follow(db, room, show):
    newest = None
    while True:
        messages = await last(db, room)
        if newest is None or (messages and messages[0]["id"] != newest):
            newest = messages[0]["id"] if messages else 0
            show(messages)
        await asyncio.sleep(ASK_AGAIN)
