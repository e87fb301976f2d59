"""Every lane that these peers run. What a lane does is said in kit/src/lanes, or at its head if it is Python's own."""

from lanes import (
    cancelled, chat, concurrent, feed, functions, inserts, json_rows, loop_holds, many, memory, noop, own_calls, reads, rows, selects,
    shapes, startup, transactions,
)

MODULES = (
    inserts, concurrent, many, reads, functions, selects, shapes, json_rows, transactions, noop, chat, feed, memory, own_calls, rows,
    loop_holds, cancelled, startup,
)
ALL = [lane for module in MODULES for lane in module.LANES]
