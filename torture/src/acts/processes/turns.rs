//! The file `<db>-turn`, through which Flatwater processes take turns, while somebody spoils it: it is deleted, cut short,
//! replaced by a directory or by garbage, and its counters are set so that they soon begin again from zero.
//!
//! Leaves out: its contents, of which only the place of the counters is known here (`docs/design/turnstile.md`).

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rand::RngExt;
use rand::rngs::StdRng;

use super::witness::database;

/// Two numbers of four bytes.
const COUNTERS: u64 = 16;

pub(super) struct TurnFile {
    path: PathBuf,
    /// Nobody can use what is there, and nobody but the act takes it away.
    is_in_the_way: bool,
}

impl TurnFile {
    pub(super) fn new(directory: &Path) -> Self {
        let mut name = database(directory).into_os_string();
        name.push("-turn");
        Self { path: name.into(), is_in_the_way: false }
    }

    /// Spoils the file, after what was put in its place before was taken away. Returns false if there was no file to spoil.
    pub(super) fn spoil(&mut self, rng: &mut StdRng) -> io::Result<bool> {
        if self.is_in_the_way {
            self.clear()?;
        }
        match rng.random_range(0..5) {
            0 => self.removed(),
            1 => self.changed(|file| file.set_len([0, 14, 20, 4000][rng.random_range(0..4)])),
            2 => self.changed(|file| {
                let served = u32::MAX - rng.random_range(0..100);
                let next = served.wrapping_add(rng.random_range(0..3));
                file.write_all_at(&[next.to_ne_bytes(), served.to_ne_bytes()].concat(), COUNTERS)
            }),
            3 => self.replaced(|path| fs::create_dir(path)),
            _ => self.replaced(|path| fs::write(path, [0xa5; 8192])),
        }
    }

    /// Takes away what the act left there.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_in_the_way) {
            self.removed()?;
        }
        Ok(())
    }

    /// Returns true if it is there. An empty one, as a process leaves it that is killed while it makes it, is none.
    pub(super) fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|found| found.len() > 0)
    }

    fn changed(&mut self, change: impl FnOnce(&fs::File) -> io::Result<()>) -> io::Result<bool> {
        let Some(file) = unless_gone(OpenOptions::new().write(true).open(&self.path))? else { return Ok(false) };
        self.is_in_the_way = true;
        change(&file).map(|()| true)
    }

    /// Another process may make the file again before the other thing is there: then nothing is spoiled.
    fn replaced(&mut self, put: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<bool> {
        self.removed()?;
        match put(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            put => {
                self.is_in_the_way = true;
                put.map(|()| true)
            }
        }
    }

    fn removed(&self) -> io::Result<bool> {
        let removed = match fs::remove_file(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => fs::remove_dir(&self.path),
            removed => removed,
        };
        Ok(unless_gone(removed)?.is_some())
    }
}

fn unless_gone<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn what_the_act_puts_there_is_taken_away_again_and_another_file_stays() {
        let directory = tempfile::tempdir().unwrap();
        let (mut file, mut rng) = (TurnFile::new(directory.path()), StdRng::seed_from_u64(1));
        for _ in 0..200 {
            if !file.is_there() {
                fs::write(&file.path, [0; 4096]).unwrap();
            }
            file.clear().unwrap();
            file.spoil(&mut rng).unwrap();
        }
        file.clear().unwrap();
        file.removed().unwrap();
        fs::write(&file.path, [0; 4096]).unwrap();
        file.clear().unwrap();
        assert!(file.is_there());
    }
}
