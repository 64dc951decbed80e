/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To be loaded before a program (LD_PRELOAD): kills it, as nothing can catch, right before call number KILL_AT
 * that changes files, counted from 1. With HOLD_AT it stops instead, until it is told to go on.
 */
#undef _FILE_OFFSET_BITS /* it renames open() */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void count(void)
{
	static long calls;
	const char *kill_at = getenv("KILL_AT"), *hold_at = getenv("HOLD_AT");

	calls++;
	if (kill_at && calls == atol(kill_at))
		raise(SIGKILL);
	if (hold_at && calls == atol(hold_at))
		raise(SIGSTOP);
}

/* A function of the name that comes next: that of the C library. */
#define NEXT(type, name, ...) \
	union { \
		void *object; \
		type (*function)(__VA_ARGS__); \
	} next = {dlsym(RTLD_NEXT, name)}

#define CALL(type, name, arguments, ...) \
	type name arguments; \
	type name arguments \
	{ \
		NEXT(type, #name, __VA_ARGS__); \
		count();

CALL(int, rename, (const char *from, const char *to), const char *, const char *)
	return next.function(from, to);
}

CALL(int, link, (const char *from, const char *to), const char *, const char *)
	return next.function(from, to);
}

CALL(int, unlink, (const char *path), const char *)
	return next.function(path);
}

CALL(int, unlinkat, (int fd, const char *path, int flags), int, const char *, int)
	return next.function(fd, path, flags);
}

CALL(int, mkdir, (const char *path, mode_t mode), const char *, mode_t)
	return next.function(path, mode);
}

CALL(int, rmdir, (const char *path), const char *)
	return next.function(path);
}

CALL(int, fsync, (int fd), int)
	return next.function(fd);
}

CALL(ssize_t, write, (int fd, const void *bytes, size_t len), int, const void *, size_t)
	return next.function(fd, bytes, len);
}

static mode_t mode_of(int flags, va_list *more)
{
	if (!(flags & O_CREAT))
		return 0;
	count();
	return va_arg(*more, mode_t);
}

#define OPEN(name) \
	int name(const char *path, int flags, ...); \
	int name(const char *path, int flags, ...) \
	{ \
		NEXT(int, #name, const char *, int, ...); \
		va_list more; \
		mode_t mode; \
\
		va_start(more, flags); \
		mode = mode_of(flags, &more); \
		va_end(more); \
		return next.function(path, flags, mode); \
	}

OPEN(open)
OPEN(open64)
