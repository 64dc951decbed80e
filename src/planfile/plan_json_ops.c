/* SPDX-License-Identifier: Apache-2.0 */
/* Plan JSON: operators with their collectives, and redistributions. */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "plan/terms.h"
#include "planfile/plan_json.h"
#include "shard/space.h"

#define MOST_RANKS 1024 /* of a group that are listed: with all, a plan could have gigabytes of them */

static void write_ints(struct ap_jw *w, const int32_t *v, size_t n)
{
	ap_jw_arr_flat(w);
	for (size_t i = 0; i < n; i++)
		ap_jw_int(w, v[i]);
	ap_jw_end(w);
}

void ap_plan_write_kint32s(struct ap_jw *w, const char *key, const int32_t *v, size_t n)
{
	ap_jw_key(w, key);
	write_ints(w, v, n);
}

/* Member i, in ascending order, of the group of a stage's first rank, counted from there: strides
 * descend, so this is i written in the axes' sizes. */
static int64_t member(const struct ap_axes *axes, int64_t i)
{
	int64_t rank = 0;

	for (int a = axes->n; a-- > 0;) {
		rank += i % axes->axis[a].size * axes->axis[a].stride;
		i /= axes->axis[a].size;
	}
	return rank;
}

static void write_axis(struct ap_jw *w, const struct ap_axis *axis)
{
	ap_jw_arr_flat(w);
	ap_jw_int(w, axis->stride);
	ap_jw_int(w, axis->size);
	ap_jw_end(w);
}

static struct ap_plan_text text_of_ranks(struct ap_plan_writer *pw, int32_t stage,
	const struct ap_axes *axes)
{
	int64_t n = ap_axes_size(axes), first = pw->p->stage[stage].first_rank;
	struct ap_str text;
	struct ap_jw w;

	ap_str_init(&text, pw->arena);
	ap_jw_str_init(&w, &text, pw->w.indent);
	ap_jw_arr_flat(&w);
	for (int64_t i = 0; i < n; i++)
		ap_jw_int(&w, first + member(axes, i));
	ap_jw_end(&w);
	return (struct ap_plan_text){text.s, text.len};
}

static void write_axes(struct ap_jw *w, const struct ap_axes *axes)
{
	ap_jw_key(w, "axes");
	ap_jw_arr_flat(w);
	for (int i = 0; i < axes->n; i++)
		write_axis(w, &axes->axis[i]);
	ap_jw_end(w);
}

void ap_plan_write_group(struct ap_plan_writer *pw, int32_t stage, const struct ap_axes *axes)
{
	struct {
		int32_t stage;
		struct ap_axis axis[AP_MAX_AXES];
	} key;
	size_t bytes = (size_t)axes->n * sizeof *axes->axis;
	bool fresh;
	ap_id id;

	write_axes(&pw->w, axes);
	if (ap_axes_size(axes) > MOST_RANKS)
		return;
	key.stage = stage;
	memcpy(key.axis, axes->axis, bytes);
	id = ap_map_put(pw->group_ids, &key, sizeof key.stage + bytes, &fresh);
	if (fresh)
		AP_PUSH(pw->arena, pw->groups, text_of_ranks(pw, stage, axes));
	ap_jw_key(&pw->w, "ranks");
	ap_jw_raw(&pw->w, pw->groups.v[id].s);
}

/* Every rank of one stage and its counterpart in the other are such a pair. */
static void write_pair(struct ap_plan_writer *pw, const struct ap_comm *c)
{
	const struct ap_plan_stage *stage = pw->p->stage;
	int32_t low = c->from_stage < c->to_stage ? c->from_stage : c->to_stage;
	int32_t high = c->from_stage < c->to_stage ? c->to_stage : c->from_stage;
	int64_t distance = stage[high].first_rank - stage[low].first_rank;
	struct ap_axes pair = {0};

	ap_jw_kint(&pw->w, "from_stage", c->from_stage);
	ap_jw_kint(&pw->w, "to_stage", c->to_stage);
	if (distance)
		ap_axes_add(&pair, (struct ap_axis){(int32_t)distance, 2});
	ap_plan_write_group(pw, low, &pair);
}

static void write_names(struct ap_plan_writer *pw, const char *key, const ap_id *tensor, uint16_t n)
{
	ap_jw_key(&pw->w, key);
	ap_jw_arr_flat(&pw->w);
	for (int i = 0; i < n; i++)
		ap_jw_str(&pw->w, pw->p->graph->tensor[tensor[i]].name);
	ap_jw_end(&pw->w);
}

void ap_plan_write_strategy(struct ap_plan_writer *pw, const char *key,
	const struct ap_placement *place)
{
	uint32_t cap = place->bound->nin + (uint32_t)strlen(place->bound->row->strategy);
	struct ap_mark mark = ap_arena_mark(pw->scratch);
	uint8_t *rank = AP_NEW_N(pw->scratch, uint8_t, cap);
	int32_t(*cut)[AP_MAX_RANK] = ap_arena_alloc(pw->scratch, cap, sizeof *cut);
	uint32_t n = ap_space_to_strategy(place, rank, cut, cap);

	ap_jw_key(&pw->w, key);
	ap_jw_arr_flat(&pw->w);
	for (uint32_t i = 0; i < n; i++)
		write_ints(&pw->w, cut[i], rank[i]);
	ap_jw_end(&pw->w);
	ap_arena_release(pw->scratch, mark);
}

static void write_out_strategy(struct ap_jw *w, const struct ap_placement *place)
{
	ap_jw_key(w, "out_strategy");
	ap_jw_arr_flat(w);
	for (int i = 0; i < place->bound->nout; i++) {
		const struct ap_operand *t = &place->bound->out[i];
		int32_t cut[AP_MAX_RANK];

		ap_strategy_vector(place, t, cut);
		write_ints(w, cut, t->rank);
	}
	ap_jw_end(w);
}

/* The axes of a dimension that several factors cut, outermost first; returns their number. */
static int cut_axes(const struct ap_placement *place, const struct ap_dev_matrix *dev,
	const struct ap_operand *t, const struct ap_dim *dim, int32_t axes[AP_MAX_DIM_FACTOR])
{
	int n = 0;

	for (int i = 0; i < dim->n; i++) {
		struct ap_operand alone = {.rank = 1, .dim = {{1, {dim->factor[i]}}}};
		int32_t map[AP_MAX_RANK];

		if (ap_placement_parts(place, t, dim->factor[i]) <= 1)
			continue;
		ap_tensor_map(place, &alone, dev, map);
		axes[n++] = map[0];
	}
	return n;
}

/* A dimension that several axes cut has a list of them in its place. */
static void write_map(struct ap_jw *w, const struct ap_placement *place,
	const struct ap_dev_matrix *dev, const struct ap_operand *t)
{
	int32_t map[AP_MAX_RANK], axes[AP_MAX_DIM_FACTOR];

	ap_tensor_map(place, t, dev, map);
	ap_jw_arr_flat(w);
	for (int d = 0; d < t->rank; d++) {
		int n = cut_axes(place, dev, t, &t->dim[d], axes);

		if (n > 1)
			write_ints(w, axes, (size_t)n);
		else
			ap_jw_int(w, map[d]);
	}
	ap_jw_end(w);
}

static void write_maps(struct ap_jw *w, const char *key, const struct ap_placement *place,
	const struct ap_operand *t, uint16_t n)
{
	struct ap_dev_matrix dev;

	ap_dev_matrix_raw(place, &dev);
	ap_jw_key(w, key);
	ap_jw_arr_flat(w);
	for (int i = 0; i < n; i++)
		write_map(w, place, &dev, &t[i]);
	ap_jw_end(w);
}

static void write_slices(struct ap_plan_writer *pw, const char *key, const struct ap_layout *layout,
	const ap_id *tensor, uint16_t n)
{
	struct ap_jw *w = &pw->w;

	ap_jw_key(w, key);
	ap_jw_arr_flat(w);
	for (int i = 0; i < n; i++) {
		const struct ap_tensor *t = &pw->p->graph->tensor[tensor[i]];
		int64_t slice[AP_MAX_RANK];

		ap_plan_slice(pw->p, t, &layout[i], slice);
		ap_jw_ints(w, slice, t->shape.rank);
	}
	ap_jw_end(w);
}

static void write_factors(struct ap_jw *w, const struct ap_placement *place)
{
	ap_jw_key(w, "factors");
	ap_jw_arr(w);
	for (int i = 0; i < place->bound->nfactor; i++) {
		const struct ap_factor *f = &place->bound->factor[i];
		const char name[2] = {f->letter, '\0'};

		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "factor", name);
		ap_jw_kint(w, "size", f->size);
		ap_jw_kint(w, "parts", place->count[i]);
		ap_jw_kint(w, "stride", place->stride[i]);
		ap_jw_kbool(w, "batch", f->flags & AP_FACTOR_BATCH);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static void write_cost(struct ap_plan_writer *pw, ap_id node)
{
	const struct ap_op_cost *c = &pw->p->op[node].cost;
	struct ap_jw *w = &pw->w;

	ap_jw_key(w, "cost");
	ap_jw_obj_flat(w);
	ap_jw_knum(w, "forward_s", c->forward_s);
	ap_jw_knum(w, "backward_s", c->backward_s);
	ap_jw_knum(w, "forward_communication_s", c->forward_comm_s);
	ap_jw_knum(w, "backward_communication_s", c->backward_comm_s);
	ap_jw_knum(w, "gradient_s", c->gradient_s);
	ap_jw_knum(w, "optimizer_s", c->optimizer_s);
	ap_jw_knum(w, "input_s", c->input_s);
	ap_jw_end(w);
	ap_jw_key(w, "memory");
	ap_jw_obj_flat(w);
	ap_jw_kint(w, "weights_bytes", c->weight_bytes);
	ap_jw_kint(w, "gradients_bytes", c->gradient_bytes);
	ap_jw_kint(w, "optimizer_bytes", c->optimizer_bytes);
	ap_jw_kint(w, "activations_bytes", ap_plan_activation_bytes(pw->p, node));
	ap_jw_kint(w, "gathered_bytes", c->gathered_bytes);
	ap_jw_kint(w, "recompute_bytes", c->recompute_bytes);
	ap_jw_kint(w, "temporary_bytes", c->temporary_bytes);
	ap_jw_end(w);
}

/* The window whose parts lie on the ranks of an exchange: one factor, one axis. */
static const struct ap_window *window_on(const struct ap_placement *place, const struct ap_axes *axes)
{
	const struct ap_bound *b = place->bound;

	for (int i = 0; i < b->nwindow; i++) {
		struct ap_axes own;

		if (b->window[i].factor == AP_NO_FACTOR)
			continue;
		ap_placement_axes(place, 1u << b->window[i].factor, false, &own);
		if (own.n > 0 && ap_axes_equal(&own, axes))
			return &b->window[i];
	}
	return NULL;
}

static void write_halo(struct ap_jw *w, const char *key, const struct ap_window *window, int64_t parts,
	bool before)
{
	ap_jw_key(w, key);
	ap_jw_arr_flat(w);
	for (int64_t part = 0; part < parts; part++) {
		struct ap_halo h = ap_window_halo(window, parts, part);

		ap_jw_int(w, before ? h.before : h.after);
	}
	ap_jw_end(w);
}

static void write_exchange(struct ap_jw *w, const struct ap_placement *place, const struct ap_axes *axes)
{
	const struct ap_window *window = window_on(place, axes);

	assert(window);
	ap_jw_kint(w, "dim", window->dim);
	write_halo(w, "before", window, ap_axes_size(axes), true);
	write_halo(w, "after", window, ap_axes_size(axes), false);
}

static void write_comm(struct ap_plan_writer *pw, ap_id node, const struct ap_plan_comm *c)
{
	static const char *const reductions[] = {
		[AP_REDUCE_SUM] = "sum",
		[AP_REDUCE_MEAN] = "mean",
		[AP_REDUCE_MAX] = "max",
		[AP_REDUCE_MIN] = "min",
		[AP_REDUCE_PROD] = "prod",
	};
	const struct ap_graph *g = pw->p->graph;
	bool result = c->comm.result >= 0;
	struct ap_jw *w = &pw->w;

	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "phase", ap_phase_name(c->comm.phase));
	ap_jw_kstr(w, "kind", ap_coll_name(c->comm.kind));
	ap_jw_kstr(w, "reduce", reductions[c->comm.reduce]);
	ap_jw_kint(w, result ? "result" : "operand", result ? c->comm.result : c->comm.operand);
	ap_jw_kstr(w, "tensor", g->tensor[ap_plan_comm_tensor(g, node, &c->comm)].name);
	ap_jw_kint(w, "bytes", c->comm.bytes);
	if (c->comm.kind == AP_COLL_NEIGHBOREXCHANGE)
		write_exchange(w, &pw->p->op[node].place, &c->comm.axes);
	if (c->comm.part)
		ap_jw_kbool(w, "part", true);
	if (c->comm.each)
		ap_jw_kbool(w, "each_micro_batch", true);
	if (c->comm.kind == AP_COLL_SEND)
		write_pair(pw, &c->comm);
	else
		ap_plan_write_group(pw, ap_plan_op_stage(pw->p, node), &c->comm.axes);
	ap_jw_kstr(w, "algorithm", c->algorithm ? c->algorithm : "");
	ap_jw_knum(w, "time_s", c->time_s);
	ap_jw_end(w);
}

static void write_comms(struct ap_plan_writer *pw, ap_id node, const struct ap_plan_op *op)
{
	ap_jw_key(&pw->w, "communications");
	ap_jw_arr(&pw->w);
	for (uint32_t i = 0; i < op->ncomm; i++)
		write_comm(pw, node, &op->comm[i]);
	ap_jw_end(&pw->w);
}

static void write_cuts(struct ap_plan_writer *pw, const struct ap_placement *place)
{
	const struct ap_bound *b = place->bound;
	struct ap_dev_matrix dev;

	ap_plan_write_strategy(pw, "in_strategy", place);
	write_out_strategy(&pw->w, place);
	ap_dev_matrix_raw(place, &dev);
	ap_plan_write_kint32s(&pw->w, "dev_matrix", dev.axis, (size_t)dev.n);
	write_maps(&pw->w, "in_tensor_map", place, b->in, b->nin);
	write_maps(&pw->w, "out_tensor_map", place, b->out, b->nout);
	ap_jw_kint(&pw->w, "repeated", place->repeat);
	write_factors(&pw->w, place);
}

static void write_alike(struct ap_plan_writer *pw, ap_id i)
{
	const struct ap_node *n = &pw->p->graph->node[i];
	const struct ap_plan_op *op = &pw->p->op[i];

	ap_jw_kbool(&pw->w, "in_checkpoint", op->in_checkpoint);
	ap_jw_kbool(&pw->w, "given", op->fixed);
	write_cuts(pw, &op->place);
	ap_jw_kbool(&pw->w, "recompute", pw->p->task[i].recomputed);
	write_slices(pw, "in_slice", op->in, n->in, n->bound.nin);
	write_slices(pw, "out_slice", op->out, n->out, n->bound.nout);
	write_cost(pw, i);
}

static struct ap_plan_text text_of_alike(struct ap_plan_writer *pw, ap_id i)
{
	struct ap_plan_writer fork = {.p = pw->p, .scratch = pw->scratch};
	struct ap_str text;

	ap_str_init(&text, pw->arena);
	ap_jw_fork(&fork.w, &pw->w, &text);
	write_alike(&fork, i);
	ap_jw_fork_end(&fork.w);
	return (struct ap_plan_text){text.s, text.len};
}

/* Operators of one class with one cut share their layouts, and are told in the same words. */
static void write_once(struct ap_plan_writer *pw, ap_id i)
{
	const struct ap_node *n = &pw->p->graph->node[i];
	const struct ap_plan_op *op = &pw->p->op[i];
	struct {
		const struct ap_layout *in;
		int64_t activation_bytes; /* of all that is in flight in its segment */
		bool in_checkpoint, fixed, recompute;
		char letter[AP_MAX_FACTOR];
	} key;
	bool fresh;
	ap_id id;

	memset(&key, 0, sizeof key);
	key.in = op->in;
	key.activation_bytes = ap_plan_activation_bytes(pw->p, i);
	key.in_checkpoint = op->in_checkpoint;
	key.fixed = op->fixed;
	key.recompute = pw->p->task[i].recomputed;
	for (int f = 0; f < AP_MAX_FACTOR && f < n->bound.nfactor; f++)
		key.letter[f] = n->bound.factor[f].letter;
	id = ap_map_put(pw->cut_ids, &key, sizeof key, &fresh);
	if (fresh)
		AP_PUSH(pw->arena, pw->cuts, text_of_alike(pw, i));
	ap_jw_join(&pw->w, pw->cuts.v[id].s, pw->cuts.v[id].len);
}

/* Of the whole results: what a plan has to be held against when its graph has changed. */
static void write_results(struct ap_plan_writer *pw, const struct ap_node *n)
{
	const struct ap_tensor *tensor = pw->p->graph->tensor;
	struct ap_jw *w = &pw->w;

	ap_jw_key(w, "out_shape");
	ap_jw_arr_flat(w);
	for (int i = 0; i < n->bound.nout; i++)
		ap_jw_ints(w, tensor[n->out[i]].shape.dim, tensor[n->out[i]].shape.rank);
	ap_jw_end(w);
	ap_jw_key(w, "out_dtype");
	ap_jw_arr_flat(w);
	for (int i = 0; i < n->bound.nout; i++)
		ap_jw_str(w, ap_dtype_name(tensor[n->out[i]].shape.dtype));
	ap_jw_end(w);
}

static void write_operator(struct ap_plan_writer *pw, ap_id i)
{
	const struct ap_node *n = &pw->p->graph->node[i];
	const struct ap_plan_op *op = &pw->p->op[i];
	struct ap_jw *w = &pw->w;

	ap_jw_obj(w);
	ap_jw_kstr(w, "name", n->name);
	ap_jw_kstr(w, "type", n->type);
	ap_jw_kstr(w, "cell", n->cell);
	ap_jw_kint(w, "stage", ap_plan_op_stage(pw->p, i));
	ap_jw_kint(w, "segment", ap_plan_op_segment(pw->p, i));
	if (n->once)
		ap_jw_kbool(w, "once", true);
	write_names(pw, "inputs", n->in, n->bound.nin);
	write_names(pw, "outputs", n->out, n->bound.nout);
	write_results(pw, n);
	write_once(pw, i);
	write_comms(pw, i, op);
	ap_jw_end(w);
}

void ap_plan_write_operators(struct ap_plan_writer *pw)
{
	ap_jw_key(&pw->w, "operators");
	ap_jw_arr(&pw->w);
	for (ap_id i = 0; i < pw->p->graph->nnode; i++)
		write_operator(pw, i);
	ap_jw_end(&pw->w);
}

/* [parts, stride] per dimension: rank r holds part r / stride % parts. */
static void write_layout(struct ap_jw *w, const char *key, const struct ap_layout *l)
{
	ap_jw_key(w, key);
	ap_jw_arr_flat(w);
	for (int d = 0; d < l->rank; d++) {
		ap_jw_arr_flat(w);
		ap_jw_int(w, l->dim[d].cut);
		ap_jw_int(w, l->dim[d].stride);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

/* A step sees a dimension of the slice as (outer, parts, inner): see shard/reshard.h. */
static void write_step(struct ap_jw *w, const struct ap_reshard_step *s, int bytes)
{
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "kind", ap_move_name(s->move));
	ap_jw_kint(w, "dim", s->dim);
	ap_jw_kint(w, "outer", s->outer);
	if (s->move == AP_MOVE_ALLTOALL) {
		ap_jw_kint(w, "concat_dim", s->concat);
		ap_jw_kint(w, "concat_outer", s->concat_outer);
	}
	ap_jw_key(w, "axis");
	write_axis(w, &s->axis);
	ap_jw_kint(w, "bytes_before", s->before * bytes);
	ap_jw_kint(w, "bytes_after", s->after * bytes);
	ap_jw_end(w);
}

static void write_steps(struct ap_jw *w, const char *key, const struct ap_reshard_step *step, int n,
	int bytes)
{
	ap_jw_key(w, key);
	ap_jw_arr(w);
	for (int i = 0; i < n; i++)
		write_step(w, &step[i], bytes);
	ap_jw_end(w);
}

static void write_move(struct ap_plan_writer *pw, const struct ap_plan_move *m)
{
	const struct ap_graph *g = pw->p->graph;
	const struct ap_tensor *t = &g->tensor[m->tensor];
	struct ap_jw *w = &pw->w;

	ap_jw_obj(w);
	ap_jw_key(w, "from"); /* null: a graph input */
	if (m->from == AP_NONE)
		ap_jw_null(w);
	else
		ap_jw_str(w, g->node[m->from].name);
	ap_jw_kstr(w, "to", g->node[m->to].name);
	ap_jw_kint(w, "operand", m->operand);
	ap_jw_kstr(w, "tensor", t->name);
	write_layout(w, "from_layout", &m->a);
	write_layout(w, "to_layout", &m->b);
	write_steps(w, "steps", m->step, m->nstep, ap_dtype_bytes(t->shape.dtype));
	if (m->nback > 0)
		write_steps(w, "back_steps", m->back, m->nback, ap_dtype_bytes(t->shape.dtype));
	ap_jw_kint(w, "bytes", m->cost.bytes);
	ap_jw_kint(w, "kept_bytes", ap_plan_move_kept_bytes(pw->p, m));
	ap_jw_knum(w, "forward_s", m->cost.forward_s);
	ap_jw_knum(w, "backward_s", m->cost.backward_s);
	ap_jw_knum(w, "time_s", ap_plan_move_time_s(m));
	ap_jw_end(w);
}

void ap_plan_write_moves(struct ap_plan_writer *pw)
{
	ap_jw_key(&pw->w, "redistributions");
	ap_jw_arr(&pw->w);
	for (uint32_t i = 0; i < pw->p->nmove; i++)
		write_move(pw, &pw->p->move[i]);
	ap_jw_end(&pw->w);
}
