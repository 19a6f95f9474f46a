//! The names that `--cvs-exclude` skips: rsync(1)'s list, then the user's `~/.cvsignore` and `$CVSIGNORE`.

use super::rule::split_rules;

/// The names that the manual page lists under `--cvs-exclude`.
const DEFAULT: &[u8] = b"RCS SCCS CVS CVS.adm RCSLOG cvslog.* tags TAGS .make.state .nse_depinfo *~ #* .#* ,* _$* *$ \
*.old *.bak *.BAK *.orig *.rej .del-* *.a *.olb *.o *.obj *.so *.exe *.Z *.elc *.ln core .svn/ .git/ .hg/ .bzr/";

/// One name to ignore.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CvsPattern {
    pub pattern: Vec<u8>,
    /// True for the default list only: the user's own names still protect inside directories being deleted.
    pub perishable: bool,
    /// It is from the user's file.
    pub in_file: bool,
}

/// Returns the whole list, in order. A lone `!` in the user's names drops the names before it.
pub(super) fn patterns(home: Option<&[u8]>, env: Option<&[u8]>) -> Vec<CvsPattern> {
    let mut list = Vec::new();
    let sources = [(Some(DEFAULT), true, false), (home, false, true), (env, false, false)];
    for (source, perishable, in_file) in sources {
        for (_, word) in split_rules(source.unwrap_or_default(), false, true) {
            if word == b"!" {
                list.clear();
            } else {
                list.push(CvsPattern { pattern: word.to_vec(), perishable, in_file });
            }
        }
    }
    list
}
