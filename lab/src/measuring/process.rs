//! One child process: its complete output, its end, its time limit, and the interrupt key.
//!
//! There is no polling: a waiting thread sleeps on a channel, which receives an event when the child closes its pipes,
//! at the limit, or on an interrupt. Leaves out: the purpose of the child.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

/// The interrupt key. The first press ends the running children, and the key stays pressed.
#[derive(Clone, Default)]
pub struct Interrupt {
    pressed: Arc<AtomicBool>,
    /// The threads that wait for a child, each under its own number.
    waiting: Arc<Mutex<BTreeMap<u64, Sender<Event>>>>,
}

enum Event {
    Closed,
    Interrupted,
}

impl Interrupt {
    /// Installs the handler of the key for this process.
    pub fn install() -> Result<Self> {
        let interrupt = Self::default();
        let handler = interrupt.clone();
        ctrlc::set_handler(move || handler.press()).context("cannot catch the interrupt key")?;
        Ok(interrupt)
    }

    /// Acts as if the key was pressed.
    pub fn press(&self) {
        self.pressed.store(true, Ordering::SeqCst);
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for sender in waiting.values() {
            // The wait may have just ended.
            let _ = sender.send(Event::Interrupted);
        }
    }

    /// Returns whether the key was pressed.
    pub fn pressed(&self) -> bool {
        self.pressed.load(Ordering::SeqCst)
    }

    fn listen(&self, sender: Sender<Event>) -> Listening<'_> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(number, sender);
        Listening { interrupt: self, number }
    }
}

/// Registers a wait for the interrupt until it is dropped.
struct Listening<'a> {
    interrupt: &'a Interrupt,
    number: u64,
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.interrupt.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

/// The result of a child that has ended.
pub struct Ended {
    /// The child's exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Ended {
    /// Returns its output, or an error with the last lines of stderr.
    pub fn success(self) -> Result<String> {
        if self.status.success() { Ok(self.stdout) } else { Err(anyhow!("{}: {}", self.status, self.last_words())) }
    }

    fn last_words(&self) -> String {
        let said = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        // A compiler prints its errors long before its last line.
        let errors: Vec<&str> = lines.iter().copied().filter(|line| line.starts_with("error")).collect();
        let telling = if errors.is_empty() { &lines[lines.len().saturating_sub(4)..] } else { &errors };
        let said = telling.join(" | ");
        if said.is_empty() { "it said nothing".to_owned() } else { said.chars().take(600).collect() }
    }
}

/// Runs a child to its end. Beyond the limit, or when interrupted, the child is killed and the result is an error.
pub fn run(command: &mut Command, limit: Duration, interrupt: &Interrupt) -> Result<Ended> {
    let program = command.get_program().to_string_lossy().into_owned();
    let (sender, events) = mpsc::channel();
    let listening = interrupt.listen(sender.clone());
    if interrupt.pressed() {
        bail!("interrupted");
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let stdout = drain(child.stdout.take(), sender.clone());
    let stderr = drain(child.stderr.take(), sender);
    let waited = wait(&events, limit);
    drop(listening);
    if let Err(error) = waited {
        return Err(end(&mut child, error));
    }
    let status = child.wait().with_context(|| format!("cannot wait for {program}"))?;
    Ok(Ended { status, stdout: text(&stdout), stderr: text(&stderr) })
}

type Buffer = Arc<Mutex<Vec<u8>>>;

fn text(buffer: &Buffer) -> String {
    String::from_utf8_lossy(&buffer.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
}

/// Reads a pipe to its end on a separate thread.
fn drain(pipe: Option<impl Read + Send + 'static>, closed: Sender<Event>) -> Buffer {
    let buffer = Buffer::default();
    let filled = buffer.clone();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A broken pipe ends the output in the same way as a closed one.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        *filled.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
        let _ = closed.send(Event::Closed);
    });
    buffer
}

/// Waits until both pipes are closed.
fn wait(events: &mpsc::Receiver<Event>, limit: Duration) -> Result<()> {
    let until = Instant::now() + limit;
    for _ in 0..2 {
        match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Event::Closed) => {}
            Ok(Event::Interrupted) => bail!("interrupted"),
            Err(RecvTimeoutError::Timeout) => {
                bail!("killed: it was not done after {} s", limit.as_secs())
            }
            Err(RecvTimeoutError::Disconnected) => bail!("its output cannot be read"),
        }
    }
    Ok(())
}

fn end(child: &mut Child, error: anyhow::Error) -> anyhow::Error {
    // The child may have ended by itself meanwhile.
    let _ = child.kill();
    let _ = child.wait();
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn a_child_gives_its_output_and_a_failing_one_its_last_words() {
        let ended = run(&mut shell("echo out; echo err >&2"), LONG, &Interrupt::default()).unwrap();
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("out\n", "err\n"));
        let failed = run(&mut shell("echo broken >&2; exit 3"), LONG, &Interrupt::default()).unwrap();
        let error = failed.success().unwrap_err().to_string();
        assert!(error.contains('3') && error.contains("broken"), "{error}");
    }

    #[test]
    fn a_child_past_its_limit_is_killed() {
        let error = run(&mut shell("exec sleep 600"), Duration::from_millis(50), &Interrupt::default()).err().unwrap();
        assert!(error.to_string().contains("not done"), "{error}");
    }

    #[test]
    fn the_interrupt_ends_a_running_child_and_lets_none_begin() {
        let interrupt = Interrupt::default();
        let pressing = interrupt.clone();
        let folder = tempfile::tempdir().unwrap();
        let began = folder.path().join("began");
        let watched = began.clone();
        let presser = std::thread::spawn(move || {
            while !watched.exists() {
                std::thread::yield_now();
            }
            pressing.press();
        });
        let script = format!("touch '{}'; exec sleep 600", began.display());
        let error = run(&mut shell(&script), LONG, &interrupt).err().unwrap();
        presser.join().unwrap();
        assert_eq!(error.to_string(), "interrupted");
        assert_eq!(run(&mut shell("true"), LONG, &interrupt).err().unwrap().to_string(), "interrupted");
    }
}
