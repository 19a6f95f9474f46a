"""The rows of docs/benchmarks/local.md. Started by local.sh, which builds the tools and cleans up."""

import os
import platform
import shutil

import trees
from measure import GOALS_HEAD, Bench, Contender, ratio, read_arguments, runs_table, verdict
from volumes import Volumes, sh

CORES = len(os.sched_getaffinity(0))


class Local:
    def __init__(self, args):
        self.bench = Bench(args.work, args.results, args.rounds, args.scale)
        self.work, self.hakobu, self.scale = args.work, os.path.abspath(args.hakobu), args.scale
        self.volumes = Volumes(args.work, args.scale)
        self.sections = []

    def sync(self, options, source, target):
        return [self.hakobu, "sync", *options.split(), source + "/", target]

    def add(self, title, *parts):
        text = f"### {title}\n\n" + "\n\n".join(parts) + "\n"
        self.sections.append(text)
        print("\n" + text, flush=True)

    # Rows

    def copies(self, fs, kind):
        volume, source = self.volumes.mounted(fs), self.volumes.tree(kind)
        target = os.path.join(volume, "target")
        ruler, threads = os.path.join(self.work, "ruler"), str(CORES)
        floor_d = Contender(f"ruler d, {CORES} threads", [ruler, source, target, "d", threads])
        floor_t = Contender(f"ruler t, {CORES} threads", [ruler, source, target, "t", threads])
        cp = Contender("cp", ["cp", "-a", source, target])
        rsync = Contender("rsync -a", ["rsync", "-a", source + "/", target])
        quick = [
            Contender("xcp -r", ["xcp", "-r", "--no-progress", source, target]),
            Contender("fcp", ["fcp", source, target]),
            Contender("cpz", ["cpz", source, target]),
        ]
        a = Contender("hakobu sync -a", self.sync("-a", source, target))
        full = Contender("hakobu sync -aHAX", self.sync("-aHAX", source, target))
        unnamed = Contender("hakobu sync -a --size-only", self.sync("-a --size-only", source, target))
        one = Contender("hakobu sync -a -j 1", self.sync("-a -j 1", source, target))
        everyone = [floor_d, floor_t, cp, rsync, *quick, a, full, unnamed, one]
        count = sum(len(files) for _, _, files in os.walk(source))

        def check(_):
            copied = sum(len(files) for _, _, files in os.walk(target))
            return None if copied == count else f"copied {copied} of {count} files"

        good = self.bench.interleave(
            f"copy-{fs}-{kind}", everyone, lambda _: self.volumes.clear(target, volume), check
        )
        self.volumes.clear(target, volume)
        lines = [GOALS_HEAD]

        def goal(own, other, least):
            if own in good and other in good:
                lines.append(verdict(own.name, other.name, least, *ratio(other, own)))

        goal(a, floor_d, 0.90)
        goal(full, a, round(1 / 1.12, 3))
        goal(unnamed, floor_t, 0.95)
        goal(a, cp, 1.8 if kind == "flat" else 3.0)
        goal(a, rsync, 3.3)
        fast = [c for c in quick if c in good]
        if fast:
            goal(a, min(fast, key=lambda c: c.median()), 0.93)
        goal(one, cp, 1.1)
        self.add(f"{kind} tree to {fs} ({count:,} files)", "\n".join(lines), runs_table(everyone))

    def unchanged(self, fs, kind):
        volume, source = self.volumes.mounted(fs), self.volumes.tree(kind)
        target = os.path.join(volume, "target")
        self.volumes.clear(target, volume)
        sh("rsync", "-a", source + "/", target)
        sh(*self.sync("-a", source, target))
        rsync = Contender("rsync -a", ["rsync", "-a", source + "/", target])
        own = Contender("hakobu sync -a", self.sync("-a", source, target))
        before = newest(target)
        good = self.bench.interleave(f"unchanged-{fs}-{kind}", [rsync, own], lambda _: None)
        lines = [GOALS_HEAD]
        if rsync in good and own in good:
            lines.append(verdict(own.name, rsync.name, 2.5, *ratio(rsync, own)))
        changed = newest(target) != before
        lines.append(f"| {own.name} | | writes nothing | {'inodes changed' if changed else 'no inode changed'} | {'NO' if changed else 'yes'} |")
        self.volumes.clear(target, volume)
        self.add(f"second run, nothing changed, {kind} tree on {fs}", "\n".join(lines), runs_table([rsync, own]))

    def tiny(self):
        volume, source = self.volumes.mounted("ext4"), self.volumes.tree("tiny")
        target = os.path.join(volume, "target")
        recipe = f"cd {source} && find . -type f | parallel -j 32 rsync -avR {{}} {target}/"
        known = Contender("find … | parallel -j 32 rsync -avR", ["sh", "-c", recipe])
        own = Contender("hakobu sync -avR", [self.hakobu, "sync", "-avR", source + "/./", target + "/"])
        if shutil.which("parallel") is None:
            return self.add("2,000 tiny files", "GNU parallel is not installed: left out.")

        def prepare(_):
            self.volumes.clear(target, volume)
            os.mkdir(target)

        good = self.bench.interleave("tiny", [known, own], prepare)
        lines = [GOALS_HEAD]
        if len(good) == 2:
            lines.append(verdict(own.name, known.name, 200, *ratio(known, own)))
        self.volumes.clear(target, volume)
        self.add("2,000 tiny files to ext4", "\n".join(lines), runs_table([known, own]))

    def large(self, name, source_fs, target_fs, count, mib):
        """Files that are large beside the memory of caches: to the return, and to the end of syncfs."""
        self.volumes.release()
        self.volumes.remove_trees()
        size = max(16, int(mib * self.scale))
        gib = max(1, -(-count * size * 5 // 4096))
        source, volume = os.path.join(self.work, "source-large"), os.path.join(self.work, "large")
        os.makedirs(source, exist_ok=True)
        os.makedirs(volume, exist_ok=True)
        if source_fs != "tmpfs":
            self.volumes.mount(source_fs, source, gib)
        self.volumes.mount(target_fs, volume, gib)
        folder, target = os.path.join(source, "files"), os.path.join(volume, "files")
        os.makedirs(folder)
        for number in range(count):
            sh("dd", "if=/dev/urandom", f"of={folder}/{number}", "bs=1M", f"count={size}")
        sh("sync", "-f", source)
        cp = Contender("cp", ["cp", "-a", folder, target])
        rsync = Contender("rsync -W", ["rsync", "-aW", folder + "/", target])
        own_cp = Contender("hakobu cp", [self.hakobu, "cp", "-a", folder, target])
        own = Contender("hakobu sync -W", [self.hakobu, "sync", "-aW", folder + "/", target])
        everyone = [cp, rsync, own_cp, own]

        def prepare(_):
            shutil.rmtree(target, ignore_errors=True)
            sh("sync", "-f", volume)

        title = f"{count} × {size} MiB, {source_fs} to {target_fs}, attributes kept"
        good = self.bench.interleave(name, everyone, prepare, flush=volume)
        lines = [GOALS_HEAD]
        returned = 1.0 if count == 1 else 1.5
        for mine, other, field, least in [
            (own_cp, cp, "wall", returned), (own, cp, "wall", returned),
            (own_cp, cp, "flushed", 1.4), (own, cp, "flushed", 1.4), (own, rsync, "flushed", 2.0),
        ]:
            if mine in good and other in good:
                until = " to the end of syncfs" if field == "flushed" else ""
                lines.append(verdict(mine.name + until, other.name, least, *ratio(other, mine, field)))
        self.volumes.unmount(volume)
        if source_fs != "tmpfs":
            self.volumes.unmount(source)
        shutil.rmtree(source)
        self.add(title, "\n".join(lines), runs_table(everyone), runs_table(everyone, "flushed"))

    def memory(self):
        self.volumes.release()
        self.volumes.remove_trees()
        lines, limit = [GOALS_HEAD], 64
        target = os.path.join(self.volumes.mounted("tmpfs"), "target")

        def peak(name, kind, options, limit_mib, before=None):
            source = self.volumes.tree(kind)
            self.volumes.clear(target, self.work)
            if before:
                before()
            own = Contender(f"hakobu sync {options}", self.sync(options, source, target))
            run = self.bench.run(own.words)
            mib = run.rss_kib / 1024 if run.code == 0 else float("inf")
            what = f"{name}, {run.wall:.1f} s, exit code {run.code}"
            lines.append(verdict(own.name, what, round(limit_mib, 1), mib, at_most=True, unit="MiB"))
            if kind != "empty-flat":
                sh("rm", "-rf", source)
            self.volumes.clear(target, self.work)

        count = int(1_000_000 * self.scale)
        peak(f"{count:,} files in one directory", "empty-flat", "-a", limit)

        def extraneous():
            os.makedirs(target)
            trees.make("empty-nested", f"{target}/old", self.scale)

        peak(f"{count:,} files, as many deleted", "empty-flat", "-a --delete", limit, extraneous)
        sh("rm", "-rf", self.volumes.tree("empty-flat"))
        peak(f"{count:,} files in {int(1000 * self.scale):,} directories", "empty-nested", "-a", limit)
        groups = int(100_000 * self.scale)
        peak(f"{groups:,} open hard-link groups", "links", "-aH", limit + groups * 100 / (1 << 20))
        self.add("memory", "\n".join(lines))

    def startup(self):
        target = os.path.join(self.volumes.mounted("tmpfs"), "target")
        os.makedirs(target, exist_ok=True)
        file = os.path.join(self.work, "one")
        with open(file, "w") as out:
            out.write("one file\n")
        lines = [GOALS_HEAD]
        for title, theirs, ours in [
            ("--version", ["cp", "--version"], [self.hakobu, "--version"]),
            ("copy of one file", ["cp", file, target], [self.hakobu, "cp", file, target]),
            ("sync of one file", ["cp", "-a", file, target], [self.hakobu, "sync", "-a", file, target]),
        ]:
            cp, own = Contender(" ".join(theirs[:2]), theirs), Contender("hakobu", ours)
            cp.name = "cp"

            def prepare(_):
                if os.path.exists(target + "/one"):
                    os.unlink(target + "/one")

            rounds = max(7, int(60 * min(1, self.scale)))
            if len(self.bench.interleave(f"startup-{title}", [cp, own], prepare, rounds=rounds)) == 2:
                more = (own.median() - cp.median()) * 1000
                lines.append(verdict(f"hakobu, {title}", f"cp: {cp.median() * 1000:.2f} ms", 3, more, at_most=True, unit="ms more"))
        self.add("start-up", "\n".join(lines))

    def environment(self):
        cpu = next((l.split(":", 1)[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "unknown")
        memory = int(open("/proc/meminfo").readline().split()[1]) / (1 << 20)
        lines = [
            f"- {cpu}, {CORES} cores, {memory:.0f} GiB of memory, Linux {platform.release()}",
            "- ext4 and XFS: made with defaults on loop images on tmpfs, mounted with defaults; sources on tmpfs",
            f"- {self.bench.rounds} interleaved rounds; the target removed and its file system flushed before each run",
            f"- {sh(self.hakobu, '--version').splitlines()[0]}, {sh('rsync', '--version').splitlines()[0].strip()}, "
            f"{sh('cp', '--version').splitlines()[0]}",
        ]
        if self.scale != 1:
            lines.append(f"- trees scaled by {self.scale}: not the figures that count")
        return "\n".join(lines)


def newest(root):
    """The newest change of any inode below `root`."""
    found = os.lstat(root).st_ctime_ns
    for path, dirs, files in os.walk(root):
        for name in dirs + files:
            found = max(found, os.lstat(os.path.join(path, name)).st_ctime_ns)
    return found


def rows(local):
    table = {}
    for fs in ("ext4", "xfs", "tmpfs"):
        for kind in ("flat", "nested"):
            table[f"copy-{fs}-{kind}"] = lambda fs=fs, kind=kind: local.copies(fs, kind)
    for fs in ("ext4", "tmpfs"):
        for kind in ("flat", "nested"):
            table[f"unchanged-{fs}-{kind}"] = lambda fs=fs, kind=kind: local.unchanged(fs, kind)
    table["tiny"] = lambda: local.tiny()
    table["large"] = lambda: local.large("large", "tmpfs", "ext4", 1, 4096)
    table["large-xfs"] = lambda: local.large("large-xfs", "ext4", "xfs", 1, 4096)
    table["large-six"] = lambda: local.large("large-six", "tmpfs", "ext4", 6, 500)
    table["memory"] = lambda: local.memory()
    table["startup"] = lambda: local.startup()
    return table


def main():
    args = read_arguments(rows(None), begin=True, rounds=int, scale=1.0)
    args.rounds = args.rounds or (3 if args.quick else 9)
    local = Local(args)
    for name, row in rows(local).items():
        if any(name.startswith(want) for want in args.rows):
            row()
    report = os.path.join(args.results, "report.md")
    with open(report, "w") as out:
        out.write("## Local copies\n\n" + local.environment() + "\n\n" + "\n".join(local.sections))
    print(f"written: {report}")


if __name__ == "__main__":
    main()
