//! Which kind of server it is.
//!
//! Owns: the choice. Pure. Leaves out: what each of them says otherwise (`forms`).

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Rqlite,
    Libsql,
}

impl Dialect {
    /// That of an address.
    pub(crate) fn scheme(self) -> &'static str {
        match self {
            Self::Rqlite => "rqlite",
            Self::Libsql => "libsql",
        }
    }
}
