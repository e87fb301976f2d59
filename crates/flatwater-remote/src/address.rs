//! The address of a server: `rqlite://user:password@host:port,host:port/?key=value`, or `libsql://host/?authToken=...`.
//!
//! Owns: reading it. Pure. Invariant: an error has no part of what stands before the `@`, and no value of a key. Leaves out: what
//! the keys mean (`options`), but for `tls`.

use flatwater::bindings::server::error;
use flatwater::{ErrorCode, Result};
use percent_encoding::percent_decode_str;

use crate::dialect::Dialect;

const FORM: &str = "the form is rqlite://user:password@host:port,host:port/?key=value, or rqlites:// with TLS; or \
    libsql://host:port,replica:port/?key=value, with TLS unless tls=0";

/// What an address says.
#[derive(PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) dialect: Dialect,
    pub(crate) has_tls: bool,
    pub(crate) user: Option<(String, String)>,
    /// `host:port` of each node, at least one.
    pub(crate) nodes: Vec<String>,
    pub(crate) settings: Vec<(String, String)>,
}

/// What begins an address, also one that is not quite right.
const BEGINNINGS: &[&str] = &["rqlite:", "rqlites:", "libsql:", "libsqls:", "http://", "https://", "ws://", "wss://"];

/// Returns true for a text that is meant as the address of a server, and not as the path of a file: `Remote::connect` says what is
/// wrong with one.
#[must_use]
pub fn is_address(text: &str) -> bool {
    let text = text.trim_start().as_bytes();
    let begins = |with: &&str| text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()));
    BEGINNINGS.iter().any(begins)
}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let (dialect, mut has_tls, rest) = match text.split_once("://") {
            Some(("rqlite", rest)) => (Dialect::Rqlite, false, rest),
            Some(("rqlites", rest)) => (Dialect::Rqlite, true, rest),
            Some(("libsql", rest)) => (Dialect::Libsql, true, rest),
            Some((scheme, _)) => return Err(wrong(format!("there is no server that is reached by {scheme:?}"))),
            None => return Err(wrong("the address of a server has no scheme".into())),
        };
        // A password of rqlite may have any sign, also an `@` or a `?` that was not encoded.
        // A token in the settings may have them, too.
        let (rest, query) = match dialect {
            Dialect::Rqlite => (rest, None),
            Dialect::Libsql => rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query))),
        };
        let (user, rest) = match rest.rsplit_once('@') {
            Some((user, rest)) => (Some(user_of(user)?), rest),
            None => (None, rest),
        };
        let (hosts, query) = match query {
            Some(query) => (rest, query),
            None => rest.split_once('?').unwrap_or((rest, "")),
        };
        let hosts = hosts.strip_suffix('/').unwrap_or(hosts);
        let settings = query.split('&').filter(|pair| !pair.is_empty()).map(setting);
        let mut settings = settings.collect::<Result<Vec<_>>>()?;
        if dialect == Dialect::Libsql
            && let Some(at) = settings.iter().position(|(key, _)| key == "tls")
        {
            has_tls = match &*settings.remove(at).1 {
                "0" => false,
                "1" => true,
                _ => return Err(wrong("tls is 0 or 1".into())),
            };
        }
        let port = port_of(dialect, has_tls);
        let nodes = hosts.split(',').map(|text| node(text, port)).collect::<Result<Vec<_>>>()?;
        Ok(Self { dialect, has_tls, user, nodes, settings })
    }
}

fn user_of(text: &str) -> Result<(String, String)> {
    let (name, password) = text.split_once(':').unwrap_or((text, ""));
    Ok((decoded(name)?, decoded(password)?))
}

fn decoded(text: &str) -> Result<String> {
    let text = percent_decode_str(text).decode_utf8();
    text.map(Into::into).map_err(|_| wrong("a part of the address is not UTF-8".into()))
}

/// The port that a server listens on unless it is told another one.
fn port_of(dialect: Dialect, has_tls: bool) -> u16 {
    match (dialect, has_tls) {
        (Dialect::Rqlite, _) => 4001,
        (Dialect::Libsql, true) => 443,
        (Dialect::Libsql, false) => 8080,
    }
}

/// Adds the port, if there is none.
fn node(text: &str, port_of_server: u16) -> Result<String> {
    // The colons of an IPv6 address stand in brackets.
    let after = text.rfind(']').map_or(text, |end| &text[end..]);
    let (host, port) = match after.rsplit_once(':') {
        Some((_, port)) => (&text[..text.len() - port.len() - 1], port.parse().ok()),
        None => (text, Some(port_of_server)),
    };
    match port {
        Some(port) if is_host(host) => Ok(format!("{host}:{port}")),
        // Behind a slash may be settings whose `?` was forgotten, and a secret in them.
        _ => {
            let shown = text.split_once(['/', '=']).map_or(text, |(begin, _)| begin);
            Err(wrong(format!("{shown:?} is not a host with a port, or more stands behind it")))
        }
    }
}

fn is_host(text: &str) -> bool {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    match inner {
        Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !text.is_empty() && text.chars().all(allowed),
    }
}

fn setting(pair: &str) -> Result<(String, String)> {
    match pair.split_once('=') {
        Some((key, value)) => Ok((decoded(key)?, decoded(value)?)),
        // It may be a part of a secret.
        None => Err(wrong("a setting of the address has no value".into())),
    }
}

fn wrong(message: String) -> flatwater::Error {
    error(ErrorCode::InvalidPath, message, FORM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatwater::ErrorKind;

    fn parsed(text: &str) -> Address {
        Address::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn an_address_has_nodes_a_user_and_settings() {
        let address = parsed("rqlites://ada:se%40cr%3aet@one,two:5001,[::1]:6001,[::2]/?level=strong&timeout=5s");
        assert!(address.has_tls);
        assert_eq!(address.user, Some(("ada".into(), "se@cr:et".into())));
        assert_eq!(address.nodes, ["one:4001", "two:5001", "[::1]:6001", "[::2]:4001"]);
        assert_eq!(address.settings, [("level".into(), "strong".into()), ("timeout".into(), "5s".into())]);
        let short = parsed("rqlite://127.0.0.1");
        assert!(!short.has_tls && short.user.is_none() && short.settings.is_empty());
        assert_eq!(short.nodes, ["127.0.0.1:4001"]);
        assert_eq!(parsed("rqlite://a:b@c?d@host").user, Some(("a".into(), "b@c?d".into())));
    }

    #[test]
    fn a_libsql_server_has_tls_unless_told_otherwise() {
        let address = parsed("libsql://db.example.com?authToken=secret");
        assert!(address.dialect == Dialect::Libsql && address.has_tls);
        assert_eq!(address.nodes, ["db.example.com:443"]);
        assert_eq!(address.settings, [("authToken".into(), "secret".into())]);
        let address = parsed("libsql://ada:se%40cret@host?authToken=a@b/c");
        assert_eq!((address.nodes, &*address.settings[0].1), (vec!["host:443".to_owned()], "a@b/c"));
        let address = parsed("libsql://127.0.0.1,127.0.0.1:8081/?tls=0");
        assert!(!address.has_tls && address.settings.is_empty());
        assert_eq!(address.nodes, ["127.0.0.1:8080", "127.0.0.1:8081"]);
    }

    #[test]
    fn what_is_meant_as_an_address_is_no_file() {
        for text in ["rqlite://h", "LIBSQL://h", "libsql:h?authToken=secret", " rqlites://h", "https://h", "rqlite:/h"]
        {
            assert!(is_address(text), "{text}");
        }
        for text in ["", "app.db", "file:app.db", ":memory:", "rqlite", "rqlite.db", "http.db", "C:\\rqlite:"] {
            assert!(!is_address(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_its_password() {
        for text in [
            "",
            "app.db",
            "http://host",
            "rqlite://",
            "rqlite://a,,b",
            "rqlite://host:port",
            "rqlite://host:70000",
            "rqlite://ho st",
            "rqlite://[::g]",
            "rqlite://ada:secret@",
            "rqlite://ada:secret@ho/st/path",
            "rqlite://ada:secret@host/?level",
            "rqlite://ada:secret%ff@host",
            "rqlite://ada:se?secret@ho st",
            "rqlite://ada:12?secret@host?level",
            "libsql://host?tls=2",
            "libsql://host?authToken:secret",
            "libsql://host/authToken=secret",
            "libsql://host:8080/authToken=secret",
        ] {
            let error = Address::parse(text).err().unwrap_or_else(|| panic!("{text} was taken"));
            assert_eq!(error.kind(), ErrorKind::Misuse);
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
