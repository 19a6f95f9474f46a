//! The I/O benchmark: fio's options and reports, on an engine of its own.
//!
//! `spec` turns command lines and job files into jobs (`job`). `layout` makes their files, and refuses what could harm.
//! `run` starts one thread for each clone of a job, with an engine (`engine`), the sequence of its blocks (`pattern`) and
//! what is written (`content`, `check`), and gathers what was measured (`outcome`, `stats`). `output` says it in fio's
//! words and fio's JSON.

/// Declares a struct of options and its `Default`: a field is `name: Type = value`, or `name: Type` where it has the default of
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

pub mod check;
pub mod content;
mod engine;
pub mod job;
pub mod layout;
pub mod outcome;
pub mod output;
pub mod pattern;
mod random;
pub mod run;
pub mod spec;
pub mod stats;
pub mod steady;
