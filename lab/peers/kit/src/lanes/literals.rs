//! insert_literals_100, insert_literals_100_full: 100 small INSERTs issued at once, each with its values in its text.
//!
//! No text is used twice, so nothing that a library keeps by text helps. The sample is the time until all are answered.
//! The texts are made beforehand, and leaked: a peer's calls take texts that live for ever.

use anyhow::Result;
use tokio::task::JoinSet;

use crate::data::{self, T};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::{Durability, Peer};

const AT_ONCE: usize = 100;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "100 small inserts with values in their text, issued at once";
    let lane = |name, about, rounds, durability| {
        let run = move |trial| run::<P>(trial, rounds, durability);
        Lane::new("writes", name, about, "inserts", run).tasks()
    };
    vec![
        lane("insert_literals_100", about.to_owned(), 100, Durability::Normal),
        lane("insert_literals_100_full", format!("{about}, durability full"), 20, Durability::Full),
    ]
}

async fn run<P: Peer>(trial: Trial, rounds: usize, durability: Durability) -> Result<Measured> {
    let rounds = trial.size(rounds, 3);
    let peer = trial.open_with::<P>(durability).await?;
    peer.execute(T, &[]).await?;
    let text = |(i, name): (usize, String)| -> &'static str {
        format!("INSERT INTO t (name, value) VALUES ('{name}', {:?})", data::value(i)).leak()
    };
    let texts: Vec<_> = data::names(rounds * AT_ONCE).into_iter().enumerate().map(text).collect();
    let mut timing = Timing::begin()?;
    for at_once in texts.chunks(AT_ONCE) {
        timing.time(issue(&peer, at_once)).await?;
    }
    let measured = timing.end(texts.len() as u64)?;
    data::expect_t(&peer, texts.len()).await?;
    peer.close().await?;
    Ok(measured)
}

async fn issue<P: Peer>(peer: &P, texts: &[&'static str]) -> Result<()> {
    let mut tasks = JoinSet::new();
    for text in texts {
        let (peer, text) = (peer.clone(), *text);
        tasks.spawn(async move { peer.execute(text, &[]).await });
    }
    while let Some(answer) = tasks.join_next().await {
        answer??;
    }
    Ok(())
}
