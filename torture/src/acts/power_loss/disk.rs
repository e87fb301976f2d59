//! A model of the disk under the files of a log: what is certainly on it, and what may be.
//!
//! Owns: which changes are still open, that is, not certainly on the disk, after each entry of the log. The model:
//!
//! - A sync that succeeded covers all changes of its file that were recorded before it began.
//! - A sync that failed leaves them open forever: the system discards pages that it could not write, and the next sync
//!   succeeds.
//! - Only a sync of the directory makes the creation or deletion of a name durable.
//!
//! Leaves out: which of the open changes are on the disk (`image`).

use std::collections::BTreeMap;
use std::ops::Range;

use super::log::{DIRECTORY, Entry, Log};

/// A change of a file that its durable content does not contain yet.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// Its entry in the log.
    pub(crate) entry: usize,
    pub(crate) what: What,
    /// The change is on the disk, but follows one that may not be.
    pub(crate) is_sure: bool,
    /// A sync failed to write the change to the disk.
    is_forgotten: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum What {
    Write { at: usize, data: Range<usize> },
    Truncate { to: usize },
}

#[derive(Default)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) durable: Vec<u8>,
    pub(crate) open: Vec<Change>,
}

/// The file of a name, from an entry of the log on.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    entry: usize,
    pub(crate) file: Option<u32>,
}

pub(crate) struct Disk<'a> {
    pub(crate) log: &'a Log,
    /// The number of processed entries.
    pub(crate) taken: usize,
    pub(crate) files: BTreeMap<u32, File>,
    /// The versions of each name. The first one is the durable one.
    pub(crate) names: BTreeMap<String, Vec<Version>>,
    /// For each running sync, the entry at which it began.
    syncs: BTreeMap<u64, usize>,
    /// For each name except the directory, the entry at which the last completed sync of its file began.
    pub(crate) synced_until: BTreeMap<String, usize>,
    /// Syncs that begin after this entry do nothing: a disk that reports false success.
    pub(crate) lies_behind: Option<usize>,
}

impl<'a> Disk<'a> {
    /// Creates a disk that contains the files of `base`. They have temporary numbers until the log names them.
    pub(crate) fn new(log: &'a Log, base: &BTreeMap<String, Vec<u8>>) -> Self {
        let (mut files, mut names) = (BTreeMap::new(), BTreeMap::new());
        for ((name, content), file) in base.iter().zip((0..DIRECTORY).rev()) {
            files.insert(file, File { name: name.clone(), durable: content.clone(), open: Vec::new() });
            names.insert(name.clone(), vec![Version { entry: 0, file: Some(file) }]);
        }
        Self { log, taken: 0, files, names, syncs: BTreeMap::new(), synced_until: BTreeMap::new(), lies_behind: None }
    }

    /// Processes the entries before `entry`.
    pub(crate) fn go_to(&mut self, entry: usize) {
        let log = self.log;
        for at in self.taken..entry.min(log.entries.len()) {
            self.take(at, &log.entries[at]);
            self.taken = at + 1;
        }
    }

    fn take(&mut self, at: usize, entry: &Entry) {
        match entry {
            Entry::Met { file, name } => {
                let last = self.names.get_mut(name).and_then(|versions| versions.last_mut());
                let met = last.and_then(|version| version.file.replace(*file)).and_then(|met| self.files.remove(&met));
                self.files.insert(*file, met.unwrap_or_default());
            }
            Entry::Create { file, name } => {
                self.files.insert(*file, File { name: name.clone(), ..File::default() });
                self.leads(at, name, Some(*file));
            }
            Entry::Unlink { name } => self.leads(at, name, None),
            Entry::Write { file, at: offset, data } => {
                self.changes(at, *file, What::Write { at: *offset, data: data.clone() });
            }
            Entry::Truncate { file, to } => self.changes(at, *file, What::Truncate { to: *to }),
            Entry::SyncBegin { sync, .. } => {
                self.syncs.insert(*sync, at);
            }
            Entry::SyncEnd { file, sync } => {
                let began = self.syncs.remove(sync).unwrap_or(0);
                if self.lies_behind.is_none_or(|entry| began <= entry) {
                    self.synced(*file, began);
                }
            }
            Entry::SyncFailed { file, sync } => {
                let began = self.syncs.remove(sync).unwrap_or(0);
                let file = self.files.entry(*file).or_default();
                file.open
                    .iter_mut()
                    .filter(|change| change.entry < began)
                    .for_each(|change| change.is_forgotten = true);
            }
            // This sync is not relied on. The changes it lost were already lost by the failed sync it reports.
            Entry::SyncTold { sync, .. } => drop(self.syncs.remove(sync)),
            Entry::Mark(_) => {}
        }
    }

    fn changes(&mut self, entry: usize, file: u32, what: What) {
        let change = Change { entry, what, is_sure: false, is_forgotten: false };
        self.files.entry(file).or_default().open.push(change);
    }

    fn leads(&mut self, entry: usize, name: &str, file: Option<u32>) {
        let nowhere = || vec![Version { entry: 0, file: None }];
        self.names.entry(name.to_owned()).or_insert_with(nowhere).push(Version { entry, file });
    }

    fn synced(&mut self, file: u32, began: usize) {
        if file == DIRECTORY {
            for versions in self.names.values_mut() {
                let last = versions.iter().rposition(|version| version.entry < began).unwrap_or(0);
                versions.drain(..last);
            }
            let led_to = |number| self.names.values().flatten().any(|version| version.file == Some(number));
            let gone: Vec<_> = self.files.keys().copied().filter(|number| !led_to(*number)).collect();
            gone.iter().for_each(|number| drop(self.files.remove(number)));
            return;
        }
        let Some(file) = self.files.get_mut(&file) else { return };
        let until = self.synced_until.entry(file.name.clone()).or_default();
        *until = began.max(*until);
        for change in &mut file.open {
            change.is_sure |= change.entry < began && !change.is_forgotten;
        }
        let sure = file.open.iter().take_while(|change| change.is_sure).count();
        for change in file.open.drain(..sure) {
            apply(&mut file.durable, self.log, &change.what);
        }
    }
}

/// Applies a change to a file's content.
pub(crate) fn apply(content: &mut Vec<u8>, log: &Log, what: &What) {
    match what {
        What::Write { at, data } => put(content, *at, log.data(data)),
        What::Truncate { to } => content.resize(*to, 0),
    }
}

/// Writes bytes at an offset, and fills a gap before it with zeros.
pub(crate) fn put(content: &mut Vec<u8>, at: usize, data: &[u8]) {
    if content.len() < at + data.len() {
        content.resize(at + data.len(), 0);
    }
    content[at..at + data.len()].copy_from_slice(data);
}
