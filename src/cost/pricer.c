/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "cost/move.h"
#include "hw/coll.h"
#include "hw/group.h"

#define DIRECT_SLOTS 1024 /* power of two; a machine has at most a few hundred single axes */
#define STEP_SLOTS 4096 /* power of two; moves by axes by sizes of a tensor's slices */

/* The last step of its slot that was priced. */
struct remembered {
	int64_t before; /* elements */
	uint64_t signature; /* 0: none */
	struct ap_steps_cost cost;
};

struct ap_pricer {
	struct ap_arena *arena;
	const struct ap_machine *machine;
	const struct ap_step *step;
	struct ap_map *ids;
	AP_VEC(struct ap_group *) groups;
	const struct ap_group *direct[DIRECT_SLOTS]; /* single axes, by stride and size */
	struct remembered step_cost[STEP_SLOTS];
};

struct ap_pricer *ap_pricer_create(struct ap_arena *arena, const struct ap_machine *m,
	const struct ap_step *step)
{
	struct ap_pricer *p = AP_NEW(arena, struct ap_pricer);

	p->arena = arena;
	p->machine = m;
	p->step = step;
	p->ids = ap_map_create(arena);
	return p;
}

const struct ap_machine *ap_pricer_machine(const struct ap_pricer *p)
{
	return p->machine;
}

const struct ap_step *ap_pricer_step(const struct ap_pricer *p)
{
	return p->step;
}

static const struct ap_group *interned(struct ap_pricer *p, const struct ap_axes *axes)
{
	bool fresh;
	ap_id id = ap_map_put(p->ids, axes->axis, (size_t)axes->n * sizeof *axes->axis, &fresh);

	if (fresh) {
		struct ap_group *g = AP_NEW(p->arena, struct ap_group);

		ap_group_make(p->arena, p->machine, axes, g);
		AP_PUSH(p->arena, p->groups, g);
	}
	return p->groups.v[id];
}

const struct ap_group *ap_pricer_group(struct ap_pricer *p, const struct ap_axes *axes)
{
	const struct ap_group **slot;

	if (axes->n != 1)
		return interned(p, axes);
	slot = &p->direct[((uint32_t)axes->axis[0].stride * 37u + (uint32_t)axes->axis[0].size) &
		(DIRECT_SLOTS - 1)];
	if (!*slot || !ap_axes_equal(&(*slot)->axes, axes))
		*slot = interned(p, axes);
	return *slot;
}

double ap_comm_time_s(struct ap_pricer *pr, const struct ap_comm *c, const char **algorithm)
{
	if (c->kind == AP_COLL_SEND) {
		if (algorithm)
			*algorithm = "point to point";
		return ap_send_time_s(pr->machine, (uint32_t)c->from_stage, (uint32_t)c->to_stage,
			(double)c->bytes);
	}
	return ap_coll_time_s(pr->machine, c->kind, ap_pricer_group(pr, &c->axes),
		(double)c->bytes, algorithm);
}

/* What the price of a step depends on besides the elements; never 0. */
static uint64_t signature(const struct ap_reshard_step *s, int dtype_bytes)
{
	return (uint64_t)s->axis.stride << 40 | (uint64_t)s->axis.size << 16 |
		(uint64_t)dtype_bytes << 8 | (uint64_t)s->first << 4 | (uint64_t)s->move;
}

static uint32_t step_slot(int64_t before, uint64_t sig)
{
	uint64_t h = (uint64_t)before * UINT64_C(0x9e3779b97f4a7c15) ^
		sig * UINT64_C(0xff51afd7ed558ccd);

	return (uint32_t)(h >> 40) & (STEP_SLOTS - 1);
}

void ap_steps_cost_make(struct ap_pricer *pr, const struct ap_reshard_step *steps, int n,
	int dtype_bytes, struct ap_steps_cost *out)
{
	struct ap_steps_cost sum = {0};

	for (int i = 0; i < n; i++) {
		const struct ap_reshard_step *s = &steps[i];
		uint64_t sig = signature(s, dtype_bytes);
		struct remembered *r = &pr->step_cost[step_slot(s->before, sig)];

		if (r->before != s->before || r->signature != sig) {
			*r = (struct remembered){.before = s->before, .signature = sig};
			ap_step_cost_make(pr, s, dtype_bytes, &r->cost);
		}
		sum.forward_s += r->cost.forward_s;
		sum.adjoint_s += r->cost.adjoint_s;
		sum.bytes += r->cost.bytes;
	}
	*out = sum;
}
