"""import: a fresh interpreter imports the library, with asyncio there already.

The sample is the import alone. `import_bytes` is what the process grew by meanwhile.
"""

import subprocess
import sys

from data import expect
from lane import Lane
from measure import Timing

CHILD = """
import asyncio, pathlib, sys, time

def resident():
    status = pathlib.Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:")), 0)

name = sys.argv[1]
assert name not in sys.modules
before = resident()
began = time.perf_counter_ns()
__import__(name)
print(time.perf_counter_ns() - began, resident() - before, name in sys.modules)
"""


async def run(trial):
    growth = []
    timing = Timing()
    for _ in range(trial.size(20, 2)):
        command = [sys.executable, "-c", CHILD, trial.kind.module]
        done = subprocess.run(command, cwd=trial.dir, capture_output=True, text=True, check=True)
        took, grown, is_imported = done.stdout.split()
        expect(is_imported, "True", f"whether {trial.kind.module} is imported")
        timing.samples.append(int(took))
        growth.append(int(grown))
    timing.extra["import_bytes"] = sorted(growth)[len(growth) // 2]
    return timing.end(len(timing.samples))


LANES = [Lane("process", "import", "the library's import in a fresh interpreter", "imports", run)]
