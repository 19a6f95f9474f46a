//! Parameters of commands, and the style of output.

/// A parameter and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub name: String,
    pub values: Vec<String>,
}

impl Parameter {
    /// Returns whether a text contains it.
    pub fn stands_in(&self, text: &str) -> bool {
        text.contains(&format!("{{{}}}", self.name))
    }
}

/// Output style of the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Colours and a progress line on a terminal.
    #[default]
    Auto,
    /// Neither.
    Basic,
    /// Both, on any output.
    Full,
    /// A progress line only.
    NoColor,
    /// Colours only.
    Color,
}

impl Style {
    /// Returns whether to use colours; `None`: on a terminal.
    pub fn has_color(self) -> Option<bool> {
        match self {
            Style::Auto => None,
            Style::Basic | Style::NoColor => Some(false),
            Style::Full | Style::Color => Some(true),
        }
    }

    /// Returns whether to show a progress line; `None`: on a terminal.
    pub fn is_interactive(self) -> Option<bool> {
        match self {
            Style::Auto => None,
            Style::Basic | Style::Color => Some(false),
            Style::Full | Style::NoColor => Some(true),
        }
    }
}

/// Order of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Command-line order.
    #[default]
    Command,
    /// Fastest first.
    Time,
}
