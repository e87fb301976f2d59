//! The integration tests of the engine: one program, one module per subject.

mod asking_pragmas;
mod attached_pragmas;
mod backups;
mod bad_input;
mod bad_paths;
mod basics;
mod begun_inline;
mod blobs;
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
mod dumps;
mod dynamic_sql;
mod earlier_statements;
mod edges;
#[cfg(feature = "sqlcipher")]
mod encryption;
mod ends;
mod error_texts;
mod extensions;
mod failed_statements;
mod first_mistakes;
mod floors;
mod foreign_code;
mod functions;
mod functions_in_schemas;
mod hints;
mod hostile_closures;
mod how_to_open;
mod inline;
mod inline_differential;
mod inline_transactions;
mod inline_writes;
mod integrity;
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
mod live_cancel;
mod live_changes;
mod live_changes_random;
mod live_edges;
mod live_groups;
mod live_random;
mod live_slow;
mod many_databases;
mod migrating_processes;
mod migrations;
mod named_savepoints;
mod new_files;
mod on_connect;
mod one_engine;
mod one_off_texts;
mod opening_together;
mod optimizing;
mod own_connections;
mod parking;
mod place;
mod pragma_functions;
mod prepared;
mod process;
mod provided_functions;
mod read_only_directory;
mod readers;
mod rebuilds;
mod runtimes;
mod savepoints;
mod schema;
mod secrets;
#[cfg(feature = "serde")]
mod serde_rows;
mod serialized;
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
mod turnstile;
#[cfg(target_os = "linux")]
mod turnstile_faults;
#[cfg(target_os = "linux")]
mod turnstile_rights;
mod type_sizes;
mod typed_reads;
#[cfg(not(feature = "sqlcipher"))]
mod unencrypted;
mod untrusted;
mod vacuums;
#[cfg(all(feature = "chrono", feature = "time", feature = "uuid"))]
mod value_forms;
mod value_types;
mod virtual_tables;
mod waits;
mod wakers;
mod whole_connection;
mod woken;
mod write_leases;
mod writers;
