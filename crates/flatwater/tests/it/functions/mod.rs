//! What a program adds to SQL: functions, collations, extensions and modules.

mod extensions;
mod in_schemas;
mod modules;
mod provided;
mod registered;
mod short;
mod timed;
