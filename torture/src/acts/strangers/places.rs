//! Paths at which there is no database: directories, pipes, dangling links; and files beside a database that are not
//! what their names say.
//!
//! Owns: creating each of them, and opening them on both sides. Plain SQLite does not open pipes, because it would wait
//! for a writer.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use flatwater::options::{Inline, Journal};
use flatwater::{Error, Options};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use rusqlite::{Connection, OpenFlags};

use super::answer::{Answer, difference, unclear};
use super::case::{Place, unclear_refusal};
use super::stranger::{Stranger, beside};
use crate::finding::Finding;

/// Something at a path that is no sound database. It is created with a sound database if it needs one.
struct Odd {
    name: &'static str,
    make: fn(&Path, &Stranger) -> io::Result<()>,
    /// Whether plain SQLite returns at all.
    is_asked_of_both: bool,
}

const ALL: &[Odd] = &[
    Odd { name: "a directory", make: |path, _| fs::create_dir(path), is_asked_of_both: true },
    Odd { name: "a pipe", make: pipe, is_asked_of_both: false },
    Odd { name: "a link to a pipe", make: link_to_pipe, is_asked_of_both: false },
    Odd { name: "a socket", make: |path, _| UnixListener::bind(path).map(drop), is_asked_of_both: true },
    Odd { name: "a link to itself", make: |path, _| symlink(path, path), is_asked_of_both: true },
    Odd { name: "links in a circle", make: circle, is_asked_of_both: true },
    Odd { name: "a link into nothing", make: |path, _| symlink("no/such/file", path), is_asked_of_both: true },
    Odd { name: "links to a database", make: links, is_asked_of_both: true },
    Odd { name: "nothing", make: |_, _| Ok(()), is_asked_of_both: true },
    Odd { name: "a file that nobody may read", make: forbidden, is_asked_of_both: true },
    Odd { name: "a directory as its -wal", make: |p, s| with_directory(p, s, "-wal"), is_asked_of_both: true },
    Odd { name: "a directory as its -shm", make: |p, s| with_directory(p, s, "-shm"), is_asked_of_both: true },
    Odd { name: "a directory as its -journal", make: |p, s| with_directory(p, s, "-journal"), is_asked_of_both: true },
    Odd { name: "a link to itself as its -wal", make: |p, s| with_loop(p, s, "-wal"), is_asked_of_both: true },
    Odd { name: "a link to itself as its -shm", make: |p, s| with_loop(p, s, "-shm"), is_asked_of_both: true },
];

fn pipe(path: &Path, _: &Stranger) -> io::Result<()> {
    mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR).map_err(io::Error::from)
}

fn link_to_pipe(path: &Path, sound: &Stranger) -> io::Result<()> {
    pipe(&beside(path, ".pipe"), sound)?;
    symlink(beside(path, ".pipe"), path)
}

fn circle(path: &Path, _: &Stranger) -> io::Result<()> {
    symlink(beside(path, ".back"), path)?;
    symlink(path, beside(path, ".back"))
}

fn links(path: &Path, sound: &Stranger) -> io::Result<()> {
    sound.write(&beside(path, ".real"))?;
    symlink(beside(path, ".real"), beside(path, ".middle"))?;
    symlink(beside(path, ".middle"), path)
}

fn forbidden(path: &Path, sound: &Stranger) -> io::Result<()> {
    sound.write(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o000))
}

fn with_directory(path: &Path, sound: &Stranger, end: &str) -> io::Result<()> {
    Stranger { main: sound.main.clone(), ..Stranger::default() }.write(path)?;
    fs::create_dir(beside(path, end))
}

fn with_loop(path: &Path, sound: &Stranger, end: &str) -> io::Result<()> {
    Stranger { main: sound.main.clone(), ..Stranger::default() }.write(path)?;
    symlink(beside(path, end), beside(path, end))
}

/// The rights to open with, on both sides: read-only, and permission to create the file.
const RIGHTS: &[(bool, bool)] = &[(false, true), (false, false), (true, false)];

/// Opens each of them with each combination of rights. Returns the number of opens.
pub(super) fn open_all(place: &Place<'_>, sound: &Stranger) -> Result<u64, Finding> {
    let mut opens = 0;
    for odd in ALL {
        for &(read_only, create) in RIGHTS {
            let about = format!("{}, read only: {read_only}, create: {create}", odd.name);
            place.watch.announce(&about);
            open(place, sound, odd, read_only, create).map_err(|finding| {
                let history = format!("{about}\n{}", finding.history);
                finding.with_history(history)
            })?;
            place.watch.nobody_panicked()?;
            opens += 1;
        }
    }
    Ok(opens)
}

fn open(place: &Place<'_>, sound: &Stranger, odd: &Odd, read_only: bool, create: bool) -> Result<(), Finding> {
    let side = |name: &str| {
        let directory = place.directory.join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory)?;
        let path = directory.join("odd.db");
        (odd.make)(&path, sound)?;
        io::Result::Ok(path)
    };
    let (path, plain_path) = (side("odd-place")?, side("peer")?);
    let options = Options::new(&path)
        .read_only(read_only)
        .create(create)
        .journal(Journal::Keep)
        .optimize_every(None)
        .tuning(|t| t.inline(Inline::Never));
    let opened = place.runtime.block_on(async {
        let db = options.open().await?;
        let counted = db.query_optional_value::<i64>("SELECT count(*) FROM sqlite_schema", ()).await;
        db.close().await?;
        Ok::<_, Error>(counted)
    });
    let ours = match opened {
        Ok(counted) => counted.map_or_else(Answer::from, |_| Answer::Done(0)),
        Err(error) => {
            // A link may lead to another file, but not out of the directory.
            if let Some(wrong) =
                unclear_refusal(&error, path.parent().unwrap_or(&path)).or_else(|| unclear(&error.clone().into()))
            {
                return Err(Finding::new(wrong).with_history(format!("{error:?}")));
            }
            Answer::from(error)
        }
    };
    if !odd.is_asked_of_both {
        let history = ours.in_short();
        let refused = ours.is_failure().then_some(()).ok_or_else(|| Finding::new("it opens what is no file"));
        return refused.map_err(|finding| finding.with_history(history));
    }
    let plain = plainly(&plain_path, read_only, create);
    // Flatwater checks a path before SQLite does, and has its own messages without a code of SQLite's.
    if ours.is_failure() && plain.is_failure() {
        return Ok(());
    }
    match difference(&ours, &plain) {
        Some(wrong) => {
            let history = format!("Flatwater: {}\nplain SQLite: {}", ours.in_short(), plain.in_short());
            Err(Finding::new(wrong).with_history(history))
        }
        None => Ok(()),
    }
}

fn plainly(path: &Path, read_only: bool, create: bool) -> Answer {
    let rights = match (read_only, create) {
        (true, _) => OpenFlags::SQLITE_OPEN_READ_ONLY,
        (false, true) => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        (false, false) => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let counted = Connection::open_with_flags(path, rights).and_then(|plain| {
        if !read_only {
            // Flatwater refuses to open a file that it can only read.
            plain.execute_batch("BEGIN IMMEDIATE; ROLLBACK")?;
        }
        plain.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))
    });
    counted.map_or_else(Answer::from, |_| Answer::Done(0))
}
