//! How long a database and what it uses are kept: closing, parking, and many databases at once.

mod closing;
mod leaks;
mod left_behind;
mod many_databases;
mod parking;
mod process;
