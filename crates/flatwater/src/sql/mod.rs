//! What a text is. Its class, what it may do, and what is remembered of it.

pub(crate) mod catalogue;
pub(crate) mod change_functions;
pub(crate) mod class;
pub(crate) mod grouping;
pub(crate) mod lru;
pub(crate) mod policy;
pub(crate) mod pragma;
pub(crate) mod stable_form;
pub(crate) mod statement_info;
pub(crate) mod text;
pub(crate) mod tokens;
