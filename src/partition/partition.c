/* SPDX-License-Identifier: Apache-2.0 */
#include "partition/partition.h"

#include <assert.h>
#include <math.h>

#include "base/arena.h"
#include "base/num.h"
#include "pipeline/schedule.h"

#define MOST_BYTES (INT64_C(1) << 62)

int64_t ap_partition_layers(const struct ap_partition *p)
{
	int64_t n = 0;

	for (uint32_t r = 0; r < p->nrun; r++)
		n += p->run[r].count;
	return n;
}

int64_t ap_partition_body(const struct ap_partition *p)
{
	int64_t n = 0;

	for (uint32_t r = 0; r < p->nrun; r++)
		n += p->run[r].at == AP_AT_BODY ? p->run[r].count : 0;
	return n;
}

static int32_t part_count(const struct ap_partition *p)
{
	return p->nstage * p->nsegment;
}

int64_t ap_partition_least(const struct ap_partition *p, int32_t q)
{
	return q == 0 || q + 1 == part_count(p) ? p->least_at_ends : p->least_layers;
}

int64_t ap_partition_least_before(const struct ap_partition *p, int32_t q)
{
	int32_t ends = (q > 0) + (q > 1 && q == part_count(p));

	return ends * p->least_at_ends + (q - ends) * p->least_layers;
}

/* The most that a layer of the class takes on a device in any kind, whatever the schedule: false on overflow.
 * */
static bool most_bytes(const struct ap_partition *p, uint32_t cls, int64_t *out)
{
	int64_t most = 0;

	for (uint32_t i = 0; i < p->ndegree * p->nkind; i++) {
		const struct ap_partition_row *r = &p->cls[cls].row[i];
		int64_t held, all;

		if (r->absent)
			continue;
		if (!ap_add(r->kept_bytes, r->late_bytes, &held) || !ap_mul(held, p->nmicro, &held) ||
			!ap_add(held, r->weights_bytes, &all) || !ap_add(all, r->temporary_bytes, &all))
			return false;
		most = all > most ? all : most;
	}
	*out = most;
	return true;
}

static bool bytes_fit(const struct ap_partition *p)
{
	int64_t sum = 0, most, all;

	for (uint32_t r = 0; r < p->nrun; r++)
		if (!most_bytes(p, p->run[r].cls, &most) || !ap_mul(most, p->run[r].count, &all) ||
			!ap_add(sum, all, &sum))
			return false;
	for (int32_t s = 0; s < p->nstage; s++)
		if (!ap_add(sum, p->fixed_bytes[s], &all) || all > MOST_BYTES)
			return false;
	return true;
}

bool ap_partition_has_room(const struct ap_partition *p, uint32_t degree)
{
	return p->devices == 0 || p->degree[degree].devices <= p->devices / p->nstage;
}

double ap_partition_send_s(const struct ap_partition *p, uint32_t from, uint32_t to, int64_t layers)
{
	double ends_s = fmax(p->degree[from].send_s, p->degree[to].receive_s);

	return p->border ? fmax(ends_s, p->border[layers].send_s) : ends_s;
}

double ap_partition_send_back_s(const struct ap_partition *p, uint32_t from, uint32_t to, int64_t layers)
{
	double ends_s = fmax(p->degree[from].send_back_s, p->degree[to].receive_back_s);

	return p->border ? fmax(ends_s, p->border[layers].send_back_s) : ends_s;
}

const char *ap_partition_fault(const struct ap_partition *p)
{
	int64_t parts, slots, cells, n = 0;

	if (!ap_mul(p->nstage, p->nsegment, &parts) || parts > AP_PARTITION_PARTS)
		return "more than 4096 parts";
	if (!ap_mul(parts, p->nmicro, &slots) || !ap_mul(slots, 3, &slots) || slots > AP_PARTITION_SLOTS)
		return "more than 2^23 passes in all";
	for (uint32_t r = 0; r < p->nrun; r++)
		if (!ap_add(n, p->run[r].count, &n) || n > AP_PARTITION_LAYERS)
			return "more than 65536 layers";
	if (!ap_mul(parts + 1, n + 1, &cells) || cells > AP_PARTITION_CELLS)
		return "more than 2^22 parts times layers";
	for (uint32_t d = 0; p->devices > 0 && d < p->ndegree; d++)
		if (p->degree[d].devices < 1 || p->degree[d].devices > p->devices)
			return "a stage has more devices than all";
	if (p->devices > AP_PARTITION_DEVICES)
		return "more than 2^20 devices";
	if (p->devices > 0 && n > AP_PARTITION_SHARING)
		return "more than 1024 layers in stages that share devices";
	return bytes_fit(p) ? NULL : "memory adds up to more than 2^62 bytes";
}

struct judging {
	const struct ap_partition *p;
	const struct ap_partition_plan *plan;
	int32_t npart;
	int64_t nfirst, nbody, nlayer; /* layers at the first part, of the body, of all */
	const uint32_t *cls; /* [nlayer] */
};

static void lay_out(struct ap_ctx *ctx, struct judging *j)
{
	const struct ap_partition *p = j->p;
	uint32_t *cls = AP_NEW_N(ctx->arena, uint32_t, ap_partition_layers(p));

	for (uint32_t r = 0; r < p->nrun; r++) {
		for (int64_t i = 0; i < p->run[r].count; i++)
			cls[j->nlayer++] = p->run[r].cls;
		j->nfirst += p->run[r].at == AP_AT_FIRST ? p->run[r].count : 0;
	}
	j->nbody = ap_partition_body(p);
	j->cls = cls;
}

/* Layers of a part among all: *from .. *to - 1. */
static void span(const struct judging *j, int32_t q, int64_t *from, int64_t *to)
{
	*from = q == 0 ? 0 : j->nfirst + j->plan->first[q];
	*to = q + 1 == j->npart ? j->nlayer : j->nfirst + j->plan->first[q + 1];
}

static int32_t stage_of(const struct judging *j, int32_t q)
{
	int32_t stage, segment;

	ap_schedule_spot(j->p->scheduler, j->p->nstage, q, &stage, &segment);
	return stage;
}

static const struct ap_partition_row *row_of(const struct judging *j, int32_t q, int64_t layer)
{
	uint32_t degree = j->plan->degree[stage_of(j, q)];

	return &j->p->cls[j->cls[layer]].row[degree * j->p->nkind + j->plan->kind[layer]];
}

static const char *shape_fault(const struct judging *j, int32_t *at)
{
	const struct ap_partition *p = j->p;
	const int64_t *first = j->plan->first;
	int64_t devices = 0;

	*at = 0;
	if (first[0] != 0 || first[j->npart] != j->nbody)
		return "its parts are not all layers";
	for (int32_t s = 0; s < p->nstage; s++)
		if (j->plan->degree[s] >= p->ndegree ||
			(!p->degree_by_stage && j->plan->degree[s] != j->plan->degree[0]))
			return "its stages have not one degree";
	for (int32_t s = 0; s < p->nstage; s++)
		devices += p->degree[j->plan->degree[s]].devices;
	if (p->devices > 0 && devices > p->devices)
		return "its stages have more devices than there are";
	for (int32_t q = 0; q < j->npart; q++) {
		int64_t n = first[q + 1] - first[q], from, to;

		*at = q;
		if (n < 0 || n < ap_partition_least(p, q))
			return "a part has too few layers";
		if (p->counts == AP_COUNTS_EQUAL && n * j->npart != j->nbody)
			return "a part has not as many layers as the others";
		if (p->counts == AP_COUNTS_GIVEN && n != p->count[q])
			return "a part has not as many layers as given";
		span(j, q, &from, &to);
		for (int64_t i = from; i < to; i++)
			if (j->plan->kind[i] >= p->nkind || row_of(j, q, i)->absent)
				return "a layer runs as its class does not";
	}
	return NULL;
}

static bool has_kind(const struct judging *j, int32_t q, int64_t layer, uint32_t kind)
{
	uint32_t degree = j->plan->degree[stage_of(j, q)];

	return !j->p->cls[j->cls[layer]].row[degree * j->p->nkind + kind].absent;
}

static uint32_t first_kind(const struct judging *j, int32_t q, int64_t layer)
{
	uint32_t k = 0;

	while (k + 1 < j->p->nkind && !has_kind(j, q, layer, k))
		k++;
	return k;
}

static bool is_body(const struct judging *j, int64_t layer)
{
	return layer >= j->nfirst && layer < j->nfirst + j->nbody;
}

/* Can part q take numbers of kinds so that its layers run as they do? */
static bool is_list(const struct judging *j, int32_t q)
{
	uint32_t said = j->p->nkind - 1; /* the last one possible, which leaves most to later layers */
	int64_t from, to;

	span(j, q, &from, &to);
	for (int64_t i = from; i < to; i++) {
		uint32_t kind = j->plan->kind[i];
		bool standard = kind == first_kind(j, q, i);

		if (!is_body(j, i) && !standard)
			return false;
		if (!is_body(j, i))
			continue;
		for (; said != kind && !(standard && !has_kind(j, q, i, said)); said--)
			if (said == 0)
				return false;
	}
	return true;
}

static bool is_uniform(const struct judging *j)
{
	const int64_t *number = j->plan->number;

	for (int32_t q = 0; q < j->npart; q++) {
		uint32_t k = j->p->nkind - 1;
		int64_t left = number[k], from, to;

		span(j, q, &from, &to);
		for (int64_t i = from; i < to; i++) {
			uint32_t standard = first_kind(j, q, i), want = standard;

			if (is_body(j, i)) {
				while (k > 0 && left == 0)
					left = --k > 0 ? number[k] : 0;
				left -= k > 0;
				want = has_kind(j, q, i, k) ? k : standard;
			}
			if (j->plan->kind[i] != want)
				return false;
		}
	}
	return true;
}

static const char *kinds_fault(const struct judging *j, int32_t *at)
{
	*at = 0;
	if (j->p->kinds == AP_KINDS_UNIFORM)
		return is_uniform(j) ? NULL : "the kinds differ by part";
	for (int32_t q = 0; j->p->kinds == AP_KINDS_LIST && q < j->npart; q++) {
		*at = q;
		if (!is_list(j, q))
			return "the kinds of a part are not in the order of a list";
	}
	return NULL;
}

struct load { /* of a part: sums of its layers */
	struct ap_pass_times time;
	double beside_s, busy_s, exchange_s, slowed_s, update_s; /* busy: passes of one micro-batch */
	int64_t kept, late, weights, temporary;
};

static void add_up(const struct judging *j, int32_t q, struct load *l)
{
	uint32_t own = j->plan->degree[stage_of(j, q)], next;
	double *last_s;
	int64_t from, to;

	*l = (struct load){0};
	if (q + 1 < j->npart) {
		next = j->plan->degree[stage_of(j, q + 1)];
		l->time.send_s = ap_partition_send_s(j->p, own, next, j->plan->first[q + 1]);
		l->time.send_back_s = ap_partition_send_back_s(j->p, next, own, j->plan->first[q + 1]);
	}
	span(j, q, &from, &to);
	for (int64_t i = from; i < to; i++) {
		const struct ap_partition_row *r = row_of(j, q, i);

		l->time.forward_s += r->forward_s;
		l->time.backward_s += r->backward_s;
		l->time.weight_s += j->p->scheduler->splits ? r->weight_s : 0;
		l->beside_s += r->beside_s;
		l->exchange_s += r->exchange_s;
		l->slowed_s += r->slowed_s;
		l->update_s += r->update_s;
		l->kept += r->kept_bytes;
		l->late += r->late_bytes;
		l->weights += r->weights_bytes;
		l->temporary = r->temporary_bytes > l->temporary ? r->temporary_bytes : l->temporary;
	}
	if (q > 0 && j->plan->first[q + 1] > j->plan->first[q])
		l->beside_s += j->p->degree[own].left_s;
	l->busy_s = l->time.forward_s + l->time.backward_s + l->time.weight_s;
	last_s = j->p->scheduler->splits ? &l->time.weight_s : &l->time.backward_s;
	l->time.last_backward_s = *last_s + l->slowed_s;
	*last_s = fmax(*last_s, l->beside_s);
}

static int64_t fullest(const struct judging *j, const struct ap_pipe *pipe, const struct load *load,
	int32_t s)
{
	const struct ap_instants *x = &pipe->instants[s];
	int64_t held = j->p->fixed_bytes[s], most = 0, temporary = 0;

	for (int32_t c = 0; c < pipe->nsegment; c++) {
		const struct load *l = &load[ap_schedule_part(pipe->scheduler, pipe->nstage, s, c)];

		held += l->weights;
		temporary = l->temporary > temporary ? l->temporary : temporary;
	}
	for (uint32_t i = 0; i < x->n; i++) {
		int64_t now = 0;

		for (int32_t c = 0; c < pipe->nsegment; c++) {
			const struct load *l = &load[ap_schedule_part(pipe->scheduler, pipe->nstage, s, c)];
			size_t at = (size_t)i * (size_t)pipe->nsegment + (size_t)c;

			now += x->held[at] * l->kept + (x->late ? x->late[at] * l->late : 0);
		}
		most = now > most ? now : most;
	}
	return held + most + temporary;
}

/* When the last exchange of a stage's gradients ends. */
static double exchanged_s(struct ap_ctx *ctx, const struct judging *j, const struct ap_timeline *line,
	const struct load *load, int32_t s)
{
	enum ap_pass finishing = j->p->scheduler->splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD;
	int64_t *run = AP_NEW_N(ctx->arena, int64_t, j->p->nsegment);
	double end_s = 0;

	for (uint32_t i = line->first[s]; i < line->first[s + 1]; i++) {
		const struct ap_slot_time *t = &line->slot[i];
		int32_t segment = t->slot.segment;

		if (t->slot.pass == finishing && ++run[segment] == j->p->nmicro)
			end_s = fmax(end_s, t->start_s) +
				load[ap_schedule_part(j->p->scheduler, j->p->nstage, s, segment)].exchange_s;
	}
	return end_s;
}

/* When the gradient of what the first and the last part share is with the first one; 0: there is none. */
static double returned_s(const struct judging *j, const struct ap_timeline *line)
{
	int32_t last = j->npart - 1, from = stage_of(j, last), to = stage_of(j, 0);
	double end_s = 0;

	if (from == to || j->p->shared.send_back_s <= 0)
		return 0;
	for (uint32_t i = line->first[from]; i < line->first[from + 1]; i++)
		if (ap_schedule_part(j->p->scheduler, j->p->nstage, from, line->slot[i].slot.segment) == last)
			end_s = line->slot[i].end_s;
	for (uint32_t i = 0; i < line->nsend; i++)
		if (stage_of(j, line->send[i].from_part) == from && stage_of(j, line->send[i].to_part) == to)
			end_s = fmax(end_s, line->send[i].end_s);
	return end_s + j->p->shared.send_back_s;
}

/* Fills step_s, largest_s and stage. */
static void weigh(struct ap_ctx *ctx, const struct judging *j, const struct ap_pipe *pipe,
	struct ap_partition_worth *out)
{
	const struct ap_partition *p = j->p;
	struct ap_partition_stage *stage = AP_NEW_N(ctx->arena, struct ap_partition_stage, p->nstage);
	struct load *load = AP_NEW_N(ctx->arena, struct load, j->npart);
	struct ap_pass_times *time = AP_NEW_N(ctx->arena, struct ap_pass_times, j->npart);
	struct ap_timeline line;

	for (int32_t q = 0; q < j->npart; q++) {
		add_up(j, q, &load[q]);
		time[q] = load[q].time;
	}
	time[j->npart - 1].once_s = p->shared.send_s;
	ap_schedule_run(ctx, pipe, p->nmicro, true, time, &line);
	out->stage = stage;
	for (int32_t s = 0; s < p->nstage; s++) {
		stage[s].end_s = fmax(line.slot[line.first[s + 1] - 1].end_s,
			exchanged_s(ctx, j, &line, load, s));
		if (s == stage_of(j, 0))
			stage[s].end_s = fmax(stage[s].end_s, returned_s(j, &line));
		for (int32_t c = 0; c < p->nsegment; c++) {
			const struct load *l = &load[ap_schedule_part(p->scheduler, p->nstage, s, c)];

			stage[s].busy_s += l->busy_s;
			stage[s].end_s += l->update_s;
		}
		stage[s].memory_bytes = fullest(j, pipe, load, s);
		out->step_s = fmax(out->step_s, stage[s].end_s);
		out->largest_s = fmax(out->largest_s, stage[s].busy_s);
		if (!out->fault && stage[s].memory_bytes > p->capacity_bytes[s]) {
			out->fault = "a stage does not fit its memory";
			out->at = s;
		}
	}
}

void ap_partition_judge_in(struct ap_ctx *ctx, const struct ap_partition *p, const struct ap_pipe *pipe,
	const struct ap_partition_plan *plan, struct ap_partition_worth *out)
{
	struct judging j = {.p = p, .plan = plan, .npart = p->nstage * p->nsegment};

	*out = (struct ap_partition_worth){0};
	lay_out(ctx, &j);
	out->fault = shape_fault(&j, &out->at);
	if (out->fault)
		return;
	out->fault = kinds_fault(&j, &out->at);
	weigh(ctx, &j, pipe, out);
}

void ap_partition_judge(struct ap_ctx *ctx, const struct ap_partition *p,
	const struct ap_partition_plan *plan, struct ap_partition_worth *out)
{
	struct ap_pipe pipe;

	ap_schedule_pipe(ctx, p->scheduler, p->nstage, p->nsegment, p->nmicro, &pipe);
	ap_partition_judge_in(ctx, p, &pipe, plan, out);
}
