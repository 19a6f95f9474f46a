"""`python -m hakobu.ray --address ADDRESS --nodes N -- hakobu cluster work … RUN`."""

from __future__ import annotations

import argparse
import sys

from hakobu.ray import Status, work


def show(status: Status) -> None:
    """Prints how far the run is."""
    done = status["done"]
    print(
        f"{done['shards']} of {status['shards']} shards, "
        f"{done['entries']} of {status['planned_entries']} entries",
        file=sys.stderr,
    )


def main() -> int:
    """Runs workers until all of them have ended; 1 where one failed."""
    parser = argparse.ArgumentParser(prog="hakobu.ray")
    parser.add_argument("--address", default="auto")
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    failures = work(given.command, given.nodes, given.address, progress=show)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
