//! The integration tests of the engine: one program, one module per subject.

mod bad_input;
mod bad_paths;
mod basics;
mod cancel;
mod checkpoint_close;
mod checkpoint_kills;
mod checkpoint_processes;
mod checkpoint_readers;
mod checkpoints;
mod closing;
mod closures;
mod columns;
mod database_urls;
mod deadlines;
#[cfg(feature = "derive")]
mod derived_rows;
#[cfg(all(feature = "derive", feature = "serde_json"))]
mod derived_values;
mod differential;
mod dynamic_sql;
mod edges;
mod error_texts;
mod failed_statements;
mod first_mistakes;
mod floors;
mod foreign_code;
mod hostile_closures;
mod how_to_open;
mod inline;
mod inline_differential;
mod inline_transactions;
mod inline_writes;
mod json;
mod json_differential;
#[cfg(feature = "serde_json")]
mod json_embedded;
mod kill;
mod killed_steps;
mod large_results;
mod leaks;
mod learning;
mod leases;
mod left_behind;
mod limits;
mod live;
mod live_groups;
mod live_random;
mod many_databases;
mod migrating_processes;
mod migrations;
mod named_savepoints;
mod one_engine;
mod one_off_texts;
mod opening_together;
mod parking;
mod place;
mod pragma_functions;
mod prepared;
mod read_only_directory;
mod readers;
mod rebuilds;
mod runtimes;
mod savepoints;
mod schema;
mod secrets;
#[cfg(feature = "serde")]
mod serde_rows;
mod settings;
mod snapshots;
mod state;
mod statement_events;
mod statements;
mod streams;
mod support;
#[cfg(feature = "testing")]
mod test_databases;
mod transaction_bodies;
mod transactions;
mod typed_reads;
#[cfg(all(feature = "chrono", feature = "time", feature = "uuid"))]
mod value_forms;
mod value_types;
mod virtual_tables;
mod wakers;
mod whole_connection;
mod write_leases;
