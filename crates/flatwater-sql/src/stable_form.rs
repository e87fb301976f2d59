//! The stable form of a text, for texts whose plan depends on the values that are bound.
//!
//! Owns: which values matter, for which of them the stable form has the plan that SQLite would make for them, and the
//! choice between both forms. Any thread may use it. Invariants: a stable form is chosen only for values that were
//! compared, or that SQLite does not tell apart from those; what is kept of values is a hash, and a bounded number of
//! them. Leaves out: comparing the plans (`connection::learn::analyse`), and preparing either form.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use flatwater_sqlite::{Bindings, Matters, PlanParameter};
use hashlink::DefaultHashBuilder;
use rusqlite::types::ValueRef;

use flatwater_base::thread::lock;

/// The plans of so many kinds of values are compared. A text that is used with more, such as the patterns of a search box, is
/// left to SQLite.
const KINDS: usize = 32;

/// After SQLite prepared a text again so often, its plans are compared.
const OFTEN: u32 = 2;

/// The values of one call, as far as the plan depends on them: equal for values that SQLite does not tell apart. Its lowest bit
/// is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueKind(u64);

/// The hasher of all values and texts in the process.
pub(super) static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// What is known of a text whose plan depends on values. `T` is a text.
#[derive(Debug)]
pub struct StableForm<T> {
    text: T,
    /// The schema is another one than that of the plans.
    outdated: Arc<AtomicBool>,
    parameters: Box<[PlanParameter]>,
    /// The plan for unknown values.
    plan: Box<[Box<str>]>,
    /// The kinds of values that were compared, with 1 as the lowest bit if the plans were the same; 0 is none.
    compared: [AtomicU64; KINDS],
}

impl<T> StableForm<T> {
    /// `parameters` are those that matter, and `plan` is the one for unknown values. `text` makes the stable form, which is
    /// outdated when it sets what it is given.
    pub fn new(parameters: Vec<PlanParameter>, plan: Vec<Box<str>>, text: impl FnOnce(&Arc<AtomicBool>) -> T) -> Self {
        let (outdated, compared) = (Arc::default(), [const { AtomicU64::new(0) }; KINDS]);
        Self { text: text(&outdated), outdated, parameters: parameters.into(), plan: plan.into(), compared }
    }

    /// Returns the stable form, if its plan is that for these values.
    pub fn for_values(&self, values: &(impl Bindings + ?Sized)) -> Option<&T> {
        (self.is_same(self.kind(values)) == Some(true)).then_some(&self.text)
    }

    /// Returns the kind of these values.
    pub fn kind(&self, values: &(impl Bindings + ?Sized)) -> ValueKind {
        let mut hasher = HASHER.build_hasher();
        let have_names = values.count() > 0 && values.name(0).is_some();
        for parameter in &self.parameters {
            let value = at(values, parameter, have_names).map_or(ValueRef::Null, |at| values.value(at));
            match parameter.matters {
                Matters::AsFlag => matches!(value, ValueRef::Integer(0 | 1)).hash(&mut hasher),
                Matters::AsValue => hash(value, &mut hasher),
            }
        }
        ValueKind(hasher.finish() << 1)
    }

    /// Returns whether the plan for these values is that of the stable form; `None` if it was not compared.
    pub fn is_same(&self, kind: ValueKind) -> Option<bool> {
        // The first ones are those that were used first, and most often.
        let known = self.compared.iter().map(|known| known.load(Ordering::Relaxed)).take_while(|known| *known != 0);
        known.into_iter().find(|known| known & !1 == kind.0).map(|known| known & 1 == 1)
    }

    /// Returns true if more kinds of values can be compared.
    pub fn has_room(&self) -> bool {
        self.compared[KINDS - 1].load(Ordering::Relaxed) == 0
    }

    /// Records the plan for values of this kind.
    pub fn compared(&self, kind: ValueKind, plan: &[Box<str>]) {
        let entry = kind.0 | u64::from(*plan == *self.plan);
        let free = |known: &&AtomicU64| known.compare_exchange(0, entry, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        // Two threads may record one kind twice.
        let _ = self.compared.iter().find(free);
    }
}

/// Returns which of the values is that of the parameter.
fn at(values: &(impl Bindings + ?Sized), parameter: &PlanParameter, have_names: bool) -> Option<usize> {
    if !have_names {
        return (parameter.position < values.count()).then_some(parameter.position);
    }
    let name = parameter.name.as_deref()?;
    (0..values.count()).find(|at| values.name(*at).is_some_and(|given| given == name || given == &name[1..]))
}

fn hash(value: ValueRef<'_>, hasher: &mut impl Hasher) {
    std::mem::discriminant(&value).hash(hasher);
    match value {
        ValueRef::Null => {}
        ValueRef::Integer(value) => value.hash(hasher),
        ValueRef::Real(value) => value.to_bits().hash(hasher),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.hash(hasher),
    }
}

/// The place of a text's stable form.
#[derive(Debug)]
pub struct StablePlace<T> {
    /// There is one. Most texts have none, and find that out with one load.
    is_there: AtomicBool,
    form: Mutex<Option<Arc<StableForm<T>>>>,
    /// How often SQLite prepared the text again since its plans were compared.
    prepared_again: AtomicU32,
}

impl<T> Default for StablePlace<T> {
    fn default() -> Self {
        Self { is_there: AtomicBool::new(false), form: Mutex::new(None), prepared_again: AtomicU32::new(0) }
    }
}

impl<T> StablePlace<T> {
    /// Returns the form, if its plans are those of the schema.
    #[inline]
    pub fn get(&self) -> Option<Arc<StableForm<T>>> {
        if self.is_there.load(Ordering::Relaxed) { self.get_current() } else { None }
    }

    fn get_current(&self) -> Option<Arc<StableForm<T>>> {
        let mut place = lock(&self.form);
        if place.as_ref().is_some_and(|form| form.outdated.load(Ordering::Relaxed)) {
            *place = None;
            self.is_there.store(false, Ordering::Relaxed);
        }
        place.clone()
    }

    /// Puts a form in the place.
    pub fn set(&self, form: Arc<StableForm<T>>) {
        *lock(&self.form) = Some(form);
        self.is_there.store(true, Ordering::Relaxed);
    }

    /// SQLite prepared the text again: for its values, or for another schema.
    pub(super) fn was_prepared_again(&self) {
        self.prepared_again.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns true if the plans should be compared: a schema that changed once has the text prepared again once.
    pub fn is_due(&self) -> bool {
        self.prepared_again.load(Ordering::Relaxed) >= OFTEN
    }

    /// The plans were compared, or no value matters.
    pub fn is_done(&self) {
        self.prepared_again.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::types::Value;

    use super::*;
    use crate::statement_info::StatementInfo;

    fn parameter(position: usize, name: Option<&str>, matters: Matters) -> PlanParameter {
        PlanParameter { position, name: name.map(Into::into), matters }
    }

    fn form(parameters: Vec<PlanParameter>) -> StableForm<Arc<StatementInfo>> {
        let text = StatementInfo::new("SELECT 1");
        StableForm::new(parameters, vec!["SCAN t".into()], |outdated| Arc::new(text.stable_form(outdated)))
    }

    fn values(all: [i64; 2]) -> [Value; 2] {
        all.map(Value::Integer)
    }

    #[test]
    fn values_are_of_one_kind_if_sqlite_does_not_tell_them_apart() {
        let form = form(vec![parameter(0, None, Matters::AsFlag), parameter(1, None, Matters::AsValue)]);
        let kind = |all| form.kind(&values(all)[..]);
        assert_eq!(kind([0, 7]), kind([1, 7]));
        assert_eq!(kind([2, 7]), kind([-1, 7]));
        assert_ne!(kind([1, 7]), kind([2, 7]));
        assert_ne!(kind([1, 7]), kind([1, 8]));
        let text = |text: &str| [Value::Integer(1), Value::Text(text.into())];
        assert_ne!(form.kind(&text("7")[..]), kind([1, 7]));
        assert_eq!(form.kind(&text("a")[..]), form.kind(&text("a")[..]));
        assert_eq!(form.kind(&[][..] as &[Value]), form.kind(&[Value::Null, Value::Null][..]), "too few are bound");
    }

    #[test]
    fn values_are_found_by_their_names() {
        let form = form(vec![parameter(3, Some(":a"), Matters::AsValue)]);
        let named = |name, value| [("b", Value::Integer(0)), (name, Value::Integer(value))];
        assert_eq!(form.kind(&named(":a", 1)[..]), form.kind(&named("a", 1)[..]));
        assert_ne!(form.kind(&named("a", 1)[..]), form.kind(&named("a", 2)[..]));
    }

    #[test]
    fn the_stable_form_is_chosen_for_values_whose_plan_is_the_same() {
        let text = Arc::new(StatementInfo::new("SELECT 1"));
        assert!(Arc::ptr_eq(&text, &text.clone().for_values(&values([1, 2])[..])));
        let form = Arc::new(form(vec![parameter(0, None, Matters::AsFlag)]));
        text.stable.set(form.clone());
        let chosen = |first| text.clone().for_values(&values([first, 9])[..]);
        assert!(Arc::ptr_eq(&text, &chosen(1)), "not compared");
        form.compared(form.kind(&values([1, 0])[..]), &["SCAN t".into()]);
        form.compared(form.kind(&values([2, 0])[..]), &["SEARCH t".into()]);
        assert!(chosen(0).is_stable() && chosen(1).is_stable() && chosen(0) != text);
        assert!(Arc::ptr_eq(&text, &chosen(5)), "another plan");
        chosen(1).was_prepared_again();
        assert!(Arc::ptr_eq(&text, &chosen(1)) && text.stable.get().is_none(), "another schema");
        assert!(!text.stable.is_due());
        (0..2).for_each(|_| text.was_prepared_again());
        assert!(text.stable.is_due());
    }

    #[test]
    fn a_bounded_number_of_kinds_is_compared() {
        let form = form(vec![parameter(0, None, Matters::AsValue)]);
        let kind = |number| form.kind(&values([number, 0])[..]);
        for number in 0..100 {
            assert_eq!(form.has_room(), number < 32);
            form.compared(kind(number), &["SCAN t".into()]);
        }
        assert_eq!([0, 31, 32].map(|number| form.is_same(kind(number))), [Some(true), Some(true), None]);
    }
}
