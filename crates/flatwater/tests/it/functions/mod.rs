//! What a program adds to SQL: functions, collations, extensions and modules.

mod extensions;
mod in_schemas;
mod modules;
#[cfg(feature = "regexp")]
mod provided;
mod registered;
mod short;
mod timed;
mod waiting;
#[cfg(not(feature = "regexp"))]
mod without_regexp;
