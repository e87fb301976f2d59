//! What each peer sends for an insert and for a point query.

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use flatwater_remote::{Libsql, Remote};
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::servers::Server;

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
    Flatwater {
        remote: Remote,
        /// The same server, if it has transactions.
        libsql: Option<Libsql>,
    },
    Requests {
        http: Http<HttpConnector, Full<Bytes>>,
        node: String,
        /// Whether it is a libSQL server.
        is_libsql: bool,
        /// One request at a time.
        turn: Option<Mutex<()>>,
    },
}

impl Client {
    pub fn new(kind: Kind, server: &Server) -> Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let turn = (kind == Kind::OneRequest).then(Mutex::default);
        Ok(match kind {
            Kind::Flatwater => Self::Flatwater {
                remote: Remote::connect(&server.address())?,
                libsql: match server {
                    Server::Double(_) => None,
                    Server::Sqld(_) => Some(Libsql::connect(&server.address())?),
                },
            },
            Kind::Requests | Kind::OneRequest => Self::Requests {
                http: Http::builder(TokioExecutor::new()).build(connector),
                node: match server {
                    Server::Double(double) => double.leader.clone(),
                    Server::Sqld(sqld) => sqld.node.clone(),
                },
                is_libsql: matches!(server, Server::Sqld(_)),
                turn,
            },
        })
    }

    pub async fn insert(&self, number: i64) -> Result<()> {
        match self {
            Self::Flatwater { remote, .. } => {
                let inserted = remote.execute(INSERT, (number, "a message of some length")).await?;
                ensure!(inserted.changes == 1 && inserted.last_insert_rowid.is_some(), "one row");
            }
            Self::Requests { turn, is_libsql, .. } => {
                let turn = match turn {
                    Some(turn) => Some(turn.lock().await),
                    None => None,
                };
                let changes = if *is_libsql {
                    let answer = self.post("/v3/pipeline", &json!({ "requests": [insert(number), close()] })).await?;
                    answer["results"][0]["response"]["result"]["affected_row_count"].clone()
                } else {
                    let body = json!([[INSERT, number, "a message of some length"]]);
                    self.post("/db/execute?transaction", &body).await?["results"][0]["rows_affected"].clone()
                };
                drop(turn);
                ensure!(changes == 1, "{changes}");
            }
        }
        Ok(())
    }

    pub async fn point(&self, id: i64) -> Result<String> {
        match self {
            Self::Flatwater { remote, .. } => Ok(remote.query_value(POINT, (id,)).await?),
            Self::Requests { is_libsql: true, .. } => {
                let select = execute(POINT, &json!([{ "type": "integer", "value": id.to_string() }]));
                let answer = self.post("/v3/pipeline", &json!({ "requests": [select, close()] })).await?;
                let text = &answer["results"][0]["response"]["result"]["rows"][0][0]["value"];
                text.as_str().map(str::to_owned).context("a text")
            }
            Self::Requests { .. } => {
                let answer = self.post("/db/query?level=weak&blob_array", &json!([[POINT, id]])).await?;
                answer["results"][0]["values"][0][0].as_str().map(str::to_owned).context("a text")
            }
        }
    }

    /// A transaction of two inserts. With requests it is one for each of its four steps.
    pub async fn transaction(&self, number: i64) -> Result<()> {
        if let Self::Flatwater { libsql, .. } = self {
            let tx = libsql.as_ref().context("a server with transactions")?.begin().await?;
            for _ in 0..2 {
                tx.execute(INSERT, (number, "a message of some length")).await?;
            }
            return Ok(tx.commit().await?);
        }
        let mut baton = Value::Null;
        let steps =
            [execute("BEGIN IMMEDIATE", &json!([])), insert(number), insert(number), execute("COMMIT", &json!([]))];
        for (at, step) in steps.into_iter().enumerate() {
            let requests = if at == 3 { vec![step, close()] } else { vec![step] };
            let answer = self.post("/v3/pipeline", &json!({ "baton": baton, "requests": requests })).await?;
            ensure!(answer["results"][0]["type"] == "ok", "{answer}");
            baton = answer["baton"].clone();
        }
        Ok(())
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let Self::Requests { http, node, .. } = self else { bail!("it makes no requests of its own") };
        let request = Request::post(format!("http://{node}{path}")).header(CONTENT_TYPE, "application/json");
        let answer = http.request(request.body(Full::new(body.to_string().into()))?).await?;
        Ok(serde_json::from_slice(&answer.into_body().collect().await?.to_bytes())?)
    }
}

fn execute(sql: &str, args: &Value) -> Value {
    json!({ "type": "execute", "stmt": { "sql": sql, "args": args } })
}

fn insert(number: i64) -> Value {
    let number = json!({ "type": "integer", "value": number.to_string() });
    execute(INSERT, &json!([number, { "type": "text", "value": "a message of some length" }]))
}

fn close() -> Value {
    json!({ "type": "close" })
}
