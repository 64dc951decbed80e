/* SPDX-License-Identifier: Apache-2.0 */
/* Files read in whole, what kind of file one is by what is in it, strategy checkpoints in one or many. */
#ifndef AP_API_FILES_H
#define AP_API_FILES_H

#include "api/settings.h"
#include "base/json.h"
#include "ckpt/ckpt.h"

struct ap_input { /* a text, and what messages call it */
	const char *path;
	char *text;
	size_t len;
};

/* Reads a file of at most set->max_input bytes; "-" is standard input, which can be read once. */
enum ap_status ap_input_read(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_input *out);

/* SHA-256 of what was read, in hexadecimal, in the run arena. */
const char *ap_input_sha256(struct ap_ctx *ctx, const struct ap_input *in);

/* The document in it; flags as of ap_json_parse(). */
enum ap_status ap_input_json(struct ap_ctx *ctx, const struct ap_input *in, unsigned flags,
	struct ap_json **out);

/* Reports an error of a file. Returns st. */
enum ap_status ap_path_fault(struct ap_ctx *ctx, enum ap_status st, const char *path, const char *text);

/* "folder/name", with one slash. */
const char *ap_path_join(struct ap_arena *arena, const char *folder, const char *name);

/* Is this the name of a strategy checkpoint in JSON? As MindSpore decides. */
bool ap_path_is_json(const char *path);

enum ap_file_kind {
	AP_KIND_GRAPH,
	AP_KIND_RANK_TABLE,
	AP_KIND_CHIP,
	AP_KIND_SOFTWARE,
	AP_KIND_PLAN,
	AP_KIND_PROBLEM,
	AP_KIND_TRACE,
	AP_KIND_MANIFEST,
	AP_KIND_RECOMPUTE,
	AP_KIND_SHARD,
	AP_KIND_SETTINGS,
	AP_KIND_OP_STRATEGY, /* before the next: they share a key */
	AP_KIND_STRATEGY,
	AP_KIND_SWITCHES, /* before the next: they share keys */
	AP_KIND_CONFIG,
	AP_KIND_CELLS, /* what is nothing else */
	AP_KIND_GROUPS,
	AP_KIND_DUMP,
	AP_KIND_COUNT
};

struct ap_known {
	struct ap_input in;
	enum ap_file_kind kind;
	struct ap_json *doc; /* NULL for a strategy checkpoint, a group file and a dump */
	bool json; /* a strategy checkpoint in its JSON form */
};

/* Does it begin as MindSpore's text dumps of graphs do? */
bool ap_kind_is_dump(const struct ap_input *in);

/* "an operator graph", for messages. */
const char *ap_kind_text(enum ap_file_kind k);

/* Reads a file and finds out its kind: by "schema", else by the keys that only one kind has, or by what is
 * behind them; what is no JSON, and not called so, is a dump, a group file or else a strategy checkpoint.
 * Syntax is checked as the kind wants it. AP_MEANING for JSON of no known kind. */
enum ap_status ap_kind_read(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_known *out);

/* Reads a strategy checkpoint: a file, or the stage files of a folder, merged. Of a folder all files
 * that end in .ckpt, or all in .json, are read, as MindSpore's merge does. */
enum ap_status ap_ckpt_load(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_ckpt *out);

/* The same of a text, JSON or protobuf as it begins. */
enum ap_status ap_ckpt_of_input(struct ap_ctx *ctx, const struct ap_input *in, struct ap_ckpt *out);

#endif
