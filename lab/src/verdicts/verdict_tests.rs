//! Tests of the verdict: which figures lead to which verdict, and that noise alone leads to none.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::figures::metric::{OPS_PER_SECOND, metric};

/// Returns pairs around 100. The sides run first alternately, and each candidate is `factor` times its base plus its
/// noise.
fn pairs(factor: f64, noise: &[f64]) -> Vec<Pair> {
    let pair = |(run, noise): (usize, &f64)| Pair {
        base: 100.0 + run as f64,
        candidate: (100.0 + run as f64) * factor * (1.0 + noise),
        base_first: run % 2 == 0,
    };
    noise.iter().enumerate().map(pair).collect()
}

const CALM: [f64; 5] = [0.004, -0.006, 0.0, 0.005, -0.003];

fn verdict(name: &str, pairs: &[Pair]) -> Verdict {
    judge(&metric(name).unwrap(), pairs).verdict
}

#[test]
fn twenty_percent_more_latency_is_rejected_and_twenty_percent_less_accepted() {
    assert_eq!(verdict("p50_us", &pairs(1.2, &CALM)), Verdict::Rejected);
    assert_eq!(verdict("p50_us", &pairs(0.8, &CALM)), Verdict::Accepted);
}

#[test]
fn a_rate_is_better_when_it_is_higher() {
    assert_eq!(verdict(OPS_PER_SECOND, &pairs(1.2, &CALM)), Verdict::Accepted);
    assert_eq!(verdict(OPS_PER_SECOND, &pairs(0.8, &CALM)), Verdict::Rejected);
}

#[test]
fn a_change_below_the_floor_is_no_effect_however_sure() {
    assert_eq!(verdict("p50_us", &pairs(1.03, &CALM)), Verdict::NoEffect);
}

#[test]
fn nanoseconds_are_no_effect_however_large_the_share() {
    let small: Vec<Pair> = (0..5).map(|run| Pair { base: 0.2, candidate: 0.26, base_first: run % 2 == 0 }).collect();
    assert_eq!(verdict("p50_us", &small), Verdict::NoEffect);
}

#[test]
fn equal_medians_amid_wild_runs_are_inconclusive_and_not_no_effect() {
    let wild = [(6.5, 15.0), (6.4, 6.6), (14.0, 6.5), (6.6, 6.6), (15.0, 14.0)];
    let pairs: Vec<Pair> =
        wild.iter().map(|(base, candidate)| Pair { base: *base, candidate: *candidate, base_first: true }).collect();
    assert_eq!(verdict("p50_us", &pairs), Verdict::Inconclusive);
}

#[test]
fn noise_hides_a_change_that_is_smaller() {
    let loud = pairs(1.1, &[0.3, -0.25, 0.0, 0.2, -0.3]);
    assert_eq!(verdict("p50_us", &loud), Verdict::Inconclusive);
}

#[test]
fn two_runs_decide_nothing_and_four_nothing_about_a_tail() {
    assert_eq!(verdict("p50_us", &pairs(2.0, &CALM[..2])), Verdict::NoVerdict);
    assert_eq!(verdict("p50_us", &pairs(2.0, &CALM[..3])), Verdict::Rejected);
    for tail in ["p99_us", "p999_us", "max_us"] {
        assert_eq!(verdict(tail, &pairs(2.0, &CALM[..4])), Verdict::NoVerdict, "{tail}");
        assert_eq!(verdict(tail, &pairs(2.0, &CALM)), Verdict::Rejected, "{tail}");
    }
}

#[test]
fn a_ratio_that_changes_sign_with_the_order_is_drift() {
    let drifting: Vec<Pair> = (0..6)
        .map(|run| {
            let base_first = run % 2 == 0;
            Pair { base: 100.0, candidate: if base_first { 120.0 } else { 80.0 }, base_first }
        })
        .collect();
    let judged = judge(&metric("p50_us").unwrap(), &drifting);
    assert!(judged.drift && judged.reason.contains("drift"), "{judged:?}");
    assert_eq!(judged.verdict, Verdict::Inconclusive);
}

#[test]
fn an_effect_of_one_sign_in_both_orders_is_no_drift() {
    assert!(!judge(&metric("p50_us").unwrap(), &pairs(1.2, &CALM)).drift);
}

#[test]
fn equal_sides_are_no_effect_even_with_one_run() {
    assert_eq!(verdict("p50_us", &pairs(1.0, &[0.0])), Verdict::NoEffect);
    assert_eq!(verdict("p50_us", &pairs(1.0, &[0.0; 7])), Verdict::NoEffect);
}

#[test]
fn a_figure_of_zero_has_no_ratio_and_no_invented_one() {
    let zeros: Vec<Pair> = (0..5).map(|_| Pair { base: 0.0, candidate: 3.0, base_first: true }).collect();
    let judged = judge(&metric("work_us").unwrap(), &zeros);
    assert_eq!((judged.ratio, judged.verdict), (None, Verdict::Inconclusive));
}

#[test]
fn every_judgement_has_one_sentence() {
    for factor in [0.5, 0.97, 1.0, 1.1, 2.0] {
        for count in [1, 3, 5] {
            let reason = judge(&metric("p99_us").unwrap(), &pairs(factor, &CALM[..count])).reason;
            assert!(reason.starts_with("p99_us ") && !reason.contains(". "), "{reason}");
        }
    }
}

/// Returns a sum of uniform random numbers, which is approximately normal, with the standard deviation `deviation`.
fn noise(random: &mut Xoshiro256PlusPlus, deviation: f64) -> f64 {
    let sum: f64 = (0..12).map(|_| random.random::<f64>()).sum();
    (sum - 6.0) * deviation
}

fn decided(factor: f64, deviation: f64, runs: usize) -> (usize, usize) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
    let verdicts: Vec<Verdict> = (0..200)
        .map(|_| {
            let pair = |run: usize| Pair {
                base: 50.0 * (1.0 + noise(&mut random, deviation)),
                candidate: 50.0 * factor * (1.0 + noise(&mut random, deviation)),
                base_first: run.is_multiple_of(2),
            };
            verdict("p50_us", &(0..runs).map(pair).collect::<Vec<_>>())
        })
        .collect();
    let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    (count(Verdict::Accepted), count(Verdict::Rejected))
}

#[test]
fn noise_alone_hardly_ever_decides() {
    for (deviation, runs) in [(0.01, 5), (0.03, 5), (0.10, 5), (0.03, 9), (0.10, 9)] {
        let (accepted, rejected) = decided(1.0, deviation, runs);
        assert!(accepted + rejected <= 6, "{deviation} {runs}: {accepted} accepted, {rejected} rejected of 200");
    }
}

#[test]
fn a_planted_slowdown_is_found_through_noise_and_never_taken_for_a_gain() {
    let (accepted, rejected) = decided(1.2, 0.02, 5);
    assert_eq!(accepted, 0);
    assert!(rejected >= 190, "{rejected} of 200");
}
