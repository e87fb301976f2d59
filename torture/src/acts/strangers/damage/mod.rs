//! The kinds of damage, each with the name of what it breaks.
//!
//! Owns: the list, and choosing from it. If a kind finds nothing to break in a file, such as a missing WAL, it returns
//! `None` and another kind is chosen.

mod header;
mod journal;
mod length;
mod noise;
mod pages;
mod schema;
mod trees;
mod wal;

use std::path::Path;

use rand::RngExt;
use rand::rngs::StdRng;

use super::ask::Ask;
use super::sound::{Page, Sound};
use super::stranger::Stranger;

/// The database to damage, and the material to damage it with.
pub(super) struct Target<'a> {
    pub(super) files: Stranger,
    pub(super) pages: &'a [Page],
    /// Other databases, whose files can be put beside this one.
    pub(super) others: &'a [Sound],
    /// A directory for temporary files.
    pub(super) scratch: &'a Path,
    /// Additional questions for the damaged database.
    pub(super) asks: Vec<Ask>,
}

pub(super) struct Damage {
    pub(super) name: &'static str,
    /// Returns what it changed and where.
    pub(super) inflict: fn(&mut Target<'_>, &mut StdRng) -> Option<String>,
}

const GROUPS: &[&[Damage]] =
    &[noise::ALL, header::ALL, length::ALL, pages::ALL, trees::ALL, wal::ALL, journal::ALL, schema::ALL];

/// Inflicts one or two kinds of damage.
pub(super) fn inflict(target: &mut Target<'_>, rng: &mut StdRng) -> Vec<String> {
    let wanted = if rng.random_bool(0.25) { 2 } else { 1 };
    let mut done = Vec::new();
    while done.len() < wanted {
        let group = GROUPS[rng.random_range(0..GROUPS.len())];
        let damage = &group[rng.random_range(0..group.len())];
        if let Some(detail) = (damage.inflict)(target, rng) {
            done.push(format!("{}: {detail}", damage.name));
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng;

    use super::*;
    use crate::acts::strangers::sound::{self, Left};

    #[test]
    fn each_kind_has_a_name_of_its_own_and_something_to_damage() {
        let directory = tempfile::tempdir().unwrap();
        let mut rng = StdRng::seed_from_u64(5);
        // Enough databases to cover each auto_vacuum mode: one mode has no free list, another has no pointer map.
        let lefts = [Left::WithWal, Left::WithHotJournal, Left::InOrder].into_iter().cycle().take(12);
        let sounds: Vec<_> =
            lefts.map(|left| sound::make(&mut rng, directory.path(), Some(1024), left).unwrap()).collect();
        let mut names = BTreeSet::new();
        for damage in GROUPS.iter().copied().flatten() {
            assert!(names.insert(damage.name), "{} is there twice", damage.name);
            let damaged = (0..60).find_map(|at| {
                let sound = &sounds[at % sounds.len()];
                let (others, pages) = (&sounds[..], &sound.pages[..]);
                let files = sound.files.clone();
                let mut target = Target { files, pages, others, scratch: directory.path(), asks: Vec::new() };
                (damage.inflict)(&mut target, &mut rng).filter(|_| target.files != sound.files)
            });
            assert!(damaged.is_some(), "{} damages nothing", damage.name);
        }
    }
}
