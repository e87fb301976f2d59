//! The named parameters of a text.
//!
//! Owns: finding their names without a connection. Pure. Leaves out: parameters by number, and checking what was given, which
//! `flatwater-sqlite` does.

use super::tokens::words;

/// Returns the names of the parameters, without their sign, in the order of the text. One that is used twice comes twice.
pub(crate) fn names(sql: &str) -> impl Iterator<Item = &str> {
    let mut before = "";
    words(sql).filter_map(move |word| {
        let is_name = matches!(std::mem::replace(&mut before, word), ":" | "@") && word.starts_with(is_of_name);
        if is_name { Some(word) } else { word.strip_prefix('$').filter(|name| !name.is_empty()) }
    })
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn names_are_found_outside_of_strings_names_and_comments() {
        let sql = "SELECT :a, @b, $c, :a, :\u{e4}, :1, ?, ?2, ':d', \"x:e\", [:f] /* :g */ -- :h\n, :i";
        assert_eq!(names(sql).collect::<Vec<_>>(), ["a", "b", "c", "a", "\u{e4}", "1", "i"]);
        assert_eq!(names("SELECT ?, '$5'").count(), 0);
    }
}
