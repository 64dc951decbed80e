/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"

enum {
	SEARCHER = AP_FOR_SEARCHER,
	EVALUATOR = AP_FOR_EVALUATOR,
	PLANNERS = AP_FOR_PLANNERS,
	CHECKER = AP_FOR_CHECKER,
	RENDERER = AP_FOR_RENDERER,
	CONVERTER = AP_FOR_CONVERTER,
	DIFFER = AP_FOR_DIFFER,
	SOLVER = AP_FOR_SOLVER,
	EVERY = AP_FOR_EVERY
};

static const struct ap_option rows[] = {
#define OPTION(f, c, t, d, lo, hi, n, m, g, v, h) \
	{#f, c, AP_OPT_##t, d, lo, hi, n, m, AP_GROUP_##g, v, h, offsetof(struct ap_options, f)},
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
	for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
		if (!strcmp(aliases[i].key, key))
			return &rows[aliases[i].id];
	return NULL;
}

const char *ap_option_spelling(struct ap_arena *arena, const char *dashes,
	const struct ap_option *row)
{
	char *name = ap_arena_printf(arena, "%s%s", dashes, row->key);

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
		return "a size of at least one byte, such as 64MB";
	case AP_OPT_CHOICE:
		return choices_text(arena, row->choices);
	case AP_OPT_TEXT:
		return "a name";
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
	const char *name;

	for (size_t i = 0; (name = row->choices(i)); i++) {
		if (!strcmp(name, text)) {
			*index = (int)i;
			return true;
		}
		if (*name == '!' && !strcmp(name + 1, text)) {
			*why = ap_arena_printf(arena, "\"%s\" is not supported; expected %s", text,
				ap_option_expects(arena, row));
			return false;
		}
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
	case AP_OPT_CHOICE:
		return set_choice(arena, row, text, field, why);
	case AP_OPT_TEXT:
	case AP_OPT_INPUT:
	case AP_OPT_OUTPUT:
		break;
	}
	*(const char **)field = text;
	return *text;
}

bool ap_option_set(struct ap_arena *arena, const struct ap_option *row, struct ap_options *o,
	const char *text, enum ap_origin origin, const char **why)
{
	*why = NULL;
	if (!set_value(arena, row, (char *)o + row->offset, text, why)) {
		if (!*why)
			*why = ap_arena_printf(arena, "\"%s\" is not accepted; expected %s", text,
				ap_option_expects(arena, row));
		return false;
	}
	o->origin[row - rows] = origin;
	return true;
}

const char *ap_option_path(const struct ap_option *row, const struct ap_options *o)
{
	assert(row->type >= AP_OPT_TEXT);
	return *(const char *const *)((const char *)o + row->offset);
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
		return *(const int64_t *)field
			? ap_arena_printf(arena, "%" PRId64, *(const int64_t *)field)
			: NULL;
	case AP_OPT_NUM:
		return *(const double *)field >= 0
			? ap_arena_strdup(arena, ap_format_double(*(const double *)field, buf))
			: NULL;
	case AP_OPT_CHOICE:
		return *(const int *)field >= 0 ? row->choices((size_t)*(const int *)field) : NULL;
	case AP_OPT_TEXT:
	case AP_OPT_INPUT:
	case AP_OPT_OUTPUT:
		break;
	}
	return ap_option_path(row, o);
}

const char *ap_option_json(struct ap_arena *arena, const struct ap_option *row,
	const struct ap_options *o)
{
	const char *text = ap_option_text(arena, row, o);
	struct ap_str s;
	struct ap_jw w;

	if (!text)
		return "null";
	if (row->type < AP_OPT_CHOICE)
		return text;
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
