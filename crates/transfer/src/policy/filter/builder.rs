//! Collects filter options in command-line order and builds a [`Filter`] from them.

use std::io;

use super::{
    Filter, cvs,
    error::{FilterError, line_of},
    list::{Draft, Loader, Options, Place, Spot},
    matcher::Anchor,
    rule::{self, Directive, Flags, MatchRule, Style, Syntax},
};

/// Collects the filter options in command-line order. See rsync(1), FILTER RULES.
#[derive(Debug, Default)]
pub struct FilterBuilder {
    rules: Vec<ParsedRule>,
    per_directory_count: usize,
    cvs_exclude: bool,
    cvs_home: Option<Vec<u8>>,
    cvs_env: Option<Vec<u8>>,
    delete_excluded: bool,
    from0: bool,
}

/// A parsed rule, its text and its origin.
#[derive(Debug)]
struct ParsedRule {
    directive: Directive,
    text: Vec<u8>,
    origin: String,
}

impl FilterBuilder {
    /// Adds `--filter=RULE`, `-f RULE`: one rule with its name.
    ///
    /// # Errors
    /// The rule has an unknown name, a modifier that it does not allow, or lacks its argument.
    pub fn rule(&mut self, text: &[u8]) -> Result<(), FilterError> {
        self.add(text, Syntax::Full, "--filter")
    }

    /// Adds `--include=PATTERN`: a pattern; a leading `- ` makes it an exclude, `!` clears the list.
    ///
    /// # Errors
    /// There is nothing after `- ` or `+ `.
    pub fn include(&mut self, pattern: &[u8]) -> Result<(), FilterError> {
        self.add(pattern, Syntax::Simple { include: true }, "--include")
    }

    /// Adds `--exclude=PATTERN`: a pattern; a leading `+ ` makes it an include, `!` clears the list.
    ///
    /// # Errors
    /// There is nothing after `- ` or `+ `.
    pub fn exclude(&mut self, pattern: &[u8]) -> Result<(), FilterError> {
        self.add(pattern, Syntax::Simple { include: false }, "--exclude")
    }

    /// Adds all `--include` (true) and `--exclude` patterns of a command line, in order, with the meaning they have
    /// in aws or s5cmd. They become rules where the first match counts.
    pub fn styled(&mut self, style: Style, patterns: &[(bool, Vec<u8>)]) {
        let mut rules: Vec<(bool, Vec<u8>)> = patterns.to_vec();
        match style {
            Style::Rsync => {}
            // In aws the last match counts.
            Style::Aws => rules.reverse(),
            Style::S5cmd => {
                rules.sort_by_key(|(include, _)| *include);
                if rules.iter().any(|(include, _)| *include) {
                    rules.push((false, b"*".to_vec()));
                }
            }
        }
        self.rules.extend(rules.into_iter().map(|(include, pattern)| {
            let flags = Flags { style, ..Flags::default() };
            let origin = if include { "--include" } else { "--exclude" }.to_owned();
            let text = pattern.clone();
            ParsedRule {
                directive: Directive::Match(MatchRule { include, flags, pattern }),
                text,
                origin,
            }
        }));
    }

    /// Adds `--include-from=FILE`: the file's content, one pattern per line (or NUL-terminated with `nul`, for
    /// `--from0`). `origin` names the file in messages.
    ///
    /// # Errors
    /// As for [`Self::include`], with the line.
    pub fn include_from(
        &mut self,
        content: &[u8],
        origin: &str,
        nul: bool,
    ) -> Result<(), FilterError> {
        self.add_all(content, origin, nul, Syntax::Simple { include: true })
    }

    /// Adds `--exclude-from=FILE`: the file's content, as for [`Self::include_from`].
    ///
    /// # Errors
    /// As for [`Self::exclude`], with the line.
    pub fn exclude_from(
        &mut self,
        content: &[u8],
        origin: &str,
        nul: bool,
    ) -> Result<(), FilterError> {
        self.add_all(content, origin, nul, Syntax::Simple { include: false })
    }

    /// Adds `-F`: the first call reads `.rsync-filter` in every directory from the root of the file system down, the
    /// second (`-FF`) excludes these files; further calls change nothing.
    ///
    /// # Errors
    /// None in practice; the rules are fixed.
    pub fn per_directory(&mut self) -> Result<(), FilterError> {
        self.per_directory_count += 1;
        match self.per_directory_count {
            1 => self.add(b"dir-merge /.rsync-filter", Syntax::Full, "-F"),
            2 => self.add(b"exclude .rsync-filter", Syntax::Full, "-FF"),
            _ => Ok(()),
        }
    }

    /// Adds `--cvs-exclude`, `-C`: the rules `:C` and `-C` after all others, regardless of the option's position.
    pub fn cvs_exclude(&mut self) {
        self.cvs_exclude = true;
    }

    /// Sets the content of `~/.cvsignore` and the value of `$CVSIGNORE`, for [`Self::cvs_exclude`] and the rule `-C`.
    pub fn cvs_ignores(&mut self, home: Option<&[u8]>, env: Option<&[u8]>) {
        self.cvs_home = home.map(<[u8]>::to_vec);
        self.cvs_env = env.map(<[u8]>::to_vec);
    }

    /// Sets `--delete-excluded`: rules that name no side become the sender's, so they protect nothing.
    pub fn delete_excluded(&mut self, on: bool) {
        self.delete_excluded = on;
    }

    /// Sets `--from0`, `-0`: rules in merge files end at NUL instead of the end of the line.
    pub fn from0(&mut self, on: bool) {
        self.from0 = on;
    }

    /// Returns whether there are no rules, so that no filter is needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && !self.cvs_exclude
    }

    /// Builds the filter. `read` loads a file that a merge rule (`. FILE`) names, as written: relative to the working
    /// directory, `-` for standard input.
    ///
    /// # Errors
    /// A merge file cannot be read or holds an invalid rule.
    pub fn build(
        self,
        read: &mut dyn FnMut(&[u8]) -> io::Result<Vec<u8>>,
    ) -> Result<Filter, FilterError> {
        let options = Options {
            delete_excluded: self.delete_excluded,
            from0: self.from0,
            cvs: cvs::patterns(self.cvs_home.as_deref(), self.cvs_env.as_deref()),
        };
        let mut rules = self.rules;
        if self.cvs_exclude {
            rules.extend(ParsedRule::new(b":C", Syntax::Full, "--cvs-exclude")?);
            rules.extend(ParsedRule::new(b"-C", Syntax::Full, "--cvs-exclude")?);
        }
        let place = Place {
            anchor: Anchor::Below(Vec::new()),
            lead: Vec::new(),
            shown: Vec::new(),
            scanned: false,
        };
        let mut draft = Draft::default();
        let mut read = |name: &[u8]| read(name).map(Some);
        let mut loader = Loader::new(&options, &mut read, &[]);
        for ParsedRule { directive, text, origin } in rules {
            let spot = Spot { text: &text, origin: &origin, place: &place, depth: 0 };
            loader.add(&mut draft, directive, spot)?;
        }
        let doubtful = std::mem::take(&mut loader.doubtful);
        Ok(Filter::new(draft.items, options, doubtful))
    }

    fn add(&mut self, text: &[u8], syntax: Syntax, origin: &str) -> Result<(), FilterError> {
        self.rules.extend(ParsedRule::new(text, syntax, origin)?);
        Ok(())
    }

    fn add_all(
        &mut self,
        content: &[u8],
        origin: &str,
        nul: bool,
        syntax: Syntax,
    ) -> Result<(), FilterError> {
        for (line, parsed) in rule::parse_all(content, nul, false, syntax, Flags::default()) {
            let origin = line_of(Some(origin.as_bytes()), "", line);
            let parsed =
                parsed.map_err(|refused| FilterError::new(&[], &origin, refused.reason()))?;
            let text = Vec::new();
            self.rules.extend(parsed.map(|directive| ParsedRule { directive, text, origin }));
        }
        Ok(())
    }
}

impl ParsedRule {
    fn new(text: &[u8], syntax: Syntax, origin: &str) -> Result<Option<Self>, FilterError> {
        let parsed = rule::parse(text, syntax, Flags::default())
            .map_err(|refused| FilterError::new(text, origin, refused.reason()))?;
        Ok(parsed.map(|directive| Self {
            directive,
            text: text.to_vec(),
            origin: origin.to_owned(),
        }))
    }
}
