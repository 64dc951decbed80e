/* SPDX-License-Identifier: Apache-2.0 */
/* Redistributions cost what their steps cost, whatever was priced before them; and the table has just
 * these prices. */
#include "layouts.h"
#include "base/arena.h"
#include "base/num.h"
#include "base/vec.h"
#include "cost/kernel.h"
#include "fixture.h"
#include "harness.h"
#include "cost/move.h"
#include "hw/coll.h"
#include "hw/group.h"
#include "shard/layout.h"
#include "shard/reshard.h"
#include "table/joint.h"
#include "table/table.h"

static double copy_s(const struct ap_chip *chip, double bytes)
{
	struct ap_kernel k = {.unit = AP_OP_MEMORY, .dtype = AP_FLOAT32, .bytes = 2 * bytes};

	return ap_kernel_time_s(chip, &k);
}

static double coll_s(struct fixture *f, enum ap_coll c, struct ap_axis axis, double bytes)
{
	struct ap_mark mark = ap_arena_mark(f->ctx.scratch);
	struct ap_axes axes = {1, {axis}};
	struct ap_group group;
	double s;

	ap_group_make(f->ctx.scratch, f->machine, &axes, &group);
	s = ap_coll_time_s(f->machine, c, &group, bytes, NULL);
	ap_arena_release(f->ctx.scratch, mark);
	return s;
}

static double step_s(struct fixture *f, const struct ap_reshard_step *s, double bytes, bool adjoint)
{
	const struct ap_chip *chip = f->machine->chip;
	double before = (double)s->before * bytes, after = (double)s->after * bytes;

	if (s->move == AP_MOVE_SLICE)
		return copy_s(chip, adjoint ? (before + after) / 2 : after);
	if (s->move == AP_MOVE_ALLTOALL)
		return coll_s(f, AP_COLL_ALLTOALL, s->axis, before) + copy_s(chip, before);
	if (s->move == AP_MOVE_REDUCESCATTER || s->move == AP_MOVE_ALLREDUCE)
		return coll_s(f, s->move == AP_MOVE_ALLREDUCE ? AP_COLL_ALLREDUCE : AP_COLL_REDUCESCATTER,
			       s->axis, f->step.force_fp32 && bytes == 2 ? 2 * before : before) +
			(s->first || s->move == AP_MOVE_ALLREDUCE ? 0 : 2 * copy_s(chip, before));
	return coll_s(f, adjoint ? AP_COLL_REDUCESCATTER : AP_COLL_ALLGATHER, s->axis,
		       adjoint && f->step.force_fp32 && bytes == 2 ? 2 * after : after) +
		(s->first ? 0 : 2 * copy_s(chip, after));
}

/* The same, step by step, nothing remembered. */
static struct ap_move_cost plain(struct fixture *f, const struct ap_flow *flow,
	const struct ap_layout *a, const struct ap_layout *b, const struct ap_axes *partial)
{
	struct ap_reshard_step there[AP_RESHARD_MAX], back[AP_RESHARD_MAX];
	int n = ap_reshard(a, b, flow->size, f->machine->ndev, ap_reshard_ways(&f->step), there), m;
	int bytes = ap_dtype_bytes(flow->dtype);
	struct ap_reshard_end ends[2];
	struct ap_move_cost c = {0};

	ap_reshard_end_make(b, flow->size, f->machine->ndev, &ends[0]);
	ap_reshard_end_make(a, flow->size, f->machine->ndev, &ends[1]);
	ends[0].partial = *partial;
	m = ap_reshard_back(&ends[0], &ends[1], ap_reshard_ways(&f->step), back);

	for (int i = 0; i < n; i++) {
		const struct ap_reshard_step *s = &there[i];

		c.forward_s += step_s(f, s, bytes, false);
		if (s->move == AP_MOVE_GATHER)
			c.bytes += (s->after - s->before) * bytes;
		if (s->move == AP_MOVE_ALLTOALL)
			c.bytes += s->before / s->axis.size * (s->axis.size - 1) * bytes;
		if (flow->kept)
			c.kept_bytes = s->after * bytes;
		if (flow->grad && f->step.executor == AP_EXECUTOR_MINDSPORE)
			c.backward_s += step_s(f, s, bytes, true);
	}
	for (int i = 0; i < m && flow->grad && f->step.executor == AP_EXECUTOR_GENERIC; i++)
		c.backward_s += step_s(f, &back[i], bytes, false);
	c.forward_s *= (double)f->step.micro_batches;
	c.backward_s *= (double)f->step.micro_batches;
	if (flow->kept && f->step.executor == AP_EXECUTOR_GENERIC && n > 0 &&
		there[n - 1].after > there[0].before) {
		c.backward_s += c.forward_s;
		c.kept_bytes = 0;
	}
	return c;
}

/* The ranks that a layout leaves uncut. */
static struct ap_axes beside(const struct ap_layout *l, int64_t ndev)
{
	const struct ap_axes all = {1, {{1, (int32_t)ndev}}};
	struct ap_axes own = {0}, left;

	for (int d = 0; d < l->rank; d++)
		if (l->dim[d].cut > 1)
			ap_axes_add(&own, (struct ap_axis){l->dim[d].stride, l->dim[d].cut});
	ap_axes_without(&all, &own, &left);
	return left;
}

static void check_same(const struct ap_move_cost *got, const struct ap_move_cost *want)
{
	REQUIRE(got->forward_s == want->forward_s);
	REQUIRE(got->backward_s == want->backward_s);
	REQUIRE(got->kept_bytes == want->kept_bytes);
	REQUIRE(got->bytes == want->bytes);
}

static const struct machine {
	int64_t ndev, per_server;
	const char *chip;
} machines[] = {
	{64, 8, "a100-80"},
	{1024, 16, "ascend910a"},
	{48, 6, "ascend910b"},
	{1000, 8, "a100-80"},
};

/* One pricer for all, so that it forgets and confuses what it can. */
START_LOOP_TEST(moves_cost_what_their_steps_cost, 2 * AP_COUNT(machines))
{
	static const enum ap_dtype dtypes[] = {AP_FLOAT16, AP_FLOAT32, AP_INT8};
	const struct machine *m = &machines[_i / 2];
	uint64_t seed = random_seed("moves_cost_what_their_steps_cost");
	struct ap_pricer *pricer;
	struct fixture f;

	fixture_open(&f, m->ndev, m->per_server, m->chip);
	f.step.executor = _i % 2 ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE;
	f.step.micro_batches = 3;
	f.step.alltoall = _i / 2 % 2;
	f.step.force_fp32 = _i / 4;
	fixture_in_flight(&f, 2);
	pricer = ap_pricer_create(f.ctx.arena, f.machine, &f.step);
	for (int round = 0; round < 5000; round++) {
		struct ap_flow flow = {.rank = (uint8_t)(1 + random_next(&seed) % 4),
			.dtype = dtypes[random_next(&seed) % 3], .grad = random_next(&seed) % 4,
			.kept = random_next(&seed) % 2, .in_flight = 2};
		struct ap_layout a = layouts_random(flow.rank, m->ndev, &seed);
		struct ap_layout b = layouts_random(flow.rank, m->ndev, &seed);
		struct ap_reshard_end from, to;
		struct ap_move_cost got, want;
		struct ap_axes partial = {0};

		if (f.step.executor == AP_EXECUTOR_GENERIC && random_next(&seed) % 2)
			partial = beside(&b, m->ndev);
		layouts_sizes(&a, &b, (int)(random_next(&seed) % 16), flow.size);
		if (random_next(&seed) % 8 == 0)
			flow.size[flow.rank - 1]++; /* parts are not all equal */
		want = plain(&f, &flow, &a, &b, &partial);
		ap_move_cost_make(pricer, &flow, &a, &b, &partial, &got);
		check_same(&got, &want);
		ap_reshard_end_make(&a, flow.size, m->ndev, &from);
		ap_reshard_end_make(&b, flow.size, m->ndev, &to);
		to.partial = partial;
		ap_move_cost_between(pricer, &flow, &from, &to, &got);
		check_same(&got, &want);
	}
	fixture_close(&f);
}
END_TEST

/* More sizes than any pricer remembers. */
START_TEST(sizes_are_told_apart)
{
	struct ap_layout a = {.rank = 1, .dim = {{8, 1}}}, b = {.rank = 1, .dim = {{1, 0}}};
	struct ap_flow flow = {.rank = 1, .dtype = AP_FLOAT32, .grad = true, .kept = true, .in_flight = 1};
	struct ap_pricer *pricer;
	struct fixture f;

	fixture_open(&f, 8, 8, "a100-80");
	pricer = ap_pricer_create(f.ctx.arena, f.machine, &f.step);
	for (int64_t parts = 1; parts < 20000; parts++) {
		struct ap_move_cost got, want;

		flow.size[0] = 8 * parts;
		want = plain(&f, &flow, &a, &b, &(struct ap_axes){0});
		ap_move_cost_make(pricer, &flow, &a, &b, NULL, &got);
		check_same(&got, &want);
	}
	fixture_close(&f);
}
END_TEST

/* Of a gather for a product, and of its way back, the share that a profile states runs beside it; what
 * another operator reads is charged in full, and an exchange, too. */
START_TEST(gathers_run_beside_products)
{
	struct ap_layout a = {.rank = 2, .dim = {{8, 1}, {1, 0}}}, whole = {.rank = 2, .dim = {{1, 0}, {1, 0}}};
	struct ap_layout turned = {.rank = 2, .dim = {{1, 0}, {8, 1}}};
	struct ap_software software = {.gather_overlap = 0.25};
	const struct {
		bool beside;
		const struct ap_layout *to;
		double share; /* that is left */
	} rows[] = {{true, &whole, 0.75}, {false, &whole, 1}, {true, &turned, 1}};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		struct ap_flow flow = {.rank = 2, .dtype = AP_FLOAT16, .grad = true, .kept = true,
			.in_flight = 1, .size = {4096, 4096}, .beside = rows[i].beside};
		struct ap_move_cost got, want;
		struct fixture f;

		fixture_open(&f, 8, 8, "ascend910b3");
		f.step.executor = AP_EXECUTOR_GENERIC;
		f.step.alltoall = true;
		f.step.software = &software;
		want = plain(&f, &flow, &a, rows[i].to, &(struct ap_axes){0});
		ap_move_cost_make(ap_pricer_create(f.ctx.arena, f.machine, &f.step), &flow, &a, rows[i].to,
			NULL, &got);
		ck_assert_double_ge(want.backward_s, want.forward_s);
		ck_assert_double_eq_tol(got.forward_s / want.forward_s, rows[i].share, 1e-12);
		ck_assert_double_eq_tol(got.backward_s / want.backward_s, rows[i].share, 1e-12);
		ck_assert_int_eq(got.bytes, want.bytes);
		fixture_close(&f);
	}
}
END_TEST

/* A tensor with several users, two of them of one kind, one that keeps it and one that does not. */
#define GRAPH \
	"{'schema':'autopar-graph/1','name':'shared'," \
	"'inputs':[{'name':'x','shape':[24,16,48],'dtype':'float16','batch_dim':0}]," \
	"'parameters':[{'name':'b','shape':[48],'dtype':'float16'}," \
	"{'name':'w','shape':[24,48,48],'dtype':'float16'}]," \
	"'operators':[" \
	"{'name':'in','type':'Add','inputs':['x','b'],'outputs':[{'name':'e'}]}," \
	"{'name':'act','type':'ReLU','inputs':['e'],'outputs':[{'name':'r'}]}," \
	"{'name':'soft','type':'Softmax','inputs':['r'],'outputs':[{'name':'s'}]}," \
	"{'name':'mix','type':'BatchMatMul','inputs':['s','w'],'outputs':[{'name':'m'}]}," \
	"{'name':'one','type':'Add','inputs':['m','e'],'outputs':[{'name':'o'}]}," \
	"{'name':'two','type':'Mul','inputs':['o','r'],'outputs':[{'name':'t'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['t'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

struct checking {
	struct fixture *f;
	const struct ap_table *t;
	uint32_t edge;
	size_t kept, summed;
};

static void layout_of(const struct checking *k, ap_id node, bool result, uint32_t slot, uint32_t c,
	struct ap_layout *out)
{
	const struct ap_bound *b = &k->f->graph->node[node].bound;
	struct ap_placement p;

	*out = (struct ap_layout){0};
	ap_placement_make(b, ap_table_counts(k->t, node, c), k->f->machine->ndev, &p);
	REQUIRE(ap_layout_make(&p, result ? &b->out[slot] : &b->in[slot], out));
}

/* What cuts the reader, and not its operand. */
static struct ap_axes partial_of(const struct checking *k, const struct ap_joint *j, uint32_t c)
{
	const struct ap_bound *b = &k->f->graph->node[j->v].bound;
	struct ap_axes out = {0};
	struct ap_placement p;

	ap_placement_make(b, ap_table_counts(k->t, j->v, c), k->f->machine->ndev, &p);
	for (int f = 0; f < b->nfactor && j->flow.grad; f++)
		if (p.count[f] > 1 && !(b->in[j->slot_v].factors >> f & 1))
			ap_axes_add(&out, (struct ap_axis){p.stride[f], p.count[f]});
	return out;
}

static void check_edge(void *user, const struct ap_joint *j)
{
	struct checking *k = user;
	const struct ap_pmatrix *m = &k->t->problem->matrix[k->t->problem->edge[k->edge++].matrix];

	REQUIRE(j->type == AP_BOND_FLOW);
	for (uint32_t r = 0; r < m->rows; r++)
		for (uint32_t c = 0; c < m->cols; c++) {
			bool generic = k->f->step.executor == AP_EXECUTOR_GENERIC;
			struct ap_axes partial = generic ? partial_of(k, j, c) : (struct ap_axes){0};
			struct ap_layout a, b;
			struct ap_move_cost want;
			size_t at = (size_t)r * m->cols + c;

			layout_of(k, j->u, true, j->slot_u, r, &a);
			layout_of(k, j->v, false, j->slot_v, c, &b);
			want = plain(k->f, &j->flow, &a, &b, &partial);
			k->summed += partial.n > 0;
			REQUIRE(m->cost[at] == ap_quantise_s(want.forward_s + want.backward_s, AP_QUANTUM_S));
			if (j->flow.shown)
				want.kept_bytes = 0;
			if (j->flow.share) /* the rest is charged to the consumer */
				want.kept_bytes -= want.kept_bytes / j->flow.share;
			want.kept_bytes *= j->flow.in_flight;
			REQUIRE((m->memory ? m->memory[at] : 0) == want.kept_bytes);
			k->kept += want.kept_bytes > 0;
		}
}

START_LOOP_TEST(the_table_has_these_prices, 4)
{
	const struct ap_table_params params = {0};
	struct checking k = {0};
	struct fixture f;

	fixture_open(&f, _i % 2 ? 12 : 8, 4, "a100-80");
	f.ctx.jobs = 2;
	f.step.executor = _i / 2 ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE;
	fixture_graph(&f, GRAPH);
	k.f = &f;
	ck_assert_int_eq(ap_table_make(&f.ctx, f.graph, f.machine, &f.step, &params, &k.t), AP_OK);
	ap_joints_each(&f.ctx, f.graph, k.t->task, &f.step, check_edge, &k);
	ck_assert_uint_eq(k.edge, k.t->problem->nedge);
	ck_assert_uint_gt(k.kept, 100);
	ck_assert_int_eq(k.summed > 100, _i / 2);
	fixture_close(&f);
}
END_TEST
