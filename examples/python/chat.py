"""A chat with Flatwater: members send and read at the same time, and see messages as they come."""

import asyncio

import flatwater

SCHEMA = """
CREATE TABLE IF NOT EXISTS rooms (name TEXT PRIMARY KEY, messages INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY, room TEXT NOT NULL, sender TEXT NOT NULL, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS messages_of_room ON messages (room, id);
"""
INSERT = "INSERT INTO messages (room, sender, body) VALUES (?, ?, ?)"
COUNT = "INSERT INTO rooms VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET messages = messages + 1"
LAST = "SELECT id, sender, body FROM messages WHERE room = ? ORDER BY id DESC LIMIT 20"


async def open_chat(path):
    return await flatwater.connect(path, migrations=[("0001_chat", SCHEMA)])


async def send(db, room, sender, body):
    await db.batch([(INSERT, (room, sender, body)), (COUNT, (room,))])


async def last(db, room):
    return await db.query(LAST, (room,))


async def follow(db, room, show):
    async with db.live(LAST, (room,)) as results:
        async for messages in results:
            show(messages)


async def main():
    async with await open_chat(":memory:") as db:
        reader = asyncio.create_task(follow(db, "lobby", lambda messages: print(*map(tuple, messages[:3]))))
        await asyncio.gather(*(send(db, "lobby", name, f"hello, I am {name}") for name in ("Ada", "Grace", "Edsger")))
        await asyncio.sleep(0.1)
        reader.cancel()


if __name__ == "__main__":
    asyncio.run(main())
