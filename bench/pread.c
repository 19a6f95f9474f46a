// pread: the least that reading blocks can cost. One thread reads random blocks of a file with
// pread(2), nothing else is counted, and the clock is looked at every 4096 blocks.
//
//   gcc -O2 pread.c -o pread
//   pread FILE SECONDS [BLOCK_BYTES]
//
// Prints blocks a second.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: pread FILE SECONDS [BLOCK_BYTES]\n");
    return 2;
  }
  double seconds = atof(argv[2]);
  size_t bytes = argc > 3 ? strtoul(argv[3], NULL, 10) : 4096;
  struct stat stat;
  // As fio does it: the time of the last access is not looked at for each block.
  int file = open(argv[1], O_RDONLY | O_CLOEXEC | O_NOATIME);
  if (file < 0 || fstat(file, &stat)) return perror(argv[1]), 2;
  uint64_t blocks = bytes ? stat.st_size / bytes : 0, random = 88172645463325252ull, done = 0;
  char *buffer = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!blocks || !buffer) return fprintf(stderr, "pread: the file holds no block\n"), 2;
  double begun = now(), ended;
  do {
    for (int i = 0; i < 4096; i++) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      uint64_t block = (unsigned __int128)random * blocks >> 64;
      if (pread(file, buffer, bytes, block * bytes) != (ssize_t)bytes) return perror("pread"), 2;
    }
    done += 4096;
    ended = now();
  } while (ended - begun < seconds);
  printf("%.0f\n", done / (ended - begun));
  return 0;
}
