/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs: names checked before any work, files staged and put in place together. */
#ifndef AP_API_OUTPUTS_H
#define AP_API_OUTPUTS_H

#include "api/files.h"
#include "base/file_out.h"
#include "draw/picture.h"

struct ap_bundle_folder;

struct ap_writing { /* the outputs of one run */
	struct ap_ctx *ctx;
	const struct ap_settings *set; /* names the outputs */
	size_t nread;
	const char *const *read; /* files that are read beside those that settings name */
	bool hurry; /* the user waits for an end: skip what may take seconds */
	struct ap_outputs *staged; /* NULL until something is staged */
	struct ap_bundle_folder *bundle; /* NULL if there is none, or not yet */
};

/* Checks outputs before any work. AP_USAGE if one is a folder, an input, or named twice, for an
 * unknown kind of picture, and for protobuf on a terminal; AP_IO if a folder is not writable.
 * further: an output that no setting names, or NULL. */
enum ap_status ap_out_check(struct ap_writing *to, const char *further);

/* The two halves of ap_out_check(). also: further names, NULL-terminated, or NULL. */
enum ap_status ap_out_check_names(struct ap_writing *to, const char *further, const char *const *also);
enum ap_status ap_out_check_targets(struct ap_writing *to, const char *further);

/* AP_USAGE if path is standard output and a terminal. */
enum ap_status ap_out_check_binary(struct ap_writing *to, const char *path);

/* AP_USAGE if path is also read; for outputs that no setting names. */
enum ap_status ap_out_check_input(struct ap_writing *to, const char *path);

/* Do the settings name path as an output? */
bool ap_out_is_output(struct ap_writing *to, const char *path);

/* Reports an error of an output ("-": standard output), or errno as AP_IO. Returns st. */
enum ap_status ap_out_fault(struct ap_writing *to, enum ap_status st, const char *path, const char *text);
enum ap_status ap_out_cannot_write(struct ap_writing *to, const char *path);

/* "standard output" for "-". */
const char *ap_out_shown(const char *path);

/* The folder of a file: "a/." for "a/b". */
const char *ap_path_folder(struct ap_arena *arena, const char *path);

/* Makes a folder for outputs if it is missing. */
enum ap_status ap_out_folder(struct ap_writing *to, const char *path);

/* Removes leftovers of killed runs from a folder. */
void ap_out_clear(struct ap_writing *to, const char *folder);

/* Stages one output and returns where to write it. */
enum ap_status ap_out_open(struct ap_writing *to, const char *path, struct ap_output_sink *out);

/* Stages text for standard output: it appears only if the files do. */
enum ap_status ap_out_text(struct ap_writing *to, const char *text, size_t len);

/* Puts all outputs in place, unless an error was reported. */
enum ap_status ap_out_commit(struct ap_writing *to);

/* The format in which dot draws a picture, by its suffix; NULL if it stays DOT. */
const char *ap_draw_format(const char *path);

struct ap_drawn { /* a picture as bytes */
	const char *text;
	size_t len;
	struct ap_arena *arena; /* owns the bytes, destroyed by the caller; NULL if none */
};

/* Draws plan, or else pic, in a format (NULL: DOT). If memory runs out, returns AP_LIMIT without a
 * message, so that other outputs are not lost. */
enum ap_status ap_draw(struct ap_ctx *ctx, const struct ap_settings *set, const char *format,
	const struct ap_plan *plan, const struct ap_picture *pic, struct ap_drawn *out);

/* Draws and stages a picture in the format that the suffix of path selects. */
enum ap_status ap_out_draw(struct ap_writing *to, const char *path, const struct ap_plan *plan,
	const struct ap_picture *pic);

/* Names and hashes of files that runs wrote into a folder, to tell them from files that others put
 * there or changed. The text form is that of sha256sum: a line "HASH NAME" per file. */
struct ap_written {
	struct ap_written_file {
		const char *name; /* relative to the folder: "stages/stage_0.ckpt" */
		const char *sha256;
	} *v; /* a name may occur more than once, with different hashes */
	size_t n, cap;
};

void ap_written_add(struct ap_ctx *ctx, struct ap_written *w, const char *name, const char *sha256);

/* Adds the lines of a text; ignores lines of any other form. */
void ap_written_add_text(struct ap_ctx *ctx, struct ap_written *w, const char *text);
const char *ap_written_text(struct ap_ctx *ctx, const struct ap_written *w);

bool ap_written_has(const struct ap_written *w, const char *name);

/* Call before an output replaces a file: warns if the file, by its hash, is neither one that a run
 * wrote nor equal to the output. */
enum ap_status ap_written_replace(struct ap_writing *to, const struct ap_written *w, const char *name,
	const char *path, const char *sha256);

/* For a file that no output replaces: removes it at commit, and sets *gone, if a run wrote it.
 * AP_USAGE if it is an input. */
enum ap_status ap_written_remove(struct ap_writing *to, const struct ap_written *w, const char *name,
	const char *path, bool *gone);

#endif
