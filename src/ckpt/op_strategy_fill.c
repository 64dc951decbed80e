/* SPDX-License-Identifier: Apache-2.0 */
/* A plan in the names of a template. */
#include "base/json_write.h"
#include "base/map.h"
#include "ckpt/op_strategy_parts.h"
#include "shard/imposed.h"

struct filling {
	struct ap_ctx *ctx;
	struct ap_jw *w;
	const struct ap_plan *p;
	const struct ap_op_template *t;
	struct ap_op_match match;
	bool placed; /* only layouts can say how the inputs arrive */
};

/* Does the plan say anything of this name? Else what the template says stays. */
static bool is_said(const struct filling *f, ap_id id)
{
	ap_id node = f->match.node[id];

	return node == AP_NONE ? ap_op_is_dataset(f->ctx, f->t, id, f->p)
		: !ap_op_is_kept(&f->p->graph->node[node]);
}

/* A strategy that stands beside layouts and has no vectors. */
static bool is_empty(const struct ap_op_name *name, enum ap_op_map map)
{
	return map == AP_OP_STRATEGY && name->at[AP_OP_LAYOUT] && ap_op_says_nothing(name->at[map]);
}

static struct ap_op_said taken_over(const struct filling *f, const struct ap_jv *v, enum ap_op_map map)
{
	struct ap_op_said said = {0};

	if (map == AP_OP_STRATEGY || map == AP_OP_OUT_STRATEGY) {
		said.nout = (uint32_t)ap_jv_count(ap_jv_get(v, "parallel_strategy"));
		ap_jv_int(f->t->doc, ap_jv_get(v, "stage"), &said.stage);
	} else {
		said.nout = (uint32_t)ap_jv_count(v);
	}
	return said;
}

static void write_named(struct filling *f, const struct ap_jv *v, enum ap_op_map map)
{
	ap_id id = ap_map_get_str(f->t->ids, ap_jv_key(v));

	if (id == AP_NONE || !is_said(f, id) || is_empty(&f->t->name[id], map)) {
		ap_jw_key(f->w, ap_jv_key(v));
		ap_jw_value(f->w, f->t->doc, v);
	} else if (f->match.node[id] != AP_NONE || map != AP_OP_STRATEGY || !f->placed) {
		ap_jw_key(f->w, ap_jv_key(v));
		ap_op_write_value(f->ctx, f->w, f->p, f->match.node[id], map, taken_over(f, v, map));
	}
}

/* Does the plan say more than the template has: results, inputs in layouts? */
static bool is_added(const struct filling *f, ap_id id, enum ap_op_map map)
{
	const struct ap_op_name *name = &f->t->name[id];
	ap_id node = f->match.node[id];

	if (name->at[map] || !is_said(f, id))
		return false;
	if (node == AP_NONE)
		return f->placed && map == AP_OP_LAYOUT;
	return ap_placement_says_out(&f->p->op[node].place, f->p->step) &&
		map == (name->at[AP_OP_LAYOUT] ? AP_OP_OUT_LAYOUT : AP_OP_OUT_STRATEGY);
}

static bool is_wanted(const struct filling *f, enum ap_op_map map)
{
	bool wanted = f->t->map[map] || map == AP_OP_STRATEGY || map == AP_OP_OUT_STRATEGY;

	for (ap_id id = 0; id < f->t->n && !wanted; id++)
		wanted = is_added(f, id, map);
	return wanted;
}

static void fill_map(struct filling *f, enum ap_op_map map)
{
	const struct ap_jv *v = f->t->map[map] ? ap_jv_first(f->t->map[map]) : NULL;

	ap_jw_key(f->w, ap_op_map_key(map));
	ap_jw_obj(f->w);
	for (; v; v = ap_jv_next(v))
		write_named(f, v, map);
	for (ap_id id = 0; id < f->t->n; id++)
		if (is_added(f, id, map)) {
			ap_jw_key(f->w, ap_op_name_at(f->t, id));
			ap_op_write_value(f->ctx, f->w, f->p, f->match.node[id], map,
				(struct ap_op_said){.nout = 1});
		}
	ap_jw_end(f->w);
}

void ap_op_fill(struct ap_ctx *ctx, struct ap_jw *w, const struct ap_plan *p, const struct ap_op_template *t)
{
	struct filling f = {.ctx = ctx, .w = w, .p = p, .t = t, .placed = ap_op_inputs_need_layouts(p)};

	ap_op_match_make(ctx, t, p->graph, &f.match);
	for (int map = 0; map < AP_OP_MAP_COUNT; map++)
		if (is_wanted(&f, (enum ap_op_map)map))
			fill_map(&f, (enum ap_op_map)map);
}
