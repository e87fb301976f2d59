//! feed: paging through 100,000 posts, 20 pages of 50, each continuing where the one before ended.
//!
//! Two runs warm up, the others are timed; the sample is one page, touched. The place in the feed is the pair of a post's
//! time and id.

use std::sync::Arc;

use anyhow::{Result, ensure};

use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::Peer;
use crate::record::{Sum, sum_of};
use crate::traffic::Traffic;

const CREATE: &str = "CREATE TABLE posts (id INTEGER PRIMARY KEY, author INTEGER NOT NULL, created_at INTEGER NOT NULL, \
     body TEXT NOT NULL, like_count INTEGER NOT NULL)";
const INDEX: &str = "CREATE INDEX posts_newest ON posts (created_at DESC, id DESC)";
const INSERT: &str = "INSERT INTO posts (id, author, created_at, body, like_count) VALUES (?, ?, ?, ?, ?)";
const PAGE: &str = "SELECT id, author, created_at, body, like_count FROM posts WHERE (created_at, id) < (?, ?) \
     ORDER BY created_at DESC, id DESC LIMIT 50";
const PER_PAGE: usize = 50;
const PAGES: usize = 20;
const CHUNK: usize = 10_000;

type Post = (i64, i64, i64, String, i64);

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "20 pages of 50 posts out of 100,000, by keyset";
    vec![Lane::new("scenarios", "feed", about, "pages", run::<P>).release().reads_only()]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let (count, runs) = (trial.size(100_000, 2_000), trial.size(200, 2));
    let peer = trial.open::<P>().await?;
    let mut posts = posts(count);
    fill(&peer, &posts).await?;
    peer.hold().await?;
    posts.sort_by_key(|post| std::cmp::Reverse((post.2, post.0)));
    let pages: Vec<(Sum, (i64, i64))> =
        posts.chunks(PER_PAGE).take(PAGES).map(|page| (sum_of(page), place(&page[page.len() - 1]))).collect();
    for _ in 0..2 {
        walk(&peer, &pages, &mut Timing::begin()?).await?;
    }
    let mut timing = Timing::begin()?;
    for _ in 0..runs {
        walk(&peer, &pages, &mut timing).await?;
    }
    let measured = timing.end((runs * PAGES) as u64)?;
    peer.close().await?;
    Ok(measured)
}

async fn walk<P: Peer>(peer: &P, pages: &[(Sum, (i64, i64))], timing: &mut Timing) -> Result<()> {
    let mut after = (i64::MAX, i64::MAX);
    for (expected, last) in pages {
        let sum = timing.latencies.query::<P, Post>(peer, PAGE, &[after.0.into(), after.1.into()]).await?;
        ensure!(sum == *expected, "the page after {after:?} is not the expected one");
        after = *last;
    }
    Ok(())
}

fn place(post: &Post) -> (i64, i64) {
    (post.2, post.0)
}

fn posts(count: usize) -> Vec<Post> {
    let mut traffic = Traffic::default();
    (0..count)
        .map(|i| {
            let author = traffic.below(1000) as i64;
            let created = 1_700_000_000 + traffic.below(count) as i64;
            let body = format!("{:.<120}", format!("Post {i} by author {author} "));
            (i as i64 + 1, author, created, body, traffic.below(500) as i64)
        })
        .collect()
}

async fn fill<P: Peer>(peer: &P, posts: &[Post]) -> Result<()> {
    peer.execute(CREATE, &[]).await?;
    for chunk in posts.chunks(CHUNK) {
        let row = |(id, author, created, body, likes): &Post| {
            vec![(*id).into(), (*author).into(), (*created).into(), body.clone().into(), (*likes).into()]
        };
        peer.many(INSERT, &Arc::new(chunk.iter().map(row).collect())).await?;
    }
    peer.execute(INDEX, &[]).await?;
    Ok(())
}
