"""The display of progress on terminals of several widths, with the keys of a user: display.py SCENARIO HAKOBU, in an
empty folder."""

import os
import re
import subprocess
import sys

import on_terminal

HAKOBU = sys.argv[2]
MIB = 1 << 20
# Columns that stay free for ^C.
FREE = 4

SIZE = r"[\d,.]+ (bytes?|[KMGT]B)"
PARTS = re.compile(
    rf"\d+%|{SIZE}( of (at least |about )?{SIZE})?|(\d+:)+\d\d left|(\d+:)+\d\d|completing upload \.\.\.|finishing \.\.\."
    rf"|[\d,]+(/[\d,]+| of at least [\d,]+)? files|(avg )?{SIZE}/s( \(avg {SIZE}/s\))?|[\d,]+ files/s"
    rf"|{SIZE} not on the device yet|[\d,]+ jobs?|no response for \d+ s|limited by [-\w]+( \w+)?|[\d,]+ failed"
)
BAR = re.compile(r"\[=*> *\] |[-|/\\] ")


class Terminal(on_terminal.Terminal):
    """A terminal with what is drawn on it."""

    def frames(self):
        """The pictures that were drawn: lines of each."""
        pictures = re.split(r"(?:\x1b\[A|\r|\x1b\[2K)+", self.said.replace("\r\n", "\n"))
        pictures = (picture.removesuffix("^C") for picture in pictures if "hakobu: " not in picture)
        return [picture.split("\n") for picture in pictures if re.search(r" files|MB", picture)]

    def screen(self):
        """The lines that are there now; those that wrapped are one."""
        lines, row, column, wrapped = [[]], 0, 0, set()
        for part in re.findall(r"\x1b\[\??[\d;]*[A-Za-z]|[\s\S]", self.said):
            lines.extend([] for _ in range(row + 1 - len(lines)))
            if part == "\r":
                column = 0
            elif part == "\n":
                row += 1
            elif part == "\x1b[A":
                row -= 1
            elif part == "\x1b[2K":
                lines[row] = []
            elif part == "\b":
                column -= 1
            elif not part.startswith("\x1b") and part != "\a":
                if column == self.columns:
                    row, column = row + 1, 0
                    wrapped.add(row)
                    lines.extend([] for _ in range(row + 1 - len(lines)))
                lines[row].extend(" " * (column + 1 - len(lines[row])))
                lines[row][column] = part
                column += 1
        texts = []
        for row, line in enumerate(lines):
            text = "".join(line)
            if row in wrapped:
                texts[-1] += text
            else:
                texts.append(text)
        return [text.rstrip() for text in texts if text.strip()]

    def text(self):
        return "\n".join(self.screen())


def check(terminal, frames):
    """No picture is wider than the terminal or holds a part of a word, and the bar takes the width that is left."""
    for frame in frames:
        for line in frame:
            if len(line) > terminal.columns - FREE:
                terminal.fail(f"{line!r} is too long")
            words = BAR.sub("", line, count=1)
            if line and not all(PARTS.fullmatch(part) for part in words.split(", ")):
                terminal.fail(f"{line!r} is cut")
        if len(frame) != 2:
            terminal.fail(f"{frame} has not two lines")
        if frame[0].startswith("[") and len(frame[0]) != terminal.columns - FREE:
            terminal.fail(f"{frame[0]!r} does not take the width")


def no_picture(terminal):
    """No line of the display is left."""
    for line in terminal.screen():
        if not line.startswith("hakobu: ") and re.search(r"\d%|/s|files|left|\[=|\^C", line):
            terminal.fail(f"{line!r} stays")


def many(files, size):
    for number in range(files):
        os.makedirs(f"many/{number % 20}", exist_ok=True)
        with open(f"many/{number % 20}/{number}", "wb") as file:
            file.write(b"x" * size)


def large(size):
    with open("large", "wb") as file:
        file.write(os.urandom(size))


def sync(columns, *words):
    return Terminal(HAKOBU, "sync", "-a", "--no-memory", *words, columns=columns)


def widths():
    many(2000, 16384)
    for columns in (60, 80, 120, 200, 30):
        terminal = sync(columns, "--bwlimit=8m", "many/", f"to{columns}/").expect(0)
        frames = terminal.frames()
        if len(frames) < 10:
            terminal.fail(f"{len(frames)} pictures")
        check(terminal, frames)
        # The names are counted a second after the start, the sizes soon after them.
        for frame in frames[3:]:
            if not re.search(r"\d+%", frame[0]) or not re.search(r"left|finishing", frame[0]):
                terminal.fail(f"{frame[0]!r} has no total")
            if frame[0].startswith("[") != (columns >= 60):
                terminal.fail(f"{frame[0]!r}: bar")
        no_picture(terminal)
        summary = [line for line in terminal.said.split("\n") if " files and " in line]
        if len(summary) != 1 or len(summary[0].split("\x1b[2K")[-1].strip()) > 100:
            terminal.fail(f"{summary}")


def is_drawn(terminal, count=4):
    return lambda: len(terminal.frames()) > count and "%" in terminal.frames()[-1][0]


def interrupted():
    large(64 * MIB)
    many(2000, 16384)
    again = "interrupted; run the same command again to continue"
    cases = (
        (("large", "one/"), "interrupted; the unfinished file was discarded (--partial keeps it)"),
        (("--partial", "large", "two/"), "the unfinished file was kept (--partial)"),
        (("many/", "three/"), again),
    )
    for columns in (60, 80, 200):
        for words, text in cases:
            terminal = sync(columns, "--bwlimit=8m", *words)
            terminal.wait("the bar", is_drawn(terminal))
            terminal.type("\x03")
            terminal.expect(20, f"hakobu: {text}")
            no_picture(terminal)
        subprocess.run(["rm", "-r", "one", "two", "three"], check=True)
    # cp has no --partial.
    terminal = Terminal(HAKOBU, "cp", "--bwlimit=8m", "large", "four", columns=80)
    terminal.wait("the bar", is_drawn(terminal))
    terminal.type("\x03")
    terminal.expect(1, "hakobu: interrupted; the unfinished file was discarded")
    if "(--" in terminal.text():
        terminal.fail("an option that cp does not have")


def stopped():
    """Time under Ctrl-Z counts neither in the mean nor in the summary, and the shell's lines stay."""
    large(48 * MIB)
    with open("line", "w") as file:
        file.write(f"{HAKOBU} sync -a --no-memory --bwlimit=8m large to/\n")
    terminal = Terminal("bash", "--norc", "-i", columns=100)
    terminal.type(". ./line\n")
    terminal.wait("the bar", is_drawn(terminal))
    terminal.type("\x1a")
    terminal.wait("the stop", lambda: "Stopped" in terminal.said)
    before = len(terminal.frames())
    terminal.pause(4)
    terminal.type("fg\n")
    terminal.wait("the bar", lambda: len(terminal.frames()) > before + 5)
    for frame in terminal.frames()[before + 3 :]:
        mean = re.search(r"\(avg ([\d.]+) MB/s\)", frame[-1])
        if mean and not 6.5 < float(mean[1]) < 10.5:
            terminal.fail(f"{frame}")
    terminal.wait("the summary", lambda: "1 file and " in terminal.said)
    terminal.pause(0.5)
    terminal.type("exit\n")
    terminal.code()
    screen = terminal.screen()
    summary = next((line for line in screen if "1 file and " in line), "")
    rate, stop = re.search(r", ([\d.]+) MB/s", summary), re.search(r" s and ([\d.]+) s stopped", summary)
    if not rate or not 6.5 < float(rate[1]) < 10.5 or not stop or not 3.5 < float(stop[1]) < 6:
        terminal.fail(f"{summary!r}")
    if not any("Stopped" in line for line in screen):
        terminal.fail("the line of the shell is gone")
    if not any(line.startswith("hakobu: ") and "--bwlimit" in line for line in screen):
        terminal.fail("the bottleneck is not known")


def objects():
    """At the end of an upload in parts, the server puts them together; and what an interruption leaves of it."""
    os.makedirs("root/bucket")
    large(24 * MIB)
    names = dict(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret", AWS_REGION="us-east-1")
    server = subprocess.Popen(
        [HAKOBU, "serve", "s3", "root", "--latency", "1500ms"],
        stdout=subprocess.PIPE,
        env={**os.environ, **names},
        text=True,
    )
    try:
        url = server.stdout.readline().split()[-1]
        copy = (HAKOBU, "cp", "--part-size=8MiB", "large", "s3://bucket/key")
        names.update(AWS_ENDPOINT_URL=url, AWS_EC2_METADATA_DISABLED="true")
        terminal = Terminal(*copy, columns=80, **names).expect(0)
        check(terminal, terminal.frames())
        if not any(frame[0].endswith(", completing upload ...") for frame in terminal.frames()):
            terminal.fail("nothing is said of the end")
        if any("25.17 MB of 25.17 MB, 0:00 left" in frame[0] for frame in terminal.frames()):
            terminal.fail("a time of zero")
        no_picture(terminal)
        for more, text in (
            ([], "the unfinished file was discarded (--resume keeps uploaded parts)"),
            (["--resume"], "uploaded parts are kept (--resume)"),
        ):
            terminal = Terminal(*copy, "--bwlimit=4m", *more, columns=120, **names)
            terminal.wait("the bar", lambda: "MB/s" in terminal.said and is_drawn(terminal)())
            terminal.type("\x03")
            terminal.expect(1, text)
            no_picture(terminal)
    finally:
        server.kill()
        server.wait()


globals()[sys.argv[1]]()
print("as it should be")
