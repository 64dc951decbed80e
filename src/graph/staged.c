/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/staged.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "graph/index.h"
#include "rule/bind.h"

/* A tensor used in another part: received or, if constant, copied. */
struct copy {
	ap_id of; /* tensor in the old graph */
	int32_t home, part; /* parts: source, user */
	uint32_t before; /* previous copy of the tensor, or AP_NONE */
	uint32_t leaves_next; /* next copy with the same source part, or AP_NONE */
	ap_id send, receive; /* nodes; AP_NONE for a constant */
	ap_id id; /* tensor that users read */
};

struct staging {
	struct ap_ctx *ctx;
	const struct ap_graph *old;
	const struct ap_spot *spot; /* [old->nnode] */
	struct ap_graph *g;
	struct ap_tensor *tensor;
	struct ap_node *node;
	uint32_t npart;
	struct ap_spot *at; /* [npart] */
	ap_id *order; /* old nodes by part */
	uint32_t *first; /* [npart + 1] in order */
	int32_t *home; /* [old->ntensor] its part; -1: unknown */
	uint32_t *last; /* [old->ntensor] last copy, or AP_NONE */
	AP_VEC(struct copy) copies; /* by ascending part */
	ap_id *tensor_id, *node_id; /* new ids of old ones */
	struct ap_map *taken; /* names in the graph that look like ours */
};

static void order_parts(struct staging *s)
{
	const struct ap_graph *g = s->old;
	uint32_t *next;

	for (ap_id i = 0; i < g->nnode; i++)
		if ((uint32_t)s->spot[i].part >= s->npart)
			s->npart = (uint32_t)s->spot[i].part + 1;
	s->at = AP_NEW_N(s->ctx->scratch, struct ap_spot, s->npart);
	s->first = AP_NEW_N(s->ctx->scratch, uint32_t, s->npart + 1);
	s->order = AP_NEW_N(s->ctx->scratch, ap_id, g->nnode);
	next = AP_NEW_N(s->ctx->scratch, uint32_t, s->npart + 1);
	for (ap_id i = 0; i < g->nnode; i++) {
		s->at[s->spot[i].part] = s->spot[i];
		s->first[s->spot[i].part + 1]++;
	}
	for (uint32_t p = 0; p < s->npart; p++)
		next[p + 1] = s->first[p + 1] += s->first[p];
	for (ap_id i = 0; i < g->nnode; i++)
		s->order[next[s->spot[i].part]++] = i;
}

/* Does a node of this part need a copy? Intermediate results need one per part, tensors in memory
 * one per stage. */
static bool is_away(const struct staging *s, ap_id tensor, int32_t part)
{
	int32_t home = s->home[tensor];

	switch (s->old->tensor[tensor].kind) {
	case AP_TENSOR_ACT:
		return part != home;
	case AP_TENSOR_PARAM:
	case AP_TENSOR_CONST:
		return s->at[part].stage != s->at[home].stage;
	case AP_TENSOR_INPUT:
		break;
	}
	return false;
}

static struct copy *find_copy(const struct staging *s, ap_id tensor, int32_t part)
{
	bool act = s->old->tensor[tensor].kind == AP_TENSOR_ACT;
	uint32_t c = s->last[tensor];

	while (c != AP_NONE && (act ? s->copies.v[c].part != part
			: s->at[s->copies.v[c].part].stage != s->at[part].stage))
		c = s->copies.v[c].before;
	return c == AP_NONE ? NULL : &s->copies.v[c];
}

static void find_copies(struct staging *s)
{
	const struct ap_graph *g = s->old;

	s->home = AP_NEW_N(s->ctx->scratch, int32_t, g->ntensor);
	s->last = AP_NEW_N(s->ctx->scratch, uint32_t, g->ntensor);
	for (ap_id t = 0; t < g->ntensor; t++) {
		s->last[t] = AP_NONE;
		s->home[t] = g->tensor[t].producer == AP_NONE ? -1
			: s->spot[g->tensor[t].producer].part;
	}
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[s->order[i]];
		int32_t part = s->spot[s->order[i]].part;

		for (uint16_t k = 0; k < n->bound.nin; k++) {
			if (s->home[n->in[k]] < 0)
				s->home[n->in[k]] = part;
			if (is_away(s, n->in[k], part) && !find_copy(s, n->in[k], part)) {
				ap_id tensor = n->in[k];
				struct copy c = {.of = tensor, .home = s->home[tensor], .part = part,
					.before = s->last[tensor], .send = AP_NONE, .receive = AP_NONE,
					.id = AP_NONE};

				assert(c.home < part);
				s->last[tensor] = (uint32_t)s->copies.n;
				AP_PUSH(s->ctx->scratch, s->copies, c);
			}
		}
	}
}

static bool is_sent(const struct staging *s, const struct copy *c)
{
	return s->old->tensor[c->of].kind != AP_TENSOR_CONST;
}

static ap_id place_tensor(struct staging *s, const struct ap_tensor *t)
{
	s->tensor[s->g->ntensor] = *t;
	s->tensor[s->g->ntensor].nuse = 0;
	return s->g->ntensor++;
}

/* Places tensors that no operator makes; results follow node by node. */
static void place_sources(struct staging *s)
{
	for (ap_id t = 0; t < s->old->ntensor; t++)
		if (s->old->tensor[t].kind != AP_TENSOR_ACT)
			s->tensor_id[t] = place_tensor(s, &s->old->tensor[t]);
	for (size_t c = 0; c < s->copies.n; c++)
		if (s->copies.v[c].receive == AP_NONE)
			s->copies.v[c].id = place_tensor(s, &s->old->tensor[s->copies.v[c].of]);
}

static void note_taken(struct staging *s, const char *name)
{
	if (strncmp(name, "Send/", 5) == 0 || strncmp(name, "Receive/", 8) == 0)
		ap_map_put_str(s->taken, name, NULL);
}

static const char *link_name(struct staging *s, const struct copy *c, const char *type)
{
	const struct ap_spot *a = &s->at[c->home], *b = &s->at[c->part];
	const char *name = ap_arena_printf(s->ctx->arena, "%s/%s/%" PRId32 ".%" PRId32 "->%" PRId32 ".%"
		PRId32, type, s->old->tensor[c->of].name, a->stage, a->segment, b->stage, b->segment);

	while (ap_map_get_str(s->taken, name) != AP_NONE)
		name = ap_arena_printf(s->ctx->arena, "%s'", name);
	return name;
}

/* Places a Send or Receive with node id, of tensor `from`; returns its result. */
static ap_id place_link(struct staging *s, const struct copy *c, ap_id id, const char *type, ap_id from)
{
	const struct ap_tensor *t = &s->old->tensor[c->of];
	int32_t own = id == c->send ? c->home : c->part, other = own == c->home ? c->part : c->home;
	ap_id *slot = AP_NEW_N(s->ctx->arena, ap_id, 2);
	struct ap_node *n = &s->node[id];
	struct ap_tensor result = *t;
	struct ap_bind_in in;
	struct ap_bind_fault fault;
	enum ap_status st;

	*n = (struct ap_node){.name = link_name(s, c, type), .type = type, .cell = "",
		.param = AP_NONE, .peer = s->at[other].stage, .stage = s->at[own].stage,
		.segment = s->at[own].segment, .recompute = -1,
		.in_cell = AP_NONE, .recompute_cell = AP_NONE, .fusion = -1, .measured_share = 1,
		.once = t->kind == AP_TENSOR_PARAM};
	in = (struct ap_bind_in){.type = n->type, .attrs = &n->attrs, .nin = 1, .nout = 1, .in = &t->shape};
	st = ap_rule_bind(s->ctx, &in, &n->bound, &fault);
	assert(st == AP_OK);
	(void)st;
	if (t->kind == AP_TENSOR_PARAM) /* it is repeated over the batch, which users cut outermost */
		n->bound.left = UINT32_MAX;
	for (int d = 0; d < t->shape.rank; d++)
		if (t->batch >> d & 1 && n->bound.in[0].dim[d].n > 0)
			n->bound.factor[n->bound.in[0].dim[d].factor[0]].flags |= AP_FACTOR_BATCH;
	result.name = n->name;
	result.kind = AP_TENSOR_ACT;
	result.trainable = result.layerwise_parallel = result.parallel_optimizer = false;
	result.comm_fusion = -1;
	result.producer = id;
	result.result = 0;
	slot[0] = from;
	slot[1] = place_tensor(s, &result);
	n->in = slot;
	n->out = slot + 1;
	return slot[1];
}

static void place_node(struct staging *s, ap_id i)
{
	const struct ap_node *old = &s->old->node[i];
	struct ap_node *n = &s->node[s->node_id[i]];
	ap_id *in = AP_NEW_N(s->ctx->arena, ap_id, old->bound.nin);
	ap_id *out = AP_NEW_N(s->ctx->arena, ap_id, old->bound.nout);

	*n = *old;
	n->stage = s->spot[i].stage;
	n->segment = s->spot[i].segment;
	n->in = in;
	n->out = out;
	n->param = old->param == AP_NONE ? AP_NONE : s->tensor_id[old->param];
	for (uint16_t k = 0; k < old->bound.nin; k++)
		in[k] = is_away(s, old->in[k], s->spot[i].part) ?
			find_copy(s, old->in[k], s->spot[i].part)->id : s->tensor_id[old->in[k]];
	for (uint16_t k = 0; k < old->bound.nout; k++) {
		out[k] = s->tensor_id[old->out[k]] = place_tensor(s, &s->old->tensor[old->out[k]]);
		s->tensor[out[k]].producer = s->node_id[i];
	}
}

/* Places nodes in id order, so that results are numbered like producers. */
static void place_nodes(struct staging *s)
{
	struct copy **of = AP_NEW_N(s->ctx->scratch, struct copy *, s->g->nnode);
	ap_id *old = AP_NEW_N(s->ctx->scratch, ap_id, s->g->nnode);
	ap_id *sent = AP_NEW_N(s->ctx->scratch, ap_id, s->copies.n);

	for (ap_id i = 0; i < s->old->nnode; i++)
		old[s->node_id[i]] = i;
	for (size_t c = 0; c < s->copies.n; c++)
		if (s->copies.v[c].send != AP_NONE)
			of[s->copies.v[c].send] = of[s->copies.v[c].receive] = &s->copies.v[c];
	for (ap_id id = 0; id < s->g->nnode; id++) {
		struct copy *c = of[id];

		if (!c)
			place_node(s, old[id]);
		else if (c->send == id)
			sent[c - s->copies.v] = place_link(s, c, id, "Send", s->tensor_id[c->of]);
		else
			c->id = place_link(s, c, id, "Receive", sent[c - s->copies.v]);
	}
}

static const ap_id *renumber(const struct staging *s, const ap_id *old, uint32_t n)
{
	ap_id *v = AP_NEW_N(s->ctx->arena, ap_id, n);

	for (uint32_t i = 0; i < n; i++)
		v[i] = s->tensor_id[old[i]];
	return v;
}

void ap_graph_staged(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_spot *spot,
	const struct ap_graph **out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct staging s = {.ctx = ctx, .old = g, .spot = spot};
	uint32_t *leaving; /* first copy with this source part, or AP_NONE */
	bool trained = false;
	size_t c = 0;
	ap_id id = 0;

	s.g = AP_NEW(ctx->arena, struct ap_graph);
	*s.g = *g;
	s.g->ntensor = 0;
	s.g->layers = NULL;
	s.tensor_id = AP_NEW_N(ctx->scratch, ap_id, g->ntensor);
	s.node_id = AP_NEW_N(ctx->scratch, ap_id, g->nnode);
	order_parts(&s);
	find_copies(&s);
	s.tensor = AP_NEW_N(ctx->arena, struct ap_tensor, g->ntensor + 2 * s.copies.n);
	s.node = AP_NEW_N(ctx->arena, struct ap_node, g->nnode + 2 * s.copies.n);
	/* receives, the part's own operators, sends */
	leaving = AP_NEW_N(ctx->scratch, uint32_t, s.npart);
	memset(leaving, 0xff, s.npart * sizeof *leaving);
	for (uint32_t i = (uint32_t)s.copies.n; i-- > 0;) {
		struct copy *copy = &s.copies.v[i];

		if (!is_sent(&s, copy))
			continue;
		copy->leaves_next = leaving[copy->home];
		leaving[copy->home] = i;
	}
	for (uint32_t p = 0; p < s.npart; p++) {
		for (; c < s.copies.n && s.copies.v[c].part == (int32_t)p; c++)
			if (is_sent(&s, &s.copies.v[c]))
				s.copies.v[c].receive = id++;
		for (uint32_t i = s.first[p]; i < s.first[p + 1]; i++)
			s.node_id[s.order[i]] = id++;
		for (uint32_t i = leaving[p]; i != AP_NONE; i = s.copies.v[i].leaves_next)
			s.copies.v[i].send = id++;
	}
	s.g->nnode = id;
	place_sources(&s);
	s.taken = ap_map_create(s.ctx->scratch);
	for (ap_id t = 0; t < s.old->ntensor; t++)
		note_taken(&s, s.old->tensor[t].name);
	for (ap_id i = 0; i < s.old->nnode; i++)
		note_taken(&s, s.old->node[i].name);
	place_nodes(&s);
	s.g->tensor = s.tensor;
	s.g->node = s.node;
	s.g->input = renumber(&s, g->input, g->ninput);
	s.g->output = renumber(&s, g->output, g->noutput);
	if (g->loss != AP_NONE)
		s.g->loss = s.tensor_id[g->loss];
	for (ap_id t = 0; t < g->ntensor; t++)
		trained |= g->tensor[t].needs_grad;
	ap_graph_index(ctx, s.g, s.tensor, s.node, !trained);
	ap_arena_release(ctx->scratch, mark);
	*out = s.g;
}
