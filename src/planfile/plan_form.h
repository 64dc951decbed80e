/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The form of the plan file: which keys there are, in which order, of which type and range, which may be
 * left out, and how check --against comes by the value that it holds each against. One row per key, in
 * plan_form.def; autopar-plan(5) tells the same.
 */
#ifndef AP_PLANFILE_PLAN_FORM_H
#define AP_PLANFILE_PLAN_FORM_H

#include "base/json.h"

enum ap_plan_form {
	AP_PLAN_OBJECT,
	AP_PLAN_TEXT,
	AP_PLAN_WORD, /* one of a list */
	AP_PLAN_HASH, /* SHA-256 in hexadecimal */
	AP_PLAN_VERSION, /* of a program: "0.1.0" */
	AP_PLAN_BOOL,
	AP_PLAN_INT,
	AP_PLAN_NUM,
	AP_PLAN_SETTINGS /* an object, whatever its members */
};

enum ap_plan_need {
	AP_PLAN_ALWAYS,
	AP_PLAN_MAY, /* be left out */
	AP_PLAN_NULLABLE /* always there, perhaps null */
};

enum ap_plan_class {
	AP_PLAN_COMPUTED, /* follows from inputs and strategies */
	AP_PLAN_SEARCHED, /* follows from a search */
	AP_PLAN_STATED /* nothing says what else it could be */
};

/* Of a value, which its key says; NONE: another one, or none. */
enum ap_plan_unit {
	AP_PLAN_NONE,
	AP_PLAN_S,
	AP_PLAN_PER_S,
	AP_PLAN_BYTES,
	AP_PLAN_BYTES_PER_S,
	AP_PLAN_SHARE
};
enum ap_plan_unit ap_plan_unit_of(const char *key);

struct ap_plan_key {
	const char *path; /* "operators[].cost.forward_s" */
	enum ap_plan_form form;
	int depth; /* of the lists that a value is in; 3: of two or three */
	double least, most; /* of numbers */
	const char *names; /* of words: "a|b"; "@list": known elsewhere */
	enum ap_plan_need need;
	enum ap_plan_class class;
};

/* Row i in the order of the file, NULL past the end. */
const struct ap_plan_key *ap_plan_key_at(size_t i);

/* The rows as a tree: children of the root are those of row AP_NONE. Kept in the run arena. */
struct ap_plan_keys;
const struct ap_plan_keys *ap_plan_keys_make(struct ap_ctx *ctx);

/* The row of a member of an object of row parent, AP_NONE where there is none; hint: the row of the member
 * before, or AP_NONE. O(1) in the order of the file. */
ap_id ap_plan_keys_find(const struct ap_plan_keys *keys, ap_id parent, const char *key, ap_id hint);

/*
 * Holds a document against the rows: AP_MEANING, every fault located, where a key is missing or a value has
 * a type, word or range that it cannot have. Unknown keys are warned of. O(document).
 */
enum ap_status ap_plan_form_check(struct ap_ctx *ctx, const struct ap_json *doc);

/* The rows as a JSON Schema (draft 7), the outermost value of w. */
struct ap_jw;
void ap_plan_form_schema(struct ap_ctx *ctx, struct ap_jw *w);

#endif
