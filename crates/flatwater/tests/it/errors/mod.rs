//! Errors: what they say of wrong input, and what they never contain.

pub(crate) mod bad_input;
mod bad_paths;
mod database_urls;
mod first_mistakes;
mod hints;
mod secrets;
mod texts;
