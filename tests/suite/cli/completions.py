"""Completions in a real shell on a terminal: completions.py SHELL HAKOBU, in an empty folder. A line is typed, then TAB,
and what the shell writes is read. The line is thrown away afterwards."""

import os
import re
import subprocess
import sys

import on_terminal

SHELL, HAKOBU = sys.argv[1], sys.argv[2]

# A line, words that TAB must offer or complete, and words that it must not.
CASES = [
    ("hakobu clu", ["cluster"], []),
    ("hakobu cluster ", ["plan", "work", "status", "collect", "submit"], ["sync"]),
    ("hakobu cluster sta", ["status"], []),
    ("hakobu cluster status --", ["--textfile", "--once"], ["--slurm"]),
    ("hakobu cluster submit --sl", ["--slurm"], []),
    ("hakobu cluster submit run --nod", ["--nodes"], []),
    ("hakobu cluster plan --del", ["--delete"], []),
    ("hakobu serve ", ["s3", "null"], []),
    ("hakobu serve null --ke", ["--keys"], []),
    ("hakobu serve s3 --acc", ["--access-key"], []),
    ("hakobu results ", ["show", "export"], []),
    ("hakobu mpu ab", ["abort"], []),
    ("hakobu completions z", ["zsh"], []),
    ("hakobu help lim", ["limits"], []),
    ("hakobu man clu", ["cluster"], []),
    ("hakobu sync --bwl", ["--bwlimit"], []),
    # Options after operands.
    ("hakobu sync folder/ --bwl", ["--bwlimit"], []),
    ("hakobu cp folder/ other/ --sym", ["--symbolic-link"], []),
    ("hakobu mv file-one --no-clo", ["--no-clobber"], []),
    # Operands, also after options.
    ("hakobu cp fi", ["file-one"], []),
    ("hakobu sync -a folder/ oth", ["other"], []),
    # Values: files, and fixed words.
    ("hakobu sync --files-from fi", ["file-one"], []),
    ("hakobu sync folder/ other/ --lang ", ["en", "ja"], []),
    ("hakobu cp --sparse al", ["always"], []),
    ("hakobu sync --addressing-style vi", ["virtual"], []),
    ("hakobu sync --addressing-style=vi", ["virtual"], []),
    ("hakobu results export --format hy", ["hyperfine"], []),
]

START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
SETUP = {
    "bash": ["bind 'set bell-style none'", "bind 'set show-all-if-ambiguous on'",
             "bind 'set page-completions off'", "bind 'set completion-query-items 0'", "source ./script"],
    "zsh": ["PS1='$ '", "unsetopt BEEP", "LISTMAX=10000", "autoload -U compinit", "compinit -u -D",
            "source ./script"],
    "fish": ["function fish_prompt; echo -n '$ '; end", "source ./script"],
}


def plain(text):
    """The text without the sequences of a terminal."""
    text = re.sub(r"\x1b\][^\x07\x1b]*(\x07|\x1b\\)", "", text)
    return re.sub(r"\x1b[\[(][\d;?]*[ -/]*[@-~]|\x1b[=>]", "", text)


def has(text, word):
    return re.search(rf"(?<![\w/-]){re.escape(word)}(?![\w-])", text) is not None


def settled(terminal, least=0.3):
    """Waits until nothing is written any more."""
    size = -1
    while size != len(terminal.said):
        size = len(terminal.said)
        terminal.pause(least)


os.makedirs("folder")
os.makedirs("other")
open("file-one", "w").close()
with open("script", "wb") as script:
    script.write(subprocess.run([HAKOBU, "completions", SHELL], check=True, stdout=subprocess.PIPE).stdout)
os.makedirs("bin")
os.symlink(HAKOBU, "bin/hakobu")
home = os.path.abspath("home")
os.makedirs(home)
terminal = on_terminal.Terminal(
    *START[SHELL], columns=200, HOME=home, XDG_CONFIG_HOME=home, XDG_DATA_HOME=home,
    PATH=os.path.abspath("bin") + ":" + os.environ["PATH"],
)
settled(terminal, 1)
for line in SETUP[SHELL]:
    terminal.type(line + "\r")
    settled(terminal)
terminal.type("echo rea''dy\r")
terminal.wait("the shell", lambda: "ready\r" in plain(terminal.said))
settled(terminal)

wrong = []
for line, wanted, unwanted in CASES:
    before = len(terminal.said)
    terminal.type(line)
    settled(terminal, 0.1)
    shown = len(terminal.said)
    terminal.type("\t")

    def answer():
        # What was typed is repeated after a list.
        return plain(terminal.said[shown:]).replace(line, " ")

    def complete():
        # The rest of a word that has one end is written behind what was typed.
        return line.split(" ")[-1] + answer().lstrip("\a ") if answer() else ""

    def there(word):
        return has(answer(), word) or has(complete(), word)

    for _ in range(60):
        terminal.pause(0.1)
        if all(there(word) for word in wanted):
            break
    settled(terminal, 0.1)
    missing = [word for word in wanted if not there(word)]
    extra = [word for word in unwanted if there(word)]
    if missing or extra:
        wrong.append(f"{line!r}: missing {missing}, extra {extra}: {answer()!r}")
    terminal.type("\x03")
    settled(terminal, 0.1)
terminal.type("exit\r")
if wrong:
    terminal.fail(SHELL + ":\n" + "\n".join(wrong))
print("as it should be")
