/* SPDX-License-Identifier: Apache-2.0 */
/* Operators, parameters and redistributions: what is new, gone, renamed or cut otherwise. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "diff/diff_fold.h"
#include "diff/diff_parts.h"

const struct ap_diff_name ap_diff_op_names[AP_SAVED_OP_FIELDS] = {
	[AP_SAVED_TYPE] = {"type", "type", 0, false},
	[AP_SAVED_IN_STRATEGY] = {"in_strategy", "", 0, true},
	[AP_SAVED_OUT_STRATEGY] = {"out_strategy", "result", 1 << AP_SAVED_IN_STRATEGY, false},
	[AP_SAVED_STRIDES] = {"strides", "strides",
		1 << AP_SAVED_TYPE | 1 << AP_SAVED_IN_STRATEGY | 1 << AP_SAVED_OUT_STRATEGY,
		false},
	[AP_SAVED_STAGE] = {"stage", "stage", 0, false},
	[AP_SAVED_SEGMENT] = {"segment", "segment", 0, false},
	[AP_SAVED_RECOMPUTE] = {"recompute", "recompute", 0, false},
	[AP_SAVED_OUT_SHAPE] = {"out_shape", "result of", 0, false},
	[AP_SAVED_OUT_DTYPE] = {"out_dtype", "dtype", 0, false},
};

#define SEEN (1 << AP_SAVED_PARTS | 1 << AP_SAVED_SLICE_SHAPE)

const struct ap_diff_name ap_diff_param_names[AP_SAVED_PARAM_FIELDS] = {
	[AP_SAVED_DTYPE] = {"dtype", "dtype", 0, false},
	[AP_SAVED_READ_AS] = {"read_as", "read as", 1 << AP_SAVED_DTYPE, false},
	[AP_SAVED_TRAINABLE] = {"trainable", "trainable", 0, false},
	[AP_SAVED_TENSOR_SHAPE] = {"tensor_shape", "shape", 0, true},
	[AP_SAVED_SLICE_SHAPE] = {"slice_shape", "slice", 0, false},
	[AP_SAVED_PARTS] = {"parts", "parts", 1 << AP_SAVED_SLICE_SHAPE, true},
	[AP_SAVED_DEV_MATRIX] = {"dev_matrix", "devices", SEEN, false},
	[AP_SAVED_TENSOR_MAP] = {"tensor_map", "map", SEEN, false},
	[AP_SAVED_SHARDS] = {"optimizer_shards", "optimizer shards", 0, false},
	[AP_SAVED_SHARD_STEP] = {"opt_weight_shard_step", "optimizer shard step",
		1 << AP_SAVED_SHARDS | 1 << AP_SAVED_SHARD_SIZE | SEEN,
		false},
	[AP_SAVED_SHARD_SIZE] = {"opt_weight_shard_size", "optimizer shard size",
		1 << AP_SAVED_SHARDS, false},
	[AP_SAVED_PARAM_STAGE] = {"stage", "stage", 0, false},
	[AP_SAVED_STATES] = {"states", "states", 0, true},
	[AP_SAVED_FIELD] = {"field", "field", 0, false},
	[AP_SAVED_SPLIT_SHAPE] = {"param_split_shape", "split shape", 0, false},
	[AP_SAVED_OFFSET] = {"indices_offset", "offset", 0, false},
};

const struct ap_diff_name ap_diff_move_names[AP_SAVED_MOVE_FIELDS] = {
	[AP_SAVED_STEPS] = {"steps", "", 0, true},
	[AP_SAVED_FROM_LAYOUT] = {"from_layout", "from", 1 << AP_SAVED_STEPS, false},
	[AP_SAVED_TO_LAYOUT] = {"to_layout", "to", 1 << AP_SAVED_STEPS, false},
	[AP_SAVED_BYTES] = {"bytes", "", 0, false},
};

/* One thing that changed, before it is joined with others. */
struct entry {
	enum ap_diff_kind kind;
	const char *label, *old_label, *type, *name, *old_name;
	int64_t operand;
	uint32_t nfield;
	struct ap_diff_field *field;
};

struct entries {
	struct ap_ctx *ctx;
	struct entry *v;
	size_t n, cap;
};

/* Either may be NULL: then it is new, or gone. */
static void compare_fields(struct ap_ctx *ctx, const char *const *was, const char *const *is,
	uint32_t n, struct entry *e)
{
	e->field = AP_NEW_N(ctx->arena, struct ap_diff_field, n);
	for (uint32_t i = 0; i < n; i++) {
		const char *a = was ? was[i] : NULL, *b = is ? is[i] : NULL;

		if (was && is ? a && b && strcmp(a, b) != 0 : a || b)
			e->field[e->nfield++] = (struct ap_diff_field){i, a, b};
	}
}

static void push(struct entries *all, const struct entry *e)
{
	if (e->kind != AP_DIFF_CHANGED || e->nfield)
		AP_PUSH(all->ctx->scratch, *all, *e);
}

/* All in which two entries must be equal to be joined. */
static const char *same_text(struct ap_ctx *ctx, const struct entry *e)
{
	struct ap_str s;

	ap_str_init(&s, ctx->scratch);
	ap_str_addf(&s, "%d %" PRId64 " %s", (int)e->kind, e->operand, e->type);
	for (uint32_t i = 0; i < e->nfield; i++)
		ap_str_addf(&s, "\n%" PRIu32 " %s\n%s", e->field[i].field,
			e->field[i].was ? e->field[i].was : "-",
			e->field[i].is ? e->field[i].is : "-");
	for (const char *c = e->old_label ? e->old_label : ""; *c; c++)
		if (!strchr("0123456789", *c))
			ap_str_addc(&s, *c);
		else if (!strchr("0123456789", c[1]) || !c[1])
			ap_str_addc(&s, '0');
	return s.s;
}

/* The former names of what was joined under its new one. */
static const char *old_label(struct ap_ctx *ctx, const struct entry *all,
	const struct ap_fold *fold)
{
	struct ap_fold_item *item = AP_NEW_N(ctx->scratch, struct ap_fold_item, fold->n);
	const struct ap_fold *old;
	uint32_t n;

	if (!all[fold->item[0]].old_label)
		return NULL;
	for (uint32_t i = 0; i < fold->n; i++)
		item[i] = (struct ap_fold_item){all[fold->item[i]].old_label, ""};
	n = ap_fold_items(ctx, fold->n, item, &old);
	return n == 1 ? old[0].name : ap_arena_printf(ctx->arena, "%s ..", old[0].name);
}

static struct ap_diff_line make_line(struct ap_ctx *ctx, const struct entry *all,
	const struct ap_fold *fold)
{
	const struct entry *e = &all[fold->item[0]];
	const char **name = AP_NEW_N(ctx->arena, const char *, fold->n), **old = NULL;

	if (e->kind == AP_DIFF_RENAMED)
		old = AP_NEW_N(ctx->arena, const char *, fold->n);
	for (uint32_t i = 0; i < fold->n; i++) {
		name[i] = all[fold->item[i]].name;
		if (old)
			old[i] = all[fold->item[i]].old_name;
	}
	return (struct ap_diff_line){.kind = e->kind, .label = fold->name,
		.old_label = old_label(ctx, all, fold), .type = e->type, .operand = e->operand,
		.n = fold->n, .name = name, .old_name = old, .nfield = e->nfield,
		.field = e->field};
}

static void join(struct entries *all, uint32_t was, uint32_t is, struct ap_diff_lines *out)
{
	struct ap_ctx *ctx = all->ctx;
	struct ap_fold_item *item = AP_NEW_N(ctx->scratch, struct ap_fold_item, all->n);
	struct ap_diff_line *line;
	const struct ap_fold *fold;

	for (size_t i = 0; i < all->n; i++)
		item[i] = (struct ap_fold_item){all->v[i].label, same_text(ctx, &all->v[i])};
	*out = (struct ap_diff_lines){.things = (uint32_t)all->n, .of = {was, is}};
	out->n = ap_fold_items(ctx, (uint32_t)all->n, item, &fold);
	line = AP_NEW_N(ctx->arena, struct ap_diff_line, out->n);
	for (uint32_t i = 0; i < out->n; i++)
		line[i] = make_line(ctx, all->v, &fold[i]);
	out->v = line;
}

static void add_operator(struct entries *all, const struct ap_saved_op *was,
	const struct ap_saved_op *is)
{
	const struct ap_saved_op *op = is ? is : was;
	struct entry e = {.label = op->label, .type = op->type, .name = op->name, .operand = -1};
	const char *const *fields = was ? was->field : NULL;

	e.kind = !was ? AP_DIFF_ADDED
		: !is ? AP_DIFF_REMOVED
		: strcmp(was->name, is->name) != 0 ? AP_DIFF_RENAMED
						   : AP_DIFF_CHANGED;
	if (e.kind == AP_DIFF_RENAMED) {
		e.old_label = was->label;
		e.old_name = was->name;
	}
	compare_fields(all->ctx, fields, is ? is->field : NULL, AP_SAVED_OP_FIELDS, &e);
	push(all, &e);
}

void ap_diff_operators(struct ap_diff_task *t, struct ap_diff_lines *out)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	struct entries all = {.ctx = t->ctx};

	for (uint32_t i = 0; i < t->is->nop; i++) {
		ap_id old = t->pairs.old_op[i];

		add_operator(&all, old == AP_NONE ? NULL : &t->was->op[old], &t->is->op[i]);
	}
	for (uint32_t i = 0; i < t->was->nop; i++)
		if (t->pairs.new_op[i] == AP_NONE)
			add_operator(&all, &t->was->op[i], NULL);
	join(&all, t->was->nop, t->is->nop, out);
	ap_arena_release(t->ctx->scratch, mark);
}

/* A plan that tells no other type in which a parameter is read means the one in which it is stored. */
static const char *const *fields_of(struct ap_ctx *ctx, const struct ap_saved_param *p,
	const struct ap_saved_param *other)
{
	const char **field;

	if (!p || !other || p->field[AP_SAVED_READ_AS] || !other->field[AP_SAVED_READ_AS])
		return p ? p->field : NULL;
	field = ap_arena_memdup(ctx->arena, p->field, sizeof p->field);
	field[AP_SAVED_READ_AS] = field[AP_SAVED_DTYPE];
	return field;
}

static void add_param(struct entries *all, const struct ap_saved_param *was,
	const struct ap_saved_param *is)
{
	const char *name = is ? is->name : was->name;
	struct entry e = {.label = name, .type = "", .name = name, .operand = -1};

	e.kind = !was ? AP_DIFF_ADDED
		: !is ? AP_DIFF_REMOVED
		: strcmp(was->name, is->name) != 0 ? AP_DIFF_RENAMED
						   : AP_DIFF_CHANGED;
	if (e.kind == AP_DIFF_RENAMED)
		e.old_label = e.old_name = was->name;
	compare_fields(all->ctx, fields_of(all->ctx, was, is), fields_of(all->ctx, is, was),
		AP_SAVED_PARAM_FIELDS, &e);
	push(all, &e);
}

void ap_diff_params(struct ap_diff_task *t, struct ap_diff_lines *out)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	struct entries all = {.ctx = t->ctx};

	for (uint32_t i = 0; i < t->is->nparam; i++) {
		ap_id old = t->pairs.old_param[i];

		add_param(&all, old == AP_NONE ? NULL : &t->was->param[old], &t->is->param[i]);
	}
	for (uint32_t i = 0; i < t->was->nparam; i++)
		if (t->pairs.new_param[i] == AP_NONE)
			add_param(&all, &t->was->param[i], NULL);
	join(&all, t->was->nparam, t->is->nparam, out);
	ap_arena_release(t->ctx->scratch, mark);
}

static void add_move(struct entries *all, const struct ap_saved_op *to,
	const struct ap_saved_move *was, const struct ap_saved_move *is)
{
	struct entry e = {.label = to->label, .type = to->type, .name = to->name,
		.operand = is ? is->operand : was->operand};

	e.kind = !was ? AP_DIFF_ADDED : !is ? AP_DIFF_REMOVED : AP_DIFF_CHANGED;
	compare_fields(all->ctx, was ? was->field : NULL, is ? is->field : NULL,
		AP_SAVED_MOVE_FIELDS, &e);
	push(all, &e);
}

void ap_diff_moves(struct ap_diff_task *t, struct ap_diff_lines *out)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	struct ap_map *places = ap_map_create(t->ctx->scratch);
	bool *found = AP_NEW_N(t->ctx->scratch, bool, t->was->nmove);
	struct entries all = {.ctx = t->ctx};

	for (uint32_t i = 0; i < t->was->nmove; i++) {
		const int64_t place[] = {t->was->move[i].to, t->was->move[i].operand};

		ap_map_put(places, place, sizeof place, NULL);
	}
	for (uint32_t i = 0; i < t->is->nmove; i++) {
		const struct ap_saved_move *is = &t->is->move[i];
		const int64_t place[] = {t->pairs.old_op[is->to], is->operand};
		ap_id id = ap_map_get(places, place, sizeof place);

		if (id != AP_NONE)
			found[id] = true;
		add_move(&all, &t->is->op[is->to], id == AP_NONE ? NULL : &t->was->move[id], is);
	}
	for (uint32_t i = 0; i < t->was->nmove; i++)
		if (!found[i])
			add_move(&all, &t->was->op[t->was->move[i].to], &t->was->move[i], NULL);
	join(&all, t->was->nmove, t->is->nmove, out);
	ap_arena_release(t->ctx->scratch, mark);
}
