/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of a plan file: the same as that of the plan it was written from. */
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/vec.h"
#include "draw/picture.h"
#include "plan/terms.h"

#define SEVERAL UINT32_MAX

enum { MOST_COMMS = 1024 }; /* read of an operator */

struct file {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	struct ap_pic_builder b;
	struct ap_map *oper; /* names of operators: ids are nodes */
	struct ap_map *made; /* names of tensors that operators make: ids into maker */
	struct ap_map *read; /* names of tensors that operators read: ids into reader */
	AP_VEC(uint32_t) maker, reader, slot; /* reader: or SEVERAL; slot: edge of each operand
	                                       * of each operator, counted through */
	uint32_t *first; /* operator -> its first slot */
	int64_t nstage, nsegment;
	AP_VEC(int64_t) sent; /* operator -> bytes that it sends forward; -1: it neither sends nor receives */
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

static enum ap_status get_num(struct file *f, const struct ap_jv *obj, const char *key, double *r)
{
	return ap_json_get_num(f->ctx, f->doc, obj, key, 0, 1e300, r);
}

static enum ap_status read_time(struct file *f, const struct ap_jv *oper, double *time_s)
{
	const struct ap_jv *cost;
	struct ap_op_cost c = {0};

	AP_TRY(ap_json_get_obj(f->ctx, f->doc, oper, "cost", &cost));
	AP_TRY(get_num(f, cost, "forward_s", &c.forward_s));
	AP_TRY(get_num(f, cost, "backward_s", &c.backward_s));
	AP_TRY(get_num(f, cost, "forward_communication_s", &c.forward_comm_s));
	AP_TRY(get_num(f, cost, "backward_communication_s", &c.backward_comm_s));
	AP_TRY(get_num(f, cost, "gradient_s", &c.gradient_s));
	AP_TRY(get_num(f, cost, "optimizer_s", &c.optimizer_s));
	AP_TRY(get_num(f, cost, "input_s", &c.input_s));
	*time_s = ap_plan_op_time_s(&c);
	return AP_OK;
}

static enum ap_status read_factors(struct file *f, const struct ap_jv *oper,
	struct ap_pic_cuts *cuts)
{
	const struct ap_jv *list;
	struct ap_pic_factor *factor;

	AP_TRY(ap_json_get_arr(f->ctx, f->doc, oper, "factors", &list));
	cuts->factor = factor = AP_NEW_N(f->ctx->scratch, struct ap_pic_factor, ap_jv_count(list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v), factor++) {
		AP_TRY(need(f, v, AP_JOBJECT));
		AP_TRY(ap_json_get_int(f->ctx, f->doc, v, "size", 1, INT64_MAX, &factor->size));
		AP_TRY(ap_json_get_int(f->ctx, f->doc, v, "parts", 1, AP_MAX_DEVICES,
			&factor->parts));
		AP_TRY(ap_json_get_int(f->ctx, f->doc, v, "stride", 0, AP_MAX_DEVICES,
			&factor->stride));
		AP_TRY(ap_json_opt_bool(f->ctx, f->doc, v, "batch", &factor->batch));
		cuts->nfactor++;
	}
	return AP_OK;
}

/* A list of lists of integers from 1. */
static enum ap_status read_vectors(struct file *f, const struct ap_jv *oper, const char *key,
	int64_t most, uint32_t *n, const struct ap_pic_vector **out)
{
	struct ap_pic_vector *vector;
	const struct ap_jv *list;

	*n = 0;
	AP_TRY(ap_json_get_arr(f->ctx, f->doc, oper, key, &list));
	*out = vector = AP_NEW_N(f->ctx->scratch, struct ap_pic_vector, ap_jv_count(list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v), (*n)++) {
		int64_t *ints;

		AP_TRY(need(f, v, AP_JARRAY));
		AP_TRY(ap_json_ints(f->ctx, f->doc, v, 1, most, &ints, &vector[*n].rank));
		vector[*n].v = ints;
	}
	return AP_OK;
}

/* How many ranks the group of a collective has, by its axes: pairs of stride and size. */
static enum ap_status count_ranks(struct file *f, const struct ap_jv *comm, int64_t *ranks)
{
	const struct ap_pic_vector *axis;
	uint32_t n;

	*ranks = 1;
	AP_TRY(read_vectors(f, comm, "axes", AP_MAX_DEVICES, &n, &axis));
	for (uint32_t i = 0; i < n; i++)
		if (axis[i].rank != 2 || !ap_mul(*ranks, axis[i].v[1], ranks))
			return fault(f, ap_jv_get(comm, "axes"), "expected pairs of stride and size");
	return AP_OK;
}

static enum ap_status read_comms(struct file *f, const struct ap_jv *oper, struct ap_pic_cuts *cuts)
{
	const struct ap_jv *list;
	struct ap_pic_comm *comm;

	AP_TRY(ap_json_get_arr(f->ctx, f->doc, oper, "communications", &list));
	cuts->comm = comm = AP_NEW_N(f->ctx->scratch, struct ap_pic_comm, ap_jv_count(list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v), comm++) {
		if (cuts->ncomm == MOST_COMMS)
			return fault(f, v, "too many collectives");
		AP_TRY(need(f, v, AP_JOBJECT));
		AP_TRY(ap_json_get_str(f->ctx, f->doc, v, "phase", &comm->phase));
		AP_TRY(ap_json_get_str(f->ctx, f->doc, v, "kind", &comm->kind));
		AP_TRY(ap_json_get_int(f->ctx, f->doc, v, "bytes", 0, INT64_MAX, &comm->bytes));
		AP_TRY(count_ranks(f, v, &comm->ranks));
		cuts->ncomm++;
	}
	return AP_OK;
}

/* What a Send sends; a Receive nothing. */
static int64_t sent_by(const struct ap_pic_node *node, const struct ap_pic_cuts *cuts)
{
	bool sends = !strcmp(node->type, "Send");

	for (uint32_t i = 0; sends && i < cuts->ncomm; i++)
		if (!strcmp(cuts->comm[i].kind, "Send") && !strcmp(cuts->comm[i].phase, "forward"))
			return cuts->comm[i].bytes;
	return sends || !strcmp(node->type, "Receive") ? 0 : -1;
}

static enum ap_status read_part(struct file *f, const struct ap_jv *oper, struct ap_pic_node *node)
{
	int64_t stage = 0, segment = 0;

	if (f->nstage <= 1)
		return AP_OK;
	AP_TRY(ap_json_get_int(f->ctx, f->doc, oper, "stage", 0, f->nstage - 1, &stage));
	AP_TRY(ap_json_get_int(f->ctx, f->doc, oper, "segment", 0, f->nsegment - 1, &segment));
	node->part = ap_pic_part(f->ctx, f->nstage, f->nsegment, stage, segment);
	return AP_OK;
}

static enum ap_status read_cuts(struct file *f, const struct ap_jv *oper, struct ap_pic_node *node)
{
	const struct ap_pic_vector *out;
	struct ap_pic_cuts cuts = {0};
	uint32_t nout;

	AP_TRY(read_factors(f, oper, &cuts));
	AP_TRY(read_vectors(f, oper, "in_strategy", AP_MAX_DEVICES, &cuts.nin, &cuts.in));
	AP_TRY(read_vectors(f, oper, "out_strategy", AP_MAX_DEVICES, &nout, &out));
	if (nout)
		cuts.out = out[0];
	AP_TRY(read_vectors(f, oper, "out_slice", INT64_MAX, &cuts.nslice, &cuts.slice));
	AP_TRY(read_comms(f, oper, &cuts));
	ap_pic_set_cuts(f->ctx, node, &cuts);
	AP_PUSH(f->ctx->scratch, f->sent, sent_by(node, &cuts));
	return AP_OK;
}

/* Which tensors do several operators read? */
static enum ap_status read_users(struct file *f, const struct ap_jv *oper, uint32_t node)
{
	const struct ap_jv *list;

	AP_TRY(ap_json_get_arr(f->ctx, f->doc, oper, "inputs", &list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		bool fresh;
		ap_id id;

		AP_TRY(need(f, v, AP_JSTRING));
		id = ap_map_put_str(f->read, ap_jv_str(v), &fresh);
		if (fresh)
			AP_PUSH(f->ctx->scratch, f->reader, node);
		if (f->reader.v[id] != node)
			f->reader.v[id] = SEVERAL;
	}
	return AP_OK;
}

static enum ap_status read_outputs(struct file *f, const struct ap_jv *oper, uint32_t node)
{
	const struct ap_jv *list;

	AP_TRY(ap_json_get_arr(f->ctx, f->doc, oper, "outputs", &list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		bool fresh;

		AP_TRY(need(f, v, AP_JSTRING));
		ap_map_put_str(f->made, ap_jv_str(v), &fresh);
		if (!fresh)
			return fault(f, v, "two operators make this tensor");
		AP_PUSH(f->ctx->scratch, f->maker, node);
	}
	return AP_OK;
}

static enum ap_status read_operator(struct file *f, const struct ap_jv *oper)
{
	struct ap_pic_node node = {.kind = AP_PIC_OPERATOR};
	uint32_t index = (uint32_t)f->b.nodes.n;
	bool fresh;

	AP_TRY(need(f, oper, AP_JOBJECT));
	AP_TRY(ap_json_get_str(f->ctx, f->doc, oper, "name", &node.name));
	AP_TRY(ap_json_get_str(f->ctx, f->doc, oper, "type", &node.type));
	AP_TRY(ap_json_get_str(f->ctx, f->doc, oper, "cell", &node.cell));
	AP_TRY(read_part(f, oper, &node));
	AP_TRY(read_time(f, oper, &node.time_s));
	AP_TRY(read_cuts(f, oper, &node));
	AP_TRY(read_outputs(f, oper, index));
	AP_TRY(read_users(f, oper, index));
	ap_map_put_str(f->oper, node.name, &fresh);
	if (!fresh)
		return fault(f, oper, "an operator of this name is there already");
	AP_PUSH(f->ctx->arena, f->b.nodes, node);
	return AP_OK;
}

/* Operands that neither an operator makes nor the graph is given are parameters and constants:
 * drawn where several operators read them. False: not drawn. */
static bool find_source(struct file *f, const struct ap_map *inputs, const char *tensor,
	uint32_t *from)
{
	ap_id id = ap_map_get_str(f->made, tensor);

	if (id != AP_NONE)
		*from = f->maker.v[id];
	else if (ap_map_get_str(inputs, tensor) != AP_NONE)
		*from = ap_pic_add_input(&f->b, AP_PIC_INPUT, tensor);
	else if (f->reader.v[ap_map_get_str(f->read, tensor)] == SEVERAL)
		*from = ap_pic_add_input(&f->b, AP_PIC_SHARED, tensor);
	else
		return false;
	return true;
}

static enum ap_status read_edges(struct file *f, const struct ap_jv *oper, uint32_t node,
	const struct ap_map *inputs)
{
	const struct ap_jv *list;

	AP_TRY(ap_json_get_arr(f->ctx, f->doc, oper, "inputs", &list));
	f->first[node] = (uint32_t)f->slot.n;
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		struct ap_pic_edge edge = {.to = node, .tensor = ap_jv_str(v), .moves = ""};
		bool drawn = find_source(f, inputs, edge.tensor, &edge.from);
		uint32_t index = drawn ? (uint32_t)f->b.edges.n : UINT32_MAX;

		AP_PUSH(f->ctx->scratch, f->slot, index);
		if (drawn && edge.from < f->sent.n && f->sent.v[edge.from] >= 0) {
			edge.sent = f->sent.v[node] >= 0;
			edge.sent_bytes = edge.sent ? f->sent.v[edge.from] : 0;
		}
		if (drawn)
			AP_PUSH(f->ctx->arena, f->b.edges, edge);
	}
	f->first[node + 1] = (uint32_t)f->slot.n;
	return AP_OK;
}

static enum ap_status read_operators(struct file *f, const struct ap_jv *root,
	const struct ap_map *inputs)
{
	const struct ap_jv *list;
	uint32_t node = 0;

	AP_TRY(ap_json_get_arr(f->ctx, f->doc, root, "operators", &list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		AP_TRY(read_operator(f, v));
	f->first = AP_NEW_N(f->ctx->scratch, uint32_t, f->b.nodes.n + 1);
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		AP_TRY(read_edges(f, v, node++, inputs));
	return AP_OK;
}

static enum ap_status read_steps(struct file *f, const struct ap_jv *move,
	struct ap_pic_edge *edge)
{
	const struct ap_jv *list;
	const char **kind;
	size_t n = 0;

	AP_TRY(ap_json_get_arr(f->ctx, f->doc, move, "steps", &list));
	kind = AP_NEW_N(f->ctx->scratch, const char *, ap_jv_count(list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		AP_TRY(need(f, v, AP_JOBJECT));
		AP_TRY(ap_json_get_str(f->ctx, f->doc, v, "kind", &kind[n++]));
	}
	AP_TRY(ap_json_get_int(f->ctx, f->doc, move, "bytes", 0, INT64_MAX,
		&edge->bytes));
	AP_TRY(get_num(f, move, "time_s", &edge->time_s));
	edge->moves = ap_pic_moves(f->ctx, n, kind, edge->bytes, edge->time_s);
	return AP_OK;
}

static enum ap_status read_moves(struct file *f, const struct ap_jv *root)
{
	const struct ap_jv *list;

	AP_TRY(ap_json_get_arr(f->ctx, f->doc, root, "redistributions", &list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		const char *name;
		int64_t operand;
		uint32_t slot;
		ap_id to;

		AP_TRY(need(f, v, AP_JOBJECT));
		AP_TRY(ap_json_get_str(f->ctx, f->doc, v, "to", &name));
		AP_TRY(ap_json_get_int(f->ctx, f->doc, v, "operand", 0, UINT16_MAX, &operand));
		to = ap_map_get_str(f->oper, name);
		if (to == AP_NONE)
			return fault(f, v, "\"to\" is no operator of this plan");
		slot = f->first[to] + (uint32_t)operand;
		if (slot >= f->first[to + 1] || f->slot.v[slot] == UINT32_MAX)
			return fault(f, v, "\"operand\" is nothing that could be redistributed");
		AP_TRY(read_steps(f, v, &f->b.edges.v[f->slot.v[slot]]));
	}
	return AP_OK;
}

static enum ap_status read_times(struct file *f, const struct ap_jv *root,
	struct ap_pic_facts *facts)
{
	const struct ap_jv *prediction, *list, *search;
	struct ap_ctx *ctx = f->ctx;

	AP_TRY(ap_json_get_obj(ctx, f->doc, root, "prediction", &prediction));
	AP_TRY(get_num(f, prediction, "step_time_s", &facts->step_time_s));
	AP_TRY(get_num(f, prediction, "compute_s", &facts->compute_s));
	AP_TRY(get_num(f, prediction, "communication_s", &facts->communication_s));
	AP_TRY(get_num(f, prediction, "exposed_communication_s", &facts->exposed_communication_s));
	AP_TRY(get_num(f, prediction, "tokens_or_samples_per_s", &facts->samples_per_s));
	AP_TRY(ap_json_get_arr(ctx, f->doc, prediction, "memory", &list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		int64_t bytes;

		AP_TRY(need(f, v, AP_JOBJECT));
		AP_TRY(ap_json_get_int(ctx, f->doc, v, "total_bytes", 0, INT64_MAX, &bytes));
		if (bytes > facts->memory_bytes)
			facts->memory_bytes = bytes;
	}
	AP_TRY(ap_json_get_obj(ctx, f->doc, root, "search", &search));
	AP_TRY(ap_json_get_str(ctx, f->doc, search, "mode", &facts->mode));
	AP_TRY(ap_json_get_str(ctx, f->doc, search, "status", &facts->status));
	return get_num(f, search, "gap", &facts->gap);
}

/* Plans without one say null, those of before nothing. */
static enum ap_status read_pipeline(struct file *f, const struct ap_jv *root,
	struct ap_pic_facts *facts)
{
	const struct ap_jv *pipe = ap_jv_get(root, "pipeline");
	struct ap_ctx *ctx = f->ctx;

	if (!pipe || ap_jv_type(pipe) == AP_JNULL)
		return AP_OK;
	AP_TRY(need(f, pipe, AP_JOBJECT));
	AP_TRY(ap_json_get_int(ctx, f->doc, pipe, "stages", 1, AP_MAX_DEVICES, &f->nstage));
	AP_TRY(ap_json_get_int(ctx, f->doc, pipe, "segments", 1, INT32_MAX, &f->nsegment));
	AP_TRY(ap_json_get_int(ctx, f->doc, pipe, "micro_batches", 1, INT64_MAX,
		&facts->micro_batches));
	AP_TRY(ap_json_get_str(ctx, f->doc, pipe, "scheduler", &facts->scheduler));
	facts->stages = f->nstage;
	return AP_OK;
}

static enum ap_status read_title(struct file *f, const struct ap_jv *root,
	const struct ap_jv *graph, const char **title, const char **text)
{
	struct ap_pic_facts facts = {0};
	const struct ap_jv *machine;
	struct ap_ctx *ctx = f->ctx;
	const char *name, *chip;

	AP_TRY(ap_json_get_str(ctx, f->doc, graph, "name", &name));
	AP_TRY(ap_json_get_int(ctx, f->doc, graph, "batch", 0, INT64_MAX, &facts.batch));
	AP_TRY(ap_json_get_obj(ctx, f->doc, root, "machine", &machine));
	AP_TRY(ap_json_get_int(ctx, f->doc, machine, "devices", 1, AP_MAX_DEVICES, &facts.devices));
	AP_TRY(ap_json_get_int(ctx, f->doc, machine, "servers", 0, AP_MAX_DEVICES, &facts.servers));
	AP_TRY(ap_json_get_str(ctx, f->doc, machine, "chip", &chip));
	AP_TRY(ap_json_get_int(ctx, f->doc, machine, "capacity_bytes", 0, INT64_MAX,
		&facts.capacity_bytes));
	AP_TRY(read_times(f, root, &facts));
	AP_TRY(read_pipeline(f, root, &facts));
	*title = ap_pic_title(ctx, name, facts.devices, chip, facts.step_time_s);
	*text = ap_pic_facts_text(ctx, &facts);
	return AP_OK;
}

static enum ap_status read_inputs(struct file *f, const struct ap_jv *graph, struct ap_map *inputs)
{
	const struct ap_jv *list;

	AP_TRY(ap_json_get_arr(f->ctx, f->doc, graph, "inputs", &list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		AP_TRY(need(f, v, AP_JSTRING));
		ap_map_put_str(inputs, ap_jv_str(v), NULL);
	}
	return AP_OK;
}

static enum ap_status read_plan(struct file *f, struct ap_picture *out)
{
	const struct ap_jv *root = ap_json_root(f->doc), *graph;
	struct ap_map *inputs = ap_map_create(f->ctx->scratch);
	const char *schema, *title, *facts;

	AP_TRY(need(f, root, AP_JOBJECT));
	AP_TRY(ap_json_get_str(f->ctx, f->doc, root, "schema", &schema));
	if (strcmp(schema, "autopar-plan/1") != 0)
		return fault(f, ap_jv_get(root, "schema"), "expected \"autopar-plan/1\"");
	AP_TRY(ap_json_get_obj(f->ctx, f->doc, root, "graph", &graph));
	AP_TRY(read_title(f, root, graph, &title, &facts));
	AP_TRY(read_inputs(f, graph, inputs));
	AP_TRY(read_operators(f, root, inputs));
	AP_TRY(read_moves(f, root));
	ap_pic_finish(&f->b, title, facts, out);
	return AP_OK;
}

enum ap_status ap_picture_of_file(struct ap_ctx *ctx, const struct ap_json *plan_doc,
	struct ap_picture *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct file f = {.ctx = ctx, .doc = plan_doc, .b = {.ctx = ctx}};
	enum ap_status st;

	f.oper = ap_map_create(ctx->scratch);
	f.made = ap_map_create(ctx->scratch);
	f.read = ap_map_create(ctx->scratch);
	st = read_plan(&f, out);
	ap_arena_release(ctx->scratch, mark);
	return st;
}
