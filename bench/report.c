/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/num.h"
#include "base/vec.h"
#include "errors.h"
#include "ranking.h"
#include "run.h"

void print_rows(const struct table *t)
{
	printf("%-24s %11s %11s %8s %9s %9s %9s %9s  %s\n", "row", "measured s", "predicted s", "error %",
		"compute", "exposed", "bubble", "optimizer", "GiB measured, predicted");
	for (size_t i = 0; i < t->n; i++) {
		const struct row *r = &t->v[i];
		double gib = (double)(1 << 30);

		printf("%-24s ", r->field[COL_id]);
		if (r->reason) {
			printf("cannot be expressed: %s\n", r->reason);
			continue;
		}
		if (r->measured_s > 0)
			printf("%11.4f %11.4f %+8.1f", r->measured_s, r->predicted_s,
				(r->predicted_s / r->measured_s - 1) * 100);
		else
			printf("%11s %11.4f %8s", "", r->predicted_s, "");
		printf(" %9.4f %9.4f %9.4f %9.4f ", r->terms.compute, r->terms.exposed, r->terms.bubble,
			r->terms.optimizer);
		if (r->measured_bytes)
			printf(" %.1f, %.1f", (double)r->measured_bytes / gib,
				(double)r->predicted_bytes / gib);
		if (outcome_of(r) != UNTOLD && fits(r) != (outcome_of(r) == RAN))
			printf("  %s, is predicted to need %.1f of %s GiB",
				outcome_of(r) == RAN ? "ran" : "died", (double)r->needed_bytes / gib,
				r->field[COL_hw_mem_gib]);
		printf("%s\n", is_judged(r) ? "" : "  not judged");
	}
}

/* Errors as a table of Markdown. */
static void write_sets(FILE *out, struct ap_arena *arena, const char *what, const struct errors *sets,
	size_t nset)
{
	enum { COLUMNS_OF_ERRORS = 12 };

	fprintf(out, "| %s | rows | not expressed | times | mean error %% | median %% | nine of ten %% | "
		"bias %% | memories | mean error %% | nine of ten %% | bias %% |\n|", what);
	for (int i = 0; i < COLUMNS_OF_ERRORS; i++)
		fputs(" --- |", out);
	putc('\n', out);
	for (size_t i = 0; i < nset; i++) {
		const struct errors *e = &sets[i];
		struct spread s = spread_of(arena, e->time.v, e->time.n);

		fprintf(out, "| %s | %zu | %zu | %zu |", e->name, e->rows, e->unexpressed, e->time.n);
		if (e->time.n)
			fprintf(out, " %.1f | %.1f | %.1f | %+.1f | %zu |", s.mean, s.median, s.ninety,
				s.bias, e->memory.n);
		else
			fprintf(out, " | | | | %zu |", e->memory.n);
		s = spread_of(arena, e->memory.v, e->memory.n);
		if (e->memory.n)
			fprintf(out, " %.1f | %.1f | %+.1f |\n", s.mean, s.ninety, s.bias);
		else
			fprintf(out, " | | |\n");
	}
}

static void write_share(FILE *out, size_t n, size_t all)
{
	if (all)
		fprintf(out, " %zu | %.1f |", n, 100 * (double)n / (double)all);
	else
		fprintf(out, " | |");
}

/* Which runs are told right: those that ran fit, those that died of memory do not. The last set is of all. */
static void write_outcomes(FILE *out, const struct errors *sets, size_t nset)
{
	if (!sets[nset - 1].ran && !sets[nset - 1].died)
		return;
	fprintf(out,
		"\n| runs of | ran | predicted not to fit | %% | died of memory | predicted to fit | %% |\n"
		"| --- | --- | --- | --- | --- | --- | --- |\n");
	for (size_t i = 0; i < nset; i++) {
		const struct errors *e = &sets[i];

		if (!e->ran && !e->died)
			continue;
		fprintf(out, "| %s | %zu |", e->name, e->ran);
		write_share(out, e->too_large, e->ran);
		fprintf(out, " %zu |", e->died);
		write_share(out, e->too_small, e->died);
		putc('\n', out);
	}
}

void write_errors(FILE *out, struct ap_arena *arena, const struct table *t)
{
	struct errors *sets;
	struct group *groups;
	struct ranking sum = {0};
	size_t nset = errors_by(arena, t, source_of, &sets), ngroup = groups_of(arena, t, &groups), nrow = 0;

	write_sets(out, arena, "source", sets, nset);
	write_outcomes(out, sets, nset);
	nset = errors_by(arena, t, profile_of, &sets);
	putc('\n', out);
	write_sets(out, arena, "software", sets, nset - 1);
	if (ngroup)
		fprintf(out,
			"\n| strategies of | rows | rank correlation | regret %% | of the best of %d %% | "
			"mean error %% | of the chosen %% |\n"
			"| --- | --- | --- | --- | --- | --- | --- |\n", SHOWN);
	for (size_t i = 0; i < ngroup; i++) {
		struct ranking r = ranking_of(arena, &groups[i]);

		fprintf(out, "| %s | %zu | %.2f | %.1f | %.1f | %.1f | %.1f |\n", groups[i].name,
			groups[i].rows.n, r.correlation, r.regret, r.of_shown, r.error, r.of_chosen);
		nrow += groups[i].rows.n;
		sum = (struct ranking){sum.correlation + r.correlation, sum.regret + r.regret,
			sum.of_shown + r.of_shown, sum.error + r.error, sum.of_chosen + r.of_chosen};
	}
	if (ngroup)
		fprintf(out, "| mean | %zu | %.2f | %.1f | %.1f | %.1f | %.1f |\n", nrow,
			sum.correlation / (double)ngroup, sum.regret / (double)ngroup,
			sum.of_shown / (double)ngroup, sum.error / (double)ngroup,
			sum.of_chosen / (double)ngroup);
}

void write_reasons(FILE *out, struct ap_arena *arena, const struct table *t)
{
	struct { const char **v; size_t n, cap; } reasons = {0};

	for (size_t i = 0; i < t->n; i++) {
		const char *why = t->v[i].reason;
		size_t k = 0, n = 0;

		while (why && k < reasons.n && strcmp(reasons.v[k], why) != 0)
			k++;
		if (!why || k < reasons.n)
			continue;
		AP_PUSH(arena, reasons, why);
		for (size_t j = i; j < t->n; j++)
			n += t->v[j].reason && !strcmp(t->v[j].reason, why);
		if (reasons.n == 1)
			fprintf(out, "\n| cannot be expressed because | rows |\n| --- | --- |\n");
		fprintf(out, "| %s | %zu |\n", why, n);
	}
}

FILE *open_out(const char *path)
{
	FILE *out = fopen(path, "wb");

	if (!out)
		die(EXIT_IO, path, strerror(errno));
	return out;
}

void close_out(FILE *out, const char *path)
{
	if (ferror(out) | fclose(out))
		die(EXIT_IO, path, "it cannot be written");
}

static void write_field(FILE *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, out);
		return;
	}
	putc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
	putc('"', out);
}

/* "a100-80|megatron-2021|dense" of a row; NULL: its device or framework is not known. */
static const char *like_of(struct ap_arena *arena, const struct row *r)
{
	static const char *const others[] = {"moe", "cnn"};
	const struct facts f = facts_of(arena, r);
	const struct framework *framework = framework_of(f.framework);
	const struct device *device = device_of(&f);
	const char *network = "dense";

	for (size_t i = 0; i < AP_COUNT(others); i++)
		network = strcmp(f.arch, others[i]) ? network : others[i];
	return framework && device ? ap_arena_printf(arena, "\"%s\", \"%s\", \"%s\"", device->chip,
		framework->software, network) : NULL;
}

void write_measured(const char *path, struct ap_arena *arena, const struct table *t)
{
	struct { struct alike { const char *key; size_t n; double sum; } *v; size_t n, cap; } all = {0};
	FILE *out = open_out(path);

	for (size_t i = 0; i < t->n; i++) {
		const struct row *r = &t->v[i];
		const char *key = has_time(r) ? like_of(arena, r) : NULL;
		size_t k = 0;

		if (!key)
			continue;
		while (k < all.n && strcmp(all.v[k].key, key) != 0)
			k++;
		if (k == all.n)
			AP_PUSH(arena, all, ((struct alike){key, 0, 0}));
		all.v[k].n++;
		all.v[k].sum += fabs(r->predicted_s / r->measured_s - 1) * 100;
	}
	fputs("/* SPDX-License-Identifier: Apache-2.0 */\n"
		"/* Made by `fidelity data/fidelity.csv --errors`: MEASURED(chip, software, kind of "
		"network, measured\n"
		" * steps, mean amount of predicted / measured - 1 in whole per cent). */\n", out);
	for (size_t k = 0; k < all.n; k++)
		fprintf(out, "MEASURED(%s, %zu, %.0f)\n", all.v[k].key, all.v[k].n,
			all.v[k].sum / (double)all.v[k].n);
	close_out(out, path);
}

void write_csv(const char *path, const struct table *t)
{
	FILE *out = open_out(path);

	fputs("id,measured_s,predicted_s,measured_bytes,predicted_bytes,predicted_fits,source_id,reason\n",
		out);
	for (size_t i = 0; i < t->n; i++) {
		const struct row *r = &t->v[i];
		char buf[32];

		write_field(out, r->field[COL_id]);
		fprintf(out, ",%s,", r->measured_s > 0 ? ap_format_double(r->measured_s, buf) : "");
		fprintf(out, "%s,", r->predicted_s > 0 ? ap_format_double(r->predicted_s, buf) : "");
		if (r->measured_bytes)
			fprintf(out, "%" PRId64, r->measured_bytes);
		putc(',', out);
		if (r->predicted_bytes)
			fprintf(out, "%" PRId64, r->predicted_bytes);
		fprintf(out, ",%s,", !r->needed_bytes || number(r->field[COL_hw_mem_gib]) <= 0 ? ""
			: fits(r) ? "yes" : "no");
		write_field(out, r->field[COL_source_id]);
		putc(',', out);
		write_field(out, r->reason ? r->reason : "");
		putc('\n', out);
	}
	close_out(out, path);
}

void write_markdown(const char *path, struct ap_arena *arena, const char *file, const char *svg,
	const struct table *t, bool is_neutral)
{
	FILE *out = open_out(path);

	fprintf(out, "# Predictions against published measurements\n\n"
		"Made by `fidelity %s`%s. Each row is a training run that\n"
		"somebody measured and published; graph, machine and strategy are made of what is said of\n"
		"it. An error is predicted / measured - 1: mean and median are of its amount, which for\n"
		"nine of ten is within the figure behind them; the bias is with its sign. Memory is that\n"
		"of the fullest device, as its measurement counts it. Rows of\n"
		"grade C, D or M (incomplete, implausible, a formula) are left out. Runs that measured\n"
		"anything ran: they fit their device. `data/SOURCES` says where rows come from. Where ten\n"
		"or more strategies of one model on one machine were measured, the regret is by how much\n"
		"the one that is predicted to be the fastest took longer than the one that was, and the\n"
		"fastest of the three that are predicted to be; the error of what is chosen so stands "
		"beside that\n"
		"of all. Dashed\n"
		"lines in the picture are 25 %% off. `build/bench/fidelity FILE.csv` does the same for any\n"
		"file with these columns, and prints a line for each row.\n\n",
		ap_file_base(file), is_neutral ?
		" --neutral" : "");
	if (svg)
		fprintf(out, "![Predicted against measured step times](%s)\n\n", ap_file_base(svg));
	write_errors(out, arena, t);
	write_reasons(out, arena, t);
	close_out(out, path);
}
