//! The CPU time that the polls of a call take on the thread that polls it.
//!
//! Owns: reading the thread's clock around each poll. What the thread does between two polls is not counted, nor what
//! other threads do for the call. Leaves out: how long a poll lasts by the clock on the wall.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::side::Result;

/// Awaits `call` and adds the CPU time of its polls to `spent`.
pub(crate) async fn watched<T>(spent: &mut Duration, call: impl Future<Output = Result<T>>) -> Result<T> {
    let mut call = pin!(call);
    poll_fn(|context| {
        let before = thread_cpu();
        let answer = call.as_mut().poll(context);
        *spent += thread_cpu().saturating_sub(before);
        answer
    })
    .await
}

fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("the system counts the CPU time of a thread").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_in_a_poll_is_counted_and_a_sleep_is_not() {
        let (mut worked, mut slept) = (Duration::ZERO, Duration::ZERO);
        let work = Duration::from_millis(5);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let spin = async {
                let before = thread_cpu();
                while thread_cpu() < before + work {}
                Ok(())
            };
            watched(&mut worked, spin).await.unwrap();
            let sleep = async {
                std::thread::sleep(4 * work);
                Ok(())
            };
            watched(&mut slept, sleep).await.unwrap();
        });
        assert!(worked >= work && slept < worked, "{worked:?} and {slept:?}");
    }
}
