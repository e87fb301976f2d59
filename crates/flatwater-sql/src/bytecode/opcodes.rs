//! Properties of SQLite's instructions and functions, as tables. Pure.
//!
//! Owns: where control goes after an instruction, whether SQLite checks the progress handler there, and whether its
//! work is short for any data. Invariant: an instruction or function that is in no table is opaque. "Short" assumes the
//! limit of 64 KiB for one value, which an inline run sets: about 200 us for a value, most take far less. Leaves out:
//! whole programs. The reasons are in `docs/design/inline.md`.

/// Where control goes after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// To the next instruction.
    On,
    /// To the next instruction, or to P2 if P2 is not 0.
    Branch,
    /// As `Branch`, and SQLite checks the progress handler before it continues.
    LookingBranch,
    /// To P2, after a check of the progress handler.
    Goto,
    /// To P2, after a check of the progress handler. Register P1 receives the return address.
    Gosub,
    /// To the address in register P1, or to the next instruction.
    Return,
    /// To P2. A coroutine begins at P3.
    InitCoroutine,
    /// To the other side of the coroutine in register P1.
    Yield,
    /// To P2 of the `Yield` that resumed the coroutine.
    EndCoroutine,
    /// To P1, P2 or P3.
    Jump,
    /// The first time to the next instruction, after that to P2.
    Once,
    /// The program ends.
    Halt,
    /// The work can be long without a check of the progress handler, or control goes to an address that the listing
    /// does not show.
    Opaque,
}

impl Flow {
    /// Returns whether SQLite checks the progress handler after such an instruction.
    pub(super) fn looks(self) -> bool {
        matches!(self, Self::LookingBranch | Self::Goto | Self::Gosub)
    }
}

/// Returns the control flow of an opcode; `None` for an unknown opcode.
pub(super) fn flow(opcode: &str) -> Option<Flow> {
    Some(match opcode {
        // Values and registers.
        "Add" | "AddImm" | "Affinity" | "And" | "BeginSubrtn" | "BitAnd" | "BitNot" | "BitOr" | "Blob" | "Cast"
        | "ClrSubtype" | "CollSeq" | "Compare" | "Concat" | "Copy" | "Divide" | "Function" | "GetSubtype"
        | "HaltIfNull" | "Int64" | "IntCopy" | "Integer" | "IsTrue" | "MakeRecord" | "MemMax" | "Move" | "Multiply"
        | "Not" | "Null" | "OffsetLimit" | "Or" | "Param" | "Permutation" | "PureFunc" | "Real" | "RealAffinity"
        | "Remainder" | "ResultRow" | "SCopy" | "SetSubtype" | "ShiftLeft" | "ShiftRight" | "SoftNull" | "String"
        | "String8" | "Subtract" | "TypeCheck" | "Variable" | "ZeroOrNull" => Flow::On,
        // Aggregates; `is_short_function` decides about their functions.
        "AggStep" | "AggFinal" => Flow::On,
        // A pass over a whole b-tree: `analysis::COUNT`.
        "Count" => Flow::On,
        // Operations on one position of one b-tree.
        "Close" | "Column" | "ColumnsUsed" | "CursorHint" | "CursorLock" | "CursorUnlock" | "DeferredSeek"
        | "Delete" | "FilterAdd" | "FinishSeek" | "IdxDelete" | "IdxInsert" | "IdxRowid" | "Insert" | "NewRowid"
        | "NullRow" | "Offset" | "OpenEphemeral" | "OpenPseudo" | "OpenRead" | "OpenWrite" | "ReopenIdx"
        | "RowData" | "Rowid" | "SeekEnd" | "SeekHit" | "Sequence" => Flow::On,
        // State of the statement.
        "Abortable" | "Explain" | "FkCheck" | "FkCounter" | "Noop" | "ReleaseReg" | "ResetCount" | "TableLock"
        | "Trace" | "Transaction" => Flow::On,
        // Comparisons.
        "DecrJumpZero" | "ElseEq" | "Eq" | "Filter" | "FkIfZero" | "Ge" | "Gt" | "If" | "IfNot" | "IfNotZero"
        | "IfNullRow" | "IfPos" | "IsNull" | "IsType" | "Le" | "Lt" | "MustBeInt" | "Ne" | "NotNull" => Flow::Branch,
        // Seeks and steps in one b-tree.
        "Found" | "IdxGE" | "IdxGT" | "IdxLE" | "IdxLT" | "IfEmpty" | "IfNoHope" | "IfSizeBetween" | "Last"
        | "NoConflict" | "NotExists" | "NotFound" | "Rewind" | "SeekGE" | "SeekGT" | "SeekLE" | "SeekLT"
        | "SeekRowid" | "SeekScan" | "SequenceTest" | "Sort" => Flow::Branch,
        "Init" => Flow::Branch,
        // Of SQLite before 3.54, and so of SQLCipher.
        "IfNotOpen" => Flow::Branch,
        "Next" | "Prev" => Flow::LookingBranch,
        "Goto" => Flow::Goto,
        "Gosub" => Flow::Gosub,
        "Return" => Flow::Return,
        "InitCoroutine" => Flow::InitCoroutine,
        "Yield" => Flow::Yield,
        "EndCoroutine" => Flow::EndCoroutine,
        "Jump" => Flow::Jump,
        "Once" => Flow::Once,
        "Halt" => Flow::Halt,
        // Operations on a whole table or b-tree in one instruction.
        "Clear" | "Destroy" | "IFindKey" | "IntegrityCk" | "ResetSorter" | "RowCell" => Flow::Opaque,
        // Sorting, and sets that are sorted when they are read.
        "RowSetAdd" | "RowSetRead" | "RowSetTest" | "SorterCompare" | "SorterData" | "SorterInsert" | "SorterNext"
        | "SorterOpen" | "SorterSort" => Flow::Opaque,
        // Indexes built for one statement, and window functions.
        "AggInverse" | "AggStep1" | "AggValue" | "OpenAutoindex" | "OpenDup" => Flow::Opaque,
        // Triggers and foreign key actions on other rows.
        "Program" => Flow::Opaque,
        // Virtual tables.
        "VBegin" | "VCheck" | "VColumn" | "VCreate" | "VDestroy" | "VFilter" | "VInitIn" | "VNext" | "VOpen"
        | "VRename" | "VUpdate" => Flow::Opaque,
        // The schema, the file and the transaction.
        "AutoCommit" | "Checkpoint" | "CreateBtree" | "DropIndex" | "DropTable" | "DropTrigger" | "Expire"
        | "IncrVacuum" | "JournalMode" | "LoadAnalysis" | "MaxPgcnt" | "Pagecount" | "ParseSchema" | "ReadCookie"
        | "Savepoint" | "SetCookie" | "SqlExec" | "Vacuum" => Flow::Opaque,
        _ => return None,
    })
}

/// Returns whether a function is short. `call` is its name in P4, with the number of arguments it was declared with,
/// negative if that varies.
pub(super) fn is_short_function(call: &str) -> bool {
    matches!(
        call,
        // Selection and type tests.
        "coalesce(-4)" | "coalesce(-1)" | "iif(-4)" | "iif(3)" | "if(-4)" | "ifnull(2)" | "nullif(2)" | "likely(1)"
        | "unlikely(1)" | "likelihood(2)" | "typeof(1)" | "subtype(1)" | "max(-3)" | "max(-1)" | "min(-3)"
        | "min(-1)" | "changes(0)" | "total_changes(0)" | "last_insert_rowid(0)" | "sqlite_version(0)"
        | "sqlite_source_id(0)"
        // Text and blob functions with time linear in the length of their arguments.
        | "char(-1)" | "concat(-3)" | "concat_ws(-4)" | "hex(1)" | "length(1)" | "lower(1)" | "ltrim(1)"
        | "octet_length(1)" | "quote(1)" | "randomblob(1)" | "rtrim(1)" | "soundex(1)" | "substr(2)" | "substr(3)"
        | "substring(2)" | "substring(3)" | "trim(1)" | "unhex(1)" | "unicode(1)" | "unistr(1)" | "unistr_quote(1)"
        | "upper(1)" | "zeroblob(1)"
        // Numeric functions.
        | "abs(1)" | "random(0)" | "round(1)" | "round(2)" | "sign(1)" | "acos(1)" | "acosh(1)" | "asin(1)"
        | "asinh(1)" | "atan(1)" | "atan2(2)" | "atanh(1)" | "ceil(1)" | "ceiling(1)" | "cos(1)" | "cosh(1)"
        | "degrees(1)" | "exp(1)" | "floor(1)" | "ln(1)" | "log(1)" | "log(2)" | "log10(1)" | "log2(1)" | "mod(2)"
        | "pi(0)" | "pow(2)" | "power(2)" | "radians(1)" | "sin(1)" | "sinh(1)" | "sqrt(1)" | "tan(1)" | "tanh(1)"
        | "trunc(1)"
        // Date and time functions.
        | "current_date(0)" | "current_time(0)" | "current_timestamp(0)" | "date(-1)" | "datetime(-1)"
        | "julianday(-1)" | "time(-1)" | "timediff(2)" | "unixepoch(-1)"
        // Aggregates.
        | "avg(1)" | "count(0)" | "count(1)" | "group_concat(1)" | "group_concat(2)" | "max(1)" | "min(1)"
        | "string_agg(2)" | "sum(1)" | "total(1)"
    )
}

/// Returns whether a collation is SQLite's own. P4 writes BINARY as `B` or as an empty name.
pub(super) fn is_own_collation(name: &str) -> bool {
    ["", "B", "BINARY", "NOCASE", "RTRIM"].iter().any(|own| own.eq_ignore_ascii_case(name))
}
