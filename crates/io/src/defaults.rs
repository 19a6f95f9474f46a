//! Structs of many options, whose fields have their defaults beside them.

/// Declares a struct and its `Default`: a field is `name: Type = value`, or `name: Type` where it has the default of
/// its type.
macro_rules! defaulted {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$doc:meta])* pub $field:ident: $type:ty $(= $value:expr)?,)*
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: defaulted!(@ $($value)?),)* }
            }
        }
    };
    (@ $value:expr) => { $value };
    (@) => { Default::default() };
}
