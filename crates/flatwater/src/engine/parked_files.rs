//! Parked databases with live queries: their files are looked at, because there is no connection that shows commits.
//!
//! Owns: the list of these databases, and the thread `fw-parked`, which lives as long as there is one. Blocks on file systems,
//! on that thread alone. Invariant: a database whose files have changed since it was parked gets its connections again, which
//! runs all of its live queries. Leaves out: databases that have connections, whose WAL shows commits (`connect_live`).

use std::sync::{Arc, Weak};
use std::time::Duration;

use flatwater_sqlite::PerProcess;

use super::Engine;
use crate::file::stamp::Stamp;
use crate::thread::background;
use crate::workers::writer::Writer;

#[derive(Default)]
struct ParkedFiles {
    engines: Vec<(Weak<Engine>, Stamp)>,
    is_watched: bool,
}

static PARKED: PerProcess<ParkedFiles> = PerProcess::new(ParkedFiles::default);

/// Watches the files of an engine that was parked with this stamp, until it has connections again.
pub(super) fn watch(engine: &Arc<Engine>, stamp: Stamp) {
    let mut parked = PARKED.lock();
    parked.engines.retain(|(other, _)| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(engine)));
    parked.engines.push((Arc::downgrade(engine), stamp));
    if std::mem::replace(&mut parked.is_watched, true) {
        return;
    }
    drop(parked);
    background::run("fw-parked", look_on, give_up);
}

/// Nobody looks at the files: the databases get their connections again.
fn give_up() {
    let mut parked = PARKED.lock();
    parked.is_watched = false;
    let left = std::mem::take(&mut parked.engines);
    drop(parked);
    left.iter().filter_map(|(engine, _)| engine.upgrade()).for_each(|engine| look_again(&engine));
}

/// Looks at the files again and again, while there are any to look at.
fn look_on() {
    while let Some(pause) = pause() {
        std::thread::sleep(pause);
        let engines = std::mem::take(&mut PARKED.lock().engines);
        for (engine, stamp) in engines {
            let Some(engine) = engine.upgrade().filter(|engine| is_watched_parked(engine)) else { continue };
            if Stamp::of(engine.path()) != stamp {
                look_again(&engine);
                continue;
            }
            let mut parked = PARKED.lock();
            // It may have been parked again meanwhile.
            if !parked.engines.iter().any(|(other, _)| std::ptr::eq(other.as_ptr(), Arc::as_ptr(&engine))) {
                parked.engines.push((Arc::downgrade(&engine), stamp));
            }
        }
    }
}

/// Returns the time until the next look; `None` if there is nothing to look at: then the thread must end.
fn pause() -> Option<Duration> {
    let mut parked = PARKED.lock();
    let engines: Vec<_> = parked.engines.iter().filter_map(|(engine, _)| engine.upgrade()).collect();
    let pause = engines.iter().map(|engine| engine.context.options.live_poll).min();
    parked.is_watched = pause.is_some();
    // Before the engines: each may be the last of its own.
    drop(parked);
    pause
}

fn is_watched_parked(engine: &Engine) -> bool {
    !engine.is_closed() && engine.live.is_watching() && engine.watch().is_some_and(|watch| watch.parked.is_set())
}

fn look_again(engine: &Engine) {
    engine.writer.iter().for_each(Writer::look_again);
}
