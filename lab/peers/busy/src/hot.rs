//! busy_N_hold_H, busy_N_hold_H_think_T, busy_mixed_N_...: N processes that take turns as fast as they can, for 2 s.
//!
//! In each turn the lock is held for H us between the insert and the commit, and after it a process sleeps for T us.
//! The sample is the wait for the lock: from asking for it until it is held, which for Flatwater is from the call until
//! its closure begins. Without a hold Flatwater's turn is one `execute`, and the sample is the whole call. In the mixed lanes the first half of the processes are plain rusqlite programs with SQLite's
//! busy timeout, whatever the mode of the others; with the mode `default` all are. Turns count that ended within the 2
//! s, and the first one of each process in any case. In the end the file has the rows of all turns, and it is whole.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use lab_kit::measure::Latencies;

use crate::child::{Order, Report, Work};
use crate::family::Family;
use crate::figures::Figures;
use crate::mode::{self, Mode};

/// One lane.
#[derive(Debug, Clone, Copy)]
pub struct Hot {
    pub processes: usize,
    pub hold_us: u64,
    pub think_us: u64,
    /// Half of them know nothing of Flatwater.
    pub mixed: bool,
}

/// All lanes of this kind.
pub fn all() -> Vec<Hot> {
    let mut all = Vec::new();
    for think_us in [0, 1500] {
        for hold_us in [0, 50, 200] {
            all.extend([1, 2, 4, 8, 16].map(|processes| Hot { processes, hold_us, think_us, mixed: false }));
        }
        all.extend([4, 8, 16].map(|processes| Hot { processes, hold_us: 200, think_us, mixed: true }));
    }
    all
}

impl Hot {
    pub fn name(&self) -> String {
        let Self { processes, hold_us, think_us, mixed } = self;
        let mixed = if *mixed { "mixed_" } else { "" };
        let think = if *think_us > 0 { format!("_think_{think_us}") } else { String::new() };
        format!("busy_{mixed}{processes}_hold_{hold_us}{think}")
    }

    pub fn about(&self) -> String {
        let Self { processes, hold_us, think_us, mixed } = self;
        let who = if *mixed { ", half of them plain SQLite" } else { "" };
        format!(
            "{processes} processes{who}: waits for a lock that is held for {hold_us} us, {think_us} us between turns"
        )
    }

    pub fn run(&self, mode: Mode, path: &Path, quick: bool) -> Result<Figures> {
        let lasts = Duration::from_millis(if quick { 50 } else { 2000 });
        mode::create(path)?;
        let orders: Vec<Order> = (0..self.processes).map(|process| self.order(mode, path, process)).collect();
        let mut family = Family::start(&orders)?;
        family.begin(Duration::ZERO, lasts)?;
        let reports = family.reports()?;
        ensure!(reports.iter().all(|report| report.rows >= 2), "a process had no turn: {reports:?}");
        mode::check(path, &reports.iter().map(|report| report.rows).collect::<Vec<_>>())?;
        Ok(self.figures(mode, lasts, &orders, &reports))
    }

    fn order(&self, mode: Mode, path: &Path, process: usize) -> Order {
        let is_plain = self.mixed && process < self.processes / 2;
        let (hold, think) = (Duration::from_micros(self.hold_us), Duration::from_micros(self.think_us));
        let mode = if is_plain { Mode::Default } else { mode };
        Order { mode, path: path.to_owned(), process, work: Work::Loop { hold, think, of: self.processes } }
    }

    fn figures(&self, mode: Mode, lasts: Duration, orders: &[Order], reports: &[Report]) -> Figures {
        let mut figures = Figures::new(mode, self.processes);
        figures.extra("hold_us", self.hold_us);
        figures.extra("think_us", self.think_us);
        figures.seconds = lasts;
        for report in reports {
            figures.ops += report.turns;
            figures.cpu += report.cpu;
            figures.times.add_counts(&report.times);
        }
        let turns: Vec<u64> = reports.iter().map(|report| report.turns).collect();
        figures.turns("", &turns);
        if self.mixed {
            let plain =
                || orders.iter().zip(reports).filter(|(order, _)| !order.mode.is_flatwater()).map(|(_, report)| report);
            let turns: Vec<u64> = plain().map(|report| report.turns).collect();
            let equal_share = figures.ops as f64 / self.processes as f64;
            figures.turns("plain_", &turns);
            figures.extra("plain_share", turns.iter().sum::<u64>() as f64 / turns.len() as f64 / equal_share.max(1.0));
            let mut waits = Latencies::default();
            plain().for_each(|report| waits.add_counts(&report.times));
            for (word, quantile) in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)] {
                figures.extra(&format!("plain_{word}_us"), waits.us(quantile));
            }
            figures.extra("plain_max_us", waits.max_us());
        }
        figures.extra("turns", turns);
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;

    #[test]
    fn the_lanes_are_those_of_the_study_of_hot_loops() {
        let names: Vec<String> = all().iter().map(Hot::name).collect();
        assert_eq!(names.len(), 2 * (3 * 5 + 3));
        for name in ["busy_16_hold_200", "busy_1_hold_0_think_1500", "busy_mixed_16_hold_200"] {
            assert!(names.iter().any(|known| known == name), "{name} of {names:?}");
        }
    }

    #[test]
    fn half_of_a_mixed_lane_is_plain_and_its_share_is_told() {
        let hot = Hot { processes: 4, hold_us: 200, think_us: 0, mixed: true };
        let orders: Vec<Order> = (0..4).map(|at| hot.order(Mode::Turnstile, Path::new("x"), at)).collect();
        let plain = [true, true, false, false];
        assert!(orders.iter().zip(plain).all(|(order, plain)| (order.mode == Mode::Default) == plain));
        let report = |turns, wait| {
            let (ended, cpu) = (Moment::now(), Duration::ZERO);
            Report { rows: turns + 1, turns, times: vec![(wait, turns)], ended, cpu }
        };
        let reports = [report(1, 9000), report(3, 9000), report(6, 1000), report(6, 1000)];
        let figures = hot.figures(Mode::Turnstile, Duration::from_secs(2), &orders, &reports).report();
        let extra = &figures["extra"];
        assert_eq!((&figures["ops"], &extra["turns_min"], &extra["turns_max"]), (&16.into(), &1.into(), &6.into()));
        assert_eq!((&extra["plain_share"], &extra["plain_turns_max"]), (&0.5.into(), &3.into()));
        assert!(extra["plain_p50_us"].as_f64().unwrap() > 8.9);
    }
}
