//! Making the call of a step.
//!
//! Owns: from a verb and its fields to the call of the API. Runs on the scenario's thread; makes calls and awaits none.
//! Leaves out: the verbs that are no calls (`program`).

use std::borrow::Cow;
use std::time::Duration;

use flatwater::calls::{Blob, JsonCall};
use flatwater::options::AutoVacuum;
use flatwater::{
    Call, Connection, ConnectionOptions, Error, Migrations, Options, Params, Prepared, Session, Snapshot, Sql,
    Transaction,
};
use futures_util::future::{LocalBoxFuture, ready};

use super::{Body, DB, Program, functions};
use crate::fields::{self, Part, Text};
use crate::opened::Opened;
use crate::outcome::{Handle, Outcome, Pending};
use crate::step::{Step, Verb};

/// What a call is made on.
enum On<'a> {
    Database(Opened),
    Transaction(&'a Transaction<'a>),
    Snapshot(&'a Snapshot),
    Connection(&'a Connection),
}

/// An opening.
type OpeningCall = LocalBoxFuture<'static, Result<Opened, Error>>;

fn pending<T: 'static>(
    call: impl Future<Output = Result<T, Error>> + 'static,
    outcome: impl FnOnce(T) -> Outcome + 'static,
) -> Pending {
    Box::pin(async move { call.await.map(outcome) })
}

/// Returns the database with the deadline of the step.
pub(super) fn within(db: &Opened, step: &Step) -> Opened {
    step.common.timeout_ms.map_or_else(|| db.clone(), |ms| db.within(Duration::from_millis(ms)))
}

/// Sets an option if the scenario gives it.
fn set<T>(opens: Options, given: Option<T>, option: fn(Options, T) -> Options) -> Options {
    match given {
        Some(given) => option(opens, given),
        None => opens,
    }
}

impl Program<'_> {
    /// Returns the path that a scenario names.
    fn named(&self, path: &str) -> String {
        path.replace("{path}", &self.path).replace("{directory}", &self.directory.display().to_string())
    }

    pub(super) fn options(&self, path: Option<&str>, options: &fields::Options) -> Options {
        let mut opens = Options::new(self.named(path.unwrap_or("{path}")));
        opens = set(opens, options.foreign_keys, Options::foreign_keys);
        opens = set(opens, options.double_quoted_strings, |opens, on| opens.tuning(|t| t.double_quoted_strings(on)));
        opens = set(opens, options.read_only, Options::read_only);
        opens = set(opens, options.create, Options::create);
        opens = set(opens, options.readers, Options::readers);
        opens = set(opens, options.busy_timeout_ms.map(Duration::from_millis), Options::busy_timeout);
        opens = set(opens, options.migrations.clone(), Options::migrations);
        opens = set(opens, options.untrusted.filter(|is| *is), |opens, _| opens.tuning(|t| t.untrusted()));
        opens = set(opens, options.observe, |opens, on| opens.tuning(|t| t.observe(on)));
        opens = set(opens, options.auto_vacuum, |opens, mode| {
            opens.tuning(|tuning| match mode {
                fields::AutoVacuum::Full => tuning.auto_vacuum(AutoVacuum::Full),
                fields::AutoVacuum::Incremental => tuning.auto_vacuum(AutoVacuum::Incremental),
            })
        });
        opens = set(opens, self.bytes(options), |opens, bytes| opens.tuning(|t| t.deserialize(bytes)));
        opens = options.on_open.iter().fold(opens, |opens, sql| opens.on_open(sql));
        options.attach.iter().fold(opens, |opens, (name, path)| opens.tuning(|t| t.attach(name, self.named(path))))
    }

    /// Opens a database.
    pub(super) fn open(&self, path: Option<&str>, options: &fields::Options) -> Result<OpeningCall, String> {
        if !self.is_on_server {
            let open = self.options(path, options).open();
            return Ok(Box::pin(async move { open.await.map(Opened::Here) }));
        }
        if path.is_some_and(|path| path != "{path}") || *options != fields::Options::default() {
            return Err("a server has no options of a file, and no other one".to_owned());
        }
        Ok(Box::pin(ready(Opened::on_server(&self.path))))
    }

    /// Returns the bytes that a database is opened with.
    fn bytes(&self, options: &fields::Options) -> Option<Vec<u8>> {
        match options.deserialize.as_ref()? {
            fields::Bytes::Named(name) => match self.handles.get(name) {
                Some(Handle::Bytes(bytes)) => Some(bytes.clone()),
                _ => None,
            },
            fields::Bytes::Value(value) => Some(value.bytes().to_vec()),
        }
    }

    /// Makes the call of a step. It has not begun.
    pub(super) fn call(&mut self, body: Option<Body<'_, '_>>, step: &Step) -> Result<Pending, String> {
        Ok(match &step.verb {
            Verb::Open { path, options, .. } => {
                pending(self.open(path.as_deref(), options)?, |db| Outcome::Made(Handle::Database(db)))
            }
            Verb::Create { of, r#as } => {
                let name = r#as.as_ref().unwrap_or(of);
                let created = functions::create(self.database_of(step)?.here("functions")?, of, name);
                let created = created.ok_or_else(|| format!("there is no function {of}"))?;
                Box::pin(ready(created.map(|()| Outcome::Done)))
            }
            Verb::Remove { of, r#as } => {
                let removed =
                    functions::remove(self.database_of(step)?.here("functions")?, of, r#as.as_ref().unwrap_or(of));
                Box::pin(ready(removed.map(|()| Outcome::Done)))
            }
            Verb::Close { of } => match self.handles.get(of) {
                Some(Handle::Connection(own)) => pending(own.close(), |()| Outcome::Done),
                _ => pending(self.database(of)?.close(), |()| Outcome::Done),
            },
            Verb::Connection { foreign_keys, .. } => {
                let db = self.database_of(step)?.here("connection of one's own")?;
                let options = ConnectionOptions::new();
                let options = foreign_keys.map_or(options, |enforced| options.foreign_keys(enforced));
                Box::pin(ready(Ok(Outcome::Made(Handle::Connection(options.connect(db))))))
            }
            Verb::Savepoint { of } => self.savepoint(body, step, |tx| tx.savepoint(of))?,
            Verb::Release { of } => self.savepoint(body, step, |tx| tx.release(of))?,
            Verb::RollbackTo { of } => self.savepoint(body, step, |tx| tx.rollback_to(of))?,
            Verb::Begin { .. } => {
                let begin = within(self.database_of(step)?, step).begin()?;
                pending(begin, |tx| Outcome::Made(Handle::Transaction(tx)))
            }
            Verb::Snapshot { .. } => {
                let snapshot = within(self.database_of(step)?, step).here("snapshots")?.snapshot();
                pending(snapshot, |snapshot| Outcome::Made(Handle::Snapshot(snapshot)))
            }
            Verb::Prepare { sql, .. } => {
                let prepare = within(self.database_of(step)?, step).here("prepared statements")?.prepare(sql);
                pending(prepare, |prepared| Outcome::Made(Handle::Prepared(prepared)))
            }
            Verb::Migrate { of, ignore_missing, .. } => {
                let migrations = Migrations::new(of.clone()).ignore_missing(*ignore_missing);
                pending(within(self.database_of(step)?, step).migrate(migrations), Outcome::Names)
            }
            Verb::Backup { of } => {
                pending(within(self.database_of(step)?, step).here("backups")?.backup(self.named(of)), |()| {
                    Outcome::Done
                })
            }
            Verb::Vacuum { of: () } => {
                pending(within(self.database_of(step)?, step).here("VACUUM")?.vacuum(), |()| Outcome::Done)
            }
            Verb::VacuumInto { of } => {
                pending(within(self.database_of(step)?, step).here("VACUUM")?.vacuum_into(self.named(of)), |()| {
                    Outcome::Done
                })
            }
            Verb::IncrementalVacuum { of, .. } => {
                pending(within(self.database_of(step)?, step).here("VACUUM")?.incremental_vacuum(*of), Outcome::Changes)
            }
            Verb::Serialize { .. } => {
                let serialize = within(self.database_of(step)?, step).here("bytes")?.serialize();
                pending(serialize, |bytes| Outcome::Made(Handle::Bytes(bytes)))
            }
            Verb::ReadBlob { of, position, bytes, .. } => {
                pending(self.blob(of)?.read_at(*position, *bytes), Outcome::Bytes)
            }
            Verb::WriteBlob { of, position, value } => {
                pending(self.blob(of)?.write_at(*position, value.bytes()), |()| Outcome::Done)
            }
            Verb::Commit { of } => pending(self.transaction_of(of)?.commit(), |()| Outcome::Done),
            Verb::Rollback { of } => pending(self.transaction_of(of)?.rollback(), |()| Outcome::Done),
            Verb::OpenBlob { .. } if self.is_on_server => return Err("a server has no blobs in parts".to_owned()),
            verb => match verb.text() {
                Some(Text::Prepared { prepared }) => match self.handles.get(prepared) {
                    Some(Handle::Prepared(prepared)) if step.common.is_plain() => run_prepared(prepared, verb)?,
                    _ => {
                        return Err(format!(
                            "{prepared} is no prepared statement, or is run with what it has from its database"
                        ));
                    }
                },
                _ => match self.on(body, step)? {
                    On::Database(db) => run(db.session(), verb)?,
                    On::Transaction(tx) => run(tx, verb)?,
                    On::Snapshot(snapshot) => run(snapshot, verb)?,
                    On::Connection(own) => run(own, verb)?,
                },
            },
        })
    }

    fn on<'a>(&'a self, body: Option<Body<'a, '_>>, step: &'a Step) -> Result<On<'a>, String> {
        let name = step.common.on.as_deref().unwrap_or(DB);
        let takes_options = matches!(self.handles.get(name), Some(Handle::Database(_)));
        if !takes_options && step.common.timeout_ms.is_some() {
            return Err(format!("{name} has the deadline of its database"));
        }
        if let Some(body) = body.filter(|body| body.name == name) {
            return Ok(On::Transaction(body.tx));
        }
        match self.handles.get(name) {
            Some(Handle::Database(db)) => Ok(On::Database(within(db, step))),
            Some(Handle::Transaction(tx)) => Ok(On::Transaction(tx)),
            Some(Handle::Snapshot(snapshot)) => Ok(On::Snapshot(snapshot)),
            Some(Handle::Connection(own)) => Ok(On::Connection(own)),
            _ => Err(format!("{name} runs no SQL")),
        }
    }

    /// Makes a call on the transaction of a step.
    fn savepoint(
        &self,
        body: Option<Body<'_, '_>>,
        step: &Step,
        call: impl FnOnce(&Transaction<'_>) -> Call<()>,
    ) -> Result<Pending, String> {
        match self.on(body, step)? {
            On::Transaction(tx) => Ok(pending(call(tx), |()| Outcome::Done)),
            _ => Err("savepoints are in a transaction".to_owned()),
        }
    }

    fn blob(&self, name: &str) -> Result<&Blob, String> {
        match self.handles.get(name) {
            Some(Handle::Blob(blob)) => Ok(blob),
            _ => Err(format!("{name} is not a blob")),
        }
    }

    fn database_of(&self, step: &Step) -> Result<&Opened, String> {
        self.database(step.common.on.as_deref().unwrap_or(DB))
    }

    fn database(&self, name: &str) -> Result<&Opened, String> {
        match self.handles.get(name) {
            Some(Handle::Database(db)) => Ok(db),
            _ => Err(format!("{name} is not a database")),
        }
    }

    fn transaction_of(&mut self, name: &str) -> Result<Transaction<'static>, String> {
        match self.take(name)? {
            Handle::Transaction(tx) => Ok(tx),
            _ => Err(format!("{name} is not a transaction")),
        }
    }
}

/// Returns the call with the JSON options of the verb.
fn json(call: JsonCall, verb: &Verb) -> JsonCall {
    let Some(fields::JsonOptions { arrays, big_integers_as_strings, embed }) = verb.json_options() else { return call };
    let call = if *arrays { call.arrays() } else { call };
    let call = if *big_integers_as_strings { call.big_integers_as_strings() } else { call };
    embed.iter().fold(call, |call, column| call.embed(column.as_str()))
}

fn run(on: &Session, verb: &Verb) -> Result<Pending, String> {
    let (sql, built) = verb.text().map_or_else(Default::default, sql);
    let with = |params: &fields::Params| built.unwrap_or_else(|| bound(params));
    Ok(match verb {
        Verb::Execute { params, .. } => pending(on.execute(&sql, with(params)), Outcome::Executed),
        Verb::Run { params, .. } => pending(on.run(&sql, with(params)), Outcome::Ran),
        Verb::Query { params, .. } => pending(on.query(&sql, with(params)), Outcome::Rows),
        Verb::QueryOne { params, .. } => pending(on.query_one(&sql, with(params)), |row| Outcome::Row(Some(row))),
        Verb::QueryValue { params, .. } => {
            pending(on.query_value(&sql, with(params)), |value| Outcome::Value(Some(value)))
        }
        Verb::QueryOptional { params, .. } => pending(on.query_optional(&sql, with(params)), Outcome::Row),
        Verb::QueryOptionalValue { params, .. } => pending(on.query_optional_value(&sql, with(params)), Outcome::Value),
        Verb::QueryValues { params, .. } => pending(on.query_values(&sql, with(params)), Outcome::Values),
        Verb::QueryJson { params, .. } => pending(json(on.query_json(&sql, with(params)), verb), Outcome::Json),
        Verb::ExecuteMany { of, rows, .. } => {
            let rows: Vec<_> = rows.iter().map(bound).collect();
            pending(on.execute_many(of, rows), Outcome::Changes)
        }
        Verb::QueryMany { of, rows, .. } => {
            let rows: Vec<_> = rows.iter().map(bound).collect();
            pending(on.query_many(of, rows), Outcome::Rows)
        }
        Verb::Batch { of, .. } => {
            let statements = of.iter().map(|(sql, params)| (&**sql, bound(params)));
            pending(on.batch(statements), Outcome::Batch)
        }
        Verb::ExecuteScript { of } => pending(on.execute_script(of), |()| Outcome::Done),
        Verb::OpenBlob { table, column, rowid, .. } => {
            pending(on.open_blob(&**table, column, *rowid), |blob| Outcome::Made(Handle::Blob(blob)))
        }
        Verb::Stream { sql, params, .. } => {
            Box::pin(ready(Ok(Outcome::Made(Handle::Stream(Box::new(on.stream(sql, bound(params))))))))
        }
        verb => return Err(format!("{verb:?} is not a call")),
    })
}

fn run_prepared(prepared: &Prepared, verb: &Verb) -> Result<Pending, String> {
    Ok(match verb {
        Verb::Execute { params, .. } => pending(prepared.execute(bound(params)), Outcome::Executed),
        Verb::Run { params, .. } => pending(prepared.run(bound(params)), Outcome::Ran),
        Verb::Query { params, .. } => pending(prepared.query(bound(params)), Outcome::Rows),
        Verb::QueryOne { params, .. } => pending(prepared.query_one(bound(params)), |row| Outcome::Row(Some(row))),
        Verb::QueryValue { params, .. } => {
            pending(prepared.query_value(bound(params)), |value| Outcome::Value(Some(value)))
        }
        Verb::QueryOptional { params, .. } => pending(prepared.query_optional(bound(params)), Outcome::Row),
        Verb::QueryOptionalValue { params, .. } => {
            pending(prepared.query_optional_value(bound(params)), Outcome::Value)
        }
        Verb::QueryJson { params, .. } => pending(json(prepared.query_json(bound(params)), verb), Outcome::Json),
        verb => return Err(format!("a prepared statement has no {verb:?}")),
    })
}

fn bound(params: &fields::Params) -> Result<Params, Error> {
    match params {
        fields::Params::Positional(values) => Params::positional(values),
        fields::Params::Named(values) => Params::named(values.iter().map(|(name, value)| (&**name, value))),
    }
}

/// Returns the SQL of a text, and the values that were built into it.
fn sql(text: &Text) -> (Cow<'_, str>, Option<Result<Params, Error>>) {
    match text {
        Text::Sql(sql) => (sql.into(), None),
        Text::Prepared { .. } => Default::default(),
        Text::Built { built } => {
            let sql = built.iter().fold(Sql::new(""), |sql, part| match part {
                // `Sql` takes text of the program only, and the scenario is the program.
                Part::Push(text) => sql.push(text.clone().leak()),
                Part::Bind(value) => sql.bind(value),
                Part::BindList(values) => sql.bind_list(values),
                Part::PushIdentifier(name) => sql.push_identifier(name),
            });
            (sql.text().to_owned().into(), Some(sql.params()))
        }
    }
}
