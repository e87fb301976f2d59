//! Code of the program on a connection: closures, and connections of the caller's own.

mod closures;
mod hostile_closures;
mod on_connect;
mod own_connections;
mod whole_connection;
