"""Deterministic traffic: the draws of kit/src/traffic.rs, number by number.

Owns: xoshiro256++ seeded through splitmix64, an unbiased number below a bound and a skewed choice, as the `rand` crate
makes them. Leaves out: what is done with a draw.
"""

from bisect import bisect_right
from itertools import accumulate

SEED = 0x000F_1A70_A7E2
ALL = (1 << 64) - 1


def rotate(value, by):
    return (value << by | value >> 64 - by) & ALL


class Traffic:
    """A source of draws."""

    def __init__(self):
        self.state = []
        seed = SEED
        for _ in range(4):
            seed = seed + 0x9E37_79B9_7F4A_7C15 & ALL
            mixed = (seed ^ seed >> 30) * 0xBF58_476D_1CE4_E5B9 & ALL
            mixed = (mixed ^ mixed >> 27) * 0x94D0_49BB_1331_11EB & ALL
            self.state.append(mixed ^ mixed >> 31)

    def bits(self):
        a, b, c, d = self.state
        answer = rotate(a + d & ALL, 23) + a & ALL
        c ^= a
        d ^= b
        self.state = [a ^ d, b ^ c, c ^ b << 17 & ALL, rotate(d, 45)]
        return answer

    def below(self, bound):
        """A number from 0 to below `bound`."""
        product = self.bits() * bound
        answer, low = product >> 64, product & ALL
        if low > (1 << 64) - bound:
            answer += low + (self.bits() * bound >> 64) > ALL
        return answer

    def place(self, zipf):
        """A place of `zipf`'s."""
        chosen = (self.bits() >> 12) / (1 << 52) * zipf[-1]
        return bisect_right(zipf, chosen, hi=len(zipf) - 1)


def zipf(places):
    """Sums of the weights of places from 0: the second is half as likely as the first, and so on."""
    return list(accumulate(1 / rank for rank in range(1, places + 1)))
