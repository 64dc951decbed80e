/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/processors.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/failure.h"
#include "cli/stop.h"

enum { OWN_PART = 8 }; /* divisor of --planner-memory: the program's own share */

void ap_run_out_of_memory(void *user, size_t wanted)
{
	struct ap_run *run = user; /* NULL if no run has begun */
	static const char head[] = "autopar-plan: error: ";
	char line[128];
	int len = snprintf(line, sizeof line, "%sout of memory (%zu bytes more were wanted)%s\n", head,
		wanted, run && run->set->planner_memory ? "; see --planner-memory" : "");

	if (write(STDERR_FILENO, line, (size_t)len) < 0)
		len = 0;
	line[strcspn(line, "\n")] = '\0';
	if (run)
		ap_failure_out_of_memory(run->cli, line + strlen(head));
	if (run)
		ap_outputs_discard(run->to.staged);
	_exit(ap_status_exit(AP_LIMIT));
}

struct ap_named ap_run_inputs(const struct ap_run *run, const char *graph, const char *strategy)
{
	const char *table = run->cli->narg > 1 ? run->cli->arg[1] : getenv("RANK_TABLE_FILE");

	return (struct ap_named){{.path = graph}, {.path = table && *table ? table : NULL},
		{.path = strategy}};
}

/* From these phases on, the run can be stopped and still has something to write. */
static void on_phase(void *user, const char *name)
{
	static const char *const stoppable[] = {"planning", "evaluating", "solving", "deciding",
		"cutting", "trying numbers of devices", "varying"};

	ap_run_phase(user, name);
	for (size_t i = 0; i < AP_COUNT(stoppable); i++)
		if (!strcmp(name, stoppable[i]))
			ap_stop_arm();
}

static void on_progress(void *user, const struct ap_progress *p);

/* Are phases shown as they go on? */
static bool shows_phases(const struct ap_settings *o)
{
	return o->progress == AP_PROGRESS_SHOWN && !o->quiet && !o->verbose && isatty(STDERR_FILENO);
}

void ap_run_begin(struct ap_run *run, const struct ap_cli *cli)
{
	const struct ap_settings *o = &cli->set;
	size_t budget = (size_t)o->planner_memory - (size_t)o->planner_memory / OWN_PART;
	const char **read, *table = getenv("RANK_TABLE_FILE");

	*run = (struct ap_run){.cli = cli, .set = o};
	run->ctx.arena = ap_arena_create(budget, ap_run_out_of_memory, run);
	run->ctx.scratch = ap_arena_create_like(run->ctx.arena);
	run->ctx.diag = ap_diag_create(run->ctx.arena, o->strict);
	run->ctx.jobs = o->jobs ? (int)o->jobs : ap_processors();
	run->ctx.stop = ap_stop_flag();
	run->ctx.phase = on_phase;
	run->ctx.phase_user = run;
	run->ctx.progress = shows_phases(o) || o->progress == AP_PROGRESS_JSON ? on_progress : NULL;
	clock_gettime(CLOCK_MONOTONIC, &run->start);
	read = AP_NEW_N(run->ctx.arena, const char *, cli->narg + 2);
	run->to = (struct ap_writing){.ctx = &run->ctx, .set = o, .read = read};
	if (table)
		read[run->to.nread++] = table;
	if (cli->site)
		read[run->to.nread++] = cli->site;
	for (size_t i = 0; i < cli->narg; i++)
		read[run->to.nread++] = cli->arg[i];
}

static double seconds_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - start->tv_sec) +
		(double)(now.tv_nsec - start->tv_nsec) * 1e-9;
}

static void end_phase(struct ap_run *run)
{
	char time[32], size[32];

	if (run->phase_shown)
		fputs("\r\033[K", stderr);
	run->phase_shown = false;
	if (run->phase && run->set->verbose)
		fprintf(stderr, "autopar-plan: %s: %s, %s held\n", run->phase,
			ap_format_seconds(seconds_since(&run->phase_start), time),
			ap_format_bytes((int64_t)(ap_arena_bytes(run->ctx.arena) +
				ap_arena_bytes(run->ctx.scratch)), size));
	run->phase = NULL;
}

/* Adds what is known of a search: ", best 1.80 s, no plan under 1.72 s (4.7 %), 37 % done". */
static void add_progress(struct ap_str *out, const struct ap_progress *p)
{
	char buf[32];

	if (p->best_s > 0)
		ap_str_addf(out, ", best %s", ap_format_seconds(p->best_s, buf));
	if (p->bound_s > 0)
		ap_str_addf(out, ", no plan under %s", ap_format_seconds(p->bound_s, buf));
	if (p->best_s > 0 && p->bound_s > 0)
		ap_str_addf(out, ", gap %.2f %%", 100 * fmax(0, p->best_s / p->bound_s - 1));
	if (p->done >= 0)
		ap_str_addf(out, ", %d %% done", (int)(100 * p->done));
}

/* Writes a line of JSON; members that are not known are left out. */
static void write_progress_json(struct ap_run *run)
{
	const struct ap_progress *p = &run->progress;
	struct ap_mark mark = ap_arena_mark(run->ctx.scratch);
	struct ap_str line;
	struct ap_jw w;

	ap_str_init(&line, run->ctx.scratch);
	ap_jw_str_init(&w, &line, 0);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "schema", "autopar-progress/1");
	ap_jw_kstr(&w, "phase", run->phase);
	ap_jw_knum(&w, "elapsed_s", floor(1000 * seconds_since(&run->start)) / 1000);
	if (p->best_s > 0)
		ap_jw_knum(&w, "best_step_s", p->best_s);
	if (p->bound_s > 0)
		ap_jw_knum(&w, "step_bound_s", p->bound_s);
	if (p->best_s > 0 && p->bound_s > 0)
		ap_jw_knum(&w, "gap", fmax(0, p->best_s / p->bound_s - 1));
	if (p->done >= 0)
		ap_jw_knum(&w, "done", p->done);
	ap_jw_end(&w);
	ap_jw_finish(&w);
	fprintf(stderr, "%.*s\n", (int)strcspn(line.s, "\n"), line.s);
	ap_arena_release(run->ctx.scratch, mark);
}

#define SHOW_EACH_S 0.1 /* not more often */

/* Shows the phase and what is known; the first of a phase at once. */
static void show_progress(struct ap_run *run, bool first)
{
	struct ap_mark mark;
	struct ap_str line;

	if ((!run->phase_shown && run->set->progress != AP_PROGRESS_JSON) ||
		(!first && seconds_since(&run->shown) < SHOW_EACH_S))
		return;
	clock_gettime(CLOCK_MONOTONIC, &run->shown);
	if (run->set->progress == AP_PROGRESS_JSON) {
		write_progress_json(run);
		return;
	}
	mark = ap_arena_mark(run->ctx.scratch);
	ap_str_init(&line, run->ctx.scratch);
	add_progress(&line, &run->progress);
	fprintf(stderr, "\r\033[Kautopar-plan: %s%s", run->phase, line.s);
	ap_arena_release(run->ctx.scratch, mark);
}

static void on_progress(void *user, const struct ap_progress *p)
{
	struct ap_run *run = user;

	if (p->best_s > 0)
		run->progress.best_s = p->best_s;
	if (p->bound_s != 0)
		run->progress.bound_s = fmax(0, p->bound_s);
	run->progress.done = p->done;
	if (run->phase)
		show_progress(run, false);
}

void ap_run_phase(struct ap_run *run, const char *phase)
{
	const struct ap_settings *o = run->set;

	if (phase && run->phase && !strcmp(phase, run->phase))
		return;
	end_phase(run);
	if (!phase)
		return;
	run->phase = phase;
	clock_gettime(CLOCK_MONOTONIC, &run->phase_start);
	run->progress.done = -1;
	run->phase_shown = shows_phases(o);
	if (run->phase_shown || o->progress == AP_PROGRESS_JSON)
		show_progress(run, true);
}

bool ap_run_colors(const struct ap_settings *set, int fd)
{
	return set->color == AP_COLOR_ALWAYS || (set->color == AP_COLOR_AUTO && isatty(fd));
}

/* Prints lines "autopar-plan: LEVEL: ..." with the level in colour. */
static void print_coloured(const char *text)
{
	static const struct {
		const char *word, *start;
	} levels[] = {{"error:", "\033[1;31m"}, {"warning:", "\033[1;35m"}, {"note:", "\033[1;36m"}};
	static const char name[] = "autopar-plan: ";

	while (*text) {
		size_t line = strcspn(text, "\n") + 1, at = strlen(name);

		for (size_t i = 0; i < AP_COUNT(levels); i++) {
			size_t word = strlen(levels[i].word);

			if (strncmp(text + at, levels[i].word, word) != 0)
				continue;
			fprintf(stderr, "%s%s%s\033[0m", name, levels[i].start, levels[i].word);
			at += word;
			break;
		}
		fwrite(text + (at == strlen(name) ? 0 : at), 1,
			line - (at == strlen(name) ? 0 : at), stderr);
		text += line;
	}
}

void ap_run_print(struct ap_ctx *ctx, const struct ap_settings *o)
{
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	ap_diag_render(ctx->diag, o->quiet ? AP_ERROR : AP_NOTE, (size_t)o->max_errors, &text);
	if (ap_run_colors(o, STDERR_FILENO))
		print_coloured(text.s);
	else
		fputs(text.s, stderr);
}

enum ap_status ap_run_answer(struct ap_run *run, const struct ap_str *text)
{
	if (run->set->quiet)
		return AP_OK;
	run->answered = true;
	return ap_stdout_write(&run->ctx, text->s, text->len);
}

/* An error without a message still gets a line. */
static void explain(struct ap_run *run, enum ap_status st)
{
	if (st == AP_OK || st == AP_DIFFERS || st == AP_STOPPED ||
		ap_diag_count(run->ctx.diag, AP_ERROR))
		return;
	(void)ap_diag_add(run->ctx.diag, AP_ERROR, st, NULL, NULL, "%s", ap_status_text(st));
}

int ap_run_end(struct ap_run *run, enum ap_status st)
{
	bool by_signal = st == AP_LIMIT && ap_stop_signal();
	int code;

	end_phase(run);
	ap_outputs_discard(run->to.staged);
	if (!by_signal)
		explain(run, st);
	ap_run_print(&run->ctx, run->set);
	code = by_signal ? 128 + ap_stop_signal() : ap_status_exit(st);
	if (!run->answered && !(run->to.staged && ap_outputs_spoke(run->to.staged)))
		ap_failure_print(&run->ctx, run->cli, st, code);
	ap_arena_destroy(run->ctx.scratch);
	ap_arena_destroy(run->ctx.arena);
	return code;
}
