/* SPDX-License-Identifier: Apache-2.0 */
/* What is written: names checked before any work, files staged together and put in place together. */
#ifndef AP_API_OUTPUTS_H
#define AP_API_OUTPUTS_H

#include "api/files.h"
#include "base/file_out.h"
#include "draw/picture.h"

struct ap_bundle_folder;

struct ap_writing { /* the outputs of one run */
	struct ap_ctx *ctx;
	const struct ap_settings *set; /* that name them */
	size_t nread;
	const char *const *read; /* files that are read, beside those that settings name */
	bool hurry; /* somebody waits for an end: what may take seconds is left out */
	struct ap_outputs *staged; /* NULL: nothing yet */
	struct ap_bundle_folder *bundle; /* that is written; NULL: none, or it is not begun */
};

/* Before any work: AP_USAGE for an output that is a folder, an input, or named twice, for a picture of a kind
 * that is not drawn and for protobuf on a terminal; AP_IO where its folder cannot be written to. further: an
 * output that no setting names, or NULL. */
enum ap_status ap_out_check(struct ap_writing *to, const char *further);

/* The two halves of it; also: names of further outputs, NULL after the last, or NULL. */
enum ap_status ap_out_check_names(struct ap_writing *to, const char *further, const char *const *also);
enum ap_status ap_out_check_targets(struct ap_writing *to, const char *further);

/* AP_USAGE when path is standard output and that is a terminal. */
enum ap_status ap_out_check_binary(struct ap_writing *to, const char *path);

/* AP_USAGE where path is a file that is read: for outputs whose names the settings do not tell. */
enum ap_status ap_out_check_input(struct ap_writing *to, const char *path);

/* Do the settings name path as an output? */
bool ap_out_is_output(struct ap_writing *to, const char *path);

/* Reports an error of an output, "-" as standard output; that of errno. Returns st, AP_IO. */
enum ap_status ap_out_fault(struct ap_writing *to, enum ap_status st, const char *path, const char *text);
enum ap_status ap_out_cannot_write(struct ap_writing *to, const char *path);

/* "standard output" for "-". */
const char *ap_out_shown(const char *path);

/* The folder that a file of this name is in: "a/." of "a/b". */
const char *ap_path_folder(struct ap_arena *arena, const char *path);

/* Makes a folder for outputs where there is none. */
enum ap_status ap_out_folder(struct ap_writing *to, const char *path);

/* Removes from a folder what killed runs left beside their outputs. */
void ap_out_clear(struct ap_writing *to, const char *folder);

/* Stages one output and returns where to write it. */
enum ap_status ap_out_open(struct ap_writing *to, const char *path, struct ap_output_sink *out);

/* Text for standard output, staged with the files so that it appears only if they do. */
enum ap_status ap_out_text(struct ap_writing *to, const char *text, size_t len);

/* Puts everything in place, unless an error was reported. */
enum ap_status ap_out_commit(struct ap_writing *to);

/* What dot makes of a picture of this name, by its suffix; NULL: it stays DOT. */
const char *ap_draw_format(const char *path);

struct ap_drawn { /* a picture as bytes */
	const char *text;
	size_t len;
	struct ap_arena *arena; /* that it is in: the caller destroys it; NULL: none */
};

/* A picture in a format (NULL: DOT), of a plan or else of pic. Memory that runs out meanwhile is no reason
 * to lose what else there is: AP_LIMIT, without a message. */
enum ap_status ap_draw(struct ap_ctx *ctx, const struct ap_settings *set, const char *format,
	const struct ap_plan *plan, const struct ap_picture *pic, struct ap_drawn *out);

/* The same, staged, as the suffix of path says. */
enum ap_status ap_out_draw(struct ap_writing *to, const char *path, const struct ap_plan *plan,
	const struct ap_picture *pic);

/*
 * What runs wrote into a folder: names and hashes, by which it can be told from what others put there or
 * changed. As text it is what sha256sum prints: a line "HASH  NAME" for each file.
 */
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

/* Before an output takes the place of a file: a warning where that is neither what a run wrote nor what is
 * to be written, by its hash. */
enum ap_status ap_written_replace(struct ap_writing *to, const struct ap_written *w, const char *name,
	const char *path, const char *sha256);

/* A file that no output takes the place of: goes with the commit, with *gone, where a run wrote it; else it
 * stays. AP_USAGE where it is an input. */
enum ap_status ap_written_remove(struct ap_writing *to, const struct ap_written *w, const char *name,
	const char *path, bool *gone);

#endif
