/* SPDX-License-Identifier: Apache-2.0 */
#include "planfile/plan_form.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/file.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/vec.h"
#include "hw/coll.h"
#include "pipeline/schedule.h"
#include "route/route.h"
#include "search/engine.h"

#define NUMBERS 1e300 /* above any valid number */

enum { MOST_CHILDREN = 64, MOST_FAULTS = 1000, MOST_WORD = 64 };

static const struct ap_plan_key rows[] = {
#define KEY(path, form, depth, least, most, names, need, class) \
	{path, AP_PLAN_##form, depth, (double)(least), (double)(most), names, AP_PLAN_##need, \
		AP_PLAN_##class},
#define SINCE(path, version)
#define FIGURE(section, key, name, whole, text)
#include "planfile/plan_form.def"
#undef KEY
#undef SINCE
};

static const struct since {
	const char *path, *version;
} younger[] = {
#define KEY(...)
#define SINCE(path, version) {path, version},
#include "planfile/plan_form.def"
#undef KEY
#undef SINCE
#undef FIGURE
};

enum { ROWS = AP_COUNT(rows) };

struct ap_plan_keys { /* index ROWS is the root */
	const char *key[ROWS]; /* the last part of the path */
	ap_id parent[ROWS], first[ROWS + 1], next[ROWS]; /* AP_NONE: none */
};

const struct ap_plan_key *ap_plan_key_at(size_t i)
{
	return i < ROWS ? &rows[i] : NULL;
}

enum ap_plan_unit ap_plan_unit_of(const char *key)
{
	static const struct {
		const char *end;
		enum ap_plan_unit unit;
	} units[] = {{"_bytes", AP_PLAN_BYTES}, {"_Bps", AP_PLAN_BYTES_PER_S}, {"_per_s", AP_PLAN_PER_S},
		{"_s", AP_PLAN_S}};

	const char *last = strrchr(key, '.'); /* of "data parallel.gap" */

	for (size_t i = 0; i < AP_COUNT(units); i++)
		if (ap_file_suffix(key, units[i].end))
			return units[i].unit;
	last = last ? last + 1 : key;
	return strcmp(last, "gap") && strcmp(last, "step_gap") ? AP_PLAN_NONE : AP_PLAN_SHARE;
}

bool ap_plan_key_searched(const char *object, const char *key)
{
	const struct ap_plan_key *row;
	size_t n = strlen(object);

	for (size_t i = 0; (row = ap_plan_key_at(i)); i++)
		if (!strncmp(row->path, object, n) && row->path[n] == '.' && !strcmp(row->path + n + 1, key))
			return row->class == AP_PLAN_SEARCHED;
	return false;
}

/* The row of path[0..len), without a final "[]". */
static ap_id row_of(const char *path, size_t len, ap_id before)
{
	if (len >= 2 && path[len - 1] == ']')
		len -= 2;
	while (before-- > 0)
		if (strlen(rows[before].path) == len && !memcmp(rows[before].path, path, len))
			return before;
	return ROWS;
}

const struct ap_plan_keys *ap_plan_keys_make(struct ap_ctx *ctx)
{
	struct ap_plan_keys *k = AP_NEW(ctx->arena, struct ap_plan_keys);
	ap_id last[ROWS + 1];

	for (ap_id i = 0; i <= ROWS; i++)
		k->first[i] = last[i] = AP_NONE;
	for (ap_id i = 0; i < ROWS; i++) {
		const char *dot = strrchr(rows[i].path, '.');
		ap_id up = dot ? row_of(rows[i].path, (size_t)(dot - rows[i].path), i) : (ap_id)ROWS;

		k->key[i] = dot ? dot + 1 : rows[i].path;
		k->parent[i] = up;
		k->next[i] = AP_NONE;
		*(last[up] == AP_NONE ? &k->first[up] : &k->next[last[up]]) = i;
		last[up] = i;
	}
	return k;
}

ap_id ap_plan_keys_find(const struct ap_plan_keys *k, ap_id parent, const char *key, ap_id hint)
{
	ap_id first = k->first[parent == AP_NONE ? (ap_id)ROWS : parent];

	for (ap_id i = hint == AP_NONE ? first : k->next[hint]; i != AP_NONE; i = k->next[i])
		if (!strcmp(k->key[i], key))
			return i;
	for (ap_id i = first; hint != AP_NONE && i != AP_NONE && i != k->next[hint]; i = k->next[i])
		if (!strcmp(k->key[i], key))
			return i;
	return AP_NONE;
}

struct forming {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	const struct ap_plan_keys *keys;
	const char *version; /* of the program that wrote the plan; NULL: unknown */
	uint32_t nfault;
};

static void fault(struct forming *f, const struct ap_jv *v, const char *check, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void fault(struct forming *f, const struct ap_jv *v, const char *check, const char *fmt, ...)
{
	va_list args;

	f->nfault++;
	va_start(args, fmt);
	(void)ap_json_reportv(f->ctx, f->doc, v, AP_ERROR, AP_MEANING, NULL, check, fmt, args);
	va_end(args);
}

/* Lists "@name" of words defined elsewhere; NULL past the end. */
static const char *dtype_at(size_t i)
{
	return i < AP_DTYPE_COUNT ? ap_dtype_name((enum ap_dtype)i) : NULL;
}

static const char *collective_at(size_t i)
{
	return i < AP_COLL_COUNT ? ap_coll_name((enum ap_coll)i) : NULL;
}

static const char *mode_at(size_t i)
{
	const struct ap_engine *engine = i ? ap_engine_at(i - 1) : NULL;

	return !i ? "given" : engine ? engine->name : NULL;
}

static const char *route_at(size_t i)
{
	return ap_route_at(i) ? ap_route_at(i)->name : NULL;
}

static const char *scheduler_at(size_t i)
{
	return ap_scheduler_at(i) ? ap_scheduler_at(i)->name : NULL;
}

static const struct {
	const char *name;
	const char *(*at)(size_t i);
} lists[] = {
	{"@dtype", dtype_at},
	{"@collective", collective_at},
	{"@mode", mode_at},
	{"@route", route_at},
	{"@scheduler", scheduler_at},
};

/* Word i of names, "a|b" or "@list"; NULL past the end. */
static const char *word_at(const char *names, size_t i, char buf[MOST_WORD])
{
	size_t n;

	for (size_t l = 0; l < AP_COUNT(lists); l++)
		if (!strcmp(lists[l].name, names))
			return lists[l].at(i);
	for (; i > 0; i--) {
		names += strcspn(names, "|");
		if (!*names++)
			return NULL;
	}
	n = strcspn(names, "|");
	assert(n < MOST_WORD);
	memcpy(buf, names, n);
	buf[n] = '\0';
	return buf;
}

static void check_word(struct forming *f, const char *names, const struct ap_jv *v)
{
	char buf[MOST_WORD];
	struct ap_str known;
	const char *word;

	for (size_t i = 0; (word = word_at(names, i, buf)); i++)
		if (!strcmp(word, ap_jv_str(v)))
			return;
	ap_str_init(&known, f->ctx->arena);
	for (size_t i = 0; (word = word_at(names, i, buf)); i++)
		ap_str_addf(&known, "%s%s", i ? ", " : "", word);
	fault(f, v, "key-range", "is none that is known; expected %s", known.s);
}

static bool is_version(const char *s)
{
	int dots = 0;

	for (; strspn(s, "0123456789") > 0; dots++) {
		s += strspn(s, "0123456789");
		if (*s != '.')
			break;
		s++;
	}
	return dots == 2 && (!*s || *s == '-' || *s == '+');
}

static void check_text(struct forming *f, const struct ap_plan_key *row, const struct ap_jv *v)
{
	const char *s;

	if (ap_jv_type(v) != AP_JSTRING) {
		fault(f, v, "key-type", "expected a string");
		return;
	}
	s = ap_jv_str(v);
	if (row->form == AP_PLAN_WORD)
		check_word(f, row->names, v);
	if (row->form == AP_PLAN_HASH && !ap_sha256_is_hex(s, strlen(s)))
		fault(f, v, "key-range", "is no SHA-256; expected %d hexadecimal digits", AP_SHA256_HEX);
	if (row->form == AP_PLAN_VERSION && !is_version(s))
		fault(f, v, "key-range", "is no version; expected three numbers, such as 0.1.0");
}

static void check_number(struct forming *f, const struct ap_plan_key *row, const struct ap_jv *v)
{
	bool whole = row->form == AP_PLAN_INT;
	char least[32], most[32];
	int64_t n = 0;
	double x;

	if (ap_jv_type(v) != AP_JNUMBER || (whole && !ap_jv_int(f->doc, v, &n))) {
		fault(f, v, "key-type", whole ? "expected an integer" : "expected a number");
		return;
	}
	x = ap_jv_double(v);
	if (x >= row->least && x <= row->most)
		return;
	if (row->most >= INT32_MAX && row->least > -NUMBERS)
		fault(f, v, "key-range", "expected %s or more", ap_format_double(row->least, least));
	else
		fault(f, v, "key-range", "expected a number from %s to %s",
			ap_format_double(row->least, least), ap_format_double(row->most, most));
}

static void check_object(struct forming *f, const struct ap_jv *v, ap_id row);

static void check_value(struct forming *f, const struct ap_jv *v, ap_id at)
{
	const struct ap_plan_key *row = &rows[at];

	switch (row->form) {
	case AP_PLAN_OBJECT:
		if (ap_jv_type(v) == AP_JOBJECT)
			check_object(f, v, at);
		else
			fault(f, v, "key-type", "expected an object");
		break;
	case AP_PLAN_TEXT:
	case AP_PLAN_WORD:
	case AP_PLAN_HASH:
	case AP_PLAN_VERSION:
		check_text(f, row, v);
		break;
	case AP_PLAN_BOOL:
		if (ap_jv_type(v) != AP_JBOOL)
			fault(f, v, "key-type", "expected true or false");
		break;
	case AP_PLAN_INT:
	case AP_PLAN_NUM:
		check_number(f, row, v);
		break;
	case AP_PLAN_SETTINGS:
		if (ap_jv_type(v) != AP_JOBJECT)
			fault(f, v, "key-type", "expected an object");
		break;
	}
}

/* Checks values in lists nested as deep as the row states. */
static void check_lists(struct forming *f, const struct ap_jv *v, ap_id at, int nested)
{
	int depth = rows[at].depth;

	if (f->nfault >= MOST_FAULTS)
		return;
	if (nested == depth || (depth == 3 && nested == 2 && ap_jv_type(v) != AP_JARRAY)) {
		check_value(f, v, at);
		return;
	}
	if (ap_jv_type(v) != AP_JARRAY) {
		fault(f, v, "key-type", "expected a list");
		return;
	}
	for (const struct ap_jv *e = ap_jv_first(v); e; e = ap_jv_next(e))
		check_lists(f, e, at, nested + 1);
}

/* Warns of unknown keys, suggesting the nearest known one. */
static void warn_unknown(struct forming *f, const struct ap_jv *obj, ap_id parent)
{
	const char *known[MOST_CHILDREN + 1];
	size_t n = 0;

	for (ap_id i = f->keys->first[parent]; i != AP_NONE && n < MOST_CHILDREN; i = f->keys->next[i])
		known[n++] = f->keys->key[i];
	known[n] = NULL;
	(void)ap_json_known(f->ctx, f->doc, obj, known);
}

static int compare_versions(const char *a, const char *b)
{
	for (int part = 0; part < 3; part++) {
		long x = strtol(a, (char **)&a, 10), y = strtol(b, (char **)&b, 10);

		if (x != y)
			return x < y ? -1 : 1;
		a += *a == '.';
		b += *b == '.';
	}
	return 0;
}

/* The version that introduced the key; NULL: the first. */
static const char *since(const struct ap_plan_key *row)
{
	for (size_t i = 0; i < AP_COUNT(younger); i++)
		if (!strcmp(younger[i].path, row->path))
			return younger[i].version;
	return NULL;
}

/* Was the plan written before the key was introduced? */
static bool is_older(const struct forming *f, const struct ap_plan_key *row)
{
	return f->version && since(row) && compare_versions(f->version, since(row)) < 0;
}

static void check_object(struct forming *f, const struct ap_jv *obj, ap_id parent)
{
	ap_id first = f->keys->first[parent], last = AP_NONE;
	bool unknown = false;
	uint64_t seen = 0;
	int n = 0;

	for (const struct ap_jv *v = ap_jv_first(obj); v && f->nfault < MOST_FAULTS; v = ap_jv_next(v)) {
		ap_id at = ap_plan_keys_find(f->keys, parent, ap_jv_key(v), last);

		unknown |= at == AP_NONE;
		if (at == AP_NONE)
			continue;
		last = at;
		n = 0;
		for (ap_id i = first; i != at; i = f->keys->next[i])
			n++;
		seen |= UINT64_C(1) << n;
		if (rows[at].need != AP_PLAN_NULLABLE || ap_jv_type(v) != AP_JNULL)
			check_lists(f, v, at, 0);
	}
	if (unknown)
		warn_unknown(f, obj, parent);
	n = 0;
	for (ap_id i = first; i != AP_NONE; i = f->keys->next[i], n++)
		if (!(seen >> n & 1) && rows[i].need != AP_PLAN_MAY && !is_older(f, &rows[i]))
			fault(f, obj, "key-missing", "no key \"%s\"", f->keys->key[i]);
}

static const char *version_of(const struct ap_jv *root)
{
	const struct ap_jv *tool = ap_jv_type(root) == AP_JOBJECT ? ap_jv_get(root, "tool") : NULL, *v;

	v = tool && ap_jv_type(tool) == AP_JOBJECT ? ap_jv_get(tool, "version") : NULL;
	return v && ap_jv_type(v) == AP_JSTRING && is_version(ap_jv_str(v)) ? ap_jv_str(v) : NULL;
}

enum ap_status ap_plan_form_check(struct ap_ctx *ctx, const struct ap_json *doc)
{
	struct forming f = {.ctx = ctx, .doc = doc, .keys = ap_plan_keys_make(ctx)};
	const struct ap_jv *root = ap_json_root(doc);

	f.version = version_of(root);
	if (ap_jv_type(root) == AP_JOBJECT)
		check_object(&f, root, ROWS);
	else
		fault(&f, root, "key-type", "expected an object");
	return f.nfault ? AP_MEANING : AP_OK;
}

/* ---- the form as a JSON Schema ---- */

static void write_limit(struct ap_jw *w, const char *key, double limit)
{
	if (fabs(limit) < NUMBERS && limit < (double)INT64_MAX)
		ap_jw_knum(w, key, limit);
}

static void write_object(struct ap_jw *w, const struct ap_plan_keys *k, ap_id parent);

/* Writes the schema of a value without its enclosing lists. */
static void write_value(struct ap_jw *w, const struct ap_plan_keys *k, ap_id at)
{
	static const char *const types[] = {[AP_PLAN_OBJECT] = "object", [AP_PLAN_TEXT] = "string",
		[AP_PLAN_HASH] = "string", [AP_PLAN_VERSION] = "string", [AP_PLAN_BOOL] = "boolean",
		[AP_PLAN_INT] = "integer", [AP_PLAN_NUM] = "number", [AP_PLAN_SETTINGS] = "object"};
	const struct ap_plan_key *row = &rows[at];
	char buf[MOST_WORD];
	const char *word;

	if (row->form == AP_PLAN_WORD) {
		ap_jw_karr_flat(w, "enum");
		for (size_t i = 0; (word = word_at(row->names, i, buf)); i++)
			ap_jw_str(w, word);
		ap_jw_end(w);
	} else {
		ap_jw_kstr(w, "type", types[row->form]);
	}
	if (row->form == AP_PLAN_OBJECT)
		write_object(w, k, at);
	if (row->form == AP_PLAN_HASH)
		ap_jw_kstr(w, "pattern", "^[0-9a-f]{64}$");
	if (row->form == AP_PLAN_VERSION)
		ap_jw_kstr(w, "pattern", "^[0-9]+\\.[0-9]+\\.[0-9]+($|[-+])");
	if (row->form == AP_PLAN_INT || row->form == AP_PLAN_NUM) {
		write_limit(w, "minimum", row->least);
		write_limit(w, "maximum", row->most);
	}
}

static void write_lists(struct ap_jw *w, const struct ap_plan_keys *k, ap_id at, int nested)
{
	int depth = rows[at].depth;

	if (nested == depth) {
		write_value(w, k, at);
	} else if (depth == 3 && nested == 2) { /* a value, or a list of them */
		ap_jw_kraw(w, "type", "[\"integer\", \"array\"]");
		write_limit(w, "minimum", rows[at].least);
		ap_jw_kobj(w, "items");
		write_value(w, k, at);
		ap_jw_end(w);
	} else {
		ap_jw_kstr(w, "type", "array");
		ap_jw_kobj(w, "items");
		write_lists(w, k, at, nested + 1);
		ap_jw_end(w);
	}
}

static void write_object(struct ap_jw *w, const struct ap_plan_keys *k, ap_id parent)
{
	ap_jw_kobj(w, "properties");
	for (ap_id i = k->first[parent]; i != AP_NONE; i = k->next[i]) {
		static const char *const units[] = {[AP_PLAN_S] = "seconds", [AP_PLAN_PER_S] = "per second",
			[AP_PLAN_BYTES] = "bytes", [AP_PLAN_BYTES_PER_S] = "bytes per second",
			[AP_PLAN_SHARE] = "of 1"};
		const char *unit = units[ap_plan_unit_of(k->key[i])], *version = since(&rows[i]);

		ap_jw_kobj(w, k->key[i]);
		if (unit)
			ap_jw_kstr(w, "description", unit);
		if (version)
			ap_jw_kstr(w, "$comment", version);
		if (rows[i].need == AP_PLAN_NULLABLE) {
			ap_jw_karr(w, "anyOf");
			ap_jw_raw(w, "{\"type\": \"null\"}");
			ap_jw_obj(w);
		}
		write_lists(w, k, i, 0);
		if (rows[i].need == AP_PLAN_NULLABLE) {
			ap_jw_end(w);
			ap_jw_end(w);
		}
		ap_jw_end(w);
	}
	ap_jw_end(w);
	ap_jw_karr_flat(w, "required");
	for (ap_id i = k->first[parent]; i != AP_NONE; i = k->next[i])
		if (rows[i].need != AP_PLAN_MAY && !since(&rows[i]))
			ap_jw_str(w, k->key[i]);
	ap_jw_end(w);
}

void ap_plan_form_schema(struct ap_ctx *ctx, struct ap_jw *w)
{
	ap_jw_obj(w);
	ap_jw_kstr(w, "$schema", "http://json-schema.org/draft-07/schema#");
	ap_jw_kstr(w, "title", "autopar-plan/1");
	ap_jw_kstr(w, "type", "object");
	write_object(w, ap_plan_keys_make(ctx), ROWS);
	ap_jw_end(w);
	ap_jw_finish(w);
}
