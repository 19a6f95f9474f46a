//! ACLs as `--fake-super` keeps them in `user.rsync.%aacl` and `user.rsync.%dacl`. Pure functions.
//!
//! A value is a list of 32-bit little-endian numbers: the permissions of owner, group, mask and others, [`ABSENT`]
//! where there are none, then pairs of an ID and its permissions, with [`IS_USER`] for users. An access ACL leaves
//! out what the mode tells: owner, others, and the group if it equals the mask.

use crate::local::acl::{Entry, GROUP, GROUP_OBJ, MASK, OTHER, USER, USER_OBJ, entries, value_of};

const ABSENT: u32 = 0x80;
const IS_USER: u32 = 1 << 31;
const NO_ID: u32 = u32::MAX;

/// Turns the kernel's value of an ACL into rsync's. `access`: it is not a default ACL.
pub(super) fn encode(value: &[u8], access: bool) -> Vec<u8> {
    let all: Vec<Entry> = entries(value).collect();
    let of = |tag| all.iter().find(|entry| entry.tag == tag).map(|entry| u32::from(entry.bits));
    let (mask, group) = (of(MASK), of(GROUP_OBJ));
    let told = access && (mask.is_none() || mask == group);
    let head = [
        of(USER_OBJ).filter(|_| !access),
        group.filter(|_| !told),
        mask,
        of(OTHER).filter(|_| !access),
    ];
    let named = all.iter().filter(|entry| matches!(entry.tag, USER | GROUP)).flat_map(|entry| {
        let flag = if entry.tag == USER { IS_USER } else { 0 };
        [entry.id, u32::from(entry.bits) | flag]
    });
    let head = head.into_iter().map(|bits| bits.unwrap_or(ABSENT));
    head.chain(named).flat_map(u32::to_le_bytes).collect()
}

/// Turns rsync's value of an ACL into the kernel's. `mode`: permission bits that an access ACL leaves out. `None` if
/// it is not such a value.
pub(super) fn decode(value: &[u8], mode: Option<u32>) -> Option<Vec<u8>> {
    let (words, rest) = value.as_chunks::<4>();
    let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
    let mut head = || words.next();
    let (owner, group, mask, other) = (head()?, head()?, head()?, head()?);
    let words: Vec<u32> = words.collect();
    let (named, odd) = words.as_chunks::<2>();
    if !rest.is_empty() || !odd.is_empty() {
        return None;
    }
    let of_mode = |shift: u32| mode.map_or(0, |mode| mode >> shift & 7);
    let or = |bits: u32, told: u32| if bits == ABSENT { told } else { bits };
    let mut all = vec![
        (USER_OBJ, or(owner, of_mode(6)), NO_ID),
        (GROUP_OBJ, or(group, or(mask, of_mode(3))), NO_ID),
        (OTHER, or(other, of_mode(0)), NO_ID),
    ];
    if mask != ABSENT || !named.is_empty() {
        all.push((MASK, or(mask, of_mode(3)), NO_ID));
    }
    for [id, bits] in named {
        let tag = if bits & IS_USER != 0 { USER } else { GROUP };
        all.push((tag, bits & !IS_USER, *id));
    }
    let mut all: Vec<Entry> = all
        .into_iter()
        .map(|(tag, bits, id)| Some(Entry { tag, bits: u16::try_from(bits).ok()?, id }))
        .collect::<Option<_>>()?;
    // The order that the kernel requires.
    all.sort_by_key(|entry| (entry.tag, entry.id));
    all.iter().all(|entry| entry.bits < 8).then(|| value_of(&all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kernel(of: &[(u16, u16, u32)]) -> Vec<u8> {
        let all: Vec<Entry> =
            of.iter().map(|(tag, bits, id)| Entry { tag: *tag, bits: *bits, id: *id }).collect();
        value_of(&all)
    }

    fn words(of: &[u32]) -> Vec<u8> {
        of.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn values_are_those_of_rsync() {
        let one =
            kernel(&[(1, 6, NO_ID), (2, 6, 1000), (4, 6, NO_ID), (16, 6, NO_ID), (32, 4, NO_ID)]);
        let stored = words(&[ABSENT, ABSENT, 6, ABSENT, 1000, 6 | IS_USER]);
        assert_eq!(encode(&one, true), stored);
        assert_eq!(decode(&stored, Some(0o664)), Some(one));
        let two =
            kernel(&[(1, 7, NO_ID), (4, 5, NO_ID), (8, 7, 9), (16, 7, NO_ID), (32, 5, NO_ID)]);
        let stored = words(&[7, 5, 7, 5, 9, 7]);
        assert_eq!(encode(&two, false), stored);
        assert_eq!(decode(&stored, None), Some(two));
        for bad in
            [&b""[..], b"abc", &words(&[1, 2, 3]), &words(&[1, 2, 3, 4, 5]), &words(&[9, 0, 0, 0])]
        {
            assert_eq!(decode(bad, None), None);
        }
    }

    proptest! {
        #[test]
        fn an_acl_survives(
            bits in prop::array::uniform4(0u16..8),
            users in prop::collection::btree_map(0u32..9, 0u16..8, 0..3),
            groups in prop::collection::btree_map(0u32..9, 0u16..8, 0..3),
            access in any::<bool>(),
        ) {
            let [owner, group, mask, other] = bits;
            let mut of = vec![(USER_OBJ, owner, NO_ID)];
            of.extend(users.iter().map(|(id, bits)| (USER, *bits, *id)));
            of.push((GROUP_OBJ, group, NO_ID));
            of.extend(groups.iter().map(|(id, bits)| (GROUP, *bits, *id)));
            of.push((MASK, mask, NO_ID));
            of.push((OTHER, other, NO_ID));
            let value = kernel(&of);
            let mode = u32::from(owner) << 6 | u32::from(mask) << 3 | u32::from(other);
            let stored = encode(&value, access);
            prop_assert_eq!(decode(&stored, access.then_some(mode)), Some(value));
        }

        #[test]
        fn no_value_is_too_strange(value in prop::collection::vec(any::<u8>(), 0..60), mode in 0u32..512) {
            let _ = decode(&value, Some(mode));
        }
    }
}
