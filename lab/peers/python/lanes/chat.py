"""chat: the mixed traffic of a chat service, one call after another; kit/src/lanes/chat_plan.rs draws the same.

chat_50: the same from 50 tasks, as kit/src/lanes/chat_tasks.rs has it; service_50: one call in fifty writes.
"""

import asyncio
from functools import partial

from data import expect, expect_rows, same
from lane import Lane
from measure import Timing, timed
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
# How many of a hundred calls are of each kind; the rest are users by id.
CHAT = {"send": 5, "update": 5, "last": 45}
MOSTLY_READS = {"send": 1, "update": 1, "last": 49}
USERS = 500
CONVERSATIONS = 100
SHOWN = 20
TASKS = 50
BEGAN = 1_700_000_000


class Plan:
    """The data and the calls, with the rows that each must answer."""

    def __init__(self, mix, messages, calls):
        self.mix = mix
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
        drawn, mix = self.traffic.below(100), self.mix
        if drawn < mix["send"]:
            return "send", self.send(), None
        if drawn < mix["send"] + mix["update"]:
            place = self.traffic.place(self.zipf)
            self.last_at[place] = BEGAN + len(self.messages)
            return "update", (self.last_at[place], place + 1), None
        if drawn < sum(mix.values()):
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


async def ask(peer, timing, calls, one_by_one=True):
    """Makes the calls; answers the latencies of each kind."""
    kinds = {kind: [] for kind in SQL}
    for kind, params, expected in calls:
        if expected is None:
            call = peer.execute(SQL[kind], params)
        elif kind == "user" or one_by_one:
            call = same(peer, expected, SQL[kind], params)
        else:
            call = shown(peer, params)
        samples = kinds[kind]
        right = await timed(samples, call)
        timing.samples.append(samples[-1])
        expect(expected is None or right, True, f"the answer to {kind} {params} is the expected one")
    return kinds


async def shown(peer, params):
    """Whether a query answers as many messages as are shown. Touches every field."""
    rows = await peer.query(SQL["last"], params)
    touched = sum(number + len(body) + sent_at + len(name) + len(avatar) for number, body, sent_at, name, avatar in rows)
    return len(rows) == SHOWN and touched > 0


async def ask_at_once(peer, timing, calls):
    """The same from tasks, which take the next call of one list. What the last messages are depends on which is first."""
    calls = iter(calls)
    answers = await asyncio.gather(*(ask(peer, timing, calls, one_by_one=False) for _ in range(TASKS)))
    return {kind: [sample for kinds in answers for sample in kinds[kind]] for kind in SQL}


async def expect_conversations(peer, plan, one_by_one):
    """Each has the time that its last update wrote; or one of its updates, if the calls were made at once."""
    found = await peer.query("SELECT id, last_at FROM conversations ORDER BY id")
    last = [(i + 1, at) for i, at in enumerate(plan.last_at)]
    if one_by_one:
        expect(found, last, "conversations")
        return
    written = {i + 1: {at} for i, at in enumerate(plan.last_at)}
    for kind, params, _ in plan.calls:
        if kind == "update":
            written[params[1]].add(params[0])
    expect([at in written[i] for i, at in found], [True] * len(last), "times that updates wrote")


async def run(trial, mix, sizes, one_by_one):
    (warm, count), seeded = [trial.size(*it) for it in sizes], trial.size(10_000, 1_000) if one_by_one else 20_000
    plan = Plan(mix, seeded, warm + count)
    make = ask if one_by_one else ask_at_once
    async with trial.open() as peer:
        await fill(peer, plan)
        before = await peer.total_changes()
        await make(peer, Timing(), plan.calls[:warm])
        timing = Timing()
        kinds = await make(peer, timing, plan.calls[warm:])
        for kind, samples in kinds.items():
            timing.kind(kind, samples)
        figures = timing.end(count)
        writes = sum(expected is None for _, _, expected in plan.calls)
        expect(await peer.total_changes() - before, writes, "rows changed by the calls")
        every = "SELECT id, conversation, sender, body, sent_at FROM messages ORDER BY id"
        await expect_rows(peer, every, plan.messages)
        await expect_conversations(peer, plan, one_by_one)
        return figures


def lane(name, about, mix, sizes, tasks):
    made = partial(run, mix=mix, sizes=sizes, one_by_one=not tasks)
    return Lane("scenarios", name, about, "calls", made, release=True, tasks=tasks)


ONE = [(500, 50), (10_000, 500)]
AT_ONCE = [(2_000, 200), (20_000, 500)]
LANES = [
    lane("chat", "a chat service's mix: 10 % writes, 45 % last messages, 45 % users by id", CHAT, ONE, tasks=False),
    lane("chat_50", f"the mix of chat from {TASKS} tasks", CHAT, AT_ONCE, tasks=True),
    lane("service_50", f"{TASKS} tasks, 2 % writes, 49 % last messages, 49 % users by id", MOSTLY_READS, AT_ONCE, tasks=True),
]
