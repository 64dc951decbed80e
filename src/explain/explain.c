/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/explain.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/name_fold.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/move.h"
#include "cost/opcost.h"
#include "hw/coll.h"
#include "hw/constant.h"
#include "hw/group.h"
#include "plan/blocks.h"
#include "plan/memory.h"
#include "plan/terms.h"
#include "rule/op.h"
#include "shard/legal.h"
#include "shard/refusal.h"
#include "shard/strategy.h"

enum { MOST_LISTED = 10, MOST_CUTS = 40, MOST_WHY = 160, MOST_RUNS = 8, MOST_NAME = 60 };

/* ---- words ---- */

/* The first place from s on where a character of UTF-8 begins. */
static const char *character_at(const char *s)
{
	while (((unsigned char)*s & 0xC0) == 0x80)
		s++;
	return s;
}

/* The whole characters in the first n bytes of a text, and the one that these end in. */
static const char *beginning(const struct ap_explaining *x, const char *s, size_t n)
{
	return strlen(s) <= n ? s : ap_arena_strndup(x->ctx->arena, s, (size_t)(character_at(s + n) - s));
}

/* The number of devices that an operator runs on. */
static int64_t devices_of(const struct ap_explaining *x, ap_id node)
{
	return x->plan->op[node].place.ndev;
}

const char *ap_explain_cut(struct ap_ctx *ctx, const struct ap_bound *b, const int32_t *count, int64_t ndev)
{
	struct ap_placement p;
	struct ap_strategy v;
	struct ap_str s;

	ap_placement_make(b, count, ndev, &p);
	v = ap_strategy_of(ctx->arena, &p);
	ap_str_init(&s, ctx->arena);
	for (uint32_t i = 0; i < v.n; i++) {
		ap_str_add(&s, i ? ",[" : "[");
		for (uint8_t d = 0; d < v.rank[i]; d++)
			ap_str_addf(&s, d ? ",%" PRId32 : "%" PRId32, v.cut[i][d]);
		ap_str_addc(&s, ']');
	}
	if (v.n == 0)
		ap_str_add(&s, "[]");
	if (p.dealt)
		ap_str_add(&s, ", sum dealt");
	return s.s;
}

static const char *layout_text(const struct ap_explaining *x, const struct ap_layout *l)
{
	struct ap_str s;

	ap_str_init(&s, x->ctx->arena);
	for (int d = 0; d < l->rank; d++)
		ap_str_addf(&s, "%s%" PRId32, d ? "," : "[", l->dim[d].cut);
	ap_str_add(&s, l->rank ? "]" : "[]");
	return s.s;
}

static const char *extents(const struct ap_explaining *x, const int64_t *v, int n)
{
	struct ap_str s;

	ap_str_init(&s, x->ctx->arena);
	ap_str_addc(&s, '[');
	for (int d = 0; d < n; d++)
		ap_str_addf(&s, d ? ",%" PRId64 : "%" PRId64, v[d]);
	ap_str_addc(&s, ']');
	return s.s;
}

static const char *slice_text(const struct ap_explaining *x, ap_id tensor, const struct ap_layout *l)
{
	int64_t slice[AP_MAX_RANK];

	ap_plan_slice(x->plan, &x->plan->graph->tensor[tensor], l, slice);
	return extents(x, slice, x->plan->graph->tensor[tensor].shape.rank);
}

static const char *seconds(const struct ap_explaining *x, double s)
{
	char buf[32];

	return ap_arena_strdup(x->ctx->arena, ap_format_seconds(s, buf));
}

static const char *bytes_text(const struct ap_explaining *x, double bytes)
{
	char buf[32];

	return ap_arena_strdup(x->ctx->arena, ap_format_bytes((int64_t)bytes, buf));
}

/* A large number in thousands: "312 T". */
static const char *large(const struct ap_explaining *x, double v)
{
	static const char *const unit[] = {"", "k", "M", "G", "T", "P", "E"};
	size_t i = 0;

	for (; v >= 999.5 && i + 1 < AP_COUNT(unit); i++)
		v /= 1000;
	return ap_arena_printf(x->ctx->arena, v >= 99.95 || v == 0 ? "%.0f %s" : v >= 9.995 ? "%.1f %s"
		: "%.2f %s", v,
		unit[i]);
}

static double all_time_s(const struct ap_plan *p)
{
	double sum = 0;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		sum += ap_plan_op_time_s(&p->op[i].cost);
	for (uint32_t i = 0; i < p->nmove; i++)
		sum += ap_plan_move_time_s(&p->move[i]);
	return sum;
}

/* ---- constants ---- */

struct constants { /* fields of the profiles that were used, each once */
	AP_VEC(const double *) used;
};

static void use(const struct ap_explaining *x, struct constants *c, const double *field)
{
	for (size_t i = 0; i < c->used.n; i++)
		if (c->used.v[i] == field)
			return;
	AP_PUSH(x->ctx->arena, c->used, field);
}

/* The constants of the chip, each with what it stands on. */
static void tell_constants(const struct ap_explaining *x, const struct constants *c)
{
	static const struct ap_column columns[] = {{"path", "constant", AP_CELL_NAME},
		{"value", "value", AP_CELL_NUMBER}, {"unit", "unit", AP_CELL_TEXT},
		{"basis", "basis", AP_CELL_TEXT}, {"source", "source", AP_CELL_TEXT}};
	const struct ap_chip *chip = x->plan->machine->chip;
	struct ap_chip own = *chip;
	struct ap_constant *list;
	size_t n = ap_chip_constants(x->ctx->arena, &own, &list);

	if (!c->used.n)
		return;
	ap_sheet_block(x->sheet, "constants", ap_arena_printf(x->ctx->arena, "constants, of %s",
		ap_diag_name(x->ctx->diag, chip->name)));
	ap_sheet_columns(x->sheet, columns, AP_COUNT(columns));
	for (size_t i = 0; i < n; i++) {
		size_t offset = (size_t)((char *)list[i].at - (char *)&own), k = 0;
		const char *source = ap_source_of(chip->sources, list[i].path);

		while (k < c->used.n && (const char *)c->used.v[k] != (const char *)chip + offset)
			k++;
		if (k == c->used.n)
			continue;
		ap_sheet_cell_text(x->sheet, list[i].path);
		ap_sheet_cell(x->sheet, ap_constant_get(&list[i]));
		ap_sheet_cell_text(x->sheet, list[i].unit);
		ap_sheet_cell_text(x->sheet, ap_basis_name(ap_basis_of(source)));
		ap_sheet_cell_text(x->sheet, source);
	}
}

/* ---- time of an operator ---- */

static const struct ap_column term_columns[] = {{"phase", "phase", AP_CELL_TEXT}, {"what", "what",
	AP_CELL_TEXT},
	{"step_s", "in a step", AP_CELL_SECONDS}, {"times", "times", AP_CELL_NUMBER},
	{"once_s", "once", AP_CELL_SECONDS}, {"how", "how", AP_CELL_TEXT}};

struct terms {
	const struct ap_explaining *x;
	struct constants *constants;
	double sum_s;
};

static const char *kernel_text(const struct ap_explaining *x, const struct ap_kernel *k,
	const struct ap_kernel_parts *p)
{
	static const char *const by[] = {[AP_KERNEL_BY_COMPUTE] = "computation", [AP_KERNEL_BY_MEMORY] =
		"memory",
		[AP_KERNEL_BY_LAUNCH] = "the host"};
	struct ap_str s;

	ap_str_init(&s, x->ctx->arena);
	if (p->by == AP_KERNEL_BY_LAUNCH)
		ap_str_addf(&s, "%s to start it; ", seconds(x, p->launch_s));
	if (p->fixed_s > 0)
		ap_str_addf(&s, "%s + ", seconds(x, p->fixed_s));
	if (p->flops_per_s > 0)
		ap_str_addf(&s, "max(%sFLOP / %sFLOP/s, ", large(x, p->flops), large(x, p->flops_per_s));
	ap_str_addf(&s, "%s / %sB/s", bytes_text(x, p->bytes), large(x, p->Bps));
	ap_str_add(&s, p->flops_per_s > 0 ? ")" : "");
	ap_str_addf(&s, ", by %s", by[p->by]);
	if (k->gemm)
		ap_str_addf(&s, "; %gx(%g x %g over %g)", k->b, k->m, k->n, k->k);
	return s.s;
}

static void add_term(struct terms *t, const char *phase, const char *what, double times, double once_s,
	const char *how)
{
	ap_sheet_cell_text(t->x->sheet, phase);
	ap_sheet_cell_text(t->x->sheet, what);
	ap_sheet_cell(t->x->sheet, times * once_s);
	ap_sheet_cell(t->x->sheet, times);
	ap_sheet_cell(t->x->sheet, once_s);
	ap_sheet_cell_text(t->x->sheet, how);
	t->sum_s += times * once_s;
}

static void take_term(void *user, const struct ap_op_term *term)
{
	static const char *const phase[] = {[AP_TERM_FORWARD] = "forward", [AP_TERM_BACKWARD] = "backward",
		[AP_TERM_OPTIMIZER] = "optimizer"};
	struct terms *t = user;
	const struct ap_explaining *x = t->x;
	const struct ap_chip *chip = x->plan->machine->chip;
	const char *how = "";

	if (term->kernel) {
		struct ap_kernel_parts p;

		ap_kernel_parts(chip, term->kernel, &p);
		for (const double *const *c = p.constant; *c; c++)
			use(x, t->constants, *c);
		how = kernel_text(x, term->kernel, &p);
	} else if (term->bytes > 0) {
		use(x, t->constants, &chip->memory_Bps);
		use(x, t->constants, &chip->memory_efficiency);
		how = ap_arena_printf(x->ctx->arena, "%s / %sB/s", bytes_text(x, term->bytes),
			large(x, chip->memory_Bps * chip->memory_efficiency));
	}
	add_term(t, phase[term->of], term->what, term->times, term->s, how);
}

/* What the host takes longer to start an operator's kernels than they run. */
static void add_starts(struct terms *t, const char *phase, double launch_s, double s)
{
	if (launch_s > s)
		add_term(t, phase, "rest of the host's starts", 1, launch_s - s,
			ap_arena_printf(t->x->ctx->arena, "%s to start them", seconds(t->x, launch_s)));
}

/* Levels that a group spans, with what their links give, as constants and as words. */
static const char *levels_text(const struct ap_explaining *x, const struct ap_group *g, struct constants *c)
{
	const struct ap_machine *m = x->plan->machine;
	struct ap_str s;

	ap_str_init(&s, x->ctx->arena);
	for (int l = 0; l < m->nlevel; l++) {
		const struct ap_link_level *level = &m->level[l];
		bool crossed = false;

		for (int i = 0; i < g->nshape; i++)
			crossed |= g->shape[i].fan[l] > 1;
		if (!crossed)
			continue;
		ap_str_addf(&s, "%s%s", s.len ? "+" : "", level->name);
		for (int k = 0; k < m->chip->nlevel; k++)
			if (!strcmp(m->chip->level[k].name, level->name)) {
				use(x, c, &m->chip->level[k].bandwidth_Bps);
				use(x, c, &m->chip->level[k].latency_s);
				use(x, c, &m->chip->level[k].efficiency);
			}
	}
	use(x, c, &m->chip->collective_fixed_s);
	return s.s;
}

static const char *comm_text(const struct ap_explaining *x, const struct ap_plan_comm *pc,
	struct constants *c)
{
	const struct ap_comm *comm = &pc->comm;
	const struct ap_machine *m;
	struct ap_coll_parts parts;
	struct ap_group g;
	double whole_s;

	if (comm->kind == AP_COLL_SEND)
		return ap_arena_printf(x->ctx->arena, "%s from stage %" PRId32 " to %" PRId32,
			bytes_text(x, (double)comm->bytes), comm->from_stage, comm->to_stage);
	m = ap_machine_at(x->plan->machine, comm->block);
	ap_group_make(x->ctx->arena, m, &comm->axes, &g);
	ap_coll_parts(m, comm->kind, &g, (double)comm->bytes, &parts);
	whole_s = parts.fixed_s + parts.latency_s + parts.transfer_s;
	if (whole_s != pc->time_s) /* relayed, uneven, or partly beside what computes */
		return ap_arena_printf(x->ctx->arena, "%s among %" PRId64 " ranks over %s, %s",
			bytes_text(x, (double)comm->bytes), g.size, levels_text(x, &g, c), pc->algorithm);
	return ap_arena_printf(x->ctx->arena, "%s among %" PRId64 " ranks over %s, %s: %s to start, %s "
		"of latency, "
		"%s to send at %sB/s", bytes_text(x, (double)comm->bytes), g.size, levels_text(x, &g, c),
		parts.algorithm, seconds(x, parts.fixed_s), seconds(x, parts.latency_s),
		seconds(x, parts.transfer_s),
		large(x, parts.transfer_s > 0 ? (double)comm->bytes / parts.transfer_s : 0));
}

static const char *comm_of(const struct ap_explaining *x, ap_id node, const struct ap_comm *c)
{
	ap_id tensor = ap_plan_comm_tensor(x->plan->graph, node, c);
	const char *name = tensor == AP_NONE ? "" : x->plan->graph->tensor[tensor].name;

	return ap_arena_printf(x->ctx->arena, "%s of %s", ap_coll_name(c->kind),
		ap_diag_name(x->ctx->diag, ap_short_name(name)));
}

static double comm_times(const struct ap_explaining *x, ap_id node, const struct ap_comm *c)
{
	bool once = x->plan->task[node].once || c->phase == AP_PHASE_OPTIMIZER ||
		(c->phase == AP_PHASE_GRADIENT && !c->each);

	return once ? 1 : (double)x->plan->step->micro_batches;
}

static void tell_time(const struct ap_explaining *x, ap_id node)
{
	const struct ap_plan_op *op = &x->plan->op[node];
	struct constants constants = {0};
	struct terms t = {.x = x, .constants = &constants};
	struct ap_pricer *pricer = ap_pricer_create(x->ctx->arena, x->plan->machine, x->plan->step);
	double all_s = all_time_s(x->plan);

	ap_sheet_block(x->sheet, "time", "time, of a step");
	ap_sheet_columns(x->sheet, term_columns, AP_COUNT(term_columns));
	ap_op_cost_terms(pricer, &x->plan->task[node], &op->place, take_term, &t);
	add_starts(&t, "forward", op->cost.forward_launch_s, op->cost.forward_s);
	add_starts(&t, "backward", op->cost.backward_launch_s, op->cost.backward_s);
	for (uint32_t i = 0; i < op->ncomm; i++) {
		const struct ap_plan_comm *c = &op->comm[i];

		add_term(&t, ap_phase_name(c->comm.phase), comm_of(x, node, &c->comm),
			comm_times(x, node, &c->comm), c->time_s, comm_text(x, c, &constants));
	}
	if (op->cost.input_s > 0)
		add_term(&t, "forward", "bringing inputs into this layout", 1, op->cost.input_s, "");
	if (op->cost.joined_s > 0)
		add_term(&t, "gradient", "added to another use's, and exchanged there", 1,
		-op->cost.joined_s, "");
	ap_sheet_number(x->sheet, "total_s", "in all", AP_CELL_SECONDS, t.sum_s);
	ap_sheet_number(x->sheet, "share", "share", AP_CELL_SHARE, all_s > 0 ? t.sum_s / all_s : 0);
	ap_sheet_remark(x->sheet, "Shares are of the seconds of all operators and redistributions, of "
		"which some run "
		"beside others.");
	tell_constants(x, &constants);
}

/* ---- an operator's tensors, memory and neighbours ---- */

static void tell_cut(const struct ap_explaining *x, ap_id node)
{
	static const struct ap_column columns[] = {{"slot", "", AP_CELL_TEXT}, {"name", "tensor",
		AP_CELL_NAME},
		{"kind", "kind", AP_CELL_TEXT}, {"shape", "shape", AP_CELL_TEXT}, {"cut", "cut",
		AP_CELL_TEXT},
		{"slice", "slice of a micro-batch", AP_CELL_TEXT}};
	static const char *const kinds[] = {[AP_TENSOR_INPUT] = "input", [AP_TENSOR_PARAM] = "parameter",
		[AP_TENSOR_CONST] = "constant", [AP_TENSOR_ACT] = "activation"};
	const struct ap_graph *g = x->plan->graph;
	const struct ap_node *n = &g->node[node];
	const struct ap_plan_op *op = &x->plan->op[node];
	struct ap_dev_matrix dev;
	struct ap_str s;

	ap_dev_matrix_standard(&op->place, &dev);
	ap_str_init(&s, x->ctx->arena);
	for (int i = 0; i < dev.n; i++)
		ap_str_addf(&s, "%s%" PRId32, i ? "," : "[", dev.axis[i]);
	ap_str_addc(&s, ']');
	ap_sheet_block(x->sheet, "cut", "how it is cut");
	ap_sheet_words(x->sheet, "strategy", "strategy", ap_explain_cut(x->ctx, &n->bound,
		ap_placement_counts(x->ctx->arena, &op->place), op->place.ndev));
	ap_sheet_words(x->sheet, "dev_matrix", "device matrix", s.s);
	if (op->place.repeat > 1)
		ap_sheet_remark(x->sheet, "%" PRId32 " ranks compute each part alike.", op->place.repeat);
	if (n->in_pin.n)
		ap_sheet_remark(x->sheet, "The graph gives it (in_strategy).");
	ap_sheet_columns(x->sheet, columns, AP_COUNT(columns));
	for (uint32_t i = 0; i < n->bound.nin + (uint32_t)n->bound.nout; i++) {
		bool result = i >= n->bound.nin;
		uint32_t slot = result ? i - n->bound.nin : i;
		const struct ap_tensor *t = &g->tensor[result ? n->out[slot] : n->in[slot]];
		const struct ap_layout *l = result ? &op->out[slot] : &op->in[slot];

		ap_sheet_cell_text(x->sheet, ap_arena_printf(x->ctx->arena, "%s %" PRIu32,
			result ? "result" : "input", slot));
		ap_sheet_cell_text(x->sheet, t->name);
		ap_sheet_cell_text(x->sheet, kinds[t->kind]);
		ap_sheet_cell_text(x->sheet, extents(x, t->shape.dim, t->shape.rank));
		ap_sheet_cell_text(x->sheet, layout_text(x, l));
		ap_sheet_cell_text(x->sheet, slice_text(x, result ? n->out[slot] : n->in[slot], l));
	}
}

static void tell_memory(const struct ap_explaining *x, ap_id node)
{
	const struct ap_op_cost *c = &x->plan->op[node].cost;
	const struct {
		const char *key, *label;
		int64_t bytes;
	} kind[] = {
		{"weights_bytes", "weights", c->weight_bytes},
		{"gathered_bytes", "gathered", c->gathered_bytes},
		{"gradients_bytes", "gradients", c->gradient_bytes},
		{"optimizer_bytes", "optimizer", c->optimizer_bytes},
		{"activations_bytes", "activations kept", ap_plan_activation_bytes(x->plan, node)},
		{"recompute_bytes", "computed again", c->recompute_bytes},
		{"temporary_bytes", "while it runs", c->temporary_bytes},
	};

	ap_sheet_block(x->sheet, "memory", "memory, on each device");
	for (size_t i = 0; i < AP_COUNT(kind); i++)
		ap_sheet_number(x->sheet, kind[i].key, kind[i].label, AP_CELL_BYTES, (double)kind[i].bytes);
}

static const char *steps_text(const struct ap_explaining *x, const struct ap_plan_move *m)
{
	const struct ap_reshard_step *step = m->nstep ? m->step : m->back;
	int n = m->nstep ? m->nstep : m->nback;
	struct ap_str s;

	if (m->shares != AP_NONE)
		return "shares another's copy";
	ap_str_init(&s, x->ctx->arena);
	for (int i = 0; i < n; i++)
		ap_str_addf(&s, "%s%s of %" PRId32, i ? ", " : "", ap_move_name(step[i].move),
		step[i].axis.size);
	if (!m->nstep)
		ap_str_add(&s, " (gradient)");
	return s.s;
}

static const struct ap_column move_columns[] = {{"way", "", AP_CELL_TEXT}, {"operator", "operator",
	AP_CELL_NAME},
	{"tensor", "tensor", AP_CELL_NAME}, {"from", "lies", AP_CELL_TEXT}, {"to", "wanted", AP_CELL_TEXT},
	{"step_s", "in a step", AP_CELL_SECONDS}, {"bytes", "bytes", AP_CELL_BYTES},
	{"steps", "steps", AP_CELL_TEXT}};

static void add_move(const struct ap_explaining *x, const struct ap_plan_move *m, const char *way,
	ap_id other)
{
	const struct ap_graph *g = x->plan->graph;

	ap_sheet_cell_text(x->sheet, way);
	ap_sheet_cell_text(x->sheet, other == AP_NONE ? NULL : g->node[other].name);
	ap_sheet_cell_text(x->sheet, g->tensor[m->tensor].name);
	ap_sheet_cell_text(x->sheet, layout_text(x, &m->a));
	ap_sheet_cell_text(x->sheet, layout_text(x, &m->b));
	ap_sheet_cell(x->sheet, ap_plan_move_time_s(m));
	ap_sheet_cell(x->sheet, (double)m->cost.bytes);
	ap_sheet_cell_text(x->sheet, steps_text(x, m));
}

/* What is redistributed to and from an operator. */
static void tell_neighbours(const struct ap_explaining *x, ap_id node)
{
	double sum_s = 0;

	ap_sheet_block(x->sheet, "neighbours", "between it and its neighbours");
	ap_sheet_columns(x->sheet, move_columns, AP_COUNT(move_columns));
	for (uint32_t i = 0; i < x->plan->nmove; i++) {
		const struct ap_plan_move *m = &x->plan->move[i];

		if (m->to != node && m->from != node)
			continue;
		add_move(x, m, m->to == node ? "from" : "to", m->to == node ? m->from : m->to);
		sum_s += ap_plan_move_time_s(m);
	}
	ap_sheet_number(x->sheet, "total_s", "in all", AP_CELL_SECONDS, sum_s);
	if (sum_s == 0)
		ap_sheet_remark(x->sheet, "Nothing is redistributed.");
}

/* ---- alternatives ---- */

static const struct ap_alternatives *find(const struct ap_explaining *x, ap_id node)
{
	for (uint32_t i = 0; i < x->others->n; i++)
		if (x->others->of[i].node == node)
			return &x->others->of[i];
	return NULL;
}

static double taken_s(const struct ap_alternatives *a)
{
	return a->taken < a->n ? a->v[a->taken].sum_s : INFINITY;
}

/* Is the executor told degrees alone, so that it cannot be told another cut of one operator? */
static bool takes_degrees(const struct ap_explaining *x)
{
	return x->plan->route && x->plan->route->route->degrees;
}

/* The plan's sum and the least of all, and why they may differ. */
static void tell_sums(const struct ap_explaining *x)
{
	const struct ap_alternatives_report *r = x->others;

	ap_sheet_number(x->sheet, "plan_s", "the plan's sum", AP_CELL_SECONDS, r->plan_s);
	ap_sheet_number(x->sheet, "least_s", "least of all", AP_CELL_SECONDS, r->least_s);
	if (r->plan_s > r->least_s)
		ap_sheet_remark(x->sheet,
			"A sum adds up what operators, redistributions and the gradient exchange take; "
			"in a step some of it runs side by side, so the plan of the least sum need not be "
			"the one of the shortest step, which is taken%s.",
			takes_degrees(x) ? " among those that the executor can be told" : "");
}

/* What there is to say of an alternative beside its numbers. */
static const char *verdict(const struct ap_explaining *x, const struct ap_alternatives *all,
	const struct ap_alternative *a)
{
	double step_s = x->plan->prediction.step_time_s;

	if (a->taken)
		return "the plan's";
	if (a->sum_s == INFINITY)
		return a->exact ? "no plan has it" : "no plan that fits has it";
	if (!(a->step_s > 0))
		return "";
	if (!a->fits)
		return "does not fit";
	if (a->sum_s < taken_s(all) && a->step_s > step_s)
		return ap_arena_printf(x->ctx->arena, "smaller sum, slower step by %s",
			seconds(x, a->step_s - step_s));
	if (a->step_s < step_s && takes_degrees(x))
		return ap_arena_printf(x->ctx->arena, "%s cannot be told it; faster by %s",
			x->plan->route->route->name, seconds(x, step_s - a->step_s));
	if (a->step_s < step_s)
		return ap_arena_printf(x->ctx->arena, "a faster step, by %s", seconds(x, step_s - a->step_s));
	return a->step_s == step_s ? "as fast" : "";
}

static void tell_alternatives(const struct ap_explaining *x, ap_id node)
{
	static const struct ap_column columns[] = {{"cut", "cut", AP_CELL_TEXT}, {"sum_s", "sum",
		AP_CELL_SECONDS},
		{"sum_more", "more", AP_CELL_CHANGE}, {"own_s", "its own", AP_CELL_SECONDS},
		{"others_more_s", "others' more", AP_CELL_SECONDS}, {"exact", "exact", AP_CELL_BOOL},
		{"step_s", "step", AP_CELL_SECONDS}, {"step_more", "more", AP_CELL_CHANGE},
		{"memory_bytes", "memory", AP_CELL_BYTES}, {"changed", "changed", AP_CELL_INT},
		{"verdict", "", AP_CELL_TEXT}};
	const struct ap_alternatives_report *r = x->others;
	const struct ap_alternatives *a = r->unknown ? NULL : find(x, node);
	const struct ap_bound *b = &x->plan->graph->node[node].bound;
	double step_s = x->plan->prediction.step_time_s, own_s;
	uint32_t shown = 0;
	bool bounds = false;

	ap_sheet_block(x->sheet, "alternatives", ap_arena_printf(x->ctx->arena,
		"other cuts, by the objective%s, and "
		"the nearest by the step", ap_charge_text(r->charge)));
	if (!a) {
		ap_sheet_remark(x->sheet, "What other cuts cost is not known: %s.", r->unknown);
		return;
	}
	tell_sums(x);
	ap_sheet_number(x->sheet, "cuts", "cuts", AP_CELL_INT, a->n);
	ap_sheet_columns(x->sheet, columns, AP_COUNT(columns));
	own_s = a->taken < a->n ? a->v[a->taken].own_s : 0;
	for (uint32_t i = 0; i < a->n; i++) {
		const struct ap_alternative *v = &a->v[i];

		if (shown >= MOST_CUTS && !v->taken)
			continue;
		shown++;
		bounds |= !v->exact;
		ap_sheet_cell_text(x->sheet, ap_explain_cut(x->ctx, b, v->count, devices_of(x, node)));
		ap_sheet_cell(x->sheet, v->sum_s);
		ap_sheet_cell(x->sheet, v->sum_s / taken_s(a) - 1);
		ap_sheet_cell(x->sheet, v->own_s);
		ap_sheet_cell(x->sheet, (v->sum_s - v->own_s) - (taken_s(a) - own_s));
		ap_sheet_cell(x->sheet, v->exact);
		ap_sheet_cell(x->sheet, v->step_s > 0 ? v->step_s : NAN);
		ap_sheet_cell(x->sheet, v->step_s > 0 ? v->step_s / step_s - 1 : NAN);
		ap_sheet_cell(x->sheet, v->step_s > 0 ? (double)v->memory_bytes : NAN);
		ap_sheet_cell(x->sheet, v->step_s > 0 ? (double)v->nchange : (double)NAN);
		ap_sheet_cell_text(x->sheet, verdict(x, a, v));
	}
	if (shown < a->n)
		ap_sheet_remark(x->sheet, "%" PRIu32 " further cuts have larger sums.", a->n - shown);
	ap_sheet_remark(x->sheet, "sum: the least of all plans in which the operator has this cut; its "
		"own: what the "
		"operator itself has of it; others' more: what the rest of such a plan costs more than "
		"beside the "
		"plan's cut.");
	ap_sheet_remark(x->sheet, "step: simulated, of the faster of that plan and the plan with "
		"nothing but this "
		"operator changed; changed: operators that it cuts otherwise.");
	if (bounds)
		ap_sheet_remark(x->sheet, "A sum that is not exact is a bound: no plan that fits the "
		"memory has less. "
			"--prove searches the nearest within the memory.");
}

/* Which numbers of parts a factor cannot have by itself, and why. */
static void tell_refused(const struct ap_explaining *x, ap_id node)
{
	static const struct ap_column columns[] = {{"where", "of", AP_CELL_TEXT}, {"parts", "parts",
		AP_CELL_TEXT},
		{"why", "why not", AP_CELL_TEXT}};
	const struct ap_bound *b = &x->plan->graph->node[node].bound;
	int64_t ndev = devices_of(x, node), part[64];
	size_t n = ap_divisors(ndev, part, AP_COUNT(part));

	ap_sheet_block(x->sheet, "refused", "what forbids others");
	ap_sheet_columns(x->sheet, columns, AP_COUNT(columns));
	for (int f = 0; f < b->nfactor; f++) {
		const char *last = NULL;
		struct ap_str parts;
		int dim = 0;
		const struct ap_operand *at = ap_cut_along(b, f, &dim);

		for (size_t i = 1; i <= n && i <= AP_COUNT(part); i++) {
			int32_t count[AP_MAX_FACTOR];
			const char *why = NULL;

			ap_space_start(b, ndev, count);
			if (i < n && i < AP_COUNT(part))
				count[f] = (int32_t)part[i];
			if (i < n && i < AP_COUNT(part) &&
				ap_space_legal(x->ctx, b, count, ndev, x->plan->step, &why))
				continue;
			if (last && (!why || strcmp(why, last) != 0)) {
				ap_sheet_cell_text(x->sheet, at ? ap_cut_place(x->ctx, b, at, dim,
					x->plan->step) : "the operator");
				ap_sheet_cell_text(x->sheet, parts.s);
				ap_sheet_cell_text(x->sheet, beginning(x, last, MOST_WHY));
			}
			if (!why)
				continue;
			if (!last || strcmp(why, last) != 0)
				ap_str_init(&parts, x->ctx->arena);
			ap_str_addf(&parts, parts.len ? ", %" PRId64 : "%" PRId64, part[i]);
			last = why;
		}
	}
	ap_sheet_remark(x->sheet, "A cut's parts together divide %" PRId64 ", the devices of a stage.", ndev);
}

void ap_explain_operator(const struct ap_explaining *x, ap_id node, const char *folded, uint32_t n)
{
	const struct ap_node *op = &x->plan->graph->node[node];
	const char *like = n > 1 ? ap_arena_printf(x->ctx->arena, ", the first of %" PRIu32 " alike: %s", n,
		ap_diag_name(x->ctx->diag, folded)) : "";

	ap_sheet_thing(x->sheet, "operator", op->name, "%s%s%s", op->type, x->plan->nstage > 1
		? ap_arena_printf(x->ctx->arena, ", stage %" PRId32, ap_plan_op_stage(x->plan, node))
		: "", like);
	tell_cut(x, node);
	tell_time(x, node);
	tell_memory(x, node);
	tell_neighbours(x, node);
	tell_alternatives(x, node);
	tell_refused(x, node);
}

/* ---- lists of what takes most ---- */

struct item { /* operators of one fold, or a redistribution */
	double s;
	ap_id first;
	uint32_t n;
	const char *name;
};

struct items {
	AP_VEC(struct item) v;
};

static int by_seconds(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->s != y->s)
		return x->s > y->s ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

/* Operators that lie alike, by the names of their layers, of one stage or (stage < 0) all, the longest
 * first. */
static void fold_operators(const struct ap_explaining *x, int32_t stage, struct items *out)
{
	const struct ap_graph *g = x->plan->graph;
	struct ap_name_item *item = AP_NEW_N(x->ctx->arena, struct ap_name_item, g->nnode);
	ap_id *node = AP_NEW_N(x->ctx->arena, ap_id, g->nnode);
	const struct ap_name_fold *fold;
	uint32_t n = 0, folds;

	for (ap_id i = 0; i < g->nnode; i++) {
		if (stage >= 0 && ap_plan_op_stage(x->plan, i) != stage)
			continue;
		node[n] = i;
		item[n++] = (struct ap_name_item){g->node[i].name, ap_arena_printf(x->ctx->arena, "%s %s",
			g->node[i].type, ap_explain_cut(x->ctx, &g->node[i].bound,
			ap_placement_counts(x->ctx->arena, &x->plan->op[i].place), devices_of(x, i)))};
	}
	folds = ap_name_folds(x->ctx, n, item, &fold);
	for (uint32_t f = 0; f < folds; f++) {
		struct item it = {.first = node[fold[f].item[0]], .n = fold[f].n, .name = fold[f].name};

		for (uint32_t k = 0; k < fold[f].n; k++)
			it.s += ap_plan_op_time_s(&x->plan->op[node[fold[f].item[k]]].cost);
		AP_PUSH(x->ctx->arena, out->v, it);
	}
	qsort(out->v.v, out->v.n, sizeof *out->v.v, by_seconds);
}

static void tell_longest(const struct ap_explaining *x, int32_t stage)
{
	static const struct ap_column columns[] = {{"step_s", "in a step", AP_CELL_SECONDS},
		{"share", "share", AP_CELL_SHARE}, {"count", "x", AP_CELL_INT}, {"cut", "cut", AP_CELL_TEXT},
		{"type", "type", AP_CELL_TEXT}, {"operators", "operators", AP_CELL_NAME}};
	const struct ap_graph *g = x->plan->graph;
	double all_s = all_time_s(x->plan);
	struct items items = {{0}};

	fold_operators(x, stage, &items);
	ap_sheet_block(x->sheet, "longest", "what takes longest, layers folded");
	ap_sheet_columns(x->sheet, columns, AP_COUNT(columns));
	for (size_t i = 0; i < items.v.n && i < MOST_LISTED; i++) {
		const struct item *it = &items.v.v[i];

		ap_sheet_cell(x->sheet, it->s);
		ap_sheet_cell(x->sheet, all_s > 0 ? it->s / all_s : 0);
		ap_sheet_cell(x->sheet, it->n);
		ap_sheet_cell_text(x->sheet, ap_explain_cut(x->ctx, &g->node[it->first].bound,
			ap_placement_counts(x->ctx->arena, &x->plan->op[it->first].place),
			devices_of(x, it->first)));
		ap_sheet_cell_text(x->sheet, g->node[it->first].type);
		ap_sheet_cell_text(x->sheet, it->name);
	}
}

/* ---- a stage ---- */

static void tell_memory_kinds(const struct ap_explaining *x, const struct ap_memory *m)
{
	static const struct ap_column columns[] = {{"kind", "kind", AP_CELL_TEXT}, {"bytes", "bytes",
		AP_CELL_BYTES},
		{"share", "of what is usable", AP_CELL_SHARE}};

	ap_sheet_block(x->sheet, "memory", "memory, on each device");
	ap_sheet_number(x->sheet, "total_bytes", "in all", AP_CELL_BYTES, (double)m->total);
	ap_sheet_number(x->sheet, "capacity_bytes", "usable", AP_CELL_BYTES, (double)x->plan->capacity_bytes);
	ap_sheet_columns(x->sheet, columns, AP_COUNT(columns));
	for (int i = 0; i < AP_MEMORY_KINDS; i++) {
		struct ap_memory_kind kind = ap_memory_kind(m, i);

		ap_sheet_cell_text(x->sheet, kind.label);
		ap_sheet_cell(x->sheet, (double)kind.bytes);
		ap_sheet_cell(x->sheet, (double)kind.bytes / (double)x->plan->capacity_bytes);
	}
}

/* ---- memory of layers ---- */

enum { LAYER_KINDS = 5 };

struct layer { /* of the network, in a stage */
	int32_t stage, layer; /* -1: operators of no layer */
	uint32_t noperator;
	int64_t bytes[LAYER_KINDS];
};

static bool alike(const struct layer *a, const struct layer *b)
{
	return a->stage == b->stage && (a->layer < 0) == (b->layer < 0) &&
		!memcmp(a->bytes, b->bytes, sizeof a->bytes);
}

/* Of an operator's layer: stage by stage, what is of no layer first. */
static uint32_t layer_index(const struct ap_plan *p, ap_id node)
{
	return (uint32_t)ap_plan_op_stage(p, node) * (p->blocks->nlayer + 1) +
		(uint32_t)(p->blocks->layer_of[node] + 1);
}

/* Numbers of layers as ranges: "0-3,7". */
static void add_range(struct ap_str *s, int32_t first, int32_t last)
{
	ap_str_addf(s, "%s%" PRId32, s->len ? "," : "", first);
	if (last > first)
		ap_str_addf(s, "%s%" PRId32, last > first + 1 ? "-" : ",", last);
}

/* What each layer of a stage, or (stage < 0) of all, holds; equal ones of a stage in one row. */
static void tell_layers(const struct ap_explaining *x, int32_t stage)
{
	static const struct ap_column columns[] = {{"stage", "stage", AP_CELL_INT},
		{"layers", "layers", AP_CELL_TEXT}, {"count", "x", AP_CELL_INT},
		{"weights_bytes", "weights", AP_CELL_BYTES}, {"gathered_bytes", "gathered", AP_CELL_BYTES},
		{"gradients_bytes", "gradients", AP_CELL_BYTES}, {"optimizer_bytes", "states", AP_CELL_BYTES},
		{"activations_bytes", "activations", AP_CELL_BYTES}, {"each_bytes", "each", AP_CELL_BYTES},
		{"total_bytes", "in all", AP_CELL_BYTES}};
	const struct ap_plan *p = x->plan;
	uint32_t nlayer = p->blocks->nlayer, per = nlayer + 1, n = p->nstage * per;
	struct layer *layer = AP_NEW_N(x->ctx->arena, struct layer, n);

	for (uint32_t i = 0; i < n; i++) {
		layer[i].stage = (int32_t)(i / per);
		layer[i].layer = (int32_t)(i % per) - 1;
	}
	for (ap_id i = 0; i < p->graph->nnode; i++) {
		struct layer *l = &layer[layer_index(p, i)];
		const struct ap_op_cost *c = &p->op[i].cost;
		const int64_t kind[LAYER_KINDS] = {c->weight_bytes, c->gathered_bytes, c->gradient_bytes,
			c->optimizer_bytes, ap_plan_activation_bytes(p, i)};

		l->noperator++;
		for (int k = 0; k < LAYER_KINDS; k++)
			l->bytes[k] += kind[k];
	}
	for (uint32_t i = 0; i < p->nmove; i++)
		layer[layer_index(p, p->move[i].to)].bytes[LAYER_KINDS - 1] +=
			ap_plan_move_activation_bytes(p, &p->move[i]);
	ap_sheet_block(x->sheet, "layers", "memory of layers, on each device");
	ap_sheet_columns(x->sheet, columns, AP_COUNT(columns));
	for (uint32_t i = 0; i < n; i++) {
		struct layer *l = &layer[i];
		int64_t sum = 0, count = 0;
		struct ap_str s;
		int32_t first = -1, last = -1;

		if (!l->noperator || (stage >= 0 && l->stage != stage))
			continue;
		ap_str_init(&s, x->ctx->arena);
		for (uint32_t j = i; j < ((uint32_t)l->stage + 1) * per; j++) {
			if (!layer[j].noperator || !alike(l, &layer[j]))
				continue;
			count++;
			if (j > i)
				layer[j].noperator = 0; /* told */
			if (count > 1 && layer[j].layer == last + 1) {
				last++;
				continue;
			}
			if (count > 1)
				add_range(&s, first, last);
			first = last = layer[j].layer;
		}
		if (l->layer >= 0)
			add_range(&s, first, last);
		ap_sheet_cell(x->sheet, l->stage);
		ap_sheet_cell_text(x->sheet, l->layer >= 0 ? s.s : nlayer ? "of no layer" : "all");
		ap_sheet_cell(x->sheet, (double)count);
		for (int k = 0; k < LAYER_KINDS; k++) {
			ap_sheet_cell(x->sheet, (double)l->bytes[k]);
			sum += l->bytes[k];
		}
		ap_sheet_cell(x->sheet, (double)sum);
		ap_sheet_cell(x->sheet, (double)(sum * count));
	}
	ap_sheet_remark(x->sheet, "Weights, states and so on of one layer; activations: what is kept of all "
		"micro-batches in flight. What is computed again or lives while an operator runs is of the "
		"stage, above.");
}

void ap_explain_stage(const struct ap_explaining *x, uint32_t stage)
{
	const struct ap_plan_stage *s = &x->plan->stage[stage];
	char name[32];

	snprintf(name, sizeof name, "%" PRIu32, stage);
	ap_sheet_thing(x->sheet, "stage", ap_arena_strdup(x->ctx->arena, name),
		"ranks %" PRId64 " to %" PRId64
		", %" PRIu32 " operators", s->first_rank, s->first_rank + s->devices - 1,
		s->noperator);
	ap_sheet_block(x->sheet, "time", "time");
	ap_sheet_number(x->sheet, "forward_s", "forward", AP_CELL_SECONDS, s->forward_s);
	ap_sheet_number(x->sheet, "backward_s", "backward", AP_CELL_SECONDS, s->backward_s);
	ap_sheet_number(x->sheet, "idle_s", "idle in a step", AP_CELL_SECONDS, s->idle_s);
	ap_sheet_number(x->sheet, "in_flight", "micro-batches in flight", AP_CELL_INT, (double)s->in_flight);
	ap_sheet_remark(x->sheet, "Passes are of one micro-batch, all segments.");
	tell_memory_kinds(x, &s->memory);
	tell_layers(x, (int32_t)stage);
	tell_longest(x, (int32_t)stage);
}

/* ---- a tensor ---- */

/* Ranks [n], ascending, as runs: "0-7", "0,8,16,24"; of many runs the first. */
static const char *ranks_text(const struct ap_explaining *x, const int64_t *rank, uint32_t n)
{
	struct ap_str s;
	uint32_t runs = 0;

	ap_str_init(&s, x->ctx->arena);
	for (uint32_t i = 0, end; i < n; i = end + 1, runs++) {
		for (end = i; end + 1 < n && rank[end + 1] == rank[end] + 1; end++)
			;
		if (runs == MOST_RUNS) {
			ap_str_addf(&s, ",.. (%" PRIu32 " ranks, to %" PRId64 ")", n, rank[n - 1]);
			break;
		}
		ap_str_addf(&s, "%s%" PRId64, runs ? "," : "", rank[i]);
		if (end > i)
			ap_str_addf(&s, "-%" PRId64, rank[end]);
	}
	return s.s;
}

/* Which ranks hold which part of a parameter: "[2:4,:]" are rows 2 and 3. */
static void tell_holders(const struct ap_explaining *x, const struct ap_plan_param *p)
{
	static const struct ap_column columns[] = {{"part", "part", AP_CELL_TEXT}, {"ranks", "ranks",
		AP_CELL_TEXT}};
	const struct ap_plan_op *op = &x->plan->op[p->node];
	const struct ap_layout *l = &op->in[p->operand];
	const struct ap_plan_stage *stage = &x->plan->stage[ap_plan_op_stage(x->plan, p->node)];
	int64_t parts = ap_layout_parts(l), *rank;

	if (parts == 1)
		return;
	rank = AP_NEW_N(x->ctx->arena, int64_t, (size_t)stage->devices);
	ap_sheet_block(x->sheet, "holders", "which ranks hold which part");
	ap_sheet_columns(x->sheet, columns, AP_COUNT(columns));
	for (int64_t part = 0; part < parts && part < MOST_CUTS; part++) {
		int64_t at[AP_MAX_RANK], left = part;
		struct ap_str s;
		uint32_t n = 0;

		for (int32_t d = l->rank; d-- > 0; left /= l->dim[d].cut)
			at[d] = left % l->dim[d].cut;
		ap_str_init(&s, x->ctx->arena);
		for (int32_t d = 0; d < l->rank; d++) {
			ap_str_add(&s, d ? "," : "[");
			if (l->dim[d].cut > 1)
				ap_str_addf(&s, "%" PRId64 ":%" PRId64, at[d] * p->slice[d],
					(at[d] + 1) * p->slice[d]);
			else
				ap_str_addc(&s, ':');
		}
		ap_str_addc(&s, ']');
		for (int64_t r = 0; r < stage->devices; r++) {
			bool here = true;

			for (int32_t d = 0; d < l->rank; d++)
				here &= l->dim[d].cut == 1 || r / l->dim[d].stride % l->dim[d].cut == at[d];
			if (here)
				rank[n++] = stage->first_rank + r;
		}
		ap_sheet_cell_text(x->sheet, s.s);
		ap_sheet_cell_text(x->sheet, ranks_text(x, rank, n));
	}
	if (parts > MOST_CUTS)
		ap_sheet_remark(x->sheet, "And %" PRId64 " parts more.", parts - MOST_CUTS);
	if (p->shard.shards > 1)
		ap_sheet_remark(x->sheet, "Each part is dealt among %" PRId64 " of its ranks.",
			p->shard.shards);
}

void ap_explain_tensor(const struct ap_explaining *x, ap_id tensor)
{
	static const struct ap_column columns[] = {{"way", "", AP_CELL_TEXT}, {"operator", "operator",
		AP_CELL_NAME},
		{"cut", "cut", AP_CELL_TEXT}, {"slice", "slice of a micro-batch", AP_CELL_TEXT}};
	const struct ap_graph *g = x->plan->graph;
	const struct ap_tensor *t = &g->tensor[tensor];

	ap_sheet_thing(x->sheet, "tensor", t->name, "%s %s, %s", ap_dtype_name(t->shape.dtype),
		extents(x, t->shape.dim, t->shape.rank), bytes_text(x, (double)ap_tensor_bytes(t)));
	ap_sheet_block(x->sheet, "layouts", "how it lies");
	ap_sheet_columns(x->sheet, columns, AP_COUNT(columns));
	for (uint32_t i = 0; i < t->nuse + (t->producer != AP_NONE); i++) {
		bool made = t->producer != AP_NONE && i == 0;
		const struct ap_use *u = made ? NULL : &t->use[i - (t->producer != AP_NONE)];
		ap_id node = made ? t->producer : u->node;
		const struct ap_layout *l = made ? &x->plan->op[node].out[t->result]
			: &x->plan->op[node].in[u->operand];

		ap_sheet_cell_text(x->sheet, made ? "made by" : "read by");
		ap_sheet_cell_text(x->sheet, g->node[node].name);
		ap_sheet_cell_text(x->sheet, layout_text(x, l));
		ap_sheet_cell_text(x->sheet, slice_text(x, tensor, l));
	}
	ap_sheet_block(x->sheet, "redistributions", "redistributed");
	ap_sheet_columns(x->sheet, move_columns, AP_COUNT(move_columns));
	for (uint32_t i = 0; i < x->plan->nmove; i++)
		if (x->plan->move[i].tensor == tensor)
			add_move(x, &x->plan->move[i], "for", x->plan->move[i].to);
	for (uint32_t i = 0; i < x->plan->nparam; i++) {
		const struct ap_plan_param *p = &x->plan->param[i];
		const struct ap_plan_op *op = &x->plan->op[p->node];
		struct constants constants = {0};
		struct terms terms = {.x = x, .constants = &constants};

		if (p->tensor != tensor)
			continue;
		ap_sheet_block(x->sheet, "parameter", "as a parameter");
		ap_sheet_words(x->sheet, "owner", "charged to", ap_diag_name(x->ctx->diag,
			g->node[p->node].name));
		ap_sheet_words(x->sheet, "slice", "slice", extents(x, p->slice, t->shape.rank));
		ap_sheet_number(x->sheet, "optimizer_shards", "dealt to", AP_CELL_INT,
			(double)p->shard.shards);
		if (p->shard.shards > 1 && !p->shard.by_rows)
			ap_sheet_number(x->sheet, "optimizer_part", "elements of a part", AP_CELL_INT,
				(double)p->shard.part);
		ap_sheet_columns(x->sheet, term_columns, AP_COUNT(term_columns));
		for (uint32_t k = 0; k < op->ncomm; k++)
			if (op->comm[k].comm.operand == (int)p->operand && op->comm[k].comm.result < 0)
				add_term(&terms, ap_phase_name(op->comm[k].comm.phase),
					comm_of(x, p->node, &op->comm[k].comm),
					comm_times(x, p->node, &op->comm[k].comm), op->comm[k].time_s,
					comm_text(x, &op->comm[k], &constants));
		tell_constants(x, &constants);
		tell_holders(x, p);
	}
}

/* ---- collectives ---- */

struct call { /* a collective of an operator */
	double s;
	ap_id node;
	const struct ap_plan_comm *c;
};

static int longest_call(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	if (x->s != y->s)
		return x->s > y->s ? -1 : 1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (x->c > y->c) - (x->c < y->c);
}

void ap_explain_collective(const struct ap_explaining *x, enum ap_coll kind)
{
	static const struct ap_column columns[] = {{"step_s", "in a step", AP_CELL_SECONDS},
		{"times", "times", AP_CELL_NUMBER}, {"once_s", "once", AP_CELL_SECONDS},
		{"phase", "phase", AP_CELL_TEXT}, {"operator", "operator", AP_CELL_NAME},
		{"how", "how", AP_CELL_TEXT}};
	static const struct ap_column sums[] = {{"phase", "phase", AP_CELL_TEXT}, {"count", "calls",
		AP_CELL_INT},
		{"step_s", "in a step", AP_CELL_SECONDS}};
	double s[AP_PHASE_RECOMPUTE + 1] = {0}, n[AP_PHASE_RECOMPUTE + 1] = {0};
	struct constants constants = {0};
	AP_VEC(struct call) all = {0};

	for (ap_id i = 0; i < x->plan->graph->nnode; i++)
		for (uint32_t k = 0; k < x->plan->op[i].ncomm; k++) {
			const struct ap_plan_comm *c = &x->plan->op[i].comm[k];
			double times = comm_times(x, i, &c->comm);
			struct call call = {times * c->time_s, i, c};

			if (c->comm.kind != kind)
				continue;
			s[c->comm.phase] += call.s;
			n[c->comm.phase] += times;
			AP_PUSH(x->ctx->arena, all, call);
		}
	if (all.n)
		qsort(all.v, all.n, sizeof *all.v, longest_call);
	ap_sheet_thing(x->sheet, "collective", ap_coll_name(kind),
		"%zu of operators, beside redistributions", all.n);
	ap_sheet_block(x->sheet, "phases", "by phase");
	ap_sheet_columns(x->sheet, sums, AP_COUNT(sums));
	for (int p = 0; p <= AP_PHASE_RECOMPUTE; p++) {
		if (n[p] == 0)
			continue;
		ap_sheet_cell_text(x->sheet, ap_phase_name((enum ap_phase)p));
		ap_sheet_cell(x->sheet, n[p]);
		ap_sheet_cell(x->sheet, s[p]);
	}
	ap_sheet_remark(x->sheet, "Each is priced alone; those of gradients and weights run in buckets.");
	ap_sheet_block(x->sheet, "longest", "the longest");
	ap_sheet_columns(x->sheet, columns, AP_COUNT(columns));
	for (size_t i = 0; i < all.n && i < MOST_LISTED; i++) {
		const struct call *c = &all.v[i];

		ap_sheet_cell(x->sheet, c->s);
		ap_sheet_cell(x->sheet, comm_times(x, c->node, &c->c->comm));
		ap_sheet_cell(x->sheet, c->c->time_s);
		ap_sheet_cell_text(x->sheet, ap_phase_name(c->c->comm.phase));
		ap_sheet_cell_text(x->sheet, x->plan->graph->node[c->node].name);
		ap_sheet_cell_text(x->sheet, comm_text(x, c->c, &constants));
	}
	tell_constants(x, &constants);
}

/* ---- all collectives ---- */

struct exchange { /* collectives of one phase and kind, among as many ranks over the same levels */
	const char *phase, *kind, *level;
	int64_t ranks;
	double count, bytes, s; /* of a step, all stages */
	double most_s; /* of the member that takes longest, once */
	const char *most; /* and its name */
};

struct exchanges {
	const struct ap_explaining *x;
	struct ap_map *ids;
	AP_VEC(struct exchange) v;
};

/* The levels that join a group; for a send, the innermost one that both stages are within. */
static const char *exchange_level(const struct ap_explaining *x, const struct ap_comm *c)
{
	const struct ap_machine *m = x->plan->machine;
	struct constants unread = {0};
	struct ap_group g;

	if (c->kind != AP_COLL_SEND) {
		ap_group_make(x->ctx->arena, ap_machine_at(m, c->block), &c->axes, &g);
		return levels_text(x, &g, &unread);
	}
	for (int l = 0; l < m->nlevel; l++)
		if (m->block[l][ap_machine_first(m, c->from_stage)] ==
			m->block[l][ap_machine_first(m, c->to_stage)])
			return m->level[l].name;
	return m->nlevel ? m->level[m->nlevel - 1].name : "";
}

/* kind: the collective, in one place for all of it. */
static void add_exchange(struct exchanges *e, const char *phase, const char *kind, const struct ap_comm *c,
	const char *name, double count, double bytes, double once_s)
{
	struct { /* without padding */
		const char *phase, *kind;
		int32_t from, to;
		struct ap_axes axes;
	} key;
	struct exchange *v;
	bool fresh;
	ap_id id;

	if (count == 0)
		return;
	memset(&key, 0, sizeof key);
	key.phase = phase;
	key.kind = kind;
	key.from = c->from_stage;
	key.to = c->to_stage;
	key.axes.n = c->axes.n;
	memcpy(key.axes.axis, c->axes.axis, (size_t)c->axes.n * sizeof *c->axes.axis);
	id = ap_map_put(e->ids, &key, sizeof key, &fresh);
	if (fresh) {
		const struct exchange none = {.phase = phase, .kind = kind, .level = exchange_level(e->x, c),
			.ranks = ap_plan_comm_ranks(c), .most = name};

		AP_PUSH(e->x->ctx->arena, e->v, none);
	}
	v = &e->v.v[id];
	v->count += count;
	v->bytes += count * bytes;
	v->s += count * once_s;
	if (once_s > v->most_s) {
		v->most_s = once_s;
		v->most = name;
	}
}

/* Which collectives of operators run in a bucket: [first[node] + index]. */
static bool *bucketed(const struct ap_explaining *x, uint32_t **first)
{
	const struct ap_plan *p = x->plan;
	bool *in;

	*first = AP_NEW_N(x->ctx->arena, uint32_t, (size_t)p->graph->nnode + 1);
	for (ap_id i = 0; i < p->graph->nnode; i++)
		(*first)[i + 1] = (*first)[i] + p->op[i].ncomm;
	in = AP_NEW_N(x->ctx->arena, bool, (*first)[p->graph->nnode] + 1);
	for (uint32_t i = 0; i < p->nbucket; i++)
		for (uint32_t k = 0; k < p->bucket[i].n; k++)
			in[(*first)[p->bucket[i].part[k].node] + p->bucket[i].part[k].comm] = true;
	return in;
}

/* What goes to a stage with another number of devices, and back. */
static void add_sent(struct exchanges *e, const struct ap_plan_move *m)
{
	const struct ap_plan *p = e->x->plan;
	double times = p->task[m->to].once ? 1 : (double)p->step->micro_batches;
	struct ap_comm c = {.kind = AP_COLL_SEND, .from_stage = ap_plan_op_stage(p, m->from),
		.to_stage = ap_plan_op_stage(p, m->to)};

	add_exchange(e, "pipeline", ap_coll_name(c.kind), &c, p->graph->node[m->from].name, times,
		(double)m->cost.bytes, m->cost.forward_s / times);
	if (m->cost.backward_s > 0)
		add_exchange(e, "pipeline", ap_coll_name(c.kind), &c, p->graph->node[m->from].name, times,
			(double)m->cost.bytes, m->cost.backward_s / times);
}

/* A redistribution, by the step that moves most. */
static void add_moved(struct exchanges *e, const struct ap_plan_move *m)
{
	const struct ap_plan *p = e->x->plan;
	double times = p->task[m->to].once ? 1 : (double)p->step->micro_batches;
	const struct ap_reshard_step *most = NULL;
	struct ap_comm c = {.kind = AP_COLL_ALLGATHER, .block = p->task[m->to].block};

	if (m->sent) {
		add_sent(e, m);
		return;
	}
	for (int i = 0; i < m->nstep + m->nback; i++) {
		const struct ap_reshard_step *s = i < m->nstep ? &m->step[i] : &m->back[i - m->nstep];
		bool local = s->move == AP_MOVE_SLICE;

		if (!most || (most->move == AP_MOVE_SLICE && !local) ||
			(local == (most->move == AP_MOVE_SLICE) && s->after > most->after))
			most = s;
	}
	if (!most || !(ap_plan_move_time_s(m) > 0))
		return;
	ap_axes_add(&c.axes, most->axis);
	add_exchange(e, "redistribution", ap_move_name(most->move), &c, p->graph->tensor[m->tensor].name,
		times, (double)m->cost.bytes, ap_plan_move_time_s(m) / times);
}

static int by_exchange(const void *a, const void *b)
{
	const struct exchange *x = a, *y = b;
	int order;

	if (x->s != y->s)
		return x->s > y->s ? -1 : 1;
	if ((order = strcmp(x->phase, y->phase)) || (order = strcmp(x->kind, y->kind)) ||
		(order = strcmp(x->level, y->level)))
		return order;
	return (x->ranks > y->ranks) - (x->ranks < y->ranks);
}

/* Joins groups of equal size over the same levels, whatever their ranks. */
static void join_exchanges(struct exchanges *e)
{
	size_t n = 0;

	for (size_t i = 0; i < e->v.n; i++) {
		struct exchange *v = &e->v.v[i], *to = e->v.v;

		while (to < e->v.v + n && (strcmp(to->phase, v->phase) != 0 ||
			strcmp(to->kind, v->kind) != 0 || strcmp(to->level, v->level) != 0 ||
			to->ranks != v->ranks))
			to++;
		if (to == e->v.v + n) {
			e->v.v[n++] = *v;
			continue;
		}
		to->count += v->count;
		to->bytes += v->bytes;
		to->s += v->s;
		if (v->most_s > to->most_s) {
			to->most_s = v->most_s;
			to->most = v->most;
		}
	}
	e->v.n = n;
	if (n)
		qsort(e->v.v, n, sizeof *e->v.v, by_exchange);
}

/* All collectives of a step, as they run: of gradients and weights in buckets. */
static void tell_collectives(const struct ap_explaining *x)
{
	static const struct ap_column columns[] = {{"step_s", "in a step", AP_CELL_SECONDS},
		{"collective", "collective", AP_CELL_TEXT}, {"phase", "phase", AP_CELL_TEXT},
		{"ranks", "ranks", AP_CELL_INT}, {"level", "over", AP_CELL_TEXT},
		{"count", "calls", AP_CELL_INT}, {"bytes", "bytes", AP_CELL_BYTES},
		{"longest_s", "longest call", AP_CELL_SECONDS}, {"longest", "of", AP_CELL_NAME}};
	const struct ap_plan *p = x->plan;
	struct exchanges e = {.x = x, .ids = ap_map_create(x->ctx->arena)};
	uint32_t *first;
	const bool *in = bucketed(x, &first);
	double sum_s = 0;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		for (uint32_t k = 0; k < p->op[i].ncomm; k++) {
			const struct ap_plan_comm *c = &p->op[i].comm[k];
			bool sent = c->comm.kind == AP_COLL_SEND;

			add_exchange(&e, sent ? "pipeline" : ap_phase_name(c->comm.phase),
				ap_coll_name(c->comm.kind), &c->comm, p->graph->node[i].name,
				comm_times(x, i, &c->comm) - in[first[i] + k],
				(double)c->comm.bytes, c->time_s);
		}
	for (uint32_t i = 0; i < p->nbucket; i++) {
		const struct ap_bucket *b = &p->bucket[i];
		const struct ap_comm *part = &p->op[b->part[0].node].comm[b->part[0].comm].comm;

		add_exchange(&e, ap_phase_name(part->phase), ap_coll_name(b->kind), part,
			p->graph->tensor[b->tensor[0]].name, 1, (double)b->bytes, b->time_s);
	}
	for (uint32_t i = 0; i < p->nmove; i++)
		add_moved(&e, &p->move[i]);
	join_exchanges(&e);
	ap_sheet_block(x->sheet, "collectives", "collectives, of a step");
	ap_sheet_columns(x->sheet, columns, AP_COUNT(columns));
	for (size_t i = 0; i < e.v.n; i++) {
		const struct exchange *v = &e.v.v[i];

		ap_sheet_cell(x->sheet, v->s);
		ap_sheet_cell_text(x->sheet, v->kind);
		ap_sheet_cell_text(x->sheet, v->phase);
		ap_sheet_cell(x->sheet, (double)v->ranks);
		ap_sheet_cell_text(x->sheet, v->level);
		ap_sheet_cell(x->sheet, v->count);
		ap_sheet_cell(x->sheet, v->bytes);
		ap_sheet_cell(x->sheet, v->most_s);
		ap_sheet_cell_text(x->sheet, v->most);
		sum_s += v->s;
	}
	ap_sheet_number(x->sheet, "total_s", "in all", AP_CELL_SECONDS, sum_s);
	if (!e.v.n)
		ap_sheet_remark(x->sheet, "Nothing is sent.");
	else
		ap_sheet_remark(x->sheet, "Of all stages, each by itself, of which some run beside others; "
			"gradients and weights in the buckets that they run in, a redistribution and its "
			"way back as the call that moves most. bytes: of the calls' buffers, of what a "
			"rank sends where it is redistributed.");
}

/* ---- the whole plan ---- */

/* By how much the sum grows if an operator had its next best cut. */
static void tell_decisions(const struct ap_explaining *x)
{
	static const struct ap_column columns[] = {{"loss_s", "it would lose", AP_CELL_SECONDS},
		{"loss", "of the sum", AP_CELL_CHANGE}, {"cut", "cut", AP_CELL_TEXT},
		{"next", "the next best", AP_CELL_TEXT}, {"count", "x", AP_CELL_INT},
		{"operators", "operators", AP_CELL_NAME}};
	const struct ap_alternatives_report *r = x->others;
	const struct ap_graph *g = x->plan->graph;
	struct items items = {{0}}, losses = {{0}};

	ap_sheet_block(x->sheet, "decisions", ap_arena_printf(x->ctx->arena,
		"the decisions that matter most, by the "
		"objective%s", ap_charge_text(r->charge)));
	if (r->unknown) {
		ap_sheet_remark(x->sheet, "What other cuts cost is not known: %s.", r->unknown);
		return;
	}
	tell_sums(x);
	ap_sheet_columns(x->sheet, columns, AP_COUNT(columns));
	fold_operators(x, -1, &items);
	for (size_t i = 0; i < items.v.n; i++) {
		struct item it = items.v.v[i];
		const struct ap_alternatives *a = find(x, it.first);
		double next = INFINITY;

		for (uint32_t k = 0; a && k < a->n; k++)
			if (!a->v[k].taken)
				next = fmin(next, a->v[k].sum_s);
		it.s = a ? next - taken_s(a) : 0;
		if (it.s > 0 && isfinite(it.s))
			AP_PUSH(x->ctx->arena, losses.v, it);
	}
	if (losses.v.n)
		qsort(losses.v.v, losses.v.n, sizeof *losses.v.v, by_seconds);
	for (size_t i = 0; i < losses.v.n && i < MOST_LISTED; i++) {
		const struct item *it = &losses.v.v[i];
		const struct ap_alternatives *a = find(x, it->first);
		const struct ap_bound *b = &g->node[it->first].bound;
		uint32_t next = a->taken == 0 ? 1 : 0;

		ap_sheet_cell(x->sheet, it->s);
		ap_sheet_cell(x->sheet, it->s / taken_s(a));
		ap_sheet_cell_text(x->sheet, ap_explain_cut(x->ctx, b, a->v[a->taken].count,
			devices_of(x, it->first)));
		ap_sheet_cell_text(x->sheet, ap_explain_cut(x->ctx, b, a->v[next].count,
			devices_of(x, it->first)));
		ap_sheet_cell(x->sheet, it->n);
		ap_sheet_cell_text(x->sheet, it->name);
	}
	ap_sheet_remark(x->sheet, "Each by itself, the first of those alike: the least sum of all "
		"plans in which it has "
		"its next best cut, less that with the plan's cut.");
	if (r->binds)
		ap_sheet_remark(x->sheet, "The memory binds: these sums are of plans that need not fit it.");
}

static void add_baseline(const struct ap_explaining *x, const char *name, const struct ap_prediction *p,
	bool fits)
{
	const double part[] = {p->step_time_s, p->step_time_s / x->plan->prediction.step_time_s - 1,
		p->compute_s,
		p->exposed_communication_s, p->bubble_s, p->optimizer_s};

	ap_sheet_cell_text(x->sheet, name);
	for (size_t i = 0; i < AP_COUNT(part); i++)
		ap_sheet_cell(x->sheet, part[i]);
	ap_sheet_cell(x->sheet, (double)p->memory.total);
	ap_sheet_cell_text(x->sheet, fits ? "" : "does not fit");
}

/* A reason with the name that it begins with, `operator "..."`, by its end: the reason is asked for. */
static const char *shorter(const struct ap_explaining *x, const char *why)
{
	const char *from = strchr(why, '"'), *to = from ? strchr(from + 1, '"') : NULL;

	if (to && (size_t)(to - from) > MOST_NAME)
		why = ap_arena_printf(x->ctx->arena, "%.*s...%s", (int)(from - why + 1), why,
			character_at(to - MOST_NAME));
	return strlen(why) <= 2 * MOST_WHY ? why
		: ap_arena_printf(x->ctx->arena, "%s...", beginning(x, why, 2 * MOST_WHY));
}

void ap_explain_plan(const struct ap_explaining *x, const struct ap_explained_baseline *baseline, uint32_t n)
{
	static const struct ap_column columns[] = {{"plan", "", AP_CELL_TEXT}, {"step_s", "step",
		AP_CELL_SECONDS},
		{"more", "more", AP_CELL_CHANGE}, {"compute_s", "compute", AP_CELL_SECONDS},
		{"exposed_communication_s", "exposed", AP_CELL_SECONDS}, {"bubble_s", "bubble",
		AP_CELL_SECONDS},
		{"optimizer_s", "optimizer", AP_CELL_SECONDS}, {"memory_bytes", "memory", AP_CELL_BYTES},
		{"why", "", AP_CELL_TEXT}};
	const struct ap_prediction *p = &x->plan->prediction;

	ap_sheet_thing(x->sheet, "plan", x->plan->graph->name, "a step of %s on %" PRIu32 " devices",
		seconds(x, p->step_time_s), x->plan->machine->total);
	ap_sheet_block(x->sheet, "baselines", "why it beats the baselines: terms of the step side by side");
	ap_sheet_columns(x->sheet, columns, AP_COUNT(columns));
	add_baseline(x, "this plan", p, p->memory.total <= x->plan->capacity_bytes);
	for (uint32_t i = 0; i < n; i++)
		if (!baseline[i].why_not)
			add_baseline(x, baseline[i].name, &baseline[i].prediction, baseline[i].fits);
	for (uint32_t i = 0; i < n; i++)
		if (baseline[i].why_not)
			ap_sheet_remark(x->sheet, "There is no plan of %s: %s", baseline[i].name,
				shorter(x, baseline[i].why_not));
	ap_sheet_remark(x->sheet, "step = compute + exposed communication + bubble + optimizer, of a "
		"device, mean over "
		"the stages.");
	tell_longest(x, -1);
	tell_collectives(x);
	tell_decisions(x);
	tell_memory_kinds(x, &p->memory);
	tell_layers(x, -1);
}
