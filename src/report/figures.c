/* SPDX-License-Identifier: Apache-2.0 */
#include "report/figures.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/name_fold.h"
#include "base/str.h"
#include "base/vec.h"
#include "rule/op.h"

double ap_figures_number(const struct ap_jv *object, const char *key)
{
	const struct ap_jv *v = object ? ap_jv_get(object, key) : NULL;

	return v && ap_jv_type(v) == AP_JNUMBER ? ap_jv_double(v) : 0;
}

int64_t ap_figures_integer(const struct ap_figures *f, const struct ap_jv *object, const char *key)
{
	const struct ap_jv *v = object ? ap_jv_get(object, key) : NULL;
	int64_t i;

	return v && ap_jv_type(v) == AP_JNUMBER && ap_jv_int(f->doc, v, &i) ? i : 0;
}

const char *ap_figures_text(const struct ap_jv *object, const char *key)
{
	const struct ap_jv *v = object ? ap_jv_get(object, key) : NULL;

	return v && ap_jv_type(v) == AP_JSTRING ? ap_jv_str(v) : "";
}

const struct ap_jv *ap_figures_section(const struct ap_figures *f, const char *key)
{
	const struct ap_jv *v = ap_jv_get(ap_json_root(f->doc), key);

	return v && ap_jv_type(v) != AP_JNULL ? v : NULL;
}

static const struct ap_jv *list_of(const struct ap_jv *object, const char *key)
{
	const struct ap_jv *v = object ? ap_jv_get(object, key) : NULL;

	return v && ap_jv_type(v) == AP_JARRAY ? v : NULL;
}

/* ---- what the plan says as it is ---- */

static void read_head(struct ap_figures *f)
{
	const struct ap_jv *graph = ap_figures_section(f, "graph"),
			   *machine = ap_figures_section(f, "machine");
	const struct ap_jv *search = ap_figures_section(f, "search"),
			   *prediction = ap_figures_section(f, "prediction"),
			   *pipeline = ap_figures_section(f, "pipeline");

	f->name = ap_figures_text(graph, "name");
	f->batch = ap_figures_integer(f, graph, "batch");
	f->parameters = ap_figures_integer(f, graph, "parameters");
	f->chip = ap_figures_text(machine, "chip");
	f->devices = ap_figures_integer(f, machine, "devices");
	f->servers = ap_figures_integer(f, machine, "servers");
	f->capacity_bytes = ap_figures_integer(f, machine, "capacity_bytes");
	f->mode = ap_figures_text(search, "mode");
	f->status = ap_figures_text(search, "status");
	f->step_s = ap_figures_number(prediction, "step_time_s");
	f->bound_s = ap_figures_number(prediction, "step_bound_s");
	f->step_gap = ap_figures_number(prediction, "step_gap");
	f->step_status = ap_figures_text(prediction, "step_status");
	f->compute_s = ap_figures_number(prediction, "compute_s");
	f->communication_s = ap_figures_number(prediction, "communication_s");
	f->exposed_s = ap_figures_number(prediction, "exposed_communication_s");
	f->bubble_s = ap_figures_number(prediction, "bubble_s");
	f->optimizer_s = ap_figures_number(prediction, "optimizer_s");
	f->rate = ap_figures_number(prediction, "tokens_or_samples_per_s");
	f->scheduler = ap_figures_text(pipeline, "scheduler");
	f->segments = pipeline ? ap_figures_integer(f, pipeline, "segments") : 1;
	f->ahead = ap_figures_section(f, "joint") != NULL;
}

static enum ap_figures_pass pass_of(const char *name)
{
	if (!strcmp(name, "forward"))
		return AP_FIGURES_FORWARD;
	return !strcmp(name, "backward") ? AP_FIGURES_BACKWARD : AP_FIGURES_WEIGHT;
}

static const struct ap_figures_slot *read_slots(
	struct ap_ctx *ctx, struct ap_figures *f, const struct ap_jv *list, uint32_t *n)
{
	struct ap_figures_slot *slot =
		AP_NEW_N(ctx->arena, struct ap_figures_slot, list ? ap_jv_count(list) : 0);

	*n = 0;
	for (const struct ap_jv *v = list ? ap_jv_first(list) : NULL; v; v = ap_jv_next(v)) {
		slot[(*n)++] = (struct ap_figures_slot){
			.pass = pass_of(ap_figures_text(v, "pass")),
			.segment = ap_figures_integer(f, v, "segment"),
			.micro_batch = ap_figures_integer(f, v, "micro_batch"),
			.start_s = ap_figures_number(v, "start_s"),
			.end_s = ap_figures_number(v, "end_s"),
		};
	}
	return slot;
}

/* Layers of a stage, the sum over its segments: "layers" counts them by segment, then stage. */
static int64_t layers_of(const struct ap_figures *f, uint32_t stage, uint32_t nstage)
{
	const struct ap_jv *layers = list_of(ap_figures_section(f, "pipeline"), "layers");
	int64_t sum = 0, n;
	uint32_t i = 0;

	if (!layers)
		return -1;
	for (const struct ap_jv *v = ap_jv_first(layers); v; v = ap_jv_next(v), i++)
		if (i % nstage == stage && ap_jv_type(v) == AP_JNUMBER && ap_jv_int(f->doc, v, &n))
			sum += n;
	return sum;
}

static void read_stages(struct ap_ctx *ctx, struct ap_figures *f)
{
	const struct ap_jv *list = list_of(ap_json_root(f->doc), "stages");
	const struct ap_jv *memory = list_of(ap_figures_section(f, "prediction"), "memory"), *m;
	uint32_t n = list ? (uint32_t)ap_jv_count(list) : 0;
	struct ap_figures_stage *stage = AP_NEW_N(ctx->arena, struct ap_figures_stage, n);
	const struct ap_memory none = {0};

	m = memory ? ap_jv_first(memory) : NULL;
	for (const struct ap_jv *v = list ? ap_jv_first(list) : NULL; v; v = ap_jv_next(v)) {
		struct ap_figures_stage *s = &stage[f->nstage];

		s->first_rank = ap_figures_integer(f, v, "first_rank");
		s->ranks = n ? f->devices / n : 0;
		s->operators = ap_figures_integer(f, v, "operators");
		s->in_flight = ap_figures_integer(f, v, "in_flight");
		s->layers = layers_of(f, f->nstage, n);
		s->forward_s = ap_figures_number(v, "forward_s");
		s->backward_s = ap_figures_number(v, "backward_s");
		s->idle_s = ap_figures_number(v, "idle_s");
		s->peak_bytes = ap_figures_integer(f, v, "peak_bytes");
		s->total_bytes = ap_figures_integer(f, v, "memory_bytes");
		f->micro_batches = ap_figures_integer(f, v, "micro_batches");
		for (int k = 0; k < AP_MEMORY_KINDS && m; k++)
			s->kind_bytes[k] = ap_figures_integer(f, m, ap_memory_kind(&none, k).key);
		m = m ? ap_jv_next(m) : NULL;
		s->slot = read_slots(ctx, f, list_of(v, "slots"), &s->nslot);
		if (s->total_bytes > f->fullest_bytes) {
			f->fullest_bytes = s->total_bytes;
			f->fullest = f->nstage;
		}
		f->nstage++;
	}
	f->stage = stage;
}

/* ---- sums over operators and collectives ---- */

/* Kinds of kernels: the first row that holds. */
static const char *class_of(const char *type)
{
	const struct ap_op_row *row = ap_op_next(NULL, type);

	if (strstr(type, "Attention"))
		return "attention";
	if (strstr(type, "Conv"))
		return "convolutions";
	if (row && row->unit == AP_OP_CUBE)
		return "matrix products";
	if (strstr(type, "Norm"))
		return "norms";
	if (strstr(type, "Softmax") || strstr(type, "CrossEntropy"))
		return "softmax and loss";
	if (row && (row->unit == AP_OP_MEMORY || row->unit == AP_OP_VIEW))
		return "moves and lookups";
	return "element by element";
}

static int by_class_time(const void *a, const void *b)
{
	const struct ap_figures_class *x = a, *y = b;

	if (x->time_s != y->time_s)
		return x->time_s > y->time_s ? -1 : 1;
	return strcmp(x->name, y->name);
}

struct sums {
	struct ap_ctx *ctx;
	struct ap_figures *f;
	struct ap_map *class_ids, *collective_ids;
	AP_VEC(struct ap_figures_class) classes;
	AP_VEC(struct ap_figures_collective) collectives;
	uint32_t nlevel;
	int64_t *span; /* of each level of the machine */
	const char **level;
};

static void add_class(struct sums *s, const char *name, double time_s)
{
	const struct ap_figures_class none = {.name = name};
	bool fresh;
	ap_id id = ap_map_put_str(s->class_ids, name, &fresh);

	if (fresh)
		AP_PUSH(s->ctx->arena, s->classes, none);
	s->classes.v[id].operators++;
	s->classes.v[id].time_s += time_s;
	s->f->kernels_s += time_s;
}

/* The level of the machine that a group's farthest ranks are joined by; *ranks: how many there are. */
static const char *level_of(const struct sums *s, const struct ap_jv *axes, int64_t *ranks)
{
	int64_t reach = 1;

	*ranks = 1;
	for (const struct ap_jv *a = axes ? ap_jv_first(axes) : NULL; a; a = ap_jv_next(a)) {
		const struct ap_jv *first = ap_jv_first(a), *second = first ? ap_jv_next(first) : NULL;
		int64_t stride, size;

		if (!second || !ap_jv_int(s->f->doc, first, &stride) ||
			!ap_jv_int(s->f->doc, second, &size) || size < 1 || stride < 1 ||
			size > s->f->devices || stride > s->f->devices)
			continue;
		*ranks = *ranks <= s->f->devices ? *ranks * size : *ranks;
		reach = stride * size > reach ? stride * size : reach;
	}
	for (uint32_t i = 0; i < s->nlevel; i++)
		if (reach <= s->span[i])
			return s->level[i];
	return s->nlevel ? s->level[s->nlevel - 1] : "";
}

static void add_collective(struct sums *s, const char *phase, const char *kind, const char *level,
	int64_t ranks, int64_t count, double bytes, double time_s)
{
	const struct ap_figures_collective none = {
		.phase = phase, .kind = kind, .level = level, .ranks = ranks};
	bool fresh;
	ap_id id = ap_map_put_str(s->collective_ids,
		ap_arena_printf(s->ctx->scratch, "%s %s %" PRId64 " %s", phase, kind, ranks, level),
		&fresh);
	struct ap_figures_collective *c;

	if (fresh)
		AP_PUSH(s->ctx->arena, s->collectives, none);
	c = &s->collectives.v[id];
	c->count += count;
	bytes += (double)c->bytes;
	c->bytes = bytes < 9e18 ? (int64_t)bytes : INT64_MAX;
	c->time_s += time_s;
	s->f->collectives_s += time_s;
}

/* Those of gradients and weights are counted as they run, in buckets; gradients that are exchanged after
 * each micro-batch run so after the last one. */
static void add_operator(struct sums *s, const struct ap_jv *v, const struct ap_saved_op *op, bool buckets)
{
	const struct ap_jv *cost = ap_jv_get(v, "cost"), *comm = list_of(v, "communications");
	double kernel_s = ap_figures_number(cost, "forward_s") + ap_figures_number(cost, "backward_s");

	if (kernel_s > 0)
		add_class(s, class_of(op->type), kernel_s);
	if (ap_figures_number(cost, "optimizer_s") > 0)
		add_class(s, "optimizer", ap_figures_number(cost, "optimizer_s"));
	comm = comm ? ap_jv_first(comm) : NULL;
	for (uint32_t i = 0; i < op->ncomm && comm; i++, comm = ap_jv_next(comm)) {
		const struct ap_saved_comm *c = &op->comm[i];
		bool sent = !strcmp(c->kind, "Send");
		bool gradient = !strcmp(c->phase, "gradient");
		bool last = buckets && !sent && (gradient || !strcmp(c->phase, "optimizer"));
		int64_t count = c->count - last, ranks;
		const char *level;

		if (count == 0)
			continue;
		level = level_of(s, list_of(comm, "axes"), &ranks);
		add_collective(s, sent ? "pipeline" : gradient ? "gradients" : c->phase, c->kind, level,
			ranks, count, (double)c->bytes * (double)count,
			ap_figures_number(comm, "time_s") * (double)count);
	}
}

static void add_redistribution(struct sums *s, const struct ap_jv *v)
{
	const struct ap_jv *steps = list_of(v, "steps"), *back = list_of(v, "back_steps");
	const char *kind = "Slice", *level = "";
	int64_t ranks = 1, most = 0;

	for (int side = 0; side < 2; side++)
		for (const struct ap_jv *step = (side ? back : steps) ? ap_jv_first(side ? back : steps)
								      : NULL;
			step; step = ap_jv_next(step)) {
			const struct ap_jv *axis = ap_jv_get(step, "axis");
			const struct ap_jv *size =
				axis && ap_jv_first(axis) ? ap_jv_next(ap_jv_first(axis)) : NULL;
			int64_t stride = 1, parts = 1,
				bytes = ap_figures_integer(s->f, step, "bytes_after");

			if (!size || !ap_jv_int(s->f->doc, size, &parts) ||
				!ap_jv_int(s->f->doc, ap_jv_first(axis), &stride) ||
				!strcmp(ap_figures_text(step, "kind"), "Slice") || bytes < most ||
				stride > s->f->devices || parts > s->f->devices)
				continue;
			most = bytes;
			kind = ap_figures_text(step, "kind");
			ranks = parts;
			for (uint32_t i = s->nlevel; i-- > 0;)
				if (stride * parts <= s->span[i] || i + 1 == s->nlevel)
					level = s->level[i];
		}
	if (most > 0)
		add_collective(s, "redistribution", kind, level, ranks, s->f->micro_batches,
			(double)ap_figures_integer(s->f, v, "bytes") * (double)s->f->micro_batches,
			ap_figures_number(v, "time_s"));
}

static int by_collective_time(const void *a, const void *b)
{
	const struct ap_figures_collective *x = a, *y = b;
	int order;

	if (x->time_s != y->time_s)
		return x->time_s > y->time_s ? -1 : 1;
	if ((order = strcmp(x->phase, y->phase)) || (order = strcmp(x->kind, y->kind)))
		return order;
	return x->ranks < y->ranks ? -1 : x->ranks > y->ranks;
}

static void read_sums(struct ap_ctx *ctx, struct ap_figures *f)
{
	const struct ap_jv *root = ap_json_root(f->doc), *levels, *list, *fusion = list_of(root, "fusion");
	struct sums s = {.ctx = ctx,
		.f = f,
		.class_ids = ap_map_create(ctx->scratch),
		.collective_ids = ap_map_create(ctx->scratch)};
	uint32_t i = 0;

	levels = list_of(ap_figures_section(f, "machine"), "levels");
	s.span = AP_NEW_N(ctx->scratch, int64_t, levels ? ap_jv_count(levels) : 0);
	s.level = AP_NEW_N(ctx->scratch, const char *, levels ? ap_jv_count(levels) : 0);
	for (const struct ap_jv *v = levels ? ap_jv_first(levels) : NULL; v; v = ap_jv_next(v)) {
		s.span[s.nlevel] = ap_figures_integer(f, v, "span");
		s.level[s.nlevel++] = ap_figures_text(v, "name");
	}
	list = list_of(root, "operators");
	for (const struct ap_jv *v = list ? ap_jv_first(list) : NULL; v && i < f->saved->nop;
		v = ap_jv_next(v))
		add_operator(&s, v, &f->saved->op[i++], fusion && ap_jv_first(fusion));
	list = list_of(root, "redistributions");
	for (const struct ap_jv *v = list ? ap_jv_first(list) : NULL; v; v = ap_jv_next(v))
		add_redistribution(&s, v);
	for (const struct ap_jv *v = fusion ? ap_jv_first(fusion) : NULL; v; v = ap_jv_next(v)) {
		const char *kind = ap_figures_text(v, "kind"), *level;
		int64_t ranks;

		level = level_of(&s, list_of(v, "axes"), &ranks);
		add_collective(&s, strcmp(kind, "AllGather") != 0 ? "gradients" : "weights", kind, level,
			ranks, 1, (double)ap_figures_integer(f, v, "bytes"),
			ap_figures_number(v, "time_s"));
	}
	if (s.classes.n)
		qsort(s.classes.v, s.classes.n, sizeof *s.classes.v, by_class_time);
	if (s.collectives.n)
		qsort(s.collectives.v, s.collectives.n, sizeof *s.collectives.v, by_collective_time);
	f->nclass = (uint32_t)s.classes.n;
	f->class = s.classes.v;
	f->ncollective = (uint32_t)s.collectives.n;
	f->collective = s.collectives.v;
}

/* ---- groups of operators and redistributions alike ---- */

/* "AllReduce over 8, AllGather over 4" */
static const char *collectives_text(struct ap_ctx *ctx, const struct ap_saved_op *op)
{
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	for (uint32_t i = 0; i < op->ncomm; i++) {
		bool seen = false;

		for (uint32_t j = 0; j < i && !seen; j++)
			seen = op->comm[j].ranks == op->comm[i].ranks &&
				!strcmp(op->comm[j].kind, op->comm[i].kind);
		if (!seen)
			ap_str_addf(&text, "%s%s over %" PRId64, text.len ? ", " : "", op->comm[i].kind,
				op->comm[i].ranks);
	}
	return text.s;
}

static int by_group_time(const void *a, const void *b)
{
	const struct ap_figures_group *x = a, *y = b;

	if (x->time_s != y->time_s)
		return x->time_s > y->time_s ? -1 : 1;
	return strcmp(x->label, y->label);
}

static int by_move_time(const void *a, const void *b)
{
	const struct ap_figures_move *x = a, *y = b;

	if (x->time_s != y->time_s)
		return x->time_s > y->time_s ? -1 : 1;
	return strcmp(x->label, y->label);
}

/* Kernel seconds of each operator. */
static const double *read_kernels(struct ap_ctx *ctx, const struct ap_figures *f)
{
	const struct ap_jv *list = list_of(ap_json_root(f->doc), "operators");
	double *kernel_s = AP_NEW_N(ctx->scratch, double, f->saved->nop);
	uint32_t i = 0;

	for (const struct ap_jv *v = list ? ap_jv_first(list) : NULL; v && i < f->saved->nop;
		v = ap_jv_next(v)) {
		const struct ap_jv *cost = ap_jv_get(v, "cost");

		kernel_s[i++] = ap_figures_number(cost, "forward_s") +
			ap_figures_number(cost, "backward_s") + ap_figures_number(cost, "optimizer_s");
	}
	return kernel_s;
}

static void read_groups(struct ap_ctx *ctx, struct ap_figures *f)
{
	const struct ap_saved *saved = f->saved;
	struct ap_name_item *item = AP_NEW_N(ctx->scratch, struct ap_name_item, saved->nop);
	const char **collectives = AP_NEW_N(ctx->scratch, const char *, saved->nop);
	const double *kernel_s = read_kernels(ctx, f);
	struct ap_dimension_votes votes = {0};
	const struct ap_name_fold *fold;
	struct ap_figures_group *group;

	for (uint32_t i = 0; i < saved->nop; i++) {
		const struct ap_saved_op *op = &saved->op[i];
		const char *cut = op->field[AP_SAVED_IN_STRATEGY];

		collectives[i] = collectives_text(ctx, op);
		item[i] = (struct ap_name_item){op->label,
			ap_arena_printf(
				ctx->scratch, "%s %s %s", op->type, cut ? cut : "", collectives[i])};
	}
	f->ngroup = ap_name_folds(ctx, saved->nop, item, &fold);
	group = AP_NEW_N(ctx->arena, struct ap_figures_group, f->ngroup);
	for (uint32_t i = 0; i < f->ngroup; i++) {
		const struct ap_saved_op *first = &saved->op[fold[i].item[0]];
		struct ap_figures_group *g = &group[i];

		*g = (struct ap_figures_group){.label = fold[i].name,
			.type = first->type,
			.n = fold[i].n,
			.cut = first->field[AP_SAVED_IN_STRATEGY],
			.collectives = collectives[fold[i].item[0]],
			.first_stage = first->stage,
			.last_stage = first->stage};
		ap_dimensions_parts(&f->dimensions, first, g->parts);
		for (uint32_t j = 0; j < g->n; j++) {
			const struct ap_saved_op *op = &saved->op[fold[i].item[j]];

			g->time_s += op->time_s;
			g->kernel_s += kernel_s[fold[i].item[j]];
			g->first_stage = op->stage < g->first_stage ? op->stage : g->first_stage;
			g->last_stage = op->stage > g->last_stage ? op->stage : g->last_stage;
		}
		g->communication_s = g->time_s > g->kernel_s ? g->time_s - g->kernel_s : 0;
		f->operators_s += g->time_s;
	}
	for (uint32_t i = 0; i < f->ngroup; i++)
		ap_dimensions_vote(&votes, group[i].type, group[i].parts, group[i].time_s);
	ap_dimensions_elect(&votes, f->parts);
	if (f->ngroup)
		qsort(group, f->ngroup, sizeof *group, by_group_time);
	f->group = group;
}

static void read_moves(struct ap_ctx *ctx, struct ap_figures *f)
{
	const struct ap_saved *saved = f->saved;
	struct ap_name_item *item = AP_NEW_N(ctx->scratch, struct ap_name_item, saved->nmove);
	const struct ap_name_fold *fold;
	struct ap_figures_move *move;

	for (uint32_t i = 0; i < saved->nmove; i++) {
		const struct ap_saved_move *m = &saved->move[i];
		const struct ap_saved_op *to = &saved->op[m->to];
		const char *steps = m->field[AP_SAVED_STEPS];
		size_t len = steps ? strlen(steps) : 0;

		/* steps are a JSON string */
		item[i] = (struct ap_name_item){
			m->operand >= 0 && m->operand < to->nin ? to->in[m->operand] : to->label,
			len >= 2 ? ap_arena_strndup(ctx->arena, steps + 1, len - 2) : ""};
	}
	f->nmove = ap_name_folds(ctx, saved->nmove, item, &fold);
	move = AP_NEW_N(ctx->arena, struct ap_figures_move, f->nmove);
	for (uint32_t i = 0; i < f->nmove; i++) {
		struct ap_figures_move *m = &move[i];

		*m = (struct ap_figures_move){.label = fold[i].name,
			.steps = item[fold[i].item[0]].same,
			.n = fold[i].n,
			.bytes = saved->move[fold[i].item[0]].bytes};
		for (uint32_t j = 0; j < m->n; j++)
			m->time_s += saved->move[fold[i].item[j]].time_s;
		f->operators_s += m->time_s;
	}
	if (f->nmove)
		qsort(move, f->nmove, sizeof *move, by_move_time);
	f->move = move;
}

/* ---- the schedule without a pipeline ---- */

/* The phase of a collective of an operator. */
static const char *phase_of(const struct ap_figures *f, int64_t operator, int64_t comm)
{
	const struct ap_saved_op *op;

	if (operator<0 || operator>= f->saved->nop)
		return "";
	op = &f->saved->op[operator];
	return comm >= 0 && comm < op->ncomm ? op->comm[comm].phase : "";
}

static enum ap_figures_work work_of(const struct ap_figures *f, const struct ap_jv *event)
{
	static const struct {
		const char *name;
		enum ap_figures_work work;
	} works[] = {{"forward", AP_FIGURES_WORK_FORWARD}, {"backward", AP_FIGURES_WORK_BACKWARD},
		{"optimizer", AP_FIGURES_WORK_OPTIMIZER}};
	const char *name = ap_figures_text(event, "event"), *phase;

	for (size_t i = 0; i < AP_COUNT(works); i++)
		if (!strcmp(name, works[i].name))
			return works[i].work;
	if (strcmp(name, "communication") != 0)
		return AP_FIGURES_WORK_COLLECTIVE;
	phase = phase_of(f, ap_figures_integer(f, event, "operator"),
		ap_figures_integer(f, event, "communication"));
	return !strcmp(phase, "gradient") || !strcmp(phase, "optimizer") ? AP_FIGURES_WORK_GRADIENTS
		: AP_FIGURES_WORK_COLLECTIVE;
}

static void read_runs(struct ap_ctx *ctx, struct ap_figures *f)
{
	const struct ap_jv *list = list_of(ap_json_root(f->doc), "schedule");
	struct ap_figures_run *run;

	if (f->nstage > 1 || !list)
		return;
	run = AP_NEW_N(ctx->arena, struct ap_figures_run, ap_jv_count(list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		run[f->nrun++] = (struct ap_figures_run){.work = work_of(f, v),
			.start_s = ap_figures_number(v, "start_s"), .end_s = ap_figures_number(v, "end_s")};
	f->run = run;
}

void ap_figures_read(
	struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_saved *saved, struct ap_figures *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);

	*out = (struct ap_figures){.doc = doc, .saved = saved};
	ap_dimensions_of_saved(saved, &out->dimensions);
	read_head(out);
	read_stages(ctx, out);
	out->dimensions.micro_batches = out->micro_batches > 0 ? out->micro_batches : 1;
	read_sums(ctx, out);
	read_groups(ctx, out);
	read_moves(ctx, out);
	read_runs(ctx, out);
	ap_arena_release(ctx->scratch, mark);
}

void ap_figures_message(const struct ap_figures *f, struct ap_str *out)
{
	ap_dimensions_message(out, f->parts, f->devices, f->nstage, f->micro_batches);
}
