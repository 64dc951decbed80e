/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redistributions carried out on virtual ranks, between all layouts that the axes of small meshes give,
 * and between random ones on up to 64 ranks: every rank ends with its slice, gradients come back, and
 * what is charged is what ran.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/vec.h"
#include "cost/move.h"
#include "hw/group.h"
#include "shard/reshard.h"
#include "exec.h"
#include "fixture.h"
#include "harness.h"

enum { MOST_LAYOUTS = 1000, MOST_PAIRS = 4000, LEAST_PAIRS = 150 /* some of them partial sums */ };

struct mesh {
	int n, size[3];
};

/* From layouts of one to layouts of the other: where they differ, axes begin and end in different
 * places. */
static const struct mesh_pair {
	struct mesh a, b;
} meshes[] = {
	{{3, {2, 2, 2}}, {3, {2, 2, 2}}},
	{{2, {4, 2}}, {2, {4, 2}}},
	{{3, {3, 2, 2}}, {3, {3, 2, 2}}},
	{{3, {2, 3, 2}}, {3, {2, 3, 2}}},
	{{3, {3, 2, 2}}, {3, {2, 3, 2}}},
	{{3, {2, 2, 3}}, {3, {3, 2, 2}}},
	{{2, {2, 3}}, {2, {3, 2}}},
};

struct pair { /* a redistribution that is tried */
	struct ex_world *w;
	struct ap_pricer *pricer;
	struct ap_layout a, b;
	struct ap_shape shape;
	struct ap_reshard_step step[AP_RESHARD_MAX];
	int nstep;
	struct ex_tensor x, g; /* values and gradients of the whole */
	uint64_t exchanges; /* so far, AlltoAlls of two dimensions */
};

static int64_t ranks_of(const struct mesh *m)
{
	int64_t n = 1;

	for (int i = 0; i < m->n; i++)
		n *= m->size[i];
	return n;
}

/* Nothing, or neighbouring axes of the mesh: what may cut a dimension. */
static int cuts_of(const struct mesh *m, struct ap_cut_dim *out)
{
	int n = 0;

	out[n++] = (struct ap_cut_dim){1, 0};
	for (int i = 0; i < m->n; i++) {
		int32_t cut = 1;

		for (int k = i; k < m->n; k++) {
			int32_t stride = 1;

			cut *= m->size[k];
			for (int j = k + 1; j < m->n; j++)
				stride *= m->size[j];
			out[n++] = (struct ap_cut_dim){cut, stride};
		}
	}
	return n;
}

static bool apart(const struct ap_cut_dim *x, const struct ap_cut_dim *y)
{
	return x->cut == 1 || y->cut == 1 || x->stride >= y->stride * y->cut ||
		y->stride >= x->stride * x->cut;
}

static bool is_layout(const struct ap_layout *l)
{
	for (int d = 0; d < l->rank; d++)
		for (int e = 0; e < d; e++)
			if (!apart(&l->dim[d], &l->dim[e]))
				return false;
	return true;
}

static int layouts_of(const struct mesh *m, int rank, struct ap_layout *out)
{
	struct ap_cut_dim cut[8];
	int ncut = cuts_of(m, cut), n = 0, at[AP_MAX_RANK] = {0}, d;

	do {
		struct ap_layout l = {.rank = rank};

		for (d = 0; d < rank; d++)
			l.dim[d] = cut[at[d]];
		if (is_layout(&l)) {
			ck_assert_int_lt(n, MOST_LAYOUTS);
			out[n++] = l;
		}
		for (d = 0; d < rank && ++at[d] == ncut; d++)
			at[d] = 0;
	} while (d < rank);
	return n;
}

/* Extents that both layouts divide, now and then more than that. */
static void draw(struct pair *p)
{
	struct ex_box b;

	p->shape = (struct ap_shape){.rank = (uint8_t)p->a.rank,
		.dtype = ex_below(&p->w->rng, 2) ? AP_FLOAT32 : AP_FLOAT16};
	for (int d = 0; d < p->a.rank; d++) {
		int64_t x = p->a.dim[d].cut, y = p->b.dim[d].cut;

		p->shape.dim[d] = x / ap_gcd(x, y) * y * (ex_below(&p->w->rng, 4) ? 1 : 2);
	}
	b = ex_box_whole(&p->shape);
	p->x = ex_tensor_new(p->w->ctx->scratch, &b);
	p->g = ex_tensor_new(p->w->ctx->scratch, &b);
	for (int64_t i = 0; i < ex_count(&b); i++) {
		p->x.v[i] = ex_hash(ex_next(&p->w->rng), 0);
		p->g.v[i] = ex_hash(ex_next(&p->w->rng), 0);
	}
	p->nstep = ap_reshard(&p->a, &p->b, p->shape.dim, p->w->ndev,
		ap_reshard_ways(ap_pricer_step(p->pricer)), p->step);
}

static void give_up(const struct pair *p, const char *what, const char *why)
{
	char text[2][128] = {"", ""};

	for (int k = 0; k < 2; k++)
		for (int d = 0; d < p->a.rank; d++) {
			const struct ap_cut_dim *c = k ? &p->b.dim[d] : &p->a.dim[d];
			size_t len = strlen(text[k]);

			snprintf(text[k] + len, sizeof text[k] - len, " %" PRId32 "x%" PRId32 " of %"
				PRId64, c->cut, c->stride, p->shape.dim[d]);
		}
	ck_abort_msg("%s: %s\n%" PRId64 " ranks,%s to%s", what, why, p->w->ndev, text[0], text[1]);
}

static void must_be(const struct pair *p, const char *what, const struct ex_shards *got,
	const struct ex_tensor *want, const struct ap_layout *l, enum ex_holds holds)
{
	const char *why = p->w->trouble;

	if (!why)
		why = ex_differs(p->w->ctx, got, want, l, holds);
	if (why)
		give_up(p, what, why);
}

/* The steps that the cost model walks are those that the plan lists. */
static void charged_steps(const struct pair *p)
{
	struct ap_reshard_end from, to;
	struct ap_reshard_step charged[AP_RESHARD_MAX];

	ap_reshard_end_make(&p->a, p->shape.dim, p->w->ndev, &from);
	ap_reshard_end_make(&p->b, p->shape.dim, p->w->ndev, &to);
	if (ap_reshard_moves(&from, &to, ap_reshard_ways(ap_pricer_step(p->pricer)), charged) != p->nstep)
		give_up(p, "charged", "another number of steps");
	for (int i = 0; i < p->nstep; i++) {
		const struct ap_reshard_step *x = &charged[i], *y = &p->step[i];

		if (x->move != y->move || x->dim != y->dim || x->concat != y->concat ||
			x->axis.stride != y->axis.stride || x->axis.size != y->axis.size ||
			x->before != y->before || x->after != y->after || x->first != y->first ||
			x->inner != y->inner || x->inner_parts != y->inner_parts ||
			x->concat_inner != y->concat_inner)
			give_up(p, "charged", "another step");
	}
}

static void charged_bytes(const struct pair *p, int64_t got)
{
	struct ap_flow flow = {.rank = p->shape.rank, .dtype = p->shape.dtype};
	struct ap_move_cost cost;

	memcpy(flow.size, p->shape.dim, sizeof flow.size);
	ap_move_cost_make(p->pricer, &flow, &p->a, &p->b, NULL, &cost);
	if (cost.bytes != got * ap_dtype_bytes(p->shape.dtype))
		give_up(p, "charged", "other bytes than are sent");
}

static uint64_t inner_product(const struct ex_shards *x, const struct ex_shards *y)
{
	uint64_t sum = 0;

	for (int64_t r = 0; r < x->ndev; r++)
		for (int64_t i = 0; i < ex_count(&x->of[r].box); i++)
			sum = ex_add(sum, ex_mul(x->of[r].v[i], y->of[r].v[i]));
	return sum;
}

/* Numbers that no rank shares with another: an adjoint is one for all of them. */
static struct ex_shards any_like(struct ex_world *w, const struct ex_tensor *whole,
	const struct ap_layout *l)
{
	struct ex_shards s = ex_cut(w->ctx->scratch, whole, l, w->ndev);

	for (int64_t r = 0; r < s.ndev; r++)
		for (int64_t i = 0; i < ex_count(&s.of[r].box); i++)
			s.of[r].v[i] = ex_hash(ex_next(&w->rng), 0);
	return s;
}

/* <steps(x), g> = <x, adjoint(g)>, and parts of a gradient stay parts of it. */
static void adjoint(const struct pair *p)
{
	struct ex_world *w = p->w;
	struct ex_shards x = any_like(w, &p->x, &p->a), moved = x;
	struct ex_shards g = any_like(w, &p->g, &p->b), back = g;
	struct ex_shards parts = ex_deal_partial(w->ctx->scratch, &p->g, &p->b, w->ndev, &w->rng);

	ex_move(w, p->step, p->nstep, &p->b, &moved);
	ex_move_back(w, p->step, p->nstep, &p->a, &back);
	if (inner_product(&moved, &g) != inner_product(&x, &back))
		give_up(p, "adjoint", "it is none");
	ex_move_back(w, p->step, p->nstep, &p->a, &parts);
	must_be(p, "gradient in parts", &parts, &p->g, &p->a, EX_SUM);
}

/* Some of the ranks from stride lo to hi, which nothing cuts. */
static void draw_partial_of(struct ex_world *w, int32_t lo, int32_t hi, struct ap_axes *out)
{
	int32_t n = hi / lo, skipped = 1 + (int32_t)ex_below(&w->rng, (uint32_t)n), size;

	if (n % skipped)
		skipped = 1;
	n /= skipped;
	size = 1 + (int32_t)ex_below(&w->rng, (uint32_t)n);
	ap_axes_add(out, (struct ap_axis){lo * skipped, n % size ? n : size});
}

/* Axes beside those that cut a layout. */
static void draw_partial(struct ex_world *w, const struct ap_layout *l, struct ap_axes *out)
{
	int32_t at = 1;

	*out = (struct ap_axes){0};
	while (at < w->ndev) {
		const struct ap_cut_dim *next = NULL;

		for (int d = 0; d < l->rank; d++)
			if (l->dim[d].cut > 1 && l->dim[d].stride >= at &&
				(!next || l->dim[d].stride < next->stride))
				next = &l->dim[d];
		if (ex_below(&w->rng, 4))
			draw_partial_of(w, at, next ? next->stride : (int32_t)w->ndev, out);
		at = next ? next->stride * next->cut : (int32_t)w->ndev;
	}
}

/* A gradient that is partial over some ranks comes back as the sum, and what is charged is what runs. */
static void partial_gradient(const struct pair *p)
{
	struct ap_reshard_step back[AP_RESHARD_MAX];
	struct ap_reshard_end from, to;
	struct ex_shards s;
	int n;

	ap_reshard_end_make(&p->b, p->shape.dim, p->w->ndev, &from);
	ap_reshard_end_make(&p->a, p->shape.dim, p->w->ndev, &to);
	draw_partial(p->w, &p->b, &from.partial);
	s = ex_deal_over(p->w->ctx->scratch, &p->g, &p->b, &from.partial, p->w->ndev, &p->w->rng);
	n = ap_reshard_back(&from, &to, ap_reshard_ways(ap_pricer_step(p->pricer)), back);
	for (int i = 0; i < n; i++)
		if (back[i].move == AP_MOVE_REDUCESCATTER)
			p->w->bytes++; /* to see that some were */
	ex_move(p->w, back, n, &p->a, &s);
	must_be(p, "gradient that is partial", &s, &p->g, &p->a, EX_EVERY);
}

static void try_pair(struct pair *p)
{
	struct ap_arena *scratch = p->w->ctx->scratch;
	struct ap_mark mark = ap_arena_mark(scratch);
	struct ap_reshard_step back[AP_RESHARD_MAX];
	struct ex_shards s;
	int n;

	draw(p);
	for (int i = 0; i < p->nstep; i++)
		p->exchanges += p->step[i].move == AP_MOVE_ALLTOALL && p->step[i].inner_parts > 1;
	charged_steps(p);
	s = ex_cut(scratch, &p->x, &p->a, p->w->ndev);
	charged_bytes(p, ex_move(p->w, p->step, p->nstep, &p->b, &s));
	must_be(p, "forward", &s, &p->x, &p->b, EX_EVERY);
	adjoint(p);
	s = ex_cut(scratch, &p->g, &p->b, p->w->ndev);
	n = ap_reshard(&p->b, &p->a, p->shape.dim, p->w->ndev, ap_reshard_ways(ap_pricer_step(p->pricer)),
		back);
	ex_move(p->w, back, n, &p->a, &s);
	must_be(p, "gradient that is whole", &s, &p->g, &p->a, EX_EVERY);
	partial_gradient(p);
	ap_arena_release(scratch, mark);
}

/* All ordered pairs, or so many of them. */
static uint64_t try_rank(struct pair *p, const struct mesh_pair *m, int rank, uint64_t most)
{
	static struct ap_layout from[MOST_LAYOUTS], to[MOST_LAYOUTS];
	uint64_t nfrom = (uint64_t)layouts_of(&m->a, rank, from);
	uint64_t all = nfrom * (uint64_t)layouts_of(&m->b, rank, to), tried = all < most ? all : most;

	for (uint64_t i = 0; i < tried; i++) {
		uint64_t at = tried == all ? i : ex_hash(ex_next(&p->w->rng), 0) % all;

		p->a = from[at % nfrom];
		p->b = to[at / nfrom];
		try_pair(p);
	}
	return tried;
}

START_LOOP_TEST(redistributions_arrive_and_come_back, 4 * AP_COUNT(meshes))
{
	const struct mesh_pair *m = &meshes[_i / 4]; /* with AlltoAll and without, joint steps and not */
	uint64_t asked = ex_cases(MOST_PAIRS), most = asked > LEAST_PAIRS ? asked : LEAST_PAIRS, tried = 0;
	struct fixture f;
	struct ex_world w = {.ctx = &f.ctx, .ndev = ranks_of(&m->a)};
	struct pair p = {.w = &w};

	w.rng = ex_seed("redistributions_arrive_and_come_back");
	fixture_open(&f, w.ndev, w.ndev, "ascend910b");
	f.step.alltoall = _i % 2;
	f.step.executor = _i / 2 % 2 ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE;
	p.pricer = ap_pricer_create(f.ctx.arena, f.machine, &f.step);
	for (int rank = 1; rank <= 4; rank++)
		tried += try_rank(&p, m, rank, most);
	printf("%" PRId64 " ranks: %" PRIu64 " redistributions, %" PRIu64 " collectives\n", w.ndev,
		tried, w.ncollective);
	ck_assert_uint_gt(w.ncollective, tried / 2);
	ck_assert(w.bytes > tried / 100 || tried < 1000);
	ck_assert(p.exchanges > 0 || _i % 4 < 3 || tried < 1000);
	fixture_close(&f);
}
END_TEST

/* Any cuts of 2, 3 and more parts, one behind the other, each of some dimension or of none. */
static struct ap_layout random_layout(struct ex_world *w, int rank)
{
	struct ap_layout l = {.rank = rank};
	int32_t stride = 1;

	for (int d = 0; d < rank; d++)
		l.dim[d].cut = 1;
	while (stride < w->ndev) {
		int32_t cut = 2 + (int32_t)ex_below(&w->rng, (uint32_t)(w->ndev / stride) - 1);
		struct ap_cut_dim *dim = &l.dim[ex_below(&w->rng, (uint32_t)rank)];

		if (w->ndev / stride % cut != 0)
			continue;
		if (dim->cut == 1 && ex_below(&w->rng, 4))
			*dim = (struct ap_cut_dim){cut, stride};
		stride *= cut;
	}
	return l;
}

START_LOOP_TEST(random_redistributions_arrive_and_come_back, 4)
{
	static const int64_t ndevs[] = {16, 24, 36, 64};
	uint64_t most = ex_cases(300);
	struct fixture f;
	struct ex_world w = {.ctx = &f.ctx, .ndev = ndevs[_i]};
	struct pair p = {.w = &w};

	w.rng = ex_seed("random_redistributions_arrive_and_come_back");
	fixture_open(&f, w.ndev, 4, "ascend910b");
	p.pricer = ap_pricer_create(f.ctx.arena, f.machine, &f.step);
	for (uint64_t i = 0; i < most; i++) {
		int rank = 1 + (int)ex_below(&w.rng, 4);

		f.step.alltoall = i % 2;
		f.step.executor = i / 2 % 2 ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE;
		p.a = random_layout(&w, rank);
		p.b = random_layout(&w, rank);
		try_pair(&p);
	}
	ck_assert_uint_gt(w.ncollective, most / 2);
	fixture_close(&f);
}
END_TEST

/* A step that is charged for other slices, or cannot be, is seen. */
START_TEST(false_steps_are_seen)
{
	const struct ap_layout a = {.rank = 1, .dim = {{4, 1}}}, b = {.rank = 1, .dim = {{1, 0}}};
	const struct ap_shape shape = {.rank = 1, .dtype = AP_FLOAT32, .dim = {8}};
	struct ex_box whole = ex_box_whole(&shape);
	struct fixture f;
	struct ex_world w = {.ctx = &f.ctx, .ndev = 4};
	struct ap_reshard_step step[AP_RESHARD_MAX], other;
	struct ex_tensor x;
	struct ex_shards s;

	fixture_open(&f, 4, 4, "ascend910b");
	x = ex_tensor_new(f.ctx.arena, &whole);
	for (uint64_t i = 0; i < 8; i++)
		x.v[i] = i;
	ck_assert_int_eq(ap_reshard(&a, &b, shape.dim, 4, true, step), 1);
	s = ex_cut(f.ctx.arena, &x, &a, 4);
	ck_assert_int_eq(ex_move(&w, step, 1, &b, &s), 6);
	ck_assert_uint_eq(s.of[3].v[5], 5);
	ck_assert_ptr_null(w.trouble);
	other = step[0];
	other.after = 4;
	s = ex_cut(f.ctx.arena, &x, &a, 4);
	ex_move(&w, &other, 1, &b, &s);
	ck_assert_str_eq(w.trouble,
		"a step from 2 to 8 elements is charged as one from 2 to 4");
	w.trouble = NULL;
	other = step[0];
	other.outer = 2;
	s = ex_cut(f.ctx.arena, &x, &a, 4);
	ex_move(&w, &other, 1, &b, &s);
	ck_assert_ptr_nonnull(ex_differs(&f.ctx, &s, &x, &b, EX_EVERY));
	fixture_close(&f);
}
END_TEST
