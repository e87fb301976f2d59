"""What the suites of other projects import as `aiosqlite`: the module of this package."""

import sys

import flatwater.aiosqlite

sys.modules[__name__] = flatwater.aiosqlite
