/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/ckpt_match.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "ckpt/ckpt_layouts.h"
#include "ckpt/ckpt_make.h"
#include "graph/graph.h"
#include "rule/op.h"
#include "shard/space.h"
#include "shard/strategy.h"

enum { FEW = 10 }; /* names listed per message */

/* A list of names for a message: "a", "b" and 3 more. */
struct names {
	struct ap_ctx *ctx;
	struct ap_str text;
	uint32_t n;
};

static void names_add(struct names *l, const char *name)
{
	if (!l->n)
		ap_str_init(&l->text, l->ctx->arena);
	if (l->n++ < FEW)
		ap_str_addf(&l->text, "%s\"%s\"", l->n > 1 ? ", " : "", ap_diag_name(l->ctx->diag, name));
}

static const char *names_text(struct names *l)
{
	if (l->n > FEW)
		ap_str_addf(&l->text, " and %" PRIu32 " more", l->n - FEW);
	return l->text.s;
}

static struct ap_map *param_map(struct ap_ctx *ctx, const struct ap_graph *g, ap_id *tensor)
{
	struct ap_map *m = ap_map_create(ctx->scratch);

	for (ap_id i = 0; i < g->ntensor; i++)
		if (g->tensor[i].kind == AP_TENSOR_PARAM)
			tensor[ap_map_put_str(m, g->tensor[i].name, NULL)] = i;
	return m;
}

/* The parameter of a layout, or that an optimizer state was cloned from. */
static ap_id find_param(const struct ap_map *params, const char *layout_name)
{
	const char *name = ap_ckpt_bare_name(layout_name), *prefix, *source;
	ap_id id = ap_map_get_str(params, name);
	char buf[32];

	for (size_t i = 0; id == AP_NONE && (prefix = ap_ckpt_state_prefix(i, buf)); i++)
		if ((source = ap_ckpt_state_source(name, prefix)))
			id = ap_map_get_str(params, source);
	return id;
}

static enum ap_status set_shape(struct ap_ctx *ctx, const struct ap_ckpt *c,
	const struct ap_tensor *t, struct ap_ckpt_layout *l)
{
	const char *name = ap_diag_name(ctx->diag, l->param_name);

	if (ap_ckpt_rank(l) != t->shape.rank)
		return ap_ckpt_report(ctx, c, AP_ERROR, NULL, "ckpt-shape",
			"layout \"%s\": tensor_map of %" PRIu32
			" dimensions; the graph's parameter has %d",
			name, ap_ckpt_rank(l), t->shape.rank);
	for (uint32_t d = 0; d < t->shape.rank; d++)
		if (t->shape.dim[d] % ap_ckpt_parts(l, d))
			return ap_ckpt_report(ctx, c, AP_ERROR, NULL, "ckpt-shape",
				"layout \"%s\": %" PRId64 " parts of dimension %" PRIu32
				", which is %" PRId64,
				name, ap_ckpt_parts(l, d), d, t->shape.dim[d]);
	l->tensor_shape = (struct ap_ckpt_vec){t->shape.rank, t->shape.dim};
	l->has_shape = true;
	return AP_OK;
}

enum ap_status ap_ckpt_add_shapes(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_ckpt *c)
{
	struct ap_ckpt_layout *layout =
		ap_arena_memdup(ctx->arena, c->layout, c->nlayout * sizeof *layout);
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	ap_id *tensor = AP_NEW_N(ctx->scratch, ap_id, g->ntensor);
	struct ap_map *params = param_map(ctx, g, tensor);
	enum ap_status st = AP_OK, one;
	struct names missing = {.ctx = ctx};

	for (uint32_t i = 0; i < c->nlayout; i++) {
		ap_id id = find_param(params, layout[i].param_name);

		if (id == AP_NONE)
			names_add(&missing, layout[i].param_name);
		else if ((one = set_shape(ctx, c, &g->tensor[tensor[id]], &layout[i])) != AP_OK)
			st = one;
	}
	ap_arena_release(ctx->scratch, mark);
	c->layout = layout;
	if (!missing.n)
		return st;
	return ap_ckpt_report(ctx, c, AP_ERROR, NULL, "ckpt-parameters",
		"the graph %s has no parameters for the layouts of %s",
		ap_diag_name(ctx->diag, g->file), names_text(&missing));
}

struct match {
	struct ap_ctx *ctx;
	const struct ap_ckpt *c;
	const struct ap_graph *g;
	int64_t ndev;
	const struct ap_step *step;
	const uint32_t *item_of; /* [nnode], UINT32_MAX: none */
	const int32_t **counts;
	enum ap_level level; /* of messages about operators that are only in file or graph */
	uint32_t nmatched; /* operators with an item */
	uint32_t nstage; /* pipeline stages of the step */
	uint32_t nmissing; /* operators with a parameter but no item */
	enum ap_status misplaced; /* an operator and its item are in different stages */
};

/* Is the operator one that checkpoints hold? MindSpore also writes items of Reshape, but cannot
 * load them. */
static bool is_pinned(const struct ap_node *node)
{
	return node->param != AP_NONE && ap_op_has_strategy(node->bound.row);
}

/* Has the item the key? */
static bool has_key(const struct match *m, uint32_t item, const char *key)
{
	return item < m->c->nitem && !strcmp(m->c->item[item].node_name, key);
}

/* The item of a stage among adjacent items with its key, or the first if the stage is -1; UINT32_MAX if there
 * is none. */
static uint32_t item_in(const struct match *m, uint32_t first, int32_t stage)
{
	const char *key = m->c->item[first].node_name;

	for (uint32_t i = first; has_key(m, i, key); i++)
		if (stage < 0 || m->c->item[i].stage == (uint32_t)stage)
			return i;
	return UINT32_MAX;
}

/* The item of the node's stage; else one in whose stage an operator has this key, as a merged JSON file keeps
 * one item of a key for all stages (placed: which are such); UINT32_MAX after a message. */
static uint32_t item_for(struct match *m, ap_id node, uint32_t first, const bool *placed)
{
	const char *key = m->c->item[first].node_name;
	int32_t stage = m->nstage > 1 ? m->g->node[node].stage : -1;
	uint32_t own = item_in(m, first, stage);

	if (own != UINT32_MAX)
		return own;
	for (uint32_t i = first; has_key(m, i, key); i++)
		if (placed[i])
			return i;
	m->misplaced = ap_ckpt_report(m->ctx, m->c, AP_ERROR, m->g->node[node].name, "ckpt-stage",
		"is in stage %" PRId32 ", strategy \"%s\" in stage %" PRIu32, stage,
		ap_diag_name(m->ctx->diag, key), m->c->item[first].stage);
	return UINT32_MAX;
}

/* Finds the item of each node. Nodes with only frozen parameters are not pinned. */
static enum ap_status join(struct match *m, uint32_t *item_of)
{
	struct ap_map *keys = ap_map_create(m->ctx->scratch);
	uint32_t *first = AP_NEW_N(m->ctx->scratch, uint32_t, m->c->nitem);
	bool *used = AP_NEW_N(m->ctx->scratch, bool, m->c->nitem), fresh;
	bool *placed = AP_NEW_N(m->ctx->scratch, bool, m->c->nitem);
	struct names extra = {.ctx = m->ctx};

	for (uint32_t i = 0; i < m->c->nitem; i++) {
		ap_id id = ap_map_put_str(keys, m->c->item[i].node_name, &fresh);

		if (fresh)
			first[id] = i;
	}
	for (ap_id i = 0; i < m->g->nnode; i++) {
		const char *key = ap_node_key(m->ctx, m->g, i);
		ap_id id = key ? ap_map_get_str(keys, key) : AP_NONE;
		uint32_t own;

		if (id == AP_NONE && (key = ap_ckpt_key(m->ctx, m->g, i, true)))
			id = ap_map_get_str(keys, key); /* the file may include frozen parameters */
		item_of[i] = UINT32_MAX;
		if (id == AP_NONE)
			continue;
		used[id] = true;
		if (!is_pinned(&m->g->node[i]))
			continue;
		item_of[i] = first[id];
		own = m->nstage > 1 ? item_in(m, first[id], m->g->node[i].stage) : UINT32_MAX;
		if (own != UINT32_MAX)
			placed[own] = true;
		m->nmatched++;
	}
	for (ap_id i = 0; i < m->g->nnode; i++)
		if (item_of[i] != UINT32_MAX)
			item_of[i] = item_for(m, i, item_of[i], placed);
	for (uint32_t i = 0; i < m->c->nitem; i++)
		if (!used[ap_map_get_str(keys, m->c->item[i].node_name)])
			names_add(&extra, m->c->item[i].node_name);
	m->item_of = item_of;
	if (m->misplaced != AP_OK || !extra.n || m->level == AP_NOTE)
		return m->misplaced;
	return ap_ckpt_report(m->ctx, m->c, m->level, NULL, "ckpt-operators",
		"no operator of the graph %s matches %s", ap_diag_name(m->ctx->diag, m->g->file),
		names_text(&extra));
}

bool ap_ckpt_has_stages(struct ap_ctx *ctx, const struct ap_ckpt *c, const struct ap_graph *staged)
{
	struct ap_ctx quiet = ap_diag_apart(ctx);
	struct match m = {.ctx = &quiet, .c = c, .g = staged, .level = AP_NOTE, .nstage = UINT32_MAX};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	bool all = join(&m, AP_NEW_N(ctx->scratch, uint32_t, staged->nnode)) == AP_OK;

	ap_arena_release(ctx->scratch, mark);
	return all;
}

const int32_t *ap_ckpt_stages_said(struct ap_ctx *ctx, const struct ap_ckpt *c, const struct ap_graph *g)
{
	struct ap_ctx quiet = ap_diag_apart(ctx);
	struct match m = {.ctx = &quiet, .c = c, .g = g, .level = AP_NOTE, .nstage = 1};
	int32_t *stage = AP_NEW_N(ctx->arena, int32_t, g->nnode);
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	uint32_t *item_of = AP_NEW_N(ctx->scratch, uint32_t, g->nnode);
	uint32_t *readers = AP_NEW_N(ctx->scratch, uint32_t, c->nitem);

	(void)join(&m, item_of);
	for (ap_id i = 0; i < g->nnode; i++)
		if (item_of[i] != UINT32_MAX)
			readers[item_of[i]]++;
	for (ap_id i = 0; i < g->nnode; i++) {
		uint32_t item = item_of[i];
		bool one = item != UINT32_MAX && readers[item] == 1 &&
			!has_key(&m, item + 1, c->item[item].node_name) && c->item[item].stage <= INT32_MAX;

		stage[i] = one ? (int32_t)c->item[item].stage : -1;
	}
	ap_arena_release(ctx->scratch, mark);
	return stage;
}

/* Checks that every operator with a parameter is in the file; a truncated file lacks some. */
static enum ap_status check_whole(struct match *m)
{
	struct names missing = {.ctx = m->ctx};
	uint32_t expected = 0;

	for (ap_id i = 0; i < m->g->nnode; i++) {
		if (!is_pinned(&m->g->node[i]))
			continue;
		expected++;
		if (m->item_of[i] == UINT32_MAX)
			names_add(&missing, m->g->node[i].name);
	}
	m->nmissing = missing.n;
	if (!missing.n || m->misplaced != AP_OK || m->level == AP_NOTE)
		return AP_OK;
	return ap_ckpt_report(m->ctx, m->c, m->level, NULL, "ckpt-operators",
		"holds %" PRIu32 " of %" PRIu32 " operators with a parameter; missing: %s",
		expected - missing.n, expected, names_text(&missing));
}

/* Reports stages outside the pipeline or, if operators are missing, the stages present. */
static enum ap_status check_stages(struct match *m)
{
	const uint32_t *stage;
	uint32_t n = ap_ckpt_stages(m->ctx, m->c, &stage);
	uint32_t last = n ? stage[n - 1] : 0;
	bool lacks = m->nmissing > 0 && m->level == AP_ERROR && n < m->nstage;

	if (!n || (last < m->nstage && !lacks))
		return AP_OK;
	if (n > 1 && m->nstage == 1)
		return ap_ckpt_report(m->ctx, m->c, AP_ERROR, NULL, "ckpt-stage",
			"holds several pipeline stages (%" PRIu32 " and %" PRIu32
			"); one is expected", stage[0], stage[1]);
	return ap_ckpt_report(m->ctx, m->c, AP_ERROR, NULL, "ckpt-stage",
		"holds %" PRIu32 " pipeline stage%s, %sstage %" PRIu32 "; expected all of %" PRIu32
		", from 0 on", n, n == 1 ? "" : "s", n == 1 ? "" : "the last one ", last, m->nstage);
}

static enum ap_status check_devices(struct match *m)
{
	int64_t devices;

	if (m->g->devices && m->c->nlayout > 0)
		return ap_ckpt_report(m->ctx, m->c, AP_ERROR, NULL, "ckpt-devices",
			"is a strategy checkpoint, whose stages have equal numbers of devices; expected a "
			"plan file with --stage-devices");
	for (uint32_t i = 0; i < m->c->nlayout; i++) {
		const struct ap_ckpt_layout *l = &m->c->layout[i];

		if (ap_product(l->dev_matrix.v, l->dev_matrix.n, &devices) && devices == m->ndev)
			continue;
		return ap_ckpt_report(m->ctx, m->c, AP_ERROR, NULL, "ckpt-devices",
			"made for %" PRId64 " devices (layout \"%s\"); %s has %" PRId64,
			devices, ap_diag_name(m->ctx->diag, l->param_name),
			m->nstage > 1 ? "a pipeline stage" : "the machine", m->ndev);
	}
	return AP_OK;
}

/* Reports parameters without a layout: an error if the file has some layouts, else a warning, as
 * MindSpore accepts it. */
static enum ap_status check_layouts(struct match *m)
{
	struct ap_map *held = ap_map_create(m->ctx->scratch);
	struct names missing = {.ctx = m->ctx};
	bool fresh;

	for (uint32_t i = 0; i < m->c->nlayout; i++)
		ap_map_put_str(held, ap_ckpt_bare_name(m->c->layout[i].param_name), NULL);
	for (ap_id i = 0; i < m->g->nnode; i++) {
		const struct ap_node *n = &m->g->node[i];

		for (uint32_t x = 0; m->item_of[i] != UINT32_MAX && x < n->bound.nin; x++) {
			const struct ap_tensor *t = &m->g->tensor[n->in[x]];

			if (t->kind != AP_TENSOR_PARAM || !t->trainable)
				continue;
			ap_map_put_str(held, t->name, &fresh);
			if (fresh)
				names_add(&missing, t->name);
		}
	}
	if (!missing.n)
		return AP_OK;
	return ap_ckpt_report(m->ctx, m->c, m->c->nlayout ? AP_ERROR : AP_WARNING, NULL, "ckpt-parameters",
		"holds no layout of %s, which MindSpore's tools then take for whole",
		names_text(&missing));
}

static enum ap_status check_known(struct match *m)
{
	ap_id *tensor = AP_NEW_N(m->ctx->scratch, ap_id, m->g->ntensor);
	struct ap_map *params = param_map(m->ctx, m->g, tensor);
	struct names extra = {.ctx = m->ctx};

	for (uint32_t i = 0; i < m->c->nlayout; i++) {
		const char *name = ap_ckpt_bare_name(m->c->layout[i].param_name);

		/* a parameter, or one after prefixes: states are cloned under many names */
		while (name && ap_map_get_str(params, name) == AP_NONE)
			name = strchr(name, '.') ? strchr(name, '.') + 1 : NULL;
		if (!name)
			names_add(&extra, m->c->layout[i].param_name);
	}
	if (!extra.n)
		return AP_OK;
	return ap_ckpt_report(m->ctx, m->c, AP_ERROR, NULL, "ckpt-parameters",
		"the graph %s has no parameters for the layouts of %s",
		ap_diag_name(m->ctx->diag, m->g->file), names_text(&extra));
}

static enum ap_status fill_counts(struct match *m, ap_id node, const struct ap_ckpt_item *item)
{
	const struct ap_bound *b = &m->g->node[node].bound;
	struct ap_mark mark = ap_arena_mark(m->ctx->scratch);
	uint8_t *rank = AP_NEW_N(m->ctx->scratch, uint8_t, item->n);
	int32_t(*cut)[AP_MAX_RANK] = ap_arena_alloc(m->ctx->scratch, item->n, sizeof *cut);
	int32_t *count = AP_NEW_N(m->ctx->arena, int32_t, AP_MAX_FACTOR);
	const char *why = NULL;
	bool fits;

	for (uint32_t i = 0; i < item->n; i++) {
		rank[i] = (uint8_t)item->strategy[i].n;
		for (uint32_t d = 0; d < rank[i]; d++)
			cut[i][d] = (int32_t)item->strategy[i].v[d];
	}
	fits = ap_space_from_strategy(m->ctx, b, ap_graph_devices(m->g, node, m->ndev), m->step,
		item->n, rank, (const int32_t(*)[AP_MAX_RANK])cut, count, &why);
	ap_arena_release(m->ctx->scratch, mark);
	if (!fits)
		return ap_ckpt_report(m->ctx, m->c, AP_ERROR, m->g->node[node].name, "ckpt-strategy",
			"strategy \"%s\": %s", ap_diag_name(m->ctx->diag, item->node_name), why);
	m->counts[node] = count;
	return AP_OK;
}

/* Sets counts from items; one without vectors is of an operator for which the script gives
 * layouts. */
static enum ap_status fill_all(struct match *m)
{
	bool nested = false; /* a dimension is cut by several axes, which only layouts in a script do */
	enum ap_status st = AP_OK, one;

	for (uint32_t i = 0; i < m->c->nlayout; i++)
		nested = nested || m->c->layout[i].nmap > 1;
	for (ap_id i = 0; i < m->g->nnode; i++) {
		const struct ap_node *node = &m->g->node[i];
		const struct ap_ckpt_item *item;

		if (m->item_of[i] == UINT32_MAX)
			continue;
		item = &m->c->item[m->item_of[i]];
		one = item->n ? fill_counts(m, i, item)
			: nested || !node->bound.nin ? AP_OK
			: ap_ckpt_report(m->ctx, m->c, AP_ERROR, node->name, "ckpt-strategy",
				"strategy \"%s\" holds no vectors; expected one for each operand",
				ap_diag_name(m->ctx->diag, item->node_name));
		st = one == AP_OK ? st : one;
	}
	return st;
}

static enum ap_status match_all(struct match *m, const int32_t *const **out)
{
	enum ap_status found[6];

	m->nstage = m->step->pipe ? (uint32_t)m->step->pipe->nstage : 1;
	m->counts = AP_NEW_N(m->ctx->arena, const int32_t *, m->g->nnode);
	found[0] = join(m, AP_NEW_N(m->ctx->arena, uint32_t, m->g->nnode));
	found[1] = check_devices(m);
	found[2] = check_whole(m);
	found[3] = check_stages(m);
	found[4] = m->level != AP_WARNING || m->nmatched ? AP_OK
		: ap_ckpt_report(m->ctx, m->c, AP_ERROR, NULL, "ckpt-operators",
			"holds no operator of the graph %s", ap_diag_name(m->ctx->diag, m->g->file));
	found[5] = found[1] == AP_OK ? fill_all(m) : AP_OK;
	*out = m->counts;
	for (size_t i = 0; i < AP_COUNT(found); i++)
		AP_TRY(found[i]);
	if (m->level == AP_ERROR) {
		AP_TRY(check_layouts(m));
		AP_TRY(check_known(m));
	}
	return ap_ckpt_match_layouts(m->ctx, m->c, m->g, m->ndev, m->counts);
}

enum ap_status ap_ckpt_fits(struct ap_ctx *ctx, const struct ap_ckpt *c, const struct ap_graph *g)
{
	const struct ap_step plain = AP_STEP_DEFAULT;
	struct ap_pipe pipe = {.nstage = 1, .nsegment = 1};
	struct ap_step step = plain;
	const int32_t *const *counts;
	const uint32_t *stage;
	uint32_t n = ap_ckpt_stages(ctx, c, &stage);
	struct match m = {.ctx = ctx, .c = c, .g = g, .step = &step, .level = AP_NOTE};

	if (c->nlayout == 0 || !ap_product(c->layout[0].dev_matrix.v, c->layout[0].dev_matrix.n, &m.ndev))
		return AP_OK;
	pipe.nstage = n ? (int32_t)stage[n - 1] + 1 : 1;
	step.pipe = &pipe;
	return match_all(&m, &counts);
}

enum ap_status ap_ckpt_counts(struct ap_ctx *ctx, const struct ap_ckpt *c, const struct ap_graph *g,
	int64_t ndev, const struct ap_step *step, const int32_t *const **out)
{
	struct match m = {.ctx = ctx, .c = c, .g = g, .ndev = ndev, .step = step,
		.level = AP_ERROR};

	return match_all(&m, out);
}

enum ap_status ap_ckpt_counts_some(struct ap_ctx *ctx, const struct ap_ckpt *c,
	const struct ap_graph *g, int64_t ndev, const struct ap_step *step,
	const int32_t *const **out)
{
	struct match m = {.ctx = ctx, .c = c, .g = g, .ndev = ndev, .step = step,
		.level = AP_WARNING};

	return match_all(&m, out);
}
