/* SPDX-License-Identifier: Apache-2.0 */
/* The cage of cJSON, and the tree made from what it gives. */
#include "base/json.h"

#include <assert.h>
#include <cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/foreign.h"
#include "base/json_scan.h"
#include "base/json_tree.h"
#include "base/map.h"

enum { MAX_REPORTS = 20, FEW_KEYS = 8 };

/* The tree of cJSON walked beside the array of values. cJSON copies each number, asks for the locale
 * and has strtod read it; of most numbers the scanner knows the value already. */
struct walk {
	struct ap_json *doc;
	const struct ap_jscan *scan;
	char *strings; /* free room */
	int depth;
	const cJSON *open[AP_JSCAN_DEPTH]; /* containers around the current item */
	size_t index[AP_JSCAN_DEPTH + 1]; /* of them and of the current item */
};

static const char *keep_string(struct walk *w, const char *s)
{
	size_t bytes = strlen(s) + 1;
	char *kept = memcpy(w->strings, s, bytes);

	w->strings += bytes;
	return kept;
}

static void fill_value(struct walk *w, struct ap_jv *v, const cJSON *item)
{
	switch (item->type & 0xFF) { /* the rest of it are flags */
	case cJSON_String:
		v->type = AP_JSTRING;
		v->u.string = keep_string(w, item->valuestring);
		break;
	case cJSON_Number:
		v->type = AP_JNUMBER;
		v->u.number = item->valuedouble;
		break;
	case cJSON_Array:
		v->type = AP_JARRAY;
		break;
	case cJSON_Object:
		v->type = AP_JOBJECT;
		break;
	case cJSON_True:
	case cJSON_False:
		v->type = AP_JBOOL;
		v->u.flag = cJSON_IsTrue(item);
		break;
	default:
		assert(cJSON_IsNull(item));
		v->type = AP_JNULL;
	}
}

static void add_value(struct walk *w, size_t i, const cJSON *item)
{
	const struct ap_jscan_value *scanned = &w->scan->values.v[i];
	struct ap_jv *v = &w->doc->values[i];

	assert(i < w->scan->values.n);
	*v = (struct ap_jv){.offset = scanned->offset, .key_offset = scanned->key};
	if (w->depth) {
		struct ap_jv *container = &w->doc->values[w->index[w->depth - 1]];

		v->up = (uint32_t)(v - container);
		container->count++;
		if (container->type == AP_JOBJECT)
			v->key = keep_string(w, item->string);
	}
	if (isnan(scanned->number)) {
		fill_value(w, v, item);
	} else {
		v->type = AP_JNUMBER;
		v->u.number = scanned->number;
	}
	w->index[w->depth] = i;
}

static void walk_tree(struct walk *w, const cJSON *item)
{
	size_t i = 0;

	for (;;) {
		add_value(w, i++, item);
		if (item->child) {
			w->open[w->depth++] = item;
			item = item->child;
			continue;
		}
		while (w->depth && !item->next)
			item = w->open[--w->depth];
		if (!item->next)
			break;
		item = item->next;
		w->doc->values[w->index[w->depth]].skip = (uint32_t)(i - w->index[w->depth]);
	}
	assert(i == w->scan->values.n);
}

/* cJSON's nodes live in this arena while it is set: none is freed one by one. The hooks have no
 * argument to hand it over in; without it they are malloc and free. */
static _Thread_local struct ap_arena *nodes;

static void *take(size_t bytes)
{
	return nodes ? ap_arena_alloc_raw(nodes, bytes, 1) : malloc(bytes);
}

static void drop(void *p)
{
	if (!nodes)
		free(p);
}

static cJSON *parse_nodes(struct ap_ctx *ctx, const struct ap_jscan *scan)
{
	cJSON_Hooks ours = {take, drop};
	cJSON *tree;

	nodes = ctx->scratch;
	cJSON_InitHooks(&ours);
	tree = cJSON_ParseWithLengthOpts(scan->bare, scan->bare_len + 1, NULL, 1);
	nodes = NULL;
	return tree;
}

static enum ap_status build_tree(struct ap_ctx *ctx, struct ap_json *doc,
	const struct ap_jscan *scan)
{
	struct walk w = {.doc = doc, .scan = scan};
	cJSON *tree;

	doc->nvalue = scan->values.n;
	doc->values = ap_arena_alloc_raw(ctx->arena, doc->nvalue, sizeof *doc->values);
	w.strings = ap_arena_alloc_raw(ctx->arena, scan->string_bytes, 1);
	tree = parse_nodes(ctx, scan);
	assert(tree); /* the scanner found it sound, and scratch never lacks room */
	walk_tree(&w, tree);
	return AP_OK;
}

static enum ap_status report_duplicate(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *first, const struct ap_jv *again)
{
	return ap_json_report_at(ctx, doc, again->key_offset, again, AP_ERROR, AP_MEANING,
		"key-duplicate", "duplicate key \"%s\"; it is already on line %u",
		ap_diag_name(ctx->diag, again->key),
		(unsigned)ap_json_place_of(doc, first->key_offset).line);
}

/* Reports the members of obj whose key came before, at most `most`; returns how many. */
static size_t find_duplicates(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, size_t most)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_map *keys = ap_map_create(ctx->scratch);
	const struct ap_jv **first =
		ap_arena_alloc_raw(ctx->scratch, obj->count, sizeof *first);
	size_t found = 0;

	for (const struct ap_jv *v = ap_jv_first(obj); v && found < most; v = ap_jv_next(v)) {
		bool fresh;
		ap_id id = ap_map_put_str(keys, v->key, &fresh);

		if (fresh) {
			first[id] = v;
		} else {
			report_duplicate(ctx, doc, first[id], v);
			found++;
		}
	}
	ap_arena_release(ctx->scratch, mark);
	return found;
}

/* Saves most objects, which are small, the map. */
static bool all_differ(const struct ap_jv *obj)
{
	for (const struct ap_jv *v = ap_jv_first(obj); v; v = ap_jv_next(v))
		for (const struct ap_jv *w = ap_jv_next(v); w; w = ap_jv_next(w))
			if (*v->key == *w->key && !strcmp(v->key, w->key))
				return false;
	return true;
}

static enum ap_status check_nuls(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jscan *scan)
{
	for (size_t i = 0; i < scan->nnul; i++) {
		const struct ap_jv *v = &doc->values[scan->nuls[i].value];
		bool in_key = scan->nuls[i].in_key;

		ap_json_report_at(ctx, doc, in_key ? v->key_offset : v->offset, v, AP_ERROR,
			AP_MEANING, "string-nul", "\\u0000 in a %s", in_key ? "key" : "string");
	}
	return scan->nnul ? AP_MEANING : AP_OK;
}

/* Numbers that a double cannot hold, keys that occur twice. */
static enum ap_status check_values(struct ap_ctx *ctx, const struct ap_json *doc)
{
	size_t found = 0;

	for (size_t i = 0; i < doc->nvalue && found < MAX_REPORTS; i++) {
		const struct ap_jv *v = &doc->values[i];

		if (v->type == AP_JNUMBER && !isfinite(v->u.number)) {
			ap_json_report(ctx, doc, v, AP_ERROR, AP_MEANING, NULL, "number-finite",
				"number is not finite");
			found++;
		}
		if (v->type == AP_JOBJECT && (v->count > FEW_KEYS || !all_differ(v)))
			found += find_duplicates(ctx, doc, v, MAX_REPORTS - found);
	}
	return found ? AP_MEANING : AP_OK;
}

static enum ap_status worse(enum ap_status a, enum ap_status b)
{
	return a != AP_OK ? a : b;
}

/* What is accepted though it is not JSON. */
static enum ap_status report_lapses(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jscan *scan)
{
	enum ap_status st = AP_OK;

	if (scan->byte_order_mark)
		st = ap_json_report(ctx, doc, NULL, AP_WARNING, AP_OK, NULL, "byte-order-mark",
			"begins with a byte order mark, which JSON does not allow");
	for (size_t i = 0; i < scan->ncomma; i++)
		st = worse(st, ap_json_report_at(ctx, doc, scan->commas[i], NULL, AP_WARNING, AP_OK,
			"trailing-comma", "trailing comma"));
	return st;
}

static enum ap_status parse_text(struct ap_ctx *ctx, struct ap_json *doc, unsigned flags)
{
	struct ap_jscan scan;
	enum ap_status st = ap_jscan_run(&scan, ctx->scratch, doc->text, doc->len,
		flags & AP_JSON_TRAILING_COMMA);
	enum ap_status lapses = report_lapses(ctx, doc, &scan);
	const char *other;

	if (st == AP_SYNTAX && (other = ap_foreign(ctx, doc->text, doc->len)))
		return ap_diag_add(ctx->diag, AP_ERROR, st, &(struct ap_where){.file = doc->file}, NULL, "%s",
			other);
	if (st != AP_OK)
		return ap_json_report_at(ctx, doc, scan.fault_offset, NULL, AP_ERROR, st, NULL, "%s",
			scan.fault);
	AP_TRY(build_tree(ctx, doc, &scan));
	AP_TRY(check_nuls(ctx, doc, &scan)); /* cut strings would look like duplicates */
	AP_TRY(check_values(ctx, doc));
	return lapses;
}

enum ap_status ap_json_parse(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	unsigned flags, struct ap_json **out)
{
	struct ap_json *doc = AP_NEW(ctx->arena, struct ap_json);
	struct ap_mark mark;
	enum ap_status st;

	assert(ctx->arena != ctx->scratch);
	doc->file = ap_arena_strdup(ctx->arena, file);
	if (len >= UINT32_MAX)
		return ap_json_report(ctx, doc, NULL, AP_ERROR, AP_LIMIT, NULL, NULL,
			"%zu bytes; at most %u can be read", len, (unsigned)UINT32_MAX - 1);
	doc->text = ap_arena_strndup(ctx->arena, text, len);
	doc->len = len;
	ap_json_place_index(ctx, doc);
	mark = ap_arena_mark(ctx->scratch);
	st = parse_text(ctx, doc, flags);
	ap_arena_release(ctx->scratch, mark);
	if (st == AP_OK)
		*out = doc;
	return st;
}
