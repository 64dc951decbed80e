/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a file holds what another one does. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { PIECE_BYTES = 8 << 10 };

/* As much as there is of len bytes at a place of a file; less than 0 where it cannot be read. */
static ssize_t read_at(int fd, char *bytes, size_t len, off_t at)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(fd, bytes + got, len - got, at + (off_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (!n)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

static bool same_bytes(int a, int b)
{
	char x[PIECE_BYTES], y[PIECE_BYTES];
	off_t at = 0;
	ssize_t n;

	do {
		n = read_at(a, x, sizeof x, at);
		if (n < 0 || read_at(b, y, sizeof y, at) != n || memcmp(x, y, (size_t)n) != 0)
			return false;
		at += n;
	} while (n == PIECE_BYTES);
	return true;
}

static bool same_size(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && S_ISREG(x.st_mode) && S_ISREG(y.st_mode) &&
		x.st_size == y.st_size;
}

bool ap_file_holds(const char *path, int fd)
{
	int other;
	bool same;

	do
		other = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	while (other < 0 && errno == EINTR);
	if (other < 0)
		return false;
	same = same_size(other, fd) && same_bytes(other, fd);
	close(other);
	return same;
}
