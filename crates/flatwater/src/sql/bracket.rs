//! Texts that begin or end a transaction, and do nothing else.
//!
//! Owns: telling them from others. Pure. Invariant: a text is one of them only if SQLite takes it for that too; one that is
//! not found only runs elsewhere. Leaves out: savepoints, and what such a text does.

use super::tokens::{Token, tokens};

/// What a text does that begins or ends a transaction, and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bracket {
    /// BEGIN, which takes no lock.
    Begin,
    /// BEGIN IMMEDIATE or EXCLUSIVE, which take the lock of writers.
    BeginWriting,
    /// COMMIT or END.
    Commit,
    Rollback,
}

/// Returns what the text does to the transaction, if it is nothing but that.
pub(crate) fn bracket(sql: &str) -> Option<Bracket> {
    let mut tokens =
        tokens(sql).map(|token| if let Token::Word(word) | Token::Other(word) = token { word } else { "" });
    let is = |word: &str, name: &str| word.eq_ignore_ascii_case(name);
    let first = tokens.next()?;
    let mut next = tokens.next();
    let bracket = match first {
        word if is(word, "BEGIN") => {
            let writes = next.is_some_and(|word| is(word, "IMMEDIATE") || is(word, "EXCLUSIVE"));
            if writes || next.is_some_and(|word| is(word, "DEFERRED")) {
                next = tokens.next();
            }
            if writes { Bracket::BeginWriting } else { Bracket::Begin }
        }
        word if is(word, "COMMIT") || is(word, "END") => Bracket::Commit,
        word if is(word, "ROLLBACK") => Bracket::Rollback,
        _ => return None,
    };
    if next.is_some_and(|word| is(word, "TRANSACTION")) {
        next = tokens.next();
    }
    next.into_iter().chain(tokens).all(|word| word == ";").then_some(bracket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_only_begins_or_ends_a_transaction_is_told_from_others() {
        for (sql, expected) in [
            ("BEGIN", Some(Bracket::Begin)),
            ("begin deferred transaction;", Some(Bracket::Begin)),
            ("/* x */ BEGIN TRANSACTION -- y", Some(Bracket::Begin)),
            ("BEGIN IMMEDIATE", Some(Bracket::BeginWriting)),
            ("BEGIN EXCLUSIVE TRANSACTION", Some(Bracket::BeginWriting)),
            ("COMMIT", Some(Bracket::Commit)),
            ("end transaction ;;", Some(Bracket::Commit)),
            ("ROLLBACK", Some(Bracket::Rollback)),
            ("ROLLBACK TRANSACTION", Some(Bracket::Rollback)),
            ("ROLLBACK TO a", None),
            ("ROLLBACK TRANSACTION TO a", None),
            ("COMMIT 'a'", None),
            ("BEGIN; SELECT 1", None),
            ("BEGIN CONCURRENT", None),
            ("; COMMIT", None),
            ("COMMIT\0", None),
            ("SAVEPOINT a", None),
            ("", None),
        ] {
            assert_eq!(bracket(sql), expected, "{sql}");
        }
    }
}
