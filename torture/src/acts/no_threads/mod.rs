//! Act: starts of threads that fail, as where the system has none to give, under calls of every kind.
//!
//! Owns: the cases of a round. The other files contain the rest: which starts fail (`case`), the process in which they do
//! (`part`), its calls (`load`, `calls`), its live queries (`watch`), and what makes each request start a thread (`places`).

mod calls;
mod case;
mod load;
mod part;
mod places;
mod watch;
mod work;

use std::process::{ExitCode, Stdio};
use std::time::Duration;

use case::Case;

use super::Act;
use crate::finding::Finding;
use crate::round::{Round, Told};
use crate::{faults, parts};

pub(crate) const ACT: Act = Act {
    name: "no-threads",
    about: "threads that cannot be started for a while, under calls of every kind; then all goes on at the first try",
    round,
    parts: &[(PART, part::run), ("no-threads-case", again)],
};

const PART: &str = "no-threads";
/// A part that has not ended after this time counts as hung.
const HANGS: Duration = Duration::from_secs(110);
/// The number of lines of a part's stderr to keep.
const LINES: usize = 30;
/// What no round may be without.
const NEVER_ZERO: [&str; 5] =
    ["thread starts that failed", "calls refused", "acknowledged writes", "live results", "calls afterwards"];

fn round(round: &mut Round) -> Result<(), Finding> {
    faults::library()?;
    let mut number = 0;
    // The first case is one in which every start fails, so that each round has calls that are refused.
    while number == 0 || round.goes_on() {
        let case = if number == 0 { Case::every(&mut round.rng) } else { Case::random(&mut round.rng) };
        let told = taken(&case).map_err(|finding| {
            let json = serde_json::to_string(&case).unwrap_or_default();
            let history = format!("flatwater-torture part no-threads-case '{json}'\n{}", finding.history);
            finding.with_history(history)
        })?;
        round.counts.merge(&told.counts);
        round.count("fault plans");
        number += 1;
    }
    for what in NEVER_ZERO {
        if round.counts.0.get(what).is_none_or(|count| *count == 0) {
            return Err(Finding::new(format!("a round without {what}")));
        }
    }
    Ok(())
}

/// Runs one case in a process of its own.
fn taken(case: &Case) -> Result<Told, Finding> {
    let directory = tempfile::tempdir()?;
    let mut child = parts::part(PART)
        .arg(serde_json::to_string(case)?)
        .arg(directory.path())
        .env("LD_PRELOAD", faults::library()?)
        .env("FLATWATER_TORTURE_FAULTS", directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (said, complaints) = (child.stdout.take().map(parts::gathered), child.stderr.take().map(parts::gathered));
    let status = parts::ended_or_killed(&mut child, HANGS)?;
    let (said, complaints) = (parts::said(said), parts::said(complaints));
    let finding = match (Told::heard(&said), status) {
        (Some(Told { finding: None, counts, hold }), Some(_)) => return Ok(Told { finding: None, counts, hold }),
        (Some(Told { finding: Some(finding), .. }), _) => finding,
        (_, None) => Finding::new(format!("the part did not end within {} s", HANGS.as_secs())),
        (None, Some(status)) => Finding::new(format!("the part ended with {status} and told nothing")),
    };
    let history = format!("{}\n{}", finding.history, parts::last_lines(&complaints, LINES));
    Err(finding.with_history(history.trim().to_owned()))
}

/// Runs one case again, as a finding names it.
fn again(args: &[String]) -> ExitCode {
    let Some(case) = args.first().and_then(|json| serde_json::from_str::<Case>(json).ok()) else {
        eprintln!("the case is missing");
        return ExitCode::from(2);
    };
    match taken(&case) {
        Ok(told) => {
            println!("nothing found: {:?}", told.counts.0);
            ExitCode::SUCCESS
        }
        Err(finding) => {
            println!("FOUND: {}\n{}", finding.what, finding.history);
            ExitCode::FAILURE
        }
    }
}
