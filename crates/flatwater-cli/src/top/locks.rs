//! Who has a lock on a file (<https://man7.org/linux/man-pages/man5/proc_locks.5.html>).
//!
//! Owns: reading the kernel's list. Invariant: a request that waits holds nothing. Leaves out: what a lock means, but for the tickets of
//! Flatwater's turns.

use std::path::Path;

/// A lock on bytes of a file, from one to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    /// `None` for a lock of a descriptor, which the kernel tells no process of.
    pub(super) process: Option<i64>,
    pub(super) is_write: bool,
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Held {
    pub(super) fn covers(&self, byte: u64) -> bool {
        (self.from..=self.to).contains(&byte)
    }
}

/// The first byte of a ticket, in the file of the turns.
const TICKETS: u64 = 8192;

/// Returns how many processes are in line to write, or have their turn, by the locks of the file of the turns.
pub(super) fn in_line(held: &[Held]) -> usize {
    held.iter().filter(|lock| lock.is_write && lock.process.is_none() && lock.from >= TICKETS).count()
}

#[cfg(target_os = "linux")]
pub(super) fn held_on(path: &Path) -> std::io::Result<Vec<Held>> {
    use std::os::unix::fs::MetadataExt;

    let metadata = path.metadata()?;
    let device = metadata.dev();
    let file = format!("{:02x}:{:02x}:{}", rustix::fs::major(device), rustix::fs::minor(device), metadata.ino());
    Ok(parse(&std::fs::read_to_string("/proc/locks")?, &file))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn held_on(_: &Path) -> std::io::Result<Vec<Held>> {
    Ok(Vec::new())
}

/// Reads the list; a file is written as `MAJOR:MINOR:INODE`. Requests that wait, after `->`, hold nothing.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn parse(list: &str, file: &str) -> Vec<Held> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, of_whom @ ("POSIX" | "OFDLCK"), _, kind, process, of, from, to] = words[..] else { return None };
        let to = if to == "EOF" { u64::MAX } else { to.parse().ok()? };
        let process = if of_whom == "POSIX" { Some(process.parse().ok()?) } else { None };
        let held = Held { process, is_write: kind == "WRITE", from: from.parse().ok()?, to };
        (of == file).then_some(held)
    };
    list.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_on_the_file_are_found() {
        let list = "\
1: POSIX  ADVISORY  READ  12 fe:00:77 124 124
1: -> POSIX  ADVISORY  WRITE 13 fe:00:77 120 120
2: OFDLCK ADVISORY  READ  -1 fe:00:77 128 128
3: POSIX  ADVISORY  WRITE 14 fe:00:78 0 EOF
4: POSIX  ADVISORY  WRITE 15 fe:00:77 0 EOF
5: OFDLCK ADVISORY  WRITE -1 fe:00:77 8200 8200";
        let held = |process, is_write, from, to| Held { process, is_write, from, to };
        let held = [
            held(Some(12), false, 124, 124),
            held(None, false, 128, 128),
            held(Some(15), true, 0, u64::MAX),
            held(None, true, 8200, 8200),
        ];
        assert_eq!(in_line(&held), 1);
        assert_eq!(parse(list, "fe:00:77"), held);
    }
}
