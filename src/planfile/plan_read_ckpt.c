/* SPDX-License-Identifier: Apache-2.0 */
/* A strategy checkpoint for comparison, and a plan as one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "ckpt/ckpt.h"
#include "planfile/plan_read.h"

/* Few texts are those of many parameters: each is kept once. */
struct texts {
	struct ap_ctx *ctx;
	struct ap_map *map;
};

static const char *keep(struct texts *t, const char *text)
{
	return ap_map_key(t->map, ap_map_put_str(t->map, text, NULL), NULL);
}

static void write_vec(struct ap_jw *w, const struct ap_ckpt_vec *v)
{
	ap_jw_ints(w, v->v, v->n);
}

static const char *vec_text(struct texts *t, const struct ap_ckpt_vec *v)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	struct ap_str text;
	struct ap_jw w;
	const char *kept;

	ap_str_init(&text, t->ctx->scratch);
	ap_jw_str_init(&w, &text, 0);
	write_vec(&w, v);
	kept = keep(t, text.s);
	ap_arena_release(t->ctx->scratch, mark);
	return kept;
}

static const char *vecs_text(struct texts *t, const struct ap_ckpt_vec *v, uint32_t n)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	struct ap_str text;
	struct ap_jw w;
	const char *kept;

	ap_str_init(&text, t->ctx->scratch);
	ap_jw_str_init(&w, &text, 0);
	ap_jw_arr(&w);
	for (uint32_t i = 0; i < n; i++)
		write_vec(&w, &v[i]);
	ap_jw_end(&w);
	kept = keep(t, text.s);
	ap_arena_release(t->ctx->scratch, mark);
	return kept;
}

static const char *int_text(struct texts *t, int64_t v)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, v);
	return keep(t, text);
}

/* Parts, or sizes of the slice, per dimension. */
static const char *dims_text(struct texts *t, const struct ap_ckpt_layout *l, bool slice)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	uint32_t rank = ap_ckpt_rank(l);
	struct ap_ckpt_vec dims = {rank, NULL};
	int64_t *v = AP_NEW_N(t->ctx->scratch, int64_t, rank);
	const char *kept;

	for (uint32_t d = 0; d < rank; d++)
		v[d] = slice ? l->tensor_shape.v[d] / ap_ckpt_parts(l, d) : ap_ckpt_parts(l, d);
	dims.v = v;
	kept = vec_text(t, &dims);
	ap_arena_release(t->ctx->scratch, mark);
	return kept;
}

/* A file of several pipeline stages may say the same key for each. */
static bool has_stages(const struct ap_ckpt *c)
{
	for (uint32_t i = 1; i < c->nitem; i++)
		if (c->item[i].stage != c->item[0].stage)
			return true;
	return false;
}

static void add_operators(struct texts *t, const struct ap_ckpt *c, struct ap_saved *out)
{
	struct ap_ctx *ctx = t->ctx;
	struct ap_saved_op *op = AP_NEW_N(ctx->arena, struct ap_saved_op, c->nitem);
	bool stages = has_stages(c);

	for (uint32_t i = 0; i < c->nitem; i++) {
		const struct ap_ckpt_item *item = &c->item[i];

		op[i].name = !stages ? ap_arena_strdup(ctx->arena, item->node_name)
			: ap_arena_printf(ctx->arena, "%" PRIu32 "-%s", item->stage,
				item->node_name);
		op[i].label = op[i].name;
		op[i].type = "";
		op[i].in_checkpoint = true;
		op[i].field[AP_SAVED_IN_STRATEGY] = vecs_text(t, item->strategy, item->n);
		op[i].field[AP_SAVED_STAGE] = int_text(t, item->stage);
	}
	out->op = op;
	out->nop = c->nitem;
}

static void set_fields(struct texts *t, const struct ap_ckpt_layout *l, const char **field)
{
	bool shape = l->has_shape && l->tensor_shape.n == ap_ckpt_rank(l);

	field[AP_SAVED_TENSOR_SHAPE] = shape ? vec_text(t, &l->tensor_shape) : NULL;
	field[AP_SAVED_SLICE_SHAPE] = shape ? dims_text(t, l, true) : NULL;
	field[AP_SAVED_PARTS] = dims_text(t, l, false);
	field[AP_SAVED_DEV_MATRIX] = vec_text(t, &l->dev_matrix);
	field[AP_SAVED_TENSOR_MAP] = l->nmap == 1 ? vec_text(t, &l->tensor_map[0])
						  : vecs_text(t, l->tensor_map, l->nmap);
	field[AP_SAVED_SHARD_STEP] = int_text(t, l->weight_step);
	field[AP_SAVED_SHARD_SIZE] = int_text(t, l->weight_size);
	field[AP_SAVED_FIELD] = int_text(t, l->field);
	field[AP_SAVED_SPLIT_SHAPE] = vec_text(t, &l->param_split_shape);
	field[AP_SAVED_OFFSET] = vec_text(t, &l->indices_offset);
}

static bool lie_alike(const struct ap_saved_param *a, const struct ap_saved_param *b)
{
	for (int f = 0; f < AP_SAVED_PARAM_FIELDS; f++) {
		const char *x = a->field[f], *y = b->field[f];

		if (f != AP_SAVED_STATES && (x ? !y || strcmp(x, y) != 0 : y != NULL))
			return false;
	}
	return true;
}

/* The parameter whose state this is, as long as it lies as that; AP_NONE: it stands for itself. */
static ap_id source_of(struct ap_ctx *ctx, const struct ap_map *names,
	const struct ap_saved_param *all, ap_id i, const char **state)
{
	const char *name = all[i].name, *bare = ap_ckpt_bare_name(name), *prefix, *source;
	char buf[32];

	for (size_t p = 0; (prefix = ap_ckpt_state_prefix(p, buf)); p++) {
		ap_id id;

		source = ap_ckpt_state_source(bare, prefix);
		if (!source)
			continue;
		id = ap_map_get_str(names, ap_arena_printf(ctx->scratch, "%.*s%s",
			(int)(bare - name), name, source));
		if (id == AP_NONE || !lie_alike(&all[i], &all[id]))
			continue;
		*state = ap_arena_strdup(ctx->arena, prefix);
		return id;
	}
	return AP_NONE;
}

/* A state of a state stands for itself. */
static bool is_folded(const ap_id *source, ap_id i)
{
	return source[i] != AP_NONE && source[source[i]] == AP_NONE;
}

static void add_state(struct ap_ctx *ctx, struct ap_str *list, const char *state)
{
	if (!list->s)
		ap_str_init(list, ctx->arena);
	ap_str_addf(list, "%s\"%s\"", list->len ? "," : "", state);
}

static void add_params(struct texts *t, const struct ap_ckpt *c, struct ap_saved *out)
{
	struct ap_ctx *ctx = t->ctx;
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_saved_param *all = AP_NEW_N(ctx->arena, struct ap_saved_param, c->nlayout);
	struct ap_str *states = AP_NEW_N(ctx->scratch, struct ap_str, c->nlayout);
	ap_id *source = AP_NEW_N(ctx->scratch, ap_id, c->nlayout);
	const char **state = AP_NEW_N(ctx->scratch, const char *, c->nlayout);
	struct ap_map *names = ap_map_create(ctx->scratch);

	for (uint32_t i = 0; i < c->nlayout; i++) {
		all[i].name = ap_arena_strdup(ctx->arena, c->layout[i].param_name);
		all[i].trainable = true;
		set_fields(t, &c->layout[i], all[i].field);
		ap_map_put_str(names, all[i].name, NULL);
	}
	for (uint32_t i = 0; i < c->nlayout; i++)
		source[i] = source_of(ctx, names, all, i, &state[i]);
	for (uint32_t i = 0; i < c->nlayout; i++)
		if (is_folded(source, i))
			add_state(ctx, &states[source[i]], state[i]);
	for (uint32_t i = 0; i < c->nlayout; i++) {
		all[i].field[AP_SAVED_STATES] = keep(t, ap_arena_printf(ctx->scratch, "[%s]",
			states[i].s ? states[i].s : ""));
		if (!is_folded(source, i))
			all[out->nparam++] = all[i];
	}
	ap_arena_release(ctx->scratch, mark);
	out->param = all;
}

static void add_devices(struct texts *t, const struct ap_ckpt *c, struct ap_saved *out)
{
	struct ap_ctx *ctx = t->ctx;
	struct ap_saved_fact *fact = AP_NEW(ctx->arena, struct ap_saved_fact);
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const uint32_t *stage;
	uint32_t nstage = ap_ckpt_is_merged(c) ? ap_ckpt_stages(ctx, c, &stage) : 1;
	int64_t devices;

	ap_arena_release(ctx->scratch, mark);
	if (!c->nlayout ||
		!ap_product(c->layout[0].dev_matrix.v, c->layout[0].dev_matrix.n, &devices) ||
		!ap_mul(devices, nstage, &devices))
		return;
	*fact = (struct ap_saved_fact){.section = "machine", .key = "devices",
		.json = int_text(t, devices), .is_number = true, .number = (double)devices};
	out->fact = fact;
	out->nfact = 1;
}

void ap_saved_of_ckpt(struct ap_ctx *ctx, const struct ap_ckpt *c, struct ap_saved *out)
{
	struct texts t = {.ctx = ctx, .map = ap_map_create(ctx->arena)};

	*out = (struct ap_saved){.file = c->file ? ap_arena_strdup(ctx->arena, ap_file_base(c->file)) : ""};
	add_devices(&t, c, out);
	add_operators(&t, c, out);
	add_params(&t, c, out);
}

struct params_of {
	struct ap_ctx *ctx;
	const struct ap_saved *plan;
	bool stages; /* several: names of a merged file begin with theirs */
	const struct ap_map *names; /* ids are indices of the plan's parameters */
	bool *used;
};

static const char *behind_stage(struct ap_ctx *ctx, const char *stage, const char *name)
{
	return ap_arena_printf(ctx->arena, "%s-%s", stage, name);
}

static bool plan_has_stages(const struct ap_saved *plan)
{
	for (uint32_t i = 1; i < plan->nop; i++)
		if (strcmp(plan->op[i].field[AP_SAVED_STAGE], plan->op[0].field[AP_SAVED_STAGE]) != 0)
			return true;
	return false;
}

/* The checkpoint key of an operator, "<type>_<first parameter that is trained>". */
static const char *key_of(struct params_of *p, const struct ap_saved_op *op)
{
	const char *key = NULL;

	for (uint32_t i = 0; i < op->nin; i++) {
		ap_id id = ap_map_get_str(p->names, op->in[i]);

		if (id == AP_NONE || !p->plan->param[id].trainable)
			continue;
		p->used[id] = true;
		if (!key)
			key = ap_arena_printf(p->ctx->arena, "%s_%s", op->type, op->in[i]);
	}
	if (!key)
		key = op->name;
	return p->stages ? behind_stage(p->ctx, op->field[AP_SAVED_STAGE], key) : key;
}

/* Of operators with the same key the last one speaks, as in MindSpore. */
static void reduce_operators(struct params_of *p, struct ap_saved *out)
{
	struct ap_saved_op *all = AP_NEW_N(p->ctx->arena, struct ap_saved_op, p->plan->nop);
	struct ap_map *keys = ap_map_create(p->ctx->scratch);

	for (uint32_t i = 0; i < p->plan->nop; i++) {
		const struct ap_saved_op *op = &p->plan->op[i];
		struct ap_saved_op *to;
		const char *key;

		if (!op->in_checkpoint)
			continue;
		key = key_of(p, op);
		to = &all[ap_map_put_str(keys, key, NULL)];
		*to = (struct ap_saved_op){.type = "", .in_checkpoint = true};
		to->name = to->label = key;
		to->field[AP_SAVED_IN_STRATEGY] = op->field[AP_SAVED_IN_STRATEGY];
		to->field[AP_SAVED_STAGE] = op->field[AP_SAVED_STAGE];
	}
	out->op = all;
	out->nop = (uint32_t)ap_map_size(keys);
}

static void reduce_params(struct params_of *p, struct ap_saved *out)
{
	struct ap_saved_param *all =
		AP_NEW_N(p->ctx->arena, struct ap_saved_param, p->plan->nparam);

	for (uint32_t i = 0; i < p->plan->nparam; i++) {
		struct ap_saved_param param = p->plan->param[i];

		if (!p->used[i])
			continue;
		param.field[AP_SAVED_DTYPE] = NULL;
		param.field[AP_SAVED_READ_AS] = NULL;
		param.field[AP_SAVED_TRAINABLE] = NULL;
		param.field[AP_SAVED_SHARDS] = NULL;
		if (p->stages && param.field[AP_SAVED_PARAM_STAGE])
			param.name = behind_stage(p->ctx, param.field[AP_SAVED_PARAM_STAGE], param.name);
		param.field[AP_SAVED_PARAM_STAGE] = NULL;
		all[out->nparam++] = param;
	}
	out->param = all;
}

static void reduce_facts(struct ap_ctx *ctx, const struct ap_saved *plan, struct ap_saved *out)
{
	struct ap_saved_fact *fact = AP_NEW(ctx->arena, struct ap_saved_fact);

	for (uint32_t i = 0; i < plan->nfact; i++)
		if (!strcmp(plan->fact[i].section, "machine") &&
			!strcmp(plan->fact[i].key, "devices")) {
			*fact = plan->fact[i];
			out->fact = fact;
			out->nfact = 1;
		}
}

void ap_saved_strategies(struct ap_ctx *ctx, const struct ap_saved *plan, struct ap_saved *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_map *names = ap_map_create(ctx->scratch);
	struct params_of p = {.ctx = ctx, .plan = plan, .names = names,
		.stages = plan_has_stages(plan)};

	p.used = AP_NEW_N(ctx->scratch, bool, plan->nparam);
	for (uint32_t i = 0; i < plan->nparam; i++)
		ap_map_put_str(names, plan->param[i].name, NULL);
	*out = (struct ap_saved){.file = plan->file};
	reduce_facts(ctx, plan, out);
	reduce_operators(&p, out);
	reduce_params(&p, out);
	ap_arena_release(ctx->scratch, mark);
}
