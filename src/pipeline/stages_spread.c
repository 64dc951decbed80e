/* SPDX-License-Identifier: Apache-2.0 */
/* From what is said of some operators to the parts of all. */
#include <inttypes.h>

#include "base/arena.h"
#include "base/diag.h"
#include "pipeline/stages_parts.h"

enum { UNKNOWN = -1 };

struct spreading {
	struct ap_stages *s;
	int32_t *least; /* [nnode] the earliest part that comes after what the operator needs */
	ap_id *why; /* [nnode] the operator of which that part is said; AP_NONE */
};

static bool is_said(const struct ap_stages *s, ap_id i)
{
	return s->stage[i] >= 0 || s->segment[i] >= 0;
}

/* The first part from `least` on that is of the stage and segment said; npart where there is none. */
static int32_t first_said(const struct ap_stages *s, ap_id i, int32_t least)
{
	int32_t part = least;

	for (; part < s->npart; part++) {
		int32_t stage, segment;

		ap_schedule_spot(s->rq->scheduler, s->rq->nstage, part, &stage, &segment);
		if ((s->stage[i] < 0 || s->stage[i] == stage) &&
			(s->segment[i] < 0 || s->segment[i] == segment))
			break;
	}
	return part;
}

static const char *spot_text(const struct ap_stages *s, int32_t stage, int32_t segment)
{
	if (stage < 0)
		return ap_arena_printf(s->ctx->arena, "segment %" PRId32, segment);
	if (s->rq->nsegment == 1 || segment < 0)
		return ap_arena_printf(s->ctx->arena, "stage %" PRId32, stage);
	return ap_arena_printf(s->ctx->arena, "segment %" PRId32 " of stage %" PRId32, segment, stage);
}

static enum ap_status say_backwards(const struct spreading *x, ap_id i)
{
	const struct ap_stages *s = x->s;
	int32_t stage, segment;

	ap_schedule_spot(s->rq->scheduler, s->rq->nstage, x->least[i], &stage, &segment);
	return ap_stages_fault(s, i, "stage-order",
		"it is in %s, but needs what operator \"%s\" in %s makes; data flows from earlier parts of "
		"the pipeline to later ones", spot_text(s, s->stage[i], s->segment[i]),
		ap_diag_name(s->ctx->diag, s->g->node[x->why[i]].name), spot_text(s, stage, segment));
}

static void look_back(struct spreading *x, ap_id i)
{
	const struct ap_graph *g = x->s->g;

	x->why[i] = AP_NONE;
	for (uint16_t k = 0; k < g->node[i].bound.nin; k++) {
		ap_id from = g->tensor[g->node[i].in[k]].producer;

		if (from == AP_NONE || x->why[from] == AP_NONE || x->least[from] < x->least[i])
			continue;
		if (x->why[i] != AP_NONE && x->least[from] == x->least[i])
			continue;
		x->least[i] = x->least[from];
		x->why[i] = x->why[from];
	}
}

static enum ap_status place_said(struct spreading *x)
{
	struct ap_stages *s = x->s;
	enum ap_status st = AP_OK;

	for (ap_id i = 0; i < s->g->nnode; i++) {
		look_back(x, i);
		s->part[i] = UNKNOWN;
		if (!is_said(s, i))
			continue;
		s->part[i] = first_said(s, i, x->least[i]);
		if (s->part[i] == s->npart) {
			st = say_backwards(x, i);
			x->least[i] = 0; /* told once, not again of all that follows */
			x->why[i] = AP_NONE;
			continue;
		}
		x->least[i] = s->part[i];
		x->why[i] = i;
	}
	return st;
}

/* Those without a part go with the earliest of those that use their results. */
static void follow_users(struct ap_stages *s)
{
	for (ap_id i = s->g->nnode; i-- > 0;) {
		const struct ap_node *n = &s->g->node[i];
		int32_t least = UNKNOWN;

		if (s->part[i] != UNKNOWN)
			continue;
		for (uint16_t k = 0; k < n->bound.nout; k++) {
			const struct ap_tensor *t = &s->g->tensor[n->out[k]];

			for (uint32_t u = 0; u < t->nuse; u++) {
				int32_t part = s->part[t->use[u].node];

				if (part != UNKNOWN && (least == UNKNOWN || part < least))
					least = part;
			}
		}
		s->part[i] = least;
	}
}

/* The others with the latest of those whose results they use. */
static void follow_producers(struct ap_stages *s)
{
	for (ap_id i = 0; i < s->g->nnode; i++) {
		const struct ap_node *n = &s->g->node[i];
		bool known = s->part[i] != UNKNOWN;

		for (uint16_t k = 0; !known && k < n->bound.nin; k++) {
			ap_id from = s->g->tensor[n->in[k]].producer;

			if (from != AP_NONE && s->part[from] > s->part[i])
				s->part[i] = s->part[from];
		}
	}
}

static uint32_t *count_parts(const struct ap_stages *s)
{
	uint32_t *n = AP_NEW_N(s->ctx->scratch, uint32_t, s->npart);

	for (ap_id i = 0; i < s->g->nnode; i++)
		n[s->part[i]]++;
	return n;
}

/* Where a schedule turns, two parts that follow one another are of the last stage, and who names stages
 * only says nothing of what is in which. */
static void share_turn(struct ap_stages *s)
{
	int32_t turn = s->rq->nstage - 1;
	const uint32_t *n = count_parts(s);
	ap_id *node;
	uint32_t at = 0;

	if (!s->rq->scheduler->vee || s->npart < turn + 2 || n[turn + 1] > 0 || n[turn] < 2)
		return;
	node = AP_NEW_N(s->ctx->scratch, ap_id, n[turn]);
	for (ap_id i = 0; i < s->g->nnode; i++) {
		if (s->part[i] != turn)
			continue;
		if (s->segment[i] >= 0)
			return;
		node[at++] = i;
	}
	ap_stages_halve(s, node, at, turn);
}

static enum ap_status check_empty(const struct ap_stages *s)
{
	const uint32_t *n = count_parts(s);
	enum ap_status st = AP_OK;

	for (int32_t p = 0; p < s->npart; p++) {
		int32_t stage, segment;

		if (n[p] > 0)
			continue;
		ap_schedule_spot(s->rq->scheduler, s->rq->nstage, p, &stage, &segment);
		st = ap_stages_fault(s, AP_NONE, "stage-empty",
			"no operator is in %s, of %" PRId32 " stages%s", spot_text(s, stage, segment),
			s->rq->nstage, s->rq->nsegment > 1 ? " of several segments" : "");
	}
	return st;
}

enum ap_status ap_stages_spread(struct ap_stages *s)
{
	struct spreading x = {.s = s, .least = AP_NEW_N(s->ctx->scratch, int32_t, s->g->nnode),
		.why = AP_NEW_N(s->ctx->scratch, ap_id, s->g->nnode)};

	AP_TRY(place_said(&x));
	follow_users(s);
	follow_producers(s);
	follow_users(s);
	follow_producers(s);
	for (ap_id i = 0; i < s->g->nnode; i++)
		if (s->part[i] == UNKNOWN)
			s->part[i] = 0; /* hangs together with nothing of which anything is said */
	share_turn(s);
	return check_empty(s);
}
