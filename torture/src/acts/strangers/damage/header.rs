//! Damage to the first 100 bytes, field by field (<https://sqlite.org/fileformat2.html#the_database_header>).

use rand::RngExt;
use rand::rngs::StdRng;

use super::{Damage, Target};
use crate::acts::strangers::stranger::put;

pub(super) const ALL: &[Damage] = &[
    Damage { name: "header: the magic string", inflict: |t, r| field(t, r, 0, 16) },
    Damage { name: "header: page size", inflict: page_size },
    Damage { name: "header: file format versions", inflict: versions },
    Damage { name: "header: reserved bytes", inflict: |t, r| field(t, r, 20, 1) },
    Damage { name: "header: payload fractions", inflict: |t, r| field(t, r, 21, 3) },
    Damage { name: "header: change counter", inflict: |t, r| field(t, r, 24, 4) },
    Damage { name: "header: size in pages", inflict: |t, r| field(t, r, 28, 4) },
    Damage { name: "header: first free page", inflict: |t, r| field(t, r, 32, 4) },
    Damage { name: "header: count of free pages", inflict: |t, r| field(t, r, 36, 4) },
    Damage { name: "header: schema cookie", inflict: |t, r| field(t, r, 40, 4) },
    Damage { name: "header: schema format", inflict: |t, r| field(t, r, 44, 4) },
    Damage { name: "header: largest root page", inflict: |t, r| field(t, r, 52, 4) },
    Damage { name: "header: encoding", inflict: |t, r| field(t, r, 56, 4) },
    Damage { name: "header: incremental vacuum", inflict: |t, r| field(t, r, 64, 4) },
    Damage { name: "header: bytes that must be zero", inflict: |t, r| field(t, r, 72, 20) },
    Damage { name: "header: version valid for", inflict: |t, r| field(t, r, 92, 4) },
];

/// Writes a random or extreme number to a field.
fn field(target: &mut Target<'_>, rng: &mut StdRng, at: usize, length: usize) -> Option<String> {
    let pages = u32::try_from(target.files.pages()).ok()?;
    let edges = [0, 1, 2, 3, 5, pages, pages + 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, rng.random()];
    let number: u32 = edges[rng.random_range(0..edges.len())];
    let field = target.files.main.get_mut(at..at + length)?;
    // The last bytes of the number, which are the ones that differ.
    let bytes = number.to_be_bytes();
    put(field, length.saturating_sub(4), &bytes[4 - length.min(4)..]);
    Some(format!("{length} bytes at {at} end in {number:#x}"))
}

fn page_size(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let sizes: [u16; 10] = [0, 1, 2, 256, 511, 512, 1024, 4096, 32768, 0xffff];
    let size = sizes[rng.random_range(0..sizes.len())];
    put(target.files.main.get_mut(..100)?, 16, &size.to_be_bytes());
    Some(format!("{size}"))
}

/// The write and read versions: 1 for a rollback journal, 2 for a WAL, larger values are undefined.
fn versions(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let versions = [rng.random_range(0..5_u8), rng.random_range(0..5)];
    put(target.files.main.get_mut(..100)?, 18, &versions);
    Some(format!("{versions:?}"))
}
