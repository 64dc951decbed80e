/* SPDX-License-Identifier: Apache-2.0 */
#include "api/decide.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <stdio.h>

#include "api/settle.h"
#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/map.h"
#include "base/par.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/family.h"
#include "plan/make.h"
#include "plan/memory.h"
#include "plan/terms.h"
#include "pipeline/schedule.h"
#include "route/route.h"

enum { LEAST_TOKENS = 4096 }; /* of a rank, unless a number of parts of the sequence is asked for */
enum { USUAL_HEADROOM = 5 }; /* per cent, where nobody says */
enum { ROUND = 16 }; /* trials of a round, whatever the jobs */

/* ---- the space that settings leave open ---- */

/* What a setting may be; n 0: it is not given, or auto. */
static struct ap_choices choices(struct ap_ctx *ctx, const struct ap_settings *set, enum ap_setting_id id,
	int64_t value)
{
	if (!ap_setting_given(set, id))
		return (struct ap_choices){.any = true};
	if (set->among[id])
		return *set->among[id];
	return (struct ap_choices){.n = 1, .v = ap_arena_memdup(ctx->arena, &value, sizeof value)};
}

/* Levels of what is dealt; n 0: those of the executor. */
static struct ap_choices levels(struct ap_ctx *ctx, const struct ap_settings *set)
{
	static const int64_t all[] = {0, 1, 2, 3};
	struct ap_choices c = choices(ctx, set, AP_SET_optimizer_level, set->optimizer_level);
	int64_t *v = AP_NEW_N(ctx->arena, int64_t, c.n);

	if (!ap_setting_given(set, AP_SET_optimizer_level) &&
		ap_setting_given(set, AP_SET_enable_parallel_optimizer))
		return set->enable_parallel_optimizer ? (struct ap_choices){.n = 3, .v = all + 1}
			: (struct ap_choices){.n = 1, .v = all};
	for (size_t i = 0; i < c.n; i++)
		v[i] = ap_setting_level((int)c.v[i]);
	c.n = ap_choices_sort(v, c.n);
	c.v = v;
	return c;
}

/* Experts of the graph: the most for each of which a product has a weight of its own; 0: none. */
static int64_t experts_of(const struct ap_graph *g)
{
	int64_t most = 0;

	for (ap_id i = 0; i < g->nnode; i++)
		for (uint16_t k = 0; strstr(g->node[i].type, "Mat") && k < g->node[i].bound.nin; k++) {
			const struct ap_tensor *t = &g->tensor[g->node[i].in[k]];

			if (t->kind == AP_TENSOR_PARAM && t->shape.rank == 3 && t->shape.dim[0] > most)
				most = t->shape.dim[0];
		}
	return most;
}

/* Tokens of a sample: the longest dimension of indices beside the batch; 0: none. */
static int64_t sequence_of(const struct ap_graph *g)
{
	int64_t most = 0;

	for (ap_id i = 0; i < g->ntensor; i++) {
		const struct ap_tensor *t = &g->tensor[i];

		if (t->kind != AP_TENSOR_INPUT || !(t->shape.dtype == AP_INT32 || t->shape.dtype == AP_INT64))
			continue;
		for (int d = 0; d < t->shape.rank; d++)
			if (!(t->batch >> d & 1) && t->shape.dim[d] > most)
				most = t->shape.dim[d];
	}
	return most;
}

static enum ap_status make_space(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const struct ap_inputs *in, struct ap_decision_space *s)
{
	struct ap_choices *keys[AP_HYBRID_KEYS] = {[AP_HYBRID_DP] = &s->dp, [AP_HYBRID_TP] = &s->tp,
		[AP_HYBRID_CP] = &s->cp, [AP_HYBRID_EP] = &s->ep, [AP_HYBRID_ETP] = &s->etp,
		[AP_HYBRID_SP] = &s->sp, [AP_HYBRID_MBS] = &s->mbs};
	const struct ap_choices kinds = choices(ctx, set, AP_SET_recompute, 0);
	struct ap_family_chain chain;
	struct ap_hybrid_space h = {0};

	ap_family_chain(ctx, in->graph, &chain);
	*s = (struct ap_decision_space){.language = ap_executor_language_of(in->request.route->name),
		.devices = in->topo->ndev, .batch = in->graph->batch, .layers = chain.n,
		.experts = experts_of(in->graph), .most_tp = in->chip->server_devices,
		.most_cp = sequence_of(in->graph) / LEAST_TOKENS,
		.pp = choices(ctx, set, AP_SET_pipeline_stages, set->pipeline_stages),
		.vpp = choices(ctx, set, AP_SET_pipeline_segments, set->pipeline_segments),
		.micro_batches = choices(ctx, set, AP_SET_micro_batches, set->micro_batches),
		.scheduler = choices(ctx, set, AP_SET_pipeline_scheduler, set->pipeline_scheduler),
		.level = levels(ctx, set)};
	if (s->most_cp < 1)
		s->most_cp = 1;
	if (set->hybrid)
		AP_TRY(ap_hybrid_space_parse(ctx, set->hybrid, &h));
	for (int k = 0; k < AP_HYBRID_KEYS; k++)
		if (keys[k] && h.given[k] && !h.key[k].any) {
			*keys[k] = h.key[k];
			if (k == AP_HYBRID_TP || k == AP_HYBRID_CP)
				*(k == AP_HYBRID_TP ? &s->most_tp : &s->most_cp) = s->devices;
		}
	if (!ap_setting_given(set, AP_SET_micro_batches) && !h.given[AP_HYBRID_MBS] &&
		ap_sources_mix_batch(ctx, set, src)) {
		static const int64_t whole[] = {1};

		s->micro_batches = (struct ap_choices){.n = 1, .v = whole};
	}
	if (kinds.word) {
		s->recompute = kinds.word;
		s->nrecompute = kinds.n;
	} else if (kinds.n) {
		s->recompute = ap_arena_memdup(ctx->arena, &set->recompute, sizeof set->recompute);
		s->nrecompute = 1;
	} else {
		s->recompute = s->language->recompute;
		while (s->recompute[s->nrecompute])
			s->nrecompute++;
	}
	return AP_OK;
}

/* ---- one point ---- */

/* Gives a setting the text that was decided, whatever it was before. */
static void decide(struct ap_ctx *ctx, struct ap_settings *o, enum ap_setting_id id, const char *text)
{
	const struct ap_setting_row *row = ap_setting_at(id);
	const char *why;
	bool good;

	ap_setting_unset(o, id);
	good = ap_setting_give(ctx->arena, row, o, text, AP_FROM_OPTION,
		ap_option_spelling(ctx->arena, "--", row), &why);
	assert(good);
	(void)good;
}

#define NUMBER(ctx, n) ap_arena_printf((ctx)->arena, "%" PRId64, (int64_t)(n))

void ap_decision_settings(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_decision *j,
	const struct ap_decision_point *p, struct ap_settings *out)
{
	struct ap_str h;

	*out = *set;
	decide(ctx, out, AP_SET_pipeline_stages, NUMBER(ctx, p->pp));
	decide(ctx, out, AP_SET_pipeline_segments, NUMBER(ctx, p->vpp));
	decide(ctx, out, AP_SET_pipeline_scheduler, ap_scheduler_at((size_t)p->scheduler)->name);
	decide(ctx, out, AP_SET_micro_batches, NUMBER(ctx, p->micro_batches));
	decide(ctx, out, AP_SET_recompute, j->space.recompute[p->recompute]);
	decide(ctx, out, AP_SET_enable_parallel_optimizer, p->level ? "true" : "false");
	if (p->level)
		decide(ctx, out, AP_SET_optimizer_level,
			ap_arena_printf(ctx->arena, "level%d", p->level));
	ap_str_init(&h, ctx->arena);
	ap_str_addf(&h, "dp=%" PRId64 ",tp=%" PRId64, p->dp, p->tp);
	if (p->cp > 1)
		ap_str_addf(&h, ",cp=%" PRId64, p->cp);
	if (p->ep > 1)
		ap_str_addf(&h, ",ep=%" PRId64, p->ep);
	if (p->ep > 1 && p->etp != p->tp)
		ap_str_addf(&h, ",etp=%" PRId64, p->etp);
	if (p->pp > 1)
		ap_str_addf(&h, ",pp=%" PRId64, p->pp);
	if (p->vpp > 1)
		ap_str_addf(&h, ",vpp=%" PRId64, p->vpp);
	if (p->sp)
		ap_str_add(&h, ",sp=1");
	if (p->mbs)
		ap_str_addf(&h, ",mbs=%" PRId64, p->mbs);
	decide(ctx, out, AP_SET_hybrid, h.s);
}

struct pass { /* of a micro-batch through all stages, forth and back */
	double s;
	int64_t dealt; /* devices that weights or gradients are gathered from in it; else 1 */
};

/* What a trial tells of points with the same work on a device in a pass of a layer. */
struct kin {
	struct passes { /* the shortest of each number of devices, as more stages may take longer */
		struct pass *v;
		size_t n, cap;
	} passes;
	double kept_bytes; /* of a micro-batch, of all layers */
	double static_bytes; /* of all layers, as dealt in the trial */
	int64_t dealt; /* devices that it is dealt to, where it is */
	int level;
	int32_t by; /* the trial; -1: none yet */
	uint32_t first; /* the trial by which it is met: one that is likely to fit */
	uint32_t smaller; /* kin of the next smaller micro-batches; AP_NONE: none */
	uint32_t more, less; /* kin that recomputes more, and less; AP_NONE: none */
};

struct trying { /* of one thread, or of a run */
	struct ap_ctx ctx;
	const struct ap_settings *set;
	const struct ap_sources *src;
	const struct ap_decision *joint;
	struct ap_decision_trial *trial;
	struct kin *tells;
	struct pass *pass;
};

/* What the layers of a plan hold and take. */
static void tell(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_decision_point *at,
	struct kin *k, struct pass *pass)
{
	struct ap_family_chain chain;

	ap_family_chain(ctx, p->graph, &chain);
	for (ap_id i = 0; i < p->graph->nnode; i++) {
		const struct ap_op_cost *c = &p->op[i].cost;
		const struct ap_plan_stage *s = &p->stage[ap_plan_op_stage(p, i)];
		int64_t held = s->held[ap_plan_op_segment(p, i)];

		if (chain.n && chain.layer[i] < 0)
			continue;
		k->static_bytes += (double)(c->weight_bytes + c->gradient_bytes + c->optimizer_bytes +
			c->gathered_bytes);
		if (held > 0)
			k->kept_bytes += (double)ap_plan_activation_bytes(p, i) / (double)held;
	}
	pass->s = 0;
	for (uint32_t s = 0; s < p->nstage; s++)
		pass->s += p->stage[s].forward_s + p->stage[s].backward_s;
	k->dealt = at->dp * at->cp;
	pass->dealt = at->level > 1 ? k->dealt : 1;
	k->level = at->level;
}

/* Prices a point, in an arena of its own. */
static void try(struct trying *t)
{
	struct ap_ctx *ctx = &t->ctx;
	struct ap_inputs in;
	struct ap_settings o;
	struct ap_plan plan;
	struct ap_plan_maker *maker;
	bool fits;

	ap_decision_settings(ctx, t->set, t->joint, &t->trial->point, &o);
	ap_settings_check(ctx, &o);
	t->trial->verdict = AP_DECISION_REFUSED;
	if (ap_diag_status(ctx->diag) != AP_OK ||
		ap_inputs_make(ctx, &o, t->src, AP_FOR_evaluate, &in) != AP_OK ||
		ap_inputs_give(ctx, &o, t->src, AP_FOR_evaluate, &in) != AP_OK)
		return;
	maker = ap_plan_maker_create(ctx, in.request.graph, in.machine, &in.step, t->joint->usable_bytes);
	ap_plan_sketch_in(maker, ctx->arena, in.counts, &plan);
	t->trial->memory_bytes = plan.prediction.memory.total;
	fits = t->trial->memory_bytes <= t->joint->usable_bytes;
	t->trial->verdict = fits ? AP_DECISION_FITS : AP_DECISION_TOO_LARGE;
	if (fits)
		t->trial->step_s = plan.prediction.step_time_s;
	tell(ctx, &plan, &t->trial->point, t->tells, t->pass);
}

/* ---- all of them ---- */

struct deciding {
	struct ap_ctx *ctx;
	const struct ap_settings *set;
	struct ap_sources src;
	struct ap_decision *out;
	AP_VEC(struct ap_decision_trial) trials;
	AP_VEC(struct kin) kins;
	bool timed; /* passes add up to a bound: two may not run as one */
	const uint32_t *kin_of; /* [trials.n] */
	struct ap_ctx *own; /* [ctx->jobs] of a thread, released after each trial */
};

static void add(void *user, const struct ap_decision_point *p)
{
	struct deciding *d = user;
	struct ap_decision_trial t = {.point = *p, .by = -1};

	AP_PUSH(d->ctx->arena, d->trials, t);
}

/* Is a better to begin with than b: does it need less memory, and is it as quickly simulated? */
static bool is_leaner(const struct ap_decision_point *a, const struct ap_decision_point *b)
{
	if (a->vpp != b->vpp)
		return a->vpp < b->vpp;
	return a->pp != b->pp ? a->pp > b->pp : (a->level == 1) > (b->level == 1);
}

/* Dealt gradients and weights are exchanged in the passes; those of a single micro-batch behind them. */
static int in_passes(const struct ap_decision_point *p)
{
	return p->level <= 1 ? 0 : p->micro_batches == 1 ? -p->level : p->level;
}

static uint32_t kin_at(struct ap_map *seen, const struct ap_decision_point *p, int64_t mbs, int recompute,
	int level, bool *fresh)
{
	const int64_t key[] = {p->tp, p->cp, p->ep, p->etp, mbs, recompute, p->sp, level};

	return fresh ? ap_map_put(seen, key, sizeof key, fresh) : ap_map_get(seen, key, sizeof key);
}

/* Deals the trials to kins. */
static void find_kins(struct deciding *d)
{
	struct ap_map *seen = ap_map_create(d->ctx->arena);
	uint32_t *of = AP_NEW_N(d->ctx->arena, uint32_t, d->trials.n);

	for (size_t i = 0; i < d->trials.n; i++) {
		const struct ap_decision_point *p = &d->trials.v[i].point;
		bool fresh;

		of[i] = kin_at(seen, p, p->mbs, p->recompute, in_passes(p), &fresh);
		if (fresh)
			AP_PUSH(d->ctx->arena, d->kins, ((struct kin){.by = -1, .first = (uint32_t)i}));
		else if (is_leaner(p, &d->trials.v[d->kins.v[of[i]].first].point))
			d->kins.v[of[i]].first = (uint32_t)i;
	}
	for (size_t i = 0; i < d->kins.n; i++) {
		struct kin *k = &d->kins.v[i];
		const struct ap_decision_point *p = &d->trials.v[k->first].point;

		k->smaller = AP_NONE;
		for (int64_t mbs = p->mbs - 1; mbs > 0 && k->smaller == AP_NONE; mbs--)
			if (d->out->space.batch % mbs == 0)
				k->smaller = kin_at(seen, p, mbs, p->recompute, in_passes(p), NULL);
		k->more = kin_at(seen, p, p->mbs, p->recompute + 1, in_passes(p), NULL);
		k->less = kin_at(seen, p, p->mbs, p->recompute - 1, in_passes(p), NULL);
		if (k->less == AP_NONE && p->level > 1)
			k->less = kin_at(seen, p, p->mbs, p->recompute, 0, NULL);
	}
	d->kin_of = of;
}

/* Micro-batches whose activations the first stage holds. */
static double first_holds(const struct ap_decision_point *p)
{
	double m = (double)p->micro_batches, pp = (double)p->pp, v = (double)p->vpp;
	double held = v > 1 && !ap_scheduler_at((size_t)p->scheduler)->splits
		? (2 * (pp - 1) + (v - 1) * pp + 1) / v : pp;

	return fmin(m, held);
}

/* No plan of the point needs fewer bytes on the first stage's devices. */
static double least_bytes(const struct kin *k, const struct ap_decision_point *p)
{
	double dealt = (double)(p->dp * p->cp), share = 1;

	if (p->level > k->level)
		share = 1 / dealt;
	else if (p->level && dealt > (double)k->dealt)
		share = (double)k->dealt / dealt;
	return (k->static_bytes * share + k->kept_bytes * first_holds(p)) / (double)p->pp;
}

/* Seconds that a step takes at least, but for the exchange of gradients and the update: the mean stage works
 * on all micro-batches, and one of them goes through all stages and back. Where layers are dealt evenly, and
 * the last stage, which has the head, is none of the shorter ones, it also waits while the pipeline fills and
 * drains by parts. Gradients of weights that have a pass of their own fill that. */
static double least_s(double pass_s, const struct ap_decision_point *p, int64_t layers)
{
	double mean = pass_s / (double)p->pp, m = (double)p->micro_batches;

	if (ap_scheduler_at((size_t)p->scheduler)->splits)
		return mean * m;
	return layers && layers % p->pp == 0 ? mean * (m + (double)(p->pp - 1) / (double)p->vpp)
		: fmax(mean * m, p->vpp > 1 ? 0 : pass_s);
}

enum { WHY_BYTES = 200 };

/* The first error of a sink, or what comes nearest to it. */
static void first_error(const struct ap_diag *diag, char out[WHY_BYTES])
{
	struct ap_message m;

	snprintf(out, WHY_BYTES, "no such plan");
	for (size_t i = 0; ap_diag_at(diag, i, &m); i++)
		if (m.level == AP_ERROR) {
			snprintf(out, WHY_BYTES, "%s", m.text);
			break;
		}
}

struct round {
	struct deciding *d;
	uint32_t n, at[ROUND];
	struct kin tells[ROUND];
	struct pass pass[ROUND];
	char why[ROUND][WHY_BYTES];
};

static void try_one(void *user, size_t i, int worker)
{
	struct round *r = user;
	struct ap_ctx *own = &r->d->own[worker];
	struct ap_mark mark = ap_arena_mark(own->arena), scratch = ap_arena_mark(own->scratch);
	struct trying t = {.ctx = *own, .set = r->d->set, .src = &r->d->src, .joint = r->d->out,
		.trial = &r->d->trials.v[r->at[i]], .tells = &r->tells[i],
		.pass = &r->pass[i]};

	t.ctx.diag = ap_diag_create(own->arena, false);
	try(&t);
	if (t.trial->verdict == AP_DECISION_REFUSED)
		first_error(t.ctx.diag, r->why[i]);
	ap_arena_release(own->scratch, scratch);
	ap_arena_release(own->arena, mark);
}

static void learn(struct ap_ctx *ctx, struct passes *known, const struct pass *p)
{
	for (size_t i = 0; i < known->n; i++)
		if (known->v[i].dealt == p->dealt) {
			known->v[i].s = fmin(known->v[i].s, p->s);
			return;
		}
	AP_PUSH(ctx->arena, *known, *p);
}

static void run_round(struct round *r)
{
	struct deciding *d = r->d;
	struct ap_decision *out = d->out;

	ap_par_for(d->ctx->arena, d->ctx->jobs, r->n, try_one, r);
	for (uint32_t i = 0; i < r->n; i++) {
		struct ap_decision_trial *t = &d->trials.v[r->at[i]];
		struct kin *k = &d->kins.v[d->kin_of[r->at[i]]];

		t->by = (int32_t)r->at[i];
		if (t->verdict == AP_DECISION_REFUSED) {
			t->why = ap_arena_strdup(d->ctx->arena, r->why[i]);
		} else {
			const struct kin *n = &r->tells[i];

			if (k->by < 0) {
				k->kept_bytes = n->kept_bytes;
				k->static_bytes = n->static_bytes;
				k->dealt = n->dealt;
				k->level = n->level;
				k->by = t->by;
			}
			learn(d->ctx, &k->passes, &r->pass[i]);
		}
		if (t->verdict == AP_DECISION_FITS && (out->best == AP_NONE ||
			t->step_s < d->trials.v[out->best].step_s ||
			(t->step_s <= d->trials.v[out->best].step_s && r->at[i] < out->best)))
			out->best = r->at[i];
	}
	out->evaluated += r->n;
}

/* The kin that tells what this one holds at least: itself, else one of smaller micro-batches, or one that
 * recomputes more; NULL: nothing is known. */
static const struct kin *holds_like(const struct deciding *d, const struct kin *k)
{
	for (const struct kin *more = k;; more = &d->kins.v[more->more]) {
		for (const struct kin *small = more;; small = &d->kins.v[small->smaller]) {
			if (small->by >= 0)
				return small;
			if (small->smaller == AP_NONE)
				break;
		}
		if (more->more == AP_NONE)
			return NULL;
	}
}

/* Seconds of a micro-batch's pass at least, by trials of the kin, else of one that recomputes or deals
 * less; 0: not known. What is gathered from more devices takes as long at least. */
static double pass_s(const struct deciding *d, const struct kin *k, int64_t dealt)
{
	double most = 0;

	for (;; k = &d->kins.v[k->less]) {
		for (size_t i = 0; i < k->passes.n; i++)
			if (k->passes.v[i].dealt <= dealt)
				most = fmax(most, k->passes.v[i].s);
		if (most > 0 || k->less == AP_NONE)
			return most;
	}
}

/* Does a kin of smaller micro-batches, which would tell something of this one, still come? */
static bool is_awaited(const struct deciding *d, const struct kin *k)
{
	return k->smaller != AP_NONE && d->kins.v[k->smaller].by < 0 &&
		d->trials.v[d->kins.v[k->smaller].first].verdict == AP_DECISION_OPEN;
}

/* Judges the points that are open by what is known, and picks the next: those that may be fastest; of kins of
 * which nothing is known one each. */
static void pick(struct deciding *d, struct round *r)
{
	double best_s = d->out->best == AP_NONE ? INFINITY : d->trials.v[d->out->best].step_s;
	bool *met = AP_NEW_N(d->ctx->scratch, bool, d->kins.n);
	double at_s[ROUND];

	for (uint32_t i = 0; i < d->trials.n; i++) {
		struct ap_decision_trial *t = &d->trials.v[i];
		struct kin *k = &d->kins.v[d->kin_of[i]];
		const struct kin *like;
		uint32_t place;
		double takes_s;

		if (t->verdict != AP_DECISION_OPEN)
			continue;
		like = holds_like(d, k);
		if (d->set->prune && like && least_bytes(like, &t->point) > (double)d->out->usable_bytes) {
			t->verdict = AP_DECISION_TOO_LARGE;
			t->by = like->by;
			continue;
		}
		takes_s = pass_s(d, k, t->point.dp * t->point.cp);
		t->bound_s = d->timed && takes_s > 0 ? least_s(takes_s, &t->point, d->out->space.layers)
			: 0;
		if (t->bound_s >= best_s) {
			t->verdict = AP_DECISION_BOUNDED;
			continue;
		}
		if (k->by < 0 && (met[d->kin_of[i]] || is_awaited(d, k) ||
			(k->first != i && d->trials.v[k->first].verdict == AP_DECISION_OPEN)))
			continue;
		for (place = r->n; place > 0 && t->bound_s < at_s[place - 1]; place--)
			;
		if (place == ROUND)
			continue;
		met[d->kin_of[i]] = true;
		r->n += r->n < ROUND;
		for (uint32_t m = r->n - 1; m > place; m--) {
			r->at[m] = r->at[m - 1];
			at_s[m] = at_s[m - 1];
		}
		r->at[place] = i;
		at_s[place] = t->bound_s;
	}
}

/* The settings without what is to be decided: of one stage, with which graph and machine are made. */
static struct ap_settings undecided(struct ap_ctx *ctx, const struct ap_settings *set)
{
	struct ap_settings o = *set;

	ap_setting_unset(&o, AP_SET_hybrid);
	ap_setting_unset(&o, AP_SET_optimizer_level);
	ap_setting_unset(&o, AP_SET_optimizer_weight_shard_size);
	decide(ctx, &o, AP_SET_pipeline_stages, "1");
	decide(ctx, &o, AP_SET_pipeline_segments, "1");
	decide(ctx, &o, AP_SET_pipeline_scheduler, "1f1b");
	decide(ctx, &o, AP_SET_micro_batches, "1");
	decide(ctx, &o, AP_SET_recompute, "none");
	decide(ctx, &o, AP_SET_enable_parallel_optimizer, "false");
	return o;
}

/* Says why no point is a plan that fits. */
static enum ap_status none_fits(struct ap_ctx *ctx, const struct ap_decision *j)
{
	const struct ap_decision_trial *least = NULL, *refused = NULL;
	char need[32], have[32], lack[32];

	for (uint32_t i = 0; i < j->n; i++) {
		const struct ap_decision_trial *t = &j->trial[i];

		if (t->verdict == AP_DECISION_REFUSED && !refused)
			refused = t;
		if (t->memory_bytes > 0 && (!least || t->memory_bytes < least->memory_bytes))
			least = t;
	}
	if (!least)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, "plan",
			"no combination of the settings is a plan%s%s%s%s", refused ? "; with " : "",
			refused ? ap_decision_words(ctx, j, &refused->point) : "", refused ? ": " : "",
			refused ? refused->why : "");
	(void)ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE, NULL, "memory",
		"none of %" PRIu32 " combinations of settings fits the memory: %s needs %s on a device, "
		"%s are usable less headroom, %s are short", j->n, ap_decision_words(ctx, j, &least->point),
		ap_format_bytes(least->memory_bytes, need), ap_format_bytes(j->usable_bytes, have),
		ap_format_bytes(least->memory_bytes - j->usable_bytes, lack));
	ap_diag_figure(ctx->diag, "needed_bytes", least->memory_bytes);
	ap_diag_figure(ctx->diag, "usable_bytes", j->usable_bytes);
	ap_diag_figure(ctx->diag, "short_bytes", least->memory_bytes - j->usable_bytes);
	return AP_INFEASIBLE;
}

enum ap_status ap_decide(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, struct ap_decision *out)
{
	struct deciding d = {.ctx = ctx, .set = set, .src = *src, .out = out};
	struct ap_settings base = undecided(ctx, set);
	struct ap_inputs in;

	*out = (struct ap_decision){.best = AP_NONE};
	ap_ctx_phase(ctx, "reading the graph");
	AP_TRY(ap_inputs_make(ctx, &base, src, AP_FOR_search, &in));
	ap_ctx_phase(ctx, "deciding");
	d.src.ready = in.loaded;
	d.timed = set->prune && !set->overlap_moe_expert_parallel_comm;
	out->headroom = set->headroom < 0 ? USUAL_HEADROOM : set->headroom;
	out->usable_bytes = (int64_t)((double)in.request.capacity_bytes * (1 - out->headroom / 100));
	AP_TRY(make_space(ctx, set, src, &in, &out->space));
	ap_decision_each(ctx, &out->space, add, &d);
	find_kins(&d);
	d.own = AP_NEW_N(ctx->arena, struct ap_ctx, ctx->jobs);
	for (int w = 0; w < ctx->jobs; w++) {
		d.own[w] = *ctx;
		d.own[w].arena = ap_arena_create_like(ctx->arena);
		d.own[w].scratch = ap_arena_create_like(ctx->arena);
		ap_arena_own(ctx->arena, d.own[w].arena);
		ap_arena_own(ctx->arena, d.own[w].scratch);
		d.own[w].jobs = 1;
		d.own[w].phase = NULL;
	}
	for (bool more = true; more && !ap_ctx_stopped(ctx);) {
		struct ap_mark mark = ap_arena_mark(ctx->scratch);
		struct round r = {.d = &d};

		pick(&d, &r);
		more = r.n > 0;
		run_round(&r);
		ap_arena_release(ctx->scratch, mark);
	}
	out->sequence = sequence_of(in.loaded);
	out->n = (uint32_t)d.trials.n;
	out->trial = d.trials.v;
	out->bound_s = INFINITY;
	for (uint32_t i = 0; i < out->n; i++) {
		const struct ap_decision_trial *t = &out->trial[i];

		out->count[t->verdict]++;
		if (t->verdict == AP_DECISION_OPEN)
			out->bound_s = fmin(out->bound_s, t->bound_s);
	}
	out->complete = out->count[AP_DECISION_OPEN] == 0;
	if (out->best == AP_NONE)
		return out->complete ? none_fits(ctx, out) : ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, NULL,
			"limit", "stopped before any plan was found");
	out->bound_s = fmin(out->bound_s, out->trial[out->best].step_s);
	return out->complete ? AP_OK : AP_STOPPED;
}

const char *ap_decision_words(struct ap_ctx *ctx, const struct ap_decision *j,
	const struct ap_decision_point *p)
{
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	ap_str_addf(&s, "dp=%" PRId64 " tp=%" PRId64, p->dp, p->tp);
	if (p->cp > 1)
		ap_str_addf(&s, " cp=%" PRId64, p->cp);
	if (p->ep > 1)
		ap_str_addf(&s, " ep=%" PRId64, p->ep);
	if (p->ep > 1 && p->etp != p->tp)
		ap_str_addf(&s, " etp=%" PRId64, p->etp);
	ap_str_addf(&s, " pp=%" PRId64, p->pp);
	if (p->vpp > 1)
		ap_str_addf(&s, " v=%" PRId64, p->vpp);
	if (p->sp)
		ap_str_add(&s, " sp=1");
	if (p->mbs)
		ap_str_addf(&s, " mbs=%" PRId64, p->mbs);
	ap_str_addf(&s, " micro-batches=%" PRId64, p->micro_batches);
	if (p->pp > 1)
		ap_str_addf(&s, " %s", ap_scheduler_at((size_t)p->scheduler)->name);
	ap_str_addf(&s, " recompute=%s", j->space.recompute[p->recompute]);
	if (p->level)
		ap_str_addf(&s, " level%d", p->level);
	return s.s;
}

/* ---- numbers of devices ---- */

#define HOURS 3600.0

/* Seconds of the training; 0: --tokens does not say. */
static double training_s(const struct ap_settings *set, const struct ap_decision *d)
{
	double tokens = (double)d->space.batch * (double)(d->sequence ? d->sequence : 1);

	return ap_setting_given(set, AP_SET_tokens) && tokens > 0
		? (double)set->tokens / tokens * d->trial[d->best].step_s : 0;
}

/* Does the best plan keep the limits of time? */
static bool is_in_time(const struct ap_settings *set, const struct ap_decision *d)
{
	return (!ap_setting_given(set, AP_SET_max_step_time) ||
		d->trial[d->best].step_s <= set->max_step_time) &&
		(!ap_setting_given(set, AP_SET_deadline) || training_s(set, d) <= set->deadline);
}

static enum ap_status too_slow(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_decision *d)
{
	char step[32];

	return ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE, NULL, "plan",
		"no plan keeps %s: the shortest step is %s, of %s on %" PRId64 " devices",
		ap_setting_said(ctx, set, ap_setting_given(set, AP_SET_max_step_time) ? AP_SET_max_step_time
			: AP_SET_deadline), ap_format_seconds(d->trial[d->best].step_s, step),
		ap_decision_words(ctx, d, &d->trial[d->best].point), d->space.devices);
}

enum ap_status ap_decide_devices(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, struct ap_decided *out)
{
	const struct ap_choices *numbers = set->among[AP_SET_device_num];
	bool limited = ap_setting_given(set, AP_SET_max_step_time) || ap_setting_given(set, AP_SET_deadline);
	size_t n = numbers ? numbers->n : 1, best = n, fastest = n;
	struct ap_settings *each = AP_NEW_N(ctx->arena, struct ap_settings, n);
	struct ap_decision *d = AP_NEW_N(ctx->arena, struct ap_decision, n);
	enum ap_status early = AP_OK, first = AP_OK;

	if (numbers && numbers->any)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: expected numbers, such as "
			"8..1024", ap_setting_said(ctx, set, AP_SET_device_num));
	for (size_t i = 0; i < n; i++) {
		struct ap_ctx own = n > 1 ? ap_diag_apart(ctx) : *ctx;
		enum ap_status st;

		each[i] = *set;
		if (numbers)
			ap_setting_pick(&each[i], AP_SET_device_num, i);
		d[i].best = AP_NONE;
		st = ap_decide(&own, &each[i], src, &d[i]);
		if (st == AP_STOPPED || st == AP_LIMIT)
			early = AP_STOPPED;
		if (st != AP_OK && st != AP_STOPPED) {
			if (n == 1)
				return st;
			first = first == AP_OK ? st : first;
			d[i].best = AP_NONE;
			continue;
		}
		if (fastest == n || d[i].trial[d[i].best].step_s < d[fastest].trial[d[fastest].best].step_s)
			fastest = i;
		if (limited ? best == n && is_in_time(set, &d[i]) : fastest == i)
			best = i;
	}
	*out = (struct ap_decided){n, each, d, best};
	if (fastest == n)
		return ap_diag_add(ctx->diag, AP_ERROR, first, NULL, "plan",
			"%s: with none of these numbers there is a plan that fits",
			ap_setting_said(ctx, set, AP_SET_device_num));
	return best == n ? too_slow(ctx, set, &d[fastest]) : early;
}

/* ---- cuts of single operators ---- */

enum { CUTS_TRIED = 3 }; /* settings under which cuts are searched */
#define CUTS_NEAR 1.1 /* their best hybrids take so many times the best of all at most */
#define CUTS_WORK (INT64_C(1) << 32)

struct cutting {
	struct ap_ctx ctx;
	const struct ap_settings *set;
	const struct ap_sources *src;
	double step_s; /* 0: no plan was found */
};

static void search_cuts(void *user)
{
	struct cutting *c = user;
	struct ap_ctx quiet = ap_diag_apart(&c->ctx);
	struct ap_inputs in;
	struct ap_plan plan;
	enum ap_status st;

	if (ap_inputs_make(&quiet, c->set, c->src, AP_FOR_search, &in) != AP_OK ||
		ap_inputs_give(&quiet, c->set, c->src, AP_FOR_search, &in) != AP_OK)
		return;
	st = ap_inputs_plan(&quiet, &in, NULL, &plan, NULL);
	if (st == AP_OK || st == AP_STOPPED)
		c->step_s = plan.prediction.step_time_s;
}

/* Do hybrids differ in nothing but degrees inside a stage? */
static bool has_same_stages(const struct ap_decision_point *a, const struct ap_decision_point *b)
{
	return a->pp == b->pp && a->vpp == b->vpp && a->scheduler == b->scheduler &&
		a->micro_batches == b->micro_batches && a->recompute == b->recompute && a->level == b->level;
}

/* The fastest hybrids of different stages, at most CUTS_TRIED, the best first; returns how many. */
static uint32_t find_nearest(const struct ap_decision *d, uint32_t at[CUTS_TRIED])
{
	double most_s = d->trial[d->best].step_s * CUTS_NEAR;
	uint32_t n = 0;

	for (; n < CUTS_TRIED; n++) {
		uint32_t next = AP_NONE;

		for (uint32_t i = 0; i < d->n; i++) {
			const struct ap_decision_trial *t = &d->trial[i];
			bool met = t->verdict != AP_DECISION_FITS || t->step_s > most_s;

			for (uint32_t k = 0; k < n && !met; k++)
				met = has_same_stages(&t->point, &d->trial[at[k]].point);
			if (!met && (next == AP_NONE || t->step_s < d->trial[next].step_s))
				next = i;
		}
		if (next == AP_NONE)
			break;
		at[n] = next;
	}
	return n;
}

bool ap_decide_cuts(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	const struct ap_decision *d, struct ap_settings *out, double *step_s, uint32_t *trial)
{
	const struct ap_route *route = ap_route_at((size_t)set->executor);
	double best_s = d->trial[d->best].step_s;
	uint32_t at[CUTS_TRIED], n;
	bool found = false;

	if (route->degrees || route->complete || set->hybrid || set->parallel_mode != AP_MODE_AUTO_PARALLEL)
		return false;
	ap_ctx_phase(ctx, "cutting");
	n = find_nearest(d, at);
	for (uint32_t k = 0; k < n && !ap_ctx_stopped(ctx); k++) {
		struct ap_settings *o = AP_NEW(ctx->arena, struct ap_settings);
		struct cutting c = {.ctx = *ctx, .set = o, .src = src};
		struct ap_arena *made;

		ap_decision_settings(ctx, set, d, &d->trial[at[k]].point, o);
		ap_setting_unset(o, AP_SET_hybrid);
		o->memory = d->usable_bytes;
		if (!ap_setting_given(set, AP_SET_work_limit))
			decide(ctx, o, AP_SET_work_limit, NUMBER(ctx, CUTS_WORK));
		c.ctx.phase = NULL;
		if (!ap_attempt_apart(&c.ctx, search_cuts, NULL, &c, &made))
			continue;
		ap_arena_destroy(made);
		if (c.step_s > 0 && c.step_s < best_s) {
			best_s = *step_s = c.step_s;
			*out = *o;
			*trial = at[k];
			found = true;
		}
	}
	return found;
}

/* ---- what is told of it ---- */

/* What varies among points, as messages name it. */
#define DIMENSIONS(X) \
	X(pp, "pp") X(vpp, "v") X(tp, "tp") X(cp, "cp") X(ep, "ep") X(sp, "sp") X(mbs, "mbs") \
	X(scheduler, "scheduler") X(recompute, "recompute") X(level, "level")
#define VALUE_OF(field, name) \
	static int64_t field##_of(const struct ap_decision_point *p) \
	{ \
		return (int64_t)p->field; \
	}
DIMENSIONS(VALUE_OF)
#undef VALUE_OF

static const struct dimension {
	const char *name;
	int64_t (*of)(const struct ap_decision_point *p);
} dimensions[] = {
#define ROW(field, name) {name, field##_of},
	DIMENSIONS(ROW)
#undef ROW
};

/* The value of a dimension, as options have it. */
static const char *value_text(struct ap_ctx *ctx, const struct ap_decision *j,
	const struct ap_decision_point *p, const struct dimension *dim)
{
	if (dim->of == scheduler_of)
		return ap_scheduler_at((size_t)p->scheduler)->name;
	if (dim->of == recompute_of)
		return j->space.recompute[p->recompute];
	if (dim->of == level_of)
		return p->level ? ap_arena_printf(ctx->arena, "level%d", p->level) : "none";
	return ap_arena_printf(ctx->arena, "%" PRId64, dim->of(p));
}

/* The best of the plans that differ from the decided one in each dimension. */
static void find_instead(struct ap_ctx *ctx, const struct ap_decision *j, struct ap_plan_joint *out)
{
	const struct ap_decision_trial *best = &j->trial[j->best];
	AP_VEC(struct ap_plan_instead) list = {0};

	for (size_t d = 0; d < AP_COUNT(dimensions); d++) {
		const struct ap_decision_trial *other = NULL;
		struct ap_plan_instead one = {.name = dimensions[d].name, .least_s = INFINITY};

		for (uint32_t i = 0; i < j->n; i++) {
			const struct ap_decision_trial *t = &j->trial[i];

			if (dimensions[d].of(&t->point) == dimensions[d].of(&best->point))
				continue;
			if (t->verdict == AP_DECISION_FITS && (!other || t->step_s < other->step_s))
				other = t;
			if (t->verdict == AP_DECISION_BOUNDED || t->verdict == AP_DECISION_OPEN)
				one.least_s = fmin(one.least_s, t->bound_s);
		}
		if (!other)
			continue;
		one.value = value_text(ctx, j, &other->point, &dimensions[d]);
		one.taken = value_text(ctx, j, &best->point, &dimensions[d]);
		one.step_s = other->step_s;
		one.least_s = fmin(one.least_s, other->step_s);
		AP_PUSH(ctx->arena, list, one);
	}
	out->ninstead = (uint32_t)list.n;
	out->instead = list.v;
}

static void find_top(struct ap_ctx *ctx, const struct ap_decision *j, int64_t most, struct ap_plan_joint *out)
{
	struct ap_plan_decision *top = AP_NEW_N(ctx->arena, struct ap_plan_decision, most);
	uint32_t *at = AP_NEW_N(ctx->scratch, uint32_t, most), n = 0;

	for (uint32_t i = 0; i < j->n; i++) {
		uint32_t place = n;

		if (j->trial[i].verdict != AP_DECISION_FITS)
			continue;
		while (place > 0 && j->trial[i].step_s < j->trial[at[place - 1]].step_s)
			place--;
		if (place == most)
			continue;
		n += n < most;
		for (uint32_t m = n - 1; m > place; m--)
			at[m] = at[m - 1];
		at[place] = i;
	}
	for (uint32_t k = 0; k < n; k++)
		top[k] = (struct ap_plan_decision){ap_decision_words(ctx, j, &j->trial[at[k]].point),
			j->trial[at[k]].step_s, j->trial[at[k]].memory_bytes};
	out->ntop = n;
	out->top = top;
}

/* Settings that were given, of those that may be decided: "pipeline_stages=8, hybrid=tp=4". */
static const char *given(struct ap_ctx *ctx, const struct ap_settings *set)
{
	static const enum ap_setting_id decided[] = {AP_SET_pipeline_stages, AP_SET_pipeline_segments,
		AP_SET_pipeline_scheduler, AP_SET_micro_batches, AP_SET_recompute,
		AP_SET_enable_parallel_optimizer, AP_SET_optimizer_level, AP_SET_hybrid, AP_SET_batch};
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	for (size_t i = 0; i < AP_COUNT(decided); i++) {
		const struct ap_setting_row *row = ap_setting_at(decided[i]);

		if (ap_setting_given(set, decided[i]))
			ap_str_addf(&s, "%s%s=%s", s.len ? " " : "", row->key,
				ap_setting_text(ctx->arena, row, set));
	}
	return s.s;
}

/* Lists the numbers of devices. */
static void list_machines(struct ap_ctx *ctx, const struct ap_decided *all, struct ap_plan_joint *out)
{
	struct ap_plan_machine *row = AP_NEW_N(ctx->arena, struct ap_plan_machine, all->n);

	for (size_t i = 0; i < all->n; i++) {
		const struct ap_decision *d = &all->decision[i];
		const struct ap_settings *set = &all->set[i];
		const struct ap_decision_trial *best = d->best == AP_NONE ? NULL : &d->trial[d->best];

		row[i] = (struct ap_plan_machine){.devices = best ? d->space.devices : set->device_num,
			.taken = i == all->taken};
		if (!best)
			continue;
		row[i].decided = ap_decision_words(ctx, d, &best->point);
		row[i].step_s = best->step_s;
		row[i].memory_bytes = best->memory_bytes;
		row[i].rate = (double)d->space.batch * (double)(d->sequence ? d->sequence : 1) /
			best->step_s / (double)d->space.devices;
		out->unit = d->sequence ? "tokens" : "samples";
		row[i].days = training_s(set, d) / (24 * HOURS);
		if (ap_setting_given(set, AP_SET_price))
			row[i].cost = training_s(set, d) / HOURS * (double)d->space.devices * set->price;
	}
	out->nmachine = (uint32_t)all->n;
	out->machine = row;
}

/* What was rejected, by reason, with what comes next to the plan. */
static void list_rejected(struct ap_ctx *ctx, const struct ap_decision *d, struct ap_plan_joint *out)
{
	const struct ap_decision_trial *large = NULL, *slow = NULL, *refused = NULL;
	AP_VEC(const char *) list = {0};
	char bytes[32], step[32];

	for (uint32_t i = 0; i < d->n; i++) {
		const struct ap_decision_trial *t = &d->trial[i];

		if (t->verdict == AP_DECISION_TOO_LARGE && t->memory_bytes > 0 &&
			(!large || t->memory_bytes < large->memory_bytes))
			large = t;
		if (t->verdict == AP_DECISION_BOUNDED && (!slow || t->bound_s < slow->bound_s))
			slow = t;
		if (t->verdict == AP_DECISION_REFUSED && !refused)
			refused = t;
	}
	if (large)
		AP_PUSH(ctx->arena, list, ap_arena_printf(ctx->arena, "%" PRIu32 " need too much memory: "
			"next is %s, short by %s", d->count[AP_DECISION_TOO_LARGE],
			ap_decision_words(ctx, d, &large->point),
			ap_format_bytes(large->memory_bytes - d->usable_bytes, bytes)));
	if (slow)
		AP_PUSH(ctx->arena, list, ap_arena_printf(ctx->arena, "%" PRIu32 " are slower by a bound: "
			"next is %s, at least %s", d->count[AP_DECISION_BOUNDED],
			ap_decision_words(ctx, d, &slow->point), ap_format_seconds(slow->bound_s, step)));
	if (refused)
		AP_PUSH(ctx->arena, list, ap_arena_printf(ctx->arena, "%" PRIu32 " cannot be: such as %s: %s",
			d->count[AP_DECISION_REFUSED], ap_decision_words(ctx, d, &refused->point),
			refused->why));
	out->nrejected = (uint32_t)list.n;
	out->rejected = list.v;
}

struct ap_plan_joint *ap_decision_report(struct ap_ctx *ctx, const struct ap_decided *all)
{
	const struct ap_decision *j = &all->decision[all->taken];
	const struct ap_settings *set = &all->set[all->taken];
	struct ap_plan_joint *out = AP_NEW(ctx->arena, struct ap_plan_joint);
	const struct ap_decision_trial *best = &j->trial[j->best];

	*out = (struct ap_plan_joint){.decided = ap_decision_words(ctx, j, &best->point),
		.given = given(ctx, set), .complete = j->complete, .step_s = best->step_s,
		.bound_s = j->bound_s, .headroom = j->headroom, .usable_bytes = j->usable_bytes, .n = j->n,
		.evaluated = j->evaluated, .fit = j->count[AP_DECISION_FITS],
		.too_large = j->count[AP_DECISION_TOO_LARGE], .refused = j->count[AP_DECISION_REFUSED],
		.slower = j->count[AP_DECISION_BOUNDED], .open = j->count[AP_DECISION_OPEN]};
	find_top(ctx, j, set->top, out);
	find_instead(ctx, j, out);
	if (set->rejected)
		list_rejected(ctx, j, out);
	list_machines(ctx, all, out);
	return out;
}
