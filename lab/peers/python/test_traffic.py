"""The draws are those of the other languages. Run with `python3 -m unittest` in this folder."""

import unittest

from traffic import Traffic, zipf


class Draws(unittest.TestCase):
    def test_the_draws_are_those_of_the_kit(self):
        traffic, places = Traffic(), zipf(100)
        self.assertEqual([traffic.below(1000) for _ in range(8)], [195, 968, 619, 593, 341, 700, 840, 256])
        self.assertEqual([traffic.place(places) for _ in range(8)], [4, 46, 1, 2, 1, 29, 2, 67])


if __name__ == "__main__":
    unittest.main()
