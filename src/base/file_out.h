/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files out, all or nothing. Outputs of a run are staged beside their targets
 * (".NAME.autopar-XXXXXX.tmp", O_EXCL, mode 0666 & ~umask), and renamed together in a fixed order at commit;
 * a symbolic link's target is replaced, the link stays. Devices, FIFOs and whatever standard output
 * already is (also as /dev/stdout) are no such files: they are written through at commit.
 */
#ifndef AP_BASE_FILE_OUT_H
#define AP_BASE_FILE_OUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/ctx.h"
#include "base/file.h"

struct ap_outputs; /* the outputs of one run */

struct ap_outputs *ap_outputs_create(struct ap_ctx *ctx);

/* Stages path; *id numbers the output. AP_IO with a message where the folder cannot take it;
 * AP_USAGE for a directory and for the target of an earlier output. "-" is standard output, written at
 * commit, before the renames. */
enum ap_status ap_outputs_open(struct ap_ctx *ctx, struct ap_outputs *o, const char *path,
	size_t *id);

/* Makes a folder for outputs, where there is none yet; it goes again where nothing is committed into it.
 * AP_IO where it cannot be made, AP_USAGE where path is something else. */
enum ap_status ap_outputs_folder(struct ap_ctx *ctx, struct ap_outputs *o, const char *path);

/* A folder that is to go when the outputs are put in place, where that leaves nothing in it. */
void ap_outputs_empty(struct ap_ctx *ctx, struct ap_outputs *o, const char *path);

/* A file that is to go when the outputs are put in place, in its turn among them. */
enum ap_status ap_outputs_remove(struct ap_ctx *ctx, struct ap_outputs *o, const char *path);

/*
 * Keeps other runs away from the folder dir until the outputs are committed or discarded, by a locked file
 * of this name in it, which is then removed. *notes: what a run that was killed noted in it, whole lines, NUL
 * at the end; "" where there was none. AP_IO where another run has it, or it cannot be made. Once for a set.
 */
enum ap_status ap_outputs_lock(struct ap_ctx *ctx, struct ap_outputs *o, const char *dir, const char *name,
	const char **notes);

/* Adds lines to the notes in the locked file, for the next run if this one is killed. AP_IO. */
enum ap_status ap_outputs_note(struct ap_ctx *ctx, struct ap_outputs *o, const char *text, size_t len);

/* Removes from a folder what killed runs left beside their outputs: temporary files that no process works on,
 * and nothing else. Folders that outputs are staged in are cleared without being asked. */
void ap_outputs_clear(struct ap_outputs *o, const char *folder);

/* Buffered write to output id; errors are kept until commit. */
void ap_outputs_write(struct ap_outputs *o, size_t id, const char *bytes, size_t len);

/* Of what was written to output id until now. */
void ap_outputs_sum(struct ap_outputs *o, size_t id, struct ap_file_sum *out);

struct ap_output_sink {
	struct ap_outputs *o;
	size_t id;
};
void ap_output_write_fn(void *sink, const char *bytes, size_t len); /* an ap_write_fn */

/* Flushes, fsyncs and renames all, in the order they were opened; a target that holds the same bytes
 * already stays as it is, with its time and mode. On any failure (also of earlier writes) reports AP_IO
 * with the path, and removes every staged file: nothing is changed. */
enum ap_status ap_outputs_commit(struct ap_ctx *ctx, struct ap_outputs *o);

/* Has anything been written to standard output? */
bool ap_outputs_spoke(const struct ap_outputs *o);

/* Removes what is staged; no target is touched. Accepts NULL and a committed set. Async-signal
 * unsafe; a signal handler must only set the stop flag. */
void ap_outputs_discard(struct ap_outputs *o);

/* Writes all of bytes to standard output; AP_IO when it is closed, full or its reader has gone. */
enum ap_status ap_stdout_write(struct ap_ctx *ctx, const char *bytes, size_t len);

#endif
