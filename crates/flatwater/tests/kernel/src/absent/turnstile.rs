//! No turnstile: no database has one, so processes that write wait for SQLite's lock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::options::Options;
use crate::stats::file_counters::TurnRecorder;
use flatwater_base::busy_handler::BusyWait;

pub(crate) enum Turnstile {}

#[derive(PartialEq, Eq)]
pub(crate) enum LeftTurn {
    Same,
    Over,
    Kept,
}

impl Turnstile {
    pub(crate) fn of(_: &Options, _: &Arc<TurnRecorder>) -> Option<Self> {
        None
    }

    pub(crate) fn before_write<'a>(&self, _: impl FnOnce() -> &'a BusyWait) {
        match *self {}
    }

    pub(crate) fn found_busy(&self, _: u32, _: &BusyWait) -> bool {
        match *self {}
    }

    pub(crate) fn may_write(&self, _: Instant) -> bool {
        match *self {}
    }

    pub(crate) fn let_go(&self, _: bool) {
        match *self {}
    }

    pub(crate) fn committed(&self, _: u32) {
        match *self {}
    }

    pub(crate) fn unpark(&self) {
        match *self {}
    }

    pub(crate) fn pass(&self) {
        match *self {}
    }

    pub(crate) fn left_slot(&self, _: bool, _: impl FnOnce() -> bool) -> LeftTurn {
        match *self {}
    }

    pub(crate) fn is_kept(&self) -> bool {
        match *self {}
    }

    pub(crate) fn rests_in(&self) -> Option<Duration> {
        match *self {}
    }

    pub(crate) fn rests(&self) -> bool {
        match *self {}
    }
}
