//! Small-sample statistics over the runs of a lane. All are deterministic and pure.
//!
//! Owns: the median, the median absolute deviation, the coefficient of variation and the paired bootstrap. Leaves out:
//! what they mean for a verdict.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// The number of resamples for an interval.
const RESAMPLES: usize = 2000;
/// A fixed seed, so that the same figures always give the same interval.
const SEED: u64 = 0x0066_6c61_7477_6174;

/// Returns the middle value, or the mean of the two middle ones. NaN for no values.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Returns the quantile between 0 and 1, interpolated linearly. NaN for no values.
pub fn quantile(values: &[f64], at: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = at * last as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

/// Returns the median distance from the median: a measure of spread that a single outlier does not affect.
pub fn median_absolute_deviation(values: &[f64]) -> f64 {
    let middle = median(values);
    median(&values.iter().map(|value| (value - middle).abs()).collect::<Vec<_>>())
}

/// Returns the sample's standard deviation over its mean. `None` for fewer than two values or a mean of zero.
pub fn variation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (values.len() > 1 && mean > 0.0).then(|| variance.sqrt() / mean)
}

/// Returns the 95 % interval of `median of candidates / median of bases`, from resampling whole pairs.
pub fn ratio_interval(pairs: &[(f64, f64)]) -> (f64, f64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn = (0..pairs.len()).map(|_| pairs[random.random_range(0..pairs.len())]);
            let (bases, candidates): (Vec<f64>, Vec<f64>) = drawn.unzip();
            median(&candidates) / median(&bases)
        })
        .collect();
    (quantile(&ratios, 0.025), quantile(&ratios, 0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_two_middles() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[7.0]), 7.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn one_wild_value_does_not_move_the_median_deviation() {
        assert_eq!(median_absolute_deviation(&[10.0, 11.0, 12.0, 13.0, 14.0]), 1.0);
        assert_eq!(median_absolute_deviation(&[10.0, 11.0, 12.0, 13.0, 9000.0]), 1.0);
    }

    #[test]
    fn variation_is_the_sample_deviation_over_the_mean() {
        assert_eq!(variation(&[9.0, 10.0, 11.0]), Some(0.1));
        assert_eq!(variation(&[10.0]), None);
        assert_eq!(variation(&[0.0, 0.0]), None);
    }

    #[test]
    fn the_interval_of_equal_sides_is_one() {
        assert_eq!(ratio_interval(&[(3.0, 3.0), (4.0, 4.0), (9.0, 9.0)]), (1.0, 1.0));
    }

    #[test]
    fn the_interval_is_the_same_every_time_and_holds_the_ratio() {
        let pairs = [(10.0, 12.1), (11.0, 12.9), (10.4, 12.4), (10.1, 12.6), (10.9, 13.2)];
        let (low, high) = ratio_interval(&pairs);
        assert_eq!((low, high), ratio_interval(&pairs));
        assert!(low > 1.1 && high < 1.3 && (low..=high).contains(&(12.6 / 10.4)), "{low} {high}");
    }
}
