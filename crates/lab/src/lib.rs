//! Measures and explains: campaigns of benchmarks, their analysis and reports, recordings of a machine's
//! load, charts.

/// Makes a type with a message an error. The errors that its variants consist of become it by `?`; these, and the field
/// `cause` of the variants behind the semicolon, are its source. Commands end with its message.
macro_rules! error_type {
    ($name:ident: $($wraps:ident($inner:ty)),*; $($has_cause:ident),*) => {
        impl std::error::Error for $name {
            #[allow(unreachable_patterns, reason = "other variants have no source")]
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                match self {
                    $($name::$wraps(inner) => Some(inner),)*
                    $($name::$has_cause { cause, .. } => Some(cause),)*
                    _ => None,
                }
            }
        }

        $(impl From<$inner> for $name {
            fn from(inner: $inner) -> $name {
                $name::$wraps(inner)
            }
        })*

        impl From<$name> for String {
            fn from(error: $name) -> String {
                error.to_string()
            }
        }
    };
}

pub mod analysis;
pub mod campaign;
mod chart;
mod escape;
pub mod record;
pub mod report;
pub mod results;
pub mod sweep;

/// Distinct items in the order of their first appearance.
pub(crate) fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

/// All combinations of one item of each list, the last one varying fastest.
pub fn product<T: Clone>(lists: impl IntoIterator<Item = Vec<T>>) -> Vec<Vec<T>> {
    lists.into_iter().fold(vec![Vec::new()], |found, list| {
        let longer =
            |start: &Vec<T>, item: &T| [start.as_slice(), std::slice::from_ref(item)].concat();
        found.iter().flat_map(|start| list.iter().map(move |item| longer(start, item))).collect()
    })
}
