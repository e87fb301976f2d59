//! A terminal for the tests: a pseudo terminal, and what its screen shows.
//!
//! The editor asks the terminal where its cursor is, so this one answers.

use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::support::Place;

/// So long the tests wait for a text before they fail.
const PATIENCE: Duration = Duration::from_secs(30);

struct Shared {
    screen: Mutex<(vt100::Parser, bool)>,
    changed: Condvar,
}

pub(crate) struct Terminal {
    shared: Arc<Shared>,
    writer: Arc<Mutex<Box<dyn Write + Send>>>,
    child: Box<dyn Child + Send + Sync>,
    _master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    pub(crate) fn new(place: &Place, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let size = PtySize { rows: 40, cols: 100, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_flatwater"));
        command.args(arguments);
        command.cwd(place.folder.path());
        command.env("TERM", "xterm-256color");
        command.env("XDG_STATE_HOME", place.path("state"));
        command.env_remove("NO_COLOR");
        for (name, value) in variables {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let shared =
            Arc::new(Shared { screen: Mutex::new((vt100::Parser::new(40, 100, 0), false)), changed: Condvar::new() });
        let writer = Arc::new(Mutex::new(pair.master.take_writer().unwrap()));
        let reader = pair.master.try_clone_reader().unwrap();
        let (of_thread, answers) = (shared.clone(), writer.clone());
        std::thread::spawn(move || show(reader, &of_thread, &answers));
        Self { shared, writer, child, _master: pair.master }
    }

    pub(crate) fn typed(&self, text: &str) {
        let mut writer = self.writer.lock().unwrap();
        writer.write_all(text.as_bytes()).unwrap();
        writer.flush().unwrap();
    }

    /// Waits until the screen fits, and returns what it shows.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, fits: impl Fn(&vt100::Screen) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        let mut screen = self.shared.screen.lock().unwrap();
        loop {
            if fits(screen.0.screen()) {
                return screen.0.screen().contents();
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!screen.1 && !left.is_zero(), "{what} is not shown:\n{}", screen.0.screen().contents());
            screen = self.shared.changed.wait_timeout(screen, left).unwrap().0;
        }
    }

    #[track_caller]
    pub(crate) fn until_text(&self, text: &str) -> String {
        self.until(text, |screen| screen.contents().contains(text))
    }

    /// Waits for a prompt with nothing behind it.
    #[track_caller]
    pub(crate) fn until_prompt(&self) {
        self.until("a prompt", |screen| screen.contents().trim_end().ends_with("flatwater>"));
    }

    /// Waits for the end of the command, and returns its exit code.
    #[track_caller]
    pub(crate) fn end(mut self) -> u32 {
        let end = Instant::now() + PATIENCE;
        let mut screen = self.shared.screen.lock().unwrap();
        while !screen.1 && Instant::now() < end {
            screen = self.shared.changed.wait_timeout(screen, PATIENCE).unwrap().0;
        }
        assert!(screen.1, "the command does not end:\n{}", screen.0.screen().contents());
        drop(screen);
        self.child.wait().unwrap().exit_code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// Shows what the command prints, and answers where the cursor is.
fn show(mut reader: Box<dyn Read + Send>, shared: &Shared, answers: &Mutex<Box<dyn Write + Send>>) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = reader.read(&mut bytes) {
        let questions = bytes[..count].windows(4).filter(|part| part == b"\x1b[6n").count();
        // A test that fails holds the lock.
        let mut screen = shared.screen.lock().unwrap_or_else(PoisonError::into_inner);
        screen.0.process(&bytes[..count]);
        let (row, column) = screen.0.screen().cursor_position();
        drop(screen);
        for _ in 0..questions {
            let _ = write!(answers.lock().unwrap(), "\x1b[{};{}R", row + 1, column + 1);
        }
        shared.changed.notify_all();
    }
    shared.screen.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
    shared.changed.notify_all();
}
