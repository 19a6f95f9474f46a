// A clock that moves twice a second, to be preloaded: what is made of it is the same in processes that start together.
// Leaves the file COARSE_MARK where it is in use.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__attribute__((constructor)) static void mark(void) {
  const char *path = getenv("COARSE_MARK");
  int file = path ? open(path, O_CREAT | O_WRONLY, 0600) : -1;
  if (file >= 0) close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = (int)syscall(SYS_clock_gettime, clock, now);
  if (!failed && clock == CLOCK_MONOTONIC) now->tv_nsec -= now->tv_nsec % 500000000;
  return failed;
}
