//! A listing of entries that are at hand already.

use super::{Item, Listing, PAGE_ENTRIES, Page};
use std::collections::VecDeque;

/// A listing of these items, as they come; the order is checked as that of every listing. `encoded`
/// says that they sort as percent-encoded (see [`super::LocalQuery::encode`]).
pub fn memory(items: Vec<Item>, encoded: bool) -> Listing {
    let (sender, listing) = Listing::channel(encoded, false);
    let mut items = VecDeque::from(items);
    Listing::start(sender, "list-memory", move |sender| {
        while !items.is_empty() {
            let page = items.drain(..items.len().min(PAGE_ENTRIES)).collect();
            if sender.blocking_send(Page::Items(page)).is_err() {
                return;
            }
        }
        let _ = sender.blocking_send(Page::End);
    });
    listing
}
