//! What a text is. Its class, what it may do, and what is remembered of it.

pub(crate) mod bracket;
pub(crate) mod catalogue;
pub(crate) mod change_functions;
pub(crate) mod class;
pub(crate) mod grouping;
pub(crate) mod in_force;
pub(crate) mod lru;
pub(crate) mod parameters;
pub(crate) mod policy;
pub(crate) mod pragma;
pub(crate) mod schema_seen;
pub(crate) mod script;
pub(crate) mod stable_form;
pub(crate) mod statement_info;
pub(crate) mod tokens;
pub(crate) mod unreported_changes;
