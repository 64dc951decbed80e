/* SPDX-License-Identifier: Apache-2.0 */
#include "partition/uniform.h"

#include <string.h>

#include "base/arena.h"
#include "pipeline/schedule.h"

#define MOST_WORK 1e7 /* choices times layers */

struct trying {
	struct ap_ctx *ctx;
	const struct ap_partition *p;
	const struct ap_options *c;
	struct ap_replay *replay;
	uint32_t degree;
	int32_t npart;
	int64_t nfirst, nbody, nlayer, largest; /* layers; of the largest part */
	uint32_t *cls; /* [nlayer] */
	int64_t *first; /* [npart + 1] */
	int64_t *number; /* [nkind] */
	uint32_t *kind; /* [nlayer] */
	struct ap_part_choice *part; /* [npart] */
	const struct ap_part_choice **held; /* [nsegment] */
	struct ap_ticks *time;
	int64_t *send, *back; /* [npart] */
	uint64_t work;
};

bool ap_uniform_is(const struct ap_partition *p)
{
	int64_t parts = p->nstage * p->nsegment, body = ap_partition_body(p), largest = body / parts;
	double choices = 1;

	if (p->kinds != AP_KINDS_UNIFORM || p->degree_by_stage ||
		(p->counts == AP_COUNTS_FREE && parts > 1 &&
			ap_partition_least_before(p, (int32_t)parts) != body))
		return false;
	for (int32_t q = 0; p->counts != AP_COUNTS_EQUAL && parts > 1 && q < parts; q++) {
		int64_t n = p->counts == AP_COUNTS_GIVEN ? p->count[q] : ap_partition_least(p, q);

		largest = n > largest ? n : largest;
	}
	for (uint32_t k = 1; k < p->nkind; k++)
		choices *= (double)(largest + k) / k;
	return choices * (double)ap_partition_layers(p) < MOST_WORK;
}

static bool runs(const struct trying *t, uint32_t cls)
{
	struct ap_part_choice one;

	for (uint32_t k = 0; k < t->p->nkind; k++)
		if (ap_options_layer(t->c, cls, t->degree, k, &one))
			return true;
	return false;
}

/* The numbers of layers of the parts. Returns false if there are none. */
static bool lay_out(struct trying *t)
{
	const struct ap_partition *p = t->p;

	for (uint32_t r = 0; r < p->nrun; r++) {
		if (!runs(t, p->run[r].cls))
			return false;
		for (int64_t i = 0; i < p->run[r].count; i++)
			t->cls[t->nlayer++] = p->run[r].cls;
		t->nfirst += p->run[r].at == AP_AT_FIRST ? p->run[r].count : 0;
	}
	if (p->counts == AP_COUNTS_EQUAL && t->nbody % t->npart)
		return false;
	for (int32_t q = 0; q < t->npart; q++) {
		int64_t n = p->counts == AP_COUNTS_GIVEN ? p->count[q]
			: p->counts == AP_COUNTS_EQUAL || t->npart == 1 ? t->nbody / t->npart
			: ap_partition_least(p, q);

		if (n < ap_partition_least(p, q))
			return false;
		t->largest = n > t->largest ? n : t->largest;
		t->first[q + 1] = t->first[q] + n;
	}
	return t->first[t->npart] == t->nbody;
}

static void add_layer(struct trying *t, struct ap_part_choice *sum, int64_t layer, uint32_t wanted)
{
	struct ap_part_choice one;
	uint32_t k = wanted;

	if (!ap_options_layer(t->c, t->cls[layer], t->degree, k, &one)) {
		k = 0;
		while (!ap_options_layer(t->c, t->cls[layer], t->degree, k, &one)) /* it has one */
			k++;
	}
	t->kind[layer] = k;
	for (int i = 0; i < AP_TIMES; i++)
		sum->time.t[i] += one.time.t[i];
	for (int i = 0; i < AP_HELDS; i++)
		if (i != AP_HELD_ONCE)
			sum->bytes[i] += one.bytes[i];
		else if (one.bytes[i] > sum->bytes[i])
			sum->bytes[i] = one.bytes[i];
}

/* What the parts take and hold with these numbers. */
static void add_up(struct trying *t)
{
	t->work += (uint64_t)t->nlayer;
	for (int32_t q = 0; q < t->npart; q++) {
		int64_t from = q == 0 ? 0 : t->nfirst + t->first[q];
		int64_t to = q + 1 == t->npart ? t->nlayer : t->nfirst + t->first[q + 1];
		uint32_t k = t->p->nkind - 1;
		int64_t left = t->number[k];

		t->part[q] = (struct ap_part_choice){0};
		for (int64_t i = from; i < to; i++) {
			bool is_body = i >= t->nfirst && i < t->nfirst + t->nbody;

			while (is_body && k > 0 && left == 0)
				left = --k > 0 ? t->number[k] : 0;
			left -= is_body && k > 0;
			add_layer(t, &t->part[q], i, is_body ? k : 0);
		}
		t->time[q] = t->part[q].time;
		if (t->first[q + 1] > t->first[q])
			t->time[q].t[AP_TIME_BESIDE] += ap_options_left(t->c, q, t->degree);
	}
}

static bool fits(struct trying *t)
{
	for (int32_t s = 0; s < t->p->nstage; s++) {
		for (int32_t c = 0; c < t->p->nsegment; c++)
			t->held[c] = &t->part[ap_schedule_part(t->p->scheduler, t->p->nstage, s, c)];
		if (t->p->capacity_bytes[s] != AP_NO_LIMIT &&
			ap_options_bytes(t->c, s, t->held) > t->p->capacity_bytes[s])
			return false;
	}
	return true;
}

/* What a step takes at least: the largest stage's passes; and that is the objective, if they are. */
static int64_t largest_stage(const struct trying *t)
{
	int64_t most = 0;

	for (int32_t s = 0; s < t->p->nstage; s++) {
		int64_t sum = 0;

		for (int32_t c = 0; c < t->p->nsegment; c++) {
			int32_t q = ap_schedule_part(t->p->scheduler, t->p->nstage, s, c);
			const struct ap_ticks *one = &t->time[q];

			sum += one->t[AP_TIME_FORWARD] + one->t[AP_TIME_BACKWARD] + one->t[AP_TIME_WEIGHT];
		}
		most = sum > most ? sum : most;
	}
	return most;
}

static void try_one(struct trying *t, struct ap_uniform *out)
{
	struct ap_arena *arena = t->ctx->arena;
	int64_t value;

	add_up(t);
	value = largest_stage(t);
	value *= t->p->objective == AP_OBJECTIVE_STEP ? t->p->nmicro : 1;
	if ((out->value >= 0 && value >= out->value) || !fits(t))
		return;
	if (t->p->objective == AP_OBJECTIVE_STEP) {
		value = ap_replay_end(t->replay, t->time, t->send, t->back);
		t->work += ap_replay_steps(t->replay);
	}
	if (out->value >= 0 && value >= out->value)
		return;
	out->value = value;
	out->number = ap_arena_memdup(arena, t->number, t->p->nkind * sizeof *t->number);
	out->kind = ap_arena_memdup(arena, t->kind, (size_t)t->nlayer * sizeof *t->kind);
}

/* Numbers whose sum is at most the largest part. Returns false after the last ones. */
static bool next(struct trying *t)
{
	int64_t sum = 0;

	for (uint32_t k = 1; k < t->p->nkind; k++)
		sum += t->number[k];
	for (uint32_t k = 1; k < t->p->nkind; k++) {
		if (sum < t->largest) {
			t->number[k]++;
			return true;
		}
		sum -= t->number[k];
		t->number[k] = 0;
	}
	return false;
}

void ap_uniform_best(struct ap_ctx *ctx, const struct ap_partition *p, const struct ap_options *c,
	struct ap_replay *replay, uint32_t degree, uint64_t *work, struct ap_uniform *out)
{
	struct ap_arena *scratch = ctx->scratch;
	struct ap_mark mark = ap_arena_mark(scratch);
	size_t n = (size_t)p->nstage * (size_t)p->nsegment, nlayer = (size_t)ap_partition_layers(p);
	struct trying t = {.ctx = ctx, .p = p, .c = c, .replay = replay, .degree = degree,
		.npart = (int32_t)n,
		.nbody = ap_partition_body(p), .cls = AP_NEW_N(scratch, uint32_t, nlayer + 1),
		.first = AP_NEW_N(ctx->arena, int64_t, n + 1), .number = AP_NEW_N(scratch, int64_t, p->nkind),
		.kind = AP_NEW_N(scratch, uint32_t, nlayer + 1),
		.part = AP_NEW_N(scratch, struct ap_part_choice, n),
		.held = AP_NEW_N(scratch, const struct ap_part_choice *, p->nsegment),
		.time = AP_NEW_N(scratch, struct ap_ticks, n), .send = AP_NEW_N(scratch, int64_t, n),
		.back = AP_NEW_N(scratch, int64_t, n)};

	*out = (struct ap_uniform){.value = -1, .first = t.first};
	if (lay_out(&t)) {
		for (size_t q = 0; q + 1 < n; q++) {
			t.send[q] = ap_options_send(c, degree, degree, t.first[q + 1]);
			t.back[q] = ap_options_send_back(c, degree, degree, t.first[q + 1]);
		}
		do
			try_one(&t, out);
		while (next(&t));
	}
	*work += t.work;
	ap_arena_release(scratch, mark);
}
