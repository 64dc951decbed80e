/* SPDX-License-Identifier: Apache-2.0 */
#include "table/joint.h"

#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "cost/move.h"
#include "cost/task.h"

struct joining {
	struct ap_ctx *ctx;
	const struct ap_graph *g;
	const struct ap_task *task;
	const struct ap_step *step;
	ap_joint_fn *fn;
	void *user;
};

bool ap_joint_leads(const struct ap_bound *b)
{
	const struct ap_operand *out = &b->out[0];

	uint32_t there = 0;

	if (b->row->unit != AP_OP_VECTOR || b->nwindow > 0 || b->nout != 1)
		return false;
	for (int d = 0; d < out->rank; d++)
		for (int i = 0; i < out->dim[d].n; i++)
			there |= 1u << out->dim[d].factor[i];
	for (int f = 0; f < b->nfactor; f++)
		if (!(there >> f & 1) || b->factor[f].flags & (AP_FACTOR_FROZEN | AP_FACTOR_MIXED))
			return false;
	return out->rank > 0;
}

static void follow(struct joining *k, const struct ap_joint *flow)
{
	struct ap_joint j = *flow;

	if (!k->step->follow || !ap_joint_leads(&k->g->node[flow->u].bound))
		return;
	j.type = AP_BOND_FOLLOW;
	memset(&j.flow, 0, sizeof j.flow);
	k->fn(k->user, &j);
}

/* All users of a parameter hold it in the same layout. */
static void users_of(struct joining *k, const struct ap_tensor *t)
{
	for (uint32_t u = 1; u < t->nuse; u++) {
		struct ap_joint j;

		if (t->use[u].node == t->use[0].node)
			continue;
		memset(&j, 0, sizeof j);
		j.u = t->use[0].node;
		j.v = t->use[u].node;
		j.type = AP_BOND_LAYOUT;
		j.slot_u = t->use[0].operand;
		j.slot_v = t->use[u].operand;
		k->fn(k->user, &j);
	}
}

/* Only operators that share a parameter may share a key. */
static bool may_be_tied(const struct ap_graph *g, ap_id node)
{
	ap_id param = g->node[node].param;

	return param != AP_NONE && g->tensor[param].nuse > 1;
}

/* Operators of one type with the same first parameter share a checkpoint key, and so their
 * strategy, if their strategies have the same form. */
static void users_of_keys(struct joining *k)
{
	struct ap_mark mark = ap_arena_mark(k->ctx->scratch);
	struct ap_map *keys = ap_map_create(k->ctx->scratch);
	ap_id *first = AP_NEW_N(k->ctx->scratch, ap_id, k->g->nnode);

	for (ap_id i = 0; i < k->g->nnode; i++) {
		const char *name = may_be_tied(k->g, i) ? ap_task_tie(k->ctx, k->g, i) : NULL;
		struct ap_joint j;
		bool fresh;
		ap_id id;

		if (!name)
			continue;
		id = ap_map_put_str(keys, name, &fresh);
		if (fresh) {
			first[id] = i;
			continue;
		}
		memset(&j, 0, sizeof j);
		j.u = first[id];
		j.v = i;
		j.type = AP_BOND_STRATEGY;
		k->fn(k->user, &j);
	}
	ap_arena_release(k->ctx->scratch, mark);
}

/* The first operator of a number with each further one. */
static void same_counts(struct joining *k)
{
	struct ap_mark mark = ap_arena_mark(k->ctx->scratch);
	ap_id *first = AP_NEW_N(k->ctx->scratch, ap_id, k->g->nnode + 1);

	for (ap_id i = 0; i < k->g->nnode; i++) {
		uint32_t same = k->g->node[i].same;
		struct ap_joint j;

		if (!same)
			continue;
		if (!first[same]) {
			first[same] = i + 1;
			continue;
		}
		memset(&j, 0, sizeof j);
		j.u = first[same] - 1;
		j.v = i;
		j.type = AP_BOND_SAME;
		k->fn(k->user, &j);
	}
	ap_arena_release(k->ctx->scratch, mark);
}

void ap_joints_each(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_task *task,
	const struct ap_step *step, ap_joint_fn *fn, void *user)
{
	struct joining k = {.ctx = ctx, .g = g, .task = task, .step = step, .fn = fn, .user = user};

	for (ap_id v = 0; v < g->nnode; v++) {
		const struct ap_node *n = &k.g->node[v];

		for (uint32_t i = 0; i < n->bound.nin; i++) {
			const struct ap_tensor *t = &k.g->tensor[n->in[i]];
			struct ap_joint j;

			if (t->kind != AP_TENSOR_ACT)
				continue;
			memset(&j, 0, sizeof j);
			j.u = t->producer;
			j.v = v;
			j.type = AP_BOND_FLOW;
			j.slot_u = t->result;
			j.slot_v = i;
			ap_flow_make(k.g, k.task, v, i, k.step, &j.flow);
			k.fn(k.user, &j);
			follow(&k, &j);
		}
	}
	for (ap_id t = 0; t < g->ntensor; t++)
		if (g->tensor[t].kind == AP_TENSOR_PARAM)
			users_of(&k, &g->tensor[t]);
	users_of_keys(&k);
	same_counts(&k);
}
