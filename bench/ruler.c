// ruler: the least work that copies a tree of small files on some threads: what the kernel costs when
// nothing is checked and little is kept (modes and times of files). A measure to stand beside, not a
// copier: it ignores everything but directories and regular files, and stops at the first error.
//
//   gcc -O2 -pthread ruler.c -o ruler
//   ruler SRC DST MODE THREADS     MODE  d  create under the final name
//                                        t  create without a name, then link
//                                        r  create under a temporary name, then rename
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES 64
#define BYTES (1 << 20)
#define DEPTH_TEXT 4096

struct work {
  struct work *next;
  char path[DEPTH_TEXT];      // relative to both roots
  int count;                  // names to copy; 0: the directory is still to be listed
  char names[NAMES][256];
};

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct work *first;
  long unfinished;
} queue = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0};

static int from_root, to_root;
static char mode;

static void fail(const char *what) {
  fprintf(stderr, "ruler: %s: %s\n", what, strerror(errno));
  exit(1);
}

static struct work *make(const char *path) {
  struct work *w = malloc(sizeof *w);
  if (!w) fail("malloc");
  snprintf(w->path, sizeof w->path, "%s", path);
  w->count = 0;
  return w;
}

static void give(struct work *w) {
  pthread_mutex_lock(&queue.lock);
  w->next = queue.first;
  queue.first = w;
  queue.unfinished++;
  pthread_cond_signal(&queue.changed);
  pthread_mutex_unlock(&queue.lock);
}

static struct work *take(void) {
  pthread_mutex_lock(&queue.lock);
  while (!queue.first && queue.unfinished) pthread_cond_wait(&queue.changed, &queue.lock);
  struct work *w = queue.first;
  if (w) queue.first = w->next;
  pthread_mutex_unlock(&queue.lock);
  return w;
}

static void finish(struct work *w) {
  free(w);
  pthread_mutex_lock(&queue.lock);
  if (--queue.unfinished == 0) pthread_cond_broadcast(&queue.changed);
  pthread_mutex_unlock(&queue.lock);
}

static int create(int dir, const char *name, char *temporary, mode_t bits) {
  int flags = O_WRONLY | O_CLOEXEC;
  if (mode == 't') return openat(dir, ".", flags | O_TMPFILE, bits);
  if (mode == 'd') return openat(dir, name, flags | O_CREAT | O_EXCL, bits);
  snprintf(temporary, 300, ".ruler.%s", name);
  return openat(dir, temporary, flags | O_CREAT | O_EXCL, bits);
}

static void copy(int from, int to, const char *name, char *buffer) {
  struct stat st;
  char temporary[300];
  int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (in < 0 || fstat(in, &st)) fail(name);
  int out = create(to, name, temporary, st.st_mode & 07777);
  if (out < 0) fail(name);
  for (ssize_t got; (got = read(in, buffer, BYTES)) != 0;) {
    if (got < 0 || write(out, buffer, got) != got) fail(name);
    if (got < BYTES) break;
  }
  struct timespec times[2] = {st.st_atim, st.st_mtim};
  if (futimens(out, times)) fail(name);
  if (mode == 't' && linkat(out, "", to, name, AT_EMPTY_PATH)) fail(name);
  if (mode == 'r' && renameat(to, temporary, to, name)) fail(name);
  close(out);
  close(in);
}

static void copy_all(struct work *w, int from, int to, char *buffer) {
  for (int i = 0; i < w->count; i++) copy(from, to, w->names[i], buffer);
}

static void list(struct work *w, int from, int to, char *buffer) {
  char below[DEPTH_TEXT + 256];
  struct work *files = make(w->path);
  DIR *dir = fdopendir(dup(from));
  if (!dir) fail(w->path);
  for (struct dirent *e; (e = readdir(dir));) {
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
    if (e->d_type == DT_DIR) {
      if (mkdirat(to, e->d_name, 0755)) fail(e->d_name);
      snprintf(below, sizeof below, "%s/%s", w->path, e->d_name);
      give(make(below));
    } else if (e->d_type == DT_REG) {
      strcpy(files->names[files->count++], e->d_name);
      if (files->count == NAMES) {
        give(files);
        files = make(w->path);
      }
    }
  }
  closedir(dir);
  copy_all(files, from, to, buffer);
  free(files);
}

static void *worker(void *unused) {
  char *buffer = malloc(BYTES);
  if (!buffer) fail("malloc");
  for (struct work *w; (w = take()); finish(w)) {
    int from = openat(from_root, w->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int to = openat(to_root, w->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0 || to < 0) fail(w->path);
    if (w->count) copy_all(w, from, to, buffer);
    else list(w, from, to, buffer);
    close(from);
    close(to);
  }
  free(buffer);
  return unused;
}

int main(int argc, char **argv) {
  pthread_t threads[256];
  int count = argc == 5 ? atoi(argv[4]) : 0;
  if (count < 1 || count > 256 || !strchr("dtr", argv[3][0])) {
    fprintf(stderr, "usage: ruler SRC DST d|t|r THREADS\n");
    return 2;
  }
  mode = argv[3][0];
  umask(0);
  from_root = open(argv[1], O_RDONLY | O_DIRECTORY);
  if (mkdir(argv[2], 0755) && errno != EEXIST) fail(argv[2]);
  to_root = open(argv[2], O_RDONLY | O_DIRECTORY);
  if (from_root < 0 || to_root < 0) fail("open");
  give(make("."));
  for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, worker, NULL);
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
  return 0;
}
