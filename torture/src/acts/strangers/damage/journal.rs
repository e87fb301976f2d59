//! Damage to the rollback journal (<https://sqlite.org/fileformat2.html#the_rollback_journal>): wrong fields, the
//! journal of another database, garbage, and a journal beside a file that needs none.

use rand::rngs::StdRng;
use rand::{Rng, RngExt};

use super::{Damage, Target};
use crate::acts::strangers::stranger::put;

pub(super) const ALL: &[Damage] = &[
    Damage { name: "journal: a field of its header", inflict: field },
    Damage { name: "journal: bytes overwritten", inflict: bytes },
    Damage { name: "journal: cut off", inflict: cut },
    Damage { name: "journal: of another database", inflict: foreign },
    Damage { name: "journal: garbage under a right magic number", inflict: garbage },
    Damage { name: "journal: names a super-journal that is not there", inflict: super_journal },
    Damage { name: "journal: gone", inflict: gone },
];

const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// Damages the record count, nonce, database size, sector size or page size.
fn field(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let journal = target.files.journal.as_mut()?;
    let at = 8 + 4 * rng.random_range(0..5);
    let edges = [0, 1, 3, 512, 1000, 4096, 65536, 0x00ff_ffff, u32::MAX];
    let new = edges[rng.random_range(0..edges.len())];
    put(journal, at, &new.to_be_bytes());
    Some(format!("at byte {at} = {new:#x}"))
}

fn bytes(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let journal = target.files.journal.as_mut()?;
    let mut detail = Vec::new();
    for _ in 0..rng.random_range(1..10) {
        let (at, new) = (rng.random_range(0..journal.len().max(1)), rng.random());
        put(journal, at, &[new]);
        detail.push(format!("byte {at} = {new}"));
    }
    Some(detail.join(", "))
}

fn cut(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let journal = target.files.journal.as_mut()?;
    let length = if rng.random_bool(0.3) { rng.random_range(0..600) } else { rng.random_range(0..=journal.len()) };
    journal.truncate(length);
    Some(format!("{length} bytes"))
}

fn foreign(target: &mut Target<'_>, _: &mut StdRng) -> Option<String> {
    let own = target.files.journal.clone();
    let other = target.others.iter().find(|other| other.files.journal.is_some() && other.files.journal != own)?;
    target.files.journal.clone_from(&other.files.journal);
    Some(other.about.clone())
}

fn garbage(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let mut garbage = vec![0; rng.random_range(28..20_000)];
    rng.fill_bytes(&mut garbage);
    put(&mut garbage, 0, &MAGIC);
    // A small record count, and plausible sizes.
    put(&mut garbage, 8, &rng.random_range(0..9_u32).to_be_bytes());
    put(&mut garbage, 16, &rng.random_range(0..40_u32).to_be_bytes());
    put(&mut garbage, 20, &512_u32.to_be_bytes());
    put(&mut garbage, 24, &u32::try_from(target.files.page_size()).ok()?.to_be_bytes());
    let detail = format!("{} bytes", garbage.len());
    target.files.journal = Some(garbage);
    Some(detail)
}

/// Appends the name of a super-journal, the name's length, its checksum and the magic number.
fn super_journal(target: &mut Target<'_>, _: &mut StdRng) -> Option<String> {
    let journal = target.files.journal.as_mut()?;
    let name = b"/nonexistent/directory/of.db-mj0123456789";
    let sum: u32 = name.iter().map(|byte| u32::from(*byte)).sum();
    journal.extend_from_slice(&(0x4000_0000_u32 / 512 + 1).to_be_bytes());
    journal.extend_from_slice(name);
    journal.extend_from_slice(&u32::try_from(name.len()).ok()?.to_be_bytes());
    journal.extend_from_slice(&sum.to_be_bytes());
    journal.extend_from_slice(&MAGIC);
    Some(String::from_utf8_lossy(name).into_owned())
}

fn gone(target: &mut Target<'_>, _: &mut StdRng) -> Option<String> {
    target.files.journal.take().map(|journal| format!("{} bytes", journal.len()))
}
