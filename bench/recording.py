#!/usr/bin/env python3
"""Makes the recording that README.md shows: runs a command on a terminal of its own and draws what it printed, with
its timing, as an animated SVG. bench/recording.sh sets its scene.

usage: bench/recording.py [--columns N] [--output FILE] COMMAND [ARGUMENT...]

FILE is docs/images/demo.svg unless another is named. HAKOBU names the program that is typed as hakobu (default:
target/dist/hakobu or target/release/hakobu).

The picture begins with the finished screen, so that a still of it shows something; then it plays the run. The last
progress display stays above what follows it, where a terminal erases it. Where motion is not wanted
(prefers-reduced-motion, print), only the finished screen shows.
"""

import argparse
import fcntl
import html
import os
import pathlib
import pty
import re
import shutil
import struct
import sys
import tempfile
import termios
import time

LINE, COLUMN, EDGE = 19, 8.43, 18
# The finished screen at the beginning, the command line alone, and the shortest time that a screen shows.
STILL_S, TYPED_S, FRAME_S = 6.0, 1.2, 0.25
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>78]")
PROGRESS = re.compile(r"\[[=> ]+\] +\d+ ?%")


def record(command, columns):
    """Runs a command on a terminal; (seconds, text) of everything that it wrote, and its exit code."""
    begin, chunks = time.monotonic(), []
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        chunks.append((time.monotonic() - begin, data.decode("utf-8", "replace")))
    _, status = os.waitpid(pid, 0)
    return chunks, os.waitstatus_to_exitcode(status)


class Screen:
    """A terminal without a bottom: rows of characters, and the cursor."""

    def __init__(self, columns):
        self.columns, self.rows, self.row, self.column = columns, [[]], 0, 0

    def write(self, text):
        place = 0
        while place < len(text):
            found = ESCAPE.match(text, place)
            if found:
                self.escape(found.group())
                place = found.end()
                continue
            self.letter(text[place])
            place += 1

    def escape(self, code):
        number = int(re.sub(r"\D", "", code) or 1)
        if code.endswith("K"):
            kept = 0 if "2" in code else self.column
            self.rows[self.row] = self.rows[self.row][:kept]
        elif code.endswith("A"):
            self.row = max(0, self.row - number)
        elif code.endswith("B"):
            self.move_to(self.row + number)
        elif code.endswith("G"):
            self.column = number - 1

    def move_to(self, row):
        self.row = row
        while len(self.rows) <= row:
            self.rows.append([])

    def letter(self, letter):
        if letter == "\r":
            self.column = 0
        elif letter == "\n":
            self.move_to(self.row + 1)
        elif letter == "\b":
            self.column = max(0, self.column - 1)
        elif letter >= " ":
            # A line is wrapped by the letter that no longer fits; at a word, which is easier to read than a terminal's way.
            if self.column == self.columns:
                cells = self.rows[self.row]
                word = "".join(cells).rpartition(" ")[2] if letter != " " else ""
                word = word if len(word) < self.columns else ""
                del cells[len(cells) - len(word) :]
                self.move_to(self.row + 1)
                self.rows[self.row][: len(word)] = word
                self.column = len(word)
                if letter == " ":
                    return
            cells = self.rows[self.row]
            cells.extend(" " * (self.column + 1 - len(cells)))
            cells[self.column] = letter
            self.column += 1

    def lines(self):
        lines = ["".join(cells).rstrip() for cells in self.rows]
        while lines and not lines[-1]:
            lines.pop()
        return lines


def frames(chunks, columns):
    """What stood on the terminal: (seconds, lines) of each change, at most one in FRAME_S but the last two."""
    screen, found = Screen(columns), [(0.0, [])]
    for at, text in chunks:
        screen.write(text)
        if screen.lines() != found[-1][1]:
            found.append((at, screen.lines()))
    shows = [any(map(PROGRESS.match, lines)) for _, lines in found]
    last = len(found) - 1
    if any(shows) and not shows[-1]:
        # What the last progress display consists of is no longer there at the end.
        last = len(shows) - 1 - shows[::-1].index(True)
        bar = [row for row, line in enumerate(found[last][1]) if line and line not in found[-1][1]]
        for number in range(last + 1, len(found)):
            at, lines = found[number]
            lines = lines + [""] * (bar[0] - len(lines))
            found[number] = (at, lines[: bar[0]] + [found[last][1][row] for row in bar] + lines[bar[0] :])
    kept = [found[0]]
    for number, (at, lines) in enumerate(found[1:], 1):
        if at - kept[-1][0] >= FRAME_S or number >= last:
            kept.append((at, lines))
    return kept


def spans(shown):
    """Texts of the frames: (row, text, seconds from, seconds to or None at the end)."""
    found = []
    for row in range(max(len(lines) for _, lines in shown)):
        begin, before = 0.0, ""
        for at, lines in shown:
            text = lines[row] if row < len(lines) else ""
            if text != before:
                if before:
                    found.append((row, before, begin, at))
                begin, before = at, text
        if before:
            found.append((row, before, begin, None))
    return found


def draw(typed, shown, columns):
    """The picture: the finished screen, then the run. Texts that go are hidden where nothing moves."""
    total = STILL_S + TYPED_S + shown[-1][0] + FRAME_S
    height = (len(shown[-1][1]) + 1) * LINE + 2 * EDGE
    width = round(columns * COLUMN + 2 * EDGE)

    def share(at):
        return f"{100 * (STILL_S + TYPED_S + at) / total:.2f}%"

    style, body = [], [f'<text class="typed" x="{EDGE}" y="{EDGE + LINE * 0.75:.1f}">$ {html.escape(typed)}</text>']
    for number, (row, text, begin, end) in enumerate(spans(shown)):
        label = html.escape(text).replace(" ", "\u00a0")
        if end is None:
            still = 100 * STILL_S / total
            steps = f"0%{{opacity:1}}{still:.2f}%{{opacity:0}}{share(begin)},100%{{opacity:1}}"
        else:
            steps = f"0%{{opacity:0}}{share(begin)}{{opacity:1}}{share(end)},100%{{opacity:0}}"
        style.append(f"@keyframes k{number}{{{steps}}}#l{number}{{animation:k{number} {total:.2f}s step-end infinite}}")
        hidden = "" if end is None else ' opacity="0"'
        y = EDGE + LINE * (row + 1.75)
        body.append(f'<text id="l{number}"{hidden} x="{EDGE}" y="{y:.1f}">{label}</text>')
    spoken = html.escape(" ".join([f"$ {typed}.", *(line.strip() for line in shown[-1][1])]))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{spoken}">\n'
        "<style>text{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#d8dee9}"
        ".typed{fill:#fff;font-weight:bold}"
        f"{''.join(style)}"
        "@media (prefers-reduced-motion:reduce){text{animation:none!important}}"
        "@media print{text{animation:none!important}}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#20242c"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def main():
    top = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--output", type=pathlib.Path, default=top / "docs/images/demo.svg")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if not arguments.command:
        parser.error("no command, such as: hakobu demo")
    builds = [top / f"target/{kind}/hakobu" for kind in ("dist", "x86_64-unknown-linux-musl/dist", "release")]
    program = os.environ.get("HAKOBU") or next((str(path) for path in builds if path.exists()), "")
    if not os.access(program, os.X_OK):
        sys.exit("bench/recording.py: no program: build it, or name it with HAKOBU")
    with tempfile.TemporaryDirectory() as directory:
        os.symlink(os.path.abspath(program), f"{directory}/hakobu")
        os.environ["PATH"] = directory + os.pathsep + os.environ["PATH"]
        os.environ.update(LC_ALL="C.UTF-8", TERM="xterm", COLUMNS=str(arguments.columns))
        if not shutil.which(arguments.command[0]):
            sys.exit(f"bench/recording.py: there is no program {arguments.command[0]}")
        chunks, code = record(arguments.command, arguments.columns)
    if code != 0:
        sys.exit(f"{' '.join(arguments.command)}: exit code {code}; nothing is drawn")
    typed = " ".join(arguments.command)
    shown = frames(chunks, arguments.columns)
    arguments.output.write_text(draw(typed, shown, arguments.columns), encoding="utf-8")


if __name__ == "__main__":
    main()
