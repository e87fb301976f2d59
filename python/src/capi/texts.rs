//! Texts that become strings: short ones at once, long ones part by part.
//!
//! Owns: the string while it is being filled. Runs on the loop's thread. Invariant: nobody has the string before it is
//! complete. Leaves out: when other tasks get their turn (`slice`).

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

use flatwater_bridge::Slice;

/// A text of the engine that becomes a string.
pub(crate) struct LongText {
    text: String,
    /// How many bytes are measured, or copied.
    at: usize,
    /// Of what is measured: the number of characters, and the greatest.
    length: isize,
    greatest: char,
    /// The string, once everything is measured, and the number of characters in it.
    made: Option<(Py<PyString>, isize)>,
}

/// About so many bytes are done at once.
const PART: usize = 64 << 10;

impl LongText {
    pub(crate) fn new(text: String) -> Self {
        Self { text, at: 0, length: 0, greatest: '\0', made: None }
    }

    /// Goes on for a slice. Returns the string if it is complete.
    pub(crate) fn go_on(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyString>>> {
        let slice = &mut Slice::begin();
        loop {
            let end = self.text.floor_char_boundary(self.at + PART);
            let part = &self.text[self.at..end];
            self.at = end;
            match (&mut self.made, part) {
                (Some(_), "") => return Ok(self.made.take().map(|(made, _)| made)),
                (None, "") => {
                    self.made = Some((room(py, self.length, self.greatest)?, 0));
                    self.at = 0;
                }
                (Some((made, length)), part) => *length += copy(made.bind(py), *length, part)?,
                (None, part) if part.is_ascii() => self.length += isize::try_from(part.len())?,
                (None, part) => {
                    for character in part.chars() {
                        self.length += 1;
                        self.greatest = self.greatest.max(character);
                    }
                }
            }
            if slice.look() {
                return Ok(None);
            }
        }
    }
}

/// Returns the string of a text, or an error if it is not UTF-8. Most texts are ASCII, and need not be decoded.
#[inline]
pub(crate) fn short_text<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyString>> {
    // The interpreter shares strings of one character and of none.
    if text.len() < 2 || !text.is_ascii() {
        return PyString::from_bytes(py, text);
    }
    let made = room(py, isize::try_from(text.len())?, '\0')?.into_bound(py);
    // SAFETY: the string is new, nobody else has it, and it has a place of one byte for each of its characters.
    unsafe {
        let characters = ffi::PyUnicode_1BYTE_DATA(made.as_ptr());
        std::ptr::copy_nonoverlapping(text.as_ptr(), characters, text.len());
    }
    Ok(made)
}

/// Makes a string with room for so many characters.
fn room(py: Python<'_>, length: isize, greatest: char) -> PyResult<Py<PyString>> {
    // The greatest of the characters in ASCII is not looked for.
    let greatest = u32::from(greatest).max(127);
    // SAFETY: the interpreter is attached; the result is a new reference to a string, or null with an exception set.
    unsafe {
        let made = Bound::from_owned_ptr_or_err(py, ffi::PyUnicode_New(length, greatest))?;
        Ok(made.cast_into_unchecked::<PyString>().unbind())
    }
}

/// Copies a part to its place in the string. Returns its number of characters.
fn copy(into: &Bound<'_, PyString>, at: isize, part: &str) -> PyResult<isize> {
    let part = PyString::new(into.py(), part);
    // SAFETY: both are strings. The first one is new and nobody else has it; the function checks that, and that it has
    // room for the part.
    let copied =
        unsafe { ffi::PyUnicode_CopyCharacters(into.as_ptr(), at, part.as_ptr(), 0, isize::try_from(part.len()?)?) };
    if copied < 0 { Err(PyErr::fetch(into.py())) } else { Ok(copied) }
}
