mod connection; mod encode; mod types; mod waiting;
pub use rusqlite::ToSql; pub use types::params::{Params, IntoParams};
