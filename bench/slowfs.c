/* A file system in memory whose every operation takes a given time, for measurements of what waiting
 * costs: up to 65,000 directories and files of up to 1 GiB, up to LIMIT operations under way at once.
 *
 *   slowfs MOUNTPOINT DELAY_US LIMIT
 *
 * Mounts, and serves until it is unmounted (umount MOUNTPOINT). Attributes and names may be kept by the
 * kernel for 3 s. The protocol is that of linux/fuse.h; unknown operations are answered with ENOSYS.
 *
 * One thread serves all. The delay is the same for each operation, so requests are due in the order in
 * which they came, and a queue is enough. A thread for each waiting request would take most of two CPUs
 * for its timers and wake-ups: the measured programs would compete with the instrument. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { NODES = 65536, NAME = 256, ROOT = 1, VALID_S = 3, LARGEST = 1 << 20 };
static const uint64_t ROOM = 1ull << 30;

struct node {
    int linked, opened, children;
    char name[NAME];
    struct fuse_attr attr;
    char *data;
};

static struct node nodes[NODES];
/* Of the parent and the name of each node that has one, and the parents alone: a search reads these and few
 * names. No node from `end` on has ever been used. */
static uint32_t hashes[NODES], parents[NODES];
static int end = ROOT + 1, vacant = ROOT + 1;
static int device;

/* Requests that wait, oldest first, in a ring of `limit` places. */
struct request {
    struct timespec due;
    char *bytes;
};
static struct request *requests;
static int limit, first, waiting;
static const size_t REQUEST = LARGEST + 65536;

static void stamp(struct fuse_attr *attr)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    attr->mtime = attr->ctime = now.tv_sec;
    attr->mtimensec = attr->ctimensec = now.tv_nsec;
}

static uint32_t hash(uint32_t parent, const char *name)
{
    uint32_t sum = 2166136261u ^ parent * 2654435761u;
    for (; *name; name++) sum = (sum ^ (unsigned char)*name) * 16777619u;
    return sum;
}

static int find(uint32_t parent, const char *name)
{
    uint32_t wanted = hash(parent, name);
    for (int id = ROOT + 1; id < end; id++)
        if (hashes[id] == wanted && nodes[id].linked && parents[id] == parent && !strcmp(nodes[id].name, name)) return id;
    return 0;
}

static void drop_data(struct node *node)
{
    if (node->linked || node->opened || !node->attr.ino) return;
    if (node->data) munmap(node->data, ROOM);
    memset(node, 0, sizeof *node);
    int id = node - nodes;
    hashes[id] = parents[id] = 0;
    if (id < vacant) vacant = id;
}

static void remove_name(int id)
{
    nodes[parents[id]].children--;
    nodes[id].linked = 0;
    drop_data(&nodes[id]);
}

static size_t told(int id, struct fuse_attr_out *out)
{
    memset(out, 0, sizeof *out);
    out->attr_valid = VALID_S;
    out->attr = nodes[id].attr;
    return sizeof *out;
}

static size_t entry(int id, struct fuse_entry_out *out)
{
    memset(out, 0, sizeof *out);
    out->nodeid = id;
    out->entry_valid = out->attr_valid = VALID_S;
    out->attr = nodes[id].attr;
    return sizeof *out;
}

static void give_name(int id, uint32_t parent, const char *name)
{
    struct node *node = &nodes[id];
    snprintf(node->name, NAME, "%s", name);
    hashes[id] = hash(parent, node->name);
    parents[id] = parent;
    nodes[parent].children++;
    node->linked = 1;
}

static int make(uint32_t parent, const char *name, uint32_t mode)
{
    for (int id = vacant; id < NODES; id++) {
        struct node *node = &nodes[id];
        if (node->attr.ino) continue;
        int is_dir = S_ISDIR(mode);
        if (!is_dir) {
            node->data = mmap(NULL, ROOM, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (node->data == MAP_FAILED) { node->data = NULL; return -ENOSPC; }
        }
        node->attr = (struct fuse_attr){ .ino = id, .mode = (is_dir ? S_IFDIR : S_IFREG) | (mode & 07777),
                                         .nlink = is_dir ? 2 : 1, .blksize = 4096 };
        stamp(&node->attr);
        give_name(id, parent, name);
        vacant = id + 1;
        if (id >= end) end = id + 1;
        return id;
    }
    return -ENOSPC;
}

static int set(struct node *node, const struct fuse_setattr_in *in)
{
    struct fuse_attr *attr = &node->attr;
    if (in->valid & FATTR_MODE) attr->mode = (attr->mode & S_IFMT) | (in->mode & 07777);
    if (in->valid & FATTR_UID) attr->uid = in->uid;
    if (in->valid & FATTR_GID) attr->gid = in->gid;
    if (in->valid & FATTR_SIZE) {
        if (in->size > ROOM) return -EFBIG;
        if (in->size < attr->size) madvise(node->data, ROOM, MADV_DONTNEED);
        attr->size = in->size;
        stamp(attr);
    }
    if (in->valid & FATTR_MTIME) { attr->mtime = in->mtime; attr->mtimensec = in->mtimensec; }
    attr->blocks = (attr->size + 511) / 512;
    return 0;
}

static size_t list(uint32_t parent, uint64_t offset, uint32_t size, char *out)
{
    size_t used = 0;
    for (uint64_t id = offset < ROOT + 1 ? ROOT + 1 : offset; id < (uint64_t)end; id++) {
        if (parents[id] != parent || !nodes[id].linked) continue;
        struct fuse_dirent head = { .ino = id, .off = id + 1, .namelen = strlen(nodes[id].name),
                                    .type = nodes[id].attr.mode >> 12 };
        size_t whole = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + head.namelen);
        if (used + whole > size) break;
        memset(out + used, 0, whole);
        memcpy(out + used, &head, FUSE_NAME_OFFSET);
        memcpy(out + used + FUSE_NAME_OFFSET, nodes[id].name, head.namelen);
        used += whole;
    }
    return used;
}

/* The length of the answer, or a negative errno. */
static long answer(const struct fuse_in_header *head, const char *body, char *out)
{
    struct node *node = &nodes[head->nodeid % NODES];
    switch (head->opcode) {
    case FUSE_INIT: {
        const struct fuse_init_in *in = (const void *)body;
        *(struct fuse_init_out *)out = (struct fuse_init_out){
            .major = 7, .minor = 31, .max_readahead = in->max_readahead,
            .flags = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES,
            .max_write = LARGEST, .time_gran = 1, .max_pages = LARGEST / 4096 };
        return sizeof(struct fuse_init_out);
    }
    case FUSE_LOOKUP: {
        int id = find(head->nodeid, body);
        return id ? (long)entry(id, (void *)out) : -ENOENT;
    }
    case FUSE_GETATTR: return told(head->nodeid, (void *)out);
    case FUSE_SETATTR: {
        int failed = set(node, (const void *)body);
        return failed ? failed : (long)told(head->nodeid, (void *)out);
    }
    case FUSE_CREATE: {
        const struct fuse_create_in *in = (const void *)body;
        const char *name = body + sizeof *in;
        int id = find(head->nodeid, name) ? -EEXIST : make(head->nodeid, name, S_IFREG | (in->mode & 07777));
        if (id < 0) return id;
        nodes[id].opened++;
        size_t used = entry(id, (void *)out);
        memset(out + used, 0, sizeof(struct fuse_open_out));
        return used + sizeof(struct fuse_open_out);
    }
    case FUSE_MKDIR: {
        const struct fuse_mkdir_in *in = (const void *)body;
        const char *name = body + sizeof *in;
        int id = find(head->nodeid, name) ? -EEXIST : make(head->nodeid, name, S_IFDIR | (in->mode & 07777));
        return id < 0 ? id : (long)entry(id, (void *)out);
    }
    case FUSE_OPEN: node->opened++; /* fall through */
    case FUSE_OPENDIR:
        memset(out, 0, sizeof(struct fuse_open_out));
        return sizeof(struct fuse_open_out);
    case FUSE_READDIR: {
        const struct fuse_read_in *in = (const void *)body;
        return list(head->nodeid, in->offset, in->size, out);
    }
    case FUSE_READ: {
        /* The content is sent from where it is, see `reply`. */
        const struct fuse_read_in *in = (const void *)body;
        uint64_t left = in->offset < node->attr.size ? node->attr.size - in->offset : 0;
        return left < in->size ? left : in->size;
    }
    case FUSE_WRITE: {
        const struct fuse_write_in *in = (const void *)body;
        if (in->offset + in->size > ROOM) return -EFBIG;
        memcpy(node->data + in->offset, body + sizeof *in, in->size);
        if (in->offset + in->size > node->attr.size) node->attr.size = in->offset + in->size;
        node->attr.blocks = (node->attr.size + 511) / 512;
        stamp(&node->attr);
        *(struct fuse_write_out *)out = (struct fuse_write_out){ .size = in->size };
        return sizeof(struct fuse_write_out);
    }
    case FUSE_RMDIR:
    case FUSE_UNLINK: {
        int id = find(head->nodeid, body);
        if (!id) return -ENOENT;
        if (nodes[id].children) return -ENOTEMPTY;
        remove_name(id);
        return 0;
    }
    case FUSE_RENAME:
    case FUSE_RENAME2: {
        const char *from = body + (head->opcode == FUSE_RENAME ? sizeof(struct fuse_rename_in) : sizeof(struct fuse_rename2_in));
        const char *to = from + strlen(from) + 1;
        /* Both begin with the folder of the new name. */
        uint32_t parent = *(const uint64_t *)(const void *)body;
        int id = find(head->nodeid, from), old = find(parent, to);
        if (!id) return -ENOENT;
        if (old && head->opcode == FUSE_RENAME2 && ((const struct fuse_rename2_in *)body)->flags) return -EEXIST;
        if (old && nodes[old].children) return -ENOTEMPTY;
        if (old) remove_name(old);
        nodes[head->nodeid].children--;
        give_name(id, parent, to);
        return 0;
    }
    case FUSE_RELEASE:
        node->opened--;
        drop_data(node);
        return 0;
    case FUSE_FLUSH:
    case FUSE_FSYNC:
    case FUSE_RELEASEDIR: return 0;
    case FUSE_STATFS:
        memset(out, 0, sizeof(struct fuse_statfs_out));
        ((struct fuse_statfs_out *)out)->st = (struct fuse_kstatfs){
            .blocks = 1 << 24, .bfree = 1 << 23, .bavail = 1 << 23, .bsize = 4096, .namelen = 255, .frsize = 4096 };
        return sizeof(struct fuse_statfs_out);
    default: return -ENOSYS;
    }
}

/* Executes a request and answers it. */
static void reply(char *bytes)
{
    static char out[LARGEST];
    const struct fuse_in_header *head = (const void *)bytes;
    const char *body = bytes + sizeof *head;
    long done = answer(head, body, out);
    struct fuse_out_header to = { .error = done < 0 ? done : 0, .unique = head->unique };
    struct iovec parts[] = { { &to, sizeof to }, { out, done > 0 ? done : 0 } };
    if (head->opcode == FUSE_READ)
        parts[1].iov_base = nodes[head->nodeid % NODES].data + ((const struct fuse_read_in *)(const void *)body)->offset;
    to.len = parts[0].iov_len + parts[1].iov_len;
    if (writev(device, parts, 2) < 0 && errno == ENODEV) exit(0);
}

/* Takes requests until the kernel has no more, or the queue is full. */
static void take(struct timespec delay)
{
    while (waiting < limit) {
        struct request *request = &requests[(first + waiting) % limit];
        ssize_t got = read(device, request->bytes, REQUEST);
        if (got < 0 && errno == EAGAIN) return;
        if (got < 0 && (errno == ENOENT || errno == EINTR)) continue;
        if (got < (ssize_t)sizeof(struct fuse_in_header)) exit(0);
        uint32_t op = ((const struct fuse_in_header *)(const void *)request->bytes)->opcode;
        if (op == FUSE_FORGET || op == FUSE_BATCH_FORGET || op == FUSE_INTERRUPT) continue;
        clock_gettime(CLOCK_MONOTONIC, &request->due);
        if (op != FUSE_INIT) {
            request->due.tv_sec += delay.tv_sec + (request->due.tv_nsec + delay.tv_nsec) / 1000000000;
            request->due.tv_nsec = (request->due.tv_nsec + delay.tv_nsec) % 1000000000;
        }
        waiting++;
    }
}

/* Answers what is due. The time to the next request; negative seconds when none waits. */
static struct timespec answer_due(void)
{
    while (waiting) {
        struct timespec now, due = requests[first].due;
        clock_gettime(CLOCK_MONOTONIC, &now);
        long long left = (due.tv_sec - now.tv_sec) * 1000000000ll + due.tv_nsec - now.tv_nsec;
        if (left > 0) return (struct timespec){ left / 1000000000, left % 1000000000 };
        reply(requests[first].bytes);
        first = (first + 1) % limit;
        waiting--;
    }
    return (struct timespec){ -1, 0 };
}

int main(int count, char **words)
{
    if (count != 4 || atoi(words[3]) < 1) return fprintf(stderr, "usage: slowfs MOUNTPOINT DELAY_US LIMIT\n"), 2;
    long delay_us = atol(words[2]);
    limit = atoi(words[3]);
    requests = calloc(limit, sizeof *requests);
    for (int each = 0; each < limit; each++) requests[each].bytes = malloc(REQUEST);
    nodes[ROOT].attr = (struct fuse_attr){ .ino = ROOT, .mode = S_IFDIR | 0755, .nlink = 2, .blksize = 4096 };
    stamp(&nodes[ROOT].attr);
    /* Waits are as long as they are said to be, not 50 us longer. */
    prctl(PR_SET_TIMERSLACK, 1ul);
    device = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (device < 0) return perror("/dev/fuse"), 1;
    char options[128];
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions", device);
    if (mount("slowfs", words[1], "fuse", MS_NOSUID | MS_NODEV, options)) return perror(words[1]), 1;
    for (;;) {
        take((struct timespec){ delay_us / 1000000, delay_us % 1000000 * 1000 });
        struct timespec next = answer_due();
        struct pollfd ready = { .fd = device, .events = POLLIN };
        ppoll(&ready, waiting < limit, next.tv_sec < 0 ? NULL : &next, NULL);
    }
}
