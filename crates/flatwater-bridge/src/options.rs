//! The options of `open`, by name.
//!
//! Owns: the names, the form of each value, and the refusal of an unknown name or a value of another form. Pure.
//! Invariant: each name is that of the method of `Options` or of `Tuning`. Durations are numbers of seconds. Leaves out: what the
//! options mean, and which of them exclude each other.

use std::time::Duration;

use flatwater::Options;
use flatwater::options::{
    AutoVacuum, Checkpoint, CheckpointLimits, Durability, Fairness, GroupLimits, Inline, Journal, TempStore,
};

use crate::nearest_name::unknown;

/// A value that a caller gave for an option.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// On or off.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Real(f64),
    /// A word, or SQL.
    Text(String),
    /// Bytes, such as a database.
    Bytes(Vec<u8>),
    /// Names and values, such as the files to attach.
    Pairs(Vec<(String, String)>),
    /// A list, such as of SQL.
    Texts(Vec<String>),
}

/// How one option is set.
type Set = fn(Options, Given) -> Result<Options, &'static str>;

/// What a service sets, by name: the methods of `Options`.
pub const OPTIONS: &[(&str, Set)] = &[
    ("busy_timeout", |options, given| Ok(options.busy_timeout(seconds(&given)?))),
    ("checkpoint", |options, given| match given {
        Given::Text(text) if text == "managed" => Ok(options.checkpoint(Checkpoint::default())),
        Given::Text(text) if text == "external" => Ok(options.checkpoint(Checkpoint::External)),
        _ => Err("\"managed\" or \"external\""),
    }),
    ("create", |options, given| Ok(options.create(switch(&given)?))),
    ("durability", |options, given| match given {
        Given::Text(text) if text == "normal" => Ok(options.durability(Durability::Normal)),
        Given::Text(text) if text == "full" => Ok(options.durability(Durability::Full)),
        _ => Err("\"normal\" or \"full\""),
    }),
    ("foreign_keys", |options, given| Ok(options.foreign_keys(switch(&given)?))),
    ("journal", |options, given| match given {
        Given::Text(text) if text == "wal" => Ok(options.journal(Journal::Wal)),
        Given::Text(text) if text == "keep" => Ok(options.journal(Journal::Keep)),
        _ => Err("\"wal\" or \"keep\""),
    }),
    ("on_open", |options, given| match given {
        Given::Text(sql) => Ok(options.on_open(sql)),
        Given::Texts(all) => Ok(all.into_iter().fold(options, |options, sql| options.on_open(sql))),
        _ => Err("SQL, or a list of SQL texts"),
    }),
    ("optimize_every", |options, given| match given {
        Given::Bool(false) => Ok(options.optimize_every(None)),
        given => Ok(options.optimize_every(seconds(&given)?)),
    }),
    ("read_only", |options, given| Ok(options.read_only(switch(&given)?))),
    ("readers", |options, given| Ok(options.readers(count(&given)?))),
    ("slow_statement", |options, given| Ok(options.slow_statement(seconds(&given)?))),
    ("timeout", |options, given| Ok(options.timeout(seconds(&given)?))),
];

/// What most programs leave as it is, by name: the methods of `Tuning`.
pub const TUNING: &[(&str, Set)] = &[
    ("allow_network_filesystem", |options, given| {
        switch(&given).map(|value| options.tuning(|t| t.allow_network_filesystem(value)))
    }),
    ("allow_second_sqlite", |options, given| {
        switch(&given).map(|value| options.tuning(|t| t.allow_second_sqlite(value)))
    }),
    ("assume_immutable", |options, given| switch(&given).map(|value| options.tuning(|t| t.assume_immutable(value)))),
    ("attach", |options, given| match given {
        Given::Pairs(files) => {
            Ok(options.tuning(|t| files.into_iter().fold(t, |t, (name, path)| t.attach(name, path))))
        }
        _ => Err("names, each with the path of a file"),
    }),
    ("auto_vacuum", |options, given| match given {
        Given::Text(text) if text == "none" => Ok(options.tuning(|t| t.auto_vacuum(AutoVacuum::None))),
        Given::Text(text) if text == "full" => Ok(options.tuning(|t| t.auto_vacuum(AutoVacuum::Full))),
        Given::Text(text) if text == "incremental" => Ok(options.tuning(|t| t.auto_vacuum(AutoVacuum::Incremental))),
        _ => Err("\"none\", \"full\" or \"incremental\""),
    }),
    ("close_wait", |options, given| seconds(&given).map(|value| options.tuning(|t| t.close_wait(value)))),
    ("deserialize", |options, given| match given {
        Given::Bytes(bytes) => Ok(options.tuning(|t| t.deserialize(bytes))),
        _ => Err("bytes, such as those of `serialize`"),
    }),
    ("double_quoted_strings", |options, given| {
        switch(&given).map(|value| options.tuning(|t| t.double_quoted_strings(value)))
    }),
    ("extra_readers", |options, given| count(&given).map(|value| options.tuning(|t| t.extra_readers(value)))),
    ("fairness", |options, given| match given {
        Given::Text(text) if text == "auto" => Ok(options.tuning(|t| t.fairness(Fairness::Auto))),
        Given::Text(text) if text == "off" => Ok(options.tuning(|t| t.fairness(Fairness::Off))),
        _ => Err("\"auto\" or \"off\""),
    }),
    ("group", |options, given| match switch(&given)? {
        true => Ok(options.tuning(|t| t.group(GroupLimits::default()))),
        false => Ok(options.tuning(|t| t.no_group())),
    }),
    ("inline", |options, given| match switch(&given)? {
        true => Ok(options.tuning(|t| t.inline(Inline::default()))),
        false => Ok(options.tuning(|t| t.inline(Inline::Never))),
    }),
    ("memory_limit", |options, given| count(&given).map(|value| options.tuning(|t| t.memory_limit(value)))),
    ("mmap_bytes", |options, given| count(&given).map(|value| options.tuning(|t| t.mmap_bytes(value)))),
    ("observe", |options, given| switch(&given).map(|value| options.tuning(|t| t.observe(value)))),
    ("page_size", |options, given| {
        count(&given).map(|bytes| options.tuning(|t| t.page_size(u32::try_from(bytes).unwrap_or(u32::MAX))))
    }),
    ("queue", |options, given| count(&given).map(|value| options.tuning(|t| t.queue(value)))),
    ("read_limit", |options, given| seconds(&given).map(|value| options.tuning(|t| t.read_limit(value)))),
    ("reader_cache_bytes", |options, given| count(&given).map(|value| options.tuning(|t| t.reader_cache_bytes(value)))),
    ("result_limit", |options, given| count(&given).map(|value| options.tuning(|t| t.result_limit(value)))),
    ("snapshot_age", |options, given| seconds(&given).map(|value| options.tuning(|t| t.snapshot_age(value)))),
    ("statement_cache", |options, given| count(&given).map(|value| options.tuning(|t| t.statement_cache(value)))),
    ("step_limit", |options, given| {
        count(&given).map(|steps| options.tuning(|t| t.step_limit(u32::try_from(steps).unwrap_or(u32::MAX))))
    }),
    ("stream_idle", |options, given| seconds(&given).map(|value| options.tuning(|t| t.stream_idle(value)))),
    ("temp_store", |options, given| match given {
        Given::Text(text) if text == "auto" => Ok(options.tuning(|t| t.temp_store(TempStore::Auto))),
        Given::Text(text) if text == "file" => Ok(options.tuning(|t| t.temp_store(TempStore::File))),
        Given::Text(text) if text == "memory" => Ok(options.tuning(|t| t.temp_store(TempStore::Memory))),
        _ => Err("\"auto\", \"file\" or \"memory\""),
    }),
    ("transaction_idle", |options, given| seconds(&given).map(|value| options.tuning(|t| t.transaction_idle(value)))),
    ("untrusted", |options, given| match switch(&given)? {
        true => Ok(options.tuning(|t| t.untrusted())),
        false => Ok(options),
    }),
    ("vfs", |options, given| match given {
        Given::Text(name) => Ok(options.tuning(|t| t.vfs(name))),
        _ => Err("the name of a VFS"),
    }),
    ("wal_limit_bytes", |options, given| {
        let limit_bytes = count(&given)? as u64;
        let hard_limit_bytes = CheckpointLimits::default().hard_limit_bytes.max(limit_bytes.saturating_mul(8));
        let limits = CheckpointLimits::default().limit_bytes(limit_bytes).hard_limit_bytes(hard_limit_bytes);
        Ok(options.checkpoint(Checkpoint::Managed(limits)))
    }),
    ("writer_cache_bytes", |options, given| count(&given).map(|value| options.tuning(|t| t.writer_cache_bytes(value)))),
];

/// The options that are durations. Here they are numbers of seconds.
pub const DURATIONS: &[&str] = &[
    "busy_timeout",
    "close_wait",
    "timeout",
    "transaction_idle",
    "optimize_every",
    "read_limit",
    "slow_statement",
    "snapshot_age",
    "stream_idle",
];

/// Sets the option of this name.
///
/// # Errors
/// A sentence that names the option, for an unknown name and for a value of another form.
pub fn set(options: Options, name: &str, given: Given) -> Result<Options, String> {
    find(name)?(options, given).map_err(|form| format!("the option {name:?} must be {form}"))
}

fn find(name: &str) -> Result<Set, String> {
    let all = || OPTIONS.iter().chain(TUNING);
    let found = all().find(|(known, _)| *known == name).map(|(_, set)| *set);
    found.ok_or_else(|| unknown("option", name, all().map(|(known, _)| *known)))
}

fn switch(given: &Given) -> Result<bool, &'static str> {
    if let Given::Bool(on) = given { Ok(*on) } else { Err("true or false") }
}

fn count(given: &Given) -> Result<usize, &'static str> {
    let number = if let Given::Integer(number) = given { usize::try_from(*number).ok() } else { None };
    number.ok_or("a non-negative number")
}

fn seconds(given: &Given) -> Result<Duration, &'static str> {
    let seconds = match given {
        Given::Integer(seconds) => *seconds as f64,
        Given::Real(seconds) => *seconds,
        _ => f64::NAN,
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| "a number of seconds")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Options {
        Options::new("a.db")
    }

    #[test]
    fn an_option_by_name_is_the_option_of_that_method() {
        let given = [
            ("busy_timeout", Given::Real(1.5), plain().busy_timeout(Duration::from_millis(1500))),
            ("readers", Given::Integer(3), plain().readers(3)),
            ("foreign_keys", Given::Bool(false), plain().foreign_keys(false)),
            ("durability", Given::Text("full".into()), plain().durability(Durability::Full)),
            ("fairness", Given::Text("off".into()), plain().tuning(|t| t.fairness(Fairness::Off))),
            ("deserialize", Given::Bytes(vec![1, 2]), plain().tuning(|t| t.deserialize(vec![1, 2]))),
            ("optimize_every", Given::Bool(false), plain().optimize_every(None)),
            ("optimize_every", Given::Integer(60), plain().optimize_every(Duration::from_secs(60))),
            ("slow_statement", Given::Real(0.25), plain().slow_statement(Duration::from_millis(250))),
            ("checkpoint", Given::Text("external".into()), plain().checkpoint(Checkpoint::External)),
            ("untrusted", Given::Bool(true), plain().tuning(|t| t.untrusted())),
            ("untrusted", Given::Bool(false), plain()),
            ("step_limit", Given::Integer(7), plain().tuning(|t| t.step_limit(7))),
            ("memory_limit", Given::Integer(7), plain().tuning(|t| t.memory_limit(7))),
            ("result_limit", Given::Integer(7), plain().tuning(|t| t.result_limit(7))),
            ("group", Given::Bool(false), plain().tuning(|t| t.no_group())),
            ("inline", Given::Bool(false), plain().tuning(|t| t.inline(Inline::Never))),
            ("attach", Given::Pairs(vec![("b".into(), "b.db".into())]), plain().tuning(|t| t.attach("b", "b.db"))),
            ("on_open", Given::Texts(vec!["A".into(), "B".into()]), plain().on_open("A").on_open("B")),
        ];
        for (name, value, expected) in given {
            assert_eq!(set(plain(), name, value), Ok(expected), "{name}");
        }
    }

    #[test]
    fn a_value_of_another_form_and_an_unknown_name_are_refused() {
        let refused = |name: &str, value| set(plain(), name, value).unwrap_err();
        assert_eq!(refused("readers", Given::Bool(true)), "the option \"readers\" must be a non-negative number");
        assert_eq!(refused("readers", Given::Integer(-1)), "the option \"readers\" must be a non-negative number");
        for seconds in [f64::NAN, -1.0, f64::INFINITY] {
            assert_eq!(refused("timeout", Given::Real(seconds)), "the option \"timeout\" must be a number of seconds");
        }
        assert!(refused("journal", Given::Text("WAL".into())).contains("\"wal\" or \"keep\""));
        assert!(refused("busy_timeuot", Given::Integer(1)).contains("did you mean \"busy_timeout\""));
    }

    #[test]
    fn a_duration_is_what_takes_half_a_second() {
        for (name, _) in OPTIONS.iter().chain(TUNING) {
            assert_eq!(set(plain(), name, Given::Real(0.5)).is_ok(), DURATIONS.contains(name), "{name}");
        }
    }

    #[test]
    fn the_names_are_sorted_and_each_is_there_once() {
        for table in [OPTIONS, TUNING] {
            assert!(table.is_sorted_by(|(a, _), (b, _)| a < b));
        }
        assert!(OPTIONS.iter().all(|(name, _)| TUNING.iter().all(|(other, _)| name != other)));
    }
}
