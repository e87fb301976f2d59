"""Quantiles are those of the calls. Run with `python3 -m unittest` in this folder."""

import unittest

from measure import curve, quantile_us


class Quantiles(unittest.TestCase):
    thousand = [us * 1000 for us in range(1, 1001)]

    def test_quantiles_are_those_of_the_calls(self):
        for quantile, expected in [(0.5, 500), (0.9, 900), (0.95, 950), (0.99, 990), (0.999, 999)]:
            self.assertEqual(quantile_us(self.thousand, quantile), expected)

    def test_a_single_call_is_every_quantile(self):
        self.assertEqual([quantile_us([317], q) for q in (0.5, 0.999)], [0.317, 0.317])
        self.assertEqual(curve([317]), [[0, 0.317], [1, 0.317]])

    def test_a_curve_rises_to_the_maximum_and_has_no_point_beyond_its_calls(self):
        points = curve([us * 1000 for us in range(1, 100_001)])
        self.assertTrue(35 <= len(points) <= 45, len(points))
        for (quantile, us), (next_quantile, next_us) in zip(points, points[1:]):
            self.assertTrue(quantile < next_quantile and us <= next_us)
        self.assertEqual(points[-1], [1, 100_000])
        self.assertEqual(len([q for q, _ in curve(self.thousand) if q > 0.999]), 1)


if __name__ == "__main__":
    unittest.main()
