//! `flatwater check`: whether a database is sound, and what endangers it.
//!
//! Owns: the list of checks, and which of their findings are faults. Invariants: the files are looked at before the database is opened,
//! which changes them; each finding is printed when it is found. Leaves out: repairing.

use std::path::Path;

use flatwater::Database;

use crate::failure::{Failure, Outcome};
use crate::figures::{Shown, State};
use crate::files::Files;
use crate::interrupt;
use crate::output::style::{self, Paint};
use crate::output::text::visible;
use crate::place::Place;

/// Check a database: its pages, foreign keys, WAL, and the files beside it
///
/// Exits with 3 if there is a fault. Programs may use the database meanwhile.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,

    /// Leave out whether indexes agree with their tables, which takes most of the time
    #[arg(long)]
    quick: bool,

    /// Check one table only
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
}

/// What a check has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    Good(String),
    /// Worth knowing, and no fault.
    Note(String),
    Fault(String),
}

impl Finding {
    fn print(&self, paint: Paint) {
        match self {
            Self::Good(text) => say!("{}   {}", paint.good("ok"), visible(text)),
            Self::Note(text) => say!("{} {}", paint.warning("note"), visible(text)),
            Self::Fault(text) => say!("{} {}", paint.error("fault"), visible(text)),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let paint = style::output();
    let mut findings = Vec::new();
    let path = &arguments.place.path;
    if !arguments.place.is_in_memory() && !arguments.place.is_uri() {
        let files = Files::of(path).map_err(Failure::system(format!("reading {}", path.display())))?;
        findings.extend(of_files(path, &files));
    }
    findings.iter().for_each(|finding| finding.print(paint));
    let db = arguments.place.reader()?;
    interrupt::closes(&db)?;
    for finding in [integrity(&db, arguments)?, foreign_keys(&db, arguments.table.as_deref())?].concat() {
        finding.print(paint);
        findings.push(finding);
    }
    db.close().wait()?;
    let is_fault = |finding: &Finding| matches!(finding, Finding::Fault(_));
    if findings.iter().any(is_fault) { Err(Failure::Found) } else { Ok(()) }
}

fn integrity(db: &Database, arguments: &Arguments) -> Outcome<Vec<Finding>> {
    let mut check = db.integrity_check();
    if arguments.quick {
        check = check.quick();
    }
    if let Some(table) = &arguments.table {
        check = check.table(table);
    }
    let mut findings = Vec::new();
    while let Some(problem) = pollster::block_on(check.next()) {
        findings.push(Finding::Fault(format!("integrity: {}", problem?)));
    }
    if findings.is_empty() {
        findings.push(Finding::Good("integrity: every page is as it should be".to_owned()));
    }
    Ok(findings)
}

fn foreign_keys(db: &Database, table: Option<&str>) -> Outcome<Vec<Finding>> {
    let sql = "SELECT \"table\", parent, count(*) FROM pragma_foreign_key_check(?1) GROUP BY 1, 2";
    let all = "SELECT \"table\", parent, count(*) FROM pragma_foreign_key_check GROUP BY 1, 2";
    let rows = match table {
        Some(table) => db.query(sql, (table,)).wait()?,
        None => db.query(all, ()).wait()?,
    };
    let orphans: Vec<(String, String, i64)> = rows.read()?;
    if orphans.is_empty() {
        return Ok(vec![Finding::Good("foreign keys: every row has its parent".to_owned())]);
    }
    let fault = |(table, parent, count)| {
        Finding::Fault(format!("foreign keys: {count} rows of {table} have no parent in {parent}"))
    };
    Ok(orphans.into_iter().map(fault).collect())
}

/// Judges the files of a database.
pub(crate) fn of_files(path: &Path, files: &Files) -> Vec<Finding> {
    let mut findings = of_wal(files);
    if let Some(journal) = &files.journal
        && journal.bytes > 0
        && files.users.is_empty()
    {
        let at = journal.path.display();
        findings.push(Finding::Note(format!("{at}: a transaction was not finished; the next open to write undoes it")));
    }
    if files.links > 1 {
        let text = "has more than one hard link: programs that open it by different names do not see each other's WAL";
        findings.push(Finding::Fault(format!("{} {text}", path.display())));
    }
    for partial in &files.partial {
        let at = partial.path.display();
        findings
            .push(Finding::Note(format!("{at}: of a backup that was killed, or still runs; {} bytes", partial.bytes)));
    }
    for Shown { path, state } in &files.shown {
        if let Some(what) = matter_of(state) {
            findings.push(Finding::Note(format!("{}: {what}", path.display())));
        }
    }
    for user in &files.users {
        let who = format!("process {} ({})", user.process, user.name);
        findings.push(if user.has_deleted {
            let text = "has a file open that was at this path and was replaced: what it writes is lost";
            Finding::Fault(format!("{who} {text}"))
        } else {
            Finding::Note(format!("{who} has the database open"))
        });
    }
    findings
}

/// What is to be said of a file of figures, unless a program has it.
fn matter_of(state: &State) -> Option<String> {
    match state {
        State::Lives(_) => None,
        State::Left => Some("figures of a program that was killed; the next one with `observe` removes it".to_owned()),
        State::Unread(why) => Some(format!("figures that cannot be read: {why}")),
    }
}

fn of_wal(files: &Files) -> Vec<Finding> {
    let Some(wal) = files.wal.as_ref().filter(|wal| wal.bytes > 0) else {
        let alone = files.shm.is_some() && files.users.is_empty();
        let note = || Finding::Note("a -shm without a WAL is left over; the next open uses it".to_owned());
        let is_wal = files.header.is_none_or(|header| header.is_wal);
        let good = if is_wal { "WAL: empty" } else { "WAL: not used, the journal mode is another" };
        return if alone { vec![note()] } else { vec![Finding::Good(good.to_owned())] };
    };
    let at = wal.path.display();
    let (header, of_wal) = (files.header, files.wal_page_bytes);
    if header.is_some_and(|header| of_wal.is_some_and(|bytes| bytes != header.page_bytes)) {
        let text = "has pages of another size than the database: it is that of another file";
        return vec![Finding::Fault(format!("{at} {text}"))];
    }
    if header.is_some_and(|header| !header.is_wal) {
        let text = "is beside a database that is not in WAL mode: the file was replaced, or copied without it";
        return vec![Finding::Fault(format!("{at} {text}"))];
    }
    let bytes = wal.bytes;
    vec![if files.users.is_empty() {
        Finding::Note(format!("WAL: {bytes} bytes were not copied by the last process; the next open reads them"))
    } else {
        Finding::Good(format!("WAL: {bytes} bytes"))
    }]
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::files::{Beside, Header, User};

    fn files() -> Files {
        Files {
            bytes: 8192,
            links: 1,
            header: Some(Header { page_bytes: 4096, is_wal: true }),
            wal: None,
            wal_page_bytes: None,
            shm: None,
            journal: None,
            partial: Vec::new(),
            shown: Vec::new(),
            users: Vec::new(),
        }
    }

    fn faults(files: &Files) -> usize {
        let all = of_files(Path::new("a.db"), files);
        all.iter().filter(|finding| matches!(finding, Finding::Fault(_))).count()
    }

    fn beside(name: &str) -> Option<Beside> {
        Some(Beside { path: PathBuf::from(name), bytes: 4152 })
    }

    #[test]
    fn what_loses_data_is_a_fault() {
        assert_eq!(faults(&files()), 0);
        assert_eq!(faults(&Files { links: 2, ..files() }), 1);
        let wal = || Files { wal: beside("a.db-wal"), wal_page_bytes: Some(4096), ..files() };
        assert_eq!(faults(&wal()), 0);
        assert_eq!(faults(&Files { wal_page_bytes: Some(1024), ..wal() }), 1);
        assert_eq!(faults(&Files { header: Some(Header { page_bytes: 4096, is_wal: false }), ..wal() }), 1);
        let user = |has_deleted| User { process: 1, name: "app".to_owned(), has_deleted };
        assert_eq!(faults(&Files { users: vec![user(false)], ..wal() }), 0);
        assert_eq!(faults(&Files { users: vec![user(true)], ..wal() }), 1);
    }

    #[test]
    fn what_the_next_open_repairs_is_a_note() {
        let all = of_files(Path::new("a.db"), &Files { journal: beside("a.db-journal"), ..files() });
        assert!(matches!(&all[..], [Finding::Good(_), Finding::Note(_)]), "{all:?}");
    }
}
