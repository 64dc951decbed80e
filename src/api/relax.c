/* SPDX-License-Identifier: Apache-2.0 */
#include "api/relax.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/settle.h"
#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/pins.h"
#include "drive/choose.h"
#include "drive/low_memory.h"
#include "plan/memory.h"

/* ---- one plan under other settings ---- */

enum verdict {
	FITS,
	UNKNOWN, /* no plan was found that fits */
	PROVEN_NOT,
	NO_PLAN /* the settings contradict each other, the network or the machine */
};

struct trial {
	enum verdict verdict;
	int64_t bytes; /* memory of the plan that fits, or the smallest found; 0: none */
	bool hopeless; /* even the least memory of a device is too much */
};

/* What trials may use. Time is counted in inner steps of a search, which are the same on every
 * machine; reading a network and making a machine and a pipeline are estimated beforehand. */
struct allowance {
	uint64_t steps; /* left */
	uint64_t most_bytes; /* limit of one trial */
};

#define FIND_WORK (UINT64_C(1) << 24) /* more work rarely finds more */

/* Inner steps of a search (three per nanosecond), and bytes. */
enum { TRIAL_STEPS = 1 << 23, OPERATOR_STEPS = 1 << 15, DEVICE_STEPS = 1 << 10 };
enum { PASS_STEPS = 1 << 7, STAGED_PASS_STEPS = 1 << 13 }; /* one stage: micro-batches are alike */
enum { OPERATOR_BYTES = 4096, DEVICE_BYTES = 96, PASS_BYTES = 128 };
#define MOST_STEPS (UINT64_C(1) << 30) /* a third of a second, for parts that cannot be stopped */
#define PROVE_WORK (UINT64_C(1) << 32)

static enum ap_status prepare(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, struct ap_inputs *in)
{
	ap_settings_check(ctx, set, AP_FOR_search);
	AP_TRY(ap_diag_status(ctx->diag));
	AP_TRY(ap_inputs_make(ctx, set, src, AP_FOR_search, in));
	AP_TRY(ap_inputs_give(ctx, set, src, AP_FOR_search, in));
	if (in->counts)
		in->request.given = in->counts;
	in->counts = NULL; /* given to the search for the least memory */
	return AP_OK;
}

static enum verdict prove_it(struct ap_ctx *ctx, struct ap_inputs *in, int64_t *bytes)
{
	struct ap_plan plan;
	enum ap_status st;

	in->request.budget.work = PROVE_WORK;
	st = ap_inputs_plan(ctx, in, NULL, &plan, NULL);
	if (st == AP_OK)
		*bytes = plan.prediction.memory.total;
	return st == AP_OK ? FITS
		: st == AP_INFEASIBLE ? PROVEN_NOT : UNKNOWN;
}

/* Estimated steps and bytes of a plan for a network of so many operators, before any search. */
static struct allowance price_of(const struct ap_settings *o, const struct ap_sources *src,
	uint32_t operators)
{
	double devices = fmax(1, (double)ap_sources_devices(o, src));
	double passes = (double)o->pipeline_stages * (double)o->micro_batches *
		(o->pipeline_segments > 1 ? (double)o->pipeline_segments : 1);
	double steps = TRIAL_STEPS + operators * (double)OPERATOR_STEPS + devices * DEVICE_STEPS +
		passes * (o->pipeline_stages > 1 ? STAGED_PASS_STEPS : PASS_STEPS);
	double bytes = operators * (double)OPERATOR_BYTES + devices * DEVICE_BYTES + passes * PASS_BYTES;

	return (struct allowance){(uint64_t)fmin(steps, 0x1p60), (uint64_t)fmin(bytes, 0x1p60)};
}

/* Takes price off what is left; false if it is not enough. */
static bool afford(struct allowance *left, const struct allowance *price)
{
	if (!left)
		return true;
	if (price->steps > MOST_STEPS || price->steps >= left->steps || price->most_bytes > left->most_bytes)
		return false;
	left->steps -= price->steps;
	return true;
}

/* Do the operators' lower bounds on memory already exceed the limit? Cheaper than a search. */
static bool is_hopeless(struct ap_ctx *ctx, const struct ap_inputs *in, struct allowance *left)
{
	const int32_t *const *fixed;
	uint64_t work = 0;
	int64_t least;

	if (ap_pins_make(ctx, in->graph, in->machine->ndev, &in->step, in->request.given,
			&fixed) != AP_OK)
		return false;
	least = ap_choose_least_bytes(ctx, &in->request, fixed, &work);
	left->steps -= work < left->steps ? work : left->steps;
	return least > ap_choose_limit_bytes(&in->request);
}

static void judge(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	bool prove, struct allowance *left, struct trial *t)
{
	const struct ap_memory *m;
	struct ap_inputs in;
	struct ap_plan plan;
	bool fits;

	t->verdict = NO_PLAN;
	if (prepare(ctx, set, src, &in) != AP_OK)
		return;
	t->verdict = ap_settings_search(set) ? UNKNOWN : NO_PLAN;
	in.request.budget.work = FIND_WORK;
	if (left && is_hopeless(ctx, &in, left)) {
		t->verdict = PROVEN_NOT;
		return;
	}
	if (left && (left->steps == 0 || ap_ctx_stopped(ctx)))
		return;
	fits = ap_low_memory_plan(ctx, &in.request, left ? &left->steps : NULL, &plan);
	m = &plan.prediction.memory;
	if (plan.graph) {
		t->bytes = m->total;
		t->hopeless = m->context > in.request.capacity_bytes;
	}
	if (fits)
		t->verdict = FITS;
	else if (t->hopeless || (plan.graph && !ap_settings_search(set)))
		t->verdict = PROVEN_NOT;
	else if (ap_settings_search(set) && prove)
		t->verdict = prove_it(ctx, &in, &t->bytes);
}

struct judging {
	struct ap_ctx *ctx;
	const struct ap_settings *set;
	const struct ap_sources *src;
	bool prove;
	struct allowance *left;
	struct trial t;
};

static void try_judge(void *user)
{
	struct judging *j = user;

	struct ap_ctx quiet = ap_diag_apart(j->ctx);

	judge(&quiet, j->set, j->src, j->prove, j->left, &j->t);
}

/* Plans under other settings, without messages and without keeping anything. prove: if a quick
 * search finds no plan, run the exact search. Returns UNKNOWN if the price exceeds left (NULL: no
 * limit). */
static struct trial try(const struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, bool prove, struct allowance *left)
{
	struct ap_ctx own = *ctx;
	struct judging j = {&own, set, src, prove, left, {0}};
	const struct ap_jv *list = ap_jv_get(ap_json_root(src->graph), "operators");
	struct allowance price = price_of(set, src, list ? (uint32_t)ap_jv_count(list) : 0);
	struct ap_arena *made; /* shared arena of many trials */

	if (!afford(left, &price))
		return (struct trial){.verdict = UNKNOWN};
	own.phase = NULL;
	if (!ap_attempt_apart(&own, try_judge, NULL, &j, &made))
		return (struct trial){.verdict = UNKNOWN};
	ap_arena_destroy(made);
	return j.t;
}

/* ---- numbers of devices ---- */

#define MOST_DEVICES 65536

struct asking {
	struct ap_ctx *ctx;
	const struct ap_sources *src;
	struct ap_settings set; /* device_num varies */
	int64_t most;
	int64_t known; /* this many devices are too few; of fewer, only one is tried */
	struct allowance *left; /* NULL: no limit, and the exact search decides */
	struct ap_devices *out;
};

/* Records the result of a number of devices; true: it fits, or nothing ever will. */
static bool try_devices(struct asking *a, int64_t devices)
{
	struct trial t;

	a->set.device_num = devices;
	t = try(a->ctx, &a->set, a->src, !a->left, a->left);
	if (t.verdict == FITS) {
		a->out->fits = devices;
		a->out->memory_bytes = t.bytes;
	} else if (t.verdict != NO_PLAN && !ap_ctx_stopped(a->ctx)) {
		a->out->below = devices;
		a->out->below_bytes = t.bytes;
		a->out->proven = t.verdict == PROVEN_NOT;
	}
	return t.verdict == FITS || t.hopeless;
}

/* Doubles from one device to a server to many servers, then bisects over whole servers. */
static void look(struct asking *a)
{
	int64_t server = a->out->server, lo = 0, hi;

	for (int64_t n = 1; n < server; n *= 2)
		if (!(n > 1 && n <= a->known) && try_devices(a, n))
			return;
	for (hi = 1; hi * server <= a->most && !ap_ctx_stopped(a->ctx); hi *= 2) {
		if (hi * server > a->known && try_devices(a, hi * server))
			break;
		lo = hi;
	}
	while (a->out->fits && hi - lo > 1 && !ap_ctx_stopped(a->ctx)) {
		int64_t mid = lo + (hi - lo) / 2;

		if (try_devices(a, mid * server))
			hi = mid;
		else
			lo = mid;
	}
}

/* Devices per server: from the options, the rank table or the chip. */
static int64_t server_devices(const struct asking *a, const struct ap_chip *chip)
{
	const struct ap_topo *table = a->src->table;

	if (a->set.devices_per_server)
		return a->set.devices_per_server;
	return table ? (table->ndev + table->nserver - 1) / table->nserver : chip->server_devices;
}

/* The least number of devices of this kind, up to most, on which a plan fits under the settings.
 * Tries 1, 2, 4, ... up to a server, then whole servers. known: so many are too few, and of fewer
 * one is tried. left: allowance; NULL: no limit, and without a quick plan the exact search
 * decides. */
static enum ap_status least_devices(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, int64_t most, int64_t known, struct allowance *left,
	struct ap_devices *out)
{
	struct ap_sources tableless = *src;
	struct asking a = {.ctx = ctx, .src = src, .set = *set, .most = most,
		.known = known, .left = left, .out = out};
	const struct ap_chip *chip;

	*out = (struct ap_devices){0};
	a.set.min_devices = false; /* each trial makes a plan */
	AP_TRY(ap_input_chip(ctx, set, src, &chip));
	out->server = a.set.devices_per_server = server_devices(&a, chip);
	out->usable_bytes = a.set.memory ? a.set.memory : chip->usable_bytes;
	if (!a.set.chip)
		a.set.chip = chip->name;
	tableless.table = NULL;
	a.src = &tableless;
	look(&a);
	return AP_OK;
}

/* Explains why nothing fits; if no number of devices gave a plan, by one device's error. */
static enum ap_status explain(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const struct ap_devices *d)
{
	struct ap_settings o = *set;
	struct ap_inputs in;
	char need[32], have[32];

	if (d->below)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE, NULL, "memory",
			"no plan was found that fits: on %" PRId64 " device%s, the most that were tried, the "
			"smallest one needs %s, %s are usable", d->below, d->below > 1 ? "s" : "",
			ap_format_bytes(d->below_bytes, need), ap_format_bytes(d->usable_bytes, have));
	o.device_num = d->server;
	AP_TRY(ap_inputs_make(ctx, &o, src, AP_FOR_search, &in));
	AP_TRY(ap_inputs_give(ctx, &o, src, AP_FOR_search, &in));
	return ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE, NULL, "memory",
		"no plan was found on up to %d devices", MOST_DEVICES);
}

enum ap_status ap_min_devices(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, struct ap_devices *out)
{
	AP_TRY(least_devices(ctx, set, src, MOST_DEVICES, 0, NULL, out));
	if (ap_ctx_stopped(ctx))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, NULL, "limit",
			"stopped before the least number of devices was known");
	return out->fits ? AP_OK : explain(ctx, set, src, out);
}

/* ---- other settings ---- */

#define MOST_NAMED 3 /* relaxations to report */
#define MOST_TIMES 32 /* most devices, as a multiple of the given number */
#define LEAST_STEPS (UINT64_C(1) << 30) /* granted in any case: a third of a second */
#define LEAST_BYTES (UINT64_C(32) << 20) /* likewise, for one trial */
struct relaxing {
	struct ap_ctx *ctx;
	const struct ap_settings *set;
	const struct ap_sources *src;
	const struct ap_inputs *in; /* under the unchanged settings */
	struct ap_settings base; /* where ways start: as given, or a larger machine */
	struct allowance left;
};

/* Changes settings; false if they are so already, or cannot be changed. */
typedef bool apply_fn(const struct ap_inputs *in, struct ap_settings *o);

static bool shard(const struct ap_inputs *in, struct ap_settings *o)
{
	if (o->enable_parallel_optimizer || !in->step.training || in->machine->ndev == 1)
		return false;
	o->enable_parallel_optimizer = true;
	return true;
}

static bool level3(const struct ap_inputs *in, struct ap_settings *o)
{
	if (!in->step.training || in->machine->ndev == 1 || o->optimizer_level == AP_LEVEL3)
		return false;
	o->enable_parallel_optimizer = true;
	o->optimizer_level = AP_LEVEL3;
	return true;
}

static bool selective(const struct ap_inputs *in, struct ap_settings *o)
{
	if (!in->step.training || strcmp(o->recompute, "none") != 0)
		return false;
	o->recompute = "selective";
	return true;
}

static bool full(const struct ap_inputs *in, struct ap_settings *o)
{
	if (!in->step.training || strcmp(o->recompute, "full") == 0)
		return false;
	o->recompute = "full";
	return true;
}

static bool more_micro_batches(const struct ap_inputs *in, struct ap_settings *o)
{
	int64_t batch = in->graph->batch, least = o->micro_batches * 2, best = batch;

	if (least > batch)
		return false;
	for (int64_t d = 1; d <= batch / d; d++) {
		if (batch % d)
			continue;
		best = d >= least && d < best ? d : best;
		best = batch / d >= least && batch / d < best ? batch / d : best;
	}
	o->micro_batches = best;
	return true;
}

static bool more_stages(const struct ap_inputs *in, struct ap_settings *o)
{
	int64_t n = o->pipeline_stages * 2;

	if (o->hybrid || in->machine->part || in->machine->total % n ||
		n > in->graph->nnode || !in->graph->batch)
		return false;
	o->pipeline_stages = n;
	if (o->micro_batches < n)
		o->micro_batches = n;
	return in->graph->batch % o->micro_batches == 0;
}

static bool less_batch(const struct ap_inputs *in, struct ap_settings *o)
{
	int64_t batch = o->batch ? o->batch : in->graph->batch;

	if (batch < 2 || batch % 2)
		return false;
	o->batch = batch / 2;
	return true;
}

enum { SHARD, LEVEL3, SELECTIVE, FULL, MICRO, STAGES, BATCH };

static apply_fn *const changes[] = {
	[SHARD] = shard, [LEVEL3] = level3, [SELECTIVE] = selective, [FULL] = full,
	[MICRO] = more_micro_batches, [STAGES] = more_stages, [BATCH] = less_batch,
};

#define BIT(x) (1u << (x))

/* Ways to try, in this order; a repeatable change is repeated until a plan fits. */
static const struct way {
	unsigned changes;
	int repeated; /* index of the repeatable change; -1 if none */
} ways[] = {
	{BIT(SHARD), -1}, {BIT(LEVEL3), -1}, {BIT(SELECTIVE), -1}, {BIT(MICRO), MICRO}, {BIT(FULL), -1},
	{BIT(SHARD) | BIT(SELECTIVE), -1}, {BIT(SHARD) | BIT(MICRO), MICRO},
	{BIT(SHARD) | BIT(FULL), -1}, {BIT(FULL) | BIT(MICRO), MICRO},
	{BIT(SHARD) | BIT(FULL) | BIT(MICRO), MICRO}, {BIT(STAGES), STAGES},
	{BIT(LEVEL3) | BIT(FULL) | BIT(MICRO), MICRO},
	{BIT(SHARD) | BIT(FULL) | BIT(STAGES), STAGES}, {BIT(BATCH), BATCH},
};

/* The settings that differ, written as options. */
static const char *options_text(struct ap_arena *arena, const struct ap_settings *was,
	const struct ap_settings *now)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	for (int i = 0; i < AP_SET_COUNT; i++) {
		const struct ap_setting_row *row = ap_setting_at(i);
		const char *value = ap_setting_text(arena, row, now);
		const char *before = ap_setting_text(arena, row, was);

		if (!value || (before && strcmp(value, before) == 0))
			continue;
		ap_str_addf(&s, "%s%s", s.len ? " " : "", ap_option_spelling(arena, "--", row));
		if (row->type != AP_SET_FLAG)
			ap_str_addf(&s, " %s", value);
	}
	return s.s;
}

/* Settings that fit, and the memory of the plan found. */
struct found {
	struct ap_settings opt;
	int64_t bytes;
};

/* Applies a way's changes, then its repeated change so many times more; false if one of them cannot
 * be made. */
static bool apply(const struct relaxing *r, const struct way *w, int times, struct ap_settings *o)
{
	*o = r->base;
	for (size_t i = 0; i < AP_COUNT(changes); i++)
		if (w->changes & BIT(i) && !changes[i](r->in, o))
			return false;
	for (int i = 0; i < times; i++)
		if (w->repeated < 0 || !changes[w->repeated](r->in, o))
			return false;
	return true;
}

static bool fits(struct relaxing *r, const struct way *w, int times, struct found *f)
{
	struct ap_settings o;
	struct trial t;

	if (ap_ctx_stopped(r->ctx) || !apply(r, w, times, &o))
		return false;
	t = try(r->ctx, &o, r->src, false, &r->left);
	if (t.verdict == FITS)
		*f = (struct found){o, t.bytes};
	return t.verdict == FITS;
}

/* Finds the fewest changes of a way that fit, by bisection of the number of repetitions. */
static bool try_way(struct relaxing *r, const struct way *w, struct found *f)
{
	struct ap_settings o;
	int lo = -1, hi = 0, less;
	int log = 0;

	if (r->left.steps == 0 || !apply(r, w, 0, &o))
		return false;
	while (apply(r, w, hi + 1, &o))
		hi++;
	/* The most repetitions that leave every device a sample of each micro-batch. */
	while (r->in->machine->ndev >> (log + 1))
		log++;
	less = w->repeated == MICRO && log < hi ? hi - log : hi;
	if (!fits(r, w, hi, f) && (less == hi || !fits(r, w, hi = less, f)))
		return false;
	while (hi - lo > 1) {
		int mid = lo + (hi - lo) / 2;

		if (fits(r, w, mid, f))
			hi = mid;
		else
			lo = mid;
	}
	return true;
}

/* Returns true if other settings can help. */
static bool say_contributors(struct relaxing *r)
{
	struct ap_ctx *ctx = r->ctx;
	struct ap_request rq = r->in->request;
	struct ap_plan least;
	const struct ap_memory *m = &least.prediction.memory;
	char need[32];

	if (r->in->counts)
		rq.given = r->in->counts;
	ap_low_memory_plan(ctx, &rq, &r->left.steps, &least);
	if (!least.graph)
		return false;
	ap_diag_add(ctx->diag, AP_NOTE, AP_OK, NULL, "memory-largest", "%s needs %s: %s",
		r->in->counts ? "it" : "the smallest plan found", ap_format_bytes(m->total, need),
		ap_memory_contributors(ctx, &least));
	if (m->context < rq.capacity_bytes)
		return true;
	ap_diag_add(ctx->diag, AP_NOTE, AP_OK, NULL, "memory-relax",
		"the context alone takes %s, under any settings and on any number of devices",
		ap_format_bytes(m->context, need));
	return false;
}

static void say(struct relaxing *r, const struct found *f)
{
	char need[32];

	ap_diag_add(r->ctx->diag, AP_NOTE, AP_OK, NULL, "memory-relax",
		"%s would fit: a plan of %s", options_text(r->ctx->arena, r->set, &f->opt),
		ap_format_bytes(f->bytes, need));
}

/* Returns how many ways were reported. */
static int say_settings(struct relaxing *r)
{
	unsigned done = 0; /* changes that fit alone are not tried in combination */
	int named = 0;

	for (size_t i = 0; i < AP_COUNT(ways) && named < MOST_NAMED; i++) {
		struct found f;

		if (ways[i].changes & done || !try_way(r, &ways[i], &f))
			continue;
		done |= ways[i].changes;
		done |= done & BIT(SHARD) ? BIT(LEVEL3) : 0; /* stronger forms of the same change */
		done |= done & BIT(SELECTIVE) ? BIT(FULL) : 0;
		named++;
		say(r, &f);
	}
	return named;
}

/* Reports a number of devices that fits, up to MOST_TIMES as many. Returns true if it did. */
static bool say_devices(struct relaxing *r)
{
	struct ap_devices found;
	char need[32];

	if (r->in->machine->part) /* nobody said where more should be */
		return false;
	if (least_devices(r->ctx, r->set, r->src, MOST_TIMES * (int64_t)r->in->machine->total,
			(int64_t)r->in->machine->total, &r->left, &found) != AP_OK || !found.fits)
		return false;
	ap_diag_add(r->ctx->diag, AP_NOTE, AP_OK, NULL, "memory-relax",
		"%" PRId64 " device%s would do: a plan of %s", found.fits, found.fits > 1 ? "s" : "",
		ap_format_bytes(found.memory_bytes, need));
	return true;
}

/* Reports more devices combined with what saves most memory. Returns true if it did. */
static bool say_both(struct relaxing *r)
{
	static const struct way most = {BIT(SHARD) | BIT(FULL) | BIT(MICRO), MICRO};
	struct ap_sources machine = *r->src;
	struct found f;

	if (r->in->machine->part)
		return false;
	machine.table = NULL;
	r->src = &machine;
	r->base.chip = r->in->chip->name;
	for (int times = 2; times <= MOST_TIMES; times *= 2) {
		r->base.device_num = times * (int64_t)r->in->machine->total;
		if (try_way(r, &most, &f)) {
			say(r, &f);
			return true;
		}
	}
	return false;
}

/* Is memory the reason, rather than a route or a pin? */
static bool is_short(const struct ap_diag *d)
{
	enum ap_level level;
	const char *check;

	for (size_t i = 0; ap_diag_text(d, i, &level, &check); i++)
		if (level == AP_ERROR && check && !strcmp(check, "memory"))
			return true;
	return false;
}

static void report(struct relaxing *r)
{
	bool alone = r->set->parallel_mode == AP_MODE_STAND_ALONE;
	uint64_t kept; /* reserved for the search over devices */
	int named;

	if (!say_contributors(r))
		return;
	kept = alone ? 0 : r->left.steps / 2;
	r->left.steps -= kept;
	named = say_settings(r);
	r->left.steps += kept;
	if (!alone) {
		named += say_devices(r);
		named += !named && say_both(r);
	}
	if (!named && !ap_ctx_stopped(r->ctx))
		ap_diag_add(r->ctx->diag, AP_NOTE, AP_OK, NULL, "memory-relax",
			"no other settings%s that were tried would fit",
			alone ? "" : " and no number of devices");
}

static void try_report(void *user)
{
	report(user);
}

/* The same again as the run has taken, within the limits of a search. */
static struct allowance allow(const struct ap_settings *set, const struct ap_sources *src,
	const struct ap_inputs *in, uint64_t steps)
{
	struct allowance a = price_of(set, src, in->graph->nnode);
	uint64_t limit = (uint64_t)set->work_limit;

	a.steps += steps;
	a.steps = a.steps > LEAST_STEPS ? a.steps : LEAST_STEPS;
	a.steps = ap_setting_given(set, AP_SET_work_limit) && limit < a.steps ? limit : a.steps;
	a.most_bytes = a.most_bytes > LEAST_BYTES ? a.most_bytes : LEAST_BYTES;
	return a;
}

void ap_relax_report(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	const struct ap_inputs *in, uint64_t steps)
{
	struct relaxing r = {ctx, set, src, in, *set, allow(set, src, in, steps)};
	struct ap_arena *made;

	if (!is_short(ctx->diag))
		return;
	ap_ctx_phase(ctx, "looking for what would fit");
	if (ap_attempt_apart(ctx, try_report, NULL, &r, &made))
		ap_arena_destroy(made); /* the notes themselves live with the messages */
}
