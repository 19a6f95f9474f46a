//! Measures and explains: campaigns of benchmarks, their analysis and reports, recordings of a machine's
//! load, charts.

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
pub(crate) fn product<T: Clone>(lists: impl IntoIterator<Item = Vec<T>>) -> Vec<Vec<T>> {
    lists.into_iter().fold(vec![Vec::new()], |found, list| {
        let longer =
            |start: &Vec<T>, item: &T| [start.as_slice(), std::slice::from_ref(item)].concat();
        found.iter().flat_map(|start| list.iter().map(move |item| longer(start, item))).collect()
    })
}
