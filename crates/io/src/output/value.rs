//! JSON whose keys keep the order in which they are given.

use hakobu_core::unit::Machine;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// A value.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Json<'a> {
    Flag(bool),
    Whole(u64),
    Signed(i64),
    Real(f64),
    Text(Cow<'a, str>),
    Machine(&'a Machine),
    List(Vec<Json<'a>>),
    Object(Object<'a>),
    /// Its key is left out.
    Nothing,
}

/// Keys and values.
pub(super) struct Object<'a>(Vec<(Cow<'a, str>, Json<'a>)>);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for (key, value) in self.0.iter().filter(|(_, value)| !matches!(value, Json::Nothing)) {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'a> Json<'a> {
    /// An object of keys and values that are worked out.
    pub(super) fn table<K: Into<Cow<'a, str>>, V: Into<Json<'a>>>(
        rows: impl IntoIterator<Item = (K, V)>,
    ) -> Json<'a> {
        let rows = rows.into_iter().map(|(key, value)| (key.into(), value.into()));
        Json::Object(Object(rows.collect()))
    }
}

macro_rules! from {
    ($($type:ty: $of:expr,)*) => {$(
        impl<'a> From<$type> for Json<'a> {
            fn from(value: $type) -> Json<'a> {
                $of(value)
            }
        }
    )*};
}

from! {
    bool: Json::Flag,
    u8: |value: u8| Json::Whole(value.into()),
    u16: |value: u16| Json::Whole(value.into()),
    u32: |value: u32| Json::Whole(value.into()),
    u64: Json::Whole,
    usize: |value| Json::Whole(value as u64),
    i32: |value: i32| Json::Signed(value.into()),
    f64: Json::Real,
    &'a str: |value: &'a str| Json::Text(value.into()),
    String: |value: String| Json::Text(value.into()),
    &'a Machine: Json::Machine,
}

impl<'a, T: Into<Json<'a>>> From<Vec<T>> for Json<'a> {
    fn from(list: Vec<T>) -> Json<'a> {
        Json::List(list.into_iter().map(Into::into).collect())
    }
}

impl<'a, T: Into<Json<'a>>> From<Option<T>> for Json<'a> {
    fn from(value: Option<T>) -> Json<'a> {
        value.map_or(Json::Nothing, Into::into)
    }
}

/// An object of the given keys and values, `"key": value`.
macro_rules! object {
    ($($key:literal: $value:expr,)*) => {
        Json::table([$(($key, Json::from($value))),*])
    };
}
pub(super) use object;
