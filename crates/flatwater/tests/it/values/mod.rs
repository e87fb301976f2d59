//! What a result is made of: values, columns, rows as types, JSON, and large values.

mod blobs;
mod columns;
#[cfg(feature = "derive")]
mod derived_rows;
#[cfg(all(feature = "derive", feature = "serde_json"))]
mod derived_values;
#[cfg(all(feature = "chrono", feature = "time", feature = "uuid"))]
mod forms;
mod json;
mod json_differential;
#[cfg(feature = "serde_json")]
mod json_embedded;
mod large_results;
#[cfg(all(feature = "bytes", feature = "jiff", feature = "rust_decimal"))]
mod other_crates;
#[cfg(feature = "serde")]
mod serde_rows;
mod typed_reads;
mod types;
