//! Sequence of pages of a listing.

use super::list_objects;
use super::types::{ListPage, ListQuery, Version};
use crate::ops::trust::{shown, untrusted};
use crate::{Client, Error};

/// A listing that is read page by page; names are in ascending order, also across pages.
pub struct Pages {
    query: ListQuery,
    /// Last key and last common prefix so far.
    last: (Vec<u8>, Vec<u8>),
    over: bool,
}

impl Pages {
    /// Starts with the page that the query describes.
    pub fn new(query: ListQuery) -> Pages {
        Pages { query, last: Default::default(), over: false }
    }

    /// Reads the next page; `None` after the last one. A page may be empty without being the last one.
    ///
    /// # Errors
    /// As [`list_objects`]; `Corrupt` for names out of order.
    pub async fn next(&mut self, client: &Client, bucket: &str) -> Result<Option<ListPage>, Error> {
        if self.over {
            return Ok(None);
        }
        let page = list_objects(client, bucket, &self.query).await?;
        self.follow(&page).map_err(|why| untrusted(Version::of(client).operation(), &why))?;
        self.query.continuation.clone_from(&page.next);
        self.over = page.next.is_none();
        Ok(Some(page))
    }

    /// Checks that a page follows the previous ones; returns the reason if not.
    fn follow(&mut self, page: &ListPage) -> Result<(), String> {
        let keys = page.objects.iter().map(|object| &object.key);
        ascend(&mut self.last.0, keys)?;
        ascend(&mut self.last.1, page.prefixes.iter())
    }
}

/// Checks that names ascend from `last` on, and sets `last` to the last name.
fn ascend<'n>(last: &mut Vec<u8>, names: impl Iterator<Item = &'n Vec<u8>>) -> Result<(), String> {
    let mut before = &*last;
    for name in names {
        // Names are never empty.
        if name <= before {
            return Err(format!("it is out of order: {} after {}", shown(name), shown(before)));
        }
        before = name;
    }
    let before = before.clone();
    *last = before;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Listed;
    use hakobu_core::unit::Time;

    fn page(keys: &[&str], prefixes: &[&str]) -> ListPage {
        let object = |key: &&str| Listed {
            key: key.as_bytes().to_vec(),
            size: 0,
            mtime: Time::default(),
            etag: Default::default(),
            storage_class: "".into(),
        };
        let prefixes = prefixes.iter().map(|prefix| prefix.as_bytes().to_vec()).collect();
        ListPage { objects: keys.iter().map(object).collect(), prefixes, next: None }
    }

    #[test]
    fn each_page_comes_after_the_one_before() {
        let mut pages = Pages::new(ListQuery::default());
        for fine in [page(&[], &[]), page(&["b", "d"], &["c/"]), page(&[], &[]), page(&[], &["e/"])]
        {
            pages.follow(&fine).unwrap();
        }
        for bad in
            [page(&["d"], &[]), page(&["g", "f"], &[]), page(&[], &["a/"]), page(&[], &["e/"])]
        {
            assert!(pages.follow(&bad).unwrap_err().contains("out of order"), "{bad:?}");
        }
    }
}
