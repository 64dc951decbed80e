/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/ckpt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"

enum { STAGE_DIGITS = 7, FEW = 10 };

enum ap_status ap_ckpt_report(struct ap_ctx *ctx, const struct ap_ckpt *c, enum ap_level level,
	const char *oper, const char *check, const char *fmt, ...)
{
	struct ap_where where = {.file = c->file, .oper = oper};
	enum ap_status st;
	va_list ap;

	va_start(ap, fmt);
	st = ap_diag_addv(ctx->diag, level, AP_MEANING, &where, check, fmt, ap);
	va_end(ap);
	return st;
}

bool ap_ckpt_vec_equal(const struct ap_ckpt_vec *a, const struct ap_ckpt_vec *b)
{
	return a->n == b->n && (!a->n || !memcmp(a->v, b->v, a->n * sizeof *a->v));
}

int64_t ap_ckpt_parts(const struct ap_ckpt_layout *l, uint32_t d)
{
	bool nested = l->nmap > 1;
	const struct ap_ckpt_vec *map = &l->tensor_map[nested ? d : 0];
	int64_t parts = 1;

	for (uint32_t j = nested ? 0 : d; j < (nested ? map->n : d + 1); j++)
		if (map->v[j] >= 0)
			parts *= l->dev_matrix.v[l->dev_matrix.n - 1 - map->v[j]];
	return parts;
}

uint32_t ap_ckpt_rank(const struct ap_ckpt_layout *l)
{
	uint32_t rank = 0;

	if (l->nmap <= 1)
		return l->nmap ? l->tensor_map->n : 0;
	while (rank < l->nmap && l->tensor_map[rank].n)
		rank++;
	return rank;
}
const char *ap_ckpt_state_prefix(size_t i, char buf[32])
{
	static const char *const others[] = {"accu_grads", "vhat", "mean_grad", "exp_avg"};
	const struct ap_optimizer *o;

	if (i < AP_COUNT(others))
		return others[i];
	i -= AP_COUNT(others);
	for (size_t row = 0; (o = ap_optimizer_at(row)); row++) {
		if (i < (size_t)o->nstate)
			return ap_optimizer_prefix(o, (int)i, buf);
		i -= (size_t)o->nstate;
	}
	return NULL;
}

const char *ap_ckpt_state_source(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return !strncmp(name, prefix, len) && name[len] == '.' ? name + len + 1 : NULL;
}
bool ap_ckpt_name_stage(const char *param_name, uint32_t *stage)
{
	size_t digits = strspn(param_name, "0123456789");

	if (!digits || digits > STAGE_DIGITS || param_name[digits] != '-')
		return false;
	*stage = (uint32_t)strtoul(param_name, NULL, 10);
	return true;
}
const char *ap_ckpt_bare_name(const char *param_name)
{
	uint32_t stage;

	return ap_ckpt_name_stage(param_name, &stage) ? strchr(param_name, '-') + 1 : param_name;
}
bool ap_ckpt_is_merged(const struct ap_ckpt *c)
{
	uint32_t stage;

	return c->nlayout && ap_ckpt_name_stage(c->layout[0].param_name, &stage);
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

uint32_t ap_ckpt_stages(struct ap_ctx *ctx, const struct ap_ckpt *c, const uint32_t **out)
{
	uint32_t *stage = ap_arena_alloc_raw(ctx->scratch, (size_t)c->nitem + c->nlayout, sizeof *stage);
	uint32_t n = 0, kept = 0;

	for (uint32_t i = 0; i < c->nitem; i++)
		stage[n++] = c->item[i].stage;
	for (uint32_t i = 0; i < c->nlayout; i++)
		n += ap_ckpt_name_stage(c->layout[i].param_name, &stage[n]);
	if (n)
		qsort(stage, n, sizeof *stage, by_number);
	for (uint32_t i = 0; i < n; i++)
		if (!kept || stage[kept - 1] != stage[i])
			stage[kept++] = stage[i];
	*out = stage;
	return kept;
}

int ap_ckpt_compare_items(const void *a, const void *b)
{
	const struct ap_ckpt_item *x = a, *y = b;
	int order = strcmp(x->node_name, y->node_name);

	return order ? order : (x->stage > y->stage) - (x->stage < y->stage);
}

int ap_ckpt_compare_layouts(const void *a, const void *b)
{
	const struct ap_ckpt_layout *x = a, *y = b;

	return strcmp(x->param_name, y->param_name);
}

void ap_ckpt_sort(struct ap_ctx *ctx, struct ap_ckpt *c)
{
	struct ap_ckpt_item *item = ap_arena_memdup(ctx->arena, c->item, c->nitem * sizeof *item);
	struct ap_ckpt_layout *layout =
		ap_arena_memdup(ctx->arena, c->layout, c->nlayout * sizeof *layout);

	if (c->nitem)
		qsort(item, c->nitem, sizeof *item, ap_ckpt_compare_items);
	if (c->nlayout)
		qsort(layout, c->nlayout, sizeof *layout, ap_ckpt_compare_layouts);
	c->item = item;
	c->layout = layout;
}

void ap_ckpt_join(struct ap_ctx *ctx, uint32_t n, const struct ap_ckpt *stage, struct ap_ckpt *out)
{
	AP_VEC(struct ap_ckpt_item) items = {0};
	AP_VEC(struct ap_ckpt_layout) layouts = {0};

	for (uint32_t s = 0; s < n; s++) {
		for (uint32_t i = 0; i < stage[s].nitem; i++)
			AP_PUSH(ctx->arena, items, stage[s].item[i]);
		for (uint32_t i = 0; i < stage[s].nlayout; i++) {
			struct ap_ckpt_layout layout = stage[s].layout[i];

			layout.param_name = ap_arena_printf(ctx->arena, "%" PRIu32 "-%s", s,
				layout.param_name);
			AP_PUSH(ctx->arena, layouts, layout);
		}
	}
	*out = (struct ap_ckpt){.file = stage->file, .current_stage = 1,
		.nitem = (uint32_t)items.n, .item = items.v,
		.nlayout = (uint32_t)layouts.n, .layout = layouts.v};
	ap_ckpt_sort(ctx, out);
}

static bool vecs_equal(const struct ap_ckpt_vec *a, const struct ap_ckpt_vec *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!ap_ckpt_vec_equal(&a[i], &b[i]))
			return false;
	return true;
}

/* Both files are sorted. */
static bool files_equal(const struct ap_ckpt *a, const struct ap_ckpt *b)
{
	if (a->nitem != b->nitem || a->nlayout != b->nlayout)
		return false;
	for (uint32_t i = 0; i < a->nitem; i++) {
		const struct ap_ckpt_item *x = &a->item[i], *y = &b->item[i];

		if (strcmp(x->node_name, y->node_name) != 0 || x->n != y->n ||
			!vecs_equal(x->strategy, y->strategy, x->n))
			return false;
	}
	for (uint32_t i = 0; i < a->nlayout; i++) {
		const struct ap_ckpt_layout *x = &a->layout[i], *y = &b->layout[i];

		if (strcmp(x->param_name, y->param_name) != 0 || x->nmap != y->nmap ||
			x->field != y->field || x->weight_step != y->weight_step ||
			x->weight_size != y->weight_size ||
			!vecs_equal(x->tensor_map, y->tensor_map, x->nmap) ||
			!ap_ckpt_vec_equal(&x->dev_matrix, &y->dev_matrix) ||
			!ap_ckpt_vec_equal(&x->param_split_shape, &y->param_split_shape) ||
			!ap_ckpt_vec_equal(&x->indices_offset, &y->indices_offset))
			return false;
	}
	return true;
}

/* Returns AP_MEANING unless the n ascending stages are 0 to n - 1. */
static enum ap_status check_all(struct ap_ctx *ctx, const struct ap_ckpt *c, const uint32_t *stage,
	uint32_t n)
{
	struct ap_str text;

	if (n && stage[n - 1] == n - 1)
		return AP_OK;
	ap_str_init(&text, ctx->arena);
	ap_str_addf(&text, "pipeline stage%s ", n == 1 ? "" : "s");
	for (uint32_t i = 0; i < n && i < FEW; i++)
		ap_str_addf(&text, "%s%" PRIu32, !i ? "" : i + 1 == n ? " and " : ", ", stage[i]);
	if (n > FEW)
		ap_str_addf(&text, " and %" PRIu32 " more", n - FEW);
	ap_str_add(&text, "; expected all from 0 on");
	return ap_ckpt_report(ctx, c, AP_ERROR, NULL, "ckpt-stage", "%s", text.s);
}

static int by_stage(const void *a, const void *b)
{
	const struct ap_ckpt *x = a, *y = b;

	return (x->item->stage > y->item->stage) - (x->item->stage < y->item->stage);
}

/* Drops repeated stages; returns AP_MEANING if their files differ. */
static enum ap_status drop_doubles(struct ap_ctx *ctx, struct ap_ckpt *part, uint32_t *n)
{
	uint32_t kept = 1;

	for (uint32_t i = 1; i < *n; i++) {
		const struct ap_ckpt *last = &part[kept - 1];

		if (by_stage(last, &part[i]) != 0)
			part[kept++] = part[i];
		else if (!files_equal(last, &part[i]))
			return ap_ckpt_report(ctx, &part[i], AP_ERROR, NULL, "ckpt-stage",
				"is of stage %" PRIu32 ", as %s is, but says something else",
				part[i].item->stage, ap_diag_path(ctx->diag, last->file));
	}
	*n = kept;
	return AP_OK;
}

/* Checks that all stages have the same number of devices. */
static enum ap_status check_devices(struct ap_ctx *ctx, const struct ap_ckpt *part, uint32_t n)
{
	int64_t first = 0, devices = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct ap_ckpt_vec *dev = &part[i].layout->dev_matrix;

		ap_product(dev->v, dev->n, &devices);
		if (i && devices != first)
			return ap_ckpt_report(ctx, &part[i], AP_ERROR, NULL, "ckpt-devices",
				"is for %" PRId64 " devices, stage %" PRIu32 " for %" PRId64,
				devices, part->item->stage, first);
		first = devices;
	}
	return AP_OK;
}

enum ap_status ap_ckpt_merge(struct ap_ctx *ctx, uint32_t n, const struct ap_ckpt *part,
	struct ap_ckpt *out)
{
	struct ap_ckpt *sorted = ap_arena_memdup(ctx->arena, part, n * sizeof *part);
	uint32_t *stage = AP_NEW_N(ctx->arena, uint32_t, n);

	for (uint32_t i = 0; i < n; i++) {
		if (!part[i].nitem || !part[i].nlayout)
			return ap_ckpt_report(ctx, &part[i], AP_ERROR, NULL, "ckpt-empty",
				"holds no operator with a trainable parameter; "
				"MindSpore refuses to merge it");
		if (ap_ckpt_is_merged(&part[i]))
			return ap_ckpt_report(ctx, &part[i], AP_ERROR, NULL, "ckpt-stage",
				"is a merged file; expected one of a stage");
	}
	qsort(sorted, n, sizeof *sorted, by_stage);
	AP_TRY(drop_doubles(ctx, sorted, &n));
	for (uint32_t i = 0; i < n; i++)
		stage[i] = sorted[i].item->stage;
	AP_TRY(check_all(ctx, sorted, stage, n));
	AP_TRY(check_devices(ctx, sorted, n));
	ap_ckpt_join(ctx, n, sorted, out);
	return AP_OK;
}

/* Extracts one stage of a merged file. */
static void take_stage(struct ap_ctx *ctx, const struct ap_ckpt *merged, uint32_t stage,
	struct ap_ckpt *out)
{
	struct ap_ckpt_item *item = AP_NEW_N(ctx->arena, struct ap_ckpt_item, merged->nitem);
	struct ap_ckpt_layout *layout = AP_NEW_N(ctx->arena, struct ap_ckpt_layout, merged->nlayout);

	*out = (struct ap_ckpt){.file = merged->file, .current_stage = 1, .item = item,
		.layout = layout};
	for (uint32_t i = 0; i < merged->nitem; i++)
		if (merged->item[i].stage == stage)
			item[out->nitem++] = merged->item[i];
	for (uint32_t i = 0; i < merged->nlayout; i++) {
		uint32_t of = 0;

		if (!ap_ckpt_name_stage(merged->layout[i].param_name, &of) || of != stage)
			continue;
		layout[out->nlayout] = merged->layout[i];
		layout[out->nlayout++].param_name = ap_ckpt_bare_name(merged->layout[i].param_name);
	}
}

enum ap_status ap_ckpt_split(struct ap_ctx *ctx, const struct ap_ckpt *merged, uint32_t *n,
	struct ap_ckpt **out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const uint32_t *stage;
	enum ap_status st;

	*n = ap_ckpt_stages(ctx, merged, &stage);
	st = check_all(ctx, merged, stage, *n);
	ap_arena_release(ctx->scratch, mark);
	AP_TRY(st);
	*out = AP_NEW_N(ctx->arena, struct ap_ckpt, *n);
	for (uint32_t s = 0; s < *n; s++) {
		take_stage(ctx, merged, s, &(*out)[s]);
		if (!(*out)[s].nitem || !(*out)[s].nlayout)
			return ap_ckpt_report(ctx, merged, AP_ERROR, NULL, "ckpt-stage",
				"stage %" PRIu32 " has no operators or no parameters of its own; "
				"no stage file says so", s);
	}
	return AP_OK;
}
