//! A web service for a list of tasks, as a program on axum uses Flatwater.
//!
//! Owns: the state that the handlers share, the routes, and the service from its first request to its last. Runs on the
//! tasks of the runtime. Leaves out: the handlers (`tasks`, `export`, `events`), and what an error is to a client
//! (`failure`).

mod events;
mod export;
mod failure;
mod tasks;

use std::error::Error;
use std::future::{Future, IntoFuture};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use flatwater::{Database, Options};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// After this time a call to the database ends with `Timeout`, and its client is told to try again.
const DEADLINE: Duration = Duration::from_secs(5);
/// When the service stops, the requests in progress get this time to end.
const GRACE: Duration = Duration::from_secs(10);

/// What every handler has.
#[derive(Clone)]
pub struct App {
    db: Database,
    /// True when the service stops. Ends the responses that have no end of their own.
    stopping: watch::Sender<bool>,
}

impl App {
    /// Returns the state for a service on this database.
    #[must_use]
    pub fn new(db: &Database) -> Self {
        Self { db: db.with_timeout(DEADLINE), stopping: watch::Sender::new(false) }
    }
}

/// Adds the schema. The program and its tests open their databases with it.
pub fn schema(options: Options) -> Options {
    options.migrations([
        ("001_tasks", include_str!("../migrations/001_tasks.sql")),
        ("002_due", include_str!("../migrations/002_due.sql")),
    ])
}

/// Returns the routes.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/", get(Html(include_str!("page.html"))))
        .route("/tasks", get(tasks::list).post(tasks::create))
        .route("/tasks/{id}", get(tasks::read).patch(tasks::change).delete(tasks::delete))
        .route("/tasks.csv", get(export::csv))
        .route("/events", get(events::subscribe))
        .route("/metrics", get(metrics))
        .with_state(app)
}

/// Answers what Prometheus asks for.
async fn metrics(State(app): State<App>) -> impl IntoResponse {
    let text = flatwater_telemetry::prometheus_text([("tasks", &app.db)]);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}

/// Serves requests until `stop`. Then no new ones are accepted, those in progress are finished, and the database is
/// closed.
///
/// # Errors
/// Those of the listener, and of closing the database.
pub async fn serve(
    listener: TcpListener,
    app: App,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let App { db, stopping } = app.clone();
    let mut stopped = stopping.subscribe();
    let server = axum::serve(listener, router(app)).with_graceful_shutdown(async move {
        stop.await;
        stopping.send_replace(true);
    });
    let grace = async {
        let _ = stopped.wait_for(|stopped| *stopped).await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        ended = server.into_future() => ended?,
        () = grace => eprintln!("some requests did not end in time"),
    }
    Ok(db.close().await?)
}
