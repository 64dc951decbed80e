/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/arrival.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"

/* A setting that is being read. */
struct reading {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	const struct ap_graph *g;
	int64_t ndev;
	int64_t micro_batches;
	int32_t parts; /* of the inputs cut so far; 1: none is */
	const char *first; /* of them */
	bool told; /* notes are given: the setting is read for the first time */
};

#define REFUSE(r, v, ...) \
	ap_json_report((r)->ctx, (r)->doc, v, AP_ERROR, AP_USAGE, NULL, "dataset-strategy", __VA_ARGS__)

static const char expected[] = "\"data_parallel\", \"full_batch\" or an array with the parts of each input "
	"is expected";

static const char *name_of(const struct reading *r, const struct ap_tensor *t)
{
	return ap_diag_name(r->ctx->diag, t->name);
}

static enum ap_status refuse_cut(const struct reading *r, const struct ap_jv *v, const struct ap_tensor *t,
	int d, int64_t parts, const char *why)
{
	return REFUSE(r, v, "input \"%s\": dimension %d of length %" PRId64 " in %" PRId64 " parts; %s",
		name_of(r, t), d, t->shape.dim[d], parts, why);
}

/* Notes that dimension d is cut, as v states. */
static enum ap_status take_cut(struct reading *r, const struct ap_jv *v, const struct ap_tensor *t, int d,
	int64_t parts, int64_t stride, struct ap_arrival *out)
{
	int64_t length = t->shape.dim[d] / (t->batch >> d & 1 ? r->micro_batches : 1);

	if (out->cut > 1)
		return refuse_cut(r, v, t, d, parts, "only one dimension of an input may be cut");
	if (r->ndev % parts)
		return refuse_cut(r, v, t, d, parts, "the devices of a stage cannot be shared out so");
	if (length % parts)
		return refuse_cut(r, v, t, d, parts, t->batch >> d & 1 && r->micro_batches > 1
			? "these must divide the length of a micro-batch"
			: "these must divide the length");
	if (r->parts > 1 && r->parts != parts)
		return REFUSE(r, v, "input \"%s\" in %" PRId64 " parts, input \"%s\" in %" PRId32
			"; all inputs that are cut have as many", name_of(r, t), parts,
			ap_diag_name(r->ctx->diag, r->first), r->parts);
	if (r->parts == 1)
		r->first = t->name;
	r->parts = (int32_t)parts;
	*out = (struct ap_arrival){d, (int32_t)parts, (int32_t)stride};
	return AP_OK;
}

/* [parts per dimension] */
static enum ap_status read_parts(struct reading *r, const struct ap_jv *list, const struct ap_tensor *t,
	struct ap_arrival *out)
{
	int d = 0;

	if (ap_jv_count(list) != t->shape.rank)
		return REFUSE(r, list, "input \"%s\" has %d dimensions; so many numbers of parts are "
			"expected", name_of(r, t), t->shape.rank);
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v), d++) {
		int64_t parts;

		if (ap_jv_type(v) != AP_JNUMBER || !ap_jv_int(r->doc, v, &parts) || parts < 1)
			return REFUSE(r, v, "the parts of a dimension are a whole number from 1 on");
		if (parts > 1)
			AP_TRY(take_cut(r, v, t, d, parts, 1, out));
	}
	return AP_OK;
}

/* The devices' arrangement that a Layout names. */
struct matrix {
	const int64_t *size;
	size_t n;
	const struct ap_jv *names;
};

static enum ap_status read_matrix(struct reading *r, const struct ap_jv *obj, struct matrix *m)
{
	const struct ap_jv *sizes;
	int64_t *size, devices = 1;

	AP_TRY(ap_json_get_arr(r->ctx, r->doc, obj, "device_matrix", &sizes));
	AP_TRY(ap_json_get_arr(r->ctx, r->doc, obj, "alias_name", &m->names));
	AP_TRY(ap_json_ints(r->ctx, r->doc, sizes, 1, r->ndev, &size, &m->n));
	m->size = size;
	for (size_t i = 0; i < m->n && devices <= r->ndev; i++)
		devices *= size[i];
	if (devices != r->ndev)
		return REFUSE(r, sizes, "%" PRId64 " devices are expected: those of a stage", r->ndev);
	if (ap_jv_count(m->names) != m->n)
		return REFUSE(r, m->names, "a name for each axis of the device_matrix is expected");
	return AP_OK;
}

/* The axis of that name; m->n if there is none. */
static size_t find_axis(const struct matrix *m, const char *name)
{
	size_t i = 0;

	for (const struct ap_jv *v = ap_jv_first(m->names); v; v = ap_jv_next(v), i++)
		if (ap_jv_type(v) == AP_JSTRING && strcmp(ap_jv_str(v), name) == 0)
			return i;
	return m->n;
}

/* A dimension of the tensor_map: the name of an axis, or "None". */
static enum ap_status read_axis(struct reading *r, const struct ap_jv *v, const struct matrix *m,
	const struct ap_tensor *t, int d, struct ap_arrival *out)
{
	int64_t stride = 1;
	size_t axis;

	if (ap_jv_type(v) == AP_JARRAY)
		return REFUSE(r, v, "input \"%s\": a dimension that several axes cut is not planned with; "
			"name one", name_of(r, t));
	if (ap_jv_type(v) != AP_JSTRING)
		return REFUSE(r, v, "the name of an axis or \"None\" is expected");
	if (strcmp(ap_jv_str(v), "None") == 0)
		return AP_OK;
	axis = find_axis(m, ap_jv_str(v));
	if (axis == m->n)
		return REFUSE(r, v, "\"%s\" is no axis that alias_name names",
			ap_diag_name(r->ctx->diag, ap_jv_str(v)));
	for (size_t i = axis + 1; i < m->n; i++)
		stride *= m->size[i];
	return m->size[axis] > 1 ? take_cut(r, v, t, d, m->size[axis], stride, out) : AP_OK;
}

static enum ap_status read_layout(struct reading *r, const struct ap_jv *obj, const struct ap_tensor *t,
	struct ap_arrival *out)
{
	const struct ap_jv *map;
	struct matrix m;
	int d = 0;

	AP_TRY(read_matrix(r, obj, &m));
	AP_TRY(ap_json_get_arr(r->ctx, r->doc, obj, "tensor_map", &map));
	if (ap_jv_count(map) != t->shape.rank)
		return REFUSE(r, map, "input \"%s\" has %d dimensions; so many names are expected",
			name_of(r, t), t->shape.rank);
	for (const struct ap_jv *v = ap_jv_first(map); v; v = ap_jv_next(v), d++)
		AP_TRY(read_axis(r, v, &m, t, d, out));
	return AP_OK;
}

/* Are both lists of the same numbers? */
static bool alike(const struct ap_jv *a, const struct ap_jv *b)
{
	if (ap_jv_type(a) != AP_JARRAY || ap_jv_type(b) != AP_JARRAY || ap_jv_count(a) != ap_jv_count(b))
		return false;
	a = ap_jv_first(a);
	for (b = ap_jv_first(b); b; a = ap_jv_next(a), b = ap_jv_next(b))
		if (ap_jv_type(a) != AP_JNUMBER || ap_jv_type(b) != AP_JNUMBER ||
			ap_jv_double(a) != ap_jv_double(b))
			return false;
	return true;
}

/* Do the entries behind those of the inputs say nothing but what the first one does? They are columns of
 * the data, such as masks, that a graph need not have. */
static bool further_are_alike(const struct reading *r, const struct ap_jv *list)
{
	uint32_t i = 0;

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v), i++)
		if (i >= r->g->ninput && !alike(ap_jv_first(list), v))
			return false;
	return i > r->g->ninput && r->g->ninput > 0;
}

static enum ap_status read_inputs(struct reading *r, const struct ap_jv *list, struct ap_arrival *out)
{
	uint32_t i = 0;

	if (ap_jv_count(list) != r->g->ninput && !further_are_alike(r, list))
		return REFUSE(r, list, "%zu entries; the graph has %" PRIu32 " inputs", ap_jv_count(list),
			r->g->ninput);
	if (ap_jv_count(list) > r->g->ninput && r->told)
		AP_TRY(ap_json_report(r->ctx, r->doc, list, AP_NOTE, AP_OK, NULL, "dataset-strategy",
			"%zu entries; the graph has %" PRIu32 " inputs: the others, which say the same, are "
			"taken for columns that it leaves out", ap_jv_count(list), r->g->ninput));
	for (const struct ap_jv *v = ap_jv_first(list); v && i < r->g->ninput; v = ap_jv_next(v), i++) {
		const struct ap_tensor *t = &r->g->tensor[r->g->input[i]];

		out[i] = (struct ap_arrival){0, 1, 0};
		if (ap_jv_type(v) == AP_JARRAY)
			AP_TRY(read_parts(r, v, t, &out[i]));
		else if (ap_jv_type(v) == AP_JOBJECT)
			AP_TRY(read_layout(r, v, t, &out[i]));
		else
			return REFUSE(r, v, "input \"%s\": the parts of each dimension or a Layout are "
				"expected", name_of(r, t));
	}
	return AP_OK;
}

/* One of the two words. */
static bool take_word(const char *word, struct ap_step *step)
{
	bool full = strcmp(word, "full_batch") == 0;

	if (!full && strcmp(word, "data_parallel") != 0)
		return false;
	step->full_batch = full;
	step->arrival = NULL;
	step->narrival = 0;
	return true;
}

enum ap_status ap_arrival_parse(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *value, const struct ap_graph *g, int64_t ndev, struct ap_step *step)
{
	struct reading r = {.ctx = ctx, .doc = doc, .g = g, .ndev = ndev,
		.micro_batches = step->micro_batches, .parts = 1, .told = !step->arrival};
	struct ap_arrival *arrival;

	if (ap_jv_type(value) == AP_JSTRING && take_word(ap_jv_str(value), step))
		return AP_OK;
	if (ap_jv_type(value) != AP_JARRAY)
		return REFUSE(&r, value, "%s", expected);
	arrival = AP_NEW_N(ctx->arena, struct ap_arrival, g->ninput);
	AP_TRY(read_inputs(&r, value, arrival));
	step->full_batch = false;
	step->arrival = arrival;
	step->narrival = g->ninput;
	return AP_OK;
}

/* Python's tuples as arrays: brackets for parentheses, no comma before a closing one. */
static const char *without_parentheses(struct ap_ctx *ctx, const char *text)
{
	char *out = ap_arena_strndup(ctx->arena, text, strlen(text)), *comma = NULL, *to = out;

	for (const char *p = text; *p; p++) {
		char c = *p == '(' ? '[' : *p == ')' ? ']' : *p;

		if (c == ']' && comma)
			*comma = ' ';
		if (c != ' ')
			comma = c == ',' ? to : NULL;
		*to++ = c;
	}
	return out;
}

enum ap_status ap_arrival_parse_text(struct ap_ctx *ctx, const char *from, const char *text,
	const struct ap_graph *g, int64_t ndev, struct ap_step *step)
{
	struct ap_json *doc;

	if (take_word(text, step))
		return AP_OK;
	if (!strpbrk(text, "[("))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, "dataset-strategy", "%s: \"%s\"; %s",
			from, ap_diag_name(ctx->diag, text), expected);
	text = without_parentheses(ctx, text);
	if (ap_json_parse(ctx, from, text, strlen(text), 0, &doc) != AP_OK)
		return AP_USAGE;
	return ap_arrival_parse(ctx, doc, ap_json_root(doc), g, ndev, step);
}
