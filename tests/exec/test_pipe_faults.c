/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of pipelines, put in on purpose: each must show wherever it finds something to break. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "harness.h"
#include "plan/plan.h"
#include "fault.h"
#include "pipe_game.h"

enum { TRIES = 40, ENOUGH = 5 };

/* ---- the faults ---- */

static bool to_its_neighbour(struct ex_world *w, int64_t *to)
{
	if (*to % w->ndev != 1)
		return false;
	(*to)--;
	return true;
}

static bool first_dropped(struct ex_world *w, int64_t micro, int *times)
{
	(void)w;
	*times = micro > 0;
	return micro == 0;
}

static bool first_twice(struct ex_world *w, int64_t micro, int *times)
{
	(void)w;
	*times = micro == 0 ? 2 : 1;
	return micro == 0;
}

#define PIPE(name) static bool name(struct ex_world *w, struct ex_pipeline *l)

/* What comes in the place of another one, with its times. */
static void swap(struct ex_slot *a, struct ex_slot *b)
{
	struct ex_slot was = *a;

	a->pass = b->pass;
	a->segment = b->segment;
	a->micro = b->micro;
	b->pass = was.pass;
	b->segment = was.segment;
	b->micro = was.micro;
}

PIPE(back_before_forth)
{
	(void)w;
	for (uint32_t i = 0; i < l->first[l->nstage]; i++)
		for (uint32_t k = i + 1; k < l->first[l->slot[i].stage + 1]; k++)
			if (l->slot[i].pass == AP_PASS_FORWARD && l->slot[k].pass == AP_PASS_BACKWARD &&
				l->slot[i].segment == l->slot[k].segment && l->slot[i].micro == l->slot[k].micro) {
				swap(&l->slot[i], &l->slot[k]);
				return true;
			}
	return false;
}

PIPE(segments_swapped)
{
	(void)w;
	for (uint32_t i = l->first[0]; i < l->first[1] && l->nsegment > 1; i++)
		l->slot[i].segment = l->nsegment - 1 - l->slot[i].segment;
	return l->nsegment > 1;
}

PIPE(pass_dropped)
{
	(void)w;
	for (int32_t s = 0; s < l->nstage; s++)
		l->first[s + 1]--;
	for (uint32_t i = 0, s = 0; i < l->first[l->nstage]; i++) {
		while (i >= l->first[s + 1])
			s++;
		l->slot[i] = l->slot[i + s];
	}
	return true;
}

PIPE(weight_stale)
{
	bool any = false;

	(void)w;
	for (ap_id i = 0; i < l->program.graph->nnode; i++)
		any |= l->program.graph->node[i].once;
	l->stale = true;
	return any;
}

PIPE(too_few_in_flight)
{
	(void)w;
	for (int32_t s = 0; s < l->nstage; s++)
		l->most[s]--;
	return true;
}

PIPE(too_little_memory)
{
	for (int32_t s = 0; s < l->nstage && l->nsegment == 1 && !w->faulted; s++)
		if (l->memory[s].activations > 0 && l->most[s] > 1) {
			l->memory[s].activations -= l->memory[s].activations / l->most[s];
			return true;
		}
	return false;
}

PIPE(bucket_lacks_one)
{
	(void)w;
	for (uint32_t i = 0; i < l->nbucket; i++)
		if (l->bucket[i].n > 0) {
			l->bucket[i].n--;
			return true;
		}
	return false;
}

PIPE(bucket_missing)
{
	(void)w;
	if (l->nbucket == 0)
		return false;
	l->nbucket--;
	return true;
}

static const struct ex_fault faults[] = {
	{"send-neighbour", "a slice goes to the rank before its own", .letter = to_its_neighbour},
	{"gradient-dropped", "a micro-batch does not count", .count = first_dropped},
	{"gradient-twice", "a micro-batch counts twice", .count = first_twice},
	{"slot-early", "a pass before the one that it comes back from", .pipe = back_before_forth},
	{"slot-dropped", "the last pass of every stage is missing", .pipe = pass_dropped},
	{"segments-swapped", "a stage takes one segment for the other", .pipe = segments_swapped},
	{"weight-stale", "what stages share is not sent", .pipe = weight_stale},
	{"in-flight", "one micro-batch fewer is held", .pipe = too_few_in_flight},
	{"memory", "memory of one micro-batch fewer", .pipe = too_little_memory},
	{"bucket-short", "a bucket lacks its last parameter", .pipe = bucket_lacks_one},
	{"bucket-missing", "a bucket is missing", .pipe = bucket_missing},
};

/* ---- what they do ---- */

struct tally {
	uint32_t applied, caught;
	char first[200]; /* what was seen first */
};

static void try_plan(struct ex_pipe_game *p, const struct ap_plan *plan, const struct ex_fault *f,
	struct tally *t)
{
	struct ex_peaks peak[EX_MOST_STAGES];
	struct ex_pipeline l;
	const char *why;

	ex_pipeline_of_plan(&p->f.ctx, plan, &l);
	p->w.faulted = f->pipe && f->pipe(&p->w, &l);
	if (f->pipe && !p->w.faulted)
		return;
	p->w.fault = f;
	p->w.trouble = NULL;
	why = ex_pipeline_run(&p->w, &l, &p->truth, EX_BY_TIME, peak);
	p->w.fault = NULL;
	t->applied += p->w.faulted;
	t->caught += p->w.faulted && why;
	if (p->w.faulted && why && !t->first[0])
		snprintf(t->first, sizeof t->first, "%s", why);
	ck_assert_msg(!p->w.faulted || why, "%s passes: %s", f->name, p->f.step.pipe->scheduler->name);
}

static void try_fault(const struct ex_fault *f, uint64_t seed, struct tally *t)
{
	static const char *const names[] = {"mlp", "tied", "twice", "attention"};

	for (uint64_t k = 0; k < TRIES && t->caught < ENOUGH; k++) {
		const struct ex_graph_sample *s = NULL;
		struct ex_pipe_game p;
		struct ap_plan plan;

		for (size_t i = 0; !s || strcmp(s->name, names[k % 4]) != 0; i++)
			s = ex_graph_at(i);
		if (!ex_pipe_game_open(&p, s, ap_scheduler_at(k / 4 % 4), 2, 4, seed + k))
			continue;
		if (ex_pipe_game_draw(&p, &plan))
			try_plan(&p, &plan, f, t);
		ex_pipe_game_close(&p);
	}
}

START_LOOP_TEST(each_fault_shows, AP_COUNT(faults))
{
	struct tally t = {0};

	try_fault(&faults[_i], ex_seed(faults[_i].name), &t);
	printf("%s (%s): %" PRIu32 " of %" PRIu32 ", e.g. %s\n", faults[_i].name, faults[_i].what, t.caught,
		t.applied, t.first);
	ck_assert_uint_ge(t.caught, ENOUGH);
}
END_TEST
