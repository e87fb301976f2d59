//! Tasks: a page of them, one of them, and changes.
//!
//! Owns: their handlers, and the SQL of a search. Leaves out: telling clients of a change, for which the handlers do nothing
//! (`events`).

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use flatwater::{FromRow, FromSql, Sql, ToSql};
use serde::{Deserialize, Serialize};

use crate::App;
use crate::failure::Failure;

#[derive(FromSql, ToSql, Serialize, Deserialize)]
#[flatwater(rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub(crate) enum Progress {
    Open,
    Done,
}

#[derive(FromRow, Serialize)]
pub(crate) struct Task {
    id: i64,
    title: String,
    state: Progress,
    due: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Search {
    state: Option<Progress>,
    text: Option<String>,
    due_by: Option<String>,
    /// The `id` of the last task of the page before.
    after: Option<i64>,
    limit: Option<u8>,
}

impl Search {
    /// Returns the query of a page.
    pub(crate) fn sql(self) -> Sql {
        let mut sql = Sql::new("SELECT id, title, state, due FROM tasks WHERE id > ").bind(self.after.unwrap_or(0));
        if let Some(state) = self.state {
            sql = sql.push(" AND state = ").bind(state);
        }
        if let Some(text) = self.text {
            sql = sql.push(" AND instr(title, ").bind(text).push(") > 0");
        }
        if let Some(day) = self.due_by {
            sql = sql.push(" AND due <= ").bind(day);
        }
        sql.push(" ORDER BY id LIMIT ").bind(self.limit.unwrap_or(50))
    }
}

/// `GET /tasks?state=open&text=tea&after=17&limit=20`: a page of tasks. The next page begins after the last `id` of this
/// one, so that it skips nothing and repeats nothing when tasks are added or deleted meanwhile.
pub(crate) async fn list(State(app): State<App>, Query(search): Query<Search>) -> Result<impl IntoResponse, Failure> {
    let sql = search.sql();
    let page = app.db.query_json(sql, ()).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], page))
}

/// `GET /tasks/17`.
pub(crate) async fn read(State(app): State<App>, Path(id): Path<i64>) -> Result<Json<Task>, Failure> {
    Ok(Json(app.db.query_one_as("SELECT id, title, state, due FROM tasks WHERE id = ?", (id,)).await?))
}

#[derive(Deserialize)]
pub(crate) struct New {
    title: String,
    due: Option<String>,
}

/// `POST /tasks` with `{"title": "buy tea"}`.
pub(crate) async fn create(State(app): State<App>, Json(new): Json<New>) -> Result<(StatusCode, Json<Task>), Failure> {
    let sql = "INSERT INTO tasks (title, due) VALUES (?, ?) RETURNING id, title, state, due";
    let task = app.db.query_one_as(sql, (new.title, new.due)).await?;
    Ok((StatusCode::CREATED, Json(task)))
}

#[derive(Deserialize)]
pub(crate) struct Change {
    title: Option<String>,
    state: Option<Progress>,
}

/// `PATCH /tasks/17` with what changes: `{"state": "done"}`.
pub(crate) async fn change(
    State(app): State<App>,
    Path(id): Path<i64>,
    Json(change): Json<Change>,
) -> Result<Json<Task>, Failure> {
    let sql = "UPDATE tasks SET title = coalesce(?, title), state = coalesce(?, state) WHERE id = ?
               RETURNING id, title, state, due";
    Ok(Json(app.db.query_one_as(sql, (change.title, change.state, id)).await?))
}

/// `DELETE /tasks/17`.
pub(crate) async fn delete(State(app): State<App>, Path(id): Path<i64>) -> Result<StatusCode, Failure> {
    let _: (i64,) = app.db.query_one_as("DELETE FROM tasks WHERE id = ? RETURNING id", (id,)).await?;
    Ok(StatusCode::NO_CONTENT)
}
