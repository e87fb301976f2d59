//! For how long one poll of a future holds the thread that polls it.
//!
//! Owns: timing every poll, by the clock and by the CPU time of the thread, and the sum of the latter. The clock tells how long nothing else could
//! run there, with what the scheduler took; CPU time tells what of it was work. Leaves out: the time between polls, in
//! which the thread is free.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::measure::{Latencies, Measured};
use crate::process;

/// Polls that do nothing, to tell what reading the clocks costs.
const EMPTY: usize = 1000;

/// How long polls took.
#[derive(Debug, Clone, Default)]
pub(crate) struct Polls {
    wall: Latencies,
    cpu: Latencies,
    cpu_sum: Duration,
}

impl Polls {
    /// Awaits `call` and records each of its polls.
    pub(crate) async fn time<T>(&mut self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let mut call = pin!(call);
        poll_fn(|context| {
            let cpu = thread_cpu();
            let began = Instant::now();
            let answer = call.as_mut().poll(context);
            self.wall.record(began.elapsed());
            let cpu = thread_cpu() - cpu;
            self.cpu.record(cpu);
            self.cpu_sum += cpu;
            answer
        })
        .await
    }

    /// The CPU time of all of them.
    pub(crate) fn cpu(&self) -> Duration {
        self.cpu_sum
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.wall.merge(&other.wall);
        self.cpu.merge(&other.cpu);
        self.cpu_sum += other.cpu_sum;
    }

    /// Adds median, tail and maximum to a lane's figures, and those of polls that do nothing.
    pub(crate) async fn report(&self, measured: &mut Measured) -> Result<()> {
        let mut empty = Self::default();
        for _ in 0..EMPTY {
            empty.time(async { Ok(()) }).await?;
        }
        for (word, polls, empty) in [("poll", &self.wall, &empty.wall), ("poll_cpu", &self.cpu, &empty.cpu)] {
            measured.extra(&format!("{word}_p50_us"), polls.us(0.5));
            measured.extra(&format!("{word}_p999_us"), polls.us(0.999));
            measured.extra(&format!("longest_{word}_us"), polls.max_us());
            measured.extra(&format!("empty_{word}_p50_us"), empty.us(0.5));
        }
        measured.extra("polls", self.wall.len());
        measured.extra("polls_cpu_seconds", self.cpu_sum.as_secs_f64());
        Ok(())
    }

    /// Adds the longest poll of one kind of call to a lane's figures.
    pub(crate) fn report_longest(&self, kind: &str, measured: &mut Measured) {
        measured.extra(&format!("{kind}_longest_poll_us"), self.wall.max_us());
        measured.extra(&format!("{kind}_longest_poll_cpu_us"), self.cpu.max_us());
    }
}

fn thread_cpu() -> Duration {
    process::thread_cpu().expect("a system that runs the lab counts the CPU time of a thread")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    #[test]
    fn the_time_between_polls_is_not_counted() {
        let nap = Duration::from_millis(50);
        let mut polls = Polls::default();
        let asleep = async {
            tokio::time::sleep(nap).await;
            Ok(())
        };
        block_on(polls.time(asleep)).unwrap();
        assert!(polls.wall.len() >= 2);
        let mut held = Polls::default();
        let blocking = async {
            std::thread::sleep(nap);
            Ok(())
        };
        block_on(held.time(blocking)).unwrap();
        assert_eq!(held.wall.len(), 1);
        assert!(held.wall.max_us() >= 49_000.0, "{}", held.wall.max_us());
        assert!(held.cpu.max_us() < held.wall.max_us(), "a sleeping poll works for {}", held.cpu.max_us());
    }

    #[test]
    fn a_poll_that_works_costs_cpu_time() {
        let work = Duration::from_millis(2);
        let mut polls = Polls::default();
        block_on(polls.time(async {
            let before = thread_cpu();
            while thread_cpu() < before + work {}
            Ok(())
        }))
        .unwrap();
        assert!(polls.cpu.max_us() >= 1_990.0, "{}", polls.cpu.max_us());
        let mut both = polls.clone();
        both.merge(&polls);
        assert!(both.cpu_sum == 2 * polls.cpu_sum && both.cpu_sum >= 2 * work, "{:?}", both.cpu_sum);
    }
}
