"""Volumes and trees that benchmarks work on: file systems on loop images, and source trees by kind and scale. All of
them are below one folder on tmpfs."""

import os
import subprocess

import trees

MKFS = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"]}
GIB = 4


def sh(*words):
    """Runs a command and returns what it printed, without white space around it."""
    return subprocess.run(words, check=True, text=True, capture_output=True).stdout.strip()


class Volumes:
    """Volumes and trees below the folder `work`. `scale` multiplies the number of files of trees; below 1 volumes
    are smaller, too."""

    def __init__(self, work, scale=1.0):
        self.work, self.scale = work, scale

    def mounted(self, fs):
        """The folder of a file system, which is made and mounted once. tmpfs is that of `work`."""
        path = os.path.join(self.work, fs)
        if fs != "tmpfs" and not os.path.ismount(path):
            self.mount(fs, path, max(1, int(GIB * min(1, self.scale))))
        os.makedirs(path, exist_ok=True)
        return path

    def mount(self, fs, path, gib):
        """Mounts a new file system of `gib` GiB, made with defaults."""
        image = path + ".img"
        sh("fallocate", "-l", f"{gib}G", image)
        sh(*MKFS[fs], image)
        os.makedirs(path, exist_ok=True)
        sh("mount", "-o", "loop", image, path)

    def unmount(self, path):
        """Unmounts a file system and gives back its memory."""
        sh("umount", path)
        os.unlink(path + ".img")

    def release(self):
        """Gives back the memory of volumes; trees stay."""
        for fs in MKFS:
            path = os.path.join(self.work, fs)
            if os.path.ismount(path):
                self.unmount(path)
        sh("rm", "-rf", os.path.join(self.work, "tmpfs"))

    def tree(self, kind, scale=None):
        """The folder of a tree of a kind of trees.py, which is made once."""
        path = os.path.join(self.work, "source-" + kind)
        if not os.path.isdir(path):
            trees.make(kind, path, self.scale if scale is None else scale)
        return path

    def remove_trees(self):
        """Gives back the memory of trees."""
        for name in os.listdir(self.work):
            if name.startswith("source-"):
                sh("rm", "-rf", os.path.join(self.work, name))

    def clear(self, path, volume):
        """Removes what an earlier run left, and lets its file system finish that."""
        sh("rm", "-rf", path)
        sh("sync", "-f", volume)
