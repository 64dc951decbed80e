/* SPDX-License-Identifier: Apache-2.0 */
/* Size and SHA-256 of files. */
#include "base/file_sum.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"

struct reading {
	int fd;
	off_t at;
};

static ptrdiff_t read_piece(void *user, void *piece, size_t len)
{
	struct reading *r = user;
	ssize_t n;

	do
		n = pread(r->fd, piece, len, r->at);
	while (n < 0 && errno == EINTR);
	r->at += n > 0 ? n : 0;
	return n;
}

int ap_file_sum_fd(int fd, struct ap_file_sum *out)
{
	struct reading r = {.fd = fd};

	if (!ap_sha256_read(read_piece, &r, out->sha256))
		return errno;
	out->bytes = r.at;
	return 0;
}

int ap_file_sum(const char *path, struct ap_file_sum *out)
{
	struct stat st;
	int fd, error;

	do
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return errno;
	error = fstat(fd, &st) ? errno : S_ISREG(st.st_mode) ? ap_file_sum_fd(fd, out) : EINVAL;
	close(fd);
	return error;
}
