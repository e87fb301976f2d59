//! Damage to the WAL (<https://sqlite.org/fileformat2.html#the_write_ahead_log>): wrong salts and checksums, frames
//! that are torn or name wrong pages, the WAL of another database.

use rand::rngs::StdRng;
use rand::{Rng, RngExt};

use super::{Damage, Target};
use crate::acts::strangers::stranger::{be32, put};

pub(super) const ALL: &[Damage] = &[
    Damage { name: "WAL: wrong salts", inflict: salts },
    Damage { name: "WAL: a field of its header", inflict: header },
    Damage { name: "WAL: a field of a frame", inflict: frame_field },
    Damage { name: "WAL: a wrong page number under right checksums", inflict: signed_page_number },
    Damage { name: "WAL: a wrong size of the database under right checksums", inflict: signed_size },
    Damage { name: "WAL: noise in a page under right checksums", inflict: signed_noise },
    Damage { name: "WAL: cut off", inflict: cut },
    Damage { name: "WAL: a torn frame", inflict: torn },
    Damage { name: "WAL: of another database", inflict: foreign },
    Damage { name: "WAL: of another page size", inflict: other_page_size },
    Damage { name: "WAL: garbage", inflict: garbage },
    Damage { name: "WAL: gone", inflict: gone },
    Damage { name: "-shm: stale", inflict: stale_index },
];

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// Returns the page size of the WAL, and the number of its complete frames.
fn shape(wal: &[u8]) -> Option<(usize, usize)> {
    let size = usize::try_from(be32(wal, 8)).ok().filter(|size| (512..=65536).contains(size))?;
    let frames = wal.len().checked_sub(HEADER)? / (size + FRAME_HEADER);
    (frames > 0).then_some((size, frames))
}

/// Returns the offset of a random frame.
fn any_frame(wal: &[u8], rng: &mut StdRng) -> Option<usize> {
    let (size, frames) = shape(wal)?;
    Some(HEADER + rng.random_range(0..frames) * (size + FRAME_HEADER))
}

/// Recomputes every checksum, so that all frames are valid.
fn sign(wal: &mut [u8]) -> Option<()> {
    let (size, frames) = shape(wal)?;
    let big = be32(wal, 0) & 1 == 1;
    let mut sum = checksum(&wal[..24], (0, 0), big);
    put_sum(wal, 24, sum);
    for frame in 0..frames {
        let at = HEADER + frame * (size + FRAME_HEADER);
        sum = checksum(&wal[at..at + 8], sum, big);
        sum = checksum(&wal[at + FRAME_HEADER..at + FRAME_HEADER + size], sum, big);
        put_sum(wal, at + 16, sum);
    }
    Some(())
}

fn put_sum(wal: &mut [u8], at: usize, (first, second): (u32, u32)) {
    put(wal, at, &first.to_be_bytes());
    put(wal, at + 4, &second.to_be_bytes());
}

fn checksum(bytes: &[u8], (mut first, mut second): (u32, u32), big: bool) -> (u32, u32) {
    let word = |bytes: &[u8]| {
        let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    };
    for pair in bytes.chunks_exact(8) {
        first = first.wrapping_add(word(&pair[..4])).wrapping_add(second);
        second = second.wrapping_add(word(&pair[4..])).wrapping_add(first);
    }
    (first, second)
}

fn salts(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let wal = target.files.wal.as_mut()?;
    let at = if rng.random_bool(0.5) { 16 } else { any_frame(wal, rng)? + 8 };
    put(wal, at, &rng.random::<u64>().to_be_bytes());
    Some(format!("at byte {at}"))
}

fn header(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let wal = target.files.wal.as_mut()?;
    let edges = [0, 1, 512, 1000, 4096, 65536, 0x377f_0682, 0x377f_0683, u32::MAX];
    let (at, new) = (4 * rng.random_range(0..8), edges[rng.random_range(0..edges.len())]);
    put(wal, at, &new.to_be_bytes());
    // With correct checksums SQLite trusts the header.
    let signed = rng.random_bool(0.5) && sign(wal).is_some();
    Some(format!("at byte {at} = {new:#x}, signed: {signed}"))
}

fn frame_field(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let wal = target.files.wal.as_mut()?;
    let at = any_frame(wal, rng)? + 4 * rng.random_range(0..6);
    let new: u32 = [0, 1, u32::MAX, rng.random()][rng.random_range(0..4)];
    put(wal, at, &new.to_be_bytes());
    Some(format!("at byte {at} = {new:#x}"))
}

fn signed_page_number(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let wal = target.files.wal.as_mut()?;
    let at = any_frame(wal, rng)?;
    let new: u32 = [0, 1, 2, 10_000, 0x7fff_ffff, u32::MAX][rng.random_range(0..6)];
    put(wal, at, &new.to_be_bytes());
    sign(wal)?;
    Some(format!("the frame at byte {at} is page {new}"))
}

fn signed_size(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let wal = target.files.wal.as_mut()?;
    let at = any_frame(wal, rng)?;
    let new: u32 = [0, 1, 2, 10_000, 0x7fff_ffff, u32::MAX][rng.random_range(0..6)];
    put(wal, at + 4, &new.to_be_bytes());
    sign(wal)?;
    Some(format!("the frame at byte {at} ends with {new} pages"))
}

fn signed_noise(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let wal = target.files.wal.as_mut()?;
    let at = any_frame(wal, rng)? + FRAME_HEADER + rng.random_range(0..400);
    rng.fill_bytes(&mut wal[at..at + 20]);
    sign(wal)?;
    Some(format!("20 bytes at byte {at}"))
}

fn cut(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let wal = target.files.wal.as_mut()?;
    let whole = any_frame(wal, rng)?;
    let length = if rng.random_bool(0.3) { rng.random_range(0..100) } else { whole + rng.random_range(0..40) };
    wal.truncate(length);
    Some(format!("{length} bytes"))
}

fn torn(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let wal = target.files.wal.as_mut()?;
    let (size, _) = shape(wal)?;
    let at = any_frame(wal, rng)? + FRAME_HEADER + size / 2;
    wal[at..at + size / 2].fill(0);
    Some(format!("zeros from byte {at}"))
}

fn foreign(target: &mut Target<'_>, _: &mut StdRng) -> Option<String> {
    let size = target.files.page_size();
    let other = target.others.iter().find(|other| other.files.wal.is_some() && other.files.page_size() == size)?;
    target.files.wal.clone_from(&other.files.wal);
    Some(other.about.clone())
}

fn other_page_size(target: &mut Target<'_>, _: &mut StdRng) -> Option<String> {
    let size = target.files.page_size();
    let other = target.others.iter().find(|other| other.files.wal.is_some() && other.files.page_size() != size);
    if let Some(other) = other {
        target.files.wal.clone_from(&other.files.wal);
        return Some(other.about.clone());
    }
    let wal = target.files.wal.as_mut()?;
    let new: u32 = if size == 512 { 1024 } else { 512 };
    put(wal, 8, &new.to_be_bytes());
    sign(wal)?;
    Some(format!("{new} bytes"))
}

fn garbage(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let mut garbage = vec![0; rng.random_range(1..10_000)];
    rng.fill_bytes(&mut garbage);
    if rng.random_bool(0.5) {
        put(&mut garbage, 0, &0x377f_0682_u32.to_be_bytes());
    }
    let detail = format!("{} bytes", garbage.len());
    target.files.wal = Some(garbage);
    Some(detail)
}

fn gone(target: &mut Target<'_>, _: &mut StdRng) -> Option<String> {
    target.files.wal.take().map(|wal| format!("{} bytes", wal.len()))
}

/// Writes the wal-index of another database, or this one with another number of frames.
fn stale_index(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    if let Some(other) = target.others.iter().find_map(|other| other.files.shm.clone()).filter(|_| rng.random_bool(0.5))
    {
        target.files.shm = Some(other);
        return Some("of another database".into());
    }
    let shm = target.files.shm.as_mut()?;
    let frames: u32 = rng.random_range(0..50);
    // Both copies of the header.
    put(shm, 16, &frames.to_le_bytes());
    put(shm, 48 + 16, &frames.to_le_bytes());
    Some(format!("{frames} frames"))
}
