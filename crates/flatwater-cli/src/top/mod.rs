//! `flatwater top`: who reads and writes a database now, who keeps its WAL from starting over, and what programs show of themselves.
//!
//! Owns: the loop, and since when each reader has been seen. Invariant: nothing of the database is opened by SQLite and no lock of it is
//! taken, so that watching disturbs nobody. Leaves out: what a program without the option `observe` alone knows, such as the queue of
//! its calls; who has a lock on systems other than Linux, which do not tell.

mod locks;
mod programs;
mod view;
mod wal_index;

use std::collections::HashMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};

use self::locks::{held_on, in_line};
use self::programs::{Before, Program};
use self::wal_index::WalIndex;
use crate::failure::{Failure, Outcome};
use crate::figures;

/// Watch who reads and writes a database, and who holds up its WAL
///
/// Of programs that are opened with the option `observe` it also shows the queue, the calls and their times, and what they run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The database
    path: PathBuf,

    /// Print it once, and end
    #[arg(long)]
    once: bool,

    /// How often it is looked at
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
}

/// A process that reads, with the last frame of the WAL that it sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Reader {
    process: i64,
    /// `None` for one that needs no frame.
    mark: Option<u32>,
}

/// What is known of a database at one moment.
#[derive(Debug)]
struct Seen {
    /// What anybody can see; or why not, such as in another journal mode.
    wal: std::io::Result<Wal>,
    /// What programs show of themselves.
    programs: Vec<Program>,
    at: SystemTime,
}

/// What anybody can see of a database in WAL mode.
#[derive(Debug)]
struct Wal {
    wal_bytes: u64,
    index: WalIndex,
    writer: Option<i64>,
    checkpointer: Option<i64>,
    /// How many processes are in line to write; `None` if they take no turns.
    in_line: Option<usize>,
    /// Each with the time since when it has been seen.
    readers: Vec<(Reader, Duration)>,
}

#[derive(Default)]
struct Watch {
    since: HashMap<Reader, Instant>,
    before: Before,
}

impl Watch {
    /// Looks at the files of the database.
    fn look(&mut self, path: &Path) -> Seen {
        let programs = self.before.with_rates(figures::beside(path));
        Seen { wal: self.look_at_wal(path), programs, at: SystemTime::now() }
    }

    fn look_at_wal(&mut self, path: &Path) -> std::io::Result<Wal> {
        if !cfg!(target_os = "linux") {
            return Err(std::io::Error::other("which process has a lock is known on Linux only"));
        }
        let beside = |suffix: &str| PathBuf::from([path.as_os_str(), suffix.as_ref()].join("".as_ref()));
        let wal_bytes = beside("-wal").metadata().map_or(0, |metadata| metadata.len());
        let index = WalIndex::read(&beside("-shm"))?;
        let held = held_on(&beside("-shm"))?;
        let who =
            |byte: u64| held.iter().filter(|lock| lock.is_write && lock.covers(byte)).find_map(|lock| lock.process);
        let readers = held.iter().filter_map(|lock| {
            let mark = index.mark_of_lock(lock)?;
            Some(Reader { process: lock.process?, mark: (mark > 0).then_some(mark) })
        });
        let readers: Vec<Reader> = readers.collect();
        self.since.retain(|reader, _| readers.contains(reader));
        let now = Instant::now();
        let mut seen: Vec<(Reader, Duration)> =
            readers.into_iter().map(|reader| (reader, now - *self.since.entry(reader).or_insert(now))).collect();
        seen.sort_by_key(|(reader, _)| (reader.mark.unwrap_or(u32::MAX), reader.process));
        seen.dedup_by_key(|(reader, _)| *reader);
        Ok(Wal {
            wal_bytes,
            writer: who(wal_index::WRITE),
            checkpointer: who(wal_index::CHECKPOINT),
            in_line: held_on(&beside("-turn")).ok().map(|held| in_line(&held)),
            index,
            readers: seen,
        })
    }
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let failed = || Failure::system(format!("looking at {}", arguments.path.display()));
    let path = arguments.path.canonicalize().map_err(failed())?;
    let mut watch = Watch::default();
    if arguments.once || !std::io::stdout().is_terminal() {
        let seen = watch.look(&path);
        if let Seen { wal: Err(error), programs, .. } = &seen
            && programs.is_empty()
        {
            return Err(failed()(std::io::Error::new(error.kind(), error.to_string())));
        }
        say!("{}", view::text(&path, &seen).join("\n"));
        return Ok(());
    }
    let interval = Duration::from_secs_f64(arguments.interval.clamp(0.05, 3600.0));
    let mut terminal = ratatui::init();
    let watched = loop {
        let seen = watch.look(&path);
        let drawn = terminal.draw(|frame| view::draw(frame, &path, &seen));
        match drawn.map(drop).and_then(|()| is_over(interval)) {
            Ok(false) => {}
            Ok(true) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    ratatui::restore();
    watched.map_err(Failure::system("drawing on the terminal"))
}

/// Waits for the next look, or for the key that ends it.
fn is_over(interval: Duration) -> std::io::Result<bool> {
    let end = Instant::now() + interval;
    while event::poll(end.saturating_duration_since(Instant::now()))? {
        match event::read()? {
            Event::Key(key) if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Ok(true);
            }
            Event::Key(key) if matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) => return Ok(true),
            Event::Resize(..) => return Ok(false),
            _ => {}
        }
    }
    Ok(false)
}
