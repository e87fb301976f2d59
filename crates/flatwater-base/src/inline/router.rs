//! The router of short writes: a write runs inline at once, or goes through the queue to share a commit. Pure.
//!
//! Owns: two running averages, of the cost of a write on each way, and when the router tries the other way. Guarded by
//! the writer slot: the thread that holds it uses the router. A caller that awaits one write after the other is
//! served soonest inline. Where many callers write, groups cost less for each of them; but on a single-threaded event
//! loop no caller is ever seen waiting, because each write ends within its own poll. So the router has to try the queue
//! to learn its cost. Invariants: after a try that did not pay, the time until the next one doubles, up to `RARELY`; a
//! cost is measured from the end of one write to the end of the next, so that the callers' work in between weighs the
//! same on both ways. Leaves out: all other reasons for which a write cannot run inline.
//!
//! ```text
//!              results keep the thread busy                cheaper
//!   INLINE ------------------------------> TRY QUEUE --------------------> QUEUE
//!     ^  ^                                     |                           |   ^
//!     |  +------------- dearer, try later -----+   now and then, or dearer |   | dearer
//!     +------------------------- cheaper -------------- TRY INLINE <-------+---+
//! ```

use std::time::{Duration, Instant};

/// A try of the queue takes `ROUNDS` rounds of the writer. Only the last `COUNTED` of them count: at first the writer's
/// thread has to be woken, and to learn that staying awake pays.
const ROUNDS: u32 = 64;
const COUNTED: u32 = 40;
/// A try of the queue ends sooner after this many rounds in a row with one write each: then no other caller writes.
const ALONE: u32 = 6;
/// A try of the inline way takes this many writes.
const WRITES: u32 = 32;
/// The time until the queue is tried again, at first and at most.
const SOON: Duration = Duration::from_millis(1);
const RARELY: Duration = Duration::from_millis(128);
/// The time until the inline way is tried again after the queue was found to be cheaper, at first and at most.
const LATER: Duration = Duration::from_millis(100);
const SELDOM: Duration = Duration::from_secs(2);
/// If the time per write is longer than this, there was nothing to write meanwhile, and it does not count.
const PAUSE: Duration = Duration::from_micros(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Inline,
    TryQueue { rounds: u32 },
    Queue,
    TryInline { writes: u32 },
}

/// Whether short writes run inline or in groups.
pub struct WriteRouter {
    way: Way,
    inline: Average,
    queue: Average,
    /// When the last write ended, on either way.
    last_end: Option<Instant>,
    /// The other way is not tried before `next_try`; the other two fields are the times until the next try of each way.
    next_try: Instant,
    queue_wait: Duration,
    inline_wait: Duration,
    /// The number of rounds in a row that had one write.
    alone: u32,
}

/// A running average: microseconds, and the number of writes that took them.
#[derive(Debug, Clone, Copy, Default)]
struct Average(Option<(f64, f64)>);

impl Average {
    /// Adds `writes` writes that cost `cost` each.
    fn add(&mut self, cost: f64, writes: usize) {
        let writes = u32::try_from(writes).map_or(f64::from(u32::MAX), f64::from);
        let Some((us, of)) = &mut self.0 else { return self.0 = Some((cost * writes, writes)) };
        // The cost is capped, because one slow write says little.
        let cost = cost.min(*us / *of * 8.0);
        *us += (cost * writes - *us) / 16.0;
        *of += (writes - *of) / 16.0;
    }

    fn cost(self) -> Option<f64> {
        self.0.map(|(us, writes)| us / writes)
    }
}

impl WriteRouter {
    /// Makes one that begins with writes inline.
    pub fn new(now: Instant) -> Self {
        Self {
            way: Way::Inline,
            inline: Average::default(),
            queue: Average::default(),
            last_end: None,
            next_try: now,
            queue_wait: SOON,
            inline_wait: LATER,
            alone: 0,
        }
    }

    /// Returns true if short writes go through the queue now.
    pub fn queues(&self) -> bool {
        matches!(self.way, Way::TryQueue { .. } | Way::Queue)
    }

    /// Records an inline write that ended at `now` and took `took`. `is_busy`: results have kept its caller's thread busy for a
    /// whole share.
    pub fn ran_inline(&mut self, took: Duration, is_busy: bool, now: Instant) {
        let cost = self.cost(1, now).unwrap_or_else(|| us(took));
        self.inline.add(cost, 1);
        match self.way {
            Way::TryInline { writes } if writes > 1 => self.way = Way::TryInline { writes: writes - 1 },
            Way::TryInline { .. } if self.is_queue_cheaper() => {
                self.inline_wait = (self.inline_wait * 2).min(SELDOM);
                self.enter(Way::Queue, self.inline_wait, now);
            }
            Way::TryInline { .. } => {
                self.queue_wait = SOON;
                self.enter(Way::Inline, SOON, now);
            }
            Way::Inline if is_busy && now >= self.next_try => {
                self.queue = Average::default();
                self.alone = 0;
                self.way = Way::TryQueue { rounds: ROUNDS };
            }
            _ => {}
        }
    }

    /// Records a round of the writer that ended at `now`, with this many short writes, or grouped writes.
    pub fn ran_round(&mut self, writes: usize, now: Instant) {
        self.alone = if writes == 1 { self.alone + 1 } else { 0 };
        let cost = self.cost(writes, now);
        let counts = !matches!(self.way, Way::TryQueue { rounds } if rounds > COUNTED);
        if let Some(cost) = cost.filter(|_| counts) {
            self.queue.add(cost, writes);
        }
        match self.way {
            Way::TryQueue { rounds } if rounds > 1 && self.alone < ALONE => {
                self.way = Way::TryQueue { rounds: rounds - 1 }
            }
            Way::TryQueue { .. } if self.alone < ALONE && self.is_queue_cheaper() => {
                self.inline_wait = LATER;
                self.enter(Way::Queue, LATER, now);
            }
            Way::TryQueue { .. } => {
                self.queue_wait = (self.queue_wait * 2).min(RARELY);
                self.enter(Way::Inline, self.queue_wait, now);
            }
            Way::Queue if now >= self.next_try || !self.is_queue_cheaper() => {
                self.inline = Average::default();
                self.way = Way::TryInline { writes: WRITES };
            }
            // Writes of several threads met in one round: groups may be cheaper without a try.
            Way::Inline if writes > 1 && self.is_queue_cheaper() => self.enter(Way::Queue, LATER, now),
            _ => {}
        }
    }

    fn enter(&mut self, way: Way, wait: Duration, now: Instant) {
        self.way = way;
        self.next_try = now + wait;
    }

    fn is_queue_cheaper(&self) -> bool {
        match (self.queue.cost(), self.inline.cost()) {
            (Some(queue), Some(inline)) => queue < inline,
            _ => false,
        }
    }

    /// Returns the microseconds per write since the end of the last write, or `None` if this is longer than `PAUSE` or
    /// if there was no write before.
    fn cost(&mut self, writes: usize, now: Instant) -> Option<f64> {
        let last = self.last_end.replace(now)?;
        let cost = us(now.saturating_duration_since(last)) / u32::try_from(writes).ok().map(f64::from)?;
        (cost <= us(PAUSE)).then_some(cost)
    }
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a loop with `tasks` tasks that write all the time. A write costs 6 us inline; through the queue it
    /// costs 1.5 us and, for each round, two wakes of 15 us. Each task has one write in a round. Returns the share of
    /// writes that ran inline, and the time per write.
    fn run(ways: &mut WriteRouter, now: &mut Instant, tasks: u32, ms: u64) -> (f64, f64) {
        let end = *now + Duration::from_millis(ms);
        let (began, mut inline, mut queued, mut spent) = (*now, 0, 0, Duration::ZERO);
        while *now < end {
            if ways.queues() {
                *now += Duration::from_micros(30) + Duration::from_nanos(1500) * tasks;
                ways.ran_round(tasks as usize, *now);
                queued += tasks;
                spent = Duration::ZERO;
            } else {
                *now += Duration::from_micros(6);
                spent += Duration::from_micros(6);
                ways.ran_inline(Duration::from_micros(5), spent >= Duration::from_millis(1), *now);
                if spent >= Duration::from_millis(1) {
                    spent = Duration::ZERO;
                }
                inline += 1;
            }
        }
        let writes = f64::from(inline + queued);
        (f64::from(inline) / writes, us(*now - began) / writes)
    }

    #[test]
    fn each_number_of_tasks_goes_nearly_as_fast_as_the_better_way() {
        for tasks in [1, 2, 4, 10, 100, 1000] {
            let mut now = Instant::now();
            let mut ways = WriteRouter::new(now);
            let (_, us) = run(&mut ways, &mut now, tasks, 2000);
            let best = (30.0 / f64::from(tasks) + 1.5).min(6.0);
            assert!(us < best * 1.1, "{tasks} tasks: {us} us instead of {best}");
        }
    }

    #[test]
    fn it_follows_a_load_that_changes() {
        let mut now = Instant::now();
        let mut ways = WriteRouter::new(now);
        assert!(run(&mut ways, &mut now, 1, 1000).0 > 0.95);
        run(&mut ways, &mut now, 100, 200);
        assert!(run(&mut ways, &mut now, 100, 1000).0 < 0.1, "many write");
        run(&mut ways, &mut now, 1, 20);
        assert!(run(&mut ways, &mut now, 1, 1000).0 > 0.95, "one is left");
    }

    #[test]
    fn one_who_writes_now_and_then_is_served_inline() {
        let mut now = Instant::now();
        let mut ways = WriteRouter::new(now);
        for _ in 0..1000 {
            now += Duration::from_millis(5);
            assert!(!ways.queues());
            ways.ran_inline(Duration::from_micros(5), false, now);
        }
    }
}
