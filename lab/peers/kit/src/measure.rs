//! Measuring one lane: latencies, wall time and CPU time of its timed part.
//!
//! Owns: `Timing` while a lane runs and `Measured`, its figures, when it has ended. Leaves out: what a lane does.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::Result;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::peer::{Peer, Table};
use crate::process;
use crate::record::{Record, Sum};

/// The longest latency that is told from longer ones: an hour.
const LONGEST: Duration = Duration::from_secs(3600);

/// Latencies in nanoseconds, exact to three digits.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        let longest = u64::try_from(LONGEST.as_nanos()).expect("an hour has few enough nanoseconds");
        Self(Histogram::new_with_max(longest, 3).expect("three digits are allowed"))
    }
}

impl Latencies {
    pub fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Awaits `call` and records how long it took.
    pub async fn time<T>(&mut self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let (answer, latency) = timed(call).await?;
        self.record(latency);
        Ok(answer)
    }

    /// Awaits a query, touches every field of its rows, and records how long both took.
    pub async fn query<P: Peer, R: Record>(
        &mut self,
        peer: &P,
        sql: &'static str,
        params: &[crate::value::Value<'_>],
    ) -> Result<Sum> {
        self.time(async { Ok(peer.query::<R>(sql, params).await?.touch()) }).await
    }

    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all histograms have the same bounds");
    }

    /// Each latency in nanoseconds with how often it was recorded, for another process to add.
    #[must_use]
    pub fn counts(&self) -> Vec<(u64, u64)> {
        self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_since_last_iteration())).collect()
    }

    /// Adds what another process recorded.
    pub fn add_counts(&mut self, counts: &[(u64, u64)]) {
        counts.iter().for_each(|(latency, count)| self.0.saturating_record_n(*latency, *count));
    }

    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The latency in microseconds that the fraction `quantile` of the calls did not exceed.
    #[must_use]
    pub fn us(&self, quantile: f64) -> f64 {
        us(self.0.value_at_quantile(quantile))
    }

    #[must_use]
    pub fn max_us(&self) -> f64 {
        us(self.0.max())
    }

    /// About 40 points of the distribution, denser towards the tail, the last one the maximum.
    #[must_use]
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let body = (0..=18).map(|step| f64::from(step) * 0.05);
        let tail = [1.0, 2.0, 3.0]
            .into_iter()
            .flat_map(|decade: f64| [0.2, 0.35, 0.5, 0.65, 0.8, 1.0].map(|part| 1.0 - 10_f64.powf(-(decade + part))));
        let end = [0.99995, 0.99999];
        let points = body.chain(tail).chain(end).filter(|quantile| {
            // A quantile beyond the number of calls is the maximum, which stands last anyway.
            (1.0 - quantile) * self.len() as f64 >= 1.0
        });
        points.map(|quantile| (quantile, self.us(quantile))).chain([(1.0, self.max_us())]).collect()
    }
}

/// Does the work, which may await, and records how long it took. For short calls, and those from which a floor is subtracted: each
/// function between a lane and a call moves the call's future once more.
macro_rules! time {
    ($latencies:expr, $work:expr) => {{
        let began = std::time::Instant::now();
        let answer = $work;
        $latencies.record(began.elapsed());
        answer
    }};
}
pub(crate) use time;

/// Awaits `call` and answers how long it took, where a histogram for each would be too large.
pub async fn timed<T>(call: impl Future<Output = Result<T>>) -> Result<(T, Duration)> {
    let began = Instant::now();
    let answer = call.await?;
    Ok((answer, began.elapsed()))
}

fn us(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1000.0
}

/// A lane's timed part while it runs.
#[derive(Debug)]
pub struct Timing {
    pub latencies: Latencies,
    wall: Duration,
    cpu: Duration,
    since: Option<(Instant, Duration)>,
}

impl Timing {
    /// Begins now.
    pub fn begin() -> Result<Self> {
        let mut timing =
            Self { latencies: Latencies::default(), wall: Duration::ZERO, cpu: Duration::ZERO, since: None };
        timing.resume()?;
        Ok(timing)
    }

    /// What follows is not timed, such as making the table empty again.
    pub fn pause(&mut self) -> Result<()> {
        if let Some((began, cpu)) = self.since.take() {
            self.wall += began.elapsed();
            self.cpu += process::cpu()?.saturating_sub(cpu);
        }
        Ok(())
    }

    pub fn resume(&mut self) -> Result<()> {
        self.since = Some((Instant::now(), process::cpu()?));
        Ok(())
    }

    /// Awaits `call` and records how long it took.
    pub async fn time<T>(&mut self, call: impl Future<Output = Result<T>>) -> Result<T> {
        self.latencies.time(call).await
    }

    /// Ends the timed part, in which `ops` operations were done.
    pub fn end(mut self, ops: u64) -> Result<Measured> {
        self.pause()?;
        let Self { latencies, wall, cpu, .. } = self;
        Ok(Measured { ops, wall, cpu, latencies, floor_us: None, extra: BTreeMap::new() })
    }
}

/// The figures of one trial.
#[derive(Debug)]
pub struct Measured {
    pub ops: u64,
    pub wall: Duration,
    cpu: Duration,
    pub latencies: Latencies,
    floor_us: Option<f64>,
    extra: BTreeMap<String, Value>,
}

impl Measured {
    /// With the median of a call that does nothing, measured in this process, to tell work from dispatch.
    #[must_use]
    pub fn over(mut self, floor: &Latencies) -> Self {
        self.floor_us = Some(floor.us(0.5));
        self
    }

    /// CPU time of the process in the timed part.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        self.cpu
    }

    /// A figure of this lane only.
    pub fn extra(&mut self, name: &str, figure: impl Into<Value>) {
        self.extra.insert(name.to_owned(), figure.into());
    }

    /// Median and tail of a kind of call of this lane, as `name_p50_us` and so on.
    pub fn extra_latencies(&mut self, name: &str, latencies: &Latencies) {
        if latencies.is_empty() {
            return;
        }
        for (word, quantile) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
            self.extra(&format!("{name}_{word}_us"), latencies.us(quantile));
        }
        self.extra(&format!("{name}_max_us"), latencies.max_us());
    }

    /// The figures under the names of the protocol.
    pub fn report(mut self) -> Result<serde_json::Map<String, Value>> {
        let latencies = &self.latencies;
        self.extra.insert("latency_quantiles".to_owned(), json!(latencies.curve()));
        let figures = json!({
            "ops": self.ops,
            "seconds": self.wall.as_secs_f64(),
            "p50_us": latencies.us(0.5),
            "p90_us": latencies.us(0.9),
            "p95_us": latencies.us(0.95),
            "p99_us": latencies.us(0.99),
            "p999_us": latencies.us(0.999),
            "max_us": latencies.max_us(),
            "work_us": self.floor_us.map(|floor| latencies.us(0.5) - floor),
            "cpu_seconds": self.cpu.as_secs_f64(),
            "peak_rss_bytes": process::peak_rss()?,
            "extra": self.extra,
        });
        match figures {
            Value::Object(figures) => Ok(figures),
            _ => unreachable!("an object was made"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(count: u64) -> Latencies {
        let mut latencies = Latencies::default();
        (1..=count).for_each(|us| latencies.record(Duration::from_micros(us)));
        latencies
    }

    fn about(figure: f64, expected: f64) -> bool {
        (figure - expected).abs() <= expected / 900.0
    }

    #[test]
    fn what_another_process_recorded_counts_as_if_it_were_here() {
        let here = latencies(1000);
        let mut copy = Latencies::default();
        copy.add_counts(&here.counts());
        copy.add_counts(&[]);
        assert_eq!((copy.len(), copy.us(0.5), copy.max_us()), (here.len(), here.us(0.5), here.max_us()));
    }

    #[test]
    fn quantiles_are_those_of_the_calls() {
        let latencies = latencies(1000);
        for (quantile, expected) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0), (0.999, 999.0)] {
            assert!(about(latencies.us(quantile), expected), "{quantile}: {}", latencies.us(quantile));
        }
        assert!(about(latencies.max_us(), 1000.0));
    }

    #[test]
    fn calls_below_a_microsecond_are_not_rounded() {
        let mut latencies = Latencies::default();
        latencies.record(Duration::from_nanos(317));
        assert!(about(latencies.us(0.5), 0.317));
    }

    #[test]
    fn a_curve_rises_to_the_maximum_and_has_no_point_beyond_its_calls() {
        let curve = latencies(100_000).curve();
        assert!((35..=45).contains(&curve.len()), "{}", curve.len());
        assert!(curve.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1), "{curve:?}");
        assert_eq!(curve.last().unwrap().0, 1.0);
        assert_eq!(latencies(1).curve().len(), 2);
    }

    #[test]
    fn merged_latencies_are_those_of_both() {
        let mut both = latencies(10);
        both.merge(&latencies(20));
        assert_eq!(both.len(), 30);
        assert!(about(both.max_us(), 20.0));
    }

    #[test]
    fn a_pause_is_not_counted() {
        let mut timing = Timing::begin().unwrap();
        timing.pause().unwrap();
        let wall = timing.wall;
        let measured = timing.end(1).unwrap();
        assert_eq!(measured.wall, wall);
    }
}
