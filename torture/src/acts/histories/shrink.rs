//! Shrinks a history that shows a difference, as far as is possible in a minute.
//!
//! Owns: removing operations, first half of them, then fewer. A difference between many tasks is first tried as a
//! history of one task, in the order in which it was committed, because that is repeatable.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::compare::{Difference, compare};
use super::op::{History, Part};
use super::play::{self, play};
use super::setting::Setting;
use crate::finding::Finding;
use crate::gauge::Gauge;

const PATIENCE: Duration = Duration::from_secs(60);
/// The maximum number of operations in a finding.
const SHOWN: usize = 60;
/// A history of many tasks has another outcome each time.
const TRIES_OF_MANY: usize = 4;

/// Runs histories in new databases and reports what is wrong with them.
pub(super) struct Shrink<'a> {
    pub(super) setting: &'a Setting,
    pub(super) directory: &'a Path,
    pub(super) gauge: &'a Arc<Gauge>,
    number: usize,
    until: Instant,
}

impl<'a> Shrink<'a> {
    pub(super) fn new(setting: &'a Setting, directory: &'a Path, gauge: &'a Arc<Gauge>) -> Self {
        Self { setting, directory, gauge, number: 0, until: Instant::now() + PATIENCE }
    }

    /// Returns the finding, with the shortest history.
    pub(super) fn finding(&mut self, history: &History, difference: &Difference) -> Finding {
        let (mut least, mut what) = (history.clone(), difference.what.clone());
        if let Some(task) = difference.at.filter(|_| history.len() == 1).map(|(_, at)| at + 1) {
            self.take(&mut least, &mut what, vec![history[0][..task].to_vec()]);
        }
        if history.len() > 1 && !difference.order.is_empty() {
            let one = difference.order.iter().enumerate();
            let one = one.map(|(at, op)| Part { number: at as i64, op: op.clone() }).collect();
            self.take(&mut least, &mut what, vec![one]);
        }
        // A history that hangs is not repeated: each attempt would take as long.
        let mut size = if play::is_hang(&what) { 0 } else { count(&least).div_ceil(2) };
        while size > 0 && Instant::now() < self.until {
            let mut at = 0;
            while at < count(&least) && Instant::now() < self.until {
                let shorter = without(&least, at, size);
                if !self.take(&mut least, &mut what, shorter) {
                    at += size;
                }
            }
            size /= 2;
        }
        let mut told = self.told(&least);
        if least.len() > 1 && !difference.order.is_empty() {
            let from = difference.order.len().saturating_sub(SHOWN);
            let last: Vec<_> = difference.order[from..].iter().map(ToString::to_string).collect();
            told = format!("{told}\nthe first time, in the order of commits, at last:\n{}", last.join("\n"));
        }
        Finding::new(what).with_history(told)
    }

    /// Takes the shorter history if it also fails.
    fn take(&mut self, least: &mut History, what: &mut String, shorter: History) -> bool {
        let Some(found) = self.is_wrong(&shorter) else { return false };
        (*least, *what) = (shorter, found);
        true
    }

    fn is_wrong(&mut self, history: &History) -> Option<String> {
        let tries = if history.len() > 1 { TRIES_OF_MANY } else { 1 };
        (0..tries).find_map(|_| {
            self.number += 1;
            let file = self.directory.join(format!("shorter-{}.db", self.number));
            let wrong = match play(self.setting, &file, history, self.gauge) {
                Ok(played) => compare(history, &played).ok()?.err().map(|difference| difference.what),
                Err(finding) => Some(format!("{}\n{}", finding.what, finding.history)),
            };
            let _ = std::fs::remove_file(&file);
            wrong
        })
    }

    fn told(&self, history: &History) -> String {
        let line = |(task, part): (usize, &Part)| format!("task {task}: {}", part.op);
        let parts = history.iter().enumerate().flat_map(|(task, ops)| ops.iter().map(move |part| (task, part)));
        let lines: Vec<_> = parts.map(line).collect();
        let shown = lines.len().min(SHOWN);
        let more = if shown < lines.len() { format!("\n(and {} more)", lines.len() - shown) } else { String::new() };
        format!("{:?}\n{}{more}", self.setting, lines[..shown].join("\n"))
    }
}

fn count(history: &History) -> usize {
    history.iter().map(Vec::len).sum()
}

/// Returns the history without `size` operations, and without tasks that have none left.
fn without(history: &History, from: usize, size: usize) -> History {
    let mut at = 0;
    let mut keeps = |_: &Part| {
        at += 1;
        !(from..from + size).contains(&(at - 1))
    };
    // A history of many tasks keeps at least two, because ticks are interpreted differently for one task.
    let least = history.len().min(2);
    let mut rest: History =
        history.iter().map(|ops| ops.iter().filter(|part| keeps(part)).cloned().collect()).collect();
    while rest.len() > least && rest.last().is_some_and(Vec::is_empty) {
        rest.pop();
    }
    rest
}
