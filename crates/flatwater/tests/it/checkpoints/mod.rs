//! Checkpoints: the length of the WAL, whatever reads, writes or copies it meanwhile.

mod beside_litestream;
mod close;
mod kills;
mod processes;
mod readers;
mod wal_length;
