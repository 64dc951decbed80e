/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary files beside outputs, ".NAME.autopar-XXXXXX.tmp". The process that uses one holds its
 * lock: one that can be locked was left by a killed run. Private to base. */
#ifndef AP_BASE_FILE_TEMP_H
#define AP_BASE_FILE_TEMP_H

#include <stdbool.h>

struct ap_arena;

/* Name of a temporary file for folder/base, its X still to be chosen. */
char *ap_temp_name(struct ap_arena *arena, const char *folder, const char *base);

/* Chooses a free name, creates and opens the file. Returns 0 or an errno. */
int ap_temp_create(char *name, int *fd);

/* Gives a file a second name, or a new one. Returns 0 or an errno. *fd: holds its lock, to be
 * closed when the name is gone; -1: not locked. */
int ap_temp_link(char *name, const char *file, int *fd);
int ap_temp_move(char *name, const char *file, int *fd);

/* Renames to ".NAME.autopar-XXXXXX.old", to keep the only copy. */
void ap_temp_keep(char *name);

/* Is this a temporary file's name, without folder? */
bool ap_temp_is(const char *base);

/* Removes unused temporary files of a folder. mine: is the file ours, so that its lock does not
 * protect it? May be NULL. */
void ap_temp_clear(const char *folder, bool (*mine)(void *user, const char *base), void *user);

#endif
