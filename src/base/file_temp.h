/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temporary files beside outputs, ".NAME.autopar-XXXXXX.tmp". The process that works on one has it locked:
 * one that can be locked was left by a run that was killed. Private to base.
 */
#ifndef AP_BASE_FILE_TEMP_H
#define AP_BASE_FILE_TEMP_H

#include <stdbool.h>

struct ap_arena;

/* The name of one beside folder/base, whose X are still to be chosen. */
char *ap_temp_name(struct ap_arena *arena, const char *folder, const char *base);

/* Chooses the X of a name that is free, makes the file and opens it. 0 or an errno. */
int ap_temp_create(char *name, int *fd);

/* Gives a file a second name, or another in place of its own. 0 or an errno. *fd: what holds its lock, to be
 * closed when the name is gone; -1: it has none. */
int ap_temp_link(char *name, const char *file, int *fd);
int ap_temp_move(char *name, const char *file, int *fd);

/* Gives one a name that it keeps, ".NAME.autopar-XXXXXX.old", for it holds what is nowhere else. */
void ap_temp_keep(char *name);

/* Is this the name of one, without its folder? */
bool ap_temp_is(const char *base);

/* Removes those of a folder that nobody works on. mine: is this one of our own, whose lock would not
 * keep us off? NULL: none is. */
void ap_temp_clear(const char *folder, bool (*mine)(void *user, const char *base), void *user);

#endif
