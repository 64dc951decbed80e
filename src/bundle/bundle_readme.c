/* SPDX-License-Identifier: Apache-2.0 */
/* README.txt: the steps for this plan, what its executor takes of it, and how to see that it did.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "bundle/bundle_parts.h"
#include "report/summary.h"

struct readme {
	struct ap_ctx *ctx;
	const struct ap_bundle *b;
	const struct ap_plan *p;
	const struct ap_bundle_way *way;
	struct ap_diag *names;
	struct ap_str out;
	int step;
};

static void heading(struct readme *r, const char *text)
{
	ap_str_addf(&r->out, "\n%s\n", text);
	for (size_t i = strlen(text); i > 0; i--)
		ap_str_addc(&r->out, '-');
	ap_str_addc(&r->out, '\n');
}

static bool reads(const struct readme *r, const char *file)
{
	return r->way->file && !strcmp(r->way->file, file);
}

static int64_t stage_devices(const struct readme *r)
{
	return r->p->machine->ndev;
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

static void next_step(struct readme *r, const char *text)
{
	ap_str_addf(&r->out, "%s%d. %s", r->step ? "\n" : "", r->step + 1, text);
	r->step++;
}

/* Whose names the network has to have. */
static const char *some_cell(const struct ap_graph *g)
{
	for (ap_id i = 0; i < g->nnode; i++)
		if (g->node[i].peer < 0 && *g->node[i].cell)
			return g->node[i].cell;
	return NULL;
}

static void add_wrappers(struct readme *r)
{
	int64_t micro = r->p->step->micro_batches;

	if (r->p->nstage > 1 && (micro > 1 || r->p->step->training))
		ap_str_addf(&r->out,
			"   It is wrapped in Pipeline(net, %" PRId64 "), after the stages of its "
			"cells are set.\n",
			micro);
	else if (micro > 1 && r->p->step->training)
		ap_str_addf(&r->out, "   It is wrapped in GradAccumulation(net, %" PRId64 ").\n",
			micro);
}

static void add_script_step(struct readme *r)
{
	const char *cell = some_cell(r->p->graph);

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
	add_wrappers(r);
	if (r->way->of_class)
		ap_str_add(&r->out, "   With set_auto_parallel_context() in place of the class "
				    "AutoParallel:\n\n"
				    "       apply_plan.set_context()\n"
				    "       net = apply_plan.prepare(net)\n");
}

static void add_rank_step(struct readme *r)
{
	int64_t n = stage_devices(r);

	if (r->p->nstage == 1 || !reads(r, AP_BUNDLE_CKPT))
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
	if (!reads(r, AP_BUNDLE_OPERATORS))
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
			"   Of each stage look at a rank: RANK_ID=0, %" PRId64 ", ..\n",
			stage_devices(r));
}

static void add_steps(struct readme *r)
{
	heading(r, "Steps");
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

/* For frameworks that know only degrees of parallelism. */
static void add_expert(struct readme *r)
{
	const struct ap_expert *x = r->b->expert;
	char step[32];

	heading(r, "In the words of MindFormers and Megatron-LM");
	ap_str_add(&r->out, "mindformers.yaml and megatron_args.txt ");
	if (!x->hybrid.dp) {
		ap_str_addf(&r->out, "say little: %s.\n", x->why_not);
		return;
	}
	if (x->same) {
		ap_str_add(&r->out, "say this plan.\n");
		return;
	}
	ap_str_addf(&r->out, "say the hybrid that is nearest: %s a step, ",
		ap_format_seconds(x->step_time_s, step));
	ap_summary_percent(&r->out, fabs(x->loss), 1);
	ap_str_addf(&r->out, " %s than planned,\n%" PRIu32 " operator%s cut otherwise%s.\n",
		x->loss < 0 ? "less" : "more", x->differ, x->differ == 1 ? "" : "s",
		x->fits ? "" : "; it does not fit the memory");
	if (x->loss < 0 && r->p->route && r->p->route->n)
		ap_str_add(&r->out, "Their models bring strategies of their own, which leave nothing for "
			"this route to decide.\n");
}

static void add_limits(struct readme *r)
{
	const char *text = ap_bundle_limits(r->ctx, r->b);

	if (!*text)
		return;
	heading(r, "Limits");
	ap_str_add(&r->out, text);
}

/* Does it hold strategies that this way into the executor does not load? */
static bool is_idle(const struct readme *r, const char *file)
{
	bool strategies = !strcmp(file, AP_BUNDLE_CKPT) || !strcmp(file, AP_BUNDLE_OPERATORS);

	return strategies && r->way->mode && !reads(r, file);
}

static void add_files(struct readme *r)
{
	const struct ap_bundle_file *file;

	heading(r, "Files");
	for (size_t i = 0; (file = ap_bundle_file_at(i)); i++)
		if (!file->wanted || file->wanted(r->b))
			ap_str_addf(&r->out, "%-24s  %s%s\n", file->name, file->text,
				is_idle(r, file->name) ? "; not loaded here" : "");
	if (r->p->nstage > 1)
		ap_str_addf(&r->out, "%-24s  strategy checkpoint of each stage%s\n",
			AP_BUNDLE_STAGES "/stage_K.ckpt",
			is_idle(r, AP_BUNDLE_CKPT) ? "; not loaded here" : "");
}

void ap_bundle_write_readme(
	struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user)
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
	add_files(&r);
	write(user, r.out.s, r.out.len);
}
