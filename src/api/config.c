/* SPDX-License-Identifier: Apache-2.0 */
#include "api/config.h"

#include <inttypes.h>
#include <string.h>

#include "api/launch.h"
#include "api/settle.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/str.h"
#include "model/hf.h"

enum { MAX_NESTING = 8 }; /* of a value; no setting needs more than three */

struct reader { /* a reader of a JSON document of settings */
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	unsigned uses; /* settings for other commands are only checked */
	struct ap_settings *into;
	enum ap_origin origin;
};

static void fault(const struct reader *r, const struct ap_jv *v, const char *name, const char *check,
	const char *text)
{
	if (r->origin == AP_FROM_OPTION)
		(void)ap_diag_add(r->ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: %s", name, text);
	else
		(void)ap_json_report(r->ctx, r->doc, v, AP_ERROR, AP_MEANING, NULL, check, "%s",
			text);
}

/* The value as JSON text; NULL if it is nested deeper than any setting. */
static const char *json_text(const struct reader *r, const struct ap_jv *v)
{
	struct ap_str s;
	struct ap_jw w;

	if (!ap_jv_is_shallow(v, MAX_NESTING))
		return NULL;
	ap_str_init(&s, r->ctx->arena);
	ap_jw_str_init(&w, &s, 0);
	ap_jw_value(&w, r->doc, v);
	return s.s;
}

static const char *number_text(const struct reader *r, const struct ap_jv *v, enum ap_setting_type type)
{
	int64_t i;
	char buf[32];

	if (type == AP_SET_NUM || type == AP_SET_PRICE)
		return ap_arena_strdup(r->ctx->arena, ap_format_double(ap_jv_double(v), buf));
	if (type == AP_SET_FLAG || type > AP_SET_CHOICE || !ap_jv_int(r->doc, v, &i))
		return NULL;
	return ap_arena_printf(r->ctx->arena, "%" PRId64, i);
}

/* Adds "13,5", of numbers. False: v is no list of numbers. */
static bool add_row(const struct reader *r, const struct ap_jv *v, struct ap_str *out)
{
	bool any = false;
	int64_t n;

	for (const struct ap_jv *e = ap_jv_first(v); e; e = ap_jv_next(e), any = true) {
		if (ap_jv_type(e) != AP_JNUMBER || !ap_jv_int(r->doc, e, &n) || n < 0)
			return false;
		ap_str_addf(out, "%s%" PRId64, any ? "," : "", n);
	}
	return any;
}

/* {"full": [[2, 1], [1, 0]], "mlp": true, "uniform": 4} as "full:2,1/1,0,mlp,uniform:4"; a word that is
 * false is left out, and all are beside full, which holds them: here they are no alternatives. NULL: other
 * values are in it. */
static const char *counts_text(const struct reader *r, const struct ap_jv *v)
{
	struct ap_str s;
	bool full = false;

	ap_str_init(&s, r->ctx->arena);
	for (const struct ap_jv *m = ap_jv_first(v); m; m = ap_jv_next(m)) {
		bool rows = ap_jv_type(m) == AP_JARRAY && ap_jv_type(ap_jv_first(m)) == AP_JARRAY;
		int64_t n;

		if (ap_jv_type(m) == AP_JBOOL && (!ap_jv_bool(m) || !strcmp(ap_jv_key(m), "none")))
			continue;
		full |= ap_jv_type(m) == AP_JBOOL && !strcmp(ap_jv_key(m), "full");
		ap_str_addf(&s, "%s%s", s.len ? "," : "", ap_jv_key(m));
		if (ap_jv_type(m) == AP_JBOOL)
			continue;
		ap_str_addc(&s, ':');
		if (ap_jv_type(m) == AP_JNUMBER && ap_jv_int(r->doc, m, &n) && n >= 0) {
			ap_str_addf(&s, "%" PRId64, n);
			continue;
		}
		if (ap_jv_type(m) != AP_JARRAY || (!rows && !add_row(r, m, &s)))
			return NULL;
		for (const struct ap_jv *e = rows ? ap_jv_first(m) : NULL; e; e = ap_jv_next(e)) {
			if (e != ap_jv_first(m))
				ap_str_addc(&s, '/');
			if (ap_jv_type(e) != AP_JARRAY || !add_row(r, e, &s))
				return NULL;
		}
	}
	return full ? "full" : s.len ? s.s : "none";
}

/* [1, 2, "4..16"] as "1,2,4..16"; NULL if other values are in it. */
static const char *several_text(const struct reader *r, const struct ap_jv *v)
{
	struct ap_str s;

	ap_str_init(&s, r->ctx->arena);
	for (const struct ap_jv *e = ap_jv_first(v); e; e = ap_jv_next(e)) {
		const char *text = ap_jv_type(e) == AP_JSTRING ? ap_jv_str(e)
			: ap_jv_type(e) == AP_JNUMBER ? number_text(r, e, AP_SET_INT) : NULL;

		if (!text)
			return NULL;
		ap_str_addf(&s, "%s%s", e == ap_jv_first(v) ? "" : ",", text);
	}
	return s.s;
}

/* A member's value as an option's text; NULL if its type is wrong. */
static const char *value_text(const struct reader *r, const struct ap_jv *v,
	const struct ap_setting_row *row)
{
	enum ap_setting_type type = row->type;
	enum ap_range range;
	bool several = ap_setting_takes_several(row, &range);

	switch (ap_jv_type(v)) {
	case AP_JBOOL:
		return !ap_setting_is_switch(row) ? NULL : ap_jv_bool(v) ? "true" : "false";
	case AP_JNUMBER:
		return number_text(r, v, type);
	case AP_JSTRING:
		return type >= AP_SET_SIZE || several ? ap_jv_str(v) : NULL;
	case AP_JARRAY:
		if (type == AP_SET_TEXTS || type == AP_SET_COUNTS) {
			struct ap_str s;

			/* An array of strings becomes text with commas; NULL for any other
			 * array. */
			ap_str_init(&s, r->ctx->arena);
			for (const struct ap_jv *e = ap_jv_first(v); e; e = ap_jv_next(e)) {
				if (ap_jv_type(e) != AP_JSTRING)
					return NULL;
				ap_str_addf(&s, "%s%s", s.len ? "," : "", ap_jv_str(e));
			}
			return s.s;
		}
		if (several && type <= AP_SET_CHOICE)
			return several_text(r, v);
		return type == AP_SET_INTS || type == AP_SET_SERIES || type == AP_SET_LISTS ||
			type == AP_SET_PRICE ? json_text(r, v) : NULL;
	case AP_JOBJECT:
		return type == AP_SET_COUNTS ? counts_text(r, v)
			: type == AP_SET_DICT ? json_text(r, v) : NULL;
	case AP_JNULL:
		break;
	}
	return NULL;
}

static void set_text(const struct reader *r, const struct ap_jv *v, const struct ap_setting_row *row,
	const char *name, const char *text)
{
	struct ap_settings other = *r->into;
	const char *why;

	if (!ap_setting_give(r->ctx->arena, row, row->uses & r->uses ? r->into : &other, text, r->origin,
		    name, &why))
		fault(r, v, name, "key-range", why);
}

static void set_value(const struct reader *r, const struct ap_jv *v, const struct ap_setting_row *row,
	const char *name)
{
	const char *text = value_text(r, v, row);

	if (text)
		set_text(r, v, row, name, text);
	else
		fault(r, v, name, "key-type", ap_arena_printf(r->ctx->arena,
			"wrong type of value; expected %s", ap_setting_expects(r->ctx->arena, row)));
}

static const char *members_text(struct ap_arena *arena, const char *path)
{
	const struct ap_member_spelling *m;
	struct ap_str s;

	ap_str_init(&s, arena);
	for (size_t i = 0; (m = ap_member_spelling_at(i)); i++)
		if (!strcmp(m->path, path))
			ap_str_addf(&s, "%s%s", s.len ? ", " : "", m->key);
	for (size_t i = 0, len = strlen(path); ap_object_spelling_at(i); i++) {
		const char *sub = ap_object_spelling_at(i)->path;

		if (!strncmp(sub, path, len) && sub[len] == '.')
			ap_str_addf(&s, "%s%s", s.len ? ", " : "", sub + len + 1);
	}
	return s.s;
}

/* Sets the setting of member v. If v is an object itself, returns it with its *path and *name. */
static const struct ap_object_spelling *set_member(const struct reader *r, const struct ap_jv *v,
	const char **path, const char **name)
{
	struct ap_arena *arena = r->ctx->arena;
	const char *key = ap_jv_key(v);
	const char *inner = ap_arena_printf(arena, "%s.%s", *path, key);
	const struct ap_setting_row *row = ap_member_spelling_of(*path, key);
	const struct ap_object_spelling *sub = ap_object_spelling_of(inner);

	if (row)
		set_value(r, v, row, ap_arena_printf(arena, "%s.%s", *name, key));
	else if (!sub)
		fault(r, v, *name, "key-unknown", ap_arena_printf(arena,
			"no member \"%s\" is known here; expected one of %s",
			ap_diag_name(r->ctx->diag, key), members_text(arena, *path)));
	*path = inner;
	*name = ap_arena_printf(arena, "%s.%s", *name, key);
	return row ? NULL : sub;
}

static void set_object(const struct reader *r, const struct ap_jv *v,
	const struct ap_object_spelling *object, const char *name)
{
	const struct ap_setting_row *also = object->also != AP_SET_COUNT ? ap_setting_at(object->also) : NULL;

	if (ap_jv_type(v) == AP_JBOOL && also) {
		set_value(r, v, also, name);
		return;
	}
	if (ap_jv_type(v) != AP_JOBJECT) {
		fault(r, v, name, "key-type", also
			? "wrong type of value; expected an object, true or false"
			: "wrong type of value; expected an object");
		return;
	}
	if (also)
		set_text(r, v, also, name, "true");
	for (const struct ap_jv *m = ap_jv_first(v); m; m = ap_jv_next(m)) {
		const char *path = object->path, *inner = name;
		const struct ap_object_spelling *sub = set_member(r, m, &path, &inner);

		if (sub)
			set_object(r, m, sub, inner);
	}
}

static void consider(const char *word, const char *candidate, const char **best, int *nearest)
{
	int d = ap_str_distance(word, candidate, *nearest - 1);

	if (d < *nearest) {
		*nearest = d;
		*best = candidate;
	}
}

static void unknown_key(const struct reader *r, const struct ap_jv *v)
{
	const char *best = NULL, *key = ap_jv_key(v), *alias;
	enum ap_setting_id id;
	int nearest = 3;

	for (int i = 0; i < AP_SET_COUNT; i++)
		if (ap_setting_at(i)->group != AP_GROUP_GENERAL)
			consider(key, ap_setting_at(i)->key, &best, &nearest);
	for (size_t i = 0; (alias = ap_setting_alias_at(i, &id)); i++)
		consider(key, alias, &best, &nearest);
	for (size_t i = 0; ap_object_spelling_at(i); i++)
		consider(key, ap_object_spelling_at(i)->path, &best, &nearest);
	(void)ap_json_report(r->ctx, r->doc, v, AP_ERROR, AP_MEANING, NULL, "key-unknown",
		"no such setting; %s%s%s", best ? "did you mean \"" : "see `autopar-plan list ",
		best ? best : "settings`", best ? "\"?" : "");
}

static enum ap_status is_object(struct ap_ctx *ctx, const struct ap_json *doc)
{
	const struct ap_jv *root = ap_json_root(doc);

	if (ap_jv_type(root) == AP_JOBJECT)
		return AP_OK;
	return ap_json_report(ctx, doc, root, AP_ERROR, AP_MEANING, NULL, "key-type",
		"expected an object of settings");
}

static enum ap_status read_object(struct ap_ctx *ctx, const char *path, struct ap_json **doc)
{
	char *text;
	size_t len;

	AP_TRY(ap_file_read(ctx, path, AP_FILE_MAX_BYTES, &text, &len));
	AP_TRY(ap_json_parse(ctx, path, text, len, 0, doc));
	return is_object(ctx, *doc);
}

static void set_keys(struct ap_ctx *ctx, const struct ap_json *doc, unsigned uses, struct ap_settings *into)
{
	const struct reader r = {.ctx = ctx, .doc = doc, .uses = uses, .into = into,
		.origin = AP_FROM_CONFIG};

	for (const struct ap_jv *v = ap_jv_first(ap_json_root(doc)); v; v = ap_jv_next(v)) {
		const char *key = ap_jv_key(v);
		const struct ap_setting_row *row = ap_setting_of_key(key);
		const struct ap_object_spelling *object = ap_object_spelling_of(key);

		if (object && (!row || ap_jv_type(v) == AP_JOBJECT))
			set_object(&r, v, object, object->path);
		else if (row && row->group != AP_GROUP_GENERAL)
			set_value(&r, v, row, key);
		else
			unknown_key(&r, v);
	}
}

enum ap_status ap_config_set(struct ap_ctx *ctx, const struct ap_json *doc, unsigned uses,
	struct ap_settings *into)
{
	AP_TRY(is_object(ctx, doc));
	set_keys(ctx, doc, uses, into);
	return ap_diag_status(ctx->diag);
}

enum ap_status ap_config_load(struct ap_ctx *ctx, const char *path, unsigned uses, struct ap_settings *into)
{
	enum ap_launch_language language;
	struct ap_json *doc;
	char *text;
	size_t len;

	AP_TRY(ap_file_read(ctx, path, AP_FILE_MAX_BYTES, &text, &len));
	language = ap_launch_language(text, len);
	if (language != AP_LAUNCH_NONE) {
		AP_TRY(ap_launch_settings(ctx, language, path, text, len, &doc));
		return ap_config_set(ctx, doc, uses, into);
	}
	AP_TRY(ap_json_parse(ctx, path, text, len, 0, &doc));
	AP_TRY(is_object(ctx, doc));
	if (ap_hf_is_one(ap_json_root(doc)))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, &(struct ap_where){.file = path}, NULL,
			"is a model's configuration, which is given in place of GRAPH; expected settings");
	return ap_config_set(ctx, doc, uses, into);
}

/* The names of files in a value of row, which may be several, as they are called from outside of folder. */
static const char *value_beside(struct ap_arena *arena, const struct ap_setting_row *row, const char *folder,
	const char *text)
{
	struct ap_str s;

	if (!*folder || (row->type != AP_SET_INPUT && row->type != AP_SET_TEXT))
		return text;
	ap_str_init(&s, arena);
	for (const char *word = text; word; word = *word ? word + 1 : NULL) {
		size_t len = row->type == AP_SET_INPUT ? strlen(word) : strcspn(word, ",");
		const char *name = ap_arena_strndup(arena, word, len);
		bool file = row->type == AP_SET_INPUT || ap_file_suffix(name, ".json");

		ap_str_addf(&s, "%s%s%s", s.len ? "," : "", file && *name != '/' ? folder : "", name);
		word += len;
	}
	return s.s;
}

static const char *sites_text(struct ap_arena *arena)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	for (size_t i = 0; ap_setting_of_site(i) != AP_SET_COUNT; i++)
		ap_str_addf(&s, "%s%s", i ? ", " : "", ap_setting_at(ap_setting_of_site(i))->key);
	return s.s;
}

/* Says what was taken, as it is in no command that somebody sees. */
static void note_site(struct ap_ctx *ctx, const char *path, const struct ap_settings *s)
{
	struct ap_str list;

	ap_str_init(&list, ctx->arena);
	for (size_t i = 0; ap_setting_of_site(i) != AP_SET_COUNT; i++) {
		enum ap_setting_id id = ap_setting_of_site(i);

		if (s->origin[id] == AP_FROM_SITE)
			ap_str_addf(&list, "%s%s %s", list.len ? ", " : "", ap_setting_at(id)->key,
				ap_setting_text(ctx->arena, ap_setting_at(id), s));
	}
	if (list.len)
		(void)ap_diag_add(ctx->diag, AP_NOTE, AP_OK, &(struct ap_where){.file = path}, NULL,
			"defaults of this site: %s; --no-site-defaults leaves them out", list.s);
}

enum ap_status ap_config_site(struct ap_ctx *ctx, const char *path, unsigned uses, struct ap_settings *into,
	bool *is_one)
{
	struct reader r = {.ctx = ctx, .uses = uses, .into = into, .origin = AP_FROM_SITE};
	const char *slash = strrchr(path, '/');
	const char *folder = ap_arena_strndup(ctx->arena, path, slash ? (size_t)(slash - path) + 1 : 0);
	struct ap_json *doc;

	AP_TRY(read_object(ctx, path, &doc));
	r.doc = doc;
	*is_one = !ap_jv_get(ap_json_root(doc), "schema");
	if (!*is_one)
		return AP_OK;
	for (const struct ap_jv *v = ap_jv_first(ap_json_root(doc)); v; v = ap_jv_next(v)) {
		const struct ap_setting_row *row = ap_setting_of_key(ap_jv_key(v));
		const char *name = ap_arena_printf(ctx->arena, "%s:%s", path, ap_jv_key(v)), *value;
		bool known = false;

		for (size_t i = 0; row && ap_setting_of_site(i) != AP_SET_COUNT; i++)
			known |= row == ap_setting_at(ap_setting_of_site(i));
		if (!known)
			fault(&r, v, name, "key-unknown", ap_arena_printf(ctx->arena,
				"of this a site has no default; expected %s", sites_text(ctx->arena)));
		else if (!(value = value_text(&r, v, row)))
			set_value(&r, v, row, name);
		else
			set_text(&r, v, row, name, value_beside(ctx->arena, row, folder, value));
	}
	note_site(ctx, path, into);
	return ap_diag_status(ctx->diag);
}

bool ap_config_is_one(const struct ap_jv *root)
{
	const struct ap_jv *v = ap_jv_type(root) == AP_JOBJECT ? ap_jv_first(root) : NULL;

	for (; v; v = ap_jv_next(v)) {
		const struct ap_setting_row *row = ap_setting_of_key(ap_jv_key(v));

		if (row ? row->group != AP_GROUP_GENERAL : ap_object_spelling_of(ap_jv_key(v)) != NULL)
			return true;
	}
	return false;
}

enum ap_status ap_config_check(struct ap_ctx *ctx, const struct ap_json *doc)
{
	size_t before = ap_diag_count(ctx->diag, AP_ERROR);
	struct ap_ctx own = ap_diag_apart(ctx);
	struct ap_settings given;
	enum ap_level level;
	const char *text;

	AP_TRY(is_object(ctx, doc));
	ap_settings_init(&given);
	set_keys(ctx, doc, AP_FOR_ALL, &given);
	if (ap_diag_count(ctx->diag, AP_ERROR) > before)
		return AP_MEANING;
	(void)ap_settings_settle(&own, &given, AP_FOR_search);
	for (size_t i = 0; (text = ap_diag_text(own.diag, i, &level, NULL)); i++)
		(void)ap_json_report(ctx, doc, ap_json_root(doc), level,
			level == AP_ERROR ? AP_MEANING : AP_OK, NULL, NULL, "%s", text);
	return ap_diag_count(ctx->diag, AP_ERROR) > before ? AP_MEANING : AP_OK;
}

enum ap_status ap_config_speed_up(struct ap_ctx *ctx, const char *path, unsigned uses,
	struct ap_settings *into)
{
	static const char object[] = "parallel_speed_up";
	struct reader r = {.ctx = ctx, .uses = uses, .into = into, .origin = AP_FROM_CONFIG};
	struct ap_json *doc;

	AP_TRY(read_object(ctx, path, &doc));
	r.doc = doc;
	set_object(&r, ap_json_root(doc), ap_object_spelling_of(object), object);
	return ap_diag_status(ctx->diag);
}

enum ap_status ap_config_echo(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *settings,
	unsigned uses, struct ap_settings *into)
{
	const struct reader r = {.ctx = ctx, .doc = doc, .uses = uses, .into = into,
		.origin = AP_FROM_ENVIRONMENT};

	for (const struct ap_jv *v = ap_jv_first(settings); v; v = ap_jv_next(v)) {
		const struct ap_setting_row *row = ap_setting_of_key(ap_jv_key(v));

		if (row && row->group <= AP_GROUP_SEARCH && ap_jv_type(v) != AP_JNULL)
			set_value(&r, v, row, row->key);
	}
	return ap_diag_status(ctx->diag);
}

void ap_config_option(struct ap_ctx *ctx, const char *name, const char *text,
	const struct ap_object_spelling *object, unsigned uses, struct ap_settings *into)
{
	struct reader r = {.ctx = ctx, .uses = uses, .into = into, .origin = AP_FROM_OPTION};
	struct ap_ctx own = ap_diag_apart(ctx);
	struct ap_json *doc;

	if (ap_json_parse(&own, name, text, strlen(text), 0, &doc) != AP_OK) {
		fault(&r, NULL, name, "", ap_arena_printf(ctx->arena, "the value is no JSON: %s",
			ap_diag_text(own.diag, 0, NULL, NULL)));
		return;
	}
	r.doc = doc;
	set_object(&r, ap_json_root(doc), object, name);
}
