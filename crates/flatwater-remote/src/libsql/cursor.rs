//! A result that the server writes while it is read.
//!
//! Owns: reading it in parts. Runs on the thread of the connection to the server. Invariants: no more than a part is in memory; what the
//! server keeps for it is let go of, if its baton is known. Leaves out: who wants the parts (`pages`).

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::answer::{CursorHead, Entry};
use super::json::{CURSOR_PATH, PATH, Steps};
use crate::http::Http;
use crate::results::{Columns, Failure, RowValue};

/// A part has so many rows, or about so many bytes.
const ROWS: usize = 1024;
const BYTES: usize = 256 << 10;
/// A row that is longer is refused.
const LINE_BYTES: usize = 256 << 20;

pub(crate) struct Cursor {
    node: Arc<str>,
    body: Incoming,
    /// What was read and is no whole line yet.
    rest: Vec<u8>,
    baton: Option<String>,
    /// What comes after the rows that were read.
    broken: Option<Broken>,
    pub(crate) columns: Columns,
    pub(crate) is_over: bool,
}

/// Why there are no more rows, before their end.
pub(crate) enum Broken {
    Failed(Failure),
    Lost(String),
}

impl Cursor {
    /// Begins a query. `None`: it cannot be read in parts, and nothing of it was.
    pub(crate) async fn open(http: &Http, node: Arc<str>, query: Steps, limit: Duration) -> Option<Self> {
        let body = http.open(&node, CURSOR_PATH, query.finish_cursor(), limit).await?;
        let mut cursor =
            Self { node, body, rest: Vec::new(), baton: None, broken: None, columns: Columns::new(), is_over: false };
        let head: CursorHead = serde_json::from_slice(&cursor.line(limit).await.ok()??).ok()?;
        cursor.baton = head.baton;
        loop {
            let line = cursor.line(limit).await.ok().flatten();
            match line.and_then(|line| Entry::parse(&line)) {
                Some(Entry::Columns(columns)) if !columns.is_empty() => {
                    cursor.columns = columns;
                    return Some(cursor);
                }
                Some(Entry::Other) => {}
                _ => {
                    cursor.close(http, limit).await;
                    return None;
                }
            }
        }
    }

    /// Reads the next rows. Those before a failure come before it.
    pub(crate) async fn part(&mut self, limit: Duration) -> Result<Vec<Vec<RowValue>>, Broken> {
        if let Some(broken) = self.broken.take() {
            return Err(broken);
        }
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while rows.len() < ROWS && bytes < BYTES {
            match self.entry(limit).await {
                Ok(Some((row, length))) => {
                    bytes += length;
                    rows.extend(row);
                }
                Ok(None) => {
                    self.is_over = true;
                    break;
                }
                Err(broken) if rows.is_empty() => return Err(broken),
                Err(broken) => {
                    self.broken = Some(broken);
                    break;
                }
            }
        }
        Ok(rows)
    }

    /// Reads a line, which may be a row, and its length. `None` after the last.
    async fn entry(&mut self, limit: Duration) -> Result<Option<(Option<Vec<RowValue>>, usize)>, Broken> {
        let Some(line) = self.line(limit).await? else { return Ok(None) };
        match Entry::parse(&line) {
            Some(Entry::Row(row)) if row.len() == self.columns.len() => Ok(Some((Some(row), line.len()))),
            Some(Entry::Failed(error)) => Err(Broken::Failed(error.into())),
            Some(Entry::Other) => Ok(Some((None, line.len()))),
            Some(Entry::Row(_) | Entry::Columns(_)) | None => {
                Err(Broken::Lost("the server's answer has a row that cannot be read".into()))
            }
        }
    }

    /// Reads a line. `None` after the last.
    async fn line(&mut self, limit: Duration) -> Result<Option<Vec<u8>>, Broken> {
        let mut looked = 0;
        loop {
            if let Some(end) = self.rest[looked..].iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.rest.drain(..=looked + end).collect();
                line.pop();
                return Ok(Some(line));
            }
            looked = self.rest.len();
            if looked > LINE_BYTES {
                return Err(Broken::Lost("a row of the answer is too long".into()));
            }
            match tokio::time::timeout(limit, self.body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    if let Some(data) = frame.data_ref() {
                        self.rest.extend_from_slice(data);
                    }
                }
                Ok(None) if self.rest.is_empty() => return Ok(None),
                Ok(None) => return Err(Broken::Lost("the answer ended in the middle of a row".into())),
                Ok(Some(Err(error))) => return Err(Broken::Lost(format!("the answer ended: {error}"))),
                Err(_) => return Err(Broken::Lost(format!("no row has come for {} ms", limit.as_millis()))),
            }
        }
    }

    /// Lets go of what the server keeps for it.
    pub(crate) async fn close(self, http: &Http, limit: Duration) {
        // The server goes on with the connection when nobody reads any more.
        drop(self.body);
        if let Some(baton) = self.baton {
            let _ = http.post(&self.node, PATH, Steps::read(None).finish(Some(&baton), true), limit).await;
        }
    }
}
