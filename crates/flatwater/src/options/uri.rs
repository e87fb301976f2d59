//! `file:` URIs (<https://sqlite.org/uri.html>), and the URLs that other libraries take instead of a path:
//! `sqlite::memory:`, `sqlite://app.db`.
//!
//! Owns: parsing a URI into its path and settings, and writing one for SQLite; recognising a URL, and the form that
//! opens the same database here. Pure, on any thread. Invariants: an unknown key or value of a URI is refused, where
//! SQLite itself would ignore it; a URL is refused, which would be the name of a new file. Leaves out: checking which
//! settings contradict each other, which the options do.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::MEMORY;
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode, Result};

/// The contents of a URI. A setting that is not present is `None`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Uri {
    pub(crate) path: PathBuf,
    pub(crate) mode: Option<Mode>,
    pub(crate) immutable: bool,
    pub(crate) vfs: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    ReadOnly,
    ReadWrite,
    ReadWriteCreate,
    Memory,
}

pub(crate) fn is_uri(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().starts_with(b"file:")
}

/// Parses a URI; a path that is not a URI is returned unchanged. A URL of another library is refused.
pub(crate) fn parse(text: &Path) -> Result<Uri> {
    if !is_uri(text) {
        refuse_url(text)?;
        return Ok(Uri { path: text.to_owned(), ..Uri::default() });
    }
    let bytes = &text.as_os_str().as_encoded_bytes()["file:".len()..];
    let bytes = bytes.split(|byte| *byte == b'#').next().unwrap_or_default();
    let (path, query) = match bytes.iter().position(|byte| *byte == b'?') {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &bytes[bytes.len()..]),
    };
    let mut uri = Uri { path: os_string(decode(without_host(path)?)?)?.into(), ..Uri::default() };
    for pair in query.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let text = |bytes: &[u8]| -> Result<String> {
            String::from_utf8(decode(bytes)?).map_err(|_| refused("is not UTF-8 after its path"))
        };
        uri.set(&text(&pair[..at])?, &text(pair.get(at + 1..).unwrap_or_default())?)?;
    }
    Ok(uri)
}

impl Uri {
    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match (key, value) {
            ("mode", "ro") => self.mode = Some(Mode::ReadOnly),
            ("mode", "rw") => self.mode = Some(Mode::ReadWrite),
            ("mode", "rwc") => self.mode = Some(Mode::ReadWriteCreate),
            ("mode", "memory") => self.mode = Some(Mode::Memory),
            ("mode", _) => return Err(refused(&format!("has mode={value}; it can be ro, rw, rwc or memory"))),
            ("immutable", "1" | "true" | "yes" | "on") => self.immutable = true,
            ("immutable", "0" | "false" | "no" | "off") => self.immutable = false,
            ("immutable", _) => return Err(refused(&format!("has immutable={value}; it can be 1 or 0"))),
            ("vfs", "") => return Err(refused("names no VFS after `vfs=`")),
            ("vfs", name) => self.vfs = Some(name.to_owned()),
            ("cache", _) => {
                return Err(refused("has `cache`: connections of one database do not share a cache")
                    .with_hint("leave it out; all handles of a file share one engine"));
            }
            ("key" | "hexkey" | "textkey", _) => {
                return Err(refused("has a key of encryption in it").with_hint(hint!["set it in the options: " Key]));
            }
            _ => {
                return Err(refused(&format!("has the unknown key {key:?}"))
                    .with_hint("the keys are `mode`, `immutable` and `vfs`"));
            }
        }
        Ok(())
    }
}

/// Returns the path after the authority, which must be empty or `localhost`.
fn without_host(path: &[u8]) -> Result<&[u8]> {
    let Some(rest) = path.strip_prefix(b"//") else { return Ok(path) };
    let at = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    match &rest[..at] {
        b"" | b"localhost" => Ok(&rest[at..]),
        host => Err(refused(&format!(
            "names the host {:?}; only files of this machine can be opened",
            String::from_utf8_lossy(host)
        ))
        .with_hint("write file:/path or file:///path")),
    }
}

fn decode(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            decoded.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = byte.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(byte.ok_or_else(|| refused("has a % without two hexadecimal digits after it"))?);
        rest = &rest[2..];
    }
    Ok(decoded)
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps)]
fn os_string(bytes: Vec<u8>) -> Result<OsString> {
    Ok(std::os::unix::ffi::OsStringExt::from_vec(bytes))
}

#[cfg(not(unix))]
fn os_string(bytes: Vec<u8>) -> Result<OsString> {
    let text = String::from_utf8(bytes).map_err(|_| refused("is not UTF-8"))?;
    // A URI writes `C:/dir` as `/C:/dir`.
    let is_drive = text.as_bytes().get(2) == Some(&b':') && text.starts_with('/');
    Ok(if is_drive { text[1..].into() } else { text.into() })
}

fn refused(why: &str) -> Error {
    Error::new(ErrorCode::InvalidPath, format!("the `file:` URI {why}")).in_operation("open")
}

/// Returns the URI with which SQLite opens an absolute path.
pub(crate) fn write(path: &Path, mode: Option<Mode>, immutable: bool) -> String {
    let mode = match mode {
        Some(Mode::ReadOnly) => "mode=ro&",
        Some(Mode::ReadWrite) => "mode=rw&",
        Some(Mode::ReadWriteCreate) => "mode=rwc&",
        Some(Mode::Memory) => "mode=memory&",
        None => "",
    };
    format!("file:{}?{mode}immutable={}", encode(path.as_os_str()), u8::from(immutable))
}

fn encode(path: &OsStr) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let bytes = path.as_encoded_bytes();
    if let (true, Some(path)) = (bytes.iter().all(|byte| is_plain(*byte)), path.to_str()) {
        return path.into();
    }
    let encode = |byte: &u8| if is_plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    bytes.iter().map(encode).collect::<String>().into()
}

/// Refuses a path that is a URL of another library.
fn refuse_url(path: &Path) -> Result<()> {
    let text = path.to_string_lossy();
    let Some((scheme, rest)) = split_url(&text) else { return Ok(()) };
    let hint = match forms(&scheme, rest).as_slice() {
        [form, of_sqlalchemy] => format!("write {form:?}, or {of_sqlalchemy:?} if the URL is one of SQLAlchemy"),
        [form] if text.contains('/') => format!("write {form:?}"),
        [form] => format!("write {form:?}, or \"./{text}\" if the file has that name"),
        _ => "write the path of the file, or \":memory:\" for a database in memory".to_owned(),
    };
    Err(Error::new(ErrorCode::InvalidPath, format!("{text:?} is neither a path nor a `file:` URI"))
        .with_hint(hint)
        .in_operation("open"))
}

/// Returns the scheme, if it is `sqlite:` or its like, and what follows it. A name that begins with a colon, which SQLite
/// reserves, has none.
fn split_url(text: &str) -> Option<(String, &str)> {
    if text.starts_with(':') {
        return (text != MEMORY).then(|| (String::new(), text));
    }
    let text = text.strip_prefix("jdbc:").unwrap_or(text);
    let (scheme, rest) = text.split_once(':')?;
    let scheme = scheme.to_ascii_lowercase();
    (matches!(&*scheme, "sqlite" | "sqlite3") || scheme.starts_with("sqlite+")).then_some((scheme, rest))
}

/// Returns the paths or `file:` URIs that name the same database, most likely one first, if the URL names one. In a URL
/// of SQLAlchemy the third slash is no part of the path; only such a URL has a driver in its scheme.
fn forms(scheme: &str, rest: &str) -> Vec<String> {
    match rest.strip_prefix("///") {
        None => path_of_url(rest.strip_prefix("//").unwrap_or(rest)).into_iter().collect(),
        Some("") => Vec::new(),
        Some(rest) if rest.starts_with(['/', ':']) || rest.starts_with("file:") || scheme.contains('+') => {
            path_of_url(rest).into_iter().collect()
        }
        Some(relative) => [path_of_url(&format!("/{relative}")), path_of_url(relative)].into_iter().flatten().collect(),
    }
}

/// Returns the path or the `file:` URI for the path of a URL.
fn path_of_url(text: &str) -> Option<String> {
    match text {
        "" => None,
        _ if text.starts_with(':') => Some(MEMORY.to_owned()),
        _ if text.starts_with("file:") || !text.contains(['?', '%', '#']) => Some(text.to_owned()),
        _ => Some(format!("file:{text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        parse(Path::new(text)).unwrap()
    }

    #[test]
    fn a_uri_is_its_path_and_its_settings() {
        assert_eq!(uri("a.db").path, Path::new("a.db"));
        for text in ["file:/d/a.db", "file:///d/a.db", "file://localhost/d/a.db", "file:/d/%61.db", "file:/d/a.db#x?y"]
        {
            assert_eq!(uri(text), Uri { path: "/d/a.db".into(), ..Uri::default() }, "{text}");
        }
        let all = uri("file:a%20b?mode=ro&immutable=1&vfs=unix-dotfile&");
        let vfs = Some("unix-dotfile".into());
        assert_eq!(all, Uri { path: "a b".into(), mode: Some(Mode::ReadOnly), immutable: true, vfs });
        assert!(!uri("file:a?immutable=0").immutable);
        assert_eq!(uri("file:?mode=memory").mode, Some(Mode::Memory));
    }

    #[test]
    fn what_is_not_understood_is_refused_with_a_sentence() {
        for (text, said) in [
            ("file:a?mode=rx", "mode=rx"),
            ("file:a?immutable=maybe", "immutable=maybe"),
            ("file:a?vfs=", "no VFS"),
            ("file:a?cache=shared", "`cache`"),
            ("file:a?nolock=1", "\"nolock\""),
            ("file:a?hexkey=73", "a key of encryption"),
            ("file:a?mode", "mode="),
            ("file://server/a", "\"server\""),
            ("file:a%2", "%"),
            ("file:a%+1", "%"),
        ] {
            let error = parse(Path::new(text)).unwrap_err();
            assert!(error.message().contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_written_uri_is_read_back() {
        for path in ["/d/a.db", "/d/50% a?b#c&d=\u{e9}"] {
            for mode in [None, Some(Mode::ReadOnly), Some(Mode::ReadWrite), Some(Mode::ReadWriteCreate)] {
                for immutable in [false, true] {
                    let read = uri(&write(Path::new(path), mode, immutable));
                    assert_eq!((read.path.as_path(), read.mode, read.immutable), (Path::new(path), mode, immutable));
                }
            }
        }
    }
}
