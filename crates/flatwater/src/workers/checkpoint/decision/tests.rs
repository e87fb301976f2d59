//! Tests of the policy: the step it returns for each observation.

use super::*;

const LIMIT: u32 = 8192;
const NO_FILE: Disk = Disk { wal: 0, database: 10_000, free: u32::MAX };

fn seen(frames: u32, copied: u32, idle_ms: u64) -> Observed {
    let disk = Disk { wal: frames.max(3000), database: 10_000, free: u32::MAX };
    Observed { frames, copied, idle: Duration::from_millis(idle_ms), disk, beside_litestream: false }
}

/// After a burst that made the file longer than the limit.
fn beyond(frames: u32, idle_ms: u64) -> Observed {
    Observed { disk: Disk { wal: 2 * LIMIT, database: 10_000, free: u32::MAX }, ..seen(frames, 0, idle_ms) }
}

/// A policy for which a pause of the writer is not enough, because a restart was just done.
fn just_restarted() -> (Policy, Instant) {
    let (mut policy, now) = (Policy::new(LIMIT), Instant::now());
    policy.was_restarted(Duration::from_millis(20), now);
    (policy, now)
}

#[test]
fn each_state_of_the_wal_has_its_step() {
    let table = [
        ("a short WAL rests", seen(10, 0, 0), Step::Rest(IDLE)),
        ("a backlog is checkpointed", seen(1500, 0, 0), Step::Checkpoint),
        ("what is copied is left alone", seen(1500, 1400, 0), Step::Rest(PAUSE)),
        ("a long WAL is started over", seen(5800, 5000, 0), Step::Restart(BUDGET)),
        ("so is one whose writer pauses", seen(1500, 1400, 2), Step::Restart(BUDGET)),
        ("a small one waits for quiet", seen(100, 0, 400), Step::Rest(Duration::from_millis(600))),
        ("and is started over then", seen(100, 0, 1000), Step::Restart(BUDGET)),
        ("one frame is nothing", seen(1, 0, 5000), Step::Rest(Duration::from_secs(25))),
        ("a long file is made short when idle", seen(1, 0, 30_000), Step::Truncate),
        ("one beyond the limit earlier", beyond(1, 1000), Step::Truncate),
        ("but not while there is something to restart", beyond(100, 1000), Step::Restart(BUDGET)),
        ("nor while it is written", beyond(1, 900), Step::Rest(Duration::from_millis(100))),
    ];
    let policy = Policy::new(LIMIT);
    for (what, seen, step) in table {
        assert_eq!(policy.next(&seen, Instant::now()), step, "{what}");
    }
}

#[test]
fn a_checkpoint_to_the_end_is_followed_by_a_restart() {
    let mut policy = Policy::new(LIMIT);
    let now = Instant::now();
    policy.checkpointed(1500, 0, Duration::from_millis(4), now);
    assert_eq!(policy.next(&seen(1500, 1500, 0), now), Step::Restart(BUDGET));
    policy.was_restarted(Duration::from_millis(20), now);
    assert_eq!(policy.next(&seen(1, 0, 0), now), Step::Rest(IDLE));
}

#[test]
fn a_restart_begins_early_enough_for_what_is_written_meanwhile() {
    let mut policy = Policy::new(LIMIT);
    let mut now = Instant::now();
    let mut frames = 0;
    for _ in 0..50 {
        policy.saw(&seen(frames, 0, 0), now);
        now += Duration::from_millis(10);
        frames += 40 * 10;
    }
    policy.was_restarted(Duration::from_millis(200), now);
    // 40 frames each millisecond, about 65 ms, with the margin of one half: 3,900 of 8,192 frames.
    assert!((4000..4600).contains(&policy.restart_frames()), "{}", policy.restart_frames());
    (0..20).for_each(|_| policy.was_restarted(Duration::from_secs(2), now));
    assert_eq!(policy.restart_frames(), 2048, "but never too early");
}

#[test]
fn a_file_that_grew_far_beyond_the_limit_is_made_shorter_by_the_next_restart() {
    let (mut policy, now) = (Policy::new(LIMIT), Instant::now());
    let with = |wal| Observed { disk: Disk { wal, database: 500, free: u32::MAX }, ..seen(LIMIT, LIMIT, 0) };
    for (wal, step) in [
        (LIMIT, Step::Restart(BUDGET)),
        (2 * LIMIT, Step::Restart(BUDGET)),
        (9 * LIMIT, Step::Shorten(BUDGET)),
        (100 * LIMIT, Step::Shorten(BUDGET)),
    ] {
        assert_eq!(policy.next(&with(wal), now), step, "{wal}");
    }
    policy.failed(now);
    policy.opened(LIMIT);
    let later = now + RETRY_MAX;
    assert!(matches!(policy.next(&with(100 * LIMIT), later), Step::Shorten(_)), "also after the connection failed");
}

#[test]
fn on_a_small_disk_the_wal_starts_over_sooner_and_its_file_gets_shorter() {
    let mut policy = Policy::new(LIMIT);
    let now = Instant::now();
    let on = |wal, free| Observed { disk: Disk { wal, database: 500, free }, ..seen(1000, 900, 0) };
    policy.saw(&on(1000, 10_000), now);
    assert!(matches!(policy.next(&on(1000, 10_000), now), Step::Rest(_)));
    policy.saw(&on(1000, 2000), now);
    assert_eq!(policy.limit(), 656);
    assert_eq!(policy.next(&on(1000, 2000), now), Step::Restart(BUDGET));
    assert_eq!(policy.next(&on(1000, 900), now), Step::Shorten(BUDGET));
    policy.saw(&on(0, 40_000), now);
    assert_eq!(policy.limit(), LIMIT, "other files were removed");
}

#[test]
fn pauses_of_the_writer_do_not_restart_more_often_than_every_five_seconds() {
    let mut policy = Policy::new(LIMIT);
    let now = Instant::now();
    policy.was_restarted(Duration::from_millis(20), now);
    assert!(matches!(policy.next(&seen(1500, 1400, 3), now), Step::Rest(_)));
    assert_eq!(policy.next(&seen(1500, 1400, 3), now + PAUSES_APART), Step::Restart(BUDGET));
    assert_eq!(policy.next(&seen(1500, 1400, 1000), now), Step::Restart(BUDGET), "quiet is quiet");
}

#[test]
fn a_blocked_restart_waits_longer_each_time_and_the_third_starves() {
    let mut policy = Policy::new(LIMIT);
    let mut now = Instant::now();
    let long = seen(6000, 5900, 0);
    let mut waits = Vec::new();
    for budget_ms in [5, 10, 20, 20, 20, 20, 20] {
        assert_eq!(policy.next(&long, now), Step::Restart(Duration::from_millis(budget_ms)));
        policy.was_blocked(now);
        let Step::Rest(wait) = policy.next(&long, now) else { panic!("it does not rest") };
        waits.push(wait.as_millis());
        now += wait;
    }
    assert_eq!(waits, [20, 40, 80, 160, 320, 500, 500]);
    assert!(policy.is_starved());
    policy.was_restarted(Duration::from_millis(20), now);
    assert!(!policy.is_starved());
}

#[test]
fn a_wal_that_cannot_be_started_over_has_grown_when_it_is_beyond_its_soft_limit() {
    let mut policy = Policy::new(LIMIT);
    let mut now = Instant::now();
    policy.saw(&seen(LIMIT + 1, 0, 0), now);
    assert!(!policy.has_grown(), "nothing blocked it");
    policy.was_restarted(Duration::from_millis(20), now);
    policy.saw(&seen(1500, 1400, 0), now);
    (0..3).for_each(|_| policy.was_blocked(now));
    assert!(policy.is_starved() && !policy.has_grown(), "it is short");
    now += Duration::from_millis(2);
    policy.saw(&seen(LIMIT + 1, 1400, 0), now);
    assert!(policy.has_grown());
    policy.was_restarted(Duration::from_millis(20), now);
    assert!(!policy.has_grown());
}

#[test]
fn a_checkpoint_that_a_reader_holds_up_is_not_tried_again_at_once() {
    let (mut policy, now) = just_restarted();
    policy.checkpointed(0, 1500, Duration::from_millis(1), now);
    assert_eq!(policy.next(&seen(1500, 0, 0), now), Step::Rest(RETRY));
    assert_eq!(policy.next(&seen(1500, 0, 0), now + RETRY), Step::Checkpoint);
}

#[test]
fn a_checkpoint_that_failed_is_not_tried_again_at_once() {
    let (mut policy, now) = just_restarted();
    let backlog = seen(1500, 0, 0);
    policy.was_blocked(now);
    assert_eq!(policy.next(&backlog, now), Step::Checkpoint, "a restart that was blocked keeps no checkpoint");
    policy.was_not_checkpointed();
    assert_eq!(policy.next(&backlog, now), Step::Rest(RETRY));
    assert_eq!(policy.next(&backlog, now + RETRY), Step::Checkpoint);
}

#[test]
fn after_a_failure_the_connection_is_opened_again_each_time_after_a_longer_pause() {
    let (mut policy, mut now) = (Policy::new(u32::MAX), Instant::now());
    assert_eq!(policy.reopen_in(now), None);
    let mut pauses = Vec::new();
    for _ in 0..7 {
        policy.failed(now);
        let pause = policy.reopen_in(now).unwrap();
        now += pause;
        assert_eq!(policy.reopen_in(now), Some(Duration::ZERO));
        pauses.push(pause.as_millis());
        policy.opened(LIMIT);
        assert_eq!(policy.reopen_in(now), None);
        assert_eq!(policy.next(&seen(1500, 0, 0), now), Step::Checkpoint, "what is due is tried at once");
    }
    assert_eq!(pauses, [20, 40, 80, 160, 320, 500, 500]);
}

#[test]
fn the_wal_is_counted_on_again_when_it_was_started_over_or_only_a_lock_is_in_the_way() {
    type Ends = fn(&mut Policy, Instant);
    let table: [(&str, bool, Ends); 5] = [
        ("another failure", true, Policy::failed),
        ("a checkpoint", true, |policy, now| policy.checkpointed(1500, 0, CHECKPOINT_TIME, now)),
        ("a new connection", true, |policy, _| policy.opened(LIMIT)),
        ("a restart", false, |policy, now| policy.was_restarted(CHECKPOINT_TIME, now)),
        ("a lock", false, Policy::was_blocked),
    ];
    for (what, is_failing, ends) in table {
        let (mut policy, now) = just_restarted();
        assert!(!policy.is_failing());
        policy.failed(now);
        ends(&mut policy, now);
        assert_eq!(policy.is_failing(), is_failing, "{what}");
    }
}

#[test]
fn checkpoints_go_on_while_a_restart_has_to_wait() {
    let mut policy = Policy::new(LIMIT);
    let now = Instant::now();
    policy.was_blocked(now);
    assert_eq!(policy.next(&seen(8000, 1000, 0), now), Step::Checkpoint);
    assert_eq!(policy.next(&seen(8000, 8000, 0), now), Step::Rest(RETRY));
}

#[test]
fn a_wal_that_somebody_else_started_over_has_nothing_in_the_way() {
    let mut policy = Policy::new(LIMIT);
    let now = Instant::now();
    policy.saw(&seen(6000, 0, 0), now);
    (0..4).for_each(|_| policy.was_blocked(now));
    policy.saw(&seen(20, 0, 0), now + RETRY);
    assert!(!policy.is_starved());
    assert_eq!(policy.next(&seen(6000, 6000, 0), now + RETRY), Step::Restart(BUDGET));
}

/// Otherwise the thread would wake again and again until that time.
#[test]
fn a_rest_lasts_until_the_wal_has_grown() {
    let now = Instant::now();
    let steps: [fn(&mut Policy, Instant); 6] = [
        |_, _| {},
        Policy::was_blocked,
        |policy, now| (0..9).for_each(|_| policy.was_blocked(now)),
        |policy, now| {
            policy.was_blocked(now);
            policy.was_not_checkpointed();
        },
        |policy, now| policy.checkpointed(0, 900, CHECKPOINT_TIME, now),
        |policy, now| policy.was_restarted(CHECKPOINT_TIME, now),
    ];
    let mut rests = 0;
    for step in steps {
        let mut policy = Policy::new(LIMIT);
        step(&mut policy, now);
        for frames in [0, 1, 63, 64, 600, 999, 1000, 5800, 8192, 70_000] {
            for copied in [0, frames / 2, frames] {
                for idle_ms in [0, 1, 3, 900, 1000, 29_999, 30_000, 90_000] {
                    let seen = Observed { disk: NO_FILE, ..seen(frames, copied, idle_ms) };
                    let Step::Rest(time) = policy.next(&seen, now) else { continue };
                    assert!(policy.wake_at(&seen, now) > frames, "{seen:?}");
                    assert!(!time.is_zero(), "{seen:?}");
                    rests += 1;
                }
            }
        }
    }
    assert!(rests > 500, "{rests}");
}

#[test]
fn when_all_is_done_it_rests_for_long() {
    let policy = Policy::new(LIMIT);
    let done = Observed { disk: NO_FILE, ..seen(1, 0, 30_000) };
    assert_eq!(policy.next(&done, Instant::now()), Step::Rest(IDLE));
}

#[test]
fn checkpoints_get_as_large_as_their_time_allows() {
    let mut policy = Policy::new(LIMIT);
    let rest = |policy: &Policy| policy.wake_at(&seen(0, 0, 0), Instant::now());
    let at_first = rest(&policy);
    (0..20).for_each(|_| policy.checkpointed(1000, 500, Duration::from_millis(1), Instant::now()));
    assert!(rest(&policy) > at_first);
    (0..20).for_each(|_| policy.checkpointed(1000, 500, Duration::from_millis(100), Instant::now()));
    assert_eq!(rest(&policy), *CHECKPOINT_FRAMES.start());
    let small = Policy::new(100);
    assert!(rest(&small) < 70, "a checkpoint comes before the restart, however small the limit");
}
