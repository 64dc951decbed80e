/* SPDX-License-Identifier: Apache-2.0 */
#include "hybrid/hybrid.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "cost/conflict.h"
#include "graph/sequence_first.h"
#include "rule/attend.h"
#include "rule/deal.h"
#include "rule/op.h"
#include "shard/layout.h"
#include "shard/legal.h"
#include "shard/refusal.h"
#include "shard/space.h"

#define CLOSED (AP_FACTOR_FROZEN | AP_FACTOR_BARRED) /* of a factor: it is not cut */

enum hybrid_role {
	HYBRID_OTHER,
	HYBRID_PRODUCT, /* of activations with a parameter or a WEIGHT */
	HYBRID_LOOKUP /* in a table of words; before find_words(): in any table */
};

enum hybrid_origin {
	HYBRID_CONSTANT, /* computed from constants alone */
	HYBRID_WEIGHT, /* from parameters and constants */
	HYBRID_FREE, /* from graph inputs as well: any cut is available */
	HYBRID_MAIN /* depends on a HYBRID_PRODUCT or HYBRID_LOOKUP */
};

enum hybrid_end { /* what becomes of a cut of a dimension */
	HYBRID_GATHERED, /* an operator needs it whole */
	HYBRID_SUMMED, /* reduced, as in the loss */
	HYBRID_PAIRED /* summed by a product with a parameter */
};

struct hybrid_sink {
	enum hybrid_end end;
	int32_t most; /* parts, of tp, in which the cut gets there */
	ap_id node; /* what limits them; AP_NONE: nothing does */
	uint16_t operand;
	uint8_t dim;
};

struct hybrid_tensor {
	enum hybrid_origin origin;
	ap_id table; /* the only parameter that a WEIGHT is made of; AP_NONE: none */
	bool product_after;
	bool used; /* sink[] is set */
	struct hybrid_sink sink[AP_MAX_RANK];
	bool scattered; /* dealt to the tp ranks on its way to the next stage: flow is what it was before */
	struct ap_layout flow; /* the layout that users should take, in ranges */
	const struct hybrid_sink *lost; /* why a pair's columns are not cut by tp; or NULL */
};

struct hybrid_node {
	enum hybrid_role role;
	uint16_t act, weight; /* operands of a PRODUCT or LOOKUP (act: the indices) */
	bool cut_table; /* of LOOKUP: its table is cut by entries */
	uint32_t rows, columns, summed, experts; /* masks of factors, see note_factors() */
	struct ap_cut_dim *want; /* [AP_MAX_FACTOR] ranges; NULL: not decided */
	int32_t *count; /* [AP_MAX_FACTOR] */
};

struct hybrid {
	struct ap_ctx *ctx;
	const struct ap_graph *g;
	int64_t ndev;
	const struct ap_step *step;
	const struct ap_hybrid *h;
	int32_t tp, cp, dp, ep;
	int32_t expert_stride; /* of the ep ranks among which experts are dealt */
	struct hybrid_tensor *tensor; /* [g->ntensor], in scratch like node */
	struct hybrid_node *node; /* [g->nnode] */
	bool *whole; /* [g->ntensor] tables that are not cut */
	bool rounds; /* keys and values go round */
	int64_t interleaved; /* samples a device whose tokens are dealt along the sequence; 0: as they come */
	bool sequence_cut, experts_cut; /* some operator is cut by cp, by ep */
	const char *why; /* NULL while all goes well */
};

static const struct ap_cut_dim uncut = {1, 0};

static void leave_uncut(struct ap_cut_dim want[AP_MAX_FACTOR])
{
	for (int f = 0; f < AP_MAX_FACTOR; f++)
		want[f] = uncut;
}

/* Does the range cut over ranks of stride low (inclusive) to high? */
static bool meets(const struct ap_cut_dim *range, int32_t low, int32_t high)
{
	return range->cut > 1 && range->stride < high && (int64_t)range->stride * range->cut > low;
}

static bool meets_any(const struct ap_cut_dim *want, uint32_t mask, int32_t low, int32_t high)
{
	for (int f = 0; f < AP_MAX_FACTOR; f++)
		if (mask >> f & 1 && meets(&want[f], low, high))
			return true;
	return false;
}

/* Removes the ranks of stride below high from a range that meets low to high. */
static void strip_ranks(struct ap_cut_dim *range, int32_t low, int32_t high)
{
	int64_t end = (int64_t)range->stride * range->cut;

	if (!meets(range, low, high))
		return;
	*range = end > high ? (struct ap_cut_dim){(int32_t)(end / high), high} : uncut;
}

static void take_dim(const struct ap_step *step, const struct ap_bound *b, const struct ap_dim *dim,
	struct ap_cut_dim range, struct ap_cut_dim *want)
{
	for (int k = 0; k < dim->n && range.cut > 1; k++) {
		int f = dim->factor[k];
		int64_t extent = ap_factor_extent(b, f, step);
		int32_t cut = (int32_t)ap_gcd(range.cut, extent);

		if (b->factor[f].flags & CLOSED)
			return;
		range.cut /= cut;
		if (cut > want[f].cut)
			want[f] = (struct ap_cut_dim){cut, range.stride * range.cut};
		if (cut != extent)
			return;
	}
}

/* Adds the ranges of a tensor's layout to the wants of its factors, outer factors first; of two
 * cuts of a factor the greater one stays. */
static void take_cuts(const struct ap_step *step, const struct ap_bound *b, const struct ap_operand *o,
	const struct ap_layout *l, struct ap_cut_dim *want)
{
	for (int d = 0; d < o->rank; d++) {
		struct ap_dim dim = o->dim[d];

		if (o == b->out && d == 0 && (b->dealt_rows > 0 || b->deal_asked))
			dim.n--; /* the executor deals it, or might: no layout asked for it */
		take_dim(step, b, &dim, l->dim[d], want);
	}
}

/* The layout, in ranges, that wants give an operand or result. */
static void range_layout(const struct ap_operand *o, const struct ap_cut_dim *want, struct ap_layout *out)
{
	*out = (struct ap_layout){.rank = o->rank};
	for (int d = 0; d < o->rank; d++) {
		const struct ap_dim *dim = &o->dim[d];
		struct ap_cut_dim all = uncut;

		for (int k = 0; k < dim->n; k++) {
			struct ap_cut_dim r = want[dim->factor[k]];

			if (r.cut == 1)
				continue;
			if (all.cut > 1 && all.stride != r.stride * r.cut)
				break;
			all.cut *= r.cut;
			all.stride = r.stride;
		}
		out->dim[d] = all;
	}
}

/* The first factor of the batch in dev order; -1 if none, or if it is frozen. */
static int batch_factor(const struct ap_bound *b)
{
	for (int i = 0; i < b->ndev; i++)
		if (b->factor[b->dev[i]].flags & AP_FACTOR_BATCH)
			return b->factor[b->dev[i]].flags & CLOSED ? -1 : b->dev[i];
	return -1;
}

static void cut_batch(const struct hybrid *s, const struct ap_bound *b, struct ap_cut_dim *want)
{
	int32_t low = s->tp * s->cp;
	int f = batch_factor(b);

	for (int i = 0; i < b->nfactor; i++)
		if (s->ep == 1 && !(b->factor[i].flags & AP_FACTOR_BATCH) &&
			meets(&want[i], low, low * s->dp))
			want[i] = uncut;
		else if (meets(&want[i], low, low * s->dp))
			return;
	if (f >= 0 && s->dp > 1 && ap_factor_extent(b, f, s->step) % s->dp == 0)
		want[f] = (struct ap_cut_dim){s->dp, low};
}

static void claim(struct ap_cut_dim *want, int f, uint32_t *taken)
{
	for (int o = 0; o < AP_MAX_FACTOR && want[f].cut > 1; o++)
		if (*taken >> o & 1 &&
			meets(&want[o], want[f].stride, want[f].stride * want[f].cut))
			want[f] = uncut;
	*taken |= UINT32_C(1) << f;
}

/* Cuts the batch by dp if no factor has these ranks; only experts may have them instead. If factors
 * want the same ranks, the first in dev order gets them, factors of the batch before others. */
static void settle(const struct hybrid *s, const struct ap_bound *b, struct ap_cut_dim *want)
{
	uint32_t taken = 0;

	cut_batch(s, b, want);
	for (int i = 0; i < b->ndev; i++)
		if (b->factor[b->dev[i]].flags & AP_FACTOR_BATCH)
			claim(want, b->dev[i], &taken);
	for (int i = 0; i < b->ndev; i++)
		if (!(taken >> b->dev[i] & 1))
			claim(want, b->dev[i], &taken);
}

/* Drops cuts, the innermost first and the batch last, until the rest is legal. */
static void make_legal(const struct hybrid *s, const struct ap_bound *b, struct ap_cut_dim *want,
	int32_t *count)
{
	for (int pass = 0; pass < 2; pass++)
		for (int i = b->ndev; i-- > 0;) {
			int f = b->dev[i];

			if (count[f] == 1 || (pass == 0 && b->factor[f].flags & AP_FACTOR_BATCH))
				continue;
			want[f] = uncut;
			count[f] = 1;
			if (ap_space_legal(s->ctx, b, count, s->ndev, s->step, NULL))
				return;
		}
}

/* Makes wants of a node its counts, less what is not legal; *dropped (may be NULL): the reason. */
static void apply_wants(struct hybrid *s, ap_id node, const struct ap_cut_dim *want, const char **dropped)
{
	const struct ap_bound *b = &s->g->node[node].bound;
	struct hybrid_node *n = &s->node[node];

	n->want = ap_arena_memdup(s->ctx->scratch, want, AP_MAX_FACTOR * sizeof *want);
	n->count = AP_NEW_N(s->ctx->arena, int32_t, AP_MAX_FACTOR);
	for (int f = 0; f < AP_MAX_FACTOR; f++)
		n->count[f] = f < b->nfactor ? want[f].cut : 1;
	if (dropped)
		*dropped = NULL;
	if (ap_space_is_imposed(b)) { /* its users still take the wants */
		ap_space_start(b, s->ndev, n->count);
		return;
	}
	if (!ap_space_legal(s->ctx, b, n->count, s->ndev, s->step, dropped))
		make_legal(s, b, n->want, n->count);
}

/* The first operand with an origin from low to high; -1 if none. */
static int find_operand(const struct hybrid_tensor *tensor, const struct ap_node *n,
	enum hybrid_origin low, enum hybrid_origin high)
{
	for (int i = 0; i < n->bound.nin; i++)
		if (tensor[n->in[i]].origin >= low && tensor[n->in[i]].origin <= high)
			return i;
	return -1;
}

static uint32_t unfrozen(const struct ap_bound *b)
{
	uint32_t mask = 0;

	for (int f = 0; f < b->nfactor; f++)
		if (!(b->factor[f].flags & CLOSED))
			mask |= UINT32_C(1) << f;
	return mask;
}

static void note_factors(const struct ap_bound *b, struct hybrid_node *out)
{
	uint32_t act = b->in[out->act].factors & unfrozen(b);
	uint32_t weight = b->in[out->weight].factors & unfrozen(b), result = b->out[0].factors;

	out->rows = act & result & ~weight;
	out->columns = weight & result & ~act;
	out->summed = act & weight & ~result;
	out->experts = act & weight & result;
}

static bool is_product(const struct hybrid *s, const struct ap_node *n, struct hybrid_node *out)
{
	int act = find_operand(s->tensor, n, HYBRID_FREE, HYBRID_MAIN);
	int weight = find_operand(s->tensor, n, HYBRID_WEIGHT, HYBRID_WEIGHT);

	if (n->bound.row->unit != AP_OP_CUBE || act < 0 || weight < 0)
		return false;
	out->act = (uint16_t)act;
	out->weight = (uint16_t)weight;
	return true;
}

/* The factor of a table's entries; -1 if none may be cut. */
static int entries_factor(const struct ap_bound *b)
{
	for (int f = 0; f < b->nfactor; f++)
		if (b->factor[f].flags & AP_FACTOR_LOOKUP && !(b->factor[f].flags & CLOSED))
			return f;
	return -1;
}

/* Is a parameter looked up, whatever it is a table of? */
static bool is_lookup(const struct hybrid *s, const struct ap_node *n, struct hybrid_node *out)
{
	const struct ap_bound *b = &n->bound;
	int f = entries_factor(b), table = -1, index = -1;

	for (int i = 0; f >= 0 && i < b->nin; i++)
		if (b->in[i].factors >> f & 1)
			table = table < 0 ? i : table;
		else
			index = index < 0 ? i : index;
	if (table < 0 || index < 0 || s->tensor[n->in[table]].origin != HYBRID_WEIGHT)
		return false;
	out->act = (uint16_t)index;
	out->weight = (uint16_t)table;
	return true;
}

static void classify(const struct hybrid *s, const struct ap_node *n, struct hybrid_node *out)
{
	if (is_product(s, n, out))
		out->role = HYBRID_PRODUCT;
	else if (is_lookup(s, n, out))
		out->role = HYBRID_LOOKUP;
	else
		return;
	note_factors(&n->bound, out);
}

static enum hybrid_origin result_origin(const struct hybrid *s, const struct ap_node *n)
{
	enum hybrid_origin o = HYBRID_CONSTANT;

	for (int i = 0; i < n->bound.nin; i++)
		o = s->tensor[n->in[i]].origin > o ? s->tensor[n->in[i]].origin : o;
	return o;
}

static void find_roles(struct hybrid *s)
{
	for (ap_id t = 0; t < s->g->ntensor; t++) {
		s->tensor[t].origin = s->g->tensor[t].kind == AP_TENSOR_PARAM ? HYBRID_WEIGHT :
			s->g->tensor[t].kind == AP_TENSOR_CONST ? HYBRID_CONSTANT : HYBRID_FREE;
		s->tensor[t].table = s->g->tensor[t].kind == AP_TENSOR_PARAM ? t : AP_NONE;
	}
	for (ap_id i = 0; i < s->g->nnode; i++) {
		const struct ap_node *n = &s->g->node[i];
		enum hybrid_origin o = result_origin(s, n);

		classify(s, n, &s->node[i]);
		for (int k = 0; k < n->bound.nout; k++) {
			s->tensor[n->out[k]].origin = o;
			s->tensor[n->out[k]].table = o == HYBRID_WEIGHT && n->bound.nin == 1
				? s->tensor[n->in[0]].table : AP_NONE;
		}
	}
}

/* Does a product give a number for each entry of a looked-up table: with the table itself (tied), or with a
 * weight of as many columns that nothing but the loss comes behind? */
static bool has_head(const struct hybrid *s, ap_id node, bool tied)
{
	const struct ap_node *n = &s->g->node[node];
	const struct hybrid_node *lookup = &s->node[node];
	ap_id table = s->tensor[n->in[lookup->weight]].table;
	int64_t entries = n->bound.factor[entries_factor(&n->bound)].size;

	for (ap_id i = 0; i < s->g->nnode; i++) {
		const struct ap_node *m = &s->g->node[i];
		const struct hybrid_node *h = &s->node[i];

		if (h->role != HYBRID_PRODUCT)
			continue;
		if (tied && table != AP_NONE && s->tensor[m->in[h->weight]].table == table)
			return true;
		for (int f = 0; f < m->bound.nfactor && !tied && !s->tensor[m->out[0]].product_after; f++)
			if (h->columns >> f & 1 && m->bound.factor[f].size == entries)
				return true;
	}
	return false;
}

/* In a sample, where the indices are of the batch. */
static int64_t count_lookups(const struct hybrid *s, ap_id node)
{
	const struct ap_node *n = &s->g->node[node];
	int act = s->node[node].act;
	int64_t samples = s->g->tensor[n->in[act]].batch ? s->g->batch : 1, lookups;

	return ap_product(n->bound.in[act].size, n->bound.in[act].rank, &lookups)
		? lookups / samples : INT64_MAX;
}

/*
 * Leaves the role of a lookup to tables of words; tables of positions or types stay whole. Words are
 * what the network predicts; where it predicts nothing that is looked up side by side, a table with
 * more entries than a sample looks up. The length of a sample alone does not tell: it may exceed the
 * table of words, or fall short of that of positions.
 */
static void find_words(struct hybrid *s)
{
	bool *head = AP_NEW_N(s->ctx->scratch, bool, s->g->nnode), tied = false;

	for (ap_id i = 0; i < s->g->nnode; i++)
		tied |= head[i] = s->node[i].role == HYBRID_LOOKUP && has_head(s, i, true);
	for (ap_id i = 0; i < s->g->nnode && !tied; i++)
		head[i] = s->node[i].role == HYBRID_LOOKUP && has_head(s, i, false);
	for (ap_id i = 0; i < s->g->nnode; i++) {
		const struct ap_node *n = &s->g->node[i];
		bool beside = false; /* one that has a head */
		int64_t entries, lookups;

		if (s->node[i].role != HYBRID_LOOKUP || head[i])
			continue;
		lookups = count_lookups(s, i);
		for (ap_id k = 0; k < s->g->nnode && !beside; k++)
			beside = head[k] && count_lookups(s, k) == lookups;
		entries = n->bound.factor[entries_factor(&n->bound)].size;
		if (beside || entries <= lookups)
			s->node[i] = (struct hybrid_node){.role = HYBRID_OTHER};
	}
}

/* The parts that a product's columns are cut into, 1 if they stay whole; *factor and *sink are
 * those of the result's first dimension of columns (*sink NULL if none). */
static int32_t columns_of(const struct hybrid *s, ap_id node, int *factor, const struct hybrid_sink **sink)
{
	const struct ap_node *n = &s->g->node[node];
	const struct ap_operand *o = &n->bound.out[0];
	const struct hybrid_tensor *t = &s->tensor[n->out[0]];
	bool head = !t->product_after && s->step->training;

	*sink = NULL;
	for (int d = 0; d < o->rank; d++) {
		int f = o->dim[d].n > 0 ? o->dim[d].factor[0] : -1;
		int64_t extent;

		if (f < 0 || !(s->node[node].columns >> f & 1))
			continue;
		*factor = f;
		*sink = &t->sink[d];
		extent = ap_factor_extent(&n->bound, f, s->step);
		if (t->sink[d].end == HYBRID_PAIRED)
			return (int32_t)ap_gcd(t->sink[d].most, extent);
		if (t->sink[d].end == HYBRID_SUMMED || head)
			return extent % s->tp == 0 &&
				(head || t->sink[d].most == s->tp) ? s->tp : 1;
		return 1;
	}
	return 1;
}

/* Could the columns of every product with this table be cut like its entries? */
static bool users_follow(const struct hybrid *s, ap_id table)
{
	for (ap_id i = 0; i < s->g->nnode; i++) {
		const struct hybrid_node *n = &s->node[i];
		const struct hybrid_sink *sink;
		int f;

		if (n->role == HYBRID_PRODUCT &&
			s->tensor[s->g->node[i].in[n->weight]].table == table &&
			columns_of(s, i, &f, &sink) < s->tp)
			return false;
	}
	return true;
}

static void refuse_table(struct hybrid *s, const struct ap_node *n, int64_t entries)
{
	s->why = ap_arena_printf(s->ctx->arena, "operator \"%s\": the table of words has %" PRId64
		" entries, which tp=%" PRId32 " does not divide; %s, or vocab_emb_dp=1, which leaves it "
		"whole", n->name, entries, s->tp, ap_cut_allowed(s->ctx, entries, s->ndev));
}

static void choose_tables(struct hybrid *s)
{
	for (ap_id i = 0; i < s->g->nnode && !s->why; i++)
		if (s->node[i].role == HYBRID_LOOKUP) {
			const struct ap_node *n = &s->g->node[i];
			ap_id table = s->tensor[n->in[s->node[i].weight]].table;
			int64_t entries = n->bound.factor[entries_factor(&n->bound)].size;
			bool cut = s->tp > 1 && s->h->vocab != AP_VOCAB_WHOLE && entries % s->tp == 0 &&
				(table == AP_NONE || users_follow(s, table));

			if (s->h->vocab == AP_VOCAB_CUT && entries % s->tp)
				refuse_table(s, n, entries);
			s->node[i].cut_table = cut;
			if (table != AP_NONE)
				s->whole[table] = !cut;
		}
	for (ap_id i = 0; i < s->g->nnode; i++) {
		const struct ap_node *n = &s->g->node[i];

		for (int k = 0; k < n->bound.nout; k++)
			if (s->node[i].role != HYBRID_OTHER ||
				find_operand(s->tensor, n, HYBRID_MAIN, HYBRID_MAIN) >= 0)
				s->tensor[n->out[k]].origin = HYBRID_MAIN;
	}
}

static const struct hybrid_sink nowhere = {HYBRID_GATHERED, 1, AP_NONE, 0, 0};

/* The best sink of the results' dimensions that factor f leads. */
static struct hybrid_sink after(const struct hybrid *s, const struct ap_node *n, int f)
{
	struct hybrid_sink best = nowhere;

	for (int r = 0; r < n->bound.nout; r++) {
		const struct ap_operand *o = &n->bound.out[r];

		for (int d = 0; d < o->rank; d++)
			if (o->dim[d].n > 0 && o->dim[d].factor[0] == f &&
				s->tensor[n->out[r]].sink[d].end > best.end)
				best = s->tensor[n->out[r]].sink[d];
	}
	return best;
}

static bool in_results(const struct ap_bound *b, int f)
{
	for (int r = 0; r < b->nout; r++)
		if (b->out[r].factors >> f & 1)
			return true;
	return false;
}

static enum hybrid_end reduced(const struct hybrid_node *h, const struct ap_bound *b, int f)
{
	if (h->role == HYBRID_PRODUCT)
		return h->summed >> f & 1 ? HYBRID_PAIRED : HYBRID_GATHERED;
	return b->row->unit == AP_OP_CUBE ? HYBRID_GATHERED : HYBRID_SUMMED;
}

/* Is the result's dimension a piece of the operand's: shorter, but longer than one? */
static bool is_piece(const struct ap_bound *b, int operand, int result, int dim)
{
	const struct ap_operand *in = &b->in[operand], *out = &b->out[result];

	return in->rank == out->rank && dim < in->rank && out->size[dim] > 1 &&
		out->size[dim] < in->size[dim];
}

/* The sink of a dimension that is split, as query, key and value of one product are: it is gathered
 * first, and each piece may be cut again. */
static struct hybrid_sink of_pieces(const struct hybrid *s, const struct ap_node *n, uint16_t operand,
	uint8_t dim)
{
	struct hybrid_sink best = nowhere;

	for (int r = 0; r < n->bound.nout; r++) {
		const struct hybrid_sink *sink = &s->tensor[n->out[r]].sink[dim];

		if (is_piece(&n->bound, operand, r, dim) && sink->end == HYBRID_PAIRED &&
			sink->most > best.most)
			best = *sink;
	}
	return best;
}

static struct hybrid_sink of_dim(const struct hybrid *s, ap_id node, uint16_t operand, uint8_t dim)
{
	const struct ap_node *n = &s->g->node[node];
	const struct ap_bound *b = &n->bound;
	const struct ap_dim *d = &b->in[operand].dim[dim];
	struct hybrid_sink sink = nowhere;
	int32_t fits;
	int f;

	f = d->n > 0 ? d->factor[0] : -1;
	if (f < 0 || b->factor[f].flags & CLOSED)
		return of_pieces(s, n, operand, dim);
	if (b->factor[f].flags & AP_FACTOR_BATCH)
		return nowhere;
	if (in_results(b, f)) {
		sink = after(s, n, f);
	} else {
		sink.end = reduced(&s->node[node], b, f);
		sink.most = s->tp;
	}
	fits = (int32_t)ap_gcd(sink.most, ap_factor_extent(b, f, s->step));
	if (fits < sink.most) {
		sink.most = fits;
		sink.node = node;
		sink.operand = operand;
		sink.dim = dim;
	}
	return sink;
}

/* Narrows a to the sink that two uses share. */
static void meet(struct hybrid_sink *a, const struct hybrid_sink *b)
{
	enum hybrid_end end = a->end > b->end ? a->end : b->end;

	if (a->end == HYBRID_GATHERED || b->end == HYBRID_GATHERED) {
		*a = nowhere;
		return;
	}
	if (b->most < a->most)
		*a = *b;
	a->end = end;
}

static void use(struct hybrid *s, ap_id node, uint16_t operand)
{
	struct hybrid_tensor *t = &s->tensor[s->g->node[node].in[operand]];
	const struct ap_operand *o = &s->g->node[node].bound.in[operand];

	for (uint8_t d = 0; d < o->rank; d++) {
		struct hybrid_sink sink = of_dim(s, node, operand, d);

		if (t->used)
			meet(&t->sink[d], &sink);
		else
			t->sink[d] = sink;
	}
	t->used = true;
}

static void find_sinks(struct hybrid *s)
{
	/* Without training, results may stay cut. */
	for (uint32_t i = 0; i < s->g->noutput && !s->step->training; i++)
		for (int d = 0; d < AP_MAX_RANK; d++)
			s->tensor[s->g->output[i]].sink[d] =
				(struct hybrid_sink){HYBRID_SUMMED, s->tp, AP_NONE, 0, 0};
	for (ap_id i = s->g->nnode; i-- > 0;) {
		const struct ap_node *n = &s->g->node[i];
		bool after_it = s->node[i].role == HYBRID_PRODUCT;

		for (int r = 0; r < n->bound.nout; r++)
			after_it |= s->tensor[n->out[r]].product_after;
		for (uint16_t k = 0; k < n->bound.nin; k++) {
			s->tensor[n->in[k]].product_after |= after_it;
			if (n->backward || !s->step->training)
				use(s, i, k);
		}
	}
}

static struct ap_cut_dim tensor_range(int32_t tp, int32_t parts)
{
	return (struct ap_cut_dim){parts, tp / parts};
}

static void strip_all(const struct ap_bound *b, struct ap_cut_dim *want, int32_t low, int32_t high)
{
	for (int f = 0; f < b->nfactor; f++)
		strip_ranks(&want[f], low, high);
}

/* May the columns be cut? Not if the parameter is a looked-up table that stays whole. */
static bool table_allows(const struct hybrid *s, ap_id node)
{
	ap_id table = s->tensor[s->g->node[node].in[s->node[node].weight]].table;

	return table == AP_NONE || !s->whole[table];
}

static void refuse_experts(struct hybrid *s, ap_id node, int f)
{
	const struct ap_bound *b = &s->g->node[node].bound;
	const struct ap_operand *weight = &b->in[s->node[node].weight];
	int d = 0;

	while (d + 1 < weight->rank && (weight->dim[d].n == 0 || weight->dim[d].factor[0] != f))
		d++;
	s->why = ap_arena_printf(s->ctx->arena, "operator \"%s\": %s: ep=%" PRId32 " parts; %s",
		s->g->node[node].name, ap_cut_place(s->ctx, b, weight, d, s->step), s->ep,
		ap_cut_allowed(s->ctx, b->factor[f].size, s->ndev));
}

/* Experts take the place of the batch, and where they are whole that of columns, on ep ranks. */
static void cut_experts(struct hybrid *s, ap_id node, struct ap_cut_dim *want)
{
	const struct ap_bound *b = &s->g->node[node].bound;
	int32_t low = s->expert_stride;

	for (int i = 0; i < b->ndev; i++) {
		int f = b->dev[i];

		if (!(s->node[node].experts >> f & 1) || b->factor[f].flags & AP_FACTOR_BATCH)
			continue;
		if (b->factor[f].size % s->ep) {
			refuse_experts(s, node, f);
			return;
		}
		strip_all(b, want, low, low * s->ep);
		want[f] = (struct ap_cut_dim){s->ep, low};
		s->experts_cut = true;
		return;
	}
}

/* The cuts of a product with a parameter whose activations have layout act (NULL: unknown). Side
 * effects: s->why and s->experts_cut only. */
static void cut_product(struct hybrid *s, ap_id node, const struct ap_layout *act, struct ap_cut_dim *want)
{
	const struct hybrid_node *n = &s->node[node];
	const struct ap_bound *b = &s->g->node[node].bound;
	const struct hybrid_sink *sink;
	int32_t parts;
	int f = -1;

	if (act)
		take_cuts(s->step, b, &b->in[n->act], act, want);
	if (s->tp > 1 && !meets_any(want, n->summed, 1, s->tp) && table_allows(s, node)) {
		parts = columns_of(s, node, &f, &sink);
		if (parts > 1) {
			strip_all(b, want, 1, s->tp);
			want[f] = tensor_range(s->tp, parts);
		}
	}
	if (s->ep > 1)
		cut_experts(s, node, want);
	settle(s, b, want);
}

/* Cuts the sequence: the first dimension of the indices that is not the batch. */
static void cut_sequence(struct hybrid *s, ap_id node, struct ap_cut_dim *want)
{
	const struct ap_bound *b = &s->g->node[node].bound;
	const struct ap_operand *index = &b->in[s->node[node].act];

	for (int d = 0; d < index->rank; d++) {
		int f = index->dim[d].n > 0 ? index->dim[d].factor[0] : -1;

		if (f < 0 || b->factor[f].flags & AP_FACTOR_BATCH)
			continue;
		if (b->factor[f].size % s->cp)
			s->why = ap_arena_printf(s->ctx->arena, "operator \"%s\": %s: cp=%" PRId32
				" parts; %s", s->g->node[node].name,
				ap_cut_place(s->ctx, b, index, d, s->step), s->cp,
				ap_cut_allowed(s->ctx, b->factor[f].size, s->ndev));
		else
			want[f] = (struct ap_cut_dim){s->cp, s->tp};
		return;
	}
}

/* Cuts a factor of the rows, inside its present cut, into as many of the tp parts left as fit. */
static void spread_over(const struct ap_step *step, const struct ap_bound *b, int f, struct ap_cut_dim *want,
	int32_t *left)
{
	int64_t rest = ap_factor_extent(b, f, step) / want[f].cut;
	int32_t parts = (int32_t)ap_gcd(rest, *left);

	if (want[f].cut > 1 && want[f].stride != *left)
		return;
	if (parts == 1 || ap_factor_extent(b, f, step) % want[f].cut)
		return;
	*left /= parts;
	want[f] = (struct ap_cut_dim){want[f].cut * parts, *left};
}

/* Are these samples of which each device has parts? */
static bool holds_samples(const struct hybrid *s, const struct ap_bound *b, int f)
{
	return s->interleaved > 0 && b->factor[f].flags & AP_FACTOR_BATCH &&
		b->factor[f].size == s->g->batch;
}

/* Cuts the rows of a product's or look-up's result by tp as well, as far as they divide: with sp no
 * result is replicated on the tp ranks. */
static void spread_rows(const struct hybrid *s, ap_id node, struct ap_cut_dim *want)
{
	const struct ap_bound *b = &s->g->node[node].bound;
	const struct ap_operand *o = &b->out[0];
	uint32_t rows = s->node[node].rows;
	int32_t left = s->tp;

	for (int d = 0; d < o->rank; d++)
		for (int k = 0; k < o->dim[d].n; k++)
			if (rows >> o->dim[d].factor[k] & 1 && !holds_samples(s, b, o->dim[d].factor[k]))
				spread_over(s->step, b, o->dim[d].factor[k], want, &left);
}

/* The cuts of a look-up: indices by batch and sequence, a cut table by entries. */
static void cut_lookup(struct hybrid *s, ap_id node, struct ap_cut_dim *want)
{
	const struct hybrid_node *n = &s->node[node];
	const struct ap_bound *b = &s->g->node[node].bound;

	if (s->cp > 1)
		cut_sequence(s, node, want);
	settle(s, b, want);
	if (n->cut_table)
		want[entries_factor(b)] = tensor_range(s->tp, s->tp);
	else if (s->h->sp)
		spread_rows(s, node, want);
}

static void take_all(const struct hybrid *s, const struct ap_bound *b, const struct ap_operand *o,
	const struct ap_layout *l, struct ap_cut_dim *want)
{
	take_cuts(s->step, b, o, l, want);
}

/* Of the cuts of another operand those over ranks that no other factor has. */
static void take_free(const struct hybrid *s, const struct ap_bound *b, const struct ap_operand *o,
	const struct ap_layout *l, struct ap_cut_dim *want)
{
	struct ap_cut_dim own[AP_MAX_FACTOR];

	leave_uncut(own);
	take_cuts(s->step, b, o, l, own);
	for (int f = 0; f < b->nfactor; f++)
		if (own[f].cut > want[f].cut && !meets_any(want, ~(UINT32_C(1) << f), own[f].stride,
			own[f].stride * own[f].cut))
			want[f] = own[f];
}

/* An operator behind a product with a parameter takes the cuts of its operands; of one that is repeated along
 * others, as a weight for all units of an expert's token is, what these leave. */
static void inherit(const struct hybrid *s, ap_id node, struct ap_cut_dim *want)
{
	const struct ap_node *n = &s->g->node[node];
	const struct ap_bound *b = &n->bound;
	uint32_t all = b->out[0].factors;
	bool some = false;

	for (int repeated = 0; repeated < 2; repeated++)
		for (int i = 0; i < b->nin; i++) {
			const struct hybrid_tensor *t = &s->tensor[n->in[i]];

			if (t->origin != HYBRID_MAIN || ((b->in[i].factors & all) != all) != repeated)
				continue;
			(repeated && some ? take_free : take_all)(s, b, &b->in[i], &t->flow, want);
			some |= !repeated;
		}
	settle(s, b, want);
}

static bool wish(struct hybrid *s, ap_id tensor, const struct ap_layout *flow, struct ap_layout *out);

/* The layout that one use by a product, directly or behind views, wants; false if none. */
static bool wish_of_use(struct hybrid *s, const struct ap_use *u, const struct ap_layout *flow,
	struct ap_layout *out)
{
	const struct ap_node *n = &s->g->node[u->node];
	struct ap_cut_dim want[AP_MAX_FACTOR];
	struct ap_layout through;

	leave_uncut(want);
	if (s->node[u->node].role == HYBRID_PRODUCT && s->node[u->node].act == u->operand) {
		cut_product(s, u->node, flow, want);
	} else if (ap_op_is_view(n->bound.row) && n->bound.nin == 1 && n->bound.nout == 1) {
		take_cuts(s->step, &n->bound, &n->bound.in[0], flow, want);
		range_layout(&n->bound.out[0], want, &through);
		if (!wish(s, n->out[0], &through, out))
			return false;
		leave_uncut(want);
		take_cuts(s->step, &n->bound, &n->bound.out[0], out, want);
	} else {
		return false;
	}
	range_layout(&n->bound.in[u->operand], want, out);
	return true;
}

/* The layout that all users want; false unless all are products and agree. */
static bool wish(struct hybrid *s, ap_id tensor, const struct ap_layout *flow, struct ap_layout *out)
{
	const struct ap_tensor *t = &s->g->tensor[tensor];
	struct ap_layout other;

	for (uint32_t u = 0; u < t->nuse; u++)
		if (!wish_of_use(s, &t->use[u], flow, u ? &other : out) ||
			(u && !ap_layout_equal(out, &other)))
			return false;
	return t->nuse > 0;
}

/* A view costs nothing in any layout: it takes the one that the products behind it want, so that a
 * tensor gathered for several of them is gathered once. Under the generic executor these share a copy, and
 * the sum of their gradients is cut as it is made only where the gather is their own. */
static void look_ahead(struct hybrid *s, ap_id node, struct ap_cut_dim *want)
{
	const struct ap_node *n = &s->g->node[node];
	struct ap_layout flow, wished;

	if ((!s->h->sp && s->ep == 1) || !ap_op_is_view(n->bound.row) || n->bound.nout != 1)
		return;
	range_layout(&n->bound.out[0], want, &flow);
	if (!wish(s, n->out[0], &flow, &wished))
		return;
	if (s->step->executor == AP_EXECUTOR_GENERIC && ap_layout_parts(&wished) < ap_layout_parts(&flow))
		return;
	leave_uncut(want);
	take_cuts(s->step, &n->bound, &n->bound.out[0], &wished, want);
}

/* Do only products of activations read a tensor, over its whole sequence, as keys and values are read?
 * Also behind views and copies of it. */
static bool is_key(const struct hybrid *s, ap_id tensor)
{
	const struct ap_tensor *t = &s->g->tensor[tensor];

	for (uint32_t u = 0; u < t->nuse; u++) {
		ap_id node = t->use[u].node;
		const struct ap_node *n = &s->g->node[node];
		bool product = n->bound.row->unit == AP_OP_CUBE && s->node[node].role == HYBRID_OTHER;

		if (product ? t->use[u].operand == 0 : n->bound.nin != 1 || n->bound.nout != 1 ||
			!is_key(s, n->out[0]))
			return false;
	}
	return t->nuse > 0;
}

/* Heads of keys and values that several queries share are gathered over cp before they are repeated. */
static void gather_before_copies(const struct hybrid *s, const struct ap_node *n, struct ap_cut_dim *want)
{
	const struct ap_bound *b = &n->bound;
	int64_t in, out;

	if (s->cp > 1 && !s->rounds && b->nin == 1 && b->nout == 1 &&
		ap_product(b->in[0].size, b->in[0].rank, &in) &&
		ap_product(b->out[0].size, b->out[0].rank, &out) && in < out && is_key(s, n->out[0]))
		strip_all(b, want, s->tp, s->tp * s->cp);
}

static bool all_of_tp(const struct hybrid_node *n, const struct ap_bound *b, int32_t tp)
{
	for (int f = 0; f < b->nfactor; f++)
		if (n->want[f].stride == 1 && n->want[f].cut % tp == 0)
			return true;
	return tp == 1;
}

static const struct hybrid_sink *lost_before(const struct hybrid *s, const struct ap_node *n)
{
	for (int i = 0; i < n->bound.nin; i++)
		if (s->tensor[n->in[i]].lost)
			return s->tensor[n->in[i]].lost;
	return NULL;
}

/* Why the columns of the first product of a pair are not cut by tp; NULL if they are. */
static const struct hybrid_sink *lost_columns(struct hybrid *s, ap_id node)
{
	const struct hybrid_sink *sink = NULL;
	struct hybrid_sink *own;
	int f = -1;

	if (s->node[node].role != HYBRID_PRODUCT ||
		columns_of(s, node, &f, &sink) == s->tp || !sink || sink->end != HYBRID_PAIRED)
		return NULL;
	if (sink->node != AP_NONE)
		return sink;
	own = AP_NEW(s->ctx->scratch, struct hybrid_sink);
	own->node = node;
	own->operand = s->node[node].weight;
	for (uint8_t d = 0; d < s->g->node[node].bound.in[own->operand].rank; d++)
		if (s->g->node[node].bound.in[own->operand].dim[d].factor[0] == f)
			own->dim = d;
	return own;
}

static void refuse(struct hybrid *s, const struct hybrid_sink *lost)
{
	const struct ap_node *n = &s->g->node[lost->node];
	const struct ap_operand *o = &n->bound.in[lost->operand];
	int64_t extent = ap_factor_extent(&n->bound, o->dim[lost->dim].factor[0], s->step);

	s->why = ap_arena_printf(s->ctx->arena, "operator \"%s\": %s: tp=%" PRId32 " parts%s; %s",
		n->name, ap_cut_place(s->ctx, &n->bound, o, lost->dim, s->step), s->tp,
		o->dim[lost->dim].n > 1 ? ap_arena_printf(s->ctx->arena, " of its factor of %" PRId64,
			extent) : "", ap_cut_allowed(s->ctx, extent, s->ndev));
}

static void note_lost(struct hybrid *s, ap_id node)
{
	const struct ap_node *n = &s->g->node[node];
	const struct hybrid_sink *lost = lost_columns(s, node);
	bool full = all_of_tp(&s->node[node], &n->bound, s->tp);

	if (!full && s->node[node].role == HYBRID_PRODUCT && s->tensor[n->in[s->node[node].act]].lost) {
		refuse(s, s->tensor[n->in[s->node[node].act]].lost);
		return;
	}
	if (!lost && !full && s->node[node].role == HYBRID_OTHER)
		lost = lost_before(s, n);
	for (int r = 0; r < n->bound.nout; r++)
		s->tensor[n->out[r]].lost = full ? NULL : lost;
}

/* Pieces of a dimension that was cut by tp, and gathered to split it, are cut again. */
static void cut_pieces(struct hybrid *s, const struct ap_node *n, int operand, int result)
{
	const struct ap_layout *in = &s->tensor[n->in[operand]].flow;
	struct hybrid_tensor *t = &s->tensor[n->out[result]];

	for (int d = 0; d < in->rank; d++)
		if (is_piece(&n->bound, operand, result, d) && t->flow.dim[d].cut == 1 &&
			in->dim[d].stride < s->tp && in->dim[d].cut > 1 && t->sink[d].end == HYBRID_PAIRED)
			t->flow.dim[d] = (struct ap_cut_dim){t->sink[d].most, s->tp / t->sink[d].most};
}

/* A tensor that the tp ranks of a stage all have is sent once: each rank sends its part, and the stage behind
 * puts them together. */
static void scatter(struct hybrid *s, const struct ap_node *n, struct ap_cut_dim *want)
{
	const struct ap_bound *b = &n->bound;
	const struct ap_operand *o = b->nout > 0 ? &b->out[0] : NULL;
	bool send = b->row->unit == AP_OP_LINK && n->peer != n->stage && !n->once;
	int32_t left = s->tp;

	if (!s->h->pp_scatter || !send || s->tp == 1 || meets_any(want, o->factors, 1, s->tp))
		return;
	for (int d = 0; d < o->rank && left > 1; d++)
		for (int k = 0; k < o->dim[d].n; k++)
			if (!holds_samples(s, b, o->dim[d].factor[k]))
				spread_over(s->step, b, o->dim[d].factor[k], want, &left);
	s->tensor[n->out[0]].scattered = left < s->tp;
}

/* Sets the layouts that users of the results should take. */
static void hand_on(struct hybrid *s, ap_id node)
{
	const struct ap_node *n = &s->g->node[node];
	struct ap_cut_dim want[AP_MAX_FACTOR];

	memcpy(want, s->node[node].want, sizeof want);
	if (n->bound.nout > 0 && s->tensor[n->out[0]].scattered)
		strip_all(&n->bound, want, 1, s->tp);
	for (int f = 0; f < n->bound.nfactor && (n->bound.dealt_rows > 0 || n->bound.deal_asked); f++)
		if (n->bound.dealt >> f & 1) /* the executor gathers what it deals by itself */
			want[f] = (struct ap_cut_dim){1, 0};
	if (s->h->sp && s->node[node].role != HYBRID_OTHER &&
		(!n->bound.dealt || n->bound.dealt_rows > 0 || n->bound.deal_asked) &&
		!meets_any(want, n->bound.out[0].factors, 1, s->tp))
		spread_rows(s, node, want);
	for (int r = 0; r < n->bound.nout; r++) {
		range_layout(&n->bound.out[r], want, &s->tensor[n->out[r]].flow);
		for (int i = 0; i < n->bound.nin && s->node[node].role == HYBRID_OTHER; i++)
			if (s->tensor[n->in[i]].origin == HYBRID_MAIN)
				cut_pieces(s, n, i, r);
	}
}

static void refuse_sequence(struct hybrid *s, ap_id node, const char *dropped)
{
	s->why = ap_arena_printf(s->ctx->arena, "operator \"%s\" cannot be cut by cp: %s",
		s->g->node[node].name, dropped);
}

/* A view could have its operand gathered: then cp would cut nothing behind it. */
static void hold_sequence(struct hybrid *s, ap_id node, const struct ap_cut_dim *want)
{
	const struct ap_bound *b = &s->g->node[node].bound;
	struct ap_cut_dim cp[AP_MAX_FACTOR];
	int32_t count[AP_MAX_FACTOR];
	const char *dropped;

	if (s->cp == 1 || !ap_op_is_view(b->row) || ap_space_is_imposed(b))
		return;
	memcpy(cp, want, sizeof cp);
	strip_all(b, cp, 1, s->tp);
	for (int f = 0; f < AP_MAX_FACTOR; f++)
		count[f] = f < b->nfactor ? cp[f].cut : 1;
	if (meets_any(cp, ~UINT32_C(0), s->tp, s->tp * s->cp) &&
		!ap_space_legal(s->ctx, b, count, s->ndev, s->step, &dropped))
		refuse_sequence(s, node, ap_arena_printf(s->ctx->arena,
			"%s; it can with one sample a device, mbs=1", dropped));
}

/* Does an operator read nothing but indices, and numbers that belong to none? Then these can be gathered for
 * it, and what it makes of them is cut again. */
static bool of_indices(const struct ap_node *n)
{
	for (int i = 0; i < n->bound.nin; i++)
		if (n->bound.in[i].factors && ap_dtype_is_float(n->bound.in[i].dtype))
			return false;
	return n->bound.nin > 0;
}

static void decide(struct hybrid *s, ap_id node)
{
	const struct ap_node *n = &s->g->node[node];
	struct hybrid_node *h = &s->node[node];
	struct ap_cut_dim want[AP_MAX_FACTOR];
	const char *dropped;

	leave_uncut(want);
	if (h->role == HYBRID_PRODUCT)
		cut_product(s, node, s->tensor[n->in[h->act]].origin == HYBRID_MAIN ?
			&s->tensor[n->in[h->act]].flow : NULL, want);
	else if (h->role == HYBRID_LOOKUP)
		cut_lookup(s, node, want);
	else
		inherit(s, node, want);
	if (h->role == HYBRID_OTHER) {
		hold_sequence(s, node, want);
		look_ahead(s, node, want);
	}
	gather_before_copies(s, n, want);
	scatter(s, n, want);
	apply_wants(s, node, want, &dropped);
	if (s->cp > 1 && meets_any(want, ~UINT32_C(0), s->tp, s->tp * s->cp)) {
		s->sequence_cut = true;
		if (!dropped || meets_any(h->want, ~UINT32_C(0), s->tp, s->tp * s->cp))
			return;
		if (of_indices(n))
			memcpy(h->want, want, sizeof want);
		else
			refuse_sequence(s, node, dropped);
	}
}

/* Heads that are exchanged for the sequence are dealt once more, among the cp ranks. */
static void hold_heads(struct hybrid *s, ap_id node)
{
	const struct ap_bound *b = &s->g->node[node].bound;
	const int32_t *count = s->node[node].count;
	int64_t heads;

	if (!b->swaps || count[b->round] == 1)
		return;
	heads = ap_factor_extent(b, b->heads, s->step) / count[b->heads];
	if (heads % count[b->round])
		s->why = ap_arena_printf(s->ctx->arena, "operator \"%s\": cp_algo=all-to-all deals the %"
			PRId64 " heads of keys and values that a tp rank has, which cp=%" PRId32 " does not "
			"divide; all-gather and ring are possible, or cp up to %" PRId64,
			s->g->node[node].name, heads, count[b->round], heads);
}

static void cut_along_flow(struct hybrid *s)
{
	for (ap_id i = 0; i < s->g->nnode && !s->why; i++) {
		const struct ap_node *n = &s->g->node[i];

		if (n->bound.nout == 0 || s->tensor[n->out[0]].origin != HYBRID_MAIN)
			continue;
		decide(s, i);
		hold_heads(s, i);
		note_lost(s, i);
		hand_on(s, i);
	}
}

/* The layout with the most parts that a user wants of a result. */
static void widest(const struct hybrid *s, ap_id tensor, struct ap_layout *out)
{
	const struct ap_tensor *t = &s->g->tensor[tensor];
	struct ap_layout l;

	*out = (struct ap_layout){0};
	for (uint32_t u = 0; u < t->nuse; u++) {
		const struct hybrid_node *n = &s->node[t->use[u].node];

		if (!n->want)
			continue;
		range_layout(&s->g->node[t->use[u].node].bound.in[t->use[u].operand], n->want, &l);
		if (out->rank == 0 || ap_layout_parts(&l) > ap_layout_parts(out))
			*out = l;
	}
}

/* Factors that the dev_matrix puts at other ranks than those wanted. */
static int count_displaced(const struct ap_bound *b, const struct hybrid_node *n, int64_t ndev)
{
	struct ap_placement p;
	int displaced = 0;

	ap_placement_make(b, n->count, ndev, &p);
	for (int f = 0; f < b->nfactor; f++)
		displaced += p.count[f] > 1 && p.stride[f] != n->want[f].stride;
	return displaced;
}

/* Puts the axes of an operator's dev_matrix at the ranks that they are wanted at, where the executor has
 * no order of its own: attention that exchanges heads for the sequence is no operator of MindSpore's.
 * False where that changes nothing. */
static bool rearrange(const struct hybrid *s, const struct hybrid_node *n, struct ap_bound *b)
{
	bool ordered = s->step->executor != AP_EXECUTOR_GENERIC && !b->swaps;
	int before = ordered || ap_space_is_imposed(b) ? 0 : count_displaced(b, n, s->ndev);
	struct ap_bound other = *b;
	int32_t lowest = INT32_MAX;
	int cut = 0;

	if (!before)
		return false;
	for (int i = 0; i < b->ndev; i++) {
		int f = b->dev[i], at = cut;

		if (n->count[f] == 1)
			continue;
		for (; at > 0 && n->want[other.dev[at - 1]].stride < n->want[f].stride; at--)
			other.dev[at] = other.dev[at - 1];
		other.dev[at] = (uint8_t)f;
		lowest = n->want[f].stride < lowest ? n->want[f].stride : lowest;
		cut++;
	}
	for (int i = 0; i < b->ndev; i++)
		if (n->count[b->dev[i]] == 1)
			other.dev[cut++] = b->dev[i];
	other.left = lowest == 1 ? UINT32_MAX : 0;
	if (count_displaced(&other, n, s->ndev) >= before ||
		!ap_space_legal(s->ctx, &other, n->count, s->ndev, s->step, NULL))
		return false;
	*b = other;
	return true;
}

/* Drops the first cut that the dev_matrix puts on other ranks than the user's; false if none. */
static bool drop_displaced(struct hybrid *s, ap_id node, struct ap_cut_dim *want)
{
	struct ap_bound bound = s->g->node[node].bound;
	const struct ap_bound *b = &bound;
	struct ap_placement p;

	if (ap_space_is_imposed(b))
		return false;
	rearrange(s, &s->node[node], &bound);
	ap_placement_make(b, s->node[node].count, s->ndev, &p);
	for (int f = 0; f < b->nfactor; f++)
		if (p.count[f] > 1 && p.stride[f] != want[f].stride &&
			!(b->factor[f].flags & AP_FACTOR_BATCH)) {
			want[f] = (struct ap_cut_dim){1, 0};
			return true;
		}
	return false;
}

/* Operators behind no product with a parameter are free in their cut, so they take that of their
 * users, as far as the dev_matrix puts it on the same ranks. */
static void cut_free(struct hybrid *s)
{
	for (ap_id i = s->g->nnode; i-- > 0;)
		if (!s->node[i].want) {
			const struct ap_node *n = &s->g->node[i];
			bool weight = n->bound.nout > 0 && s->tensor[n->out[0]].origin <= HYBRID_WEIGHT;
			struct ap_cut_dim want[AP_MAX_FACTOR];
			struct ap_layout l;
			const struct ap_bound *b = &n->bound;
			int32_t low = s->tp * s->cp;

			leave_uncut(want);
			for (int r = 0; r < n->bound.nout; r++) {
				widest(s, n->out[r], &l);
				if (l.rank > 0)
					take_cuts(s->step, &n->bound, &n->bound.out[r], &l, want);
			}
			/* Only the batch is cut by dp, except in weights that a user cuts so. */
			for (int f = 0; f < b->nfactor && !weight; f++)
				if (!(b->factor[f].flags & AP_FACTOR_BATCH))
					strip_ranks(&want[f], low, low * s->dp);
			settle(s, &n->bound, want);
			do
				apply_wants(s, i, want, NULL);
			while (drop_displaced(s, i, want));
		}
}

static bool batch_fits(struct hybrid *s)
{
	int64_t samples = s->g->batch / s->step->micro_batches;

	if (s->dp > 1 && s->g->batch == 0)
		s->why = "no graph input has a batch dimension, so that dp above 1 cuts nothing";
	else if (s->dp > 1 && samples % s->dp)
		s->why = ap_arena_printf(s->ctx->arena, "dp=%" PRId32 " does not divide the %" PRId64
			" samples of a micro-batch", s->dp, samples);
	return !s->why;
}

/* Samples a device if their tokens are dealt along the sequence, which takes rows in another order than
 * MindSpore's: where cp cuts each sequence, or where equal runs of tokens would end inside a sample
 * and go on in the next; else 0. */
static int64_t interleaved(const struct ap_graph *g, const struct ap_step *step, const struct ap_hybrid *h)
{
	int64_t samples = g->batch / step->micro_batches / h->dp;
	bool across = h->sp && samples > 1 && samples % h->tp != 0 && h->tp % samples != 0;

	return step->executor == AP_EXECUTOR_GENERIC && samples > 1 && (h->cp > 1 || across) &&
		ap_sequence_first_fits(g) ? samples : 0;
}

static void start(struct hybrid *s, struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const struct ap_hybrid *h)
{
	assert(h->dp * h->cp * h->tp == ndev && ap_hybrid_expert_stride(h) > 0);
	*s = (struct hybrid){.ctx = ctx, .g = g, .ndev = ndev, .step = step, .h = h,
		.tp = (int32_t)h->tp, .cp = (int32_t)h->cp, .dp = (int32_t)h->dp,
		.ep = (int32_t)h->ep, .expert_stride = (int32_t)ap_hybrid_expert_stride(h),
		.interleaved = interleaved(g, step, h)};
	for (ap_id i = 0; i < g->nnode; i++)
		s->rounds |= g->node[i].bound.rounds != 0 || g->node[i].bound.swaps != 0;
	s->tensor = AP_NEW_N(ctx->scratch, struct hybrid_tensor, g->ntensor);
	s->node = AP_NEW_N(ctx->scratch, struct hybrid_node, g->nnode);
	s->whole = AP_NEW_N(ctx->scratch, bool, g->ntensor);
}

/* Decides all operators; false, with the reason in s->why, if the hybrid does not fit. */
static bool solve(struct hybrid *s)
{
	if (!batch_fits(s))
		return false;
	find_roles(s);
	find_sinks(s);
	find_words(s);
	choose_tables(s);
	if (!s->why)
		cut_along_flow(s);
	if (!s->why && s->cp > 1 && !s->sequence_cut)
		s->why = "nothing is looked up in a table, so that there is no sequence for cp to cut";
	if (!s->why && s->ep > 1 && !s->experts_cut)
		s->why = "no product has a parameter for each of several experts, so that ep above 1 cuts "
			"nothing";
	if (!s->why)
		cut_free(s);
	return !s->why;
}

static const int32_t *const *counts_on(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const struct ap_hybrid *h, const char **why)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const int32_t **counts = AP_NEW_N(ctx->arena, const int32_t *, g->nnode);
	struct hybrid s;

	start(&s, ctx, g, ndev, step, h);
	if (solve(&s)) {
		const char *text;
		ap_id node;

		for (ap_id i = 0; i < g->nnode; i++)
			counts[i] = s.node[i].count;
		text = ap_plan_conflict(s.ctx, s.g, s.ndev, counts, &node);
		s.why = text ? ap_arena_printf(s.ctx->arena, "operator \"%s\": %s", s.g->node[node].name,
			text) : NULL;
	}
	ap_arena_release(ctx->scratch, mark);
	*why = s.why;
	return s.why ? NULL : counts;
}

/* Deals a sum over the tp ranks alone among them; false where it is none, or cannot be dealt. */
static bool deal_sum(const struct hybrid *s, const struct hybrid_node *n, struct ap_bound *b)
{
	int f = n->role == HYBRID_OTHER || !s->h->sp || s->tp == 1 ? -1 : ap_rule_deal_factor(b);
	struct ap_bound dealt = *b;

	if (f < 0 || n->want[f].cut != s->tp || n->want[f].stride != 1 ||
		holds_samples(s, b, b->out[0].dim[0].factor[0]))
		return false;
	ap_rule_deal_always(s->ctx, &dealt);
	if (!ap_space_legal(s->ctx, &dealt, n->count, s->ndev, s->step, NULL))
		return false;
	*b = dealt;
	return true;
}

static const struct ap_graph *deal(const struct hybrid *s)
{
	struct ap_node *node;
	const struct ap_graph *g = ap_graph_with_nodes(s->ctx, s->g, &node);
	bool changed = false;

	for (ap_id i = 0; i < g->nnode; i++) {
		changed |= rearrange(s, &s->node[i], &node[i].bound);
		changed |= !node[i].undealt && deal_sum(s, &s->node[i], &node[i].bound);
	}
	return changed ? g : s->g;
}

/* What becomes of an operator that attends where cp cuts its sequence; *why if it cannot. */
static void attend(struct ap_ctx *ctx, const struct ap_hybrid *h, struct ap_node *n, const char **why)
{
	struct ap_attention a;
	int64_t length;

	if (!ap_rule_attends(&n->bound, &a))
		return;
	length = n->bound.factor[a.queries].size;
	if (h->cp_even && h->cp_algo != AP_CP_ALL_TO_ALL && ap_rule_causal_factor(&n->bound) >= 0) {
		if (length % (2 * h->cp))
			*why = ap_arena_printf(ctx->arena, "operator \"%s\": a sequence of %" PRId64
				" is dealt in 2 x cp=%" PRId64 " parts, two to a rank, so that each has as "
				"much work; a multiple of that is expected", n->name, length, 2 * h->cp);
		n->bound.even = true;
	}
	if (h->cp_algo == AP_CP_RING)
		ap_rule_attend_round(ctx, &n->bound);
	if (h->cp_algo == AP_CP_ALL_TO_ALL && a.heads < 0)
		*why = ap_arena_printf(ctx->arena, "operator \"%s\": cp_algo=all-to-all deals heads, which "
			"a mask of its own for each does not allow; all-gather and ring are possible",
			n->name);
	else if (h->cp_algo == AP_CP_ALL_TO_ALL)
		ap_rule_attend_by_heads(ctx, &n->bound);
}

/* The graph whose attention exchanges keys and values as the hybrid says; g if they are gathered before it,
 * and each rank has what comes. */
static const struct ap_graph *attended(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_hybrid *h, const char **why)
{
	struct ap_graph *out;
	struct ap_node *node;
	bool any = false;

	if (h->cp == 1 || (h->cp_algo <= AP_CP_ALL_GATHER && !h->cp_even))
		return g;
	out = ap_graph_with_nodes(ctx, g, &node);
	for (ap_id i = 0; i < g->nnode && !*why; i++) {
		struct ap_attention a;

		any |= ap_rule_attends(&node[i].bound, &a);
		attend(ctx, h, &node[i], why);
	}
	if (!any && !h->cp_usual && h->cp_algo != AP_CP_ALL_GATHER)
		*why = ap_arena_printf(ctx->arena, "cp_algo=%s takes attention that is one operator "
			"(FlashAttentionScore): what is known to run it has no other; products and a Softmax "
			"take all-gather", ap_cp_algo_name(h->cp_algo));
	return any ? out : g;
}

static const struct ap_graph *deal_on(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const struct ap_hybrid *h, const char **why)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct hybrid s;

	*why = NULL;
	g = attended(ctx, g, h, why);
	if (*why || ((!h->sp || h->tp == 1) && h->cp_algo != AP_CP_ALL_TO_ALL &&
		step->executor != AP_EXECUTOR_GENERIC))
		return *why ? NULL : g;
	if (g->batch % (h->dp * step->micro_batches) == 0 && interleaved(g, step, h) > 0)
		g = ap_sequence_first(ctx, g, interleaved(g, step, h));
	start(&s, ctx, g, ndev, step, h);
	if (solve(&s))
		g = deal(&s);
	ap_arena_release(ctx->scratch, mark);
	*why = s.why;
	return s.why ? NULL : g;
}

/* One of the stages with unequal numbers of devices, as if the whole network were on as many. */
struct stage_view {
	struct ap_graph graph;
	struct ap_hybrid hybrid;
	int64_t ndev;
};

/* False, with the reason, if the degrees but dp do not divide the stage's devices, or rows would be in
 * another order than in other stages. */
static bool view_stage(struct ap_ctx *ctx, const struct ap_graph *g, int32_t stage,
	const struct ap_step *step, const struct ap_hybrid *h, struct stage_view *v, const char **why)
{
	*v = (struct stage_view){*g, *h, g->devices[stage].n};
	v->graph.devices = NULL;
	v->hybrid.dp = v->ndev / (h->tp * h->cp);
	if (v->hybrid.dp * h->tp * h->cp != v->ndev)
		*why = ap_arena_printf(ctx->arena, "tp=%" PRId64 " x cp=%" PRId64 " does not divide the %"
			PRId64 " devices of stage %" PRId32, h->tp, h->cp, v->ndev, stage);
	else if (ap_hybrid_expert_stride(&v->hybrid) == 0)
		*why = ap_arena_printf(ctx->arena, "ep=%" PRId64 " does not divide dp=%" PRId64 " of stage %"
			PRId32, h->ep, v->hybrid.dp, stage);
	else if (g->batch % (v->hybrid.dp * step->micro_batches) == 0 &&
		interleaved(g, step, &v->hybrid) > 0)
		*why = "rows of several samples would stand in another order in each stage; expected stages "
			"of equal numbers of devices, or micro-batches of one sample for each dp rank";
	else
		return true;
	return false;
}

/* Says in which stage something does not fit; returns NULL. */
static void *blame(struct ap_ctx *ctx, int32_t stage, const char **why)
{
	*why = ap_arena_printf(ctx->arena, "stage %" PRId32 ": %s", stage, *why);
	return NULL;
}

static int32_t stages_of(const struct ap_graph *g)
{
	int32_t last = 0;

	for (ap_id i = 0; i < g->nnode; i++)
		last = g->node[i].stage > last ? g->node[i].stage : last;
	return last + 1;
}

/* The first stage with as many devices. */
static int32_t first_alike(const struct ap_graph *g, int32_t stage)
{
	int32_t first = 0;

	while (g->devices[first].n != g->devices[stage].n)
		first++;
	return first;
}

const int32_t *const *ap_hybrid_counts(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const struct ap_hybrid *h, const char **why)
{
	const int32_t **counts, *const *const *of_stage;
	const int32_t *const **made;
	const char *text;
	ap_id node;

	if (!g->devices)
		return counts_on(ctx, g, ndev, step, h, why);
	counts = AP_NEW_N(ctx->arena, const int32_t *, g->nnode);
	made = AP_NEW_N(ctx->arena, const int32_t *const *, stages_of(g));
	of_stage = (const int32_t *const *const *)made;
	for (ap_id i = 0; i < g->nnode; i++) {
		int32_t stage = first_alike(g, g->node[i].stage);
		struct stage_view v;

		if (!made[stage]) {
			if (!view_stage(ctx, g, stage, step, h, &v, why))
				return NULL;
			made[stage] = counts_on(ctx, &v.graph, v.ndev, step, &v.hybrid, why);
		}
		if (!made[stage])
			return blame(ctx, stage, why);
		counts[i] = of_stage[stage][i];
	}
	text = ap_plan_conflict(ctx, g, ndev, counts, &node);
	if (text)
		*why = ap_arena_printf(ctx->arena, "operator \"%s\": %s", g->node[node].name, text);
	return text ? NULL : counts;
}

const struct ap_graph *ap_hybrid_deal(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const struct ap_hybrid *h, const char **why)
{
	const struct ap_graph **made, *whole;
	struct ap_node *node;

	if (!g->devices)
		return deal_on(ctx, g, ndev, step, h, why);
	*why = NULL;
	made = AP_NEW_N(ctx->arena, const struct ap_graph *, stages_of(g));
	whole = ap_graph_with_nodes(ctx, g, &node);
	for (ap_id i = 0; i < g->nnode; i++) {
		int32_t stage = first_alike(g, g->node[i].stage);
		struct stage_view v;

		if (!made[stage]) {
			if (!view_stage(ctx, g, stage, step, h, &v, why))
				return NULL;
			made[stage] = deal_on(ctx, ap_arena_memdup(ctx->arena, &v.graph, sizeof v.graph),
				v.ndev, step, &v.hybrid, why);
		}
		if (!made[stage])
			return blame(ctx, stage, why);
		node[i] = made[stage]->node[i];
	}
	return whole;
}

void ap_hybrid_grids(int64_t ndev,
	void (*emit)(void *user, const struct ap_hybrid *h, const char *name), void *user)
{
	for (int64_t cp = 1; cp <= AP_HYBRID_MOST_CP && cp <= ndev; cp++)
		for (int64_t tp = 1; tp <= AP_HYBRID_MOST_TP && tp <= ndev / cp; tp++) {
			struct ap_hybrid h = {.dp = ndev / cp / tp, .tp = tp, .pp = 1, .cp = cp, .ep = 1,
				.vpp = 1};
			char name[72];
			int len;

			if (h.dp * h.cp * h.tp != ndev)
				continue;
			len = snprintf(name, sizeof name, "dp=%" PRId64 " tp=%" PRId64, h.dp, h.tp);
			if (h.cp > 1)
				snprintf(name + len, sizeof name - (size_t)len, " cp=%" PRId64, h.cp);
			emit(user, &h, name);
		}
}
