/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/spellings.h"

enum {
	SEARCHER = AP_FOR_SEARCHER,
	EVALUATOR = AP_FOR_EVALUATOR,
	PLANNERS = AP_FOR_PLANNERS,
	CHECKER = AP_FOR_CHECKER,
	IMPORTER = AP_FOR_IMPORTER,
	RENDERER = AP_FOR_RENDERER,
	CONVERTER = AP_FOR_CONVERTER,
	DIFFER = AP_FOR_DIFFER,
	SOLVER = AP_FOR_SOLVER,
	LISTER = AP_FOR_LISTER,
	EVERY = AP_FOR_EVERY
};

enum {
	PLAN = AP_ON_PLAN,
	COST = AP_ON_COST,
	MEMORY = AP_ON_MEMORY,
	FILES = AP_ON_FILES,
	NOTED = AP_ON_NOTED
};

static const struct ap_option rows[] = {
#define OPTION(f, c, t, d, lo, hi, n, m, g, ...) \
	{#f, c, AP_OPT_##t, d, lo, hi, n, m, AP_GROUP_##g, __VA_ARGS__, offsetof(struct ap_options, f)},
#define ALIAS(field, key)
#include "cli/options.def"
#undef OPTION
#undef ALIAS
};

static const struct {
	enum ap_opt_id id;
	const char *key;
} aliases[] = {
#define OPTION(...)
#define ALIAS(field, key) {AP_OPT_##field, key},
#include "cli/options.def"
#undef OPTION
#undef ALIAS
};

const struct ap_option *ap_option_at(enum ap_opt_id id)
{
	return &rows[id];
}

const struct ap_option *ap_option_of_key(const char *key)
{
	for (size_t i = 0; i < AP_OPT_COUNT; i++)
		if (!strcmp(rows[i].key, key))
			return &rows[i];
	for (size_t i = 0; i < AP_COUNT(aliases); i++)
		if (!strcmp(aliases[i].key, key))
			return &rows[aliases[i].id];
	return NULL;
}

const char *ap_option_alias_at(size_t i, enum ap_opt_id *id)
{
	if (i >= AP_COUNT(aliases))
		return NULL;
	*id = aliases[i].id;
	return aliases[i].key;
}

const char *ap_option_spelling(struct ap_arena *arena, const char *dashes,
	const struct ap_option *row)
{
	return ap_key_spelling(arena, dashes, row->key);
}

const char *ap_key_spelling(struct ap_arena *arena, const char *dashes, const char *key)
{
	char *name = ap_arena_printf(arena, "%s%s", dashes, key);

	for (char *c = name; *c; c++)
		if (*c == '_')
			*c = '-';
	return name;
}

static const char *choices_text(struct ap_arena *arena, ap_choice_fn *choices)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	ap_str_add(&s, "one of");
	for (size_t i = 0; choices(i); i++)
		if (*choices(i) != '!')
			ap_str_addf(&s, "%s %s", i ? "," : "", choices(i));
	return s.s;
}

const char *ap_option_expects(struct ap_arena *arena, const struct ap_option *row)
{
	switch (row->type) {
	case AP_OPT_FLAG:
		return "true or false";
	case AP_OPT_INT:
		return ap_arena_printf(arena, "an integer from %" PRId64 " to %" PRId64, row->least,
			row->most);
	case AP_OPT_NUM:
		return ap_arena_printf(arena, "a number from %" PRId64 " to %" PRId64, row->least,
			row->most);
	case AP_OPT_SIZE:
		return "a size of at least one byte, such as 64MB, 25GiB or 1.5T";
	case AP_OPT_INTS:
		return ap_arena_printf(arena, "integers from %" PRId64 " to %" PRId64
			", ascending, such as 20,35", row->least, row->most);
	case AP_OPT_CHOICE:
		return choices_text(arena, row->choices);
	case AP_OPT_TEXT:
		return strcmp(row->metavar, "LIST") ? "a name" : "a list such as dp=8,tp=4";
	case AP_OPT_TEXTS:
		return "a text, or several with commas between them";
	case AP_OPT_LISTS:
		return "a name, or lists such as [[8,1],[8]]";
	case AP_OPT_DICT:
		return "the name of a file, or a JSON object";
	case AP_OPT_FOLDER:
		return "the name of a folder";
	case AP_OPT_INPUT:
	case AP_OPT_OUTPUT:
		break;
	}
	return "the name of a file";
}

/* The index of text in a list. False, *why set, when it is none that can be had. */
static bool set_choice(struct ap_arena *arena, const struct ap_option *row, const char *text,
	int *index, const char **why)
{
	const char *name, *reason;

	for (size_t i = 0; (name = row->choices(i)); i++) {
		size_t len = strcspn(name, ":");

		if (!strcmp(name, text)) {
			*index = (int)i;
			return true;
		}
		if (*name != '!' || strlen(text) != len - 1 || strncmp(name + 1, text, len - 1) != 0)
			continue;
		reason = name + len;
		*why = ap_arena_printf(arena, "\"%s\" is not supported%s; expected %s", text, reason,
			ap_option_expects(arena, row));
		return false;
	}
	return false;
}

static bool set_flag(const char *text, bool *on)
{
	*on = !strcmp(text, "true");
	return *on || !strcmp(text, "false");
}

static bool set_num(const struct ap_option *row, const char *text, double *r)
{
	double v;

	if (!ap_parse_double(text, &v) || v < (double)row->least || v > (double)row->most)
		return false;
	*r = v;
	return true;
}

static bool set_size(const struct ap_option *row, const char *text, int64_t *r)
{
	int64_t v;

	if (!ap_parse_bytes(text, &v) || v < row->least)
		return false;
	*r = v;
	return true;
}

/* "20,35", with or without brackets around it; "[]" is the empty list. */
static bool set_ints(struct ap_arena *arena, const struct ap_option *row, const char *text,
	struct ap_ints *r)
{
	size_t len = strlen(text), n = 0;
	bool boxed = len >= 2 && text[0] == '[' && text[len - 1] == ']';
	char *copy = ap_arena_strndup(arena, text + boxed, len - (boxed ? 2 : 0)), *at = copy;
	int64_t *v = AP_NEW_N(arena, int64_t, len + 1);

	while (*at || (!boxed && at == copy)) {
		char *end = at + strcspn(at, ",");
		bool more = *end;

		*end = '\0';
		if (!ap_parse_int(at, row->least, row->most, &v[n]) || (n && v[n] <= v[n - 1]) ||
			(more && !end[1]))
			return false;
		n++;
		at = end + more;
	}
	*r = (struct ap_ints){n, v};
	return true;
}

static bool set_value(struct ap_arena *arena, const struct ap_option *row, void *field,
	const char *text, const char **why)
{
	switch (row->type) {
	case AP_OPT_FLAG:
		return set_flag(text, field);
	case AP_OPT_INT:
		return ap_parse_int(text, row->least, row->most, field);
	case AP_OPT_NUM:
		return set_num(row, text, field);
	case AP_OPT_SIZE:
		return set_size(row, text, field);
	case AP_OPT_INTS:
		return set_ints(arena, row, text, field);
	case AP_OPT_CHOICE:
		return set_choice(arena, row, text, field, why);
	case AP_OPT_TEXT:
	case AP_OPT_TEXTS:
	case AP_OPT_LISTS:
	case AP_OPT_DICT:
	case AP_OPT_INPUT:
	case AP_OPT_OUTPUT:
	case AP_OPT_FOLDER:
		break;
	}
	*(const char **)field = text;
	return *text;
}

bool ap_option_set(struct ap_arena *arena, const struct ap_option *row, struct ap_options *o,
	const char *text, enum ap_origin origin, const char *name, const char **why)
{
	*why = NULL;
	if (!set_value(arena, row, (char *)o + row->offset, text, why)) {
		if (!*why)
			*why = ap_arena_printf(arena, "\"%s\" is not accepted; expected %s", text,
				ap_option_expects(arena, row));
		return false;
	}
	o->origin[row - rows] = origin;
	o->name[row - rows] = name;
	return true;
}

bool ap_option_give(struct ap_arena *arena, const struct ap_option *row, struct ap_options *o,
	const char *text, enum ap_origin origin, const char *name, const char **why)
{
	const struct ap_value_spelling *other = ap_value_spelling_of(row, text);
	const char *before = ap_option_text(arena, row, o), *after;
	const struct ap_option *also = other && other->also != AP_OPT_COUNT ? &rows[other->also] : NULL;
	struct ap_options given = *o;
	enum ap_origin was = o->origin[row - rows];

	if (row->type == AP_OPT_TEXTS && was == origin && before) {
		text = ap_arena_printf(arena, "%s,%s", before, text);
		return ap_option_set(arena, row, o, text, origin, name, why);
	}
	if (!ap_option_set(arena, row, &given, other ? other->plain : text, origin, name, why))
		return false;
	after = ap_option_text(arena, row, &given);
	if (was == origin && strcmp(before ? before : "", after ? after : "") != 0) {
		*why = ap_arena_printf(arena, "\"%s\" contradicts %s, which says %s", text,
			o->name[row - rows], before ? before : "none");
		return false;
	}
	if (was < origin)
		*o = given;
	return !also || ap_option_give(arena, also, o, other->value, origin,
		ap_arena_printf(arena, "%s %s", name, text), why);
}

const char *ap_option_path(const struct ap_option *row, const struct ap_options *o)
{
	const char *text;

	assert(row->type >= AP_OPT_DICT);
	text = *(const char *const *)((const char *)o + row->offset);
	return text && row->type == AP_OPT_DICT && *text == '{' ? NULL : text;
}

static const char *ints_text(struct ap_arena *arena, const struct ap_ints *list)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	for (size_t i = 0; i < list->n; i++)
		ap_str_addf(&s, "%s%" PRId64, i ? "," : "", list->v[i]);
	return list->n ? s.s : NULL;
}

const char *ap_option_text(struct ap_arena *arena, const struct ap_option *row,
	const struct ap_options *o)
{
	const void *field = (const char *)o + row->offset;
	char buf[32];

	switch (row->type) {
	case AP_OPT_FLAG:
		return *(const bool *)field ? "true" : "false";
	case AP_OPT_INT:
	case AP_OPT_SIZE:
		return *(const int64_t *)field || row->otherwise
			? ap_arena_printf(arena, "%" PRId64, *(const int64_t *)field)
			: NULL;
	case AP_OPT_NUM:
		return *(const double *)field >= 0
			? ap_arena_strdup(arena, ap_format_double(*(const double *)field, buf))
			: NULL;
	case AP_OPT_INTS:
		return ints_text(arena, field);
	case AP_OPT_CHOICE:
		return *(const int *)field >= 0 ? row->choices((size_t)*(const int *)field) : NULL;
	case AP_OPT_TEXT:
	case AP_OPT_TEXTS:
	case AP_OPT_LISTS:
	case AP_OPT_DICT:
	case AP_OPT_INPUT:
	case AP_OPT_OUTPUT:
	case AP_OPT_FOLDER:
		break;
	}
	return *(const char *const *)field;
}

/* JSON without blanks between its values: text is well-formed. */
static const char *compact(struct ap_arena *arena, const char *text)
{
	char *copy = ap_arena_strdup(arena, text), *to = copy;
	bool in_string = false;

	for (const char *c = text; *c; c++) {
		if (*c == '"')
			in_string = !in_string;
		if (in_string && *c == '\\' && c[1])
			*to++ = *c++;
		if (in_string || !strchr(" \t\r\n", *c))
			*to++ = *c;
	}
	*to = '\0';
	return copy;
}

const char *ap_option_json(struct ap_arena *arena, const struct ap_option *row,
	const struct ap_options *o)
{
	const char *text = ap_option_text(arena, row, o);
	struct ap_str s;
	struct ap_jw w;

	if (!text)
		return "null";
	if (row->type < AP_OPT_INTS)
		return text;
	if (row->type == AP_OPT_INTS)
		return ap_arena_printf(arena, "[%s]", text);
	if ((row->type == AP_OPT_LISTS && *text == '[') || (row->type == AP_OPT_DICT && *text == '{'))
		return compact(arena, text);
	ap_str_init(&s, arena);
	ap_jw_str_init(&w, &s, 0);
	ap_jw_str(&w, text);
	return s.s;
}

void ap_options_init(struct ap_options *o)
{
	memset(o, 0, sizeof *o);
	for (size_t i = 0; i < AP_OPT_COUNT; i++) {
		const struct ap_option *row = &rows[i];
		void *field = (char *)o + row->offset;
		const char *why = NULL;
		bool ok = true;

		if (row->otherwise)
			ok = set_value(NULL, row, field, row->otherwise, &why);
		else if (row->type == AP_OPT_NUM)
			*(double *)field = -1;
		else if (row->type == AP_OPT_CHOICE)
			*(int *)field = -1;
		assert(ok);
		(void)ok;
	}
}
