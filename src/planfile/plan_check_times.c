/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a plan file: what a pipeline runs when, and the schedule of the last micro-batch. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "planfile/plan_check_parts.h"

enum { FORWARD, BACKWARD, WEIGHT, PASSES };

static const char *const passes[] = {"forward", "backward", "weight"};

static bool is_before(double a, double b) /* a < b by more than the last digits */
{
	return a < b && !ap_book_near(a, b);
}

struct slots { /* of all stages: start and end of [part][micro-batch][pass]; start < 0: none */
	int64_t nmicro, npart;
	double (*start)[PASSES], (*end)[PASSES];
	bool vee; /* the second segment goes back through the stages */
	bool any_weight;
};

/* The part of the network that a segment of a stage is. */
static int64_t part_of(const struct ap_book *b, const struct slots *s, int64_t stage, int64_t segment)
{
	return s->vee && segment % 2 ? segment * b->nstage + (b->nstage - 1 - stage)
				     : segment * b->nstage + stage;
}

static int pass_of(const char *name)
{
	int pass = 0;

	while (strcmp(passes[pass], name) != 0)
		pass++;
	return pass;
}

static void read_slots(struct ap_book *b, struct slots *s, int64_t stage)
{
	double step = ap_book_num(ap_jv_get(b->root, "prediction"), "step_time_s"), free_s = 0;
	const struct ap_jv *list = ap_jv_get(b->stage[stage], "slots");

	for (const struct ap_jv *v = list ? ap_jv_first(list) : NULL; v; v = ap_jv_next(v)) {
		int64_t segment = ap_book_int(b, v, "segment"), micro = ap_book_int(b, v, "micro_batch");
		double start = ap_book_num(v, "start_s"), end = ap_book_num(v, "end_s");
		int pass = pass_of(ap_book_str(v, "pass"));
		size_t at;

		if (segment >= b->segments || micro >= b->micro_batches) {
			ap_book_fault(b, ap_jv_get(v, segment >= b->segments ? "segment" : "micro_batch"),
				"is none of this plan");
			continue;
		}
		at = (size_t)(part_of(b, s, stage, segment) * s->nmicro + micro);
		if (s->start[at][pass] >= 0)
			ap_book_fault(b, v, "has run before");
		if (end < start)
			ap_book_fault(b, ap_jv_get(v, "end_s"), "is before start_s");
		if (is_before(start, free_s))
			ap_book_fault(b, ap_jv_get(v, "start_s"), "is before the end of the slot before");
		if (is_before(step, end))
			ap_book_fault(b, ap_jv_get(v, "end_s"), "is after the end of the step");
		free_s = fmax(free_s, end);
		s->start[at][pass] = start;
		s->end[at][pass] = end;
		s->any_weight |= pass == WEIGHT;
	}
}

/* Micro-batches that have gone forward and not yet back, of all segments. */
static void hold_flight(struct ap_book *b, int64_t stage)
{
	const struct ap_jv *list = ap_jv_get(b->stage[stage], "slots");
	int64_t held = 0, most = 0;

	for (const struct ap_jv *v = list ? ap_jv_first(list) : NULL; v; v = ap_jv_next(v)) {
		int pass = pass_of(ap_book_str(v, "pass"));

		held += pass == FORWARD ? 1 : pass == BACKWARD ? -1 : 0;
		most = held > most ? held : most;
	}
	if (!b->inference)
		ap_book_want_int(b, b->stage[stage], "in_flight", most, "the most in the order of slots");
}

/* Each pass runs once, after those that it needs. */
static void hold_order(struct ap_book *b, const struct slots *s, int64_t stage)
{
	const struct ap_jv *list = ap_jv_get(b->stage[stage], "slots");
	size_t want = (size_t)(b->segments * s->nmicro) * (b->inference ? 1 : s->any_weight ? 3 : 2);

	if (!list)
		return;
	if (ap_jv_count(list) != want)
		ap_book_fault(b, list, "expected %zu slots, one for each pass over a micro-batch", want);
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		int64_t segment = ap_book_int(b, v, "segment"), part;
		int64_t micro = ap_book_int(b, v, "micro_batch");
		double start = ap_book_num(v, "start_s"), after = 0;
		int pass = pass_of(ap_book_str(v, "pass"));
		size_t at, last = (size_t)s->npart - 1;

		if (segment >= b->segments || micro >= b->micro_batches)
			continue;
		part = part_of(b, s, stage, segment);
		at = (size_t)(part * s->nmicro + micro);
		if (pass == FORWARD && part > 0)
			after = s->end[at - (size_t)s->nmicro][FORWARD];
		else if (pass == BACKWARD && (size_t)part < last)
			after = s->end[at + (size_t)s->nmicro][BACKWARD];
		else if (pass == WEIGHT)
			after = s->end[at][BACKWARD];
		if (pass == BACKWARD)
			after = fmax(after, s->end[at][FORWARD]);
		if (is_before(start, after))
			ap_book_fault(b, ap_jv_get(v, "start_s"),
				"is before the end of a pass that it follows");
	}
}

/* Of one micro-batch through all segments; the last one may wait for exchanges, the first does not. */
static void hold_passes(struct ap_book *b, const struct slots *s, int64_t stage)
{
	static const char *const keys[] = {"forward_s", "backward_s"};

	for (int pass = FORWARD; pass <= BACKWARD; pass++) {
		double sum = 0, last = 0;

		for (int64_t v = 0; v < b->segments; v++) {
			size_t at = (size_t)(part_of(b, s, stage, v) * s->nmicro);

			last = fmax(last, fmax(s->end[at][BACKWARD], s->end[at][WEIGHT]));
			sum += s->end[at][pass] - s->start[at][pass];
			if (pass == BACKWARD)
				sum += s->end[at][WEIGHT] - s->start[at][WEIGHT];
		}
		/* a pass much shorter than what ran before it has few digits left in its ends */
		if (fabs(sum - ap_book_num(b->stage[stage], keys[pass])) > 1e-9 * sum + 0x1p-48 * last)
			ap_book_fault(b, ap_jv_get(b->stage[stage], keys[pass]),
				"is not what the slots of micro-batch 0 take");
	}
}

void ap_plan_rule_slots(struct ap_book *b)
{
	const struct ap_jv *pipe = ap_book_at(b->root, "pipeline");
	struct slots s = {.nmicro = b->micro_batches, .npart = b->nstage * b->segments};
	size_t n = 0;

	if (!pipe || b->nfault)
		return;
	for (int64_t i = 0; i < b->nstage; i++)
		if (ap_jv_get(b->stage[i], "slots"))
			n += ap_jv_count(ap_jv_get(b->stage[i], "slots"));
	if (n < (size_t)s.npart * (size_t)s.nmicro) { /* beyond memory where the counts are at fault */
		ap_book_fault(b, ap_jv_get(b->root, "stages"), "have fewer slots than passes");
		return;
	}
	s.vee = !strcmp(ap_book_str(pipe, "scheduler"), "zero_bubble_v");
	s.start = ap_arena_alloc(b->ctx->scratch, (size_t)(s.npart * s.nmicro), sizeof *s.start);
	s.end = ap_arena_alloc(b->ctx->scratch, (size_t)(s.npart * s.nmicro), sizeof *s.end);
	for (int64_t i = 0; i < s.npart * s.nmicro; i++)
		for (int pass = 0; pass < PASSES; pass++)
			s.start[i][pass] = s.end[i][pass] = -1;
	for (int64_t i = 0; i < b->nstage; i++)
		read_slots(b, &s, i);
	for (int64_t i = 0; i < b->nstage; i++)
		hold_order(b, &s, i);
	for (int64_t i = 0; i < b->nstage && !b->nfault; i++)
		hold_passes(b, &s, i);
	for (int64_t i = 0; i < b->nstage && !b->nfault; i++)
		hold_flight(b, i);
}

enum { EVENT_FORWARD, EVENT_BACKWARD, EVENT_COMM, EVENT_MOVE, EVENT_BACK, EVENT_UPDATE, EVENTS };

static const char *const events[] = {"forward", "backward", "communication", "redistribution",
	"redistribution_back", "optimizer"};

struct schedule {
	bool *seen[EVENTS]; /* [operator or redistribution] */
	bool **comm; /* [operator][communication] */
	double *forward_end; /* [operator], < 0 none yet */
	double *move_end; /* [redistribution] */
	double *busy_s; /* [stage] end of the kernel before */
	double *end_s; /* [stage] of all */
};

static int event_of(const char *name)
{
	int e = 0;

	while (strcmp(events[e], name) != 0)
		e++;
	return e;
}

static bool lasts(const struct ap_jv *v, double want)
{
	double start = ap_book_num(v, "start_s"), end = ap_book_num(v, "end_s");

	/* Both ends are rounded. */
	return fabs(end - start - want) <= 1e-12 * fmax(fabs(end), want);
}

static void hold_span(struct ap_book *b, const struct ap_jv *v, double want, const char *of)
{
	if (!lasts(v, want))
		ap_book_fault(b, v, "does not last as long as %s", of);
}

/* What an update takes beside the collectives that it waits for. */
static double update_s(const struct ap_book_op *op)
{
	double work = ap_book_num(ap_jv_get(op->v, "cost"), "optimizer_s");

	for (uint32_t k = 0; k < op->ncomm; k++)
		if (!strcmp(ap_book_str(op->comm[k], "phase"), "optimizer"))
			work -= ap_book_num(op->comm[k], "time_s");
	return fmax(0, work);
}

static bool is_known(struct ap_book *b, const struct ap_jv *v, int e, int64_t *index)
{
	const char *key = e == EVENT_MOVE || e == EVENT_BACK ? "redistribution" : "operator";
	static const char *const keys[] = {"redistribution", "operator", "communication"};

	for (size_t i = 0; i < AP_COUNT(keys); i++) {
		bool wanted = !strcmp(keys[i], key) || (i == 2 && e == EVENT_COMM);

		if (!ap_jv_get(v, keys[i]) != !wanted) {
			ap_book_fault(b, v, wanted ? "no key \"%s\"" : "\"%s\" is not of this event",
				keys[i]);
			return false;
		}
	}
	*index = ap_book_int(b, v, key);
	if (*index < (e == EVENT_MOVE || e == EVENT_BACK ? b->nmove : b->nop))
		return true;
	ap_book_fault(b, ap_jv_get(v, key), "is none of this plan");
	return false;
}

/* Kernels of a stage run one after the other, forward after what it reads. */
static void hold_kernel(struct ap_book *b, struct schedule *s, const struct ap_jv *v, int e, int64_t i)
{
	const struct ap_book_op *op = &b->op[i];
	const struct ap_jv *cost = ap_jv_get(op->v, "cost");
	double times = ap_book_bool(op->v, "once") ? 1 : (double)b->micro_batches;
	double start = ap_book_num(v, "start_s");

	if (e == EVENT_FORWARD)
		hold_span(b, v, ap_book_num(cost, "forward_s") / times, "the operator's forward_s");
	if (e == EVENT_UPDATE)
		hold_span(b, v, update_s(op), "the operator's optimizer_s");
	if (is_before(start, s->busy_s[op->stage]))
		ap_book_fault(b, ap_jv_get(v, "start_s"), "is before the end of the kernel before");
	s->busy_s[op->stage] = ap_book_num(v, "end_s");
	for (uint32_t k = 0; e == EVENT_FORWARD && k < op->nin; k++) {
		const struct ap_book_tensor *t = &b->tensor.v[op->in[k]];

		if (t->source != AP_BOOK_RESULT || b->op[t->op].stage != op->stage)
			continue;
		if (s->forward_end[t->op] < 0 && b->op[t->op].segment == op->segment &&
			!ap_book_bool(b->op[t->op].v, "once"))
			ap_book_fault(b, v, "runs before \"%s\", which it reads", b->op[t->op].name);
		else if (is_before(start, s->forward_end[t->op]))
			ap_book_fault(b, ap_jv_get(v, "start_s"), "is before the end of what it reads");
	}
	if (e == EVENT_FORWARD)
		s->forward_end[i] = ap_book_num(v, "end_s");
}

/* Others run with those of their bucket. */
static bool is_alone(const struct ap_jv *c)
{
	const char *phase = ap_book_str(c, "phase");

	return strcmp(phase, "gradient") != 0 && strcmp(phase, "optimizer") != 0;
}

static void hold_event(struct ap_book *b, struct schedule *s, const struct ap_jv *v)
{
	int e = event_of(ap_book_str(v, "event"));
	double start = ap_book_num(v, "start_s"), end = ap_book_num(v, "end_s");
	int64_t i = 0, stage, k;
	bool *seen;

	if (!is_known(b, v, e, &i))
		return;
	stage = b->op[e == EVENT_MOVE || e == EVENT_BACK
		? ap_map_get_str(b->op_names, ap_book_str(b->move[i], "to")) : (ap_id)i].stage;
	ap_book_want_int(b, v, "stage", stage, "that of the operator");
	seen = &s->seen[e][i];
	if (e == EVENT_COMM) {
		k = ap_book_int(b, v, "communication");
		if (k >= b->op[i].ncomm) {
			ap_book_fault(b, ap_jv_get(v, "communication"), "is none of the operator");
			return;
		}
		seen = &s->comm[i][k];
	}
	if (*seen)
		ap_book_fault(b, v, "is there already");
	*seen = true;
	if (end < start)
		ap_book_fault(b, ap_jv_get(v, "end_s"), "is before start_s");
	s->end_s[stage] = fmax(s->end_s[stage], end);
	if (e == EVENT_FORWARD || e == EVENT_BACKWARD || e == EVENT_UPDATE)
		hold_kernel(b, s, v, e, i);
	if (e == EVENT_COMM && is_alone(b->op[i].comm[ap_book_int(b, v, "communication")]))
		hold_span(b, v, ap_book_num(b->op[i].comm[ap_book_int(b, v, "communication")], "time_s"),
			"its time_s");
	if (e == EVENT_MOVE)
		hold_span(b, v, ap_book_num(b->move[i], "forward_s") / (double)b->micro_batches,
			"its forward_s");
	if (e == EVENT_BACK && !lasts(v, (ap_book_num(b->move[i], "backward_s") -
			ap_book_num(b->move[i], "forward_s")) / (double)b->micro_batches))
		hold_span(b, v, ap_book_num(b->move[i], "backward_s") / (double)b->micro_batches,
			"its backward_s, with or without the way there again");
}

static void make(struct ap_book *b, struct schedule *s)
{
	struct ap_arena *a = b->ctx->scratch;
	size_t n = b->nop > b->nmove ? b->nop : b->nmove;

	for (int e = 0; e < EVENTS; e++)
		s->seen[e] = AP_NEW_N(a, bool, n + 1);
	s->comm = AP_NEW_N(a, bool *, b->nop + 1);
	s->forward_end = AP_NEW_N(a, double, b->nop + 1);
	s->busy_s = AP_NEW_N(a, double, b->nstage + 1);
	s->end_s = AP_NEW_N(a, double, b->nstage + 1);
	for (uint32_t i = 0; i < b->nop; i++) {
		s->comm[i] = AP_NEW_N(a, bool, b->op[i].ncomm);
		s->forward_end[i] = -1;
	}
}

void ap_plan_rule_schedule(struct ap_book *b)
{
	const struct ap_jv *list = ap_jv_get(b->root, "schedule");
	struct schedule s;

	if (b->nfault)
		return;
	make(b, &s);
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		hold_event(b, &s, v);
	for (uint32_t i = 0; i < b->nop; i++)
		if (!s.seen[EVENT_FORWARD][i] && !ap_book_bool(b->op[i].v, "once"))
			ap_book_fault(b, list, "has no forward pass of \"%s\"", b->op[i].name);
}
