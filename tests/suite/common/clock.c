// Clocks for a program, to be preloaded. CLOCK_STEP_NS: the monotonic one moves in steps of so many nanoseconds: what is
// made of it is the same in processes that start together. CLOCK_AHEAD_S: the time of day is so many seconds ahead.
// Leaves the file CLOCK_MARK where it is in use.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long step_ns = 1, ahead_s;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("CLOCK_MARK"), *step = getenv("CLOCK_STEP_NS"), *ahead = getenv("CLOCK_AHEAD_S");
  int file = path ? open(path, O_CREAT | O_WRONLY, 0600) : -1;
  if (file >= 0) close(file);
  if (step) step_ns = atol(step);
  if (ahead) ahead_s = atol(ahead);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = (int)syscall(SYS_clock_gettime, clock, now);
  if (!failed && clock == CLOCK_MONOTONIC) now->tv_nsec -= now->tv_nsec % step_ns;
  if (!failed && clock == CLOCK_REALTIME) now->tv_sec += ahead_s;
  return failed;
}
