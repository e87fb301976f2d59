"""Every lane that these peers run. What a lane does is said in kit/src/lanes."""

from lanes import (
    chat, concurrent, feed, inserts, json_rows, many, memory, noop, reads, selects, shapes, transactions,
)

MODULES = (inserts, concurrent, many, reads, selects, shapes, json_rows, transactions, noop, chat, feed, memory)
ALL = [lane for module in MODULES for lane in module.LANES]
