//! The line of the processes that want to write: drawing a ticket, waiting for its turn, and passing the turn on.
//!
//! Owns: the algorithm, over any place that has two counters and a lock for each ticket. Runs on the thread that wants
//! to write; `wait` blocks it. Invariants: a ticket is drawn by locking it, so whoever has died or given up holds none;
//! tickets get their turns in the order in which they were drawn; a turn that nobody takes is passed on by its
//! predecessor, or taken by the next one within a slice. The counters are only hints: whatever they are, and whoever
//! sets them, the locks decide, and the worst is that somebody comes before his turn, or a slice late: so after one who
//! gives up has set `served` back. Leaves out: who needs a ticket at all (`turnstile`), and when the next one is called
//! (`turn`).
//!
//! ```text
//! who passes the turn on                   who gives up while he waits
//! finds his ticket locked
//!                                          unlocks it
//!                                          reads `served`: it is not his turn
//! sets `served`: it is his turn
//! looks once more: not locked; goes on
//! to the next ticket
//! ```

use std::io;
use std::thread::yield_now;
use std::time::{Duration, Instant};

use flatwater_sqlite::{Counters, TurnFile, Word};

use flatwater_base::thread::cores;

/// How long who waits sleeps at most before he looks whether those ahead of him are there: a slice for each of them, `STILL` at
/// most. A look takes the processor from who has the turn.
pub(super) const SLICE: Duration = Duration::from_millis(5);
/// After so many slices in which no turn ended, who is next tries the lock: it may be free, and who has the turn stopped.
/// Those behind wait at least a slice longer for every `STEP` that are ahead of them, `LATEST` at most.
const STILL: u32 = 4;
const STEP: u32 = 2;
const LATEST: u32 = 8;
/// How long who was called waits awake at most.
const AWAKE: Duration = Duration::from_micros(300);
/// It sleeps at once if a yield takes so long: another thread wants the processor.
const LONG_YIELD: Duration = Duration::from_micros(50);
/// The tickets that are tried until one is free.
const TRIES: u32 = 1 << 12;

/// What the line needs of the file.
pub(super) trait Place {
    fn counters(&self) -> io::Result<Counters>;
    fn set(&self, word: Word, value: u32) -> io::Result<()>;
    fn lock(&self, ticket: u32) -> io::Result<bool>;
    fn unlock(&self, ticket: u32);
    /// Returns true if somebody else has locked one of so many tickets.
    fn is_held(&self, first: u32, count: u32) -> io::Result<bool>;
    /// Blocks while so much is served, until the ticket is woken. Returns false after this time.
    fn wait(&self, served: u32, ticket: u32, time: Duration) -> io::Result<bool>;
    /// Blocks, awake, while so much is served, for this time at most.
    fn wait_awake(&self, served: u32, time: Duration) -> io::Result<()>;
    fn wake(&self, ticket: u32);
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// It is this ticket's turn.
    Turn,
    /// No turn has ended for long: the lock is to be tried once.
    Stalled,
    /// The caller wants no more.
    Unwanted,
}

/// Draws a ticket, behind all others. Returns `None` if none is free, which only a file that was written over explains.
///
/// ```text
/// draws                                    others
/// reads that 0 were drawn
///                                          one draws 1 and unlocks it; another draws 2, and has the turn
/// locks 1
/// reads that 2 were drawn: gives 1 back
/// ```
pub(super) fn draw(place: &impl Place) -> io::Result<Option<u32>> {
    let mut last = last(place.counters()?);
    for _ in 0..TRIES {
        let ticket = last.wrapping_add(1);
        if place.lock(ticket)? {
            let drawn = place.counters().inspect_err(|_| place.unlock(ticket)).map(self::last)?;
            if is_later(ticket, drawn) {
                place.set(Word::Next, ticket).inspect_err(|_| place.unlock(ticket))?;
                return Ok(Some(ticket));
            }
            place.unlock(ticket);
            last = drawn;
        } else {
            last = ticket;
        }
    }
    Ok(None)
}

/// Returns the highest ticket that was drawn, as far as the counters tell.
fn last(Counters { next, served, .. }: Counters) -> u32 {
    if is_later(next, served) { next } else { served }
}

/// Waits for the turn of a ticket. `left` returns how long the caller wants to wait, if it does. Who is next, and is woken
/// although nothing else is served, was called: its turn comes soon.
pub(super) fn wait(place: &impl Place, ticket: u32, mut left: impl FnMut() -> Option<Duration>) -> io::Result<Came> {
    let (mut seen, mut still) = (None, 0);
    loop {
        let served = place.counters()?.served;
        if seen.replace(served) != Some(served) {
            still = 0;
        }
        let ahead = ahead(ticket, served);
        if ahead == 0 || !place.is_held(served.wrapping_add(1), ahead)? {
            return Ok(Came::Turn);
        }
        let Some(left) = left() else { return Ok(Came::Unwanted) };
        if still >= STILL + ((ahead - 1) / STEP).min(LATEST - STILL) {
            return Ok(Came::Stalled);
        }
        let slices = ahead.min(STILL);
        let is_woken = place.wait(served, ticket, left.min(SLICE * slices))?;
        still += if is_woken { 0 } else { slices };
        if is_woken && ahead == 1 {
            place.wait_awake(served, left.min(AWAKE))?;
        }
    }
}

/// Calls the one who comes after a ticket, whose turn is over soon.
pub(super) fn call(place: &impl Place, ticket: u32) {
    place.wake(ticket.wrapping_add(1));
}

/// Has the thread that waits for the turn of a ticket ask how long it still wants to.
pub(super) fn look_again(place: &impl Place, ticket: u32) {
    place.wake(ticket);
}

/// Ends the turn of a ticket, and wakes the one whose turn it is.
pub(super) fn pass(place: &impl Place, ticket: u32) -> io::Result<()> {
    pass_on(place, ticket).inspect_err(|_| place.unlock(ticket))
}

fn pass_on(place: &impl Place, ticket: u32) -> io::Result<()> {
    let Counters { mut next, served, .. } = place.counters()?;
    let mut over = if is_later(served, ticket) { served } else { ticket };
    loop {
        let waiting = if is_later(next, over) { next.wrapping_sub(over) } else { 0 };
        over = over.wrapping_add(gone(place, over.wrapping_add(1), waiting)?);
        place.set(Word::Served, over)?;
        // Another one that passed a turn on may have set `served` back: who wakes then finds the ticket unlocked.
        place.unlock(ticket);
        let first = over.wrapping_add(1);
        place.wake(first);
        // One may have drawn a ticket meanwhile, and another one may have given his up.
        next = place.counters()?.next;
        if !is_later(next, over) || place.is_held(first, 1)? {
            return Ok(());
        }
    }
}

/// Returns how many of so many tickets, from the first one on, nobody has any more.
fn gone(place: &impl Place, first: u32, mut count: u32) -> io::Result<u32> {
    if count == 0 || place.is_held(first, 1)? {
        return Ok(0);
    }
    if !place.is_held(first, count)? {
        return Ok(count);
    }
    let mut from = first;
    while count > 1 {
        let half = count / 2;
        if place.is_held(from, half)? {
            count = half;
        } else {
            (from, count) = (from.wrapping_add(half), count - half);
        }
    }
    Ok(from.wrapping_sub(first))
}

/// Gives a ticket back before its turn. If it is his turn by now, passes it on.
pub(super) fn give_up(place: &impl Place, ticket: u32) -> io::Result<()> {
    place.unlock(ticket);
    if ahead(ticket, place.counters()?.served) == 0 { pass_on(place, ticket) } else { Ok(()) }
}

/// Returns true if somebody has the turn, or waits for one.
pub(super) fn is_in_use(Counters { next, served, .. }: Counters) -> bool {
    is_later(next, served)
}

/// Returns how many tickets come before this one, of those that are not served.
fn ahead(ticket: u32, served: u32) -> u32 {
    let distance = ticket.wrapping_sub(served).wrapping_sub(1);
    if distance.cast_signed() < 0 { 0 } else { distance }
}

/// Tickets begin again from zero after the highest one.
fn is_later(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}

impl Place for TurnFile {
    fn counters(&self) -> io::Result<Counters> {
        self.counters()
    }

    fn set(&self, word: Word, value: u32) -> io::Result<()> {
        self.set(word, value)
    }

    fn lock(&self, ticket: u32) -> io::Result<bool> {
        self.lock(ticket)
    }

    fn unlock(&self, ticket: u32) {
        self.unlock(ticket);
    }

    fn is_held(&self, first: u32, count: u32) -> io::Result<bool> {
        self.is_held(first, count)
    }

    fn wait(&self, served: u32, ticket: u32, time: Duration) -> io::Result<bool> {
        self.wait(Word::Served, served, 1 << (ticket % 32), time)
    }

    /// It leaves the processor to others: the one who has the turn may need it.
    fn wait_awake(&self, served: u32, time: Duration) -> io::Result<()> {
        let began = Instant::now();
        let mut now = began;
        while cores() != Some(1) && self.counters()?.served == served && now - began < time {
            let before = now;
            yield_now();
            now = Instant::now();
            if now - before > LONG_YIELD {
                break;
            }
        }
        Ok(())
    }

    fn wake(&self, ticket: u32) {
        self.wake(Word::Served, 1 << (ticket % 32));
    }
}

#[cfg(all(test, not(flatwater_loom)))]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// A place that several people use one after another. No time passes.
    #[derive(Default)]
    struct Board {
        next: Cell<u32>,
        served: Cell<u32>,
        locked: RefCell<HashMap<u32, u8>>,
        woken: RefCell<Vec<u32>>,
        /// A wait ends because somebody wakes the ticket, and not by its time.
        wakes: Cell<bool>,
        slept: Cell<Duration>,
        waited_awake: RefCell<Vec<u8>>,
    }

    struct Person<'a>(&'a Board, u8);

    impl Place for Person<'_> {
        fn counters(&self) -> io::Result<Counters> {
            Ok(Counters { next: self.0.next.get(), served: self.0.served.get(), commit: 0 })
        }

        fn set(&self, word: Word, value: u32) -> io::Result<()> {
            if word == Word::Next {
                self.0.next.set(value)
            } else {
                self.0.served.set(value)
            }
            Ok(())
        }

        fn lock(&self, ticket: u32) -> io::Result<bool> {
            Ok(*self.0.locked.borrow_mut().entry(ticket).or_insert(self.1) == self.1)
        }

        fn unlock(&self, ticket: u32) {
            self.0.locked.borrow_mut().remove(&ticket);
        }

        fn is_held(&self, first: u32, count: u32) -> io::Result<bool> {
            let locked = self.0.locked.borrow();
            Ok(locked.iter().any(|(ticket, by)| *by != self.1 && ticket.wrapping_sub(first) < count))
        }

        fn wait(&self, _: u32, _: u32, time: Duration) -> io::Result<bool> {
            self.0.slept.set(self.0.slept.get() + time);
            Ok(self.0.wakes.get())
        }

        fn wait_awake(&self, served: u32, _: Duration) -> io::Result<()> {
            assert_eq!(served, self.0.served.get());
            self.0.waited_awake.borrow_mut().push(self.1);
            Ok(())
        }

        fn wake(&self, ticket: u32) {
            self.0.woken.borrow_mut().push(ticket);
        }
    }

    const LONG: Option<Duration> = Some(Duration::MAX);

    fn looks(person: &Person<'_>, ticket: u32) -> Came {
        let mut wants = true;
        wait(person, ticket, || std::mem::take(&mut wants).then_some(Duration::ZERO)).unwrap()
    }

    #[test]
    fn who_is_next_tries_the_lock_first_when_nothing_moves() {
        let board = Board::default();
        let people = [0, 1, 2, 3].map(|number| Person(&board, number));
        let tickets = people.each_ref().map(|person| draw(person).unwrap().unwrap());
        assert_eq!(wait(&people[0], tickets[0], || LONG).unwrap(), Came::Turn);
        let slept = |at: usize| {
            board.slept.set(Duration::ZERO);
            let mut looks = 0;
            let came = wait(&people[at], tickets[at], || {
                looks += 1;
                LONG
            });
            (came.unwrap(), looks, board.slept.get() / SLICE.as_millis() as u32)
        };
        let slices = Duration::from_millis;
        assert_eq!(slept(1), (Came::Stalled, 5, slices(4)));
        assert_eq!(slept(3), (Came::Stalled, 3, slices(6)), "who is farther away looks less often");
    }

    #[test]
    fn who_is_next_and_is_woken_before_its_turn_waits_awake() {
        let board = Board::default();
        let people = [0, 1, 2].map(|number| Person(&board, number));
        let tickets = people.each_ref().map(|person| draw(person).unwrap().unwrap());
        call(&people[0], tickets[0]);
        assert_eq!(*board.woken.borrow(), [tickets[1]]);
        let looks = |number: usize| looks(&people[number], tickets[number]);
        assert_eq!((looks(1), looks(2)), (Came::Unwanted, Came::Unwanted));
        assert!(board.waited_awake.borrow().is_empty(), "nobody woke them");
        board.wakes.set(true);
        assert_eq!((looks(1), looks(2)), (Came::Unwanted, Came::Unwanted));
        assert_eq!(*board.waited_awake.borrow(), [1_u8], "the other one has the same bit as somebody else");
    }

    #[test]
    fn who_jumped_the_line_passes_over_those_that_do_not_move() {
        let board = Board::default();
        let people = [0, 1, 2].map(|number| Person(&board, number));
        let [stopped, jumps, waits] = people.each_ref().map(|person| draw(person).unwrap().unwrap());
        pass(&people[1], jumps).unwrap();
        assert_eq!(*board.woken.borrow(), [waits]);
        assert_eq!(looks(&people[2], waits), Came::Turn);
        assert_eq!(looks(&people[0], stopped), Came::Turn, "when it goes on, it waits for nobody");
    }

    #[test]
    fn counters_that_were_written_over_cost_nobody_his_turn() {
        for (next, served) in [(7, u32::MAX / 2), (u32::MAX / 2, 7), (0, 0), (u32::MAX, 1 << 31)] {
            let board = Board::default();
            let people = [0, 1].map(|number| Person(&board, number));
            let [first, second] = people.each_ref().map(|person| draw(person).unwrap().unwrap());
            board.next.set(next);
            board.served.set(served);
            looks(&people[0], first);
            pass(&people[0], first).unwrap();
            assert_eq!(looks(&people[1], second), Came::Turn, "{next} {served}");
        }
    }

    proptest! {
        /// People draw, look, pass, give up and die, from any ticket on. The turn is that of the oldest ticket that is
        /// held, and never of two.
        #[test]
        fn turns_come_in_the_order_of_the_tickets(
            start in prop_oneof![Just(0), Just(u32::MAX - 3), Just((1 << 31) - 3), any::<u32>()],
            steps in prop::collection::vec((0..5_u8, 0..6_u8), 1..120),
        ) {
            let board = Board::default();
            board.next.set(start);
            board.served.set(start);
            // In the order of their tickets.
            let mut line: Vec<(u8, u32)> = Vec::new();
            for (step, number) in steps {
                let person = Person(&board, number);
                let at = line.iter().position(|(who, _)| *who == number);
                match (step, at) {
                    (0, None) => line.push((number, draw(&person).unwrap().unwrap())),
                    (1 | 2, Some(at)) => {
                        let came = looks(&person, line[at].1);
                        prop_assert_eq!(came == Came::Turn, at == 0);
                        if came == Came::Turn {
                            pass(&person, line.remove(at).1).unwrap();
                            let next = line.first().map_or(board.next.get().wrapping_add(1), |(_, ticket)| *ticket);
                            let woken = board.woken.borrow().last().copied();
                            prop_assert_eq!(woken, Some(next));
                            prop_assert_eq!(board.served.get().wrapping_add(1), next);
                        }
                    }
                    (3, Some(at)) => give_up(&person, line.remove(at).1).unwrap(),
                    // It is killed.
                    (4, Some(at)) => person.unlock(line.remove(at).1),
                    _ => {}
                }
            }
            while let Some((number, ticket)) = line.first().copied() {
                prop_assert_eq!(looks(&Person(&board, number), ticket), Came::Turn);
                pass(&Person(&board, number), ticket).unwrap();
                line.remove(0);
            }
        }
    }
}

/// `make loom` runs these. A wait that is never woken is a deadlock in the model, for there its time does not pass.
#[cfg(all(test, flatwater_loom))]
mod model {
    use std::collections::HashMap;

    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    use super::*;

    #[derive(Default)]
    struct Kernel {
        next: AtomicU32,
        served: AtomicU32,
        locked: Mutex<HashMap<u32, u8>>,
        waiters: Mutex<()>,
        woken: Condvar,
        /// How many have the turn.
        inside: AtomicU32,
    }

    struct Process(Arc<Kernel>, u8);

    impl Place for Process {
        fn counters(&self) -> io::Result<Counters> {
            let [next, served] = [&self.0.next, &self.0.served].map(|counter| counter.load(Ordering::SeqCst));
            Ok(Counters { next, served, commit: 0 })
        }

        fn set(&self, word: Word, value: u32) -> io::Result<()> {
            let counter = if word == Word::Next { &self.0.next } else { &self.0.served };
            counter.store(value, Ordering::SeqCst);
            Ok(())
        }

        fn lock(&self, ticket: u32) -> io::Result<bool> {
            Ok(*self.0.locked.lock().unwrap().entry(ticket).or_insert(self.1) == self.1)
        }

        fn unlock(&self, ticket: u32) {
            self.0.locked.lock().unwrap().remove(&ticket);
        }

        fn is_held(&self, first: u32, count: u32) -> io::Result<bool> {
            let locked = self.0.locked.lock().unwrap();
            Ok(locked.iter().any(|(ticket, by)| *by != self.1 && ticket.wrapping_sub(first) < count))
        }

        fn wait(&self, served: u32, _: u32, _: Duration) -> io::Result<bool> {
            let waiters = self.0.waiters.lock().unwrap();
            if self.0.served.load(Ordering::SeqCst) == served {
                drop(self.0.woken.wait(waiters).unwrap());
            }
            Ok(true)
        }

        /// Its time is over at once.
        fn wait_awake(&self, _: u32, _: Duration) -> io::Result<()> {
            Ok(())
        }

        fn wake(&self, _: u32) {
            drop(self.0.waiters.lock().unwrap());
            self.0.woken.notify_all();
        }
    }

    fn takes_its_turn(process: &Process) {
        let ticket = draw(process).unwrap().unwrap();
        assert_eq!(wait(process, ticket, || Some(Duration::MAX)).unwrap(), Came::Turn);
        assert_eq!(process.0.inside.fetch_add(1, Ordering::SeqCst), 0, "two have the turn");
        call(process, ticket);
        process.0.inside.fetch_sub(1, Ordering::SeqCst);
        pass(process, ticket).unwrap();
    }

    fn gives_up(process: &Process) {
        let ticket = draw(process).unwrap().unwrap();
        give_up(process, ticket).unwrap();
    }

    fn check(processes: &'static [fn(&Process)]) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let kernel = Arc::new(Kernel::default());
            let run = |(number, process): (u8, &fn(&Process))| {
                let (kernel, process) = (kernel.clone(), *process);
                thread::spawn(move || process(&Process(kernel, number)))
            };
            let threads: Vec<_> = (0..).zip(processes).map(run).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert!(kernel.locked.lock().unwrap().is_empty());
        });
    }

    #[test]
    fn two_take_their_turns() {
        check(&[takes_its_turn, takes_its_turn]);
    }

    #[test]
    fn one_gives_up_beside_one_that_takes_its_turn() {
        check(&[takes_its_turn, gives_up]);
    }
}
