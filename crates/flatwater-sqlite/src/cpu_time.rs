//! The clock of one thread's CPU time.
//!
//! Owns: reading it. Runs on any thread. Invariant: it does not go back. Leaves out: systems other than Unix, which have no such
//! clock here.

use std::time::Duration;

/// Returns the time for which this thread has run on a processor, or `None` where that is not known. It makes a system call.
#[must_use]
pub fn thread_cpu_time() -> Option<Duration> {
    #[cfg(unix)]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is valid for writing one timespec.
        let answer = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        let seconds = u64::try_from(time.tv_sec).ok()?;
        (answer == 0).then(|| Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0)))
    }
    #[cfg(not(unix))]
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own_which_goes_on_while_it_works() {
        let before = thread_cpu_time().unwrap();
        while thread_cpu_time().unwrap() < before + Duration::from_millis(1) {}
        let other = std::thread::spawn(|| thread_cpu_time().unwrap()).join().unwrap();
        assert!(other < thread_cpu_time().unwrap(), "a new thread has used {other:?}");
    }
}
