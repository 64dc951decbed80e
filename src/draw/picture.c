/* SPDX-License-Identifier: Apache-2.0 */
#include "draw/picture.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "hw/coll.h"
#include "plan/terms.h"
#include "shard/layout.h"
#include "shard/strategy.h"

enum { MOST_VECTORS = 3 }; /* operands shown */

/* ---- the builder, for all sources of operators ---- */

struct builder {
	struct ap_ctx *ctx;
	struct ap_dimensions dimensions;
	AP_VEC(struct ap_pic_node) nodes;
	AP_VEC(struct ap_pic_edge) edges;
	AP_VEC(int64_t) sent; /* operator -> forward bytes sent; -1: neither sends nor receives */
	AP_VEC(uint32_t) slot; /* edge of each operand of all operators; AP_NONE */
	AP_VEC(uint32_t) first; /* operator -> its first slot, with end */
};

/* Sources of operands that no operator makes; OWN: a parameter of one operator, not drawn. */
enum { FROM_OUTSIDE = -1, SHARED = -2, OWN = -3 };

static void begin_operands(struct builder *b)
{
	AP_PUSH(b->ctx->scratch, b->first, (uint32_t)b->slot.n);
}

/* source: the producing operator, or one of the above. Each use of an input or shared tensor gets
 * its own node: one read by all layers (a mask) would tangle the picture. */
static void add_operand(struct builder *b, uint32_t to, const char *tensor, int64_t source)
{
	struct ap_pic_edge edge = {.from = (uint32_t)source, .to = to, .tensor = tensor, .moves = ""};
	struct ap_pic_node node = {.name = tensor, .cell = "", .cut = "", .slice = "", .comms = "",
		.key = "", .kind = source == SHARED ? AP_PIC_SHARED : AP_PIC_INPUT,
		.type = source == SHARED ? "Shared" : "Input"};

	AP_PUSH(b->ctx->scratch, b->slot, source == OWN ? AP_NONE : (uint32_t)b->edges.n);
	if (source == OWN)
		return;
	if (source < 0) {
		edge.from = (uint32_t)b->nodes.n;
		AP_PUSH(b->ctx->arena, b->nodes, node);
	} else if (b->sent.n && b->sent.v[source] >= 0 && b->sent.v[to] >= 0) {
		edge.sent = true;
		edge.sent_bytes = b->sent.v[source];
	}
	AP_PUSH(b->ctx->arena, b->edges, edge);
}

/* The edge of an operand; NULL if there is none. */
static struct ap_pic_edge *edge_of(const struct builder *b, ap_id to, int64_t operand)
{
	uint32_t slot = b->first.v[to] + (uint32_t)operand;

	return slot < b->first.v[to + 1] && b->slot.v[slot] != AP_NONE ? &b->edges.v[b->slot.v[slot]] : NULL;
}

/* Sets a redistribution's text, "AllGather+Slice 2.00 MiB 14.0 us", from its step names; from those of its
 * gradient where only that moves. */
static void set_move(struct ap_ctx *ctx, struct ap_pic_edge *edge, size_t n, const char *const *kind,
	int64_t bytes, double time_s)
{
	struct ap_str text;
	char buf[32];

	ap_str_init(&text, ctx->arena);
	for (size_t i = 0; i < n; i++)
		if (!i || strcmp(kind[i - 1], kind[i]) != 0)
			ap_str_addf(&text, "%s%s", i ? "+" : "", kind[i]);
	if (bytes > 0)
		ap_str_addf(&text, " %s", ap_format_bytes(bytes, buf));
	if (time_s > 0)
		ap_str_addf(&text, " %s", ap_format_seconds(time_s, buf));
	edge->moves = text.s;
	edge->bytes = bytes;
	edge->time_s = time_s;
}

static void finish(struct builder *b, const char *title, const char *facts, struct ap_picture *out)
{
	*out = (struct ap_picture){
		.title = title,
		.facts = facts,
		.nnode = (uint32_t)b->nodes.n,
		.node = b->nodes.v,
		.nedge = (uint32_t)b->edges.n,
		.edge = b->edges.v,
	};
	while (out->noperator < out->nnode && out->node[out->noperator].kind == AP_PIC_OPERATOR)
		out->noperator++;
}

/* ---- how an operator is cut ---- */

struct facts {
	const char *graph, *chip, *scheduler, *mode, *status;
	int64_t stages, segments, micro_batches; /* stages 0 or 1: no pipeline */
	int64_t devices, servers, batch, memory_bytes, capacity_bytes;
	double gap, step_time_s, compute_s, communication_s, exposed_communication_s, samples_per_s;
};

static enum ap_pic_class class_of(const struct ap_saved_op *op)
{
	bool cut_batch = false, cut_model = false;

	for (uint32_t i = 0; i < op->nfactor; i++) {
		cut_batch |= op->factor[i].parts > 1 && op->factor[i].batch;
		cut_model |= op->factor[i].parts > 1 && !op->factor[i].batch;
	}
	if (cut_batch)
		return cut_model ? AP_PIC_BOTH : AP_PIC_BATCH;
	return cut_model ? AP_PIC_MODEL : AP_PIC_WHOLE;
}

static void add_vector(struct ap_str *text, const char *before, const struct ap_saved_vector *v)
{
	ap_str_add(text, before);
	for (size_t d = 0; d < v->n; d++)
		ap_str_addf(text, "%s%" PRId64, d ? "x" : "", v->v[d]);
}

/* Number of parts over which the first result is summed; 1 if it is not. A file may hold any
 * values. */
static int64_t partial_over(const struct ap_saved_op *op)
{
	int64_t all = 1, shown = 1;
	bool ok = !op->out_strategy.n || ap_product(op->out_strategy.v->v, op->out_strategy.v->n, &shown);

	for (uint32_t i = 0; ok && i < op->nfactor; i++)
		ok = ap_mul(all, op->factor[i].parts, &all);
	return ok && shown > 0 && !(all % shown) ? all / shown : 1;
}

/* "8x1, 1x4 to 8x4, partial over 2" */
static const char *cut_text(struct ap_ctx *ctx, const struct ap_saved_op *op)
{
	int64_t partial = partial_over(op);
	struct ap_str text;
	uint32_t shown = 0;

	ap_str_init(&text, ctx->arena);
	for (uint32_t i = 0; i < op->in_strategy.n && shown < MOST_VECTORS; i++)
		if (op->in_strategy.v[i].n)
			add_vector(&text, shown++ ? ", " : "", &op->in_strategy.v[i]);
	if (op->out_strategy.n && op->out_strategy.v->n)
		add_vector(&text, text.len ? " to " : "", op->out_strategy.v);
	if (partial > 1)
		ap_str_addf(&text, "%spartial over %" PRId64, text.len ? ", " : "", partial);
	return text.s;
}

static bool same_group(const struct ap_saved_comm *a, const struct ap_saved_comm *b)
{
	return !strcmp(a->phase, b->phase) && !strcmp(a->kind, b->kind) && a->ranks == b->ranks;
}

/* Bytes of collective i and later ones of its kind; -1 if there is an earlier one. */
static int64_t bytes_of_kind(const struct ap_saved_op *op, uint32_t i)
{
	int64_t bytes = op->comm[i].bytes;

	for (uint32_t k = 0; k < i; k++)
		if (same_group(&op->comm[k], &op->comm[i]))
			return -1;
	for (uint32_t k = i + 1; k < op->ncomm; k++)
		if (same_group(&op->comm[k], &op->comm[i]) && !ap_add(bytes, op->comm[k].bytes, &bytes))
			return INT64_MAX;
	return bytes;
}

/* Lists collectives, those of one kind, phase and group size as one. */
static const char *comms_text(struct ap_ctx *ctx, const struct ap_saved_op *op)
{
	struct ap_str text;
	char buf[32];

	ap_str_init(&text, ctx->arena);
	for (uint32_t i = 0; i < op->ncomm; i++) {
		const struct ap_saved_comm *comm = &op->comm[i];
		bool forward = !strcmp(comm->phase, "forward");
		int64_t bytes = bytes_of_kind(op, i);

		if (bytes >= 0)
			ap_str_addf(&text, "%s%s%s%s of %" PRId64 ", %s", text.len ? "\n" : "",
				forward ? "" : comm->phase, forward ? "" : " ", comm->kind,
				comm->ranks, ap_format_bytes(bytes, buf));
	}
	return text.s;
}

static const char *key_of(struct ap_ctx *ctx, const struct ap_saved_op *op)
{
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	ap_str_add(&text, op->type);
	for (uint32_t i = 0; i < op->nfactor; i++)
		ap_str_addf(&text, " %" PRId64 "/%" PRId32 "/%" PRId32, op->factor[i].size,
			op->factor[i].parts, op->factor[i].stride);
	for (uint32_t i = 0; i < op->in_strategy.n; i++)
		add_vector(&text, ",", &op->in_strategy.v[i]);
	for (uint32_t i = 0; i < op->out_slice.n; i++)
		add_vector(&text, ";", &op->out_slice.v[i]);
	for (uint32_t i = 0; i < op->ncomm; i++)
		ap_str_addf(&text, "|%s %s %" PRId64 " %" PRId64, op->comm[i].phase, op->comm[i].kind,
			op->comm[i].ranks, op->comm[i].bytes);
	return text.s;
}

/* "stage 0, segment 1"; NULL if there is one stage. */
static const char *part_text(struct ap_ctx *ctx, const struct facts *f, const struct ap_saved_op *op)
{
	if (f->stages <= 1)
		return NULL;
	if (f->segments <= 1)
		return ap_arena_printf(ctx->arena, "stage %" PRId64, op->stage);
	return ap_arena_printf(ctx->arena, "stage %" PRId64 ", segment %" PRId64, op->stage, op->segment);
}

static void add_operator(struct builder *b, const struct facts *f, const struct ap_saved_op *op)
{
	bool sends = !strcmp(op->type, "Send") || !strcmp(op->type, "Receive");
	int64_t sent = sends ? 0 : -1;
	struct ap_pic_node node = {.name = op->name, .type = op->type, .cell = op->cell, .cls = class_of(op),
		.cut = cut_text(b->ctx, op), .comms = comms_text(b->ctx, op), .ncomm = op->ncomm,
		.time_s = op->time_s, .part = part_text(b->ctx, f, op)};
	struct ap_str slice;

	ap_str_init(&slice, b->ctx->arena);
	if (op->out_slice.n && op->out_slice.v->n)
		add_vector(&slice, "slice ", op->out_slice.v);
	node.slice = slice.s;
	node.key = key_of(b->ctx, op);
	ap_dimensions_parts(&b->dimensions, op, node.cut_in);
	AP_PUSH(b->ctx->arena, b->nodes, node);
	for (uint32_t i = 0; sends && !sent && i < op->ncomm; i++)
		if (!strcmp(op->comm[i].kind, "Send") && !strcmp(op->comm[i].phase, "forward"))
			sent = op->comm[i].bytes;
	AP_PUSH(b->ctx->scratch, b->sent, sent);
}

/* ---- title and legend ---- */

/* "NAME on 8 x CHIP: batch over 8; 1.23 ms a step" */
static const char *title_of(const struct builder *b, const struct facts *f)
{
	struct ap_dimension_votes votes = {0};
	int64_t parts[AP_DIMENSION_COUNT];
	struct ap_str text;
	char buf[32];

	for (size_t i = 0; i < b->nodes.n && b->nodes.v[i].kind == AP_PIC_OPERATOR; i++)
		ap_dimensions_vote(&votes, b->nodes.v[i].type, b->nodes.v[i].cut_in, b->nodes.v[i].time_s);
	ap_dimensions_elect(&votes, parts);
	ap_str_init(&text, b->ctx->arena);
	ap_str_addf(&text, "%s on %" PRId64 " x %s: ", f->graph, f->devices, f->chip);
	ap_dimensions_message(&text, parts, f->devices, f->stages, b->dimensions.micro_batches);
	ap_str_addf(&text, "; %s a step", ap_format_seconds(f->step_time_s, buf));
	return text.s;
}

static void add_seconds(struct ap_str *text, const char *what, double s)
{
	char buf[32];

	ap_str_addf(text, "%s%s", what, ap_format_seconds(s, buf));
}

/* The lines of the legend. */
static const char *legend_of(struct ap_ctx *ctx, const struct facts *f)
{
	char used[32], capacity[32];
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	add_seconds(&text, "step ", f->step_time_s);
	add_seconds(&text, ": kernels ", f->compute_s);
	add_seconds(&text, ", communication ", f->communication_s);
	add_seconds(&text, ", of which not hidden ", f->exposed_communication_s);
	ap_str_addf(&text, "\nmemory %s of %s a device", ap_format_bytes(f->memory_bytes, used),
		ap_format_bytes(f->capacity_bytes, capacity));
	ap_str_addf(&text, "\n%" PRId64 " device%s in %" PRId64 " server%s", f->devices,
		f->devices > 1 ? "s" : "", f->servers, f->servers > 1 ? "s" : "");
	if (f->stages > 1)
		ap_str_addf(&text, ", %" PRId64 " pipeline stages, %s, %" PRId64 " micro-batch%s",
			f->stages, f->scheduler, f->micro_batches, f->micro_batches > 1 ? "es" : "");
	if (f->batch > 0)
		ap_str_addf(&text, ", batch %" PRId64 ", %.1f samples/s", f->batch,
			f->samples_per_s);
	if (strcmp(f->mode, f->status) != 0) /* both are "given" where no cuts were searched */
		ap_str_addf(&text, "\n%s: %s", f->mode, f->status);
	if (f->gap > 0)
		ap_str_addf(&text, ", at most %.2f%% from the best", 100 * f->gap);
	return text.s;
}

/* ---- graphs and plans in memory ---- */

static void add_shape(struct ap_str *text, const struct ap_tensor *t)
{
	for (int d = 0; d < t->shape.rank; d++)
		ap_str_addf(text, "%s%" PRId64, d ? "x" : "", t->shape.dim[d]);
	ap_str_addf(text, " %s", ap_dtype_name(t->shape.dtype));
	if (t->read_as != AP_DTYPE_COUNT)
		ap_str_addf(text, " as %s", ap_dtype_name(t->read_as));
}

static const char *uncut_key(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_node *n)
{
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	ap_str_add(&text, n->type);
	for (uint32_t i = 0; i < n->attrs.n; i++) {
		const struct ap_attr *a = &n->attrs.v[i];

		ap_str_addf(&text, " %s=%" PRId64 "/%a/%s", a->name, a->i, a->f, a->s ? a->s : "");
		for (uint32_t k = 0; k < a->n; k++)
			ap_str_addf(&text, ",%" PRId64, a->list[k]);
	}
	for (uint32_t i = 0; i < n->bound.nin; i++)
		add_shape(&text, &g->tensor[n->in[i]]);
	ap_str_addc(&text, ':');
	for (uint32_t i = 0; i < n->bound.nout; i++)
		add_shape(&text, &g->tensor[n->out[i]]);
	return text.s;
}

static void add_operands(struct builder *b, const struct ap_graph *g)
{
	for (ap_id i = 0; i < g->nnode; i++) {
		begin_operands(b);
		for (uint32_t j = 0; j < g->node[i].bound.nin; j++) {
			const struct ap_tensor *t = &g->tensor[g->node[i].in[j]];
			bool shared = t->nuse > 1 && t->use[0].node != t->use[t->nuse - 1].node;

			add_operand(b, i, t->name, t->kind == AP_TENSOR_ACT ? (int64_t)t->producer
				: t->kind == AP_TENSOR_INPUT ? FROM_OUTSIDE : shared ? SHARED : OWN);
		}
	}
	begin_operands(b);
}

void ap_picture_of_graph(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_picture *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct builder b = {.ctx = ctx};
	const char *facts = ap_arena_printf(ctx->arena, "%" PRId64 " parameters, batch %" PRId64,
		g->parameters, g->batch);

	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];
		struct ap_str shape;

		ap_str_init(&shape, ctx->arena);
		if (n->bound.nout)
			add_shape(&shape, &g->tensor[n->out[0]]);
		AP_PUSH(ctx->arena, b.nodes, ((struct ap_pic_node){.name = n->name, .type = n->type,
			.cell = n->cell, .cut = "", .slice = shape.s, .comms = "",
			.key = uncut_key(ctx, g, n)}));
	}
	add_operands(&b, g);
	finish(&b, g->name, facts, out);
	ap_arena_release(ctx->scratch, mark);
}

static struct ap_saved_vector widen(struct ap_ctx *ctx, const int32_t *v, size_t n)
{
	int64_t *wide = AP_NEW_N(ctx->scratch, int64_t, n);

	for (size_t i = 0; i < n; i++)
		wide[i] = v[i];
	return (struct ap_saved_vector){n, wide};
}

/* Sets factors and shard() vectors as the plan file has them. */
static void set_strategy(struct ap_ctx *ctx, const struct ap_placement *p, struct ap_saved_op *op)
{
	struct ap_strategy s = ap_strategy_of(ctx->scratch, p);
	struct ap_saved_vector *in = AP_NEW_N(ctx->scratch, struct ap_saved_vector, s.n + 1), *out = &in[s.n];

	for (uint32_t i = 0; i < s.n; i++)
		in[i] = widen(ctx, s.cut[i], s.rank[i]);
	op->in_strategy = (struct ap_saved_vectors){s.n, in};
	ap_dimensions_factors(ctx->scratch, p, op);
	if (p->bound->nout) {
		int32_t vector[AP_MAX_RANK];

		ap_strategy_vector(p, &p->bound->out[0], vector);
		*out = widen(ctx, vector, p->bound->out[0].rank);
		op->out_strategy = (struct ap_saved_vectors){1, out};
	}
}

/* Sets slices of results, and collectives. */
static void set_results(struct ap_ctx *ctx, const struct ap_plan *p, ap_id i, struct ap_saved_op *op)
{
	const struct ap_node *n = &p->graph->node[i];
	const struct ap_plan_comm *from = p->op[i].comm;
	struct ap_saved_vector *slice = AP_NEW_N(ctx->scratch, struct ap_saved_vector, n->bound.nout);
	struct ap_saved_comm *comm = AP_NEW_N(ctx->scratch, struct ap_saved_comm, p->op[i].ncomm);

	for (uint32_t k = 0; k < n->bound.nout; k++) {
		const struct ap_tensor *t = &p->graph->tensor[n->out[k]];
		int64_t *v = AP_NEW_N(ctx->scratch, int64_t, AP_MAX_RANK);

		ap_plan_slice(p, t, &p->op[i].out[k], v);
		slice[k] = (struct ap_saved_vector){t->shape.rank, v};
	}
	op->out_slice = (struct ap_saved_vectors){n->bound.nout, slice};
	op->ncomm = p->op[i].ncomm;
	op->comm = comm;
	for (uint32_t k = 0; k < op->ncomm; k++)
		comm[k] = (struct ap_saved_comm){.phase = ap_phase_name(from[k].comm.phase),
			.kind = ap_coll_name(from[k].comm.kind), .ranks = ap_plan_comm_ranks(&from[k].comm),
			.bytes = from[k].comm.bytes};
}

void ap_picture_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_picture *out)
{
	const struct facts facts = {
		.graph = p->graph->name,
		.chip = p->machine->chip->name,
		.devices = p->machine->total,
		.servers = p->machine->topo->nserver,
		.batch = p->graph->batch,
		.stages = p->nstage,
		.segments = p->step->pipe ? p->step->pipe->nsegment : 1,
		.micro_batches = p->step->micro_batches,
		.scheduler = ap_plan_scheduler(p),
		.memory_bytes = p->prediction.memory.total,
		.capacity_bytes = p->capacity_bytes,
		.mode = p->search.mode,
		.status = ap_plan_status_name(p->search.status),
		.gap = p->search.gap,
		.step_time_s = p->prediction.step_time_s,
		.compute_s = p->prediction.compute_s,
		.communication_s = p->prediction.communication_s,
		.exposed_communication_s = p->prediction.exposed_communication_s,
		.samples_per_s = p->prediction.samples_per_s,
	};
	struct ap_mark mark = ap_arena_mark(ctx->scratch), operator;
	struct builder b = {.ctx = ctx};

	AP_RESERVE(ctx->scratch, b.sent, p->graph->nnode);
	b.dimensions = (struct ap_dimensions){.batch = p->graph->batch,
		.micro_batches = p->step->micro_batches};
	for (ap_id i = 0; i < p->graph->nnode; i++) {
		struct ap_saved_op op = {.type = p->graph->node[i].type, .cell = p->graph->node[i].cell};

		operator = ap_arena_mark(ctx->scratch);
		ap_dimensions_factors(ctx->scratch, &p->op[i].place, &op);
		ap_dimensions_learn(&b.dimensions, &op);
		ap_arena_release(ctx->scratch, operator);
	}
	for (ap_id i = 0; i < p->graph->nnode; i++) {
		const struct ap_node *n = &p->graph->node[i];
		struct ap_saved_op op = {.name = n->name, .type = n->type, .cell = n->cell,
			.stage = ap_plan_op_stage(p, i), .segment = ap_plan_op_segment(p, i),
			.time_s = ap_plan_op_time_s(&p->op[i].cost)};

		operator = ap_arena_mark(ctx->scratch);
		set_strategy(ctx, &p->op[i].place, &op);
		set_results(ctx, p, i, &op);
		add_operator(&b, &facts, &op);
		ap_arena_release(ctx->scratch, operator);
	}
	add_operands(&b, p->graph);
	for (uint32_t i = 0; i < p->nmove; i++) {
		const struct ap_plan_move *m = &p->move[i];
		const struct ap_reshard_step *step = m->nstep > 0 ? m->step : m->back;
		int n = m->nstep > 0 ? m->nstep : m->nback;
		const char *kind[AP_RESHARD_MAX];

		for (int k = 0; k < n; k++)
			kind[k] = ap_move_name(step[k].move);
		if (m->shares != AP_NONE)
			kind[n++] = "shared";
		set_move(ctx, edge_of(&b, m->to, m->operand), (size_t)n, kind, m->cost.bytes,
			ap_plan_move_time_s(m));
	}
	finish(&b, title_of(&b, &facts), legend_of(ctx, &facts), out);
	ap_arena_release(ctx->scratch, mark);
}

/* ---- plan files ---- */

static bool same_vectors(const struct ap_saved_vectors *a, const struct ap_saved_vectors *b)
{
	if (a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->v[i].n != b->v[i].n ||
			memcmp(a->v[i].v, b->v[i].v, a->v[i].n * sizeof *a->v[i].v) != 0)
			return false;
	return true;
}

static const struct ap_saved_fact *fact_of(const struct ap_saved *plan, const char *section, const char *key)
{
	static const struct ap_saved_fact none = {.text = ""};
	const struct ap_saved_fact *f = ap_saved_fact(plan, section, key);

	return f ? f : &none;
}

/* Operands that are neither results nor graph inputs are parameters and constants, drawn if several
 * operators read them. */
static void add_saved_operands(struct builder *b, const struct ap_saved *plan)
{
	struct ap_arena *scratch = b->ctx->scratch;
	struct ap_map *made = ap_map_create(scratch), *read = ap_map_create(scratch),
		*inputs = ap_map_create(scratch);
	AP_VEC(uint32_t) maker = {0}, reader = {0}; /* reader: AP_NONE if several */
	bool fresh;

	for (uint32_t i = 0; i < plan->ninput; i++)
		ap_map_put_str(inputs, plan->input[i], NULL);
	for (uint32_t i = 0; i < plan->nop; i++) {
		for (uint32_t k = 0; k < plan->op[i].nout; k++) {
			ap_map_put_str(made, plan->op[i].out[k], NULL);
			AP_PUSH(scratch, maker, i);
		}
		for (uint32_t k = 0; k < plan->op[i].nin; k++) {
			ap_id id = ap_map_put_str(read, plan->op[i].in[k], &fresh);

			if (fresh)
				AP_PUSH(scratch, reader, i);
			if (reader.v[id] != i)
				reader.v[id] = AP_NONE;
		}
	}
	for (uint32_t i = 0; i < plan->nop; i++) {
		begin_operands(b);
		for (uint32_t k = 0; k < plan->op[i].nin; k++) {
			const char *name = plan->op[i].in[k];
			ap_id id = ap_map_get_str(made, name);

			add_operand(b, i, name, id != AP_NONE ? (int64_t)maker.v[id]
				: ap_map_get_str(inputs, name) != AP_NONE ? FROM_OUTSIDE
				: reader.v[ap_map_get_str(read, name)] == AP_NONE ? SHARED : OWN);
		}
	}
	begin_operands(b);
}

/* Says of operators that old has otherwise how it has them. They are then no copies of those that it has
 * alike. */
static void hold_against(struct builder *b, const struct ap_saved *plan, const struct ap_saved *old)
{
	struct ap_map *names = ap_map_create(b->ctx->scratch);
	struct ap_dimensions dimensions;

	ap_dimensions_of_saved(old, &dimensions);
	for (uint32_t i = 0; i < old->nop; i++)
		ap_map_put_str(names, old->op[i].name, NULL);
	for (uint32_t i = 0; i < plan->nop; i++) {
		const struct ap_saved_op *op = &plan->op[i], *was;
		ap_id id = ap_map_get_str(names, op->name);
		struct ap_pic_node *node = &b->nodes.v[i];
		int64_t parts[AP_DIMENSION_COUNT];
		struct ap_str text;

		ap_str_init(&text, b->ctx->arena);
		if (id == AP_NONE) {
			ap_str_add(&text, "new");
		} else {
			was = &old->op[id];
			ap_dimensions_parts(&dimensions, was, parts);
			if (memcmp(parts, node->cut_in, sizeof parts) != 0)
				ap_dimensions_add(&text, parts);
			else if (!same_vectors(&op->in_strategy, &was->in_strategy) ||
				!same_vectors(&op->out_strategy, &was->out_strategy))
				ap_str_add(&text, cut_text(b->ctx, was));
			if (was->stage != op->stage)
				ap_str_addf(&text, "%sin stage %" PRId64, text.len ? ", " : "", was->stage);
		}
		if (!text.len)
			continue;
		node->was = id == AP_NONE ? text.s : ap_arena_printf(b->ctx->arena, "was %s", text.s);
		node->key = ap_arena_printf(b->ctx->arena, "%s!%s", node->key, node->was);
	}
}

void ap_picture_of_saved(
	struct ap_ctx *ctx, const struct ap_saved *plan, const struct ap_saved *old, struct ap_picture *out)
{
	const struct facts facts = {
		.graph = fact_of(plan, "graph", "name")->text,
		.chip = fact_of(plan, "machine", "chip")->text,
		.devices = fact_of(plan, "machine", "devices")->integer,
		.servers = fact_of(plan, "machine", "servers")->integer,
		.batch = fact_of(plan, "graph", "batch")->integer,
		.stages = fact_of(plan, "pipeline", "stages")->integer,
		.segments = fact_of(plan, "pipeline", "segments")->integer,
		.micro_batches = fact_of(plan, "pipeline", "micro_batches")->integer,
		.scheduler = fact_of(plan, "pipeline", "scheduler")->text,
		.memory_bytes = fact_of(plan, "memory", "total_bytes")->integer,
		.capacity_bytes = fact_of(plan, "machine", "capacity_bytes")->integer,
		.mode = fact_of(plan, "search", "mode")->text,
		.status = fact_of(plan, "search", "status")->text,
		.gap = fact_of(plan, "search", "gap")->number,
		.step_time_s = fact_of(plan, "prediction", "step_time_s")->number,
		.compute_s = fact_of(plan, "prediction", "compute_s")->number,
		.communication_s = fact_of(plan, "prediction", "communication_s")->number,
		.exposed_communication_s = fact_of(plan, "prediction", "exposed_communication_s")->number,
		.samples_per_s = fact_of(plan, "prediction", "tokens_or_samples_per_s")->number,
	};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct builder b = {.ctx = ctx};

	ap_dimensions_of_saved(plan, &b.dimensions);
	for (uint32_t i = 0; i < plan->nop; i++)
		add_operator(&b, &facts, &plan->op[i]);
	if (old)
		hold_against(&b, plan, old);
	add_saved_operands(&b, plan);
	for (uint32_t i = 0; i < plan->nmove; i++) {
		const struct ap_saved_move *m = &plan->move[i];
		struct ap_pic_edge *edge = edge_of(&b, m->to, m->operand);

		if (edge)
			set_move(ctx, edge, m->nstep, m->step, m->bytes, m->time_s);
	}
	finish(&b, title_of(&b, &facts), legend_of(ctx, &facts), out);
	ap_arena_release(ctx->scratch, mark);
}
