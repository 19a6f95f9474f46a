//! Languages of the texts that people read.

/// Language of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Japanese.
    Japanese,
}

impl Language {
    /// All languages.
    pub const ALL: [Language; 2] = [Language::English, Language::Japanese];

    /// Parses an ISO 639-1 code.
    pub fn of_code(code: &str) -> Option<Language> {
        Language::ALL.into_iter().find(|language| language.code() == code)
    }

    /// Returns the ISO 639-1 code.
    pub fn code(self) -> &'static str {
        self.pick("en", "ja")
    }

    /// Selects the text in this language.
    pub fn pick<T>(self, english: T, japanese: T) -> T {
        match self {
            Language::English => english,
            Language::Japanese => japanese,
        }
    }
}

/// A text in both languages, for what is named in one place and shown in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bilingual {
    /// In English; the value of JSON fields.
    pub english: &'static str,
    /// In Japanese.
    pub japanese: &'static str,
}

impl Bilingual {
    /// A name that is the same in both, such as that of an option.
    pub fn same(name: &'static str) -> Bilingual {
        Bilingual { english: name, japanese: name }
    }

    /// Returns the text in a language.
    pub fn in_language(self, language: Language) -> &'static str {
        language.pick(self.english, self.japanese)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        assert_eq!(Language::of_code("ja"), Some(Language::Japanese));
        assert_eq!(Language::of_code("en"), Some(Language::English));
        assert_eq!(Language::of_code("de"), None);
    }
}
