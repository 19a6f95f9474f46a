// delay: a TCP proxy on the loopback that makes a long line of it. What is sent either way arrives after a delay; a
// connection is made after one round trip. One thread and poll(2) serve all connections.
//
//   gcc -O2 delay.c -o delay
//   delay [-b BYTES] [-r BYTES_PER_S] LISTEN_PORT TARGET_PORT ROUND_TRIP_MS
//
// BYTES are those under way in each direction of a connection (default 16 MiB, what a round trip of 100 ms holds at
// 1.3 Gbit/s); a sender waits beyond them. BYTES_PER_S is what all connections together may send in each direction.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 64, MARKS = 1 << 16, SOCKET_BYTES = 256 << 10 };

// Bytes that arrive together: those of a direction up to `end`, at `due`.
struct mark {
  long long due, end;
};

// One direction of a connection. Bytes are counted from its beginning; the byte at `n` is in data[n % size].
struct way {
  char *data;
  struct mark *marks;
  long long got, sent;
  unsigned first, marked;
  int from, to, closed, shut;
};

struct connection {
  int used, dead;
  struct way ways[2];
};

static size_t size = 16 << 20;
static double rate;
static long long delay, free_at[2];

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static struct sockaddr_in loopback(const char *port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

// Small buffers: what is under way is in our buffer, where it is counted.
static void tune(int socket) {
  int on = 1, bytes = SOCKET_BYTES;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

// Accepts a connection and makes its other half.
static void begin(struct connection *all, int listener, const char *target) {
  int near = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (near < 0) return;
  struct sockaddr_in at = loopback(target);
  int far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), slot = 0;
  while (slot < CONNECTIONS && all[slot].used) slot++;
  if (far < 0 || slot == CONNECTIONS || connect(far, (void *)&at, sizeof at)) {
    close(near);
    if (far >= 0) close(far);
    return;
  }
  int ends[2] = {near, far};
  for (int i = 0; i < 2; i++) {
    tune(ends[i]);
    struct way *way = &all[slot].ways[i];
    *way = (struct way){.from = ends[i], .to = ends[1 - i]};
    way->data = malloc(size);
    way->marks = malloc(MARKS * sizeof *way->marks);
    if (!way->data || !way->marks) fail("malloc");
    // Nothing passes before the handshake would be over.
    way->marks[0] = (struct mark){now() + 2 * delay, 0};
    way->marked = 1;
  }
  all[slot].used = 1;
  all[slot].dead = 0;
}

static int has_room(const struct way *way) {
  return !way->closed && way->got - way->sent < (long long)size && way->marked < MARKS;
}

static void take_in(struct way *way, int direction) {
  size_t at = (size_t)way->got % size, room = size - (size_t)(way->got - way->sent);
  if (room > size - at) room = size - at;
  ssize_t got = recv(way->from, way->data + at, room, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    way->closed = 1;
    got = 0;
  }
  long long leaves = now();
  if (rate > 0) {
    if (free_at[direction] < leaves) free_at[direction] = leaves;
    free_at[direction] += (long long)((double)got / rate * 1e9);
    leaves = free_at[direction];
  }
  way->got += got;
  way->marks[(way->first + way->marked++) % MARKS] = (struct mark){leaves + delay, way->got};
}

// Sends what is due. Returns when more is, or -1; `blocked` is set if the receiver has no room.
static long long send_due(struct way *way, int *blocked, int *dead) {
  *blocked = 0;
  while (way->marked) {
    struct mark mark = way->marks[way->first];
    if (mark.due > now()) return mark.due;
    while (way->sent < mark.end) {
      size_t at = (size_t)way->sent % size, have = (size_t)(mark.end - way->sent);
      if (have > size - at) have = size - at;
      ssize_t sent = send(way->to, way->data + at, have, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno == EAGAIN) {
        *blocked = 1;
        return -1;
      }
      if (sent < 0) {
        *dead = 1;
        return -1;
      }
      way->sent += sent;
    }
    way->first = (way->first + 1) % MARKS;
    way->marked--;
  }
  if (way->closed && !way->shut) {
    shutdown(way->to, SHUT_WR);
    way->shut = 1;
  }
  return -1;
}

static void end(struct connection *one) {
  for (int i = 0; i < 2; i++) {
    close(one->ways[i].from);
    free(one->ways[i].data);
    free(one->ways[i].marks);
  }
  one->used = 0;
}

int main(int count, char **words) {
  static struct connection all[CONNECTIONS];
  static struct pollfd waits[1 + 4 * CONNECTIONS];
  for (int option; (option = getopt(count, words, "b:r:")) != -1;) {
    if (option == 'b') size = (size_t)atoll(optarg);
    else if (option == 'r') rate = atof(optarg);
    else return 2;
  }
  if (count - optind != 3 || size < 1) {
    fprintf(stderr, "usage: delay [-b BYTES] [-r BYTES_PER_S] LISTEN_PORT TARGET_PORT ROUND_TRIP_MS\n");
    return 2;
  }
  delay = (long long)(atof(words[optind + 2]) * 1e6 / 2);
  struct sockaddr_in at = loopback(words[optind]);
  int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (listener < 0 || bind(listener, (void *)&at, sizeof at) || listen(listener, CONNECTIONS)) fail("listen");
  for (;;) {
    long long next = -1;
    nfds_t waiting = 0;
    waits[waiting++] = (struct pollfd){listener, POLLIN, 0};
    for (int slot = 0; slot < CONNECTIONS; slot++) {
      struct connection *one = &all[slot];
      if (!one->used) continue;
      for (int i = 0; i < 2; i++) {
        struct way *way = &one->ways[i];
        int blocked;
        long long due = send_due(way, &blocked, &one->dead);
        if (due >= 0 && (next < 0 || due < next)) next = due;
        if (blocked) waits[waiting++] = (struct pollfd){way->to, POLLOUT, 0};
        if (has_room(way)) waits[waiting++] = (struct pollfd){way->from, POLLIN, 0};
      }
      if (one->dead || (one->ways[0].shut && one->ways[1].shut)) {
        end(one);
        next = now();
      }
    }
    long long left = next < 0 ? -1 : next - now();
    if (left < 0) left = next < 0 ? -1 : 0;
    struct timespec time = {left / 1000000000, left % 1000000000};
    if (ppoll(waits, waiting, left < 0 ? NULL : &time, NULL) < 0 && errno != EINTR) fail("poll");
    if (waits[0].revents) begin(all, listener, words[optind + 1]);
    for (int slot = 0; slot < CONNECTIONS; slot++)
      for (int i = 0; all[slot].used && i < 2; i++)
        if (has_room(&all[slot].ways[i])) take_in(&all[slot].ways[i], i);
  }
}
