//! The commands that begin with a dot, as users of the `sqlite3` shell type them.
//!
//! Owns: their names and arguments. Pure. Invariant: a command that is not known, or has other arguments, is an error that says what to
//! type. Leaves out: running them.

use clap::ValueEnum;

use crate::output::Format;

/// What to do after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Continue,
    Quit,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Dot {
    Changes(bool),
    Databases,
    Dump(Vec<String>),
    Headers(bool),
    Help,
    Import { file: String, table: String, csv: bool, skips: bool },
    Indexes(Option<String>),
    Mode(Format),
    Output { file: Option<String>, once: bool },
    Quit,
    Read(String),
    Schema(Option<String>),
    Tables(Option<String>),
    Timer(bool),
}

/// The commands, with what `.help` says.
pub(crate) const COMMANDS: [(&str, &str); 15] = [
    (".changes on|off", "Show how many rows a statement has changed"),
    (".databases", "List attached databases"),
    (".dump ?TABLE ...?", "Print the database as SQL"),
    (".exit", "Leave the shell"),
    (".headers on|off", "Show the names of columns or not"),
    (".help", "Show this list"),
    (
        ".import ?--csv? ?--skip 1? FILE TABLE",
        "Import rows of a file; the first line names columns if the table is made, or skipped",
    ),
    (".indexes ?TABLE?", "List indexes"),
    (".mode FORMAT", "table, box, markdown, json, jsonl, csv, tabs, list or line"),
    (".output ?FILE?, .once FILE", "Print results into a file, always or once"),
    (".quit", "Leave the shell"),
    (".read FILE", "Run a file with SQL and commands"),
    (".schema ?TABLE?", "Show the statements that made tables, indexes, views and triggers"),
    (".tables ?PATTERN?", "List tables and views"),
    (".timer on|off", "Show how long statements take"),
];

/// Reads a command.
pub(crate) fn parse(line: &str) -> Result<Dot, String> {
    let words = words(line)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let owned = |text: &str| text.to_owned();
    Ok(match words[..] {
        [".changes", on] => Dot::Changes(switch(on)?),
        [".databases"] => Dot::Databases,
        [".dump", ref tables @ ..] => Dot::Dump(tables.iter().map(|table| owned(table)).collect()),
        [".headers" | ".header", on] => Dot::Headers(switch(on)?),
        [".help", ..] => Dot::Help,
        [".import", ref arguments @ ..] => import(arguments)?,
        [".indexes" | ".indices", ref table @ ..] if table.len() < 2 => {
            Dot::Indexes(table.first().map(|table| owned(table)))
        }
        [".mode", name, ..] => Dot::Mode(mode(name)?),
        [".output"] => Dot::Output { file: None, once: false },
        [".output", file] => Dot::Output { file: (file != "stdout").then(|| owned(file)), once: false },
        [".once", file] => Dot::Output { file: Some(owned(file)), once: true },
        [".quit" | ".exit", ..] => Dot::Quit,
        [".read", file] => Dot::Read(owned(file)),
        [".schema", ref table @ ..] if table.len() < 2 => Dot::Schema(table.first().map(|table| owned(table))),
        [".tables" | ".table", ref pattern @ ..] if pattern.len() < 2 => {
            Dot::Tables(pattern.first().map(|text| owned(text)))
        }
        [".timer", on] => Dot::Timer(switch(on)?),
        [name, ..] => {
            let known = COMMANDS.iter().find(|(usage, _)| usage.split([' ', ',']).next() == Some(name));
            return Err(known.map_or_else(
                || format!("{name} is no command: .help lists them"),
                |(usage, _)| format!("type {usage}"),
            ));
        }
        [] => return Err("an empty command".to_owned()),
    })
}

fn switch(word: &str) -> Result<bool, String> {
    match word {
        "on" | "yes" | "1" => Ok(true),
        "off" | "no" | "0" => Ok(false),
        _ => Err("type on or off".to_owned()),
    }
}

fn mode(name: &str) -> Result<Format, String> {
    Format::from_str(name, true).map_err(|_| {
        let names: Vec<String> = Format::value_variants()
            .iter()
            .filter_map(|format| Some(format.to_possible_value()?.get_name().to_owned()))
            .collect();
        format!("a mode is one of {}", names.join(", "))
    })
}

fn import(arguments: &[&str]) -> Result<Dot, String> {
    let (mut csv, mut skips, mut names) = (false, false, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match *argument {
            "--csv" | "-csv" => csv = true,
            "--skip" | "-skip" => match rest.next() {
                Some(&"0") => {}
                Some(&"1") => skips = true,
                _ => return Err("only one line can be skipped".to_owned()),
            },
            name => names.push(name.to_owned()),
        }
    }
    match <[String; 2]>::try_from(names) {
        Ok([file, table]) => Ok(Dot::Import { file, table, csv, skips }),
        Err(_) => Err("type .import FILE TABLE".to_owned()),
    }
}

/// The words of a line. Those with spaces stand in single or double quotes.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim().trim_end_matches(';').trim_end();
    while !rest.is_empty() {
        let quote = rest.chars().next().filter(|first| ['\'', '"'].contains(first));
        let (word, behind) = match quote {
            Some(quote) => rest[1..].split_once(quote).ok_or("a quote has no end")?,
            None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        words.push(word.to_owned());
        rest = behind.trim_start();
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_as_they_are_typed() {
        let same = [
            (".quit", Dot::Quit),
            (".exit 0", Dot::Quit),
            (".mode BOX", Dot::Mode(Format::Box)),
            (".mode column", Dot::Mode(Format::Table)),
            (".headers off;", Dot::Headers(false)),
            (".schema", Dot::Schema(None)),
            (".tables 'a b%'", Dot::Tables(Some("a b%".to_owned()))),
            (".output stdout", Dot::Output { file: None, once: false }),
        ];
        for (line, dot) in same {
            assert_eq!(parse(line), Ok(dot), "{line}");
        }
        let import = Dot::Import { file: "a b.csv".to_owned(), table: "t".to_owned(), csv: true, skips: true };
        assert_eq!(parse(".import --csv --skip 1 \"a b.csv\" t"), Ok(import));
    }

    #[test]
    fn what_is_wrong_says_what_to_type() {
        let wrong = |line: &str| parse(line).unwrap_err();
        assert_eq!(wrong(".nothing"), ".nothing is no command: .help lists them");
        assert_eq!(wrong(".read"), "type .read FILE");
        assert_eq!(wrong(".timer maybe"), "type on or off");
        assert!(wrong(".mode html").starts_with("a mode is one of table, box"));
        assert_eq!(wrong(".read 'a"), "a quote has no end");
    }
}
