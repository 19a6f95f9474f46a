#!/usr/bin/env python3
"""Writes the licences of all crates that are in the program: name, version, terms and text of each.

usage: packaging/licences.py --target TRIPLE [--no-default-features]

Crates come from cargo metadata; texts are the files that their sources hold. Equal texts stand once. A crate
without a licence expression, or under one that is not in ALLOWED, is an error.
"""

import argparse
import collections
import json
import operator
import os
import pathlib
import re
import subprocess
import sys

ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-1-Clause", "BSD-2-Clause", "BSD-3-Clause",
    "BSL-1.0", "CC0-1.0", "CDLA-Permissive-2.0", "ISC", "MIT", "MIT-0", "Unicode-3.0", "Unlicense", "Zlib",
}
TEXTS = re.compile(r"(licen[sc]e|copying|notice|copyright|unlicense)", re.IGNORECASE)


def allowed(expression):
    """Whether one of the alternatives of an SPDX expression has only terms that are allowed."""
    expression = expression.replace("/", " OR ")
    tokens = re.findall(r"\(|\)|[^\s()]+", expression)

    def terms(at, word, one, join):
        """Reads what stands between the words: its value, and where it ends."""
        value, at = one(at)
        while at < len(tokens) and tokens[at] == word:
            other, at = one(at + 1)
            value = join(value, other)
        return value, at

    def either(at):
        return terms(at, "OR", both, operator.or_)

    def both(at):
        return terms(at, "AND", one, operator.and_)

    def one(at):
        if tokens[at] == "(":
            value, at = either(at + 1)
            return value, at + 1
        name = tokens[at]
        at += 1
        if at < len(tokens) and tokens[at] == "WITH":
            name += " WITH " + tokens[at + 1]
            at += 2
        return name in ALLOWED, at

    return either(0)[0]


def crates(arguments):
    """Crates of other people that are linked into the program, from cargo metadata."""
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--format-version=1", "--locked"]
    command += ["--filter-platform", arguments.target]
    if arguments.no_default_features:
        command.append("--no-default-features")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"cargo metadata: {done.stderr}")
    data = json.loads(done.stdout)
    packages = {package["id"]: package for package in data["packages"]}
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    seen, todo = set(), [data["resolve"]["root"]]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for dependency in nodes[name]["deps"]:
            # Neither what only tests need nor what only building needs is in the program.
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                todo.append(dependency["pkg"])
    others = [packages[name] for name in seen if packages[name]["source"]]
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", required=True)
    parser.add_argument("--no-default-features", action="store_true")
    found = crates(parser.parse_args())
    texts, refused = collections.OrderedDict(), []
    print(f"hakobu contains {len(found)} crates of other authors:\n")
    for crate in found:
        terms = crate["license"]
        label = f"{crate['name']} {crate['version']}"
        if not terms or not allowed(terms):
            refused.append(f"{label}: {terms or 'no licence expression'}")
        print(f"{label}: {terms}\n    {crate['repository'] or ''}")
        folder = pathlib.Path(crate["manifest_path"]).parent
        files = sorted(file for file in folder.iterdir() if file.is_file() and TEXTS.match(file.name))
        for file in files:
            text = file.read_text(encoding="utf-8", errors="replace").strip()
            texts.setdefault(text, []).append(label)
    for text, names in texts.items():
        print(f"\n{'=' * 80}\n{', '.join(names)}\n{'=' * 80}\n{text}")
    if refused:
        sys.exit("not allowed:\n" + "\n".join(refused))


if __name__ == "__main__":
    main()
