//! Act: system calls that fail once, at intervals, or for a while, under a load of every kind of write.
//!
//! Owns: the cases of a round, and shrinking a case that found something. The other files of this folder contain the
//! rest: what fails (`plan`), the load (`case`, `load`, `writes`, `transactions`,
//! `backups`), the time after it (`after`), the
//! process whose calls fail (`part`) and the process that observes it (`supervise`), and the model
//! (`answers`).

mod after;
mod answers;
mod backups;
mod case;
mod load;
mod part;
mod plan;
mod supervise;
mod transactions;
mod writes;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use case::Case;
use part::Told;
use plan::Plan;

use super::Act;
use crate::faults;
use crate::finding::Finding;
use crate::round::Round;

pub(crate) const ACT: Act = Act {
    name: "failing-calls",
    about: "calls of the system fail, are cut short or late under a load; what was answered holds, and all goes on",
    round,
    parts: &[("failing-calls", part::run), ("failing-case", again)],
};

/// A part that has not ended after this time counts as hung.
const HANGS: Duration = Duration::from_secs(110);
/// How long to shrink cases; each shorter case must show the finding within the other limit. Together with one
/// preceding case that takes no longer than this, the round ends before it counts as hung.
const SHORTENING: Duration = Duration::from_secs(40);
const SHOWN_WITHIN: Duration = Duration::from_secs(30);
/// The number of cases of a sweep. In each case the call after that of the previous case fails.
const SWEEP: u32 = 6;

fn round(round: &mut Round) -> Result<(), Finding> {
    faults::library()?;
    let sweep = Plan::once(&mut round.rng);
    let mut case = Case::random(&mut round.rng, sweep);
    let mut number = 0;
    while number == 0 || round.goes_on() {
        let began = Instant::now();
        match taken(&case, HANGS) {
            Ok(told) => {
                round.count("fault plans");
                round.counts.add("calls that failed", told.met);
                round.counts.add("fault plans that hit a call", u64::from(told.met > 0));
                round.counts.merge(&told.counts);
                round.hold.merge(&told.hold);
            }
            Err(finding) => return Err(shortened(case, finding, began.elapsed() < SHOWN_WITHIN)),
        }
        number += 1;
        case = if number < SWEEP {
            Case { plan: case.plan.next(), ..case }
        } else {
            let plan = Plan::random(&mut round.rng);
            Case::random(&mut round.rng, plan)
        };
    }
    if round.counts.0.get("acknowledged writes").is_none_or(|count| *count == 0) {
        return Err(Finding::new(format!("no write was acknowledged in {number} cases")));
    }
    Ok(())
}

fn taken(case: &Case, limit: Duration) -> Result<Told, Finding> {
    supervise::run(case, tempfile::tempdir()?.path(), limit)
}

/// Returns the finding of the shortest case that still fails, with the command to run it again.
fn shortened(mut case: Case, mut finding: Finding, is_quick: bool) -> Finding {
    let until = Instant::now() + SHORTENING;
    while is_quick && let Some((shorter, found)) = case.shorter().into_iter().find_map(|case| shows(case, until)) {
        (case, finding) = (shorter, found);
    }
    let json = serde_json::to_string(&case).unwrap_or_default();
    let history = format!("flatwater-torture part failing-case '{json}'\n{}", finding.history);
    finding.with_history(history)
}

/// Runs the case, and returns it with its finding if there is one in time.
fn shows(case: Case, until: Instant) -> Option<(Case, Finding)> {
    let began = Instant::now();
    if began >= until {
        return None;
    }
    let found = taken(&case, SHOWN_WITHIN).err()?;
    (began.elapsed() < SHOWN_WITHIN).then_some((case, found))
}

/// Runs one case again, as a finding names it, for manual analysis.
fn again(args: &[String]) -> ExitCode {
    let Some(case) = args.first().and_then(|json| serde_json::from_str::<Case>(json).ok()) else {
        eprintln!("the case is missing");
        return ExitCode::from(2);
    };
    match taken(&case, HANGS) {
        Ok(told) => {
            println!("nothing found: {} calls failed, {:?}", told.met, told.counts.0);
            ExitCode::SUCCESS
        }
        Err(finding) => {
            println!("FOUND: {}\n{}", finding.what, finding.history);
            ExitCode::FAILURE
        }
    }
}
