//! Act: clients of a server that fails in all its ways: the double of an rqlite cluster, or a real libSQL server where `SQLD` names
//! its program.
//!
//! Owns: a round. Tasks of several clients write, each row once, while something is always wrong; then all is put right, and the rows
//! must be those that the tasks were told of, once each. `place.rs` is the server and what goes wrong with it, `load.rs` the tasks,
//! `books.rs` what they were told.

mod books;
mod load;
mod place;

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;

use super::Act;
use crate::finding::Finding;
use crate::round::Round;
use books::Books;
use load::{Task, create, live_count};
use place::Place;

pub(crate) const ACT: Act = Act {
    name: "servers",
    about: "clients of an rqlite cluster or a libSQL server that is stopped, killed and loses what it is told and answers",
    round,
    parts: &[(DOUBLE, place::double)],
};

const DOUBLE: &str = "servers-double";
const CLIENTS: usize = 2;
/// How long anything may take once nothing is wrong.
const LIVENESS: Duration = Duration::from_secs(60);
/// What no round may be without.
const NEVER_ZERO: [&str; 4] = ["acknowledged writes", "disturbances", "live results", "rows read back"];

fn round(round: &mut Round) -> Result<(), Finding> {
    let mut place = Place::start(round.rng.random_bool(0.5), round.directory())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let worked = runtime.block_on(works(round, &mut place));
    // The tasks of a finding may hang.
    runtime.shutdown_background();
    worked?;
    for what in NEVER_ZERO {
        if round.counts.0.get(what).is_none_or(|count| *count == 0) {
            return Err(Finding::new(format!("a round without {what}")));
        }
    }
    Ok(())
}

async fn works(round: &mut Round, place: &mut Place) -> Result<(), Finding> {
    let clients: Vec<_> = (0..CLIENTS).map(|_| place.connect()).collect::<Result<_, _>>()?;
    create(clients[0].session()).await?;
    let books = Arc::new(Books::default());
    let live = tokio::spawn(live_count(clients[0].clone(), books.clone()));
    let tasks = round.rng.random_range(2..12_usize);
    let running: Vec<_> = (0..tasks)
        .map(|number| {
            let client = clients[number % CLIENTS].clone();
            let task = Task::new(client, books.clone(), round.rng.random(), number as i64);
            tokio::spawn(task.run(round.until))
        })
        .collect();
    while round.goes_on() {
        place.disturb(&mut round.rng)?;
        round.count("disturbances");
        tokio::time::sleep(Duration::from_millis(round.rng.random_range(1..60))).await;
    }
    place.heal()?;
    for task in running {
        let done = tokio::time::timeout(LIVENESS, task).await;
        done.map_err(|_| Finding::new("a call does not end when all is well again"))???;
    }
    let (other, rows) = (place.connect()?, books.clone());
    tokio::time::timeout(LIVENESS, async { rows.compare(other.session()).await })
        .await
        .map_err(|_| Finding::new("the rows cannot be read when all is well again"))??;
    let live = tokio::time::timeout(LIVENESS, live).await;
    live.map_err(|_| Finding::new("a live query does not come to the last result"))???;
    for client in clients.into_iter().chain([other]) {
        client.close().await?;
    }
    round.counts.merge(&books.counts());
    Ok(())
}
