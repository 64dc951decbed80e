/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of random pipelines, held against a simulation that looks at everything at every step.
 */
#include <math.h>

#include "pipeline/schedule.h"
#include "unit.h"

enum { MOST_STAGES = 7, MOST_SEGMENTS = 4, MOST_MICRO = 24, PASSES = 3 };
enum { MOST_PARTS = MOST_STAGES * MOST_SEGMENTS };

static uint64_t case_count(void)
{
	const char *text = getenv("AP_CASES");
	return text ? strtoull(text, NULL, 0) : 400;
}

struct parcel { /* what waits to be sent */
	double ready_s;
	int32_t from, to, micro;
	enum ap_pass pass;
	bool gone;
};

struct trial {
	struct ap_pipe pipe;
	int32_t nmicro, npart;
	bool training;
	struct ap_pass_times time[MOST_PARTS];
	double done_s[PASSES][MOST_PARTS][MOST_MICRO]; /* NAN: not yet */
	double there_s[PASSES][MOST_PARTS]
		      [MOST_MICRO]; /* what it needs of another part; NAN: not yet */
	int32_t finished[MOST_PARTS];
	double free_s[MOST_STAGES], link_free_s[MOST_STAGES][MOST_STAGES];
	uint32_t next[MOST_STAGES];
	uint32_t nparcel;
	struct parcel parcel[2 * MOST_PARTS * MOST_MICRO]; /* as they became ready */
};

/* Often equal, often nothing. */
static double some_seconds(uint64_t *seed)
{
	return random_below(seed, 4) ? (double)random_below(seed, 9) / 4
				     : (double)(random_next(seed) >> 11) / 0x1p53;
}

/* Of what a pass takes so much is hidden beside another one, and so much is communication. */
static void some_beside(struct ap_pass_times *t, uint64_t nth)
{
	t->forward_beside = (struct ap_pass_beside){t->forward_s * (double)(nth % 4) / 4,
		t->forward_s * (double)(nth / 4 % 4) / 4};
	t->backward_beside = (struct ap_pass_beside){t->backward_s * (double)(nth / 16 % 4) / 4,
		t->backward_s * (double)(nth / 64 % 4) / 4};
}

static void pick_trial(struct trial *t, struct ap_ctx *ctx, uint64_t *seed, bool beside)
{
	const struct ap_scheduler *s = ap_scheduler_at(random_below(seed, 4));
	int most = s->most_segments ? s->most_segments : MOST_SEGMENTS;
	int32_t nstage = 1 + (int32_t)random_below(seed, MOST_STAGES);
	int32_t nsegment = s->least_segments +
			   (int32_t)random_below(seed, (uint64_t)(most - s->least_segments + 1));

	memset(t, 0, sizeof *t);
	do
		t->nmicro = 1 + (int32_t)random_below(seed, MOST_MICRO);
	while (s->refuses(nstage, nsegment, t->nmicro));
	if (beside && ap_scheduler_beside(s) && !ap_scheduler_beside(s)->refuses(nstage, nsegment, t->nmicro))
		s = ap_scheduler_beside(s);
	t->training = random_below(seed, 5) != 0;
	t->npart = nstage * nsegment;
	ap_schedule_pipe(ctx, s, nstage, nsegment, t->nmicro, &t->pipe);
	for (int32_t p = 0; p < t->npart; p++)
		t->time[p] = (struct ap_pass_times){some_seconds(seed), some_seconds(seed),
			some_seconds(seed), some_seconds(seed), some_seconds(seed),
			some_seconds(seed), {0}, {0}};
	for (int32_t p = 0; p < t->npart && beside; p++)
		some_beside(&t->time[p], random_below(seed, 256));
	for (int k = 0; k < PASSES; k++)
		for (int p = 0; p < MOST_PARTS; p++)
			for (int i = 0; i < MOST_MICRO; i++)
				t->done_s[k][p][i] = t->there_s[k][p][i] = NAN;
}

static int32_t stage_of(const struct trial *t, int32_t part)
{
	int32_t stage, segment;

	ap_schedule_spot(t->pipe.scheduler, t->pipe.nstage, part, &stage, &segment);
	return stage;
}

static int32_t part_of(const struct trial *t, int32_t stage, const struct ap_schedule_slot *s)
{
	return ap_schedule_part(t->pipe.scheduler, t->pipe.nstage, stage, s->segment);
}

/* The later of two times; NAN where one is not known. */
static double later(double a, double b)
{
	return isnan(a) || isnan(b) ? NAN : fmax(a, b);
}

/* When a pass has all that it needs. NAN: not known yet. */
static double needed(const struct trial *t, const struct ap_schedule_slot *s, int32_t part)
{
	double own = t->done_s[s->pass == AP_PASS_WEIGHT][part][s->micro];

	if (s->pass == AP_PASS_FORWARD)
		return part ? t->there_s[AP_PASS_FORWARD][part][s->micro] : 0;
	if (s->pass == AP_PASS_WEIGHT || part + 1 == t->npart)
		return own;
	return later(own, t->there_s[AP_PASS_BACKWARD][part][s->micro]);
}

static double length_of(struct trial *t, const struct ap_schedule_slot *s, int32_t part)
{
	const struct ap_pass_times *x = &t->time[part];
	enum ap_pass last = t->pipe.scheduler->splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD;

	if (s->pass == last && ++t->finished[part] == t->nmicro)
		return x->last_backward_s;
	return s->pass == AP_PASS_FORWARD    ? x->forward_s
	       : s->pass == AP_PASS_BACKWARD ? x->backward_s
					     : x->weight_s;
}

/* The stage whose next slot can start first; -1: none is known to. */
static int32_t first_slot(const struct trial *t, const struct ap_timeline *line, double *at)
{
	int32_t best = -1;

	*at = INFINITY;
	for (int32_t s = 0; s < line->nstage; s++) {
		const struct ap_slot_time *x = &line->slot[line->first[s] + t->next[s]];
		double start;

		if (line->first[s] + t->next[s] == line->first[s + 1])
			continue;
		start = later(t->free_s[s], needed(t, &x->slot, part_of(t, s, &x->slot)));
		if (x->slot.beside)
			start = later(start, needed(t, &x[1].slot, part_of(t, s, &x[1].slot)));
		if (start < *at) {
			*at = start;
			best = s;
		}
	}
	return best;
}

/* The parcel that can go first; NULL: none waits. */
static struct parcel *first_parcel(struct trial *t, double *at)
{
	struct parcel *best = NULL;

	*at = INFINITY;
	for (uint32_t i = 0; i < t->nparcel; i++) {
		struct parcel *x = &t->parcel[i];
		double start =
			fmax(x->ready_s, t->link_free_s[stage_of(t, x->from)][stage_of(t, x->to)]);

		if (!x->gone && start < *at) {
			*at = start;
			best = x;
		}
	}
	return best;
}

static void make_parcel(struct trial *t, const struct ap_schedule_slot *s, int32_t part, double ready_s)
{
	int32_t to = s->pass == AP_PASS_FORWARD ? part + 1 : part - 1;

	if (s->pass != AP_PASS_WEIGHT && to >= 0 && to < t->npart)
		t->parcel[t->nparcel++] =
			(struct parcel){ready_s, part, to, s->micro, (enum ap_pass)s->pass, false};
}

static void run_slot(struct trial *t, const struct ap_slot_time *x, int32_t stage, double at)
{
	int32_t part = part_of(t, stage, &x->slot);
	double *done = &t->done_s[x->slot.pass][part][x->slot.micro];

	ck_assert_msg(isnan(*done), "a pass runs twice");
	ck_assert(x->start_s == at);
	*done = t->free_s[stage] = at + length_of(t, &x->slot, part);
	ck_assert(x->end_s == *done);
	make_parcel(t, &x->slot, part, *done);
	t->next[stage]++;
}

/* Two slots that run as one: whatever of the communication of both can be is hidden, the longer alone can not. */
static void run_both(struct trial *t, const struct ap_slot_time *x, int32_t stage, double at)
{
	int32_t forward = part_of(t, stage, &x[0].slot), back = part_of(t, stage, &x[1].slot);
	const struct ap_pass_times *f = &t->time[forward], *b = &t->time[back];
	double rest = f->forward_beside.rest_s + b->backward_beside.rest_s, both = rest;

	both = fmax(both, f->forward_beside.comm_s + b->backward_beside.comm_s);
	both = fmax(both, fmax(f->forward_s, b->backward_s));
	ck_assert(both <= (f->forward_s + b->backward_s) * (1 + 1e-15));
	ck_assert(x[0].slot.pass == AP_PASS_FORWARD && x[1].slot.pass == AP_PASS_BACKWARD && x[1].slot.beside);
	ck_assert(forward != back || x[0].slot.micro != x[1].slot.micro);
	ck_assert(x[0].start_s == at && x[1].start_s == x[0].end_s);
	ck_assert(x[0].end_s == at + f->forward_beside.rest_s);
	ck_assert(fabs(x[1].end_s - (at + both)) <= 1e-14 * x[1].end_s);
	t->free_s[stage] = x[1].end_s;
	t->done_s[AP_PASS_FORWARD][forward][x[0].slot.micro] = x[1].end_s;
	t->done_s[AP_PASS_BACKWARD][back][x[1].slot.micro] = x[1].end_s;
	ck_assert_int_lt(++t->finished[back], t->nmicro);
	make_parcel(t, &x[0].slot, forward, x[1].end_s);
	make_parcel(t, &x[1].slot, back, x[1].end_s);
	t->next[stage] += 2;
}

/* Whether the timeline tells of a send; each is told of once, as they are sorted and none overlap.
 */
static bool told(const struct ap_timeline *line, const struct parcel *p, double start, double end)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < line->nsend; i++) {
		const struct ap_send_time *s = &line->send[i];

		n += s->from_part == p->from && s->to_part == p->to && s->micro == p->micro &&
		     s->start_s == start && s->end_s == end;
	}
	return n == 1;
}

/* Returns 1 for what takes time. */
static uint32_t run_parcel(
	struct trial *t, const struct ap_timeline *line, struct parcel *p, double at)
{
	int32_t a = stage_of(t, p->from), b = stage_of(t, p->to);
	double send_s =
		p->pass == AP_PASS_FORWARD ? t->time[p->from].send_s : t->time[p->to].send_back_s;
	bool sent = a != b && send_s > 0;

	p->gone = true;
	if (!sent)
		at = p->ready_s;
	else
		t->link_free_s[a][b] = at + send_s;
	t->there_s[p->pass][p->to][p->micro] = at + (sent ? send_s : 0);
	ck_assert(!sent || told(line, p, at, at + send_s));
	return sent;
}

static void simulate(struct trial *t, const struct ap_timeline *line)
{
	uint32_t sent = 0;
	double end = 0;

	for (;;) {
		double slot_at, parcel_at;
		int32_t stage = first_slot(t, line, &slot_at);
		struct parcel *p = first_parcel(t, &parcel_at);

		if (p && parcel_at <= slot_at)
			sent += run_parcel(t, line, p, parcel_at);
		else if (stage >= 0)
			(line->slot[line->first[stage] + t->next[stage]].slot.beside ? run_both : run_slot)(t,
				&line->slot[line->first[stage] + t->next[stage]], stage, slot_at);
		else
			break;
	}
	for (int32_t s = 0; s < line->nstage; s++) {
		ck_assert_uint_eq(t->next[s], line->first[s + 1] - line->first[s]);
		end = fmax(end, t->free_s[s]);
	}
	ck_assert_uint_eq(sent, line->nsend);
	ck_assert(line->end_s == end);
}

static void all_passes_ran(const struct trial *t)
{
	for (int32_t p = 0; p < t->npart; p++)
		for (int32_t i = 0; i < t->nmicro; i++) {
			ck_assert(!isnan(t->done_s[AP_PASS_FORWARD][p][i]));
			ck_assert(isnan(t->done_s[AP_PASS_BACKWARD][p][i]) == !t->training);
			ck_assert(isnan(t->done_s[AP_PASS_WEIGHT][p][i]) ==
				  !(t->training && t->pipe.scheduler->splits));
		}
}

/* What a segment holds at most by the timeline, some instant says. */
static void in_flight_is_held(const struct trial *t, const struct ap_timeline *line)
{
	for (int32_t s = 0; s < line->nstage && t->training; s++)
		for (int32_t c = 0; c < t->pipe.nsegment; c++) {
			const struct ap_instants *x = &t->pipe.instants[s];
			int64_t held = 0, most = 0, said = 0;

			for (uint32_t i = 0; i < x->n; i++) {
				int64_t n = x->held[(size_t)i * (size_t)t->pipe.nsegment + (size_t)c];

				said = n > said ? n : said;
			}
			for (uint32_t i = line->first[s]; i < line->first[s + 1]; i++) {
				const struct ap_schedule_slot *run = &line->slot[i].slot;

				if (run->segment != c)
					continue;
				if (run->pass == AP_PASS_FORWARD)
					held++;
				else if (!t->pipe.scheduler->splits || run->pass == AP_PASS_WEIGHT)
					held--;
				most = held > most ? held : most;
			}
			ck_assert_int_eq(most, said);
			ck_assert_int_eq(held, 0);
		}
}

static void sends_are_in_order(struct ap_ctx *ctx, const struct ap_timeline *line)
{
	const struct ap_send_time *send = ap_schedule_sends(ctx->arena, line);
	const struct ap_timeline sorted = {.nsend = line->nsend, .send = send};

	for (uint32_t i = 1; i < line->nsend; i++)
		ck_assert(send[i - 1].start_s <= send[i].start_s);
	for (uint32_t i = 0; i < line->nsend; i++) {
		const struct ap_send_time *s = &line->send[i];
		const struct parcel p = {.from = s->from_part, .to = s->to_part, .micro = s->micro};

		ck_assert(told(&sorted, &p, s->start_s, s->end_s));
	}
}

START_TEST(schedules_are_as_they_must_be)
{
	uint64_t seed = random_seed(), n = case_count();
	struct trial *t = calloc(1, sizeof *t);

	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_timeline line;

		pick_trial(t, &ctx, &seed, i % 2);
		ap_schedule_run(&ctx, &t->pipe, t->nmicro, t->training, t->time, &line);
		simulate(t, &line);
		all_passes_ran(t);
		in_flight_is_held(t, &line);
		sends_are_in_order(&ctx, &line);
		ctx_destroy(&ctx);
	}
	free(t);
}
END_TEST
