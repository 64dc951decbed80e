/* SPDX-License-Identifier: Apache-2.0 */
/* Writes files, all or none. Outputs of a run are staged beside their targets
 * (".NAME.autopar-XXXXXX.tmp", O_EXCL, mode 0666 & ~umask), and renamed together in a fixed order
 * at commit; a symbolic link stays, its target is replaced. Devices, FIFOs and the file that is
 * standard output (also as /dev/stdout) are written through at commit. */
#ifndef AP_BASE_FILE_OUT_H
#define AP_BASE_FILE_OUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/ctx.h"
#include "base/file.h"

struct ap_outputs; /* outputs of one run */

struct ap_outputs *ap_outputs_create(struct ap_ctx *ctx);

/* Stages path; *id: its index. Returns AP_IO, with a message, if the folder is not writable;
 * AP_USAGE for a directory or the target of an earlier output. "-" is standard output, written at
 * commit before the renames. */
enum ap_status ap_outputs_open(struct ap_ctx *ctx, struct ap_outputs *o, const char *path,
	size_t *id);

/* Creates a folder for outputs if missing; removed again if nothing is committed into it. Returns
 * AP_IO if it cannot be created, AP_USAGE if path is no folder. */
enum ap_status ap_outputs_folder(struct ap_ctx *ctx, struct ap_outputs *o, const char *path);

/* Removes a folder at commit if it is then empty. */
void ap_outputs_empty(struct ap_ctx *ctx, struct ap_outputs *o, const char *path);

/* Removes a file at commit, in order with the outputs. */
enum ap_status ap_outputs_remove(struct ap_ctx *ctx, struct ap_outputs *o, const char *path);

/* Keeps other runs out of folder dir until commit or discard by a locked file `name` in it, which
 * is then removed. *notes: whole lines that a killed run left in it, NUL-terminated; "" if none.
 * Returns AP_IO if another run has it, or it cannot be created. Once per set. */
enum ap_status ap_outputs_lock(struct ap_ctx *ctx, struct ap_outputs *o, const char *dir, const char *name,
	const char **notes);

/* Appends lines to the locked file, for the next run in case this one is killed. Returns AP_IO if
 * it fails. */
enum ap_status ap_outputs_note(struct ap_ctx *ctx, struct ap_outputs *o, const char *text, size_t len);

/* Removes temporary files that killed runs left in a folder, and nothing else. Folders of staged
 * outputs are cleared automatically. */
void ap_outputs_clear(struct ap_outputs *o, const char *folder);

/* Writes to output id, buffered; errors are kept until commit. */
void ap_outputs_write(struct ap_outputs *o, size_t id, const char *bytes, size_t len);

/* Size and digest of what was written to output id so far. */
void ap_outputs_sum(struct ap_outputs *o, size_t id, struct ap_file_sum *out);

struct ap_output_sink {
	struct ap_outputs *o;
	size_t id;
};
void ap_output_write_fn(void *sink, const char *bytes, size_t len); /* an ap_write_fn */

/* Flushes, fsyncs and renames all outputs in the order they were opened; a target that already
 * holds the same bytes is left alone. On any failure, also of earlier writes, returns AP_IO after
 * reporting the path, removes staged files and restores targets. */
enum ap_status ap_outputs_commit(struct ap_ctx *ctx, struct ap_outputs *o);

/* Was anything written to standard output? */
bool ap_outputs_spoke(const struct ap_outputs *o);

/* Removes staged files; targets are untouched. Accepts NULL and a committed set. Not
 * async-signal-safe; a signal handler must only set the stop flag. */
void ap_outputs_discard(struct ap_outputs *o);

/* Writes all bytes to standard output; returns AP_IO if it is closed, full or has no reader. */
enum ap_status ap_stdout_write(struct ap_ctx *ctx, const char *bytes, size_t len);

#endif
