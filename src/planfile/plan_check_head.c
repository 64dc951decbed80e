/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a plan file: settings, graph, machine, pipeline, search and what is compared with it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/vec.h"
#include "planfile/plan_check_parts.h"
#include "route/route.h"

enum { MOST_NESTED = 16 }; /* no setting has more; the hash of what has is another */

/* The hash is of their compact form. */
static void hold_hash(struct ap_book *b, const struct ap_jv *settings)
{
	const struct ap_jv *input = ap_jv_get(ap_jv_get(b->root, "inputs"), "settings");
	struct ap_str text;
	struct ap_jw w;
	char hex[AP_SHA256_HEX + 1];

	ap_str_init(&text, b->ctx->scratch);
	ap_jw_str_init(&w, &text, 0);
	if (ap_jv_is_shallow(settings, MOST_NESTED))
		ap_jw_value(&w, b->doc, settings);
	ap_sha256_hex(text.s, text.len, hex);
	ap_book_want_str(b, input, "sha256", hex, "of the settings as they are here");
}

/* What a setting says is said once more at pointer: where both are there, they are equal. */
static void hold_twin(struct ap_book *b, const struct ap_jv *setting, const struct ap_jv *twin,
	const char *where)
{
	bool equal;

	if (!setting || !twin || ap_jv_type(setting) == AP_JNULL || ap_jv_type(twin) == AP_JNULL)
		return;
	equal = ap_jv_type(setting) == ap_jv_type(twin) && (ap_jv_type(twin) == AP_JSTRING
		? !strcmp(ap_jv_str(setting), ap_jv_str(twin))
		: ap_jv_type(twin) == AP_JNUMBER && ap_jv_double(setting) == ap_jv_double(twin));
	if (!equal)
		ap_book_fault(b, setting, "contradicts %s", where);
}

void ap_plan_rule_settings(struct ap_book *b)
{
	static const struct {
		const char *setting, *section, *key;
	} twins[] = {
		{"device_num", "machine", "devices"},
		{"chip", "machine", "chip"},
		{"memory", "machine", "capacity_bytes"},
		{"batch", "graph", "batch"},
		{"executor", "route", "executor"},
		{"pipeline_stages", "pipeline", "stages"},
		{"pipeline_segments", "pipeline", "segments"},
		{"micro_batches", "pipeline", "micro_batches"},
		{"pipeline_scheduler", "pipeline", "scheduler"},
	};
	const struct ap_jv *settings = ap_jv_get(b->root, "settings"), *v;

	hold_hash(b, settings);
	for (size_t i = 0; i < AP_COUNT(twins); i++) {
		const struct ap_jv *section = ap_jv_get(b->root, twins[i].section);

		if (ap_jv_type(section) == AP_JOBJECT)
			hold_twin(b, ap_jv_get(settings, twins[i].setting),
				ap_jv_get(section, twins[i].key),
				ap_arena_printf(b->ctx->scratch, "/%s/%s", twins[i].section,
					twins[i].key));
	}
	v = ap_jv_get(settings, "pipeline_stages");
	if (v && ap_jv_type(v) == AP_JNUMBER && ap_jv_double(v) != (double)b->nstage)
		ap_book_fault(b, v, "contradicts the %" PRId64 " stages in /stages", b->nstage);
	if (b->nstage)
		hold_twin(b, ap_jv_get(settings, "micro_batches"),
			ap_jv_get(b->stage[0], "micro_batches"), "/stages/0/micro_batches");
}

static struct ap_book_tensor *add_tensor(struct ap_book *b, const struct ap_jv *name,
	enum ap_book_source source)
{
	struct ap_book_tensor t = {.source = source, .where = name};
	bool fresh;
	ap_id id = ap_map_put_str(b->tensor_names, ap_jv_str(name), &fresh);

	if (!fresh) {
		ap_book_fault(b, name, "a tensor of this name is there already");
		return NULL;
	}
	(void)id;
	AP_PUSH(b->ctx->scratch, b->tensor, t);
	return &b->tensor.v[b->tensor.n - 1];
}

static int bytes_of(const char *dtype)
{
	return ap_dtype_bytes(ap_dtype_find(dtype));
}

static void add_inputs(struct ap_book *b, const struct ap_jv *g)
{
	const struct ap_jv *shapes = ap_jv_get(g, "input_shapes"), *dtypes = ap_jv_get(g, "input_dtypes");
	const struct ap_jv *shape = ap_jv_first(shapes), *dtype = ap_jv_first(dtypes);
	size_t n = ap_jv_count(ap_jv_get(g, "inputs"));

	if (ap_jv_count(shapes) != n)
		ap_book_fault(b, shapes, "expected a shape of each of the %zu inputs", n);
	if (ap_jv_count(dtypes) != n)
		ap_book_fault(b, dtypes, "expected a type of each of the %zu inputs", n);
	for (const struct ap_jv *v = ap_jv_first(ap_jv_get(g, "inputs")); v; v = ap_jv_next(v)) {
		struct ap_book_tensor *t = add_tensor(b, v, AP_BOOK_INPUT);

		if (t && shape && dtype) {
			t->has_shape = true;
			t->shape = ap_book_list(b, shape);
			t->bytes = bytes_of(ap_jv_str(dtype));
		}
		shape = shape ? ap_jv_next(shape) : NULL;
		dtype = dtype ? ap_jv_next(dtype) : NULL;
	}
}

static void add_constants(struct ap_book *b, const struct ap_jv *g)
{
	const struct ap_jv *list = ap_jv_get(g, "constants");

	b->names_constants = list != NULL;
	for (const struct ap_jv *v = list ? ap_jv_first(list) : NULL; v; v = ap_jv_next(v))
		(void)add_tensor(b, v, AP_BOOK_CONSTANT);
}

static int64_t add_params(struct ap_book *b)
{
	int64_t sum = 0, n;

	for (uint32_t i = 0; i < b->nparam; i++) {
		const struct ap_jv *p = b->param[i], *read_as = ap_jv_get(p, "read_as");
		struct ap_book_tensor *t = add_tensor(b, ap_jv_get(p, "name"), AP_BOOK_PARAM);

		if (!t)
			continue;
		t->param = i;
		t->has_shape = true;
		t->shape = ap_book_list(b, ap_jv_get(p, "tensor_shape"));
		t->bytes = bytes_of(read_as ? ap_jv_str(read_as) : ap_book_str(p, "dtype"));
		if (!ap_product(t->shape.v, t->shape.n, &n) || !ap_add(sum, n, &sum))
			ap_book_fault(b, ap_jv_get(p, "tensor_shape"), "has too many elements");
	}
	return sum;
}

void ap_plan_rule_graph(struct ap_book *b)
{
	const struct ap_jv *g = ap_jv_get(b->root, "graph");
	int64_t sum;

	add_inputs(b, g);
	add_constants(b, g);
	sum = add_params(b);
	if (ap_book_int(b, g, "parameters") != sum)
		ap_book_fault(b, ap_jv_get(g, "parameters"), "expected %" PRId64
			", the elements of the parameters in /parameters", sum);
}

void ap_plan_rule_machine(struct ap_book *b)
{
	const struct ap_jv *m = ap_jv_get(b->root, "machine"), *levels = ap_jv_get(m, "levels");
	const struct ap_jv *per_server = ap_book_at(ap_jv_get(b->root, "settings"), "devices_per_server");
	int64_t span = 1, servers = ap_book_int(b, m, "servers"), n;

	for (const struct ap_jv *v = ap_jv_first(levels); v; v = ap_jv_next(v)) {
		n = ap_book_int(b, v, "span");
		if (n < span)
			ap_book_fault(b, ap_jv_get(v, "span"),
				"expected %" PRId64 " devices or more, those of the level before", span);
		span = n;
	}
	if (span < b->devices)
		ap_book_fault(b, levels, "expected levels up to the one that spans all %" PRId64
			" devices", b->devices);
	if (servers > b->devices)
		ap_book_fault(b, ap_jv_get(m, "servers"), "expected %" PRId64 " at most, one for each "
			"device", b->devices);
	if (per_server && ap_jv_int(b->doc, per_server, &n) && n > 0 &&
		servers != (b->devices + n - 1) / n)
		ap_book_fault(b, ap_jv_get(m, "servers"), "expected %" PRId64 ", for /settings says %"
			PRId64 " devices a server", (b->devices + n - 1) / n, n);
}

/* Of each segment, no more in all than are ever in flight. */
static void hold_held(struct ap_book *b, const struct ap_jv *stage, const char *key)
{
	const struct ap_jv *list = ap_jv_get(stage, key);
	struct ap_book_list held;
	int64_t sum = 0;

	if (!list)
		return;
	held = ap_book_list(b, list);
	for (size_t i = 0; i < held.n; i++)
		sum += held.v[i];
	if ((int64_t)held.n != b->segments)
		ap_book_fault(b, list, "expected %" PRId64 ", one for each segment", b->segments);
	else if (sum > ap_book_int(b, stage, "in_flight"))
		ap_book_fault(b, list, "are more than in_flight");
}

static void hold_stage(struct ap_book *b, int64_t i)
{
	const struct ap_jv *s = b->stage[i], *axes = ap_jv_get(s, "axes");
	const struct ap_jv *flight = ap_jv_get(s, "in_flight");
	struct ap_axes all;

	ap_book_want_int(b, s, "id", i, "its place in the list");
	ap_book_want_int(b, s, "first_rank", i * b->ndev, "for stages have equal shares of the devices");
	ap_book_want_int(b, s, "micro_batches", b->micro_batches, "as in the first stage");
	ap_book_want_int(b, s, "segments", b->segments, "as /pipeline says");
	if (ap_jv_double(flight) > (double)(b->micro_batches * b->segments))
		ap_book_fault(b, flight, "expected %" PRId64 " at most, the micro-batches of all segments",
			b->micro_batches * b->segments);
	hold_held(b, s, "held");
	hold_held(b, s, "late");
	if (ap_book_group(b, s, i * b->ndev, b->ndev, &all) && ap_axes_size(&all) != b->ndev)
		ap_book_fault(b, axes, "expected all %" PRId64 " devices of the stage", b->ndev);
	if (!ap_jv_get(s, "slots") != (b->nstage == 1))
		ap_book_fault(b, ap_jv_get(s, "slots") ? ap_jv_get(s, "slots") : s, b->nstage == 1
			? "expected none without a pipeline" : "no key \"slots\"");
}

void ap_plan_rule_pipeline(struct ap_book *b)
{
	const struct ap_jv *pipe = ap_jv_get(b->root, "pipeline");
	bool none = ap_jv_type(pipe) == AP_JNULL;

	if (!b->nstage || b->devices % b->nstage) {
		ap_book_fault(b, ap_jv_get(b->root, "stages"), "expected a number of stages that divides "
			"the %" PRId64 " devices", b->devices);
		b->nstage = 0;
		return;
	}
	if (none != (b->nstage == 1))
		ap_book_fault(b, pipe, none ? "expected a pipeline of the %" PRId64 " stages in /stages"
			: "expected null for %" PRId64 " stage", b->nstage);
	if (!none) {
		ap_book_want_int(b, pipe, "stages", b->nstage, "the stages in /stages");
		ap_book_want_int(b, pipe, "devices_per_stage", b->ndev, "devices by stages");
		ap_book_want_int(b, pipe, "micro_batches", b->micro_batches, "as in /stages");
	}
	for (int64_t i = 0; i < b->nstage; i++)
		hold_stage(b, i);
}

/* What the operators cost at least and at most: of their gradients' exchange a part is hidden. */
static void hold_objective(struct ap_book *b, const struct ap_jv *search)
{
	static const char *const parts[] = {"forward_s", "backward_s", "forward_communication_s",
		"backward_communication_s", "optimizer_s", "input_s"};
	const struct ap_jv *ops = ap_jv_get(b->root, "operators"), *c;
	double least = 0, gradients = 0, moves = 0, objective = ap_book_num(search, "objective_s"), slack;

	for (const struct ap_jv *v = ap_jv_first(ops); v; v = ap_jv_next(v)) {
		const struct ap_jv *cost = ap_jv_get(v, "cost");

		for (size_t i = 0; i < AP_COUNT(parts); i++)
			least += ap_book_num(cost, parts[i]);
		gradients += ap_book_num(cost, "gradient_s");
		for (c = ap_jv_first(ap_jv_get(v, "communications")); c; c = ap_jv_next(c))
			if (ap_book_bool(c, "each_micro_batch"))
				gradients += (double)b->micro_batches * ap_book_num(c, "time_s");
	}
	for (uint32_t i = 0; i < b->nmove; i++)
		if (ap_book_at(b->move[i], "from"))
			moves += ap_book_num(b->move[i], "forward_s") + ap_book_num(b->move[i], "backward_s");
	slack = 0x1p-40 * (double)(ap_jv_count(ops) + b->nmove) + 1e-7 * objective; /* of what is rounded */
	if (objective < least + moves - slack || objective > least + gradients + moves + slack)
		ap_book_fault(b, ap_jv_get(search, "objective_s"), "is no sum of what operators and "
			"redistributions cost");
}

static void hold_certificate(struct ap_book *b, const struct ap_jv *search, const struct ap_jv *c)
{
	const struct ap_jv *bound = ap_jv_get(c, "lower_bound_s");
	double least = ap_book_num(search, "lower_bound_s");
	bool agrees = !strcmp(ap_book_str(c, "status"), "agrees");

	if (!strcmp(ap_book_str(c, "engine"), ap_book_str(search, "mode")))
		ap_book_fault(b, ap_jv_get(c, "engine"), "expected another engine than that of the search");
	if (agrees && ap_jv_type(bound) == AP_JNUMBER && ap_jv_double(bound) < least)
		ap_book_fault(b, bound, "expected the bound of the search, or more, of one that agrees");
}

static const char *status_of(const struct ap_book *b, const struct ap_jv *s)
{
	if (!strcmp(ap_book_str(s, "mode"), "given"))
		return "given";
	if (!ap_book_bool(s, "complete"))
		return "stopped";
	(void)b;
	return ap_book_num(s, "objective_s") <= ap_book_num(s, "lower_bound_s") ? "optimal" : "feasible";
}

void ap_plan_rule_search(struct ap_book *b)
{
	const struct ap_jv *s = ap_jv_get(b->root, "search"), *c = ap_book_at(s, "certificate");
	const struct ap_jv *certify = ap_jv_get(ap_jv_get(b->root, "settings"), "certify");
	double least = ap_book_num(s, "lower_bound_s"), objective = ap_book_num(s, "objective_s");
	bool given = !strcmp(ap_book_str(s, "mode"), "given");

	ap_book_want_str(b, s, "status", status_of(b, s), "by mode, completeness and bound");
	ap_book_want_num(b, s, "gap", least > 0 ? objective / least - 1 : 0,
		"objective_s / lower_bound_s - 1");
	if (given) {
		ap_book_want_num(b, s, "lower_bound_s", 0, "for nothing was searched");
		ap_book_want_int(b, s, "work", 0, "for nothing was searched");
		if (!ap_book_bool(s, "complete"))
			ap_book_fault(b, ap_jv_get(s, "complete"), "expected true, for nothing was searched");
	}
	if (least > objective * (1 + 1e-12))
		ap_book_fault(b, ap_jv_get(s, "lower_bound_s"), "is above objective_s");
	hold_objective(b, s);
	if (c)
		hold_certificate(b, s, c);
	if (c && certify && ap_jv_type(certify) == AP_JBOOL && !ap_jv_bool(certify))
		ap_book_fault(b, c, "contradicts /settings/certify");
}

static double mean_of_stages(const struct ap_book *b, const char *key)
{
	double sum = 0;

	for (int64_t i = 0; i < b->nstage; i++)
		sum += ap_book_num(b->stage[i], key) / (double)b->nstage;
	return sum;
}

void ap_plan_rule_prediction(struct ap_book *b)
{
	const struct ap_jv *p = ap_jv_get(b->root, "prediction");
	double step = ap_book_num(p, "step_time_s"), compute = ap_book_num(p, "compute_s");
	double bubble = ap_book_num(p, "bubble_s"), update = ap_book_num(p, "optimizer_s");
	double comm = ap_book_num(p, "communication_s"), rest = fmax(0, step - compute - bubble - update);
	int64_t batch = ap_book_int(b, ap_jv_get(b->root, "graph"), "batch");

	ap_book_want_num(b, p, "exposed_communication_s", comm > 0 ? rest : 0,
		"what kernels, bubble and optimizer leave of the step");
	if (comm <= 0 && rest > 1e-9 * step)
		ap_book_fault(b, ap_jv_get(p, "step_time_s"), "is not the sum of its parts");
	if (b->nstage)
		ap_book_want_num(b, p, "bubble_s", mean_of_stages(b, "idle_s"),
			"the mean of the stages' idle_s");
	ap_book_want_num(b, p, "tokens_or_samples_per_s", (double)batch / step,
		"batch by step_time_s");
	if (b->nstage == 1 && step > 0 && compute + update > step * (1 + 1e-12))
		ap_book_fault(b, ap_jv_get(p, "step_time_s"), "is less than kernels and optimizer take");
}

void ap_plan_rule_baselines(struct ap_book *b)
{
	const struct ap_jv *s = ap_jv_get(b->root, "search"), *list = ap_jv_get(b->root, "baselines");
	int64_t capacity = ap_book_int(b, ap_jv_get(b->root, "machine"), "capacity_bytes");
	static const char *const figures[] = {"step_time_s", "objective_s", "memory_bytes", "fits"};
	struct ap_map *names = ap_map_create(b->ctx->scratch);
	double least = ap_book_num(s, "lower_bound_s");
	bool fresh;

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		bool applies = !ap_jv_get(v, "not_applicable"), whole = true;
		const struct ap_jv *gap = ap_jv_get(v, "gap");

		ap_map_put_str(names, ap_book_str(v, "name"), &fresh);
		if (!fresh)
			ap_book_fault(b, v, "a baseline of this name is there already");
		for (size_t i = 0; i < AP_COUNT(figures); i++)
			if (!ap_jv_get(v, figures[i]) == applies) {
				ap_book_fault(b, v, applies ? "no key \"%s\"" :
					"\"%s\" of one that is not applicable", figures[i]);
				whole = false;
			}
		if (!applies || !whole)
			continue;
		if (ap_book_bool(v, "fits") != (ap_book_int(b, v, "memory_bytes") <= capacity))
			ap_book_fault(b, ap_jv_get(v, "fits"), "contradicts memory_bytes and the %" PRId64
				" bytes of a device", capacity);
		if (gap && least > 0)
			ap_book_want_num(b, v, "gap", ap_book_num(v, "objective_s") / least - 1,
				"objective_s / lower_bound_s - 1");
	}
}

/* Does the route decide operators by itself? Its baselines then have no gap. */
static bool decides(const char *name)
{
	const struct ap_route *r;

	for (size_t i = 0; (r = ap_route_at(i)); i++)
		if (!strcmp(r->name, name))
			return r->complete;
	return false;
}

static void hold_gaps(struct ap_book *b, bool wanted)
{
	const struct ap_jv *list = ap_jv_get(b->root, "baselines");

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		if (!ap_jv_get(v, "not_applicable") && !ap_jv_get(v, "gap") == wanted)
			ap_book_fault(b, v, wanted ? "no key \"gap\"" : "expected no gap where the route, "
				"or nothing, decides");
}

void ap_plan_rule_loss(struct ap_book *b)
{
	const struct ap_jv *r = ap_jv_get(b->root, "route"), *s = ap_jv_get(b->root, "search");
	bool none = ap_jv_type(r) == AP_JNULL, bounded;
	double sum = 0, loss;

	bounded = strcmp(ap_book_str(s, "status"), "given") != 0 && ap_book_num(s, "lower_bound_s") > 0;
	hold_gaps(b, bounded && (none || !decides(ap_book_str(r, "executor"))));
	if (none)
		return;
	loss = ap_book_num(s, "objective_s") - ap_book_num(r, "free_objective_s");
	ap_book_want_num(b, r, "loss_s", loss, "objective_s less free_objective_s");
	ap_book_want_int(b, r, "differing_operators", (int64_t)ap_jv_count(ap_jv_get(r, "differs")),
		"those in differs");
	for (const struct ap_jv *v = ap_jv_first(ap_jv_get(r, "differs")); v; v = ap_jv_next(v))
		sum += ap_book_num(v, "operator_s") + ap_book_num(v, "redistribution_s");
	if (fabs(sum - loss) > 1e-9 * ap_book_num(s, "objective_s"))
		ap_book_fault(b, ap_jv_get(r, "differs"), "do not add up to loss_s");
	if (!ap_jv_count(ap_jv_get(r, "differs")))
		ap_book_want_num(b, r, "free_step_time_s",
			ap_book_num(ap_jv_get(b->root, "prediction"), "step_time_s"),
			"that of the plan, from which none differs");
}
