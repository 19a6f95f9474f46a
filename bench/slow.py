"""The rows of slow.sh: one large file, a tree and a folder of many files on a file system where each operation waits."""

import argparse
import os
import shutil
import subprocess
import time

from cells import Server
from measure import GOALS_HEAD, Bench, Contender, ratio, runs_table, verdict
from volumes import Volumes

LIMIT = 300


class Slow:
    def __init__(self, args):
        self.bench = Bench(args.work, args.results, args.rounds, 1.0)
        self.work, self.hakobu, self.delay_us = args.work, os.path.abspath(args.hakobu), args.delay_us
        self.near, self.far = os.path.join(args.work, "near"), os.path.join(args.work, "far")
        os.makedirs(self.near)
        os.makedirs(self.far)
        self.volumes = Volumes(self.near)
        self.goals, self.tables = [GOALS_HEAD], []
        self.process = None

    # Places

    def mount(self, delay_us):
        """Mounts an empty slow file system; what an earlier one held is gone."""
        self.unmount()
        self.process = subprocess.Popen([self.work + "/slowfs", self.far, str(delay_us), str(LIMIT)])
        while not os.path.ismount(self.far):
            time.sleep(0.05)

    def unmount(self):
        if self.process:
            subprocess.run(["umount", self.far], check=True)
            self.process.wait()
            self.process = None

    def fill(self, source, name):
        """A copy of a tree on the slow side."""
        target = os.path.join(self.far, name)
        if not os.path.isdir(target):
            subprocess.run([self.hakobu, "sync", "-a", "--no-memory", "-j", "128", source + "/", target + "/"], check=True)
        return target

    def forget(self):
        """The kernel's names and attributes: they may be kept for 3 s."""
        with open("/proc/sys/vm/drop_caches", "w") as file:
            file.write("2\n")

    def clear(self, path):
        if os.path.isdir(path):
            subprocess.run([self.hakobu, "rm", "-r", "-j", "128", path], check=True, capture_output=True)
        elif os.path.exists(path):
            os.unlink(path)

    # Measuring

    def ours(self, *words, name="hakobu"):
        memory = ["--no-memory"] if words[0] in ("cp", "sync") else []
        return Contender(name, [self.hakobu, words[0], *memory, *words[1:]])

    def row(self, title, ours, peer, goal, target=None, again=None, check=None):
        """Ours against a peer. `target` is cleared before each run, `again` called."""

        def prepare(_):
            if target:
                self.clear(target)
            if again:
                again()
            self.forget()

        done = self.bench.interleave(title, [ours, peer], prepare, check=check)
        self.tables.append(f"### {title}\n\n{runs_table([ours, peer])}\n")
        if len(done) == 2:
            middle, low, high = ratio(peer, ours)
            line = verdict(title, peer.name, goal, middle, low, high)
        else:
            line = f"| {title} | {peer.name} | ≥ {goal:g} × | not measured | NO |"
        print(line, flush=True)
        self.goals.append(line)

    def same(self, source, target):
        def check(_):
            compared = subprocess.run(["diff", "-rq", source, target], capture_output=True)
            return compared.stdout.decode().split("\n")[0] if compared.returncode else None

        return check

    # Rows

    def large(self):
        self.mount(self.delay_us)
        near, far = os.path.join(self.near, "large"), os.path.join(self.far, "large")
        with open(near, "wb") as file:
            for _ in range(400):
                file.write(os.urandom(1_000_000))
        os.utime(near, (1_600_000_000, 1_600_000_000))
        shutil.copy2(near, far)
        for title, source, place, goal in [
            ("400 MB, slow → local", far, self.near, 3),
            ("400 MB, local → slow", near, self.far, 4),
            ("400 MB, slow → slow", far, self.far, 5),
        ]:
            target = os.path.join(place, "target")
            self.row(title, self.ours("cp", source, target), Contender("cp", ["cp", source, target]), goal, target,
                     check=self.same(near, target))
            self.clear(target)
        os.unlink(near)

    def copies(self, kind, scale, text, least, least_store):
        """A tree from the slow side to this one, and to a store."""
        self.mount(self.delay_us)
        near = self.volumes.tree(kind, scale)
        far, target = self.fill(near, kind), os.path.join(self.near, "target")
        self.row(f"{text}, slow → local", self.ours("sync", "-a", far + "/", target + "/"),
                 Contender("rsync", ["rsync", "-a", far + "/", target + "/"]), least, target, check=self.same(near, target))
        # The least that copies a tree: what the file system itself allows on this machine.
        ruler = Contender("ruler d, 64 threads", [os.path.join(self.work, "ruler"), far, target, "d", "64"])
        self.row(f"{text}, slow → local, least work", self.ours("sync", "-a", far + "/", target + "/"), ruler, 0.9, target,
                 check=self.same(near, target))
        self.clear(target)
        server = Server(self.hakobu, ["--latency", "2ms"])
        server.start()
        self.row(f"{text}, slow → S3 (2 ms a request)",
                 self.ours("cp", "--endpoint-url", server.url, "-r", far + "/.", "s3://bench/up/"),
                 Contender("s5cmd", ["s5cmd", "--endpoint-url", server.url, "cp", far + "/", "s3://bench/up/"]), least_store)
        server.stop()
        return near, far

    def nested(self):
        near, far = self.copies("nested", 4370 / 20_702, "tree", 25, 4.5)
        self.row("tree, compared", self.ours("verify", near + "/", far + "/"),
                 Contender("diff -rq", ["diff", "-rq", near, far]), 12)
        self.row("tree, summed up", self.ours("du", "-s", far), Contender("du -s", ["du", "-s", far]), 8)
        gone = os.path.join(self.far, "gone")
        self.row("tree, removed", self.ours("rm", "-r", gone), Contender("rm -r", ["rm", "-r", gone]), 8,
                 again=lambda: self.fill(near, "gone"))

    def flat(self):
        self.copies("flat", 1, "20,000 files in a folder", 25, 4.5)

    def auto(self):
        """Self-tuned against fixed numbers of jobs, at three delays."""
        near, target = self.volumes.tree("nested", 4370 / 20_702), os.path.join(self.near, "target")
        for delay_us in (100, 1000, 10_000):
            self.mount(delay_us)
            far = self.fill(near, "nested")
            words = ["sync", "-a", far + "/", target + "/"]
            fixed = [self.ours(*words, "-j", str(jobs), name=f"-j {jobs}") for jobs in (1, 4, 16, 32, 64, 128, 256, 512)]
            if delay_us > 1000:
                fixed = fixed[2:]
            own = self.ours(*words, name="-j auto")

            def prepare(_):
                self.clear(target)
                self.forget()

            done = self.bench.interleave(f"auto at {delay_us} us", [own, *fixed], prepare)
            best = min((one for one in done if one is not own), key=lambda one: one.median())
            line = verdict(f"tree, slow → local at {delay_us} us: -j auto", best.name, 0.95, *ratio(best, own))
            self.tables.append(f"### auto at {delay_us} us\n\n{runs_table([own, *fixed])}\n")
            print(line, flush=True)
            self.goals.append(line)
            self.clear(target)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work")
    parser.add_argument("--hakobu")
    parser.add_argument("--delay-us", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", default="large,tree,flat")
    parser.add_argument("results")
    args = parser.parse_args()
    slow = Slow(args)
    rows = {"large": slow.large, "tree": slow.nested, "flat": slow.flat, "auto": slow.auto}
    try:
        for name in args.rows.split(","):
            rows[name]()
    finally:
        slow.unmount()
    with open(os.path.join(args.results, "report.md"), "w") as report:
        report.write("\n".join(slow.goals) + "\n\n" + "\n".join(slow.tables))


if __name__ == "__main__":
    main()
