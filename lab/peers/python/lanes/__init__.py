"""Every lane that these peers run. What a lane does is said in the file of the same name in kit/src/lanes."""

from lanes import concurrent, inserts, noop, reads

ALL = [lane for module in (inserts, reads, concurrent, noop) for lane in module.LANES]
