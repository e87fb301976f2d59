//! Detecting a second SQLite library in this process that has the same file open.
//!
//! Owns: reading the process' list of mappings. One SQLite library maps each part of a wal-index once, however many
//! connections it has; so two mappings of the same part mean two libraries. Linux only. Reading the list takes
//! milliseconds in a large process, so callers run it only where blocking is allowed. Invariants: it only reads; callers that
//! ask at the same time share one list, which was read after they asked. Leaves out: the reaction to a second library.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Condvar, PoisonError};
use std::time::Instant;

use flatwater_sqlite::PerProcess;

/// The mappings of wal-indexes that a forked child inherited: its parent's, which are no second library's.
static INHERITED: PerProcess<Option<Vec<String>>> = PerProcess::new(|| None);

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

/// The wal-indexes that the process has mapped.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    /// When reading the list began.
    began: Option<Instant>,
    /// In the order of their addresses.
    all: Vec<Mapping>,
    /// Those of each file, by its inode number, as places in `all`.
    by_inode: HashMap<u64, Vec<usize>>,
    /// Loaded files whose names contain `sqlite`.
    libraries: Vec<String>,
}

/// Returns the mappings of the process; empty where there is no such list. Blocks.
pub(crate) fn mappings() -> Arc<Mappings> {
    static LIST: SharedValue<Mappings> = SharedValue::new();
    let read = || {
        let began = Instant::now();
        let text = read_mappings().unwrap_or_default();
        match &**INHERITED.lock() {
            Some(inherited) if !inherited.is_empty() => Mappings::parse(&without(&text, inherited), began),
            _ => Mappings::parse(&text, began),
        }
    };
    if cfg!(target_os = "linux") { LIST.read(read) } else { Arc::default() }
}

/// A value that takes long to read, and that those who ask for it at the same time share.
struct SharedValue<T: 'static> {
    last: PerProcess<Last<T>>,
    /// Signalled when the value was read.
    ended: Condvar,
}

struct Last<T> {
    /// How many readings have begun, and the number of the one that ended last.
    begun: u64,
    ended: u64,
    is_being_read: bool,
    value: Option<Arc<T>>,
}

impl<T: Send + Sync + 'static> SharedValue<T> {
    const fn new() -> Self {
        let none = || Last { begun: 0, ended: 0, is_being_read: false, value: None };
        Self { last: PerProcess::new(none), ended: Condvar::new() }
    }

    /// Returns the value as it was read after this call began. `read` does not panic.
    fn read(&self, read: impl Fn() -> T) -> Arc<T> {
        let mut last = self.last.lock();
        // One that is being read now may have begun before what the caller wants to see.
        let wanted = last.begun + 1;
        loop {
            match &last.value {
                Some(value) if last.ended >= wanted => return value.clone(),
                _ if last.is_being_read => last = self.ended.wait(last).unwrap_or_else(PoisonError::into_inner),
                _ => {
                    last.is_being_read = true;
                    last.begun += 1;
                    let number = last.begun;
                    drop(last);
                    let value = Arc::new(read());
                    last = self.last.lock();
                    last.is_being_read = false;
                    last.ended = number;
                    last.value = Some(value);
                    self.ended.notify_all();
                }
            }
        }
    }
}

/// Called in a forked child before it opens a database: what is mapped now is its parent's.
pub(crate) fn note_inherited() {
    let mut inherited = INHERITED.lock();
    if inherited.is_none() {
        let all = if cfg!(target_os = "linux") { read_mappings().unwrap_or_default() } else { String::new() };
        let is_index = |line: &&str| parse(line).is_some_and(|(mapping, path)| is_index(&mapping, path));
        **inherited = Some(all.lines().filter(is_index).map(|line| key(line).to_owned()).collect());
    }
}

/// The part of a line that stays the same when the file is deleted.
fn key(line: &str) -> &str {
    line.strip_suffix(DELETED).unwrap_or(line)
}

fn without(all: &str, inherited: &[String]) -> String {
    let inherited: HashSet<&str> = inherited.iter().map(String::as_str).collect();
    all.lines().filter(|line| !inherited.contains(key(line))).flat_map(|line| [line, "\n"]).collect()
}

fn read_mappings() -> io::Result<String> {
    // The size of this file is not known before it is read, so a small buffer would cost many reads.
    let mut text = String::with_capacity(64 * 1024);
    File::open("/proc/self/maps")?.read_to_string(&mut text)?;
    Ok(text)
}

#[derive(Debug)]
struct Mapping {
    start: usize,
    end: usize,
    offset: u64,
    device: Box<str>,
    inode: u64,
    is_deleted: bool,
}

impl Mapping {
    fn overlaps(&self, other: &Self) -> bool {
        let end = |mapping: &Self| mapping.offset + (mapping.end - mapping.start) as u64;
        self.offset < end(other) && other.offset < end(self)
    }
}

const DELETED: &str = " (deleted)";

/// Parses one line (<https://man7.org/linux/man-pages/man5/proc_pid_maps.5.html>). Returns the mapping and its path.
fn parse(line: &str) -> Option<(Mapping, &str)> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let (_rights, offset, device, rest) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let path = words.next().unwrap_or_default().trim_start();
    let mapping = Mapping {
        start: usize::from_str_radix(start, 16).ok()?,
        end: usize::from_str_radix(end, 16).ok()?,
        offset: u64::from_str_radix(offset, 16).ok()?,
        device: device.into(),
        inode: rest.parse().ok()?,
        is_deleted: path.ends_with(DELETED),
    };
    Some((mapping, path.trim_end_matches(DELETED)))
}

fn is_index(mapping: &Mapping, path: &str) -> bool {
    mapping.inode != 0 && path.ends_with("-shm")
}

fn is_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    name.contains("sqlite") && (name.contains(".so") || name.contains(".node"))
}

impl Mappings {
    pub(super) fn parse(text: &str, began: Instant) -> Self {
        let mut mappings = Self { began: Some(began), ..Self::default() };
        for (mapping, path) in text.lines().filter_map(parse) {
            if is_library(path) {
                mappings.libraries.push(path.to_owned());
            } else if is_index(&mapping, path) {
                mappings.all.push(mapping);
            }
        }
        mappings.libraries.sort_unstable();
        mappings.libraries.dedup();
        mappings.all.sort_unstable_by_key(|mapping| mapping.start);
        for (at, mapping) in mappings.all.iter().enumerate() {
            mappings.by_inode.entry(mapping.inode).or_default().push(at);
        }
        mappings
    }

    /// Returns true if the list shows what was mapped at that time, and is mapped still.
    pub(super) fn was_read_since(&self, mapped: Instant) -> bool {
        self.began.is_some_and(|began| mapped <= began)
    }

    /// Returns true if any library of this process has mapped a wal-index with this inode number. The device is not
    /// compared, so it may be another wal-index.
    pub(super) fn has(&self, inode: u64) -> bool {
        self.by_inode.contains_key(&inode)
    }

    /// Returns what the list shows for the wal-index that this crate's SQLite has mapped at `address`.
    pub(super) fn at(&self, address: usize) -> Mapped {
        let before = self.all.partition_point(|mapping| mapping.start <= address);
        let ours = before.checked_sub(1).map(|at| &self.all[at]).filter(|mapping| address < mapping.end);
        let Some(ours) = ours else { return Mapped::Unknown };
        let mut others = self.by_inode.get(&ours.inode).into_iter().flatten().map(|at| &self.all[*at]);
        let same_part =
            |other: &&Mapping| other.start != ours.start && other.device == ours.device && other.overlaps(ours);
        match others.find(same_part) {
            Some(_) => Mapped::Twice(self.libraries.clone()),
            None if ours.is_deleted => Mapped::Deleted,
            None => Mapped::Once,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Barrier, Mutex, mpsc};

    use super::*;

    fn at(list: &str, address: usize) -> Mapped {
        Mappings::parse(list, Instant::now()).at(address)
    }

    const OURS: &str = "\
7f0000000000-7f0000008000 rw-s 00000000 fe:00 77 /d/a.db-shm
7f0000010000-7f0000020000 rw-s 00000000 fe:00 88 /d/b c.db-shm
7f0000020000-7f0000021000 r-xp 00000000 fe:00 99 /usr/lib/libsqlite3.so.0.8.6
7f0000030000-7f0000038000 rw-p 00000000 00:00 0 ";

    #[test]
    fn a_wal_index_mapped_once_is_as_it_should_be() {
        assert_eq!(at(OURS, 0x7f00_0000_0010), Mapped::Once);
        assert_eq!(at(OURS, 0x7f00_0001_0000), Mapped::Once);
        let parts = format!("{OURS}\n7f0000050000-7f0000058000 rw-s 00008000 fe:00 77 /d/a.db-shm");
        assert_eq!(at(&parts, 0x7f00_0000_0000), Mapped::Once, "the next part of the same file");
        let all = Mappings::parse(OURS, Instant::now());
        assert!(all.has(77) && !all.has(99) && !all.has(0), "a library is no wal-index");
    }

    #[test]
    fn the_same_part_mapped_twice_is_a_second_library() {
        let second = format!("{OURS}\n7f0000050000-7f0000058000 r--s 00000000 fe:00 77 /d/a.db-shm");
        let libraries = vec!["/usr/lib/libsqlite3.so.0.8.6".to_owned()];
        assert_eq!(at(&second, 0x7f00_0000_0000), Mapped::Twice(libraries));
        assert_eq!(at(&second, 0x7f00_0001_0000), Mapped::Once, "another file");
        let merged = format!("{OURS}\n7f0000060000-7f0000070000 rw-s 00000000 fe:00 77 /d/a.db-shm");
        assert!(matches!(at(&merged, 0x7f00_0000_0000), Mapped::Twice(_)), "parts side by side are shown as one");
    }

    #[test]
    fn what_a_child_inherited_is_no_second_library() {
        let own = "7f0000050000-7f0000058000 rw-s 00000000 fe:00 77 /d/a.db-shm";
        let inherited = OURS.lines().next().unwrap().to_owned();
        let all = format!("{OURS}\n{own}");
        assert!(matches!(at(&all, 0x7f00_0005_0000), Mapped::Twice(_)));
        for all in [all.clone(), all.replace("/d/a.db-shm\n", "/d/a.db-shm (deleted)\n")] {
            assert_eq!(at(&without(&all, std::slice::from_ref(&inherited)), 0x7f00_0005_0000), Mapped::Once);
        }
    }

    #[test]
    fn a_wal_index_without_a_name_is_seen_and_an_unknown_address_says_nothing() {
        let deleted = OURS.replace("/d/a.db-shm", "/d/a.db-shm (deleted)");
        assert_eq!(at(&deleted, 0x7f00_0000_0000), Mapped::Deleted);
        for address in [0, 0x7f00_0002_0000, 0x7f00_0003_0000] {
            assert_eq!(at(OURS, address), Mapped::Unknown, "{address:#x}");
        }
        assert_eq!(at("", 0x7f00_0000_0000), Mapped::Unknown);
    }

    #[test]
    fn those_who_ask_while_it_is_read_share_the_next_reading() {
        static SHARED: SharedValue<u32> = SharedValue::new();
        static READINGS: AtomicU32 = AtomicU32::new(0);
        let (begins, has_begun) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let ends = Mutex::new(Some(ends));
        let first = std::thread::spawn(move || {
            *SHARED.read(|| {
                let _ = begins.send(());
                let _ = ends.lock().unwrap().take().map(|ends| ends.recv());
                READINGS.fetch_add(1, Ordering::SeqCst) + 1
            })
        });
        has_begun.recv().unwrap();
        let asks = Arc::new(Barrier::new(21));
        let others: Vec<_> = (0..20)
            .map(|_| {
                let asks = asks.clone();
                std::thread::spawn(move || {
                    asks.wait();
                    *SHARED.read(|| READINGS.fetch_add(1, Ordering::SeqCst) + 1)
                })
            })
            .collect();
        asks.wait();
        end.send(()).unwrap();
        assert_eq!(first.join().unwrap(), 1);
        let seen: Vec<_> = others.into_iter().map(|other| other.join().unwrap()).collect();
        assert!(seen.iter().all(|number| *number > 1), "what was read before they asked is no answer: {seen:?}");
    }
}
