//! Calls that run on the thread of their caller: nothing else about them changes.

mod begun_transactions;
mod differential;
mod own_connections;
mod reads;
mod rows;
mod scans;
mod snapshots;
mod transactions;
mod writes;
