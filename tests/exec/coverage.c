/* SPDX-License-Identifier: Apache-2.0 */
/* What the executor covers, as docs/operators.md. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "fault.h"
#include "rule/describe.h"
#include "rule/op.h"

struct section {
	uint32_t types, planned, covered, aliases, refused;
};

struct sums {
	struct section section;
	uint32_t rows, met, executed;
	uint64_t strategies;
};

static const int64_t devices[] = {1, 2, 4, 6, 8, 12};

/* As test_rows does by default, but nothing is run. */
static const struct ex_effort effort = {.samples = 5, .strategies = 201, .ndev = devices,
	.nndev = AP_COUNT(devices), .dry = true};

static uint32_t bits(uint64_t v)
{
	uint32_t n = 0;

	for (; v; v &= v - 1)
		n++;
	return n;
}

static bool has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = words; (p = strstr(p, word)); p += n)
		if ((p == words || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
			return true;
	return false;
}

/* Faults that are put into operators of this type; NULL: all. */
static uint32_t faults_of(const char *type)
{
	const struct ex_fault *f;
	uint32_t n = 0;

	for (size_t i = 0; (f = ex_fault_at(i)); i++)
		n += !type || has_word(f->types, type);
	return n;
}

/* "AllReduce (sum) of result 0 over k": of the first row that exchanges something. */
static const char *communication(struct ap_ctx *ctx, const char *type)
{
	static const char label[] = "  forward      ";

	for (const struct ap_op_row *o = ap_op_next(NULL, type); o; o = ap_op_next(o, type)) {
		struct ap_str s;
		const char *at;

		ap_str_init(&s, ctx->arena);
		ap_op_describe_comm(o, &s);
		at = strstr(s.s, label);
		if (at && strncmp(at + strlen(label), "none", 4) != 0)
			return ap_arena_strndup(ctx->arena, at + strlen(label),
				strcspn(at + strlen(label), "\n"));
	}
	return "none";
}

static void add_rules(struct ap_str *out, const char *type)
{
	const struct ap_op_row *first = ap_op_next(NULL, type), *o = first;
	uint32_t more = 0;

	while ((o = ap_op_next(o, type)))
		more++;
	ap_str_addf(out, "`%s`", first->rule);
	if (more)
		ap_str_addf(out, " and %" PRIu32 " more", more);
}

static void add_type(struct ap_ctx *ctx, const struct ex_catalogue *c, uint64_t seed,
	struct ap_str *out, struct sums *sums)
{
	const struct ex_kernel *k = ex_kernel_find(c->canonical);
	struct ex_tally t = {0};

	if (k)
		t = ex_rows_run(ctx, k, seed, &effort);
	sums->section.planned++;
	sums->section.covered += k && t.met == t.rows;
	sums->rows += bits(t.rows);
	sums->met += bits(t.met);
	sums->strategies += t.strategies;
	sums->executed += t.executed;
	ap_str_addf(out, "| %s | ", c->type);
	add_rules(out, c->canonical);
	ap_str_addf(out, " | %s | %s | ", communication(ctx, c->canonical),
		ap_op_next(NULL, c->canonical)->source);
	if (k)
		ap_str_addf(out, "%" PRIu32 " of %" PRIu32 " | ", t.executed, t.strategies);
	else
		ap_str_add(out, "not executed | ");
	ap_str_addf(out, "%" PRIu32 " |\n", faults_of(c->canonical));
}

static void add_line(struct ap_ctx *ctx, const struct ex_catalogue *c, uint64_t seed,
	struct ap_str *out, struct sums *sums)
{
	bool alias = c->canonical && strcmp(c->type, c->canonical) != 0;

	sums->section.types++;
	sums->section.refused += c->why_not != NULL;
	sums->section.aliases += alias;
	if (c->why_not)
		ap_str_addf(out, "| %s | not planned with: %s | | | | |\n", c->type, c->why_not);
	else if (!c->canonical)
		ap_str_addf(out, "| %s | unknown | | | | |\n", c->type);
	else if (alias)
		ap_str_addf(out, "| %s | as %s | | | | |\n", c->type, c->canonical);
	else
		add_type(ctx, c, seed, out, sums);
}

static const char *title(const char *section)
{
	return strcmp(section, "4.2") == 0 ? "Types whose parallel form MindSpore describes"
		: strcmp(section, "4.3") == 0 ? "Further types"
		: strcmp(section, "1.x") == 0 ? "Names of version 1" : "Types of no version that was read";
}

static void add_section(struct ap_ctx *ctx, const char *section, uint64_t seed, struct ap_str *out,
	struct sums *sums)
{
	struct ex_catalogue c;

	sums->section = (struct section){0};
	ap_str_addf(out, "\n## %s\n\n| type | rule | forward | source | strategies | faults |\n"
		"| --- | --- | --- | --- | --- | --- |\n", title(section));
	for (size_t i = 0; ex_catalogue_at(i, &c); i++)
		if (strcmp(c.section, section) == 0)
			add_line(ctx, &c, seed, out, sums);
}

static bool is_empty(const char *section)
{
	struct ex_catalogue c;

	for (size_t i = 0; ex_catalogue_at(i, &c); i++)
		if (strcmp(c.section, section) == 0)
			return false;
	return true;
}

static void add_sum(struct ap_str *out, const char *what, const struct section *s)
{
	ap_str_addf(out, "| %s | %" PRIu32 " | %" PRIu32 " | %" PRIu32 " | %" PRIu32 " | %" PRIu32
		" |\n", what, s->types, s->planned, s->covered, s->aliases, s->refused);
}

void ex_coverage_write(struct ap_ctx *ctx, uint64_t seed, struct ap_str *out)
{
	static const char *const sections[] = {"4.2", "4.3", "1.x", "ours"};
	struct sums sums = {0};
	struct ap_str tables;

	ap_str_init(&tables, ctx->arena);
	ap_str_add(out, "# Operators\n\n"
		"Written by `tests/exec/operators_doc.c`; `tests/exec/docs.sh` compares it "
		"(`AP_UPDATE=1` rewrites it).\n\n"
		"Each type is carried out on 1 to 12 virtual ranks, cut by the strategies that its\n"
		"rule allows, in arithmetic where equality is exact, under both conventions of\n"
		"gradients: results, gradients and updated parameters must be those of one rank\n"
		"(`tests/exec/test_rows.c`). A fault is a rule, a collective, a group, a layout, a halo\n"
		"or a plan that is broken on purpose and must be noticed (`tests/exec/test_faults.c`).\n"
		"`man 7 autopar-rules` explains the rules; `autopar-plan list operators NAME` says all\n"
		"that is known of one.\n\n"
		"| | types | planned with | executed, by each of their rules | other names | refused, "
		"with a reason |\n"
		"| --- | --- | --- | --- | --- | --- |\n");
	for (size_t i = 0; i < AP_COUNT(sections); i++) {
		if (is_empty(sections[i]))
			continue;
		add_section(ctx, sections[i], seed, &tables, &sums);
		add_sum(out, title(sections[i]), &sums.section);
	}
	ap_str_addf(out, "\n* rows of the rule table: %" PRIu32 ", executed: %" PRIu32 "\n"
		"* legal strategies of the samples: %" PRIu64 ", executed: %" PRIu32
		" (at most %" PRIu32 " of a sample on so many devices), each twice\n"
		"* faults put in: %" PRIu32 "; the test fails where one is not noticed\n", sums.rows,
		sums.met, sums.strategies, sums.executed, effort.strategies, faults_of(NULL));
	ap_str_add(out, tables.s);
}
