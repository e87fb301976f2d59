//! The mailbox of one event loop: which of its calls are to be polled again.
//!
//! Owns: the tokens that workers noted, and whether the loop was woken for them. Workers' threads write, the loop's
//! thread reads. Invariants: after a note the loop is woken, or reads the note without that; it is woken once for all
//! notes that it has not read yet. No lock is held while the bell rings. Leaves out: what a token stands for
//! (`tokens`), and how a loop is woken, which is the bell.
//!
//! ```text
//! worker                                  event loop
//! notes a token
//!                                         begins to read: it counts as not woken
//! finds it not woken: rings the bell
//!                                         reads the token
//!                                         is woken, and finds nothing: harmless
//! ```
//!
//! In the other order the worker finds it woken and does not ring. The loop then reads after the worker has noted, so
//! it finds the token.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use flatwater::bindings::Mailbox;

/// The tokens that are to be read by one event loop.
pub struct Inbox {
    noted: Mutex<Vec<u64>>,
    /// The bell was rung after the loop began to read.
    rung: AtomicBool,
    bell: Box<dyn Fn() + Send + Sync>,
}

impl Inbox {
    /// Returns an empty inbox. `bell` wakes the event loop; it is called on workers' threads and must not block.
    pub fn new(bell: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { noted: Mutex::default(), rung: AtomicBool::new(false), bell: Box::new(bell) })
    }

    /// Moves the tokens that were noted into `tokens`, in the order of the notes.
    pub fn read(&self, tokens: &mut Vec<u64>) {
        self.rung.store(false, Ordering::SeqCst);
        tokens.append(&mut self.noted.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Mailbox for Inbox {
    fn ready(&self, token: u64) {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).push(token);
    }

    fn flush(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            (self.bell)();
        }
    }
}

/// Returns a waker that notes the token, for futures that are no calls.
pub fn waker(mailbox: Arc<dyn Mailbox>, token: u64) -> Waker {
    struct Note(Arc<dyn Mailbox>, u64);
    impl Wake for Note {
        fn wake(self: Arc<Self>) {
            self.0.ready(self.1);
            self.0.flush();
        }
    }
    Arc::new(Note(mailbox, token)).into()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;

    use super::*;

    fn counting() -> (Arc<Inbox>, Arc<AtomicUsize>) {
        let rings = Arc::new(AtomicUsize::new(0));
        let bell = rings.clone();
        (Inbox::new(move || _ = bell.fetch_add(1, Ordering::SeqCst)), rings)
    }

    fn read(inbox: &Inbox) -> Vec<u64> {
        let mut tokens = Vec::new();
        inbox.read(&mut tokens);
        tokens
    }

    #[test]
    fn the_loop_is_woken_once_for_all_that_it_has_not_read() {
        let (inbox, rings) = counting();
        for token in 0..3 {
            inbox.ready(token);
            inbox.flush();
        }
        assert_eq!((read(&inbox), rings.load(Ordering::SeqCst)), (vec![0, 1, 2], 1));
        waker(inbox.clone(), 7).wake();
        assert_eq!((read(&inbox), rings.load(Ordering::SeqCst)), (vec![7], 2));
        assert!(read(&inbox).is_empty());
    }

    #[test]
    fn no_token_is_lost_to_a_loop_that_sleeps_until_it_is_woken() {
        const THREADS: u64 = 4;
        const EACH: u64 = 2_000;
        let (ring, rung) = mpsc::channel();
        let inbox = Inbox::new(move || _ = ring.send(()));
        let worker = |thread| {
            let inbox = inbox.clone();
            std::thread::spawn(move || {
                for token in 0..EACH {
                    inbox.ready(thread * EACH + token);
                    inbox.flush();
                }
            })
        };
        let workers: Vec<_> = (0..THREADS).map(worker).collect();
        let mut tokens = Vec::new();
        while tokens.len() < usize::try_from(THREADS * EACH).unwrap() {
            rung.recv_timeout(std::time::Duration::from_secs(60)).expect("a note without a wake");
            inbox.read(&mut tokens);
        }
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        tokens.sort_unstable();
        assert!(tokens.into_iter().eq(0..THREADS * EACH));
    }
}
