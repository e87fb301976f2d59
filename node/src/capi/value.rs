//! The values of JavaScript in a call.
//!
//! Owns: making them and reading them. Runs on the loop's thread. Invariant: a value lives as long as the call that it came
//! with or was made in. Leaves out: which values are bound (`params`).

use std::ffi::c_char;
use std::marker::PhantomData;
use std::ptr;

use napi_sys as sys;

/// The environment of a call.
#[derive(Clone, Copy)]
pub(crate) struct Env<'e> {
    pub(super) raw: sys::napi_env,
    pub(super) of: PhantomData<&'e ()>,
}

/// A value of JavaScript. A slice of them is one of Node's.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Value<'e> {
    pub(super) raw: sys::napi_value,
    pub(super) of: PhantomData<&'e ()>,
}

/// An exception is pending, which the call ends with.
#[derive(Debug)]
pub(crate) struct Thrown;

pub(crate) type Result<T, E = Thrown> = std::result::Result<T, E>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Undefined,
    Null,
    Boolean,
    Number,
    String,
    Symbol,
    Object,
    Function,
    External,
    BigInt,
}

/// Calls a function of Node-API whose last parameter is where it puts its result.
macro_rules! made {
    ($env:expr, $function:ident($($argument:expr),*) -> $initial:expr) => {{
        let mut out = $initial;
        // SAFETY: the environment is that of the call that runs, and the other arguments are values of it, lengths of the
        // slices they are passed with, and a place for the result that lives until the function returns.
        let status = unsafe { sys::$function($env.raw, $($argument,)* &raw mut out) };
        if status == sys::Status::napi_ok { Ok(out) } else { Err(Thrown) }
    }};
}

pub(super) use made;

impl<'e> Env<'e> {
    pub(super) fn value(self, raw: Result<sys::napi_value>) -> Result<Value<'e>> {
        raw.map(|raw| Value { raw, of: PhantomData })
    }

    pub(crate) fn undefined(self) -> Result<Value<'e>> {
        self.value(made!(self, napi_get_undefined() -> ptr::null_mut()))
    }

    pub(crate) fn null(self) -> Result<Value<'e>> {
        self.value(made!(self, napi_get_null() -> ptr::null_mut()))
    }

    pub(crate) fn boolean(self, on: bool) -> Result<Value<'e>> {
        self.value(made!(self, napi_get_boolean(on) -> ptr::null_mut()))
    }

    pub(crate) fn number(self, number: f64) -> Result<Value<'e>> {
        self.value(made!(self, napi_create_double(number) -> ptr::null_mut()))
    }

    pub(crate) fn big(self, number: i64) -> Result<Value<'e>> {
        self.value(made!(self, napi_create_bigint_int64(number) -> ptr::null_mut()))
    }

    /// Calls a function, which runs code of JavaScript. What it throws is dropped.
    pub(crate) fn call(self, function: Value<'e>, arguments: &[Value<'e>]) -> Result<Value<'e>> {
        let this = self.undefined()?;
        let (count, arguments) = (arguments.len(), arguments.as_ptr().cast::<sys::napi_value>());
        let called = made!(self, napi_call_function(this.raw, function.raw, count, arguments) -> ptr::null_mut());
        if called.is_err() {
            let _ = made!(self, napi_get_and_clear_last_exception() -> ptr::null_mut());
        }
        self.value(called)
    }

    pub(crate) fn ascii(self, text: &[u8]) -> Result<Value<'e>> {
        let length = text.len().cast_signed();
        self.value(made!(self, napi_create_string_latin1(text.as_ptr().cast(), length) -> ptr::null_mut()))
    }

    pub(crate) fn wide(self, text: &[u16]) -> Result<Value<'e>> {
        let length = text.len().cast_signed();
        self.value(made!(self, napi_create_string_utf16(text.as_ptr(), length) -> ptr::null_mut()))
    }

    pub(crate) fn text(self, text: &str) -> Result<Value<'e>> {
        let length = text.len().cast_signed();
        self.value(made!(self, napi_create_string_utf8(text.as_ptr().cast(), length) -> ptr::null_mut()))
    }

    /// A `Buffer` with a copy of the bytes.
    pub(crate) fn buffer(self, bytes: &[u8]) -> Result<Value<'e>> {
        let mut copy = ptr::null_mut();
        let pointer = bytes.as_ptr().cast();
        self.value(made!(self, napi_create_buffer_copy(bytes.len(), pointer, &raw mut copy) -> ptr::null_mut()))
    }

    pub(crate) fn object(self) -> Result<Value<'e>> {
        self.value(made!(self, napi_create_object() -> ptr::null_mut()))
    }

    pub(crate) fn array(self, values: impl ExactSizeIterator<Item = Result<Value<'e>>>) -> Result<Value<'e>> {
        let array = self.value(made!(self, napi_create_array_with_length(values.len()) -> ptr::null_mut()))?;
        for (index, value) in (0..).zip(values) {
            // SAFETY: both are values of this call.
            unsafe { sys::napi_set_element(self.raw, array.raw, index, value?.raw) };
        }
        Ok(array)
    }

    pub(crate) fn set(self, object: Value<'e>, name: &str, value: Value<'e>) -> Result<()> {
        let name = self.text(name)?;
        // SAFETY: all are values of this call.
        let status = unsafe { sys::napi_set_property(self.raw, object.raw, name.raw, value.raw) };
        if status == sys::Status::napi_ok { Ok(()) } else { Err(Thrown) }
    }

    pub(crate) fn kind(self, value: Value<'e>) -> Kind {
        match made!(self, napi_typeof(value.raw) -> 0) {
            Ok(sys::ValueType::napi_null) => Kind::Null,
            Ok(sys::ValueType::napi_boolean) => Kind::Boolean,
            Ok(sys::ValueType::napi_number) => Kind::Number,
            Ok(sys::ValueType::napi_string) => Kind::String,
            Ok(sys::ValueType::napi_symbol) => Kind::Symbol,
            Ok(sys::ValueType::napi_object) => Kind::Object,
            Ok(sys::ValueType::napi_function) => Kind::Function,
            Ok(sys::ValueType::napi_external) => Kind::External,
            Ok(sys::ValueType::napi_bigint) => Kind::BigInt,
            _ => Kind::Undefined,
        }
    }

    pub(crate) fn as_f64(self, value: Value<'e>) -> Result<f64> {
        made!(self, napi_get_value_double(value.raw) -> 0.0)
    }

    pub(crate) fn as_bool(self, value: Value<'e>) -> Result<bool> {
        made!(self, napi_get_value_bool(value.raw) -> false)
    }

    /// A number of 64 bits; `None` if it has more.
    pub(crate) fn as_i64(self, value: Value<'e>) -> Result<Option<i64>> {
        let mut number = 0;
        let is_whole = made!(self, napi_get_value_bigint_int64(value.raw, &raw mut number) -> false)?;
        Ok(is_whole.then_some(number))
    }

    /// Calls `with` with a string as UTF-8. Half of a surrogate pair becomes a replacement character.
    pub(crate) fn with_text<R>(self, value: Value<'e>, with: impl FnOnce(&str) -> R) -> Result<R> {
        let mut short = [0_u8; 512];
        let length = self.copy_text(value, &mut short)?;
        // One byte is for a zero, and the last character may not have fitted.
        if length < short.len() - 4 {
            return Ok(with(&String::from_utf8_lossy(&short[..length])));
        }
        let length = made!(self, napi_get_value_string_utf8(value.raw, ptr::null_mut(), 0) -> 0)?;
        let mut long = vec![0; length + 1];
        let length = self.copy_text(value, &mut long)?;
        Ok(with(&String::from_utf8_lossy(&long[..length])))
    }

    /// True for a string that UTF-8 has: it is looked for halves of surrogate pairs only where Node has written another character.
    pub(crate) fn is_whole(self, value: Value<'e>) -> bool {
        let has_replacement = self.with_text(value, |text| text.contains(char::REPLACEMENT_CHARACTER));
        !has_replacement.unwrap_or(false) || self.is_well_formed(value)
    }

    /// True for a string without halves of surrogate pairs.
    pub(crate) fn is_well_formed(self, value: Value<'e>) -> bool {
        let read = |into: *mut u16, size: usize| made!(self, napi_get_value_string_utf16(value.raw, into, size) -> 0);
        let mut units = vec![0; read(ptr::null_mut(), 0).unwrap_or(0) + 1];
        let length = read(units.as_mut_ptr(), units.len()).unwrap_or(0);
        char::decode_utf16(units[..length].iter().copied()).all(|unit| unit.is_ok())
    }

    fn copy_text(self, value: Value<'e>, into: &mut [u8]) -> Result<usize> {
        let pointer = into.as_mut_ptr().cast::<c_char>();
        made!(self, napi_get_value_string_utf8(value.raw, pointer, into.len()) -> 0)
    }

    /// The time of a `Date` in milliseconds. `None` if it is none.
    pub(crate) fn as_date(self, value: Value<'e>) -> Option<f64> {
        made!(self, napi_is_date(value.raw) -> false).ok().filter(|is_date| *is_date)?;
        made!(self, napi_get_date_value(value.raw) -> 0.0).ok()
    }

    /// Calls `with` with the bytes of a typed array, a `DataView` or an `ArrayBuffer`. `None` if it is none. `with` runs no
    /// code of JavaScript.
    pub(crate) fn with_bytes<R>(self, value: Value<'e>, with: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let (mut pointer, mut length) = (ptr::null_mut(), 0);
        if made!(self, napi_is_buffer(value.raw) -> false).unwrap_or(false) {
            // Of typed arrays and views too.
            // SAFETY: the value is one of this call, and has bytes; the places for the results live until it returns.
            let status = unsafe { sys::napi_get_buffer_info(self.raw, value.raw, &raw mut pointer, &raw mut length) };
            (status == sys::Status::napi_ok).then_some(())?;
        } else if made!(self, napi_is_arraybuffer(value.raw) -> false).unwrap_or(false) {
            // SAFETY: as above.
            let status =
                unsafe { sys::napi_get_arraybuffer_info(self.raw, value.raw, &raw mut pointer, &raw mut length) };
            (status == sys::Status::napi_ok).then_some(())?;
        } else {
            return None;
        }
        let bytes = if pointer.is_null() || length == 0 {
            &[]
        } else {
            // SAFETY: Node-API says that so many bytes are there. They stay while no code of JavaScript runs, and `with` runs
            // none.
            unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), length) }
        };
        Some(with(bytes))
    }

    /// The length of an array. `None` if it is none.
    pub(crate) fn array_length(self, value: Value<'e>) -> Option<u32> {
        made!(self, napi_is_array(value.raw) -> false).ok().filter(|is_array| *is_array)?;
        made!(self, napi_get_array_length(value.raw) -> 0).ok()
    }

    pub(crate) fn element(self, array: Value<'e>, index: u32) -> Result<Value<'e>> {
        self.value(made!(self, napi_get_element(array.raw, index) -> ptr::null_mut()))
    }

    /// The property of an object, which may be inherited. It may run code of JavaScript.
    pub(crate) fn property(self, object: Value<'e>, name: &str) -> Result<Value<'e>> {
        let name = self.text(name)?;
        self.value(made!(self, napi_get_property(object.raw, name.raw) -> ptr::null_mut()))
    }

    /// The names of an object's own properties.
    pub(crate) fn names(self, object: Value<'e>) -> Result<Vec<String>> {
        let (mode, filter) =
            (sys::KeyCollectionMode::own_only, sys::KeyFilter::enumerable | sys::KeyFilter::skip_symbols);
        let conversion = sys::KeyConversion::numbers_to_strings;
        let names = made!(self, napi_get_all_property_names(object.raw, mode, filter, conversion) -> ptr::null_mut());
        self.texts(self.value(names)?)
    }

    /// The strings in an array.
    pub(crate) fn texts(self, array: Value<'e>) -> Result<Vec<String>> {
        let length = self.array_length(array).unwrap_or(0);
        (0..length).map(|index| self.with_text(self.element(array, index)?, str::to_owned)).collect()
    }

    /// Runs `with` once for each step of a loop, so that its values do not stay until the call ends.
    pub(crate) fn scoped<R>(self, with: impl FnOnce() -> R) -> R {
        let scope = made!(self, napi_open_handle_scope() -> ptr::null_mut());
        let result = with();
        if let Ok(scope) = scope {
            // SAFETY: it was opened above, and those that were opened since are closed.
            unsafe { sys::napi_close_handle_scope(self.raw, scope) };
        }
        result
    }

    /// Throws a `TypeError`.
    #[cold]
    pub(crate) fn type_error(self, message: &str) -> Thrown {
        let throw = || {
            let text = self.text(message)?;
            let error = made!(self, napi_create_type_error(ptr::null_mut(), text.raw) -> ptr::null_mut())?;
            // SAFETY: the error is a value of this call.
            unsafe { sys::napi_throw(self.raw, error) };
            Ok::<_, Thrown>(())
        };
        let _ = throw();
        Thrown
    }

    /// Throws a plain error, unless an exception is pending.
    #[cold]
    pub(super) fn error(self, message: &str) {
        let throw = || {
            if made!(self, napi_is_exception_pending() -> false)? {
                return Ok(());
            }
            let text = self.text(message)?;
            let error = made!(self, napi_create_error(ptr::null_mut(), text.raw) -> ptr::null_mut())?;
            // SAFETY: the error is a value of this call.
            unsafe { sys::napi_throw(self.raw, error) };
            Ok::<_, Thrown>(())
        };
        let _ = throw();
    }
}
