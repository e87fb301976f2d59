//! The entries that the recorder wrote, in their true order.
//!
//! Owns: reading the log. Leaves out: what the entries do to a disk (`disk`).

use std::ops::Range;
use std::path::Path;

use crate::finding::Finding;

/// The number of the recorded directory.
pub(crate) const DIRECTORY: u32 = u32::MAX;

pub(crate) struct Log {
    bytes: Vec<u8>,
    pub(crate) entries: Vec<Entry>,
}

/// One event. Files have numbers: a file that is created again under an old name is another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A file that existed before.
    Met {
        file: u32,
        name: String,
    },
    Create {
        file: u32,
        name: String,
    },
    Write {
        file: u32,
        at: usize,
        data: Range<usize>,
    },
    Truncate {
        file: u32,
        to: usize,
    },
    SyncBegin {
        file: u32,
        sync: u64,
    },
    SyncEnd {
        file: u32,
        sync: u64,
    },
    SyncFailed {
        file: u32,
        sync: u64,
    },
    /// The sync reported the failure of an earlier one.
    SyncTold {
        file: u32,
        sync: u64,
    },
    Unlink {
        name: String,
    },
    /// A text from the process itself.
    Mark(String),
}

impl Log {
    pub(crate) fn read(path: &Path) -> Result<Self, Finding> {
        Self::of(std::fs::read(path)?).ok_or_else(|| Finding::new("the log of the recorder cannot be understood"))
    }

    /// Parses a log; `None` if the bytes are not one.
    pub(crate) fn of(bytes: Vec<u8>) -> Option<Self> {
        let (mut entries, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let head = bytes.get(at..at + 17)?;
            let file = u32::from_ne_bytes(head[1..5].try_into().ok()?);
            let number = u64::from_ne_bytes(head[5..13].try_into().ok()?);
            let length = u32::from_ne_bytes(head[13..17].try_into().ok()?) as usize;
            let data = at + 17..at + 17 + length;
            let text = || Some(String::from_utf8_lossy(bytes.get(data.clone())?).into_owned());
            entries.push(match head[0] {
                1 => Entry::Met { file, name: text()? },
                2 => Entry::Create { file, name: text()? },
                3 => Entry::Write { file, at: usize::try_from(number).ok()?, data: data.clone() },
                4 => Entry::Truncate { file, to: usize::try_from(number).ok()? },
                5 => Entry::SyncBegin { file, sync: number },
                6 => Entry::SyncEnd { file, sync: number },
                7 => Entry::SyncFailed { file, sync: number },
                8 => Entry::Unlink { name: text()? },
                9 => Entry::Mark(text()?),
                10 => Entry::SyncTold { file, sync: number },
                _ => return None,
            });
            at = data.end;
        }
        (at == bytes.len()).then_some(Self { bytes, entries })
    }

    /// Returns the bytes of a write.
    pub(crate) fn data(&self, range: &Range<usize>) -> &[u8] {
        &self.bytes[range.clone()]
    }
}
