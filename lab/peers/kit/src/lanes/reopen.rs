//! reopen_wal: opening a database that a killed process left with a WAL of 200 MB, up to the answer of a first query.
//!
//! The sample is one open with its query. The WAL is made here, frame by frame, the same for every peer: all pages of
//! the database, again and again, which is what a process leaves behind that never checkpoints. The database file
//! itself misses the newest row, so that only who reads the WAL finds it. The files are in the page cache.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::payloads::{self, BLOBS, INSERT, Payload, SELECT};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::{Peer, Table};
use crate::wal;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "open and a first query, beside a WAL of 200 MB that a killed process left";
    vec![Lane::new("tails", "reopen_wal", about, "opens", run::<P>)]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let rows = i64::try_from(trial.size(2_000, 100))?;
    let (wal_bytes, opens) = (trial.size(200_000_000, 4_000_000), trial.size(10, 2));
    let (base, left) = (trial.dir.join("base"), trial.dir.join("left-wal"));
    let peer = trial.open::<P>().await?;
    peer.execute(BLOBS, &[]).await?;
    let mut payload = Payload::new();
    for id in 1..rows {
        peer.execute(INSERT, &[id.into(), payload.of(id).into()]).await?;
    }
    peer.close().await?;
    fs::copy(trial.database(), &base)?;
    let peer = trial.open::<P>().await?;
    peer.execute(INSERT, &[rows.into(), payload.of(rows).into()]).await?;
    peer.close().await?;
    write_wal(&trial.database(), &left, wal_bytes)?;
    let mut timing = Timing::begin()?;
    timing.pause()?;
    for _ in 0..opens {
        restore(&trial, &base, &left)?;
        timing.resume()?;
        let first = async {
            let peer = trial.open::<P>().await?;
            let row = peer.query::<(i64, Vec<u8>)>(SELECT, &[rows.into()]).await?;
            Ok((peer, row))
        };
        let (peer, row) = timing.time(first).await?;
        timing.pause()?;
        ensure!(
            row.records()? == [(rows, payload.of(rows).to_vec())],
            "the newest row is in the WAL and was not found"
        );
        payloads::expect(&peer, rows).await?;
        peer.close().await?;
    }
    let mut measured = timing.end(opens as u64)?;
    measured.extra("wal_bytes", wal::length(&left));
    Ok(measured)
}

/// What a killed process leaves: the database and the WAL. The wal-index is made anew by who opens them.
fn restore(trial: &Trial, base: &Path, left: &Path) -> Result<()> {
    let beside = |suffix: &str| PathBuf::from(format!("{}{suffix}", trial.database().display()));
    if beside("-shm").exists() {
        fs::remove_file(beside("-shm"))?;
    }
    fs::copy(base, trial.database())?;
    fs::copy(left, beside("-wal"))?;
    Ok(())
}

const MAGIC: u32 = 0x377f_0682;
const VERSION: u32 = 3_007_000;
const SALTS: [u32; 2] = [0x1234_5678, 0x9abc_def0];

/// A WAL of at least so many bytes with all pages of the closed database, in its order, again and again
/// (<https://sqlite.org/fileformat2.html#walformat>).
fn write_wal(database: &Path, wal: &Path, bytes: usize) -> Result<()> {
    let content = fs::read(database)?;
    let size = content.get(16..18).context("it is no database")?;
    let page = match u16::from_be_bytes([size[0], size[1]]) {
        1 => 65_536,
        size => usize::from(size),
    };
    let pages = u32::try_from(content.len() / page)?;
    let mut out = BufWriter::new(File::create(wal)?);
    let header = words(&[MAGIC, VERSION, u32::try_from(page)?, 0, SALTS[0], SALTS[1]]);
    let mut sum = checksum([0, 0], &header);
    out.write_all(&header)?;
    out.write_all(&words(&sum))?;
    for _ in 0..bytes.div_ceil(content.len()) {
        for (number, data) in (1..).zip(content.chunks_exact(page)) {
            // The last page ends a transaction: its frame tells how long the database is.
            let start = words(&[number, if number == pages { pages } else { 0 }]);
            sum = checksum(checksum(sum, &start), data);
            out.write_all(&start)?;
            out.write_all(&words(&[SALTS[0], SALTS[1], sum[0], sum[1]]))?;
            out.write_all(data)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Big-endian, as all numbers of a WAL.
fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Over little-endian words, which the magic number asks for.
fn checksum(sum: [u32; 2], bytes: &[u8]) -> [u32; 2] {
    let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    bytes.chunks_exact(8).fold(sum, |[first, second], pair| {
        let first = first.wrapping_add(word(&pair[..4])).wrapping_add(second);
        [first, second.wrapping_add(word(&pair[4..])).wrapping_add(first)]
    })
}
