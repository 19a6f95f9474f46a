//! A listing of entries in memory.

use super::{Item, Listing, send_all};

/// Lists these items in the given order, which is checked as in every listing. `encoded`: they sort by
/// percent-encoded names (see [`super::LocalQuery::encode`]).
pub fn memory(items: Vec<Item>, encoded: bool) -> Listing {
    let (sender, listing) = Listing::channel(encoded, false);
    Listing::start(sender, "list-memory", move |sender| send_all(&sender, items.into_iter()));
    listing
}
