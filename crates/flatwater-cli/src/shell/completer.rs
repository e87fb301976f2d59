//! Completion: names of the schema, functions, words of SQL, and commands.
//!
//! Owns: which of them may stand where the cursor is. Runs on the thread of the editor. Invariant: the names are those of now, and one
//! that cannot be read in time is not offered. Leaves out: which of the names make sense in the statement.

use std::collections::BTreeSet;
use std::time::Duration;

use flatwater::Database;
use reedline::{Completer, CompletionResult, Span, Suggestion};

use super::dot::COMMANDS;
use super::words::KEYWORDS;
use crate::output::text::quoted;

/// So long the user waits for names.
const TIME: Duration = Duration::from_millis(300);

/// Tables, views, their columns, and functions.
const NAMES: &str = "SELECT name FROM pragma_table_list WHERE name NOT GLOB 'sqlite_*' UNION
    SELECT c.name FROM pragma_table_list AS t JOIN pragma_table_info(t.name) AS c WHERE t.name NOT GLOB 'sqlite_*' UNION
    SELECT name FROM pragma_function_list";

pub(super) struct Names {
    db: Database,
}

impl Names {
    pub(super) fn new(db: &Database) -> Self {
        Self { db: db.clone() }
    }
}

impl Completer for Names {
    fn complete(&mut self, line: &str, position: usize) -> CompletionResult {
        let before = &line[..position];
        let (begin, found) = if line.starts_with('.') {
            (0, commands(before))
        } else {
            let begin = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
            let begin = before.ceil_char_boundary(begin);
            let names: Vec<String> = self.db.query_values(NAMES, ()).timeout(TIME).wait().unwrap_or_default();
            (begin, candidates(&before[begin..], &names))
        };
        let span = Span::new(begin, position);
        let suggestion = |value| Suggestion { value, span, append_whitespace: true, ..Suggestion::default() };
        CompletionResult::fresh(found.into_iter().map(suggestion).collect::<Vec<_>>())
    }
}

fn commands(before: &str) -> Vec<String> {
    let names = COMMANDS.iter().filter_map(|(usage, _)| usage.split([' ', ',']).next());
    names.filter(|name| name.starts_with(before)).map(str::to_owned).collect()
}

/// Returns what begins as the word does: names, then words of SQL, in the case of the word.
fn candidates(word: &str, names: &[String]) -> Vec<String> {
    if word.is_empty() {
        return Vec::new();
    }
    let begins = |name: &str| name.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
    let names: BTreeSet<String> = names.iter().filter(|name| begins(name)).map(|name| written(name)).collect();
    let is_lower = word.chars().any(char::is_lowercase);
    let keyword = |keyword: &&str| if is_lower { keyword.to_lowercase() } else { (*keyword).to_owned() };
    let keywords = KEYWORDS.iter().filter(|keyword| begins(keyword)).map(keyword);
    let keywords: Vec<String> = keywords.filter(|keyword| !names.contains(keyword)).collect();
    names.into_iter().chain(keywords).collect()
}

/// A name as it is written in SQL.
fn written(name: &str) -> String {
    let is_word =
        name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit());
    let is_keyword = KEYWORDS.iter().any(|keyword| name.eq_ignore_ascii_case(keyword));
    if is_word && !is_keyword { name.to_owned() } else { quoted(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_before_words_of_sql() {
        let names = ["selling", "Select list", "order"].map(str::to_owned);
        assert_eq!(candidates("sel", &names), ["\"Select list\"", "selling", "select"]);
        assert_eq!(candidates("ORD", &names), ["\"order\"", "ORDER"]);
        assert_eq!(candidates("", &names), [""; 0]);
    }

    #[test]
    fn commands_are_completed() {
        assert_eq!(commands(".h"), [".headers", ".help"]);
    }
}
