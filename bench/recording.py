#!/usr/bin/env python3
"""Makes the recording that README.md shows: runs a command on a terminal of its own and draws what it printed, with
its timing, as an animated SVG.

usage: bench/recording.py [--columns N] [--output FILE] COMMAND [ARGUMENT...]

FILE is docs/images/demo.svg unless another is named. HAKOBU names the program that is typed as hakobu (default:
target/dist/hakobu or target/release/hakobu). A line appears when it was last changed, so that progress bars show as
they ended. Where motion is not wanted (prefers-reduced-motion, print), the whole text shows at once.
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
# A pause while the command line is typed, and one at the end.
TYPED_S, PAUSE_S = 1.2, 4.0
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>78]")


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


def lines(chunks):
    """The lines that stood on the terminal at the end: (seconds of the last change, text)."""
    rows, row, column = [[0.0, []]], 0, 0
    for at, text in chunks:
        place = 0
        while place < len(text):
            found = ESCAPE.match(text, place)
            if found:
                code = found.group()
                place = found.end()
                number = int(re.sub(r"\D", "", code) or 1)
                if code.endswith("K"):
                    kept = column if "2" not in code else 0
                    rows[row][1] = rows[row][1][:kept]
                elif code.endswith("A"):
                    row = max(0, row - number)
                elif code.endswith("B"):
                    row = min(len(rows) - 1, row + number)
                elif code.endswith("G"):
                    column = number - 1
                continue
            letter = text[place]
            place += 1
            if letter == "\r":
                column = 0
            elif letter == "\n":
                row, column = row + 1, 0
                if row == len(rows):
                    rows.append([at, []])
            elif letter == "\b":
                column = max(0, column - 1)
            elif letter >= " ":
                cells = rows[row][1]
                cells.extend(" " * (column + 1 - len(cells)))
                cells[column] = letter
                rows[row][0] = at
                column += 1
    texts = [(at, "".join(cells).rstrip()) for at, cells in rows]
    while texts and not texts[-1][1]:
        texts.pop()
    return texts


def draw(typed, texts, columns):
    """The picture. Each line is hidden until its time within a loop."""
    total = TYPED_S + max(at for at, _ in texts) + PAUSE_S
    height = (len(texts) + 1) * LINE + 2 * EDGE
    width = round(columns * COLUMN + 2 * EDGE)
    style, body = [], []
    for number, (at, text) in enumerate([(None, f"$ {typed}"), *texts]):
        y = EDGE + LINE * (number + 0.75)
        label = html.escape(text).replace(" ", "\u00a0")
        kind = ' class="typed"' if at is None else ""
        if at is not None and text:
            share = 100 * (TYPED_S + at) / total
            style.append(
                f"@keyframes k{number}{{0%,{share:.2f}%{{opacity:0}}{share + 0.01:.2f}%,100%{{opacity:1}}}}"
                f"#l{number}{{animation:k{number} {total:.2f}s infinite}}"
            )
            kind = f' id="l{number}"'
        if text:
            body.append(f'<text{kind} x="{EDGE}" y="{y:.1f}">{label}</text>')
    spoken = html.escape(" ".join([f"$ {typed}.", *(text.strip() for _, text in texts)]))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{spoken}">\n'
        "<style>text{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#d8dee9}"
        ".typed{fill:#fff;font-weight:bold}@media (prefers-reduced-motion:reduce){text{animation:none!important}}"
        f"@media print{{text{{animation:none!important}}}}{''.join(style)}</style>\n"
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
        parser.error("give a command, such as: hakobu demo")
    builds = [top / f"target/{kind}/hakobu" for kind in ("dist", "x86_64-unknown-linux-musl/dist", "release")]
    program = os.environ.get("HAKOBU") or next((str(path) for path in builds if path.exists()), "")
    if not os.access(program, os.X_OK):
        sys.exit("bench/recording.py: there is no program: build it, or name it with HAKOBU")
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.abspath(program), f"{folder}/hakobu")
        os.environ["PATH"] = folder + os.pathsep + os.environ["PATH"]
        os.environ.update(LC_ALL="C.UTF-8", TERM="xterm", COLUMNS=str(arguments.columns))
        if not shutil.which(arguments.command[0]):
            sys.exit(f"bench/recording.py: there is no program {arguments.command[0]}")
        chunks, code = record(arguments.command, arguments.columns)
    if code != 0:
        sys.exit(f"{' '.join(arguments.command)}: exit code {code}; nothing is drawn")
    typed = " ".join(arguments.command)
    arguments.output.write_text(draw(typed, lines(chunks), arguments.columns), encoding="utf-8")


if __name__ == "__main__":
    main()
