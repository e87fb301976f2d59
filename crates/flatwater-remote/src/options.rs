//! The settings of a connection to a cluster.
//!
//! Owns: their defaults, and reading them from an address. Plain values. Invariant: a secret is in no debug output. Leaves out:
//! using them.

use std::fmt;
use std::time::Duration;

use flatwater::bindings::server::error;
use flatwater::{ErrorCode, Result};

use crate::address::Address;
use crate::dialect::Dialect;

/// What a read promises (<https://rqlite.io/docs/api/read-consistency/>). A libSQL server has one primary, which answers all levels but
/// the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Level {
    /// The leader reads, after it has made sure by the log that it is the leader: each read goes through Raft.
    Strong,
    /// The leader reads, after a majority has confirmed that it is the leader. As fresh as `Strong`.
    Linearizable,
    /// The leader reads. It sees each write that was acknowledged before, except for a leader that was just replaced and does
    /// not know it yet: for less than a second it may return what was newest before.
    #[default]
    Weak,
    /// Any node reads what it has; of libSQL servers a replica, if there is one. On rqlite a node that has heard nothing of the leader for
    /// `freshness` refuses, and another one is asked; without it a node may be as far behind as it likes. A replica of a libSQL server
    /// waits until it has what this client has written and read before.
    None {
        /// How long ago the node must have heard of the leader, at most. Not for libSQL servers.
        freshness: Option<Duration>,
    },
}

/// The settings of a connection to a cluster, made from its address: `RemoteOptions::new("rqlite://...")?.level(...)`.
#[derive(Clone)]
#[must_use]
pub struct RemoteOptions {
    pub(crate) address: std::sync::Arc<Address>,
    pub(crate) level: Level,
    pub(crate) timeout: Duration,
    pub(crate) attempt_timeout: Duration,
    pub(crate) live_poll: Duration,
    pub(crate) token: Option<String>,
    pub(crate) database: Option<String>,
    pub(crate) certificates: Vec<Vec<u8>>,
    /// The client's certificate, and its key.
    pub(crate) identity: Option<(Vec<u8>, Vec<u8>)>,
    pub(crate) user: Option<(String, String)>,
}

/// The default of [`RemoteOptions::timeout`].
const TIMEOUT: Duration = Duration::from_secs(10);
/// The default of [`RemoteOptions::live_poll`].
pub(crate) const LIVE_POLL: Duration = Duration::from_millis(100);
/// No node answers faster.
const SHORTEST: Duration = Duration::from_millis(1);
/// A longer time is as good as this one.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The default of [`RemoteOptions::attempt_timeout`], for a cluster in which another node takes over.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(2_500);

impl RemoteOptions {
    /// Reads an address: `rqlite://user:password@host:port,host:port/?level=weak&timeout=10s&attempt_timeout=2500ms`, with TLS
    /// `rqlites://`. Of the cluster one node is enough, of several any may be down. Or `libsql://host:port,replica:port/?authToken=...`:
    /// the primary, and the replicas that reads of the level `none` may go to; with TLS, unless `tls=0`. Connects to nothing.
    ///
    /// The settings of an address are `level` (`strong`, `linearizable`, `weak` or `none`), `freshness`, `timeout`,
    /// `attempt_timeout`, `live_poll`, the paths of files in the form PEM `ca` (authorities to trust), `cert` and `key` (the client's), and for libSQL servers `authToken`, `tls` and `database`; times are written as `250ms` or `10s`.
    ///
    /// # Errors
    /// `Misuse` for what is not an address, for a setting that there is not, and for a file that cannot be read.
    pub fn new(address: &str) -> Result<Self> {
        let address = Address::parse(address)?;
        let mut options = Self {
            level: Level::default(),
            timeout: TIMEOUT,
            attempt_timeout: match address.dialect {
                Dialect::Rqlite => ATTEMPT_TIMEOUT,
                // Nobody else would answer, and a write waits for the transactions before it.
                Dialect::Libsql => TIMEOUT / 2,
            },
            live_poll: LIVE_POLL,
            token: None,
            database: None,
            certificates: Vec::new(),
            identity: None,
            user: address.user.clone(),
            address: address.into(),
        };
        let address = options.address.clone();
        let (mut freshness, mut cert, mut key_of_cert) = (None, None, None);
        for (key, value) in &address.settings {
            match &**key {
                "level" => options.level = level(value)?,
                "freshness" => freshness = Some(time(value)?),
                "timeout" => options = options.timeout(time(value)?),
                "attempt_timeout" => options = options.attempt_timeout(time(value)?),
                "live_poll" => options = options.live_poll(time(value)?),
                "ca" => options = options.trust(file(value)?),
                "cert" => cert = Some(file(value)?),
                "key" => key_of_cert = Some(file(value)?),
                "database" if address.dialect == Dialect::Libsql => options = options.database(value),
                "authToken" if address.dialect == Dialect::Libsql => options = options.token(value),
                other => return Err(wrong(format!("there is no setting {other:?}"))),
            }
        }
        options = match (cert, key_of_cert) {
            (Some(cert), Some(key)) => options.client_certificate(cert, key),
            (None, None) => options,
            _ => return Err(wrong("cert and key belong together".into())),
        };
        match (&mut options.level, freshness) {
            (Level::None { .. }, Some(_)) if address.dialect == Dialect::Libsql => {
                return Err(wrong("a libSQL server has no freshness".into()));
            }
            (Level::None { freshness: place }, freshness) => *place = freshness,
            (_, Some(_)) => return Err(wrong("freshness is a setting of the level none".into())),
            (_, None) => {}
        }
        Ok(options)
    }

    /// The address without the user and the settings.
    pub(crate) fn name(&self) -> String {
        let nodes = format!("{}://{}", self.address.dialect.scheme(), self.address.nodes.join(","));
        match &self.database {
            Some(database) => format!("{nodes}/{database}"),
            None => nodes,
        }
    }

    /// Sets what reads promise. Default [`Level::Weak`].
    pub fn level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// Sets the name and the password, instead of those in the address.
    pub fn user(self, name: &str, password: &str) -> Self {
        Self { user: Some((name.to_owned(), password.to_owned())), ..self }
    }

    /// Sets a bearer token: that of a libSQL server, or of a proxy in front of a cluster. It takes the place of name and password.
    pub fn token(self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self }
    }

    /// Sets which of the databases of a libSQL server it is, if that has several (`--enable-namespaces`), and does not tell them apart by the
    /// host's name.
    pub fn database(self, name: &str) -> Self {
        Self { database: Some(name.to_owned()), ..self }
    }

    /// Trusts these certificates of authorities, in the form PEM, or one in the form DER, besides those that the system trusts.
    pub fn trust(mut self, certificate: Vec<u8>) -> Self {
        self.certificates.push(certificate);
        self
    }

    /// Sets the certificate by which the server knows the client, with those between it and its authority, and its key, both in the form PEM.
    pub fn client_certificate(self, certificates: Vec<u8>, key: Vec<u8>) -> Self {
        Self { identity: Some((certificates, key)), ..self }
    }

    /// Sets for how long a call goes on trying: while there is no leader, or while it is unknown what became of a write. Default 10 s. A
    /// call that has a deadline of its own goes on until then.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: timeout.min(LONGEST), ..self }
    }

    /// Sets how often the server is asked whether something was committed, while there is a live query. Default 100 ms.
    pub fn live_poll(self, live_poll: Duration) -> Self {
        Self { live_poll: live_poll.clamp(SHORTEST, LONGEST), ..self }
    }

    /// Sets how long a node may take for one answer. A leader that hangs is noticed after this time. A statement that runs for
    /// longer, such as one that makes an index, needs a longer one. Default 2.5 s; for a libSQL server, in whose place no other one takes
    /// over, 5 s.
    pub fn attempt_timeout(self, attempt_timeout: Duration) -> Self {
        Self { attempt_timeout: attempt_timeout.clamp(SHORTEST, LONGEST), ..self }
    }
}

impl fmt::Debug for RemoteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteOptions")
            .field("nodes", &self.address.nodes)
            .field("level", &self.level)
            .field("timeout", &self.timeout)
            .field("attempt_timeout", &self.attempt_timeout)
            .finish_non_exhaustive()
    }
}

fn level(text: &str) -> Result<Level> {
    match text {
        "strong" => Ok(Level::Strong),
        "linearizable" => Ok(Level::Linearizable),
        "weak" => Ok(Level::Weak),
        "none" => Ok(Level::None { freshness: None }),
        other => Err(wrong(format!("there is no level {other:?}"))),
    }
}

fn file(path: &str) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|failure| wrong(format!("{path:?} cannot be read: {failure}")))
}

fn time(text: &str) -> Result<Duration> {
    let parsed = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => number.parse().map(Duration::from_millis),
        (None, Some(number)) => number.parse().map(Duration::from_secs),
        (None, None) => return Err(wrong(format!("{text:?} is not a time"))),
    };
    parsed.map_err(|_| wrong(format!("{text:?} is not a time")))
}

fn wrong(message: String) -> flatwater::Error {
    error(
        ErrorCode::InvalidOption,
        message,
        "the settings are level (strong, linearizable, weak, none), freshness, timeout, attempt_timeout, live_poll, ca, cert and key, and authToken, tls and database of \
         a libSQL server; a time is 250ms or 10s",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatwater::ErrorKind;

    #[test]
    fn an_address_has_settings() {
        let options =
            RemoteOptions::new("rqlite://a:secret@h/?level=none&freshness=250ms&timeout=3s&attempt_timeout=900ms");
        let options = options.unwrap();
        assert_eq!(options.level, Level::None { freshness: Some(Duration::from_millis(250)) });
        assert_eq!((options.timeout, options.attempt_timeout), (Duration::from_secs(3), Duration::from_millis(900)));
        assert!(!format!("{options:?}").contains("secret"));
        assert_eq!(RemoteOptions::new("rqlite://h/?level=strong").unwrap().level, Level::Strong);
    }

    #[test]
    fn times_have_bounds() {
        let options = RemoteOptions::new("rqlite://h/?timeout=18446744073709551615s&attempt_timeout=0s").unwrap();
        assert_eq!((options.timeout, options.attempt_timeout), (LONGEST, SHORTEST));
    }

    #[test]
    fn a_setting_that_there_is_not_is_refused() {
        for settings in
            ["levle=weak", "level=week", "freshness=1s", "timeout=5", "timeout=-1s", "level=weak&freshness=1s"]
        {
            let error = RemoteOptions::new(&format!("rqlite://h/?{settings}")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse, "{settings}");
        }
    }
}
