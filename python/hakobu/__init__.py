"""The hakobu program, installed with this package."""

import os
import shutil
import sys
import sysconfig

__all__ = ["program"]


def program() -> str:
    """Return the path of the hakobu program.

    Raises FileNotFoundError if it is neither beside this interpreter nor in PATH.
    """
    for folder in (sysconfig.get_path("scripts"), os.path.dirname(sys.executable)):
        path = os.path.join(folder, "hakobu")
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("hakobu")
    if found is None:
        raise FileNotFoundError("hakobu is neither beside this interpreter nor in PATH")
    return found
