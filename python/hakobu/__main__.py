"""Runs the program: python -m hakobu COMMAND ..."""

import os
import sys

from hakobu import program

path = program()
os.execv(path, [path, *sys.argv[1:]])
