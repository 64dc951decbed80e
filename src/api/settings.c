/* SPDX-License-Identifier: Apache-2.0 */
#include "api/settings.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/choices.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/float8.h"
#include "cost/optimizer.h"
#include "diff/diff_write.h"
#include "draw/picture_view.h"
#include "model/families.h"
#include "model/hf.h"
#include "pipeline/schedule.h"
#include "report/trace.h"
#include "route/route.h"
#include "search/engine.h"
#include "shard/recompute_parse.h"
#include "shard/step.h"

/* ---- choices ---- */

#define WORD(name, word) word,
#define WORDS(of, ...) \
	static const char *choose_##of(size_t i) \
	{ \
		static const char *const words[] = {__VA_ARGS__}; \
		return i < AP_COUNT(words) ? words[i] : NULL; \
	}
WORDS(color, AP_COLORS(WORD))
WORDS(parallel_mode, AP_MODES(WORD))
WORDS(fusion, AP_FUSES(WORD))
WORDS(fusion_size, "auto", "size", "!index: MindSpore has it for AllReduces alone")
WORDS(run_phase, AP_RUN_PHASES(WORD))
WORDS(fp8_format, AP_FP8S(WORD))
WORDS(dispatcher, AP_DISPATCHERS(WORD) "!flex: deepep says what Megatron's flex does with DeepEP",
	"!allgather: tokens are sent to the ranks of their experts alone")
WORDS(unknown_operators, AP_UNKNOWNS(WORD))
WORDS(optimizer_level, AP_LEVELS(WORD))
WORDS(communi, "all_group_parallel", "same_server_group_parallel", "no_group_parallel")
WORDS(context_mode, "graph", "!pynative: nothing runs in parallel in it")
WORDS(device_target, "Ascend", "GPU", "CPU")
WORDS(attention, AP_ATTENTIONS(WORD))
WORDS(kernels, AP_KERNELS(WORD))
#define NARROW ": what is kept and updated has 16 bits; --fp8-format says that products run in 8"
WORDS(dtype, "float16", "bfloat16", "float32", "!float8_e4m3fn" NARROW, "!float8_e5m2" NARROW)
WORDS(master_dtype, "none", "float32")
#undef NARROW
WORDS(detail, [AP_PIC_FOLD] = "fold", [AP_PIC_FULL] = "full")
WORDS(progress, [AP_PROGRESS_NONE] = "false", [AP_PROGRESS_SHOWN] = "true", [AP_PROGRESS_JSON] = "json")
WORDS(trace_detail, [AP_TRACE_BRIEF] = "brief", [AP_TRACE_FULL] = "full")

/* The names of a table's rows. */
#define NAMES(of, row_at) \
	static const char *choose_##of(size_t i) \
	{ \
		return row_at(i) ? row_at(i)->name : NULL; \
	}
NAMES(executor, ap_route_at)
NAMES(format, ap_diff_writer_at)
NAMES(fp8_recipe, ap_float8_recipe_at)
NAMES(optimizer, ap_optimizer_at)

#define choose_activation ap_model_activation_name
#define choose_loss ap_model_loss_name
#define choose_names ap_hf_names_at

static const char *choose_scheduler(size_t i)
{
#define CHUNKS ": the sequence is not cut into chunks that follow one another"
	static const char *const others[] = {"!seqpipe" CHUNKS, "!seqvpp" CHUNKS, "!seqsmartvpp" CHUNKS};
#undef CHUNKS
	size_t rows = 0;

	while (ap_scheduler_at(rows))
		rows++;
	return i < rows ? ap_scheduler_at(i)->name : i - rows < AP_COUNT(others) ? others[i - rows] : NULL;
}

static const char *choose_search_mode(size_t i)
{
	size_t engines = 0;

	while (ap_engine_at(engines))
		engines++;
	return i < engines ? ap_engine_at(i)->name : i == engines ? "!integer_programming" : NULL;
}

/* ---- the rows ---- */

enum {
	SEARCHER = AP_FOR_search | AP_FOR_plan,
	MINIMIZER = AP_FOR_search,
	DECIDER = AP_FOR_plan,
	EVALUATOR = AP_FOR_evaluate,
	PLANNERS = AP_FOR_PLANNERS,
	CHECKER = AP_FOR_check | AP_FOR_explain, /* they hold plans against inputs */
	HOLDER = AP_FOR_check,
	EXPLAINER = AP_FOR_explain,
	IMPORTER = AP_FOR_import,
	RENDERER = AP_FOR_render,
	CONVERTER = AP_FOR_convert,
	DIFFER = AP_FOR_diff,
	SOLVER = AP_FOR_solve,
	LISTER = AP_FOR_list,
	MODELER = AP_FOR_model,
	SHOWER = AP_FOR_show,
	COMPARER = AP_FOR_compare,
	EVERY = AP_FOR_ALL
};

enum {
	PLAN = AP_ON_PLAN,
	COST = AP_ON_COST,
	MEMORY = AP_ON_MEMORY,
	FILES = AP_ON_FILES,
	NOTED = AP_ON_NOTED
};

static const struct ap_setting_row rows[] = {
#define SETTING(f, c, t, d, lo, hi, n, m, g, ...) \
	{#f, c, AP_SET_##t, d, lo, hi, n, m, AP_GROUP_##g, __VA_ARGS__, offsetof(struct ap_settings, f)},
#define ALIAS(field, key)
#define SEVERAL(field, range)
#define SITE(field)
#include "api/settings.def"
#undef SETTING
#undef ALIAS
#undef SEVERAL
#undef SITE
};

static const struct {
	enum ap_setting_id id;
	const char *key;
} aliases[] = {
#define SETTING(...)
#define ALIAS(field, key) {AP_SET_##field, key},
#define SEVERAL(field, range)
#define SITE(field)
#include "api/settings.def"
#undef ALIAS
#undef SEVERAL
#undef SITE
};

static const struct {
	enum ap_setting_id id;
	enum ap_range range;
} several[] = {
#define ALIAS(field, key)
#define SEVERAL(field, range) {AP_SET_##field, AP_RANGE_##range},
#define SITE(field)
#include "api/settings.def"
#undef SETTING
#undef ALIAS
#undef SEVERAL
#undef SITE
};

static const enum ap_setting_id sites[] = {
#define SETTING(...)
#define ALIAS(field, key)
#define SEVERAL(field, range)
#define SITE(field) AP_SET_##field,
#include "api/settings.def"
#undef SETTING
#undef ALIAS
#undef SEVERAL
#undef SITE
};

#define AP_SET_NONE AP_SET_COUNT
#define VALUE(setting, text, plain, also, value) {AP_SET_##setting, text, plain, AP_SET_##also, value},
#define OBJECT(path, also)
#define MEMBER(path, key, setting)
static const struct ap_value_spelling values[] = {
#include "api/spellings.def"
};
#undef VALUE
#undef OBJECT
#define VALUE(setting, text, plain, also, value)
#define OBJECT(path, also) {path, AP_SET_##also},
static const struct ap_object_spelling objects[] = {
#include "api/spellings.def"
};
#undef OBJECT
#undef MEMBER
#define OBJECT(path, also)
#define MEMBER(path, key, setting) {path, key, AP_SET_##setting},
static const struct ap_member_spelling members[] = {
#include "api/spellings.def"
};
#undef VALUE
#undef OBJECT
#undef MEMBER

const struct ap_setting_row *ap_setting_at(enum ap_setting_id id)
{
	return &rows[id];
}

const struct ap_setting_row *ap_setting_of_key(const char *key)
{
	for (size_t i = 0; i < AP_SET_COUNT; i++)
		if (!strcmp(rows[i].key, key))
			return &rows[i];
	for (size_t i = 0; i < AP_COUNT(aliases); i++)
		if (!strcmp(aliases[i].key, key))
			return &rows[aliases[i].id];
	return NULL;
}

const char *ap_setting_alias_at(size_t i, enum ap_setting_id *id)
{
	if (i >= AP_COUNT(aliases))
		return NULL;
	*id = aliases[i].id;
	return aliases[i].key;
}

enum ap_setting_id ap_setting_of_site(size_t i)
{
	return i < AP_COUNT(sites) ? sites[i] : AP_SET_COUNT;
}

const char *ap_option_spelling(struct ap_arena *arena, const char *dashes, const struct ap_setting_row *row)
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

const struct ap_value_spelling *ap_value_spelling_at(size_t i)
{
	return i < AP_COUNT(values) ? &values[i] : NULL;
}

const struct ap_object_spelling *ap_object_spelling_at(size_t i)
{
	return i < AP_COUNT(objects) ? &objects[i] : NULL;
}

const struct ap_member_spelling *ap_member_spelling_at(size_t i)
{
	return i < AP_COUNT(members) ? &members[i] : NULL;
}

const struct ap_object_spelling *ap_object_spelling_of(const char *path)
{
	for (size_t i = 0; i < AP_COUNT(objects); i++)
		if (!strcmp(objects[i].path, path))
			return &objects[i];
	return NULL;
}

const struct ap_setting_row *ap_member_spelling_of(const char *path, const char *key)
{
	for (size_t i = 0; i < AP_COUNT(members); i++)
		if (!strcmp(members[i].path, path) && !strcmp(members[i].key, key))
			return ap_setting_at(members[i].setting);
	return NULL;
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

bool ap_setting_takes_several(const struct ap_setting_row *row, enum ap_range *range)
{
	for (size_t i = 0; i < AP_COUNT(several); i++)
		if (&rows[several[i].id] == row) {
			*range = several[i].range;
			return true;
		}
	return false;
}

const char *ap_setting_expects(struct ap_arena *arena, const struct ap_setting_row *row)
{
	const char *one = ap_setting_expects_one(arena, row);
	enum ap_range range;

	if (!ap_setting_takes_several(row, &range))
		return one;
	switch (row->type) {
	case AP_SET_INT:
		return ap_arena_printf(arena, "%s, a list such as 1,2,4, a range such as 4..16, or auto",
			one);
	case AP_SET_CHOICE:
		return ap_arena_printf(arena, "%s; several, with commas between them; or auto", one);
	case AP_SET_COUNTS:
		return ap_arena_printf(arena, "%s; several, as none|selective|full; or auto", one);
	default:
		return ap_arena_printf(arena, "%s, or a space such as tp=1..8,cp=1", one);
	}
}

bool ap_setting_is_switch(const struct ap_setting_row *row)
{
	return row->type == AP_SET_FLAG ||
		(row->type == AP_SET_CHOICE && !strcmp(row->choices(0), "false"));
}

const char *ap_setting_expects_one(struct ap_arena *arena, const struct ap_setting_row *row)
{
	switch (row->type) {
	case AP_SET_FLAG:
		return "true or false";
	case AP_SET_INT:
		return ap_arena_printf(arena, "an integer from %" PRId64 " to %" PRId64, row->least,
			row->most);
	case AP_SET_NUM:
		return ap_arena_printf(arena, "a number from %" PRId64 " to %" PRId64, row->least,
			row->most);
	case AP_SET_SIZE:
		return "a size of at least one byte, such as 64MB, 25GiB or 1.5T";
	case AP_SET_AMOUNT:
		return "a number above 0, such as 800M, 300B or 15T";
	case AP_SET_PRICE:
		return "a price by the hour, such as 2.10 or 2.10/h, or one for each of several chips";
	case AP_SET_TIME:
		return "a time above 0 with its unit, such as 300ms, 20s, 12h or 60d";
	case AP_SET_SERIES:
		return ap_arena_printf(arena, "integers from %" PRId64 " to %" PRId64
			", such as 2,2,4", row->least, row->most);
	case AP_SET_INTS:
		return ap_arena_printf(arena, "integers from %" PRId64 " to %" PRId64
			", ascending, such as 20,35", row->least, row->most);
	case AP_SET_CHOICE:
		return choices_text(arena, row->choices);
	case AP_SET_TEXT:
		return strcmp(row->metavar, "LIST") ? "a name" : "a list such as dp=8,tp=4";
	case AP_SET_TEXTS:
		return "a text, or several with commas between them";
	case AP_SET_LISTS:
		return "a name, or lists such as [[8,1],[8]]";
	case AP_SET_COUNTS:
		return "words, and numbers of layers if not all, such as full:13,5";
	case AP_SET_DICT:
		return "the name of a file, or a JSON object";
	case AP_SET_FOLDER:
		return "the name of a folder";
	case AP_SET_INPUT:
	case AP_SET_OUTPUT:
		break;
	}
	return "the name of a file";
}

/* The index of text among the choices. Returns false, with *why, if none is available. */
static bool set_choice(struct ap_arena *arena, const struct ap_setting_row *row, const char *text,
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
			ap_setting_expects(arena, row));
		return false;
	}
	return false;
}

/* "20,35", with or without brackets; "[]" is the empty list. */
static bool set_ints(struct ap_arena *arena, const struct ap_setting_row *row, const char *text,
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
		if (!ap_parse_int(at, row->least, row->most, &v[n]) ||
			(n && row->type == AP_SET_INTS && v[n] <= v[n - 1]) ||
			(more && !end[1]))
			return false;
		n++;
		at = end + more;
	}
	*r = (struct ap_ints){n, v};
	return true;
}

static bool read_price(const char *text, size_t len, double *price)
{
	char number[32];

	if (len > 2 && !strncmp(text + len - 2, "/h", 2))
		len -= 2;
	if (len >= sizeof number)
		return false;
	memcpy(number, text, len);
	number[len] = '\0';
	return ap_parse_double(number, price) && *price >= 0;
}

static bool set_prices(struct ap_arena *arena, const char *text, struct ap_prices *r)
{
	size_t len = strlen(text), n = 0;
	double *v = AP_NEW_N(arena, double, len + 1);

	if (len > 2 && *text == '[' && text[len - 1] == ']')
		text = ap_arena_strndup(arena, text + 1, len - 2);
	for (;; text++) {
		len = strcspn(text, ",");
		if (!read_price(text, len, &v[n++]))
			return false;
		text += len;
		if (!*text)
			break;
	}
	*r = (struct ap_prices){n, v};
	return true;
}

/* Leaves the field unchanged if text is no value of it; *why may then add a reason. */
static bool set_value(struct ap_arena *arena, const struct ap_setting_row *row, void *field,
	const char *text, const char **why)
{
	int64_t bytes;
	double v;

	switch (row->type) {
	case AP_SET_FLAG:
		*(bool *)field = !strcmp(text, "true");
		return *(bool *)field || !strcmp(text, "false");
	case AP_SET_INT:
		return ap_parse_int(text, row->least, row->most, field);
	case AP_SET_NUM:
		if (!strcmp(row->metavar, "PERCENT") && *text && text[strlen(text) - 1] == '%')
			text = ap_arena_strndup(arena, text, strlen(text) - 1);
		if (!ap_parse_double(text, &v) || v < (double)row->least || v > (double)row->most)
			return false;
		*(double *)field = v;
		return true;
	case AP_SET_SIZE:
		if (!ap_parse_bytes(text, &bytes) || bytes < row->least)
			return false;
		*(int64_t *)field = bytes;
		return true;
	case AP_SET_AMOUNT:
		if (!ap_parse_count(text, &bytes) || !bytes)
			return false;
		*(int64_t *)field = bytes;
		return true;
	case AP_SET_PRICE:
		return set_prices(arena, text, field);
	case AP_SET_TIME:
		if (!ap_parse_time(text, &v) || v <= 0)
			return false;
		*(double *)field = v;
		return true;
	case AP_SET_INTS:
	case AP_SET_SERIES:
		return set_ints(arena, row, text, field);
	case AP_SET_CHOICE:
		return set_choice(arena, row, text, field, why);
	default:
		*(const char **)field = text;
		return *text;
	}
}

/* ---- several values ---- */

/* Another spelling of a value; NULL if text is none. */
static const struct ap_value_spelling *spelling_of(const struct ap_setting_row *row, const char *text)
{
	for (size_t i = 0; i < AP_COUNT(values); i++)
		if (&rows[values[i].setting] == row && !strcmp(values[i].text, text))
			return &values[i];
	return NULL;
}

/* "gpipe,1f1b" */
static bool read_words(struct ap_arena *arena, const struct ap_setting_row *row, const char *text,
	struct ap_choices *out, const char **why)
{
	char *item = ap_arena_strdup(arena, text);
	int64_t *v = AP_NEW_N(arena, int64_t, strlen(text) + 1);
	bool more;

	out->any = !strcmp(text, "auto");
	if (out->any)
		return true;
	do {
		char *end = item + strcspn(item, ",");
		const struct ap_value_spelling *other;
		int index;

		more = *end;
		*end = '\0';
		other = spelling_of(row, item);
		if (!set_choice(arena, row, other ? other->plain : item, &index, why))
			return false;
		v[out->n++] = index;
		item = end + 1;
	} while (more);
	out->n = ap_choices_sort(v, out->n);
	out->v = v;
	return true;
}

/* "none|selective,mlp" */
static bool read_alternatives(struct ap_arena *arena, const char *text, struct ap_choices *out,
	const char **why)
{
	int64_t *v;

	out->any = !strcmp(text, "auto");
	if (out->any)
		return true;
	out->n = ap_recompute_alternatives(arena, text, &out->word);
	if (out->n > AP_CHOICES_MOST) {
		*why = ap_arena_printf(arena, "these are more than %d values", AP_CHOICES_MOST);
		return false;
	}
	v = AP_NEW_N(arena, int64_t, out->n);
	for (size_t i = 0; i < out->n; i++)
		v[i] = (int64_t)i;
	out->v = v;
	return *text;
}

static void put(const struct ap_setting_row *row, struct ap_settings *s, const struct ap_choices *c, size_t i)
{
	void *field = (char *)s + row->offset;

	if (row->type == AP_SET_INT)
		*(int64_t *)field = c->v[i];
	else if (row->type == AP_SET_CHOICE)
		*(int *)field = (int)c->v[i];
	else
		*(const char **)field = c->word[i];
}

/* set_value() of a setting that may have several. */
static bool set_several(struct ap_arena *arena, const struct ap_setting_row *row, enum ap_range range,
	struct ap_settings *s, const char *text, const char **why)
{
	struct ap_choices *c = AP_NEW(arena, struct ap_choices);
	enum ap_setting_id id = (enum ap_setting_id)(row - rows);
	bool ok = row->type == AP_SET_INT
		? ap_choices_read(arena, text, row->least, row->most, range, c, why)
		: row->type == AP_SET_CHOICE ? read_words(arena, row, text, c, why)
		: read_alternatives(arena, text, c, why);

	if (!ok)
		return false;
	if (c->any)
		ap_setting_unset(s, id);
	else
		put(row, s, c, 0);
	s->among[id] = c->n == 1 ? NULL : c;
	return true;
}

void ap_setting_pick(struct ap_settings *s, enum ap_setting_id id, size_t i)
{
	const struct ap_choices *c = s->among[id];

	assert(c && i < c->n);
	put(&rows[id], s, c, i);
	s->among[id] = NULL;
	if (id == AP_SET_optimizer_level && !ap_setting_given(s, AP_SET_enable_parallel_optimizer))
		s->enable_parallel_optimizer = c->v[i] != AP_LEVEL_NONE;
}

/* ---- values ---- */

/* A field, all zeros, becomes what holds where nobody says anything. */
static void set_usual(const struct ap_setting_row *row, struct ap_settings *s)
{
	void *field = (char *)s + row->offset;
	const char *why = NULL;
	bool ok = true;

	if (row->otherwise)
		ok = set_value(NULL, row, field, row->otherwise, &why);
	else if (row->type == AP_SET_NUM || row->type == AP_SET_TIME)
		*(double *)field = -1;
	else if (row->type == AP_SET_CHOICE)
		*(int *)field = -1;
	assert(ok);
	(void)ok;
}

bool ap_ints_equal(const struct ap_ints *list)
{
	for (size_t i = 1; i < list->n; i++)
		if (list->v[i] != list->v[0])
			return false;
	return true;
}

void ap_settings_init(struct ap_settings *s)
{
	memset(s, 0, sizeof *s);
	for (size_t i = 0; i < AP_SET_COUNT; i++)
		set_usual(&rows[i], s);
}

void ap_setting_unset(struct ap_settings *s, enum ap_setting_id id)
{
	static const size_t bytes[] = {
		[AP_SET_FLAG] = sizeof(bool), [AP_SET_INT] = sizeof(int64_t), [AP_SET_NUM] = sizeof(double),
		[AP_SET_SIZE] = sizeof(int64_t), [AP_SET_AMOUNT] = sizeof(int64_t),
		[AP_SET_PRICE] = sizeof(struct ap_prices), [AP_SET_TIME] = sizeof(double),
		[AP_SET_INTS] = sizeof(struct ap_ints), [AP_SET_SERIES] = sizeof(struct ap_ints),
		[AP_SET_CHOICE] = sizeof(int), [AP_SET_FOLDER] = 0,
	};
	const struct ap_setting_row *row = &rows[id];
	size_t size = bytes[row->type] ? bytes[row->type] : sizeof(const char *);

	memset((char *)s + row->offset, 0, size);
	set_usual(row, s);
	s->among[id] = NULL;
	s->origin[id] = AP_FROM_DEFAULT;
	s->name[id] = NULL;
}

bool ap_setting_given(const struct ap_settings *s, enum ap_setting_id id)
{
	return s->origin[id] != AP_FROM_DEFAULT;
}

static bool set(struct ap_arena *arena, const struct ap_setting_row *row, struct ap_settings *s,
	const char *text, enum ap_origin origin, const char *name, const char **why)
{
	enum ap_range range;

	*why = NULL;
	s->among[row - rows] = NULL;
	if (row->type != AP_SET_TEXT && ap_setting_takes_several(row, &range)
		? !set_several(arena, row, range, s, text, why)
		: !set_value(arena, row, (char *)s + row->offset, text, why)) {
		if (!*why)
			*why = ap_arena_printf(arena, "\"%s\" is not accepted; expected %s", text,
				ap_setting_expects(arena, row));
		return false;
	}
	s->origin[row - rows] = origin;
	s->name[row - rows] = name;
	return true;
}

bool ap_setting_give(struct ap_arena *arena, const struct ap_setting_row *row, struct ap_settings *s,
	const char *text, enum ap_origin origin, const char *name, const char **why)
{
	const struct ap_value_spelling *other = spelling_of(row, text);
	const char *before = ap_setting_text(arena, row, s), *after;
	struct ap_settings given = *s;
	enum ap_origin was = s->origin[row - rows];

	if ((row->type == AP_SET_TEXTS || row->type == AP_SET_COUNTS) && was == origin && before) {
		text = ap_arena_printf(arena, "%s,%s", before, text);
		return set(arena, row, s, text, origin, name, why);
	}
	if (!set(arena, row, &given, other ? other->plain : text, origin, name, why))
		return false;
	after = ap_setting_text(arena, row, &given);
	if (was == origin && strcmp(before ? before : "", after ? after : "") != 0) {
		*why = ap_arena_printf(arena, "\"%s\" contradicts %s, which says %s", text,
			s->name[row - rows], before ? before : "none");
		return false;
	}
	if (was < origin)
		*s = given;
	return !other || other->also == AP_SET_COUNT ||
		ap_setting_give(arena, &rows[other->also], s, other->value, origin,
			ap_arena_printf(arena, "%s %s", name, text), why);
}

const char *ap_setting_path(const struct ap_setting_row *row, const struct ap_settings *s)
{
	const char *text;

	assert(row->type >= AP_SET_DICT);
	text = *(const char *const *)((const char *)s + row->offset);
	return text && row->type == AP_SET_DICT && *text == '{' ? NULL : text;
}

static const char *several_text(struct ap_arena *arena, const struct ap_setting_row *row,
	const struct ap_choices *c)
{
	enum ap_range range = AP_RANGE_NONE;
	struct ap_str out;

	(void)ap_setting_takes_several(row, &range);
	if (c->any || row->type == AP_SET_INT)
		return ap_choices_text(arena, c, range);
	ap_str_init(&out, arena);
	for (size_t i = 0; i < c->n; i++)
		ap_str_addf(&out, "%s%s", !i ? "" : c->word ? "|" : ",",
			c->word ? c->word[i] : row->choices((size_t)c->v[i]));
	return out.s;
}

const char *ap_setting_text(struct ap_arena *arena, const struct ap_setting_row *row,
	const struct ap_settings *s)
{
	const void *field = (const char *)s + row->offset;
	const struct ap_choices *c = s->among[row - rows];
	const struct ap_ints *list = field;
	const struct ap_prices *prices = field;
	struct ap_str out;
	char buf[32];

	if (c && row->type != AP_SET_TEXT)
		return several_text(arena, row, c);
	switch (row->type) {
	case AP_SET_FLAG:
		return *(const bool *)field ? "true" : "false";
	case AP_SET_INT:
	case AP_SET_SIZE:
	case AP_SET_AMOUNT:
		return *(const int64_t *)field || row->otherwise ||
			ap_setting_given(s, (enum ap_setting_id)(row - rows))
			? ap_arena_printf(arena, "%" PRId64, *(const int64_t *)field)
			: NULL;
	case AP_SET_TIME:
		return *(const double *)field >= 0
			? ap_arena_strdup(arena, ap_format_time(*(const double *)field, buf))
			: NULL;
	case AP_SET_PRICE:
		ap_str_init(&out, arena);
		for (size_t i = 0; i < prices->n; i++)
			ap_str_addf(&out, "%s%s", i ? "," : "", ap_format_double(prices->v[i], buf));
		return prices->n ? out.s : NULL;
	case AP_SET_NUM:
		return *(const double *)field >= 0
			? ap_arena_strdup(arena, ap_format_double(*(const double *)field, buf))
			: NULL;
	case AP_SET_INTS:
	case AP_SET_SERIES:
		ap_str_init(&out, arena);
		for (size_t i = 0; i < list->n; i++)
			ap_str_addf(&out, "%s%" PRId64, i ? "," : "", list->v[i]);
		return list->n ? out.s : NULL;
	case AP_SET_CHOICE:
		return *(const int *)field >= 0 ? row->choices((size_t)*(const int *)field) : NULL;
	default:
		return *(const char *const *)field;
	}
}

/* An array; recompute's alternatives are one text, as commas within them mean something else. */
static const char *several_json(struct ap_arena *arena, const struct ap_setting_row *row,
	const struct ap_choices *c)
{
	struct ap_str out;
	struct ap_jw w;

	ap_str_init(&out, arena);
	ap_jw_str_init(&w, &out, 0);
	ap_jw_arr_flat(&w);
	for (size_t i = 0; i < c->n; i++)
		if (row->type == AP_SET_INT)
			ap_jw_int(&w, c->v[i]);
		else
			ap_jw_str(&w, row->choices((size_t)c->v[i]));
	ap_jw_end(&w);
	return out.s;
}

const char *ap_setting_json(struct ap_arena *arena, const struct ap_setting_row *row,
	const struct ap_settings *s)
{
	const struct ap_choices *among = s->among[row - rows];
	const char *text = ap_setting_text(arena, row, s);
	struct ap_str out;
	struct ap_jw w;

	if (!text)
		return "null";
	if (among && among->n && !among->word && row->type != AP_SET_TEXT)
		return several_json(arena, row, among);
	if (!among && row->type < AP_SET_INTS && !(row->type == AP_SET_PRICE && strchr(text, ',')))
		return text;
	if (row->type == AP_SET_INTS || row->type == AP_SET_SERIES || row->type == AP_SET_PRICE)
		return ap_arena_printf(arena, "[%s]", text);
	if ((row->type == AP_SET_LISTS && *text == '[') || (row->type == AP_SET_DICT && *text == '{')) {
		char *copy = ap_arena_strdup(arena, text), *to = copy;
		bool in_string = false;

		/* Removes blanks between JSON values; text is well-formed. */
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
	ap_str_init(&out, arena);
	ap_jw_str_init(&w, &out, 0);
	ap_jw_str(&w, text);
	return out.s;
}

const char *ap_setting_said(struct ap_ctx *ctx, const struct ap_settings *s, enum ap_setting_id id)
{
	const struct ap_setting_row *row = &rows[id];
	const char *text = ap_setting_text(ctx->arena, row, s), *name = s->name[id];

	if (!ap_setting_given(s, id))
		return ap_arena_printf(ctx->arena, "%s %s (default)", row->key, text ? text : "none");
	if (strchr(name, ' ')) /* implied by the value of another setting */
		return name;
	if (ap_setting_is_switch(row) && !strncmp(name, "--", 2) && !strchr(name, '.') &&
		(!strcmp(text, "true") || !strncmp(name, "--no-", 5)))
		return name;
	return ap_arena_printf(ctx->arena, "%s %s", name, text);
}
