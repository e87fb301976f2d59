//! The code blocks of the README and the guide, as documentation tests.
//!
//! Owns: the list of pages whose Rust blocks must compile and run, or fail to compile where the page says so. Leaves
//! out: the programs, one file each in `bin`.

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/getting-started.md")]
mod getting_started {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/calls.md")]
mod calls {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/checked-sql.md")]
mod checked_sql {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/opening.md")]
mod opening {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/reading.md")]
mod reading {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/streams.md")]
mod streams {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/blobs.md")]
mod blobs {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/maintenance.md")]
mod maintenance {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/untrusted.md")]
mod untrusted {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/live.md")]
mod live {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/json.md")]
mod json {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/writing.md")]
mod writing {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/transactions.md")]
mod transactions {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/migrations.md")]
mod migrations {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/functions.md")]
mod functions {}

// With the feature `sqlcipher`: what is on the page fails without it.
#[cfg(all(doctest, feature = "sqlcipher"))]
#[doc = include_str!("../../../docs/guide/encryption.md")]
mod encryption {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/errors.md")]
mod errors {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/deadlines.md")]
mod deadlines {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/processes.md")]
mod processes {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/tuning.md")]
mod tuning {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/options.md")]
mod options {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/production.md")]
mod production {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/deployment.md")]
mod deployment {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/backups.md")]
mod backups {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/monitoring.md")]
mod monitoring {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/testing.md")]
mod testing {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/recipes.md")]
mod recipes {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/rust-libraries.md")]
mod rust_libraries {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/customers.md")]
mod customers {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/compile-errors.md")]
mod compile_errors {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/libsql.md")]
mod libsql {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/rqlite.md")]
mod rqlite {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/scaling.md")]
mod scaling {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/coming-from-tokio-rusqlite.md")]
mod coming_from_tokio_rusqlite {}
