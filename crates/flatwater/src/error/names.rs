//! The names of the API that hints use.
//!
//! Owns: the names, and how Rust spells them. Pure data. Invariant: a hint names nothing of the API but by these, so that
//! another language needs a table of them and no more. Leaves out: the hints (`hint`), and the tables of other languages
//! (`flatwater-bridge`).

/// Declares the names, each with its spelling in Rust.
macro_rules! names {
    ($($name:ident = $rust:literal,)*) => {
        /// What a hint names of the API. A language may need a clause where Rust has a name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Name {
            $(#[doc = $rust] $name,)*
        }

        impl Name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns how Rust spells it.
            #[must_use]
            pub const fn rust(self) -> &'static str {
                match self {
                    $(Self::$name => $rust,)*
                }
            }
        }
    };
}

names! {
    ReadOnly = "`Options::read_only`",
    BusyTimeout = "`Options::busy_timeout`",
    Key = "`Options::key`",
    Rekey = "`db.rekey`",
    Encryption = "build it with the cargo feature `sqlcipher`",
    Export = "`db.export`",
    OnOpen = "`Options::on_open`",
    OnConnect = "`Options::on_connect`",
    CreateFunctions = "`db.functions()`",
    Attach = "`Options::attach`",
    ForeignKeys = "`Options::foreign_keys`",
    DoubleQuotedStrings = "`Options::double_quoted_strings`",
    Durability = "`Options::durability`",
    TransactionIdle = "`Options::transaction_idle`",
    AutoVacuum = "`Tuning::auto_vacuum`",
    Checkpoint = "`Tuning::checkpoint`",
    ExtraReaders = "`Tuning::extra_readers`",
    Immutable = "`Tuning::immutable`",
    Journal = "`Tuning::journal`",
    MemoryLimit = "`Tuning::memory_limit`",
    MmapBytes = "`Tuning::mmap_bytes`",
    NetworkFilesystem = "`Tuning::network_filesystem`",
    PageSize = "`Tuning::page_size`",
    ReadLimit = "`Tuning::read_limit`",
    ReaderCacheBytes = "`Tuning::reader_cache_bytes`",
    ResultLimit = "`Tuning::result_limit`",
    SecondCopy = "`Tuning::second_copy`",
    SnapshotAge = "`Tuning::snapshot_age`",
    SpillBytes = "`Tuning::spill_bytes`",
    StepLimit = "`Tuning::step_limit`",
    StreamIdle = "`Tuning::stream_idle`",
    TempStore = "`Tuning::temp_store`",
    WriterCacheBytes = "`Tuning::writer_cache_bytes`",
    IgnoreMissing = "`Migrations::ignore_missing`",
    JsonArrays = "`JsonOptions::arrays`",
    SetMaxOpen = "`process::set_max_open`",
    Open = "`open`",
    Batch = "`batch`",
    Execute = "`execute`",
    ExecuteScript = "`execute_script`",
    Query = "`query`",
    QueryOne = "`query_one`",
    QueryOptional = "`query_optional`",
    QueryOptionalAs = "`query_optional_as`",
    QueryOptionalValue = "`query_optional_value`",
    QueryValue = "`query_value`",
    Stream = "`stream`",
    Changes = "`changes`",
    LastInsertRowid = "`last_insert_rowid`",
    Null = "None",
    OpenToCreate = "open it without `read_only` and with `create`",
    BeginTransaction = "use `transaction(async |tx| ...)`, or `begin()`",
    EndsTransaction = "ends with `tx.commit()` or `tx.rollback()`",
    NestTransaction = "nest: `tx.transaction(async |tx| ...)` or `tx.begin()`; by name: `tx.savepoint(name)`",
    InsideTransaction = "inside a transaction or `write_with`",
    Vacuum = "`vacuum`",
    VacuumsFile = "`with_connection` and VACUUM",
}
