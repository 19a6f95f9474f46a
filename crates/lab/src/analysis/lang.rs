//! Language of generated sentences.

/// Language of analysis and reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Japanese.
    Ja,
}

impl Lang {
    /// Parses an ISO 639-1 code.
    pub fn of_code(code: &str) -> Option<Lang> {
        [Lang::En, Lang::Ja].into_iter().find(|lang| lang.code() == code)
    }

    /// ISO 639-1 code.
    pub fn code(self) -> &'static str {
        self.pick("en", "ja")
    }

    /// Selects the text in this language.
    pub(crate) fn pick<T>(self, en: T, ja: T) -> T {
        match self {
            Lang::En => en,
            Lang::Ja => ja,
        }
    }
}
