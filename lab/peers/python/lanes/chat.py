"""chat: the mixed traffic of a chat service, one call after another; kit/src/lanes/chat_plan.rs draws the same."""

from data import expect, expect_rows, same
from lane import Lane
from measure import Timing
from traffic import Traffic, zipf

CREATE = [
    "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, avatar TEXT NOT NULL)",
    "CREATE TABLE conversations (id INTEGER PRIMARY KEY, last_at INTEGER NOT NULL)",
    "CREATE TABLE messages (id INTEGER PRIMARY KEY, conversation INTEGER NOT NULL, sender INTEGER NOT NULL, "
    "body TEXT NOT NULL, sent_at INTEGER NOT NULL)",
    "CREATE INDEX messages_newest ON messages (conversation, sent_at)",
]
INSERT = "INSERT INTO messages (id, conversation, sender, body, sent_at) VALUES (?, ?, ?, ?, ?)"
SQL = {
    "send": INSERT,
    "update": "UPDATE conversations SET last_at = ? WHERE id = ?",
    "last": "SELECT m.id, m.body, m.sent_at, u.name, u.avatar FROM messages m "
    "JOIN users u ON u.id = m.sender WHERE m.conversation = ? ORDER BY m.sent_at DESC LIMIT 20",
    "user": "SELECT id, name, avatar FROM users WHERE id = ?",
}
USERS = 500
CONVERSATIONS = 100
SHOWN = 20
BEGAN = 1_700_000_000


class Plan:
    """The data and the calls, with the rows that each must answer."""

    def __init__(self, messages, calls):
        self.traffic, self.zipf = Traffic(), zipf(CONVERSATIONS)
        self.users = [(i, f"User {i}", f"https://chat.example/avatars/{i}.png") for i in range(1, USERS + 1)]
        self.last_at = [BEGAN] * CONVERSATIONS
        self.newest = [[] for _ in range(CONVERSATIONS)]
        self.messages = []
        for _ in range(messages):
            self.send()
        self.seeded = list(self.messages)
        self.calls = [self.call() for _ in range(calls)]

    def send(self):
        number = len(self.messages) + 1
        conversation = self.traffic.place(self.zipf) + 1
        sender = self.traffic.below(USERS) + 1
        words = "so it goes " * (self.traffic.below(12) + 1)
        message = (number, conversation, sender, f"Message {number}: {words}", BEGAN + number)
        self.messages.append(message)
        self.newest[conversation - 1].append(message)
        return message

    def call(self):
        """Its kind, its parameters and, if it answers rows, these."""
        drawn = self.traffic.below(100)
        if drawn < 5:
            return "send", self.send(), None
        if drawn < 10:
            place = self.traffic.place(self.zipf)
            self.last_at[place] = BEGAN + len(self.messages)
            return "update", (self.last_at[place], place + 1), None
        if drawn < 55:
            place = self.traffic.place(self.zipf)
            newest = self.newest[place][:-SHOWN - 1:-1]
            return "last", (place + 1,), [(it[0], it[3], it[4], *self.users[it[2] - 1][1:]) for it in newest]
        user = self.users[self.traffic.below(USERS)]
        return "user", (user[0],), [user]


async def fill(peer, plan):
    for sql in CREATE:
        await peer.execute(sql)
    await peer.many("INSERT INTO users (id, name, avatar) VALUES (?, ?, ?)", plan.users)
    conversations = [(i + 1, BEGAN) for i in range(CONVERSATIONS)]
    await peer.many("INSERT INTO conversations (id, last_at) VALUES (?, ?)", conversations)
    await peer.many(INSERT, plan.seeded)


async def ask(peer, timing, calls):
    """Makes the calls; answers the latencies of each kind."""
    kinds = {kind: [] for kind in SQL}
    for kind, params, expected in calls:
        if expected is None:
            await timing.time(peer.execute(SQL[kind], params))
        else:
            right = await timing.time(same(peer, expected, SQL[kind], params))
            expect(right, True, f"the answer to {kind} {params} is the expected one")
        kinds[kind].append(timing.samples[-1])
    return kinds


async def run(trial):
    warm, count = trial.size(500, 50), trial.size(10_000, 500)
    plan = Plan(trial.size(10_000, 1_000), warm + count)
    async with trial.open() as peer:
        await fill(peer, plan)
        before = await peer.total_changes()
        await ask(peer, Timing(), plan.calls[:warm])
        timing = Timing()
        kinds = await ask(peer, timing, plan.calls[warm:])
        for kind, samples in kinds.items():
            timing.kind(kind, samples)
        figures = timing.end(count)
        writes = sum(expected is None for _, _, expected in plan.calls)
        expect(await peer.total_changes() - before, writes, "rows changed by the calls")
        every = "SELECT id, conversation, sender, body, sent_at FROM messages ORDER BY id"
        await expect_rows(peer, every, plan.messages)
        conversations = [(i + 1, at) for i, at in enumerate(plan.last_at)]
        await expect_rows(peer, "SELECT id, last_at FROM conversations ORDER BY id", conversations)
        return figures


ABOUT = "a chat service's mix: 10 % writes, 45 % last messages, 45 % users by id"
LANES = [Lane("scenarios", "chat", ABOUT, "calls", run, release=True)]
