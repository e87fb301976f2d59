//! Possible contents of the files after a power failure: a choice among the open changes of a disk.
//!
//! Owns: choosing, and building the files. An open write is present, absent, present in some of its sectors of 512
//! bytes, or only its length is; an open truncate is present or absent; a name refers to any file it referred to since
//! its directory was last synced. Bytes beside a write are unchanged (what SQLite calls powersafe overwrite). The
//! choices are independent: file systems that keep an order produce a subset of these images, and SQLite relies on no
//! order. Leaves out: what an image must contain (`judge`).

use std::collections::BTreeMap;
use std::ops::Range;

use rand::RngExt;
use rand::rngs::StdRng;

use super::disk::{Change, Disk, What, put};

pub(crate) const SECTOR: usize = 512;

/// The number of changes that count as the last ones.
const LAST: usize = 6;

/// The fate of an open change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    Dropped,
    /// Only the sectors marked true are written.
    Torn(Vec<bool>),
    /// Only the file's length is changed.
    LengthOnly,
}

/// One choice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The changes that are absent or incomplete, by their entry in the log. All others are present.
    pub(crate) lost: BTreeMap<usize, Fate>,
    /// Names that refer to an earlier file, and which version it is.
    pub(crate) back: BTreeMap<String, usize>,
}

/// How choices are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    AllKept,
    AllDropped,
    /// The databases contain all changes, WALs and journals none.
    DatabasesAhead,
    WalsAhead,
    OneLost,
    /// No change after some entry is present.
    Prefix,
    Random,
}

pub(crate) const MANNERS: [Manner; 7] = [
    Manner::AllKept,
    Manner::AllDropped,
    Manner::DatabasesAhead,
    Manner::WalsAhead,
    Manner::OneLost,
    Manner::Prefix,
    Manner::Random,
];

impl Choice {
    pub(crate) fn make(disk: &Disk<'_>, manner: Manner, rng: &mut StdRng) -> Self {
        let mut open: Vec<_> = disk
            .files
            .values()
            .flat_map(|file| file.open.iter().map(move |change| (is_log(&file.name), change)))
            .filter(|(_, change)| !change.is_sure)
            .collect();
        let mut lost = BTreeMap::new();
        open.sort_unstable_by_key(|(_, change)| change.entry);
        // Choose from the last changes as often as from all of them.
        let from = if rng.random_bool(0.5) { open.len().saturating_sub(LAST) } else { 0 };
        let one = if open.is_empty() { 0 } else { rng.random_range(from..open.len()) };
        let often = rng.random_range(0.05..0.95);
        for (at, (is_log, change)) in open.iter().enumerate() {
            let fate = match manner {
                Manner::AllKept => Fate::Kept,
                Manner::AllDropped => Fate::Dropped,
                Manner::DatabasesAhead if *is_log => Fate::Dropped,
                Manner::WalsAhead if !is_log => Fate::Dropped,
                Manner::DatabasesAhead | Manner::WalsAhead => Fate::Kept,
                Manner::OneLost if at == one => some_loss(change, rng),
                Manner::Prefix if change.entry > open[one].1.entry => Fate::Dropped,
                Manner::Prefix if change.entry == open[one].1.entry => some_loss(change, rng),
                Manner::OneLost | Manner::Prefix => Fate::Kept,
                Manner::Random if rng.random_bool(often) => some_loss(change, rng),
                Manner::Random => Fate::Kept,
            };
            if fate != Fate::Kept {
                lost.insert(change.entry, fate);
            }
        }
        let mut back = BTreeMap::new();
        for (name, versions) in disk.names.iter().filter(|(_, versions)| versions.len() > 1) {
            let version = match manner {
                Manner::AllKept | Manner::WalsAhead => versions.len() - 1,
                Manner::AllDropped | Manner::DatabasesAhead => 0,
                _ => rng.random_range(0..versions.len()),
            };
            if version + 1 < versions.len() {
                back.insert(name.clone(), version);
            }
        }
        Self { lost, back }
    }

    /// Returns the number of losses.
    pub(crate) fn len(&self) -> usize {
        self.lost.len() + self.back.len()
    }

    /// Returns the choice without some of its losses.
    pub(crate) fn without(&self, some: Range<usize>) -> Self {
        let (mut at, mut smaller) = (0.., self.clone());
        let mut stays = || !some.contains(&at.next().unwrap_or(0));
        smaller.lost.retain(|_, _| stays());
        smaller.back.retain(|_, _| stays());
        smaller
    }

    /// Returns the existing names, with their contents.
    pub(crate) fn build(&self, disk: &Disk<'_>) -> BTreeMap<String, Vec<u8>> {
        let mut built = BTreeMap::new();
        for (name, versions) in &disk.names {
            let version = self.back.get(name).copied().unwrap_or(versions.len() - 1);
            let Some(file) = versions.get(version).and_then(|version| disk.files.get(&version.file?)) else { continue };
            let mut content = file.durable.clone();
            for change in &file.open {
                self.apply(&mut content, disk, change);
            }
            built.insert(name.clone(), content);
        }
        built
    }

    fn apply(&self, content: &mut Vec<u8>, disk: &Disk<'_>, change: &Change) {
        match (self.lost.get(&change.entry), &change.what) {
            (Some(Fate::Dropped), _) => {}
            (None | Some(Fate::Kept), what) => super::disk::apply(content, disk.log, what),
            (Some(_), What::Truncate { .. }) => {}
            (Some(Fate::LengthOnly), What::Write { at, data }) => {
                let end = at + data.len();
                content.resize(content.len().max(end), 0);
            }
            (Some(Fate::Torn(sectors)), What::Write { at, data }) => {
                let data = disk.log.data(data);
                for ((from, to), _) in pieces(*at, data.len()).zip(sectors).filter(|(_, is_there)| **is_there) {
                    put(content, at + from, &data[from..to]);
                }
            }
        }
    }
}

fn is_log(name: &str) -> bool {
    name.ends_with("-wal") || name.ends_with("-journal")
}

/// Returns a random loss that is possible for this change.
fn some_loss(change: &Change, rng: &mut StdRng) -> Fate {
    let What::Write { at, data } = &change.what else { return Fate::Dropped };
    let sectors = pieces(*at, data.len()).count();
    match rng.random_range(0..8) {
        0 => Fate::LengthOnly,
        1..=3 if sectors > 1 => {
            // Cut the write at a sector as often as losing single sectors.
            let cut = rng.random_range(0..=sectors);
            let is_cut = rng.random_bool(0.5);
            Fate::Torn((0..sectors).map(|at| if is_cut { at < cut } else { rng.random_bool(0.5) }).collect())
        }
        _ => Fate::Dropped,
    }
}

/// Returns the parts of a write that are in one sector each, as offsets into its data.
fn pieces(at: usize, length: usize) -> impl Iterator<Item = (usize, usize)> {
    let first = at / SECTOR;
    let sectors = first..(at + length).div_ceil(SECTOR).max(first);
    sectors.map(move |sector| ((sector * SECTOR).max(at) - at, ((sector + 1) * SECTOR).min(at + length) - at))
}
