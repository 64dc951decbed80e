/* SPDX-License-Identifier: Apache-2.0 */
#include "planfile/plan_json.h"

#include <assert.h>
#include <string.h>

#include "autopar/version.h"
#include "base/arena.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/sha256.h"
#include "base/str.h"
#include "cost/comms.h"
#include "cost/float8.h"
#include "graph/sequence_first.h"
#include "hw/coll.h"
#include "hw/group.h"
#include "pipeline/schedule.h"
#include "plan/memory.h"
#include "plan/terms.h"
#include "planfile/plan_form.h"
#include "problem/problem.h"
#include "rule/attr.h"
#include "rule/window.h"
#include "shard/layout.h"
#include "shard/pieces.h"
#include "shard/space.h"
#include "shard/strategy.h"

static void write_int32s(struct ap_jw *w, const char *key, const int32_t *v, size_t n)
{
	ap_jw_key(w, key);
	ap_jw_int32s(w, v, n);
}

static void write_names(struct ap_plan_writer *pw, const char *key, const ap_id *tensor, uint32_t n)
{
	ap_jw_karr_flat(&pw->w, key);
	for (uint32_t i = 0; i < n; i++)
		ap_jw_str(&pw->w, pw->p->graph->tensor[tensor[i]].name);
	ap_jw_end(&pw->w);
}

/* Writes shapes and types of whole tensors. */
static void write_shapes(struct ap_plan_writer *pw, const char *shapes, const char *dtypes,
	const ap_id *tensor, uint32_t n)
{
	const struct ap_tensor *all = pw->p->graph->tensor;

	ap_jw_karr_flat(&pw->w, shapes);
	for (uint32_t i = 0; i < n; i++)
		ap_jw_ints(&pw->w, all[tensor[i]].shape.dim, all[tensor[i]].shape.rank);
	ap_jw_end(&pw->w);
	ap_jw_karr_flat(&pw->w, dtypes);
	for (uint32_t i = 0; i < n; i++)
		ap_jw_str(&pw->w, ap_dtype_name(all[tensor[i]].shape.dtype));
	ap_jw_end(&pw->w);
}

static void write_input(struct ap_jw *w, const char *role, const char *name, const char *sha256)
{
	if (!*name && !*sha256) {
		ap_jw_kraw(w, role, NULL);
		return;
	}
	ap_jw_kobj_flat(w, role);
	ap_jw_kstr(w, "name", name);
	ap_jw_kstr(w, "sha256", sha256);
	ap_jw_end(w);
}

static void write_settings(struct ap_jw *w, const struct ap_plan *p)
{
	ap_jw_obj(w);
	for (uint32_t i = 0; i < p->nsetting; i++)
		ap_jw_kraw(w, p->setting[i].name, p->setting[i].value);
	ap_jw_end(w);
}

static void write_inputs(struct ap_plan_writer *pw)
{
	const struct ap_plan *p = pw->p;
	const struct ap_topo *topo = p->machine->topo;
	const struct ap_chip *chip = p->machine->chip;
	const struct ap_software *sw = p->step->software;
	struct ap_jw *w = &pw->w;
	char hex[AP_SHA256_HEX + 1];
	struct ap_str settings;
	struct ap_jw compact;

	ap_str_init(&settings, pw->scratch);
	ap_jw_str_init(&compact, &settings, 0); /* the hash covers the compact form */
	write_settings(&compact, p);
	ap_sha256_hex(settings.s, settings.len, hex);
	ap_jw_kobj(w, "inputs");
	write_input(w, "graph", p->graph->file, p->graph->sha256);
	write_input(w, "model", p->graph->source ? p->graph->source : "",
		p->graph->source_sha256 ? p->graph->source_sha256 : "");
	write_input(w, "rank_table", topo->name, topo->sha256);
	write_input(w, "chip", chip->file, chip->sha256);
	write_input(w, "software", sw ? sw->file : "", sw ? sw->sha256 : "");
	write_input(w, "settings", "settings", hex);
	ap_jw_end(w);
}

static void write_graph(struct ap_plan_writer *pw)
{
	const struct ap_graph *g = pw->p->graph;
	struct ap_map *names = ap_map_create(pw->scratch);
	struct ap_jw *w = &pw->w;
	bool fresh;

	ap_jw_kobj(w, "graph");
	ap_jw_kstr(w, "name", g->name);
	ap_jw_kint(w, "batch", g->batch);
	ap_jw_kint(w, "parameters", g->parameters);
	write_names(pw, "inputs", g->input, g->ninput);
	write_shapes(pw, "input_shapes", "input_dtypes", g->input, g->ninput);
	/* constants that are read; each pipeline stage has its own copy of the same name */
	ap_jw_karr_flat(w, "constants");
	for (ap_id t = 0; t < g->ntensor; t++)
		if (g->tensor[t].kind == AP_TENSOR_CONST && g->tensor[t].nuse > 0) {
			ap_map_put_str(names, g->tensor[t].name, &fresh);
			if (fresh)
				ap_jw_str(w, g->tensor[t].name);
		}
	ap_jw_end(w);
	write_names(pw, "outputs", g->output, g->noutput);
	ap_jw_end(w);
}

void ap_plan_write_machine(struct ap_plan_writer *pw)
{
	static const char *const kinds[] = {"switch", "mesh", "bus", "nic"};
	const struct ap_machine *m = pw->p->machine;
	struct ap_jw *w = &pw->w;

	ap_jw_kobj(w, "machine");
	ap_jw_kint(w, "devices", m->total);
	ap_jw_kint(w, "servers", m->topo->nserver);
	ap_jw_kstr(w, "chip", m->chip->name);
	ap_jw_kint(w, "capacity_bytes", pw->p->capacity_bytes);
	ap_jw_karr(w, "levels");
	for (int i = 0; i < m->nlevel; i++) {
		const struct ap_link_level *l = &m->level[i];

		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "name", l->name);
		ap_jw_kstr(w, "kind", kinds[l->kind]);
		ap_jw_kint(w, "span", m->ranks[i]);
		ap_jw_knum(w, "bandwidth_Bps", l->bandwidth_Bps);
		ap_jw_knum(w, "latency_s", l->latency_s);
		ap_jw_knum(w, "efficiency", l->efficiency);
		ap_jw_end(w);
	}
	ap_jw_end(w);
	ap_jw_end(w);
}

void ap_plan_write_search(struct ap_plan_writer *pw)
{
	const struct ap_search_info *s = &pw->p->search;
	const struct ap_certificate *c = s->certificate;
	struct ap_jw *w = &pw->w;

	ap_jw_kobj(w, "search");
	ap_jw_kstr(w, "mode", s->mode);
	ap_jw_kstr(w, "status", ap_plan_status_name(s->status));
	ap_jw_kbool(w, "complete", s->complete);
	ap_jw_knum(w, "objective_s", s->objective_s);
	ap_jw_knum(w, "lower_bound_s", s->lower_bound_s);
	ap_jw_knum(w, "gap", s->gap);
	ap_jw_kint(w, "work", (int64_t)s->work);
	if (s->ended)
		ap_jw_kstr(w, "ended", s->ended);
	if (s->hybrid)
		ap_jw_kstr(w, "hybrid", s->hybrid);
	if (c) {
		ap_jw_kobj_flat(w, "certificate");
		ap_jw_kstr(w, "engine", c->engine);
		ap_jw_kstr(w, "status", c->proven ? "agrees" : "open");
		ap_jw_knum(w, "lower_bound_s", c->lower_bound);
		ap_jw_kint(w, "work", (int64_t)c->work);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

/* How far predictions were from what was measured, of the runs that are most like this one. */
static void write_measured(struct ap_plan_writer *pw)
{
	struct ap_jw *w = &pw->w;
	const struct ap_measured *m;
	bool is_like;

	if (!(m = ap_plan_measured(pw->p, &is_like)))
		return;
	ap_jw_kobj_flat(w, "measured");
	ap_jw_kstr(w, "chip", m->chip);
	ap_jw_kstr(w, "software", m->software);
	ap_jw_kstr(w, "network", m->network);
	ap_jw_kint(w, "steps", m->times);
	ap_jw_kint(w, "error_percent", m->step_percent);
	ap_jw_kbool(w, "extrapolated", !is_like);
	ap_jw_end(w);
}

void ap_plan_write_prediction(struct ap_plan_writer *pw)
{
	const struct ap_prediction *p = &pw->p->prediction;
	struct ap_jw *w = &pw->w;

	ap_jw_kobj(w, "prediction");
	ap_jw_knum(w, "step_time_s", p->step_time_s);
	ap_jw_knum(w, "step_bound_s", pw->p->search.step_bound_s);
	ap_jw_knum(w, "step_gap", pw->p->search.step_gap);
	ap_jw_kstr(w, "step_status", ap_step_status_name(pw->p->search.step_status));
	ap_jw_knum(w, "compute_s", p->compute_s);
	ap_jw_knum(w, "communication_s", p->communication_s);
	ap_jw_knum(w, "exposed_communication_s", p->exposed_communication_s);
	ap_jw_knum(w, "bubble_s", p->bubble_s);
	ap_jw_knum(w, "optimizer_s", p->optimizer_s);
	ap_jw_knum(w, "tokens_or_samples_per_s", p->samples_per_s);
	write_measured(pw);
	ap_jw_karr(w, "memory");
	for (uint32_t s = 0; s < pw->p->nstage; s++) {
		const struct ap_memory *m = &pw->p->stage[s].memory;

		ap_jw_obj_flat(w);
		ap_jw_kint(w, "stage", s);
		for (int i = 0; i < AP_MEMORY_KINDS; i++)
			ap_jw_kint(w, ap_memory_kind(m, i).key, ap_memory_kind(m, i).bytes);
		ap_jw_kint(w, "total_bytes", m->total);
		ap_jw_end(w);
	}
	ap_jw_end(w);
	ap_jw_end(w);
}

void ap_plan_write_baselines(struct ap_plan_writer *pw)
{
	struct ap_jw *w = &pw->w;

	ap_jw_karr(w, "baselines");
	for (uint32_t i = 0; i < pw->p->nbaseline; i++) {
		const struct ap_baseline *b = &pw->p->baseline[i];

		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "name", b->name);
		if (b->applicable) {
			ap_jw_knum(w, "step_time_s", b->step_time_s);
			ap_jw_knum(w, "objective_s", b->objective_s);
			ap_jw_kint(w, "memory_bytes", b->memory_bytes);
			ap_jw_kbool(w, "fits", b->fits);
			if (ap_plan_bounds_baselines(pw->p))
				ap_jw_knum(w, "gap",
					b->objective_s / pw->p->search.lower_bound_s - 1);
		} else {
			ap_jw_kstr(w, "not_applicable", b->why_not ? b->why_not : "");
		}
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

/* The ranks of the group of a stage's first rank, ascending: strides descend, so the digits of i in
 * the axes' sizes are coordinates of member i. */
static struct ap_plan_text text_of_ranks(struct ap_plan_writer *pw, int32_t stage,
	const struct ap_axes *axes)
{
	struct ap_str text;
	struct ap_jw w;

	ap_str_init(&text, pw->arena);
	ap_jw_str_init(&w, &text, pw->w.indent);
	ap_jw_arr_flat(&w);
	for (int64_t i = 0, n = ap_axes_size(axes); i < n; i++) {
		int64_t rank = pw->p->stage[stage].first_rank, rest = i;

		for (int a = axes->n; a-- > 0; rest /= axes->axis[a].size)
			rank += rest % axes->axis[a].size * axes->axis[a].stride;
		ap_jw_int(&w, rank);
	}
	ap_jw_end(&w);
	return (struct ap_plan_text){text.s, text.len};
}

static void write_axis(struct ap_jw *w, const struct ap_axis *axis)
{
	ap_jw_arr_flat(w);
	ap_jw_int(w, axis->stride);
	ap_jw_int(w, axis->size);
	ap_jw_end(w);
}

/* Writes members "axes" ([stride, size], outermost first) and, for groups up to AP_PLAN_MOST_LISTED, "ranks"
 * (of the group of the stage's first rank) of the current object. */
static void write_group(struct ap_plan_writer *pw, int32_t stage, const struct ap_axes *axes)
{
	struct {
		int32_t stage;
		struct ap_axis axis[AP_MAX_AXES];
	} key;
	size_t bytes = (size_t)axes->n * sizeof *axes->axis;
	bool fresh;
	ap_id id;

	ap_jw_karr_flat(&pw->w, "axes");
	for (int i = 0; i < axes->n; i++)
		write_axis(&pw->w, &axes->axis[i]);
	ap_jw_end(&pw->w);
	if (ap_axes_size(axes) > AP_PLAN_MOST_LISTED)
		return;
	key.stage = stage;
	memcpy(key.axis, axes->axis, bytes);
	id = ap_map_put(pw->group_ids, &key, sizeof key.stage + bytes, &fresh);
	if (fresh)
		AP_PUSH(pw->arena, pw->groups, text_of_ranks(pw, stage, axes));
	ap_jw_kraw(&pw->w, "ranks", pw->groups.v[id].s);
}

static void write_group_or_null(struct ap_plan_writer *pw, const char *key, int32_t stage,
	const struct ap_axes *axes)
{
	if (axes->n == 0) {
		ap_jw_kraw(&pw->w, key, NULL);
		return;
	}
	ap_jw_kobj(&pw->w, key);
	write_group(pw, stage, axes);
	ap_jw_end(&pw->w);
}

/* Axes of all exchanges of the first use whose gradient is exchanged. */
static void first_exchange(const struct ap_plan_param *param, struct ap_axes *out)
{
	const struct ap_plan_exchange *first = param->exchange, *x = first;

	*out = (struct ap_axes){0};
	for (uint32_t i = 0; i < param->nexchange && x->node == first->node &&
		x->comm->operand == first->comm->operand; i++, x++)
		for (int a = 0; a < x->comm->axes.n; a++)
			ap_axes_add(out, x->comm->axes.axis[a]);
}

static void write_param(struct ap_plan_writer *pw, const struct ap_plan_param *param)
{
	const struct ap_tensor *t = &pw->p->graph->tensor[param->tensor];
	int32_t stage = ap_plan_op_stage(pw->p, param->node);
	struct ap_axes group, none = {0};
	struct ap_jw *w = &pw->w;

	ap_jw_obj(w);
	ap_jw_kstr(w, "name", t->name);
	ap_jw_kint(w, "stage", stage);
	ap_jw_kstr(w, "dtype", ap_dtype_name(t->shape.dtype));
	if (t->read_as != AP_DTYPE_COUNT)
		ap_jw_kstr(w, "read_as", ap_dtype_name(t->read_as));
	ap_jw_kbool(w, "trainable", t->trainable);
	write_int32s(w, "dev_matrix", param->dev.axis, (size_t)param->dev.n);
	write_int32s(w, "tensor_map", param->map, t->shape.rank);
	ap_jw_kints(w, "tensor_shape", t->shape.dim, t->shape.rank);
	ap_jw_kints(w, "slice_shape", param->slice, t->shape.rank);
	ap_jw_kint(w, "opt_weight_shard_step", param->shard.weight_step);
	ap_jw_kint(w, "opt_weight_shard_size", param->shard.weight_size);
	ap_jw_kint(w, "optimizer_shards", param->shard.shards);
	if (param->shard.shards > 1 && !param->shard.by_rows)
		ap_jw_kint(w, "optimizer_part", param->shard.part);
	write_group_or_null(pw, "optimizer_group", stage,
		param->shard.shards > 1 ? &param->shard.group : &none);
	first_exchange(param, &group);
	write_group_or_null(pw, "gradient_group", stage, &group);
	ap_jw_karr(w, "gradient_groups");
	for (uint32_t i = 0; i < param->nexchange; i++) {
		const struct ap_plan_exchange *x = &param->exchange[i];

		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "operator", pw->p->graph->node[x->node].name);
		ap_jw_kint(w, "operand", x->comm->operand);
		ap_jw_kstr(w, "kind", ap_coll_name(x->comm->kind));
		write_group(pw, stage, &x->comm->axes);
		ap_jw_end(w);
	}
	ap_jw_end(w);
	if (param->nsum > 0)
		ap_jw_karr(w, "gradient_sums");
	for (uint32_t i = 0; i < param->nsum; i++) {
		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "operator", pw->p->graph->node[param->sum[i].node].name);
		ap_jw_kint(w, "operand", param->sum[i].operand);
		ap_jw_knum(w, "time_s", param->sum[i].time_s);
		ap_jw_end(w);
	}
	if (param->nsum > 0)
		ap_jw_end(w);
	ap_jw_end(w);
}

/* Refers to what runs by index in "operators", their "communications" or "redistributions". */
static void write_event(struct ap_jw *w, const struct ap_plan *p, const struct ap_event *e)
{
	static const char *const names[] = {
		[AP_EVENT_FORWARD] = "forward",
		[AP_EVENT_BACKWARD] = "backward",
		[AP_EVENT_COMM] = "communication",
		[AP_EVENT_MOVE] = "redistribution",
		[AP_EVENT_MOVE_BACK] = "redistribution_back",
		[AP_EVENT_OPTIMIZER] = "optimizer",
	};
	bool move = e->kind == AP_EVENT_MOVE || e->kind == AP_EVENT_MOVE_BACK;

	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "event", names[e->kind]);
	ap_jw_kint(w, "stage", ap_plan_op_stage(p, move ? p->move[e->index].to : e->index));
	ap_jw_kint(w, move ? "redistribution" : "operator", e->index);
	if (e->kind == AP_EVENT_COMM)
		ap_jw_kint(w, "communication", e->sub);
	ap_jw_knum(w, "start_s", e->start_s);
	ap_jw_knum(w, "end_s", e->end_s);
	ap_jw_end(w);
}

static void write_stage(struct ap_plan_writer *pw, uint32_t s)
{
	static const char *const passes[] = {
		[AP_PASS_FORWARD] = "forward",
		[AP_PASS_BACKWARD] = "backward",
		[AP_PASS_WEIGHT] = "weight",
	};
	const struct ap_plan *p = pw->p;
	struct ap_axes all = {0};
	struct ap_jw *w = &pw->w;

	if (p->stage[s].devices > 1)
		ap_axes_add(&all, (struct ap_axis){1, (int32_t)p->stage[s].devices});
	ap_jw_obj(w);
	ap_plan_write_stage_figures(pw, s);
	write_group(pw, (int32_t)s, &all);
	if (p->nstage > 1 && p->timeline) {
		ap_jw_karr(w, "slots"); /* in running order */
		for (uint32_t i = p->timeline->first[s]; i < p->timeline->first[s + 1]; i++) {
			const struct ap_slot_time *t = &p->timeline->slot[i];

			ap_jw_obj_flat(w);
			ap_jw_kstr(w, "pass", passes[t->slot.pass]);
			ap_jw_kint(w, "segment", t->slot.segment);
			ap_jw_kint(w, "micro_batch", t->slot.micro);
			ap_jw_knum(w, "start_s", t->start_s);
			ap_jw_knum(w, "end_s", t->end_s);
			ap_jw_end(w);
		}
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static void write_bucket(struct ap_plan_writer *pw, const struct ap_bucket *b)
{
	struct ap_jw *w = &pw->w;

	ap_jw_obj(w);
	ap_jw_kstr(w, "kind", ap_coll_name(b->kind));
	ap_jw_kint(w, "stage", b->stage);
	write_group(pw, b->stage, &b->axes);
	ap_jw_kint(w, "bytes", b->bytes);
	ap_jw_knum(w, "time_s", b->time_s);
	write_names(pw, "parameters", b->tensor, b->n);
	ap_jw_end(w);
}

/* Writes a placement's shard() vectors as a member. */
static void write_strategy(struct ap_plan_writer *pw, const char *key,
	const struct ap_placement *place)
{
	struct ap_mark mark = ap_arena_mark(pw->scratch);
	struct ap_strategy s = ap_strategy_of(pw->scratch, place);

	ap_jw_karr_flat(&pw->w, key);
	for (uint32_t i = 0; i < s.n; i++)
		ap_jw_int32s(&pw->w, s.cut[i], s.rank[i]);
	ap_jw_end(&pw->w);
	ap_arena_release(pw->scratch, mark);
}

static void write_route(struct ap_plan_writer *pw)
{
	const struct ap_plan_route *r = pw->p->route;
	struct ap_jw *w = &pw->w;

	if (!r) {
		ap_jw_kraw(w, "route", NULL);
		return;
	}
	ap_jw_kobj(w, "route");
	ap_plan_write_route_figures(pw);
	ap_jw_karr(w, "differs");
	for (uint32_t i = 0; i < r->n; i++) {
		const struct ap_route_differ *d = &r->differ[i];
		const struct ap_node *n = &pw->p->graph->node[d->node];
		struct ap_placement free;

		ap_placement_make(&n->bound, d->free_count, pw->p->op[d->node].place.ndev, &free);
		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "name", n->name);
		write_strategy(pw, "in_strategy", &pw->p->op[d->node].place);
		write_strategy(pw, "free_in_strategy", &free);
		ap_jw_knum(w, "operator_s", d->operator_s);
		ap_jw_knum(w, "redistribution_s", d->moves_s);
		ap_jw_end(w);
	}
	ap_jw_end(w);
	ap_jw_end(w);
}

/* Writes a Send: each rank of one stage is paired with its counterpart in the other. */
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
	write_group(pw, low, &pair);
}

/* The window whose factor is cut over just these axes; an exchange has one. */
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

static void write_exchange(struct ap_jw *w, const struct ap_placement *place, const struct ap_axes *axes)
{
	const struct ap_window *window = window_on(place, axes);
	int64_t parts = ap_axes_size(axes);

	assert(window);
	ap_jw_kint(w, "dim", window->dim);
	for (int after = 0; after < 2; after++) {
		ap_jw_karr_flat(w, after ? "after" : "before");
		for (int64_t part = 0; part < parts; part++) {
			struct ap_halo h = ap_window_halo(window, parts, part);

			ap_jw_int(w, after ? h.after : h.before);
		}
		ap_jw_end(w);
	}
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
	if (ap_comm_in_8_bits(&pw->p->task[node], &c->comm, pw->p->step))
		ap_jw_kstr(w, "sent_as", ap_dtype_name(result ? ap_float8_of_gradients(pw->p->step)
			: AP_FLOAT8_E4M3FN));
	if (c->comm.kind == AP_COLL_NEIGHBOREXCHANGE)
		write_exchange(w, &pw->p->op[node].place, &c->comm.axes);
	if (c->comm.kind == AP_COLL_RING || c->comm.kind == AP_COLL_ALLTOALL)
		ap_jw_kint(w, "dim", c->comm.dim);
	if (c->comm.kind == AP_COLL_ALLTOALL)
		ap_jw_kint(w, "concat_dim", c->comm.concat);
	if (c->comm.part)
		ap_jw_kbool(w, "part", true);
	if (c->comm.each)
		ap_jw_kbool(w, "each_micro_batch", true);
	if (c->comm.kind == AP_COLL_SEND)
		write_pair(pw, &c->comm);
	else
		write_group(pw, ap_plan_op_stage(pw->p, node), &c->comm.axes);
	ap_jw_kstr(w, "algorithm", c->algorithm ? c->algorithm : "");
	ap_jw_knum(w, "time_s", c->time_s);
	ap_jw_end(w);
}

static void write_slices(struct ap_plan_writer *pw, const char *key, const struct ap_layout *layout,
	const ap_id *tensor, uint16_t n)
{
	struct ap_jw *w = &pw->w;

	ap_jw_karr_flat(w, key);
	for (int i = 0; i < n; i++) {
		const struct ap_tensor *t = &pw->p->graph->tensor[tensor[i]];
		int64_t slice[AP_MAX_RANK];

		ap_plan_slice(pw->p, t, &layout[i], slice);
		ap_jw_ints(w, slice, t->shape.rank);
	}
	ap_jw_end(w);
}

static void write_cost(struct ap_plan_writer *pw, ap_id node)
{
	const struct ap_op_cost *c = &pw->p->op[node].cost;
	struct ap_jw *w = &pw->w;

	ap_jw_kobj_flat(w, "cost");
	ap_jw_knum(w, "forward_s", c->forward_s);
	ap_jw_knum(w, "backward_s", c->backward_s);
	ap_jw_knum(w, "forward_communication_s", c->forward_comm_s);
	ap_jw_knum(w, "backward_communication_s", c->backward_comm_s);
	ap_jw_knum(w, "gradient_s", c->gradient_s - c->joined_s);
	ap_jw_knum(w, "optimizer_s", c->optimizer_s);
	ap_jw_knum(w, "input_s", c->input_s);
	if (c->forward_launch_s + c->backward_launch_s > 0) {
		ap_jw_knum(w, "forward_launch_s", c->forward_launch_s);
		ap_jw_knum(w, "backward_launch_s", c->backward_launch_s);
	}
	if (c->load > 1)
		ap_jw_knum(w, "load", c->load);
	ap_jw_end(w);
	ap_jw_kobj_flat(w, "memory");
	ap_jw_kint(w, "weights_bytes", c->weight_bytes);
	ap_jw_kint(w, "gradients_bytes", c->gradient_bytes);
	ap_jw_kint(w, "optimizer_bytes", c->optimizer_bytes);
	ap_jw_kint(w, "activations_bytes", ap_plan_activation_bytes(pw->p, node));
	ap_jw_kint(w, "gathered_bytes", c->gathered_bytes);
	ap_jw_kint(w, "recompute_bytes", c->recompute_bytes);
	ap_jw_kint(w, "temporary_bytes", c->temporary_bytes);
	ap_jw_end(w);
}

/* Axes of a dimension cut by several factors, outermost first; returns their number. */
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

/* Writes tensor maps; a dimension cut by several axes has a list of them. */
static void write_maps(struct ap_jw *w, const char *key, const struct ap_placement *place,
	const struct ap_dev_matrix *dev, const struct ap_operand *t, uint16_t n)
{
	ap_jw_karr_flat(w, key);
	for (int i = 0; i < n; i++, t++) {
		int32_t map[AP_MAX_RANK], axes[AP_MAX_DIM_FACTOR];

		ap_tensor_map(place, t, dev, map);
		ap_jw_arr_flat(w);
		for (int d = 0; d < t->rank; d++) {
			int naxis = cut_axes(place, dev, t, &t->dim[d], axes);

			if (naxis > 1)
				ap_jw_int32s(w, axes, (size_t)naxis);
			else
				ap_jw_int(w, map[d]);
		}
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static void write_cuts(struct ap_plan_writer *pw, const struct ap_placement *place)
{
	const struct ap_bound *b = place->bound;
	struct ap_dev_matrix dev;
	struct ap_jw *w = &pw->w;

	write_strategy(pw, "in_strategy", place);
	ap_jw_karr_flat(w, "out_strategy");
	for (int i = 0; i < b->nout; i++) {
		int32_t cut[AP_MAX_RANK];

		ap_strategy_vector(place, &b->out[i], cut);
		ap_jw_int32s(w, cut, b->out[i].rank);
	}
	ap_jw_end(w);
	ap_dev_matrix_raw(place, &dev);
	write_int32s(w, "dev_matrix", dev.axis, (size_t)dev.n);
	write_maps(w, "in_tensor_map", place, &dev, b->in, b->nin);
	write_maps(w, "out_tensor_map", place, &dev, b->out, b->nout);
	ap_jw_kint(w, "repeated", place->repeat);
	ap_jw_karr(w, "factors");
	for (int i = 0; i < b->nfactor; i++) {
		const char name[2] = {b->factor[i].letter, '\0'};

		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "factor", name);
		ap_jw_kint(w, "size", b->factor[i].size);
		ap_jw_kint(w, "parts", place->count[i]);
		ap_jw_kint(w, "stride", place->stride[i]);
		ap_jw_kbool(w, "batch", b->factor[i].flags & AP_FACTOR_BATCH);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static struct ap_plan_text text_of_alike(struct ap_plan_writer *pw, ap_id i)
{
	struct ap_plan_writer fork = {.p = pw->p, .scratch = pw->scratch};
	const struct ap_node *n = &pw->p->graph->node[i];
	const struct ap_plan_op *op = &pw->p->op[i];
	struct ap_str text;

	ap_str_init(&text, pw->arena);
	ap_jw_fork(&fork.w, &pw->w, &text);
	ap_jw_kbool(&fork.w, "in_checkpoint", op->in_checkpoint);
	ap_jw_kbool(&fork.w, "given", op->fixed);
	write_cuts(&fork, &op->place);
	ap_jw_kbool(&fork.w, "recompute", pw->p->task[i].recomputed);
	write_slices(&fork, "in_slice", op->in, n->in, n->bound.nin);
	write_slices(&fork, "out_slice", op->out, n->out, n->bound.nout);
	write_cost(&fork, i);
	ap_jw_fork_end(&fork.w);
	return (struct ap_plan_text){text.s, text.len};
}

/* Operators of one class with one cut share their layouts, so that text is made once. */
static void write_once(struct ap_plan_writer *pw, ap_id i)
{
	const struct ap_node *n = &pw->p->graph->node[i];
	const struct ap_plan_op *op = &pw->p->op[i];
	struct {
		const struct ap_layout *in;
		int64_t activation_bytes; /* all in flight in its segment */
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

/* Which copies in 8 bits its products read, and what is kept as such copies. */
static void write_float8(struct ap_plan_writer *pw, ap_id i)
{
	const struct ap_task *t = &pw->p->task[i];
	struct ap_jw *w = &pw->w;
	bool any = false;

	if (t->float8) {
		ap_jw_kobj_flat(w, "in_8_bits");
		ap_jw_kstr(w, "operands", ap_dtype_name(AP_FLOAT8_E4M3FN));
		if (t->backward)
			ap_jw_kstr(w, "gradient", ap_dtype_name(ap_float8_of_gradients(pw->p->step)));
		if (t->in[0].float8_copy)
			ap_jw_kbool(w, "keeps_copy", true);
		ap_jw_end(w);
	}
	for (int o = 0; o < t->bound->nout; o++)
		any |= t->out[o].float8;
	if (!any)
		return;
	ap_jw_karr_flat(w, "kept_in_8_bits");
	for (int o = 0; o < t->bound->nout; o++)
		if (t->out[o].float8)
			ap_jw_int(w, o);
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
	if (ap_attr_get(&n->attrs, AP_SEQUENCE_FIRST))
		ap_jw_kint(w, "sequence_first", ap_attr_int(&n->attrs, AP_SEQUENCE_FIRST, 0));
	write_float8(pw, i);
	write_names(pw, "inputs", n->in, n->bound.nin);
	write_names(pw, "outputs", n->out, n->bound.nout);
	write_shapes(pw, "out_shape", "out_dtype", n->out, n->bound.nout);
	write_once(pw, i);
	ap_jw_karr(w, "communications");
	for (uint32_t k = 0; k < op->ncomm; k++)
		write_comm(pw, i, &op->comm[k]);
	ap_jw_end(w);
	ap_jw_end(w);
}

/* Writes [parts, stride] per dimension: rank r holds part r / stride % parts. */
static void write_layout(struct ap_jw *w, const char *key, const struct ap_layout *l)
{
	ap_jw_karr_flat(w, key);
	for (int d = 0; d < l->rank; d++) {
		ap_jw_arr_flat(w);
		ap_jw_int(w, l->dim[d].cut);
		ap_jw_int(w, l->dim[d].stride);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

/* Writes steps on slice dimensions seen as (outer, parts, inner): see shard/reshard.h. */
static void write_steps(struct ap_jw *w, const char *key, const struct ap_reshard_step *step, int n,
	int bytes)
{
	ap_jw_karr(w, key);
	for (int i = 0; i < n; i++) {
		const struct ap_reshard_step *s = &step[i];

		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "kind", ap_move_name(s->move));
		ap_jw_kint(w, "dim", s->dim);
		ap_jw_kint(w, "outer", s->outer);
		if (s->move == AP_MOVE_ALLTOALL) {
			ap_jw_kint(w, "concat_dim", s->concat);
			ap_jw_kint(w, "concat_outer", s->concat_outer);
		}
		if (s->inner_parts > 1) {
			ap_jw_kint(w, "inner_dim", s->inner);
			ap_jw_kint(w, "inner_outer", s->inner_outer);
			if (s->move == AP_MOVE_ALLTOALL) {
				ap_jw_kint(w, "concat_inner_dim", s->concat_inner);
				ap_jw_kint(w, "concat_inner_outer", s->concat_inner_outer);
			}
			ap_jw_kint(w, "inner_parts", s->inner_parts);
		}
		ap_jw_key(w, "axis");
		write_axis(w, &s->axis);
		ap_jw_kint(w, "bytes_before", s->before * bytes);
		ap_jw_kint(w, "bytes_after", s->after * bytes);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

struct writing_sends {
	struct ap_jw *w;
	int64_t from, to; /* first ranks of the stages */
	int rank; /* of the tensor */
};

static void write_piece(void *user, const struct ap_piece *p)
{
	const struct writing_sends *x = user;

	ap_jw_obj_flat(x->w);
	ap_jw_kint(x->w, "from_rank", x->from + p->from);
	ap_jw_kint(x->w, "to_rank", x->to + p->to);
	ap_jw_kints(x->w, "start", p->start, (size_t)x->rank);
	ap_jw_kints(x->w, "size", p->extent, (size_t)x->rank);
	ap_jw_end(x->w);
}

static void count_piece(void *user, const struct ap_piece *p)
{
	(void)p;
	++*(int64_t *)user;
}

/* Writes what ranks of one stage send to those of another, unless it is too much. */
static void write_sends(struct ap_plan_writer *pw, const char *key, const struct ap_tensor *t,
	const struct ap_layout *a, int32_t from, const struct ap_layout *b, int32_t to)
{
	const struct ap_plan_stage *stage = pw->p->stage;
	const struct ap_pieces_side left = {a, stage[from].devices}, right = {b, stage[to].devices};
	struct writing_sends x = {&pw->w, stage[from].first_rank, stage[to].first_rank, t->shape.rank};
	struct ap_mark mark = ap_arena_mark(pw->scratch);
	int64_t size[AP_MAX_RANK], n = 0;

	for (int d = 0; d < t->shape.rank; d++)
		size[d] = t->shape.dim[d] / (t->batch >> d & 1 ? pw->p->step->micro_batches : 1);
	ap_pieces_each(pw->scratch, &left, &right, size, count_piece, &n);
	if (n <= AP_PLAN_MOST_LISTED) {
		ap_jw_karr(&pw->w, key);
		ap_pieces_each(pw->scratch, &left, &right, size, write_piece, &x);
		ap_jw_end(&pw->w);
	}
	ap_arena_release(pw->scratch, mark);
}

static void write_move(struct ap_plan_writer *pw, const struct ap_plan_move *m)
{
	const struct ap_graph *g = pw->p->graph;
	const struct ap_tensor *t = &g->tensor[m->tensor];
	struct ap_jw *w = &pw->w;

	ap_jw_obj(w);
	if (m->from == AP_NONE) /* a graph input */
		ap_jw_kraw(w, "from", NULL);
	else
		ap_jw_kstr(w, "from", g->node[m->from].name);
	ap_jw_kstr(w, "to", g->node[m->to].name);
	ap_jw_kint(w, "operand", m->operand);
	ap_jw_kstr(w, "tensor", t->name);
	write_layout(w, "from_layout", &m->a);
	write_layout(w, "to_layout", &m->b);
	if (m->nstep > 0 && m->cost.element_bytes != ap_dtype_bytes(t->shape.dtype))
		ap_jw_kstr(w, "sent_as", ap_dtype_name(AP_FLOAT8_E4M3FN));
	write_steps(w, "steps", m->step, m->nstep, m->nstep > 0 ? m->cost.element_bytes : 1);
	if (m->shares != AP_NONE)
		ap_jw_kint(w, "shares", m->shares);
	if (m->nback > 0)
		write_steps(w, "back_steps", m->back, m->nback, ap_dtype_bytes(t->shape.dtype));
	if (m->sent) {
		int32_t from = ap_plan_op_stage(pw->p, m->from), to = ap_plan_op_stage(pw->p, m->to);

		ap_jw_kint(w, "from_stage", from);
		ap_jw_kint(w, "to_stage", to);
		write_sends(pw, "sends", t, &m->a, from, &m->b, to);
		if (pw->p->task[m->to].in[m->operand].grad)
			write_sends(pw, "back_sends", t, &m->b, to, &m->a, from);
	}
	ap_jw_kint(w, "bytes", m->cost.bytes);
	ap_jw_kint(w, "kept_bytes", ap_plan_move_kept_bytes(pw->p, m));
	ap_jw_knum(w, "forward_s", m->cost.forward_s);
	ap_jw_knum(w, "backward_s", m->cost.backward_s);
	ap_jw_knum(w, "time_s", ap_plan_move_time_s(m));
	if (pw->p->task[m->to].in[m->operand].sharers > 0)
		ap_jw_knum(w, "objective_s", m->cost.objective_s);
	ap_jw_end(w);
}

static void write_plan(struct ap_plan_writer *pw)
{
	const struct ap_plan *p = pw->p;
	struct ap_jw *w = &pw->w;

	ap_jw_obj(w);
	ap_jw_kstr(w, "schema", "autopar-plan/1");
	ap_jw_kobj_flat(w, "tool");
	ap_jw_kstr(w, "name", "autopar-plan");
	ap_jw_kstr(w, "version", AP_VERSION);
	ap_jw_end(w);
	write_inputs(pw);
	ap_jw_key(w, "settings");
	write_settings(w, p);
	write_graph(pw);
	ap_plan_write_machine(pw);
	ap_plan_write_search(pw);
	ap_plan_write_prediction(pw);
	ap_plan_write_baselines(pw);
	write_route(pw);
	ap_plan_write_pipeline(pw);
	ap_plan_write_recompute(pw);
	ap_plan_write_joint(pw);
	ap_jw_karr(w, "stages");
	for (uint32_t s = 0; s < p->nstage; s++)
		write_stage(pw, s);
	ap_jw_end(w);
	ap_jw_karr(w, "operators");
	for (ap_id i = 0; i < p->graph->nnode; i++)
		write_operator(pw, i);
	ap_jw_end(w);
	ap_jw_karr(w, "redistributions");
	for (uint32_t i = 0; i < p->nmove; i++)
		write_move(pw, &p->move[i]);
	ap_jw_end(w);
	ap_jw_karr(w, "parameters");
	for (uint32_t i = 0; i < p->nparam; i++)
		write_param(pw, &p->param[i]);
	ap_jw_end(w);
	ap_jw_karr(w, "fusion");
	for (uint32_t i = 0; i < p->nbucket; i++)
		write_bucket(pw, &p->bucket[i]);
	ap_jw_end(w);
	ap_jw_karr(w, "schedule");
	for (uint32_t i = 0; i < p->nevent; i++)
		write_event(w, p, &p->event[i]);
	ap_jw_end(w);
	ap_jw_end(w);
	ap_jw_finish(w);
}

void ap_emit_plan_json(struct ap_ctx *ctx, const struct ap_plan *p, ap_write_fn *write, void *user)
{
	struct ap_plan_writer pw = {.p = p, .arena = ctx->arena, .scratch = ctx->scratch};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);

	pw.group_ids = ap_map_create(ctx->arena);
	pw.cut_ids = ap_map_create(ctx->arena);
	ap_jw_init(&pw.w, write, user, 1);
	write_plan(&pw);
	ap_arena_release(ctx->scratch, mark);
}

void ap_plan_write_pipeline(struct ap_plan_writer *pw)
{
	static const char *const cut[] = {[AP_CUT_BY_COST] = "cost", [AP_CUT_BY_MEMORY] = "memory",
		[AP_CUT_BY_LAYERS] = "layers", [AP_CUT_BY_CONFIG] = "stage_config",
		[AP_CUT_BY_GRAPH] = "graph", [AP_CUT_BY_STRATEGY] = "strategy",
		[AP_CUT_BY_KEPT] = "kept"};
	const struct ap_plan *p = pw->p;
	const struct ap_pipe *pipe = p->step->pipe;
	struct ap_jw *w = &pw->w;

	if (p->nstage == 1) {
		ap_jw_kraw(w, "pipeline", NULL);
		return;
	}
	ap_jw_kobj_flat(w, "pipeline");
	ap_jw_kint(w, "stages", p->nstage);
	ap_jw_kint(w, "segments", pipe->nsegment);
	if (!p->machine->part) {
		ap_jw_kint(w, "devices_per_stage", p->machine->ndev);
	} else {
		ap_jw_karr_flat(w, "stage_devices");
		for (uint32_t s = 0; s < p->nstage; s++)
			ap_jw_int(w, p->stage[s].devices);
		ap_jw_end(w);
	}
	ap_jw_kint(w, "micro_batches", p->step->micro_batches);
	ap_jw_kstr(w, "scheduler", ap_plan_scheduler(p));
	if (pipe->cut)
		ap_jw_kstr(w, "cut", cut[pipe->cut->by]);
	if (pipe->cut && pipe->cut->by == AP_CUT_BY_LAYERS) {
		ap_jw_karr_flat(w, "layers");
		for (int32_t k = 0; k < pipe->nstage * pipe->nsegment; k++)
			ap_jw_int(w, pipe->cut->count[k]);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

void ap_plan_write_joint(struct ap_plan_writer *pw)
{
	const struct ap_plan_joint *j = pw->p->joint;
	struct ap_jw *w = &pw->w;

	if (!j)
		return;
	ap_jw_kobj(w, "joint");
	ap_jw_kstr(w, "decided", j->decided);
	ap_jw_kstr(w, "given", j->given);
	ap_jw_kbool(w, "complete", j->complete);
	ap_jw_knum(w, "step_time_s", j->step_s);
	ap_jw_knum(w, "step_bound_s", j->bound_s);
	if (j->least_hybrid_s > 0)
		ap_jw_knum(w, "least_hybrid_s", j->least_hybrid_s);
	if (j->cuts_s > 0)
		ap_jw_knum(w, "searched_s", j->cuts_s);
	if (j->free.executor) {
		ap_jw_kobj_flat(w, "free");
		if (j->free.step_s > 0) {
			ap_jw_kstr(w, "decided", j->free.decided);
			ap_jw_knum(w, "step_time_s", j->free.step_s);
		}
		ap_jw_knum(w, "step_bound_s", j->free.bound_s);
		ap_jw_end(w);
	}
	if (j->unequal.asked) {
		ap_jw_kobj_flat(w, "unequal_stages");
		if (j->unequal.why)
			ap_jw_kstr(w, "why_not", j->unequal.why);
		if (j->unequal.said) {
			ap_jw_kstr(w, "decided", j->unequal.said);
			ap_jw_knum(w, "step_time_s", j->unequal.step_s);
			ap_jw_knum(w, "equal_step_time_s", j->unequal.equal_s);
		}
		ap_jw_knum(w, "step_bound_s", j->unequal.bound_s);
		if (j->unequal.plan) {
			ap_jw_kstr(w, "plan", j->unequal.plan);
			ap_jw_knum(w, "plan_step_time_s", j->unequal.plan_s);
			ap_jw_kbool(w, "taken", j->unequal.taken);
		}
		if (j->unequal.not_taken)
			ap_jw_kstr(w, "not_taken", j->unequal.not_taken);
		ap_jw_end(w);
	}
	ap_jw_knum(w, "headroom_percent", j->headroom);
	ap_jw_kint(w, "usable_bytes", j->usable_bytes);
	ap_jw_kint(w, "combinations", j->n);
	ap_jw_kint(w, "priced", j->evaluated);
	ap_jw_kint(w, "fit", j->fit);
	ap_jw_kint(w, "too_large", j->too_large);
	ap_jw_kint(w, "slower", j->slower);
	ap_jw_kint(w, "refused", j->refused);
	ap_jw_kint(w, "open", j->open);
	if (j->ranks)
		ap_jw_kstr(w, "ranks", j->ranks);
	if (j->mfu > 0)
		ap_jw_knum(w, "mfu", j->mfu);
	if (j->step_error > 0) {
		ap_jw_kobj_flat(w, "error");
		ap_jw_knum(w, "step_percent", j->step_error);
		if (j->memory_error > 0)
			ap_jw_knum(w, "memory_percent", j->memory_error);
		if (j->memory_within > 0)
			ap_jw_knum(w, "memory_within_percent", j->memory_within);
		ap_jw_kint(w, "plans", j->near);
		ap_jw_kint(w, "maybe", j->maybe);
		ap_jw_kstr(w, "common", j->common);
		ap_jw_end(w);
	}
	ap_jw_karr(w, "devices");
	for (uint32_t i = 0; i < j->nmachine; i++) {
		const struct ap_plan_machine *m = &j->machine[i];

		ap_jw_obj_flat(w);
		ap_jw_kint(w, "devices", m->devices);
		ap_jw_kstr(w, "chip", m->chip);
		if (m->table)
			ap_jw_kstr(w, "rank_table", m->table);
		if (!m->decided)
			ap_jw_kstr(w, "why_not", m->why);
		if (m->decided) {
			ap_jw_kbool(w, "taken", m->taken);
			ap_jw_kbool(w, "undominated", m->undominated);
			ap_jw_kstr(w, "decided", m->decided);
			ap_jw_knum(w, "step_time_s", m->step_s);
			ap_jw_kint(w, "memory_bytes", m->memory_bytes);
			ap_jw_knum(w, "units_per_s", m->rate);
		}
		if (m->days > 0)
			ap_jw_knum(w, "days", m->days);
		if (m->cost > 0)
			ap_jw_knum(w, "cost", m->cost);
		ap_jw_end(w);
	}
	ap_jw_end(w);
	ap_jw_karr(w, "fastest");
	for (uint32_t i = 0; i < j->ntop; i++) {
		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "decided", j->top[i].decided);
		ap_jw_knum(w, "step_time_s", j->top[i].step_s);
		ap_jw_kint(w, "memory_bytes", j->top[i].memory_bytes);
		ap_jw_end(w);
	}
	ap_jw_end(w);
	ap_jw_karr(w, "instead");
	for (uint32_t i = 0; i < j->ninstead; i++) {
		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "name", j->instead[i].name);
		ap_jw_kstr(w, "taken", j->instead[i].taken);
		ap_jw_kstr(w, "value", j->instead[i].value);
		ap_jw_knum(w, "step_time_s", j->instead[i].step_s);
		ap_jw_knum(w, "step_bound_s", j->instead[i].least_s);
		ap_jw_end(w);
	}
	ap_jw_end(w);
	ap_jw_end(w);
}

void ap_plan_write_recompute(struct ap_plan_writer *pw)
{
	const struct ap_plan_recompute *r = pw->p->recompute;
	struct ap_jw *w = &pw->w;

	if (!r)
		return;
	ap_jw_kobj(w, "recompute");
	ap_jw_kstr(w, "layers", r->layers);
	ap_jw_karr_flat(w, "kinds");
	for (uint32_t k = 0; k < r->nkind; k++)
		ap_jw_str(w, r->kind[k]);
	ap_jw_end(w);
	ap_jw_karr_flat(w, "counts");
	for (uint32_t k = 0; k < r->nkind; k++) {
		ap_jw_arr_flat(w);
		for (int32_t p = 0; p < r->nstage * r->nsegment; p++)
			ap_jw_int(w, r->count[(int32_t)k * r->nstage * r->nsegment + p]);
		ap_jw_end(w);
	}
	ap_jw_end(w);
	ap_jw_end(w);
}

/* Writes counts by segment. */
static void write_counts(struct ap_jw *w, const char *key, const int64_t *count, const struct ap_pipe *pipe)
{
	if (count)
		ap_jw_kints(w, key, count, pipe ? (size_t)pipe->nsegment : 1);
}

void ap_plan_write_stage_figures(struct ap_plan_writer *pw, uint32_t s)
{
	const struct ap_plan *p = pw->p;
	const struct ap_plan_stage *stage = &p->stage[s];
	struct ap_jw *w = &pw->w;

	ap_jw_kint(w, "id", s);
	ap_jw_kint(w, "first_rank", stage->first_rank);
	ap_jw_kint(w, "operators", stage->noperator);
	ap_jw_kint(w, "segments", p->step->pipe ? p->step->pipe->nsegment : 1);
	ap_jw_kint(w, "micro_batches", p->step->micro_batches);
	ap_jw_kint(w, "in_flight", stage->in_flight);
	write_counts(w, "held", stage->held, p->step->pipe);
	write_counts(w, "late", stage->late, p->step->pipe);
	ap_jw_kint(w, "memory_bytes", stage->memory.total);
	ap_jw_kint(w, "peak_bytes", stage->peak_bytes);
	ap_jw_knum(w, "forward_s", stage->forward_s);
	ap_jw_knum(w, "backward_s", stage->backward_s);
	ap_jw_knum(w, "idle_s", stage->idle_s);
}

void ap_plan_write_route_figures(struct ap_plan_writer *pw)
{
	const struct ap_plan_route *r = pw->p->route;

	ap_jw_kstr(&pw->w, "executor", r->route->name);
	ap_jw_kstr(&pw->w, "told", r->route->text);
	ap_jw_knum(&pw->w, "free_objective_s", r->free_objective_s);
	ap_jw_knum(&pw->w, "free_step_time_s", r->free_step_time_s);
	ap_jw_knum(&pw->w, "loss_s", r->loss_s);
	ap_jw_kint(&pw->w, "differing_operators", r->n);
}
