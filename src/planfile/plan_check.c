/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of plan_rules.def query a book: an index of a plan file whose form is right. */
#include "planfile/plan_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/ctx.h"
#include "base/dtype.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/num.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/again.h"
#include "hw/group.h"
#include "plan/plan.h"
#include "planfile/plan_form.h"
#include "route/route.h"
#include "rule/op.h"
#include "shard/layout.h"
#include "shard/reshard.h"
#include "shard/pieces.h"

struct book_list {
	size_t n;
	const int64_t *v;
};

enum book_source { BOOK_INPUT, BOOK_RESULT, BOOK_PARAM, BOOK_CONSTANT };

struct book_tensor {
	enum book_source source;
	const struct ap_jv *where; /* the value that introduces it */
	uint32_t op, result; /* of BOOK_RESULT */
	uint32_t param; /* index of BOOK_PARAM */
	uint32_t nuse; /* operands that read it */
	bool has_shape; /* a constant has none */
	struct book_list shape;
	int bytes; /* per element */
	bool has_slice; /* batch is known; all users must agree */
	uint64_t batch; /* mask of dimensions that the micro-batches divide */
};

struct book_op {
	const struct ap_jv *v;
	const char *name;
	int64_t stage, segment;
	uint32_t nin, nout;
	const ap_id *in, *out; /* tensor indices */
	struct book_list dev; /* dev_matrix */
	struct ap_layout *in_layout, *out_layout; /* set by rule_cuts; rank -1: invalid */
	uint32_t ncomm;
	const struct ap_jv **comm;
};

struct book {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	const struct ap_jv *root;
	const char *check; /* code of the running rule */
	const char *oper; /* operator being checked, or NULL */
	uint32_t nfault;
	int64_t devices, nstage;
	int64_t *ndev, *first; /* [nstage + 1] of a stage: devices, first rank; last: of none */
	int64_t micro_batches, segments;
	bool inference;
	bool beside; /* a forward and a backward pass run as one */
	bool recomputes; /* any operator is recomputed */
	bool names_constants; /* plans before 0.2.0 do not */
	uint32_t nop, nmove, nparam;
	struct book_op *op;
	const struct ap_jv **move, **param, **stage;
	struct ap_map *op_names, *tensor_names; /* ids are indices */
	AP_VEC(struct book_tensor) tensor;
};

#define SLACK 1e-12 /* relative rounding error of sums in another order */

enum { MOST_FAULTS = 1000 }; /* reported at most */

/* Reports a fault at v. */
static void __attribute__((format(printf, 3, 4))) book_fault(struct book *b, const struct ap_jv *v,
	const char *fmt, ...)
{
	va_list args;

	if (b->nfault++ >= MOST_FAULTS)
		return;
	va_start(args, fmt);
	(void)ap_json_reportv(b->ctx, b->doc, v, AP_ERROR, AP_MEANING, b->oper, b->check, fmt, args);
	va_end(args);
}

static int64_t book_whole(const struct book *b, const struct ap_jv *v)
{
	int64_t n = 0;

	(void)ap_jv_int(b->doc, v, &n);
	return n;
}

/* A list of integers, kept in scratch. */
static struct book_list book_list(struct book *b, const struct ap_jv *list)
{
	int64_t *v = AP_NEW_N(b->ctx->scratch, int64_t, ap_jv_count(list));
	size_t n = 0;

	for (const struct ap_jv *e = ap_jv_first(list); e; e = ap_jv_next(e))
		v[n++] = book_whole(b, e);
	return (struct book_list){n, v};
}

/* Readers of an object's members; the form is right. */
static const struct ap_jv *book_at(const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *v = ap_jv_get(obj, key);

	return v && ap_jv_type(v) != AP_JNULL ? v : NULL;
}

static int64_t book_int(const struct book *b, const struct ap_jv *obj, const char *key)
{
	return book_whole(b, ap_jv_get(obj, key));
}

static double book_num(const struct ap_jv *obj, const char *key)
{
	return ap_jv_double(ap_jv_get(obj, key));
}

static const char *book_str(const struct ap_jv *obj, const char *key)
{
	return ap_jv_str(ap_jv_get(obj, key));
}

static bool book_bool(const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *v = ap_jv_get(obj, key);

	return v && ap_jv_bool(v);
}

/* Are two sums equal up to the order of addition? */
static bool book_near(double a, double b)
{
	return fabs(a - b) <= SLACK * fmax(fabs(a), fabs(b));
}

/* Faults a member whose value differs from the expected one; why explains that value. */
static void book_want_int(struct book *b, const struct ap_jv *obj, const char *key, int64_t want,
	const char *why)
{
	if (book_int(b, obj, key) != want)
		book_fault(b, ap_jv_get(obj, key), "expected %" PRId64 ", %s", want, why);
}

static void book_want_num(struct book *b, const struct ap_jv *obj, const char *key, double want,
	const char *why)
{
	char text[32];

	if (book_num(obj, key) != want)
		book_fault(b, ap_jv_get(obj, key), "expected %s, %s",
			isfinite(want) ? ap_format_double(want, text) : "a number", why);
}

static void book_want_str(struct book *b, const struct ap_jv *obj, const char *key, const char *want,
	const char *why)
{
	if (strcmp(book_str(obj, key), want) != 0)
		book_fault(b, ap_jv_get(obj, key), "expected \"%s\", %s", want, why);
}

/* Adds a name to a map; a fault at v if it is there already. */
static bool book_note(struct book *b, struct ap_map *names, const char *name, const struct ap_jv *v,
	const char *what)
{
	bool fresh;

	ap_map_put_str(names, name, &fresh);
	if (!fresh)
		book_fault(b, v, "%s of this name is there already", what);
	return fresh;
}

/* The operator that a member names; AP_NONE after a fault. */
static ap_id book_op(struct book *b, const struct ap_jv *obj, const char *key)
{
	ap_id id = ap_map_get_str(b->op_names, book_str(obj, key));

	if (id == AP_NONE)
		book_fault(b, ap_jv_get(obj, key), "is no operator of this plan");
	return id;
}

/* Is the stage of obj below the number of stages? */
static bool book_stage(struct book *b, const struct ap_jv *obj, int64_t nstage)
{
	if (book_int(b, obj, "stage") < nstage)
		return true;
	book_fault(b, ap_jv_get(obj, "stage"), "is no stage of this plan");
	return false;
}

static size_t index_of(const char *const *names, const char *name)
{
	size_t i = 0;

	while (strcmp(names[i], name) != 0)
		i++;
	return i;
}

static bool same_lists(const struct ap_jv *a, const struct ap_jv *b)
{
	const struct ap_jv *x = ap_jv_first(a), *y = ap_jv_first(b);

	if (ap_jv_type(a) != AP_JARRAY)
		return ap_jv_type(b) != AP_JARRAY && ap_jv_double(a) == ap_jv_double(b);
	for (; x && y; x = ap_jv_next(x), y = ap_jv_next(y))
		if (!same_lists(x, y))
			return false;
	return !x && !y;
}

/* Reads axes [stride, size], outermost first; each must lie within one step of the previous one. */
static bool read_axes(struct book *b, const struct ap_jv *list, int64_t count, struct ap_axes *out)
{
	int64_t room = count;

	*out = (struct ap_axes){0};
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		struct book_list pair = book_list(b, v);

		if (pair.n != 2 || pair.v[1] < 2 || out->n == AP_MAX_AXES) {
			book_fault(b, v, "expected a stride and a size of 2 or more");
			return false;
		}
		if (room % pair.v[0] || room / pair.v[0] % pair.v[1]) {
			book_fault(b, v, "expected an axis of the %" PRId64 " devices, within those "
				"before it", count);
			return false;
		}
		room = pair.v[0];
		out->axis[out->n++] = (struct ap_axis){(int32_t)pair.v[0], (int32_t)pair.v[1]};
	}
	return true;
}

/* Checks that axes nest within count ranks from first on, and that "ranks" follows from them. *out
 * (may be NULL): the axes. Returns false after a fault. */
static bool book_group(struct book *b, const struct ap_jv *obj, int64_t first, int64_t count,
	struct ap_axes *out)
{
	const struct ap_jv *ranks = ap_jv_get(obj, "ranks"), *v;
	struct ap_axes own, *axes = out ? out : &own;
	int64_t size, want, i = 0;

	if (!read_axes(b, ap_jv_get(obj, "axes"), count, axes))
		return false;
	size = ap_axes_size(axes);
	if (!ranks) {
		if (size <= AP_PLAN_MOST_LISTED)
			book_fault(b, obj, "no key \"ranks\"");
		return size > AP_PLAN_MOST_LISTED;
	}
	if ((int64_t)ap_jv_count(ranks) != size) {
		book_fault(b, ranks, "expected %" PRId64 " ranks, as the axes say", size);
		return false;
	}
	for (v = ap_jv_first(ranks); v; v = ap_jv_next(v), i++) {
		int64_t rest = i;

		want = first;
		for (int a = axes->n; a-- > 0; rest /= axes->axis[a].size)
			want += rest % axes->axis[a].size * axes->axis[a].stride;
		if (book_whole(b, v) != want) {
			book_fault(b, v, "expected %" PRId64 ", as the axes say", want);
			return false;
		}
	}
	return true;
}

static const struct ap_jv **list_of(struct book *b, const struct ap_jv *list, uint32_t *n)
{
	const struct ap_jv **all = AP_NEW_N(b->ctx->scratch, const struct ap_jv *, ap_jv_count(list));

	*n = 0;
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		all[(*n)++] = v;
	return all;
}

/* Equal shares of the devices, unless the pipeline has a list of others; one that is none is no list of
 * stages. */
static void read_stages(struct book *b, const struct ap_jv *given)
{
	struct book_list list = {0};

	if (given)
		list = book_list(b, given);
	b->ndev = AP_NEW_N(b->ctx->scratch, int64_t, b->nstage + 1);
	b->first = AP_NEW_N(b->ctx->scratch, int64_t, b->nstage + 1);
	for (int64_t s = 0; s <= b->nstage; s++) {
		bool equal = s < b->nstage && b->devices % b->nstage == 0;

		b->ndev[s] = s < (int64_t)list.n && s < b->nstage ? list.v[s]
			: equal ? b->devices / b->nstage : 1;
		b->first[s] = s ? b->first[s - 1] + b->ndev[s - 1] : 0;
	}
}

/* The stage of an object that has one; below the number of stages, or that. */
static int64_t book_own_stage(const struct book *b, const struct ap_jv *obj)
{
	int64_t stage = book_int(b, obj, "stage");

	return stage < b->nstage ? stage : b->nstage;
}

/* Reads the sizes that all else is checked against; rules report contradictions in them. */
static void read_sizes(struct book *b)
{
	const struct ap_jv *settings = ap_jv_get(b->root, "settings");
	const struct ap_jv *phase = ap_jv_get(settings, "run_phase");
	const struct ap_jv *beside = ap_jv_get(settings, "overlap_moe_expert_parallel_comm");
	const struct ap_jv *pipe = book_at(b->root, "pipeline");
	uint32_t n;

	b->stage = list_of(b, ap_jv_get(b->root, "stages"), &n);
	b->nstage = n;
	b->devices = book_int(b, ap_jv_get(b->root, "machine"), "devices");
	read_stages(b, pipe ? book_at(pipe, "stage_devices") : NULL);
	b->micro_batches = n ? book_int(b, b->stage[0], "micro_batches") : 1;
	b->segments = pipe ? book_int(b, pipe, "segments") : 1;
	b->beside = beside && ap_jv_type(beside) == AP_JBOOL && ap_jv_bool(beside);
	b->inference = phase && ap_jv_type(phase) == AP_JSTRING && !strcmp(ap_jv_str(phase), "inference");
}

enum { MOST_NESTED = 16 }; /* deeper settings cannot match the hash */

/* A setting and its twin elsewhere must be equal if both are present. */
static void hold_twin(struct book *b, const struct ap_jv *setting, const struct ap_jv *twin,
	const char *where)
{
	bool equal;

	if (!setting || !twin || ap_jv_type(setting) == AP_JNULL || ap_jv_type(twin) == AP_JNULL)
		return;
	equal = ap_jv_type(setting) == ap_jv_type(twin) && (ap_jv_type(twin) == AP_JSTRING
		? !strcmp(ap_jv_str(setting), ap_jv_str(twin))
		: ap_jv_type(twin) == AP_JNUMBER && ap_jv_double(setting) == ap_jv_double(twin));
	if (!equal)
		book_fault(b, setting, "contradicts %s", where);
}

static void rule_settings(struct book *b)
{
	static const struct {
		const char *setting, *section, *key;
	} twins[] = {
		{"device_num", "machine", "devices"},
		{"chip", "machine", "chip"},
		{"memory", "machine", "capacity_bytes"},
		{"batch", "graph", "batch"},
		{"executor", "route", "executor"},
		{"pipeline_stages", "pipeline", "stages"},
		{"pipeline_segments", "pipeline", "segments"},
		{"micro_batches", "pipeline", "micro_batches"},
		{"pipeline_scheduler", "pipeline", "scheduler"},
	};
	const struct ap_jv *settings = ap_jv_get(b->root, "settings"), *v;
	char hex[AP_SHA256_HEX + 1];
	struct ap_str text;
	struct ap_jw w;

	ap_str_init(&text, b->ctx->scratch);
	ap_jw_str_init(&w, &text, 0); /* the hash covers the compact form */
	if (ap_jv_is_shallow(settings, MOST_NESTED))
		ap_jw_value(&w, b->doc, settings);
	ap_sha256_hex(text.s, text.len, hex);
	book_want_str(b, ap_jv_get(ap_jv_get(b->root, "inputs"), "settings"), "sha256", hex,
		"of the settings as they are here");
	for (size_t i = 0; i < AP_COUNT(twins); i++) {
		const struct ap_jv *section = ap_jv_get(b->root, twins[i].section);

		if (ap_jv_type(section) == AP_JOBJECT)
			hold_twin(b, ap_jv_get(settings, twins[i].setting),
				ap_jv_get(section, twins[i].key),
				ap_arena_printf(b->ctx->scratch, "/%s/%s", twins[i].section,
					twins[i].key));
	}
	v = ap_jv_get(settings, "pipeline_stages");
	if (v && ap_jv_type(v) == AP_JNUMBER && ap_jv_double(v) != (double)b->nstage)
		book_fault(b, v, "contradicts the %" PRId64 " stages in /stages", b->nstage);
	if (b->nstage)
		hold_twin(b, ap_jv_get(settings, "micro_batches"),
			ap_jv_get(b->stage[0], "micro_batches"), "/stages/0/micro_batches");
}

static struct book_tensor *add_tensor(struct book *b, const struct ap_jv *name,
	enum book_source source)
{
	struct book_tensor t = {.source = source, .where = name};

	if (!book_note(b, b->tensor_names, ap_jv_str(name), name, "a tensor"))
		return NULL;
	AP_PUSH(b->ctx->scratch, b->tensor, t);
	return &b->tensor.v[b->tensor.n - 1];
}

static int bytes_of(const char *dtype)
{
	return ap_dtype_bytes(ap_dtype_find(dtype));
}

static void add_inputs(struct book *b, const struct ap_jv *g)
{
	const struct ap_jv *shapes = ap_jv_get(g, "input_shapes"), *dtypes = ap_jv_get(g, "input_dtypes");
	const struct ap_jv *shape = ap_jv_first(shapes), *dtype = ap_jv_first(dtypes);
	size_t n = ap_jv_count(ap_jv_get(g, "inputs"));

	if (ap_jv_count(shapes) != n)
		book_fault(b, shapes, "expected a shape of each of the %zu inputs", n);
	if (ap_jv_count(dtypes) != n)
		book_fault(b, dtypes, "expected a type of each of the %zu inputs", n);
	for (const struct ap_jv *v = ap_jv_first(ap_jv_get(g, "inputs")); v; v = ap_jv_next(v)) {
		struct book_tensor *t = add_tensor(b, v, BOOK_INPUT);

		if (t && shape && dtype) {
			t->has_shape = true;
			t->shape = book_list(b, shape);
			t->bytes = bytes_of(ap_jv_str(dtype));
		}
		shape = shape ? ap_jv_next(shape) : NULL;
		dtype = dtype ? ap_jv_next(dtype) : NULL;
	}
}

static void rule_graph(struct book *b)
{
	const struct ap_jv *g = ap_jv_get(b->root, "graph"), *constants = ap_jv_get(g, "constants");
	int64_t sum = 0, n;

	add_inputs(b, g);
	b->names_constants = constants != NULL;
	for (const struct ap_jv *v = constants ? ap_jv_first(constants) : NULL; v; v = ap_jv_next(v))
		(void)add_tensor(b, v, BOOK_CONSTANT);
	for (uint32_t i = 0; i < b->nparam; i++) {
		const struct ap_jv *p = b->param[i], *read_as = ap_jv_get(p, "read_as");
		struct book_tensor *t = add_tensor(b, ap_jv_get(p, "name"), BOOK_PARAM);

		if (!t)
			continue;
		t->param = i;
		t->has_shape = true;
		t->shape = book_list(b, ap_jv_get(p, "tensor_shape"));
		t->bytes = bytes_of(read_as ? ap_jv_str(read_as) : book_str(p, "dtype"));
		if (!ap_product(t->shape.v, t->shape.n, &n) || !ap_add(sum, n, &sum))
			book_fault(b, ap_jv_get(p, "tensor_shape"), "has too many elements");
	}
	book_want_int(b, g, "parameters", sum, "the elements of the parameters in /parameters");
}

static void rule_machine(struct book *b)
{
	const struct ap_jv *m = ap_jv_get(b->root, "machine"), *levels = ap_jv_get(m, "levels");
	const struct ap_jv *per_server = book_at(ap_jv_get(b->root, "settings"), "devices_per_server");
	int64_t span = 1, servers = book_int(b, m, "servers"), n;

	for (const struct ap_jv *v = ap_jv_first(levels); v; v = ap_jv_next(v)) {
		n = book_int(b, v, "span");
		if (n < span)
			book_fault(b, ap_jv_get(v, "span"),
				"expected %" PRId64 " devices or more, those of the level before", span);
		span = n;
	}
	if (span < b->devices)
		book_fault(b, levels, "expected levels up to the one that spans all %" PRId64
			" devices", b->devices);
	if (servers > b->devices)
		book_fault(b, ap_jv_get(m, "servers"), "expected %" PRId64 " at most, one for each "
			"device", b->devices);
	if (per_server && ap_jv_int(b->doc, per_server, &n) && n > 0 &&
		servers != (b->devices + n - 1) / n)
		book_fault(b, ap_jv_get(m, "servers"), "expected %" PRId64 ", for /settings says %"
			PRId64 " devices a server", (b->devices + n - 1) / n, n);
}

/* Checks micro-batches held per segment: their sum is at most in_flight. */
static void hold_held(struct book *b, const struct ap_jv *stage, const char *key)
{
	const struct ap_jv *list = ap_jv_get(stage, key);
	struct book_list held;
	int64_t sum = 0;

	if (!list)
		return;
	held = book_list(b, list);
	for (size_t i = 0; i < held.n; i++)
		sum += held.v[i];
	if ((int64_t)held.n != b->segments)
		book_fault(b, list, "expected %" PRId64 ", one for each segment", b->segments);
	else if (sum > book_int(b, stage, "in_flight"))
		book_fault(b, list, "are more than in_flight");
}

static void hold_stage(struct book *b, int64_t i)
{
	const struct ap_jv *s = b->stage[i], *axes = ap_jv_get(s, "axes");
	const struct ap_jv *flight = ap_jv_get(s, "in_flight");
	struct ap_axes all;

	book_want_int(b, s, "id", i, "its place in the list");
	book_want_int(b, s, "first_rank", b->first[i], "behind the devices of the stages before");
	book_want_int(b, s, "micro_batches", b->micro_batches, "as in the first stage");
	book_want_int(b, s, "segments", b->segments, "as /pipeline says");
	if (ap_jv_double(flight) > (double)(b->micro_batches * b->segments))
		book_fault(b, flight, "expected %" PRId64 " at most, the micro-batches of all segments",
			b->micro_batches * b->segments);
	hold_held(b, s, "held");
	hold_held(b, s, "late");
	if (book_group(b, s, b->first[i], b->ndev[i], &all) && ap_axes_size(&all) != b->ndev[i])
		book_fault(b, axes, "expected all %" PRId64 " devices of the stage", b->ndev[i]);
	if (!ap_jv_get(s, "slots") != (b->nstage == 1))
		book_fault(b, ap_jv_get(s, "slots") ? ap_jv_get(s, "slots") : s, b->nstage == 1
			? "expected none without a pipeline" : "no key \"slots\"");
}

/* A number for each stage, not all equal, which add up to the devices. */
static bool hold_stage_devices(struct book *b, const struct ap_jv *given)
{
	struct book_list list = book_list(b, given);
	int64_t sum = 0;
	bool equal = true;

	for (size_t i = 0; i < list.n; i++) {
		sum += list.v[i];
		equal &= list.v[i] == list.v[0];
	}
	if ((int64_t)list.n != b->nstage || sum != b->devices)
		book_fault(b, given, "expected a number for each of the %" PRId64 " stages, in all the %"
			PRId64 " devices", b->nstage, b->devices);
	else if (equal)
		book_fault(b, given, "are equal: expected \"devices_per_stage\"");
	else
		return true;
	return false;
}

static void rule_pipeline(struct book *b)
{
	const struct ap_jv *pipe = ap_jv_get(b->root, "pipeline");
	bool none = ap_jv_type(pipe) == AP_JNULL;
	const struct ap_jv *given = none ? NULL : ap_jv_get(pipe, "stage_devices");

	if (given && !hold_stage_devices(b, given)) {
		b->nstage = 0;
		return;
	}
	if (!b->nstage || (!given && b->devices % b->nstage)) {
		book_fault(b, ap_jv_get(b->root, "stages"), "expected a number of stages that divides "
			"the %" PRId64 " devices", b->devices);
		b->nstage = 0;
		return;
	}
	if (none != (b->nstage == 1))
		book_fault(b, pipe, none ? "expected a pipeline of the %" PRId64 " stages in /stages"
			: "expected null for %" PRId64 " stage", b->nstage);
	if (!none) {
		book_want_int(b, pipe, "stages", b->nstage, "the stages in /stages");
		if (!given == !ap_jv_get(pipe, "devices_per_stage"))
			book_fault(b, pipe, "expected one of \"devices_per_stage\" and \"stage_devices\"");
		else if (!given)
			book_want_int(b, pipe, "devices_per_stage", b->ndev[0], "devices by stages");
		book_want_int(b, pipe, "micro_batches", b->micro_batches, "as in /stages");
	}
	for (int64_t i = 0; i < b->nstage; i++)
		hold_stage(b, i);
}

/* Kinds differ; each has a number for every part; together they are the layers that the parts have. */
static void rule_recompute(struct book *b)
{
	const struct ap_jv *r = book_at(b->root, "recompute"), *pipe = book_at(b->root, "pipeline");
	const struct ap_jv *kinds = r ? ap_jv_get(r, "kinds") : NULL;
	const struct ap_jv *counts = r ? ap_jv_get(r, "counts") : NULL;
	const struct ap_jv *layers = pipe ? ap_jv_get(pipe, "layers") : NULL;
	size_t npart = (size_t)(b->nstage * b->segments);
	struct ap_map *seen;
	int64_t *sum;

	if (!r)
		return;
	seen = ap_map_create(b->ctx->scratch);
	sum = AP_NEW_N(b->ctx->scratch, int64_t, npart);
	if (ap_jv_count(counts) != ap_jv_count(kinds))
		book_fault(b, counts, "expected %zu lists, one for each kind", ap_jv_count(kinds));
	for (const struct ap_jv *k = ap_jv_first(kinds); k; k = ap_jv_next(k)) {
		const char *word = ap_jv_str(k), *bad;
		unsigned what;
		bool fresh;
		size_t len;

		ap_map_put_str(seen, word, &fresh);
		if (!fresh)
			book_fault(b, k, "this kind is there already");
		if (strncmp(word, "uniform:", strlen("uniform:")) != 0 &&
			!ap_again_read(word, strlen(word), &what, &bad, &len))
			book_fault(b, k, "\"%.*s\" is nothing that is recomputed", (int)len, bad);
	}
	for (const struct ap_jv *c = ap_jv_first(counts); c; c = ap_jv_next(c)) {
		const struct book_list l = book_list(b, c);

		if (l.n != npart)
			book_fault(b, c, "expected %zu numbers, one for each segment of each stage", npart);
		for (size_t k = 0; k < l.n && k < npart; k++)
			sum[k] += l.v[k];
	}
	if (layers && ap_jv_count(layers) == npart) {
		const struct book_list l = book_list(b, layers);

		for (size_t k = 0; k < npart; k++)
			if (l.v[k] != sum[k])
				book_fault(b, counts, "part %zu has %" PRId64 " layers, in /pipeline "
					"%" PRId64, k, sum[k], l.v[k]);
	}
}

/* The longer of device and host; of the latter nothing need be said. */
static double longer(const struct ap_jv *cost, const char *device, const char *host)
{
	return ap_jv_get(cost, host) ? fmax(book_num(cost, device), book_num(cost, host))
		: book_num(cost, device);
}

/* The objective lies between the operators' costs without and with all gradient exchange, part of
 * which is hidden, and buckets save part of this and of what gathers weights. */
static void hold_objective(struct book *b, const struct ap_jv *search)
{
	static const char *const parts[] = {"forward_communication_s", "backward_communication_s",
		"optimizer_s", "input_s"};
	const struct ap_jv *ops = ap_jv_get(b->root, "operators"), *c;
	double least = 0, gradients = 0, moves = 0, gathers = 0, slack;
	double objective = book_num(search, "objective_s");

	for (const struct ap_jv *v = ap_jv_first(ops); v; v = ap_jv_next(v)) {
		const struct ap_jv *cost = ap_jv_get(v, "cost");

		for (size_t i = 0; i < AP_COUNT(parts); i++)
			least += book_num(cost, parts[i]);
		least += longer(cost, "forward_s", "forward_launch_s") +
			longer(cost, "backward_s", "backward_launch_s");
		gradients += book_num(cost, "gradient_s");
		for (c = ap_jv_first(ap_jv_get(v, "communications")); c; c = ap_jv_next(c))
			if (!strcmp(book_str(c, "phase"), "optimizer"))
				gathers += book_num(c, "time_s");
			else if (book_bool(c, "each_micro_batch"))
				gradients += (double)b->micro_batches * book_num(c, "time_s");
	}
	for (uint32_t i = 0; i < b->nparam; i++) {
		const struct ap_jv *sums = ap_jv_get(b->param[i], "gradient_sums");

		for (c = sums ? ap_jv_first(sums) : NULL; c; c = ap_jv_next(c))
			gradients += book_num(c, "time_s");
	}
	for (uint32_t i = 0; i < b->nmove; i++)
		if (book_at(b->move[i], "from"))
			moves += ap_jv_get(b->move[i], "objective_s") ? book_num(b->move[i], "objective_s")
				: book_num(b->move[i], "forward_s") + book_num(b->move[i], "backward_s");
	slack = 0x1p-40 * (double)(ap_jv_count(ops) + b->nmove) + 1e-7 * objective; /* rounding errors */
	if (objective < least + moves - gathers - slack || objective > least + gradients + moves + slack)
		book_fault(b, ap_jv_get(search, "objective_s"), "is no sum of what operators and "
			"redistributions cost");
}

static void rule_search(struct book *b)
{
	const struct ap_jv *s = ap_jv_get(b->root, "search"), *c = book_at(s, "certificate");
	const struct ap_jv *certify = ap_jv_get(ap_jv_get(b->root, "settings"), "certify");
	double least = book_num(s, "lower_bound_s"), objective = book_num(s, "objective_s");
	bool given = !strcmp(book_str(s, "mode"), "given");

	book_want_str(b, s, "status", given ? "given" : !book_bool(s, "complete") ? "stopped"
		: objective <= least ? "optimal" : "feasible", "by mode, completeness and bound");
	book_want_num(b, s, "gap", least > 0 ? objective / least - 1 : 0,
		"objective_s / lower_bound_s - 1");
	if (given) {
		book_want_num(b, s, "lower_bound_s", 0, "for nothing was searched");
		book_want_int(b, s, "work", 0, "for nothing was searched");
		if (!book_bool(s, "complete"))
			book_fault(b, ap_jv_get(s, "complete"), "expected true, for nothing was searched");
	}
	if (least > objective * (1 + 1e-12))
		book_fault(b, ap_jv_get(s, "lower_bound_s"), "is above objective_s");
	hold_objective(b, s);
	if (c) {
		const struct ap_jv *bound = ap_jv_get(c, "lower_bound_s");

		if (!strcmp(book_str(c, "engine"), book_str(s, "mode")))
			book_fault(b, ap_jv_get(c, "engine"),
				"expected another engine than that of the search");
		if (!strcmp(book_str(c, "status"), "agrees") && ap_jv_type(bound) == AP_JNUMBER &&
			ap_jv_double(bound) < least)
			book_fault(b, bound, "expected the bound of the search, or more, of one that agrees");
	}
	if (c && certify && ap_jv_type(certify) == AP_JBOOL && !ap_jv_bool(certify))
		book_fault(b, c, "contradicts /settings/certify");
}

/* Of the step: bound, gap and the word for them. */
static void hold_bound(struct book *b, const struct ap_jv *p)
{
	static const char *const keys[] = {"step_bound_s", "step_gap", "step_status"};
	const struct ap_jv *given = ap_jv_get(ap_jv_get(b->root, "settings"), "gap");
	double step = book_num(p, "step_time_s"), bound, gap;
	double enough = given && ap_jv_type(given) == AP_JNUMBER ? ap_jv_double(given) / 100
		: AP_DEFAULT_STEP_GAP / 100;
	size_t n = 0;

	for (size_t i = 0; i < AP_COUNT(keys); i++)
		n += ap_jv_get(p, keys[i]) != NULL;
	if (n > 0 && n < AP_COUNT(keys))
		book_fault(b, p, "step_bound_s, step_gap and step_status are there, or none of them");
	if (n < AP_COUNT(keys))
		return; /* written before there was one */
	bound = book_num(p, "step_bound_s");
	gap = bound > 0 ? step / bound - 1 : 0;
	if (bound > step * (1 + 1e-12))
		book_fault(b, ap_jv_get(p, "step_bound_s"), "is above step_time_s");
	book_want_num(b, p, "step_gap", gap, "step_time_s / step_bound_s - 1");
	book_want_str(b, p, "step_status", bound <= 0 ? "open" : gap <= enough ? "proven" : "bounded",
		"by bound, gap and /settings/gap");
}

static void rule_prediction(struct book *b)
{
	const struct ap_jv *p = ap_jv_get(b->root, "prediction");
	double step = book_num(p, "step_time_s"), compute = book_num(p, "compute_s");
	double bubble = book_num(p, "bubble_s"), update = book_num(p, "optimizer_s");
	double comm = book_num(p, "communication_s"), rest = fmax(0, step - compute - bubble - update);
	int64_t batch = book_int(b, ap_jv_get(b->root, "graph"), "batch");
	double idle = 0; /* mean over stages */

	hold_bound(b, p);
	for (int64_t i = 0; i < b->nstage; i++)
		idle += book_num(b->stage[i], "idle_s") / (double)b->nstage;
	book_want_num(b, p, "exposed_communication_s", comm > 0 ? rest : 0,
		"what kernels, bubble and optimizer leave of the step");
	if (comm <= 0 && rest > 1e-9 * step)
		book_fault(b, ap_jv_get(p, "step_time_s"), "is not the sum of its parts");
	if (b->nstage)
		book_want_num(b, p, "bubble_s", idle, "the mean of the stages' idle_s");
	book_want_num(b, p, "tokens_or_samples_per_s", (double)batch / step,
		"batch by step_time_s");
	if (b->nstage == 1 && step > 0 && compute + update > step * (1 + 1e-12))
		book_fault(b, ap_jv_get(p, "step_time_s"), "is less than kernels and optimizer take");
}

static void rule_baselines(struct book *b)
{
	const struct ap_jv *s = ap_jv_get(b->root, "search"), *list = ap_jv_get(b->root, "baselines");
	int64_t capacity = book_int(b, ap_jv_get(b->root, "machine"), "capacity_bytes");
	static const char *const figures[] = {"step_time_s", "objective_s", "memory_bytes", "fits"};
	struct ap_map *names = ap_map_create(b->ctx->scratch);
	double least = book_num(s, "lower_bound_s");

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		bool applies = !ap_jv_get(v, "not_applicable"), whole = true;
		const struct ap_jv *gap = ap_jv_get(v, "gap");

		(void)book_note(b, names, book_str(v, "name"), v, "a baseline");
		for (size_t i = 0; i < AP_COUNT(figures); i++)
			if (!ap_jv_get(v, figures[i]) == applies) {
				book_fault(b, v, applies ? "no key \"%s\"" :
					"\"%s\" of one that is not applicable", figures[i]);
				whole = false;
			}
		if (!applies || !whole)
			continue;
		if (book_bool(v, "fits") != (book_int(b, v, "memory_bytes") <= capacity))
			book_fault(b, ap_jv_get(v, "fits"), "contradicts memory_bytes and the %" PRId64
				" bytes of a device", capacity);
		if (gap && least > 0)
			book_want_num(b, v, "gap", book_num(v, "objective_s") / least - 1,
				"objective_s / lower_bound_s - 1");
	}
}

/* Does the route decide operators by itself? If so, its baselines have no gap. */
static const struct ap_route *route_named(const char *name)
{
	const struct ap_route *r;

	for (size_t i = 0; (r = ap_route_at(i)); i++)
		if (!strcmp(r->name, name))
			return r;
	return NULL;
}

static bool decides(const char *name)
{
	const struct ap_route *r = route_named(name);

	return r && r->complete;
}

static void rule_loss(struct book *b)
{
	const struct ap_jv *r = ap_jv_get(b->root, "route"), *s = ap_jv_get(b->root, "search");
	bool none = ap_jv_type(r) == AP_JNULL, wanted; /* each baseline needs a gap */
	const struct ap_jv *list = ap_jv_get(b->root, "baselines");
	double sum = 0, loss;

	wanted = strcmp(book_str(s, "status"), "given") != 0 && book_num(s, "lower_bound_s") > 0 &&
		(none || !decides(book_str(r, "executor")));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		if (!ap_jv_get(v, "not_applicable") && !ap_jv_get(v, "gap") == wanted)
			book_fault(b, v, wanted ? "no key \"gap\"" : "expected no gap where the route, "
				"or nothing, decides");
	if (none)
		return;
	loss = book_num(s, "objective_s") - book_num(r, "free_objective_s");
	book_want_num(b, r, "loss_s", loss, "objective_s less free_objective_s");
	book_want_int(b, r, "differing_operators", (int64_t)ap_jv_count(ap_jv_get(r, "differs")),
		"those in differs");
	for (const struct ap_jv *v = ap_jv_first(ap_jv_get(r, "differs")); v; v = ap_jv_next(v))
		sum += book_num(v, "operator_s") + book_num(v, "redistribution_s");
	if (fabs(sum - loss) > 1e-9 * book_num(s, "objective_s"))
		book_fault(b, ap_jv_get(r, "differs"), "do not add up to loss_s");
	if (!ap_jv_count(ap_jv_get(r, "differs")))
		book_want_num(b, r, "free_step_time_s",
			book_num(ap_jv_get(b->root, "prediction"), "step_time_s"),
			"that of the plan, from which none differs");
}

/* Adds a tensor that is not yet known as a constant. */
static void read_inputs(struct book *b, struct book_op *op)
{
	const struct ap_jv *list = ap_jv_get(op->v, "inputs");
	ap_id *in = AP_NEW_N(b->ctx->scratch, ap_id, ap_jv_count(list));
	bool fresh;

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		struct book_tensor t = {.source = BOOK_CONSTANT, .where = v};
		ap_id id = ap_map_put_str(b->tensor_names, ap_jv_str(v), &fresh);

		if (fresh)
			AP_PUSH(b->ctx->scratch, b->tensor, t);
		if (fresh && b->names_constants)
			book_fault(b, v,
				"is no input, constant or parameter, nor a result of an operator before");
		b->tensor.v[id].nuse++;
		in[op->nin++] = id;
	}
	op->in = in;
}

static void read_outputs(struct book *b, uint32_t i)
{
	struct book_op *op = &b->op[i];
	const struct ap_jv *list = ap_jv_get(op->v, "outputs"), *shape, *dtype;
	ap_id *out = AP_NEW_N(b->ctx->scratch, ap_id, ap_jv_count(list));
	bool fresh;

	shape = ap_jv_first(ap_jv_get(op->v, "out_shape"));
	dtype = ap_jv_first(ap_jv_get(op->v, "out_dtype"));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		struct book_tensor t = {.source = BOOK_RESULT, .where = v, .op = i,
			.result = op->nout, .has_shape = shape && dtype};

		out[op->nout] = ap_map_put_str(b->tensor_names, ap_jv_str(v), &fresh);
		op->nout++;
		if (!fresh) {
			book_fault(b, v, "a tensor of this name is there already");
		} else {
			if (t.has_shape) {
				t.shape = book_list(b, shape);
				t.bytes = ap_dtype_bytes(ap_dtype_find(ap_jv_str(dtype)));
			}
			AP_PUSH(b->ctx->scratch, b->tensor, t);
		}
		shape = shape ? ap_jv_next(shape) : NULL;
		dtype = dtype ? ap_jv_next(dtype) : NULL;
	}
	op->out = out;
}

/* NULL where products run in the graph's types. */
static const char *float8_format(const struct book *b)
{
	const struct ap_jv *format = ap_jv_get(ap_jv_get(b->root, "settings"), "fp8_format");

	return format && ap_jv_type(format) == AP_JSTRING ? ap_jv_str(format) : NULL;
}

static void hold_gradient_type(struct book *b, const struct ap_jv *type)
{
	const char *format = float8_format(b);
	const char *want = format && strcmp(format, "hybrid") == 0 ? "float8_e5m2" : "float8_e4m3fn";

	if (strcmp(ap_jv_str(type), want) != 0)
		book_fault(b, type, "expected %s, by /settings/fp8_format", want);
}

/* What is kept in 8 bits: results, in their order. */
static void hold_kept(struct book *b, const struct book_op *op, const struct ap_jv *kept)
{
	int64_t before = -1, result;

	if (ap_jv_count(kept) == 0)
		book_fault(b, kept, "expected results, or no such key");
	for (const struct ap_jv *v = ap_jv_first(kept); v; v = ap_jv_next(v), before = result) {
		result = -1;
		if (!ap_jv_int(b->doc, v, &result) || result <= before || result >= (int64_t)op->nout)
			book_fault(b, v, "expected the next of %" PRIu32 " results", op->nout);
	}
}

static void hold_float8(struct book *b, const struct book_op *op)
{
	const struct ap_jv *product = ap_jv_get(op->v, "in_8_bits");
	const struct ap_jv *kept = ap_jv_get(op->v, "kept_in_8_bits");

	if ((product || kept) && !float8_format(b))
		book_fault(b, product ? product : kept, "is not said without /settings/fp8_format");
	if (kept)
		hold_kept(b, op, kept);
	if (!product)
		return;
	if (op->nin != 2 || op->nout != 1)
		book_fault(b, product, "is said of an operator that is no product");
	if (ap_jv_get(product, "gradient") && b->inference)
		book_fault(b, product, "has a gradient, for /settings/run_phase is inference");
	if (ap_jv_get(product, "gradient"))
		hold_gradient_type(b, ap_jv_get(product, "gradient"));
	if (ap_jv_get(product, "keeps_copy") && !book_bool(product, "keeps_copy"))
		book_fault(b, ap_jv_get(product, "keeps_copy"), "expected true, or no such key");
}

/* In 8 bits are sent gradients of a product's result, and weights that are stored so. */
static void hold_sent_as(struct book *b, const struct book_op *op, const struct ap_jv *c)
{
	const struct ap_jv *gathers = ap_jv_get(ap_jv_get(b->root, "settings"), "fp8_param_gather");
	const struct ap_jv *sent_as = ap_jv_get(c, "sent_as");

	if (!sent_as)
		return;
	if (!ap_jv_get(op->v, "in_8_bits"))
		book_fault(b, sent_as, "is said of an operator that is no product in 8 bits");
	if (ap_jv_get(c, "result")) {
		hold_gradient_type(b, sent_as);
		return;
	}
	if (strcmp(ap_jv_str(sent_as), "float8_e4m3fn") != 0)
		book_fault(b, sent_as, "expected float8_e4m3fn, as weights are stored");
	if (!gathers || ap_jv_type(gathers) != AP_JBOOL || !ap_jv_bool(gathers))
		book_fault(b, sent_as, "is not said without /settings/fp8_param_gather");
}

static void hold_counts(struct book *b, const struct book_op *op)
{
	static const struct {
		const char *key;
		bool out;
	} lists[] = {{"in_strategy", false}, {"in_tensor_map", false}, {"in_slice", false},
		{"out_shape", true}, {"out_dtype", true}, {"out_strategy", true},
		{"out_tensor_map", true}, {"out_slice", true}};

	for (size_t i = 0; i < AP_COUNT(lists); i++) {
		const struct ap_jv *list = ap_jv_get(op->v, lists[i].key);
		uint32_t want = lists[i].out ? op->nout : op->nin;

		if (ap_jv_count(list) != want)
			book_fault(b, list, "expected %" PRIu32 ", one for each %s", want,
				lists[i].out ? "result" : "operand");
	}
}

static void read_operator(struct book *b, uint32_t i, const struct ap_jv *v)
{
	struct book_op *op = &b->op[i];

	*op = (struct book_op){.v = v, .name = book_str(v, "name"),
		.stage = book_int(b, v, "stage"), .segment = book_int(b, v, "segment")};
	b->oper = op->name;
	(void)book_note(b, b->op_names, op->name, ap_jv_get(v, "name"), "an operator");
	(void)book_stage(b, v, b->nstage ? b->nstage : 1);
	if (op->segment >= b->segments)
		book_fault(b, ap_jv_get(v, "segment"), "is no segment of a stage");
	if (!*book_str(v, "type"))
		book_fault(b, ap_jv_get(v, "type"), "expected the type of an operator");
	if (ap_jv_get(v, "once") && !book_bool(v, "once"))
		book_fault(b, ap_jv_get(v, "once"), "expected true, or no such key");
	read_inputs(b, op);
	read_outputs(b, i);
	op->dev = book_list(b, ap_jv_get(v, "dev_matrix"));
	op->comm = list_of(b, ap_jv_get(v, "communications"), &op->ncomm);
	hold_counts(b, op);
	hold_float8(b, op);
}

static void rule_operators(struct book *b)
{
	const struct ap_jv *list = ap_jv_get(b->root, "operators");
	const struct ap_jv *outputs = ap_jv_get(ap_jv_get(b->root, "graph"), "outputs");
	uint32_t i = 0;

	b->nop = (uint32_t)ap_jv_count(list);
	b->op = AP_NEW_N(b->ctx->scratch, struct book_op, b->nop);
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v), i++)
		read_operator(b, i, v);
	b->oper = NULL;
	for (size_t t = 0; t < b->tensor.n; t++)
		if (b->tensor.v[t].source == BOOK_CONSTANT && !b->tensor.v[t].nuse)
			book_fault(b, b->tensor.v[t].where, "is read by no operator");
	for (const struct ap_jv *v = ap_jv_first(outputs); v; v = ap_jv_next(v))
		if (ap_map_get_str(b->tensor_names, ap_jv_str(v)) == AP_NONE)
			book_fault(b, v, "is no tensor of this plan");
}

static int64_t stride_of(const struct book_op *op, size_t axis) /* axis is counted from the right */
{
	int64_t stride = 1;

	for (size_t i = 0; i < axis; i++)
		stride *= op->dev.v[op->dev.n - 1 - i];
	return stride;
}

/* Reads the axes that cut a dimension, outermost first. *used: mask of axes used so far. */
static bool cut_by(struct book *b, const struct book_op *op, const struct ap_jv *entry,
	struct ap_cut_dim *dim, uint64_t *used)
{
	bool list = ap_jv_type(entry) == AP_JARRAY;
	int64_t before = INT64_MAX;

	*dim = (struct ap_cut_dim){1, 0};
	for (const struct ap_jv *v = list ? ap_jv_first(entry) : entry; v; v = list ? ap_jv_next(v) : NULL) {
		int64_t m = book_whole(b, v), size;

		if (m < 0 && !list)
			return true;
		if (m < 0 || m >= (int64_t)op->dev.n || m >= 64) {
			book_fault(b, v, "is no axis of dev_matrix, which has %zu", op->dev.n);
			return false;
		}
		size = op->dev.v[op->dev.n - 1 - (size_t)m];
		if (*used >> m & 1 && size > 1) {
			book_fault(b, v, "cuts another dimension already");
			return false;
		}
		if (m >= before) {
			book_fault(b, v, "expected axes from the outermost one on");
			return false;
		}
		before = m;
		*used |= UINT64_C(1) << m;
		if (size > 1) {
			dim->cut *= (int32_t)size;
			dim->stride = (int32_t)stride_of(op, (size_t)m);
		}
	}
	return true;
}

static const struct ap_jv *element(const struct ap_jv *list, int i)
{
	const struct ap_jv *v = ap_jv_first(list);

	for (; v && i > 0; i--)
		v = ap_jv_next(v);
	return v;
}

/* Is dimension d of an operand, of which slice is a rank's, one element that a Tile repeats to a dimension
 * in as many parts? */
static bool is_repeated(const struct book *b, const struct book_op *op, const struct ap_jv *slice, int d,
	const struct ap_jv *parts)
{
	const struct ap_jv *result = ap_jv_first(ap_jv_get(op->v, "out_strategy"));
	const struct ap_jv *length = element(slice, d), *of_result = element(result, d);

	return strcmp(book_str(op->v, "type"), "Tile") == 0 && length && of_result &&
		book_whole(b, length) == 1 && book_whole(b, of_result) == book_whole(b, parts);
}

/* Reads a layout from a tensor map and checks it against the strategy. A strategy of the result's
 * dimensions (OneHot, Tile) may have more than the operand, in the same order. */
static bool read_layout(struct book *b, const struct book_op *op, const struct ap_jv *map,
	const struct ap_jv *parts, const struct ap_jv *slice, struct ap_layout *out)
{
	const struct ap_jv *part = ap_jv_first(parts);
	size_t more = ap_jv_count(parts) - ap_jv_count(map);
	uint64_t used = 0;

	*out = (struct ap_layout){0};
	if (ap_jv_count(map) > ap_jv_count(parts) || ap_jv_count(map) > AP_MAX_RANK) {
		book_fault(b, map, "expected %zu dimensions, as in the strategy", ap_jv_count(parts));
		return false;
	}
	for (const struct ap_jv *v = ap_jv_first(map); v; v = ap_jv_next(v), part = ap_jv_next(part)) {
		struct ap_cut_dim *dim = &out->dim[out->rank++];

		if (!cut_by(b, op, v, dim, &used))
			return false;
		for (; more && dim->cut != book_whole(b, part); more--)
			part = ap_jv_next(part);
		if (dim->cut == 1 && is_repeated(b, op, slice, out->rank - 1, part))
			continue;
		if (dim->cut != book_whole(b, part)) {
			book_fault(b, part, "expected %" PRId32
				", the parts that dev_matrix and tensor_map say", dim->cut);
			return false;
		}
	}
	return true;
}

/* A slice is the shape divided by its parts, and by the micro-batches in batch dimensions. */
static void hold_slice(struct book *b, ap_id tensor, const struct ap_layout *l, const struct ap_jv *slice)
{
	struct book_tensor *t = &b->tensor.v[tensor];
	const struct ap_jv *v = ap_jv_first(slice);
	uint64_t batch = 0;

	if (ap_jv_count(slice) != (size_t)l->rank || (t->has_shape && t->shape.n != (size_t)l->rank)) {
		book_fault(b, slice, "expected %" PRId32 " dimensions", l->rank);
		return;
	}
	for (int d = 0; d < l->rank; d++, v = ap_jv_next(v)) {
		int64_t n = book_whole(b, v), whole = t->has_shape ? t->shape.v[d] : 0, got;

		if (!t->has_shape)
			continue;
		if (!ap_mul(n, l->dim[d].cut, &got))
			got = -1;
		if (got == whole)
			continue;
		if (got < 0 || !ap_mul(got, b->micro_batches, &got) || got != whole ||
			t->source == BOOK_PARAM) {
			book_fault(b, v, "is no part of %" PRId64 " in %" PRId32 " parts", whole,
				l->dim[d].cut);
			return;
		}
		batch |= UINT64_C(1) << d;
	}
	if (t->has_slice && t->batch != batch)
		book_fault(b, slice,
			"contradicts another slice of \"%s\" in how the micro-batches divide it",
			ap_jv_str(t->where));
	t->has_slice = true;
	t->batch = batch;
}

static struct ap_layout *hold_side(struct book *b, const struct book_op *op, bool out)
{
	static const char *const keys[2][3] = {{"in_tensor_map", "in_strategy", "in_slice"},
		{"out_tensor_map", "out_strategy", "out_slice"}};
	const struct ap_jv *map = ap_jv_first(ap_jv_get(op->v, keys[out][0]));
	const struct ap_jv *parts = ap_jv_first(ap_jv_get(op->v, keys[out][1]));
	const struct ap_jv *slice = ap_jv_first(ap_jv_get(op->v, keys[out][2]));
	uint32_t n = out ? op->nout : op->nin;
	struct ap_layout *l = AP_NEW_N(b->ctx->scratch, struct ap_layout, n);

	for (uint32_t i = 0; i < n; i++)
		l[i].rank = -1;
	for (uint32_t i = 0; i < n && map && parts && slice; i++) {
		if (read_layout(b, op, map, parts, slice, &l[i]))
			hold_slice(b, out ? op->out[i] : op->in[i], &l[i], slice);
		else
			l[i].rank = -1;
		map = ap_jv_next(map);
		parts = ap_jv_next(parts);
		slice = ap_jv_next(slice);
	}
	return l;
}

/* Each cut factor is an axis of dev_matrix; the axes left over are "repeated". */
static void hold_factors(struct book *b, const struct book_op *op)
{
	const struct ap_jv *list = ap_jv_get(op->v, "factors");
	int64_t product = 1, left = 1, repeat = book_int(b, op->v, "repeated"), ndev = b->ndev[op->stage];
	uint64_t used = 0;

	for (size_t i = 0; i < op->dev.n; i++)
		if (!ap_mul(product, op->dev.v[i], &product))
			product = 0;
	if (product != ndev)
		book_fault(b, ap_jv_get(op->v, "dev_matrix"), "expected a product of %" PRId64
			", the devices of a stage", ndev);
	for (const struct ap_jv *f = ap_jv_first(list); f; f = ap_jv_next(f)) {
		int64_t parts = book_int(b, f, "parts"), stride = book_int(b, f, "stride");
		bool found = parts == 1 && stride == 0;

		for (size_t a = 0; a < op->dev.n && a < 64 && !found; a++)
			if (!(used >> a & 1) && op->dev.v[op->dev.n - 1 - a] == parts &&
				parts > 1 && stride_of(op, a) == stride) {
				used |= UINT64_C(1) << a;
				found = true;
			}
		if (!found)
			book_fault(b, f, "expected an axis of dev_matrix: its size as parts, its stride");
		if (book_int(b, f, "size") < parts)
			book_fault(b, ap_jv_get(f, "size"), "is less than its parts");
		if (strlen(book_str(f, "factor")) != 1)
			book_fault(b, ap_jv_get(f, "factor"), "expected a letter");
		for (const struct ap_jv *e = ap_jv_first(list); e != f; e = ap_jv_next(e))
			if (!strcmp(book_str(e, "factor"), book_str(f, "factor")))
				book_fault(b, f, "a factor of this name is there already");
	}
	for (size_t a = 0; a < op->dev.n; a++)
		if (a >= 64 || !(used >> a & 1))
			left *= op->dev.v[op->dev.n - 1 - a];
	if (left != repeat)
		book_fault(b, ap_jv_get(op->v, "repeated"), "expected %" PRId64
			", what the factors leave of dev_matrix", left);
}

static void rule_cuts(struct book *b)
{
	for (uint32_t i = 0; i < b->nop; i++) {
		struct book_op *op = &b->op[i];

		b->oper = op->name;
		hold_factors(b, op);
		op->in_layout = hold_side(b, op, false);
		op->out_layout = hold_side(b, op, true);
	}
}

static const char *const step_names[] = {
	[AP_MOVE_SLICE] = "Slice",
	[AP_MOVE_GATHER] = "AllGather",
	[AP_MOVE_ALLTOALL] = "AlltoAll",
	[AP_MOVE_REDUCESCATTER] = "ReduceScatter",
	[AP_MOVE_ALLREDUCE] = "AllReduce",
};

/* Reads [parts, stride] per dimension, which must be axes of the ranks of a stage with ndev devices. */
static bool read_pairs(struct book *b, const struct ap_jv *list, size_t rank, int64_t ndev,
	struct ap_layout *out)
{
	*out = (struct ap_layout){0};
	if (ap_jv_count(list) != rank || rank > AP_MAX_RANK) {
		book_fault(b, list, "expected %zu dimensions, as in the shape", rank);
		return false;
	}
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		struct book_list pair = book_list(b, v);
		bool cut = pair.n == 2 && pair.v[0] > 1;

		if (pair.n != 2 || pair.v[0] < 1 || (pair.v[1] > 0) != cut ||
			(cut && (ndev % pair.v[1] || ndev / pair.v[1] % pair.v[0]))) {
			book_fault(b, v, "expected the parts and the stride of their axis, or [1, 0]");
			return false;
		}
		out->dim[out->rank++] = (struct ap_cut_dim){(int32_t)pair.v[0], (int32_t)pair.v[1]};
	}
	for (size_t d = 0; d < rank; d++)
		for (size_t e = 0; e < d; e++) {
			const struct ap_cut_dim *x = &out->dim[d], *y = &out->dim[e];

			if (x->cut > 1 && y->cut > 1 && x->stride < y->stride * y->cut &&
				y->stride < x->stride * x->cut) {
				book_fault(b, list, "cuts two dimensions by the same devices");
				return false;
			}
		}
	return true;
}

static bool divides(const struct ap_layout *l, const int64_t *size)
{
	for (int d = 0; d < l->rank; d++)
		if (size[d] % l->dim[d].cut)
			return false;
	return true;
}

static void hold_step(struct book *b, const struct ap_jv *v, const struct ap_reshard_step *s, int bytes)
{
	struct book_list axis = book_list(b, ap_jv_get(v, "axis"));
	const char *why = "as the layouts say";
	bool alltoall = s->move == AP_MOVE_ALLTOALL;

	book_want_str(b, v, "kind", step_names[s->move], why);
	book_want_int(b, v, "dim", s->dim, why);
	book_want_int(b, v, "outer", s->outer, why);
	if (axis.n != 2 || axis.v[0] != s->axis.stride || axis.v[1] != s->axis.size)
		book_fault(b, ap_jv_get(v, "axis"), "expected [%" PRId32 ", %" PRId32 "], %s",
			s->axis.stride, s->axis.size, why);
	book_want_int(b, v, "bytes_before", s->before * bytes, why);
	book_want_int(b, v, "bytes_after", s->after * bytes, why);
	if (!ap_jv_get(v, "concat_dim") == alltoall || !ap_jv_get(v, "concat_outer") == alltoall) {
		book_fault(b, v, alltoall ? "no key \"concat_dim\" or \"concat_outer\""
			: "has a dimension put together, and is no AlltoAll");
	} else if (alltoall) {
		book_want_int(b, v, "concat_dim", s->concat, why);
		book_want_int(b, v, "concat_outer", s->concat_outer, why);
	}
	if ((s->inner_parts > 1) != (ap_jv_get(v, "inner_parts") != NULL)) {
		book_fault(b, v, s->inner_parts > 1 ? "no key \"inner_parts\"" : "has two dimensions, and is "
			"of one");
	} else if (s->inner_parts > 1) {
		book_want_int(b, v, "inner_dim", s->inner, why);
		book_want_int(b, v, "inner_outer", s->inner_outer, why);
		book_want_int(b, v, "inner_parts", s->inner_parts, why);
	}
	alltoall = alltoall && s->inner_parts > 1;
	if (!ap_jv_get(v, "concat_inner_dim") == alltoall ||
		!ap_jv_get(v, "concat_inner_outer") == alltoall) {
		book_fault(b, v, alltoall ? "no key \"concat_inner_dim\" or \"concat_inner_outer\""
			: "has a second dimension put together, and is no AlltoAll of two");
	} else if (alltoall) {
		book_want_int(b, v, "concat_inner_dim", s->concat_inner, why);
		book_want_int(b, v, "concat_inner_outer", s->concat_inner_outer, why);
	}
}

/* Bytes that a device sends: a gather receives all parts but its own, an AlltoAll sends all but
 * one. */
static int64_t sent_bytes(const struct ap_reshard_step *step, int n, int bytes)
{
	int64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += step[i].move == AP_MOVE_GATHER ? (step[i].after - step[i].before) * bytes
			: step[i].move == AP_MOVE_ALLTOALL
			? step[i].before * bytes - step[i].before * bytes / step[i].axis.size : 0;
	return sum;
}

static const struct ap_route *executor_of(const struct book *b)
{
	const struct ap_jv *name = ap_jv_get(ap_jv_get(b->root, "settings"), "executor");
	const struct ap_route *r = name && ap_jv_type(name) == AP_JSTRING
		? route_named(ap_jv_str(name)) : NULL;

	return r ? r : ap_route_at(0);
}

/* What the plan's executor may use in a redistribution. */
static unsigned ways(const struct book *b)
{
	const struct ap_jv *alltoall = ap_jv_get(ap_jv_get(b->root, "settings"), "enable_alltoall");
	struct ap_step step = AP_STEP_DEFAULT;

	step.alltoall = !alltoall || ap_jv_type(alltoall) != AP_JBOOL || ap_jv_bool(alltoall);
	step.executor = executor_of(b)->executor;
	return ap_reshard_ways(&step);
}

/* Adds the axis that dev_matrix gives a cut factor. */
static void add_factor(const struct ap_jv *f, struct book *b, struct ap_axes *axes)
{
	int64_t parts = book_int(b, f, "parts"), stride = book_int(b, f, "stride");

	if (parts > 1 && stride > 0 && axes->n < AP_MAX_AXES)
		ap_axes_add(axes, (struct ap_axis){(int32_t)stride, (int32_t)parts});
}

/* The axes that cut an operator, but not an operand in this layout: its gradient is partial over them. Where
 * factors and dev_matrix agree. */
static void find_partial(struct book *b, const struct book_op *op, const struct ap_layout *l,
	struct ap_axes *out)
{
	struct ap_axes all = {0}, own = {0};

	for (const struct ap_jv *f = ap_jv_first(ap_jv_get(op->v, "factors")); f; f = ap_jv_next(f))
		add_factor(f, b, &all);
	for (int d = 0; d < l->rank; d++)
		ap_axes_add(&own, (struct ap_axis){l->dim[d].cut > 1 ? l->dim[d].stride : 1, l->dim[d].cut});
	ap_axes_without(&all, &own, out);
}

/* Steps must be those from one layout to the other; move, if not NULL, must send their bytes. partial: of a
 * gradient on its way back. */
static void hold_steps(struct book *b, const struct ap_jv *list, const struct ap_layout *from,
	const struct ap_layout *to, const struct ap_axes *partial, const struct book_tensor *t,
	int64_t ndev, const struct ap_jv *move)
{
	struct ap_reshard_step step[AP_RESHARD_MAX];
	struct ap_reshard_end ends[2];
	const struct ap_jv *sent_as = move ? ap_jv_get(move, "sent_as") : NULL;
	int bytes = sent_as ? 1 : t->bytes;
	int64_t size[AP_MAX_RANK];
	int n, i = 0;

	if (sent_as && !float8_format(b))
		book_fault(b, sent_as, "is not said without /settings/fp8_format");
	for (size_t d = 0; d < t->shape.n; d++)
		size[d] = t->shape.v[d] / (t->batch >> d & 1 ? b->micro_batches : 1);
	if (!divides(from, size) || !divides(to, size)) {
		book_fault(b, list, "cannot be: the layouts cut \"%s\" in parts of different sizes",
			ap_jv_str(t->where));
		return;
	}
	ap_reshard_end_make(from, size, ndev, &ends[0]);
	ap_reshard_end_make(to, size, ndev, &ends[1]);
	if (partial && partial->n > 0) {
		ends[0].partial = *partial;
		n = ap_reshard_back(&ends[0], &ends[1], ways(b), step);
	} else {
		n = ap_reshard_steps(&ends[0], &ends[1], ways(b), step);
	}
	if (ap_jv_count(list) != (size_t)n) {
		book_fault(b, list, "expected %d steps from one layout to the other", n);
		return;
	}
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v), i++)
		hold_step(b, v, &step[i], bytes);
	if (move)
		book_want_int(b, move, "bytes", sent_bytes(step, n, bytes), "what the steps send");
}

static bool hold_ends(struct book *b, const struct ap_jv *m, ap_id from, const struct book_op *to,
	int64_t operand)
{
	const struct book_tensor *t;

	if (operand >= to->nin) {
		book_fault(b, ap_jv_get(m, "operand"), "is none of \"%s\"", to->name);
		return false;
	}
	t = &b->tensor.v[to->in[operand]];
	book_want_str(b, m, "tensor", ap_jv_str(t->where), "that operand");
	if (t->source == BOOK_RESULT && (from == AP_NONE || t->op != from)) {
		book_fault(b, ap_jv_get(m, "from"), "expected \"%s\", which gives \"%s\"",
			b->op[t->op].name, ap_jv_str(t->where));
		return false;
	}
	if (t->source != BOOK_RESULT && (from != AP_NONE || t->source != BOOK_INPUT)) {
		book_fault(b, m, "expected an input of the graph where \"from\" is null");
		return false;
	}
	return strcmp(book_str(m, "tensor"), ap_jv_str(t->where)) == 0;
}

/* Do two tensors hold the same: are they one, or made of one by the same views, cut alike? */
static bool hold_the_same(const struct book *b, ap_id x, ap_id y)
{
	for (uint32_t n = 0; x != y; n++) {
		const struct book_tensor *t = &b->tensor.v[x], *u = &b->tensor.v[y];
		const struct ap_op_row *row;
		const struct book_op *p, *q;

		if (n > b->nop || t->source != BOOK_RESULT || u->source != BOOK_RESULT ||
			t->shape.n != u->shape.n ||
			memcmp(t->shape.v, u->shape.v, t->shape.n * sizeof *t->shape.v) != 0)
			return false;
		p = &b->op[t->op];
		q = &b->op[u->op];
		row = ap_op_next(NULL, book_str(p->v, "type"));
		if (!row || !ap_op_is_view(row) || strcmp(row->name, book_str(q->v, "type")) != 0 ||
			p->nin != 1 || q->nin != 1 || p->stage != q->stage || p->segment != q->segment ||
			!ap_layout_equal(&p->in_layout[0], &q->in_layout[0]) ||
			!ap_layout_equal(&p->out_layout[0], &q->out_layout[0]))
			return false;
		x = p->in[0];
		y = q->in[0];
	}
	return true;
}

/* One that reads the copy of another: of the same tensor, or what equal views make of it, between the same
 * layouts, for the same place of an operator of the same type; it costs nothing itself. */
static void hold_shared(struct book *b, const struct ap_jv *m, uint32_t own, const struct book_op *op)
{
	static const char *const same[] = {"from_layout", "to_layout"}, why[] = "as of what it shares";
	static const char *const none[] = {"bytes", "kept_bytes", "forward_s", "backward_s"};
	int64_t at = book_int(b, m, "shares");
	const struct ap_jv *leader;
	ap_id to, tensor;

	/* what comes from no operator is charged to none */
	if (at >= own || ap_jv_get(b->move[at], "shares") || !ap_jv_get(b->move[at], "objective_s")) {
		book_fault(b, ap_jv_get(m, "shares"), "is no redistribution before this one that has a copy");
		return;
	}
	leader = b->move[at];
	to = ap_map_get_str(b->op_names, book_str(leader, "to"));
	for (size_t i = 0; i < AP_COUNT(same); i++)
		if (!same_lists(ap_jv_get(m, same[i]), ap_jv_get(leader, same[i])))
			book_fault(b, ap_jv_get(m, same[i]), "is not that of what it shares");
	tensor = ap_map_get_str(b->tensor_names, book_str(leader, "tensor"));
	if (tensor == AP_NONE || !hold_the_same(b, op->in[book_int(b, m, "operand")], tensor))
		book_fault(b, ap_jv_get(m, "tensor"), "is not that of what it shares, nor an equal view");
	book_want_int(b, m, "operand", book_int(b, leader, "operand"), why);
	book_want_num(b, m, "objective_s", book_num(leader, "objective_s"), why);
	for (size_t i = 0; i < AP_COUNT(none); i++)
		book_want_num(b, m, none[i], 0, "for it shares another one's copy");
	if (to != AP_NONE && (strcmp(book_str(b->op[to].v, "type"), book_str(op->v, "type")) != 0 ||
			b->op[to].stage != op->stage || b->op[to].segment != op->segment))
		book_fault(b, ap_jv_get(m, "shares"), "is for another type of operator, or elsewhere");
	if (ap_jv_first(ap_jv_get(m, "steps")) || ap_jv_get(m, "back_steps"))
		book_fault(b, m, "has steps, and shares those of another one");
}

struct holding_sends {
	struct book *b;
	const struct ap_jv *at; /* the next of the list */
	int64_t from, to; /* first ranks of the stages */
	int rank;
	uint32_t n;
};

static bool is_list(struct book *b, const struct ap_jv *list, const int64_t *want, int n)
{
	struct book_list own = book_list(b, list);
	bool same = own.n == (size_t)n;

	for (int i = 0; same && i < n; i++)
		same = own.v[i] == want[i];
	return same;
}

static void hold_piece(void *user, const struct ap_piece *p)
{
	struct holding_sends *x = user;
	struct book *b = x->b;

	x->n++;
	if (!x->at)
		return;
	book_want_int(b, x->at, "from_rank", x->from + p->from, "which has it");
	book_want_int(b, x->at, "to_rank", x->to + p->to, "the next that needs something");
	if (!is_list(b, ap_jv_get(x->at, "start"), p->start, x->rank) ||
		!is_list(b, ap_jv_get(x->at, "size"), p->extent, x->rank))
		book_fault(b, x->at, "is not the piece that the layouts say");
	x->at = ap_jv_next(x->at);
}

/* Pieces must be those that bring a tensor from one layout to the other. */
static void hold_sends(struct book *b, const struct ap_jv *m, const char *key, int64_t from,
	const struct ap_layout *a, int64_t to, const struct ap_layout *z, const int64_t *size)
{
	const struct ap_jv *list = ap_jv_get(m, key);
	struct holding_sends x = {b, list ? ap_jv_first(list) : NULL, b->first[from], b->first[to],
		a->rank, 0};

	ap_pieces_each(b->ctx->scratch, &(struct ap_pieces_side){a, b->ndev[from]},
		&(struct ap_pieces_side){z, b->ndev[to]}, size, hold_piece, &x);
	if (!list && x.n <= AP_PLAN_MOST_LISTED)
		book_fault(b, m, "no key \"%s\"", key);
	else if (list && (x.n > AP_PLAN_MOST_LISTED || ap_jv_count(list) != x.n))
		book_fault(b, list, "expected %" PRIu32 " pieces%s", x.n, x.n > AP_PLAN_MOST_LISTED
			? ", which are not listed" : "");
}

/* What goes to a stage with another number of devices has pieces instead of steps. */
static void hold_sent(struct book *b, const struct ap_jv *m, const struct book_op *from,
	const struct ap_layout *a, const struct book_op *to, const struct ap_layout *z,
	const struct book_tensor *t)
{
	static const char why[] = "that of its operator";
	int64_t size[AP_MAX_RANK], bytes = t->bytes;

	for (size_t d = 0; d < t->shape.n; d++)
		size[d] = t->shape.v[d] / (t->batch >> d & 1 ? b->micro_batches : 1);
	for (size_t d = 0; d < t->shape.n; d++)
		bytes *= size[d] / z->dim[d].cut;
	if (!divides(a, size) || !divides(z, size)) {
		book_fault(b, m, "cannot be: the layouts cut \"%s\" in parts of different sizes",
			ap_jv_str(t->where));
		return;
	}
	if (!ap_jv_get(m, "from_stage") || !ap_jv_get(m, "to_stage")) {
		book_fault(b, m, "no key \"%s\"", ap_jv_get(m, "from_stage") ? "to_stage" : "from_stage");
		return;
	}
	book_want_int(b, m, "from_stage", from->stage, why);
	book_want_int(b, m, "to_stage", to->stage, why);
	if (ap_jv_first(ap_jv_get(m, "steps")) || ap_jv_get(m, "back_steps"))
		book_fault(b, m, "has steps, which devices of one stage take together");
	hold_sends(b, m, "sends", from->stage, a, to->stage, z, size);
	if (ap_jv_get(m, "back_sends"))
		hold_sends(b, m, "back_sends", to->stage, z, from->stage, a, size);
	else if (book_num(m, "backward_s") > 0)
		hold_sends(b, m, "back_sends", to->stage, z, from->stage, a, size);
	book_want_int(b, m, "bytes", bytes, "what a device receives");
}

static void hold_move(struct book *b, const struct ap_jv *m, uint32_t own, ap_id from, ap_id to)
{
	static const char *const of_stages[] = {"from_stage", "to_stage", "sends", "back_sends"};
	int64_t operand = book_int(b, m, "operand");
	const struct book_op *op = &b->op[to];
	const struct book_tensor *t;
	struct ap_layout a, z;
	struct ap_axes partial = {0};

	book_want_num(b, m, "time_s", book_num(m, "forward_s") + book_num(m, "backward_s"),
		"forward_s + backward_s");
	if (b->inference)
		book_want_num(b, m, "backward_s", 0, "for /settings/run_phase is inference");
	if (!hold_ends(b, m, from, op, operand))
		return;
	t = &b->tensor.v[op->in[operand]];
	if (!t->has_shape ||
		!read_pairs(b, ap_jv_get(m, "from_layout"), t->shape.n,
			b->ndev[from == AP_NONE ? op->stage : b->op[from].stage], &a) ||
		!read_pairs(b, ap_jv_get(m, "to_layout"), t->shape.n, b->ndev[op->stage], &z))
		return;
	if (op->in_layout[operand].rank >= 0 && !ap_layout_equal(&op->in_layout[operand], &z)) {
		book_fault(b, ap_jv_get(m, "to_layout"), "contradicts how \"%s\" is cut", op->name);
		return;
	}
	if (t->source == BOOK_RESULT && b->op[t->op].out_layout[t->result].rank >= 0 &&
		!ap_layout_equal(&b->op[t->op].out_layout[t->result], &a)) {
		book_fault(b, ap_jv_get(m, "from_layout"), "contradicts how \"%s\" is cut",
			b->op[t->op].name);
		return;
	}
	if (ap_jv_get(m, "shares")) {
		hold_shared(b, m, own, op);
		return;
	}
	if (from != AP_NONE && b->ndev[b->op[from].stage] != b->ndev[op->stage]) {
		hold_sent(b, m, &b->op[from], &a, op, &z, t);
		return;
	}
	for (size_t i = 0; i < AP_COUNT(of_stages); i++)
		if (ap_jv_get(m, of_stages[i]))
			book_fault(b, ap_jv_get(m, of_stages[i]), "is not said inside a stage, nor between "
				"stages of equally many devices");
	if (ap_layout_equal(&a, &z) && !ap_jv_get(m, "back_steps"))
		book_fault(b, m, "is none: the layouts are the same");
	hold_steps(b, ap_jv_get(m, "steps"), &a, &z, NULL, t, b->ndev[op->stage], m);
	if (ap_jv_get(m, "back_steps")) {
		/* the gradient of a weight that another stage sent is summed apart */
		if (t->source != BOOK_RESULT || !book_bool(b->op[t->op].v, "once") ||
			book_bool(op->v, "once"))
			find_partial(b, op, &z, &partial);
		hold_steps(b, ap_jv_get(m, "back_steps"), &z, &a, &partial, t, b->ndev[op->stage], NULL);
	}
}

/* Every operand whose layout differs from its producer's needs a redistribution. */
static void hold_complete(struct book *b, struct ap_map *seen)
{
	for (uint32_t i = 0; i < b->nop; i++)
		for (uint32_t k = 0; k < b->op[i].nin; k++) {
			const struct book_tensor *t = &b->tensor.v[b->op[i].in[k]];
			const uint32_t key[2] = {i, k};
			const struct ap_layout *out, *in = &b->op[i].in_layout[k];

			if (t->source != BOOK_RESULT || in->rank < 0)
				continue;
			out = &b->op[t->op].out_layout[t->result];
			b->oper = b->op[i].name;
			if (out->rank >= 0 && (!ap_layout_equal(in, out) ||
					b->ndev[b->op[i].stage] != b->ndev[b->op[t->op].stage]) &&
				ap_map_get(seen, key, sizeof key) == AP_NONE)
				book_fault(b, b->op[i].v,
					"reads \"%s\" in another layout than \"%s\" gives it, and no "
					"redistribution is between", ap_jv_str(t->where),
					b->op[t->op].name);
		}
	b->oper = NULL;
}

static void rule_redistributions(struct book *b)
{
	struct ap_map *seen = ap_map_create(b->ctx->scratch);
	bool fresh;

	for (uint32_t i = 0; i < b->nmove; i++) {
		const struct ap_jv *m = b->move[i], *name = book_at(m, "from");
		ap_id to = book_op(b, m, "to"), from = name ? book_op(b, m, "from") : AP_NONE;
		const uint32_t key[2] = {to, (uint32_t)book_int(b, m, "operand")};

		if (to == AP_NONE || (name && from == AP_NONE))
			continue;
		ap_map_put(seen, key, sizeof key, &fresh);
		if (!fresh)
			book_fault(b, m, "this operand is redistributed already");
		hold_move(b, m, i, from, to);
	}
	hold_complete(b, seen);
}

/* Reads the layout of a parameter from dev_matrix and tensor_map. */
static bool read_param(struct book *b, const struct ap_jv *p, struct ap_layout *out)
{
	struct book_list dev = book_list(b, ap_jv_get(p, "dev_matrix"));
	struct book_list map = book_list(b, ap_jv_get(p, "tensor_map"));
	const struct ap_jv *v = ap_jv_first(ap_jv_get(p, "tensor_map"));
	int64_t product;

	*out = (struct ap_layout){.rank = (int32_t)map.n};
	if (!ap_product(dev.v, dev.n, &product) || product != b->ndev[book_own_stage(b, p)]) {
		book_fault(b, ap_jv_get(p, "dev_matrix"), "expected a product of %" PRId64
			", the devices of a stage", b->ndev[book_own_stage(b, p)]);
		return false;
	}
	if (map.n > AP_MAX_RANK || map.n != ap_jv_count(ap_jv_get(p, "tensor_shape"))) {
		book_fault(b, ap_jv_get(p, "tensor_map"), "expected %zu dimensions, as in tensor_shape",
			ap_jv_count(ap_jv_get(p, "tensor_shape")));
		return false;
	}
	for (size_t i = 0; i < dev.n; i++)
		if (dev.v[i] == 1 && dev.n > 1)
			book_fault(b, ap_jv_get(p, "dev_matrix"), "expected no axes of size one");
	for (size_t d = 0; d < map.n; d++, v = ap_jv_next(v)) {
		int64_t stride = 1;

		if (map.v[d] < 0)
			continue;
		if (map.v[d] >= (int64_t)dev.n) {
			book_fault(b, v, "is no axis of dev_matrix, which has %zu", dev.n);
			return false;
		}
		for (size_t e = 0; e < d; e++)
			if (map.v[e] == map.v[d]) {
				book_fault(b, v, "cuts another dimension already");
				return false;
			}
		for (int64_t i = 0; i < map.v[d]; i++)
			stride *= dev.v[dev.n - 1 - (size_t)i];
		out->dim[d] = (struct ap_cut_dim){(int32_t)dev.v[dev.n - 1 - (size_t)map.v[d]],
			(int32_t)stride};
	}
	for (int d = 0; d < out->rank; d++)
		if (out->dim[d].cut <= 1)
			out->dim[d] = (struct ap_cut_dim){1, 0};
	return true;
}

static void hold_param_slice(struct book *b, const struct ap_jv *p, const struct ap_layout *l)
{
	const struct ap_jv *slice = ap_jv_get(p, "slice_shape"), *v = ap_jv_first(slice);
	struct book_list shape = book_list(b, ap_jv_get(p, "tensor_shape"));

	if (ap_jv_count(slice) != shape.n) {
		book_fault(b, slice, "expected %zu dimensions, as in tensor_shape", shape.n);
		return;
	}
	for (int d = 0; d < l->rank; d++, v = ap_jv_next(v))
		if (book_whole(b, v) * l->dim[d].cut != shape.v[d])
			book_fault(b, v, "expected %" PRId64 ", one of %" PRId32 " parts of %" PRId64,
				shape.v[d] / l->dim[d].cut, l->dim[d].cut, shape.v[d]);
}

/* Checks the elements of a part of a parameter that is dealt, which is said where ranks do not divide its
 * rows. */
static void hold_part(struct book *b, const struct ap_jv *p, int64_t shards)
{
	struct book_list slice = book_list(b, ap_jv_get(p, "slice_shape"));
	const struct ap_jv *said = ap_jv_get(p, "optimizer_part");
	bool by_rows = shards == 1 || (slice.n > 0 && slice.v[0] % shards == 0);
	int64_t elements = 1, part;

	for (size_t d = 0; d < slice.n; d++)
		if (!ap_mul(elements, slice.v[d], &elements) || elements > INT64_MAX / 2)
			return; /* of no tensor */
	part = ap_dealing_part(executor_of(b)->dealing, (int)slice.n, slice.v, shards);
	if (by_rows && said)
		book_fault(b, said, shards == 1 ? "expected none of one that is not dealt"
			: "expected none of rows that the optimizer_shards divide");
	else if (!by_rows && !part)
		book_fault(b, ap_jv_get(p, "optimizer_shards"), "expected 1: its rows do not divide, and the "
			"executor deals rows evenly or not at all");
	else if (!by_rows && !said)
		book_fault(b, p, "no key \"optimizer_part\": expected %" PRId64 ", elements of a part, for "
			"rows do not divide", part);
	else if (!by_rows)
		book_want_int(b, p, "optimizer_part", part, "elements of a part as the executor deals them");
}

/* Checks the optimizer shards of a parameter; size -1: all devices that hold the same slice. */
static void hold_dealing(struct book *b, const struct ap_jv *p, const struct ap_layout *l)
{
	int64_t shards = book_int(b, p, "optimizer_shards"), size, step, alike, stage = book_own_stage(b, p);
	const struct ap_jv *group = ap_jv_get(p, "optimizer_group");

	size = book_int(b, p, "opt_weight_shard_size");
	step = book_int(b, p, "opt_weight_shard_step");
	alike = b->ndev[stage] / ap_layout_parts(l);
	if (shards == 1 ? size != 0 || step != 0 : step == 0 || (size != shards && size != -1))
		book_fault(b, p, "contradicts itself: optimizer_shards %" PRId64
			", opt_weight_shard_size %" PRId64 ", opt_weight_shard_step %" PRId64, shards, size,
			step);
	else if (size == -1 && shards != alike)
		book_fault(b, ap_jv_get(p, "optimizer_shards"), "expected %" PRId64
			", the devices that hold the same slice", alike);
	if (alike % shards)
		book_fault(b, ap_jv_get(p, "optimizer_shards"), "expected a divisor of the %" PRId64
			" devices that hold the same slice", alike);
	hold_part(b, p, shards);
	if (group && (ap_jv_type(group) == AP_JNULL) != (shards == 1))
		book_fault(b, group, shards == 1 ? "expected null of one that is not dealt"
			: "expected the group that it is dealt to");
	else if (group && shards > 1) {
		struct ap_axes axes;

		if (book_group(b, group, b->first[stage], b->ndev[stage], &axes) &&
			ap_axes_size(&axes) != shards)
			book_fault(b, group, "expected a group of the %" PRId64 " optimizer_shards",
				shards);
	}
}

static void read_group(const struct book *b, const struct ap_jv *obj, struct ap_axes *out)
{
	*out = (struct ap_axes){0};
	for (const struct ap_jv *v = ap_jv_first(ap_jv_get(obj, "axes")); v; v = ap_jv_next(v)) {
		const struct ap_jv *stride = ap_jv_first(v);

		ap_axes_add(out, (struct ap_axis){(int32_t)book_whole(b, stride),
			(int32_t)book_whole(b, ap_jv_next(stride))});
	}
}

/* Finds the operator's collective that entry x of gradient_groups names; NULL after a fault. */
static const struct ap_jv *hold_exchange(struct book *b, const struct ap_jv *p, const struct ap_jv *x)
{
	ap_id id = book_op(b, x, "operator");
	int64_t operand = book_int(b, x, "operand");
	struct ap_axes axes, group;

	if (id == AP_NONE)
		return NULL;
	if (operand >= b->op[id].nin || strcmp(book_str(p, "name"),
		ap_jv_str(b->tensor.v[b->op[id].in[operand]].where)) != 0) {
		book_fault(b, ap_jv_get(x, "operand"), "is not this parameter");
		return NULL;
	}
	if (!book_group(b, x, b->first[b->op[id].stage], b->ndev[b->op[id].stage], &axes))
		return NULL;
	for (uint32_t k = 0; k < b->op[id].ncomm; k++) {
		const struct ap_jv *c = b->op[id].comm[k];

		if (strcmp(book_str(c, "phase"), "gradient") != 0 || !ap_jv_get(c, "operand") ||
			book_int(b, c, "operand") != operand ||
			strcmp(book_str(c, "kind"), book_str(x, "kind")) != 0)
			continue;
		read_group(b, c, &group);
		read_group(b, x, &axes);
		if (ap_axes_equal(&axes, &group))
			return c;
	}
	book_fault(b, x, "is no collective of this operator");
	return NULL;
}

/* Uses whose gradient the owner exchanges exchange none. */
static void hold_gradient_sums(struct book *b, const struct ap_jv *p)
{
	const struct ap_jv *list = ap_jv_get(p, "gradient_sums");

	for (const struct ap_jv *x = list ? ap_jv_first(list) : NULL; x; x = ap_jv_next(x)) {
		ap_id id = book_op(b, x, "operator");
		int64_t operand = book_int(b, x, "operand");

		if (id == AP_NONE)
			continue;
		if (operand >= b->op[id].nin || strcmp(book_str(p, "name"),
			ap_jv_str(b->tensor.v[b->op[id].in[operand]].where)) != 0)
			book_fault(b, ap_jv_get(x, "operand"), "is not this parameter");
		for (uint32_t k = 0; k < b->op[id].ncomm; k++)
			if (!strcmp(book_str(b->op[id].comm[k], "phase"), "gradient") &&
				ap_jv_get(b->op[id].comm[k], "operand") &&
				book_int(b, b->op[id].comm[k], "operand") == operand)
				book_fault(b, x, "has an exchange of its own");
	}
	if (list && !ap_jv_count(ap_jv_get(p, "gradient_groups")))
		book_fault(b, list, "joins an exchange that is not there");
}

/* gradient_group must hold the axes of all exchanges of the first operand. */
static void hold_gradients(struct book *b, const struct ap_jv *p, uint32_t ncomm)
{
	const struct ap_jv *list = ap_jv_get(p, "gradient_groups"), *group = book_at(p, "gradient_group");
	const struct ap_jv *first = list ? ap_jv_first(list) : NULL;
	struct ap_axes all = {0}, told;
	bool right = true;

	if (!list)
		return;
	if (ap_jv_count(list) != ncomm)
		book_fault(b, list,
			"expected the %" PRIu32 " collectives of phase gradient that there are of it", ncomm);
	for (const struct ap_jv *x = first; x; x = ap_jv_next(x)) {
		right &= hold_exchange(b, p, x) != NULL;
		if (!right || strcmp(book_str(x, "operator"), book_str(first, "operator")) != 0 ||
			book_int(b, x, "operand") != book_int(b, first, "operand"))
			continue;
		read_group(b, x, &told);
		for (int a = 0; a < told.n; a++)
			ap_axes_add(&all, told.axis[a]);
	}
	if (!group != !first) {
		book_fault(b, ap_jv_get(p, "gradient_group"), group ? "expected null, for nothing is in "
			"gradient_groups" : "expected a group, for there are some in gradient_groups");
	} else if (group && right &&
		book_group(b, group, b->first[book_own_stage(b, p)], b->ndev[book_own_stage(b, p)], &told)) {
		read_group(b, group, &told);
		if (!ap_axes_equal(&told, &all))
			book_fault(b, group, "contradicts gradient_groups");
	}
}

static void hold_users(struct book *b, const struct ap_jv *p, const struct ap_layout *l,
	const uint32_t *users, uint32_t n)
{
	int64_t stage = book_int(b, p, "stage");
	bool there = false;

	for (uint32_t u = 0; u < n; u += 2) {
		const struct book_op *op = &b->op[users[u]];
		const struct ap_layout *in = &op->in_layout[users[u + 1]];

		there |= op->stage == stage;
		if (in->rank >= 0 && !ap_layout_equal(in, l))
			book_fault(b, ap_jv_get(p, "tensor_map"), "contradicts how \"%s\" is cut",
				op->name);
	}
	if (!n)
		book_fault(b, p, "is read by no operator");
	else if (!there)
		book_fault(b, ap_jv_get(p, "stage"), "is not that of an operator that reads it");
}

struct users { /* pairs (operator, operand), and count of gradient collectives */
	uint32_t n, ngradient;
	uint32_t *v;
};

static struct users *list_users(struct book *b)
{
	struct users *all = AP_NEW_N(b->ctx->scratch, struct users, b->tensor.n);

	for (size_t t = 0; t < b->tensor.n; t++)
		if (b->tensor.v[t].source == BOOK_PARAM)
			all[t].v = AP_NEW_N(b->ctx->scratch, uint32_t, 2 * b->tensor.v[t].nuse);
	for (uint32_t i = 0; i < b->nop; i++) {
		for (uint32_t k = 0; k < b->op[i].nin; k++) {
			struct users *u = &all[b->op[i].in[k]];

			if (!u->v)
				continue;
			u->v[u->n++] = i;
			u->v[u->n++] = k;
		}
		for (uint32_t k = 0; k < b->op[i].ncomm; k++) {
			const struct ap_jv *c = b->op[i].comm[k];
			ap_id t = ap_map_get_str(b->tensor_names, book_str(c, "tensor"));

			if (t != AP_NONE && !strcmp(book_str(c, "phase"), "gradient"))
				all[t].ngradient++;
		}
	}
	return all;
}

/* Is it a parameter, or one through operators of one operand, such as casts and sends? */
static bool is_param(const struct book *b, ap_id tensor)
{
	enum { MOST_BETWEEN = 16 };

	for (int i = 0; i < MOST_BETWEEN; i++) {
		const struct book_tensor *t = &b->tensor.v[tensor];

		if (t->source != BOOK_RESULT || b->op[t->op].nin != 1)
			return t->source == BOOK_PARAM;
		tensor = b->op[t->op].in[0];
	}
	return false;
}

static void rule_parameters(struct book *b)
{
	const struct users *all = list_users(b);

	for (uint32_t i = 0; i < b->nparam; i++) {
		const struct ap_jv *p = b->param[i];
		ap_id t = ap_map_get_str(b->tensor_names, book_str(p, "name"));
		struct ap_layout l;

		if (!book_stage(b, p, b->nstage) || !read_param(b, p, &l))
			continue;
		hold_param_slice(b, p, &l);
		hold_dealing(b, p, &l);
		hold_users(b, p, &l, all[t].v, all[t].n);
		hold_gradients(b, p, all[t].ngradient);
		hold_gradient_sums(b, p);
		if (all[t].ngradient && !book_bool(p, "trainable"))
			book_fault(b, ap_jv_get(p, "trainable"), "expected true, for its gradient is "
				"exchanged");
	}
	/* only operators that read a parameter are in the checkpoint */
	for (uint32_t i = 0; i < b->nop; i++) {
		bool any = false;

		for (uint32_t k = 0; k < b->op[i].nin; k++)
			any |= is_param(b, b->op[i].in[k]);
		b->oper = b->op[i].name;
		if (!any && book_bool(b->op[i].v, "in_checkpoint"))
			book_fault(b, ap_jv_get(b->op[i].v, "in_checkpoint"),
				"expected false of an operator without a parameter");
	}
	b->oper = NULL;
}

static void rule_route(struct book *b)
{
	const struct ap_jv *r = book_at(b->root, "route");
	struct ap_map *names = ap_map_create(b->ctx->scratch);

	if (!r)
		return;
	for (const struct ap_jv *v = ap_jv_first(ap_jv_get(r, "differs")); v; v = ap_jv_next(v)) {
		const struct ap_jv *now = ap_jv_get(v, "in_strategy");
		ap_id id;

		(void)book_note(b, names, book_str(v, "name"), v, "an operator");
		id = book_op(b, v, "name");
		if (id != AP_NONE && !same_lists(now, ap_jv_get(b->op[id].v, "in_strategy")))
			book_fault(b, now, "contradicts the operator's own");
	}
}

static const char *const kinds[] = {"weights_bytes", "gathered_bytes", "gradients_bytes",
	"optimizer_bytes", "activations_bytes", "recompute_bytes", "temporary_bytes", "context_bytes",
	"buffers_bytes"};

/* Sums over the operators of a stage; SUMMED: memory kinds that are plain sums. */
enum { SUMMED = 4 };

struct held {
	int64_t noperator, sum[SUMMED], activations, temporary;
	int64_t kept, surely_kept; /* bounds: copies of recomputed redistributions are not kept */
};

static void add(int64_t *sum, int64_t n)
{
	if (!ap_add(*sum, n, sum))
		*sum = INT64_MAX;
}

static struct held *sum_operators(struct book *b)
{
	struct held *all = AP_NEW_N(b->ctx->scratch, struct held, b->nstage + 1);
	struct ap_map *names = ap_map_create(b->ctx->scratch);
	const struct ap_jv *list = ap_jv_get(b->root, "operators");
	struct {
		int64_t stage;
		bool recompute;
	} *op = ap_arena_alloc(b->ctx->scratch, ap_jv_count(list) + 1, sizeof *op);

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		const struct ap_jv *m = ap_jv_get(v, "memory");
		int64_t stage = book_int(b, v, "stage");
		struct held *h = &all[stage < b->nstage ? stage : b->nstage];
		ap_id id = ap_map_put_str(names, book_str(v, "name"), NULL);
		int64_t temporary = book_int(b, m, "temporary_bytes");

		op[id].stage = stage < b->nstage ? stage : b->nstage;
		op[id].recompute = book_bool(v, "recompute");
		b->recomputes |= op[id].recompute;
		h->noperator++;
		for (int k = 0; k < SUMMED; k++)
			add(&h->sum[k], book_int(b, m, kinds[k]));
		add(&h->activations, book_int(b, m, "activations_bytes"));
		h->temporary = temporary > h->temporary ? temporary : h->temporary;
	}
	for (uint32_t i = 0; i < b->nmove; i++) {
		ap_id to = ap_map_get_str(names, book_str(b->move[i], "to"));
		int64_t kept = book_int(b, b->move[i], "kept_bytes");

		if (to == AP_NONE || !book_at(b->move[i], "from"))
			continue;
		add(&all[op[to].stage].kept, kept);
		if (!op[to].recompute)
			add(&all[op[to].stage].surely_kept, kept);
	}
	return all;
}

static void hold_kinds(struct book *b, const struct ap_jv *m, const struct held *h)
{
	int64_t held = book_int(b, m, "activations_bytes");
	int64_t again = book_int(b, m, "recompute_bytes");
	int64_t sure = again < h->surely_kept ? h->surely_kept - again : 0;

	for (int k = 0; k < SUMMED; k++)
		book_want_int(b, m, kinds[k], h->sum[k], "the sum of the operators");
	book_want_int(b, m, "temporary_bytes", h->temporary, "the largest of an operator");
	if (held < h->activations + sure || held > h->activations + h->kept)
		book_fault(b, ap_jv_get(m, "activations_bytes"), "expected %" PRId64
			", the sum of operators and of what redistributions keep",
			h->activations + h->surely_kept);
	if (!b->recomputes && h->kept == 0) /* copies for redistributions may be recomputed */
		book_want_int(b, m, "recompute_bytes", 0, "for nothing is recomputed");
	if (!b->recomputes && again > h->kept)
		book_fault(b, ap_jv_get(m, "recompute_bytes"), "expected at most %" PRId64
			", what redistributions keep, for no operator is recomputed", h->kept);
}

static void rule_memory(struct book *b)
{
	const struct ap_jv *list = ap_jv_get(ap_jv_get(b->root, "prediction"), "memory");
	const struct held *all = sum_operators(b);
	int64_t i = 0;

	if ((int64_t)ap_jv_count(list) != b->nstage) {
		book_fault(b, list, "expected an entry for each of the %" PRId64 " stages", b->nstage);
		return;
	}
	for (const struct ap_jv *m = ap_jv_first(list); m; m = ap_jv_next(m), i++) {
		int64_t total = 0;

		for (size_t k = 0; k < AP_COUNT(kinds); k++)
			add(&total, book_int(b, m, kinds[k]));
		book_want_int(b, m, "stage", i, "its place in the list");
		book_want_int(b, m, "total_bytes", total, "the sum of the kinds");
		book_want_int(b, b->stage[i], "memory_bytes", total, "the total in /prediction/memory");
		book_want_int(b, b->stage[i], "operators", all[i].noperator, "those of this stage");
		if (book_int(b, b->stage[i], "peak_bytes") > total)
			book_fault(b, ap_jv_get(b->stage[i], "peak_bytes"), "is more than memory_bytes");
		hold_kinds(b, m, &all[i]);
	}
}

/* Is it a product of adjacent axes of dev_matrix? */
static bool is_of_matrix(const struct book_op *op, const struct ap_axis *axis)
{
	int64_t stride = 1, size = 1;

	for (size_t i = op->dev.n; i-- > 0;) {
		if (stride >= axis->stride)
			size *= op->dev.v[i];
		else
			stride *= op->dev.v[i];
		if (stride == axis->stride && size == axis->size)
			return true;
	}
	return false;
}

static void hold_send(struct book *b, const struct ap_jv *c)
{
	int64_t from, to, low, distance;
	struct ap_axes axes;

	if (!ap_jv_get(c, "from_stage") || !ap_jv_get(c, "to_stage")) {
		book_fault(b, c, "no key \"%s\"", ap_jv_get(c, "from_stage") ? "to_stage" : "from_stage");
		return;
	}
	from = book_int(b, c, "from_stage");
	to = book_int(b, c, "to_stage");
	if (from >= b->nstage || to >= b->nstage) {
		book_fault(b, ap_jv_get(c, from >= b->nstage ? "from_stage" : "to_stage"),
			"is no stage of this plan");
		return;
	}
	low = from < to ? from : to;
	distance = b->first[from < to ? to : from] - b->first[low];
	if (b->ndev[from] != b->ndev[to]) {
		book_fault(b, c, "is between stages of different numbers of devices, which have no "
			"counterparts");
		return;
	}
	if (ap_jv_count(ap_jv_get(c, "axes")) && distance) {
		const struct ap_jv *pair = ap_jv_first(ap_jv_get(c, "axes"));
		struct book_list axis = book_list(b, pair);

		if (axis.n != 2 || axis.v[0] != distance || axis.v[1] != 2 || ap_jv_next(pair)) {
			book_fault(b, pair, "expected [%" PRId64 ", 2], a rank and its counterpart",
				distance);
			return;
		}
	} else if (!ap_jv_count(ap_jv_get(c, "axes")) != !distance) {
		book_fault(b, ap_jv_get(c, "axes"), "contradict from_stage and to_stage");
		return;
	}
	(void)book_group(b, c, b->first[low], distance ? 2 * distance : 1, &axes);
}

/* Groups must be axes of dev_matrix, except of gradients, updates and weight gathers: shards may be
 * fewer than the devices with the same slice. */
static void hold_group(struct book *b, const struct book_op *op, const struct ap_jv *c,
	const char *phase)
{
	bool gathers = !strcmp(book_str(c, "kind"), "AllGather") && ap_jv_get(c, "operand");
	bool dealt = !strcmp(phase, "gradient") || !strcmp(phase, "optimizer") || gathers;
	struct ap_axes axes;

	if (!book_group(b, c, b->first[op->stage], b->ndev[op->stage], &axes) || dealt)
		return;
	for (int a = 0; a < axes.n; a++)
		if (!is_of_matrix(op, &axes.axis[a])) {
			book_fault(b, ap_jv_get(c, "axes"), "expected axes of dev_matrix");
			return;
		}
}

static void hold_tensor(struct book *b, const struct book_op *op, const struct ap_jv *c)
{
	const struct ap_jv *result = ap_jv_get(c, "result"), *operand = ap_jv_get(c, "operand");
	int64_t i;

	if (!result == !operand) {
		book_fault(b, c, result ? "expected \"operand\" or \"result\", not both"
			: "no key \"operand\" or \"result\"");
		return;
	}
	i = book_whole(b, result ? result : operand);
	if (i >= (result ? op->nout : op->nin)) {
		book_fault(b, result ? result : operand, "is none of this operator");
		return;
	}
	book_want_str(b, c, "tensor", ap_jv_str(b->tensor.v[result ? op->out[i] : op->in[i]].where),
		result ? "that result" : "that operand");
}

static void hold_comm(struct book *b, const struct book_op *op, const struct ap_jv *c)
{
	const char *kind = book_str(c, "kind"), *phase = book_str(c, "phase");
	bool send = !strcmp(kind, "Send"), each = ap_jv_get(c, "each_micro_batch") != NULL;

	hold_tensor(b, op, c);
	hold_sent_as(b, op, c);
	if (send)
		hold_send(b, c);
	else
		hold_group(b, op, c, phase);
	if (!send && (ap_jv_get(c, "from_stage") || ap_jv_get(c, "to_stage")))
		book_fault(b, c, "has a stage that it is sent from or to, and is no Send");
	if (b->inference && strcmp(phase, "forward") != 0)
		book_fault(b, ap_jv_get(c, "phase"), "expected forward, for /settings/run_phase is "
			"inference");
	if (each && (!book_bool(c, "each_micro_batch") || strcmp(phase, "gradient") != 0))
		book_fault(b, ap_jv_get(c, "each_micro_batch"),
			"expected true of a gradient, else no such key");
}

static void rule_communications(struct book *b)
{
	static const struct {
		const char *key;
		const char *phase[2];
	} costs[] = {
		{"forward_communication_s", {"forward", "forward"}},
		{"backward_communication_s", {"backward", "recompute"}},
	};

	for (uint32_t o = 0; o < b->nop; o++) {
		const struct book_op *op = &b->op[o];
		const struct ap_jv *cost = ap_jv_get(op->v, "cost");
		double times = book_bool(op->v, "once") ? 1 : (double)b->micro_batches;

		b->oper = op->name;
		for (uint32_t k = 0; k < op->ncomm; k++)
			hold_comm(b, op, op->comm[k]);
		for (size_t i = 0; i < AP_COUNT(costs); i++) {
			double sum = 0; /* per step */

			for (uint32_t k = 0; k < op->ncomm; k++) {
				const char *phase = book_str(op->comm[k], "phase");

				if (!strcmp(phase, costs[i].phase[0]) || !strcmp(phase, costs[i].phase[1]))
					sum += times * book_num(op->comm[k], "time_s");
			}
			if (!book_near(book_num(cost, costs[i].key), sum))
				book_want_num(b, cost, costs[i].key, sum, "the collectives of a step");
		}
	}
}

/* Is the collective part of a fusion bucket? */
static bool is_exchanged(const struct ap_jv *c)
{
	const char *phase = book_str(c, "phase");

	return !strcmp(phase, "gradient") || !strcmp(phase, "optimizer");
}

struct fused { /* exchanges of a parameter, in operator order */
	uint32_t n;
	const struct ap_jv **comm;
	bool *taken;
};

static struct fused *list_exchanged(struct book *b)
{
	struct fused *all = AP_NEW_N(b->ctx->scratch, struct fused, b->tensor.n);

	for (int fill = 0; fill < 2; fill++) {
		for (size_t t = 0; fill && t < b->tensor.n; t++) {
			all[t].comm = AP_NEW_N(b->ctx->scratch, const struct ap_jv *, all[t].n);
			all[t].taken = AP_NEW_N(b->ctx->scratch, bool, all[t].n);
			all[t].n = 0;
		}
		for (uint32_t i = 0; i < b->nop; i++)
			for (uint32_t k = 0; k < b->op[i].ncomm; k++) {
				const struct ap_jv *c = b->op[i].comm[k];
				ap_id t = ap_map_get_str(b->tensor_names, book_str(c, "tensor"));

				if (t == AP_NONE || !is_exchanged(c))
					continue;
				if (fill)
					all[t].comm[all[t].n] = c;
				all[t].n++;
			}
	}
	return all;
}

static void hold_bucket(struct book *b, const struct ap_jv *bucket, struct fused *all)
{
	int64_t stage = book_int(b, bucket, "stage"), bytes = 0;
	const struct ap_jv *list = ap_jv_get(bucket, "parameters");
	bool whole = true;

	if (!book_stage(b, bucket, b->nstage) ||
		!book_group(b, bucket, b->first[stage], b->ndev[stage], NULL))
		return;
	if (!ap_jv_count(list))
		book_fault(b, list, "expected a parameter at least");
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		ap_id t = ap_map_get_str(b->tensor_names, ap_jv_str(v));
		bool found = false;

		for (uint32_t i = 0; t != AP_NONE && i < all[t].n && !found; i++) {
			const struct ap_jv *c = all[t].comm[i];

			found = !all[t].taken[i] && !strcmp(book_str(bucket, "kind"), book_str(c, "kind")) &&
				same_lists(ap_jv_get(bucket, "axes"), ap_jv_get(c, "axes"));
			if (!found)
				continue;
			all[t].taken[i] = true;
			add(&bytes, book_int(b, c, "bytes"));
		}
		if (!found)
			book_fault(b, v, "has no collective of this kind and group that is in no other "
				"bucket");
		whole &= found;
	}
	if (whole)
		book_want_int(b, bucket, "bytes", bytes, "those of its collectives");
}

static void rule_fusion(struct book *b)
{
	const struct ap_jv *list = ap_jv_get(b->root, "fusion");
	struct fused *all = list_exchanged(b);

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		hold_bucket(b, v, all);
	for (size_t t = 0; t < b->tensor.n; t++)
		for (uint32_t i = 0; i < all[t].n; i++)
			if (!all[t].taken[i])
				book_fault(b, all[t].comm[i], "is in no bucket of /fusion");
}

enum { FORWARD, BACKWARD, WEIGHT, PASSES };

static const char *const passes[] = {"forward", "backward", "weight"};

static bool is_before(double a, double b) /* a < b beyond rounding */
{
	return a < b && !book_near(a, b);
}

struct slots { /* start and end at [part * nmicro + micro-batch][pass]; start < 0: not run */
	int64_t nmicro, npart;
	double (*start)[PASSES], (*end)[PASSES];
	bool vee; /* the second segment runs backwards through the stages */
	bool any_weight;
};

/* Index of a stage's segment in the order of the network. */
static int64_t part_of(const struct book *b, const struct slots *s, int64_t stage, int64_t segment)
{
	return s->vee && segment % 2 ? segment * b->nstage + (b->nstage - 1 - stage)
				     : segment * b->nstage + stage;
}

static void read_slots(struct book *b, struct slots *s, int64_t stage)
{
	double step = book_num(ap_jv_get(b->root, "prediction"), "step_time_s"), free_s = 0;
	const struct ap_jv *list = ap_jv_get(b->stage[stage], "slots");

	for (const struct ap_jv *v = list ? ap_jv_first(list) : NULL; v; v = ap_jv_next(v)) {
		int64_t segment = book_int(b, v, "segment"), micro = book_int(b, v, "micro_batch");
		double start = book_num(v, "start_s"), end = book_num(v, "end_s");
		size_t pass = index_of(passes, book_str(v, "pass"));
		size_t at;

		if (segment >= b->segments || micro >= b->micro_batches) {
			book_fault(b, ap_jv_get(v, segment >= b->segments ? "segment" : "micro_batch"),
				"is none of this plan");
			continue;
		}
		at = (size_t)(part_of(b, s, stage, segment) * s->nmicro + micro);
		if (s->start[at][pass] >= 0)
			book_fault(b, v, "has run before");
		if (end < start)
			book_fault(b, ap_jv_get(v, "end_s"), "is before start_s");
		if (is_before(start, free_s))
			book_fault(b, ap_jv_get(v, "start_s"), "is before the end of the slot before");
		if (is_before(step, end))
			book_fault(b, ap_jv_get(v, "end_s"), "is after the end of the step");
		free_s = fmax(free_s, end);
		s->start[at][pass] = start;
		s->end[at][pass] = end;
		s->any_weight |= pass == WEIGHT;
	}
}

/* Each pass must run once, after those that it depends on. */
static void hold_order(struct book *b, const struct slots *s, int64_t stage)
{
	const struct ap_jv *list = ap_jv_get(b->stage[stage], "slots");
	size_t want = (size_t)(b->segments * s->nmicro) * (b->inference ? 1 : s->any_weight ? 3 : 2);

	if (!list)
		return;
	if (ap_jv_count(list) != want)
		book_fault(b, list, "expected %zu slots, one for each pass over a micro-batch", want);
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		int64_t segment = book_int(b, v, "segment"), part;
		int64_t micro = book_int(b, v, "micro_batch");
		double start = book_num(v, "start_s"), after = 0;
		size_t pass = index_of(passes, book_str(v, "pass"));
		size_t at, last = (size_t)s->npart - 1;

		if (segment >= b->segments || micro >= b->micro_batches)
			continue;
		part = part_of(b, s, stage, segment);
		at = (size_t)(part * s->nmicro + micro);
		if (pass == FORWARD && part > 0)
			after = s->end[at - (size_t)s->nmicro][FORWARD];
		else if (pass == BACKWARD && (size_t)part < last)
			after = s->end[at + (size_t)s->nmicro][BACKWARD];
		else if (pass == WEIGHT)
			after = s->end[at][BACKWARD];
		if (pass == BACKWARD)
			after = fmax(after, s->end[at][FORWARD]);
		if (is_before(start, after))
			book_fault(b, ap_jv_get(v, "start_s"),
				"is before the end of a pass that it follows");
	}
}

/* Checks the times of micro-batch 0, summed over segments: the backward pass of the last one may wait for
 * exchanges, and so may this one where it is alone. Of two passes that run as one, the forward one comes
 * first and takes no longer than alone. */
static void hold_passes(struct book *b, const struct slots *s, int64_t stage)
{
	static const char *const keys[] = {"forward_s", "backward_s"};

	for (int pass = FORWARD; pass <= (b->beside ? FORWARD : BACKWARD); pass++) {
		double sum = 0, last = 0, over;

		for (int64_t v = 0; v < b->segments; v++) {
			size_t at = (size_t)(part_of(b, s, stage, v) * s->nmicro);

			last = fmax(last, fmax(s->end[at][BACKWARD], s->end[at][WEIGHT]));
			sum += s->end[at][pass] - s->start[at][pass];
			if (pass == BACKWARD)
				sum += s->end[at][WEIGHT] - s->start[at][WEIGHT];
		}
		over = sum - book_num(b->stage[stage], keys[pass]);
		/* a short pass that ends late has lost digits */
		if ((b->beside ? over : pass == BACKWARD && s->nmicro == 1 ? -over : fabs(over)) >
			1e-9 * sum + 0x1p-48 * last)
			book_fault(b, ap_jv_get(b->stage[stage], keys[pass]),
				"is not what the slots of micro-batch 0 take");
	}
}

static void rule_slots(struct book *b)
{
	const struct ap_jv *pipe = book_at(b->root, "pipeline");
	struct slots s = {.nmicro = b->micro_batches, .npart = b->nstage * b->segments};
	size_t n = 0;

	if (!pipe || b->nfault)
		return;
	for (int64_t i = 0; i < b->nstage; i++)
		if (ap_jv_get(b->stage[i], "slots"))
			n += ap_jv_count(ap_jv_get(b->stage[i], "slots"));
	if (n < (size_t)s.npart * (size_t)s.nmicro) { /* faulty counts could exhaust memory */
		book_fault(b, ap_jv_get(b->root, "stages"), "have fewer slots than passes");
		return;
	}
	s.vee = !strcmp(book_str(pipe, "scheduler"), "zero_bubble_v");
	s.start = ap_arena_alloc(b->ctx->scratch, (size_t)(s.npart * s.nmicro), sizeof *s.start);
	s.end = ap_arena_alloc(b->ctx->scratch, (size_t)(s.npart * s.nmicro), sizeof *s.end);
	for (int64_t i = 0; i < s.npart * s.nmicro; i++)
		for (int pass = 0; pass < PASSES; pass++)
			s.start[i][pass] = s.end[i][pass] = -1;
	for (int64_t i = 0; i < b->nstage; i++)
		read_slots(b, &s, i);
	for (int64_t i = 0; i < b->nstage; i++)
		hold_order(b, &s, i);
	for (int64_t i = 0; i < b->nstage && !b->nfault; i++)
		hold_passes(b, &s, i);
	for (int64_t i = 0; i < b->nstage && !b->nfault && !b->inference; i++) {
		const struct ap_jv *list = ap_jv_get(b->stage[i], "slots");
		int64_t held = 0, most = 0; /* micro-batches between forward and backward */

		for (const struct ap_jv *v = list ? ap_jv_first(list) : NULL; v; v = ap_jv_next(v)) {
			size_t pass = index_of(passes, book_str(v, "pass"));

			held += pass == FORWARD ? 1 : pass == BACKWARD ? -1 : 0;
			most = held > most ? held : most;
		}
		book_want_int(b, b->stage[i], "in_flight", most, "the most in the order of slots");
	}
}

enum { EVENT_FORWARD, EVENT_BACKWARD, EVENT_COMM, EVENT_MOVE, EVENT_BACK, EVENT_UPDATE, EVENTS };

static const char *const events[] = {"forward", "backward", "communication", "redistribution",
	"redistribution_back", "optimizer"};

struct schedule {
	bool *seen[EVENTS]; /* [operator or redistribution] */
	bool **comm; /* [operator][communication] */
	double *forward_end; /* [operator]; < 0: not yet run */
	double *busy_s; /* [stage] end of the last kernel */
};

static bool lasts(const struct ap_jv *v, double want)
{
	double start = book_num(v, "start_s"), end = book_num(v, "end_s");

	/* both ends are rounded */
	return fabs(end - start - want) <= 1e-12 * fmax(fabs(end), want);
}

static void hold_span(struct book *b, const struct ap_jv *v, double want, const char *of)
{
	if (!lasts(v, want))
		book_fault(b, v, "does not last as long as %s", of);
}

static bool is_known(struct book *b, const struct ap_jv *v, int e, int64_t *index)
{
	const char *key = e == EVENT_MOVE || e == EVENT_BACK ? "redistribution" : "operator";
	static const char *const keys[] = {"redistribution", "operator", "communication"};

	for (size_t i = 0; i < AP_COUNT(keys); i++) {
		bool wanted = !strcmp(keys[i], key) || (i == 2 && e == EVENT_COMM);

		if (!ap_jv_get(v, keys[i]) != !wanted) {
			book_fault(b, v, wanted ? "no key \"%s\"" : "\"%s\" is not of this event",
				keys[i]);
			return false;
		}
	}
	*index = book_int(b, v, key);
	if (*index < (e == EVENT_MOVE || e == EVENT_BACK ? b->nmove : b->nop))
		return true;
	book_fault(b, ap_jv_get(v, key), "is none of this plan");
	return false;
}

/* Kernels of a stage run one after another, a forward one after those that it reads. */
static void hold_kernel(struct book *b, struct schedule *s, const struct ap_jv *v, int e, int64_t i)
{
	const struct book_op *op = &b->op[i];
	const struct ap_jv *cost = ap_jv_get(op->v, "cost");
	double times = book_bool(op->v, "once") ? 1 : (double)b->micro_batches;
	double start = book_num(v, "start_s");

	if (e == EVENT_FORWARD)
		hold_span(b, v, book_num(cost, "forward_s") / times, "the operator's forward_s");
	if (e == EVENT_UPDATE) { /* runs while collectives are awaited */
		double work = book_num(cost, "optimizer_s");

		for (uint32_t k = 0; k < op->ncomm; k++)
			if (!strcmp(book_str(op->comm[k], "phase"), "optimizer"))
				work -= book_num(op->comm[k], "time_s");
		hold_span(b, v, fmax(0, work), "the operator's optimizer_s");
	}
	if (is_before(start, s->busy_s[op->stage]))
		book_fault(b, ap_jv_get(v, "start_s"), "is before the end of the kernel before");
	s->busy_s[op->stage] = book_num(v, "end_s");
	for (uint32_t k = 0; e == EVENT_FORWARD && k < op->nin; k++) {
		const struct book_tensor *t = &b->tensor.v[op->in[k]];

		if (t->source != BOOK_RESULT || b->op[t->op].stage != op->stage)
			continue;
		if (s->forward_end[t->op] < 0 && b->op[t->op].segment == op->segment &&
			!book_bool(b->op[t->op].v, "once"))
			book_fault(b, v, "runs before \"%s\", which it reads", b->op[t->op].name);
		else if (is_before(start, s->forward_end[t->op]))
			book_fault(b, ap_jv_get(v, "start_s"), "is before the end of what it reads");
	}
	if (e == EVENT_FORWARD)
		s->forward_end[i] = book_num(v, "end_s");
}

/* Of a weight that another stage sent: its gradient is brought back once a step, and not here. */
static bool is_of_weight(const struct book *b, const struct ap_jv *move)
{
	const struct ap_jv *name = book_at(move, "from"); /* NULL: an input of the graph */
	ap_id from = name ? ap_map_get_str(b->op_names, ap_jv_str(name)) : AP_NONE;

	return from != AP_NONE && book_bool(b->op[from].v, "once");
}

/* Tokens on their way to experts or back, beside another pass? */
static bool is_hidden(const struct book *b, const struct ap_jv *v, const struct ap_jv *move)
{
	static const struct { const char *end, *type; } ends[] = {{"from", "MoeDispatch"},
		{"from", "MoeWeights"}, {"to", "MoeCombine"}};

	for (size_t i = 0; i < AP_COUNT(ends) && b->beside && lasts(v, 0); i++) {
		const struct ap_jv *name = book_at(move, ends[i].end);
		ap_id op = name ? ap_map_get_str(b->op_names, ap_jv_str(name)) : AP_NONE;

		if (op != AP_NONE && !strcmp(book_str(b->op[op].v, "type"), ends[i].type))
			return true;
	}
	return false;
}

static void hold_event(struct book *b, struct schedule *s, const struct ap_jv *v)
{
	int e = (int)index_of(events, book_str(v, "event"));
	double start = book_num(v, "start_s"), end = book_num(v, "end_s");
	int64_t i = 0, stage, k;
	bool *seen;

	if (!is_known(b, v, e, &i))
		return;
	stage = b->op[e == EVENT_MOVE || e == EVENT_BACK
		? ap_map_get_str(b->op_names, book_str(b->move[i], "to")) : (ap_id)i].stage;
	book_want_int(b, v, "stage", stage, "that of the operator");
	seen = &s->seen[e][i];
	if (e == EVENT_COMM) {
		k = book_int(b, v, "communication");
		if (k >= b->op[i].ncomm) {
			book_fault(b, ap_jv_get(v, "communication"), "is none of the operator");
			return;
		}
		seen = &s->comm[i][k];
	}
	if (*seen)
		book_fault(b, v, "is there already");
	*seen = true;
	if (end < start)
		book_fault(b, ap_jv_get(v, "end_s"), "is before start_s");
	if (e == EVENT_FORWARD || e == EVENT_BACKWARD || e == EVENT_UPDATE)
		hold_kernel(b, s, v, e, i);
	if (e == EVENT_COMM && !is_exchanged(b->op[i].comm[book_int(b, v, "communication")]))
		hold_span(b, v, book_num(b->op[i].comm[book_int(b, v, "communication")], "time_s"),
			"its time_s");
	if ((e == EVENT_MOVE || e == EVENT_BACK) && is_hidden(b, v, b->move[i]))
		return;
	if (e == EVENT_MOVE)
		hold_span(b, v, book_num(b->move[i], "forward_s") / (double)b->micro_batches,
			"its forward_s");
	if (e == EVENT_BACK && !lasts(v, (book_num(b->move[i], "backward_s") -
			book_num(b->move[i], "forward_s")) / (double)b->micro_batches) &&
		!(is_of_weight(b, b->move[i]) && lasts(v, book_num(b->move[i], "forward_s") /
			(double)b->micro_batches)))
		hold_span(b, v, book_num(b->move[i], "backward_s") / (double)b->micro_batches,
			"its backward_s, with or without the way there again");
}

static void rule_schedule(struct book *b)
{
	const struct ap_jv *list = ap_jv_get(b->root, "schedule");
	struct ap_arena *a = b->ctx->scratch;
	struct schedule s;

	if (b->nfault)
		return;
	for (int e = 0; e < EVENTS; e++)
		s.seen[e] = AP_NEW_N(a, bool, (b->nop > b->nmove ? b->nop : b->nmove) + 1);
	s.comm = AP_NEW_N(a, bool *, b->nop + 1);
	s.forward_end = AP_NEW_N(a, double, b->nop + 1);
	s.busy_s = AP_NEW_N(a, double, b->nstage + 1);
	for (uint32_t i = 0; i < b->nop; i++) {
		s.comm[i] = AP_NEW_N(a, bool, b->op[i].ncomm);
		s.forward_end[i] = -1;
	}
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		hold_event(b, &s, v);
	for (uint32_t i = 0; i < b->nop; i++)
		if (!s.seen[EVENT_FORWARD][i] && !book_bool(b->op[i].v, "once"))
			book_fault(b, list, "has no forward pass of \"%s\"", b->op[i].name);
}

static const struct {
	void (*hold)(struct book *b);
	const char *check;
	bool base;
} rules[] = {
#define RULE(name, check, base) {rule_##name, check, base},
#include "planfile/plan_rules.def"
#undef RULE
};

enum ap_status ap_plan_check(struct ap_ctx *ctx, const struct ap_json *doc)
{
	struct book b = {.ctx = ctx, .doc = doc, .root = ap_json_root(doc)};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	bool base = true;

	AP_TRY(ap_plan_form_check(ctx, doc));
	read_sizes(&b);
	b.move = list_of(&b, ap_jv_get(b.root, "redistributions"), &b.nmove);
	b.param = list_of(&b, ap_jv_get(b.root, "parameters"), &b.nparam);
	b.op_names = ap_map_create(ctx->scratch);
	b.tensor_names = ap_map_create(ctx->scratch);
	for (size_t i = 0; i < AP_COUNT(rules) && base; i++) {
		uint32_t before = b.nfault;

		b.check = rules[i].check;
		b.oper = NULL;
		rules[i].hold(&b);
		base = !rules[i].base || b.nfault == before;
	}
	ap_arena_release(ctx->scratch, mark);
	return b.nfault ? AP_MEANING : AP_OK;
}
