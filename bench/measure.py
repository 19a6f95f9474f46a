"""Running contenders in turn, and statistics over what they took.

Runs of different contenders are interleaved (A B C, B C A, …), so that a machine that slows down slows all
of them. Ratios are taken inside each round and their median is reported with a bootstrap interval.
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys


def read_arguments(rows, begin=False, **options):
    """Reads the arguments of a benchmark with rows; --list prints the names of the rows and ends it. `options` are further
    ones with their types or defaults. With `begin` the beginning of a name stands for all rows that begin with it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--work")
    parser.add_argument("--hakobu")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", help=f"names {'or beginnings of names' if begin else 'of rows'}, separated by commas")
    for name, kind in options.items():
        is_type = isinstance(kind, type)
        parser.add_argument(f"--{name}", type=kind if is_type else type(kind), default=None if is_type else kind)
    parser.add_argument("results", nargs="?")
    args = parser.parse_args()
    if args.list:
        print("\n".join(rows))
        sys.exit()
    for name in ("work", "hakobu", "results"):
        if not getattr(args, name):
            parser.error(f"{name.upper()} is missing")
    args.rows = args.rows.split(",") if args.rows else [""] if begin else list(rows)
    for want in args.rows:
        if not any(name.startswith(want) if begin else name == want for name in rows):
            parser.error(f"no row {'begins with' if begin else 'is'} '{want}' (--list names them)")
    return args


def open_table(folder, name, head):
    """Opens a table of raw numbers to which rows are appended; a new one begins with `head`."""
    os.makedirs(folder, exist_ok=True)
    table = open(os.path.join(folder, name), "a", buffering=1)
    if table.tell() == 0:
        table.write("\t".join(head.split()) + "\n")
    return table


class Run:
    """One run of one contender: seconds, CPU seconds, peak KiB."""

    def __init__(self, code, wall, flushed, user, system, rss_kib):
        self.code, self.wall, self.flushed = code, wall, flushed
        self.user, self.system, self.cpu, self.rss_kib = user, system, user + system, rss_kib


class Contender:
    """A name for tables and the words of a command; its runs so far, and why it is out if it failed."""

    def __init__(self, name, words):
        self.name, self.words = name, words
        self.runs, self.failed = [], None

    def missing(self):
        return shutil.which(self.words[0]) is None

    def median(self, field="wall"):
        return statistics.median(getattr(run, field) for run in self.runs)


class Bench:
    """Where to work, how many rounds, and where raw numbers go."""

    HEAD = "series round place contender code wall_s flushed_s user_s sys_s rss_kib"
    TABLE = "raw.tsv"

    def __init__(self, work, results, rounds, scale):
        self.work, self.rounds, self.scale = work, rounds, scale
        self.results = results
        self.raw = open_table(results, self.TABLE, self.HEAD)

    def run(self, words, flush=None):
        report = os.path.join(self.work, "report")
        command = [os.path.join(self.work, "timed")]
        command += ["-s", flush] if flush else []
        subprocess.run(
            command + [report] + words,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=open(os.path.join(self.results, "stderr.log"), "a"),
        )
        fields = open(report).read().split()
        return Run(int(fields[0]), *map(float, fields[1:5]), int(fields[5]))

    def cells(self, run):
        """The columns of a run in the table of raw numbers, after its exit code."""
        return [f"{x:.6f}" for x in (run.wall, run.flushed, run.user, run.system)] + [run.rss_kib]

    def interleave(self, series, contenders, prepare, check=None, flush=None, rounds=None):
        """Runs all contenders `rounds` times in turn, after a round -1 that only warms up and after which
        `check(contender)` says what is wrong with the result, or nothing. `prepare(contender)` comes
        before each run and is not timed."""
        contenders = [c for c in contenders if not self.left_out(series, c)]
        for number in range(-1, rounds or self.rounds):
            turn = number % len(contenders)
            for place, contender in enumerate(contenders[turn:] + contenders[:turn]):
                if contender.failed:
                    continue
                prepare(contender)
                run = self.run(contender.words, flush)
                row = [series, number, place, contender.name, run.code, *self.cells(run)]
                self.raw.write("\t".join(map(str, row)) + "\n")
                wrong = f"exit code {run.code}" if run.code else None
                if not wrong and check and number < 0:
                    wrong = check(contender)
                if wrong:
                    contender.failed = wrong
                    print(f"{series}: {contender.name}: {wrong}", flush=True)
                    continue
                if number >= 0:
                    contender.runs.append(run)
        return [c for c in contenders if not c.failed]

    def left_out(self, series, contender):
        if contender.missing():
            print(f"{series}: {contender.name} is not installed and left out", flush=True)
            return True
        return False


def ratio(other, own, field="wall"):
    """How many times faster `own` was than `other`: median of the rounds' ratios, and the bounds
    between which 95 % of bootstrapped medians lie."""
    return spread([getattr(a, field) / getattr(b, field) for a, b in zip(other.runs, own.runs)])


def spread(pairs):
    """The median of ratios, and the bounds between which 95 % of bootstrapped medians lie."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(pairs, k=len(pairs))) for _ in range(2000))
    return statistics.median(pairs), medians[50], medians[1949]


def verdict(name, against, goal, measured, low=None, high=None, at_most=False, unit="×"):
    """One line of the table of goals."""
    met = measured <= goal if at_most else measured >= goal
    span = f" ({low:.2f} … {high:.2f})" if low is not None else ""
    sign = "≤" if at_most else "≥"
    goal_text = f"{sign} {goal:g} {unit}"
    name, against = name.replace("|", "\\|"), against.replace("|", "\\|")
    return f"| {name} | {against} | {goal_text} | **{measured:.2f} {unit}**{span} | {'yes' if met else 'NO'} |"


GOALS_HEAD = "| what | against | goal | measured (95 % interval) | met |\n|---|---|---|---|---|"
RUNS_HEAD = "| contender | wall s (median) | min … max | CPU s | peak MiB |\n|---|---|---|---|---|"


def runs_table(contenders, field="wall"):
    lines = [RUNS_HEAD]
    for c in contenders:
        if c.failed or not c.runs:
            lines.append(f"| {c.name} | {c.failed or 'left out'} | | | |")
            continue
        values = [getattr(run, field) for run in c.runs]
        name = c.name.replace("|", "\\|")
        lines.append(
            f"| {name} | {statistics.median(values):.3f} | {min(values):.3f} … {max(values):.3f} "
            f"| {c.median('cpu'):.2f} | {c.median('rss_kib') / 1024:.0f} |"
        )
    return "\n".join(lines)
