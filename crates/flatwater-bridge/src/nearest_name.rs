//! Names that are nearly right.
//!
//! Owns: which known name a caller may have meant, and the sentence that says so. Pure. Leaves out: which names there
//! are.

/// A longer name is taken for none that was mistyped: comparing two names takes a time that grows with their product.
const NAME_BYTES: usize = 64;

/// Returns the known name that differs least from `given`, if it differs little.
#[must_use]
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if given.len() > NAME_BYTES {
        return None;
    }
    let plain = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    let wanted = plain(given);
    let near = known.into_iter().filter_map(|name| Some((distance(&plain(name), &wanted)?, name)));
    near.min().map(|(_, name)| name)
}

/// Returns in how many letters the names differ, if that is in a third of the longer one and in three at most.
fn distance(name: &str, wanted: &str) -> Option<usize> {
    let most = (name.len().max(wanted.len()) / 3).min(3);
    let may_be_near = name.len().abs_diff(wanted.len()) <= most;
    may_be_near.then(|| strsim::damerau_levenshtein(name, wanted)).filter(|distance| *distance <= most)
}

/// Returns the sentence for an unknown name: `what` it should be the name of, such as "option".
#[must_use]
pub fn unknown<'a>(what: &str, given: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(given, known.clone()) {
        Some(name) => format!("there is no {what} {given:?}; did you mean {name:?}?"),
        None => {
            let all = known.into_iter().collect::<Vec<_>>().join(", ");
            format!("there is no {what} {given:?}; there are: {all}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 3] = ["busy_timeout", "readers", "foreign_keys"];

    #[test]
    fn a_name_that_is_nearly_right_is_recognised() {
        for (given, meant) in [
            ("busytimeout", "busy_timeout"),
            ("busyTimeout", "busy_timeout"),
            ("reader", "readers"),
            ("foriegn_keys", "foreign_keys"),
        ] {
            assert_eq!(nearest(given, KNOWN), Some(meant));
        }
        assert_eq!((nearest("isolation_level", KNOWN), nearest("x", KNOWN)), (None, None));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_or_with_all() {
        assert_eq!(unknown("option", "reader", KNOWN), "there is no option \"reader\"; did you mean \"readers\"?");
        assert!(unknown("option", "isolation", KNOWN).ends_with("there are: busy_timeout, readers, foreign_keys"));
    }
}
