//! The API: what a program calls. Each operation is defined once, in `session`.
//!
//! Runs on callers' threads. Invariant: nothing here blocks but what says so, and no work begins before a call is
//! polled. Leaves out: serving calls (`engine`), and the interface for front ends in other languages (`bindings`).

/// A type of which debug output shows the name alone.
macro_rules! opaque {
    ($name:ident $(<$($of:ident),+>)?) => {
        impl$(<$($of),+>)? std::fmt::Debug for $name$(<$($of),+>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

pub(crate) mod backup_call;
pub(crate) mod blob;
pub(crate) mod call;
#[cfg(feature = "macros")]
pub(crate) mod checked;
#[cfg(feature = "macros")]
pub(crate) mod checked_values;
pub(crate) mod closures;
pub(crate) mod connection;
pub(crate) mod database;
pub(crate) mod execute_many;
pub(crate) mod integrity_check;
pub(crate) mod json_call;
pub(crate) mod live;
pub(crate) mod maintenance;
pub(crate) mod open;
pub(crate) mod pending;
pub(crate) mod prepared;
pub(crate) mod report;
pub(crate) mod session;
pub(crate) mod sql;
pub(crate) mod statement;
pub(crate) mod stream;
#[cfg(feature = "testing")]
pub mod testing;
pub(crate) mod transaction;
pub(crate) mod transaction_call;

#[cfg(test)]
mod tests {
    use crate::workers::Answer;
    use crate::workers::work::Work;
    use flatwater_base::error::Result;
    use flatwater_base::values::row::Rows;

    /// A call is moved a few times before it is polled, and its answer after that. In bytes, on machines of 64 bits.
    #[test]
    fn what_is_moved_on_the_short_path_stays_small() {
        assert!(size_of::<super::call::Call<Rows>>() <= 216);
        assert!(size_of::<Work>() <= 80 && size_of::<Result<Answer>>() <= 56);
    }
}
