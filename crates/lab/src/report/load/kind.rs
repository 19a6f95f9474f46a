//! Kinds of curves in a load chart.

use crate::chart::{Color, Form};

/// A curve: key in the record, name, colour, form, divisor.
pub(super) struct Kind {
    pub(super) key: &'static str,
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) color: Color,
    pub(super) form: Form,
    pub(super) per: f64,
}
