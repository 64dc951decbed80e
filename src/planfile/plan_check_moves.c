/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a plan file: redistributions, parameters, and what the route decides. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "planfile/plan_check_parts.h"
#include "shard/reshard.h"

static const char *const step_names[] = {
	[AP_MOVE_SLICE] = "Slice",
	[AP_MOVE_GATHER] = "AllGather",
	[AP_MOVE_ALLTOALL] = "AlltoAll",
};

/* Pairs of parts and stride, which are axes of the ranks. */
static bool read_layout(struct ap_book *b, const struct ap_jv *list, size_t rank, struct ap_layout *out)
{
	*out = (struct ap_layout){0};
	if (ap_jv_count(list) != rank || rank > AP_MAX_RANK) {
		ap_book_fault(b, list, "expected %zu dimensions, as in the shape", rank);
		return false;
	}
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		struct ap_book_list pair = ap_book_list(b, v);
		bool cut = pair.n == 2 && pair.v[0] > 1;

		if (pair.n != 2 || pair.v[0] < 1 || (pair.v[1] > 0) != cut ||
			(cut && (b->ndev % pair.v[1] || b->ndev / pair.v[1] % pair.v[0]))) {
			ap_book_fault(b, v, "expected the parts and the stride of their axis, or [1, 0]");
			return false;
		}
		out->dim[out->rank++] = (struct ap_cut_dim){(int32_t)pair.v[0], (int32_t)pair.v[1]};
	}
	for (size_t d = 0; d < rank; d++)
		for (size_t e = 0; e < d; e++) {
			const struct ap_cut_dim *x = &out->dim[d], *y = &out->dim[e];

			if (x->cut > 1 && y->cut > 1 && x->stride < y->stride * y->cut &&
				y->stride < x->stride * x->cut) {
				ap_book_fault(b, list, "cuts two dimensions by the same devices");
				return false;
			}
		}
	return true;
}

static bool divides(const struct ap_layout *l, const int64_t *size)
{
	for (int d = 0; d < l->rank; d++)
		if (size[d] % l->dim[d].cut)
			return false;
	return true;
}

static void hold_step(struct ap_book *b, const struct ap_jv *v, const struct ap_reshard_step *s, int bytes)
{
	struct ap_book_list axis = ap_book_list(b, ap_jv_get(v, "axis"));
	const char *why = "as the layouts say";
	bool alltoall = s->move == AP_MOVE_ALLTOALL;

	ap_book_want_str(b, v, "kind", step_names[s->move], why);
	ap_book_want_int(b, v, "dim", s->dim, why);
	ap_book_want_int(b, v, "outer", s->outer, why);
	if (axis.n != 2 || axis.v[0] != s->axis.stride || axis.v[1] != s->axis.size)
		ap_book_fault(b, ap_jv_get(v, "axis"), "expected [%" PRId32 ", %" PRId32 "], %s",
			s->axis.stride, s->axis.size, why);
	ap_book_want_int(b, v, "bytes_before", s->before * bytes, why);
	ap_book_want_int(b, v, "bytes_after", s->after * bytes, why);
	if (!ap_jv_get(v, "concat_dim") == alltoall || !ap_jv_get(v, "concat_outer") == alltoall) {
		ap_book_fault(b, v, alltoall ? "no key \"concat_dim\" or \"concat_outer\""
			: "has a dimension put together, and is no AlltoAll");
	} else if (alltoall) {
		ap_book_want_int(b, v, "concat_dim", s->concat, why);
		ap_book_want_int(b, v, "concat_outer", s->concat_outer, why);
	}
}

/* What a device sends: of what it gets together all but its own part, of what it deals all but one. */
static int64_t sent_bytes(const struct ap_reshard_step *step, int n, int bytes)
{
	int64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += step[i].move == AP_MOVE_GATHER ? (step[i].after - step[i].before) * bytes
			: step[i].move == AP_MOVE_ALLTOALL
			? step[i].before * bytes - step[i].before * bytes / step[i].axis.size : 0;
	return sum;
}

/* Steps are those that lead from one layout to the other; nothing is sent but in them. */
static void hold_steps(struct ap_book *b, const struct ap_jv *list, const struct ap_layout *from,
	const struct ap_layout *to, const struct ap_book_tensor *t, const struct ap_jv *move)
{
	const struct ap_jv *setting = ap_jv_get(ap_jv_get(b->root, "settings"), "enable_alltoall");
	bool alltoall = !setting || ap_jv_type(setting) != AP_JBOOL || ap_jv_bool(setting);
	struct ap_reshard_step step[AP_RESHARD_MAX];
	int64_t size[AP_MAX_RANK];
	int n, i = 0;

	for (size_t d = 0; d < t->shape.n; d++)
		size[d] = t->shape.v[d] / (t->batch >> d & 1 ? b->micro_batches : 1);
	if (!divides(from, size) || !divides(to, size)) {
		ap_book_fault(b, list, "cannot be: the layouts cut \"%s\" in parts of different sizes",
			ap_jv_str(t->where));
		return;
	}
	n = ap_reshard(from, to, size, b->ndev, alltoall, step);
	if (ap_jv_count(list) != (size_t)n) {
		ap_book_fault(b, list, "expected %d steps from one layout to the other", n);
		return;
	}
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v), i++)
		hold_step(b, v, &step[i], t->bytes);
	if (move)
		ap_book_want_int(b, move, "bytes", sent_bytes(step, n, t->bytes), "what the steps send");
}

static bool hold_ends(struct ap_book *b, const struct ap_jv *m, ap_id from, const struct ap_book_op *to,
	int64_t operand)
{
	const struct ap_book_tensor *t;

	if (operand >= to->nin) {
		ap_book_fault(b, ap_jv_get(m, "operand"), "is none of \"%s\"", to->name);
		return false;
	}
	t = &b->tensor.v[to->in[operand]];
	ap_book_want_str(b, m, "tensor", ap_jv_str(t->where), "that operand");
	if (t->source == AP_BOOK_RESULT && (from == AP_NONE || t->op != from)) {
		ap_book_fault(b, ap_jv_get(m, "from"), "expected \"%s\", which gives \"%s\"",
			b->op[t->op].name, ap_jv_str(t->where));
		return false;
	}
	if (t->source != AP_BOOK_RESULT && (from != AP_NONE || t->source != AP_BOOK_INPUT)) {
		ap_book_fault(b, m, "expected an input of the graph where \"from\" is null");
		return false;
	}
	return strcmp(ap_book_str(m, "tensor"), ap_jv_str(t->where)) == 0;
}

static void hold_times(struct ap_book *b, const struct ap_jv *m)
{
	ap_book_want_num(b, m, "time_s", ap_book_num(m, "forward_s") + ap_book_num(m, "backward_s"),
		"forward_s + backward_s");
	if (b->inference)
		ap_book_want_num(b, m, "backward_s", 0, "for /settings/run_phase is inference");
}

static void hold_move(struct ap_book *b, const struct ap_jv *m, ap_id from, ap_id to)
{
	int64_t operand = ap_book_int(b, m, "operand");
	const struct ap_book_op *op = &b->op[to];
	const struct ap_book_tensor *t;
	struct ap_layout a, z;

	hold_times(b, m);
	if (!hold_ends(b, m, from, op, operand))
		return;
	t = &b->tensor.v[op->in[operand]];
	if (!t->has_shape || !read_layout(b, ap_jv_get(m, "from_layout"), t->shape.n, &a) ||
		!read_layout(b, ap_jv_get(m, "to_layout"), t->shape.n, &z))
		return;
	if (op->in_layout[operand].rank >= 0 && !ap_layout_equal(&op->in_layout[operand], &z)) {
		ap_book_fault(b, ap_jv_get(m, "to_layout"), "contradicts how \"%s\" is cut", op->name);
		return;
	}
	if (t->source == AP_BOOK_RESULT && b->op[t->op].out_layout[t->result].rank >= 0 &&
		!ap_layout_equal(&b->op[t->op].out_layout[t->result], &a)) {
		ap_book_fault(b, ap_jv_get(m, "from_layout"), "contradicts how \"%s\" is cut",
			b->op[t->op].name);
		return;
	}
	if (ap_layout_equal(&a, &z))
		ap_book_fault(b, m, "is none: the layouts are the same");
	hold_steps(b, ap_jv_get(m, "steps"), &a, &z, t, m);
	if (ap_jv_get(m, "back_steps"))
		hold_steps(b, ap_jv_get(m, "back_steps"), &z, &a, t, NULL);
}

/* Where the layouts of a result and of an operand differ, the result is redistributed. */
static void hold_complete(struct ap_book *b, struct ap_map *seen)
{
	for (uint32_t i = 0; i < b->nop; i++)
		for (uint32_t k = 0; k < b->op[i].nin; k++) {
			const struct ap_book_tensor *t = &b->tensor.v[b->op[i].in[k]];
			const uint32_t key[2] = {i, k};
			const struct ap_layout *out, *in = &b->op[i].in_layout[k];

			if (t->source != AP_BOOK_RESULT || in->rank < 0)
				continue;
			out = &b->op[t->op].out_layout[t->result];
			b->oper = b->op[i].name;
			if (out->rank >= 0 && !ap_layout_equal(in, out) &&
				ap_map_get(seen, key, sizeof key) == AP_NONE)
				ap_book_fault(b, b->op[i].v,
					"reads \"%s\" in another layout than \"%s\" gives it, and no "
					"redistribution is between", ap_jv_str(t->where),
					b->op[t->op].name);
		}
	b->oper = NULL;
}

void ap_plan_rule_redistributions(struct ap_book *b)
{
	struct ap_map *seen = ap_map_create(b->ctx->scratch);
	bool fresh;

	for (uint32_t i = 0; i < b->nmove; i++) {
		const struct ap_jv *m = b->move[i], *name = ap_book_at(m, "from");
		ap_id to = ap_map_get_str(b->op_names, ap_book_str(m, "to"));
		ap_id from = name ? ap_map_get_str(b->op_names, ap_jv_str(name)) : AP_NONE;
		const uint32_t key[2] = {to, (uint32_t)ap_book_int(b, m, "operand")};

		if (to == AP_NONE)
			ap_book_fault(b, ap_jv_get(m, "to"), "is no operator of this plan");
		if (name && from == AP_NONE)
			ap_book_fault(b, name, "is no operator of this plan");
		if (to == AP_NONE || (name && from == AP_NONE))
			continue;
		ap_map_put(seen, key, sizeof key, &fresh);
		if (!fresh)
			ap_book_fault(b, m, "this operand is redistributed already");
		hold_move(b, m, from, to);
	}
	hold_complete(b, seen);
}

/* How a parameter lies by its dev_matrix and tensor_map. */
static bool read_param(struct ap_book *b, const struct ap_jv *p, struct ap_layout *out)
{
	struct ap_book_list dev = ap_book_list(b, ap_jv_get(p, "dev_matrix"));
	struct ap_book_list map = ap_book_list(b, ap_jv_get(p, "tensor_map"));
	const struct ap_jv *v = ap_jv_first(ap_jv_get(p, "tensor_map"));
	int64_t product;

	*out = (struct ap_layout){.rank = (int32_t)map.n};
	if (!ap_product(dev.v, dev.n, &product) || product != b->ndev) {
		ap_book_fault(b, ap_jv_get(p, "dev_matrix"), "expected a product of %" PRId64
			", the devices of a stage", b->ndev);
		return false;
	}
	if (map.n > AP_MAX_RANK || map.n != ap_jv_count(ap_jv_get(p, "tensor_shape"))) {
		ap_book_fault(b, ap_jv_get(p, "tensor_map"), "expected %zu dimensions, as in tensor_shape",
			ap_jv_count(ap_jv_get(p, "tensor_shape")));
		return false;
	}
	for (size_t i = 0; i < dev.n; i++)
		if (dev.v[i] == 1 && dev.n > 1)
			ap_book_fault(b, ap_jv_get(p, "dev_matrix"), "expected no axes of size one");
	for (size_t d = 0; d < map.n; d++, v = ap_jv_next(v)) {
		int64_t stride = 1;

		if (map.v[d] < 0)
			continue;
		if (map.v[d] >= (int64_t)dev.n) {
			ap_book_fault(b, v, "is no axis of dev_matrix, which has %zu", dev.n);
			return false;
		}
		for (size_t e = 0; e < d; e++)
			if (map.v[e] == map.v[d]) {
				ap_book_fault(b, v, "cuts another dimension already");
				return false;
			}
		for (int64_t i = 0; i < map.v[d]; i++)
			stride *= dev.v[dev.n - 1 - (size_t)i];
		out->dim[d] = (struct ap_cut_dim){(int32_t)dev.v[dev.n - 1 - (size_t)map.v[d]],
			(int32_t)stride};
	}
	for (int d = 0; d < out->rank; d++)
		if (out->dim[d].cut <= 1)
			out->dim[d] = (struct ap_cut_dim){1, 0};
	return true;
}

static void hold_param_slice(struct ap_book *b, const struct ap_jv *p, const struct ap_layout *l)
{
	const struct ap_jv *slice = ap_jv_get(p, "slice_shape"), *v = ap_jv_first(slice);
	struct ap_book_list shape = ap_book_list(b, ap_jv_get(p, "tensor_shape"));

	if (ap_jv_count(slice) != shape.n) {
		ap_book_fault(b, slice, "expected %zu dimensions, as in tensor_shape", shape.n);
		return;
	}
	for (int d = 0; d < l->rank; d++, v = ap_jv_next(v))
		if (ap_book_whole(b, v) * l->dim[d].cut != shape.v[d])
			ap_book_fault(b, v, "expected %" PRId64 ", one of %" PRId32 " parts of %" PRId64,
				shape.v[d] / l->dim[d].cut, l->dim[d].cut, shape.v[d]);
}

/* A dealt one says to how many, all that hold the same slice being -1. */
static void hold_dealing(struct ap_book *b, const struct ap_jv *p, const struct ap_layout *l)
{
	int64_t shards = ap_book_int(b, p, "optimizer_shards"), size, step, alike;
	const struct ap_jv *group = ap_jv_get(p, "optimizer_group");

	size = ap_book_int(b, p, "opt_weight_shard_size");
	step = ap_book_int(b, p, "opt_weight_shard_step");
	alike = b->ndev / ap_layout_parts(l);
	if (shards == 1 ? size != 0 || step != 0 : step == 0 || (size != shards && size != -1))
		ap_book_fault(b, p, "contradicts itself: optimizer_shards %" PRId64
			", opt_weight_shard_size %" PRId64 ", opt_weight_shard_step %" PRId64, shards, size,
			step);
	else if (size == -1 && shards != alike)
		ap_book_fault(b, ap_jv_get(p, "optimizer_shards"), "expected %" PRId64
			", the devices that hold the same slice", alike);
	if (alike % shards)
		ap_book_fault(b, ap_jv_get(p, "optimizer_shards"), "expected a divisor of the %" PRId64
			" devices that hold the same slice", alike);
	if (group && (ap_jv_type(group) == AP_JNULL) != (shards == 1))
		ap_book_fault(b, group, shards == 1 ? "expected null of one that is not dealt"
			: "expected the group that it is dealt to");
	else if (group && shards > 1) {
		struct ap_axes axes;
		int64_t first = ap_book_int(b, p, "stage") * b->ndev;

		if (ap_book_group(b, group, first, b->ndev, &axes) && ap_axes_size(&axes) != shards)
			ap_book_fault(b, group, "expected a group of the %" PRId64 " optimizer_shards",
				shards);
	}
}

static void read_group(const struct ap_book *b, const struct ap_jv *obj, struct ap_axes *out)
{
	*out = (struct ap_axes){0};
	for (const struct ap_jv *v = ap_jv_first(ap_jv_get(obj, "axes")); v; v = ap_jv_next(v)) {
		const struct ap_jv *stride = ap_jv_first(v);

		ap_axes_add(out, (struct ap_axis){(int32_t)ap_book_whole(b, stride),
			(int32_t)ap_book_whole(b, ap_jv_next(stride))});
	}
}

/* Its collective, of an operator that is named there. */
static const struct ap_jv *hold_exchange(struct ap_book *b, const struct ap_jv *p, const struct ap_jv *x)
{
	ap_id id = ap_map_get_str(b->op_names, ap_book_str(x, "operator"));
	int64_t operand = ap_book_int(b, x, "operand");
	struct ap_axes axes, group;

	if (id == AP_NONE) {
		ap_book_fault(b, ap_jv_get(x, "operator"), "is no operator of this plan");
		return NULL;
	}
	if (operand >= b->op[id].nin || strcmp(ap_book_str(p, "name"),
		ap_jv_str(b->tensor.v[b->op[id].in[operand]].where)) != 0) {
		ap_book_fault(b, ap_jv_get(x, "operand"), "is not this parameter");
		return NULL;
	}
	if (!ap_book_group(b, x, b->op[id].stage * b->ndev, b->ndev, &axes))
		return NULL;
	for (uint32_t k = 0; k < b->op[id].ncomm; k++) {
		const struct ap_jv *c = b->op[id].comm[k];

		if (strcmp(ap_book_str(c, "phase"), "gradient") != 0 || !ap_jv_get(c, "operand") ||
			ap_book_int(b, c, "operand") != operand ||
			strcmp(ap_book_str(c, "kind"), ap_book_str(x, "kind")) != 0)
			continue;
		read_group(b, c, &group);
		read_group(b, x, &axes);
		if (ap_axes_equal(&axes, &group))
			return c;
	}
	ap_book_fault(b, x, "is no collective of this operator");
	return NULL;
}

/* Axes that gradient_group has: all of the first operand's. */
static void hold_gradients(struct ap_book *b, const struct ap_jv *p, uint32_t ncomm)
{
	const struct ap_jv *list = ap_jv_get(p, "gradient_groups"), *group = ap_book_at(p, "gradient_group");
	const struct ap_jv *first = list ? ap_jv_first(list) : NULL;
	struct ap_axes all = {0}, told;
	bool right = true;

	if (!list)
		return;
	if (ap_jv_count(list) != ncomm)
		ap_book_fault(b, list,
			"expected the %" PRIu32 " collectives of phase gradient that there are of it", ncomm);
	for (const struct ap_jv *x = first; x; x = ap_jv_next(x)) {
		right &= hold_exchange(b, p, x) != NULL;
		if (!right || strcmp(ap_book_str(x, "operator"), ap_book_str(first, "operator")) != 0 ||
			ap_book_int(b, x, "operand") != ap_book_int(b, first, "operand"))
			continue;
		read_group(b, x, &told);
		for (int a = 0; a < told.n; a++)
			ap_axes_add(&all, told.axis[a]);
	}
	if (!group != !first) {
		ap_book_fault(b, ap_jv_get(p, "gradient_group"), group ? "expected null, for nothing is in "
			"gradient_groups" : "expected a group, for there are some in gradient_groups");
	} else if (group && right &&
		ap_book_group(b, group, ap_book_int(b, p, "stage") * b->ndev, b->ndev, &told)) {
		read_group(b, group, &told);
		if (!ap_axes_equal(&told, &all))
			ap_book_fault(b, group, "contradicts gradient_groups");
	}
}

static void hold_users(struct ap_book *b, const struct ap_jv *p, const struct ap_layout *l,
	const uint32_t *users, uint32_t n)
{
	int64_t stage = ap_book_int(b, p, "stage");
	bool there = false;

	for (uint32_t u = 0; u < n; u += 2) {
		const struct ap_book_op *op = &b->op[users[u]];
		const struct ap_layout *in = &op->in_layout[users[u + 1]];

		there |= op->stage == stage;
		if (in->rank >= 0 && !ap_layout_equal(in, l))
			ap_book_fault(b, ap_jv_get(p, "tensor_map"), "contradicts how \"%s\" is cut",
				op->name);
	}
	if (!n)
		ap_book_fault(b, p, "is read by no operator");
	else if (!there)
		ap_book_fault(b, ap_jv_get(p, "stage"), "is not that of an operator that reads it");
}

struct users { /* operator and operand of each, gradients of them */
	uint32_t n, ngradient;
	uint32_t *v;
};

static struct users *list_users(struct ap_book *b)
{
	struct users *all = AP_NEW_N(b->ctx->scratch, struct users, b->tensor.n);

	for (size_t t = 0; t < b->tensor.n; t++)
		if (b->tensor.v[t].source == AP_BOOK_PARAM)
			all[t].v = AP_NEW_N(b->ctx->scratch, uint32_t, 2 * b->tensor.v[t].nuse);
	for (uint32_t i = 0; i < b->nop; i++) {
		for (uint32_t k = 0; k < b->op[i].nin; k++) {
			struct users *u = &all[b->op[i].in[k]];

			if (!u->v)
				continue;
			u->v[u->n++] = i;
			u->v[u->n++] = k;
		}
		for (uint32_t k = 0; k < b->op[i].ncomm; k++) {
			const struct ap_jv *c = b->op[i].comm[k];
			ap_id t = ap_map_get_str(b->tensor_names, ap_book_str(c, "tensor"));

			if (t != AP_NONE && !strcmp(ap_book_str(c, "phase"), "gradient"))
				all[t].ngradient++;
		}
	}
	return all;
}

/* Is it a parameter, perhaps cast, or sent from another stage? */
static bool is_param(const struct ap_book *b, ap_id tensor)
{
	enum { MOST_BETWEEN = 16 };

	for (int i = 0; i < MOST_BETWEEN; i++) {
		const struct ap_book_tensor *t = &b->tensor.v[tensor];

		if (t->source != AP_BOOK_RESULT || b->op[t->op].nin != 1)
			return t->source == AP_BOOK_PARAM;
		tensor = b->op[t->op].in[0];
	}
	return false;
}

/* What the checkpoint says how it is cut reads a parameter. */
static void hold_checkpoint(struct ap_book *b)
{
	for (uint32_t i = 0; i < b->nop; i++) {
		bool any = false;

		for (uint32_t k = 0; k < b->op[i].nin; k++)
			any |= is_param(b, b->op[i].in[k]);
		b->oper = b->op[i].name;
		if (!any && ap_book_bool(b->op[i].v, "in_checkpoint"))
			ap_book_fault(b, ap_jv_get(b->op[i].v, "in_checkpoint"),
				"expected false of an operator without a parameter");
	}
	b->oper = NULL;
}

void ap_plan_rule_parameters(struct ap_book *b)
{
	const struct users *all = list_users(b);

	for (uint32_t i = 0; i < b->nparam; i++) {
		const struct ap_jv *p = b->param[i];
		ap_id t = ap_map_get_str(b->tensor_names, ap_book_str(p, "name"));
		struct ap_layout l;

		if (ap_book_int(b, p, "stage") >= b->nstage) {
			ap_book_fault(b, ap_jv_get(p, "stage"), "is no stage of this plan");
			continue;
		}
		if (!read_param(b, p, &l))
			continue;
		hold_param_slice(b, p, &l);
		hold_dealing(b, p, &l);
		hold_users(b, p, &l, all[t].v, all[t].n);
		hold_gradients(b, p, all[t].ngradient);
		if (all[t].ngradient && !ap_book_bool(p, "trainable"))
			ap_book_fault(b, ap_jv_get(p, "trainable"), "expected true, for its gradient is "
				"exchanged");
	}
	hold_checkpoint(b);
}

static bool same_lists(const struct ap_jv *a, const struct ap_jv *b)
{
	const struct ap_jv *x = ap_jv_first(a), *y = ap_jv_first(b);

	if (ap_jv_type(a) != AP_JARRAY)
		return ap_jv_type(b) != AP_JARRAY && ap_jv_double(a) == ap_jv_double(b);
	for (; x && y; x = ap_jv_next(x), y = ap_jv_next(y))
		if (!same_lists(x, y))
			return false;
	return !x && !y;
}

void ap_plan_rule_route(struct ap_book *b)
{
	const struct ap_jv *r = ap_book_at(b->root, "route");
	struct ap_map *names = ap_map_create(b->ctx->scratch);
	bool fresh;

	if (!r)
		return;
	for (const struct ap_jv *v = ap_jv_first(ap_jv_get(r, "differs")); v; v = ap_jv_next(v)) {
		ap_id id = ap_map_get_str(b->op_names, ap_book_str(v, "name"));
		const struct ap_jv *now = ap_jv_get(v, "in_strategy");

		ap_map_put_str(names, ap_book_str(v, "name"), &fresh);
		if (!fresh)
			ap_book_fault(b, v, "an operator of this name is there already");
		if (id == AP_NONE) {
			ap_book_fault(b, ap_jv_get(v, "name"), "is no operator of this plan");
			continue;
		}
		if (!same_lists(now, ap_jv_get(b->op[id].v, "in_strategy")))
			ap_book_fault(b, now, "contradicts the operator's own");
	}
}
