//! The thread of a connection to a cluster, which serves what callers ask.
//!
//! Owns: the thread, with its runtime, and who is asked next. Invariants: callers wait on no runtime of this crate and need none of
//! their own; the thread ends when no session is left and all that was asked is answered; one request of writes, and so many reads, are under
//! way at a time. Leaves out: what is sent (`reads`, `writes`).

use std::rc::Rc;
use std::sync::{Arc, Weak};

use flatwater::bindings::server::{self, Answered, Asked, Changes, Server, What, error, timeout};
use flatwater::calls::TimeoutEffect;
use flatwater::{ErrorCode, Result};
use tokio::sync::mpsc::{self, Receiver, Sender, UnboundedReceiver, UnboundedSender};
use tokio::sync::{Notify, Semaphore};
use tokio::task::{JoinHandle, JoinSet, LocalSet, spawn_local};

use crate::cluster::ask::Cluster;
use crate::levels::Levels;
use crate::look::look;
use crate::migrate::migrate;
use crate::options::{LIVE_POLL, Level, RemoteOptions};
use crate::pages;
use crate::reads::read;
use crate::shared::{Shared, left_by};
use crate::transaction;
use crate::writes::queue::Writes;

/// So many reads are under way at a time; the others wait in their order.
const MOST_READS: usize = 64;

enum Message {
    Asked(Asked),
    Look(Changes),
    Close(Box<dyn FnOnce() + Send>),
}

/// The way to a cluster.
pub(crate) struct Way {
    inbox: UnboundedSender<Message>,
    pub(crate) levels: Arc<Levels>,
    left: Arc<Notify>,
}

impl Way {
    /// Starts the thread. Connects to nothing.
    pub(crate) fn start(options: RemoteOptions) -> Result<Arc<Self>> {
        let left = Arc::new(Notify::new());
        let levels = Arc::new(Levels::default());
        let (cluster, told) = (Cluster::new(&options)?, left.clone());
        let shared = Shared::new(cluster, options, levels.clone(), told);
        let failed = |failure: std::io::Error| {
            error(
                ErrorCode::System,
                format!("the connection's thread cannot be started: {failure}"),
                "look at the limits of the process",
            )
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (inbox, asked) = mpsc::unbounded_channel();
        let way = Arc::new(Self { inbox, levels, left });
        let own = Arc::downgrade(&way);
        // What is asked is not shared between threads, so its tasks stay on this one.
        let run = move || LocalSet::new().block_on(&runtime, serve(Rc::new(shared), asked, own));
        server::start_thread("fw-remote", run).map_err(failed)?;
        Ok(way)
    }
}

impl Server for Way {
    fn send(&self, asked: Asked) {
        // If the thread is gone, the call is dropped, and its caller learns of it.
        let _ = self.inbox.send(Message::Asked(asked));
    }

    fn look_again(&self) {
        self.left.notify_waiters();
    }

    fn look(&self, changes: Changes) {
        let _ = self.inbox.send(Message::Look(changes));
    }

    fn close(&self, closed: Box<dyn FnOnce() + Send>) {
        if let Err(mpsc::error::SendError(Message::Close(closed))) = self.inbox.send(Message::Close(closed)) {
            closed();
        }
    }
}

/// The way for a call that is served by calls. It closes nothing.
struct Within(Arc<Way>);

impl Server for Within {
    fn send(&self, asked: Asked) {
        self.0.send(asked);
    }

    fn look_again(&self) {
        self.0.look_again();
    }

    fn look(&self, _: Changes) {}

    fn close(&self, closed: Box<dyn FnOnce() + Send>) {
        closed();
    }
}

async fn serve(shared: Rc<Shared>, mut inbox: UnboundedReceiver<Message>, way: Weak<Way>) {
    let (writes, theirs) = mpsc::unbounded_channel();
    let writer = spawn_local(Writes::new(shared.clone(), theirs).serve());
    let places = Arc::new(Semaphore::new(MOST_READS));
    let (mut reads, mut unanswered) = (JoinSet::new(), Unanswered::new());
    // Transactions and migrations, which are several requests.
    let mut longer = JoinSet::new();
    while let Some(message) = inbox.recv().await {
        while reads.try_join_next().is_some() {}
        while longer.try_join_next().is_some() {}
        match message {
            Message::Asked(mut asked) => {
                unanswered.add(&mut asked);
                if asked.begins() {
                    let shared = shared.clone();
                    longer.spawn_local(async move { transaction::serve(&shared, asked).await });
                } else if asked.migrates() {
                    // It has sessions while it has callers.
                    let Some(way) = way.upgrade() else { continue };
                    longer.spawn_local(migrations(way, asked));
                } else if asked.only_reads() && asked.wants_parts() {
                    let shared = shared.clone();
                    longer.spawn_local(async move { pages::serve(&shared, asked).await });
                } else if !asked.only_reads() {
                    let _ = writes.send(asked);
                } else {
                    let (shared, places) = (shared.clone(), places.clone());
                    reads.spawn_local(async move {
                        let _place = places.acquire().await;
                        read(&shared, asked).await;
                    });
                }
            }
            Message::Look(changes) => {
                let shared = shared.clone();
                reads.spawn_local(async move { look(&shared, changes).await });
            }
            Message::Close(closed) => {
                shared.close();
                unanswered.then(closed);
            }
        }
    }
    while reads.join_next().await.is_some() {}
    while longer.join_next().await.is_some() {}
    drop(writes);
    let _ = writer.await;
    unanswered.end().await;
}

/// Serves a migration, until its caller has left.
async fn migrations(way: Arc<Way>, asked: Asked) {
    if !asked.starts() {
        return;
    }
    let left = way.left.clone();
    let newest = way.levels.number(Level::Linearizable);
    let on = server::with_way(&server::session(Arc::new(Within(way)), "a migration", LIVE_POLL), newest);
    let What::Migrate(list) = asked.what() else { return };
    let over = async {
        match asked.deadline() {
            Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
            None => std::future::pending().await,
        }
    };
    let done = tokio::select! {
        done = migrate(&on, list) => done,
        () = left_by(&left, &asked) => return,
        // That under way is finished.
        () = over => Err(timeout("the deadline of the call passed during a migration".into(), TimeoutEffect::Unknown)),
    };
    asked.answer(done.map(Answered::Migrated));
}

/// What was asked and is not answered.
struct Unanswered {
    /// Each of them holds one of these.
    place: Sender<()>,
    all: Receiver<()>,
    /// Ends when what was asked before the last close is answered.
    before: Option<JoinHandle<()>>,
}

impl Unanswered {
    fn new() -> Self {
        let (place, all) = mpsc::channel(1);
        Self { place, all, before: None }
    }

    fn add(&self, asked: &mut Asked) {
        asked.keep(Box::new(self.place.clone()));
    }

    /// Calls `closed` when all that was asked until now is answered.
    fn then(&mut self, closed: Box<dyn FnOnce() + Send>) {
        let before = self.before.take();
        let Self { place, mut all, .. } = std::mem::replace(self, Self::new());
        drop(place);
        self.before = Some(spawn_local(async move {
            // Nothing is sent: it ends when no place is held.
            let _ = all.recv().await;
            if let Some(before) = before {
                let _ = before.await;
            }
            closed();
        }));
    }

    async fn end(self) {
        if let Some(before) = self.before {
            let _ = before.await;
        }
    }
}
