//! Setters, each declared once: by the name and the type of its field.
//!
//! Owns: the macro. Leaves out: setters that do more than to set a field.

/// Declares the setters of a type. The second part says where its fields are.
macro_rules! setters {
    ($type:ident, $this:ident => $fields:expr; $($(#[$doc:meta])* $name:ident: $of:ty;)*) => {
        impl $type {
            $(
                $(#[$doc])*
                pub fn $name(self, $name: $of) -> Self {
                    let mut $this = self;
                    $fields.$name = $name;
                    $this
                }
            )*
        }
    };
}

pub(super) use setters;
