//! A second SQLite library in a process that has one: what a plug-in or another binding brings along unasked.
//!
//! Owns: loading it, and a connection of it that runs SQL. For tests of what two libraries do to each other's locks.
#![cfg(target_os = "linux")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where the library lies.
pub const LIBRARY: &str = env!("SECOND_SQLITE");

type Db = *mut c_void;
type Row = unsafe extern "C" fn(*mut c_void, c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
type Open = unsafe extern "C" fn(*const c_char, *mut Db) -> c_int;
type Exec = unsafe extern "C" fn(Db, *const c_char, Option<Row>, *mut c_void, *mut *mut c_char) -> c_int;
type Close = unsafe extern "C" fn(Db) -> c_int;
type Message = unsafe extern "C" fn(Db) -> *const c_char;

#[derive(Clone, Copy)]
struct Library {
    open: Open,
    exec: Exec,
    close: Close,
    message: Message,
}

impl Library {
    fn load() -> Self {
        let path = CString::new(LIBRARY).expect("a path has no NUL");
        // SAFETY: the path ends with a NUL. What runs when SQLite is loaded is nothing.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{LIBRARY} cannot be loaded");
        let symbol = |name: &CStr| {
            // SAFETY: the handle is open, and never closed.
            let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
            assert!(!symbol.is_null(), "{name:?} is not in {LIBRARY}");
            symbol
        };
        // SAFETY: these are the types of the functions of these names (https://sqlite.org/c3ref/funclist.html).
        unsafe {
            Self {
                open: std::mem::transmute::<*mut c_void, Open>(symbol(c"sqlite3_open")),
                exec: std::mem::transmute::<*mut c_void, Exec>(symbol(c"sqlite3_exec")),
                close: std::mem::transmute::<*mut c_void, Close>(symbol(c"sqlite3_close")),
                message: std::mem::transmute::<*mut c_void, Message>(symbol(c"sqlite3_errmsg")),
            }
        }
    }
}

/// A connection of the second library. Dropping it closes it.
pub struct Connection {
    library: Library,
    db: Db,
}

impl Connection {
    /// Opens the file and reads its header, so that its locks are taken.
    ///
    /// # Panics
    /// If that fails.
    #[must_use]
    pub fn open(path: &Path) -> Self {
        let path = CString::new(path.as_os_str().as_bytes()).expect("a path has no NUL");
        let library = Library::load();
        let mut db: Db = std::ptr::null_mut();
        // SAFETY: the path ends with a NUL, and there is room for the handle, which is set in any case.
        let code = unsafe { (library.open)(path.as_ptr(), &raw mut db) };
        let connection = Self { library, db };
        connection.check(code);
        connection.execute("SELECT * FROM sqlite_schema");
        connection
    }

    /// Runs statements.
    ///
    /// # Panics
    /// If one fails.
    pub fn execute(&self, sql: &str) {
        self.integer(sql);
    }

    /// Runs statements and answers the last integer they give.
    ///
    /// # Panics
    /// If one fails.
    pub fn integer(&self, sql: &str) -> Option<i64> {
        let sql = CString::new(sql).expect("the SQL has no NUL");
        let mut last: Option<i64> = None;
        // SAFETY: the connection is open, the text ends with a NUL, and `last` lives for the call.
        let code = unsafe {
            (self.library.exec)(self.db, sql.as_ptr(), Some(take), (&raw mut last).cast(), std::ptr::null_mut())
        };
        self.check(code);
        last
    }

    fn check(&self, code: c_int) {
        // SAFETY: the connection is open or could not be, which its message tells; the message is copied at once.
        let message = || unsafe { CStr::from_ptr((self.library.message)(self.db)) }.to_string_lossy().into_owned();
        assert_eq!(code, 0, "the second library: {}", message());
    }
}

/// Takes the first column of a row, if it is an integer.
unsafe extern "C" fn take(last: *mut c_void, _: c_int, values: *mut *mut c_char, _: *mut *mut c_char) -> c_int {
    // SAFETY: a row has at least one column, whose text is null or ends with a NUL; `last` is what `integer` passed.
    unsafe {
        let value = *values;
        if !value.is_null() {
            *last.cast::<Option<i64>>() = CStr::from_ptr(value).to_str().ok().and_then(|text| text.parse().ok());
        }
    }
    0
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the connection is open and has no statements, for `exec` finalises its own.
        let code = unsafe { (self.library.close)(self.db) };
        assert!(code == 0 || std::thread::panicking(), "the second library cannot close: {code}");
    }
}
