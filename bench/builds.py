"""The rows of builds.sh: one command of two programs in turn, with the same sources, targets and server."""

import argparse
import os
import shutil
import statistics

from cells import Server
from measure import Bench, Contender, ratio
from volumes import Volumes, sh


def local(bench, kind, fs, *options):
    """A copy of a tree to an empty file system."""

    def row(work, name):
        source, target = bench.volumes.tree(kind), bench.volumes.mounted(fs)
        words = ["sync", "-a", *options, source + "/", target + "/out/"]
        contenders = bench.both(words)
        if kind == "nested" and fs != "tmpfs":
            contenders.append(Contender("ruler", [work + "/ruler", source, target + "/out", "d", "2"]))
        bench.compare(name, contenders, lambda _: bench.volumes.clear(target + "/out", target))

    return row


def auto(bench, fs):
    """A copy of a tree by the new build: with `-j 2`, in the place of the old one, and with `-j auto`."""

    def row(work, name):
        source, target = bench.volumes.tree("nested"), bench.volumes.mounted(fs)
        words = [bench.new, "sync", "-a", source + "/", target + "/out/"]
        ruler = [work + "/ruler", source, target + "/out", "d", "2"]
        contenders = [Contender("j2", [*words, "-j", "2"]), Contender("auto", words), Contender("ruler", ruler)]
        bench.compare(name, contenders, lambda _: bench.volumes.clear(target + "/out", target))

    return row


def again(bench, *options):
    """A second run that finds everything equal."""

    def row(_, name):
        source, target = bench.volumes.tree("nested"), bench.volumes.mounted("ext4") + "/out/"
        sh(bench.new, "sync", "-a", source + "/", target)
        bench.compare(name, bench.both(["sync", "-a", *options, source + "/", target]), lambda _: None)

    return row


def reading(bench, command, *options):
    """A command that reads a tree of 100,000 files on ext4, or removes it."""

    def row(_, name):
        tree = bench.volumes.mounted("ext4") + "/many"
        other = bench.volumes.tree("many")

        def prepare(_):
            if not os.path.isdir(tree):
                sh(bench.new, "sync", "-a", other + "/", tree + "/")
                sh("sync", "-f", tree)

        prepare(None)
        operands = [other + "/", tree + "/"] if command == "verify" else [tree]
        bench.compare(name, bench.both([command, *options, *operands]), prepare)

    return row


def put(bench, kind):
    def row(_, name):
        source = bench.volumes.tree(kind)
        server = bench.server(0)
        words = ["cp", "--endpoint-url", server.url, "-r", source + "/.", "s3://bench/up/"]
        bench.compare(name, bench.both(words), lambda _: None)
        server.stop()

    return row


def get(bench, keys, size):
    def row(_, name):
        server = bench.server(keys, "--object-size", str(size))
        target = bench.volumes.mounted("tmpfs") + "/out"
        words = ["cp", "--endpoint-url", server.url, "s3://bench/*", target + "/"]
        bench.compare(name, bench.both(words), lambda _: bench.volumes.clear(target, bench.work))
        server.stop()

    return row


def listing(bench, command, *options):
    def row(_, name):
        server = bench.server(1_000_000)
        words = [command, *options, "--endpoint-url", server.url, "s3://bench/"]
        bench.compare(name, bench.both(words), lambda _: None)
        server.stop()

    return row


def blocks(bench, *options):
    """Reads of 4 KiB, as many as it takes for a second or two."""

    def row(work, name):
        words = ["io", "--name=row", "--rw=randread", "--bs=4k", "--size=1g", f"--directory={work}", *options]
        bench.compare(name, bench.both(words), lambda _: None)

    return row


def start(bench):
    def row(_, name):
        bench.compare(name, bench.both(["--version"]), lambda _: None)

    return row


class Builds:
    def __init__(self, args):
        self.bench = Bench(args.work, args.results, args.rounds, 1.0)
        self.volumes = Volumes(args.work)
        self.work = args.work
        # A program as the linker wrote it lies in small pages of the page cache: it starts up to a fifth slower than the
        # same file once copied. So both are copied.
        self.old, self.new = (
            shutil.copy(program, os.path.join(args.work, name)) if program else ""
            for name, program in (("old", args.old), ("new", args.new))
        )
        self.lines = ["| row | old s | new s | old ÷ new (95 % interval) | ruler ÷ new |", "|---|---|---|---|---|"]

    def rows(self):
        return {
            "flat-tmpfs": local(self, "flat", "tmpfs"),
            "flat-ext4": local(self, "flat", "ext4"),
            "nested-ext4": local(self, "nested", "ext4"),
            "nested-ext4-j2": local(self, "nested", "ext4", "-j", "2"),
            "auto-ext4": auto(self, "ext4"),
            "nested-xfs": local(self, "nested", "xfs"),
            "nested-xfs-j2": local(self, "nested", "xfs", "-j", "2"),
            "auto-xfs": auto(self, "xfs"),
            "large-ext4": local(self, "large", "ext4"),
            "again": again(self),
            "again-j2": again(self, "-j", "2"),
            "again-checksum": again(self, "--checksum"),
            "verify": reading(self, "verify"),
            "du": reading(self, "du", "-s"),
            "du-j2": reading(self, "du", "-s", "-j", "2"),
            "rm": reading(self, "rm", "-r"),
            "put-small": put(self, "flat"),
            "put-medium": put(self, "medium"),
            "put-large": put(self, "large"),
            "get-small": get(self, 20_000, 4096),
            "get-medium": get(self, 600, 500_000),
            "get-large": get(self, 1, 1_000_000_000),
            "ls": listing(self, "ls", "-R"),
            "ls-du": listing(self, "du", "-s"),
            "io-psync": blocks(self, "--ioengine=psync", "--io_size=4g"),
            "io-uring": blocks(self, "--ioengine=io_uring", "--iodepth=32", "--io_size=2g"),
            "io-null": blocks(self, "--ioengine=null", "--io_size=40g"),
            "start": start(self),
        }

    def both(self, words):
        return [Contender("old", [self.old, *words]), Contender("new", [self.new, *words])]

    def server(self, keys, *options):
        server = Server(self.new, list(options))
        server.start(keys)
        return server

    def compare(self, name, contenders, prepare):
        old, new, *ruler = self.bench.interleave(name, contenders, prepare)
        middle, low, high = ratio(old, new)
        against = f"{ratio(ruler[0], new)[0]:.3f}" if ruler else ""
        times = [statistics.median(run.wall for run in one.runs) for one in (old, new)]
        line = f"| {name} | {times[0]:.4f} | {times[1]:.4f} | **{middle:.3f}** ({low:.3f} … {high:.3f}) | {against} |"
        print(line, flush=True)
        self.lines.append(line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rows", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("old", nargs="?", default="")
    parser.add_argument("new", nargs="?", default="")
    parser.add_argument("results", nargs="?", default="/dev/null")
    args = parser.parse_args()
    if args.list:
        args.work, args.results = "/tmp", "/tmp"
    builds = Builds(args)
    if args.list:
        return print("\n".join(builds.rows()))
    wanted = args.rows.split(",")
    for name, row in builds.rows().items():
        if any(name.startswith(one) for one in wanted):
            row(args.work, name)
            if name in ("flat-tmpfs", "auto-ext4", "auto-xfs", "large-ext4", "again-checksum", "rm"):
                builds.volumes.release()
    with open(os.path.join(args.results, "report.md"), "w") as report:
        report.write("\n".join(builds.lines) + "\n")


if __name__ == "__main__":
    main()
