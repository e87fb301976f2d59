//! One damaged file, opened and asked by Flatwater and, on an equal copy, by plain SQLite.
//!
//! Owns: the order of the steps and what must hold between the two. Both sides are asked the same questions in the same
//! order on connections that did the same before, so that even what a damaged page makes of a cache is the same.
//! Where the deadline ended one side nothing is compared, and nothing after a write that may be on one side only.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rand::RngExt;
use rand::rngs::StdRng;
use tokio::runtime::Runtime;

use super::answer::{Answer, difference, unclear};
use super::ask::{Ask, all_reads, all_writes};
use super::ours::Ours;
use super::plain::Plain;
use super::stranger::Stranger;
use super::watch::Watch;
use super::way::Way;
use crate::round::{Counts, Finding};

/// A damaged file and how it is opened.
pub(super) struct Case {
    pub(super) files: Stranger,
    pub(super) asks: Vec<Ask>,
    pub(super) way: Way,
    /// The file's own name, the same on both sides.
    pub(super) name: OsString,
}

/// Where a case takes place, and who looks at it.
pub(super) struct Place<'a> {
    pub(super) directory: PathBuf,
    pub(super) runtime: &'a Runtime,
    pub(super) watch: &'a Watch,
    pub(super) counts: Counts,
}

/// The two sides, equal copies of one file.
struct Sides {
    ours: PathBuf,
    plain: PathBuf,
}

impl Case {
    /// Everything, from writing the copies to looking at what is left of them.
    pub(super) fn run(&self, place: &mut Place<'_>, rng: &mut StdRng) -> Result<(), Finding> {
        let sides = self.copies(&place.directory)?;
        place.watch.step("plain SQLite opens it");
        let plain = Plain::open(&sides.plain, self.way);
        place.watch.step("Flatwater opens it");
        let ours = Ours::open(place.runtime, &sides.ours, self.way);
        match (ours, plain) {
            (Ok(ours), Ok(plain)) => {
                place.counts.add("opens", 1);
                self.compare(place, &sides, ours, plain, rng)?;
            }
            (Err(refused), plain) => {
                place.counts.add("refused opens", 1);
                self.was_refused(&refused.clone(), plain.err(), &sides, place)?;
            }
            (Ok(ours), Err(plain)) => {
                let closed = ours.close();
                if !matches!(plain, Answer::NotKnown(_)) {
                    return Err(Finding::new("it opens what plain SQLite refuses")
                        .with_history(format!("plain SQLite: {}; closed with {closed:?}", plain.in_short())));
                }
            }
        }
        place.watch.nobody_panicked()
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
        // Equally long, for there is a limit to that.
        Ok(Sides { ours: side("ours")?, plain: side("them")? })
    }

    fn compare(
        &self,
        place: &mut Place<'_>,
        sides: &Sides,
        ours: Ours<'_>,
        mut plain: Plain,
        rng: &mut StdRng,
    ) -> Result<(), Finding> {
        let mut told = Vec::new();
        let mut is_equal = true;
        for ask in self.questions(rng) {
            place.watch.step(format!("plain SQLite: {ask:?}"));
            let expected = plain.ask(&ask);
            place.watch.step(format!("Flatwater: {ask:?}"));
            let answer = ours.ask(&ask);
            place.counts.add("statements", 1);
            place.counts.add("errors", u64::from(answer.is_failure()));
            told.push(format!("{ask:?}: {}", if answer.is_failure() { "fails" } else { "ok" }));
            let wrong = unclear(&answer).or_else(|| is_equal.then(|| difference(&answer, &expected)).flatten());
            if let Some(wrong) = wrong {
                let history = format!(
                    "{ask:?}\nFlatwater: {}\nplain SQLite: {}\nbefore: {}",
                    answer.in_short(),
                    expected.in_short(),
                    told.join("; ")
                );
                return Err(Finding::new(wrong).with_history(history));
            }
            let unknown = [&answer, &expected].iter().any(|answer| matches!(answer, Answer::NotKnown(_)));
            is_equal &= !(unknown && ask.is_write());
            place.counts.add("compared answers", u64::from(is_equal && !unknown));
            place.watch.nobody_panicked()?;
        }
        if !self.way.only_reads() && rng.random_bool(0.3) {
            place.watch.step("Flatwater: many calls at once");
            place.counts.add("statements", ours.crowd());
        }
        place.watch.step("Flatwater closes it");
        let _ = ours.close();
        plain.close();
        if self.way.only_reads() { self.is_untouched(sides, "was opened to be read only") } else { Ok(()) }
    }

    /// Reads; then, where the way allows it, writes, and reads again.
    fn questions(&self, rng: &mut StdRng) -> Vec<Ask> {
        let mut asks: Vec<_> = self.asks.iter().filter(|ask| !ask.is_write()).cloned().collect();
        asks.extend(all_reads());
        if !self.way.only_reads() {
            asks.extend(self.asks.iter().filter(|ask| ask.is_write()).cloned());
            let mut writes = all_writes();
            // Not always all, so that each is tried on a file that the ones before did not write.
            let percent = rng.random_range(10..=100);
            writes.retain(|_| rng.random_range(0..100) < percent);
            asks.extend(writes);
            asks.extend(all_reads());
        }
        asks
    }

    fn was_refused(
        &self,
        refused: &flatwater::Error,
        plain: Option<Answer>,
        sides: &Sides,
        place: &Place<'_>,
    ) -> Result<(), Finding> {
        let said = format!("Flatwater: {refused:?}");
        let answer = Answer::from(refused.clone());
        if matches!(answer, Answer::NotKnown(_)) || matches!(plain, Some(Answer::NotKnown(_))) {
            return Ok(());
        }
        let Some(plain) = plain else {
            return Err(Finding::new("it refuses what plain SQLite opens").with_history(said));
        };
        let history = format!("{said}\nplain SQLite: {}", plain.in_short());
        let wrong = difference(&answer, &plain).or(unclear(&answer)).or_else(|| unclear_refusal(refused, &sides.ours));
        if let Some(wrong) = wrong {
            return Err(Finding::new(format!("at its open: {wrong}")).with_history(history));
        }
        place.watch.step("looks at what was refused");
        self.is_untouched(sides, "was refused").map_err(|finding| {
            let left = finding.history.clone();
            finding.with_history(format!("{left}\n{history}"))
        })
    }

    /// What nobody could write is as it was, unless plain SQLite changed it as well, by rolling a journal back.
    fn is_untouched(&self, sides: &Sides, what: &str) -> Result<(), Finding> {
        let Some(change) = Stranger::read(&sides.ours)?.differs_from(&self.files) else { return Ok(()) };
        if Stranger::read(&sides.plain)?.differs_from(&self.files).is_some() {
            return Ok(());
        }
        Err(Finding::new(format!("a file that {what} was changed")).with_history(change))
    }
}

/// What is wrong with the words in which a file was refused.
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
