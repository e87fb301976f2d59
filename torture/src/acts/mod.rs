//! The list of acts, with a description of each and the processes that their rounds start.

mod attached;
mod failing_calls;
mod histories;
mod many_databases;
mod no_threads;
mod odd_callers;
mod power_loss;
mod processes;
mod servers;
mod strangers;

use std::process::ExitCode;

use crate::finding::Finding;
use crate::round::Round;

/// One act: a way of trying to break Flatwater.
pub(crate) struct Act {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Runs one round, and adds its counts to the round.
    pub(crate) round: fn(&mut Round) -> Result<(), Finding>,
    /// The processes that the act's rounds start, by name.
    pub(crate) parts: &'static [(&'static str, Part)],
}

/// A process of a round: takes its arguments, returns its exit code.
pub(crate) type Part = fn(&[String]) -> ExitCode;

pub(crate) const ALL: &[&Act] = &[
    &histories::ACT,
    &processes::ACT,
    &failing_calls::ACT,
    &power_loss::ACT,
    &odd_callers::ACT,
    &strangers::ACT,
    &attached::ACT,
    &no_threads::ACT,
    &many_databases::ACT,
    &servers::ACT,
];

/// Runs the process `name`.
pub(crate) fn part(name: &str, args: &[String]) -> ExitCode {
    match ALL.iter().flat_map(|act| act.parts).find(|(known, _)| *known == name) {
        Some((_, part)) => part(args),
        None => {
            eprintln!("there is no part {name}");
            ExitCode::from(2)
        }
    }
}
