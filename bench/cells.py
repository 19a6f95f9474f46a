"""What bench/auto.py moves, from where to where: sources of any number of files that are cheap to make,
targets that are empty before each run, servers with conditions."""

import os
import shutil
import signal
import socket
import subprocess
import time

import trees
from volumes import sh


class Flat:
    """One folder of 4 KiB files. All are names of a few files, so that many cost little memory; without -H
    each is copied by itself."""

    piece, size = 1, 4096

    def __init__(self, work):
        self.path, self.pool = os.path.join(work, "src"), os.path.join(work, "pool")
        os.makedirs(self.path)
        os.makedirs(self.pool)
        self.count = 0

    def fill(self, count):
        """As many files as asked for, or a few more; how many they are."""
        for number in range(self.count, count):
            one = os.path.join(self.pool, f"f{number // 1000:06}")
            if not os.path.exists(one):
                trees.write(one, os.urandom(self.size), 1_600_000_000_000_000_000)
            os.link(one, os.path.join(self.path, f"file-{number:07}"))
        for number in range(count, self.count):
            os.unlink(os.path.join(self.path, f"file-{number:07}"))
        self.count = count
        return count


class Parts(Flat):
    """Folders of equal size, taken out of a pool."""

    def fill(self, count):
        parts = max(1, -(-count // self.piece))
        for number in range(self.count, parts):
            ready = os.path.join(self.pool, f"part-{number:05}")
            if not os.path.isdir(ready):
                self.make(ready, number)
            os.rename(ready, os.path.join(self.path, f"part-{number:05}"))
        for number in range(parts, self.count):
            name = f"part-{number:05}"
            os.rename(os.path.join(self.path, name), os.path.join(self.pool, name))
        self.count = parts
        return parts * self.piece


class Small(Parts):
    """Parts of 50 small files, each file with many names."""

    piece = 50

    def make(self, path, number):
        os.makedirs(path)
        one = os.path.join(self.pool, f"f{number // 20:06}")
        if not os.path.exists(one):
            trees.write(one, os.urandom(self.size), 1_600_000_000_000_000_000)
        for n in range(self.piece):
            os.link(one, os.path.join(path, f"file-{n:03}"))


class Nested(Parts):
    """A tenth of the nested tree of trees.py, again and again by hard links."""

    piece = 2070

    def make(self, path, _):
        first = os.path.join(self.pool, "tree")
        if not os.path.isdir(first):
            os.makedirs(first)
            trees.nested(first, 0.1)
        sh("cp", "-al", first, path)


class Cold(Parts):
    """Files of their own on a disk, 500 in a folder."""

    piece = 500

    def make(self, path, _):
        os.makedirs(path)
        for n in range(self.piece):
            trees.write(f"{path}/file-{n:03}", os.urandom(self.size), 1_600_000_000_000_000_000)


class Target:
    """An empty file system at `dst`, made anew for each run: removing files would take longer and leave
    traces. ext4 and XFS live in an image on tmpfs."""

    def __init__(self, work, fs):
        self.work, self.fs, self.path = work, fs, os.path.join(work, "dst")
        os.makedirs(self.path, exist_ok=True)
        self.image, self.device = os.path.join(work, "image"), None
        if fs != "tmpfs":
            with open(self.image, "wb") as image:
                image.truncate(20 << 30)
            self.device = sh("losetup", "-f", "--show", self.image)
            with open(os.path.join(work, "loop"), "w") as file:
                file.write(self.device)

    def renew(self):
        self.release()
        if self.fs == "tmpfs":
            sh("mount", "-t", "tmpfs", "-o", "size=90%,nr_inodes=0", "tmpfs", self.path)
            return
        # Tables are not zeroed behind the runs' back: the image has nothing but zeros after a discard.
        mkfs = {"ext4": ["mkfs.ext4", "-q", "-F", "-i", "8192"], "xfs": ["mkfs.xfs", "-q", "-f"]}[self.fs]
        sh("blkdiscard", self.device)
        sh(*mkfs, self.device)
        sh("mount", *(["-o", "noinit_itable"] if self.fs == "ext4" else []), self.device, self.path)

    def release(self):
        if os.path.ismount(self.path):
            sh("umount", self.path)

    def close(self):
        self.release()
        if self.device:
            sh("losetup", "-d", self.device)
            os.unlink(os.path.join(self.work, "loop"))
            os.unlink(self.image)


class Local:
    """A local copy. `most` bounds the number of files, for memory's sake."""

    first = 2000

    def __init__(self, bench, source, fs, jobs, most, cold=False):
        self.jobs, self.most, self.cold = jobs, most, cold
        where = bench.disk() if cold else bench.work
        self.source, self.target = source(where), Target(bench.work, fs)
        self.hakobu = bench.hakobu

    def prepare(self, count):
        files = self.source.fill(count)
        self.target.renew()
        if self.cold:
            sh("sync")
            with open("/proc/sys/vm/drop_caches", "w") as file:
                file.write("3\n")
        return files

    def words(self, options):
        return [self.hakobu, "sync", "-a", "--json", *options, self.source.path + "/", self.target.path + "/out/"]

    def close(self):
        self.target.close()
        for path in (self.source.path, self.source.pool):
            shutil.rmtree(path)


class Server:
    """`hakobu serve null` with conditions, always at the same address."""

    def __init__(self, hakobu, options):
        self.hakobu, self.options, self.process = hakobu, options, None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self, keys=0):
        self.stop()
        words = [self.hakobu, "serve", "null", "--listen", f"127.0.0.1:{self.port}", "--keys", str(keys), *self.options]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        for _ in range(200):
            try:
                return socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"no server: {words}")

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()
            self.process = None


class Put:
    """Uploads of 4 KiB objects."""

    first, most = 100, 2_000_000

    def __init__(self, bench, options, jobs):
        self.jobs, self.server = jobs, Server(bench.hakobu, options)
        self.source = Small(bench.work)
        self.server.start()

    def prepare(self, count):
        return self.source.fill(count)

    def words(self, options):
        return [self.server.hakobu, "cp", "--json", "--endpoint-url", self.server.url, *options,
                "-r", self.source.path + "/.", "s3://bench/up/"]

    def close(self):
        self.server.stop()
        for path in (self.source.path, self.source.pool):
            shutil.rmtree(path)


class Get:
    """Downloads of 4 KiB objects to tmpfs."""

    first, most = 100, 2_000_000

    def __init__(self, bench, options, jobs):
        self.jobs, self.server = jobs, Server(bench.hakobu, options)
        self.target, self.keys = Target(bench.work, "tmpfs"), None

    def prepare(self, count):
        self.target.renew()
        if count != self.keys:
            self.server.start(count)
            self.keys = count
        return count

    def words(self, options):
        return [self.server.hakobu, "cp", "--json", "--endpoint-url", self.server.url, *options,
                "s3://bench/*", self.target.path + "/out/"]

    def close(self):
        self.server.stop()
        self.target.close()
