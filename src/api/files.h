/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files, detects their kind from their content, loads strategy checkpoints. */
#ifndef AP_API_FILES_H
#define AP_API_FILES_H

#include "api/settings.h"
#include "base/json.h"
#include "ckpt/ckpt.h"

struct ap_decoder;

struct ap_input { /* a text and its name for messages */
	const char *path;
	char *text;
	size_t len;
	const struct ap_decoder *decoder; /* the network that a graph was made from; NULL: not known */
};

/* Reads a file of at most set->max_input bytes; "-" is standard input, readable only once. AP_SYNTAX for a
 * file that holds a network or weights in a form of other programs, whatever its size; the message says
 * what to do. */
enum ap_status ap_input_read(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_input *out);

/* The same, but accepts a model of ONNX: *onnx. The text of a file then stays NULL, as it may be large. */
enum ap_status ap_input_read_any(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_input *out, bool *onnx);

/* SHA-256 of the text in hexadecimal, in the run arena. */
const char *ap_input_sha256(struct ap_ctx *ctx, const struct ap_input *in);

/* Is the text meant as JSON, well-formed or not? */
bool ap_input_is_json(const struct ap_input *in);

/* Is it a text for people? A checkpoint has lengths and numbers, which are control characters, between its
 * names. O(length). */
bool ap_input_is_prose(const struct ap_input *in);

/* Parses the text; flags as for ap_json_parse(). */
enum ap_status ap_input_json(struct ap_ctx *ctx, const struct ap_input *in, unsigned flags,
	struct ap_json **out);

/* Reports an error about a file. Returns st. */
enum ap_status ap_path_fault(struct ap_ctx *ctx, enum ap_status st, const char *path, const char *text);

/* "folder/name", with one slash. */
const char *ap_path_join(struct ap_arena *arena, const char *folder, const char *name);

/* Does MindSpore take a strategy checkpoint of this name for JSON? */
bool ap_path_is_json(const char *path);

enum ap_file_kind {
	AP_KIND_GRAPH,
	AP_KIND_RANK_TABLE,
	AP_KIND_CHIP,
	AP_KIND_SOFTWARE,
	AP_KIND_PLAN,
	AP_KIND_PROBLEM,
	AP_KIND_PIPELINE,
	AP_KIND_TRACE,
	AP_KIND_MANIFEST,
	AP_KIND_RECOMPUTE,
	AP_KIND_SHARD,
	AP_KIND_SETTINGS,
	AP_KIND_OP_STRATEGY, /* comes before the next kind, which shares a key */
	AP_KIND_STRATEGY,
	AP_KIND_MODEL, /* comes before the next kinds, which share keys */
	AP_KIND_SWITCHES, /* comes before the next kind, which shares keys */
	AP_KIND_CONFIG,
	AP_KIND_CELLS, /* a document that is nothing else */
	AP_KIND_GROUPS,
	AP_KIND_DUMP,
	AP_KIND_HOSTS,
	AP_KIND_SERVER,
	AP_KIND_ONNX,
	AP_KIND_COUNT
};

struct ap_known {
	struct ap_input in;
	enum ap_file_kind kind;
	struct ap_json *doc; /* NULL for a strategy checkpoint, and for what is no JSON */
	bool json; /* a strategy checkpoint in JSON form */
};

/* Does the text begin like MindSpore's text dumps of graphs? */
bool ap_kind_is_dump(const struct ap_input *in);

/* The kind with its article, "an operator graph", for messages. */
const char *ap_kind_text(enum ap_file_kind k);

/* The kind of a parsed document that has no "schema" of another; AP_KIND_COUNT if it is unknown. */
enum ap_file_kind ap_kind_of(const struct ap_jv *root);

/* Reads a file and detects its kind by "schema", else by keys that only one kind has, or by their
 * values. A file that is not JSON, in content or name, is a dump, a list of hosts, a description of a
 * server, a group file or else a strategy checkpoint. Checks the syntax of the kind. AP_MEANING for JSON
 * of an unknown kind. */
enum ap_status ap_kind_read(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_known *out);

/* Reads a strategy checkpoint from a file, or merges the stage files of a folder: like MindSpore,
 * all files ending in .ckpt, or all in .json. */
enum ap_status ap_ckpt_load(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_ckpt *out);

/* Reads a checkpoint from a text; its first bytes decide between JSON and protobuf. */
enum ap_status ap_ckpt_of_input(struct ap_ctx *ctx, const struct ap_input *in, struct ap_ckpt *out);

#endif
