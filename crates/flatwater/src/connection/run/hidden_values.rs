//! Hiding bound values in SQLite's messages.
//!
//! Owns: which part of a message is shown. Pure; runs on the thread that has the connection, which may hold the writer.
//! Invariants: of a bound value no piece of four bytes, and no shorter text that stands in quotes, is shown, unless it stands
//! in the SQL too; the work grows with the length of the values and of the SQL, and not with their product with the
//! message, of which only the beginning is shown. Leaves out: which messages may quote a value (`execute`).

use std::borrow::Cow;

use rusqlite::types::ValueRef;

use crate::growth_counter::step;
use crate::values::params::ParamRow;

/// A piece shorter than this is taken for a coincidence, unless it stands in quotes.
const TELLING_BYTES: usize = 4;
/// How much of a message is shown.
const SHOWN_BYTES: usize = 500;
const REPLACEMENT: &str = "(a bound value)";

/// Returns what may be shown of the message, or `None` if that is all of it.
pub(crate) fn hide_values(message: &str, sql: &str, params: ParamRow<'_>) -> Option<String> {
    let shown = &message[..message.floor_char_boundary(SHOWN_BYTES)];
    // A piece of a value may reach beyond what is shown.
    let looked = &message.as_bytes()[..message.len().min(SHOWN_BYTES + TELLING_BYTES - 1)];
    let mut hidden = vec![false; looked.len()];
    for length in 1..=TELLING_BYTES {
        let mut pieces = Pieces::of(looked, length);
        if pieces.places.is_empty() {
            continue;
        }
        pieces.look(Origin::Value, params.values().map(bytes));
        pieces.look(Origin::Sql, std::iter::once(Cow::Borrowed(sql.as_bytes())));
        pieces.secret().for_each(|at| hidden[at..at + length].fill(true));
    }
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
        ValueRef::Real(number) => number.to_string().into_bytes().into(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => match String::from_utf8_lossy(bytes) {
            Cow::Borrowed(text) => text.as_bytes().into(),
            Cow::Owned(text) => text.into_bytes().into(),
        },
    }
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
    /// All pieces of the message that have this length; of short ones, those that stand in quotes.
    fn of(message: &[u8], length: usize) -> Self {
        let is_quote = |at: Option<&u8>| matches!(at, Some(b'"' | b'\''));
        let stands_in_quotes =
            |at: usize| at > 0 && is_quote(message.get(at - 1)) && is_quote(message.get(at + length));
        let windows = message.windows(length).enumerate();
        let mut places: Vec<_> = windows
            .filter(|(at, _)| length == TELLING_BYTES || stands_in_quotes(*at))
            .map(|(at, piece)| (piece.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)), at))
            .collect();
        places.sort_unstable();
        let mut numbers: Vec<_> =
            places.iter().map(|(number, _)| Piece { number: *number, found: [false; 2] }).collect();
        numbers.dedup();
        Self { length, places, numbers }
    }

    /// Notes which pieces stand in the texts. A piece that was found is not looked up again.
    fn look<'a>(&mut self, origin: Origin, texts: impl Iterator<Item = Cow<'a, [u8]>>) {
        let mask = u32::MAX >> (u32::BITS - 8 * u32::try_from(self.length).expect("at most four"));
        let mut filter = self.filter(origin);
        for text in texts {
            let begin = text.len().min(self.length - 1);
            let mut number = text[..begin].iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
            for byte in &text[begin..] {
                step(1);
                number = (number << 8 | u32::from(*byte)) & mask;
                if filter.may_have(number) && self.found(origin, number) {
                    filter = self.filter(origin);
                }
            }
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
    use crate::params;

    fn hide(message: &str, sql: &str, values: &[&str]) -> Option<String> {
        hide_values(message, sql, crate::Params::positional(values).unwrap().row())
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
    fn characters_are_hidden_whole() {
        let value = "gr\u{fc}\u{df}e \u{1f600}";
        let hidden = hide(&format!("x \u{e9}{value}\u{e9} y"), "", &[value]).unwrap();
        assert_eq!(hidden, "x \u{e9}(a bound value)\u{e9} y");
    }

    #[test]
    fn invalid_utf8_and_many_values_hide_nothing_else() {
        let blobs: Vec<&[u8]> = vec![b"\xff\xfe\xfd\xfc"; 1000];
        let params = crate::Params::positional(&blobs).unwrap();
        assert_eq!(hide_values("no such table: plain", "", params.row()), None);
    }

    #[test]
    fn a_value_that_is_not_utf8_is_hidden_where_it_is_replaced() {
        let blob: &[u8] = b"ab\xffc\xfe";
        let params = crate::Params::positional([blob]).unwrap();
        let message = format!("bad {}", String::from_utf8_lossy(blob));
        assert_eq!(hide_values(&message, "", params.row()).unwrap(), "bad (a bound value)");
    }
}
