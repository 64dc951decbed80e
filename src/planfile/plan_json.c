/* SPDX-License-Identifier: Apache-2.0 */
/* Plan JSON, all but operators and redistributions. */
#include "planfile/plan_json.h"

#include <string.h>

#include "autopar/version.h"
#include "base/arena.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/sha256.h"
#include "base/str.h"
#include "plan/terms.h"
#include "problem/problem.h"

static void write_input(struct ap_jw *w, const char *role, const char *name, const char *sha256)
{
	ap_jw_key(w, role);
	if (!*name && !*sha256) {
		ap_jw_null(w);
		return;
	}
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "name", name);
	ap_jw_kstr(w, "sha256", sha256);
	ap_jw_end(w);
}

static void write_settings(struct ap_jw *w, const struct ap_plan *p)
{
	ap_jw_obj(w);
	for (uint32_t i = 0; i < p->nsetting; i++) {
		ap_jw_key(w, p->setting[i].name);
		ap_jw_raw(w, p->setting[i].value);
	}
	ap_jw_end(w);
}

/* The hash is of the compact form of the settings. */
static void hash_settings(const struct ap_plan_writer *pw, char hex[AP_SHA256_HEX + 1])
{
	struct ap_str text;
	struct ap_jw w;

	ap_str_init(&text, pw->scratch);
	ap_jw_str_init(&w, &text, 0);
	write_settings(&w, pw->p);
	ap_sha256_hex(text.s, text.len, hex);
}

static void write_inputs(struct ap_plan_writer *pw)
{
	const struct ap_plan *p = pw->p;
	const struct ap_topo *topo = p->machine->topo;
	const struct ap_chip *chip = p->machine->chip;
	const struct ap_software *sw = p->step->software;
	struct ap_jw *w = &pw->w;
	char hex[AP_SHA256_HEX + 1];

	hash_settings(pw, hex);
	ap_jw_key(w, "inputs");
	ap_jw_obj(w);
	write_input(w, "graph", p->graph->file, p->graph->sha256);
	write_input(w, "rank_table", topo->name, topo->sha256);
	write_input(w, "chip", chip->file, chip->sha256);
	write_input(w, "software", sw ? sw->file : "", sw ? sw->sha256 : "");
	write_input(w, "settings", "settings", hex);
	ap_jw_end(w);
}

/* Of the inputs. */
static void write_shapes(struct ap_plan_writer *pw)
{
	const struct ap_graph *g = pw->p->graph;
	struct ap_jw *w = &pw->w;

	ap_jw_key(w, "input_shapes");
	ap_jw_arr_flat(w);
	for (uint32_t i = 0; i < g->ninput; i++)
		ap_jw_ints(w, g->tensor[g->input[i]].shape.dim, g->tensor[g->input[i]].shape.rank);
	ap_jw_end(w);
	ap_jw_key(w, "input_dtypes");
	ap_jw_arr_flat(w);
	for (uint32_t i = 0; i < g->ninput; i++)
		ap_jw_str(w, ap_dtype_name(g->tensor[g->input[i]].shape.dtype));
	ap_jw_end(w);
}

/* Those that operators read; each pipeline stage has one of its own by the same name. */
static void write_constants(struct ap_plan_writer *pw)
{
	const struct ap_graph *g = pw->p->graph;
	struct ap_map *names = ap_map_create(pw->scratch);
	struct ap_jw *w = &pw->w;
	bool fresh;

	ap_jw_key(w, "constants");
	ap_jw_arr_flat(w);
	for (ap_id t = 0; t < g->ntensor; t++)
		if (g->tensor[t].kind == AP_TENSOR_CONST && g->tensor[t].nuse > 0) {
			ap_map_put_str(names, g->tensor[t].name, &fresh);
			if (fresh)
				ap_jw_str(w, g->tensor[t].name);
		}
	ap_jw_end(w);
}

static void write_graph(struct ap_plan_writer *pw)
{
	const struct ap_graph *g = pw->p->graph;
	struct ap_jw *w = &pw->w;

	ap_jw_key(w, "graph");
	ap_jw_obj(w);
	ap_jw_kstr(w, "name", g->name);
	ap_jw_kint(w, "batch", g->batch);
	ap_jw_kint(w, "parameters", g->parameters);
	ap_jw_key(w, "inputs");
	ap_jw_arr_flat(w);
	for (uint32_t i = 0; i < g->ninput; i++)
		ap_jw_str(w, g->tensor[g->input[i]].name);
	ap_jw_end(w);
	write_shapes(pw);
	write_constants(pw);
	ap_jw_key(w, "outputs");
	ap_jw_arr_flat(w);
	for (uint32_t i = 0; i < g->noutput; i++)
		ap_jw_str(w, g->tensor[g->output[i]].name);
	ap_jw_end(w);
	ap_jw_end(w);
}

void ap_plan_write_machine(struct ap_plan_writer *pw)
{
	static const char *const kinds[] = {"switch", "mesh", "bus", "nic"};
	const struct ap_machine *m = pw->p->machine;
	struct ap_jw *w = &pw->w;

	ap_jw_key(w, "machine");
	ap_jw_obj(w);
	ap_jw_kint(w, "devices", m->total);
	ap_jw_kint(w, "servers", m->topo->nserver);
	ap_jw_kstr(w, "chip", m->chip->name);
	ap_jw_kint(w, "capacity_bytes", pw->p->capacity_bytes);
	ap_jw_key(w, "levels");
	ap_jw_arr(w);
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

static void write_certificate(struct ap_jw *w, const struct ap_certificate *c)
{
	ap_jw_key(w, "certificate");
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "engine", c->engine);
	ap_jw_kstr(w, "status", c->proven ? "agrees" : "open");
	ap_jw_knum(w, "lower_bound_s", c->lower_bound);
	ap_jw_kint(w, "work", (int64_t)c->work);
	ap_jw_end(w);
}

void ap_plan_write_search(struct ap_plan_writer *pw)
{
	const struct ap_search_info *s = &pw->p->search;
	struct ap_jw *w = &pw->w;

	ap_jw_key(w, "search");
	ap_jw_obj(w);
	ap_jw_kstr(w, "mode", s->mode);
	ap_jw_kstr(w, "status", ap_plan_status_name(s->status));
	ap_jw_kbool(w, "complete", s->complete);
	ap_jw_knum(w, "objective_s", s->objective_s);
	ap_jw_knum(w, "lower_bound_s", s->lower_bound_s);
	ap_jw_knum(w, "gap", s->gap);
	ap_jw_kint(w, "work", (int64_t)s->work);
	if (s->certificate)
		write_certificate(w, s->certificate);
	ap_jw_end(w);
}

void ap_plan_write_prediction(struct ap_plan_writer *pw)
{
	const struct ap_prediction *p = &pw->p->prediction;
	struct ap_jw *w = &pw->w;

	ap_jw_key(w, "prediction");
	ap_jw_obj(w);
	ap_jw_knum(w, "step_time_s", p->step_time_s);
	ap_jw_knum(w, "compute_s", p->compute_s);
	ap_jw_knum(w, "communication_s", p->communication_s);
	ap_jw_knum(w, "exposed_communication_s", p->exposed_communication_s);
	ap_jw_knum(w, "bubble_s", p->bubble_s);
	ap_jw_knum(w, "optimizer_s", p->optimizer_s);
	ap_jw_knum(w, "tokens_or_samples_per_s", p->samples_per_s);
	ap_plan_write_memory(pw);
	ap_jw_end(w);
}

void ap_plan_write_baselines(struct ap_plan_writer *pw)
{
	struct ap_jw *w = &pw->w;

	ap_jw_key(w, "baselines");
	ap_jw_arr(w);
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

static void write_group_or_null(struct ap_plan_writer *pw, const char *key, int32_t stage,
	const struct ap_axes *axes)
{
	ap_jw_key(&pw->w, key);
	if (axes->n == 0) {
		ap_jw_null(&pw->w);
		return;
	}
	ap_jw_obj(&pw->w);
	ap_plan_write_group(pw, stage, axes);
	ap_jw_end(&pw->w);
}

/* All ranks that the first use exchanges between whose gradient is exchanged at all. */
static void first_exchange(const struct ap_plan_param *param, struct ap_axes *out)
{
	const struct ap_plan_exchange *first = param->exchange, *x = first;

	*out = (struct ap_axes){0};
	for (uint32_t i = 0; i < param->nexchange && x->node == first->node &&
		x->comm->operand == first->comm->operand; i++, x++)
		for (int a = 0; a < x->comm->axes.n; a++)
			ap_axes_add(out, x->comm->axes.axis[a]);
}

static void write_exchanges(struct ap_plan_writer *pw, const struct ap_plan_param *param, int32_t stage)
{
	struct ap_jw *w = &pw->w;

	ap_jw_key(w, "gradient_groups");
	ap_jw_arr(w);
	for (uint32_t i = 0; i < param->nexchange; i++) {
		const struct ap_plan_exchange *x = &param->exchange[i];

		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "operator", pw->p->graph->node[x->node].name);
		ap_jw_kint(w, "operand", x->comm->operand);
		ap_jw_kstr(w, "kind", ap_coll_name(x->comm->kind));
		ap_plan_write_group(pw, stage, &x->comm->axes);
		ap_jw_end(w);
	}
	ap_jw_end(w);
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
	ap_plan_write_kint32s(w, "dev_matrix", param->dev.axis, (size_t)param->dev.n);
	ap_plan_write_kint32s(w, "tensor_map", param->map, t->shape.rank);
	ap_jw_kints(w, "tensor_shape", t->shape.dim, t->shape.rank);
	ap_jw_kints(w, "slice_shape", param->slice, t->shape.rank);
	ap_jw_kint(w, "opt_weight_shard_step", param->shard.weight_step);
	ap_jw_kint(w, "opt_weight_shard_size", param->shard.weight_size);
	ap_jw_kint(w, "optimizer_shards", param->shard.shards);
	write_group_or_null(pw, "optimizer_group", stage,
		param->shard.shards > 1 ? &param->shard.group : &none);
	first_exchange(param, &group);
	write_group_or_null(pw, "gradient_group", stage, &group);
	write_exchanges(pw, param, stage);
	ap_jw_end(w);
}

static void write_params(struct ap_plan_writer *pw)
{
	struct ap_jw *w = &pw->w;

	ap_jw_key(w, "parameters");
	ap_jw_arr(w);
	for (uint32_t i = 0; i < pw->p->nparam; i++)
		write_param(pw, &pw->p->param[i]);
	ap_jw_end(w);
}

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

/* What runs is named by its index in "operators", their "communications" or "redistributions". */
static void write_schedule(struct ap_plan_writer *pw)
{
	struct ap_jw *w = &pw->w;

	ap_jw_key(w, "schedule");
	ap_jw_arr(w);
	for (uint32_t i = 0; i < pw->p->nevent; i++)
		write_event(w, pw->p, &pw->p->event[i]);
	ap_jw_end(w);
}

static void write_tool(struct ap_jw *w)
{
	ap_jw_key(w, "tool");
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "name", "autopar-plan");
	ap_jw_kstr(w, "version", AP_VERSION);
	ap_jw_end(w);
}

static void write_plan(struct ap_plan_writer *pw)
{
	struct ap_jw *w = &pw->w;

	ap_jw_obj(w);
	ap_jw_kstr(w, "schema", "autopar-plan/1");
	write_tool(w);
	write_inputs(pw);
	ap_jw_key(w, "settings");
	write_settings(w, pw->p);
	write_graph(pw);
	ap_plan_write_machine(pw);
	ap_plan_write_search(pw);
	ap_plan_write_prediction(pw);
	ap_plan_write_baselines(pw);
	ap_plan_write_route(pw);
	ap_plan_write_pipeline(pw);
	ap_plan_write_stages(pw);
	ap_plan_write_operators(pw);
	ap_plan_write_moves(pw);
	write_params(pw);
	ap_plan_write_fusion(pw);
	write_schedule(pw);
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
