//! Requests between the queue and a round: they are taken and started, or go back.
//!
//! Owns: taking them from the queue, starting them, and putting back what is to run later. Runs on the thread that holds the
//! slot. Invariants: what does not wait any more has begun, except for the crate's own requests that are handed over, so a
//! caller who leaves learns whether it was in time; what a caller has left is not run, but one that had begun is answered.
//! Leaves out: which requests are taken (`choice`).

use super::choice::Choice;
use crate::queue::ticket::left_request;
use crate::workers::outbox::Outbox;
use crate::workers::request::Request;
use crate::workers::writer::WriterShared;

/// Takes the requests that `choice` takes. They start under the queue's lock.
pub(crate) fn take(shared: &WriterShared, into: &mut Vec<Request>, choice: &mut Choice) {
    shared.queue.take_while(into, |request| {
        let takes = choice.takes(shared.candidate(request));
        if takes {
            request.ticket.start();
        }
        takes
    });
}

/// Starts those requests, from this one on, that did not start when they were taken. Drops those whose callers have left.
pub(crate) fn start_from(shared: &WriterShared, first: usize, batch: &mut Vec<Request>, outbox: &mut Outbox<'_>) {
    for gone in batch.extract_if(first.., |request| !request.ticket.start()) {
        if gone.ticket.is_interrupted() {
            // It had begun, maybe with a group. Its caller may wait until it is known that nothing of it is kept.
            outbox.finish(gone, Err(left_request()));
        } else {
            shared.context.recorder.counts.abandoned.count();
        }
    }
}

/// Puts the requests back to the front of the queue, in their order.
pub(crate) fn put_back(shared: &WriterShared, members: &mut Vec<Request>) {
    for member in &*members {
        // One whose caller has left is not started again.
        member.ticket.put_back();
    }
    shared.queue.put_back(members.drain(..));
}
