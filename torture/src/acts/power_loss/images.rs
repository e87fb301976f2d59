//! Chooses the points of a log and the images to check there, and shrinks a finding.
//!
//! Owns: choosing points, opening the images, reporting a finding. Points after a sync, a truncation, the creation or
//! deletion of a name, and a write reported as failed are chosen as often as all others together.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::seq::IndexedRandom;

use super::content::Content;
use super::disk::{Disk, What};
use super::image::{Choice, Fate, MANNERS, Manner};
use super::judge::Judge;
use super::log::{DIRECTORY, Entry, Log};
use super::plan::{MAIN, Plan};
use super::said::{Floor, Found};
use super::{Base, Files};
use crate::checks;
use crate::finding::Finding;
use crate::plain;
use crate::round::Round;

/// The number of points that one pass over the log checks.
const POINTS: usize = 24;
/// The maximum number of images of a point.
const EACH: usize = 3;
/// The number of entries before and after a lost write that a finding contains.
const AROUND: usize = 20;
const SHRINKING: Duration = Duration::from_secs(20);

pub(crate) struct Images<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) log: &'a Log,
    pub(crate) base: &'a Base,
    /// What must be present at the end of the load.
    pub(crate) ever: Floor,
}

/// The directories of an image, one for each program that opens it.
struct Places {
    plain: PathBuf,
    ours: PathBuf,
}

impl Images<'_> {
    /// Checks the check itself: on a disk whose syncs do nothing from some point on, acknowledged writes with `full`
    /// are lost, and the judge must notice.
    pub(crate) fn a_lie_is_found(&self, round: &mut Round) -> Result<(), Finding> {
        let (from, all) = (self.log.entries.len() / 2, self.log.entries.len());
        let before = self.base.floor.clone().and_until(self.plan, self.log, from).main.len();
        // More steps than all tasks can have in flight at that point, so that at least one was written after it.
        if !self.plan.is_full || self.ever.main.len() - before <= self.plan.tasks as usize {
            return Ok(());
        }
        let mut disk = Disk::new(self.log, &self.base.files);
        disk.lies_behind = Some(from);
        disk.go_to(all);
        let choice = Choice::make(&disk, Manner::AllDropped, &mut round.rng);
        let places = places(round);
        match self.check(&disk, &choice, &self.ever, &places, false) {
            Err(finding) if finding.what.contains("lost") || finding.what.contains("not there") => {
                round.count("dropped syncs noticed");
                Ok(())
            }
            Err(finding) => Err(finding),
            Ok(_) => Err(Finding::new("a disk that lies was not noticed").with_history(self.told(&disk, &choice))),
        }
    }

    /// Checks images while there is time, and at least some. Returns one of them.
    pub(crate) fn look(&self, round: &mut Round) -> Result<Base, Finding> {
        let places = places(round);
        let mut left = Base { files: self.base.files.clone(), floor: self.base.floor.clone() };
        let mut is_first = true;
        while is_first || round.goes_on() {
            let mut disk = Disk::new(self.log, &self.base.files);
            for point in self.points(round) {
                disk.go_to(point);
                left = self.look_at(round, &disk, &places)?;
                if !round.goes_on() && (!is_first || round.counts.0.contains_key("unsynced writes dropped")) {
                    break;
                }
            }
            is_first = false;
        }
        Ok(left)
    }

    fn points(&self, round: &mut Round) -> Vec<usize> {
        let behind = |is: fn(&Entry) -> bool| -> Vec<usize> {
            let entries = self.log.entries.iter().enumerate();
            entries.filter(|(_, entry)| is(entry)).map(|(at, _)| at + 1).collect()
        };
        let names = behind(|entry| matches!(entry, Entry::Create { .. } | Entry::Unlink { .. }));
        let truncations = behind(|entry| matches!(entry, Entry::Truncate { .. }));
        let syncs = behind(|entry| matches!(entry, Entry::SyncBegin { .. } | Entry::SyncEnd { .. }));
        let refusals = behind(|entry| matches!(entry, Entry::Mark(text) if text.starts_with("not ")));
        let all = self.log.entries.len();
        let kinds = [&names, &truncations, &syncs, &refusals];
        let mut points: Vec<_> = (0..POINTS)
            .map(|at| {
                match kinds.get(at % 8).and_then(|points| points.choose(&mut round.rng)) {
                    // Slightly later the change may still be open.
                    Some(point) => (point + round.rng.random_range(0..4)).min(all),
                    None => round.rng.random_range(0..=all),
                }
            })
            .collect();
        points.sort_unstable();
        points.dedup();
        points
    }

    /// Checks images of one point. Returns the last of them.
    fn look_at(&self, round: &mut Round, disk: &Disk<'_>, places: &Places) -> Result<Base, Finding> {
        let floor = self.base.floor.at(self.plan, disk);
        let mut seen: Vec<Choice> = Vec::new();
        let mut left = Base::default();
        for at in 0..EACH {
            let manner = match at {
                0 => Manner::AllDropped,
                1 => Manner::Prefix,
                _ => MANNERS[round.rng.random_range(0..MANNERS.len())],
            };
            let choice = Choice::make(disk, manner, &mut round.rng);
            if seen.contains(&choice) {
                continue;
            }
            let goes_on = round.rng.random_bool(0.25);
            round.count("crash images checked");
            count(round, disk, &choice);
            match self.check(disk, &choice, &floor, places, goes_on) {
                Ok(found) => {
                    left = Base { files: choice.build(disk), floor: Floor::before(&found) };
                }
                Err(finding) => return Err(self.shrunk(disk, choice, &floor, places, finding, goes_on)),
            }
            seen.push(choice);
        }
        Ok(left)
    }

    fn check(
        &self,
        disk: &Disk<'_>,
        choice: &Choice,
        floor: &Floor,
        places: &Places,
        goes_on: bool,
    ) -> Result<Found, Finding> {
        let files = choice.build(disk);
        put(&places.plain, &files)?;
        put(&places.ours, &files)?;
        let by = |who: &str, finding: Finding| Finding { what: format!("{who}: {}", finding.what), ..finding };
        let plain = Content::with_plain(&places.plain, self.plan).map_err(|found| by("plain SQLite", found))?;
        let judge = Judge { plan: self.plan, ever: &self.ever };
        let found = judge.check(&plain, floor)?;
        let ours = Content::with_ours(self.plan.options(&places.ours)).map_err(|found| by("Flatwater", found))?;
        if ours != plain {
            judge.check(&ours, floor).map_err(|found| by("Flatwater", found))?;
            return Err(Finding::new("Flatwater finds another content than plain SQLite"));
        }
        if goes_on {
            self.goes_on(places).map_err(|found| by("afterwards", found))?;
        }
        Ok(found)
    }

    /// Checks that writes after the power loss are present, and that the file is sound.
    fn goes_on(&self, places: &Places) -> Result<(), Finding> {
        let db = self.plan.options(&places.ours).open().wait()?;
        db.execute_script("CREATE TABLE afterwards (x); INSERT INTO afterwards VALUES (7)").wait()?;
        db.close().wait()?;
        let main = plain::open(&places.ours.join(MAIN), self.plan.is_encrypted)?;
        checks::says_sound(&main)?;
        let x: i64 = main.query_row("SELECT sum(x) FROM afterwards", [], |row| row.get(0))?;
        if x == 7 { Ok(()) } else { Err(Finding::new("what was written after the loss is not there")) }
    }

    /// Returns the finding with as few losses as possible.
    fn shrunk(
        &self,
        disk: &Disk<'_>,
        mut choice: Choice,
        floor: &Floor,
        places: &Places,
        mut finding: Finding,
        goes_on: bool,
    ) -> Finding {
        let until = Instant::now() + SHRINKING;
        let mut part = choice.len().next_power_of_two();
        while part > 0 {
            let mut from = 0;
            while from < choice.len() && Instant::now() < until {
                let smaller = choice.without(from..from + part);
                match self.check(disk, &smaller, floor, places, goes_on) {
                    Err(still) => (choice, finding) = (smaller, still),
                    Ok(_) => from += part,
                }
            }
            part /= 2;
        }
        finding.with_history(self.told(disk, &choice))
    }

    fn told(&self, disk: &Disk<'_>, choice: &Choice) -> String {
        let (point, all) = (disk.taken, self.log.entries.len());
        let mut told = format!("{:?}\nthe power is lost behind entry {point} of {all}; the last ones:\n", self.plan);
        for entry in &self.log.entries[point.saturating_sub(8)..point] {
            told += &format!("  {}\n", self.named(entry));
        }
        told += "not on the disk, or not whole:\n";
        for (entry, fate) in &choice.lost {
            told += &format!("  {entry}: {}: {fate:?}\n", self.named(&self.log.entries[*entry]));
        }
        if let Some(entry) = choice.lost.keys().next() {
            told += "around the first of these:\n";
            for at in entry.saturating_sub(AROUND)..(entry + AROUND).min(point) {
                told += &format!("  {at}: {}\n", self.named(&self.log.entries[at]));
            }
        }
        for (name, version) in &choice.back {
            told += &format!("  {name} leads where it led {} changes ago\n", disk.names[name].len() - 1 - version);
        }
        told
    }

    fn named(&self, entry: &Entry) -> String {
        let name = |file: &u32| {
            let named = self.log.entries.iter().find_map(|entry| match entry {
                Entry::Met { file: number, name } | Entry::Create { file: number, name } if number == file => {
                    Some(name)
                }
                _ => None,
            });
            let named = named.map_or("", String::as_str);
            if *file == DIRECTORY { "the directory".to_owned() } else { format!("{named} (file {file})") }
        };
        match entry {
            Entry::Met { name, .. } => format!("{name} was there"),
            Entry::Create { file, .. } => format!("{} is made", name(file)),
            Entry::Write { file, at, data } => format!("{}: {} bytes are written at {at}", name(file), data.len()),
            Entry::Truncate { file, to } => format!("{} is truncated to {to}", name(file)),
            Entry::SyncBegin { file, sync } => format!("sync {sync} of {} begins", name(file)),
            Entry::SyncEnd { file, sync } => format!("sync {sync} of {} ends", name(file)),
            Entry::SyncFailed { file, sync } => format!("sync {sync} of {} fails", name(file)),
            Entry::SyncTold { file, sync } => format!("sync {sync} of {} tells of a failure", name(file)),
            Entry::Unlink { name } => format!("{name} is unlinked"),
            Entry::Mark(text) => format!("the load says: {text}"),
        }
    }
}

fn places(round: &Round) -> Places {
    Places { plain: round.path("plain"), ours: round.path("ours") }
}

/// Creates a directory that contains exactly these files.
pub(crate) fn put(directory: &Path, files: &Files) -> Result<(), Finding> {
    if directory.exists() {
        fs::remove_dir_all(directory)?;
    }
    fs::create_dir(directory)?;
    for (name, content) in files {
        fs::write(directory.join(name), content)?;
    }
    Ok(())
}

fn count(round: &mut Round, disk: &Disk<'_>, choice: &Choice) {
    for change in disk.files.values().flat_map(|file| &file.open) {
        match (choice.lost.get(&change.entry), &change.what) {
            (None | Some(Fate::Kept), _) => {}
            (Some(_), What::Truncate { .. }) => round.count("truncations undone"),
            (Some(Fate::Torn(_)), _) => round.count("unsynced writes torn"),
            (Some(_), What::Write { .. }) => round.count("unsynced writes dropped"),
        }
    }
    for (name, version) in &choice.back {
        let is_there = disk.names[name][*version].file.is_some();
        if is_there && name.ends_with("-wal") {
            round.count("stale WALs restored");
        }
    }
}
