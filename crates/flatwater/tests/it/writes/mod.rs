//! Writes on the writer's thread: groups, and the writer's lease.

mod differential;
mod joined_groups;
mod leases;
mod returned_rows;
