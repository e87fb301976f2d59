//! Detecting a second SQLite library in this process that has the same file open.
//!
//! Owns: reading the process' list of mappings. One SQLite library maps each part of a wal-index once, however many
//! connections it has; so two mappings of the same part mean two libraries. Linux only. Reading the list takes
//! milliseconds in a large process, so callers run it only where blocking is allowed. Invariant: it only reads. Leaves
//! out: the reaction to a second library.

use std::fs::File;
use std::io::{self, Read};

/// What the mappings of the process show for one wal-index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mapped {
    /// Mapped once, as expected.
    Once,
    /// The file has no name any more: it was deleted or renamed over while it was mapped.
    Deleted,
    /// A second library has it mapped too. Contains the paths of the libraries that may be the second one.
    Twice(Vec<String>),
    /// The wal-index is not in the list, or the list cannot be read.
    Unknown,
}

/// Returns the mappings of the process as text; empty where there is no such list.
pub(crate) fn mappings() -> String {
    if cfg!(target_os = "linux") { read_mappings().unwrap_or_default() } else { String::new() }
}

fn read_mappings() -> io::Result<String> {
    // The size of this file is not known before it is read, so a small buffer would cost many reads.
    let mut text = String::with_capacity(64 * 1024);
    File::open("/proc/self/maps")?.read_to_string(&mut text)?;
    Ok(text)
}

struct Mapping<'a> {
    start: usize,
    end: usize,
    offset: u64,
    device: &'a str,
    inode: u64,
    path: &'a str,
}

impl Mapping<'_> {
    fn overlaps(&self, other: &Mapping<'_>) -> bool {
        let end = |mapping: &Mapping<'_>| mapping.offset + (mapping.end - mapping.start) as u64;
        self.offset < end(other) && other.offset < end(self)
    }
}

/// Parses one line (<https://man7.org/linux/man-pages/man5/proc_pid_maps.5.html>).
fn parse(line: &str) -> Option<Mapping<'_>> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let (_rights, offset, device, rest) = (words.next()?, words.next()?, words.next()?, words.next()?);
    Some(Mapping {
        start: usize::from_str_radix(start, 16).ok()?,
        end: usize::from_str_radix(end, 16).ok()?,
        offset: u64::from_str_radix(offset, 16).ok()?,
        device,
        inode: rest.parse().ok()?,
        path: words.next().unwrap_or_default().trim_start(),
    })
}

fn is_index(mapping: &Mapping<'_>) -> bool {
    mapping.inode != 0 && mapping.path.trim_end_matches(DELETED).ends_with("-shm")
}

/// Returns true if any library of this process has mapped a wal-index with this inode number. The device is not
/// compared, so it may be another wal-index.
pub(crate) fn is_mapped(mappings: &str, inode: u64) -> bool {
    mappings.lines().filter_map(parse).any(|mapping| mapping.inode == inode && is_index(&mapping))
}

/// Returns what `mappings` show for the wal-index that this crate's SQLite has mapped at `address`.
pub(crate) fn mapped(mappings: &str, address: usize) -> Mapped {
    let all = || mappings.lines().filter_map(parse);
    let Some(ours) = all().find(|mapping| (mapping.start..mapping.end).contains(&address)).filter(is_index) else {
        return Mapped::Unknown;
    };
    let same_file = |mapping: &Mapping<'_>| mapping.device == ours.device && mapping.inode == ours.inode;
    if all().any(|mapping| mapping.start != ours.start && same_file(&mapping) && mapping.overlaps(&ours)) {
        return Mapped::Twice(libraries(all()));
    }
    if ours.path.ends_with(DELETED) { Mapped::Deleted } else { Mapped::Once }
}

const DELETED: &str = " (deleted)";

/// Loaded files whose names contain `sqlite`.
fn libraries<'a>(mappings: impl Iterator<Item = Mapping<'a>>) -> Vec<String> {
    let file_name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let is_library = |path: &str| {
        let name = file_name(path);
        name.contains("sqlite") && (name.contains(".so") || name.contains(".node"))
    };
    let mut found: Vec<String> =
        mappings.map(|mapping| mapping.path.to_owned()).filter(|path| is_library(path)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "\
7f0000000000-7f0000008000 rw-s 00000000 fe:00 77 /d/a.db-shm
7f0000010000-7f0000020000 rw-s 00000000 fe:00 88 /d/b c.db-shm
7f0000020000-7f0000021000 r-xp 00000000 fe:00 99 /usr/lib/libsqlite3.so.0.8.6
7f0000030000-7f0000038000 rw-p 00000000 00:00 0 ";

    #[test]
    fn a_wal_index_mapped_once_is_as_it_should_be() {
        assert_eq!(mapped(OURS, 0x7f00_0000_0010), Mapped::Once);
        assert_eq!(mapped(OURS, 0x7f00_0001_0000), Mapped::Once);
        let parts = format!("{OURS}\n7f0000050000-7f0000058000 rw-s 00008000 fe:00 77 /d/a.db-shm");
        assert_eq!(mapped(&parts, 0x7f00_0000_0000), Mapped::Once, "the next part of the same file");
        assert!(is_mapped(OURS, 77) && !is_mapped(OURS, 99) && !is_mapped(OURS, 0), "a library is no wal-index");
    }

    #[test]
    fn the_same_part_mapped_twice_is_a_second_library() {
        let second = format!("{OURS}\n7f0000050000-7f0000058000 r--s 00000000 fe:00 77 /d/a.db-shm");
        let libraries = vec!["/usr/lib/libsqlite3.so.0.8.6".to_owned()];
        assert_eq!(mapped(&second, 0x7f00_0000_0000), Mapped::Twice(libraries));
        assert_eq!(mapped(&second, 0x7f00_0001_0000), Mapped::Once, "another file");
        let merged = format!("{OURS}\n7f0000060000-7f0000070000 rw-s 00000000 fe:00 77 /d/a.db-shm");
        assert!(matches!(mapped(&merged, 0x7f00_0000_0000), Mapped::Twice(_)), "parts side by side are shown as one");
    }

    #[test]
    fn a_wal_index_without_a_name_is_seen_and_an_unknown_address_says_nothing() {
        let deleted = OURS.replace("/d/a.db-shm", "/d/a.db-shm (deleted)");
        assert_eq!(mapped(&deleted, 0x7f00_0000_0000), Mapped::Deleted);
        for address in [0, 0x7f00_0002_0000, 0x7f00_0003_0000] {
            assert_eq!(mapped(OURS, address), Mapped::Unknown, "{address:#x}");
        }
        assert_eq!(mapped("", 0x7f00_0000_0000), Mapped::Unknown);
    }
}
