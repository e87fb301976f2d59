//! Runs the acts in turn, each round in a separate process, and collects their results.
//!
//! A round that crashes or does not end is a finding like any other. After a finding the other rounds continue.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::acts::{ALL, Act};
use crate::finding::Finding;
use crate::leftovers::Belongings;
use crate::parts;
use crate::report::{ActReport, Report};
use crate::round::{Round, Told};

/// The planned duration of a round, and the additional time after which it counts as hung.
const ROUND: Duration = Duration::from_secs(3);
const HANGS: Duration = Duration::from_secs(180);
/// The number of findings after which an act is not run again.
const ENOUGH: usize = 3;
const PROGRESS: Duration = Duration::from_secs(60);
/// The number of lines of stderr that are kept of a round that crashed.
const LINES: usize = 40;

#[derive(Args)]
pub(crate) struct RunArgs {
    /// For how long
    #[arg(long, env = "FLATWATER_TORTURE_SECONDS", default_value_t = 300)]
    seconds: u64,
    /// Where random numbers begin; without it, the clock says
    #[arg(long)]
    seed: Option<u64>,
    /// Only these acts, separated by commas
    #[arg(long, value_delimiter = ',')]
    act: Vec<String>,
    /// Write what was done here, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct RoundArgs {
    /// The act
    act: String,
    /// The seed that a finding named
    seed: u64,
    /// For how long, in milliseconds
    #[arg(long, default_value_t = ROUND.as_millis() as u64)]
    length_ms: u64,
    /// Tell the result as `run` reads it
    #[arg(long, hide = true)]
    machine: bool,
}

/// Runs the acts in turn.
pub(crate) fn run(args: &RunArgs) -> ExitCode {
    if let Some(unknown) = args.act.iter().find(|name| ALL.iter().all(|act| act.name != **name)) {
        eprintln!("there is no act {unknown}; `list` names them");
        return ExitCode::from(2);
    }
    let seed = args.seed.unwrap_or_else(from_clock);
    let acts: Vec<_> = ALL.iter().filter(|act| args.act.is_empty() || args.act.iter().any(|n| n == act.name)).collect();
    let mut reports: Vec<_> = acts.iter().map(|act| ActReport::new(act.name)).collect();
    let (began, length) = (Instant::now(), Duration::from_secs(args.seconds));
    let mut shown = began;
    println!("seed {seed}, {} s", args.seconds);
    // Each act has at least one round.
    'time: for number in 0.. {
        for (at, act) in acts.iter().enumerate() {
            let left = length.saturating_sub(began.elapsed());
            if left.is_zero() && number > 0 {
                break 'time;
            }
            if reports[at].findings.len() < ENOUGH {
                take_round(act, seed, number, &mut reports[at]);
            }
            if shown.elapsed() >= PROGRESS {
                shown = Instant::now();
                eprintln!("{} s of {}: {}", began.elapsed().as_secs(), args.seconds, Report::in_short(&reports));
            }
        }
        if reports.iter().all(|report| report.findings.len() >= ENOUGH) {
            break;
        }
    }
    let report = Report::new(seed, began.elapsed(), reports);
    print!("{report}");
    if let Some(file) = &args.json
        && let Err(error) = report.write(file)
    {
        eprintln!("cannot write {}: {error}", file.display());
        return ExitCode::from(2);
    }
    if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn take_round(act: &Act, seed: u64, number: u64, report: &mut ActReport) {
    let seed = mixed(seed, act.name, number);
    let began = Instant::now();
    let told = in_process(act, seed);
    report.rounds += 1;
    report.seconds += began.elapsed().as_secs_f64();
    report.counts.merge(&told.counts);
    report.hold.merge(&told.hold);
    if let Some(finding) = told.finding {
        println!(
            "FOUND by {}: {}\n{}\nagain: flatwater-torture round {} {seed}\n",
            act.name, finding.what, finding.history, act.name
        );
        report.findings.push(finding);
    }
}

/// Runs one round in a separate process.
fn in_process(act: &Act, seed: u64) -> Told {
    let child = parts::again()
        .args(["round", act.name, &seed.to_string(), "--machine"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // All its processes can then be killed together.
        .process_group(0)
        .spawn();
    match child {
        Ok(child) => until_over(child),
        Err(error) => Told { finding: Some(Finding::from(error)), ..Told::default() },
    }
}

fn until_over(mut child: Child) -> Told {
    let group = Pid::from_raw(i32::try_from(child.id()).expect("a process's number"));
    let said = child.stdout.take().map(parts::gathered);
    let complained = child.stderr.take().map(parts::gathered);
    let status = parts::ended(&mut child, ROUND + HANGS).ok().flatten();
    // Kills all processes that the round started.
    let _ = killpg(group, Signal::SIGKILL);
    let _ = child.wait();
    let (told, complained) = (Told::heard(&parts::said(said)), parts::said(complained));
    match (told, status) {
        (Some(told), Some(_)) => told,
        (_, status) => Told {
            finding: Some(Finding::new(ended(status)).with_history(parts::last_lines(&complained, LINES))),
            ..Told::default()
        },
    }
}

fn ended(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.signal(), status.code())) {
        None => format!("the round did not end within {} s", (ROUND + HANGS).as_secs()),
        Some((Some(signal), _)) => format!("the round crashed: signal {signal}"),
        Some((None, code)) => format!("the round ended with exit code {} and told nothing", code.unwrap_or(-1)),
    }
}

/// Runs one round in this process.
pub(crate) fn one_round(args: &RoundArgs) -> ExitCode {
    let Some(act) = ALL.iter().find(|act| act.name == args.act) else {
        eprintln!("there is no act {}; `list` names them", args.act);
        return ExitCode::from(2);
    };
    let told = told(act, args.seed, Duration::from_millis(args.length_ms));
    let is_clean = told.finding.is_none();
    if args.machine {
        told.tell();
    } else {
        println!("{:?} {:?}", told.counts.0, told.hold);
        match &told.finding {
            Some(finding) => println!("FOUND: {}\n{}", finding.what, finding.history),
            None => println!("nothing found"),
        }
    }
    if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn told(act: &Act, seed: u64, length: Duration) -> Told {
    let before = Belongings::now();
    let mut round = match Round::new(seed, length) {
        Ok(round) => round,
        Err(error) => return Told { finding: Some(Finding::from(error)), ..Told::default() },
    };
    let ended = (act.round)(&mut round);
    let ended = ended.and_then(|()| before.are_back());
    Told { finding: ended.err(), counts: round.counts.clone(), hold: round.hold }
}

fn from_clock() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(1, |since| since.as_secs())
}

/// Returns the seed of one round: splitmix64 over the run's seed, the act's name and the round's number.
fn mixed(seed: u64, act: &str, number: u64) -> u64 {
    let named = act.bytes().fold(seed, |mixed, byte| step(mixed ^ u64::from(byte)));
    // Short enough to type.
    step(named ^ number) >> 16
}

fn step(state: u64) -> u64 {
    let state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_of_each_act_has_a_seed_of_its_own() {
        let seeds: std::collections::BTreeSet<_> =
            ["a", "b"].iter().flat_map(|act| (0..100).map(|n| mixed(7, act, n))).collect();
        assert_eq!(seeds.len(), 200);
        assert_eq!(mixed(7, "a", 3), mixed(7, "a", 3));
    }
}
