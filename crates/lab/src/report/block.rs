//! Format-independent blocks of a report.

use super::table::Table;

/// A block of a report.
pub(super) enum Block {
    /// Heading of a section.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Sentences of equal rank.
    List(Vec<String>),
    /// Table.
    Table(Table),
}
