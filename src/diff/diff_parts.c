/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/diff_parts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "planfile/dimension.h"

/* ---- parts of the network ---- */

struct turn { /* a change of cuts that several operators have in common */
	uint32_t part, n;
	bool core; /* of the attention itself, which says more than the products around it */
	double time_s;
	const char *was, *is;
};

/* Does the operator say how its part is cut? Products do, and lookups. */
static bool speaks(enum ap_saved_part part, const struct ap_saved_op *op)
{
	return part == AP_SAVED_PART_EMBEDDING || ap_saved_is_product(op);
}

/* "heads over 8, hidden over 4": what is not the same in `other`. */
static const char *dimensions_text(struct ap_ctx *ctx, const int64_t parts[AP_DIMENSION_COUNT],
	const int64_t other[AP_DIMENSION_COUNT], bool all)
{
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	for (int i = 0; i < AP_DIMENSION_COUNT; i++)
		if (parts[i] > 1 && (all || parts[i] != other[i]))
			ap_str_addf(&text, "%s%s over %" PRId64, text.len ? " and " : "",
				ap_dimension_look[i].name, parts[i]);
	return text.s;
}

/* heads: letter of the factor that is heads of attention, or '\0'. */
static void parts_of(const struct ap_dimensions *d, const struct ap_saved_op *op, char heads,
	int64_t parts[AP_DIMENSION_COUNT])
{
	ap_dimensions_parts(d, op, parts);
	for (uint32_t i = 0; i < op->nfactor; i++) {
		const struct ap_saved_factor *f = &op->factor[i];

		if (f->letter != heads || f->batch || f->parts <= 1 || parts[AP_DIMENSION_HIDDEN] % f->parts)
			continue;
		parts[AP_DIMENSION_HIDDEN] /= f->parts;
		parts[AP_DIMENSION_HEADS] *= f->parts;
	}
}

static bool same_field(const struct ap_saved_op *a, const struct ap_saved_op *b,
	enum ap_saved_op_field field)
{
	return a->field[field] && b->field[field] ? !strcmp(a->field[field], b->field[field])
						  : a->field[field] == b->field[field];
}

static bool same_cut(const struct ap_saved_op *a, const struct ap_saved_op *b)
{
	return same_field(a, b, AP_SAVED_IN_STRATEGY) && same_field(a, b, AP_SAVED_OUT_STRATEGY);
}

static bool says_more(const struct turn *a, const struct turn *b)
{
	if (a->core != b->core)
		return a->core;
	return a->time_s != b->time_s ? a->time_s > b->time_s : a->n > b->n;
}

uint32_t ap_diff_parts(struct ap_ctx *ctx, const struct ap_saved *was, const struct ap_saved *is,
	const struct ap_diff_pairs *pairs, struct ap_diff_part out[AP_SAVED_PART_COUNT], uint32_t *nrest)
{
	const enum ap_saved_part *part = ap_saved_parts(ctx, is);
	const char *old_heads = ap_saved_heads(ctx, was), *new_heads = ap_saved_heads(ctx, is);
	struct ap_diff_part all[AP_SAVED_PART_COUNT] = {{0}};
	struct ap_map *keys = ap_map_create(ctx->scratch);
	struct ap_dimensions old_meaning, new_meaning;
	AP_VEC(struct turn) turns = {0};
	uint32_t n = 0;

	ap_dimensions_of_saved(was, &old_meaning);
	ap_dimensions_of_saved(is, &new_meaning);
	*nrest = 0;
	for (uint32_t i = 0; i < is->nop; i++) {
		ap_id old = pairs->old_op[i];
		int64_t before[AP_DIMENSION_COUNT], after[AP_DIMENSION_COUNT];
		struct turn turn = {.part = part[i], .n = 1, .core = ap_saved_attends(&is->op[i])};
		bool alike, fresh;
		ap_id id;

		if (old == AP_NONE)
			continue;
		all[part[i]].of += speaks(part[i], &is->op[i]);
		if (same_cut(&was->op[old], &is->op[i]))
			continue;
		if (!speaks(part[i], &is->op[i])) {
			++*nrest;
			continue;
		}
		parts_of(&old_meaning, &was->op[old], old_heads[old], before);
		parts_of(&new_meaning, &is->op[i], new_heads[i], after);
		alike = !memcmp(before, after, sizeof before);
		turn.was = dimensions_text(ctx, before, after, alike);
		turn.is = dimensions_text(ctx, after, before, alike);
		turn.time_s = fmax(was->op[old].time_s, is->op[i].time_s);
		all[part[i]].n++;
		id = ap_map_put_str(keys, ap_arena_printf(ctx->scratch, "%d %d\n%s\n%s", (int)part[i],
			turn.core, turn.was, turn.is), &fresh);
		if (fresh) {
			AP_PUSH(ctx->scratch, turns, turn);
			continue;
		}
		turns.v[id].n++;
		turns.v[id].time_s += turn.time_s;
	}
	for (int p = 0; p < AP_SAVED_PART_COUNT; p++) {
		const struct turn *best = NULL;

		for (size_t i = 0; i < turns.n; i++)
			if (turns.v[i].part == (uint32_t)p && (!best || says_more(&turns.v[i], best)))
				best = &turns.v[i];
		if (!all[p].of)
			continue;
		out[n] = all[p];
		out[n].name = ap_saved_part_name[p];
		if (best) {
			out[n].was = best->was;
			out[n].is = best->is;
		}
		n++;
	}
	return n;
}

/* ---- layers ---- */

/* The length of the label up to its first part that is a number: "net.blocks.12" of "net.blocks.12.up";
 * 0: none. What passes tensors between stages is of no layer. */
static size_t layer_length(const struct ap_saved_op *op)
{
	const char *name = op->label;

	if (!strcmp(op->type, "Send") || !strcmp(op->type, "Receive"))
		return 0;
	for (const char *c = name; *c;) {
		size_t digits = strspn(c, "0123456789"), len = strcspn(c, "./");

		if (digits && digits == len && c[len])
			return (size_t)(c - name) + len;
		c += len + (c[len] != '\0');
	}
	return 0;
}

struct layer {
	bool old, new, both, changed;
};

struct layers {
	struct ap_ctx *ctx;
	struct ap_map *names; /* in the names of the new plan where it has them */
	AP_VEC(struct layer) v;
};

static struct layer *layer_of(struct layers *l, const char *name, size_t len)
{
	bool fresh;
	ap_id id = ap_map_put(l->names, name, len, &fresh);

	if (fresh)
		AP_PUSH(l->ctx->scratch, l->v, (struct layer){0});
	return &l->v.v[id];
}

void ap_diff_layers(struct ap_ctx *ctx, const struct ap_saved *was, const struct ap_saved *is,
	const struct ap_diff_pairs *pairs, const bool *changed, struct ap_diff_layers *out)
{
	struct layers all = {.ctx = ctx, .names = ap_map_create(ctx->scratch)};
	/* the new name of an old layer, by one of its operators that the new plan has */
	struct ap_map *old_names = ap_map_create(ctx->scratch);
	AP_VEC(const struct ap_saved_op *) new_names = {0};

	*out = (struct ap_diff_layers){0};
	for (uint32_t i = 0; i < is->nop; i++) {
		size_t len = layer_length(&is->op[i]);
		ap_id old = pairs->old_op[i];
		struct layer *l;

		if (!len) {
			out->op_added += old == AP_NONE;
			out->op_changed += old != AP_NONE && changed[i];
			continue;
		}
		l = layer_of(&all, is->op[i].label, len);
		l->new = true;
		l->both |= old != AP_NONE;
		l->changed |= old == AP_NONE || changed[i];
	}
	out->nlayer = (uint32_t)all.v.n;
	for (uint32_t i = 0; i < was->nop; i++) {
		size_t len = layer_length(&was->op[i]);
		ap_id new = pairs->new_op[i];
		bool fresh;

		if (new == AP_NONE || !len || !layer_length(&is->op[new]))
			continue;
		ap_map_put(old_names, was->op[i].label, len, &fresh);
		if (fresh)
			AP_PUSH(ctx->scratch, new_names, &is->op[new]);
	}
	for (uint32_t i = 0; i < was->nop; i++) {
		const struct ap_saved_op *op = &was->op[i];
		size_t len = layer_length(op);
		struct layer *l;
		ap_id known;

		if (pairs->new_op[i] != AP_NONE)
			continue;
		if (!len) {
			out->op_removed++;
			continue;
		}
		known = ap_map_get(old_names, op->label, len);
		if (known != AP_NONE)
			op = new_names.v[known];
		l = layer_of(&all, op->label, layer_length(op));
		l->old = true;
		l->changed = true;
	}
	for (size_t i = 0; i < all.v.n; i++) {
		const struct layer *l = &all.v.v[i];

		out->added += l->new && !l->both && !l->old;
		out->removed += l->old && !l->new;
		out->changed += l->new && (l->both || l->old) && l->changed;
	}
}
