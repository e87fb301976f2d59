//! Server-sent events: which task was created, changed or deleted.
//!
//! Owns: the channel from the handlers that write to the clients that listen. An event says that a write of this process
//! was committed, and which task to read again; it carries no data of the task. Leaves out, because the channel knows
//! only what handlers tell it: writes of other processes, and the order of commits (two handlers may tell in the other
//! order).

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, StreamExt, stream};
use serde::Serialize;
use tokio::sync::{broadcast, watch};

use crate::App;

/// A client that is this many events behind misses the oldest.
const BEHIND: usize = 256;

#[derive(Clone, Serialize)]
struct Told {
    what: &'static str,
    id: i64,
}

#[derive(Clone)]
pub(crate) struct Events {
    told: broadcast::Sender<Told>,
    ended: watch::Sender<bool>,
}

impl Default for Events {
    fn default() -> Self {
        Self { told: broadcast::Sender::new(BEHIND), ended: watch::Sender::new(false) }
    }
}

impl Events {
    /// Does not block. Nobody may be listening.
    pub(crate) fn tell(&self, what: &'static str, id: i64) {
        let _ = self.told.send(Told { what, id });
    }

    /// Ends the response of every listener, which would keep the server from stopping.
    pub(crate) fn end(&self) {
        self.ended.send_replace(true);
    }
}

/// `GET /events`: an event per change from now on. `missed` tells a client that was too slow to read everything again.
pub(crate) async fn subscribe(State(app): State<App>) -> Sse<impl Stream<Item = Result<Event, axum::Error>>> {
    let mut ended = app.events.ended.subscribe();
    let events = stream::unfold(app.events.told.subscribe(), |mut told| async {
        let event = match told.recv().await {
            Ok(change) => Event::default().event("task").json_data(change),
            // Browsers ignore an event without data.
            Err(broadcast::error::RecvError::Lagged(missed)) => {
                Ok(Event::default().event("missed").data(missed.to_string()))
            }
            Err(broadcast::error::RecvError::Closed) => return None,
        };
        Some((event, told))
    });
    let until_the_end = events.take_until(async move { ended.wait_for(|ended| *ended).await.map(drop) });
    Sse::new(until_the_end).keep_alive(KeepAlive::default())
}
