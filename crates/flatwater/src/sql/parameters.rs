//! The parameters of a text.
//!
//! Owns: finding their names, and how many there are, without a connection. Pure. Leaves out: checking what was given
//! for them, which `flatwater-sqlite` does where there is a connection.

use std::collections::HashSet;

use super::tokens::words;

/// Returns the names of the parameters, without their sign, in the order of the text. One that is used twice comes twice.
pub fn names(sql: &str) -> impl Iterator<Item = &str> {
    named(sql).map(|(_, name)| name)
}

/// Returns the names of the parameters with their signs, in the order of the text. One that is used twice comes twice.
pub(crate) fn signed(sql: &str) -> impl Iterator<Item = String> {
    named(sql).map(|(sign, name)| format!("{sign}{name}"))
}

/// Each name behind its sign.
fn named(sql: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut before = "";
    words(sql).filter_map(move |word| {
        let sign = std::mem::replace(&mut before, word);
        if matches!(sign, ":" | "@") && word.starts_with(is_of_name) {
            return Some((sign, word));
        }
        word.strip_prefix('$').filter(|name| !name.is_empty()).map(|name| ("$", name))
    })
}

/// Returns how many values a run needs: the highest number of a parameter. `?` has the next number, and so has a name when it
/// stands there first (<https://sqlite.org/lang_expr.html#varparam>).
pub(crate) fn count(sql: &str) -> usize {
    let (mut highest, mut named) = (0_usize, HashSet::new());
    let mut words = words(sql).peekable();
    while let Some(word) = words.next() {
        let name = match word {
            "?" => {
                let number = words.peek().and_then(|next| next.parse().ok());
                highest = number.map_or(highest + 1, |number: usize| highest.max(number));
                continue;
            }
            ":" | "@" => words.next_if(|next| next.starts_with(is_of_name)).map(|name| (word, name)),
            word => word.strip_prefix('$').filter(|name| !name.is_empty()).map(|name| ("$", name)),
        };
        if name.is_some_and(|name| named.insert(name)) {
            highest += 1;
        }
    }
    highest
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

#[cfg(test)]
mod tests {
    use super::{count, names, signed};

    #[test]
    fn names_are_found_outside_of_strings_names_and_comments() {
        let sql = "SELECT :a, @b, $c, :a, :\u{e4}, :1, ?, ?2, ':d', \"x:e\", [:f] /* :g */ -- :h\n, :i";
        assert_eq!(names(sql).collect::<Vec<_>>(), ["a", "b", "c", "a", "\u{e4}", "1", "i"]);
        assert_eq!(names("SELECT ?, '$5'").count(), 0);
        assert_eq!(signed("SELECT :a, @b, $c, ':d', :a").collect::<Vec<_>>(), [":a", "@b", "$c", ":a"]);
    }

    #[test]
    fn there_are_as_many_as_sqlite_counts() {
        let sqlite = rusqlite::Connection::open_in_memory().unwrap();
        for sql in [
            "SELECT 1",
            "SELECT ?, ?",
            "SELECT ?3, ?",
            "SELECT ?, ?1, ?",
            "SELECT :a, :a, @a, $a, ?",
            "SELECT ?2, :a, '?', \"?\" /* ? */ -- ?\n, ?",
            "SELECT :a, ?5, :b, :a",
            "SELECT ?, (SELECT ?) WHERE ? IN (?, ?)",
        ] {
            assert_eq!(count(sql), sqlite.prepare(sql).unwrap().parameter_count(), "{sql}");
        }
    }
}
