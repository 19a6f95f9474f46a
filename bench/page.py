"""Writes the tables of local copies and of objects in BENCHMARKS.md from raw numbers: the median of each program, and how many times as fast
hakobu is, with its 95% confidence interval. Called by bench/page.sh.

usage: python3 bench/page.py [--scale X] FILE.tsv...

--scale is that of the measurements: the names of series hold the numbers of files, objects and keys.

Of a series that several files hold, the first file counts.
"""

import argparse
import csv
import re
import sys

from measure import Contender, Run, ratio

ROWS = [
    ("Local copies, seconds", [
        ("20,000 files of 4 KiB, one directory, to ext4", "copy-ext4-flat", ("cp -a", "rsync -a"), "hakobu sync -a"),
        ("20,702 files, 900 directories, to ext4", "copy-ext4-nested", ("cp -a", "rsync -a"), "hakobu sync -a"),
        ("20,000 files of 4 KiB, one directory, to XFS", "copy-xfs-flat", ("cp -a", "rsync -a"), "hakobu sync -a"),
        ("20,702 files, 900 directories, to XFS", "copy-xfs-nested", ("cp -a", "rsync -a"), "hakobu sync -a"),
        ("the flat tree on ext4 again, unchanged", "unchanged-ext4-flat", ("rsync -a",), "hakobu sync -a"),
        ("the nested tree on ext4 again, unchanged", "unchanged-ext4-nested", ("rsync -a",), "hakobu sync -a"),
        ("one file of 4 GiB, to ext4 and to the end of syncfs", "large", ("cp", "rsync -W"), "hakobu sync -W"),
    ]),
    ("Objects, against a server that stores nothing, seconds", [
        ("upload of 10,000 × 4 KiB", "PUT 10000 × 4 KiB, null server", ("s5cmd cp",), "hakobu cp -r"),
        ("download of 10,000 × 4 KiB", "GET 10000 × 4 KiB, null server", ("s5cmd cp",), "hakobu cp"),
        ("upload of 2,000 × 500 KB", "PUT 2000 × 500 KB, null server", ("s5cmd cp",), "hakobu cp -r"),
        ("download of 2,000 × 500 KB", "GET 2000 × 500 KB, null server", ("s5cmd cp",), "hakobu cp"),
        ("upload of one object of 2 GB", "PUT one 2 GB, null", ("s5cmd cp",), "hakobu cp -r"),
        ("download of one object of 2 GB", "GET one 2 GB, null", ("s5cmd cp",), "hakobu cp"),
        ("listing of 1,000,000 keys", "ls of 1000000 keys, null server", ("s5cmd ls",), "hakobu ls -R"),
    ]),
    ("Objects, against a server that stores (versitygw), seconds", [
        ("upload of 10,000 × 4 KiB", "PUT 10000 × 4 KiB, versitygw", ("s5cmd cp",), "hakobu cp -r"),
        ("download of 10,000 × 4 KiB", "GET 10000 × 4 KiB, versitygw", ("s5cmd cp",), "hakobu cp"),
        ("upload of 2,000 × 500 KB", "PUT 2000 × 500 KB, versitygw", ("s5cmd cp",), "hakobu cp -r"),
        ("download of 2,000 × 500 KB", "GET 2000 × 500 KB, versitygw", ("s5cmd cp",), "hakobu cp"),
        ("upload of one object of 2 GB", "PUT one 2 GB, versitygw", ("s5cmd cp",), "hakobu cp -r"),
        ("download of one object of 2 GB", "GET one 2 GB, versitygw", ("s5cmd cp",), "hakobu cp"),
    ]),
]


def read(paths):
    """Contenders by series and name, without the warm-up round."""
    series = {}
    for path in paths:
        own = {}
        with open(path, encoding="utf-8") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                if "place" not in row or int(row["round"]) < 0 or row["code"] != "0":
                    continue
                numbers = [float(row[name]) for name in ("wall_s", "flushed_s", "user_s", "sys_s")]
                name = row["contender"]
                one = own.setdefault(row["series"], {}).setdefault(name, Contender(name, []))
                one.runs.append(Run(0, *numbers, int(row["rss_kib"])))
        for name, contenders in own.items():
            series.setdefault(name, contenders)
    return series


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    series = read(options.files)
    if options.scale != 1:
        print(f"Made with --scale {options.scale}: these are not the figures that count.\n")

    def scaled(match):
        return str(max(1, round(int(match.group()) * options.scale)))

    missing = []
    for title, rows in ROWS:
        print(f"### {title}\n\n| work | hakobu | other | hakobu is (95% CI) |\n|---|---|---|---|")
        for work, name, others, own in rows:
            title = name.replace("one 2 GB", f"one {2 * options.scale:g} GB")
            found = series.get(re.sub(r"\d{4,}", scaled, title), {})
            for other in others:
                if own not in found or other not in found:
                    missing.append(f"{name}: {own} against {other}")
                    continue
                field = "flushed" if name == "large" else "wall"
                middle, low, high = ratio(found[other], found[own], field)
                times = [found[who].median(field) for who in (own, other)]
                print(
                    f"| {work} | {times[0]:.3g} | {times[1]:.3g} (`{other}`) "
                    f"| {middle:.2f} × as fast ({low:.2f} to {high:.2f}) |"
                )
        print()
    if missing:
        sys.exit("not measured:\n" + "\n".join(missing))


if __name__ == "__main__":
    main()
