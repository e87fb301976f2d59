"""feed: paging through 100,000 posts, 20 pages of 50, each continuing where the one before ended."""

from data import expect, same
from lane import Lane
from measure import Timing
from traffic import Traffic

CREATE = (
    "CREATE TABLE posts (id INTEGER PRIMARY KEY, author INTEGER NOT NULL, created_at INTEGER NOT NULL, "
    "body TEXT NOT NULL, like_count INTEGER NOT NULL)"
)
INDEX = "CREATE INDEX posts_newest ON posts (created_at DESC, id DESC)"
INSERT = "INSERT INTO posts (id, author, created_at, body, like_count) VALUES (?, ?, ?, ?, ?)"
PAGE = (
    "SELECT id, author, created_at, body, like_count FROM posts WHERE (created_at, id) < (?, ?) "
    "ORDER BY created_at DESC, id DESC LIMIT 50"
)
PER_PAGE = 50
PAGES = 20
CHUNK = 10_000
END = (1 << 63) - 1


def posts(count):
    traffic = Traffic()
    made = []
    for i in range(count):
        author = traffic.below(1000)
        created = 1_700_000_000 + traffic.below(count)
        body = f"Post {i} by author {author} ".ljust(120, ".")
        made.append((i + 1, author, created, body, traffic.below(500)))
    return made


async def walk(peer, pages, timing):
    after = (END, END)
    for page in pages:
        right = await timing.time(same(peer, page, PAGE, after))
        expect(right, True, f"the page after {after} is the expected one")
        after = (page[-1][2], page[-1][0])


async def run(trial):
    count, runs = trial.size(100_000, 2_000), trial.size(50, 2)
    rows = posts(count)
    async with trial.open() as peer:
        await peer.execute(CREATE)
        for at in range(0, count, CHUNK):
            await peer.many(INSERT, rows[at:at + CHUNK])
        await peer.execute(INDEX)
        rows.sort(key=lambda post: (post[2], post[0]), reverse=True)
        pages = [rows[at:at + PER_PAGE] for at in range(0, PAGES * PER_PAGE, PER_PAGE)]
        for _ in range(2):
            await walk(peer, pages, Timing())
        timing = Timing()
        for _ in range(runs):
            await walk(peer, pages, timing)
        return timing.end(runs * PAGES)


LANES = [Lane("scenarios", "feed", "20 pages of 50 posts out of 100,000, by keyset", "pages", run, release=True)]
