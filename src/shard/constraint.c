/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/constraint.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/family.h"
#include "graph/glob.h"
#include "shard/legal.h"
#include "shard/refusal.h"
#include "shard/strategy.h"

const char *ap_demand_name(enum ap_demand d)
{
	static const char *const name[AP_DEMAND_COUNT] = {[AP_DEMAND_PIN] = "pin", [AP_DEMAND_FORBID] =
		"forbid",
		[AP_DEMAND_SAME] = "same"};

	return name[d];
}

/* ---- parsing ---- */

struct parsing {
	struct ap_ctx *ctx;
	const struct ap_where *where;
	struct ap_constraint now;
};

static enum ap_status malformed(const struct parsing *x, const char *expected)
{
	const char *word = ap_demand_name(x->now.demand);

	return ap_diag_add(x->ctx->diag, AP_ERROR, AP_USAGE, x->where, NULL, "%s%s \"%s\": expected %s",
		x->where ? "" : "--", word, ap_diag_name(x->ctx->diag, x->now.text), expected);
}

/* Vectors in brackets with commas between them, and maybe brackets around all. */
static bool parse_vectors(struct ap_ctx *ctx, const char *text, struct ap_pin *out)
{
	AP_VEC(int32_t) cut = {0};
	uint32_t n = 0, vectors = 0;
	const char *c = text;
	bool around = text[0] == '[' && text[1] == '[';
	size_t len = strlen(text);

	for (const char *k = text; *k; k++)
		vectors += *k == '[';
	out->v = ap_arena_alloc(ctx->arena, vectors, sizeof *out->v);
	if (around && (len < 2 || text[len - 1] != ']'))
		return false;
	for (c += around; *c && !(around && c == text + len - 1);) {
		if (n > 0 && *c++ != ',')
			return false;
		if (*c++ != '[')
			return false;
		for (cut.n = 0; *c && *c != ']';) {
			size_t digits = strspn(c, "0123456789");
			int64_t parts;

			if (cut.n == AP_MAX_RANK || digits == 0 ||
				!ap_parse_int(ap_arena_strndup(ctx->arena, c, digits),
				1, INT32_MAX, &parts))
				return false;
			AP_PUSH(ctx->arena, cut, (int32_t)parts);
			c += digits;
			if (*c == ',' && c[1] != ']')
				c++;
			else if (*c != ']')
				return false;
		}
		if (*c++ != ']')
			return false;
		out->v[n].rank = (uint8_t)cut.n;
		if (cut.n)
			memcpy(out->v[n].cut, cut.v, cut.n * sizeof *cut.v);
		n++;
	}
	out->n = n;
	return n > 0;
}

/* What lies behind the last mark that is outside brackets; NULL: there is none. */
static const char *behind(const char *text, char mark)
{
	const char *found = NULL;
	int depth = 0;

	for (const char *c = text; *c; c++) {
		depth += (*c == '[') - (*c == ']');
		if (*c == mark && depth == 0)
			found = c + 1;
	}
	return found;
}

static enum ap_status parse_pin(struct parsing *x)
{
	const char *cut = behind(x->now.text, '=');

	if (!cut || cut == x->now.text + 1 || !parse_vectors(x->ctx, cut, &x->now.pin))
		return malformed(x, "GLOB=[8,1],[1,8], a vector of parts for each operand");
	x->now.glob = ap_arena_strndup(x->ctx->arena, x->now.text, (size_t)(cut - 1 - x->now.text));
	return AP_OK;
}

static enum ap_status parse_forbid(struct parsing *x)
{
	const char *operand = behind(x->now.text, ':'), *dot;
	int64_t dim;

	if (!operand || operand == x->now.text + 1 || !*operand)
		return malformed(x, "GLOB:OPERAND or GLOB:OPERAND.DIM, such as layers.*:1.0");
	x->now.glob = ap_arena_strndup(x->ctx->arena, x->now.text, (size_t)(operand - 1 - x->now.text));
	dot = strrchr(operand, '.');
	x->now.all = !dot || !ap_parse_int(dot + 1, -AP_MAX_RANK, AP_MAX_RANK, &dim);
	x->now.dim = x->now.all ? 0 : (int)dim;
	x->now.operand = x->now.all ? operand : ap_arena_strndup(x->ctx->arena, operand, (size_t)(dot
		- operand));
	return AP_OK;
}

static enum ap_status parse_one(struct ap_ctx *ctx, enum ap_demand d, const char *text,
	const struct ap_where *where, struct ap_constraint *out)
{
	struct parsing x = {ctx, where, {.demand = d, .text = text}};

	switch (d) {
	case AP_DEMAND_PIN:
		AP_TRY(parse_pin(&x));
		break;
	case AP_DEMAND_FORBID:
		AP_TRY(parse_forbid(&x));
		break;
	default:
		if (!*text)
			return malformed(&x, "a pattern of operators");
		x.now.glob = text;
	}
	*out = x.now;
	return AP_OK;
}

/* The end of the demand that begins at text: a comma outside brackets, of a pin one that a GLOB= follows. */
static const char *end_of(enum ap_demand d, const char *text)
{
	int depth = 0;

	for (const char *c = text; *c; c++) {
		depth += (*c == '[') - (*c == ']');
		if (*c != ',' || depth > 0)
			continue;
		if (d != AP_DEMAND_PIN || c[1] != '[')
			return c;
	}
	return text + strlen(text);
}

enum ap_status ap_constraints_parse(struct ap_ctx *ctx, enum ap_demand d, const char *texts,
	const struct ap_where *where, struct ap_constraints *io)
{
	AP_VEC(struct ap_constraint) all = {0};

	for (uint32_t i = 0; i < io->n; i++)
		AP_PUSH(ctx->arena, all, io->v[i]);
	for (const char *c = texts, *end;; c = end + 1) {
		struct ap_constraint one;

		end = end_of(d, c);
		AP_TRY(parse_one(ctx, d, ap_arena_strndup(ctx->arena, c, (size_t)(end - c)), where, &one));
		AP_PUSH(ctx->arena, all, one);
		if (!*end)
			break;
	}
	*io = (struct ap_constraints){(uint32_t)all.n, all.v};
	return AP_OK;
}

/* ---- applying ---- */

struct applying {
	struct ap_ctx *ctx;
	const struct ap_constraints *all;
	const struct ap_graph *g;
	int64_t ndev;
	const struct ap_step *step;
	struct ap_node *node; /* [nnode] of the new graph */
	const struct ap_constraint **pinned; /* [nnode] by whom */
	const struct ap_constraint **barred; /* [nnode] the last one that forbids anything of it */
	uint32_t groups;
	struct ap_map *met; /* parts of each layer */
	AP_VEC(uint32_t) times; /* how often each was met */
};

static const char *said(const struct applying *x, const struct ap_constraint *c)
{
	return ap_arena_printf(x->ctx->arena, "%s %s", ap_demand_name(c->demand),
		ap_diag_name(x->ctx->diag, c->text));
}

static enum ap_status fault(const struct applying *x, enum ap_status st, ap_id node, const char *check,
	const char *text)
{
	const struct ap_where where = {.file = x->g->file, .oper = node == AP_NONE ? NULL
		: x->g->node[node].name};

	return ap_diag_add(x->ctx->diag, AP_ERROR, st, &where, check, "%s", text);
}

/* Marks the operators that a demand is about; AP_USAGE if there are none. */
static enum ap_status find(const struct applying *x, const struct ap_constraint *c, bool *meant)
{
	if (ap_glob_operators(x->g, c->glob, meant) > 0)
		return AP_OK;
	return fault(x, AP_USAGE, AP_NONE, "rule-matches", ap_arena_printf(x->ctx->arena,
		"%s: no operator is meant by \"%s\"%s", said(x, c), ap_diag_name(x->ctx->diag, c->glob),
		ap_glob_near(x->ctx, x->g, c->glob)));
}

/* An operand or a result by its number or its tensor's name; NULL: the operator has none. */
static const struct ap_operand *operand_of(const struct applying *x, const struct ap_node *n,
	const char *name, bool *result)
{
	int64_t at;

	*result = !strncmp(name, "out", 3) && (!name[3] || ap_parse_int(name + 3, 0, UINT16_MAX, &at));
	if (*result) {
		at = name[3] ? at : 0;
		return at < n->bound.nout ? &n->bound.out[at] : NULL;
	}
	if (ap_parse_int(name, 0, UINT16_MAX, &at))
		return at < n->bound.nin ? &n->bound.in[at] : NULL;
	for (uint32_t i = 0; i < n->bound.nin; i++)
		if (!strcmp(x->g->tensor[n->in[i]].name, name))
			return &n->bound.in[i];
	*result = true;
	for (uint32_t i = 0; i < n->bound.nout; i++)
		if (!strcmp(x->g->tensor[n->out[i]].name, name))
			return &n->bound.out[i];
	return NULL;
}

/* Forbids to cut dimension d of t, which is an operand or a result of node. */
static enum ap_status bar(struct applying *x, const struct ap_constraint *c, ap_id node,
	const struct ap_operand *t, int d, bool result)
{
	struct ap_bound *b = &x->node[node].bound;

	for (int k = 0; k < t->dim[d].n; k++) {
		uint8_t *flags = &b->factor[t->dim[d].factor[k]].flags;

		if (*flags & AP_FACTOR_WHOLLY && x->ndev > 1)
			return fault(x, AP_INFEASIBLE, node, "rule-imposed", ap_arena_printf(x->ctx->arena,
				"%s: the executor cuts %s over all devices", said(x, c),
				ap_cut_place(x->ctx, b, t, d, x->step)));
		*flags |= AP_FACTOR_BARRED;
	}
	x->node[node].undealt |= result && d == 0 && t == b->out;
	x->barred[node] = c;
	return AP_OK;
}

static enum ap_status forbid(struct applying *x, const struct ap_constraint *c, const bool *meant)
{
	bool any = false, inside = false;

	for (ap_id i = 0; i < x->g->nnode; i++) {
		bool result;
		const struct ap_operand *t = meant[i] ? operand_of(x, &x->g->node[i], c->operand,
			&result) : NULL;
		int dim;

		if (!t)
			continue;
		any = true;
		dim = c->dim < 0 ? c->dim + t->rank : c->dim;
		for (int d = 0; d < t->rank; d++)
			if (c->all || d == dim) {
				inside = true;
				AP_TRY(bar(x, c, i, t, d, result));
			}
	}
	if (any && inside)
		return AP_OK;
	return fault(x, AP_USAGE, AP_NONE, "rule-matches", ap_arena_printf(x->ctx->arena,
		any ? "%s: %s of no operator that is meant has a dimension %d"
		: "%s: no operator that is meant has a "
		"tensor %s; expected the number of an operand, out, or the name of a tensor",
		said(x, c), ap_diag_name(x->ctx->diag, c->operand), c->dim));
}

static bool same_pin(const struct ap_pin *a, const struct ap_pin *b)
{
	bool same = a->n == b->n;

	for (uint32_t k = 0; same && k < a->n; k++)
		same = a->v[k].rank == b->v[k].rank &&
			memcmp(a->v[k].cut, b->v[k].cut, a->v[k].rank * sizeof *a->v[k].cut) == 0;
	return same;
}

/* Is the strategy possible? Of one that is not, and would be if nothing were forbidden, that is said. */
static enum ap_status check_pin(const struct applying *x, const struct ap_constraint *c, ap_id node)
{
	struct ap_bound free = x->node[node].bound;
	uint8_t *rank = AP_NEW_N(x->ctx->arena, uint8_t, c->pin.n);
	int32_t(*cut)[AP_MAX_RANK] = ap_arena_alloc(x->ctx->arena, c->pin.n, sizeof *cut),
		count[AP_MAX_FACTOR];
	const char *why, *other;

	for (uint32_t k = 0; k < c->pin.n; k++) {
		rank[k] = c->pin.v[k].rank;
		memcpy(cut[k], c->pin.v[k].cut, sizeof *cut);
	}
	if (ap_space_from_strategy(x->ctx, &x->node[node].bound, x->ndev, x->step, c->pin.n, rank,
		(const int32_t(*)[AP_MAX_RANK])cut, count, &why))
		return AP_OK;
	for (int f = 0; f < free.nfactor; f++)
		free.factor[f].flags &= (uint8_t)~AP_FACTOR_BARRED;
	if (x->barred[node] && ap_space_from_strategy(x->ctx, &free, x->ndev, x->step, c->pin.n, rank,
		(const int32_t(*)[AP_MAX_RANK])cut, count, &other))
		return fault(x, AP_INFEASIBLE, node, "rule-conflict", ap_arena_printf(x->ctx->arena,
			"%s and %s contradict each other", said(x, c), said(x, x->barred[node])));
	return fault(x, AP_USAGE, node, "rule-legal", ap_arena_printf(x->ctx->arena,
		"%s: not possible on %" PRId64 " devices: %s", said(x, c), x->ndev, why));
}

static enum ap_status pin(struct applying *x, const struct ap_constraint *c, const bool *meant)
{
	for (ap_id i = 0; i < x->g->nnode; i++) {
		const struct ap_constraint *other = x->pinned[i];

		if (!meant[i])
			continue;
		if (x->node[i].in_pin.n && !same_pin(&x->node[i].in_pin, &c->pin))
			return fault(x, AP_INFEASIBLE, i, "rule-conflict", ap_arena_printf(x->ctx->arena,
				"%s and %s contradict each other", said(x, c),
				other ? said(x, other) : "its in_strategy in the graph"));
		AP_TRY(check_pin(x, c, i));
		x->node[i].in_pin = c->pin;
		x->pinned[i] = c;
	}
	return AP_OK;
}

/* What an operator of a layer is in it: the list of the layer, its cell inside, its type, and a number
 * among those that are alike in all that. */
static const char *part_of(struct applying *x, const struct ap_family_chain *chain, ap_id node)
{
	const struct ap_node *n = &x->g->node[node];
	const char *layer = chain->name[chain->layer[node]], *number = strrchr(layer, '.');
	size_t len = strlen(layer);
	const char *inside = strncmp(n->cell, layer, len) == 0 ? n->cell + len : n->cell;
	const char *what = ap_arena_printf(x->ctx->arena, "%.*s %s %s", (int)(number ? number - layer
		: 0), layer, inside,
		n->type);
	const char *here = ap_arena_printf(x->ctx->arena, "%s %s", layer, what);
	bool fresh;
	ap_id at = ap_map_put_str(x->met, here, &fresh);

	if (fresh)
		AP_PUSH(x->ctx->arena, x->times, 0);
	return ap_arena_printf(x->ctx->arena, "%s %" PRIu32, what, x->times.v[at]++);
}

/* Gives one number to operators that are the same part of different layers, and to those that share one
 * with them. */
static enum ap_status tie(struct applying *x, const struct ap_constraint *c, const bool *meant)
{
	struct ap_map *parts = ap_map_create(x->ctx->arena);
	struct ap_family_chain chain;
	AP_VEC(ap_id) first = {0};
	bool tied = false;

	ap_family_chain(x->ctx, x->g, &chain);
	x->met = ap_map_create(x->ctx->arena);
	x->times.n = 0;
	for (ap_id i = 0; chain.names && i < x->g->nnode; i++) {
		const char *part = chain.layer[i] >= 0 ? part_of(x, &chain, i) : NULL;
		uint32_t *own = &x->node[i].same;
		bool fresh;
		ap_id at;

		if (!part || !meant[i])
			continue;
		at = ap_map_put_str(parts, part, &fresh);
		if (fresh) {
			*own = *own ? *own : ++x->groups;
			AP_PUSH(x->ctx->arena, first, i);
			continue;
		}
		tied = true;
		for (ap_id k = 0; *own && k < x->g->nnode; k++)
			if (k != i && x->node[k].same == *own)
				x->node[k].same = x->node[first.v[at]].same;
		*own = x->node[first.v[at]].same;
	}
	return tied ? AP_OK : fault(x, AP_USAGE, AP_NONE, "rule-matches", ap_arena_printf(x->ctx->arena,
		"%s: no two operators that are meant are the same part of different layers (cells "
		"NAME.0, NAME.1, ...)",
		said(x, c)));
}

enum ap_status ap_constraints_apply(struct ap_ctx *ctx, const struct ap_constraints *c,
	const struct ap_graph *g,
	int64_t ndev, const struct ap_step *step, const struct ap_graph **out)
{
	static enum ap_status (*const how[])(struct applying *, const struct ap_constraint *,
		const bool *) = {
		[AP_DEMAND_PIN] = pin, [AP_DEMAND_FORBID] = forbid, [AP_DEMAND_SAME] = tie};
	static const enum ap_demand order[] = {AP_DEMAND_FORBID, AP_DEMAND_PIN, AP_DEMAND_SAME};
	struct applying x = {.ctx = ctx, .all = c, .g = g, .ndev = ndev, .step = step};
	bool *meant;

	*out = g;
	if (!c->n)
		return AP_OK;
	*out = ap_graph_with_nodes(ctx, g, &x.node);
	meant = AP_NEW_N(ctx->arena, bool, g->nnode);
	x.pinned = AP_NEW_N(ctx->arena, const struct ap_constraint *, g->nnode);
	x.barred = AP_NEW_N(ctx->arena, const struct ap_constraint *, g->nnode);
	for (size_t d = 0; d < AP_COUNT(order); d++)
		for (uint32_t i = 0; i < c->n; i++) {
			if (c->v[i].demand != order[d])
				continue;
			AP_TRY(find(&x, &c->v[i], meant));
			AP_TRY(how[order[d]](&x, &c->v[i], meant));
		}
	return AP_OK;
}
