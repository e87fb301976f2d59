//! The types that can be parameters: tuples, arrays, slices and vectors of values.
//!
//! Owns: the conversion, into the parameters of one run or into one more row of many. Runs on the caller's thread.
//! Invariant: values keep their order. Leaves out: the values themselves.

use super::convert::{ToSql, add};
use super::param_rows::ParamRows;
use super::params::Params;
use crate::error::location::at_parameter;
use crate::error::{Error, ErrorCode, Result};

/// A type that can be the parameters of a statement: `()`, tuples of up to 16 values, arrays, slices, vectors,
/// [`Params`], and the results of [`params!`](crate::params) and [`named!`](crate::named). A value is anything that
/// implements [`ToSql`].
///
/// A list of `u8` is refused with `Misuse`, because it is ambiguous: one blob, or one parameter for each byte. Bind a
/// blob as `(bytes,)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the parameters of a statement",
    label = "parameters are `()`, a tuple, an array, a slice, a `Vec` or `Params`",
    note = "one value needs the comma of a tuple: `(value,)`",
    note = "each value implements `ToSql`; `params![...]` takes any number of them, `named! {{ ... }}` takes them by name"
)]
pub trait IntoParams {
    /// Converts into owned parameters.
    ///
    /// # Errors
    /// `Misuse` for a value that SQLite cannot store unchanged.
    fn into_params(self) -> Result<Params>;

    /// Adds the values as one row to the rows of `execute_many`.
    #[doc(hidden)]
    fn add_to(self, rows: &mut ParamRows) -> Result<()>
    where
        Self: Sized,
    {
        rows.take(self.into_params()?);
        Ok(())
    }
}

impl IntoParams for Params {
    fn into_params(self) -> Result<Params> {
        Ok(self)
    }
}

impl IntoParams for Result<Params> {
    fn into_params(self) -> Result<Params> {
        self
    }
}

impl IntoParams for () {
    fn into_params(self) -> Result<Params> {
        Ok(Params::default())
    }
}

/// Lists of one type.
macro_rules! lists {
    ($([$($generic:tt)*] $list:ty),+ $(,)?) => {$(
        impl<T: ToSql, $($generic)*> IntoParams for $list {
            fn into_params(self) -> Result<Params> {
                list::<T, _>(self)
            }

            fn add_to(self, rows: &mut ParamRows) -> Result<()> {
                add_list::<T>(rows, self.as_ref())
            }
        }
    )+};
}

lists!([const N: usize] [T; N], [const N: usize] &[T; N], [] &[T], [] Vec<T>, [] &Vec<T>);

/// Returns the parameters of a list of `T`.
fn list<T, I: IntoIterator<Item: ToSql>>(values: I) -> Result<Params> {
    refuse_bytes::<T>()?;
    Params::positional(values)
}

fn add_list<T: ToSql>(rows: &mut ParamRows, values: &[T]) -> Result<()> {
    refuse_bytes::<T>()?;
    let block = rows.begin(values.len(), &None);
    let mut numbered = values.iter().zip(1..);
    numbered.try_for_each(|(value, number)| add(block, value).map_err(|error| at_parameter(error, number)))
}

/// Refuses a list of bytes. A `T` that borrows has no `TypeId`, so the type is told by its name.
fn refuse_bytes<T>() -> Result<()> {
    if std::any::type_name::<T>() == "u8" {
        return Err(Error::new(
            ErrorCode::InvalidValue,
            "a list of `u8` may be one blob or one parameter for each byte",
        )
        .with_hint("bind a blob as `(bytes,)`, and numbers with `params!`"));
    }
    Ok(())
}

/// Tuples of the values before the semicolon, and of one more after the other.
macro_rules! tuples {
    (@one $($name:ident)+) => {
        impl<$($name: ToSql),+> IntoParams for ($($name,)+) {
            fn into_params(self) -> Result<Params> {
                #[allow(non_snake_case)]
                let ($($name,)+) = self;
                Params::positional([$(&$name as &dyn ToSql),+])
            }

            fn add_to(self, rows: &mut ParamRows) -> Result<()> {
                #[allow(non_snake_case)]
                let ($($name,)+) = self;
                let block = rows.begin([$(stringify!($name)),+].len(), &None);
                let mut number = 0;
                $(
                    number += 1;
                    add(block, &$name).map_err(|error| at_parameter(error, number))?;
                )+
                Ok(())
            }
        }
    };
    ($($name:ident)*;) => {};
    ($($name:ident)*; $next:ident $($other:ident)*) => {
        tuples!(@one $($name)* $next);
        tuples!($($name)* $next; $($other)*);
    };
}

tuples!(; A B C D E F G H I J K L M N O P);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params;

    #[test]
    fn tuples_arrays_slices_and_macros_give_the_same_parameters() {
        let expected = Params::positional([1, 2]).unwrap();
        assert_eq!((1, 2).into_params().unwrap(), expected);
        assert_eq!([1, 2].into_params().unwrap(), expected);
        assert_eq!([1, 2][..].into_params().unwrap(), expected);
        assert_eq!(vec![1, 2].into_params().unwrap(), expected);
        assert_eq!(params![1, 2].into_params().unwrap(), expected);
        assert_eq!(().into_params().unwrap(), params![].into_params().unwrap());
    }
}
