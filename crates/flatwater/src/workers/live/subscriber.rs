//! A subscriber's place: the newest result that it has not taken.
//!
//! Owns: what the subscriber is told of one result, what its consumer has, and the waker of the task that waits, guarded by
//! the place's own lock. Runs on the threads that deliver and on those that poll. Invariants: what is told of a result was
//! compared with what the consumer has; a newer result takes the place of an older one; no lock is held while a waker runs,
//! is cloned or is dropped. Leaves out: when a result is delivered (`entries`), the comparison (`diff`).
//!
//! A consumer may take a result while the next one is compared:
//!
//! ```text
//! the thread that delivers C                      the task of the stream
//! the consumer has A, and B waits
//! compares C with A                               takes B: the consumer has B
//! the consumer has not A any more: C is not put
//! compares C with B
//! puts C, for nothing was put meanwhile           takes C
//! ```
//!
//! One thread delivers the results of a live query, one after the other, so a result is compared twice at most.

use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use super::diff::{Compared, Delivery, Has, Update};

use flatwater_base::thread::lock;

#[derive(Debug, Default)]
pub(crate) struct Subscriber {
    /// The subscriber gets the differences of results.
    gets_differences: bool,
    held: Mutex<Untaken>,
}

#[derive(Debug, Default)]
struct Untaken {
    item: Option<Item>,
    /// What the consumer has.
    has: Has,
    /// The version of the last result that was delivered.
    version: u64,
    waker: Option<Waker>,
    is_over: bool,
}

/// A result that is there.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) delivery: Delivery,
    pub(crate) update: Update,
    /// What the consumer has when it has taken this.
    then: Has,
}

/// What delivering a result did.
#[derive(Debug, Default)]
pub(super) struct Put {
    pub(super) waker: Option<Waker>,
    /// The subscriber is told something.
    pub(super) is_update: bool,
    pub(super) replaced: Replaced,
}

/// What is to be freed when no lock is held.
#[derive(Debug, Default)]
pub(super) struct Replaced {
    item: Option<Item>,
    #[allow(dead_code, reason = "it is kept to be freed later")]
    had: Option<Has>,
}

impl Put {
    /// Returns true if an older result was still there.
    pub(super) fn is_superseded(&self) -> bool {
        self.replaced.item.is_some()
    }
}

/// What the consumers of some places have, with what each is told of one delivery.
type Known = Vec<(bool, Has, Compared)>;

impl Subscriber {
    pub(super) fn new(gets_differences: bool) -> Arc<Self> {
        Arc::new(Self { gets_differences, held: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Untaken> {
        lock(&self.held)
    }

    /// Returns true if the place has this result already, or a newer one.
    pub(super) fn is_up_to(&self, delivery: &Delivery) -> bool {
        self.lock().version >= delivery.version
    }

    /// Returns true if a small result is compared in microseconds with what the consumer has.
    pub(super) fn has_small(&self) -> bool {
        self.lock().has.is_small()
    }

    /// Delivers a result if that takes no comparison of rows. `None`: it does.
    pub(super) fn put_at_once(&self, delivery: &Delivery) -> Option<Put> {
        let mut held = self.lock();
        let compared = if held.item.is_none() && !self.gets_differences {
            // It differs from the result before, which the consumer has.
            Compared { update: Some(Update::All), then: Has::all_of(delivery) }
        } else {
            delivery.at_once(&held.has, self.gets_differences)?
        };
        Some(held.put(delivery, compared))
    }

    /// Delivers a result. `known` is kept from place to place of one delivery, so that equal comparisons are one.
    pub(super) fn put(&self, delivery: &Delivery, known: &mut Known) -> Put {
        let mut has = self.lock().has.clone();
        loop {
            let is_it = |(kind, other, _): &&(bool, Has, Compared)| *kind == self.gets_differences && other.is(&has);
            let compared = known.iter().find(is_it).map(|(.., compared)| compared.clone()).unwrap_or_else(|| {
                let compared = delivery.compare(&has, self.gets_differences);
                known.push((self.gets_differences, has.clone(), compared.clone()));
                compared
            });
            match self.put_compared(delivery, compared, &has) {
                Ok(put) => return put,
                Err(now) => has = now,
            }
        }
    }

    /// Delivers what was compared with `has`. Returns what the consumer has if that is something else.
    fn put_compared(&self, delivery: &Delivery, compared: Compared, has: &Has) -> Result<Put, Has> {
        let mut held = self.lock();
        if held.has.is(has) { Ok(held.put(delivery, compared)) } else { Err(held.has.clone()) }
    }

    /// Ends the stream after the result that is there, if there is one. Returns the waker to wake.
    pub(super) fn end(&self) -> Option<Waker> {
        let mut held = self.lock();
        held.is_over = true;
        held.waker.take()
    }

    /// Takes the result if it is due: `due` tells of one that is there when it is. Otherwise the task is woken when
    /// there is another one. `None`: there will be none.
    pub(crate) fn poll(&self, context: &mut Context<'_>, due: impl FnOnce(&Delivery) -> bool) -> Poll<Option<Item>> {
        let own = context.waker().clone();
        let mut held = self.lock();
        if held.item.as_ref().is_some_and(|item| held.is_over || due(&item.delivery)) {
            let mut item = held.item.take();
            let then = item.as_mut().map(|item| std::mem::take(&mut item.then)).unwrap_or_default();
            let before = std::mem::replace(&mut held.has, then);
            drop(held);
            drop(before);
            return Poll::Ready(item);
        }
        if held.item.is_none() && held.is_over {
            return Poll::Ready(None);
        }
        let before = held.waker.replace(own);
        drop(held);
        drop(before);
        Poll::Pending
    }

    /// Returns the waker of the task that waits, so that it looks again.
    pub(crate) fn nudge(&self) -> Option<Waker> {
        self.lock().waker.take()
    }
}

impl Untaken {
    fn put(&mut self, delivery: &Delivery, Compared { update, then }: Compared) -> Put {
        self.version = delivery.version;
        let is_update = update.is_some();
        let replaced = match update {
            Some(update) => {
                Replaced { item: self.item.replace(Item { delivery: delivery.clone(), update, then }), had: None }
            }
            // The consumer has it already, and a result that it did not take is no news any more.
            None => Replaced { item: self.item.take(), had: Some(std::mem::replace(&mut self.has, then)) },
        };
        let waker = if is_update { self.waker.take() } else { None };
        Put { waker, is_update, replaced }
    }
}

#[cfg(test)]
mod tests {
    use super::super::diff::{PartUpdate, tests::delivery};
    use super::*;

    fn take(place: &Subscriber) -> Option<Item> {
        match place.poll(&mut Context::from_waker(Waker::noop()), |_| true) {
            Poll::Ready(item) => item,
            Poll::Pending => None,
        }
    }

    /// Returns what is told: `all`, or of each part `full` or the numbers of rows that came, changed and went.
    fn update(item: Option<Item>) -> String {
        match item.map(|item| item.update) {
            None => "nothing".into(),
            Some(Update::All) => "all".into(),
            Some(Update::NoKey(at)) => format!("no key {at}"),
            Some(Update::Repeated(at, key)) => format!("repeated {at} {key:?}"),
            Some(Update::Changes(parts)) => {
                let part = |part: &PartUpdate| match part {
                    PartUpdate::Full => "full".into(),
                    PartUpdate::Difference(_, rows) => {
                        format!("{} {} {}", rows.inserted.len(), rows.updated.len(), rows.deleted.len())
                    }
                };
                parts.iter().map(part).collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// Delivers as the thread of a run does.
    fn deliver(place: &Subscriber, delivery: &Delivery) -> Put {
        place.put_at_once(delivery).unwrap_or_else(|| place.put(delivery, &mut Vec::new()))
    }

    #[test]
    fn a_difference_is_one_to_what_was_taken() {
        let place = Subscriber::new(true);
        deliver(&place, &delivery(1, &[&[[1, 10]]]));
        assert_eq!(update(take(&place)), "full");
        deliver(&place, &delivery(2, &[&[[1, 10], [2, 20]]]));
        assert!(deliver(&place, &delivery(3, &[&[[2, 21], [3, 30]]])).is_superseded());
        assert_eq!(update(take(&place)), "2 0 1");
        deliver(&place, &delivery(4, &[&[[2, 22], [3, 30]]]));
        assert_eq!((update(take(&place)), update(take(&place))), ("0 1 0".into(), "nothing".into()));
    }

    #[test]
    fn a_result_that_was_taken_during_the_comparison_is_compared_anew() {
        let place = Subscriber::new(true);
        let [a, b, c] = [&[[1, 10]][..], &[[1, 11]], &[[1, 11], [2, 20]]].map(|rows| [rows]);
        let (a, b, c) = (delivery(1, &a), delivery(2, &b), delivery(3, &c));
        deliver(&place, &a);
        take(&place);
        deliver(&place, &b);
        let has = place.lock().has.clone();
        let compared = c.compare(&has, true);
        assert_eq!(update(take(&place)), "0 1 0");
        assert!(place.put_compared(&c, compared, &has).is_err());
        assert!(!place.put(&c, &mut Vec::new()).is_superseded());
        assert_eq!(update(take(&place)), "1 0 0");
    }

    #[test]
    fn a_result_that_the_consumer_has_is_no_news() {
        for gets_differences in [true, false] {
            let place = Subscriber::new(gets_differences);
            deliver(&place, &delivery(1, &[&[[1, 10]]]));
            assert!(take(&place).is_some());
            assert!(deliver(&place, &delivery(2, &[&[[1, 11]]])).is_update);
            let put = deliver(&place, &delivery(3, &[&[[1, 10]]]));
            assert_eq!((put.is_update, put.is_superseded()), (false, true));
            assert!(take(&place).is_none());
            deliver(&place, &delivery(4, &[&[[1, 11]]]));
            assert_eq!(update(take(&place)), if gets_differences { "0 1 0" } else { "all" });
        }
    }

    #[test]
    fn equal_comparisons_of_a_delivery_are_one() {
        let (places, mut known) = ([true, true, false].map(Subscriber::new), Vec::new());
        let (one, two, three) = (delivery(1, &[&[[1, 10]]]), delivery(2, &[&[[1, 11]]]), delivery(3, &[&[[1, 12]]]));
        for place in &places {
            deliver(place, &one);
            take(place);
            deliver(place, &two);
        }
        take(&places[1]);
        for place in &places {
            place.put(&three, &mut known);
        }
        assert_eq!(known.len(), 3, "of the first result, of the second, and of a whole result");
        places[0].put(&three, &mut known);
        assert_eq!(known.len(), 3);
        assert_eq!(places.map(|place| update(take(&place))), ["0 1 0", "0 1 0", "all"]);
    }

    #[test]
    fn rows_with_equal_keys_are_reported_once_and_then_comes_the_full_result() {
        let place = Subscriber::new(true);
        for version in 1..3 {
            deliver(&place, &delivery(version, &[&[[1, 10]], &[[2, 1], [2, 2]]]));
        }
        assert_eq!(update(take(&place)), "repeated 1 [0]");
        let put = deliver(&place, &delivery(3, &[&[[1, 10]], &[[2, 1], [2, 3]]]));
        assert!(!put.is_update);
        deliver(&place, &delivery(4, &[&[[1, 10]], &[[2, 1]]]));
        assert_eq!(update(take(&place)), "full, full");
        deliver(&place, &delivery(5, &[&[[1, 10]], &[[2, 3]]]));
        assert_eq!(update(take(&place)), "0 0 0, 0 1 0");
    }
}
