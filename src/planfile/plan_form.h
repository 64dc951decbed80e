/* SPDX-License-Identifier: Apache-2.0 */
/* The form of the plan file: its keys in order, with types, ranges, which are optional, and how
 * check --against finds values to compare. One row per key in plan_form.def, as in
 * autopar-plan(5). */
#ifndef AP_PLANFILE_PLAN_FORM_H
#define AP_PLANFILE_PLAN_FORM_H

#include "base/json.h"

/* Ranks of a group, pieces of a send: where there are more, a plan lists none, as it could take gigabytes. */
enum { AP_PLAN_MOST_LISTED = 1024 };

enum ap_plan_form {
	AP_PLAN_OBJECT,
	AP_PLAN_TEXT,
	AP_PLAN_WORD, /* one of a list */
	AP_PLAN_HASH, /* SHA-256 in hexadecimal */
	AP_PLAN_VERSION, /* such as "0.1.0" */
	AP_PLAN_BOOL,
	AP_PLAN_INT,
	AP_PLAN_NUM,
	AP_PLAN_SETTINGS /* any object */
};

enum ap_plan_need {
	AP_PLAN_ALWAYS,
	AP_PLAN_MAY, /* may be left out */
	AP_PLAN_NULLABLE /* required, may be null */
};

enum ap_plan_class {
	AP_PLAN_COMPUTED, /* follows from inputs and strategies */
	AP_PLAN_SEARCHED, /* follows from a search */
	AP_PLAN_STATED /* stated only; not checked */
};

/* Unit of a value, from the suffix of its key; SHARE: of 1. */
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
	int depth; /* of nested lists; 3: two or three */
	double least, most; /* range of numbers */
	const char *names; /* words: "a|b"; "@list": defined elsewhere */
	enum ap_plan_need need;
	enum ap_plan_class class;
};

/* Row i in file order; NULL past the end. */
const struct ap_plan_key *ap_plan_key_at(size_t i);

/* Does a member of an object at the top follow from a search? */
bool ap_plan_key_searched(const char *object, const char *key);

/* The rows as a tree, kept in the run arena; children of the root have parent AP_NONE. */
struct ap_plan_keys;
const struct ap_plan_keys *ap_plan_keys_make(struct ap_ctx *ctx);

/* The row of a member of an object of row parent; AP_NONE if unknown. hint: the previous member's
 * row, or AP_NONE. O(1) in file order. */
ap_id ap_plan_keys_find(const struct ap_plan_keys *keys, ap_id parent, const char *key, ap_id hint);

/* Checks a document against the rows; warns of unknown keys. Returns AP_MEANING, after reporting
 * every fault with its location, if a key is missing or a value has a wrong type, word or range.
 * O(document). */
enum ap_status ap_plan_form_check(struct ap_ctx *ctx, const struct ap_json *doc);

/* Writes the rows as a JSON Schema (draft 7), the outermost value of w. */
struct ap_jw;
void ap_plan_form_schema(struct ap_ctx *ctx, struct ap_jw *w);

#endif
