/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "partition/partition.h"
#include "pipeline/schedule.h"

#define SCHEMA "autopar-pipeline/1"
#define MAX_BYTES ((int64_t)1 << 53)
#define MAX_S 1e15
#define MAX_KINDS 64
#define MAX_ROWS (1 << 20) /* classes times degrees times kinds */

struct loader {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	const struct ap_jv *root;
	struct ap_partition *p;
	struct ap_map *degrees, *kinds, *classes; /* names by number */
};

#define FAULT(l, v, name, check, ...) \
	ap_json_report((l)->ctx, (l)->doc, (v), AP_ERROR, AP_MEANING, (name), (check), __VA_ARGS__)

static const char *printable(struct loader *l, const char *s)
{
	return ap_diag_name(l->ctx->diag, s);
}

static enum ap_status want_object(struct loader *l, const struct ap_jv *v, const char *what,
	const char *const *known)
{
	if (ap_jv_type(v) != AP_JOBJECT)
		return FAULT(l, v, NULL, "key-type", "%s is an object", what);
	return ap_json_known(l->ctx, l->doc, v, known);
}

/* A list of the root with at least one element and at most `most`. */
static enum ap_status list_of(struct loader *l, const char *key, size_t most, const struct ap_jv **out,
	uint32_t *n)
{
	AP_TRY(ap_json_get_arr(l->ctx, l->doc, l->root, key, out));
	if (ap_jv_count(*out) == 0 || ap_jv_count(*out) > most)
		return FAULT(l, *out, NULL, "pipeline-size", "%s has %zu elements; expected 1 to %zu", key,
			ap_jv_count(*out), most);
	*n = (uint32_t)ap_jv_count(*out);
	return AP_OK;
}

/* Gives the next number to a name. */
static enum ap_status add_name(struct loader *l, struct ap_map *names, const struct ap_jv *at,
	const char *name)
{
	bool fresh;

	ap_map_put_str(names, name, &fresh);
	if (!fresh)
		return FAULT(l, at, NULL, "pipeline-name", "\"%s\" is there twice", printable(l, name));
	return AP_OK;
}

/* One of the names by its value in obj; without the key, the only one that there is. */
static enum ap_status name_in(struct loader *l, const struct ap_jv *obj, const char *key,
	const struct ap_map *names,
	uint32_t *out)
{
	const char *name;

	*out = 0;
	if (!ap_jv_get(obj, key) && ap_map_size(names) == 1)
		return AP_OK;
	AP_TRY(ap_json_get_str(l->ctx, l->doc, obj, key, &name));
	*out = ap_map_get_str(names, name);
	if (*out == AP_NONE)
		return FAULT(l, ap_jv_get(obj, key), NULL, "pipeline-name", "there is no %s \"%s\"", key,
			printable(l, name));
	return AP_OK;
}

/* The number of one of the words, NULL at the end; *out stays without the key. */
static enum ap_status word_in(struct loader *l, const struct ap_jv *obj, const char *key,
	const char *const *word,
	int *out)
{
	const char *name = NULL;

	AP_TRY(ap_json_opt_str(l->ctx, l->doc, obj, key, &name));
	if (!name)
		return AP_OK;
	for (int i = 0; word[i]; i++)
		if (strcmp(word[i], name) == 0) {
			*out = i;
			return AP_OK;
		}
	return FAULT(l, ap_jv_get(obj, key), NULL, "pipeline-word",
		"%s is \"%s\"; expected \"%s\", \"%s\"%s%s%s", key,
		printable(l, name), word[0], word[1], word[2] ? " or \"" : "", word[2] ? word[2] : "",
		word[2] ? "\"" : "");
}

static enum ap_status unknown_scheduler(struct loader *l, const char *name)
{
	const struct ap_scheduler *s;
	struct ap_str all;

	ap_str_init(&all, l->ctx->arena);
	for (size_t i = 0; (s = ap_scheduler_at(i)); i++)
		ap_str_addf(&all, "%s%s", i == 0 ? "" : ap_scheduler_at(i + 1) ? ", " : " or ", s->name);
	return FAULT(l, ap_jv_get(l->root, "scheduler"), NULL, "pipeline-word",
		"unknown scheduler \"%s\"; expected %s",
		printable(l, name), all.s);
}

static enum ap_status read_shape(struct loader *l)
{
	int64_t stages, segments = 1;
	const char *name, *lack;

	AP_TRY(ap_json_get_int(l->ctx, l->doc, l->root, "stages", 1, AP_PARTITION_PARTS, &stages));
	AP_TRY(ap_json_opt_int(l->ctx, l->doc, l->root, "segments", 1, AP_PARTITION_PARTS, &segments));
	AP_TRY(ap_json_get_int(l->ctx, l->doc, l->root, "micro_batches", 1, AP_PARTITION_SLOTS,
		&l->p->nmicro));
	AP_TRY(ap_json_get_str(l->ctx, l->doc, l->root, "scheduler", &name));
	l->p->nstage = (int32_t)stages;
	l->p->nsegment = (int32_t)segments;
	l->p->scheduler = ap_scheduler_find(name);
	if (!l->p->scheduler)
		return unknown_scheduler(l, name);
	if (segments < l->p->scheduler->least_segments ||
		(l->p->scheduler->most_segments && segments > l->p->scheduler->most_segments))
		return FAULT(l, ap_jv_get(l->root, "segments"), NULL, "pipeline-size",
			"%s does not run %" PRId64 " segments a stage", l->p->scheduler->name, segments);
	lack = l->p->scheduler->refuses(l->p->nstage, l->p->nsegment, l->p->nmicro);
	if (lack)
		return FAULT(l, ap_jv_get(l->root, "micro_batches"), NULL, "pipeline-size", "%s %s",
			l->p->scheduler->name, lack);
	return AP_OK;
}

static enum ap_status one_size(struct loader *l, const struct ap_jv *v, const char *key, int64_t none,
	int64_t *out)
{
	if (ap_jv_type(v) == AP_JNULL && none == AP_NO_LIMIT) {
		*out = none;
		return AP_OK;
	}
	if (ap_jv_type(v) != AP_JNUMBER || !ap_jv_int(l->doc, v, out) || *out < 0 || *out > MAX_BYTES)
		return FAULT(l, v, NULL, "pipeline-number", "%s is a whole number of bytes, at most 2^53",
			key);
	return AP_OK;
}

/* Bytes of each stage: one number for all, or as many as stages. */
static enum ap_status read_sizes(struct loader *l, const char *key, int64_t none, const int64_t **out)
{
	const struct ap_jv *v = ap_jv_get(l->root, key), *one;
	int64_t *bytes = AP_NEW_N(l->ctx->arena, int64_t, l->p->nstage);
	int32_t n = 0;

	*out = bytes;
	if (v && ap_jv_type(v) == AP_JARRAY) {
		if (ap_jv_count(v) != (size_t)l->p->nstage)
			return FAULT(l, v, NULL, "pipeline-size", "%s has %zu elements; expected %" PRId32,
				key,
				ap_jv_count(v), l->p->nstage);
		for (one = ap_jv_first(v); one; one = ap_jv_next(one))
			AP_TRY(one_size(l, one, key, none, &bytes[n++]));
		return AP_OK;
	}
	if (v)
		AP_TRY(one_size(l, v, key, none, &bytes[0]));
	for (n = v ? 1 : 0; n < l->p->nstage; n++)
		bytes[n] = v ? bytes[0] : none;
	return AP_OK;
}

/* Of a stage of a degree, where stages share devices. */
static enum ap_status read_devices(struct loader *l, const struct ap_jv *v, struct ap_partition_degree *d)
{
	if (l->p->devices > 0)
		return ap_json_get_int(l->ctx, l->doc, v, "devices", 1, l->p->devices, &d->devices);
	if (ap_jv_get(v, "devices"))
		return FAULT(l, ap_jv_get(v, "devices"), d->name, "pipeline-size",
			"stages share no devices: the problem has no \"devices\"");
	return AP_OK;
}

static enum ap_status read_degrees(struct loader *l)
{
	static const char *const known[] = {"name", "send_s", "send_back_s", "receive_s", "receive_back_s",
		"left_s", "devices", NULL};
	struct ap_partition_degree *d;
	const struct ap_jv *list;

	l->p->ndegree = 1;
	if (ap_jv_get(l->root, "degrees"))
		AP_TRY(list_of(l, "degrees", MAX_ROWS, &list, &l->p->ndegree));
	d = AP_NEW_N(l->ctx->arena, struct ap_partition_degree, l->p->ndegree);
	l->p->degree = d;
	if (!ap_jv_get(l->root, "degrees")) {
		if (l->p->devices > 0)
			return FAULT(l, ap_jv_get(l->root, "devices"), NULL, "pipeline-size",
				"no degree says how many devices a stage of it takes");
		d->name = "";
		return add_name(l, l->degrees, l->root, d->name);
	}
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v), d++) {
		AP_TRY(want_object(l, v, "a degree", known));
		AP_TRY(ap_json_get_str(l->ctx, l->doc, v, "name", &d->name));
		d->name = ap_arena_strdup(l->ctx->arena, d->name);
		AP_TRY(add_name(l, l->degrees, v, d->name));
		AP_TRY(ap_json_opt_num(l->ctx, l->doc, v, "send_s", 0, MAX_S, &d->send_s));
		d->send_back_s = d->send_s;
		AP_TRY(ap_json_opt_num(l->ctx, l->doc, v, "send_back_s", 0, MAX_S, &d->send_back_s));
		AP_TRY(ap_json_opt_num(l->ctx, l->doc, v, "receive_s", 0, MAX_S, &d->receive_s));
		d->receive_back_s = d->receive_s;
		AP_TRY(ap_json_opt_num(l->ctx, l->doc, v, "receive_back_s", 0, MAX_S, &d->receive_back_s));
		AP_TRY(ap_json_opt_num(l->ctx, l->doc, v, "left_s", 0, MAX_S, &d->left_s));
		AP_TRY(read_devices(l, v, d));
	}
	return AP_OK;
}

/* Are there devices for all stages? */
static enum ap_status check_devices(struct loader *l)
{
	int64_t least = INT64_MAX;

	for (uint32_t d = 0; d < l->p->ndegree; d++)
		least = l->p->degree[d].devices < least ? l->p->degree[d].devices : least;
	if (l->p->devices > 0 && least > l->p->devices / l->p->nstage)
		return FAULT(l, ap_jv_get(l->root, "devices"), NULL, "pipeline-size",
			"%" PRId32 " stages of at least %" PRId64 " devices each are more than %" PRId64,
			l->p->nstage, least, l->p->devices);
	return AP_OK;
}

static enum ap_status read_shared(struct loader *l)
{
	static const char *const known[] = {"send_s", "send_back_s", NULL};
	const struct ap_jv *v = ap_jv_get(l->root, "shared");

	if (!v)
		return AP_OK;
	AP_TRY(want_object(l, v, "what parts share", known));
	AP_TRY(ap_json_opt_num(l->ctx, l->doc, v, "send_s", 0, MAX_S, &l->p->shared.send_s));
	return ap_json_opt_num(l->ctx, l->doc, v, "send_back_s", 0, MAX_S, &l->p->shared.send_back_s);
}

static enum ap_status read_kinds(struct loader *l)
{
	const struct ap_jv *list;
	const char **kind;

	l->p->nkind = 1;
	if (ap_jv_get(l->root, "kinds"))
		AP_TRY(list_of(l, "kinds", MAX_KINDS, &list, &l->p->nkind));
	kind = AP_NEW_N(l->ctx->arena, const char *, l->p->nkind);
	l->p->kind = kind;
	if (!ap_jv_get(l->root, "kinds")) {
		*kind = "";
		return add_name(l, l->kinds, l->root, "");
	}
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		if (ap_jv_type(v) != AP_JSTRING)
			return FAULT(l, v, NULL, "key-type", "a kind is a name");
		*kind = ap_arena_strdup(l->ctx->arena, ap_jv_str(v));
		AP_TRY(add_name(l, l->kinds, v, *kind++));
	}
	return AP_OK;
}

static enum ap_status read_row(struct loader *l, const struct ap_jv *v, const char *name,
	struct ap_partition_row *all)
{
	static const char *const known[] = {"degree", "kind", "forward_s", "backward_s", "weight_s",
		"beside_s", "exchange_s", "slowed_s", "update_s",
		"kept_bytes", "late_bytes", "weights_bytes", "temporary_bytes", NULL};
	struct ap_partition_row *r;
	uint32_t degree, kind;

	AP_TRY(want_object(l, v, "a row", known));
	AP_TRY(name_in(l, v, "degree", l->degrees, &degree));
	AP_TRY(name_in(l, v, "kind", l->kinds, &kind));
	r = &all[degree * l->p->nkind + kind];
	if (!r->absent)
		return FAULT(l, v, name, "pipeline-name", "a second row of this degree and kind");
	r->absent = false;
	AP_TRY(ap_json_get_num(l->ctx, l->doc, v, "forward_s", 0, MAX_S, &r->forward_s));
	AP_TRY(ap_json_get_num(l->ctx, l->doc, v, "backward_s", 0, MAX_S, &r->backward_s));
	AP_TRY(ap_json_opt_num(l->ctx, l->doc, v, "weight_s", 0, MAX_S, &r->weight_s));
	AP_TRY(ap_json_opt_num(l->ctx, l->doc, v, "beside_s", 0, MAX_S, &r->beside_s));
	AP_TRY(ap_json_opt_num(l->ctx, l->doc, v, "exchange_s", 0, MAX_S, &r->exchange_s));
	AP_TRY(ap_json_opt_num(l->ctx, l->doc, v, "slowed_s", 0, MAX_S, &r->slowed_s));
	AP_TRY(ap_json_opt_num(l->ctx, l->doc, v, "update_s", 0, MAX_S, &r->update_s));
	AP_TRY(ap_json_opt_int(l->ctx, l->doc, v, "kept_bytes", 0, MAX_BYTES, &r->kept_bytes));
	AP_TRY(ap_json_opt_int(l->ctx, l->doc, v, "late_bytes", 0, MAX_BYTES, &r->late_bytes));
	AP_TRY(ap_json_opt_int(l->ctx, l->doc, v, "weights_bytes", 0, MAX_BYTES, &r->weights_bytes));
	AP_TRY(ap_json_opt_int(l->ctx, l->doc, v, "temporary_bytes", 0, MAX_BYTES, &r->temporary_bytes));
	if (r->weight_s > 0 && !l->p->scheduler->splits)
		return FAULT(l, ap_jv_get(v, "weight_s"), name, "pipeline-number",
			"%s has no passes for weights: their time belongs to backward_s",
				l->p->scheduler->name);
	if (r->late_bytes > 0 && !l->p->scheduler->splits)
		return FAULT(l, ap_jv_get(v, "late_bytes"), name, "pipeline-number",
			"%s has no passes for weights to wait for", l->p->scheduler->name);
	return AP_OK;
}

static enum ap_status read_class(struct loader *l, const struct ap_jv *v, struct ap_partition_class *c)
{
	static const char *const known[] = {"name", "rows", NULL};
	size_t n = (size_t)l->p->ndegree * l->p->nkind;
	struct ap_partition_row *row = AP_NEW_N(l->ctx->arena, struct ap_partition_row, n);
	const struct ap_jv *rows;

	AP_TRY(want_object(l, v, "a class", known));
	AP_TRY(ap_json_get_str(l->ctx, l->doc, v, "name", &c->name));
	c->name = ap_arena_strdup(l->ctx->arena, c->name);
	c->row = row;
	AP_TRY(add_name(l, l->classes, v, c->name));
	for (size_t i = 0; i < n; i++)
		row[i].absent = true;
	AP_TRY(ap_json_get_arr(l->ctx, l->doc, v, "rows", &rows));
	if (ap_jv_count(rows) == 0)
		return FAULT(l, rows, c->name, "pipeline-size", "a class has at least one row");
	for (const struct ap_jv *r = ap_jv_first(rows); r; r = ap_jv_next(r))
		AP_TRY(read_row(l, r, c->name, row));
	return AP_OK;
}

static enum ap_status read_classes(struct loader *l)
{
	const struct ap_jv *list;
	struct ap_partition_class *c;

	AP_TRY(list_of(l, "classes", MAX_ROWS, &list, &l->p->nclass));
	if ((uint64_t)l->p->nclass * l->p->ndegree > MAX_ROWS / l->p->nkind)
		return FAULT(l, list, NULL, "pipeline-size",
			"more than 2^20 classes times degrees times kinds");
	c = AP_NEW_N(l->ctx->arena, struct ap_partition_class, l->p->nclass);
	l->p->cls = c;
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		AP_TRY(read_class(l, v, c++));
	return AP_OK;
}

static enum ap_status read_layers(struct loader *l)
{
	static const char *const known[] = {"class", "count", "at", NULL};
	static const char *const words[] = {"body", "first", "last", NULL};
	static const int place[] = {[AP_AT_FIRST] = 0, [AP_AT_BODY] = 1, [AP_AT_LAST] = 2};
	struct ap_partition_run *r;
	const struct ap_jv *list;
	int before = 0;

	AP_TRY(list_of(l, "layers", AP_PARTITION_LAYERS, &list, &l->p->nrun));
	r = AP_NEW_N(l->ctx->arena, struct ap_partition_run, l->p->nrun);
	l->p->run = r;
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v), r++) {
		int at = AP_AT_BODY;

		r->count = 1;
		AP_TRY(want_object(l, v, "a run of layers", known));
		AP_TRY(name_in(l, v, "class", l->classes, &r->cls));
		AP_TRY(ap_json_opt_int(l->ctx, l->doc, v, "count", 1, AP_PARTITION_LAYERS, &r->count));
		AP_TRY(word_in(l, v, "at", words, &at));
		r->at = (enum ap_partition_at)at;
		if (place[at] < before)
			return FAULT(l, v, NULL, "pipeline-order",
				"layers at the first part come first, those at the last part last");
		before = place[at];
	}
	return AP_OK;
}

static enum ap_status read_counts(struct loader *l, const struct ap_jv *rules)
{
	static const char *const words[] = {"free", "equal", NULL};
	const struct ap_jv *v = ap_jv_get(rules, "counts");
	size_t n, parts = (size_t)l->p->nstage * (size_t)l->p->nsegment;
	int64_t *count, sum = 0;
	int word = AP_COUNTS_FREE;

	if (!v || ap_jv_type(v) != AP_JARRAY) {
		AP_TRY(word_in(l, rules, "counts", words, &word));
		l->p->counts = (enum ap_partition_counts)word;
		return AP_OK;
	}
	AP_TRY(ap_json_ints(l->ctx, l->doc, v, 0, AP_PARTITION_LAYERS, &count, &n));
	for (size_t i = 0; i < n; i++)
		sum += count[i];
	if (n != parts)
		return FAULT(l, v, NULL, "pipeline-size", "counts has %zu elements; expected %zu, one a part",
			n, parts);
	if (sum != ap_partition_body(l->p))
		return FAULT(l, v, NULL, "pipeline-size",
			"counts adds up to %" PRId64 " layers; there are %" PRId64, sum,
			ap_partition_body(l->p));
	l->p->counts = AP_COUNTS_GIVEN;
	l->p->count = count;
	return AP_OK;
}

static enum ap_status read_rules(struct loader *l)
{
	static const char *const known[] = {"counts", "least_layers", "least_at_ends", "kinds",
		"degree_by_stage", NULL};
	static const char *const words[] = {"free", "list", "uniform", NULL};
	const struct ap_jv *rules = NULL;
	int word = AP_KINDS_FREE;

	l->p->least_layers = l->p->least_at_ends = 1;
	AP_TRY(ap_json_opt_obj(l->ctx, l->doc, l->root, "rules", &rules));
	if (!rules)
		return AP_OK;
	AP_TRY(ap_json_known(l->ctx, l->doc, rules, known));
	AP_TRY(ap_json_opt_int(l->ctx, l->doc, rules, "least_layers", 0, AP_PARTITION_LAYERS,
		&l->p->least_layers));
	l->p->least_at_ends = l->p->least_layers;
	AP_TRY(ap_json_opt_int(l->ctx, l->doc, rules, "least_at_ends", 0, AP_PARTITION_LAYERS,
		&l->p->least_at_ends));
	AP_TRY(ap_json_opt_bool(l->ctx, l->doc, rules, "degree_by_stage", &l->p->degree_by_stage));
	AP_TRY(word_in(l, rules, "kinds", words, &word));
	l->p->kinds = (enum ap_partition_kinds)word;
	return read_counts(l, rules);
}

static enum ap_status read_head(struct loader *l)
{
	static const char *const known[] = {"schema", "objective", "stages", "segments", "micro_batches",
		"scheduler", "capacity_bytes", "fixed_bytes", "devices", "degrees", "shared", "kinds",
		"classes", "layers", "rules", NULL};
	static const char *const words[] = {"step", "largest_stage", NULL};
	int word = AP_OBJECTIVE_STEP;
	const char *schema;

	if (ap_jv_type(l->root) != AP_JOBJECT)
		return FAULT(l, l->root, NULL, "key-type", "a pipeline problem is an object");
	AP_TRY(ap_json_get_str(l->ctx, l->doc, l->root, "schema", &schema));
	if (strcmp(schema, SCHEMA) != 0)
		return FAULT(l, ap_jv_get(l->root, "schema"), NULL, "schema-known",
			"schema is \"%s\"; expected \"" SCHEMA "\"", printable(l, schema));
	AP_TRY(ap_json_known(l->ctx, l->doc, l->root, known));
	AP_TRY(word_in(l, l->root, "objective", words, &word));
	l->p->objective = (enum ap_partition_objective)word;
	return AP_OK;
}

enum ap_status ap_partition_load(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_partition **out)
{
	struct loader l = {.ctx = ctx, .doc = doc, .root = ap_json_root(doc),
		.p = AP_NEW(ctx->arena, struct ap_partition), .degrees = ap_map_create(ctx->arena),
		.kinds = ap_map_create(ctx->arena), .classes = ap_map_create(ctx->arena)};
	const char *fault;

	AP_TRY(read_head(&l));
	AP_TRY(read_shape(&l));
	AP_TRY(read_sizes(&l, "capacity_bytes", AP_NO_LIMIT, &l.p->capacity_bytes));
	AP_TRY(read_sizes(&l, "fixed_bytes", 0, &l.p->fixed_bytes));
	AP_TRY(ap_json_opt_int(ctx, doc, l.root, "devices", 1, AP_PARTITION_DEVICES, &l.p->devices));
	AP_TRY(read_degrees(&l));
	AP_TRY(check_devices(&l));
	AP_TRY(read_shared(&l));
	AP_TRY(read_kinds(&l));
	AP_TRY(read_classes(&l));
	AP_TRY(read_layers(&l));
	AP_TRY(read_rules(&l));
	fault = ap_partition_fault(l.p);
	if (fault)
		return ap_json_report(ctx, doc, l.root, AP_ERROR, AP_LIMIT, NULL, "pipeline-range", "%s",
			fault);
	*out = l.p;
	return AP_OK;
}
