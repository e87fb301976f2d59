//! One damaged file: Flatwater opens and reads it, and plain SQLite does the same with an equal copy.
//!
//! Owns: the order of the steps and the conditions that must hold between the two sides. Both sides get the same
//! questions in the same order, on connections with the same history, so that even the effects of a damaged page on a
//! cache are the same. Then both are closed, opened again and asked again. If a deadline ended one side, nothing is
//! compared, and nothing is compared after a write that only one side may have made.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;
use tokio::runtime::Runtime;

use super::again::is_undecided;
use super::answer::{Answer, difference, is_check_of_expressions, unclear};
use super::ask::{Ask, all_reads, all_writes};
use super::ours::Ours;
use super::plain::Plain;
use super::stranger::Stranger;
use super::watch::Watch;
use super::way::Way;
use crate::finding::Finding;
use crate::round::Counts;

/// How long a file may stay open after `close` returned.
const LEAVES: Duration = Duration::from_secs(30);

/// A damaged file, and how it is opened.
pub(super) struct Case {
    pub(super) files: Stranger,
    pub(super) asks: Vec<Ask>,
    pub(super) way: Way,
    /// The file's name, the same on both sides.
    pub(super) name: OsString,
}

/// Where a case runs, and the watchdog that observes it.
pub(super) struct Place<'a> {
    pub(super) directory: PathBuf,
    pub(super) runtime: &'a Runtime,
    pub(super) watch: &'a Watch,
    pub(super) counts: Counts,
}

/// The two sides: equal copies of one file.
struct Sides {
    ours: PathBuf,
    plain: PathBuf,
}

impl Case {
    /// Runs the case, from writing the copies to comparing the remaining files.
    pub(super) fn run(&self, place: &mut Place<'_>, rng: &mut StdRng) -> Result<(), Finding> {
        let sides = self.copies(&place.directory)?;
        let mut asked = Vec::new();
        let is_equal = self.session(place, &sides, &self.questions(rng), &mut asked, rng)?;
        if self.way.only_reads() {
            return self.is_untouched(&sides, "was opened read-only");
        }
        // Compare the files as the close left them.
        if is_equal && !asked.is_empty() {
            self.session(place, &sides, &all_reads(), &mut asked, rng)?;
        }
        Ok(())
    }

    /// Opens both copies, asks the questions, and closes them. Returns whether the copies are still equal.
    fn session(
        &self,
        place: &mut Place<'_>,
        sides: &Sides,
        asks: &[Ask],
        asked: &mut Vec<Ask>,
        rng: &mut StdRng,
    ) -> Result<bool, Finding> {
        let is_first = asked.is_empty();
        place.watch.step("plain SQLite opens it");
        let plain = Plain::open(&sides.plain, self.way);
        place.watch.step("Flatwater opens it");
        let ours = Ours::open(place.runtime, &sides.ours, self.way);
        let is_equal = match (ours, plain) {
            (Ok(ours), Ok(plain)) => {
                place.counts.add("opens", 1);
                self.compare(place, ours, plain, asks, asked, rng)?
            }
            (Ok(ours), Err(plain)) => {
                let _ = ours.close();
                self.same(place, &Answer::Done(0), &plain, asked, rng)?
            }
            (Err(refused), plain) => {
                place.counts.add("refused opens", 1);
                let plain = plain.map_or_else(|refused| refused, |_| Answer::Done(0));
                let is_equal = self.same(place, &refused.clone().into(), &plain, asked, rng)?;
                if is_equal && is_first {
                    self.is_well_refused(&refused, sides)?;
                }
                is_equal
            }
        };
        place.watch.nobody_panicked()?;
        nothing_is_open(&sides.ours)?;
        Ok(is_equal)
    }

    fn copies(&self, directory: &Path) -> Result<Sides, Finding> {
        let side = |name| {
            let directory = directory.join(name);
            let _ = std::fs::remove_dir_all(&directory);
            std::fs::create_dir_all(&directory)?;
            let path = directory.join(&self.name);
            std::fs::create_dir_all(path.parent().unwrap_or(&directory))?;
            self.files.write(&path)?;
            std::io::Result::Ok(path)
        };
        // Both paths have the same length, because SQLite limits it.
        Ok(Sides { ours: side("ours")?, plain: side("them")? })
    }

    fn compare(
        &self,
        place: &mut Place<'_>,
        ours: Ours<'_>,
        mut plain: Plain,
        asks: &[Ask],
        asked: &mut Vec<Ask>,
        rng: &mut StdRng,
    ) -> Result<bool, Finding> {
        let mut is_equal = true;
        let is_last = !asked.is_empty();
        for ask in asks {
            asked.push(ask.clone());
            place.watch.step(format!("plain SQLite: {ask:?}"));
            let expected = plain.ask(ask);
            place.watch.step(format!("Flatwater: {ask:?}"));
            let answer = ours.ask(ask);
            place.counts.add("statements", 1);
            place.counts.add("errors", u64::from(answer.is_failure()));
            if is_equal {
                let is_same = self.same(place, &answer, &expected, asked, rng)?;
                is_equal = is_same || !ask.is_write() || *ask == Ask::Checkpoint;
            }
            place.watch.nobody_panicked()?;
        }
        if is_last && rng.random_bool(0.5) {
            place.watch.step("Flatwater: many calls at once");
            place.counts.add("statements", ours.crowd());
        }
        place.watch.step("Flatwater closes it");
        let _ = ours.close();
        plain.close();
        Ok(is_equal)
    }

    /// Returns whether both sides gave the same answer to the last question, or to the open. An unknown result, or one
    /// on which plain SQLite differs from itself, returns false without a finding.
    fn same(
        &self,
        place: &mut Place<'_>,
        ours: &Answer,
        plain: &Answer,
        asked: &[Ask],
        rng: &mut StdRng,
    ) -> Result<bool, Finding> {
        if [ours, plain].iter().any(|answer| matches!(answer, Answer::NotKnown(_)))
            || is_check_of_expressions(asked.last(), ours, plain)
        {
            return Ok(false);
        }
        let Some(wrong) = unclear(ours).or_else(|| difference(ours, plain)) else {
            place.counts.add("compared answers", 1);
            return Ok(true);
        };
        place.watch.step("plain SQLite is asked again");
        let again = place.directory.join("them").join("again").join("stranger.db");
        if unclear(ours).is_none() && is_undecided(&self.files, &again, self.way, asked, plain, rng) {
            place.counts.add("answers that SQLite leaves open", 1);
            return Ok(false);
        }
        let last = asked.last().map_or("its open".to_owned(), |ask| format!("{ask:?}"));
        let before = asked.iter().filter(|ask| ask.is_write()).map(|ask| format!("{ask:?}")).collect::<Vec<_>>();
        Err(Finding::new(wrong).with_history(format!(
            "asked: {last}\nFlatwater: {}\nplain SQLite: {}\nwrites before: {}",
            ours.in_short(),
            plain.in_short(),
            before.join("; ")
        )))
    }

    /// Returns reads; then, if the way of opening allows it, writes and the reads again.
    fn questions(&self, rng: &mut StdRng) -> Vec<Ask> {
        let mut asks: Vec<_> = self.asks.iter().filter(|ask| !ask.is_write()).cloned().collect();
        asks.extend(all_reads());
        if !self.way.only_reads() {
            asks.extend(self.asks.iter().filter(|ask| ask.is_write()).cloned());
            let mut writes = all_writes();
            // Often only a share, so that each write also runs on a file that the preceding writes did not change.
            let percent = rng.random_range(10..=100);
            writes.retain(|_| rng.random_range(0..100) < percent);
            asks.extend(writes);
            asks.extend(all_reads());
        }
        asks
    }

    /// Checks that a refusal names the file, and leaves it unchanged.
    fn is_well_refused(&self, refused: &flatwater::Error, sides: &Sides) -> Result<(), Finding> {
        let said = format!("Flatwater: {refused:?}");
        if let Some(wrong) = unclear_refusal(refused, &sides.ours) {
            return Err(Finding::new(wrong).with_history(said));
        }
        self.is_untouched(sides, "was refused").map_err(|finding| {
            let history = format!("{}\n{said}", finding.history);
            finding.with_history(history)
        })
    }

    /// Checks that a file that cannot be written is unchanged, unless plain SQLite changed it as well by rolling back a
    /// journal.
    fn is_untouched(&self, sides: &Sides, what: &str) -> Result<(), Finding> {
        let Some(change) = Stranger::read(&sides.ours)?.differs_from(&self.files) else { return Ok(()) };
        if Stranger::read(&sides.plain)?.differs_from(&self.files).is_some() {
            return Ok(());
        }
        Err(Finding::new(format!("a file that {what} was changed")).with_history(change))
    }
}

/// Returns what is wrong with the text of the error that refused a file, if anything.
pub(super) fn unclear_refusal(error: &flatwater::Error, path: &Path) -> Option<&'static str> {
    if error.operation() != Some("open") {
        return Some("an error does not say that it is of the open");
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !error.message().contains(&*name) {
        return Some("an error does not name the file");
    }
    None
}

/// Checks that the process has no descriptor on the file after a failed close or a refusal. Waits for descriptors that
/// close a moment later.
fn nothing_is_open(path: &Path) -> Result<(), Finding> {
    let until = Instant::now() + LEAVES;
    loop {
        let descriptors = std::fs::read_dir("/proc/self/fd")?.flatten();
        let leads_to = descriptors.filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok());
        let open: Vec<_> = leads_to.filter(|open| open.starts_with(path.parent().unwrap_or(path))).collect();
        if open.is_empty() {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(Finding::new("files stay open after the close").with_history(format!("{open:?}")));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
