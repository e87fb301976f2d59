/**
 * The numbers that a program of node-sqlite3 knows by name.
 *
 * Owns: flags of `open`, result codes and limits, as the module exports them. Leaves out: which error has which code (`failures`).
 */

export const OPEN_READONLY = 0x1;
export const OPEN_READWRITE = 0x2;
export const OPEN_CREATE = 0x4;
export const OPEN_URI = 0x40;
export const OPEN_FULLMUTEX = 0x10000;
export const OPEN_SHAREDCACHE = 0x20000;
export const OPEN_PRIVATECACHE = 0x40000;

export const OK = 0;
export const ERROR = 1;
export const INTERNAL = 2;
export const PERM = 3;
export const ABORT = 4;
export const BUSY = 5;
export const LOCKED = 6;
export const NOMEM = 7;
export const READONLY = 8;
export const INTERRUPT = 9;
export const IOERR = 10;
export const CORRUPT = 11;
export const NOTFOUND = 12;
export const FULL = 13;
export const CANTOPEN = 14;
export const PROTOCOL = 15;
export const EMPTY = 16;
export const SCHEMA = 17;
export const TOOBIG = 18;
export const CONSTRAINT = 19;
export const MISMATCH = 20;
export const MISUSE = 21;
export const NOLFS = 22;
export const AUTH = 23;
export const FORMAT = 24;
export const RANGE = 25;
export const NOTADB = 26;

export const LIMIT_LENGTH = 0;
export const LIMIT_SQL_LENGTH = 1;
export const LIMIT_COLUMN = 2;
export const LIMIT_EXPR_DEPTH = 3;
export const LIMIT_COMPOUND_SELECT = 4;
export const LIMIT_VDBE_OP = 5;
export const LIMIT_FUNCTION_ARG = 6;
export const LIMIT_ATTACHED = 7;
export const LIMIT_LIKE_PATTERN_LENGTH = 8;
export const LIMIT_VARIABLE_NUMBER = 9;
export const LIMIT_TRIGGER_DEPTH = 10;
export const LIMIT_WORKER_THREADS = 11;
