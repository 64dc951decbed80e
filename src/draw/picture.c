/* SPDX-License-Identifier: Apache-2.0 */
#include "draw/picture.h"

#include <inttypes.h>
#include <stddef.h>
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

enum {
	MOST_VECTORS = 3, /* of the operands that are shown */
	MOST_COMMS = 1024 /* read of an operator of a file */
};

/* ---- the builder, wherever operators come from ---- */

struct builder {
	struct ap_ctx *ctx;
	AP_VEC(struct ap_pic_node) nodes;
	AP_VEC(struct ap_pic_edge) edges;
	AP_VEC(int64_t) sent; /* operator -> bytes that it sends forward; -1: it neither sends nor receives */
	AP_VEC(uint32_t) slot; /* edge of each operand of each operator, counted through; AP_NONE */
	AP_VEC(uint32_t) first; /* operator -> its first slot; one more at the end */
};

/* What makes an operand, where no operator does: OWN is a parameter of one operator, not drawn. */
enum { FROM_OUTSIDE = -1, SHARED = -2, OWN = -3 };

static void begin_operands(struct builder *b)
{
	AP_PUSH(b->ctx->scratch, b->first, (uint32_t)b->slot.n);
}

/* source: the operator that makes it, or one of the above. Inputs and shared tensors get a node for each
 * use: one that all layers read (a mask) would knot the picture. */
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

/* The edge of an operand; NULL: there is none. */
static struct ap_pic_edge *edge_of(const struct builder *b, ap_id to, int64_t operand)
{
	uint32_t slot = b->first.v[to] + (uint32_t)operand;

	return slot < b->first.v[to + 1] && b->slot.v[slot] != AP_NONE ? &b->edges.v[b->slot.v[slot]] : NULL;
}

/* "AllGather+Slice 2.00 MiB 14.0 us" from the names of the steps. */
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

struct vector {
	size_t rank;
	const int64_t *v;
};

struct cuts {
	int nfactor;
	struct factor {
		int64_t size, parts, stride;
		bool batch;
	} *factor;
	uint32_t nin;
	struct vector *in; /* strategy vectors */
	struct vector out; /* of the first result; rank 0: none */
	uint32_t nslice;
	struct vector *slice; /* of the results */
	uint32_t ncomm;
	struct comm {
		const char *phase, *kind;
		int64_t ranks, bytes;
	} *comm;
};

static enum ap_pic_class class_of(const struct cuts *c)
{
	bool cut_batch = false, cut_model = false;

	for (int i = 0; i < c->nfactor; i++) {
		cut_batch |= c->factor[i].parts > 1 && c->factor[i].batch;
		cut_model |= c->factor[i].parts > 1 && !c->factor[i].batch;
	}
	if (cut_batch)
		return cut_model ? AP_PIC_BOTH : AP_PIC_BATCH;
	return cut_model ? AP_PIC_MODEL : AP_PIC_WHOLE;
}

static void add_vector(struct ap_str *text, const char *before, const struct vector *v)
{
	ap_str_add(text, before);
	for (size_t d = 0; d < v->rank; d++)
		ap_str_addf(text, "%s%" PRId64, d ? "x" : "", v->v[d]);
}

/* Over how many parts the first result is summed up; 1: it is not. A file may hold anything. */
static int64_t partial_over(const struct cuts *c)
{
	int64_t all = 1, shown;
	bool ok = ap_product(c->out.v, c->out.rank, &shown) && shown > 0;

	for (int i = 0; ok && i < c->nfactor; i++)
		ok = ap_mul(all, c->factor[i].parts, &all);
	return ok && !(all % shown) ? all / shown : 1;
}

/* "8x1, 1x4 to 8x4, partial over 2" */
static const char *cut_text(struct ap_ctx *ctx, const struct cuts *c)
{
	int64_t partial = partial_over(c);
	struct ap_str text;
	uint32_t shown = 0;

	ap_str_init(&text, ctx->arena);
	for (uint32_t i = 0; i < c->nin && shown < MOST_VECTORS; i++)
		if (c->in[i].rank)
			add_vector(&text, shown++ ? ", " : "", &c->in[i]);
	add_vector(&text, text.len && c->out.rank ? " to " : "", &c->out);
	if (partial > 1)
		ap_str_addf(&text, "%spartial over %" PRId64, text.len ? ", " : "", partial);
	return text.s;
}

static bool same_group(const struct comm *a, const struct comm *b)
{
	return !strcmp(a->phase, b->phase) && !strcmp(a->kind, b->kind) && a->ranks == b->ranks;
}

/* Bytes of this collective and of those of its kind after it; -1 when it is not the first. */
static int64_t bytes_of_kind(const struct cuts *c, uint32_t i)
{
	int64_t bytes = c->comm[i].bytes;

	for (uint32_t k = 0; k < i; k++)
		if (same_group(&c->comm[k], &c->comm[i]))
			return -1;
	for (uint32_t k = i + 1; k < c->ncomm; k++)
		if (same_group(&c->comm[k], &c->comm[i]) && !ap_add(bytes, c->comm[k].bytes, &bytes))
			return INT64_MAX;
	return bytes;
}

/* Collectives of one kind over groups of one size are shown as one. */
static const char *comms_text(struct ap_ctx *ctx, const struct cuts *c)
{
	struct ap_str text;
	char buf[32];

	ap_str_init(&text, ctx->arena);
	for (uint32_t i = 0; i < c->ncomm; i++) {
		const struct comm *comm = &c->comm[i];
		bool forward = !strcmp(comm->phase, "forward");
		int64_t bytes = bytes_of_kind(c, i);

		if (bytes >= 0)
			ap_str_addf(&text, "%s%s%s%s of %" PRId64 ", %s", text.len ? "\n" : "",
				forward ? "" : comm->phase, forward ? "" : " ", comm->kind,
				comm->ranks, ap_format_bytes(bytes, buf));
	}
	return text.s;
}

static const char *key_of(struct ap_ctx *ctx, const char *type, const char *part, const struct cuts *c)
{
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	ap_str_add(&text, type);
	for (int i = 0; i < c->nfactor; i++)
		ap_str_addf(&text, " %" PRId64 "/%" PRId64 "/%" PRId64, c->factor[i].size,
			c->factor[i].parts, c->factor[i].stride);
	for (uint32_t i = 0; i < c->nin; i++)
		add_vector(&text, ",", &c->in[i]);
	for (uint32_t i = 0; i < c->nslice; i++)
		add_vector(&text, ";", &c->slice[i]);
	for (uint32_t i = 0; i < c->ncomm; i++)
		ap_str_addf(&text, "|%s %s %" PRId64 " %" PRId64, c->comm[i].phase, c->comm[i].kind,
			c->comm[i].ranks, c->comm[i].bytes);
	if (part)
		ap_str_addf(&text, "@%s", part); /* no loop leads through several stages */
	return text.s;
}

/* Adds an operator whose texts and class follow from its cuts. sends: it is a Send or a Receive. */
static void add_operator(struct builder *b, struct ap_pic_node node, const struct cuts *c, bool sends)
{
	int64_t sent = sends ? 0 : -1;
	struct ap_str slice;

	ap_str_init(&slice, b->ctx->arena);
	if (c->nslice && c->slice[0].rank)
		add_vector(&slice, "slice ", &c->slice[0]);
	node.cls = class_of(c);
	node.cut = cut_text(b->ctx, c);
	node.slice = slice.s;
	node.comms = comms_text(b->ctx, c);
	node.ncomm = c->ncomm;
	node.key = key_of(b->ctx, node.type, node.part, c);
	AP_PUSH(b->ctx->arena, b->nodes, node);
	for (uint32_t i = 0; sends && !sent && i < c->ncomm; i++)
		if (!strcmp(c->comm[i].kind, "Send") && !strcmp(c->comm[i].phase, "forward"))
			sent = c->comm[i].bytes;
	AP_PUSH(b->ctx->scratch, b->sent, sent);
}

/* "stage 0, segment 1", NULL where there is one stage. */
static const char *part_text(struct ap_ctx *ctx, int64_t nstage, int64_t nsegment, int64_t stage,
	int64_t segment)
{
	if (nstage <= 1)
		return NULL;
	if (nsegment <= 1)
		return ap_arena_printf(ctx->arena, "stage %" PRId64, stage);
	return ap_arena_printf(ctx->arena, "stage %" PRId64 ", segment %" PRId64, stage, segment);
}

/* ---- title and legend ---- */

struct facts {
	const char *graph, *chip, *scheduler, *mode, *status;
	int64_t stages, segments, micro_batches; /* stages 0 or 1: no pipeline */
	int64_t devices, servers, batch, memory_bytes, capacity_bytes;
	double gap, step_time_s, compute_s, communication_s, exposed_communication_s, samples_per_s;
};

/* "NAME on 8 x CHIP: 1.23 ms a step" */
static const char *title_of(struct ap_ctx *ctx, const struct facts *f)
{
	char buf[32];

	return ap_arena_printf(ctx->arena, "%s on %" PRId64 " x %s: %s a step", f->graph, f->devices,
		f->chip, ap_format_seconds(f->step_time_s, buf));
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

static int64_t *widen(struct ap_ctx *ctx, const int32_t *v, size_t n)
{
	int64_t *wide = AP_NEW_N(ctx->scratch, int64_t, n);

	for (size_t i = 0; i < n; i++)
		wide[i] = v[i];
	return wide;
}

/* Factors, and the vectors that shard() takes, as the plan file has them. */
static void set_strategy(struct ap_ctx *ctx, const struct ap_placement *p, struct cuts *c)
{
	uint32_t cap = p->bound->nin + (uint32_t)strlen(p->bound->row->strategy);
	uint8_t *rank = AP_NEW_N(ctx->scratch, uint8_t, cap);
	int32_t(*cut)[AP_MAX_RANK] = ap_arena_alloc(ctx->scratch, cap, sizeof *cut);
	int32_t out[AP_MAX_RANK];

	c->nfactor = p->bound->nfactor;
	c->factor = AP_NEW_N(ctx->scratch, struct factor, AP_MAX_FACTOR);
	for (int i = 0; i < c->nfactor; i++)
		c->factor[i] = (struct factor){p->bound->factor[i].size, p->count[i], p->stride[i],
			p->bound->factor[i].flags & AP_FACTOR_BATCH};
	c->nin = ap_space_to_strategy(p, rank, cut, cap);
	c->in = AP_NEW_N(ctx->scratch, struct vector, cap);
	for (uint32_t i = 0; i < c->nin; i++)
		c->in[i] = (struct vector){rank[i], widen(ctx, cut[i], rank[i])};
	if (!p->bound->nout)
		return;
	ap_strategy_vector(p, &p->bound->out[0], out);
	c->out.rank = p->bound->out[0].rank;
	c->out.v = widen(ctx, out, c->out.rank);
}

/* Slices of the results, and collectives. */
static void set_results(struct ap_ctx *ctx, const struct ap_plan *p, ap_id i, struct cuts *c)
{
	const struct ap_node *n = &p->graph->node[i];
	const struct ap_plan_op *op = &p->op[i];

	c->nslice = n->bound.nout;
	c->slice = AP_NEW_N(ctx->scratch, struct vector, c->nslice);
	for (uint32_t k = 0; k < c->nslice; k++) {
		const struct ap_tensor *t = &p->graph->tensor[n->out[k]];
		int64_t *v = AP_NEW_N(ctx->scratch, int64_t, AP_MAX_RANK);

		ap_plan_slice(p, t, &op->out[k], v);
		c->slice[k] = (struct vector){t->shape.rank, v};
	}
	c->ncomm = op->ncomm;
	c->comm = AP_NEW_N(ctx->scratch, struct comm, op->ncomm);
	for (uint32_t k = 0; k < op->ncomm; k++)
		c->comm[k] = (struct comm){ap_phase_name(op->comm[k].comm.phase),
			ap_coll_name(op->comm[k].comm.kind), ap_plan_comm_ranks(&op->comm[k].comm),
			op->comm[k].comm.bytes};
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
	for (ap_id i = 0; i < p->graph->nnode; i++) {
		const struct ap_node *n = &p->graph->node[i];
		struct ap_pic_node node = {.name = n->name, .type = n->type, .cell = n->cell,
			.time_s = ap_plan_op_time_s(&p->op[i].cost),
			.part = part_text(ctx, facts.stages, facts.segments, ap_plan_op_stage(p, i),
				ap_plan_op_segment(p, i))};
		struct cuts cuts = {0};

		operator = ap_arena_mark(ctx->scratch);
		set_strategy(ctx, &p->op[i].place, &cuts);
		set_results(ctx, p, i, &cuts);
		add_operator(&b, node, &cuts, n->peer >= 0);
		ap_arena_release(ctx->scratch, operator);
	}
	add_operands(&b, p->graph);
	for (uint32_t i = 0; i < p->nmove; i++) {
		const struct ap_plan_move *m = &p->move[i];
		const char *kind[AP_RESHARD_MAX];

		for (int k = 0; k < m->nstep; k++)
			kind[k] = ap_move_name(m->step[k].move);
		set_move(ctx, edge_of(&b, m->to, m->operand), (size_t)m->nstep, kind, m->cost.bytes,
			ap_plan_move_time_s(m));
	}
	finish(&b, title_of(ctx, &facts), legend_of(ctx, &facts), out);
	ap_arena_release(ctx->scratch, mark);
}

/* ---- plan files ---- */

struct file {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	struct builder b;
	struct facts facts;
	struct ap_map *oper; /* names of operators: ids are nodes */
	struct ap_map *made; /* names of tensors that operators make: ids into maker */
	struct ap_map *read; /* names of tensors that operators read: ids into reader */
	struct ap_map *inputs; /* names of the inputs of the graph */
	AP_VEC(uint32_t) maker, reader; /* reader: AP_NONE where several operators read it */
};

static enum ap_status fault(struct file *f, const struct ap_jv *v, const char *text)
{
	return ap_json_report(f->ctx, f->doc, v, AP_ERROR, AP_MEANING, NULL, "plan-file", "%s",
		text);
}

static enum ap_status need(struct file *f, const struct ap_jv *v, enum ap_jtype type)
{
	if (ap_jv_type(v) == type)
		return AP_OK;
	return fault(f, v, type == AP_JOBJECT ? "expected an object" :
		type == AP_JARRAY ? "expected an array" : "expected a string");
}

static enum ap_status get_int(struct file *f, const struct ap_jv *obj, const char *key, int64_t least,
	int64_t most, int64_t *r)
{
	return ap_json_get_int(f->ctx, f->doc, obj, key, least, most, r);
}

static enum ap_status get_num(struct file *f, const struct ap_jv *obj, const char *key, double *r)
{
	return ap_json_get_num(f->ctx, f->doc, obj, key, 0, 1e300, r);
}

static enum ap_status get_str(struct file *f, const struct ap_jv *obj, const char *key, const char **r)
{
	return ap_json_get_str(f->ctx, f->doc, obj, key, r);
}

/* The elements of a list: the first one, and how many there are. */
static enum ap_status get_list(struct file *f, const struct ap_jv *obj, const char *key,
	const struct ap_jv **first, size_t *n)
{
	const struct ap_jv *list;

	AP_TRY(ap_json_get_arr(f->ctx, f->doc, obj, key, &list));
	*first = ap_jv_first(list);
	*n = ap_jv_count(list);
	return AP_OK;
}

static enum ap_status read_time(struct file *f, const struct ap_jv *oper, double *time_s)
{
	static const struct {
		const char *key;
		size_t at;
	} times[] = {
		{"forward_s", offsetof(struct ap_op_cost, forward_s)},
		{"backward_s", offsetof(struct ap_op_cost, backward_s)},
		{"forward_communication_s", offsetof(struct ap_op_cost, forward_comm_s)},
		{"backward_communication_s", offsetof(struct ap_op_cost, backward_comm_s)},
		{"gradient_s", offsetof(struct ap_op_cost, gradient_s)},
		{"optimizer_s", offsetof(struct ap_op_cost, optimizer_s)},
		{"input_s", offsetof(struct ap_op_cost, input_s)},
	};
	const struct ap_jv *cost;
	struct ap_op_cost c = {0};

	AP_TRY(ap_json_get_obj(f->ctx, f->doc, oper, "cost", &cost));
	for (size_t i = 0; i < AP_COUNT(times); i++)
		AP_TRY(get_num(f, cost, times[i].key, (double *)((char *)&c + times[i].at)));
	*time_s = ap_plan_op_time_s(&c);
	return AP_OK;
}

static enum ap_status read_factors(struct file *f, const struct ap_jv *oper, struct cuts *cuts)
{
	const struct ap_jv *v;
	size_t n;

	AP_TRY(get_list(f, oper, "factors", &v, &n));
	cuts->factor = AP_NEW_N(f->ctx->scratch, struct factor, n);
	for (; v; v = ap_jv_next(v)) {
		struct factor *factor = &cuts->factor[cuts->nfactor++];

		AP_TRY(need(f, v, AP_JOBJECT));
		AP_TRY(get_int(f, v, "size", 1, INT64_MAX, &factor->size));
		AP_TRY(get_int(f, v, "parts", 1, AP_MAX_DEVICES, &factor->parts));
		AP_TRY(get_int(f, v, "stride", 0, AP_MAX_DEVICES, &factor->stride));
		AP_TRY(ap_json_opt_bool(f->ctx, f->doc, v, "batch", &factor->batch));
	}
	return AP_OK;
}

/* A list of lists of integers from 1. */
static enum ap_status read_vectors(struct file *f, const struct ap_jv *oper, const char *key,
	int64_t most, uint32_t *n, struct vector **out)
{
	struct vector *vector;
	const struct ap_jv *v;
	size_t count;

	*n = 0;
	AP_TRY(get_list(f, oper, key, &v, &count));
	*out = vector = AP_NEW_N(f->ctx->scratch, struct vector, count);
	for (; v; v = ap_jv_next(v), (*n)++) {
		int64_t *ints;

		AP_TRY(need(f, v, AP_JARRAY));
		AP_TRY(ap_json_ints(f->ctx, f->doc, v, 1, most, &ints, &vector[*n].rank));
		vector[*n].v = ints;
	}
	return AP_OK;
}

/* The group of a collective is told by its axes: pairs of stride and size. */
static enum ap_status read_comms(struct file *f, const struct ap_jv *oper, struct cuts *cuts)
{
	const struct ap_jv *v;
	size_t n;

	AP_TRY(get_list(f, oper, "communications", &v, &n));
	cuts->comm = AP_NEW_N(f->ctx->scratch, struct comm, n);
	for (; v; v = ap_jv_next(v)) {
		struct comm *comm = &cuts->comm[cuts->ncomm];
		struct vector *axis;
		uint32_t naxis;

		if (cuts->ncomm++ == MOST_COMMS)
			return fault(f, v, "too many collectives");
		AP_TRY(need(f, v, AP_JOBJECT));
		AP_TRY(get_str(f, v, "phase", &comm->phase));
		AP_TRY(get_str(f, v, "kind", &comm->kind));
		AP_TRY(get_int(f, v, "bytes", 0, INT64_MAX, &comm->bytes));
		AP_TRY(read_vectors(f, v, "axes", AP_MAX_DEVICES, &naxis, &axis));
		comm->ranks = 1;
		for (uint32_t i = 0; i < naxis; i++)
			if (axis[i].rank != 2 || !ap_mul(comm->ranks, axis[i].v[1], &comm->ranks))
				return fault(f, ap_jv_get(v, "axes"), "expected pairs of stride and size");
	}
	return AP_OK;
}

/* Notes which tensors the operator makes, and which several operators read. */
static enum ap_status read_tensors(struct file *f, const struct ap_jv *oper, uint32_t node)
{
	const struct ap_jv *v;
	bool fresh;
	size_t n;

	AP_TRY(get_list(f, oper, "outputs", &v, &n));
	for (; v; v = ap_jv_next(v)) {
		AP_TRY(need(f, v, AP_JSTRING));
		ap_map_put_str(f->made, ap_jv_str(v), &fresh);
		if (!fresh)
			return fault(f, v, "two operators make this tensor");
		AP_PUSH(f->ctx->scratch, f->maker, node);
	}
	AP_TRY(get_list(f, oper, "inputs", &v, &n));
	for (; v; v = ap_jv_next(v)) {
		ap_id id;

		AP_TRY(need(f, v, AP_JSTRING));
		id = ap_map_put_str(f->read, ap_jv_str(v), &fresh);
		if (fresh)
			AP_PUSH(f->ctx->scratch, f->reader, node);
		if (f->reader.v[id] != node)
			f->reader.v[id] = AP_NONE;
	}
	return AP_OK;
}

static enum ap_status read_operator(struct file *f, const struct ap_jv *oper)
{
	struct ap_pic_node node = {.kind = AP_PIC_OPERATOR};
	int64_t stage = 0, segment = 0;
	struct cuts cuts = {0};
	struct vector *out;
	uint32_t nout;
	bool fresh;

	AP_TRY(need(f, oper, AP_JOBJECT));
	AP_TRY(get_str(f, oper, "name", &node.name));
	AP_TRY(get_str(f, oper, "type", &node.type));
	AP_TRY(get_str(f, oper, "cell", &node.cell));
	if (f->facts.stages > 1) {
		AP_TRY(get_int(f, oper, "stage", 0, f->facts.stages - 1, &stage));
		AP_TRY(get_int(f, oper, "segment", 0, f->facts.segments - 1, &segment));
	}
	node.part = part_text(f->ctx, f->facts.stages, f->facts.segments, stage, segment);
	AP_TRY(read_time(f, oper, &node.time_s));
	AP_TRY(read_factors(f, oper, &cuts));
	AP_TRY(read_vectors(f, oper, "in_strategy", AP_MAX_DEVICES, &cuts.nin, &cuts.in));
	AP_TRY(read_vectors(f, oper, "out_strategy", AP_MAX_DEVICES, &nout, &out));
	if (nout)
		cuts.out = out[0];
	AP_TRY(read_vectors(f, oper, "out_slice", INT64_MAX, &cuts.nslice, &cuts.slice));
	AP_TRY(read_comms(f, oper, &cuts));
	AP_TRY(read_tensors(f, oper, (uint32_t)f->b.nodes.n));
	ap_map_put_str(f->oper, node.name, &fresh);
	if (!fresh)
		return fault(f, oper, "an operator of this name is there already");
	add_operator(&f->b, node, &cuts, !strcmp(node.type, "Send") || !strcmp(node.type, "Receive"));
	return AP_OK;
}

/* Operands that neither an operator makes nor the graph is given are parameters and constants:
 * drawn where several operators read them. */
static int64_t source_of(const struct file *f, const char *tensor)
{
	ap_id id = ap_map_get_str(f->made, tensor);

	if (id != AP_NONE)
		return f->maker.v[id];
	if (ap_map_get_str(f->inputs, tensor) != AP_NONE)
		return FROM_OUTSIDE;
	return f->reader.v[ap_map_get_str(f->read, tensor)] == AP_NONE ? SHARED : OWN;
}

static enum ap_status read_operators(struct file *f, const struct ap_jv *root)
{
	const struct ap_jv *first, *v;
	uint32_t node = 0;
	size_t n;

	AP_TRY(get_list(f, root, "operators", &first, &n));
	for (v = first; v; v = ap_jv_next(v))
		AP_TRY(read_operator(f, v));
	for (v = first; v; v = ap_jv_next(v), node++) {
		const struct ap_jv *in;

		AP_TRY(get_list(f, v, "inputs", &in, &n));
		begin_operands(&f->b);
		for (; in; in = ap_jv_next(in))
			add_operand(&f->b, node, ap_jv_str(in), source_of(f, ap_jv_str(in)));
	}
	begin_operands(&f->b);
	return AP_OK;
}

static enum ap_status read_moves(struct file *f, const struct ap_jv *root)
{
	const struct ap_jv *v, *step;
	size_t n;

	AP_TRY(get_list(f, root, "redistributions", &v, &n));
	for (; v; v = ap_jv_next(v)) {
		struct ap_pic_edge *edge;
		int64_t operand, bytes;
		const char *name, **kind;
		double time_s;
		ap_id to;

		AP_TRY(need(f, v, AP_JOBJECT));
		AP_TRY(get_str(f, v, "to", &name));
		AP_TRY(get_int(f, v, "operand", 0, UINT16_MAX, &operand));
		to = ap_map_get_str(f->oper, name);
		if (to == AP_NONE)
			return fault(f, v, "\"to\" is no operator of this plan");
		edge = edge_of(&f->b, to, operand);
		if (!edge)
			return fault(f, v, "\"operand\" is nothing that could be redistributed");
		AP_TRY(get_list(f, v, "steps", &step, &n));
		kind = AP_NEW_N(f->ctx->scratch, const char *, n);
		for (n = 0; step; step = ap_jv_next(step)) {
			AP_TRY(need(f, step, AP_JOBJECT));
			AP_TRY(get_str(f, step, "kind", &kind[n++]));
		}
		AP_TRY(get_int(f, v, "bytes", 0, INT64_MAX, &bytes));
		AP_TRY(get_num(f, v, "time_s", &time_s));
		set_move(f->ctx, edge, n, kind, bytes, time_s);
	}
	return AP_OK;
}

/* The most that a device of any stage needs. */
static enum ap_status read_memory(struct file *f, const struct ap_jv *prediction)
{
	const struct ap_jv *v;
	size_t n;

	AP_TRY(get_list(f, prediction, "memory", &v, &n));
	for (; v; v = ap_jv_next(v)) {
		int64_t bytes;

		AP_TRY(need(f, v, AP_JOBJECT));
		AP_TRY(get_int(f, v, "total_bytes", 0, INT64_MAX, &bytes));
		if (bytes > f->facts.memory_bytes)
			f->facts.memory_bytes = bytes;
	}
	return AP_OK;
}

#define FACT(member) offsetof(struct facts, member)

static enum ap_status read_facts(struct file *f, const struct ap_jv *root)
{
	static const struct fact {
		const char *object, *key;
		enum { INT, NUMBER, TEXT, MEMORY } type;
		size_t at;
		int64_t least, most; /* of an INT */
	} facts[] = {
		{"graph", "name", TEXT, FACT(graph), 0, 0},
		{"graph", "batch", INT, FACT(batch), 0, INT64_MAX},
		{"machine", "devices", INT, FACT(devices), 1, AP_MAX_DEVICES},
		{"machine", "servers", INT, FACT(servers), 0, AP_MAX_DEVICES},
		{"machine", "chip", TEXT, FACT(chip), 0, 0},
		{"machine", "capacity_bytes", INT, FACT(capacity_bytes), 0, INT64_MAX},
		{"prediction", "step_time_s", NUMBER, FACT(step_time_s), 0, 0},
		{"prediction", "compute_s", NUMBER, FACT(compute_s), 0, 0},
		{"prediction", "communication_s", NUMBER, FACT(communication_s), 0, 0},
		{"prediction", "exposed_communication_s", NUMBER, FACT(exposed_communication_s), 0, 0},
		{"prediction", "tokens_or_samples_per_s", NUMBER, FACT(samples_per_s), 0, 0},
		{"prediction", "memory", MEMORY, 0, 0, 0},
		{"search", "mode", TEXT, FACT(mode), 0, 0},
		{"search", "status", TEXT, FACT(status), 0, 0},
		{"search", "gap", NUMBER, FACT(gap), 0, 0},
		{"pipeline", "stages", INT, FACT(stages), 1, AP_MAX_DEVICES},
		{"pipeline", "segments", INT, FACT(segments), 1, INT32_MAX},
		{"pipeline", "micro_batches", INT, FACT(micro_batches), 1, INT64_MAX},
		{"pipeline", "scheduler", TEXT, FACT(scheduler), 0, 0},
	};
	const struct ap_jv *pipe = ap_jv_get(root, "pipeline");

	for (size_t i = 0; i < AP_COUNT(facts); i++) {
		const struct fact *fact = &facts[i];
		char *at = (char *)&f->facts + fact->at;
		const struct ap_jv *obj = pipe;

		/* plans without a pipeline say null, those of before nothing */
		if (strcmp(fact->object, "pipeline") != 0)
			AP_TRY(ap_json_get_obj(f->ctx, f->doc, root, fact->object, &obj));
		else if (!pipe || ap_jv_type(pipe) == AP_JNULL)
			continue;
		else
			AP_TRY(need(f, pipe, AP_JOBJECT));
		AP_TRY(fact->type == INT ? get_int(f, obj, fact->key, fact->least, fact->most, (int64_t *)at)
			: fact->type == NUMBER ? get_num(f, obj, fact->key, (double *)at)
			: fact->type == TEXT ? get_str(f, obj, fact->key, (const char **)at)
					     : read_memory(f, obj));
	}
	return AP_OK;
}

static enum ap_status read_plan(struct file *f)
{
	const struct ap_jv *root = ap_json_root(f->doc), *v;
	const char *schema;
	size_t n;

	AP_TRY(need(f, root, AP_JOBJECT));
	AP_TRY(get_str(f, root, "schema", &schema));
	if (strcmp(schema, "autopar-plan/1") != 0)
		return fault(f, ap_jv_get(root, "schema"), "expected \"autopar-plan/1\"");
	AP_TRY(read_facts(f, root));
	AP_TRY(get_list(f, ap_jv_get(root, "graph"), "inputs", &v, &n));
	for (; v; v = ap_jv_next(v)) {
		AP_TRY(need(f, v, AP_JSTRING));
		ap_map_put_str(f->inputs, ap_jv_str(v), NULL);
	}
	AP_TRY(read_operators(f, root));
	return read_moves(f, root);
}

enum ap_status ap_picture_of_file(struct ap_ctx *ctx, const struct ap_json *plan_doc,
	struct ap_picture *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct file f = {.ctx = ctx, .doc = plan_doc, .b = {.ctx = ctx},
		.oper = ap_map_create(ctx->scratch), .made = ap_map_create(ctx->scratch),
		.read = ap_map_create(ctx->scratch), .inputs = ap_map_create(ctx->scratch)};
	enum ap_status st = read_plan(&f);

	if (st == AP_OK)
		finish(&f.b, title_of(ctx, &f.facts), legend_of(ctx, &f.facts), out);
	ap_arena_release(ctx->scratch, mark);
	return st;
}
