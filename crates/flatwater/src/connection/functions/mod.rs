//! The user's functions and collations of an open database.
//!
//! Owns: the list of what is registered now, and how often it has changed; that of a connection of a caller lies over that of the
//! database. Any thread may use it; one lock guards the list,
//! and is held for a few assignments. Invariants: the list has what is registered, once, and nothing of what was; whoever
//! has seen the number of the last change has seen the list. Leaves out: one function (`registration`), and the
//! connections, which compare the number before they run anything (`applied`).

pub(crate) mod applied;
pub(crate) mod provided;
#[cfg(feature = "regexp")]
mod regexp;
pub(crate) mod registration;
pub(crate) mod user_code;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use self::registration::{Key, Registered, Registration};
use flatwater_base::thread::lock;

/// What is registered. A connection that was opened before looks here at its next use.
#[derive(Default)]
pub(crate) struct Functions {
    /// 0: nothing was ever registered.
    changes: AtomicU64,
    list: Mutex<Vec<Registered>>,
    /// What else is registered, unless something here has its key.
    under: Option<Arc<Functions>>,
}

impl Functions {
    /// Returns what is registered for one connection, which also has what is registered in `under`.
    pub(crate) fn over(under: Arc<Self>) -> Self {
        Self { under: Some(under), ..Self::default() }
    }

    /// Registers it, in the place of what has its key. Returns false if that is the same.
    pub(crate) fn add(&self, registration: Registration) -> bool {
        let mut list = self.lock();
        if list.iter().any(|other| other.is_same(&registration)) {
            return false;
        }
        let before = list.iter().position(|other| other.key == registration.key).map(|at| list.swap_remove(at));
        list.push(Arc::new(registration));
        self.changes.fetch_add(1, Ordering::Relaxed);
        drop(list);
        // What it owns is foreign code.
        drop(before);
        true
    }

    /// Removes what has this key. Returns false if nothing has.
    pub(crate) fn remove(&self, key: &Key) -> bool {
        let mut list = self.lock();
        let Some(at) = list.iter().position(|other| other.key == *key) else { return false };
        let before = list.swap_remove(at);
        self.changes.fetch_add(1, Ordering::Relaxed);
        drop(list);
        drop(before);
        true
    }

    /// Lets go of all, when no connection is left. What one owns may own a handle of the database.
    pub(crate) fn let_go(&self) {
        let list = std::mem::take(&mut *self.lock());
        drop(list);
    }

    #[inline]
    fn changes(&self) -> u64 {
        let under = self.under.as_ref().map_or(0, |under| under.changes());
        self.changes.load(Ordering::Relaxed).wrapping_add(under)
    }

    /// Returns the list, and the number of the change that made it.
    fn now(&self) -> (Vec<Registered>, u64) {
        let (under, changes_under) = self.under.as_ref().map_or_else(Default::default, |under| under.now());
        let list = self.lock();
        let own = list.clone();
        let changes = self.changes.load(Ordering::Relaxed).wrapping_add(changes_under);
        // What is left out may be the last of a function, whose drop is foreign code.
        drop(list);
        let has = |key: &Key| own.iter().any(|own| own.key == *key);
        let mut all: Vec<_> = under.into_iter().filter(|one| !has(&one.key)).collect();
        all.extend(own);
        (all, changes)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Registered>> {
        lock(&self.list)
    }
}

#[cfg(test)]
mod tests {
    use super::registration::Length;
    use super::*;

    fn named(name: &str) -> Registration {
        let key = Key::function(name, 1).unwrap();
        Registration {
            key,
            is_pure: true,
            length: Length::Unknown,
            register: Box::new(|_, _| Ok(())),
            identity: None,
            waits: false,
        }
    }

    #[test]
    fn any_number_of_registrations_leave_those_that_hold() {
        let functions = Functions::default();
        for name in ["a", "A", "b", "a"] {
            functions.add(named(name));
        }
        let (list, changes) = functions.now();
        assert_eq!((list.len(), changes), (2, 4));
        assert!(functions.remove(&named("A").key) && !functions.remove(&named("a").key));
        assert_eq!(functions.now().0.len(), 1);
    }

    #[test]
    fn one_that_is_registered_again_changes_nothing() {
        let functions = Functions::default();
        let add = |name: &str, identity| functions.add(named(name).known_as(identity));
        assert!(add("a", (8, 0)) && add("b", (8, 0)));
        assert!(!add("a", (8, 0)) && !add("B", (8, 0)));
        assert!(add("a", (8, 1)) && add("a", (16, 1)) && functions.add(named("a")) && add("a", (16, 1)));
        assert_eq!((functions.now().0.len(), functions.now().1), (2, 6));
    }
}
