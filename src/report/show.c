/* SPDX-License-Identifier: Apache-2.0 */
#include "report/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/name_fold.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "report/summary.h"
#include "rule/op.h"

enum {
	STAGE_LINES = 16,
	MOVE_LINES = 28,
	WIDEST_CUT = 30, /* wider ones shift the rest of the line */
	MOST_TYPES = 8 /* named on a line; then a number */
};

/* A line about things that lie alike. */
struct row {
	const char *label, *cut, *extra;
	uint32_t things;
	double time_s;
};

struct rows {
	AP_VEC(struct row) v;
};

/* ---- what was decided ---- */

/* A setting's value as text, from the plan's JSON; NULL: null, false or not there. */
static const char *setting_text(struct ap_ctx *ctx, const struct ap_saved *s, const char *key)
{
	const struct ap_saved_fact *f = ap_saved_fact(s, "settings", key);

	if (!f || !strcmp(f->json, "null") || !strcmp(f->json, "false"))
		return NULL;
	return ap_diag_name(ctx->diag, f->text ? f->text : f->json);
}

/* Words of any length, safe to print. */
static const char *words(struct ap_ctx *ctx, const char *text)
{
	struct ap_str safe;

	ap_str_init(&safe, ctx->arena);
	for (const char *c = text, *end; *c; c = end + (*end == ' ')) {
		end = c + strcspn(c, " ");
		ap_str_addf(&safe, "%s%s", c > text ? " " : "",
			ap_diag_name(ctx->diag, ap_arena_strndup(ctx->scratch, c, (size_t)(end - c))));
	}
	return safe.s;
}

static void write_settings(struct ap_ctx *ctx, const struct ap_saved *s, struct ap_str *out)
{
	static const char *const keys[] = {"executor", "software", "hybrid", "pipeline_stages",
		"stage_devices", "pipeline_segments", "pipeline_scheduler", "micro_batches", "recompute",
		"enable_parallel_optimizer", "optimizer_level"};
	size_t n = s->decided ? 2 : AP_COUNT(keys); /* the words hold the others */

	if (s->decided) {
		ap_str_addf(out, "decided         %s\n", words(ctx, s->decided));
		if (*s->given)
			ap_str_addf(out, "given           %s\n", words(ctx, s->given));
	}
	ap_str_add(out, "settings       ");
	for (size_t i = 0; i < n; i++) {
		const char *text = setting_text(ctx, s, keys[i]);

		if (text)
			ap_str_addf(out, " %s=%s", keys[i], text);
	}
	ap_str_addc(out, '\n');
}

static double number_of(const struct ap_saved *s, const char *section, const char *key)
{
	const struct ap_saved_fact *f = ap_saved_fact(s, section, key);

	return f ? f->number : 0;
}

static void write_step(const struct ap_saved *s, struct ap_str *out)
{
	static const struct {
		const char *key, *name;
	} parts[] = {{"compute_s", "compute"}, {"exposed_communication_s", "exposed communication"},
		{"bubble_s", "bubble"}, {"optimizer_s", "optimizer"}};
	const struct ap_saved_fact *memory = ap_saved_fact(s, "memory", "total_bytes");
	const struct ap_saved_fact *capacity = ap_saved_fact(s, "machine", "capacity_bytes");
	double step_s = number_of(s, "prediction", "step_time_s");
	char buf[32];

	ap_str_addf(out, "step            %s", ap_format_seconds(step_s, buf));
	for (size_t i = 0; i < AP_COUNT(parts); i++) {
		ap_str_addf(out, "%s %s ", i ? "," : ":", parts[i].name);
		ap_summary_percent(out, number_of(s, "prediction", parts[i].key), step_s);
	}
	ap_str_add(out, "\nmemory          ");
	ap_str_add(out, ap_format_bytes(memory ? memory->integer : 0, buf));
	ap_str_addf(out, " of %s on the fullest device\n",
		ap_format_bytes(capacity ? capacity->integer : 0, buf));
}

static void write_head(struct ap_ctx *ctx, const struct ap_saved *s, bool figures, struct ap_str *out)
{
	const struct ap_saved_fact *name = ap_saved_fact(s, "graph", "name");
	const struct ap_saved_fact *chip = ap_saved_fact(s, "machine", "chip");
	const struct ap_saved_fact *mode = ap_saved_fact(s, "search", "mode");
	const struct ap_saved_fact *status = ap_saved_fact(s, "search", "status");
	double servers = number_of(s, "machine", "servers");

	ap_str_addf(out, "%s, batch %.0f, on %.0f x %s, %.0f server%s\n",
		ap_diag_name(ctx->diag, name && name->text ? name->text : "?"),
		number_of(s, "graph", "batch"), number_of(s, "machine", "devices"),
		ap_diag_name(ctx->diag, chip && chip->text ? chip->text : "?"), servers,
		servers == 1 ? "" : "s");
	write_settings(ctx, s, out);
	ap_str_addf(out, "search          %s, %s\n", mode && mode->text ? mode->text : "?",
		status && status->text ? status->text : "?");
	if (figures)
		write_step(s, out);
}

/* ---- stages ---- */

struct stage {
	int64_t operators, memory_bytes;
	double forward_s, backward_s, idle_s;
};

/* Figures of n stages, from the facts named "stage 3.forward_s". O(facts). */
static struct stage *read_stages(struct ap_ctx *ctx, const struct ap_saved *s, uint32_t n)
{
	struct stage *stage = AP_NEW_N(ctx->scratch, struct stage, n);

	for (uint32_t i = 0; i < s->nfact; i++) {
		const struct ap_saved_fact *f = &s->fact[i];
		unsigned long id;
		char *key;

		if (strcmp(f->section, "stages") != 0 || strncmp(f->key, "stage ", 6) != 0)
			continue;
		id = strtoul(f->key + 6, &key, 10);
		if (id >= n)
			continue;
		if (!strcmp(key, ".operators"))
			stage[id].operators = f->integer;
		else if (!strcmp(key, ".memory_bytes"))
			stage[id].memory_bytes = f->integer;
		else if (!strcmp(key, ".forward_s"))
			stage[id].forward_s = f->number;
		else if (!strcmp(key, ".backward_s"))
			stage[id].backward_s = f->number;
		else if (!strcmp(key, ".idle_s"))
			stage[id].idle_s = f->number;
	}
	return stage;
}

/* A stage without its number, so that equal ones are a line. */
static const char *stage_text(struct ap_ctx *ctx, const struct stage *s, bool figures)
{
	char memory[32], forward[32], backward[32], idle[32];

	if (!figures)
		return ap_arena_printf(ctx->scratch, "%9" PRId64, s->operators);
	return ap_arena_printf(ctx->scratch, "%9" PRId64 " %11s %10s %10s %10s", s->operators,
		ap_format_bytes(s->memory_bytes, memory), ap_format_seconds(s->forward_s, forward),
		ap_format_seconds(s->backward_s, backward), ap_format_seconds(s->idle_s, idle));
}

static void write_stages(struct ap_ctx *ctx, const struct ap_saved *s, bool figures, struct ap_str *out)
{
	const struct ap_saved_fact *layers = ap_saved_fact(s, "pipeline", "layers");
	const struct ap_saved_fact *stages = ap_saved_fact(s, "pipeline", "stages");
	uint32_t n = stages && stages->integer < s->nfact ? (uint32_t)stages->integer : 0, lines = 0;
	const struct stage *stage = read_stages(ctx, s, n);

	if (n < 2)
		return;
	if (layers && layers->json[0] == '[') {
		ap_str_add(out, "layers          ");
		ap_str_add_folded(out, ap_arena_strndup(ctx->arena, layers->json + 1,
			strlen(layers->json) - 2));
		ap_str_addc(out, '\n');
	}
	ap_str_addf(out, "\nstages     operators%s\n",
		figures ? "      memory    forward   backward       idle" : "");
	for (uint32_t first = 0, end; first < n; first = end) {
		const char *text = stage_text(ctx, &stage[first], figures);
		char name[32];

		for (end = first + 1; end < n && !strcmp(stage_text(ctx, &stage[end], figures), text); end++)
			;
		if (++lines == STAGE_LINES && end < n) {
			ap_str_addf(out, "%" PRIu32 " more\n", n - first);
			break;
		}
		snprintf(name, sizeof name, end - first > 1 ? "%" PRIu32 "-%" PRIu32 : "%" PRIu32, first,
			end - 1);
		ap_str_addf(out, "%-10s %s\n", name, text);
	}
}

/* ---- operators ---- */

/* "[[8,1],[1,8]]" as "[8,1] [1,8]"; "[[]]": "[]". */
static const char *cuts_text(struct ap_ctx *ctx, const char *json)
{
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	for (size_t i = 1; json[i] && json[i + 1]; i++)
		ap_str_addc(&text, json[i] == ',' && json[i - 1] == ']' ? ' ' : json[i]);
	return text.s;
}

/* "[[8,1,1],[8,1,1]]" as "[8,1,1]". */
static const char *first_cut(struct ap_ctx *ctx, const char *json)
{
	return json[1] == '[' ? ap_arena_strndup(ctx->arena, json + 1, strcspn(json, "]")) : "";
}

static bool passes(const struct ap_saved_op *op, uint32_t like, const char *phase)
{
	for (uint32_t i = 0; i < op->ncomm; i++)
		if (!strcmp(op->comm[i].phase, phase) && op->comm[i].ranks == op->comm[like].ranks &&
			!strcmp(op->comm[i].kind, op->comm[like].kind))
			return true;
	return false;
}

/* Collectives within the passes, each once: "AllReduce over 8 forward and backward". */
static const char *collectives_text(struct ap_ctx *ctx, const struct ap_saved_op *op)
{
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	for (uint32_t i = 0; i < op->ncomm; i++) {
		const struct ap_saved_comm *c = &op->comm[i];
		bool forward = passes(op, i, "forward"), backward = passes(op, i, "backward"), seen = false;

		for (uint32_t j = 0; j < i && !seen; j++)
			seen = op->comm[j].ranks == c->ranks && !strcmp(op->comm[j].kind, c->kind);
		if (!seen && (forward || backward))
			ap_str_addf(&text, "%s%s over %" PRId64 " %s", text.len ? ", " : "  ", c->kind,
				c->ranks, forward && backward ? "forward and backward"
				: forward ? "forward" : "backward");
	}
	return text.s;
}

static bool is_product(const char *type)
{
	const struct ap_op_row *row = ap_op_next(NULL, type);

	return row && row->unit == AP_OP_CUBE;
}

static bool is_view(const char *type)
{
	const struct ap_op_row *row = ap_op_next(NULL, type);

	return row && ap_op_is_view(row);
}

/* Operators that are a line, or part of one. */
struct kin {
	const struct ap_name_fold *fold;
	const struct ap_saved_op *op; /* the first */
	const char *cut, *extra;
	double time_s;
	bool alone; /* a product, or it has collectives: a line of its own */
};

/* The cell that all names of the kin share: their common prefix up to its last '.' or '/'. */
static size_t common_cell(const struct kin *k, size_t n)
{
	const char *first = k[0].fold->name;
	size_t len = strcspn(first, "/");

	for (size_t i = 1; i < n; i++) {
		const char *name = k[i].fold->name;
		size_t same = 0;

		while (same < len && name[same] == first[same])
			same++;
		if (same < len || (name[same] && !strchr("./", name[same])))
			while (same && !strchr("./", first[same - 1]))
				same--;
		len = same && strchr("./", first[same - 1]) ? same - 1 : same;
	}
	return len;
}

/* May both be on a line? They lie alike, and are of the same layers: what names have in brackets is in
 * the part that they share. */
static bool join(const struct kin *k, size_t n)
{
	const struct kin *last = &k[n - 1];
	size_t cell;

	if (k->alone || last->alone || k->fold->n != last->fold->n || strcmp(k->cut, last->cut) != 0)
		return false;
	cell = common_cell(k, n);
	return cell > 0 && !memchr(k->fold->name + cell, '[', strcspn(k->fold->name + cell, "/")) &&
		!memchr(last->fold->name + cell, '[', strcspn(last->fold->name + cell, "/"));
}

/* "model.layers.[0-79].norm: Cast, RmsNorm, Cast". */
static const char *label_of(struct ap_ctx *ctx, const struct kin *k, size_t n)
{
	struct ap_str text;

	if (n == 1)
		return ap_diag_name(ctx->diag, k->fold->name);
	ap_str_init(&text, ctx->arena);
	ap_str_add(&text, ap_diag_name(ctx->diag, ap_arena_strndup(ctx->scratch, k->fold->name,
		common_cell(k, n))));
	for (size_t i = 0, end, named = 0; i < n; i = end, named++) {
		if (named == MOST_TYPES) {
			ap_str_addf(&text, " and %zu more", n - i);
			break;
		}
		for (end = i + 1; end < n && !strcmp(k[end].op->type, k[i].op->type); end++)
			;
		ap_str_addf(&text, "%s %s", named ? "," : ":", ap_diag_name(ctx->diag, k[i].op->type));
		if (end - i > 1)
			ap_str_addf(&text, " x %zu", end - i);
	}
	return text.s;
}

static void operator_rows(struct ap_ctx *ctx, const struct ap_saved *s, struct rows *out, uint32_t *views)
{
	struct ap_name_item *item = AP_NEW_N(ctx->scratch, struct ap_name_item, s->nop);
	uint32_t *of = AP_NEW_N(ctx->scratch, uint32_t, s->nop), n = 0, nfold;
	const struct ap_name_fold *fold;
	struct kin *k;

	for (uint32_t i = 0; i < s->nop; i++) {
		const struct ap_saved_op *op = &s->op[i];

		if (is_view(op->type)) {
			++*views;
			continue;
		}
		of[n] = i;
		item[n++] = (struct ap_name_item){op->label, ap_arena_printf(ctx->scratch, "%s %s %s%s",
			op->type, op->field[AP_SAVED_IN_STRATEGY], op->field[AP_SAVED_OUT_STRATEGY],
			collectives_text(ctx, op))};
	}
	nfold = ap_name_folds(ctx, n, item, &fold);
	k = AP_NEW_N(ctx->scratch, struct kin, nfold);
	for (uint32_t i = 0; i < nfold; i++) {
		const struct ap_saved_op *op = &s->op[of[fold[i].item[0]]];

		k[i] = (struct kin){.fold = &fold[i], .op = op, .extra = collectives_text(ctx, op)};
		k[i].alone = is_product(op->type) || *k[i].extra;
		k[i].cut = k[i].alone ? cuts_text(ctx, op->field[AP_SAVED_IN_STRATEGY])
			: first_cut(ctx, op->field[AP_SAVED_OUT_STRATEGY]);
		for (uint32_t j = 0; j < fold[i].n; j++)
			k[i].time_s += s->op[of[fold[i].item[j]]].time_s;
	}
	for (uint32_t i = 0, end; i < nfold; i = end) {
		struct row row = {.cut = k[i].cut, .extra = k[i].extra};

		for (end = i + 1; end < nfold && join(&k[i], end - i + 1); end++)
			;
		row.label = label_of(ctx, &k[i], end - i);
		for (uint32_t j = i; j < end; j++) {
			row.things += k[j].fold->n;
			row.time_s += k[j].time_s;
		}
		AP_PUSH(ctx->scratch, out->v, row);
	}
}

/* ---- redistributions ---- */

/* "[[8,1],[1,0]]" as "[8:1,1]": parts and, where there are several, how many ranks they lie apart. */
static void add_layout(struct ap_str *out, const char *json)
{
	bool first = true;

	ap_str_addc(out, '[');
	for (const char *c = json; (c = strpbrk(c, "0123456789"));) {
		char *end;
		long parts = strtol(c, &end, 10), apart = strtol(end + 1, &end, 10);

		ap_str_addf(out, parts > 1 ? "%s%ld:%ld" : "%s%ld", first ? "" : ",", parts, apart);
		first = false;
		c = end;
	}
	ap_str_addc(out, ']');
}

static void move_rows(struct ap_ctx *ctx, const struct ap_saved *s, struct rows *out)
{
	struct ap_name_item *item = AP_NEW_N(ctx->scratch, struct ap_name_item, s->nmove);
	const struct ap_name_fold *fold;
	uint32_t nfold;

	for (uint32_t i = 0; i < s->nmove; i++) {
		const struct ap_saved_move *m = &s->move[i];
		const struct ap_saved_op *to = &s->op[m->to];
		const char *steps = m->field[AP_SAVED_STEPS];
		struct ap_str same;

		ap_str_init(&same, ctx->arena);
		add_layout(&same, m->field[AP_SAVED_FROM_LAYOUT]);
		ap_str_add(&same, " -> ");
		add_layout(&same, m->field[AP_SAVED_TO_LAYOUT]);
		ap_str_add(&same, "  ");
		if (steps) /* a JSON string */
			ap_str_addn(&same, steps + 1, strlen(steps) - 2);
		item[i] = (struct ap_name_item){m->operand >= 0 && m->operand < to->nin
			? to->in[m->operand] : to->label, same.s};
	}
	nfold = ap_name_folds(ctx, s->nmove, item, &fold);
	for (uint32_t i = 0; i < nfold; i++) {
		const char *same = item[fold[i].item[0]].same, *steps = strstr(same, "  ");
		struct row row = {.label = ap_diag_name(ctx->diag, fold[i].name), .things = fold[i].n,
			.cut = ap_arena_strndup(ctx->arena, same, (size_t)(steps - same)), .extra = steps};

		for (uint32_t j = 0; j < fold[i].n; j++)
			row.time_s += s->move[fold[i].item[j]].time_s;
		AP_PUSH(ctx->scratch, out->v, row);
	}
}

/* ---- rows ---- */

static int compare_times(const void *a, const void *b)
{
	double x = (*(const struct row *const *)a)->time_s, y = (*(const struct row *const *)b)->time_s;

	if (x != y)
		return x > y ? -1 : 1;
	return *(const struct row *const *)a < *(const struct row *const *)b ? -1 : 1;
}

/* Writes the rows in order: the longest ones where they are more than `most` lines. whole_s: of which they
 * have shares; 0: those are not written. */
static void write_rows(struct ap_ctx *ctx, const struct rows *rows, size_t most, double whole_s,
	const char *what, struct ap_str *out)
{
	const struct row **by_time = AP_NEW_N(ctx->scratch, const struct row *, rows->v.n);
	bool *shown = AP_NEW_N(ctx->scratch, bool, rows->v.n);
	size_t n = rows->v.n <= most ? rows->v.n : most - 1;
	struct row rest = {.label = ""};
	int width = 0;

	for (size_t i = 0; i < rows->v.n; i++)
		by_time[i] = &rows->v.v[i];
	qsort(by_time, rows->v.n, sizeof *by_time, compare_times);
	for (size_t i = 0; i < rows->v.n; i++) {
		int len = (int)strlen(by_time[i]->cut);

		shown[by_time[i] - rows->v.v] = i < n;
		width = len > width && len <= WIDEST_CUT && i < n ? len : width;
	}
	for (size_t i = 0; i <= rows->v.n; i++) {
		const struct row *r = i < rows->v.n ? &rows->v.v[i] : &rest;
		struct ap_str share;

		if (i < rows->v.n && !shown[i]) {
			rest.things += r->things;
			rest.time_s += r->time_s;
			continue;
		}
		if (r == &rest && !rest.things)
			break;
		ap_str_init(&share, ctx->scratch);
		if (whole_s > 0) {
			ap_summary_percent(&share, r->time_s, whole_s);
			ap_str_addf(out, "%7s  ", share.s);
		}
		if (r == &rest)
			ap_str_addf(out, "%" PRIu32 " more %s\n", rest.things, what);
		else
			ap_str_addf(out, "%-*s  %s%s\n", width, r->cut, r->label, r->extra);
	}
}

void ap_show(struct ap_ctx *ctx, const struct ap_saved *s, bool figures, struct ap_str *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct rows operators = {0}, moves = {0};
	double whole_s = 0;
	size_t used = 0, start = out->len;
	uint32_t views = 0;

	write_head(ctx, s, figures, out);
	write_stages(ctx, s, figures, out);
	operator_rows(ctx, s, &operators, &views);
	move_rows(ctx, s, &moves);
	for (size_t i = 0; figures && i < operators.v.n; i++)
		whole_s += operators.v.v[i].time_s;
	for (size_t i = 0; figures && i < moves.v.n; i++)
		whole_s += moves.v.v[i].time_s;
	for (const char *c = out->s + start; *c; c++)
		used += *c == '\n';
	used += moves.v.n ? 2 + (moves.v.n < MOVE_LINES ? moves.v.n : MOVE_LINES) : 0;
	ap_str_addf(out, "\n%soperators: parts of each dimension of operands, or of results",
		whole_s > 0 ? "  share  " : "");
	if (views)
		ap_str_addf(out, "; without %" PRIu32 " view%s", views, views == 1 ? "" : "s");
	ap_str_addc(out, '\n');
	write_rows(ctx, &operators, AP_SHOW_LINES - used - 2, whole_s, "operators", out);
	if (moves.v.n) {
		ap_str_addf(out, "\n%sredistributed: parts:ranks apart of each dimension\n",
			whole_s > 0 ? "  share  " : "");
		write_rows(ctx, &moves, MOVE_LINES, whole_s, "redistributed tensors", out);
	}
	ap_arena_release(ctx->scratch, mark);
}
