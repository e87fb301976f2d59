//! parameterised, churn_{40,64,128}, concurrent_reads_{1,2,4,8}: selects with parameters, many texts, many tasks.
//!
//! `parameterised`: 5000 rows, an index, about 500 rows each time. `churn_N`: point queries that rotate through N texts,
//! where statement caches of that size or less run dry. `concurrent_reads_N`: N tasks that each await selects of 1000
//! rows one after another; together they do the same number in every lane.

use anyhow::{Result, ensure};
use tokio::task::JoinSet;

use crate::data::{self, INSERT_T, Item, SELECT_ITEMS, T};
use crate::lane::{Lane, Trial};
use crate::measure::{Latencies, Measured, Timing};
use crate::peer::Peer;
use crate::record::{Sum, sum_of};

const BY_CATEGORY: &str = "SELECT id, name, value FROM items WHERE category = ? ORDER BY id";
const CATEGORIES: usize = 10;
const ROWS: usize = 1000;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "about 500 rows of 3 columns by an indexed parameter";
    let mut lanes =
        vec![Lane::new("reads", "parameterised", about, "queries", parameterised::<P>).release().reads_only()];
    lanes.extend([40, 64, 128].map(|texts| {
        let about = format!("point queries that rotate through {texts} texts");
        Lane::new("reads", format!("churn_{texts}"), about, "queries", move |trial| churn::<P>(trial, texts))
            .reads_only()
    }));
    lanes.extend([1, 2, 4, 8].map(|tasks| {
        let about = format!("{tasks} task(s) that select 1000 rows");
        let run = move |trial| concurrent::<P>(trial, tasks);
        Lane::new("reads", format!("concurrent_reads_{tasks}"), about, "queries", run).release().reads_only().tasks()
    }));
    lanes
}

async fn parameterised<P: Peer>(trial: Trial) -> Result<Measured> {
    let (rows, count) = (trial.size(5_000, 500), trial.size(2_000, 20));
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, rows).await?;
    peer.execute("CREATE INDEX items_category ON items (category)", &[]).await?;
    peer.hold().await?;
    let items = data::items(rows);
    let categories: Vec<(String, Sum)> = (0..CATEGORIES)
        .map(|category| {
            let category = format!("category_{category}");
            let matching = items.iter().filter(|item| item.4 == category);
            let records: Vec<_> = matching.map(|item| (item.0, item.1.clone(), item.3)).collect();
            (category, sum_of(&records))
        })
        .collect();
    let mut timing = Timing::begin()?;
    for i in 0..count {
        let (category, expected) = &categories[i % CATEGORIES];
        let sum =
            timing.latencies.query::<P, (i64, String, f64)>(&peer, BY_CATEGORY, &[category.as_str().into()]).await?;
        ensure!(sum == *expected, "the rows of {category} are not those that were written");
    }
    let measured = timing.end(count as u64)?;
    peer.close().await?;
    Ok(measured)
}

async fn churn<P: Peer>(trial: Trial, texts: usize) -> Result<Measured> {
    let count = trial.size(20_000, 2 * texts);
    let peer = trial.open::<P>().await?;
    peer.execute(T, &[]).await?;
    peer.many(INSERT_T, &data::t_rows(ROWS)).await?;
    peer.hold().await?;
    // A program's texts live as long as it does; so do these.
    let texts: Vec<&'static str> = (0..texts)
        .map(|n| &*Box::leak(format!("SELECT name, value + {n} FROM t WHERE id = ?").into_boxed_str()))
        .collect();
    let mut timing = Timing::begin()?;
    for i in 0..count {
        let (text, row) = (i % texts.len(), i % ROWS);
        let sum = timing.latencies.query::<P, (String, f64)>(&peer, texts[text], &[(row as i64 + 1).into()]).await?;
        let expected = sum_of(&[(format!("item_{row}"), data::value(row) + text as f64)]);
        ensure!(sum == expected, "row {row} is not what was written");
    }
    let measured = timing.end(count as u64)?;
    peer.close().await?;
    Ok(measured)
}

async fn concurrent<P: Peer>(trial: Trial, tasks: usize) -> Result<Measured> {
    let each = trial.size(1_600, 16) / tasks;
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, ROWS).await?;
    let expected = sum_of(&data::items(ROWS));
    let mut timing = Timing::begin()?;
    let mut running = JoinSet::new();
    for _ in 0..tasks {
        running.spawn(selects(peer.clone(), each, expected));
    }
    while let Some(latencies) = running.join_next().await {
        timing.latencies.merge(&latencies??);
    }
    let measured = timing.end((each * tasks) as u64)?;
    peer.close().await?;
    Ok(measured)
}

async fn selects<P: Peer>(peer: P, count: usize, expected: Sum) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    for _ in 0..count {
        let sum = latencies.query::<P, Item>(&peer, SELECT_ITEMS, &[]).await?;
        ensure!(sum == expected, "the rows are not those that were written");
    }
    Ok(latencies)
}
