/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a plan file: operators, how they are cut, what they hold and send. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/num.h"
#include "base/vec.h"
#include "planfile/plan_check_parts.h"

/* The tensor of this name, made known where it is not: what nothing gives is a constant. */
static ap_id read_input(struct ap_book *b, const struct ap_jv *name)
{
	bool fresh;
	ap_id id = ap_map_put_str(b->tensor_names, ap_jv_str(name), &fresh);
	struct ap_book_tensor t = {.source = AP_BOOK_CONSTANT, .where = name};

	if (fresh)
		AP_PUSH(b->ctx->scratch, b->tensor, t);
	if (fresh && b->names_constants)
		ap_book_fault(b, name,
			"is no input, constant or parameter, nor a result of an operator before");
	b->tensor.v[id].nuse++;
	return id;
}

static void read_inputs(struct ap_book *b, struct ap_book_op *op)
{
	const struct ap_jv *list = ap_jv_get(op->v, "inputs");
	ap_id *in = AP_NEW_N(b->ctx->scratch, ap_id, ap_jv_count(list));

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		in[op->nin++] = read_input(b, v);
	op->in = in;
}

static void read_outputs(struct ap_book *b, uint32_t i)
{
	struct ap_book_op *op = &b->op[i];
	const struct ap_jv *list = ap_jv_get(op->v, "outputs"), *shape, *dtype;
	ap_id *out = AP_NEW_N(b->ctx->scratch, ap_id, ap_jv_count(list));
	bool fresh;

	shape = ap_jv_first(ap_jv_get(op->v, "out_shape"));
	dtype = ap_jv_first(ap_jv_get(op->v, "out_dtype"));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		struct ap_book_tensor t = {.source = AP_BOOK_RESULT, .where = v, .op = i,
			.result = op->nout, .has_shape = shape && dtype};

		out[op->nout] = ap_map_put_str(b->tensor_names, ap_jv_str(v), &fresh);
		op->nout++;
		if (!fresh) {
			ap_book_fault(b, v, "a tensor of this name is there already");
		} else {
			if (t.has_shape) {
				t.shape = ap_book_list(b, shape);
				t.bytes = ap_dtype_bytes(ap_dtype_find(ap_jv_str(dtype)));
			}
			AP_PUSH(b->ctx->scratch, b->tensor, t);
		}
		shape = shape ? ap_jv_next(shape) : NULL;
		dtype = dtype ? ap_jv_next(dtype) : NULL;
	}
	op->out = out;
}

static void hold_counts(struct ap_book *b, const struct ap_book_op *op)
{
	static const struct {
		const char *key;
		bool out;
	} lists[] = {{"in_strategy", false}, {"in_tensor_map", false}, {"in_slice", false},
		{"out_shape", true}, {"out_dtype", true}, {"out_strategy", true},
		{"out_tensor_map", true}, {"out_slice", true}};

	for (size_t i = 0; i < AP_COUNT(lists); i++) {
		const struct ap_jv *list = ap_jv_get(op->v, lists[i].key);
		uint32_t want = lists[i].out ? op->nout : op->nin;

		if (ap_jv_count(list) != want)
			ap_book_fault(b, list, "expected %" PRIu32 ", one for each %s", want,
				lists[i].out ? "result" : "operand");
	}
}

static void read_operator(struct ap_book *b, uint32_t i, const struct ap_jv *v)
{
	struct ap_book_op *op = &b->op[i];
	const struct ap_jv *comms = ap_jv_get(v, "communications");
	bool fresh;

	*op = (struct ap_book_op){.v = v, .name = ap_book_str(v, "name"),
		.stage = ap_book_int(b, v, "stage"), .segment = ap_book_int(b, v, "segment")};
	b->oper = op->name;
	ap_map_put_str(b->op_names, op->name, &fresh);
	if (!fresh)
		ap_book_fault(b, ap_jv_get(v, "name"), "an operator of this name is there already");
	if (op->stage >= (b->nstage ? b->nstage : 1))
		ap_book_fault(b, ap_jv_get(v, "stage"), "is no stage of this plan");
	if (op->segment >= b->segments)
		ap_book_fault(b, ap_jv_get(v, "segment"), "is no segment of a stage");
	if (!*ap_book_str(v, "type"))
		ap_book_fault(b, ap_jv_get(v, "type"), "expected the type of an operator");
	if (ap_jv_get(v, "once") && !ap_book_bool(v, "once"))
		ap_book_fault(b, ap_jv_get(v, "once"), "expected true, or no such key");
	read_inputs(b, op);
	read_outputs(b, i);
	op->dev = ap_book_list(b, ap_jv_get(v, "dev_matrix"));
	op->comm = AP_NEW_N(b->ctx->scratch, const struct ap_jv *, ap_jv_count(comms));
	for (const struct ap_jv *c = ap_jv_first(comms); c; c = ap_jv_next(c))
		op->comm[op->ncomm++] = c;
	hold_counts(b, op);
}

/* What the network gives is a result of one of them, and so is what no operator of the plan reads. */
static void hold_outputs(struct ap_book *b)
{
	const struct ap_jv *list = ap_jv_get(ap_jv_get(b->root, "graph"), "outputs");

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		ap_id id = ap_map_get_str(b->tensor_names, ap_jv_str(v));

		if (id == AP_NONE)
			ap_book_fault(b, v, "is no tensor of this plan");
	}
}

/* Each is read. */
static void hold_constants(struct ap_book *b)
{
	for (size_t i = 0; i < b->tensor.n; i++)
		if (b->tensor.v[i].source == AP_BOOK_CONSTANT && !b->tensor.v[i].nuse)
			ap_book_fault(b, b->tensor.v[i].where, "is read by no operator");
}

void ap_plan_rule_operators(struct ap_book *b)
{
	const struct ap_jv *list = ap_jv_get(b->root, "operators");
	uint32_t i = 0;

	b->nop = (uint32_t)ap_jv_count(list);
	b->op = AP_NEW_N(b->ctx->scratch, struct ap_book_op, b->nop);
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v), i++)
		read_operator(b, i, v);
	b->oper = NULL;
	hold_constants(b);
	hold_outputs(b);
}

static int64_t stride_of(const struct ap_book_op *op, size_t axis) /* counted from the right */
{
	int64_t stride = 1;

	for (size_t i = 0; i < axis; i++)
		stride *= op->dev.v[op->dev.n - 1 - i];
	return stride;
}

/* The axes that cut a dimension, the outermost first: adds them to the layout. *used: axes so far. */
static bool cut_by(struct ap_book *b, const struct ap_book_op *op, const struct ap_jv *entry,
	struct ap_cut_dim *dim, uint64_t *used)
{
	bool list = ap_jv_type(entry) == AP_JARRAY;
	int64_t before = INT64_MAX;

	*dim = (struct ap_cut_dim){1, 0};
	for (const struct ap_jv *v = list ? ap_jv_first(entry) : entry; v; v = list ? ap_jv_next(v) : NULL) {
		int64_t m = ap_book_whole(b, v), size;

		if (m < 0 && !list)
			return true;
		if (m < 0 || m >= (int64_t)op->dev.n || m >= 64) {
			ap_book_fault(b, v, "is no axis of dev_matrix, which has %zu", op->dev.n);
			return false;
		}
		size = op->dev.v[op->dev.n - 1 - (size_t)m];
		if (*used >> m & 1 && size > 1) {
			ap_book_fault(b, v, "cuts another dimension already");
			return false;
		}
		if (m >= before) {
			ap_book_fault(b, v, "expected axes from the outermost one on");
			return false;
		}
		before = m;
		*used |= UINT64_C(1) << m;
		if (size > 1) {
			dim->cut *= (int32_t)size;
			dim->stride = (int32_t)stride_of(op, (size_t)m);
		}
	}
	return true;
}

/* The layout that a map says, of which the strategy tells the parts. A strategy may have more dimensions,
 * as those of OneHot and Tile, which speak of the result's: the operand's are in order among them. */
static bool read_layout(struct ap_book *b, const struct ap_book_op *op, const struct ap_jv *map,
	const struct ap_jv *parts, struct ap_layout *out)
{
	const struct ap_jv *part = ap_jv_first(parts);
	size_t more = ap_jv_count(parts) - ap_jv_count(map);
	uint64_t used = 0;

	*out = (struct ap_layout){0};
	if (ap_jv_count(map) > ap_jv_count(parts) || ap_jv_count(map) > AP_MAX_RANK) {
		ap_book_fault(b, map, "expected %zu dimensions, as in the strategy", ap_jv_count(parts));
		return false;
	}
	for (const struct ap_jv *v = ap_jv_first(map); v; v = ap_jv_next(v), part = ap_jv_next(part)) {
		struct ap_cut_dim *dim = &out->dim[out->rank++];

		if (!cut_by(b, op, v, dim, &used))
			return false;
		for (; more && dim->cut != ap_book_whole(b, part); more--)
			part = ap_jv_next(part);
		if (dim->cut != ap_book_whole(b, part)) {
			ap_book_fault(b, part, "expected %" PRId32
				", the parts that dev_matrix and tensor_map say", dim->cut);
			return false;
		}
	}
	return true;
}

/* A slice is the shape by its parts, and by the micro-batches where the dimension carries the batch. */
static void hold_slice(struct ap_book *b, ap_id tensor, const struct ap_layout *l, const struct ap_jv *slice)
{
	struct ap_book_tensor *t = &b->tensor.v[tensor];
	const struct ap_jv *v = ap_jv_first(slice);
	uint64_t batch = 0;

	if (ap_jv_count(slice) != (size_t)l->rank || (t->has_shape && t->shape.n != (size_t)l->rank)) {
		ap_book_fault(b, slice, "expected %" PRId32 " dimensions", l->rank);
		return;
	}
	for (int d = 0; d < l->rank; d++, v = ap_jv_next(v)) {
		int64_t n = ap_book_whole(b, v), whole = t->has_shape ? t->shape.v[d] : 0, got;

		if (!t->has_shape)
			continue;
		if (!ap_mul(n, l->dim[d].cut, &got))
			got = -1;
		if (got == whole)
			continue;
		if (got < 0 || !ap_mul(got, b->micro_batches, &got) || got != whole ||
			t->source == AP_BOOK_PARAM) {
			ap_book_fault(b, v, "is no part of %" PRId64 " in %" PRId32 " parts", whole,
				l->dim[d].cut);
			return;
		}
		batch |= UINT64_C(1) << d;
	}
	if (t->has_slice && t->batch != batch)
		ap_book_fault(b, slice,
			"contradicts another slice of \"%s\" in how the micro-batches divide it",
			ap_jv_str(t->where));
	t->has_slice = true;
	t->batch = batch;
}

static struct ap_layout *hold_side(struct ap_book *b, const struct ap_book_op *op, bool out)
{
	static const char *const keys[2][3] = {{"in_tensor_map", "in_strategy", "in_slice"},
		{"out_tensor_map", "out_strategy", "out_slice"}};
	const struct ap_jv *map = ap_jv_first(ap_jv_get(op->v, keys[out][0]));
	const struct ap_jv *parts = ap_jv_first(ap_jv_get(op->v, keys[out][1]));
	const struct ap_jv *slice = ap_jv_first(ap_jv_get(op->v, keys[out][2]));
	uint32_t n = out ? op->nout : op->nin;
	struct ap_layout *l = AP_NEW_N(b->ctx->scratch, struct ap_layout, n);

	for (uint32_t i = 0; i < n; i++)
		l[i].rank = -1;
	for (uint32_t i = 0; i < n && map && parts && slice; i++) {
		if (read_layout(b, op, map, parts, &l[i]))
			hold_slice(b, out ? op->out[i] : op->in[i], &l[i], slice);
		else
			l[i].rank = -1;
		map = ap_jv_next(map);
		parts = ap_jv_next(parts);
		slice = ap_jv_next(slice);
	}
	return l;
}

/* Each factor in parts is an axis of dev_matrix, what is left repeats. */
static void hold_factors(struct ap_book *b, const struct ap_book_op *op)
{
	const struct ap_jv *list = ap_jv_get(op->v, "factors");
	int64_t product = 1, left = 1, repeat = ap_book_int(b, op->v, "repeated");
	uint64_t used = 0;

	for (size_t i = 0; i < op->dev.n; i++)
		if (!ap_mul(product, op->dev.v[i], &product))
			product = 0;
	if (product != b->ndev)
		ap_book_fault(b, ap_jv_get(op->v, "dev_matrix"), "expected a product of %" PRId64
			", the devices of a stage", b->ndev);
	for (const struct ap_jv *f = ap_jv_first(list); f; f = ap_jv_next(f)) {
		int64_t parts = ap_book_int(b, f, "parts"), stride = ap_book_int(b, f, "stride");
		bool found = parts == 1 && stride == 0;

		for (size_t a = 0; a < op->dev.n && a < 64 && !found; a++)
			if (!(used >> a & 1) && op->dev.v[op->dev.n - 1 - a] == parts &&
				parts > 1 && stride_of(op, a) == stride) {
				used |= UINT64_C(1) << a;
				found = true;
			}
		if (!found)
			ap_book_fault(b, f, "expected an axis of dev_matrix: its size as parts, its stride");
		if (ap_book_int(b, f, "size") < parts)
			ap_book_fault(b, ap_jv_get(f, "size"), "is less than its parts");
		if (strlen(ap_book_str(f, "factor")) != 1)
			ap_book_fault(b, ap_jv_get(f, "factor"), "expected a letter");
		for (const struct ap_jv *e = ap_jv_first(list); e != f; e = ap_jv_next(e))
			if (!strcmp(ap_book_str(e, "factor"), ap_book_str(f, "factor")))
				ap_book_fault(b, f, "a factor of this name is there already");
	}
	for (size_t a = 0; a < op->dev.n; a++)
		if (a >= 64 || !(used >> a & 1))
			left *= op->dev.v[op->dev.n - 1 - a];
	if (left != repeat)
		ap_book_fault(b, ap_jv_get(op->v, "repeated"), "expected %" PRId64
			", what the factors leave of dev_matrix", left);
}

void ap_plan_rule_cuts(struct ap_book *b)
{
	for (uint32_t i = 0; i < b->nop; i++) {
		struct ap_book_op *op = &b->op[i];

		b->oper = op->name;
		hold_factors(b, op);
		op->in_layout = hold_side(b, op, false);
		op->out_layout = hold_side(b, op, true);
	}
}
