//! What an error of the database is to a client.
//!
//! Owns: the status codes. Invariant: a client never sees SQL; the log does, and neither sees bound values.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use flatwater::{Error, ErrorKind};
use serde::Serialize;

pub(crate) struct Failure(Error);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

#[derive(Serialize)]
struct Problem {
    error: &'static str,
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, error) = match (self.0.kind(), self.0.sqlite_name()) {
            (ErrorKind::RowNotFound, _) => (StatusCode::NOT_FOUND, "there is no such task"),
            (ErrorKind::Constraint, Some("SQLITE_CONSTRAINT_UNIQUE")) => {
                (StatusCode::CONFLICT, "there is a task of this title")
            }
            (ErrorKind::Constraint, _) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "a task needs a title, and dates are 2024-02-29")
            }
            (ErrorKind::Busy | ErrorKind::Timeout | ErrorKind::Expired | ErrorKind::Closed, _) => {
                (StatusCode::SERVICE_UNAVAILABLE, "try again")
            }
            (ErrorKind::Full, _) => (StatusCode::INSUFFICIENT_STORAGE, "there is no room"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "this is our fault"),
        };
        if status.is_server_error() {
            eprintln!("{}", self.0);
        }
        let mut response = (status, Json(Problem { error })).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, 1.into());
        }
        response
    }
}
