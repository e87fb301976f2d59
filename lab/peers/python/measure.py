"""Measuring one lane: latencies, wall time and CPU time of its timed part.

Owns: `Timing` while a lane runs, quantiles, and what the operating system counts for this process. Latencies are kept
as they are and sorted at the end, so quantiles are exact. Leaves out: what a lane does.
"""

import math
import resource
import sys
from pathlib import Path
from time import perf_counter_ns

FIGURES = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)]


def quantile_us(ordered, quantile):
    """The latency in microseconds that the fraction `quantile` of the calls, in nanoseconds, did not exceed."""
    at = math.ceil(round(quantile * len(ordered), 6)) - 1
    return ordered[max(at, 0)] / 1000


def curve(ordered):
    """About 40 points of the distribution, denser towards the tail, the last one the maximum."""
    body = [step * 0.05 for step in range(19)]
    tail = [1 - 10 ** -(decade + part) for decade in (1, 2, 3) for part in (0.2, 0.35, 0.5, 0.65, 0.8, 1.0)]
    # A quantile beyond the number of calls is the maximum, which stands last anyway.
    points = [q for q in [*body, *tail, 0.99995, 0.99999] if (1 - q) * len(ordered) >= 1]
    return [[q, quantile_us(ordered, q)] for q in points] + [[1.0, ordered[-1] / 1000]]


def median_us(samples):
    return quantile_us(sorted(samples), 0.5)


async def timed(samples, call):
    """Awaits `call` and keeps how long it took."""
    began = perf_counter_ns()
    answer = await call
    samples.append(perf_counter_ns() - began)
    return answer


class Timing:
    """A lane's timed part. It begins when it is made."""

    def __init__(self):
        self.samples = []
        self.extra = {}
        self._wall = 0
        self._cpu = 0.0
        self.resume()

    def resume(self):
        self._since = perf_counter_ns(), cpu_seconds()

    def pause(self):
        """What follows is not timed, such as making the table empty again."""
        began, cpu = self._since
        self._wall += perf_counter_ns() - began
        self._cpu += cpu_seconds() - cpu

    async def time(self, call):
        return await timed(self.samples, call)

    def kind(self, name, samples):
        """Median and tail of a kind of call of this lane, as `name_p50_us` and so on."""
        ordered = sorted(samples)
        if ordered:
            points = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)]
            self.extra |= {f"{name}_{word}_us": quantile_us(ordered, q) for word, q in points}
            self.extra[f"{name}_max_us"] = ordered[-1] / 1000

    def end(self, ops, floor=None):
        """Ends the timed part, in which `ops` operations were done, and answers its figures.

        `floor` are the latencies of a call that does nothing, to tell work from dispatch.
        """
        self.pause()
        ordered = sorted(self.samples)
        figures = {f"{word}_us": quantile_us(ordered, quantile) for word, quantile in FIGURES}
        return {
            "ops": ops,
            "seconds": self._wall / 1e9,
            **figures,
            "max_us": ordered[-1] / 1000,
            "work_us": None if floor is None else figures["p50_us"] - median_us(floor),
            "cpu_seconds": self._cpu,
            "peak_rss_bytes": peak_rss(),
            "extra": {**self.extra, "latency_quantiles": curve(ordered)},
        }


def cpu_seconds():
    """User and system time of all threads so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_rss():
    """The largest resident size so far, in bytes. Where the kernel tells it for this program alone that figure is used;
    `getrusage` may include the program that started this one."""
    unit = 1 if sys.platform == "darwin" else 1024
    return status("VmHWM:") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def rss():
    """The resident size now, in bytes, where the kernel tells it."""
    return status("VmRSS:")


def reset_peak():
    """Makes the peak start over at the present size. Answers whether it could."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return True
    except OSError:
        return False


def status(key):
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key)), None)
