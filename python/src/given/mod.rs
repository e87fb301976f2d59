//! What a program gives: statements, parameters, options, and how their values are read.

pub(crate) mod casts;
pub(crate) mod converters;
pub(crate) mod forms;
pub(crate) mod keys;
pub(crate) mod many;
pub(crate) mod options;
pub(crate) mod params;
pub(crate) mod paths;
pub(crate) mod reading;
pub(crate) mod seconds;
pub(crate) mod statement;
pub(crate) mod table;
mod table_texts;
mod table_values;
