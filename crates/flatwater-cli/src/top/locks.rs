//! Who has a lock on a file (<https://man7.org/linux/man-pages/man5/proc_locks.5.html>).
//!
//! Owns: reading the kernel's list. Invariant: locks of descriptors, which have no process, are left out. Leaves out: what a lock means.

use std::path::Path;

/// A lock on bytes of a file, from one to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) process: i64,
    pub(super) is_write: bool,
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Held {
    pub(super) fn covers(&self, byte: u64) -> bool {
        (self.from..=self.to).contains(&byte)
    }
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
        let [_, "POSIX", _, kind, process, of, from, to] = words[..] else { return None };
        let to = if to == "EOF" { u64::MAX } else { to.parse().ok()? };
        let held = Held { process: process.parse().ok()?, is_write: kind == "WRITE", from: from.parse().ok()?, to };
        (of == file && held.process > 0).then_some(held)
    };
    list.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_processes_on_the_file_are_found() {
        let list = "\
1: POSIX  ADVISORY  READ  12 fe:00:77 124 124
1: -> POSIX  ADVISORY  WRITE 13 fe:00:77 120 120
2: OFDLCK ADVISORY  READ  -1 fe:00:77 128 128
3: POSIX  ADVISORY  WRITE 14 fe:00:78 0 EOF
4: POSIX  ADVISORY  WRITE 15 fe:00:77 0 EOF";
        let held = [
            Held { process: 12, is_write: false, from: 124, to: 124 },
            Held { process: 15, is_write: true, from: 0, to: u64::MAX },
        ];
        assert_eq!(parse(list, "fe:00:77"), held);
    }
}
