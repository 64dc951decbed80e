/* SPDX-License-Identifier: Apache-2.0 */
/* Every legal strategy of random operators, held against the truth. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cost/comms.h"
#include "cost/opcost.h"
#include "hw/coll.h"
#include "rule/bind.h"
#include "rule/op.h"
#include "shard/layout.h"
#include "shard/space.h"
#include "shard/strategy.h"
#include "oper.h"

static const char *differs(struct ex_world *w, const char *what, int i, const struct ex_shards *got,
	const struct ex_tensor *want, const struct ap_layout *l, enum ex_holds holds)
{
	const char *how = ex_differs(w->ctx, got, want, l, holds);

	return how ? ap_arena_printf(w->ctx->arena, "%s %d: %s", what, i, how) : NULL;
}

/* A parameter: its gradient after the exchange, then its new value. */
static const char *run_parameter(struct ex_world *w, const struct ex_case *c, const struct ex_oper *o,
	const struct ap_placement *p, int i, struct ex_shards *grad, struct ex_shards *weight)
{
	struct ap_opt_shard shard;
	struct ex_tensor want = ex_tensor_new(w->ctx->scratch, &c->truth.in[i].box);
	const char *why = NULL;

	for (int64_t k = 0; k < ex_count(&want.box); k++)
		want.v[k] = ex_sub(c->truth.in[i].v[k], ex_mul(3, c->truth.din[i].v[k]));
	ap_opt_shard_make(&c->task, i, p, &c->step, &shard);
	ex_exchange_gradient(w, o, i, &shard, grad);
	if (shard.shards == 1)
		why = differs(w, "gradient of parameter", i, grad, &c->truth.din[i], &o->in[i],
			EX_EVERY);
	if (why)
		return why;
	ex_update(w, o, i, &shard, grad, weight);
	return differs(w, "updated parameter", i, weight, &want, &o->in[i], EX_EVERY);
}

static const char *run_back(struct ex_world *w, const struct ex_case *c, const struct ex_oper *o,
	const struct ap_placement *p, struct ex_run *run, struct ex_shards *in)
{
	struct ex_shards dout[EX_MAX_OUT], din[EX_MAX_IN];
	bool sums = w->executor == AP_EXECUTOR_MINDSPORE;
	const char *why = NULL;

	for (int i = 0; i < o->nout; i++)
		dout[i] = sums ? ex_deal_partial(w->ctx->scratch, &c->truth.dout[i], &o->out[i], w->ndev,
			&w->rng) : ex_cut(w->ctx->scratch, &c->truth.dout[i], &o->out[i], w->ndev);
	ex_backward(w, run, dout, din);
	for (int i = 0; i < o->nin && !why; i++)
		if (c->in_grad[i] && c->in[i].kind == AP_TENSOR_PARAM)
			why = run_parameter(w, c, o, p, i, &din[i], &in[i]);
		else if (c->in_grad[i])
			why = differs(w, "gradient of operand", i, &din[i], &c->truth.din[i], &o->in[i],
				sums ? EX_SUM : EX_EVERY);
	return why;
}

const char *ex_case_run(struct ex_world *w, const struct ex_case *c, const int32_t *count)
{
	struct ap_placement p;
	struct ex_oper o = ex_oper_of_counts(w, c, count, &p);
	struct ex_shards in[EX_MAX_IN], out[EX_MAX_OUT];
	const char *why = NULL;
	struct ex_run *run;

	if (w->trouble)
		return w->trouble;
	for (int i = 0; i < o.nin; i++)
		in[i] = ex_cut(w->ctx->scratch, &c->truth.in[i], &o.in[i], w->ndev);
	if (ex_stays_in_parts(&o, w->ndev))
		return ex_run_parts(w, &o, in, &c->truth.dout[0],
			c->task.backward && !c->sample->ties);
	run = ex_forward(w, &o, in, out);
	for (int i = 0; i < o.nout && !why; i++)
		if (!(c->kernel->opaque >> i & 1))
			why = differs(w, "result", i, &out[i], &c->truth.out[i], &o.out[i], EX_EVERY);
	if (!why && c->task.backward && !c->sample->ties)
		why = run_back(w, c, &o, &p, run, in);
	return w->trouble ? w->trouble : why;
}

/* The strategy must come back from the vectors that are written of it. */
static const char *round_trip(struct ap_ctx *ctx, const struct ex_case *c, const int32_t *count,
	int64_t ndev)
{
	enum { MOST = 2 * EX_MAX_IN };
	uint8_t rank[MOST];
	int32_t cut[MOST][AP_MAX_RANK], back[AP_MAX_FACTOR];
	struct ap_placement p;
	const char *why;
	uint32_t n;

	if (!ap_op_has_strategy(c->bound.row))
		return NULL;
	ap_placement_make(&c->bound, count, ndev, &p);
	n = ap_space_to_strategy(&p, rank, cut, MOST);
	if (!ap_space_from_strategy(ctx, &c->bound, ndev, &c->step, n, rank,
		(const int32_t(*)[AP_MAX_RANK])cut, back, &why))
		return ap_arena_printf(ctx->arena, "its strategy is refused: %s", why);
	return memcmp(back, count, c->bound.nfactor * sizeof *back) == 0 ? NULL :
		"its strategy reads back as another one";
}

static void add_comms(struct ap_str *s, const struct ex_oper *o)
{
	static const char *const phases[] = {"forward", "backward", "gradient", "optimizer", "recompute"};

	for (uint32_t i = 0; i < o->ncomm; i++) {
		const struct ap_comm *c = &o->comm[i];

		ap_str_addf(s, "\n  %s %s of %s %d over", phases[c->phase], ap_coll_name(c->kind),
			c->operand >= 0 ? "operand" : "result",
			c->operand >= 0 ? c->operand : c->result);
		for (int k = 0; k < c->axes.n; k++)
			ap_str_addf(s, " %" PRId32 " by %" PRId32, c->axes.axis[k].size,
				c->axes.axis[k].stride);
		ap_str_addf(s, ", %" PRId64 " bytes", c->bytes);
	}
}

/* All that is needed to see it again. */
static const char *described(struct ex_world *w, const struct ex_case *c, const int32_t *count,
	const char *why)
{
	struct ap_placement p;
	struct ex_oper o = ex_oper_of_counts(w, c, count, &p);
	struct ap_str s;

	ap_str_init(&s, w->ctx->arena);
	ap_str_addf(&s, "%s\n  %s\n  rule %s\n  %" PRId64 " devices, %s, counts", why,
		ex_sample_text(w->ctx, c->sample), ap_rule_text(w->ctx, &c->bound), w->ndev,
		w->executor == AP_EXECUTOR_GENERIC ? "generic" : "mindspore");
	for (int f = 0; f < c->bound.nfactor; f++)
		ap_str_addf(&s, " %c=%" PRId32, c->bound.factor[f].letter, count[f]);
	if (c->bound.dealt)
		ap_str_add(&s, c->bound.dealt_rows ? ", dealt where that divides" : ", dealt");
	if (c->step.optimizer_sharding)
		ap_str_addf(&s, ", shard size %" PRId64, c->step.shard_size);
	for (int i = 0; i < c->bound.nin; i++)
		ap_str_addf(&s, "%s%s%s", i ? ", " : "\n  operands: ",
			c->in[i].kind == AP_TENSOR_PARAM ? "parameter" : "activation",
			c->in_grad[i] ? "" : " without gradient");
	add_comms(&s, &o);
	return s.s;
}

struct rows { /* work on a type */
	struct ex_world w;
	const struct ex_effort *effort;
	struct ex_case c;
	uint64_t seed; /* of the sample */
	struct ex_tally *tally;
};

static bool run_one(struct rows *r, const int32_t *count, enum ap_executor e, enum ex_tasks tasks)
{
	struct ap_mark mark = ap_arena_mark(r->w.ctx->scratch);
	struct ap_mark kept = ap_arena_mark(r->w.ctx->arena);
	const char *why;

	r->w.executor = e;
	r->w.trouble = NULL;
	r->w.rng = 1 + ex_hash(r->seed, r->tally->runs++) / 2;
	ex_case_draw(&r->w, tasks, &r->c);
	why = round_trip(r->w.ctx, &r->c, count, r->w.ndev);
	if (!why)
		why = ex_case_run(&r->w, &r->c, count);
	if (why)
		r->tally->difference = described(&r->w, &r->c, count, why);
	else
		ap_arena_release(r->w.ctx->arena, kept);
	ap_arena_release(r->w.ctx->scratch, mark);
	return !why;
}

/* Strategies evenly out of all, each with both executors, tasks in turn. */
static bool run_space(struct rows *r, int64_t ndev)
{
	struct ap_step step = AP_STEP_DEFAULT;
	struct ap_space space;
	uint32_t most = r->effort->strategies, n, offset;

	r->w.ndev = ndev;
	ap_space_make(r->w.ctx, &r->c.bound, ndev, &step, &space);
	r->tally->strategies += space.n;
	n = space.n < most ? space.n : most;
	r->tally->executed += n;
	offset = (uint32_t)(ex_hash(r->seed, (uint64_t)ndev) % space.n);
	for (uint32_t i = 0; i < n && !r->effort->dry; i++) {
		uint32_t at = (offset + (uint32_t)((uint64_t)i * space.n / n)) % space.n;
		const int32_t *count = space.count + (size_t)at * space.nfactor;
		enum ex_tasks tasks = (enum ex_tasks)((at + (uint32_t)ndev / 2) % EX_NTASKS);

		if (!run_one(r, count, AP_EXECUTOR_MINDSPORE, tasks) ||
			!run_one(r, count, AP_EXECUTOR_GENERIC, tasks))
			return false;
	}
	return true;
}

/* The bit of a row among those of its type. */
static uint64_t bit_of(const char *type, const struct ap_op_row *row)
{
	uint64_t bit = 1;

	for (const struct ap_op_row *o = ap_op_next(NULL, type); o && o != row; o = ap_op_next(o, type))
		bit <<= 1;
	return bit;
}

/* Would it be bound by a row that none before it was? */
static bool is_news(struct rows *r, const struct ex_sample *s)
{
	struct ap_bind_in in = {.type = s->type, .attrs = &s->attrs, .nin = s->nin, .nout = s->nout,
		.in = s->in, .slot = s->slot, .declared = s->nout ? s->declared : NULL};
	struct ap_bind_fault fault;
	struct ap_bound b;

	return ap_rule_bind(r->w.ctx, &in, &b, &fault) == AP_OK &&
		!(r->tally->met & bit_of(s->type, b.row));
}

static bool run_sample(struct rows *r, const struct ex_sample *s)
{
	r->w.trouble = NULL;
	r->w.rng = r->seed;
	r->tally->samples++;
	if (!ex_case_make(&r->w, s, &r->c)) {
		r->tally->difference = ap_arena_printf(r->w.ctx->arena, "%s\n  %s", r->w.trouble,
			ex_sample_text(r->w.ctx, s));
		return false;
	}
	r->tally->met |= bit_of(s->type, r->c.bound.row);
	do {
		for (size_t i = 0; i < r->effort->nndev; i++)
			if (!run_space(r, r->effort->ndev[i]))
				return false;
	} while (ex_case_deal(&r->w, &r->c));
	return true;
}

/* Samples of a type, ordered ones with and without ties; after the first ones only those that are
 * bound by other rows. */
static bool run_type(struct rows *r, const struct ex_kernel *k, uint64_t seed)
{
	enum { MOST = 2000 };
	uint32_t each = k->ordered ? 2 : 1, first = r->effort->samples * each;
	bool good = true;

	for (uint32_t i = 0; good && i < MOST; i++) {
		struct ap_mark mark = ap_arena_mark(r->w.ctx->arena);
		struct ex_sample s;

		if (i >= first && r->tally->met == r->tally->rows)
			break;
		r->seed = 1 + ex_hash(seed ^ ex_hash_text(k->type), i / each) / 2;
		ex_sample_begin(&s, k->type, r->seed);
		s.ties = i % each;
		k->make(&s);
		if (i < first || is_news(r, &s))
			good = run_sample(r, &s);
		if (good)
			ap_arena_release(r->w.ctx->arena, mark);
	}
	return good;
}

struct ex_tally ex_rows_run(struct ap_ctx *ctx, const struct ex_kernel *k, uint64_t seed,
	const struct ex_effort *effort)
{
	struct ex_tally tally = {.type = k->type};
	struct ap_ctx own = {.arena = ap_arena_create_like(ctx->arena),
		.scratch = ap_arena_create_like(ctx->arena), .jobs = 1};
	struct rows r = {.w = {.ctx = &own}, .effort = effort, .tally = &tally};

	own.diag = ap_diag_create(own.arena, false);
	tally.rows = bit_of(k->type, NULL) - 1;
	if (!run_type(&r, k, seed))
		tally.difference = ap_arena_strdup(ctx->arena, tally.difference);
	tally.collectives = r.w.ncollective;
	ap_arena_destroy(own.scratch);
	ap_arena_destroy(own.arena);
	return tally;
}
