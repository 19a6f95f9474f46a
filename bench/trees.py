"""Makes the trees that the benchmarks copy. The same name gives the same tree, byte for byte in
sizes and layout, on every machine.

    python3 trees.py KIND DIRECTORY [SCALE]

KIND: flat (20,000 files of 4 KiB), many (100,000 of them), nested (20,702 files in 900 directories,
294 MB), medium (600 incompressible files of 500 kB), large (an incompressible file of 1 GB), tiny (2,000
files of 15 bytes), empty-flat (1,000,000 empty files in one directory), empty-nested (1,000 directories of
1,000), links (100,000 files with two names each). SCALE multiplies the number of files, of large its size.
"""

import os
import random
import sys


def write(path, data, time):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(fd, data)
    os.utime(fd, ns=(time, time))
    os.close(fd)


def flat(root, scale):
    data = os.urandom(4096)
    for n in range(max(1, int(20_000 * scale))):
        write(f"{root}/file-{n:06d}", data, 1_600_000_000_000_000_000 + n * 1_000_000_007)


def many(root, scale):
    flat(root, 5 * scale)


def nested(root, scale):
    rng = random.Random(20702)
    count = max(20, int(20_702 * scale))
    dirs = [root]
    for n in range(max(3, int(900 * scale)) - 1):
        parent = dirs[rng.randrange(max(0, len(dirs) - 40), len(dirs))]
        path = f"{parent}/dir-{n:04d}"
        # A tree of sources is about seven levels deep, not a chain.
        if path.count("/") - root.count("/") > 7:
            path = f"{rng.choice(dirs[:20])}/dir-{n:04d}"
        os.mkdir(path)
        dirs.append(path)
    # Sizes of a source tree: most files are a few KiB, a few carry most of the bytes.
    sizes = [int(min(2_000_000, rng.lognormvariate(8.2, 1.6))) for _ in range(count)]
    factor = (294e6 * count / 20_702) / sum(sizes)
    block = os.urandom(1 << 22)
    for n, size in enumerate(sizes):
        path = f"{dirs[n % len(dirs)] if n < len(dirs) else rng.choice(dirs)}/file-{n:05d}"
        write(path, block[: int(size * factor)], 1_600_000_000_000_000_000 + n * 1_000_000_007)


def incompressible(root, count, size):
    """`count` files of `size` bytes that differ and cannot be compressed."""
    block = random.Random(7).randbytes(min(size, 1 << 20) + 4096)
    for number in range(count):
        with open(f"{root}/f{number:06}", "wb") as file:
            shift = number % 4096
            for at in range(0, size, 1 << 20):
                file.write(block[shift : shift + min(size - at, 1 << 20)])


def medium(root, scale):
    incompressible(root, max(1, int(600 * scale)), 500_000)


def large(root, scale):
    incompressible(root, 1, max(1, int(1_000_000_000 * scale)))


def tiny(root, scale):
    for n in range(max(1, int(2_000 * scale))):
        write(f"{root}/file-{n:05d}", b"fifteen bytes!\n", 1_600_000_000_000_000_000 + n)


def empty(root, count):
    fd = os.open(root, os.O_RDONLY)
    for n in range(count):
        os.close(os.open(f"file-{n:07d}", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=fd))
    os.close(fd)


def empty_flat(root, scale):
    empty(root, int(1_000_000 * scale))


def empty_nested(root, scale):
    for n in range(int(1_000 * scale)):
        os.mkdir(f"{root}/dir-{n:04d}")
        empty(f"{root}/dir-{n:04d}", 1_000)


def links(root, scale):
    """Both names of a file far apart, so that many groups are open at the same time."""
    count = int(100_000 * scale)
    os.mkdir(f"{root}/a")
    os.mkdir(f"{root}/b")
    empty(f"{root}/a", count)
    for n in range(count):
        os.link(f"{root}/a/file-{n:07d}", f"{root}/b/file-{count - n:07d}")


KINDS = {
    "flat": flat,
    "many": many,
    "nested": nested,
    "medium": medium,
    "large": large,
    "tiny": tiny,
    "empty-flat": empty_flat,
    "empty-nested": empty_nested,
    "links": links,
}


def make(kind, root, scale=1.0):
    """Makes a tree of a kind in a new folder."""
    os.makedirs(root)
    KINDS[kind](root, scale)


def main():
    kind, root, *scale = sys.argv[1:]
    make(kind, root, *map(float, scale))


if __name__ == "__main__":
    main()
