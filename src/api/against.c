/* SPDX-License-Identifier: Apache-2.0 */
#include "api/against.h"

#include <inttypes.h>
#include <string.h>

#include "api/bundle.h"
#include "api/config.h"
#include "api/keep.h"
#include "api/settle.h"
#include "autopar/version.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "ckpt/ckpt_match.h"
#include "diff/diff_write.h"
#include "diff/plan_match.h"
#include "graph/graph.h"
#include "planfile/plan_check.h"
#include "planfile/plan_json.h"

struct holding { /* a plan compared with inputs */
	struct ap_ctx *ctx;
	const struct ap_settings *asked; /* the caller's settings */
	const struct ap_named *named; /* the inputs */
	struct ap_ctx own; /* a context of its own, whose messages become findings */
	struct ap_settings set; /* of the run that made the plan, applied to these inputs */
	unsigned use; /* the command that made the plan: AP_FOR_search or AP_FOR_evaluate */
	const struct ap_json *doc;
	struct ap_saved plan;
	struct ap_sources src;
	const struct ap_chip *chip;
	bool machine; /* the machine was given, so it is compared too */
	bool version; /* another version of the program made the plan */
	struct ap_against *found;
};

/* Adds the errors of a sink as findings. */
static void add_findings(struct ap_ctx *ctx, const struct ap_diag *diag, struct ap_against *out)
{
	const char **list = AP_NEW_N(ctx->arena, const char *, ap_diag_count(diag, AP_ERROR));
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

/* Only a plan of `search` echoes settings of a search. */
static unsigned made_by(const struct ap_json *doc)
{
	const struct ap_jv *settings = ap_jv_get(ap_json_root(doc), "settings");

	return ap_jv_get(settings,
		ap_setting_at(AP_SET_search_mode)->key) ? AP_FOR_search : AP_FOR_evaluate;
}

static bool is_of_this_version(const struct ap_json *doc)
{
	return !strcmp(version_of(doc), AP_VERSION);
}

/* Checks that every setting that this version echoes is present; null only if it may be unset. */
static void check_settings(struct ap_ctx *ctx, const struct ap_json *doc)
{
	const struct ap_jv *settings = ap_jv_get(ap_json_root(doc), "settings");

	for (int i = 0; i < AP_SET_COUNT; i++) {
		const struct ap_setting_row *row = ap_setting_at((enum ap_setting_id)i);
		const struct ap_jv *v = ap_jv_get(settings, row->key);

		if (row->group > AP_GROUP_SEARCH || !(row->uses & made_by(doc)))
			continue;
		if (!v)
			(void)ap_json_report(ctx, doc, settings, AP_ERROR, AP_MEANING, NULL,
				"key-missing", "no key \"%s\"", row->key);
		else if (ap_jv_type(v) == AP_JNULL && row->otherwise)
			(void)ap_json_report(ctx, doc, v, AP_ERROR, AP_MEANING, NULL, "key-type",
				"expected %s", ap_setting_expects(ctx->arena, row));
	}
}

enum ap_status ap_plan_check_file(struct ap_ctx *ctx, const struct ap_json *doc)
{
	size_t errors = ap_diag_count(ctx->diag, AP_ERROR);
	struct ap_settings echoed;

	AP_TRY(ap_plan_check(ctx, doc));
	ap_settings_init(&echoed);
	if (ap_config_echo(ctx, doc, ap_jv_get(ap_json_root(doc), "settings"), made_by(doc),
		&echoed) == AP_OK &&
		is_of_this_version(doc))
		check_settings(ctx, doc);
	return ap_diag_count(ctx->diag, AP_ERROR) > errors ? AP_MEANING : AP_OK;
}

static bool given(const struct ap_settings *o, enum ap_setting_id id)
{
	return o->origin[id] >= AP_FROM_CONFIG;
}

/* A value that equals the default may be nobody's: it must not contradict other settings. */
static void forget_defaults(struct holding *h)
{
	struct ap_arena *arena = h->ctx->arena;
	struct ap_settings *o = &h->set, usual;

	ap_settings_init(&usual);
	for (int i = 0; i < AP_SET_COUNT; i++) {
		const struct ap_setting_row *row = ap_setting_at((enum ap_setting_id)i);

		if (o->origin[i] == AP_FROM_ENVIRONMENT &&
			!strcmp(ap_setting_json(arena, row, o), ap_setting_json(arena, row, &usual)))
			o->origin[i] = AP_FROM_DEFAULT;
	}
}

/* A value in a section of the plan; NULL if absent or null. */
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

/* Takes over the plan's settings for a search. Settings that took their value from an input follow
 * the input that is given now. */
static void free_settings(struct holding *h)
{
	struct ap_settings *o = &h->set;
	const struct ap_topo *table = h->src.table;

	if (!given(o, AP_SET_batch) && !same_text(hash_of(h, "graph"), h->src.sha256))
		o->batch = 0;
	if (!table)
		return;
	if (!given(o, AP_SET_device_num))
		o->device_num = 0;
	if (!given(o, AP_SET_devices_per_server))
		o->devices_per_server = 0;
	if (!given(o, AP_SET_devices_per_pod))
		o->devices_per_pod = 0;
	if (!given(o, AP_SET_chip) && *table->chip_info &&
		!same_text(hash_of(h, "rank_table"), table->sha256))
		o->chip = NULL;
}

/* Made with a rank table, and none is given: assume as many devices, and servers of that size. */
static void without_table(struct holding *h)
{
	struct ap_settings *o = &h->set;
	int64_t ndev, nserver;

	h->machine = false;
	if (!given(o, AP_SET_devices_per_server) && read_count(h, "devices", &ndev) &&
		read_count(h, "servers", &nserver) && ndev % nserver == 0)
		o->devices_per_server = ndev / nserver;
}

/* The plan holds only the name of a user's own profile, so the file must be given. */
static enum ap_status lacks_profile(struct holding *h, enum ap_setting_id id, const char *what,
	const char *name)
{
	const struct ap_setting_row *row = ap_setting_at(id);

	return ap_json_report(h->ctx, h->doc, value_at(h, "settings", row->key), AP_ERROR, AP_USAGE,
		NULL, NULL, "the plan is of a %s that is not built in, \"%s\"; expected %s FILE", what,
		ap_diag_name(h->ctx->diag, name),
		ap_option_spelling(h->ctx->arena, "--", row));
}

static enum ap_status check_profiles(struct holding *h)
{
	struct ap_ctx quiet = ap_diag_apart(h->ctx);
	const struct ap_settings *o = &h->set;
	const struct ap_chip *chip;
	const struct ap_software *software;

	if (o->chip && !given(o, AP_SET_chip) && ap_chip_get(&quiet, o->chip, &chip) != AP_OK)
		return lacks_profile(h, AP_SET_chip, "chip profile", o->chip);
	if (o->software && !given(o, AP_SET_software) &&
		ap_software_get(&quiet, o->software, &software) != AP_OK)
		return lacks_profile(h, AP_SET_software, "software profile", o->software);
	return AP_OK;
}

/* Faults of the input files and of the options are errors of this run, not findings. */
static enum ap_status read_inputs(struct holding *h)
{
	const struct ap_graph_params params = {
		.batch = h->asked->batch,
		.unknown_batch_parallel = h->set.unknown_operators == AP_UNKNOWN_BATCH_PARALLEL,
		.micro_batches = 1,
	};
	struct ap_settings *o = &h->set;
	struct ap_diag *quiet = h->own.diag;
	const struct ap_graph *g;

	h->own.diag = h->ctx->diag;
	AP_TRY(ap_sources_read(&h->own, &h->set, h->named, &h->src));
	AP_TRY(ap_graph_load(h->ctx, h->src.graph, h->src.sha256, &params, &g));
	free_settings(h);
	h->machine = true;
	if (!h->src.table && hash_of(h, "rank_table") && !given(o, AP_SET_device_num))
		without_table(h);
	AP_TRY(check_profiles(h));
	AP_TRY(ap_input_chip(&h->own, &h->set, &h->src, &h->chip));
	if (!given(o, AP_SET_memory) && !same_text(hash_of(h, "chip"), h->chip->sha256))
		o->memory = 0;
	h->own.diag = quiet;
	return AP_OK;
}

/* Writes a plan as JSON and parses it, to compare it with the plan file. */
static enum ap_status read_back(struct holding *h, const struct ap_plan *plan, struct ap_json **doc)
{
	struct ap_ctx *ctx = &h->own;
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	ap_emit_plan_json(ctx, plan, ap_str_take, &text);
	return ap_json_parse(ctx, h->named->graph.path, text.s, text.len, 0, doc);
}

/* Places operators in the plan's parts, if that can be. */
static void place_as_planned(struct holding *h, enum ap_pipe_cut_by by, struct ap_inputs *in)
{
	const struct ap_spot *spot = ap_keep_spots(&h->own, &h->plan, &in->cutting);

	if (spot)
		ap_inputs_place(&h->own, spot, by, in);
}

/* Where a search chose among cuts, takes the one that it chose. */
static void cut_as_planned(struct holding *h, struct ap_inputs *in)
{
	const struct ap_jv *cut = value_at(h, "pipeline", "cut");

	if (in->other.graph && cut && !strcmp(ap_jv_str(cut), "layers"))
		ap_inputs_recut(in);
	else if (in->cutting.graph && cut && !strcmp(ap_jv_str(cut), "memory"))
		place_as_planned(h, AP_CUT_BY_MEMORY, in);
	else if (in->cutting.graph && cut && !strcmp(ap_jv_str(cut), "strategy"))
		place_as_planned(h, AP_CUT_BY_STRATEGY, in);
	else if (in->cutting.graph && cut && !strcmp(ap_jv_str(cut), "kept"))
		place_as_planned(h, AP_CUT_BY_KEPT, in);
}

static enum ap_status make_planned(struct holding *h, struct ap_inputs *in)
{
	ap_settings_check(&h->own, &h->set, AP_FOR_search);
	AP_TRY(ap_diag_status(h->own.diag));
	return ap_inputs_make(&h->own, &h->set, &h->src, h->use, in);
}

/* The plan's cuts for inputs as they are now. */
static enum ap_status give_planned(struct holding *h, struct ap_inputs *in, struct ap_plan_match *match)
{
	if (h->set.hybrid)
		AP_TRY(ap_inputs_give(&h->own, &h->set, &h->src, h->use, in));
	cut_as_planned(h, in);
	if (value_at(h, "search", "hybrid"))
		AP_TRY(ap_inputs_deal(&h->own, ap_jv_str(value_at(h, "search", "hybrid")), in));
	else if (h->use == AP_FOR_search && !h->set.hybrid)
		ap_inputs_open_sums(&h->own, in);
	ap_plan_match(&h->own, &h->plan, in->graph, in->machine->ndev, &in->step, match);
	return AP_OK;
}

/* Evaluates the plan's strategies on the inputs as they are now. AP_OK with *change, or messages
 * why they make no plan at all. */
/* Did the plan fit the devices that it was made for? */
static bool did_fit(const struct holding *h)
{
	const struct ap_jv *list = value_at(h, "prediction", "memory");
	int64_t capacity, total, most = 0;

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		if (ap_jv_int(h->doc, ap_jv_get(v, "total_bytes"), &total) && total > most)
			most = total;
	return ap_jv_int(h->doc, value_at(h, "machine", "capacity_bytes"), &capacity) && most <= capacity;
}

/* Finds a plan that fitted and does not any more. */
static void find_short(struct holding *h, const struct ap_plan *plan)
{
	int64_t bytes = plan->prediction.memory.total, usable = plan->capacity_bytes;
	const char **list = AP_NEW(h->ctx->arena, const char *);
	char need[32], have[32], lack[32];

	if (bytes <= usable || !did_fit(h))
		return;
	*list = ap_arena_printf(h->ctx->arena,
		"it no longer fits the memory: %s are needed on a device, %s are usable, "
		"%s are short", ap_format_bytes(bytes, need), ap_format_bytes(usable, have),
		ap_format_bytes(bytes - usable, lack));
	h->found->finding = list;
	h->found->nfinding = 1;
}

static enum ap_status evaluate(struct holding *h, struct ap_saved *now, struct ap_plan_match *match,
	struct ap_plan_change *change)
{
	struct ap_json *doc;
	struct ap_inputs in;
	struct ap_plan plan;

	AP_TRY(make_planned(h, &in));
	add_input(h, "graph", h->src.sha256);
	if (h->machine)
		add_input(h, "rank_table", h->src.table ? h->src.table->sha256 : NULL);
	add_input(h, "chip", h->chip->sha256);
	add_input(h, "software", in.step.software ? in.step.software->sha256 : NULL);
	AP_TRY(give_planned(h, &in, match));
	ap_ctx_phase(h->ctx, "evaluating");
	in.counts = match->counts;
	AP_TRY(ap_inputs_plan(&h->own, &in, NULL, &plan, NULL));
	find_short(h, &plan);
	AP_TRY(read_back(h, &plan, &doc));
	AP_TRY(ap_saved_of_plan(&h->own, doc, now));
	ap_plan_change(&h->own, &h->plan, now, match, in.graph, h->machine, change);
	if (h->machine && !change->inputs)
		ap_plan_compare(&h->own, h->doc, doc, false, &h->found->values);
	return AP_OK;
}

/* Repeats the run that made the plan. */
static enum ap_status plan_anew(struct holding *h, struct ap_inputs *in, const struct ap_plan_match *match,
	struct ap_plan *plan)
{
	const struct ap_jv *search = ap_jv_get(ap_json_root(h->doc), "search");
	const struct ap_graph *g = in->graph;
	const struct ap_jv *list = ap_jv_get(ap_json_root(h->doc), "operators");
	const int32_t **rows = AP_NEW_N(h->own.arena, const int32_t *, g->nnode);
	struct ap_mark mark = ap_arena_mark(h->own.scratch);
	struct ap_map *names = ap_map_create(h->own.scratch);

	/* Strategies that were given to the search, perhaps by a checkpoint, and are not pins of
	 * the graph. */
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		if (ap_jv_bool(ap_jv_get(v, "given")))
			ap_map_put_str(names, ap_jv_str(ap_jv_get(v, "name")), NULL);
	for (ap_id i = 0; i < g->nnode; i++)
		if (ap_map_get_str(names, g->node[i].name) != AP_NONE)
			rows[i] = match->counts[i];
	ap_arena_release(h->own.scratch, mark);
	in->request.given = rows;
	if (h->use == AP_FOR_search || h->set.hybrid)
		AP_TRY(ap_inputs_give(&h->own, &h->set, &h->src, h->use, in));
	if (!in->counts && !strcmp(ap_jv_str(ap_jv_get(search, "mode")), "given"))
		in->counts = in->request.given;
	ap_ctx_phase(h->ctx, "planning");
	return ap_inputs_plan(&h->own, in, NULL, plan, NULL);
}

/* A search cannot reproduce a plan of a search that was stopped. */
static enum ap_status hold_search(struct holding *h, const struct ap_plan_match *match)
{
	const struct ap_jv *search = ap_jv_get(ap_json_root(h->doc), "search");
	struct ap_inputs in;
	struct ap_plan plan;
	struct ap_json *doc;
	enum ap_status st;

	if (!ap_jv_bool(ap_jv_get(search, "complete")))
		return ap_diag_add(h->ctx->diag, AP_NOTE, AP_OK,
			&(struct ap_where){.file = h->found->file}, NULL,
			"its search was stopped; none is made anew");
	AP_TRY(ap_inputs_make(&h->own, &h->set, &h->src, h->use, &in));
	st = plan_anew(h, &in, match, &plan);
	if (st == AP_STOPPED || st == AP_LIMIT)
		return AP_LIMIT;
	if (st != AP_OK) {
		add_findings(h->ctx, h->own.diag, h->found);
		return AP_OK;
	}
	AP_TRY(read_back(h, &plan, &doc));
	ap_plan_compare(&h->own, h->doc, doc, true, &h->found->values);
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

/* Is the plan what the inputs give? If an input or the program has changed, conditions decide
 * whether a different prediction matters. */
static bool is_right(const struct holding *h, const struct ap_plan_change *change, bool conditions)
{
	const struct ap_against *a = h->found;

	if (change->inputs)
		return false;
	if (h->asked->strict && (any_other(a) || (h->version && a->values.n)))
		return false;
	if (any_other(a))
		return change->outcome ? conditions : !a->values.n || h->version;
	return h->version || (h->machine ? !a->values.n : !change->outcome || conditions);
}

/* Judges the conditions against the plan's new prediction. */
static enum ap_status judge(struct holding *h, const struct ap_fail_if *conditions,
	const struct ap_saved *now, uint32_t nopen, struct ap_diff *diff)
{
	struct ap_saved named = *now; /* with the name that messages use */
	enum ap_status st;

	if (nopen && conditions->n)
		return ap_diag_add(h->ctx->diag, AP_NOTE, AP_OK,
			&(struct ap_where){.file = h->found->file}, NULL,
			"conditions are not judged where strategies are none any more");
	named.file = h->found->file;
	st = ap_fail_if_judge(h->ctx, conditions, &h->plan, &named, &diff->verdict);
	diff->nverdict = st == AP_OK || st == AP_DIFFERS ? conditions->n : 0;
	return st == AP_DIFFERS ? AP_OK : st;
}

static enum ap_status hold_plan(struct holding *h, const struct ap_fail_if *conditions)
{
	struct ap_plan_change *change = AP_NEW(h->ctx->arena, struct ap_plan_change);
	struct ap_plan_match match;
	struct ap_saved now;
	enum ap_status st;
	const struct ap_against *a;
	struct ap_diag *diag;
	struct ap_where where;

	AP_TRY(ap_config_echo(h->ctx, h->doc, ap_jv_get(ap_json_root(h->doc), "settings"),
		h->use, &h->set));
	forget_defaults(h);
	AP_TRY(read_inputs(h));
	st = evaluate(h, &now, &match, change);
	if (st != AP_OK && st != AP_USAGE && st != AP_MEANING && st != AP_INFEASIBLE)
		return st == AP_STOPPED ? AP_LIMIT : st; /* nothing is written on AP_STOPPED */
	if (st != AP_OK) {
		add_findings(h->ctx, h->own.diag, h->found);
		return AP_OK;
	}
	change->diff.file[0] = h->plan.file;
	change->diff.file[1] = ap_file_base(h->named->graph.path);
	h->found->diff = &change->diff;
	AP_TRY(judge(h, conditions, &now, match.nopen, &change->diff));
	if (h->asked->search && h->machine && !change->inputs && !h->found->values.n)
		AP_TRY(hold_search(h, &match));
	h->found->fits = !h->found->nfinding && is_right(h, change, conditions->n > 0);
	/* Notes inputs that differ as files but not for the plan, and what was not compared. */
	a = h->found;
	diag = h->ctx->diag;
	where = (struct ap_where){.file = a->file};
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

static enum ap_status check_input(struct holding *h, const char *role, const char *path, const char *is)
{
	const char *was = hash_of(h, role);

	if (same_text(was, is))
		return AP_OK;
	return ap_diag_add(h->ctx->diag, AP_ERROR, AP_MEANING, &(struct ap_where){.file = path}, NULL,
		"is not the %s of the plan: SHA-256 %.12s; expected %.12s", role_text(role), is ? is : "none",
		was ? was : "none");
}

/* Of what content a profile is; NULL: there is none of that name. */
static const char *profile_hash(struct ap_ctx *ctx, enum ap_setting_id id, const char *name)
{
	struct ap_ctx quiet = ap_diag_apart(ctx);
	const struct ap_software *software;
	const struct ap_chip *chip;

	if (id == AP_SET_chip)
		return ap_chip_get(&quiet, name, &chip) == AP_OK ? chip->sha256 : NULL;
	return ap_software_get(&quiet, name, &software) == AP_OK ? software->sha256 : NULL;
}

/* Sets *name to the one of the listed profiles that has the content of the plan's. A built-in profile of that
 * name is another one if a file kept the name; between versions of the program it may have been changed. */
static enum ap_status take_profile(struct holding *h, enum ap_setting_id id, const char *role,
	const char *listed, const char **name)
{
	const char *was = hash_of(h, role), *is;

	for (const char *at = listed; was && at && *at;) {
		const char *part = ap_arena_strndup(h->ctx->arena, at, strcspn(at, ","));

		if (same_text(profile_hash(h->ctx, id, part), was)) {
			*name = part;
			return AP_OK;
		}
		at += strlen(part);
		at += *at == ',';
	}
	is = *name ? profile_hash(h->ctx, id, *name) : NULL;
	if (!was || !is || !strcmp(is, was) || !is_of_this_version(h->doc))
		return AP_OK; /* a name that is not known is told later */
	return ap_json_report(h->ctx, h->doc, value_at(h, "inputs", role), AP_ERROR, AP_USAGE, NULL, NULL,
		"the plan is of a %s that calls itself \"%s\" and has another content than the built-in one "
		"(SHA-256 %.12s, not %.12s); expected %s FILE", role_text(role),
		ap_diag_name(h->ctx->diag, *name), was, is,
		ap_option_spelling(h->ctx->arena, "--", ap_setting_at(id)));
}

static enum ap_status repeat(struct holding *h, double *step_s)
{
	struct ap_plan_match match;
	struct ap_inputs in;
	struct ap_plan plan;

	AP_TRY(make_planned(h, &in));
	AP_TRY(give_planned(h, &in, &match));
	AP_TRY(ap_inputs_make(&h->own, &h->set, &h->src, h->use, &in));
	AP_TRY(plan_anew(h, &in, &match, &plan));
	*step_s = plan.prediction.step_time_s;
	return AP_OK;
}

enum ap_status ap_against_repeat(struct ap_ctx *ctx, const struct ap_settings *asked,
	const struct ap_json *doc, const struct ap_saved *plan, const struct ap_named *named, double *step_s,
	const char **why)
{
	struct ap_against found = {0};
	struct holding h = {.ctx = ctx, .asked = asked, .named = named, .own = ap_diag_apart(ctx),
		.set = *asked, .doc = doc, .plan = *plan, .use = made_by(doc), .found = &found};
	enum ap_status st;

	*step_s = 0;
	*why = NULL;
	ap_setting_unset(&h.set, AP_SET_chip);
	ap_setting_unset(&h.set, AP_SET_software);
	AP_TRY(ap_config_echo(ctx, doc, ap_jv_get(ap_json_root(doc), "settings"), h.use, &h.set));
	forget_defaults(&h);
	AP_TRY(take_profile(&h, AP_SET_chip, "chip", asked->chip, &h.set.chip));
	AP_TRY(take_profile(&h, AP_SET_software, "software", asked->software, &h.set.software));
	AP_TRY(read_inputs(&h));
	AP_TRY(check_input(&h, "graph", named->graph.path, h.src.sha256));
	if (h.src.table)
		AP_TRY(check_input(&h, "rank_table", named->table.path, h.src.table->sha256));
	st = repeat(&h, step_s);
	if (st != AP_USAGE && st != AP_MEANING && st != AP_INFEASIBLE)
		return st == AP_STOPPED ? AP_LIMIT : st;
	add_findings(ctx, h.own.diag, &found);
	*why = found.nfinding ? found.finding[0] : "there is no such plan";
	return AP_OK;
}

static enum ap_status against_plan(struct ap_ctx *ctx, const struct ap_settings *asked,
	const struct ap_known *file, const struct ap_named *named, struct ap_against *out)
{
	struct holding h = {.ctx = ctx, .asked = asked, .named = named, .own = ap_diag_apart(ctx),
		.set = *asked, .doc = file->doc, .found = out};
	struct ap_fail_if conditions;

	AP_TRY(ap_fail_if_read(ctx, asked, &conditions));
	AP_TRY(ap_plan_check_file(ctx, file->doc));
	h.use = made_by(file->doc);
	h.version = !is_of_this_version(file->doc);
	AP_TRY(ap_saved_of_plan(ctx, file->doc, &h.plan));
	return hold_plan(&h, &conditions);
}

struct ckpt_holding { /* a strategy checkpoint compared with a graph and a machine */
	struct ap_ctx *ctx;
	const struct ap_settings *asked;
	struct ap_ctx own; /* a context of its own, whose messages become findings */
	struct ap_ckpt ckpt;
	uint32_t nstage;
	const struct ap_graph *graph;
	const struct ap_topo *table; /* NULL if none is given */
	struct ap_json *doc; /* of graph */
};

static enum ap_status read_ckpt_inputs(struct ckpt_holding *h, const char *path,
	const struct ap_named *named)
{
	const struct ap_graph_params params = {
		.batch = h->asked->batch,
		.micro_batches = h->asked->micro_batches,
		.unknown_batch_parallel = true,
	};
	struct ap_sources src;

	AP_TRY(ap_ckpt_load(h->ctx, h->asked, path, &h->ckpt));
	AP_TRY(ap_sources_read(h->ctx, h->asked, named, &src));
	AP_TRY(ap_graph_load(h->ctx, src.graph, src.sha256, &params, &h->graph));
	h->table = src.table;
	h->doc = src.graph;
	return AP_OK;
}

/* Devices of a stage: of the given machine, else of the machine the file was made for. */
static enum ap_status count_devices(struct ckpt_holding *h, int64_t *ndev)
{
	int64_t total = h->table ? h->table->ndev : h->asked->device_num;

	*ndev = 1;
	if (!total && h->ckpt.nlayout)
		return ap_product(h->ckpt.layout[0].dev_matrix.v, h->ckpt.layout[0].dev_matrix.n, ndev)
			? AP_OK : AP_MEANING;
	if (h->asked->device_num && h->table && h->asked->device_num != h->table->ndev)
		return ap_diag_add(h->ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--device-num says %" PRId64 ", but the %s holds %" PRIu32 " devices",
			h->asked->device_num, ap_topo_what(h->table), h->table->ndev);
	*ndev = total / h->nstage;
	if (total % h->nstage)
		(void)ap_diag_add(h->own.diag, AP_ERROR, AP_MEANING, NULL, NULL,
			"holds %" PRIu32 " pipeline stages, which do not divide %" PRId64 " devices",
			h->nstage, total);
	return AP_OK;
}

static bool is_state(const char *name)
{
	const char *prefix;
	char buf[32];

	for (size_t i = 0; (prefix = ap_ckpt_state_prefix(i, buf)); i++)
		if (ap_ckpt_state_source(ap_ckpt_bare_name(name), prefix))
			return true;
	return false;
}

/* Drops optimizer states: a fault of a parameter would be repeated for each of them. */
static struct ap_ckpt without_states(struct ckpt_holding *h)
{
	struct ap_ckpt_layout *layout =
		AP_NEW_N(h->ctx->arena, struct ap_ckpt_layout, h->ckpt.nlayout);
	struct ap_ckpt copy = h->ckpt;

	copy.nlayout = 0;
	for (uint32_t i = 0; i < h->ckpt.nlayout; i++)
		if (!is_state(h->ckpt.layout[i].param_name))
			layout[copy.nlayout++] = h->ckpt.layout[i];
	copy.layout = layout;
	return copy;
}

static enum ap_status hold_ckpt(struct ckpt_holding *h)
{
	struct ap_pipe pipe = {.nstage = 1, .nsegment = 1};
	const struct ap_sources src = {.graph = h->doc};
	struct ap_step step;
	const int32_t *const *counts;
	const uint32_t *stage;
	struct ap_ckpt copy;
	int64_t ndev;
	const struct ap_graph *g;
	struct ap_map *names;
	ap_id *tensor;

	h->nstage = ap_ckpt_stages(&h->own, &h->ckpt, &stage);
	h->nstage = h->nstage ? stage[h->nstage - 1] + 1 : 1;
	AP_TRY(count_devices(h, &ndev));
	AP_TRY(ap_input_step(&h->own, h->asked, &src, h->graph, &step));
	pipe.nstage = (int32_t)h->nstage;
	step.pipe = &pipe;
	if (ndev)
		(void)ap_ckpt_counts(&h->own, &h->ckpt, h->graph, ndev, &step, &counts);
	copy = without_states(h);
	(void)ap_ckpt_add_shapes(&h->own, h->graph, &copy);
	/* The JSON form has whole shapes, which are compared too. */
	g = h->graph;
	names = ap_map_create(h->ctx->arena);
	tensor = AP_NEW_N(h->ctx->arena, ap_id, g->ntensor);
	for (ap_id i = 0; i < g->ntensor; i++)
		if (g->tensor[i].kind == AP_TENSOR_PARAM)
			tensor[ap_map_put_str(names, g->tensor[i].name, NULL)] = i;
	for (uint32_t i = 0; i < h->ckpt.nlayout; i++) {
		const struct ap_ckpt_layout *l = &h->ckpt.layout[i];
		ap_id id = ap_map_get_str(names, ap_ckpt_bare_name(l->param_name));
		const struct ap_shape *shape = id == AP_NONE ? NULL : &g->tensor[tensor[id]].shape;

		if (!l->has_shape || !shape || (l->tensor_shape.n == shape->rank &&
			!memcmp(l->tensor_shape.v, shape->dim, shape->rank * sizeof *shape->dim)))
			continue;
		(void)ap_diag_add(h->own.diag, AP_ERROR, AP_MEANING, NULL, NULL,
			"layout \"%s\": the parameter has another shape now",
			ap_diag_name(h->ctx->diag, l->param_name));
	}
	return AP_OK;
}

static enum ap_status against_ckpt(struct ap_ctx *ctx, const struct ap_settings *asked, const char *path,
	const struct ap_named *named, struct ap_against *out)
{
	struct ckpt_holding h = {.ctx = ctx, .asked = asked, .own = ap_diag_apart(ctx)};

	AP_TRY(read_ckpt_inputs(&h, path, named));
	(void)hold_ckpt(&h);
	AP_TRY(ap_diag_status(ctx->diag));
	add_findings(ctx, h.own.diag, out);
	out->fits = !out->nfinding;
	if (h.table || asked->device_num)
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_NOTE, AP_OK, &(struct ap_where){.file = out->file}, NULL,
		"the machine is not compared; give a rank table or --device-num for that");
}

/* If the file is a complete bundle, its plan is what gets compared. */
static enum ap_status plan_of_bundle(struct ap_ctx *ctx, const struct ap_settings *set,
	struct ap_against *out)
{
	struct ap_bundle_manifest manifest;

	if (!ap_file_is_folder(out->file) || !ap_bundle_is(ctx, out->file))
		return AP_OK;
	AP_TRY(ap_bundle_verify(ctx, set, out->file, &manifest));
	out->file = ap_path_join(ctx->arena, out->file, AP_BUNDLE_PLAN);
	return AP_OK;
}

enum ap_status ap_against(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	const struct ap_named *named, struct ap_against *out)
{
	struct ap_known file = {.kind = AP_KIND_STRATEGY};

	*out = (struct ap_against){.file = path, .graph = named->graph.path, .table = named->table.path};
	AP_TRY(plan_of_bundle(ctx, set, out));
	if (!ap_file_is_folder(out->file))
		AP_TRY(ap_kind_read(ctx, set, out->file, &file));
	out->kind = file.kind;
	if (file.kind == AP_KIND_PLAN)
		return against_plan(ctx, set, &file, named, out);
	if (file.kind != AP_KIND_STRATEGY)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING,
			&(struct ap_where){.file = out->file}, NULL,
			"is %s; expected a plan or a strategy checkpoint", ap_kind_text(file.kind));
	if (set->search)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE,
			&(struct ap_where){.file = out->file}, NULL,
			"--search needs a plan; a strategy checkpoint holds nothing that a search finds");
	if (set->fail_if)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE,
			&(struct ap_where){.file = out->file}, NULL,
			"--fail-if needs a plan; a strategy checkpoint holds no figures");
	return against_ckpt(ctx, set, path, named, out);
}

static bool is_plan(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_known *file)
{
	struct ap_against at = {.file = path};

	return strcmp(path, "-") != 0 && plan_of_bundle(ctx, set, &at) == AP_OK &&
		!ap_file_is_folder(at.file) && ap_kind_read(ctx, set, at.file, file) == AP_OK &&
		file->kind == AP_KIND_PLAN;
}

bool ap_against_is_plan(struct ap_ctx *ctx, const struct ap_settings *set, const char *path)
{
	struct ap_ctx quiet = ap_diag_apart(ctx);
	struct ap_known file;

	return is_plan(&quiet, set, path, &file);
}

enum ap_status ap_against_inputs(struct ap_ctx *ctx, const struct ap_settings *asked, const char *path,
	const struct ap_named *named, struct ap_settings *set, struct ap_sources *src, struct ap_inputs *in)
{
	struct ap_against found = {.file = path};
	struct holding h = {.ctx = ctx, .asked = asked, .named = named, .own = *ctx, .set = *asked,
		.found = &found};
	struct ap_plan_match match;
	struct ap_known file;

	if (!is_plan(ctx, asked, path, &file))
		return ap_diag_status(ctx->diag);
	AP_TRY(ap_plan_check_file(ctx, file.doc));
	h.doc = file.doc;
	h.use = made_by(file.doc);
	AP_TRY(ap_saved_of_plan(ctx, file.doc, &h.plan));
	ap_setting_unset(&h.set, AP_SET_strategy);
	AP_TRY(ap_config_echo(ctx, h.doc, ap_jv_get(ap_json_root(h.doc), "settings"), h.use, &h.set));
	forget_defaults(&h);
	AP_TRY(read_inputs(&h));
	*set = h.set;
	*src = h.src;
	AP_TRY(make_planned(&h, in));
	AP_TRY(give_planned(&h, in, &match));
	if (!set->hybrid)
		in->counts = match.counts;
	if (!set->hybrid && match.nopen)
		return ap_diag_add(ctx->diag, AP_WARNING, AP_OK, &(struct ap_where){.file = path},
			"plan-operators", "has no cut that is valid here of %" PRIu32 " of %" PRIu32
			" operators, which are completed", match.nopen, in->graph->nnode);
	return AP_OK;
}

static void add_json_input(struct ap_jw *w, const struct ap_against_input *in)
{
	static const char *const keys[] = {"old", "new"};
	const char *const hash[] = {in->was, in->is};

	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "input", in->role);
	for (int i = 0; i < 2; i++) {
		ap_jw_key(w, keys[i]);
		if (hash[i])
			ap_jw_str(w, hash[i]);
		else
			ap_jw_null(w);
	}
	ap_jw_kbool(w, "same", !in->other);
	ap_jw_end(w);
}

static void add_json_diff(struct ap_ctx *ctx, struct ap_jw *w, const struct ap_diff *d)
{
	const struct ap_diff_style plain = {.color = false};
	const struct ap_diff_writer *writer;
	struct ap_str text;

	ap_jw_key(w, "changes");
	if (!d) {
		ap_jw_null(w);
		return;
	}
	ap_str_init(&text, ctx->arena);
	for (size_t i = 0; (writer = ap_diff_writer_at(i)); i++)
		if (!strcmp(writer->name, "json"))
			writer->write(ctx, d, &plain, &text);
	text.s[text.len - 1] = '\0'; /* drops the final newline */
	ap_jw_raw(w, text.s);
}

static void add_values(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_plan_values *values, struct ap_str *out)
{
	uint32_t most = (uint32_t)set->max_errors, n = values->nlisted < most ? values->nlisted : most;

	for (uint32_t i = 0; i < n; i++) {
		const struct ap_plan_value *v = &values->v[i];

		ap_str_addf(out, "  %s: %s%s; %s%s of these inputs\n",
			ap_diag_name(ctx->diag, v->pointer), v->was ? "says " : "is not there",
			v->was ? v->was : "", v->is ? "expected " : "expected nothing", v->is ? v->is : "");
	}
	if (values->n > n)
		ap_str_addf(out, "  and %" PRIu32 " values more\n", values->n - n);
}

static void add_text(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_against *a,
	bool color, struct ap_str *out)
{
	const struct ap_diff_style style = {.color = color, .all = set->verbose};
	struct ap_diag *names = ctx->diag;

	ap_str_addf(out, "%s: %s: %s for %s", ap_diag_path(names, a->file), ap_kind_text(a->kind),
		a->fits ? "still right" : "no longer right", ap_diag_path(names, a->graph));
	ap_str_addf(out, "%s%s\n", a->table ? " and " : "", a->table ? ap_diag_path(names, a->table) : "");
	for (uint32_t i = 0; i < a->nfinding; i++)
		ap_str_addf(out, "  %s\n", a->finding[i]);
	if (!a->fits)
		add_values(ctx, set, &a->values, out);
	if (!a->diff || (a->diff->equal && !a->diff->nverdict))
		return;
	ap_str_addc(out, '\n');
	ap_diff_writer_at(0)->write(ctx, a->diff, &style, out);
}

void ap_against_write(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_against *a,
	bool color, struct ap_str *out)
{
	if (set->json) {
		struct ap_jw w;
		const struct ap_plan_values *values;

		ap_jw_str_init(&w, out, 1);
		ap_jw_obj(&w);
		ap_jw_kstr(&w, "schema", "autopar-check/1");
		ap_jw_kstr(&w, "file", ap_file_base(a->file));
		ap_jw_kstr(&w, "kind", a->kind == AP_KIND_PLAN ? "plan" : "strategy");
		ap_jw_kstr(&w, "graph", ap_file_base(a->graph));
		ap_jw_kbool(&w, "fits", a->fits);
		ap_jw_karr(&w, "inputs");
		for (uint32_t i = 0; i < a->ninput; i++)
			add_json_input(&w, &a->input[i]);
		ap_jw_end(&w);
		ap_jw_karr(&w, "findings");
		for (uint32_t i = 0; i < a->nfinding; i++)
			ap_jw_str(&w, a->finding[i]);
		ap_jw_end(&w);
		values = &a->values;
		ap_jw_karr(&w, "values");
		for (uint32_t i = 0; i < values->nlisted; i++) {
			const struct ap_plan_value *v = &values->v[i];

			ap_jw_obj_flat(&w);
			ap_jw_kstr(&w, "pointer", v->pointer);
			ap_jw_kraw(&w, "old", v->was);
			ap_jw_kraw(&w, "new", v->is);
			ap_jw_end(&w);
		}
		ap_jw_end(&w);
		add_json_diff(ctx, &w, a->diff);
		ap_jw_end(&w);
		ap_jw_finish(&w);
	} else {
		add_text(ctx, set, a, color, out);
	}
}
