//! Keys and encrypted files in a build without the feature `sqlcipher`.

use flatwater::options::Key;
use flatwater::{ErrorKind, Options};

use crate::support::TestFile;

#[test]
fn a_key_is_refused_before_anything_is_opened() {
    let file = TestFile::new();
    let error = file.options().key(Key::text("hunter2")).open().wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.message().contains("built without encryption"), "{error}");
    assert!(error.hint().unwrap().contains("the cargo feature `sqlcipher`"), "{error}");
    assert!(!format!("{error:?}").contains("hunter2") && !file.path().exists());
}

#[test]
fn a_file_that_looks_encrypted_is_said_to_be_that() {
    let file = TestFile::new();
    let random: Vec<u8> = (0..8192).map(|_| rand::random()).collect();
    std::fs::write(file.path(), random).unwrap();
    for options in [file.options(), file.options().read_only(true)] {
        let error = Options::open(options).wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Key);
        assert!(error.message().contains("is encrypted, or is no SQLite database"), "{error}");
        assert!(error.hint().unwrap().contains("`Options::key`"), "{error}");
    }
    std::fs::remove_file(file.path()).unwrap();
}

#[test]
fn a_key_in_sql_is_refused_and_not_shown() {
    let db = Options::new(":memory:").open().wait().unwrap();
    let error = db.query("PRAGMA key = 'hunter2'", ()).wait().unwrap_err();
    assert!(error.kind() == ErrorKind::Misuse && error.hint().unwrap().contains("`Options::key`"), "{error}");
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}
