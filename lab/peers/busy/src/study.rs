//! busy_study_P_T_S: the scenarios of a published study of busy handlers.
//!
//! P child processes of T threads each want the lock once, for a fast transaction. The parent begins 200 ms before
//! them, and runs S slow transactions of 1 s, 1 ms apart.
//! (https://fractaledmind.github.io/2024/07/19/sqlite-in-ruby-backoff-busy-handler-problems/) The sample is one fast
//! transaction, from its beginning to its commit. The parent holds the lock asleep and not by a query, so that it takes
//! no processor from those that wait. In the end the file has the rows of all transactions, and it is whole.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Result;

use crate::child::{Order, Report, Window, Work};
use crate::clock::Moment;
use crate::family::Family;
use crate::figures::Figures;
use crate::mode::{self, Mode, Writer};

/// The pause between two slow transactions.
const APART: Duration = Duration::from_millis(1);
/// No child is late: whatever it waits for ends within this time.
const PATIENCE: Duration = Duration::from_secs(600);

/// One lane.
#[derive(Debug, Clone, Copy)]
pub struct Study {
    pub processes: usize,
    pub threads: usize,
    pub slow: usize,
}

/// All lanes of this kind.
pub fn all() -> Vec<Study> {
    let sizes = [(4, 2), (4, 4), (8, 2), (8, 4)];
    (0..=2).flat_map(|slow| sizes.map(|(processes, threads)| Study { processes, threads, slow })).collect()
}

impl Study {
    pub fn name(&self) -> String {
        let Self { processes, threads, slow } = self;
        format!("busy_study_{processes}_{threads}_{slow}")
    }

    pub fn about(&self) -> String {
        let Self { processes, threads, slow } = self;
        format!("{processes} processes of {threads} threads want the lock once beside {slow} slow transactions")
    }

    pub fn run(&self, mode: Mode, path: &Path, quick: bool) -> Result<Figures> {
        let (slow, head_start) = if quick { (20, 5) } else { (1000, 200) };
        let (slow, head_start) = (Duration::from_millis(slow), Duration::from_millis(head_start));
        mode::create(path)?;
        let work = Work::Once { threads: self.threads };
        let order = |process| Order { mode, path: path.to_owned(), process, work: work.clone() };
        let mut parent = Writer::open(mode, path)?;
        parent.turn(self.processes, Duration::ZERO)?;
        let mut family = Family::start(&(0..self.processes).map(order).collect::<Vec<_>>())?;
        let delay = if self.slow > 0 { head_start } else { Duration::ZERO };
        let window = family.begin(delay, PATIENCE)?;
        window.starts.wait();
        let lasted = self.slow_ones(&mut parent, slow)?;
        let reports = family.reports()?;
        parent.close()?;
        let mut rows: Vec<u64> = reports.iter().map(|report| report.rows).collect();
        rows.push(1 + self.slow as u64);
        mode::check(path, &rows)?;
        Ok(self.figures(mode, slow, lasted, window, &reports))
    }

    /// Runs the slow transactions. Answers how long they took with their waits.
    fn slow_ones(&self, parent: &mut Writer, lasts: Duration) -> Result<Duration> {
        let began = Moment::now();
        let mut ended = began;
        for _ in 0..self.slow {
            if ended > began {
                thread::sleep(APART);
            }
            parent.held(self.processes, lasts)?;
            ended = Moment::now();
        }
        Ok(ended.since(began))
    }

    fn figures(&self, mode: Mode, hold: Duration, parent: Duration, window: Window, reports: &[Report]) -> Figures {
        let mut figures = Figures::new(mode, self.processes);
        let ended = reports.iter().map(|report| report.ended).fold(window.starts.after(parent), Moment::max);
        for report in reports {
            figures.ops += report.turns;
            figures.cpu += report.cpu;
            figures.times.add_counts(&report.times);
        }
        figures.seconds = ended.since(window.starts);
        figures.turns("", &reports.iter().map(|report| report.turns).collect::<Vec<_>>());
        let all = || reports.iter().flat_map(|report| report.times.iter().map(|(ns, _)| *ns as f64 / 1e6));
        let (fastest, slowest) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        let parent = parent.as_secs_f64() * 1e3;
        figures.extra("threads", self.threads);
        figures.extra("slow", self.slow);
        figures.extra("hold_us", if self.slow > 0 { hold.as_micros() as u64 } else { 0 });
        figures.extra("think_us", 0);
        figures.extra("parent_ms", parent);
        figures.extra("fastest_ms", fastest);
        figures.extra("slowest_ms", slowest);
        figures.extra("script_ms", figures.seconds.as_secs_f64() * 1e3);
        // What the parent took longer than the slowest child, in milliseconds.
        figures.extra("delta", parent - slowest);
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_is_told_as_the_published_one() {
        let names: Vec<String> = all().iter().map(Study::name).collect();
        assert_eq!((names.len(), names[0].as_str(), names[11].as_str()), (12, "busy_study_4_2_0", "busy_study_8_4_2"));
        let starts = Moment::now();
        let report = |ms: u64| {
            let ended = starts.after(Duration::from_millis(200 + ms));
            Report { rows: 2, turns: 1, times: vec![(ms * 1_000_000, 1)], ended, cpu: Duration::ZERO }
        };
        let window = Window { starts, ends: starts.after(PATIENCE) };
        let study = Study { processes: 2, threads: 1, slow: 1 };
        let second = Duration::from_secs(1);
        let figures = study.figures(Mode::Backoff, second, second, window, &[report(850), report(900)]).report();
        let extra = |name: &str| figures["extra"][name].as_f64().unwrap();
        assert_eq!(["parent_ms", "fastest_ms", "slowest_ms", "script_ms"].map(extra), [1000.0, 850.0, 900.0, 1100.0]);
        assert_eq!((extra("delta"), extra("hold_us"), extra("slow")), (100.0, 1e6, 1.0));
    }
}
