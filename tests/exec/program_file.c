/* SPDX-License-Identifier: Apache-2.0 */
/* A program from the plan file: operators, redistributions and parameters. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "hw/coll.h"
#include "hw/group.h"
#include "planfile/plan_read.h"
#include "rule/op.h"
#include "shard/strategy.h"
#include "program_read.h"

static void read_names(struct ex_reader *r, const struct ap_jv *obj, const char *key,
	const struct ap_graph *g, const ap_id *tensor, uint16_t n)
{
	const struct ap_jv *names = ex_read(r, obj, key, AP_JARRAY), *v = ex_first(names);

	ex_read_count(r, names, n);
	for (int i = 0; v && !r->why; v = ap_jv_next(v), i++)
		if (ap_jv_type(v) != AP_JSTRING || strcmp(ap_jv_str(v), g->tensor[tensor[i]].name) != 0)
			ex_read_fault(r, "%s %d is another tensor", key, i);
}

/* tensor_map and slice of operands or results. */
static const struct ap_layout *read_layouts(struct ex_reader *r, const struct ap_jv *obj, bool in,
	const struct ex_matrix *m, const struct ap_shape *shape, uint16_t n)
{
	const struct ap_jv *maps = ex_read(r, obj, in ? "in_tensor_map" : "out_tensor_map", AP_JARRAY);
	const struct ap_jv *slices = ex_read(r, obj, in ? "in_slice" : "out_slice", AP_JARRAY);
	const struct ap_jv *map = ex_first(maps), *slice = ex_first(slices);
	struct ap_layout *l = AP_NEW_N(r->ctx->arena, struct ap_layout, n);

	ex_read_count(r, maps, n);
	ex_read_count(r, slices, n);
	for (int i = 0; i < n && !r->why; i++) {
		ex_read_map(r, map, m, shape[i].rank, &l[i]);
		ex_read_slice(r, slice, &shape[i], &l[i]);
		map = ap_jv_next(map);
		slice = ap_jv_next(slice);
	}
	return l;
}

/* Vectors of a strategy; their number. */
static int read_vectors(struct ex_reader *r, const struct ap_jv *obj, const char *key,
	uint8_t rank[], int32_t cut[][AP_MAX_RANK], int most)
{
	int n = 0;

	for (const struct ap_jv *v = ex_first(ex_read(r, obj, key, AP_JARRAY)); v; v = ap_jv_next(v)) {
		int64_t x[AP_MAX_RANK];

		if (n == most) {
			ex_read_fault(r, "%s has too many vectors", key);
			break;
		}
		rank[n] = (uint8_t)ex_read_ints(r, v, x, AP_MAX_RANK);
		for (int d = 0; d < rank[n]; d++)
			cut[n][d] = (int32_t)x[d];
		n++;
	}
	return n;
}

/* in_strategy must lead to the counts that the factors are said to have, out_strategy to the results'
 * layouts. */
static void read_strategies(struct ex_reader *r, const struct ap_jv *obj, const struct ap_node *n,
	const struct ex_oper *o, const struct ap_step *step, int64_t ndev)
{
	enum { MOST = 2 * EX_MAX_IN };
	const struct ap_jv *factor = ex_first(ex_read(r, obj, "factors", AP_JARRAY));
	uint8_t rank[MOST];
	int32_t cut[MOST][AP_MAX_RANK], count[AP_MAX_FACTOR];
	const char *why;
	int nin = read_vectors(r, obj, "in_strategy", rank, cut, MOST);

	if (r->why || !ap_op_has_strategy(n->bound.row))
		return;
	if (!ap_space_from_strategy(r->ctx, &n->bound, ndev, step, (uint32_t)nin, rank,
		    (const int32_t(*)[AP_MAX_RANK])cut, count, &why)) {
		ex_read_fault(r, "in_strategy: %s", why);
		return;
	}
	for (int f = 0; factor && f < n->bound.nfactor; f++, factor = ap_jv_next(factor))
		if (ex_read_int(r, factor, "parts") != count[f])
			ex_read_fault(r, "in_strategy is not that of the factors");
	if (read_vectors(r, obj, "out_strategy", rank, cut, MOST) != o->nout)
		ex_read_fault(r, "out_strategy has another number of vectors");
	for (int i = 0; i < o->nout && !r->why; i++)
		for (int d = 0; d < o->out_shape[i].rank; d++)
			if (cut[i][d] != o->out[i].dim[d].cut)
				ex_read_fault(r, "out_strategy of result %d", i);
}

/* The first rank of a stage and its counterpart in the other. */
static void read_pair(struct ex_reader *r, const struct ap_jv *obj, const struct ap_node *n,
	const struct ex_program *p, struct ap_comm *c)
{
	int64_t from = ex_read_int(r, obj, "from_stage"), to = ex_read_int(r, obj, "to_stage");
	int32_t low = (int32_t)(from < to ? from : to), high = (int32_t)(from < to ? to : from);
	int64_t first = ex_first_rank(p, low), distance = ex_first_rank(p, high) - first;
	struct ap_axes pair;

	ex_read_group(r, obj, first, distance + ex_devices(p, high), &pair);
	c->from_stage = (int32_t)from;
	c->to_stage = (int32_t)to;
	if (ap_axes_size(&pair) != (low == high ? 1 : 2) ||
		(low != high && pair.axis[0].stride != distance))
		ex_read_fault(r, "\"ranks\" are not those of the two stages");
	if ((n->stage != from || n->peer != to) && (n->stage != to || n->peer != from))
		ex_read_fault(r, "it sends between other stages");
}

static bool read_flag(struct ex_reader *r, const struct ap_jv *obj, const char *key)
{
	return ap_jv_get(obj, key) && ap_jv_bool(ex_read(r, obj, key, AP_JBOOL));
}

static int64_t first_rank(const struct ap_node *n, const struct ex_program *p)
{
	return ex_first_rank(p, n->stage);
}

static struct ap_comm read_comm(struct ex_reader *r, const struct ap_jv *obj, const struct ap_graph *g,
	const struct ap_node *n, const struct ex_program *p)
{
	static const char *const phases[] = {"forward", "backward", "gradient", "optimizer",
		"recompute", NULL};
	static const char *const kinds[] = {"AllReduce", "AllGather", "ReduceScatter", "AlltoAll",
		"Ring", "NeighborExchange", "Broadcast", "Send", NULL};
	static const char *const reductions[] = {"sum", "mean", "max", "min", "prod", NULL};
	bool of_result = ap_jv_get(obj, "result") != NULL;
	int64_t i = ex_read_int(r, obj, of_result ? "result" : "operand");
	struct ap_comm c = {.phase = (enum ap_phase)ex_read_word(r, obj, "phase", phases),
		.kind = (enum ap_coll)ex_read_word(r, obj, "kind", kinds),
		.reduce = (enum ap_reduction)ex_read_word(r, obj, "reduce", reductions),
		.bytes = ex_read_int(r, obj, "bytes"), .operand = of_result ? -1 : (int)i,
		.result = of_result ? (int)i : -1};

	if (c.kind == AP_COLL_RING || c.kind == AP_COLL_ALLTOALL)
		c.dim = (uint8_t)ex_read_int(r, obj, "dim");
	if (c.kind == AP_COLL_ALLTOALL)
		c.concat = (uint8_t)ex_read_int(r, obj, "concat_dim");
	c.each = read_flag(r, obj, "each_micro_batch");
	c.part = read_flag(r, obj, "part");
	if (c.kind == AP_COLL_SEND)
		read_pair(r, obj, n, p, &c);
	else
		ex_read_group(r, obj, first_rank(n, p), ex_devices(p, n->stage), &c.axes);
	if (i < 0 || i >= (of_result ? n->bound.nout : n->bound.nin))
		ex_read_fault(r, "a collective of no tensor");
	else if (strcmp(ex_read_str(r, obj, "tensor"),
			 g->tensor[of_result ? n->out[i] : n->in[i]].name) != 0)
		ex_read_fault(r, "a collective of another tensor than it names");
	return c;
}

/* Elements that parts get of their neighbours, as the definition of the windows has them. */
static void check_sizes(struct ex_reader *r, const struct ap_jv *obj, const char *key,
	const struct ex_slide *s, int64_t parts)
{
	int64_t size[EX_MAX_DEV];
	int n = ex_read_ints(r, ex_read(r, obj, key, AP_JARRAY), size, EX_MAX_DEV);

	if (!r->why && n != parts)
		ex_read_fault(r, "\"%s\" is of %d parts, not %" PRId64, key, n, parts);
	for (int64_t part = 0; part < parts && !r->why; part++) {
		int64_t want[2];

		ex_halo(s, parts, part, &want[0], &want[1]);
		if (size[part] != want[strcmp(key, "before") != 0])
			ex_read_fault(r, "part %" PRId64 " of \"%s\" is %" PRId64, part, key, size[part]);
	}
}

static void check_halo(struct ex_reader *r, const struct ap_jv *obj, const struct ap_comm *c,
	const struct ex_oper *o)
{
	struct ex_value in[EX_MAX_IN] = {0}, out[EX_MAX_OUT] = {0};
	const struct ex_job j = {.type = o->type, .attrs = o->attrs, .nin = o->nin, .nout = o->nout,
		.in = in, .out = out};
	int64_t dim = ex_read_int(r, obj, "dim");
	struct ex_slide s;
	int at;

	for (int i = 0; i < o->nin; i++)
		in[i].box = ex_box_whole(&o->in_shape[i]);
	for (int i = 0; i < o->nout; i++)
		out[i].box = ex_box_whole(&o->out_shape[i]);
	for (int k = 0; k < AP_MAX_WINDOW && !r->why; k++)
		if (ex_slide_of(&j, k, &s, &at) && at == dim) {
			check_sizes(r, obj, "before", &s, ap_axes_size(&c->axes));
			check_sizes(r, obj, "after", &s, ap_axes_size(&c->axes));
			return;
		}
	ex_read_fault(r, "no windows slide over dimension %" PRId64, dim);
}

static void read_comms(struct ex_reader *r, const struct ap_jv *obj, const struct ap_graph *g,
	const struct ap_node *n, const struct ex_program *p, struct ex_oper *o)
{
	const struct ap_jv *list = ex_read(r, obj, "communications", AP_JARRAY), *v = ex_first(list);
	struct ap_comm *c = AP_NEW_N(r->ctx->arena, struct ap_comm, list ? ap_jv_count(list) : 0);
	bool *narrow = AP_NEW_N(r->ctx->arena, bool, list ? ap_jv_count(list) : 0);

	o->comm = c;
	o->narrow = narrow;
	for (o->ncomm = 0; v && !r->why; v = ap_jv_next(v)) {
		c[o->ncomm] = read_comm(r, v, g, n, p);
		narrow[o->ncomm] = ap_jv_get(v, "sent_as") != NULL;
		if (!r->why && c[o->ncomm].kind == AP_COLL_NEIGHBOREXCHANGE)
			check_halo(r, v, &c[o->ncomm], o);
		o->ncomm++;
	}
}

static void read_operator(struct ex_reader *r, const struct ap_jv *obj, struct ex_program *p, ap_id i)
{
	const struct ap_graph *g = p->graph;
	const struct ap_node *n = &g->node[i];
	struct ex_oper *o = &p->oper[i];
	struct ex_matrix m;

	r->about = n->name;
	if (strcmp(ex_read_str(r, obj, "name"), n->name) != 0 ||
		strcmp(ex_read_str(r, obj, "type"), n->type) != 0)
		ex_read_fault(r, "another operator is in its place");
	read_names(r, obj, "inputs", g, n->in, o->nin);
	read_names(r, obj, "outputs", g, n->out, o->nout);
	ex_read_matrix(r, obj, ex_devices(p, n->stage), &m);
	if (r->why)
		return;
	o->in = read_layouts(r, obj, true, &m, o->in_shape, o->nin);
	o->out = read_layouts(r, obj, false, &m, o->out_shape, o->nout);
	read_strategies(r, obj, n, o, &p->step, ex_devices(p, n->stage));
	read_comms(r, obj, g, n, p, o);
	o->in_8_bits = ap_jv_get(obj, "in_8_bits") != NULL;
}

static struct ap_reshard_step read_step(struct ex_reader *r, const struct ap_jv *obj, int bytes)
{
	static const char *const kinds[] = {"Slice", "AllGather", "AlltoAll", "ReduceScatter", "AllReduce", NULL};
	struct ap_reshard_step s = {.move = (enum ap_move)ex_read_word(r, obj, "kind", kinds),
		.dim = (uint8_t)ex_read_int(r, obj, "dim"),
		.outer = (int32_t)ex_read_int(r, obj, "outer"),
		.axis = ex_read_axis(r, ex_read(r, obj, "axis", AP_JARRAY)),
		.before = ex_read_int(r, obj, "bytes_before") / bytes,
		.after = ex_read_int(r, obj, "bytes_after") / bytes};

	s.inner_outer = s.inner_parts = 1;
	if (ap_jv_get(obj, "inner_parts")) {
		s.inner = (uint8_t)ex_read_int(r, obj, "inner_dim");
		s.inner_outer = (int32_t)ex_read_int(r, obj, "inner_outer");
		s.inner_parts = (int32_t)ex_read_int(r, obj, "inner_parts");
	}
	if (s.move == AP_MOVE_ALLTOALL) {
		s.concat = (uint8_t)ex_read_int(r, obj, "concat_dim");
		s.concat_outer = (int32_t)ex_read_int(r, obj, "concat_outer");
		s.concat_inner_outer = 1;
		if (s.inner_parts > 1) {
			s.concat_inner = (uint8_t)ex_read_int(r, obj, "concat_inner_dim");
			s.concat_inner_outer = (int32_t)ex_read_int(r, obj, "concat_inner_outer");
		}
	}
	return s;
}

static const struct ap_reshard_step *read_steps(struct ex_reader *r, const struct ap_jv *obj,
	const char *key, int bytes, int *n)
{
	const struct ap_jv *list = ex_read(r, obj, key, AP_JARRAY), *v = ex_first(list);
	struct ap_reshard_step *s;

	*n = 0;
	if (!list || ap_jv_count(list) > AP_RESHARD_MAX) {
		ex_read_fault(r, "too many steps");
		return NULL;
	}
	s = AP_NEW_N(r->ctx->arena, struct ap_reshard_step, ap_jv_count(list));
	for (; v && !r->why; v = ap_jv_next(v))
		s[(*n)++] = read_step(r, v, bytes);
	return s;
}

static ap_id node_of(struct ex_reader *r, const struct ap_graph *g, const char *name)
{
	for (ap_id i = 0; i < g->nnode; i++)
		if (strcmp(g->node[i].name, name) == 0)
			return i;
	ex_read_fault(r, "no operator \"%s\"", name);
	return 0;
}

static const struct ap_piece *read_pieces(struct ex_reader *r, const struct ap_jv *obj, const char *key,
	int64_t from, int64_t to, int rank, uint32_t *n)
{
	const struct ap_jv *list = ex_read(r, obj, key, AP_JARRAY);
	struct ap_piece *piece = AP_NEW_N(r->ctx->arena, struct ap_piece, list ? ap_jv_count(list) : 0);

	*n = 0;
	for (const struct ap_jv *v = ex_first(list); v && !r->why; v = ap_jv_next(v)) {
		struct ap_piece *x = &piece[(*n)++];

		x->from = ex_read_int(r, v, "from_rank") - from;
		x->to = ex_read_int(r, v, "to_rank") - to;
		if (ex_read_ints(r, ex_read(r, v, "start", AP_JARRAY), x->start, AP_MAX_RANK) != rank ||
			ex_read_ints(r, ex_read(r, v, "size", AP_JARRAY), x->extent, AP_MAX_RANK) != rank)
			ex_read_fault(r, "a piece of another rank");
	}
	return piece;
}

static void read_all_pieces(struct ex_reader *r, const struct ap_jv *obj, const struct ex_program *p,
	const struct ap_node *n, struct ex_program_move *m)
{
	int64_t from = ex_first_rank(p, n->peer), to = ex_first_rank(p, n->stage);

	if (ex_read_int(r, obj, "from_stage") != n->peer || ex_read_int(r, obj, "to_stage") != n->stage)
		ex_read_fault(r, "it is sent between other stages");
	m->sent = true;
	m->piece = read_pieces(r, obj, "sends", from, to, m->a.rank, &m->npiece);
	if (ap_jv_get(obj, "back_sends"))
		m->back_piece = read_pieces(r, obj, "back_sends", to, from, m->a.rank, &m->nback_piece);
}

static struct ex_program_move read_move(struct ex_reader *r, const struct ap_jv *obj,
	const struct ex_program *p)
{
	const struct ap_graph *g = p->graph;
	struct ex_program_move m = {.node = node_of(r, g, ex_read_str(r, obj, "to"))};
	int64_t operand = ex_read_int(r, obj, "operand");
	const struct ap_node *n = &g->node[m.node];
	const struct ap_jv *from = ap_jv_get(obj, "from");
	const struct ap_tensor *t;

	if (operand < 0 || operand >= n->bound.nin) {
		ex_read_fault(r, "to no operand of %s", n->name);
		return m;
	}
	m.operand = (uint32_t)operand;
	t = &g->tensor[n->in[operand]];
	if (strcmp(ex_read_str(r, obj, "tensor"), t->name) != 0 || !from ||
		(ap_jv_type(from) == AP_JNULL) != (t->kind == AP_TENSOR_INPUT) ||
		(ap_jv_type(from) == AP_JSTRING &&
			strcmp(ap_jv_str(from), g->node[t->producer].name) != 0))
		ex_read_fault(r, "to %s: it is of another tensor", n->name);
	ex_read_layout(r, ex_read(r, obj, "from_layout", AP_JARRAY), t->shape.rank, &m.a);
	ex_read_layout(r, ex_read(r, obj, "to_layout", AP_JARRAY), t->shape.rank, &m.b);
	m.element_bytes = ap_dtype_bytes(ap_jv_get(obj, "sent_as")
		? ap_dtype_find(ex_read_str(r, obj, "sent_as")) : t->shape.dtype);
	m.step = read_steps(r, obj, "steps", m.element_bytes, &m.nstep);
	if (ap_jv_get(obj, "back_steps"))
		m.back = read_steps(r, obj, "back_steps", ap_dtype_bytes(t->shape.dtype), &m.nback);
	if (ap_jv_get(obj, "from_stage"))
		read_all_pieces(r, obj, p, n, &m);
	m.shares = ap_jv_get(obj, "shares") ? (uint32_t)ex_read_int(r, obj, "shares") : AP_NONE;
	m.bytes = ex_read_int(r, obj, "bytes");
	return m;
}

static struct ap_axes group_or_none(struct ex_reader *r, const struct ap_jv *obj, const char *key,
	int64_t first, int64_t ndev)
{
	const struct ap_jv *group = ap_jv_get(obj, key);
	struct ap_axes axes = {0};

	if (!group)
		ex_read_fault(r, "no \"%s\"", key);
	else if (ap_jv_type(group) != AP_JNULL)
		ex_read_group(r, group, first, ndev, &axes);
	return axes;
}

/* The collectives of a use, which the entries from *v on must name in their order; the ranks of all. */
static struct ap_axes check_use(struct ex_reader *r, const struct ex_program *p, const struct ap_use *use,
	int64_t first, const struct ap_jv **v)
{
	const struct ex_oper *o = &p->oper[use->node];
	struct ap_axes all = {0}, axes;

	for (uint32_t i = 0; i < o->ncomm && !r->why; i++) {
		const struct ap_comm *c = &o->comm[i];

		if (c->phase != AP_PHASE_GRADIENT || c->operand != (int)use->operand)
			continue;
		if (!*v) {
			ex_read_fault(r, "gradient_groups has too few entries");
			break;
		}
		ex_read_group(r, *v, first, ex_devices(p, p->graph->node[use->node].stage), &axes);
		if (!ap_axes_equal(&axes, &c->axes) || ex_read_int(r, *v, "operand") != c->operand ||
			strcmp(ex_read_str(r, *v, "kind"), ap_coll_name(c->kind)) != 0 ||
			strcmp(ex_read_str(r, *v, "operator"), p->graph->node[use->node].name) != 0)
			ex_read_fault(r, "gradient_groups has another collective");
		for (int k = 0; k < c->axes.n; k++)
			ap_axes_add(&all, c->axes.axis[k]);
		*v = ap_jv_next(*v);
	}
	return all;
}

/* All groups of a gradient; gradient_group is that of the first use that has any. Returns the owner's. */
static struct ap_axes check_gradient(struct ex_reader *r, const struct ex_program *p,
	const struct ap_tensor *t, const struct ap_jv *obj, int64_t first)
{
	const struct ap_jv *list = ex_read(r, obj, "gradient_groups", AP_JARRAY), *v = ex_first(list);
	struct ap_axes said = group_or_none(r, obj, "gradient_group", first,
		ex_devices(p, p->graph->node[t->owner.node].stage)), owner, any;

	owner = any = check_use(r, p, &t->owner, first, &v);
	for (uint32_t u = 0; u < t->nuse && !r->why; u++)
		if (t->use[u].node != t->owner.node || t->use[u].operand != t->owner.operand) {
			struct ap_axes own = check_use(r, p, &t->use[u], first, &v);

			any = any.n ? any : own;
		}
	if (v)
		ex_read_fault(r, "gradient_groups has too many entries");
	if (!ap_axes_equal(&any, &said))
		ex_read_fault(r, "gradient_group is not that of its collectives");
	return owner;
}

static void read_sums(struct ex_reader *r, const struct ex_program *p, const struct ap_tensor *t,
	const struct ap_jv *obj, struct ex_program_param *out)
{
	const struct ap_jv *list = ap_jv_get(obj, "gradient_sums"), *v = list ? ex_first(list) : NULL;
	struct ap_use *sum = AP_NEW_N(r->ctx->arena, struct ap_use, t->nuse);

	for (uint32_t u = 0; v && u < t->nuse && !r->why; u++) {
		if (strcmp(ex_read_str(r, v, "operator"), p->graph->node[t->use[u].node].name) != 0 ||
			ex_read_int(r, v, "operand") != t->use[u].operand)
			continue;
		sum[out->nsum++] = t->use[u];
		v = ap_jv_next(v);
	}
	if (v)
		ex_read_fault(r, "gradient_sums has what is no use, or twice");
	out->sum = sum;
}

static void read_param(struct ex_reader *r, const struct ap_jv *obj, const struct ex_program *p,
	struct ex_program_param *out)
{
	const struct ap_tensor *t = &p->graph->tensor[out->tensor];
	int64_t shape[AP_MAX_RANK], first = first_rank(&p->graph->node[t->owner.node], p);
	int64_t ndev = ex_devices(p, p->graph->node[t->owner.node].stage);
	struct ap_axes dealt;
	struct ex_matrix m;

	r->about = t->name;
	if (strcmp(ex_read_str(r, obj, "name"), t->name) != 0 ||
		strcmp(ex_read_str(r, obj, "dtype"), ap_dtype_name(t->shape.dtype)) != 0)
		ex_read_fault(r, "another parameter is in its place");
	ex_read_matrix(r, obj, ndev, &m);
	ex_read_map(r, ex_read(r, obj, "tensor_map", AP_JARRAY), &m, t->shape.rank, &out->layout);
	ex_read_slice(r, ex_read(r, obj, "slice_shape", AP_JARRAY), &t->shape, &out->layout);
	if (ex_read_ints(r, ex_read(r, obj, "tensor_shape", AP_JARRAY), shape, AP_MAX_RANK) !=
			t->shape.rank || memcmp(shape, t->shape.dim, t->shape.rank * sizeof *shape) != 0)
		ex_read_fault(r, "tensor_shape");
	if (r->why)
		return;
	if (!ex_shard_of(&t->shape, &out->layout, ndev,
		    ex_read_int(r, obj, "opt_weight_shard_step"),
		    ex_read_int(r, obj, "opt_weight_shard_size"),
		    ap_jv_get(obj, "optimizer_part") ? ex_read_int(r, obj, "optimizer_part") : 0, &out->shard))
		ex_read_fault(r, "opt_weight_shard_step and _size mean no shard");
	if (ex_read_int(r, obj, "optimizer_shards") != out->shard.shards)
		ex_read_fault(r, "optimizer_shards");
	dealt = group_or_none(r, obj, "optimizer_group", first, ndev);
	if (!ap_axes_equal(&dealt, &out->shard.group))
		ex_read_fault(r, "optimizer_group");
	out->gradient = check_gradient(r, p, t, obj, first);
	read_sums(r, p, t, obj, out);
}

static void read_params(struct ex_reader *r, const struct ap_jv *root, struct ex_program *p)
{
	const struct ap_graph *g = p->graph;
	const struct ap_jv *list = ex_read(r, root, "parameters", AP_JARRAY), *v = ex_first(list);

	p->param = AP_NEW_N(r->ctx->arena, struct ex_program_param, g->ntensor);
	for (ap_id t = 0; t < g->ntensor; t++)
		if (g->tensor[t].kind == AP_TENSOR_PARAM && g->tensor[t].nuse > 0)
			p->param[p->nparam++].tensor = t;
	ex_read_count(r, list, p->nparam);
	for (uint32_t i = 0; v && !r->why; v = ap_jv_next(v), i++)
		read_param(r, v, p, &p->param[i]);
}

static void read_moves(struct ex_reader *r, const struct ap_jv *root, struct ex_program *p)
{
	const struct ap_jv *list = ex_read(r, root, "redistributions", AP_JARRAY), *v = ex_first(list);

	r->about = "redistributions";
	p->move = AP_NEW_N(r->ctx->arena, struct ex_program_move, list ? ap_jv_count(list) : 0);
	for (; v && !r->why; v = ap_jv_next(v)) {
		struct ex_program_move m = read_move(r, v, p);

		if (!r->why && ex_program_move_to(p, m.node, m.operand))
			ex_read_fault(r, "two of one operand");
		p->move[p->nmove++] = m;
	}
}

/* Those of the graph's stages; returns the most. */
static int64_t read_devices(struct ex_reader *r, const struct ap_jv *pipe, const struct ap_graph *g)
{
	int64_t of[EX_MAX_DEV], most = 0;
	int n = ex_read_ints(r, ex_read(r, pipe, "stage_devices", AP_JARRAY), of, EX_MAX_DEV);

	for (int s = 0; s < n; s++) {
		if (of[s] != g->devices[s].n)
			ex_read_fault(r, "stage %d has other devices", s);
		most = of[s] > most ? of[s] : most;
	}
	return most;
}

const char *ex_program_of_file(struct ap_ctx *ctx, const char *text, size_t len,
	const struct ap_graph *g, const struct ap_step *step, struct ex_program *out)
{
	const struct ap_jv *root, *list, *v, *pipe;
	struct ap_saved saved;
	struct ex_reader r;
	int64_t ndev;

	if (!ex_read_open(&r, ctx, text, len))
		return r.why;
	root = ap_json_root(r.doc);
	pipe = ap_jv_get(root, "pipeline");
	ndev = ex_read_int(&r, ex_read(&r, root, "machine", AP_JOBJECT), "devices");
	if (pipe && ap_jv_type(pipe) == AP_JOBJECT && !g->devices)
		ndev = ex_read_int(&r, pipe, "devices_per_stage");
	if (g->devices)
		ndev = read_devices(&r, pipe, g);
	if (ap_saved_of_plan(ctx, r.doc, &saved) != AP_OK || saved.nop != g->nnode)
		ex_read_fault(&r, "ap_saved_of_plan() does not accept it");
	if (ndev < 1 || ndev > EX_MAX_DEV)
		ex_read_fault(&r, "%" PRId64 " devices", ndev);
	if (r.why)
		return r.why;
	ex_program_begin(ctx, g, step, ndev, out);
	list = ex_read(&r, root, "operators", AP_JARRAY);
	ex_read_count(&r, list, g->nnode);
	v = ex_first(list);
	for (ap_id i = 0; v && !r.why; v = ap_jv_next(v), i++)
		read_operator(&r, v, out, i);
	read_moves(&r, root, out);
	read_params(&r, root, out);
	return r.why;
}
