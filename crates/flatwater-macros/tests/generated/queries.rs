//! Made by `flatwater types`. Changes are lost: change the SQL.

#![allow(clippy::needless_raw_string_hashes, clippy::too_many_arguments, unreachable_pub)]
#![cfg_attr(rustfmt, rustfmt_skip)]

/// A row of [`get_user`].
#[derive(Debug, Clone, PartialEq)]
pub struct GetUserRow {
    /// The column of this name.
    pub id: i64,
    /// The column of this name.
    pub name: String,
    /// The column of this name.
    pub email: Option<String>,
    /// The column of this name.
    pub active: bool,
    /// The column of this name.
    pub created_at: String,
}

/// One user, by the number.
///
/// # Errors
/// Those of the call.
pub async fn get_user(on: &flatwater::Session, id: i64) -> flatwater::Result<GetUserRow> {
    flatwater::query_as!(GetUserRow, r##"SELECT id, name, email, active, created_at FROM users WHERE id = :id"##, id).one(on).await
}

/// A row of [`find_users`].
#[derive(Debug, Clone, PartialEq)]
pub struct FindUsersRow {
    /// The column of this name.
    pub id: i64,
    /// The column of this name.
    pub n: i64,
}

/// The query FindUsers.
///
/// # Errors
/// Those of the call.
pub async fn find_users(on: &flatwater::Session, name: &str, email: &str) -> flatwater::Result<Vec<FindUsersRow>> {
    flatwater::query_as!(FindUsersRow, r##"SELECT id AS "id!", count(*) AS n FROM users WHERE name = ? OR email = ? GROUP BY id"##, name, email).all(on).await
}

/// The query AddUser.
///
/// # Errors
/// Those of the call.
pub async fn add_user(on: &flatwater::Session, name: &str, email: Option<&str>, born: Option<&str>) -> flatwater::Result<Option<i64>> {
    Ok(flatwater::query!(r##"INSERT INTO users (name, email, born) VALUES (:name, :email, :born)"##, name, email, born).execute(on).await?.last_insert_rowid)
}

/// The query RenameUser.
///
/// # Errors
/// Those of the call.
pub async fn rename_user(on: &flatwater::Session, name: &str, id: i64) -> flatwater::Result<u64> {
    Ok(flatwater::query!(r##"UPDATE users SET name = @name WHERE id = @id"##, name, id).execute(on).await?.changes)
}

/// The query Clear.
///
/// # Errors
/// Those of the call.
pub async fn clear(on: &flatwater::Session) -> flatwater::Result<()> {
    flatwater::query!(r##"DELETE FROM orders"##).execute(on).await.map(drop)
}

/// A row of [`last_order`].
#[derive(Debug, Clone, PartialEq)]
pub struct LastOrderRow {
    /// The column of this name.
    pub id: i64,
    /// The column of this name.
    pub total: f64,
    /// The column of this name.
    pub note: Option<String>,
}

/// The query LastOrder.
///
/// # Errors
/// Those of the call.
pub async fn last_order(on: &flatwater::Session, user_id: i64) -> flatwater::Result<Option<LastOrderRow>> {
    flatwater::query_as!(LastOrderRow, r##"SELECT id, total, note FROM orders WHERE user_id = ? ORDER BY id DESC LIMIT 1"##, user_id).optional(on).await
}
