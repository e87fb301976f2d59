//! Settings, and setters, each declared once: by the name and the type of its field.
//!
//! Owns: the macros. Leaves out: setters that do more than to set a field.

/// Declares the settings, each with its type and its default. Handles of one open file have the same settings of the
/// file; `first_difference` names one that is not the same.
macro_rules! settings {
    (
        $(#[$doc:meta])* pub struct $type:ident;
        of the file { $($(#[$shared_note:meta])* $shared:ident: $shared_type:ty = $shared_default:expr;)* }
        of a handle { $($(#[$note:meta])* $name:ident: $of:ty = $default:expr;)* }
    ) => {
        $(#[$doc])*
        pub struct $type {
            $($(#[$shared_note])* pub(crate) $shared: $shared_type,)*
            $($(#[$note])* pub(crate) $name: $of,)*
        }

        impl $type {
            fn with_defaults() -> Self {
                Self { $($shared: $shared_default,)* $($name: $default,)* }
            }

            fn first_difference(&self, other: &Self) -> Option<&'static str> {
                let differ = [$((stringify!($shared), self.$shared != other.$shared)),*];
                differ.into_iter().find_map(|(name, differs)| differs.then_some(name))
            }
        }
    };
}

/// Declares the setters of a type. The second part says where its fields are. A field that has no value by default is
/// marked with `=> Some`.
macro_rules! setters {
    ($type:ident, $this:ident => $fields:expr; $($(#[$doc:meta])* $name:ident: $of:ty $(=> $some:ident)?;)*) => {
        impl $type {
            $(
                $(#[$doc])*
                pub fn $name(self, $name: $of) -> Self {
                    let mut $this = self;
                    $fields.$name = $($some)?($name);
                    $this
                }
            )*
        }
    };
}

pub(super) use {setters, settings};
