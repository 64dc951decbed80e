/* SPDX-License-Identifier: Apache-2.0 */
/* Opening files, and locks that the kernel releases when their process ends, however it ends.
 * Private to base. */
#ifndef AP_BASE_FILE_LOCK_H
#define AP_BASE_FILE_LOCK_H

/* open() with O_CLOEXEC and O_NOCTTY added, retried if interrupted. Returns a descriptor, or -1
 * with errno. */
int ap_open(const char *path, int flags);

/* Locks a writable open file without waiting. Returns 0, EAGAIN if another process has the lock, or
 * the errno of a file system without locks. Closing any descriptor of the file releases the
 * lock. */
int ap_lock_fd(int fd);

/* Opens and locks a regular file, creating it if missing. Returns 0 or an errno: EAGAIN if another
 * process has it, EEXIST if the name is not a regular file. On a file system without locks, opens
 * it only. */
int ap_lock_take(const char *path, int *fd);

/* Removes the file and releases the lock. */
void ap_lock_give(const char *path, int fd);

#endif
