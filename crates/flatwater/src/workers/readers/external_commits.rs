//! Which commits a database that is only read has seen, for live queries.
//!
//! Owns: the comparison of the headers of the WALs, main and attached, with those of the look before. Pure; runs on the
//! thread that looks. Invariant: a file whose header cannot be read at the moment is compared at the next look with what was
//! seen before. Leaves out: reading the headers (`reader`), how often.

/// What every commit changes, for each file.
#[derive(Debug, Default)]
pub(crate) struct Stamps(Vec<Option<u32>>);

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Nothing,
    /// Something was committed since the look before, or this is the first one.
    Commits,
    /// There is no connection through which commits could be seen.
    Blind,
}

impl Stamps {
    pub(super) fn note(&mut self, now: impl Iterator<Item = Option<u32>>) -> Look {
        let mut look = Look::Nothing;
        for (at, stamp) in now.enumerate() {
            if self.0.len() <= at {
                self.0.push(None);
            }
            if stamp.is_some() && self.0[at] != stamp {
                self.0[at] = stamp;
                look = Look::Commits;
            }
        }
        look
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_to_any_file_is_seen_once() {
        let mut stamps = Stamps::default();
        let mut look = |now: [Option<u32>; 2]| stamps.note(now.into_iter());
        assert_eq!([look([Some(1), Some(1)]), look([Some(1), Some(1)])], [Look::Commits, Look::Nothing]);
        assert_eq!([look([Some(1), Some(2)]), look([Some(2), Some(2)])], [Look::Commits, Look::Commits]);
        assert_eq!([look([None, Some(2)]), look([Some(2), None])], [Look::Nothing, Look::Nothing]);
        assert_eq!([look([None, Some(3)]), look([Some(2), Some(3)])], [Look::Commits, Look::Nothing]);
    }
}
