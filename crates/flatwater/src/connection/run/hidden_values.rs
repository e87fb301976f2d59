//! Hiding bound values in SQLite's messages.
//!
//! Owns: which part of a message is shown. Pure; runs on the thread that has the connection, which may hold the writer.
//! Invariants: of a bound value no piece of four bytes, no word or number, and nothing that stands in quotes or between
//! blanks, is shown, unless it stands in the SQL too; the work grows with the length of the values and of the SQL, and not with
//! their product with the message, of which only the beginning is shown. Leaves out: which messages may quote a value
//! (`execute`).

use std::borrow::Cow;

use rusqlite::types::ValueRef;

use flatwater_base::error::beginning;
use flatwater_base::growth_counter::step;
use flatwater_base::values::params::ParamRow;

/// A piece shorter than this, inside of a word, is taken for a coincidence.
const TELLING_BYTES: usize = 4;
/// How much of a message is shown.
const SHOWN_BYTES: usize = 500;
const REPLACEMENT: &str = "(a bound value)";
/// How messages begin that SQLite, or `REGEXP`, makes of no value. They can be read even if a value has the same words.
const CONSTANT: &[&str] = &[
    "a pattern of REGEXP is not a regular expression",
    "a search for a pattern of REGEXP took too long",
    "a text for REGEXP is not UTF-8",
    "a virtual table is out of step with its content",
    "bad JSON path: ",
    "database disk image is malformed",
    "datatype mismatch",
    "ESCAPE expression must be a single character",
    "fts5: syntax error near ",
    "JSON cannot hold BLOB values",
    "malformed JSON",
    "malformed MATCH expression: ",
    "no such column: ",
    "no such function: ",
    "parse error in rank function: ",
    "REGEXP searches texts, and not a BLOB",
    "string or blob too big",
    "unable to open database: ",
    "unknown special query: ",
    "unknown tokenizer: ",
    "unterminated string",
];

/// Returns what may be shown of the message, or `None` if that is all of it.
pub(crate) fn hide_values(message: &str, sql: &str, params: ParamRow<'_>) -> Option<String> {
    let shown = beginning(message, SHOWN_BYTES);
    // A piece of a value may reach beyond what is shown.
    let looked = &message.as_bytes()[..message.len().min(SHOWN_BYTES + TELLING_BYTES - 1)];
    let mut hidden = vec![false; looked.len()];
    let short = (1..TELLING_BYTES).flat_map(|length| [(length, Stands::InQuotes), (length, Stands::Alone)]);
    for (length, stands) in short.chain([(TELLING_BYTES, Stands::Anywhere)]) {
        let mut pieces = Pieces::of(looked, length, stands);
        if pieces.places.is_empty() {
            continue;
        }
        pieces.look(Origin::Value, params.values().map(bytes));
        pieces.look(Origin::Sql, std::iter::once(Cow::Borrowed(sql.as_bytes())));
        pieces.secret().for_each(|at| hidden[at..at + length].fill(true));
    }
    let constant = CONSTANT.iter().filter(|begin| message.starts_with(**begin)).map(|begin| begin.len()).max();
    hidden[..constant.unwrap_or(0)].fill(false);
    if shown.len() == message.len() && !hidden.contains(&true) {
        return None;
    }
    let mut safe = String::new();
    let mut is_hiding = false;
    for (at, character) in shown.char_indices() {
        let hides = hidden[at..at + character.len_utf8()].contains(&true);
        match hides {
            true if !is_hiding => safe.push_str(REPLACEMENT),
            true => {}
            false => safe.push(character),
        }
        is_hiding = hides;
    }
    if shown.len() < message.len() {
        safe.push_str("...");
    }
    Some(safe)
}

/// The value as it stands in a message, in which what is not UTF-8 is replaced.
fn bytes(value: ValueRef<'_>) -> Cow<'_, [u8]> {
    match value {
        ValueRef::Null => Cow::Borrowed(&[]),
        ValueRef::Integer(number) => number.to_string().into_bytes().into(),
        // In the forms that SQLite writes, of which the last one is rounded. No message has the byte between them.
        ValueRef::Real(number) => format!("{number}\0{number:?}\0{number:.14e}").into_bytes().into(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => match String::from_utf8_lossy(bytes) {
            Cow::Borrowed(text) => text.as_bytes().into(),
            Cow::Owned(text) => text.into_bytes().into(),
        },
    }
}

/// How a piece stands in the message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stands {
    Anywhere,
    InQuotes,
    /// A word, a number, or whatever is between blanks.
    Alone,
}

fn is_in_quotes(text: &[u8], at: usize, length: usize) -> bool {
    let is_quote = |at: Option<usize>| at.is_some_and(|at| matches!(text.get(at), Some(b'"' | b'\'')));
    is_quote(at.checked_sub(1)) && is_quote(Some(at + length))
}

fn stands_alone(text: &[u8], at: usize, length: usize) -> bool {
    let piece = &text[at..at + length];
    let around = [at.checked_sub(1).map(|before| text[before]), text.get(at + length).copied()];
    let is_blank = |byte: Option<u8>| byte.is_none_or(|byte| byte.is_ascii_whitespace());
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii();
    let is_word =
        |of: &dyn Fn(u8) -> bool| piece.iter().all(|byte| of(*byte)) && around.iter().all(|byte| !byte.is_some_and(of));
    around.into_iter().all(is_blank) || is_word(&is_letter) || is_word(&|byte| byte.is_ascii_digit())
}

/// Where a text comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Value,
    Sql,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Piece {
    number: u32,
    /// In a value, in the SQL.
    found: [bool; 2],
}

/// The pieces of one length of a message, each as a number, and where each was found.
struct Pieces {
    length: usize,
    stands: Stands,
    /// Each place in the message, by the number of the piece that begins there.
    places: Vec<(u32, usize)>,
    /// The distinct pieces, in the order of their numbers.
    numbers: Vec<Piece>,
}

/// One bit for each remainder of a number: most pieces of other texts are told apart by one look.
struct Filter(Box<[u64; Filter::WORDS]>);

impl Filter {
    const WORDS: usize = 1 << 10;

    fn of(numbers: impl Iterator<Item = u32>) -> Self {
        let mut filter = Self(Box::new([0; Self::WORDS]));
        numbers.map(Self::place).for_each(|(word, bit)| filter.0[word] |= bit);
        filter
    }

    #[inline]
    fn place(number: u32) -> (usize, u64) {
        let hash = number.wrapping_mul(0x9e37_79b1) >> 16;
        (hash as usize >> 6, 1 << (hash & 63))
    }

    #[inline]
    fn may_have(&self, number: u32) -> bool {
        let (word, bit) = Self::place(number);
        self.0[word] & bit != 0
    }
}

impl Pieces {
    /// The pieces of the message that have this length and stand there so.
    fn of(message: &[u8], length: usize, stands: Stands) -> Self {
        let windows = message.windows(length).enumerate();
        let mut places: Vec<_> = windows
            .filter(|(at, _)| match stands {
                Stands::Anywhere => true,
                Stands::InQuotes => is_in_quotes(message, *at, length),
                Stands::Alone => stands_alone(message, *at, length),
            })
            .map(|(at, piece)| (piece.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)), at))
            .collect();
        places.sort_unstable();
        let mut numbers: Vec<_> =
            places.iter().map(|(number, _)| Piece { number: *number, found: [false; 2] }).collect();
        numbers.dedup();
        Self { length, stands, places, numbers }
    }

    /// Notes which pieces stand in the texts. A piece that was found is not looked up again.
    fn look<'a>(&mut self, origin: Origin, texts: impl Iterator<Item = Cow<'a, [u8]>>) {
        let mask = u32::MAX >> (u32::BITS - 8 * u32::try_from(self.length).expect("at most four"));
        let mut filter = self.filter(origin);
        for text in texts {
            let begin = text.len().min(self.length - 1);
            let mut number = text[..begin].iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
            for (at, byte) in text[begin..].iter().enumerate() {
                step(1);
                number = (number << 8 | u32::from(*byte)) & mask;
                if filter.may_have(number) && self.counts(origin, &text, at) && self.found(origin, number) {
                    filter = self.filter(origin);
                }
            }
        }
    }

    /// Returns true if the piece there is one of the text, and not a part of a word of it. What stands in quotes may be any part
    /// of a value.
    fn counts(&self, origin: Origin, text: &[u8], at: usize) -> bool {
        match (self.stands, origin) {
            (Stands::Anywhere, _) | (Stands::InQuotes, Origin::Value) => true,
            (Stands::InQuotes, Origin::Sql) if is_in_quotes(text, at, self.length) => true,
            (Stands::InQuotes | Stands::Alone, _) => stands_alone(text, at, self.length),
        }
    }

    /// The pieces that were not found yet.
    fn filter(&self, origin: Origin) -> Filter {
        step(Filter::WORDS + self.numbers.len());
        Filter::of(self.numbers.iter().filter(|piece| !piece.found[origin as usize]).map(|piece| piece.number))
    }

    /// Returns true if the piece is one of these, and was not found before.
    fn found(&mut self, origin: Origin, number: u32) -> bool {
        step(self.numbers.len().ilog2() as usize + 1);
        let Some(piece) = self.numbers.binary_search_by_key(&number, |piece| piece.number).ok() else { return false };
        !std::mem::replace(&mut self.numbers[piece].found[origin as usize], true)
    }

    /// The places of the pieces that were found in a value and not in the SQL.
    fn secret(&self) -> impl Iterator<Item = usize> {
        let piece =
            |number| self.numbers.binary_search_by_key(&number, |piece| piece.number).map(|at| self.numbers[at]);
        let is_secret = move |number| piece(number).is_ok_and(|piece| piece.found == [true, false]);
        self.places.iter().filter(move |(number, _)| is_secret(*number)).map(|(_, at)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatwater_base::params;

    fn hide(message: &str, sql: &str, values: &[&str]) -> Option<String> {
        hide_values(message, sql, flatwater_base::values::Params::positional(values).unwrap().row())
    }

    #[test]
    fn messages_lose_what_was_bound_and_keep_what_stands_in_the_sql() {
        let params = params!["secret AND", "name", 123_456, 0.125].unwrap();
        let hide = |message, sql| hide_values(message, sql, params.row());
        assert_eq!(
            hide("fts5: syntax error near \"AND\"", "SELECT * FROM f(?)").unwrap(),
            "fts5: syntax error near \"(a bound value)\""
        );
        assert_eq!(hide("no such column: secret", "SELECT 1").unwrap(), "no such column: (a bound value)");
        assert_eq!(hide("bad 123456, bad 0.125", "SELECT 1").unwrap(), "bad (a bound value), bad (a bound value)");
        assert_eq!(hide("UNIQUE constraint failed: t.name", "INSERT INTO t (name) VALUES (?)"), None);
        assert_eq!(hide("no such column: secret", "SELECT secret"), None);
    }

    #[test]
    fn a_short_value_is_hidden_where_it_is_a_word_a_number_or_stands_in_quotes() {
        for (message, sql, value, shown) in [
            ("no such column: a", "SELECT * FROM f WHERE f MATCH ?", "a:b", "no such column: (a bound value)"),
            ("no such column: a1", "SELECT *", "x a1:b", "no such column: (a bound value)"),
            ("no such column: \u{e9}", "SELECT 1", "\u{e9}:b", "no such column: (a bound value)"),
            ("bad JSON path: '[a'", "SELECT json_extract('{}', ?)", "$[a", "bad JSON path: '(a bound value)'"),
            ("syntax error near \":\"", "SELECT 1 WHERE f MATCH :q", "a:b:", "syntax error near \"(a bound value)\""),
            ("bad value: !!", "SELECT 1", "!!", "bad value: (a bound value)"),
            ("x7 is locked", "SELECT 1", "7", "x(a bound value) is locked"),
            ("[a b] is wrong", "SELECT 1", "b a", "[(a bound value) (a bound value)] is wrong"),
        ] {
            assert_eq!(hide(message, sql, &[value]).as_deref(), Some(shown), "{message}");
        }
        for (message, sql, value) in [
            ("no such column: a", "SELECT a FROM f WHERE f MATCH ?", "a:b"),
            ("bad JSON path: 'ab'", "SELECT json_extract('{}', 'ab'), ?", "ab"),
            ("no such column: title", "SELECT 1", "no such know it"),
            ("a pattern of REGEXP is not a regular expression", "SELECT 1", "a("),
        ] {
            assert_eq!(hide(message, sql, &[value]), None, "{message}");
        }
        let numbers = params![7, 0.1 + 0.2, 1e16].unwrap();
        let shown = hide_values("row 7: 0.3, 1.0e+16", "", numbers.row()).unwrap();
        assert!(!shown.contains(['7', '3']) && !shown.contains("16"), "{shown}");
    }

    #[test]
    fn a_long_message_is_cut_and_shows_nothing_of_a_value_at_its_end() {
        let plain = "p".repeat(SHOWN_BYTES + 1);
        assert_eq!(hide(&plain, "", &["secret"]).unwrap(), format!("{}...", &plain[1..]));
        for shown in 0..=6 {
            let message = format!("{}secret", " ".repeat(SHOWN_BYTES - shown));
            let hidden = hide(&message, "", &["secret"]);
            let text = hidden.as_deref().unwrap_or(&message);
            assert!(!text.contains("se"), "{shown} bytes of it: {text:?}");
        }
    }

    #[test]
    fn no_part_of_a_character_is_hidden() {
        let value = "gr\u{fc}\u{df}e \u{1f600}";
        let hidden = hide(&format!("x \u{e9}{value}\u{e9} y"), "", &[value]).unwrap();
        assert_eq!(hidden, "x \u{e9}(a bound value)\u{e9} y");
    }

    #[test]
    fn invalid_utf8_and_many_values_hide_nothing_else() {
        let blobs: Vec<&[u8]> = vec![b"\xff\xfe\xfd\xfc"; 1000];
        let params = flatwater_base::values::Params::positional(&blobs).unwrap();
        assert_eq!(hide_values("no such table: plain", "", params.row()), None);
    }

    #[test]
    fn a_value_that_is_not_utf8_is_hidden_where_it_is_replaced() {
        let blob: &[u8] = b"ab\xffc\xfe";
        let params = flatwater_base::values::Params::positional([blob]).unwrap();
        let message = format!("bad {}", String::from_utf8_lossy(blob));
        assert_eq!(hide_values(&message, "", params.row()).unwrap(), "bad (a bound value)");
    }
}
