/* SPDX-License-Identifier: Apache-2.0 */
/* Opening files, and locks, which the kernel takes back when their process ends, however it ends.
 * Private to base. */
#ifndef AP_BASE_FILE_LOCK_H
#define AP_BASE_FILE_LOCK_H

/* open() without interruptions; flags beside O_CLOEXEC and O_NOCTTY. A descriptor, or -1 and errno. */
int ap_open(const char *path, int flags);

/* Locks an open file that may be written to, without waiting. 0, EAGAIN where another process has it, or
 * the errno of a file system that has no locks. Closing any descriptor of the file gives the lock back. */
int ap_lock_fd(int fd);

/* Opens and locks a regular file of this name, which is made where there is none. 0 or an errno: EAGAIN
 * where another process has it, EEXIST where something else has the name. Where the file system has no
 * locks the file is opened without. */
int ap_lock_take(const char *path, int *fd);

/* Removes the file and gives it back. */
void ap_lock_give(const char *path, int fd);

#endif
