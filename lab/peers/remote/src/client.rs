//! What each peer sends for an insert and for a point query.

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use flatwater_remote::Remote;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::sync::Mutex;

const INSERT: &str = "INSERT INTO t (a, b) VALUES (?, ?)";
const POINT: &str = "SELECT a FROM p WHERE id = ?";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Flatwater,
    Requests,
    OneRequest,
}

impl Kind {
    pub fn of(name: &str) -> Result<Self> {
        Ok(match name {
            "remote-flatwater" => Self::Flatwater,
            "remote-requests" => Self::Requests,
            "remote-one-request" => Self::OneRequest,
            other => bail!("there is no peer {other:?}"),
        })
    }
}

pub enum Client {
    Flatwater(Remote),
    Requests {
        http: Http<HttpConnector, Full<Bytes>>,
        leader: String,
        /// One request at a time.
        turn: Option<Mutex<()>>,
    },
}

impl Client {
    pub fn new(kind: Kind, leader: &str) -> Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let turn = (kind == Kind::OneRequest).then(Mutex::default);
        Ok(match kind {
            Kind::Flatwater => Self::Flatwater(Remote::connect(&format!("rqlite://{leader}"))?),
            Kind::Requests | Kind::OneRequest => Self::Requests {
                http: Http::builder(TokioExecutor::new()).build(connector),
                leader: leader.to_owned(),
                turn,
            },
        })
    }

    pub async fn insert(&self, number: i64) -> Result<()> {
        match self {
            Self::Flatwater(remote) => {
                let inserted = remote.execute(INSERT, (number, "a message of some length")).await?;
                ensure!(inserted.changes == 1 && inserted.last_insert_rowid.is_some(), "one row");
            }
            Self::Requests { turn, .. } => {
                let turn = match turn {
                    Some(turn) => Some(turn.lock().await),
                    None => None,
                };
                let body = json!([[INSERT, number, "a message of some length"]]);
                let answer = self.post("/db/execute?transaction", &body).await?;
                drop(turn);
                ensure!(answer["results"][0]["rows_affected"] == 1, "{answer}");
            }
        }
        Ok(())
    }

    pub async fn point(&self, id: i64) -> Result<String> {
        match self {
            Self::Flatwater(remote) => Ok(remote.query_value(POINT, (id,)).await?),
            Self::Requests { .. } => {
                let answer = self.post("/db/query?level=weak&blob_array", &json!([[POINT, id]])).await?;
                answer["results"][0]["values"][0][0].as_str().map(str::to_owned).context("a text")
            }
        }
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let Self::Requests { http, leader, .. } = self else { bail!("it makes no requests of its own") };
        let request = Request::post(format!("http://{leader}{path}")).header(CONTENT_TYPE, "application/json");
        let answer = http.request(request.body(Full::new(body.to_string().into()))?).await?;
        Ok(serde_json::from_slice(&answer.into_body().collect().await?.to_bytes())?)
    }
}
