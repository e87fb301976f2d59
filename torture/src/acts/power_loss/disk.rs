//! The disk under the files of a log: what is surely on it, and what may be.
//!
//! Owns: which changes are still open after each entry of the log. The model:
//!
//! - A sync that succeeded covers all changes of its file that were recorded before it began.
//! - A sync that failed leaves them open for ever: the system forgets what it could not write, and the next sync says that
//!   all is well.
//! - A name is made or taken away for good by a sync of the directory, and by nothing else.
//!
//! Leaves out: which of the open changes are there (`image`).

use std::collections::BTreeMap;
use std::ops::Range;

use super::log::{DIRECTORY, Entry, Log};

/// One change of a file that is not in its durable content yet.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// Its entry in the log.
    pub(crate) entry: usize,
    pub(crate) what: What,
    /// It is on the disk, but lies behind one that may not be.
    pub(crate) is_sure: bool,
    /// A sync failed to bring it to the disk.
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

/// What a name led to since an entry of the log.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    entry: usize,
    pub(crate) file: Option<u32>,
}

pub(crate) struct Disk<'a> {
    pub(crate) log: &'a Log,
    /// How many entries were taken.
    pub(crate) taken: usize,
    pub(crate) files: BTreeMap<u32, File>,
    /// The first version of a name is the durable one.
    pub(crate) names: BTreeMap<String, Vec<Version>>,
    /// At which entry each sync that is under way began.
    syncs: BTreeMap<u64, usize>,
    /// Where the last sync of a name's file began that has ended; directory apart.
    pub(crate) synced_until: BTreeMap<String, usize>,
    /// Syncs that began behind that entry do nothing: a disk that lies.
    pub(crate) lies_behind: Option<usize>,
}

impl<'a> Disk<'a> {
    /// A disk on which those files are. They have numbers of their own until the log meets them.
    pub(crate) fn new(log: &'a Log, base: &BTreeMap<String, Vec<u8>>) -> Self {
        let (mut files, mut names) = (BTreeMap::new(), BTreeMap::new());
        for ((name, content), file) in base.iter().zip((0..DIRECTORY).rev()) {
            files.insert(file, File { name: name.clone(), durable: content.clone(), open: Vec::new() });
            names.insert(name.clone(), vec![Version { entry: 0, file: Some(file) }]);
        }
        Self { log, taken: 0, files, names, syncs: BTreeMap::new(), synced_until: BTreeMap::new(), lies_behind: None }
    }

    /// Takes the entries before that one.
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
            // It is not relied upon; what it lost was lost by the one it tells of.
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

/// Makes a change to a file's content.
pub(crate) fn apply(content: &mut Vec<u8>, log: &Log, what: &What) {
    match what {
        What::Write { at, data } => put(content, *at, log.data(data)),
        What::Truncate { to } => content.resize(*to, 0),
    }
}

/// Writes bytes; what a write leaves out before it is zero.
pub(crate) fn put(content: &mut Vec<u8>, at: usize, data: &[u8]) {
    if content.len() < at + data.len() {
        content.resize(at + data.len(), 0);
    }
    content[at..at + data.len()].copy_from_slice(data);
}
