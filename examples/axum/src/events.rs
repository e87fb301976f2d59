//! Server-sent events: a page of tasks, now and whenever it has changed.
//!
//! Owns: the handler that passes a live query on to one client. Invariant: a client that does not read costs the memory of
//! one page, and holds up nobody. Leaves out: the query (`tasks`), and who writes: a handler of this service, another copy of
//! it, a shell.

use std::future::ready;

use axum::extract::{Query, State};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, StreamExt};

use crate::App;
use crate::tasks::{Search, Task};

/// `GET /events?state=open`: what `GET /tasks?state=open` returns, as an event, and another one whenever it has changed.
/// Clients with equal searches share one query.
pub(crate) async fn subscribe(
    State(app): State<App>,
    Query(search): Query<Search>,
) -> Sse<impl Stream<Item = Result<Event, axum::Error>>> {
    let sql = search.sql();
    let pages = app.db.live(sql, ()).filter_map(|page| {
        // After an error the query is tried again when something is committed.
        let tasks = page.and_then(|page| page.read::<Task>()).inspect_err(|error| eprintln!("{error}"));
        ready(tasks.ok().map(|tasks| Event::default().event("tasks").json_data(tasks)))
    });
    let mut stopping = app.stopping.subscribe();
    let until_the_stop = pages.take_until(async move { stopping.wait_for(|stopping| *stopping).await.map(drop) });
    Sse::new(until_the_stop).keep_alive(KeepAlive::default())
}
