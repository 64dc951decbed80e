/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs wrote into a folder: names and hashes, by which it can be told from what others put there or
 * changed. As text it is what sha256sum prints: a line "HASH  NAME" for each file.
 */
#ifndef AP_CLI_WRITTEN_H
#define AP_CLI_WRITTEN_H

#include "base/file.h"

struct ap_run;

struct ap_written {
	struct ap_written_file {
		const char *name; /* in the folder: "stages/stage_0.ckpt" */
		const char *sha256;
	} *v; /* a name may be there more than once: runs may have written different files */
	size_t n, cap;
};

void ap_written_add(struct ap_ctx *ctx, struct ap_written *w, const char *name, const char *sha256);

/* Adds the lines of a text; what is no such line says nothing. */
void ap_written_add_text(struct ap_ctx *ctx, struct ap_written *w, const char *text);
const char *ap_written_text(struct ap_ctx *ctx, const struct ap_written *w);

bool ap_written_has(const struct ap_written *w, const char *name);

/* Did a run write the file at this path, under this name and as it is? */
bool ap_written_is(const struct ap_written *w, const char *name, const char *path);

/* Before an output takes the place of a file: a warning where that is neither what a run wrote nor what is
 * to be written, by its hash. */
enum ap_status ap_written_replace(struct ap_run *run, const struct ap_written *w, const char *name,
	const char *path, const char *sha256);

/* A file that no output takes the place of: goes with the commit, with *gone, where a run wrote it; else it
 * stays. AP_USAGE where it is an input. */
enum ap_status ap_written_remove(struct ap_run *run, const struct ap_written *w, const char *name,
	const char *path, bool *gone);

#endif
