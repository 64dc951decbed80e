/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a plan file, and what its rules have in common. */
#include "planfile/plan_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "planfile/plan_check_parts.h"
#include "planfile/plan_form.h"

#define SLACK 1e-12 /* of a sum: digits that the order of adding decides */

enum { MOST_FAULTS = 1000 }; /* of a rule */

void ap_book_fault(struct ap_book *b, const struct ap_jv *v, const char *fmt, ...)
{
	struct ap_str text;
	va_list args;

	if (b->nfault++ >= MOST_FAULTS)
		return;
	ap_str_init(&text, b->ctx->arena);
	va_start(args, fmt);
	ap_str_vaddf(&text, fmt, args);
	va_end(args);
	(void)ap_json_report(b->ctx, b->doc, v, AP_ERROR, AP_MEANING, b->oper, b->check, "%s", text.s);
}

const struct ap_jv *ap_book_at(const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *v = ap_jv_get(obj, key);

	return v && ap_jv_type(v) != AP_JNULL ? v : NULL;
}

int64_t ap_book_whole(const struct ap_book *b, const struct ap_jv *v)
{
	int64_t n = 0;

	(void)ap_jv_int(b->doc, v, &n);
	return n;
}

int64_t ap_book_int(const struct ap_book *b, const struct ap_jv *obj, const char *key)
{
	return ap_book_whole(b, ap_jv_get(obj, key));
}

double ap_book_num(const struct ap_jv *obj, const char *key)
{
	return ap_jv_double(ap_jv_get(obj, key));
}

const char *ap_book_str(const struct ap_jv *obj, const char *key)
{
	return ap_jv_str(ap_jv_get(obj, key));
}

bool ap_book_bool(const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *v = ap_jv_get(obj, key);

	return v && ap_jv_bool(v);
}

struct ap_book_list ap_book_list(struct ap_book *b, const struct ap_jv *list)
{
	int64_t *v = AP_NEW_N(b->ctx->scratch, int64_t, ap_jv_count(list));
	size_t n = 0;

	for (const struct ap_jv *e = ap_jv_first(list); e; e = ap_jv_next(e))
		v[n++] = ap_book_whole(b, e);
	return (struct ap_book_list){n, v};
}

bool ap_book_near(double a, double b)
{
	return fabs(a - b) <= SLACK * fmax(fabs(a), fabs(b));
}

void ap_book_want_int(struct ap_book *b, const struct ap_jv *obj, const char *key, int64_t want,
	const char *why)
{
	if (ap_book_int(b, obj, key) != want)
		ap_book_fault(b, ap_jv_get(obj, key), "expected %" PRId64 ", %s", want, why);
}

void ap_book_want_num(struct ap_book *b, const struct ap_jv *obj, const char *key, double want,
	const char *why)
{
	char text[32];

	if (ap_book_num(obj, key) != want)
		ap_book_fault(b, ap_jv_get(obj, key), "expected %s, %s",
			isfinite(want) ? ap_format_double(want, text) : "a number", why);
}

void ap_book_want_near(struct ap_book *b, const struct ap_jv *obj, const char *key, double want,
	const char *why)
{
	if (!ap_book_near(ap_book_num(obj, key), want))
		ap_book_want_num(b, obj, key, want, why);
}

void ap_book_want_str(struct ap_book *b, const struct ap_jv *obj, const char *key, const char *want,
	const char *why)
{
	if (strcmp(ap_book_str(obj, key), want) != 0)
		ap_book_fault(b, ap_jv_get(obj, key), "expected \"%s\", %s", want, why);
}

/* Axes [stride, size], outermost first; each lies whole within one step of the one before. */
static bool read_axes(struct ap_book *b, const struct ap_jv *list, int64_t count, struct ap_axes *out)
{
	int64_t room = count;

	*out = (struct ap_axes){0};
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		struct ap_book_list pair = ap_book_list(b, v);

		if (pair.n != 2 || pair.v[1] < 2 || out->n == AP_MAX_AXES) {
			ap_book_fault(b, v, "expected a stride and a size of 2 or more");
			return false;
		}
		if (room % pair.v[0] || room / pair.v[0] % pair.v[1]) {
			ap_book_fault(b, v, "expected an axis of the %" PRId64 " devices, within those "
				"before it", count);
			return false;
		}
		room = pair.v[0];
		out->axis[out->n++] = (struct ap_axis){(int32_t)pair.v[0], (int32_t)pair.v[1]};
	}
	return true;
}

bool ap_book_group(struct ap_book *b, const struct ap_jv *obj, int64_t first, int64_t count,
	struct ap_axes *out)
{
	enum { MOST_RANKS = 1024 };
	const struct ap_jv *ranks = ap_jv_get(obj, "ranks"), *v;
	struct ap_axes own, *axes = out ? out : &own;
	int64_t size, want, i = 0;

	if (!read_axes(b, ap_jv_get(obj, "axes"), count, axes))
		return false;
	size = ap_axes_size(axes);
	if (!ranks) {
		if (size <= MOST_RANKS)
			ap_book_fault(b, obj, "no key \"ranks\"");
		return size > MOST_RANKS;
	}
	if ((int64_t)ap_jv_count(ranks) != size) {
		ap_book_fault(b, ranks, "expected %" PRId64 " ranks, as the axes say", size);
		return false;
	}
	for (v = ap_jv_first(ranks); v; v = ap_jv_next(v), i++) {
		int64_t rest = i;

		want = first;
		for (int a = axes->n; a-- > 0; rest /= axes->axis[a].size)
			want += rest % axes->axis[a].size * axes->axis[a].stride;
		if (ap_book_whole(b, v) != want) {
			ap_book_fault(b, v, "expected %" PRId64 ", as the axes say", want);
			return false;
		}
	}
	return true;
}

static const struct ap_jv **list_of(struct ap_book *b, const struct ap_jv *list, uint32_t *n)
{
	const struct ap_jv **all = AP_NEW_N(b->ctx->scratch, const struct ap_jv *, ap_jv_count(list));

	*n = 0;
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		all[(*n)++] = v;
	return all;
}

/* Sizes that everything else is held against; what contradicts them the rules say. */
static void read_sizes(struct ap_book *b)
{
	const struct ap_jv *settings = ap_jv_get(b->root, "settings");
	const struct ap_jv *phase = ap_jv_get(settings, "run_phase");
	const struct ap_jv *pipe = ap_book_at(b->root, "pipeline");
	uint32_t n;

	b->stage = list_of(b, ap_jv_get(b->root, "stages"), &n);
	b->nstage = n;
	b->devices = ap_book_int(b, ap_jv_get(b->root, "machine"), "devices");
	b->ndev = n && b->devices % n == 0 ? b->devices / n : 1;
	b->micro_batches = n ? ap_book_int(b, b->stage[0], "micro_batches") : 1;
	b->segments = pipe ? ap_book_int(b, pipe, "segments") : 1;
	b->inference = phase && ap_jv_type(phase) == AP_JSTRING && !strcmp(ap_jv_str(phase), "inference");
}

static const struct {
	void (*hold)(struct ap_book *b);
	const char *check;
	bool base;
} rules[] = {
#define RULE(name, check, base) {ap_plan_rule_##name, check, base},
#include "planfile/plan_rules.def"
#undef RULE
};

static void hold(struct ap_book *b)
{
	read_sizes(b);
	b->move = list_of(b, ap_jv_get(b->root, "redistributions"), &b->nmove);
	b->param = list_of(b, ap_jv_get(b->root, "parameters"), &b->nparam);
	b->op_names = ap_map_create(b->ctx->scratch);
	b->tensor_names = ap_map_create(b->ctx->scratch);
	for (size_t i = 0; i < AP_COUNT(rules); i++) {
		uint32_t before = b->nfault;

		b->check = rules[i].check;
		b->oper = NULL;
		rules[i].hold(b);
		if (rules[i].base && b->nfault > before)
			return;
	}
}

enum ap_status ap_plan_check(struct ap_ctx *ctx, const struct ap_json *doc)
{
	struct ap_book b = {.ctx = ctx, .doc = doc, .root = ap_json_root(doc)};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);

	AP_TRY(ap_plan_form_check(ctx, doc));
	hold(&b);
	ap_arena_release(ctx->scratch, mark);
	return b.nfault ? AP_MEANING : AP_OK;
}
