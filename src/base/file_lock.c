/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 1000 };

int ap_open(const char *path, int flags)
{
	int fd;

	do
		fd = open(path, flags | O_CLOEXEC | O_NOCTTY, 0666);
	while (fd < 0 && errno == EINTR);
	return fd;
}

int ap_lock_fd(int fd)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int failed;

	do
		failed = fcntl(fd, F_SETLK, &whole);
	while (failed && errno == EINTR);
	return !failed ? 0 : errno == EACCES ? EAGAIN : errno;
}

int ap_lock_take(const char *path, int *fd)
{
	for (int i = 0; i < TRIES; i++) {
		struct stat st;
		int error;

		*fd = ap_open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK);
		if (*fd < 0)
			return errno == ELOOP || errno == EISDIR || errno == ENXIO ? EEXIST : errno;
		error = ap_lock_fd(*fd);
		if (fstat(*fd, &st) || !S_ISREG(st.st_mode))
			error = EEXIST;
		else if (error != EAGAIN && st.st_nlink)
			return 0;
		close(*fd);
		*fd = -1;
		if (error == EAGAIN || error == EEXIST)
			return error;
		/* its holder removed the file meanwhile: try again */
	}
	return EAGAIN;
}

void ap_lock_give(const char *path, int fd)
{
	unlink(path);
	close(fd);
}
