/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/ckpt_layouts.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "rule/op.h"
#include "shard/layout.h"

struct holding {
	struct ap_ctx *ctx;
	const struct ap_ckpt *c;
	struct ap_map *layouts; /* by name; ids are indices */
	struct ap_map *bare; /* names without stages */
	enum ap_status st;
};

static void fault(struct holding *h, const char *oper, const char *check, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void fault(struct holding *h, const char *oper, const char *check, const char *fmt, ...)
{
	struct ap_where where = {.file = h->c->file, .oper = oper};
	va_list ap;

	va_start(ap, fmt);
	h->st = ap_diag_addv(h->ctx->diag, AP_ERROR, AP_MEANING, &where, check, fmt, ap);
	va_end(ap);
}

static const char *safe(struct holding *h, const char *name)
{
	return ap_diag_name(h->ctx->diag, name);
}

static void open_holding(struct ap_ctx *ctx, const struct ap_ckpt *c, struct holding *h)
{
	*h = (struct holding){.ctx = ctx, .c = c, .layouts = ap_map_create(ctx->scratch),
		.bare = ap_map_create(ctx->scratch)};
	for (uint32_t i = 0; i < c->nlayout; i++) {
		ap_map_put_str(h->layouts, c->layout[i].param_name, NULL);
		ap_map_put_str(h->bare, ap_ckpt_bare_name(c->layout[i].param_name), NULL);
	}
}

/* The layout of a parameter in a stage; NULL if there is none. */
static const struct ap_ckpt_layout *layout_of(struct holding *h, const char *param, uint32_t stage)
{
	ap_id id = ap_map_get_str(h->layouts, param);

	if (id == AP_NONE)
		id = ap_map_get_str(h->layouts, ap_arena_printf(h->ctx->scratch, "%" PRIu32 "-%s", stage,
			param));
	return id == AP_NONE ? NULL : &h->c->layout[id];
}

static const char *list_text(struct holding *h, const int64_t *v, uint32_t n)
{
	struct ap_str s;

	ap_str_init(&s, h->ctx->arena);
	ap_str_addc(&s, '[');
	for (uint32_t i = 0; i < n; i++)
		ap_str_addf(&s, "%s%" PRId64, i ? "," : "", v[i]);
	ap_str_addc(&s, ']');
	return s.s;
}

/* Parts of each dimension, in scratch. */
static const int64_t *parts_of(struct holding *h, const struct ap_ckpt_layout *l)
{
	int64_t *parts = AP_NEW_N(h->ctx->scratch, int64_t, ap_ckpt_rank(l));

	for (uint32_t d = 0; d < ap_ckpt_rank(l); d++)
		parts[d] = ap_ckpt_parts(l, d);
	return parts;
}

/* ---- strategies ---- */

/* The parameter name after "<type>_" if it has a layout; else all after the first '_'. */
static const char *param_of(struct holding *h, const char *key)
{
	const char *first = *key ? strchr(key + 1, '_') : NULL;

	for (const char *at = first; at; at = strchr(at + 1, '_'))
		if (ap_map_get_str(h->bare, at + 1) != AP_NONE)
			return at + 1;
	return first ? first + 1 : NULL;
}

/* Strategies of the operators named after a layout's parameter. */
struct said {
	const struct ap_ckpt_item *item; /* first with vectors, or NULL */
	bool agreed; /* one has a vector that matches the layout */
};

/* The type in "<type>_<param>". */
static const char *type_in(struct holding *h, const char *key, const char *param)
{
	return ap_arena_printf(h->ctx->scratch, "%.*s", (int)(param - key - 1), key);
}

/* Are the vectors of a type cuts of its operands? Some types, such as Tile, have others; other
 * types are unknown. */
static bool cuts_operands(const char *type)
{
	const struct ap_op_row *row = ap_op_next(NULL, type);
	bool all = row != NULL;

	for (; row; row = ap_op_next(row, type))
		all = all && !*row->strategy;
	return all;
}

static void hear_item(struct holding *h, const struct ap_ckpt_item *item, bool one_stage, struct said *said)
{
	const char *param = param_of(h, item->node_name);
	const struct ap_ckpt_layout *l = param ? layout_of(h, param, item->stage) : NULL;

	if (!param || item->n == 0)
		return;
	if (l) {
		struct said *s = &said[l - h->c->layout];

		const struct ap_ckpt_vec cut = {ap_ckpt_rank(l), parts_of(h, l)};

		s->item = s->item ? s->item : item;
		s->agreed = s->agreed || !cuts_operands(type_in(h, item->node_name, param));
		/* one of the vectors cuts the parameter, or the result of a Cast of it */
		for (uint32_t v = 0; v < item->n && !s->agreed; v++)
			s->agreed = ap_ckpt_vec_equal(&cut, &item->strategy[v]);
	} else if (one_stage && ap_op_next(NULL, type_in(h, item->node_name, param))) {
		fault(h, NULL, "ckpt-parameters", "strategy \"%s\": there is no layout of \"%s\"",
			safe(h, item->node_name), safe(h, param));
	}
}

static void check_strategies(struct holding *h)
{
	int64_t ndev = 0;
	bool one_stage = h->c->nlayout > 0; /* else other stages may own the parameter */
	struct said *said = AP_NEW_N(h->ctx->scratch, struct said, h->c->nlayout);

	if (h->c->nlayout > 0)
		(void)ap_product(h->c->layout[0].dev_matrix.v, h->c->layout[0].dev_matrix.n, &ndev);
	for (uint32_t i = 0; i < h->c->nitem; i++)
		one_stage = one_stage && h->c->item[i].stage == 0;
	for (uint32_t i = 0; i < h->c->nitem; i++) {
		struct ap_mark mark = ap_arena_mark(h->ctx->scratch);

		hear_item(h, &h->c->item[i], one_stage, said);
		/* operands are cut over all devices of the stage, or a divisor */
		for (uint32_t v = 0; v < h->c->item[i].n && ndev > 0; v++) {
			const struct ap_ckpt_vec *x = &h->c->item[i].strategy[v];
			int64_t product;

			if (!ap_product(x->v, x->n, &product) || ndev % product != 0)
				fault(h, NULL, "ckpt-strategy", "strategy \"%s\": vector %" PRIu32
					" is %s; a divisor of the layouts' %" PRId64 " devices is allowed",
					safe(h, h->c->item[i].node_name), v,
					list_text(h, x->v, x->n), ndev);
		}
		ap_arena_release(h->ctx->scratch, mark);
	}
	for (uint32_t i = 0; i < h->c->nlayout; i++) {
		const struct ap_ckpt_layout *l = &h->c->layout[i];

		if (said[i].item && !said[i].agreed)
			fault(h, NULL, "ckpt-layout", "layout \"%s\": cuts its dimensions into %s parts; "
				"strategy \"%s\" has no such vector", safe(h, l->param_name),
				list_text(h, parts_of(h, l), ap_ckpt_rank(l)),
				safe(h, said[i].item->node_name));
	}
}

/* ---- optimizer sharding ---- */

/* Number of ranks that hold the slice of rank 0; *reach: distance from first to last. */
static int64_t holders_of(const struct ap_ckpt_layout *l, int64_t *reach)
{
	int64_t n = 1, stride = 1;
	uint64_t used = 0; /* mask of axes that cut a dimension */

	for (uint32_t i = 0; i < l->nmap; i++)
		for (uint32_t j = 0; j < l->tensor_map[i].n; j++)
			if (l->tensor_map[i].v[j] >= 0)
				used |= UINT64_C(1) << l->tensor_map[i].v[j];
	*reach = 0;
	for (uint32_t a = 0; a < l->dev_matrix.n; a++) {
		int64_t size = l->dev_matrix.v[l->dev_matrix.n - 1 - a];

		if (!(used >> a & 1)) {
			n *= size;
			*reach += (size - 1) * stride;
		}
		stride *= size;
	}
	return n;
}

static void check_shard(struct holding *h, const struct ap_ckpt_layout *l)
{
	int64_t reach, n = holders_of(l, &reach), parts = l->weight_size == -1 ? n : l->weight_size;
	int64_t rows = l->has_shape && l->tensor_shape.n > 0 && ap_ckpt_rank(l) > 0
		? l->tensor_shape.v[0] / ap_ckpt_parts(l, 0) : 0;

	if (l->weight_step == 0)
		return;
	if (n < 2)
		fault(h, NULL, "ckpt-shard",
			"layout \"%s\": is dealt to the devices with one slice, "
				"but each device has a slice of its own", safe(h, l->param_name));
	else if (l->weight_step != reach / (n - 1))
		fault(h, NULL, "ckpt-shard",
			"layout \"%s\": opt_weight_shard_step %" PRId32 "; the %" PRId64
				" devices with one slice are %" PRId64 " apart",
				safe(h, l->param_name), l->weight_step,
			n, reach / (n - 1));
	else if (n % parts != 0)
		fault(h, NULL, "ckpt-shard", "layout \"%s\": opt_weight_shard_size %" PRId32 "; %" PRId64
			" devices have one slice", safe(h, l->param_name), l->weight_size, n);
	else if (rows > 0 && rows % parts != 0)
		fault(h, NULL, "ckpt-shard", "layout \"%s\": its slices of %" PRId64 " rows are dealt to %"
			PRId64 " devices", safe(h, l->param_name), rows, parts);
}

/* ---- states ---- */

/* The layout that a state was cloned from, in the same stage; NULL if it is no state. */
static const struct ap_ckpt_layout *source_of(struct holding *h, const struct ap_ckpt_layout *l)
{
	const char *name = ap_ckpt_bare_name(l->param_name), *prefix, *source;
	uint32_t stage = 0;
	char buf[32];

	(void)ap_ckpt_name_stage(l->param_name, &stage);
	for (size_t i = 0; (prefix = ap_ckpt_state_prefix(i, buf)); i++)
		if ((source = ap_ckpt_state_source(name, prefix)) &&
			ap_map_get_str(h->bare, source) != AP_NONE)
			return layout_of(h, source, stage);
	return NULL;
}

static const char *state_differs(const struct ap_ckpt_layout *a, const struct ap_ckpt_layout *b)
{
	if (!ap_ckpt_vec_equal(&a->dev_matrix, &b->dev_matrix))
		return "dev_matrix";
	if (a->nmap != b->nmap)
		return "tensor_map";
	for (uint32_t i = 0; i < a->nmap; i++)
		if (!ap_ckpt_vec_equal(&a->tensor_map[i], &b->tensor_map[i]))
			return "tensor_map";
	if (a->has_shape && b->has_shape && !ap_ckpt_vec_equal(&a->tensor_shape, &b->tensor_shape))
		return "tensor_shape";
	return a->weight_step != b->weight_step ? "opt_weight_shard_step"
		: a->weight_size != b->weight_size ? "opt_weight_shard_size" : NULL;
}

static void check_state(struct holding *h, const struct ap_ckpt_layout *l, const struct ap_map *own)
{
	const struct ap_ckpt_layout *of = source_of(h, l);
	const char *what = of ? state_differs(l, of) : NULL;

	if (what && ap_map_get_str(own, ap_ckpt_bare_name(l->param_name)) == AP_NONE)
		fault(h, NULL, "ckpt-state", "layout \"%s\": its %s is not that of \"%s\", from which it is "
			"cloned", safe(h, l->param_name), what, safe(h, of->param_name));
}

enum ap_status ap_ckpt_check_layouts(struct ap_ctx *ctx, const struct ap_ckpt *c)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_map *own = ap_map_create(ctx->scratch);
	struct holding h;

	open_holding(ctx, c, &h);
	/* a parameter that an operator is named after is no state, whatever its name */
	for (uint32_t i = 0; i < c->nitem; i++) {
		const char *param = param_of(&h, c->item[i].node_name);

		if (param)
			ap_map_put_str(own, param, NULL);
	}
	check_strategies(&h);
	for (uint32_t i = 0; i < c->nlayout; i++) {
		check_shard(&h, &c->layout[i]);
		check_state(&h, &c->layout[i], own);
	}
	ap_arena_release(ctx->scratch, mark);
	return h.st;
}

/* ---- a graph ---- */

/* Converts a layout to the graph's form; false if the axes that cut a dimension are not
 * adjacent. */
static bool read_layout(const struct ap_ckpt_layout *l, struct ap_layout *out)
{
	bool nested = l->nmap > 1;

	*out = (struct ap_layout){.rank = (int32_t)ap_ckpt_rank(l)};
	if (out->rank > AP_MAX_RANK)
		return false;
	for (uint32_t d = 0; d < (uint32_t)out->rank; d++) {
		const struct ap_ckpt_vec *map = &l->tensor_map[nested ? d : 0];
		struct ap_cut_dim *dim = &out->dim[d];

		dim->cut = 1;
		for (uint32_t j = nested ? map->n : d + 1; j-- > (nested ? 0 : d);) {
			int64_t stride = 1, size;

			if (map->v[j] < 0)
				continue;
			for (int64_t a = 0; a < map->v[j]; a++)
				stride *= l->dev_matrix.v[l->dev_matrix.n - 1 - a];
			size = l->dev_matrix.v[l->dev_matrix.n - 1 - map->v[j]];
			if (size == 1)
				continue;
			if (dim->cut > 1 && stride != (int64_t)dim->cut * dim->stride)
				return false;
			dim->stride = dim->cut > 1 ? dim->stride : (int32_t)stride;
			dim->cut *= (int32_t)size;
		}
	}
	return true;
}

static const char *layout_text(struct holding *h, const struct ap_layout *l)
{
	struct ap_str s;

	ap_str_init(&s, h->ctx->arena);
	for (int d = 0; d < l->rank; d++)
		ap_str_addf(&s, l->dim[d].cut > 1 ? "%s%d by %d" : "%s%d", d ? ", " : "[", l->dim[d].cut,
			l->dim[d].stride);
	ap_str_addc(&s, ']');
	return l->rank ? s.s : "[]";
}

/* Is the device matrix that of the operator, ignoring axes of size one? */
static bool same_devices(const struct ap_ckpt_layout *l, const struct ap_dev_matrix *dev)
{
	int n = 0;

	for (uint32_t a = 0; a < l->dev_matrix.n; a++) {
		if (l->dev_matrix.v[a] == 1)
			continue;
		while (n < dev->n && dev->axis[n] == 1)
			n++;
		if (n == dev->n || dev->axis[n++] != l->dev_matrix.v[a])
			return false;
	}
	while (n < dev->n && dev->axis[n] == 1)
		n++;
	return n == dev->n;
}

/* Does a layout match what a use of the parameter needs? *want: that layout. */
static bool agrees(const struct ap_bound *b, const int32_t *count, uint32_t operand, int64_t ndev,
	const struct ap_ckpt_layout *l, struct ap_layout *want)
{
	int32_t map[AP_MAX_RANK];
	struct ap_dev_matrix dev;
	struct ap_placement p;
	struct ap_layout is;

	ap_placement_make(b, count, ndev, &p);
	if (!ap_layout_make(&p, &b->in[operand], want))
		return true;
	ap_dev_matrix_standard(&p, &dev);
	return read_layout(l, &is) && ap_layout_equal(&is, want) &&
		(!ap_tensor_map(&p, &b->in[operand], &dev, map) || same_devices(l, &dev));
}

/* Checks that a layout is what one of the parameter's readers with a strategy in the file needs. */
static void check_cuts(struct holding *h, const struct ap_graph *g, const struct ap_tensor *t,
	int64_t ndev, const int32_t *const *counts, const struct ap_ckpt_layout *l)
{
	struct ap_layout first = {0}, is;
	bool others = false; /* some readers have no strategy in the file, such as Reshape: their
			dev_matrix is unknown */
	ap_id by = AP_NONE;

	for (uint32_t u = 0; u < t->nuse; u++) {
		ap_id node = t->use[u].node;
		struct ap_layout want;

		if (!counts[node]) {
			others = true;
			continue;
		}
		if (agrees(&g->node[node].bound, counts[node], t->use[u].operand, ndev, l, &want))
			return;
		first = by == AP_NONE ? want : first;
		by = by == AP_NONE ? node : by;
	}
	if (by == AP_NONE)
		return;
	if (!read_layout(l, &is) || !ap_layout_equal(&is, &first))
		fault(h, g->node[by].name, "ckpt-layout", "layout \"%s\": lies as %s (parts by stride); the "
			"operator's strategy wants %s", safe(h, l->param_name), layout_text(h, &is),
			layout_text(h, &first));
	else if (!others)
		fault(h, g->node[by].name, "ckpt-layout",
			"layout \"%s\": the dev_matrix %s is not that of the operator's strategy",
			safe(h, l->param_name), list_text(h, l->dev_matrix.v, l->dev_matrix.n));
}

static void check_param(struct holding *h, const struct ap_graph *g, const struct ap_tensor *t, int64_t ndev,
	const int32_t *const *counts, const struct ap_ckpt_layout *l)
{
	const struct ap_ckpt_vec shape = {t->shape.rank, t->shape.dim};
	struct ap_ckpt_layout shaped = *l;

	if (l->has_shape && !ap_ckpt_vec_equal(&l->tensor_shape, &shape))
		fault(h, NULL, "ckpt-shape", "layout \"%s\": tensor_shape %s; the graph's parameter is %s",
			safe(h, l->param_name), list_text(h, l->tensor_shape.v, l->tensor_shape.n),
			list_text(h, shape.v, shape.n));
	else
		check_cuts(h, g, t, ndev, counts, l);
	if (l->has_shape || ap_ckpt_rank(l) != shape.n)
		return;
	shaped.tensor_shape = shape;
	shaped.has_shape = true;
	check_shard(h, &shaped);
}

enum ap_status ap_ckpt_match_layouts(struct ap_ctx *ctx, const struct ap_ckpt *c, const struct ap_graph *g,
	int64_t ndev, const int32_t *const *counts)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct holding h;

	open_holding(ctx, c, &h);
	for (ap_id i = 0; i < g->ntensor; i++) {
		const struct ap_tensor *t = &g->tensor[i];
		int32_t stage = t->owner.node == AP_NONE ? 0 : g->node[t->owner.node].stage;
		const struct ap_ckpt_layout *l;

		if (t->kind != AP_TENSOR_PARAM)
			continue;
		l = layout_of(&h, t->name, stage > 0 ? (uint32_t)stage : 0);
		if (l)
			check_param(&h, g, t, ndev, counts, l);
	}
	ap_arena_release(ctx->scratch, mark);
	return h.st;
}
