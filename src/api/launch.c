/* SPDX-License-Identifier: Apache-2.0 */
#include "api/launch.h"

#include <inttypes.h>
#include <string.h>

#include "api/settings.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "base/yaml_read.h"

enum meaning { TP, PP, CP, CP_ALGO, EP, ETP, SP, DP, WORLD, NODES, PER_NODE, MBS, BATCH, VPP,
	PER_CHUNK, LAYERS, CHUNKS, MINDSPEED, OPTIMIZER, MOMENTUM, AGAIN_NORM, AGAIN_ACTIVATION,
	INSTANCES,
	LIST, FIRST, LAST, LAYOUT, GRANULARITY, SELECTIVE, METHOD, UNIT, MODULES, DEALT, FSDP, FSDP2,
	SHARDING, ZERO, MICS, HPZ, OVERLAP, BALANCED, DISPATCHER, BACKEND, DEEPEP, MICRO,
	VOCABULARY, COPIES, ACCUMULATED, OFFSET, FULL, SELECT, GATHERED, MEANINGS, COPIED, NOT_SAID };

static const struct word {
	enum ap_launch_language language;
	const char *path;
	enum meaning meaning;
	const char *text; /* ours; the key of a copy; why it is not said */
} words[] = {
#define WORD(language, path, meaning, ours) {AP_LAUNCH_##language, path, meaning, ours},
#define COPY(language, path, key) {AP_LAUNCH_##language, path, COPIED, key},
#define UNSAID(language, path, why) {AP_LAUNCH_##language, path, NOT_SAID, why},
#include "api/launch.def"
#undef WORD
#undef COPY
#undef UNSAID
};

/* ---- which language ---- */

static const char rule[] = "------------------------ arguments ------------------------";

const char *ap_launch_text(enum ap_launch_language language)
{
	return language == AP_LAUNCH_MEGATRON ? "a file of Megatron's arguments"
		: language == AP_LAUNCH_DEEPSPEED ? "a configuration of DeepSpeed" : "a MindFormers YAML";
}

static bool begins(const char *s, const char *end, const char *with)
{
	size_t n = strlen(with);

	return (size_t)(end - s) >= n && !memcmp(s, with, n);
}

/* Is a JSON text one of DeepSpeed's? Its files are small. */
static bool is_deepspeed(const char *text, size_t len)
{
	enum { MOST_BYTES = 1 << 20 };

	return *text == '{' && len < MOST_BYTES && !memchr(text, '\0', len) &&
		(strstr(text, "\"train_micro_batch_size_per_gpu\"") || strstr(text, "\"zero_optimization\""));
}

enum ap_launch_language ap_launch_language(const char *text, size_t len)
{
	static const char *const sections[] = {"parallel_config:", "runner_config:", "recompute_config:",
		"moe_config:"};
	static const char *const options[] = {"--tensor-model-parallel-size",
		"--pipeline-model-parallel-size",
		"--micro-batch-size", "--global-batch-size", "--num-attention-heads"};
	const char *end = text + len, *first = text + strspn(text, " \t\r\n");

	if (first < end && is_deepspeed(first, (size_t)(end - first)))
		return AP_LAUNCH_DEEPSPEED;
	if (first >= end || *first == '{' || *first == '[')
		return AP_LAUNCH_NONE;
	for (const char *line = text; line < end;) {
		const char *nl = memchr(line, '\n', (size_t)(end - line));

		for (size_t i = 0; i < AP_COUNT(sections); i++)
			if (begins(line, end, sections[i]))
				return AP_LAUNCH_MINDFORMERS;
		line = nl ? nl + 1 : end;
	}
	if (memchr(text, '\0', len))
		return AP_LAUNCH_NONE;
	if (strstr(text, rule))
		return AP_LAUNCH_MEGATRON;
	for (size_t i = 0; i < AP_COUNT(options); i++)
		if (strstr(text, options[i]))
			return AP_LAUNCH_MEGATRON;
	return AP_LAUNCH_NONE;
}

const char *ap_launch_option(const char *name, size_t len)
{
	for (size_t i = 0; i < AP_COUNT(words); i++) {
		const char *c = words[i].path;
		size_t k = 0;

		while (k < len && c[k] && name[k] == (c[k] == '_' ? '-' : c[k]))
			k++;
		if (k == len && !c[k] && words[i].language == AP_LAUNCH_MEGATRON && words[i].text)
			return words[i].meaning == COPIED ? "" : words[i].meaning == NOT_SAID ? NULL
				: words[i].text;
	}
	return NULL;
}

/* ---- Megatron's arguments as a document ---- */

struct argument {
	const char *name; /* with _ */
	const char *json; /* value */
	size_t line, col; /* 0-based */
};

struct arguments {
	struct ap_arena *arena;
	struct argument *v;
	size_t n, cap;
};

/* A value as Python prints it, or as it stands in a command, as JSON. */
static const char *value_json(struct ap_arena *arena, const char *s)
{
	static const struct {
		const char *python, *json;
	} names[] = {{"None", "null"}, {"True", "true"}, {"False", "false"}, {"true", "true"},
		{"false", "false"}};
	struct ap_str text;
	struct ap_jw w;
	double v;
	int64_t n;

	for (size_t i = 0; i < AP_COUNT(names); i++)
		if (!strcmp(s, names[i].python))
			return names[i].json;
	if (ap_parse_int(s, INT64_MIN / 4, INT64_MAX / 4, &n))
		return ap_arena_printf(arena, "%" PRId64, n);
	ap_str_init(&text, arena);
	if (ap_parse_double(s, &v)) {
		char buf[32];

		ap_str_add(&text, ap_format_double(v, buf));
		return text.s;
	}
	ap_jw_str_init(&w, &text, 0);
	ap_jw_str(&w, s);
	return text.s;
}

/* ['a', 'b'] as a JSON list; else one value. */
static const char *python_json(struct ap_arena *arena, const char *s)
{
	struct ap_str text;
	size_t len = strlen(s);
	char *copy = ap_arena_strdup(arena, s), *at, *item;
	bool any = false;

	if (len < 2 || s[0] != '[' || s[len - 1] != ']' || strchr(s + 1, '['))
		return value_json(arena, s);
	copy[len - 1] = '\0';
	ap_str_init(&text, arena);
	ap_str_addc(&text, '[');
	for (item = copy + 1; *item; item = at) {
		item += strspn(item, " ,'\"");
		at = item + strcspn(item, ",'\"");
		if (*at)
			*at++ = '\0';
		if (!*item)
			continue;
		ap_str_addf(&text, "%s%s", any ? "," : "", value_json(arena, item));
		any = true;
	}
	ap_str_addc(&text, ']');
	return text.s;
}

static void add(struct arguments *a, const char *name, size_t len, const char *json, size_t line,
	size_t col)
{
	char *key = ap_arena_strndup(a->arena, name, len);
	size_t kept = 0;

	for (char *c = key; *c; c++)
		if (*c == '-')
			*c = '_';
	for (size_t i = 0; i < a->n; i++) /* the last one counts */
		if (strcmp(a->v[i].name, key) != 0)
			a->v[kept++] = a->v[i];
	a->n = kept;
	AP_PUSH(a->arena, *a, ((struct argument){key, json, line, col}));
}

/* "  name ..... value" of the block in a log. */
static void read_log(struct arguments *a, const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
	const char *at = strstr(text, rule);
	size_t line = 1;

	for (const char *c = text; c < at; c++)
		line += *c == '\n';
	at = strchr(at, '\n');
	for (at = at ? at + 1 : ""; *at; line++) {
		size_t len = strcspn(at, "\n"), n;
		char *s = ap_arena_strndup(a->arena, at, len), *name = strstr(s, "  "), *v;

		at += len + (at[len] == '\n');
		if (strstr(s, "end of arguments"))
			return;
		name = name ? name + strspn(name, " ") : s;
		n = strspn(name, letters);
		if (!n || name[n] != ' ')
			continue;
		v = name + n + strspn(name + n, " ");
		v += v[strspn(v, ".")] == ' ' ? strspn(v, ".") : 0;
		v += strspn(v, " ");
		for (size_t k = strlen(v); k && (v[k - 1] == ' ' || v[k - 1] == '\r'); k--)
			v[k - 1] = '\0';
		add(a, name, n, python_json(a->arena, v), line, (size_t)(name - s));
	}
}

struct token {
	const char *s;
	size_t line, col;
	bool option, ends; /* begins with --; no value of an option follows */
};

struct tokens {
	struct token *v;
	size_t n, cap;
};

/* $NAME, ${NAME}, ${NAME:-usual}, as assigned before; unknown ones stay. */
static const char *expand(struct ap_arena *arena, const struct arguments *variables, const char *s)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
	bool braced = s[0] == '$' && s[1] == '{';
	const char *name = s + 1 + braced;
	size_t len, all = strlen(s);

	if (*s != '$')
		return s;
	len = strspn(name, letters);
	if ((!braced && name[len]) || (braced && s[all - 1] != '}'))
		return s;
	for (size_t i = 0; i < variables->n; i++)
		if (strlen(variables->v[i].name) == len && !memcmp(variables->v[i].name, name, len))
			return variables->v[i].json;
	if (braced && !strncmp(name + len, ":-", 2))
		return ap_arena_strndup(arena, name + len + 2, strlen(name + len + 2) - 1);
	return s;
}

/* The words of a shell script: quotes that hold options are looked through. */
static void split(struct ap_arena *arena, const char *s, struct tokens *out)
{
	struct arguments variables = {.arena = arena};
	struct ap_str word;
	const char *start = s; /* of the line */
	size_t line = 0;

	while (*s) {
		struct token t = {.line = line, .col = (size_t)(s - start)};
		const char *equals;

		if (*s == '\n' || strchr(" \t\r()\\;|&>\"'", *s)) {
			if (strchr(";|&>)", *s))
				AP_PUSH(arena, *out, ((struct token){.s = "", .line = line, .ends = true}));
			line += *s == '\n';
			start = *s == '\n' ? s + 1 : start;
			if ((*s != '"' && *s != '\'') || strspn(s + 1, " \t\r\n\\") > 0 ||
				!strncmp(s + 1, "--", 2)) {
				s++;
				continue;
			}
		}
		if (*s == '#') {
			s += strcspn(s, "\n");
			continue;
		}
		ap_str_init(&word, arena);
		while (*s && !strchr(" \t\r\n()\\;|&>", *s)) {
			const char *close = *s == '"' || *s == '\'' ? strchr(s + 1, *s) : NULL;

			if (close && !memchr(s, '\n', (size_t)(close - s)) && strncmp(s + 1, "--",
				2) != 0) {
				ap_str_addn(&word, s + 1, (size_t)(close - s) - 1);
				s = close + 1;
			} else if (*s == '"' || *s == '\'') {
				s++;
				if (word.len)
					break;
			} else {
				ap_str_addc(&word, *s++);
			}
		}
		equals = strchr(word.s, '=');
		if (equals && *word.s != '-') {
			const struct argument a = {ap_arena_strndup(arena, word.s,
				(size_t)(equals - word.s)),
				expand(arena, &variables, equals + 1), line, 0};

			AP_PUSH(arena, variables, a);
		}
		if (!word.len || (equals && *word.s != '-'))
			continue;
		t.s = expand(arena, &variables, word.s);
		t.option = !strncmp(t.s, "--", 2) && t.s[2];
		AP_PUSH(arena, *out, t);
	}
}

static void read_options(struct arguments *a, const char *text)
{
	struct tokens t = {0};

	split(a->arena, text, &t);
	for (size_t i = 0; i < t.n; i++) {
		const char *name = t.v[i].s + 2, *equals, *json = "true";
		struct ap_str list;
		size_t first = i + 1, n = 0;

		if (!t.v[i].option)
			continue;
		equals = strchr(name, '=');
		ap_str_init(&list, a->arena);
		while (first + n < t.n && !t.v[first + n].option && !t.v[first + n].ends)
			n++;
		for (size_t k = 0; k < n; k++)
			ap_str_addf(&list, "%s%s", k ? "," : "[", value_json(a->arena, t.v[first + k].s));
		if (equals)
			json = value_json(a->arena, equals + 1);
		else if (n == 1)
			json = value_json(a->arena, t.v[first].s);
		else if (n)
			json = ap_arena_printf(a->arena, "%s]", list.s);
		add(a, name, equals ? (size_t)(equals - name) : strlen(name), json, t.v[i].line,
			t.v[i].col);
	}
}

static enum ap_status arguments_json(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	struct ap_json **out)
{
	struct arguments a = {.arena = ctx->arena};
	struct ap_str json;
	struct ap_jw w;
	size_t line = 0, start = 0;

	if (len > AP_YAML_MOST_BYTES && !strstr(text, rule))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, &(struct ap_where){.file = file}, NULL,
			"%zu bytes of arguments; at most %d are read", len, AP_YAML_MOST_BYTES);
	if (strstr(text, rule))
		read_log(&a, text);
	else
		read_options(&a, text);
	ap_str_init(&json, ctx->arena);
	ap_str_addc(&json, '{');
	for (size_t i = 0; i < a.n; i++) {
		ap_str_add(&json, i ? "," : "");
		for (; line < a.v[i].line; line++, start = json.len)
			ap_str_addc(&json, '\n');
		while (json.len - start < a.v[i].col)
			ap_str_addc(&json, ' ');
		ap_jw_str_init(&w, &json, 0);
		ap_jw_str(&w, a.v[i].name);
		ap_str_addf(&json, ":%s", a.v[i].json);
	}
	ap_str_addc(&json, '}');
	return ap_json_parse(ctx, file, json.s, json.len, 0, out);
}

enum ap_status ap_launch_document(struct ap_ctx *ctx, enum ap_launch_language language, const char *file,
	const char *text, size_t len, struct ap_json **out)
{
	if (language == AP_LAUNCH_DEEPSPEED)
		return ap_json_parse(ctx, file, text, len, 0, out);
	return (language == AP_LAUNCH_MEGATRON ? arguments_json : ap_yaml_parse)(ctx, file, text, len, out);
}

/* ---- meanings ---- */

struct reader {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	enum ap_launch_language language;
	const struct ap_jv *found[MEANINGS];
	struct ap_str hybrid, out;
	size_t line; /* of out, 0-based */
};

#define FAULT(r, v, ...) \
	((void)ap_json_report((r)->ctx, (r)->doc, v, AP_ERROR, AP_MEANING, NULL, "launch", __VA_ARGS__))
#define WARN(r, v, ...) \
	((void)ap_json_report((r)->ctx, (r)->doc, v, AP_WARNING, AP_OK, NULL, "launch", __VA_ARGS__))

/* A number, or the first of several words of a command. */
static int64_t number(struct reader *r, enum meaning m, int64_t otherwise)
{
	const struct ap_jv *v = r->found[m], *one = v;
	int64_t n;

	if (!v)
		return otherwise;
	if (r->language == AP_LAUNCH_MEGATRON && ap_jv_type(v) == AP_JARRAY)
		one = ap_jv_first(v);
	if (one && ap_jv_type(one) == AP_JNUMBER && ap_jv_int(r->doc, one, &n) && n >= 1 && n <= INT32_MAX)
		return n;
	FAULT(r, v, "expected a number from 1 to %d%s", INT32_MAX, one && ap_jv_type(one) == AP_JSTRING &&
		*ap_jv_str(one) == '$' ? "; this variable is not assigned in the file" : "");
	return otherwise ? otherwise : 1;
}

/* An option is on where it stands, whatever follows it. */
static bool flag(struct reader *r, enum meaning m)
{
	const struct ap_jv *v = r->found[m];

	if (!v)
		return false;
	if (ap_jv_type(v) == AP_JBOOL)
		return ap_jv_bool(v);
	if (r->language != AP_LAUNCH_MEGATRON)
		FAULT(r, v, "expected true or false");
	return true;
}

static const char *word_of(struct reader *r, enum meaning m)
{
	const struct ap_jv *v = r->found[m];

	if (v && ap_jv_type(v) == AP_JARRAY)
		v = ap_jv_first(v);
	if (v && ap_jv_type(v) == AP_JSTRING)
		return ap_jv_str(v);
	if (v)
		FAULT(r, r->found[m], "expected a word");
	return NULL;
}

static void say(struct reader *r, const char *key, const char *json)
{
	ap_str_addf(&r->out, "%s\"%s\": %s", r->out.len > 1 ? "," : "", key, json);
}

static void say_text(struct reader *r, const char *key, const char *text)
{
	struct ap_str s;
	struct ap_jw w;

	ap_str_init(&s, r->ctx->arena);
	ap_jw_str_init(&w, &s, 0);
	ap_jw_str(&w, text);
	say(r, key, s.s);
}

static void __attribute__((format(printf, 2, 3))) say_hybrid(struct reader *r, const char *format, ...)
{
	va_list ap;

	ap_str_add(&r->hybrid, r->hybrid.len ? "," : "");
	va_start(ap, format);
	ap_str_vaddf(&r->hybrid, format, ap);
	va_end(ap);
}

/* Is the value one that says that a thing is absent? */
static bool is_off(const struct ap_jv *v)
{
	switch (ap_jv_type(v)) {
	case AP_JNULL:
		return true;
	case AP_JBOOL:
		return !ap_jv_bool(v);
	case AP_JNUMBER:
		return ap_jv_double(v) == 0 || ap_jv_double(v) == 1;
	case AP_JARRAY:
	case AP_JOBJECT:
		return !ap_jv_count(v);
	case AP_JSTRING:
		break;
	}
	return !*ap_jv_str(v) || !strcmp(ap_jv_str(v), "no_shard") || !strcmp(ap_jv_str(v), "none");
}

static void find(struct reader *r, const struct word *w, const struct ap_jv *v)
{
	int64_t a, b;

	if (r->language == AP_LAUNCH_DEEPSPEED && ap_jv_type(v) == AP_JSTRING &&
		!strcmp(ap_jv_str(v), "auto"))
		return; /* of transformers, which fills it in */
	if (w->meaning == NOT_SAID) {
		if (!is_off(v))
			WARN(r, v, "changes the price and is not read: %s", w->text);
	} else if (w->meaning == COPIED) {
		const struct ap_setting_row *row = ap_setting_of_key(w->text);
		const char *said = ap_arena_printf(r->ctx->arena, "\"%s\": ", w->text);
		struct ap_str s;
		struct ap_jw j;

		if (ap_jv_type(v) == AP_JNULL || !ap_jv_is_shallow(v, 8))
			return;
		ap_str_init(&s, r->ctx->arena);
		ap_jw_str_init(&j, &s, 0);
		ap_jw_value(&j, r->doc, v);
		if (!strstr(r->out.s, said)) /* in another word */
			say(r, w->text, r->language == AP_LAUNCH_MEGATRON && row &&
				row->type == AP_SET_FLAG &&
				ap_jv_type(v) != AP_JBOOL ? "true"
				: s.s);
	} else if (ap_jv_type(v) != AP_JNULL) {
		const struct ap_jv *other = r->found[w->meaning];

		if (other && (!ap_jv_int(r->doc, v, &a) || !ap_jv_int(r->doc, other, &b) || a != b))
			FAULT(r, v, "contradicts %s, which says it, too", ap_jv_key(other));
		r->found[w->meaning] = v;
	}
}

static bool is_strict(const char *section)
{
	return !strcmp(section, "parallel_config") || !strcmp(section, "recompute_config");
}

/* Keys of these sections that change neither times nor memory. */
static bool is_idle(const char *key)
{
	static const char *const idle[] = {"optimizer_shard", "gradient_aggregation_group", "mem_coeff",
		"ulysses_degree_in_cp"};

	for (size_t i = 0; i < AP_COUNT(idle); i++)
		if (!strcmp(idle[i], key))
			return true;
	return false;
}

static void walk(struct reader *r, const struct ap_jv *object, const char *prefix)
{
	for (const struct ap_jv *v = ap_jv_first(object); v; v = ap_jv_next(v)) {
		const char *path = ap_arena_printf(r->ctx->arena, "%s%s", prefix, ap_jv_key(v));
		size_t len = strlen(path), i = 0;

		while (i < AP_COUNT(words) && (words[i].language != r->language ||
			strcmp(words[i].path, path) != 0))
			i++;
		if (i < AP_COUNT(words)) {
			find(r, &words[i], v);
			continue;
		}
		for (i = 0; i < AP_COUNT(words); i++)
			if (words[i].language == r->language && !strncmp(words[i].path, path, len) &&
				words[i].path[len] == '.')
				break;
		if (i < AP_COUNT(words) && ap_jv_type(v) == AP_JOBJECT)
			walk(r, v, ap_arena_printf(r->ctx->arena, "%s.", path));
		else if (i < AP_COUNT(words) && ap_jv_type(v) != AP_JNULL)
			FAULT(r, v, "expected a section");
		else if (*prefix && is_strict(ap_arena_strndup(r->ctx->arena, prefix,
			strlen(prefix) - 1)) &&
			!is_idle(ap_jv_key(v)))
			FAULT(r, v, "MindFormers knows no such key here");
	}
}

/* [1,0], [[1,0],[0,1]] as "1,0" and, with rows, "1,0/0,1"; NULL if it is none of both. */
static const char *list_text(struct reader *r, const struct ap_jv *v, const char *rows)
{
	struct ap_str s;
	int64_t n;

	ap_str_init(&s, r->ctx->arena);
	for (const struct ap_jv *e = ap_jv_first(v); e; e = ap_jv_next(e)) {
		bool row = ap_jv_type(e) == AP_JARRAY;

		ap_str_add(&s, s.len ? row ? rows : "," : "");
		for (const struct ap_jv *x = row ? ap_jv_first(e) : e; x; x = row ? ap_jv_next(x) : NULL) {
			if (ap_jv_type(x) != AP_JNUMBER || !ap_jv_int(r->doc, x, &n))
				return NULL;
			ap_str_addf(&s, "%s%" PRId64, row && x != ap_jv_first(e) ? "," : "", n);
		}
	}
	return s.len ? s.s : NULL;
}

/* Layers of MindSpeed's lists, one for each stage of numbers for its chunks: "[[3,4],[4,4]]". */
static void say_chunks(struct reader *r, int64_t pp, int64_t vpp)
{
	const char *s = r->found[CHUNKS] ? word_of(r, CHUNKS) : NULL;
	int64_t *layers, n = 0, all = pp * vpp;
	struct ap_str counts;

	if (!s || ap_diag_count(r->ctx->diag, AP_ERROR))
		return;
	all = all < (int64_t)strlen(s) ? all : (int64_t)strlen(s); /* a number has a digit */
	layers = AP_NEW_N(r->ctx->arena, int64_t, all);
	while (*(s += strspn(s, "[], ")) && n < all) {
		size_t len = strspn(s, "0123456789");

		if (!len || !ap_parse_int(ap_arena_strndup(r->ctx->arena, s, len), 0, INT32_MAX, &layers[n]))
			break;
		s += len;
		n++;
	}
	if (*s || n < pp * vpp) {
		FAULT(r, r->found[CHUNKS], "expected %" PRId64 " lists of %" PRId64
			" numbers, as [[3,4],[4,4]]", pp, vpp);
		return;
	}
	ap_str_init(&counts, r->ctx->arena);
	for (int64_t k = 0; k < all; k++) /* by chunk, then stage */
		ap_str_addf(&counts, "%s%" PRId64, k ? "," : "", layers[k % pp * vpp + k / pp]);
	if (pp > 1)
		say_hybrid(r, "layers=%s", counts.s);
}

/* Layers of MindSpeed's list, "19,21,21,19", or of Megatron's first and last stage. */
static void say_layers(struct reader *r, int64_t pp, int64_t vpp)
{
	int64_t all = number(r, LAYERS, 0), first = number(r, FIRST, 0), last = number(r, LAST, 0), rest;
	const struct ap_jv *offset = r->found[OFFSET];
	const char *text;

	if (r->found[LIST] && pp > 1) {
		text = ap_jv_type(r->found[LIST]) == AP_JSTRING ? ap_jv_str(r->found[LIST]) : NULL;
		if (text && strspn(text, "0123456789,") == strlen(text) && *text)
			say_hybrid(r, "layers=%s", text);
		else
			FAULT(r, r->found[LIST], "expected a number for each stage, as 19,21,21,19");
	}
	if (offset && ap_jv_type(offset) == AP_JARRAY && pp > 1) {
		text = list_text(r, offset, ",");
		if (text)
			say_hybrid(r, "offset=%s", text);
		else
			FAULT(r, offset, "expected 0, a list for the stages, or a list of such lists");
	} else if (offset && ap_jv_type(offset) != AP_JARRAY && !is_off(offset)) {
		FAULT(r, offset, "expected 0, a list for the stages, or a list of such lists");
	}
	if (!(first || last) || pp < 2)
		return;
	rest = pp - (first > 0) - (last > 0);
	if (!all)
		FAULT(r, r->found[first ? FIRST : LAST], "num_layers has to be said, too");
	else if (vpp > 1 && (first % vpp || last % vpp))
		FAULT(r, r->found[first ? FIRST : LAST],
			"the %" PRId64 " virtual stages do not divide it", vpp);
	else if (rest < 0 || all < first + last || (rest == 0 ? all != first + last
			: (all - first - last) % (rest * vpp)))
		FAULT(r, r->found[first ? FIRST : LAST], "the other %" PRId64 " of %" PRId64
			" layers do not divide into the other %" PRId64 " stages of %" PRId64,
				all - first - last,
			all, rest, vpp);
	else {
		say_hybrid(r, "layers=");
		for (int64_t i = 0; i < pp * vpp; i++) {
			int64_t stage = i % pp, here = first && !stage ? first : last &&
				stage == pp - 1 ? last
				: (all - first - last) / rest;

			ap_str_addf(&r->hybrid, "%s%" PRId64, i ? "," : "", here / vpp);
		}
	}
}

/* A layout, "Ettt|(t*4|)*17,t*5|t*4,L": layers of each chunk, or an error; *chunks: how many. */
static void say_layout(struct reader *r, int64_t pp, int64_t *vpp)
{
	enum { MOST = 4096 };
	const char *s = r->found[LAYOUT] ? word_of(r, LAYOUT) : NULL;
	struct ap_str flat, counts;
	int64_t n = 0, parts = 1;

	if (!s || ap_diag_count(r->ctx->diag, AP_ERROR))
		return;
	for (int pass = 0; pass < 2; pass++) { /* groups, then single letters */
		ap_str_init(&flat, r->ctx->arena);
		for (; *s && flat.len < MOST; s++) {
			const char *close = pass == 0 && *s == '(' ? strchr(s, ')') : NULL;
			const char *from = close ? s + 1 : s, *end = close ? close : s + 1;
			size_t digits = end[0] && end[close != NULL] == '*'
				? strspn(end + 1 + (close != NULL),
				"0123456789") : 0;
			int64_t times = 1;

			if ((pass == 1 || close) && digits) {
				const char *at = end + 1 + (close != NULL);

				if (!ap_parse_int(ap_arena_strndup(r->ctx->arena, at, digits), 0,
					MOST, &times))
					times = MOST;
				s = at + digits - 1;
			} else if (close) {
				s = close;
			}
			for (int64_t k = 0; k < times && flat.len < MOST; k++)
				ap_str_addn(&flat, from, (size_t)(end - from));
		}
		s = flat.s;
	}
	ap_str_init(&counts, r->ctx->arena);
	for (; *s; s++) {
		if (*s == '|') {
			ap_str_addf(&counts, "%s%" PRId64, parts > 1 ? "," : "", n);
			parts++;
			n = 0;
		} else if (*s == 't') {
			n++;
		} else if (!strchr("EmL,", *s)) {
			FAULT(r, r->found[LAYOUT],
				"a layout has E, t, m, L, |, and counts as in t*3 and (tt|)*2");
			return;
		}
	}
	ap_str_addf(&counts, "%s%" PRId64, parts > 1 ? "," : "", n);
	if (parts % pp || (r->found[VPP] && parts != pp * *vpp))
		FAULT(r, r->found[LAYOUT],
			"%" PRId64 " stages in the layout, of a pipeline of %" PRId64, parts, pp);
	*vpp = parts / pp;
	if (pp > 1)
		say_hybrid(r, "layers=%s", counts.s);
}

static void say_batch(struct reader *r, int64_t dp, int64_t pp)
{
	int64_t mbs = number(r, MBS, 0), batch = number(r, BATCH, 0);
	int64_t n = number(r, pp > 1 ? MICRO : ACCUMULATED, 1);

	if (r->language == AP_LAUNCH_MINDFORMERS) {
		mbs *= number(r, COPIES, 1);
		say_hybrid(r, "mbn=%" PRId64, n);
		if (mbs && mbs * dp < INT32_MAX && n < INT32_MAX)
			say(r, "batch", ap_arena_printf(r->ctx->arena, "%" PRId64, mbs * dp * n));
		return;
	}
	if (mbs && batch && dp && batch % (mbs * dp)) {
		FAULT(r, r->found[BATCH], "micro_batch_size %" PRId64 " x %" PRId64
			" data parallel ranks do not divide it", mbs, dp);
		return;
	}
	if (mbs)
		say_hybrid(r, "mbs=%" PRId64, mbs);
	if (!batch && mbs && dp)
		batch = mbs * dp;
	if (batch)
		say(r, "batch", ap_arena_printf(r->ctx->arena, "%" PRId64, batch));
}

static void say_degrees(struct reader *r)
{
	static const struct {
		enum meaning m;
		const char *key;
	} degrees[] = {{EP, "ep"}, {ETP, "etp"}};
	bool yaml = r->language == AP_LAUNCH_MINDFORMERS;
	int64_t tp = number(r, TP, 1), pp = number(r, PP, 1), cp = number(r, CP, 1), dp = number(r,
		DP, yaml);
	int64_t world = number(r, WORLD, 0), vpp = number(r, VPP, 1), chunk = number(r, PER_CHUNK, 0), all;
	const char *algorithm = r->found[CP_ALGO] && cp > 1 ? word_of(r, CP_ALGO) : NULL;
	enum meaning by = r->found[WORLD] ? WORLD : NODES;

	if (!world && r->found[NODES] && r->found[PER_NODE])
		world = number(r, NODES, 1) * number(r, PER_NODE, 1);
	if (ap_diag_count(r->ctx->diag, AP_ERROR))
		return;
	if (!ap_product((const int64_t[]){tp, pp, cp, dp ? dp : 1}, 4, &all) || all > INT32_MAX) {
		FAULT(r, r->found[TP] ? r->found[TP] : ap_json_root(r->doc), "degrees that no machine has");
		return;
	}
	if (world && world % all) {
		FAULT(r, r->found[by],
			"%" PRId64 " devices are no multiple of %s x pipeline x context%s = %" PRId64,
			world, "tensor", dp ? " x data" : "", all);
		return;
	}
	dp = dp ? dp : world / all;
	if (!r->found[VPP] && chunk && pp > 1) {
		int64_t layers = number(r, LAYERS, 0);

		if (!layers || layers % (pp * chunk))
			FAULT(r, r->found[PER_CHUNK], "num_layers is %" PRId64 ", no multiple of %" PRId64
				" stages of %" PRId64 " layers", layers, pp, chunk);
		else
			vpp = layers / (pp * chunk);
	}
	if (flag(r, SP) && tp == 1)
		WARN(r, r->found[SP], "is without effect where tensor parallelism is 1");
	say_hybrid(r, "tp=%" PRId64 ",pp=%" PRId64 ",cp=%" PRId64 ",sp=%d", tp, pp, cp, flag(r, SP) &&
		tp > 1);
	if (dp)
		say_hybrid(r, "dp=%" PRId64, dp);
	if (number(r, INSTANCES, 1) > 1 && (!dp || dp * cp % number(r, INSTANCES, 1)))
		FAULT(r, r->found[INSTANCES], "%" PRId64 " ranks that hold the same do not divide into so "
			"many groups", dp * cp);
	else if (number(r, INSTANCES, 1) > 1)
		say(r, "optimizer_weight_shard_size", ap_arena_printf(r->ctx->arena, "%" PRId64,
			dp * cp / number(r, INSTANCES, 1)));
	if (dp)
		say(r, "device_num", ap_arena_printf(r->ctx->arena, "%" PRId64, tp * pp * cp * dp));
	for (size_t i = 0; i < AP_COUNT(degrees); i++)
		if (number(r, degrees[i].m, 1) > 1 || (r->found[degrees[i].m] && number(r, EP, 1) > 1))
			say_hybrid(r, "%s=%" PRId64, degrees[i].key, number(r, degrees[i].m, 1));
	if (algorithm && strcmp(algorithm, "allgather") != 0 && strcmp(algorithm, "all_gather") != 0)
		say_hybrid(r, "cp_algo=%s", algorithm);
	else if (algorithm && yaml)
		say_hybrid(r, "cp_algo=%s", algorithm);
	else if (algorithm)
		WARN(r, r->found[CP_ALGO], "keys and values go round in the price; here they are gathered");
	if (r->found[VOCABULARY])
		say_hybrid(r, "vocab_emb_dp=%d", flag(r, VOCABULARY));
	say_batch(r, dp, pp);
	say_layout(r, pp, &vpp);
	if (pp > 1)
		say_hybrid(r, "vpp=%" PRId64, vpp);
	say_chunks(r, pp, vpp);
	say_layers(r, pp, vpp);
}

static void megatron_recompute(struct reader *r)
{
	const char *how = r->found[GRANULARITY] ? word_of(r, GRANULARITY) : NULL;
	const char *method = r->found[METHOD] ? word_of(r, METHOD) : NULL;
	const struct ap_jv *modules = r->found[MODULES];
	int64_t n = number(r, UNIT, 1);
	const struct {
		enum meaning m;
		const char *word;
	} apart[] = {{AGAIN_NORM, "layernorm"}, {AGAIN_ACTIVATION, "activation"}};
	struct ap_str s;

	ap_str_init(&s, r->ctx->arena);
	for (size_t i = 0; i < AP_COUNT(apart); i++) {
		if (flag(r, apart[i].m) && how && !strcmp(how, "full"))
			WARN(r, r->found[apart[i].m], "is not read: whole layers are recomputed");
		else if (flag(r, apart[i].m))
			ap_str_addf(&s, "%s%s", s.len ? "+" : "", apart[i].word);
	}
	if (!how && flag(r, SELECTIVE))
		how = "selective";
	if (!how) {
		if (s.len)
			say_text(r, "recompute", s.s);
		return;
	}
	if (!strcmp(how, "full")) {
		if (!method || (strcmp(method, "uniform") != 0 && strcmp(method, "block") != 0))
			FAULT(r, r->found[GRANULARITY], "full needs recompute_method uniform or block");
		else if (!strcmp(method, "block"))
			say_text(r, "recompute", ap_arena_printf(r->ctx->arena, "full:%" PRId64, n));
		else
			say_text(r, "recompute", n == 1 ? "full" : ap_arena_printf(r->ctx->arena,
				"uniform:%" PRId64, n));
		return;
	}
	if (strcmp(how, "selective") != 0) {
		FAULT(r, r->found[GRANULARITY], "expected full or selective");
		return;
	}
	if (method)
		FAULT(r, r->found[METHOD], "Megatron takes no method beside selective");
	if (s.len && !modules)
		ap_str_add(&s, "+core_attn");
	for (const struct ap_jv *e = modules && ap_jv_type(modules) == AP_JARRAY
		? ap_jv_first(modules) : modules;
		e; e = ap_jv_type(modules) == AP_JARRAY ? ap_jv_next(e) : NULL) {
		static const char *const known[] = {"core_attn", "layernorm", "mlp", "moe",
			"shared_experts", "moe_act", "mla_up_proj"};
		size_t k = 0;

		while (k < AP_COUNT(known) && (ap_jv_type(e) != AP_JSTRING || strcmp(known[k],
			ap_jv_str(e)) != 0))
			k++;
		if (k < AP_COUNT(known))
			ap_str_addf(&s, "%s%s", s.len ? "+" : "", known[k]);
		else
			WARN(r, modules, "one of these modules is not known here, and is not recomputed");
	}
	say_text(r, "recompute", s.len ? s.s : "selective");
}

/* Megatron's adam is what graphs have unless they say otherwise. */
static void megatron_optimizer(struct reader *r)
{
	const char *name = r->found[OPTIMIZER] ? word_of(r, OPTIMIZER) : NULL;
	const struct ap_jv *momentum = r->found[MOMENTUM];

	if (name && !strcmp(name, "sgd"))
		say_text(r, "optimizer", momentum && ap_jv_type(momentum) == AP_JNUMBER &&
			ap_jv_double(momentum) == 0 ? "sgd" : "momentum");
	else if (name && strcmp(name, "adam") != 0)
		WARN(r, r->found[OPTIMIZER], "changes the price and is not read: --optimizer says it");
}

/* What Megatron deals among data parallel ranks. */
static void megatron_dealing(struct reader *r)
{
	static const struct {
		const char *strategy, *level;
	} strategies[] = {{"no_shard", NULL}, {"optim", "level1"}, {"optim_grads", "level2"},
		{"optim_grads_params", "level3"}};
	bool sharded = flag(r, FSDP);
	const char *strategy = sharded && r->found[SHARDING] ? word_of(r, SHARDING) : "no_shard";
	const char *level = flag(r, FSDP2) ? "level3" : NULL;
	size_t i = 0;

	while (strategy && i < AP_COUNT(strategies) && strcmp(strategies[i].strategy, strategy) != 0)
		i++;
	if (i == AP_COUNT(strategies))
		FAULT(r, r->found[SHARDING],
			"expected no_shard, optim, optim_grads or optim_grads_params");
	else if (strategy && strategies[i].level)
		level = strategies[i].level;
	if (level)
		say_text(r, "optimizer_level", level);
	say(r, "enable_parallel_optimizer", level || (!sharded && flag(r, DEALT)) ? "true" : "false");
}

/* Tokens sent once to each server: by DeepEP, or by HybridEP, which does the same. */
static void megatron_dispatcher(struct reader *r)
{
	const char *type = r->found[DISPATCHER] ? word_of(r, DISPATCHER) : "alltoall";
	const char *backend = r->found[BACKEND] ? word_of(r, BACKEND) : "deepep";

	if (!type || !backend)
		return;
	if (strcmp(type, "flex") != 0) {
		if (flag(r, DEEPEP))
			FAULT(r, r->found[DEEPEP],
				"Megatron takes it beside moe_token_dispatcher_type flex alone");
		return;
	}
	if (strcmp(backend, "deepep") != 0 && strcmp(backend, "hybridep") != 0)
		WARN(r, r->found[BACKEND], "this dispatcher is taken for deepep");
	say_text(r, "moe_token_dispatcher_type", "deepep");
}

/* ---- what MindFormers recomputes ---- */

/* Kinds of recomputation and the layers that have them, as --recompute says them. */
struct again {
	const char *word, *layers; /* layers: ":2,1/1,0"; "": all */
};

struct agains {
	struct again v[8];
	size_t n;
};

/* The layers of a kind: true, or numbers of layers; NULL: none, or what is reported. */
static const char *layers_of(struct reader *r, const struct ap_jv *v)
{
	const char *list;

	if (is_off(v))
		return NULL;
	if (ap_jv_type(v) == AP_JBOOL)
		return "";
	list = ap_jv_type(v) == AP_JARRAY ? list_text(r, v, "/") : NULL;
	if (!list)
		FAULT(r, v, "expected true, false, or numbers of layers");
	return list ? ap_arena_printf(r->ctx->arena, ":%s", list) : NULL;
}

static void add_again(struct reader *r, struct agains *to, const struct ap_jv *at, const char *word,
	const char *layers)
{
	for (size_t i = 0; layers && i < to->n; i++)
		if (!strcmp(to->v[i].word, word)) {
			if (strcmp(to->v[i].layers, layers) != 0)
				WARN(r, at, "is not read: another pattern says other layers of the same "
					"(--recompute %s)", word);
			return;
		}
	if (layers && to->n < AP_COUNT(to->v))
		to->v[to->n++] = (struct again){word, layers};
}

/* The word for the cells of a layer that a pattern, such as feed_forward\.mul, names; NULL: there is none. */
static const char *cells_word(const char *pattern)
{
	static const struct {
		const char *cell, *word, *of_experts;
	} cells[] = {{"mul", "activation", "moe_act"}, {"silu", "activation", "moe_act"},
		{"swiglu", "activation", "moe_act"}, {"gelu", "activation", "moe_act"},
		{"activation", "activation", "moe_act"}, {"activation_func", "activation", "moe_act"},
		{"flash_attention", "core_attn", NULL}, {"core_attention", "core_attn", NULL},
		{"softmax", "core_attn", NULL}, {"mlp", "mlp", NULL}, {"feed_forward", "mlp", NULL},
		{"routed_experts", "moe", "moe"}, {"experts", "moe", "moe"},
		{"shared_experts", "shared_experts", "shared_experts"}};
	const char *last = strrchr(pattern, '.');
	size_t len;

	last = last ? last + 1 : pattern;
	len = strcspn(last, "$*");
	if (strstr(last, "norm"))
		return "layernorm";
	for (size_t i = 0; i < AP_COUNT(cells); i++)
		if (strlen(cells[i].cell) == len && !memcmp(cells[i].cell, last, len))
			return strstr(pattern, "experts") ? cells[i].of_experts : cells[i].word;
	return NULL;
}

static void add_pattern(struct reader *r, struct agains *to, enum meaning m, const struct ap_jv *at,
	const char *pattern, const char *layers)
{
	const char *word = cells_word(pattern);

	if (m == GATHERED)
		word = word && !strcmp(word, "layernorm") ? "communication" : NULL;
	if (word)
		add_again(r, to, at, word, layers);
	else if (layers)
		WARN(r, at, "changes the price and is not read: there is no word here for the cells \"%s\"; "
			"--recompute says parts of layers", ap_diag_name(r->ctx->diag, pattern));
}

/* A kind of recomputation: of all that it means, by layers; or of cells that patterns name. */
static void add_kind(struct reader *r, struct agains *to, enum meaning m, const char *word)
{
	const struct ap_jv *v = r->found[m], *e = v && ap_jv_type(v) == AP_JARRAY ? ap_jv_first(v) : NULL;

	if (!v)
		return;
	if (m != FULL && ap_jv_type(v) == AP_JOBJECT) {
		for (e = ap_jv_first(v); e; e = ap_jv_next(e))
			add_pattern(r, to, m, e, ap_jv_key(e), layers_of(r, e));
	} else if (m != FULL && e && ap_jv_type(e) == AP_JSTRING) {
		for (; e; e = ap_jv_next(e))
			if (ap_jv_type(e) == AP_JSTRING)
				add_pattern(r, to, m, e, ap_jv_str(e), "");
			else
				FAULT(r, e, "expected the pattern of a cell's name");
	} else {
		add_again(r, to, v, word, layers_of(r, v));
	}
}

static void mindformers_recompute(struct reader *r)
{
	struct agains all = {.n = 0};
	struct ap_str s;

	ap_str_init(&s, r->ctx->arena);
	add_kind(r, &all, FULL, "full");
	if (!all.n || *all.v[0].layers) {
		add_kind(r, &all, SELECT, "selective");
		add_kind(r, &all, GATHERED, "communication");
	}
	for (size_t i = 0; i < all.n; i++)
		ap_str_addf(&s, "%s%s%s", i ? *all.v[i].layers || *all.v[i - 1].layers ? "," : "+" : "",
			all.v[i].word, all.v[i].layers);
	if (s.len)
		say_text(r, "recompute", s.s);
}

/* ---- what DeepSpeed is told ---- */

/* A whole number that may stand for nothing. */
static int64_t number_from(struct reader *r, enum meaning m, int64_t least, int64_t otherwise)
{
	const struct ap_jv *v = r->found[m];
	int64_t n;

	if (!v)
		return otherwise;
	if (ap_jv_type(v) == AP_JNUMBER && ap_jv_int(r->doc, v, &n) && n >= least && n <= INT32_MAX)
		return n;
	FAULT(r, v, "expected a number from %" PRId64 " to %d", least, INT32_MAX);
	return otherwise;
}

/* What is dealt, and among which ranks. */
static void deepspeed_dealing(struct reader *r)
{
	int64_t stage = number_from(r, ZERO, 0, 0), mics = number_from(r, MICS, -1, -1);

	if (stage > 3) {
		FAULT(r, r->found[ZERO], "expected a stage of ZeRO from 0 to 3");
		return;
	}
	say(r, "enable_parallel_optimizer", stage ? "true" : "false");
	if (stage)
		say_text(r, "optimizer_level", ap_arena_printf(r->ctx->arena, "level%" PRId64, stage));
	if (mics > 0 && stage == 3)
		say(r, "optimizer_weight_shard_size", ap_arena_printf(r->ctx->arena, "%" PRId64, mics));
	else if (mics > 0)
		WARN(r, r->found[MICS], "is without effect but at stage 3");
	if (number_from(r, HPZ, 0, 1) > 1 && stage == 3)
		WARN(r, r->found[HPZ], "changes the price and is not read: servers have no further copy of "
			"weights");
	say(r, "overlap_grad_reduce", (r->found[OVERLAP] ? flag(r, OVERLAP) : stage == 3) ? "true" : "false");
}

/* Of samples of a step, micro-batches and data parallel ranks two tell the third. */
static void deepspeed_degrees(struct reader *r)
{
	int64_t tp = number_from(r, TP, 0, 1), cp = number(r, CP, 1), dp = number(r, DP, 0);
	int64_t mbs = number(r, MBS, 0), m = number(r, ACCUMULATED, 0), batch = number(r, BATCH, 0), all;

	tp = tp ? tp : 1;
	if (ap_diag_count(r->ctx->diag, AP_ERROR))
		return;
	if (!dp && mbs && m && batch && batch % (mbs * m) == 0)
		dp = batch / (mbs * m);
	if (!batch && mbs && m && dp && ap_product((const int64_t[]){mbs, m, dp}, 3, &all) &&
		all <= INT32_MAX)
		batch = all;
	if (mbs && m && batch && (!dp || batch / mbs / m != dp || batch % (mbs * m))) {
		FAULT(r, r->found[BATCH], "train_batch_size is not train_micro_batch_size_per_gpu x "
			"gradient_accumulation_steps x data parallel ranks");
		return;
	}
	if (!ap_product((const int64_t[]){tp, cp, dp ? dp : 1}, 3, &all) || all > INT32_MAX) {
		FAULT(r, ap_json_root(r->doc), "degrees that no machine has");
		return;
	}
	say_hybrid(r, "tp=%" PRId64 ",cp=%" PRId64, tp, cp);
	if (dp) {
		say_hybrid(r, "dp=%" PRId64, dp);
		say(r, "device_num", ap_arena_printf(r->ctx->arena, "%" PRId64, all));
	}
	if (mbs)
		say_hybrid(r, "mbs=%" PRId64, mbs);
	else if (m)
		say_hybrid(r, "mbn=%" PRId64, m);
	if (batch)
		say(r, "batch", ap_arena_printf(r->ctx->arena, "%" PRId64, batch));
}

static const char *say_launch(struct reader *r)
{
	if (r->language == AP_LAUNCH_DEEPSPEED) {
		deepspeed_degrees(r);
		deepspeed_dealing(r);
		return "deepspeed";
	}
	say_degrees(r);
	if (r->language == AP_LAUNCH_MINDFORMERS) {
		mindformers_recompute(r);
		return "mindformers";
	}
	megatron_recompute(r);
	megatron_dealing(r);
	megatron_dispatcher(r);
	megatron_optimizer(r);
	say(r, "overlap_grad_reduce", flag(r, OVERLAP) ? "true" : "false");
	if (flag(r, BALANCED))
		say(r, "expert_imbalance", "1");
	return r->found[MINDSPEED] || r->found[CHUNKS] ? "mindspeed" : "megatron";
}

enum ap_status ap_launch_settings(struct ap_ctx *ctx, enum ap_launch_language language, const char *file,
	const char *text, size_t len, struct ap_json **out)
{
	struct reader r = {.ctx = ctx, .language = language};
	struct ap_json *doc;

	AP_TRY(ap_launch_document(ctx, language, file, text, len, &doc));
	r.doc = doc;
	ap_str_init(&r.hybrid, ctx->arena);
	ap_str_init(&r.out, ctx->arena);
	ap_str_addc(&r.out, '{');
	if (ap_jv_type(ap_json_root(doc)) != AP_JOBJECT)
		FAULT(&r, ap_json_root(doc), "expected sections");
	else
		walk(&r, ap_json_root(doc), "");
	say_text(&r, "executor", say_launch(&r));
	AP_TRY(ap_diag_status(ctx->diag));
	say_text(&r, "hybrid", r.hybrid.s);
	ap_str_addc(&r.out, '}');
	return ap_json_parse(ctx, file, r.out.s, r.out.len, 0, out);
}
