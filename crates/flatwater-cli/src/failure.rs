//! Why a command ends without success: what it prints, and its exit code.
//!
//! Owns: the exit codes, and how an error is shown, with a mark below the place in the SQL. Invariants: an error of the library keeps
//! its message, code and hint; a reader of the output that went away is no failure. Leaves out: errors of the arguments, which clap
//! reports with code 2.

use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

use flatwater::bindings::{Name, hint};
use flatwater::{Error, ErrorKind};
use unicode_width::UnicodeWidthStr;

use crate::output::style::{self, Paint};

pub(crate) const EXIT_CODES: &str = "Exit codes: 0 done; 1 an error; 2 wrong arguments; 3 a check found something; \
4 the database is locked, try again; 130 interrupted.";

/// What a command returns.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the library; and the text that was run, with the byte at which its statement begins.
    Database(Error, Option<(String, usize)>),
    /// A file, or the output, could not be read or written.
    System(String, io::Error),
    /// Data that cannot be taken, and why.
    Refused(String),
    /// What the command was asked to do makes no sense.
    Usage(String),
    /// A check has found something, and has said what.
    Found,
    Interrupted,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Database(error, None)
    }
}

impl Failure {
    /// The error of a statement that begins at a byte of a text.
    pub(crate) fn of_statement(error: Error, text: &str, begin: usize) -> Self {
        Self::Database(error, Some((text.to_owned(), begin)))
    }

    /// Returns what makes an error of the system one of the command that did `what`.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |error| Self::System(what, error)
    }

    /// Prints the failure, and returns its exit code.
    pub(crate) fn report(self) -> ExitCode {
        match &self {
            Self::System(_, error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            Self::Found | Self::Interrupted => {}
            _ => eprint!("{}", self.text(style::errors())),
        }
        ExitCode::from(self.code())
    }

    fn code(&self) -> u8 {
        match self {
            Self::Database(error, _) if matches!(error.kind(), ErrorKind::Busy | ErrorKind::Timeout) => 4,
            Self::Database(..) | Self::System(..) | Self::Refused(_) => 1,
            Self::Usage(_) => 2,
            Self::Found => 3,
            Self::Interrupted => 130,
        }
    }

    /// The text of the failure, which ends with a newline.
    pub(crate) fn text(&self, paint: Paint) -> String {
        let error = paint.error("error:");
        match self {
            Self::Database(failed, place) => {
                let mut text = format!("{error} {}", failed.message());
                if let Some(name) = failed.sqlite_name() {
                    let _ = write!(text, " ({name})");
                }
                text.push('\n');
                let place = place.as_ref().map(|(sql, begin)| (sql.as_str(), begin + failed.offset().unwrap_or(0)));
                match place {
                    Some((sql, at)) if failed.offset().is_some() => text.push_str(&marked(sql, at, paint)),
                    Some((sql, at)) if sql.trim().contains('\n') => {
                        let _ = writeln!(text, "  in line {} of the SQL", line_of(sql, at).0);
                    }
                    _ => {}
                }
                if let Some(hint) = hint(failed, word) {
                    let _ = writeln!(text, "  {} {hint}", paint.dim("hint:"));
                }
                text
            }
            Self::System(what, failed) => format!("{error} {what}: {failed}\n"),
            Self::Usage(message) | Self::Refused(message) => format!("{error} {message}\n"),
            Self::Found | Self::Interrupted => String::new(),
        }
    }
}

/// What a hint names, as the command has it.
fn word(name: Name) -> &'static str {
    match name {
        Name::ReadOnly => "`--read-only`",
        Name::BusyTimeout => "`--busy-timeout`",
        Name::NetworkFilesystem => "`--allow-network-filesystem`",
        Name::OpenToCreate => "give `--create`, where the command has it",
        other => other.rust(),
    }
}

/// Returns the number of the line with this byte, from 1, the line, and the byte in it.
fn line_of(sql: &str, at: usize) -> (usize, &str, usize) {
    let at = sql.floor_char_boundary(at.min(sql.len()));
    let begin = sql[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = sql[at..].find('\n').map_or(sql.len(), |end| at + end);
    (sql[..at].matches('\n').count() + 1, &sql[begin..end], at - begin)
}

/// How much of a long line is shown on each side of the mark.
const SHOWN: usize = 60;

/// Returns the line with this byte, and a mark below it.
fn marked(sql: &str, at: usize, paint: Paint) -> String {
    let (number, line, at) = line_of(sql, at);
    let from = line.floor_char_boundary(at.saturating_sub(SHOWN));
    let to = line.ceil_char_boundary((at + SHOWN).min(line.len()));
    let begin = line[from..at].replace('\t', " ");
    let head = format!("  line {number}: ");
    let mark = " ".repeat(head.len() + begin.width());
    format!("{head}{begin}{}\n{mark}{}\n", &line[at..to], paint.error("^"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_marked_in_its_line() {
        let sql = "SELECT 1;\nSELECT 'ä', nmae\nFROM t";
        let at = sql.find("nmae").unwrap();
        let plain = Paint::plain();
        assert_eq!(marked(sql, at, plain), "  line 2: SELECT 'ä', nmae\n                      ^\n");
        assert_eq!(line_of(sql, sql.len()), (3, "FROM t", 6));
        let long = format!("SELECT {}x", "1, ".repeat(100));
        let text = marked(&long, long.len() - 1, plain);
        assert!(text.lines().all(|line| line.len() < 80) && text.contains(", x\n"), "{text}");
    }

    #[test]
    fn each_failure_has_the_code_that_the_help_names() {
        let failures = [Failure::Usage(String::new()), Failure::Found, Failure::Interrupted];
        assert_eq!(failures.map(|failure| failure.code()), [2, 3, 130]);
        let system = Failure::system("reading x")(io::Error::other("gone"));
        assert_eq!((system.code(), &*system.text(Paint::plain())), (1, "error: reading x: gone\n"));
    }
}
