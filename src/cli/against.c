/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/against.h"

#include <inttypes.h>
#include <string.h>

#include "autopar/version.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/str.h"
#include "bundle/bundle.h"
#include "cli/bundle.h"
#include "cli/config.h"
#include "cli/fail_if.h"
#include "cli/given.h"
#include "cli/outputs.h"
#include "cli/pipeline.h"
#include "cli/run.h"
#include "cli/settings.h"
#include "cli/stop.h"
#include "planfile/plan_check.h"
#include "planfile/plan_json.h"

struct holding { /* of a plan */
	struct ap_run *run; /* the command's own */
	struct ap_run as; /* as the run that made the plan, on the inputs that are there */
	struct ap_cli cli;
	const struct ap_json *doc;
	struct ap_saved plan;
	struct ap_sources src;
	const struct ap_chip *chip;
	bool machine; /* the one of now is what was asked for */
	bool version; /* another one than this made the plan */
	struct ap_against *found;
};

void ap_against_run(struct ap_run *run, struct ap_cli *cli, struct ap_run *own)
{
	const char **arg = AP_NEW_N(run->ctx.arena, const char *, 2);

	arg[0] = run->opt->against;
	arg[1] = run->cli->narg > 1 ? run->cli->arg[1] : NULL;
	*cli = *run->cli;
	cli->command = ap_command_at(AP_CMD_search);
	cli->narg = run->cli->narg > 1 ? 2 : 1;
	cli->arg = arg;
	*own = *run;
	own->cli = cli;
	own->opt = &cli->opt;
	own->ctx.diag = ap_diag_create(run->ctx.arena, false);
}

void ap_against_findings(struct ap_run *run, const struct ap_diag *diag, struct ap_against *out)
{
	const char **list = AP_NEW_N(run->ctx.arena, const char *, ap_diag_count(diag, AP_ERROR));
	enum ap_level level;
	const char *text;

	for (size_t i = 0; (text = ap_diag_text(diag, i, &level, NULL)); i++)
		if (level == AP_ERROR)
			list[out->nfinding++] = text;
	out->finding = list;
}

static const char *version_of(const struct ap_json *doc)
{
	return ap_jv_str(ap_jv_get(ap_jv_get(ap_json_root(doc), "tool"), "version"));
}

/* A plan of `evaluate` has no settings of a search. */
static const struct ap_command *made_by(const struct ap_json *doc)
{
	const struct ap_jv *settings = ap_jv_get(ap_json_root(doc), "settings");

	return ap_command_at(ap_jv_get(settings, ap_option_at(AP_OPT_search_mode)->key) ? AP_CMD_search
		: AP_CMD_evaluate);
}

static bool is_of_this_version(const struct ap_json *doc)
{
	return !strcmp(version_of(doc), AP_VERSION);
}

/* Every setting that this version echoes is there; null where there may be none. */
static void check_settings(struct ap_run *run, const struct ap_json *doc, const struct ap_cli *cli)
{
	const struct ap_jv *settings = ap_jv_get(ap_json_root(doc), "settings");

	for (int i = 0; i < AP_OPT_COUNT; i++) {
		const struct ap_option *row = ap_option_at((enum ap_opt_id)i);
		const struct ap_jv *v = ap_jv_get(settings, row->key);

		if (row->group > AP_GROUP_SEARCH || !ap_cli_takes(cli, row))
			continue;
		if (!v)
			(void)ap_json_report(&run->ctx, doc, settings, AP_ERROR, AP_MEANING, NULL,
				"key-missing", "no key \"%s\"", row->key);
		else if (ap_jv_type(v) == AP_JNULL && row->otherwise)
			(void)ap_json_report(&run->ctx, doc, v, AP_ERROR, AP_MEANING, NULL, "key-type",
				"expected %s", ap_option_expects(run->ctx.arena, row));
	}
}

enum ap_status ap_against_check_plan(struct ap_run *run, const struct ap_json *doc)
{
	size_t errors = ap_diag_count(run->ctx.diag, AP_ERROR);
	struct ap_cli cli = {.command = NULL};

	AP_TRY(ap_plan_check(&run->ctx, doc));
	cli.command = made_by(doc);
	ap_options_init(&cli.opt);
	if (ap_config_echo(&run->ctx, doc, ap_jv_get(ap_json_root(doc), "settings"), &cli) == AP_OK &&
		is_of_this_version(doc))
		check_settings(run, doc, &cli);
	return ap_diag_count(run->ctx.diag, AP_ERROR) > errors ? AP_MEANING : AP_OK;
}

static bool given(const struct ap_options *o, enum ap_opt_id id)
{
	return o->origin[id] >= AP_FROM_CONFIG;
}

/* What the plan says as a default would is nothing that somebody said: it contradicts no other setting. */
static void forget_defaults(struct holding *h)
{
	struct ap_arena *arena = h->run->ctx.arena;
	struct ap_options *o = &h->cli.opt, usual;

	ap_options_init(&usual);
	for (int i = 0; i < AP_OPT_COUNT; i++) {
		const struct ap_option *row = ap_option_at((enum ap_opt_id)i);

		if (o->origin[i] == AP_FROM_ENVIRONMENT &&
			!strcmp(ap_option_json(arena, row, o), ap_option_json(arena, row, &usual)))
			o->origin[i] = AP_FROM_DEFAULT;
	}
}

/* A value of the plan, NULL where it has none. */
static const struct ap_jv *value_at(const struct holding *h, const char *section, const char *key)
{
	const struct ap_jv *v = ap_jv_get(ap_json_root(h->doc), section);

	v = v && ap_jv_type(v) == AP_JOBJECT ? ap_jv_get(v, key) : NULL;
	return v && ap_jv_type(v) != AP_JNULL ? v : NULL;
}

static bool read_count(const struct holding *h, const char *key, int64_t *n)
{
	const struct ap_jv *v = value_at(h, "machine", key);

	return v && ap_jv_type(v) == AP_JNUMBER && ap_jv_int(h->doc, v, n) && *n > 0;
}

static const char *hash_of(const struct holding *h, const char *role)
{
	const struct ap_jv *v = value_at(h, "inputs", role);

	return v ? ap_jv_str(ap_jv_get(v, "sha256")) : NULL;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static void add_input(struct holding *h, const char *role, const char *is)
{
	const char *was = hash_of(h, role);

	h->found->input[h->found->ninput++] = (struct ap_against_input){.role = role, .was = was,
		.is = is, .other = !same_text(was, is)};
}

/* The settings of the plan are those of a search. Of those that took their value from an input, the
 * input decides anew. */
static void free_settings(struct holding *h)
{
	struct ap_options *o = &h->cli.opt;
	const struct ap_topo *table = h->src.table;

	if (!given(o, AP_OPT_batch) && !same_text(hash_of(h, "graph"), h->src.sha256))
		o->batch = 0;
	if (!table)
		return;
	if (!given(o, AP_OPT_device_num))
		o->device_num = 0;
	if (!given(o, AP_OPT_devices_per_server))
		o->devices_per_server = 0;
	if (!given(o, AP_OPT_devices_per_pod))
		o->devices_per_pod = 0;
	if (!given(o, AP_OPT_chip) && *table->chip_info &&
		!same_text(hash_of(h, "rank_table"), table->sha256))
		o->chip = NULL;
}

/* A plan of a rank table, and no rank table: the machine is as large, and its servers are. */
static void without_table(struct holding *h)
{
	struct ap_options *o = &h->cli.opt;
	int64_t ndev, nserver;

	h->machine = false;
	if (!given(o, AP_OPT_devices_per_server) && read_count(h, "devices", &ndev) &&
		read_count(h, "servers", &nserver) && ndev % nserver == 0)
		o->devices_per_server = ndev / nserver;
}

/* Of a profile of the user's own the plan holds the name only. */
static enum ap_status lacks_profile(struct holding *h, enum ap_opt_id id, const char *what, const char *name)
{
	const struct ap_option *row = ap_option_at(id);

	return ap_json_report(&h->run->ctx, h->doc, value_at(h, "settings", row->key), AP_ERROR, AP_USAGE,
		NULL, NULL, "the plan is of a %s that is not built in, \"%s\"; expected %s FILE", what,
		ap_diag_name(h->run->ctx.diag, name),
		ap_option_spelling(h->run->ctx.arena, "--", row));
}

static enum ap_status check_profiles(struct holding *h)
{
	struct ap_ctx quiet = h->run->ctx;
	const struct ap_options *o = &h->cli.opt;
	const struct ap_chip *chip;
	const struct ap_software *software;

	quiet.diag = ap_diag_create(quiet.arena, false);
	if (o->chip && !given(o, AP_OPT_chip) && ap_chip_get(&quiet, o->chip, &chip) != AP_OK)
		return lacks_profile(h, AP_OPT_chip, "chip profile", o->chip);
	if (o->software && !given(o, AP_OPT_software) &&
		ap_software_get(&quiet, o->software, &software) != AP_OK)
		return lacks_profile(h, AP_OPT_software, "software profile", o->software);
	return AP_OK;
}

/* Faults of the files themselves, and of the options, are errors of this run. */
static enum ap_status read_inputs(struct holding *h)
{
	const struct ap_graph_params params = {
		.batch = h->run->opt->batch,
		.unknown_batch_parallel = h->cli.opt.unknown_operators == AP_UNKNOWN_BATCH_PARALLEL,
		.micro_batches = 1,
	};
	struct ap_options *o = &h->cli.opt;
	struct ap_diag *quiet = h->as.ctx.diag;
	const struct ap_graph *g;

	h->as.ctx.diag = h->run->ctx.diag;
	AP_TRY(ap_sources_read(&h->as, &h->src));
	AP_TRY(ap_graph_load(&h->run->ctx, h->src.graph, h->src.sha256, &params, &g));
	free_settings(h);
	h->machine = true;
	if (!h->src.table && hash_of(h, "rank_table") && !given(o, AP_OPT_device_num))
		without_table(h);
	AP_TRY(check_profiles(h));
	AP_TRY(ap_input_chip(&h->as, &h->src, &h->chip));
	if (!given(o, AP_OPT_memory) && !same_text(hash_of(h, "chip"), h->chip->sha256))
		o->memory = 0;
	h->as.ctx.diag = quiet;
	return AP_OK;
}

static void compare_hashes(struct holding *h, const struct ap_inputs *in)
{
	add_input(h, "graph", h->src.sha256);
	if (h->machine)
		add_input(h, "rank_table", h->src.table ? h->src.table->sha256 : NULL);
	add_input(h, "chip", h->chip->sha256);
	add_input(h, "software", in->step.software ? in->step.software->sha256 : NULL);
}

static void str_write(void *user, const char *bytes, size_t len)
{
	ap_str_addn(user, bytes, len);
}

/* A plan as it reads when it is written. */
static enum ap_status read_back(struct holding *h, const struct ap_plan *plan, struct ap_json **doc)
{
	struct ap_ctx *ctx = &h->as.ctx;
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	ap_emit_plan_json(ctx, plan, str_write, &text);
	return ap_json_parse(ctx, h->run->opt->against, text.s, text.len, 0, doc);
}

/* The plan's strategies on the inputs as they are: AP_OK with *change, or messages why there is no such
 * plan at all. */
static enum ap_status evaluate(struct holding *h, struct ap_saved *now, struct ap_plan_match *match,
	struct ap_plan_change *change)
{
	const int32_t *const *expert;
	struct ap_json *doc;
	struct ap_inputs in;
	struct ap_plan plan;

	ap_settings_check(&h->as.ctx, h->as.opt);
	AP_TRY(ap_diag_status(h->as.ctx.diag));
	AP_TRY(ap_inputs_make(&h->as, &h->src, &in));
	compare_hashes(h, &in);
	if (h->cli.opt.hybrid)
		AP_TRY(ap_pipeline_counts(&h->as, &in, &expert));
	ap_plan_match(&h->as.ctx, &h->plan, in.graph, in.machine->ndev, &in.step, match);
	ap_run_phase(h->run, "evaluating");
	ap_stop_arm();
	AP_TRY(ap_drive_evaluate(&h->as.ctx, &in.request, match->counts, &plan));
	AP_TRY(read_back(h, &plan, &doc));
	AP_TRY(ap_saved_of_plan(&h->as.ctx, doc, now));
	ap_plan_change(&h->as.ctx, &h->plan, now, match, in.graph, h->machine, change);
	if (h->machine && !change->inputs)
		ap_plan_compare(&h->as.ctx, h->doc, doc, false, &h->found->values);
	return AP_OK;
}

/* What the plan says was given to the search, beside the graph's own pins: perhaps by a checkpoint. */
static const int32_t *const *given_rows(struct holding *h, const struct ap_graph *g,
	const struct ap_plan_match *match)
{
	const struct ap_jv *list = ap_jv_get(ap_json_root(h->doc), "operators");
	const int32_t **rows = AP_NEW_N(h->as.ctx.arena, const int32_t *, g->nnode);
	struct ap_mark mark = ap_arena_mark(h->as.ctx.scratch);
	struct ap_map *names = ap_map_create(h->as.ctx.scratch);

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		if (ap_jv_bool(ap_jv_get(v, "given")))
			ap_map_put_str(names, ap_jv_str(ap_jv_get(v, "name")), NULL);
	for (ap_id i = 0; i < g->nnode; i++)
		if (ap_map_get_str(names, g->node[i].name) != AP_NONE)
			rows[i] = match->counts[i];
	ap_arena_release(h->as.ctx.scratch, mark);
	return rows;
}

/* The run that made the plan, once more. */
static enum ap_status plan_anew(struct holding *h, struct ap_inputs *in, const struct ap_plan_match *match,
	struct ap_plan *plan)
{
	struct ap_run *run = &h->as;
	const struct ap_jv *search = ap_jv_get(ap_json_root(h->doc), "search");
	const int32_t *const *counts = NULL;

	in->request.given = given_rows(h, in->graph, match);
	if (h->cli.command == ap_command_at(AP_CMD_search))
		AP_TRY(ap_given_counts(run, in, &counts));
	else if (h->cli.opt.hybrid)
		AP_TRY(ap_pipeline_counts(run, in, &counts));
	if (!counts && !strcmp(ap_jv_str(ap_jv_get(search, "mode")), "given"))
		counts = in->request.given;
	ap_run_phase(h->run, "planning");
	return counts ? ap_drive_evaluate(&run->ctx, &in->request, counts, plan)
		: ap_drive_search(&run->ctx, &in->request, plan, NULL);
}

/* A plan that was stopped is none that a search finds again. */
static enum ap_status hold_search(struct holding *h, const struct ap_plan_match *match)
{
	const struct ap_jv *search = ap_jv_get(ap_json_root(h->doc), "search");
	struct ap_inputs in;
	struct ap_plan plan;
	struct ap_json *doc;
	enum ap_status st;

	if (!ap_jv_bool(ap_jv_get(search, "complete")))
		return ap_diag_add(h->run->ctx.diag, AP_NOTE, AP_OK,
			&(struct ap_where){.file = h->found->file}, NULL,
			"its search was stopped; none is made anew");
	AP_TRY(ap_inputs_make(&h->as, &h->src, &in));
	st = plan_anew(h, &in, match, &plan);
	if (st == AP_STOPPED || st == AP_LIMIT)
		return AP_LIMIT;
	if (st != AP_OK) {
		ap_against_findings(h->run, h->as.ctx.diag, h->found);
		return AP_OK;
	}
	AP_TRY(read_back(h, &plan, &doc));
	ap_plan_compare(&h->as.ctx, h->doc, doc, true, &h->found->values);
	return AP_OK;
}

static const char *role_text(const char *role)
{
	return !strcmp(role, "rank_table") ? "rank table"
		: !strcmp(role, "chip")    ? "chip profile"
		: !strcmp(role, "software") ? "software profile" : role;
}

static bool any_other(const struct ap_against *a)
{
	for (uint32_t i = 0; i < a->ninput; i++)
		if (a->input[i].other)
			return true;
	return false;
}

/* What is another file and yet the same to the plan, and what was not looked at. */
static enum ap_status add_notes(struct holding *h)
{
	const struct ap_against *a = h->found;
	struct ap_diag *diag = h->run->ctx.diag;
	const struct ap_where where = {.file = a->file};

	if (!h->machine)
		AP_TRY(ap_diag_add(diag, AP_NOTE, AP_OK, &where, NULL, "the machine is not compared; give "
			"a rank table or --device-num for that"));
	for (uint32_t i = 0; a->fits && i < a->ninput; i++)
		if (a->input[i].other)
			AP_TRY(ap_diag_add(diag, AP_NOTE, AP_OK, &where, NULL, "the %s is another file "
				"(%.12s, now %.12s), but nothing of it that counts for the plan is other",
				role_text(a->input[i].role), a->input[i].was ? a->input[i].was : "none",
				a->input[i].is ? a->input[i].is : "none"));
	if (h->version && a->values.n && !any_other(a))
		AP_TRY(ap_diag_add(diag, AP_NOTE, AP_OK, &where, NULL, "made by version %s; of the same "
			"inputs and strategies this one (" AP_VERSION ") says otherwise in %" PRIu32
			" values, first %s", version_of(h->doc), a->values.n, a->values.v[0].pointer));
	return AP_OK;
}

/* Is the plan what the inputs give? Conditions decide whether a new prediction matters where an input, or
 * the program, is another one. */
static bool is_right(const struct holding *h, const struct ap_plan_change *change, bool conditions)
{
	const struct ap_against *a = h->found;

	if (change->inputs)
		return false;
	if (h->run->opt->strict && (any_other(a) || (h->version && a->values.n)))
		return false;
	if (any_other(a))
		return change->outcome ? conditions : !a->values.n || h->version;
	return h->version || (h->machine ? !a->values.n : !change->outcome || conditions);
}

/* Conditions are about what became of the plan; they decide whether a new prediction matters. */
static enum ap_status judge(struct holding *h, const struct ap_fail_if *conditions,
	const struct ap_saved *now, uint32_t nopen, struct ap_diff *diff)
{
	struct ap_saved named = *now; /* as messages call it */
	enum ap_status st;

	if (nopen && conditions->n)
		return ap_diag_add(h->run->ctx.diag, AP_NOTE, AP_OK,
			&(struct ap_where){.file = h->found->file}, NULL,
			"conditions are not judged where strategies are none any more");
	named.file = h->found->file;
	st = ap_fail_if_judge(h->run, conditions, &h->plan, &named, &diff->verdict);
	diff->nverdict = st == AP_OK || st == AP_DIFFERS ? conditions->n : 0;
	return st == AP_DIFFERS ? AP_OK : st;
}

static enum ap_status hold_plan(struct holding *h, const struct ap_fail_if *conditions)
{
	struct ap_plan_change *change = AP_NEW(h->run->ctx.arena, struct ap_plan_change);
	struct ap_plan_match match;
	struct ap_saved now;
	enum ap_status st;

	AP_TRY(ap_config_echo(&h->run->ctx, h->doc, ap_jv_get(ap_json_root(h->doc), "settings"),
		&h->cli));
	forget_defaults(h);
	AP_TRY(read_inputs(h));
	st = evaluate(h, &now, &match, change);
	if (st != AP_OK && st != AP_USAGE && st != AP_MEANING && st != AP_INFEASIBLE)
		return st == AP_STOPPED ? AP_LIMIT : st; /* nothing is written */
	if (st != AP_OK) {
		ap_against_findings(h->run, h->as.ctx.diag, h->found);
		return AP_OK;
	}
	change->diff.file[0] = h->plan.file;
	change->diff.file[1] = ap_file_base(h->run->opt->against);
	h->found->diff = &change->diff;
	AP_TRY(judge(h, conditions, &now, match.nopen, &change->diff));
	if (h->run->opt->search && h->machine && !change->inputs && !h->found->values.n)
		AP_TRY(hold_search(h, &match));
	h->found->fits = !h->found->nfinding && is_right(h, change, conditions->n > 0);
	return add_notes(h);
}

static enum ap_status against_plan(struct ap_run *run, const struct ap_known *file,
	struct ap_against *out)
{
	struct holding h = {.run = run, .doc = file->doc, .found = out};
	struct ap_fail_if conditions;

	AP_TRY(ap_fail_if_read(run, &conditions));
	AP_TRY(ap_against_check_plan(run, file->doc));
	AP_TRY(ap_saved_of_plan(&run->ctx, file->doc, &h.plan));
	ap_against_run(run, &h.cli, &h.as);
	h.cli.command = made_by(file->doc);
	h.version = !is_of_this_version(file->doc);
	h.as.opt = &h.cli.opt;
	return hold_plan(&h, &conditions);
}

/* Of a whole bundle it is the plan that is held against inputs. */
static enum ap_status plan_of_bundle(struct ap_run *run, struct ap_against *out)
{
	struct ap_bundle_manifest manifest;

	if (!ap_file_is_folder(out->file) || !ap_bundle_is(run, out->file))
		return AP_OK;
	AP_TRY(ap_bundle_verify(run, out->file, &manifest));
	out->file = ap_arena_printf(run->ctx.arena, "%s%s" AP_BUNDLE_PLAN, out->file,
		ap_file_suffix(out->file, "/") ? "" : "/");
	return AP_OK;
}

static enum ap_status find(struct ap_run *run, struct ap_against *out)
{
	struct ap_known file = {.kind = AP_KIND_STRATEGY};

	AP_TRY(plan_of_bundle(run, out));
	if (!ap_file_is_folder(out->file))
		AP_TRY(ap_kind_read(run, out->file, &file));
	out->kind = file.kind;
	if (file.kind == AP_KIND_PLAN)
		return against_plan(run, &file, out);
	if (file.kind != AP_KIND_STRATEGY)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_MEANING,
			&(struct ap_where){.file = out->file}, NULL,
			"is %s; expected a plan or a strategy checkpoint", ap_kind_text(file.kind));
	if (run->opt->search)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE,
			&(struct ap_where){.file = out->file}, NULL,
			"--search needs a plan; a strategy checkpoint holds nothing that a search finds");
	if (run->opt->fail_if)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE,
			&(struct ap_where){.file = out->file}, NULL,
			"--fail-if needs a plan; a strategy checkpoint holds no figures");
	return ap_against_ckpt(run, out);
}

enum ap_status ap_against(struct ap_run *run)
{
	struct ap_against found = {.file = run->cli->arg[0], .graph = run->opt->against};

	if (run->cli->narg > 2)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"check --against: one argument too many, \"%s\"; expected PLAN [RANK_TABLE]",
			run->cli->arg[2]);
	found.table = run->cli->narg > 1 ? run->cli->arg[1] : NULL;
	AP_TRY(find(run, &found));
	AP_TRY(ap_against_print(run, &found));
	AP_TRY(ap_diag_status(run->ctx.diag));
	return found.fits ? AP_OK : AP_DIFFERS;
}
