//! The inbox of a connection that is kept for one caller: what was sent, the connection between two messages, and why nothing
//! is accepted any more.
//!
//! Owns: the order of messages, and who has the connection. A value that calls nobody: each scope (a transaction, a read session,
//! a connection of a caller) guards one with its lock, and acts on what its methods return after that lock, under which nothing
//! is dropped that was taken out. Invariants, with the numbers of `docs/design/engine.md`: (1) at rest the connection is here,
//! without a message and without an end; (2) whoever makes the messages of a connection that is here non-empty is told to call a thread, once for
//! each rest; (3) who has not taken the connection out does not have it; (5) after the end of all nothing is served; (7) a reason takes the place of
//! `Finished`, and of nothing else. Leaves out: what messages do, limits, and who serves them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::workers::request::Request;
use flatwater_base::error::Error;

/// Why a kept connection accepts nothing any more. What it means for a call is said by each scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// Its caller ended it, or dropped the handle; or a result has no more rows.
    Finished,
    /// It was not used for this long.
    Idle(Duration),
    /// It was open for this long.
    Old(Duration),
    /// It kept the WAL from starting over.
    CutOff,
    /// This error ended its transaction, or cost the connection.
    Lost(Error),
    /// The server that had it is not reached any more, or has ended it. The error says what that means.
    Gone(Error),
    /// The database was closed.
    Closed,
}

impl End {
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self, Self::Finished)
    }
}

/// What is sent to a kept connection. `P` is the place inside it that a request belongs to, `A` what its scope sends besides.
pub(crate) enum Message<P, A> {
    Request(Box<Request>, P),
    Aside(A),
    /// Take the end that is noted.
    End,
}

/// What became of a message.
#[must_use = "a thread has to be called, or the caller told"]
pub(crate) enum Posted<P, A> {
    /// Who has the connection, or is called, serves it.
    Queued,
    /// A thread is to be called, which takes the connection.
    Call,
    /// There is this end. What was sent is to be dropped without a lock: its promise wakes its caller.
    Refused(Message<P, A>, End),
}

pub(crate) struct Inbox<C, P = (), A = ()> {
    messages: VecDeque<Message<P, A>>,
    end: Option<End>,
    place: Place<C>,
}

enum Place<C> {
    /// Since when.
    Here(C, Instant),
    /// One thread has it.
    Away,
    Over,
}

impl<P, A> Message<P, A> {
    /// Its request, if it has one in the form that all scopes have.
    pub(crate) fn request(self) -> Option<Request> {
        if let Self::Request(request, _) = self { Some(*request) } else { None }
    }
}

impl<C, P, A> Inbox<C, P, A> {
    /// `None`: the thread that makes it has the connection.
    pub(crate) fn new(connection: Option<C>) -> Self {
        let place = connection.map_or(Place::Away, |connection| Place::Here(connection, Instant::now()));
        Self { messages: VecDeque::new(), end: None, place }
    }

    /// Why nothing is accepted any more.
    pub(crate) fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The connection at rest, and since when: nothing was sent that is not served.
    fn rest(&self) -> Option<(&C, Instant)> {
        match &self.place {
            Place::Here(connection, since) if self.messages.is_empty() => Some((connection, *since)),
            _ => None,
        }
    }

    /// The connection at rest.
    pub(crate) fn at_rest(&self) -> Option<&C> {
        self.rest().map(|(connection, _)| connection)
    }

    /// Since when it is at rest.
    pub(crate) fn rests_since(&self) -> Option<Instant> {
        self.rest().map(|(_, since)| since)
    }

    /// Returns true while a thread has the connection, and after the end of all.
    pub(crate) fn is_away(&self) -> bool {
        !matches!(self.place, Place::Here(..))
    }

    /// Returns true if a message waits.
    pub(crate) fn has_message(&self) -> bool {
        !self.messages.is_empty()
    }

    /// The connection is used without being taken: its rest begins anew.
    pub(crate) fn touch(&mut self, now: Instant) {
        if let Place::Here(_, since) = &mut self.place {
            *since = now;
        }
    }

    pub(crate) fn post(&mut self, message: Message<P, A>) -> Posted<P, A> {
        if let Some(end) = &self.end {
            return Posted::Refused(message, end.clone());
        }
        let rests = self.at_rest().is_some();
        self.messages.push_back(message);
        if rests { Posted::Call } else { Posted::Queued }
    }

    /// Notes an end, which is taken after what was sent before. Returns true if a thread is to be called for it.
    #[must_use = "a thread has to be called"]
    pub(crate) fn post_end(&mut self, end: End) -> bool {
        let calls = matches!(self.post(Message::End), Posted::Call);
        self.note_end(end);
        calls
    }

    fn note_end(&mut self, end: End) {
        let is_open = !matches!(self.place, Place::Over);
        if self.end.as_ref().is_none_or(|noted| noted.is_finished() && is_open) {
            self.end = Some(end);
        }
    }

    /// Takes the connection for a short step, if it is at rest.
    pub(crate) fn take_short(&mut self) -> Option<C> {
        self.rest()?;
        self.take_out()
    }

    /// Takes the connection and the first message, on the thread that was called.
    pub(crate) fn take(&mut self) -> Option<(C, Message<P, A>)> {
        if self.is_away() {
            return None;
        }
        let message = self.messages.pop_front()?;
        Some((self.take_out()?, message))
    }

    fn take_out(&mut self) -> Option<C> {
        match std::mem::replace(&mut self.place, Place::Away) {
            Place::Here(connection, _) => Some(connection),
            Place::Away | Place::Over => None,
        }
    }

    /// Returns the next message to who has the connection, or puts that to rest.
    pub(crate) fn next(&mut self, connection: C) -> Option<(C, Message<P, A>)> {
        if let Some(message) = self.messages.pop_front() {
            return Some((connection, message));
        }
        self.place = Place::Here(connection, Instant::now());
        None
    }

    /// Puts the connection back after a short step. Returns true if a thread is to be called for what was sent meanwhile.
    #[must_use = "a thread has to be called"]
    pub(crate) fn put_back(&mut self, connection: C, now: Instant) -> bool {
        self.place = Place::Here(connection, now);
        self.has_message()
    }

    /// Who has the connection has this served before anything else.
    pub(crate) fn post_first(&mut self, message: Message<P, A>) {
        self.messages.push_front(message);
    }

    /// Who has the connection has it ended before anything else, by `message`: by `Message::End`, if nothing else is to be done.
    pub(crate) fn post_end_first(&mut self, end: End, message: Message<P, A>) {
        self.note_end(end);
        self.post_first(message);
    }

    /// Takes out what was sent and is for `which`, in its order.
    pub(crate) fn take_messages(&mut self, which: impl Fn(&Message<P, A>) -> bool) -> Vec<Message<P, A>> {
        let (taken, left): (Vec<_>, Vec<_>) = self.messages.drain(..).partition(which);
        self.messages.extend(left);
        taken
    }

    /// Who had the connection is done with it, for good. Returns why, and what will not be served.
    pub(crate) fn over(&mut self, end: End) -> (End, Vec<Message<P, A>>) {
        self.note_end(end);
        self.place = Place::Over;
        let end = self.end.clone().unwrap_or(End::Finished);
        (end, self.messages.drain(..).collect())
    }
}

#[cfg(all(test, not(flatwater_loom)))]
mod tests {
    use super::*;

    /// What callers, the thread that was called, and limits do.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Post,
        EndFinished,
        EndClosed,
        TakeShort,
        PutBack,
        PutBackLost,
        Take,
        Next,
        Over,
    }

    use Step::{EndClosed, EndFinished, Next, Over, Post, PutBack, PutBackLost, Take, TakeShort};

    const STEPS: [Step; 9] = [Post, EndFinished, EndClosed, TakeShort, PutBack, PutBackLost, Take, Next, Over];

    /// What is true beside the inbox.
    struct Model {
        inbox: Inbox<&'static str, (), u32>,
        /// Who has the connection took it for a short step, or was called.
        out: Option<(&'static str, bool)>,
        calls: u32,
        sent: Vec<u32>,
        /// Served or refused, in this order.
        out_of_it: Vec<u32>,
        reason: Option<End>,
        /// The end was served: what follows is `Over`.
        is_ending: bool,
        is_over: bool,
    }

    impl Model {
        fn new() -> Self {
            let inbox = Inbox::new(Some("the connection"));
            let (out, reason) = (None, None);
            Self { inbox, out, calls: 0, sent: vec![], out_of_it: vec![], reason, is_ending: false, is_over: false }
        }

        fn called(&mut self, calls: bool) {
            self.calls += u32::from(calls);
        }

        /// The reason that holds: the first one that is more than `Finished`, until all is over.
        fn ends(&mut self, end: End) {
            if !self.is_over && self.reason.as_ref().is_none_or(End::is_finished) {
                self.reason = Some(end);
            }
        }

        fn serve(&mut self, message: &Message<(), u32>) {
            assert!(!self.is_over);
            match message {
                Message::Aside(number) => self.out_of_it.push(*number),
                Message::End => {
                    assert!(self.inbox.end().is_some(), "an end is noted before it is served");
                    self.is_ending = true;
                }
                Message::Request(..) => unreachable!("none is sent"),
            }
        }

        /// Does a step, or returns false if nobody can do it now.
        fn step(&mut self, step: Step) -> bool {
            match (step, self.out) {
                (Post, _) => {
                    let number = u32::try_from(self.sent.len() + 1).unwrap();
                    match self.inbox.post(Message::Aside(number)) {
                        Posted::Refused(_, end) => assert_eq!(Some(end), self.reason),
                        posted => {
                            assert!(self.reason.is_none());
                            self.sent.push(number);
                            self.called(matches!(posted, Posted::Call));
                        }
                    }
                }
                (EndFinished | EndClosed, _) => {
                    let end = if matches!(step, EndClosed) { End::Closed } else { End::Finished };
                    let calls = self.inbox.post_end(end.clone());
                    self.ends(end);
                    self.called(calls);
                }
                (TakeShort, None) => {
                    let taken = self.inbox.take_short();
                    assert!(taken.is_none() || self.calls == 0 && self.reason.is_none());
                    self.out = taken.map(|connection| (connection, false));
                    return taken.is_some();
                }
                (PutBack, Some((connection, false))) => {
                    let calls = self.inbox.put_back(connection, Instant::now());
                    (self.out, _) = (None, self.called(calls));
                }
                (PutBackLost, Some((connection, false))) => {
                    self.inbox.post_end_first(End::Lost(Error::closed()), Message::End);
                    self.ends(End::Lost(Error::closed()));
                    assert!(self.inbox.put_back(connection, Instant::now()), "the end has to be served");
                    (self.out, _) = (None, self.called(true));
                }
                (Take, None) if self.calls > 0 => {
                    self.calls -= 1;
                    let (connection, message) = self.inbox.take().expect("one call for each rest that has messages");
                    self.out = Some((connection, true));
                    self.serve(&message);
                }
                (Next, Some((connection, true))) if !self.is_ending => match self.inbox.next(connection) {
                    Some((_, message)) => self.serve(&message),
                    None => self.out = None,
                },
                (Over, Some(_)) => {
                    let (end, messages) = self.inbox.over(End::Finished);
                    self.ends(End::Finished);
                    assert_eq!(Some(&end), self.reason.as_ref());
                    let refused = messages.iter().filter_map(|message| match message {
                        Message::Aside(number) => Some(*number),
                        _ => None,
                    });
                    self.out_of_it.extend(refused);
                    (self.out, self.is_over) = (None, true);
                }
                _ => return false,
            }
            self.holds();
            true
        }

        fn holds(&self) {
            assert_eq!(self.inbox.end(), self.reason.as_ref());
            assert_eq!(self.inbox.is_away(), self.out.is_some() || self.is_over);
            let is_called = !self.inbox.is_away() && self.inbox.has_message();
            assert_eq!(self.calls, u32::from(is_called), "one call for each rest with messages");
            assert!(self.inbox.at_rest().is_none() || self.inbox.end().is_none());
            assert!(self.sent.starts_with(&self.out_of_it), "each message once, in its order");
            assert!(!self.is_over || self.out_of_it == self.sent, "nothing is left behind");
        }
    }

    /// Calls `f` with each list of `left` more steps.
    fn each_list(steps: &mut Vec<Step>, left: usize, checked: &mut usize) {
        for step in STEPS {
            let mut model = Model::new();
            let done = steps.iter().all(|step| model.step(*step));
            assert!(done, "only lists that can be done are gone on with");
            if !model.step(step) {
                continue;
            }
            *checked += 1;
            if left > 1 {
                steps.push(step);
                each_list(steps, left - 1, checked);
                steps.pop();
            }
        }
    }

    #[test]
    fn every_order_of_seven_steps_keeps_the_rules() {
        let mut checked = 0;
        each_list(&mut Vec::new(), 7, &mut checked);
        assert!(checked > 10_000, "{checked}");
    }

    #[test]
    fn what_goes_first_is_served_before_what_was_sent_meanwhile() {
        let mut inbox = Inbox::<_, (), _>::new(Some(()));
        inbox.take_short().unwrap();
        assert!(matches!(inbox.post(Message::Aside(1)), Posted::Queued));
        inbox.post_first(Message::Aside(2));
        assert!(inbox.put_back((), Instant::now()));
        assert!(matches!(inbox.take(), Some(((), Message::Aside(2)))));
        assert!(matches!(inbox.next(()), Some(((), Message::Aside(1)))));
    }

    #[test]
    fn messages_that_are_taken_out_leave_the_others_in_their_order() {
        let mut inbox = Inbox::<(), (), _>::new(None);
        for number in 1..=4 {
            let _ = inbox.post(Message::Aside(number));
        }
        let even = |message: &Message<(), u32>| matches!(message, Message::Aside(number) if number % 2 == 0);
        assert_eq!(inbox.take_messages(even).len(), 2);
        assert!(matches!(inbox.next(()), Some(((), Message::Aside(1)))));
        assert!(matches!(inbox.next(()), Some(((), Message::Aside(3)))));
        assert!(inbox.next(()).is_none());
    }
}
