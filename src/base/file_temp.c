/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_temp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file_lock.h"

#define MARK ".autopar-"
#define SUFFIX ".tmp"
#define KEPT ".old" /* same length */
#define DIGITS "0123456789abcdefghijklmnopqrstuvwxyz"

enum { CHOSEN = 6, TRIES = 10000, NAME_BYTES = 200, RADIX = sizeof DIGITS - 1 };

char *ap_temp_name(struct ap_arena *arena, const char *folder, const char *base)
{
	return ap_arena_printf(arena, "%s/.%.*s" MARK "XXXXXX" SUFFIX, folder, NAME_BYTES, base);
}

/* Starts at a different name per process to avoid collisions. */
static void choose(char *name, uint64_t attempt)
{
	uint64_t n = (uint64_t)getpid() * 7919 + attempt;
	char *end = name + strlen(name) - strlen(SUFFIX);

	for (int i = 1; i <= CHOSEN; i++, n /= RADIX)
		end[-i] = DIGITS[n % RADIX];
}

int ap_temp_create(char *name, int *fd)
{
	for (uint64_t i = 0; i < TRIES; i++) {
		struct stat st;

		choose(name, i);
		*fd = ap_open(name, O_RDWR | O_CREAT | O_EXCL);
		if (*fd < 0 && errno != EEXIST)
			return errno;
		if (*fd < 0)
			continue;
		/* another run may have removed it before it was locked */
		if (ap_lock_fd(*fd) != EAGAIN && !fstat(*fd, &st) && st.st_nlink)
			return 0;
		close(*fd);
		*fd = -1;
	}
	return EEXIST;
}

/* A descriptor with the lock of a file; -1 if it cannot be locked: then a concurrent run may remove
 * the other name as left over. */
static int hold(const char *file)
{
	int fd = ap_open(file, O_RDWR | O_NOFOLLOW | O_NONBLOCK);

	if (fd >= 0 && ap_lock_fd(fd)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int drop(int *fd, int error)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return error;
}

int ap_temp_link(char *name, const char *file, int *fd)
{
	*fd = hold(file);
	for (uint64_t i = 0; i < TRIES; i++) {
		choose(name, i);
		if (!link(file, name))
			return 0;
		if (errno != EEXIST && errno != EINTR)
			return drop(fd, errno);
	}
	return drop(fd, EEXIST);
}

int ap_temp_move(char *name, const char *file, int *fd)
{
	*fd = hold(file);
	for (uint64_t i = 0; i < TRIES; i++) {
		struct stat st;

		choose(name, i);
		if (!lstat(name, &st))
			continue;
		if (!rename(file, name))
			return 0;
		if (errno != EINTR)
			return drop(fd, errno);
	}
	return drop(fd, EEXIST);
}

bool ap_temp_is(const char *base)
{
	const size_t len = strlen(base), tail = strlen(MARK) + CHOSEN + strlen(SUFFIX);
	const char *mark;

	if (*base != '.' || len < tail + 2)
		return false;
	mark = base + len - tail;
	return !strncmp(mark, MARK, strlen(MARK)) && strspn(mark + strlen(MARK), DIGITS) == CHOSEN &&
	       !strcmp(mark + strlen(MARK) + CHOSEN, SUFFIX);
}

void ap_temp_keep(char *name)
{
	char *kept = name + strlen(name) - strlen(SUFFIX);
	char from[PATH_MAX];

	if (strlen(name) >= sizeof from)
		return;
	memcpy(from, name, strlen(name) + 1);
	memcpy(kept, KEPT, strlen(SUFFIX));
	if (rename(from, name))
		memcpy(kept, SUFFIX, strlen(SUFFIX));
}

/* Removes the file if it can be locked: then nobody uses it. */
static void clear(int folder, const char *base)
{
	struct stat opened, named;
	int fd = openat(folder, base, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return;
	if (!fstat(fd, &opened) && S_ISREG(opened.st_mode) && !ap_lock_fd(fd) &&
		!fstatat(folder, base, &named, AT_SYMLINK_NOFOLLOW) && opened.st_dev == named.st_dev &&
		opened.st_ino == named.st_ino)
		unlinkat(folder, base, 0);
	close(fd);
}

void ap_temp_clear(const char *folder, bool (*mine)(void *user, const char *base), void *user)
{
	DIR *dir = opendir(folder);

	for (const struct dirent *e; dir && (e = readdir(dir));)
		if (ap_temp_is(e->d_name) && !(mine && mine(user, e->d_name)))
			clear(dirfd(dir), e->d_name);
	if (dir)
		closedir(dir);
}
