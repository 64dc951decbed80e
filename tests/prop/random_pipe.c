/* SPDX-License-Identifier: Apache-2.0 */
#include "random_pipe.h"

#include <stdlib.h>

#include "base/arena.h"
#include "graph/staged.h"
#include "pipeline/schedule.h"
#include "shard/space.h"
#include "unit.h"

static uint64_t below(struct trial *t, uint64_t n)
{
	return random_below(&t->random, n);
}

unsigned random_kinds(struct trial *t)
{
	switch (below(t, 4)) {
	case 0:
		return AP_RECOMPUTE_NONE;
	case 1:
		return AP_RECOMPUTE_FULL;
	case 2:
		return AP_RECOMPUTE_SELECTIVE;
	default:
		return (unsigned)below(t, AP_RECOMPUTE_FULL);
	}
}

void random_layers(struct trial *t)
{
	struct ap_node *node;
	struct ap_graph *g = ap_graph_with_nodes(&t->f.ctx, t->f.graph, &node);
	uint64_t length = 1 + below(t, 4), layer = 0;
	bool in_turns = below(t, 8) == 0;

	if (below(t, 4) == 0)
		return;
	for (ap_id i = 0; i < g->nnode; i++) {
		uint64_t number = in_turns && layer > 0 ? layer - below(t, 2) : layer;

		if (below(t, 5) > 0)
			node[i].cell = ap_arena_printf(t->f.ctx.arena, "net.%d.inner", (int)number);
		layer += below(t, length) == 0;
	}
	t->f.graph = g;
}

void random_recompute(struct trial *t)
{
	struct ap_graph *g = ap_arena_memdup(t->f.ctx.arena, t->f.graph, sizeof *g);
	struct ap_node *node = ap_arena_memdup(t->f.ctx.arena, g->node, g->nnode * sizeof *node);

	t->f.step.recompute = random_kinds(t);
	t->f.step.recompute_keeps_comm = below(t, 3) == 0;
	t->f.step.recompute_regathers = below(t, 3) == 0;
	t->f.step.recompute_slices = below(t, 3) == 0;
	for (ap_id i = 0; i < g->nnode; i++)
		if (below(t, 3) == 0)
			node[i].recompute = (int8_t)below(t, 2);
	g->node = node;
	t->f.graph = g;
}

static struct ap_fusion random_mode(struct trial *t)
{
	int64_t *at = AP_NEW_N(t->f.ctx.arena, int64_t, 2);

	at[0] = 1 + (int64_t)below(t, 3);
	at[1] = at[0] + 1 + (int64_t)below(t, 3);
	return (struct ap_fusion){.mode = (enum ap_fusion_mode)below(t, 3),
		.bytes = INT64_C(1) << below(t, 24), .nindex = 1 + (uint32_t)below(t, 2), .index = at};
}

void random_fusion(struct trial *t)
{
	t->f.step.allreduce = random_mode(t);
	t->f.step.reducescatter = random_mode(t);
	t->f.step.allgather = random_mode(t);
}

static bool divides_batch(const struct trial *t, int64_t n)
{
	for (ap_id i = 0; i < t->f.graph->nnode; i++)
		for (int f = 0; f < t->f.graph->node[i].bound.nfactor; f++) {
			const struct ap_factor *factor = &t->f.graph->node[i].bound.factor[f];

			if (factor->flags & AP_FACTOR_BATCH && factor->size % n != 0)
				return false;
		}
	for (ap_id i = 0; i < t->f.graph->ntensor; i++)
		for (int d = 0; d < t->f.graph->tensor[i].shape.rank; d++)
			if (t->f.graph->tensor[i].batch >> d & 1 &&
				t->f.graph->tensor[i].shape.dim[d] % n != 0)
				return false;
	return true;
}

/* The largest number, up to most, that divides all that carries the batch. */
static int64_t micro_batches(const struct trial *t, int64_t most)
{
	while (!divides_batch(t, most))
		most--;
	return most;
}

static int compare(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* npart - 1 different places to cut between operators. */
static uint32_t *random_cuts(struct trial *t, uint32_t npart)
{
	uint32_t n = t->f.graph->nnode - 1, *cut = AP_NEW_N(t->f.ctx.arena, uint32_t, n);

	for (uint32_t i = 0; i < n; i++)
		cut[i] = i + 1;
	for (uint32_t i = 0; i + 1 < npart; i++) {
		uint32_t k = i + (uint32_t)below(t, n - i), kept = cut[i];

		cut[i] = cut[k];
		cut[k] = kept;
	}
	qsort(cut, npart - 1, sizeof *cut, compare);
	return cut;
}

static void stage_graph(struct trial *t, const struct ap_pipe *pipe)
{
	uint32_t npart = (uint32_t)(pipe->nstage * pipe->nsegment), part = 0;
	const uint32_t *cut = random_cuts(t, npart);
	struct ap_spot *spot = AP_NEW_N(t->f.ctx.arena, struct ap_spot, t->f.graph->nnode);

	for (ap_id i = 0; i < t->f.graph->nnode; i++) {
		part += part + 1 < npart && i == cut[part];
		spot[i].part = (int32_t)part;
		ap_schedule_spot(pipe->scheduler, pipe->nstage, spot[i].part, &spot[i].stage,
			&spot[i].segment);
	}
	ap_graph_staged(&t->f.ctx, t->f.graph, spot, &t->f.graph);
}

static const struct ap_scheduler *random_scheduler(struct trial *t)
{
	size_t n = 0;

	while (ap_scheduler_at(n))
		n++;
	return ap_scheduler_at(below(t, n));
}

static int32_t random_segments(struct trial *t, const struct ap_scheduler *s)
{
	int most = s->most_segments ? s->most_segments : 3;

	return s->least_segments + (int32_t)below(t, (uint64_t)(most - s->least_segments + 1));
}

/* Deals the devices to stages, at least one each; false, and nothing is changed: to all as many. */
static bool divide(struct trial *t, int32_t nstage)
{
	struct ap_stage_devices *of = AP_NEW_N(t->f.ctx.arena, struct ap_stage_devices, nstage);
	uint32_t *n = AP_NEW_N(t->f.ctx.arena, uint32_t, nstage), left = t->f.machine->ndev;
	struct ap_graph *g = ap_arena_memdup(t->f.ctx.arena, t->f.graph, sizeof *g);
	const struct ap_machine *m;

	for (int32_t s = 0; s < nstage; s++)
		n[s] = 1;
	for (left -= (uint32_t)nstage; left > 0; left--)
		n[below(t, (uint64_t)nstage)]++;
	ap_machine_divided(&t->f.ctx, t->f.machine, (uint32_t)nstage, n, &m);
	if (!m->part)
		return false;
	for (int32_t s = 0; s < nstage; s++)
		of[s] = (struct ap_stage_devices){n[s], (int32_t)m->part[s].like};
	g->devices = of;
	t->f.graph = g;
	t->f.machine = m;
	return true;
}

static bool pipe_of(struct trial *t, const struct ap_scheduler *s, bool unequal)
{
	int32_t nstage = 1 + unequal + (int32_t)below(t, unequal ? 3 : 4), nsegment = random_segments(t, s);
	int64_t nmicro = micro_batches(t, 1 + (int64_t)below(t, 8));
	struct ap_pipe *pipe = AP_NEW(t->f.ctx.arena, struct ap_pipe);

	if (unequal ? t->f.machine->ndev < (uint32_t)nstage : t->f.machine->ndev % (uint32_t)nstage != 0)
		return false;
	if (s->refuses(nstage, nsegment, nmicro) ||
		(uint32_t)(nstage * nsegment) > t->f.graph->nnode)
		return false;
	if (unequal && !divide(t, nstage))
		return false;
	ap_schedule_pipe(&t->f.ctx, s, nstage, nsegment, nmicro, pipe);
	t->f.step.pipe = pipe;
	t->f.step.micro_batches = nmicro;
	if (!unequal)
		ap_machine_staged(&t->f.ctx, t->f.machine, (uint32_t)nstage, &t->f.machine);
	stage_graph(t, pipe);
	t->space = AP_NEW_N(t->f.ctx.arena, struct ap_space, t->f.graph->nnode);
	for (ap_id i = 0; i < t->f.graph->nnode; i++)
		ap_space_make(&t->f.ctx, &t->f.graph->node[i].bound,
			ap_graph_devices(t->f.graph, i, t->f.machine->ndev), &t->f.step, &t->space[i]);
	t->machine = ap_arena_printf(t->f.ctx.arena, "%s; %s of %d stages with %d segments, %" PRId64
		" micro-batches%s", t->machine, s->name, nstage, nsegment, nmicro,
		s->beside ? ", passes as one" : "");
	for (int32_t k = 0; unequal && k < nstage; k++)
		t->machine = ap_arena_printf(t->f.ctx.arena, "%s%s%" PRId64, t->machine,
			k > 0 ? "/" : ", devices ", t->f.graph->devices[k].n);
	return true;
}

bool random_pipe(struct trial *t)
{
	return pipe_of(t, random_scheduler(t), false);
}

bool random_pipe_unequal(struct trial *t)
{
	t->f.step.shard_size = -1; /* such stages have no groups of another size */
	if (t->f.step.executor != AP_EXECUTOR_GENERIC) /* which imposes no cut for one number of devices */
		return false;
	for (int tries = 0; tries < 8; tries++)
		if (pipe_of(t, random_scheduler(t), true))
			return true;
	return false;
}

bool random_pipe_beside(struct trial *t)
{
	return pipe_of(t, ap_scheduler_beside(ap_scheduler_find("interleaved")), false);
}
