//! All tasks as one CSV file.
//!
//! Owns: its handler, which has two batches of rows in memory (`Batches::next`), whatever the number of tasks.

use std::error::Error;
use std::future::ready;

use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use futures_util::{StreamExt, stream};

use crate::App;
use crate::tasks::Task;

/// `GET /tasks.csv`: the tasks of one point in time, while others are written. Rows are read as fast as the client takes
/// them. A client that takes nothing for 30 s (`Options::stream_idle`) loses its stream. An error breaks the transfer off, so
/// that no client takes a part for the whole.
pub(crate) async fn csv(State(app): State<App>) -> impl IntoResponse {
    let head: Result<_, Box<dyn Error + Send + Sync>> = Ok(b"id,title,state,due\n".to_vec());
    let tasks = app.db.stream_as::<Task>("SELECT id, title, state, due FROM tasks ORDER BY id", ());
    let rows = tasks.ready_chunks(256).map(|tasks| {
        let mut csv = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
        for task in tasks {
            csv.serialize(task?)?;
        }
        Ok(csv.into_inner()?)
    });
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"tasks.csv\""),
    ];
    (headers, Body::from_stream(stream::once(ready(head)).chain(rows)))
}
