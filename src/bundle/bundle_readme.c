/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/bundle_readme.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "bundle/bundle_marks.h"
#include "bundle/bundle_settings.h"
#include "bundle/bundle_way.h"
#include "bundle/deepspeed.h"
#include "cost/recompute.h"
#include "pipeline/schedule.h"
#include "pipeline/stages.h"
#include "report/summary.h"
#include "shard/imposed.h"

struct readme {
	struct ap_ctx *ctx;
	const struct ap_bundle *b;
	const struct ap_plan *p;
	const struct ap_bundle_way *way;
	struct ap_diag *names;
	struct ap_str out;
	int step, nlimit; /* numbers written so far */
};

static void heading(struct readme *r, const char *text)
{
	ap_str_addf(&r->out, "\n%s\n", text);
	for (size_t i = strlen(text); i > 0; i--)
		ap_str_addc(&r->out, '-');
	ap_str_addc(&r->out, '\n');
}

static void add_title(struct readme *r)
{
	const struct ap_plan *p = r->p;
	char step[32], need[32], have[32];

	ap_str_addf(&r->out, AP_BUNDLE_MARK ": %s on %" PRId64 " devices",
		ap_diag_name(r->names, p->graph->name), ap_bundle_devices(r->b));
	if (p->nstage > 1)
		ap_str_addf(&r->out, ", %" PRIu32 " pipeline stages", p->nstage);
	if (p->step->micro_batches > 1)
		ap_str_addf(&r->out, ", %" PRId64 " micro-batches", p->step->micro_batches);
	ap_str_addf(&r->out, "\n\npredicted: %s a step, %s of %s on a device\n",
		ap_format_seconds(p->prediction.step_time_s, step),
		ap_format_bytes(p->prediction.memory.total, need),
		ap_format_bytes(p->capacity_bytes, have));
	ap_str_addf(&r->out, "runs as:   %s\n", r->way->name);
	if (!p->search.complete)
		ap_str_add(&r->out,
			"the search was stopped early: this is the best plan until then\n");
}

/* ---- steps ---- */

static void next_step(struct readme *r, const char *text)
{
	ap_str_addf(&r->out, "%s%d. %s", r->step ? "\n" : "", r->step + 1, text);
	r->step++;
}

static void add_script_step(struct readme *r)
{
	const struct ap_graph *g = r->p->graph;
	int64_t micro = r->p->step->micro_batches;
	const char *cell = NULL; /* a name that the network must have */

	for (ap_id i = 0; i < g->nnode && !cell; i++)
		if (g->node[i].peer < 0 && *g->node[i].cell)
			cell = g->node[i].cell;
	next_step(r, "In the training script, after init() and before anything is compiled:\n\n"
		     "       import sys\n"
		     "       sys.path.insert(0, FOLDER)\n"
		     "       import apply_plan\n"
		     "       net = apply_plan.apply(net)\n\n");
	ap_str_add(&r->out, "   net is the network with its loss");
	if (cell)
		ap_str_addf(&r->out,
			"; its cells are to have the names of the graph, such as\n   %s",
			ap_diag_name(r->names, cell));
	ap_str_add(&r->out, ". What it lacks is said before anything is changed.\n");
	if (r->p->nstage > 1 && (micro > 1 || r->p->step->training))
		ap_str_addf(&r->out,
			"   It is wrapped in Pipeline(net, %" PRId64 "), after the stages of its "
			"cells are set.\n",
			micro);
	else if (micro > 1 && r->p->step->training)
		ap_str_addf(&r->out, "   It is wrapped in GradAccumulation(net, %" PRId64 ").\n",
			micro);
	if (r->way->of_class)
		ap_str_add(&r->out, "   With set_auto_parallel_context() in place of the class "
				    "AutoParallel:\n\n"
				    "       apply_plan.set_context()\n"
				    "       net = apply_plan.prepare(net)\n");
}

static void add_rank_step(struct readme *r)
{
	int64_t n = r->p->machine->ndev;

	if (r->p->nstage == 1 || !ap_bundle_loads(r->b, AP_BUNDLE_CKPT))
		return;
	next_step(r, "Each rank loads the file of its own stage; apply_plan.py picks it:\n\n");
	for (uint32_t s = 0; s < r->p->nstage; s++)
		ap_str_addf(&r->out,
			"       ranks %" PRId64 " to %" PRId64 "  " AP_BUNDLE_STAGES
			"/stage_%" PRIu32 ".ckpt\n",
			s * n, (s + 1) * n - 1, s);
	ap_str_addf(&r->out,
		"\n   Where a launcher names the file: " AP_BUNDLE_STAGES
		"/stage_$((RANK_ID / %" PRId64 ")).ckpt.\n   " AP_BUNDLE_CKPT
		" is their merged file, for transform_checkpoints(); no rank loads it.\n",
		n);
}

static void add_template_step(struct readme *r)
{
	if (!ap_bundle_loads(r->b, AP_BUNDLE_OPERATORS))
		return;
	next_step(r, "MindSpore asks for each operator by the full name that it has in its own "
		     "compilation.\n");
	if (r->b->op_template) {
		ap_str_add(&r->out, "   The names are those of the template that MindSpore saved; "
				    "compile under "
				    "the same settings,\n   dump variables among them.\n");
		return;
	}
	ap_str_add(&r->out,
		"   The names are those of the graph. Where MindSpore says \"Not found strategy for "
		"X\", let it save its\n   own: compile once on rank 0 under sharding_propagation with "
		"shard() of one operator and\n   save_operator_strategy_file(FILE), and make this bundle "
		"again with\n   --operator-strategy-template FILE.\n");
}

static void add_check_step(struct readme *r)
{
	next_step(
		r, "Check it without devices: compile with the variables below, then compare.\n\n");
	ap_str_addf(&r->out,
		"       export RANK_SIZE=%" PRId64 " RANK_ID=0 MS_SIMULATION_LEVEL=0\n"
		"       export MS_DEV_SAVE_GRAPHS=1 MS_DEV_SAVE_GRAPHS_PATH=./ir\n\n",
		ap_bundle_devices(r->b));
	if (!r->way->file)
		ap_str_add(&r->out, "   The collectives in NN_validate are those of plan.json.\n");
	else if (!strcmp(r->way->of_class, "semi_auto"))
		ap_str_add(&r->out, "   {in_strategy: ..} of every operator in step_parallel_end "
				    "is in_strategy "
				    "of plan.json.\n");
	else
		ap_str_add(&r->out,
			"   {in_strategy: ..} of every operator in NN_pre_auto_parallel is "
			"in_strategy of plan.json.\n");
	if (r->p->nstage > 1)
		ap_str_addf(&r->out,
			"   Of each stage look at a rank: RANK_ID=0, %" PRIu32 ", ..\n",
			r->p->machine->ndev);
}

/* A script of the bundle starts the framework. */
static void add_launch_step(struct readme *r)
{
	const struct ap_said *said = &r->b->said[ap_bundle_language(r->b)];

	next_step(r, ap_arena_printf(r->ctx->arena, "On every server, K of %" PRIu32 " from 0 on:\n\n"
		"       MASTER_ADDR=HOST NODE_RANK=K bash FOLDER/%s.sh\n\n   Further arguments are handed on "
		"to %s; comments tell which variables it reads.\n", r->p->machine->topo->nserver,
		r->way->name, said->framework));
	if (!said->text)
		ap_str_addf(&r->out, "   There is no such script of this plan: see below.\n");
}

static void add_steps(struct readme *r)
{
	heading(r, "Steps");
	if (!r->way->mode && ap_bundle_language(r->b) < AP_LANGUAGES) {
		add_launch_step(r);
		return;
	}
	if (!r->way->mode) {
		next_step(r, "plan.json is what the executor reads: in_tensor_map and dev_matrix "
			     "of each operator,\n"
			     "   redistributions, collectives with their groups, the schedule.\n");
		return;
	}
	next_step(r, "Copy this folder, all of it, to every host, to one path, FOLDER below.\n"
		     "   apply_plan.py wants every file as " AP_BUNDLE_MANIFEST " lists it; "
		     "autopar-plan check FOLDER\n   says which is not.\n");
	add_script_step(r);
	add_rank_step(r);
	add_template_step(r);
	add_check_step(r);
}

/* ---- limits: what the executor cannot take of this plan ---- */

enum { MOST_NAMES = 5 };

static void limit(struct readme *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Adds a line; the first one begins the section. */
static void limit(struct readme *r, const char *fmt, ...)
{
	va_list ap;

	if (r->nlimit++ == 0)
		heading(r, "Limits");
	ap_str_add(&r->out, "- ");
	va_start(ap, fmt);
	ap_str_vaddf(&r->out, fmt, ap);
	va_end(ap);
	ap_str_addc(&r->out, '\n');
}

/* What a strategy checkpoint cannot hold, and what overrides it. */
static void limit_ckpt(struct readme *r)
{
	struct ap_bundle_pins pins = ap_bundle_pins(r->ctx, r->b);
	uint32_t out = 0;

	for (ap_id i = 0; i < r->p->graph->nnode; i++)
		out += ap_placement_needs_out(&r->p->op[i].place, r->p->step);
	out -= pins.dealt;
	if (out)
		limit(r, "%" PRIu32 " operator%s an out_strategy, which a strategy checkpoint cannot "
			"hold: say it by shard(in, out) in the script.", out, out == 1 ? " has" : "s have");
	if (pins.said)
		limit(r, "%" PRIu32 " operator%s by shard(), which wins over the strategy checkpoint: the "
			"graph says so, and\n  apply_plan.py calls it as " AP_BUNDLE_SHARD " has it.",
			pins.said, pins.said == 1 ? " is cut" : "s are cut");
	if (pins.left)
		limit(r, "%" PRIu32 " operator%s by the graph to be cut by shard(), which the script itself "
			"must call:\n  " AP_BUNDLE_SHARD ", not_applicable, says how each is cut, and why "
			"it is left to you.", pins.left, pins.left == 1 ? " is said" : "s are said");
}

static void limit_loose_operators(struct readme *r)
{
	const ap_id *op;
	struct ap_str list;
	uint32_t n;

	ap_stages_astray(r->ctx, r->p->graph, &n, &op);
	if (!n)
		return;
	ap_str_init(&list, r->ctx->arena);
	for (uint32_t i = 0; i < n && i < MOST_NAMES; i++)
		ap_str_addf(&list, "\n  %s (stage %" PRId32 ")",
			ap_diag_path(r->names, r->p->graph->node[op[i]].name),
			r->p->graph->node[op[i]].stage);
	if (n > MOST_NAMES)
		ap_str_addf(&list, "\n  and %" PRIu32 " more", n - MOST_NAMES);
	limit(r, "%" PRIu32 " operator%s in no cell of one stage. MindSpore puts %s into the latest "
		"stage of\n  what %s, which is not the planned one:%s",
		n, n == 1 ? " is" : "s are", n == 1 ? "it" : "them", n == 1 ? "it reads" : "they read",
		list.s);
}

/* What calls of primitives, unlike those of cells, cannot mark or pass to recompute(). */
static void limit_recompute(struct readme *r)
{
	uint32_t rest = ap_bundle_recompute_rest(r->ctx, r->b), n = 0;
	uint32_t norms = ap_bundle_gather_rest(r->ctx, r->b);
	struct ap_mark scratch = ap_arena_mark(r->ctx->scratch);
	const struct ap_graph *g = r->p->graph;
	struct ap_again *mark = AP_NEW_N(r->ctx->scratch, struct ap_again, g->nnode);

	if (rest)
		limit(r, "%" PRIu32 " operator%s cannot be marked by a call of one primitive: "
			"recompute.json lists %s as not_applicable,\n  and why. Mark %s in the network, or "
			"memory and time are not the planned ones.",
			rest, rest == 1 ? "" : "s", rest == 1 ? "it" : "them", rest == 1 ? "it" : "them");
	ap_recompute_mark(r->ctx, g, r->p->step, mark);
	for (ap_id i = 0; i < g->nnode; i++)
		n += mark[i].group < g->nnode &&
			(mark[i].keep_comm || mark[i].regather || mark[i].slice);
	ap_arena_release(r->ctx->scratch, scratch);
	if (norms)
		limit(r, "What is gathered of the results of %" PRIu32 " norm%s is gathered again, which "
			"recompute.json\n  lists as not_applicable: call "
			"add_prim_attr(\"recompute_comm_op\", True) of %s in the network.",
			norms, norms == 1 ? "" : "s", norms == 1 ? "its primitive" : "their primitives");
	if (n)
		limit(r, "%" PRIu32 " operator%s recomputed by a call of the primitive, which takes no "
			"mp_comm_recompute and the like.", n, n == 1 ? " is" : "s are");
}

/* What the class AutoParallel has no method for. */
static void limit_class(struct readme *r)
{
	const struct ap_step *step = r->p->step;
	struct ap_str list;
	size_t n;

	if (!step->alltoall)
		limit(r, "The plan does without AlltoAll, which AutoParallel cannot be told: use "
			"set_context().");
	if (step->optimizer_sharding && step->saved_whole)
		limit(r, "Parameters that are gathered before they are saved: AutoParallel cannot be told; "
			"use set_context().");
	ap_str_init(&list, r->ctx->arena);
	n = ap_bundle_unsaid(r->ctx, r->b, &list);
	if (n)
		limit(r, "AutoParallel has no method for %s: use set_context(), which sets %s.", list.s,
			n == 1 ? "it" : "them");
}

static void add_limits(struct readme *r)
{
	char scale[32];
	uint32_t reshapes = 0, swaps = 0;

	for (ap_id i = 0; i < r->p->graph->nnode; i++)
		reshapes += !strcmp(r->p->graph->node[i].type, "Reshape");
	if (r->way->file)
		limit(r, "recursive_programming, MindSpore's default search_mode, reads none of these "
			"files.");
	if (ap_bundle_loads(r->b, AP_BUNDLE_CKPT))
		limit_ckpt(r);
	if (reshapes && r->way->file)
		limit(r, "%" PRIu32 " Reshape%s no strategy: each goes from the layout of what it reads to "
			"the one its user wants.", reshapes, reshapes == 1 ? " has" : "s have");
	for (ap_id i = 0; i < r->p->graph->nnode; i++)
		swaps += r->p->graph->node[i].bound.swaps != 0;
	if (swaps)
		limit(r, "%" PRIu32 " operator%s of attention exchange%s heads for the sequence, for which "
			"MindSpore has no strategy:\n  MindFormers' networks do it by "
			"context_parallel_algo: ulysses_cp.", swaps, swaps == 1 ? "" : "s",
			swaps == 1 ? "s" : "");
	if (r->p->nstage > 1)
		limit_loose_operators(r);
	if (r->way->mode)
		limit_recompute(r);
	if (r->way->of_class)
		limit_class(r);
	if (r->way->mode && r->b->asked.scale_sense > 0 && r->b->asked.scale_sense != 1)
		limit(r, "scale_sense %s is an argument of PipelineGradReducer(), which the script makes.",
			ap_format_double(r->b->asked.scale_sense, scale));
	if (r->p->nstage > 1 && !strcmp(r->p->step->pipe->scheduler->name, "zero_bubble_v"))
		limit(r, "MindSpore 2.7 refuses the scheduler zero_bubble_v; newer ones have it.");
}

/* ---- the rest ---- */

static void add_honours(struct readme *r)
{
	heading(r, "What is taken of the plan");
	ap_str_add(&r->out, r->way->honours);
	if (!r->way->mode)
		return;
	ap_str_add(&r->out,
		"Dataset, optimizer sharding, micro-batches, fusion and types of gradients: "
		"settings.json.\nWhat is recomputed: recompute.json.\n");
	if (r->p->nstage > 1)
		ap_str_add(&r->out,
			"Stages: stage_config.json; segments of a stage: segment_config.json.\n");
}

static void add_differences(struct readme *r)
{
	const struct ap_plan_route *route = r->p->route;

	if (!route || !route->n)
		return;
	heading(r, "What the executor decides otherwise");
	ap_summary_route(&r->out, r->p);
	ap_summary_differs(&r->out, r->p);
	ap_str_add(&r->out,
		"\nplan.json, \"route\", lists them all. The plan is priced as it runs.\n");
}

/* What one of the frameworks that only know degrees of parallelism is told, and what it cannot be. */
static void add_said(struct readme *r, const char *file, const struct ap_said *said)
{
	static const char *const leads[] = {[AP_UNSAID_STOPS] = "would not start with",
		[AP_UNSAID_LEFT] = "cannot be told",
		[AP_UNSAID_OTHERWISE] = "is told otherwise"};

	if (!said->text)
		ap_str_addf(&r->out, "There is no %s, since %s would not start with it.\n", file,
			said->framework);
	for (uint32_t i = 0; i < said->nunsaid; i++)
		ap_str_addf(&r->out, "- %s %s: %s.\n", said->framework, leads[said->unsaid[i].kind],
			said->unsaid[i].what);
}

static void add_expert(struct readme *r)
{
	static const char *const files[AP_LANGUAGES] = {"mindformers.yaml", "megatron.sh", "mindspeed.sh",
		"torchtitan.sh", AP_DEEPSPEED_FILE};
	const struct ap_expert *x = r->b->expert;
	struct ap_str names;
	uint32_t nfile = 0;
	int last = 0;
	char step[32];

	ap_str_init(&names, r->ctx->arena);
	for (int i = 0; i < AP_LANGUAGES; i++)
		last = r->b->said[i].text ? i : last;
	for (int i = 0; i < AP_LANGUAGES; i++)
		if (r->b->said[i].text)
			ap_str_addf(&names, "%s%s", !nfile++ ? "" : i == last ? " and " : ", ", files[i]);
	heading(r, "In words of degrees of parallelism");
	if (!x->hybrid.dp) {
		ap_str_addf(&r->out, "No file says the plan in them: %s.\n", x->why_not);
		return;
	}
	if (x->same) {
		ap_str_addf(&r->out, "The plan is a hybrid%s%s%s.\n", nfile ? ", which " : "", names.s,
			!nfile ? "" : nfile > 1 ? " say" : " says");
	} else {
		ap_str_addf(&r->out, "The hybrid that is nearest%s%s%s takes %s a step, ",
			nfile ? ", which " : "", names.s, !nfile ? "" : nfile > 1 ? " say," : " says,",
			ap_format_seconds(x->step_time_s, step));
		ap_summary_percent(&r->out, fabs(x->loss), 1);
		ap_str_addf(&r->out, " %s than planned,\n%" PRIu32 " operator%s cut otherwise%s.\n",
			x->loss < 0 ? "less" : "more", x->differ, x->differ == 1 ? "" : "s",
			x->fits ? "" : "; it does not fit the memory");
		if (x->loss < 0 && r->p->route && r->p->route->n)
			ap_str_add(&r->out, "Their models bring strategies of their own, which leave nothing "
				"for this route to decide.\n");
	}
	for (int i = 0; i < AP_LANGUAGES; i++)
		if (r->b->said[i].framework)
			add_said(r, files[i], &r->b->said[i]);
}

/* Does the file hold strategies that the executor does not load in this mode? */
static bool is_idle(const struct readme *r, const char *file)
{
	bool strategies = !strcmp(file, AP_BUNDLE_CKPT) || !strcmp(file, AP_BUNDLE_OPERATORS);

	return strategies && r->way->mode && !ap_bundle_loads(r->b, file);
}

static void add_files(struct readme *r, const struct ap_bundle_file *file_at(size_t i))
{
	const struct ap_bundle_file *file;

	heading(r, "Files");
	for (size_t i = 0; (file = file_at(i)); i++)
		if (!file->wanted || file->wanted(r->b))
			ap_str_addf(&r->out, "%-24s  %s%s\n", file->name, file->text,
				is_idle(r, file->name) ? "; not loaded here" : "");
	if (r->p->nstage > 1)
		ap_str_addf(&r->out, "%-24s  strategy checkpoint of each stage%s\n",
			AP_BUNDLE_STAGES "/stage_K.ckpt",
			is_idle(r, AP_BUNDLE_CKPT) ? "; not loaded here" : "");
}

void ap_bundle_write_readme(struct ap_ctx *ctx, const struct ap_bundle *b,
	const struct ap_bundle_file *file_at(size_t i), ap_write_fn *write, void *user)
{
	struct readme r = {.ctx = ctx, .b = b, .p = b->plan, .way = ap_bundle_way(b)};

	r.names = ap_diag_create(ctx->arena, false);
	ap_str_init(&r.out, ctx->arena);
	add_title(&r);
	add_steps(&r);
	add_honours(&r);
	add_differences(&r);
	add_expert(&r);
	add_limits(&r);
	add_files(&r, file_at);
	write(user, r.out.s, r.out.len);
}
