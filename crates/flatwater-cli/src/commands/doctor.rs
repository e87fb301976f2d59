//! `flatwater doctor`: what the machine and a database are, and what a program would be refused.
//!
//! Owns: the report. Invariant: nothing is changed: the database is opened to read, and keeps its journal mode. Leaves out: whether the
//! contents are sound (`commands::check`).

use std::path::{Path, PathBuf};

use flatwater::Database;

use crate::failure::{Failure, Outcome};
use crate::figures::{Shown, State};
use crate::files::Files;
use crate::output::style::{self, Paint};
use crate::output::text::visible;
use crate::place::Place;

/// Say what this machine and a database are, and what would be refused and why
///
/// Exits with 3 if a program could not open the database.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let (place, paint) = (&arguments.place, style::output());
    section("program", &program(), paint);
    section("machine", &machine(), paint);
    let on_disk = !place.is_in_memory() && !place.is_uri();
    if on_disk {
        section("file", &file(&place.path)?, paint);
    }
    // What is refused here, a program is refused too.
    let opened = place.options()?.read_only(true).open();
    let db = match opened.wait() {
        Ok(db) => db,
        Err(error) => {
            section("refused", &[("open", error.message().to_owned())], paint);
            if let Some(hint) = error.hint() {
                section("do", &[("", hint.to_owned())], paint);
            }
            return Err(Failure::Found);
        }
    };
    section("database", &database(&db)?, paint);
    let advice = advice(&db, if on_disk { mount(&place.path) } else { None });
    section("note", &advice.iter().map(|text| ("", text.clone())).collect::<Vec<_>>(), paint);
    Ok(db.close().wait()?)
}

type Lines = Vec<(&'static str, String)>;

fn section(name: &str, lines: &[(&str, String)], paint: Paint) {
    if lines.is_empty() {
        return;
    }
    say!("{}", paint.bold(name));
    for (what, text) in lines {
        say!("  {:<14} {}", what, visible(text));
    }
}

fn program() -> Lines {
    vec![
        ("flatwater", env!("CARGO_PKG_VERSION").to_owned()),
        ("SQLite", flatwater::rusqlite::version().to_owned()),
        ("system", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
    ]
}

fn machine() -> Lines {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut lines = vec![("processors", processors.to_string())];
    if let Some((soft, hard)) = descriptors() {
        lines.push((
            "descriptors",
            format!("{soft} for a process, up to {hard} on demand; an open database needs about 10"),
        ));
    }
    if let Some(container) = container() {
        lines.push(("container", container.to_owned()));
    }
    lines
}

/// How many files a process may have open, and how many it may ask for.
#[cfg(unix)]
fn descriptors() -> Option<(String, String)> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let text = |limit: Option<u64>| limit.map_or_else(|| "any number".to_owned(), |limit| limit.to_string());
    Some((text(limit.current), text(limit.maximum)))
}

#[cfg(not(unix))]
fn descriptors() -> Option<(String, String)> {
    None
}

fn container() -> Option<&'static str> {
    let marks = [("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman")];
    let found = marks.into_iter().find(|(mark, _)| Path::new(mark).exists());
    found.map(|(_, name)| name).or_else(|| std::env::var_os("KUBERNETES_SERVICE_HOST").map(|_| "Kubernetes"))
}

fn file(path: &Path) -> Outcome<Lines> {
    let files = Files::of(path).map_err(Failure::system(format!("reading {}", path.display())))?;
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut lines = vec![("path", real.display().to_string()), ("bytes", files.bytes.to_string())];
    let beside = [&files.wal, &files.shm, &files.journal];
    lines.extend(
        beside.into_iter().flatten().map(|file| ("beside", format!("{}, {} bytes", file.path.display(), file.bytes))),
    );
    if let Some((kind, point)) = mount(path) {
        lines.push(("file system", format!("{kind}, mounted at {}", point.display())));
    }
    lines.extend(files.shown.iter().map(|shown| ("figures", figures(shown))));
    let open_in = |user: &crate::files::User| ("open in", format!("process {} ({})", user.process, user.name));
    lines.extend(files.users.iter().map(open_in));
    Ok(lines)
}

fn figures(Shown { path, state }: &Shown) -> String {
    let at = path.display();
    match state {
        State::Lives(record) => {
            let program = record.text("program").unwrap_or("a program");
            format!("{at}, of {program} ({}); `flatwater top` shows them", record.number("process"))
        }
        State::Left => format!("{at}, of a program that was killed"),
        State::Unread(why) => format!("{at}, which cannot be read: {why}"),
    }
}

/// The kind of the file system of a path, and where it is mounted.
fn mount(path: &Path) -> Option<(String, PathBuf)> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    mount_of(&mounts, &path.canonicalize().ok()?)
}

/// The last of the longest mount points above the path. One with a space in its name is not found.
fn mount_of(mounts: &str, path: &Path) -> Option<(String, PathBuf)> {
    let parsed = mounts.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        Some((after.split(' ').next()?.to_owned(), PathBuf::from(before.split(' ').nth(4)?)))
    });
    parsed.filter(|(_, point)| path.starts_with(point)).max_by_key(|(_, point)| point.components().count())
}

fn database(db: &Database) -> Outcome<Lines> {
    let text = |pragma: &str| db.query_value::<flatwater::Value>(format!("PRAGMA {pragma}"), ()).wait();
    let names = [
        ("journal mode", "journal_mode"),
        ("page size", "page_size"),
        ("pages", "page_count"),
        ("free pages", "freelist_count"),
        ("auto vacuum", "auto_vacuum"),
        ("encoding", "encoding"),
        ("user version", "user_version"),
        ("application id", "application_id"),
    ];
    let mut lines = Lines::new();
    for (name, pragma) in names {
        let value = text(pragma)?;
        lines.push((name, crate::output::text::cell((&value).into())));
    }
    let count = "SELECT count(*) FROM sqlite_schema WHERE type = ? AND name NOT GLOB 'sqlite_*'";
    for (name, kind) in [("tables", "table"), ("indexes", "index")] {
        lines.push((name, db.query_value::<i64>(count, (kind,)).wait()?.to_string()));
    }
    Ok(lines)
}

fn advice(db: &Database, mount: Option<(String, PathBuf)>) -> Vec<String> {
    let mut advice = Vec::new();
    let journal = db.stats().journal;
    if journal != "wal" {
        advice.push(format!(
            "the journal mode is {journal}: a program that opens the file with Flatwater switches it to WAL"
        ));
    }
    if mount.is_some_and(|(kind, _)| kind == "overlay") {
        advice.push("the file is in the layer of a container: it is deleted with the container".to_owned());
    }
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_on_the_longest_mount_point_above_it() {
        let mounts = "22 1 254:0 / / rw - ext4 /dev/vda rw\n30 22 0:45 / /srv/data rw shared:1 - nfs4 server:/x rw";
        let of = |path: &str| mount_of(mounts, Path::new(path));
        assert_eq!(of("/srv/data/a.db"), Some(("nfs4".to_owned(), PathBuf::from("/srv/data"))));
        assert_eq!(of("/srv/database/a.db"), Some(("ext4".to_owned(), PathBuf::from("/"))));
    }
}
