//! The language of sentences.

/// A language that analysis and reports speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Japanese.
    Ja,
}

impl Lang {
    /// The language of its two letters (ISO 639-1).
    pub fn of_code(code: &str) -> Option<Lang> {
        [Lang::En, Lang::Ja].into_iter().find(|lang| lang.code() == code)
    }

    /// Its two letters.
    pub fn code(self) -> &'static str {
        self.pick("en", "ja")
    }

    /// What is said in this language.
    pub(crate) fn pick<T>(self, en: T, ja: T) -> T {
        match self {
            Lang::En => en,
            Lang::Ja => ja,
        }
    }
}
