/* SPDX-License-Identifier: Apache-2.0 */
/* An operator-strategy file that MindSpore saved, held against a plan. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "ckpt/op_strategy_parts.h"
#include "graph/cell.h"

/* Lengths of the vectors, or of the tensor_maps, of a value. */
struct form {
	uint32_t n;
	const uint8_t *rank;
};

static bool is_layout(enum ap_op_map map)
{
	return map == AP_OP_LAYOUT || map == AP_OP_OUT_LAYOUT;
}

static const struct ap_jv *first_of(const struct ap_jv *v, enum ap_op_map map)
{
	return ap_jv_first(is_layout(map) ? v : ap_jv_get(v, "parallel_strategy"));
}

static size_t length_of(const struct ap_jv *v, enum ap_op_map map)
{
	return ap_jv_count(is_layout(map) ? ap_jv_get(v, "tensor_map") : v);
}

/* The values of a result may be those of the first results only. */
static bool form_fits(const struct ap_jv *value, enum ap_op_map map, struct form form)
{
	uint32_t i = 0;

	for (const struct ap_jv *v = first_of(value, map); v; v = ap_jv_next(v), i++)
		if (i == form.n || length_of(v, map) != form.rank[i])
			return false;
	return i == form.n || !ap_op_map_is_asked(map);
}

static const char *text_of_value(struct ap_ctx *ctx, const struct ap_jv *value, enum ap_op_map map)
{
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	for (const struct ap_jv *v = first_of(value, map); v; v = ap_jv_next(v))
		ap_str_addf(&s, "%s%zu", s.len ? ", " : "", length_of(v, map));
	return s.len ? s.s : "none";
}

static const char *text_of_form(struct ap_ctx *ctx, struct form form)
{
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	for (uint32_t i = 0; i < form.n; i++)
		ap_str_addf(&s, "%s%d", i ? ", " : "", form.rank[i]);
	return s.len ? s.s : "none";
}

static struct form form_of_tensors(struct ap_ctx *ctx, const struct ap_operand *t, uint32_t n)
{
	uint8_t *rank = AP_NEW_N(ctx->scratch, uint8_t, n);

	for (uint32_t i = 0; i < n; i++)
		rank[i] = t[i].rank;
	return (struct form){n, rank};
}

static struct form form_of_node(struct ap_ctx *ctx, const struct ap_plan *p, ap_id node, enum ap_op_map map)
{
	const struct ap_bound *b = p->op[node].place.bound;
	struct ap_op_cuts cuts;

	if (map == AP_OP_LAYOUT)
		return form_of_tensors(ctx, b->in, b->nin);
	if (map != AP_OP_STRATEGY)
		return form_of_tensors(ctx, b->out, b->nout);
	cuts = ap_op_cuts_of_node(ctx, p, node);
	return (struct form){cuts.n, cuts.rank};
}

bool ap_op_is_kept(const struct ap_node *n)
{
	return strcmp(n->type, "Reshape") == 0;
}

bool ap_op_says_nothing(const struct ap_jv *value)
{
	return !ap_jv_first(ap_jv_get(value, "parallel_strategy"));
}

static bool fits_inputs(struct ap_ctx *ctx, const struct ap_op_name *name, const struct ap_plan *p)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_op_cuts cuts = ap_op_cuts_of_inputs(ctx, p);
	bool fits = !name->at[AP_OP_NESTED];

	for (int map = 0; map < AP_OP_MAP_COUNT; map++)
		if (name->at[map] && (map == AP_OP_STRATEGY || map == AP_OP_LAYOUT))
			fits = fits && form_fits(name->at[map], (enum ap_op_map)map,
				(struct form){cuts.n, cuts.rank});
	ap_arena_release(ctx->scratch, mark);
	return fits;
}

bool ap_op_is_dataset(struct ap_ctx *ctx, const struct ap_op_template *t, ap_id id, const struct ap_plan *p)
{
	return ap_op_prim_is(ap_op_name_at(t, id), AP_OP_DATASET) && fits_inputs(ctx, &t->name[id], p);
}

struct checking {
	struct ap_ctx *ctx;
	const struct ap_op_template *t;
	const struct ap_plan *p;
	enum ap_status st;
};

static const struct ap_jv *place_of(const struct ap_op_template *t, ap_id id)
{
	const struct ap_op_name *name = &t->name[id];

	return name->at[AP_OP_STRATEGY] ? name->at[AP_OP_STRATEGY]
		: name->at[AP_OP_LAYOUT] ? name->at[AP_OP_LAYOUT] : name->at[AP_OP_NESTED];
}

/* Names that need no decision of the plan. */
static bool may_stay(const char *name)
{
	static const char *const prims[] = {"Reshape", "Cast", "VirtualOutput", NULL};

	for (int i = 0; prims[i]; i++)
		if (ap_op_prim_is(name, prims[i]))
			return true;
	return false;
}

static void check_alone(struct checking *c, ap_id id)
{
	const char *name = ap_op_name_at(c->t, id);

	if (may_stay(name) || ap_op_is_dataset(c->ctx, c->t, id, c->p))
		return;
	if (!ap_op_prim_is(name, AP_OP_DATASET))
		c->st = ap_json_report(c->ctx, c->t->doc, place_of(c->t, id), AP_ERROR, AP_MEANING, name,
			"op-strategy-operators", "no operator of the plan has this name; the graph has to be "
			"of the network that the file was saved of");
	else if (ap_json_report(c->ctx, c->t->doc, place_of(c->t, id), AP_WARNING, AP_OK, name,
			"op-strategy-inputs", "does not take what the graph's inputs are; what is said of it "
			"stays as it was saved") != AP_OK)
		c->st = AP_MEANING;
}

/* The number and lengths of vectors tell whether it is the operator that is meant. */
static void check_form(struct checking *c, ap_id id, ap_id node, enum ap_op_map map)
{
	struct ap_mark mark = ap_arena_mark(c->ctx->scratch);
	const struct ap_jv *value = c->t->name[id].at[map];
	struct form form = form_of_node(c->ctx, c->p, node, map);

	if (!form_fits(value, map, form))
		c->st = ap_json_report(c->ctx, c->t->doc, value, AP_ERROR, AP_MEANING,
			ap_op_name_at(c->t, id), "op-strategy-form",
			"has %s of these lengths: %s; operator \"%s\" of the plan takes: %s",
			is_layout(map) ? "layouts" : "vectors", text_of_value(c->ctx, value, map),
			ap_diag_name(c->ctx->diag, c->p->graph->node[node].name),
			text_of_form(c->ctx, form));
	ap_arena_release(c->ctx->scratch, mark);
}

static void check_pair(struct checking *c, ap_id id, ap_id node)
{
	const struct ap_op_name *name = &c->t->name[id];

	if (ap_op_is_kept(&c->p->graph->node[node]))
		return;
	for (int map = 0; map < AP_OP_MAP_COUNT; map++) {
		if (!name->at[map])
			continue;
		if (map == AP_OP_NESTED || map == AP_OP_OUT_NESTED)
			c->st = ap_json_report(c->ctx, c->t->doc, name->at[map], AP_ERROR, AP_MEANING,
				ap_op_name_at(c->t, id), "op-strategy-nested",
				"has layouts of tuples of tensors, in which no plan can be said; save the "
				"file without a Layout of such operands");
		else if (map != AP_OP_STRATEGY || !name->at[AP_OP_LAYOUT] ||
			!ap_op_says_nothing(name->at[map]))
			check_form(c, id, node, (enum ap_op_map)map);
	}
}

/* MindSpore asks for the names that it would save with the plan's calls of recompute(). */
static enum ap_status check_recomputed(struct checking *c, const struct ap_op_match *match)
{
	struct ap_where where = {.file = ap_json_file(c->t->doc)};
	struct ap_mark mark = ap_arena_mark(c->ctx->scratch);
	const struct ap_map *cells = ap_op_recomputed(c->ctx, c->p);
	uint32_t n = 0;

	for (ap_id i = 0; i < c->t->n; i++) {
		const struct ap_node *node = match->node[i] == AP_NONE ? NULL
			: &c->p->graph->node[match->node[i]];

		n += node && ap_op_says_recomputed(ap_op_name_at(c->t, i)) !=
			(ap_cell_find(cells, node->cell) != AP_NONE);
	}
	ap_arena_release(c->ctx->scratch, mark);
	if (!n)
		return AP_OK;
	return ap_diag_add(c->ctx->diag, AP_WARNING, AP_OK, &where, "op-strategy-recompute",
		"%" PRIu32 " names begin with \"" AP_OP_RECOMPUTED "\" where the plan does not recompute "
		"their cell, or do not where it does; MindSpore will ask for others, unless the file was "
		"saved with the calls of recompute() that the training makes", n);
}

enum ap_status ap_op_template_check(struct ap_ctx *ctx, const struct ap_op_template *t,
	const struct ap_plan *p)
{
	struct checking c = {.ctx = ctx, .t = t, .p = p};
	struct ap_where where = {.file = ap_json_file(t->doc)};
	struct ap_op_match match;

	ap_op_match_make(ctx, t, p->graph, &match);
	for (ap_id i = 0; i < t->n; i++)
		if (match.node[i] == AP_NONE)
			check_alone(&c, i);
		else
			check_pair(&c, i, match.node[i]);
	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (ap_op_is_asked(&p->graph->node[i]) && !match.found[i])
			c.st = ap_json_report(ctx, t->doc, ap_json_root(t->doc), AP_ERROR, AP_MEANING, NULL,
				"op-strategy-operators", "no name for operator \"%s\" of the plan",
				ap_diag_path(ctx->diag, p->graph->node[i].name));
	AP_TRY(c.st);
	AP_TRY(check_recomputed(&c, &match));
	if (match.renumbered)
		AP_TRY(ap_diag_add(ctx->diag, AP_NOTE, AP_OK, &where, "op-strategy-numbers",
			"%" PRIu32 " of %" PRIu32 " names have other numbers than the plan's; they were "
			"matched by scope and type, in the order of their numbers", match.renumbered, t->n));
	return AP_OK;
}
