/* SPDX-License-Identifier: Apache-2.0 */
#include "autopar/autopar.h"

#include <assert.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "api/bundle.h"
#include "api/config.h"
#include "api/decided.h"
#include "api/explain.h"
#include "api/planning.h"
#include "api/processors.h"
#include "api/relax.h"
#include "api/settle.h"
#include "autopar/status.h"
#include "autopar/version.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "plan/terms.h"
#include "planfile/plan_json.h"
#include "report/summary.h"

struct autopar {
	struct ap_arena *arena; /* settings and inputs; plans and messages have their own */
	struct ap_arena *scratch;
	struct ap_settings set;
	struct ap_named named;
	struct ap_arena *said; /* messages of the last call; NULL if memory ran out */
	struct autopar_plan *said_of; /* the plan these messages belong to; NULL if none */
	struct ap_diag *diag; /* lives in said */
	bool lacked_memory; /* in the last call */
	autopar_progress_fn *progress;
	void *user;
	volatile sig_atomic_t stop;
	jmp_buf no_memory; /* target when creating an arena fails */
};

struct autopar_plan {
	struct autopar *owner;
	struct ap_arena *root; /* messages of the search; its budget is that of all others, too */
	struct ap_arena *arena; /* the results */
	struct ap_ctx ctx;
	struct ap_settings set; /* after ap_settings_settle() */
	struct ap_sources src;
	struct ap_planning planning;
	struct ap_json *doc; /* the plan file; NULL until first needed */
};

static_assert((int)AUTOPAR_INTERNAL == 70 && AP_STATUS_COUNT == 10, "a status is missing in autopar.h");

static enum autopar_status status_of(enum ap_status st)
{
	return (enum autopar_status)ap_status_exit(st);
}

const char *autopar_version(void)
{
	return AP_VERSION;
}

/* ---- memory and messages ---- */

static void leave(void *user, size_t wanted)
{
	struct autopar *a = user;

	(void)wanted;
	longjmp(a->no_memory, 1);
}

/* A new arena; NULL if memory runs out. Later allocations in it are tried. */
static struct ap_arena *open_arena(struct autopar *a, size_t budget)
{
	return setjmp(a->no_memory) ? NULL : ap_arena_create(budget, leave, a);
}

static void forget_messages(struct autopar *a)
{
	if (!a->said_of || a->said != a->said_of->root)
		ap_arena_destroy(a->said);
	a->said = NULL;
	a->said_of = NULL;
	a->diag = NULL;
}

struct beginning {
	struct autopar *a;
	struct ap_arena *like;
	bool strict;
};

static void make_diag(void *user)
{
	struct beginning *b = user;

	if (b->like)
		b->a->said = ap_arena_create_like(b->like);
	b->a->diag = ap_diag_create(b->a->said, b->strict);
}

/* Makes the message sink of a call, within the budget of arena like (NULL: one of its own). Returns
 * false if there is no memory even for that. */
static bool begin(struct autopar *a, struct ap_arena *like, size_t budget, bool strict)
{
	struct beginning b = {a, like, strict};
	struct ap_refusal refusal;

	forget_messages(a);
	if (!like)
		a->said = open_arena(a, budget);
	a->lacked_memory = (!like && !a->said) ||
		!ap_arena_try(like ? like : a->said, make_diag, NULL, &b, &refusal);
	if (a->lacked_memory && like)
		a->said = NULL;
	return !a->lacked_memory;
}

/* Runs the part of a call that may run out of memory. */
static enum autopar_status call(struct autopar *a, void (*part)(void *user), void *user,
	const enum ap_status *st)
{
	struct ap_refusal refusal;

	a->lacked_memory = !ap_arena_try(a->said, part, NULL, user, &refusal);
	return a->lacked_memory ? AUTOPAR_LIMIT : status_of(*st);
}

size_t autopar_messages(const struct autopar *a)
{
	size_t n = a->lacked_memory;

	for (int level = AP_NOTE; a->diag && level <= AP_ERROR; level++)
		n += ap_diag_count(a->diag, (enum ap_level)level);
	return n;
}

/* The message about lack of memory is the last one. */
static bool message_at(const struct autopar *a, size_t i, struct ap_message *m)
{
	if (a->diag && ap_diag_at(a->diag, i, m))
		return true;
	*m = (struct ap_message){.level = AP_ERROR, .text = "out of memory; see planner_memory"};
	return a->lacked_memory && i + 1 == autopar_messages(a);
}

const char *autopar_message(const struct autopar *a, size_t i, const char *fact)
{
	static const char *const levels[] = {"note", "warning", "error"};
	struct ap_message m;

	if (!message_at(a, i, &m))
		return NULL;
	return !strcmp(fact, "text") ? m.text
		: !strcmp(fact, "level") ? levels[m.level]
		: !strcmp(fact, "file") ? m.file
		: !strcmp(fact, "pointer") ? m.pointer
		: !strcmp(fact, "operator") ? m.oper
		: !strcmp(fact, "check") ? m.check : NULL;
}

int64_t autopar_message_line(const struct autopar *a, size_t i)
{
	struct ap_message m;

	return message_at(a, i, &m) ? m.line : 0;
}

int64_t autopar_message_column(const struct autopar *a, size_t i)
{
	struct ap_message m;

	return message_at(a, i, &m) ? m.col : 0;
}

/* ---- contexts ---- */

static void make_scratch(void *user)
{
	struct autopar *a = user;

	a->scratch = ap_arena_create_like(a->arena);
	ap_arena_own(a->arena, a->scratch);
}

struct autopar *autopar_create(void)
{
	struct autopar *a = calloc(1, sizeof *a);
	struct ap_refusal refusal;

	if (!a)
		return NULL;
	ap_settings_init(&a->set);
	a->arena = open_arena(a, 0);
	if (a->arena && ap_arena_try(a->arena, make_scratch, NULL, a, &refusal) &&
		begin(a, a->arena, 0, false))
		return a;
	autopar_destroy(a);
	return NULL;
}

void autopar_destroy(struct autopar *a)
{
	if (!a)
		return;
	forget_messages(a);
	ap_arena_destroy(a->arena);
	free(a);
}

void autopar_progress(struct autopar *a, autopar_progress_fn *fn, void *user)
{
	a->progress = fn;
	a->user = user;
}

void autopar_stop(struct autopar *a)
{
	a->stop = 1;
}

struct setting {
	struct autopar *a;
	const char *name, *text;
	size_t bytes;
	enum ap_status st;
};

/* Does the library take this setting? It takes those about planning only. */
static bool is_taken(const struct ap_setting_row *row)
{
	return row->uses & AP_FOR_PLANNERS && row->type < AP_SET_INPUT && row->group != AP_GROUP_GENERAL &&
		(row->group != AP_GROUP_RUN || row == ap_setting_at(AP_SET_jobs)) &&
		(row->group != AP_GROUP_OUTPUTS || row->on);
}

static void set(void *user)
{
	struct setting *s = user;
	struct autopar *a = s->a;
	struct ap_ctx ctx = {.arena = a->arena, .scratch = a->scratch, .diag = a->diag, .jobs = 1};
	const char *name = ap_arena_strdup(a->arena, s->name), *text = ap_arena_strdup(a->arena, s->text),
		*why;
	const struct ap_setting_row *row = ap_setting_of_key(name);
	const struct ap_object_spelling *object = ap_object_spelling_of(name);
	struct ap_settings now = a->set;

	if (row)
		now.origin[row - ap_setting_at(0)] = AP_FROM_DEFAULT; /* the last one wins */
	if (object && (!row || *text == '{'))
		ap_config_option(&ctx, name, text, object, AP_FOR_PLANNERS, &now);
	else if (!row || !is_taken(row))
		(void)ap_diag_add(a->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: no such setting of a plan",
			ap_diag_name(a->diag, name));
	else if (!ap_setting_give(a->arena, row, &now, text, AP_FROM_OPTION, name, &why))
		(void)ap_diag_add(a->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: %s", name, why);
	s->st = ap_diag_status(a->diag);
	if (s->st == AP_OK)
		a->set = now;
}

enum autopar_status autopar_set(struct autopar *a, const char *name, const char *value)
{
	struct setting s = {a, name, value, 0, AP_OK};

	return begin(a, a->arena, 0, false) ? call(a, set, &s, &s.st) : AUTOPAR_LIMIT;
}

static void configure(void *user)
{
	struct setting *s = user;
	struct autopar *a = s->a;
	struct ap_ctx ctx = {.arena = a->arena, .scratch = a->scratch, .diag = a->diag, .jobs = 1};
	struct ap_settings now = a->set;
	struct ap_json *doc;

	s->st = ap_json_parse(&ctx, s->name, s->text, s->bytes, 0, &doc);
	if (s->st == AP_OK)
		s->st = ap_config_set(&ctx, doc, AP_FOR_PLANNERS, &now);
	for (int i = 0; i < AP_SET_COUNT; i++) /* unset what the library does not take */
		if (!is_taken(ap_setting_at((enum ap_setting_id)i)))
			ap_setting_unset(&now, (enum ap_setting_id)i);
	if (s->st == AP_OK)
		a->set = now;
}

enum autopar_status autopar_config(struct autopar *a, const char *text, size_t bytes)
{
	struct setting s = {a, "settings", text, bytes, AP_OK};

	return begin(a, a->arena, 0, false) ? call(a, configure, &s, &s.st) : AUTOPAR_LIMIT;
}

struct naming {
	struct ap_arena *arena;
	struct ap_input *input;
	const char *path, *text; /* text is NULL if path is a file */
	size_t bytes;
	enum ap_status st;
};

static void name_input(void *user)
{
	struct naming *n = user;
	char *text = n->text ? ap_arena_alloc(n->arena, n->bytes + 1, 1) : NULL;

	if (text)
		memcpy(text, n->text, n->bytes);
	*n->input = (struct ap_input){.path = ap_arena_strdup(n->arena, n->path), .text = text,
		.len = n->bytes};
}

static enum autopar_status take_input(struct autopar *a, struct ap_input *input, const char *path,
	const char *text, size_t bytes)
{
	struct naming n = {a->arena, input, path, text, bytes, AP_OK};

	return begin(a, a->arena, 0, false) ? call(a, name_input, &n, &n.st) : AUTOPAR_LIMIT;
}

#define INPUT(what, field) \
	enum autopar_status autopar_##what##_file(struct autopar *a, const char *path) \
	{ \
		return take_input(a, &a->named.field, path, NULL, 0); \
	} \
	enum autopar_status autopar_##what##_memory(struct autopar *a, const char *name, const char *text, \
		size_t bytes) \
	{ \
		return take_input(a, &a->named.field, name, text, bytes); \
	}
INPUT(graph, graph)
INPUT(rank_table, table)
INPUT(strategy, strategy)

/* ---- plans ---- */

static void on_phase(void *user, const char *name)
{
	struct autopar *a = user;

	if (a->progress && a->progress(a->user, name))
		a->stop = 1;
}

struct making {
	struct autopar *a;
	struct autopar_plan *p;
	unsigned use;
	struct ap_devices *devices; /* for the fewest devices; NULL: make a plan */
	enum ap_status st;
};

/* Settles the settings and reads the inputs. */
static enum ap_status read_inputs(struct making *m)
{
	struct autopar_plan *p = m->p;
	struct autopar *a = m->a;

	p->set = a->set;
	p->set.min_devices = m->devices;
	if (m->use == AP_FOR_evaluate)
		p->set.strategy = a->named.strategy.path;
	else
		p->set.strategy_ckpt_load_file = a->named.strategy.path;
	AP_TRY(ap_settings_settle(&p->ctx, &p->set, m->use));
	AP_TRY(ap_settings_one(&p->ctx, &p->set, m->use == AP_FOR_plan ? m->use : AP_FOR_evaluate,
		"the library"));
	AP_TRY(ap_settings_note(&p->ctx, &p->set, m->use));
	if (!a->named.graph.path)
		return ap_diag_add(a->diag, AP_ERROR, AP_USAGE, NULL, NULL, "there is no graph");
	if (m->use == AP_FOR_plan && a->named.strategy.path)
		return ap_diag_add(a->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: a strategy leaves nothing to decide", a->named.strategy.path);
	return ap_sources_read(&p->ctx, &p->set, &a->named, &p->src);
}

/* Decides the settings that are left open, and makes the plan of them. */
static enum ap_status decide(struct autopar_plan *p)
{
	static const char *const no_tables[] = {NULL};
	const struct ap_settings asked = p->set;
	struct ap_writing to = {.ctx = &p->ctx, .set = &asked};
	struct ap_plan_joint *joint;
	struct ap_decided all;
	enum ap_status early, st;
	unsigned use;

	AP_TRY(ap_planning_check(&to, AP_FOR_plan, &p->planning));
	early = ap_decide_machines(&p->ctx, &asked, &p->src, no_tables, &all);
	if (early != AP_OK && early != AP_STOPPED)
		return early;
	p->src = all.src[all.taken];
	joint = ap_decided_take(&p->ctx, &all, early == AP_OK, &p->set, &use);
	to.set = &p->set;
	AP_TRY(ap_planning_begin(&to, &p->src, use, &p->planning));
	st = ap_planning_make(&to, &p->src, use, &p->planning);
	if (st != AP_OK && st != AP_STOPPED)
		return st;
	p->planning.plan.joint = joint;
	ap_decided_finish(&p->ctx, &all, &p->planning.in, &p->planning.plan, joint);
	return early != AP_OK ? early : st;
}

static enum ap_status plan(struct making *m)
{
	struct autopar_plan *p = m->p;
	struct ap_writing to = {.ctx = &p->ctx, .set = &p->set};

	AP_TRY(read_inputs(m));
	if (m->devices)
		return ap_min_devices(&p->ctx, &p->set, &p->src, m->devices);
	if (m->use == AP_FOR_plan)
		return decide(p);
	AP_TRY(ap_planning_check(&to, m->use, &p->planning));
	AP_TRY(ap_planning_begin(&to, &p->src, m->use, &p->planning));
	return ap_planning_make(&to, &p->src, m->use, &p->planning);
}

static void make(void *user)
{
	struct making *m = user;
	struct autopar_plan *p = m->p;

	p->arena = ap_arena_create_like(m->a->said);
	p->ctx = (struct ap_ctx){
		.arena = p->arena,
		.scratch = ap_arena_create_like(p->arena),
		.diag = m->a->diag,
		.jobs = m->a->set.jobs ? (int)m->a->set.jobs : ap_processors(),
		.stop = &m->a->stop,
		.phase = on_phase,
		.phase_user = m->a,
	};
	ap_arena_own(p->arena, p->ctx.scratch);
	m->st = plan(m);
}

static enum autopar_status make_plan(struct autopar *a, unsigned use, struct ap_devices *devices,
	struct autopar_plan **out)
{
	struct making m = {.a = a, .p = calloc(1, sizeof *m.p), .use = use, .devices = devices};
	enum autopar_status st = AUTOPAR_LIMIT;

	*out = NULL;
	if (!begin(a, NULL, (size_t)a->set.planner_memory, a->set.strict) || !m.p) {
		a->lacked_memory = true;
		free(m.p);
		return st;
	}
	m.p->owner = a;
	st = call(a, make, &m, &m.st);
	a->stop = 0;
	if (st == AUTOPAR_OK || st == AUTOPAR_STOPPED) {
		m.p->root = a->said;
		a->said_of = *out = m.p;
		return st;
	}
	if (!a->lacked_memory) /* after that, it has been destroyed */
		ap_arena_destroy(m.p->arena);
	free(m.p);
	return st;
}

enum autopar_status autopar_search(struct autopar *a, struct autopar_plan **out)
{
	return make_plan(a, AP_FOR_search, NULL, out);
}

enum autopar_status autopar_evaluate(struct autopar *a, struct autopar_plan **out)
{
	return make_plan(a, AP_FOR_evaluate, NULL, out);
}

enum autopar_status autopar_decide(struct autopar *a, struct autopar_plan **out)
{
	return make_plan(a, AP_FOR_plan, NULL, out);
}

enum autopar_status autopar_min_devices(struct autopar *a, int64_t *devices, int64_t *bytes)
{
	struct autopar_plan *none;
	struct ap_devices found = {0};
	enum autopar_status st = make_plan(a, AP_FOR_search, &found, &none);

	autopar_plan_destroy(none);
	*devices = found.fits;
	*bytes = found.memory_bytes;
	return st;
}

void autopar_plan_destroy(struct autopar_plan *p)
{
	if (!p)
		return;
	if (p->owner->said_of == p)
		forget_messages(p->owner);
	ap_arena_destroy(p->arena);
	ap_arena_destroy(p->root);
	free(p);
}

double autopar_plan_step_time_s(const struct autopar_plan *p)
{
	return p->planning.plan.prediction.step_time_s;
}

int64_t autopar_plan_memory_bytes(const struct autopar_plan *p)
{
	return p->planning.plan.prediction.memory.total;
}

const char *autopar_plan_status(const struct autopar_plan *p)
{
	return ap_plan_status_name(p->planning.plan.search.status);
}

/* ---- outputs of a plan ---- */

struct reading {
	struct autopar_plan *p;
	const char *output, *suffix, *path;
	struct ap_str text;
	enum ap_status st;
};

static void read_doc(void *user)
{
	struct reading *r = user;
	struct autopar_plan *p = r->p;
	struct ap_ctx quiet = p->ctx;

	quiet.diag = ap_diag_create(p->arena, false);
	ap_str_init(&r->text, p->arena);
	ap_emit_plan_json(&quiet, &p->planning.plan, ap_str_take, &r->text);
	r->st = ap_json_parse(&quiet, "plan", r->text.s, r->text.len, 0, &p->doc);
}

/* The messages belong to the plan: its arenas hold them. */
static enum autopar_status write_output(struct reading *r, void (*part)(void *user))
{
	struct autopar_plan *p = r->p;

	if (!begin(p->owner, p->root, 0, false))
		return AUTOPAR_LIMIT;
	p->owner->said_of = p;
	p->ctx.diag = p->owner->diag;
	return call(p->owner, part, r, &r->st);
}

/* Does a token of a JSON pointer ("~1" for "/", "~0" for "~") spell key? */
static bool is_key(const char *key, const char *token, size_t len)
{
	for (size_t i = 0; i < len; i++, key++) {
		char c = token[i];

		if (c == '~' && i + 1 < len)
			c = token[++i] == '1' ? '/' : '~';
		if (*key != c)
			return false;
	}
	return !*key;
}

/* The value at a JSON pointer; NULL if there is none. */
static const struct ap_jv *at(const struct ap_jv *v, const char *pointer)
{
	while (v && *pointer == '/') {
		size_t len = strcspn(++pointer, "/"), n = 0;

		if (ap_jv_type(v) == AP_JARRAY)
			n = strspn(pointer, "0123456789") == len && len ? strtoul(pointer, NULL,
				10) : SIZE_MAX;
		for (v = ap_jv_first(v); v && (ap_jv_key(v) ? !is_key(ap_jv_key(v), pointer,
			len) : n > 0); n--)
			v = ap_jv_next(v);
		pointer += len;
	}
	return *pointer ? NULL : v;
}

static const struct ap_jv *find(struct autopar_plan *p, const char *pointer)
{
	struct reading r = {.p = p};
	struct ap_refusal refusal;

	if (!p->doc && !ap_arena_try(p->root, read_doc, NULL, &r, &refusal))
		return NULL;
	return p->doc ? at(ap_json_root(p->doc), pointer) : NULL;
}

bool autopar_plan_number(struct autopar_plan *p, const char *pointer, double *value)
{
	const struct ap_jv *v = find(p, pointer);

	if (!v || ap_jv_type(v) != AP_JNUMBER)
		return false;
	*value = ap_jv_double(v);
	return true;
}

const char *autopar_plan_text(struct autopar_plan *p, const char *pointer)
{
	const struct ap_jv *v = find(p, pointer);

	return v && ap_jv_type(v) == AP_JSTRING ? ap_jv_str(v) : NULL;
}

size_t autopar_plan_count(struct autopar_plan *p, const char *pointer)
{
	const struct ap_jv *v = find(p, pointer);

	return v && ap_jv_type(v) >= AP_JARRAY ? ap_jv_count(v) : 0;
}

/* Builds the table again if the search did not keep it. */
static enum ap_status need_problem(struct autopar_plan *p, const char *output)
{
	struct ap_planning *x = &p->planning;

	if (strcmp(output, ap_setting_at(AP_SET_problem_out)->key) != 0 || x->made.problem)
		return AP_OK;
	return ap_drive_table(&p->ctx, &x->in.request, &x->made.problem);
}

static enum ap_status write_file(struct reading *r)
{
	struct autopar_plan *p = r->p;
	const struct ap_setting_row *row = ap_setting_of_key(r->output);
	struct ap_settings set = p->set;
	struct ap_writing to = {.ctx = &p->ctx, .set = &set};
	const char *why;
	bool taken;
	enum ap_status st;

	if (!row || row->type < AP_SET_OUTPUT || !(row->uses & AP_FOR_PLANNERS) || !strcmp(r->path, "-") ||
		!ap_setting_give(p->arena, row, &set, ap_arena_strdup(p->arena, r->path), AP_FROM_OPTION,
			row->key, &why))
		return ap_diag_add(p->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: no such output of a plan, or no "
			"name of a file", r->output);
	AP_TRY(need_problem(p, r->output));
	st = ap_plan_check_outputs(&to);
	if (st == AP_OK)
		st = ap_plan_check_stages(&to, p->planning.plan.nstage);
	if (st == AP_OK)
		st = ap_bundle_begin(&to);
	if (st == AP_OK)
		st = ap_plan_stage(&to, &p->planning.made, &taken);
	if (st == AP_OK)
		st = ap_out_commit(&to);
	ap_outputs_discard(to.staged);
	return st;
}

static void try_file(void *user)
{
	struct reading *r = user;

	r->st = write_file(r);
}

static enum ap_status write_memory(struct reading *r)
{
	struct autopar_plan *p = r->p;
	const struct ap_setting_row *row = ap_setting_of_key(r->output);
	bool json = !strcmp(r->suffix, ".json");

	ap_str_init(&r->text, p->arena);
	if (!strcmp(r->output, "summary")) {
		if (json)
			ap_emit_summary_json(&p->planning.plan, NULL, ap_str_take, &r->text);
		else
			ap_emit_summary(&p->ctx, &p->planning.plan, NULL, p->set.verbose, &r->text);
		return AP_OK;
	}
	if (!row)
		return ap_diag_add(p->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: no such output of a plan",
			r->output);
	AP_TRY(need_problem(p, r->output));
	return ap_plan_write(&p->ctx, &p->set, &p->planning.made,
		(enum ap_setting_id)(row - ap_setting_at(0)),
		ap_arena_printf(p->arena, "plan%s", r->suffix), ap_str_take, &r->text);
}

static void try_memory(void *user)
{
	struct reading *r = user;

	r->st = write_memory(r);
}

static void try_explain(void *user)
{
	struct reading *r = user;
	struct ap_settings set = r->p->set;
	struct ap_writing to = {.ctx = &r->p->ctx, .set = &set};
	const char *form = !strcmp(r->suffix, ".json") ? "json" : !strcmp(r->suffix, ".md") ? "markdown"
		: "text";
	const char *why;

	ap_setting_unset(&set, AP_SET_format);
	ap_setting_give(r->p->arena, ap_setting_at(AP_SET_format), &set, form, AP_FROM_OPTION, "format",
		&why);
	ap_str_init(&r->text, r->p->arena);
	r->st = ap_explain_made(&to, &r->p->planning, r->output, &r->text);
}

enum autopar_status autopar_plan_explain(struct autopar_plan *p, const char *name, const char *suffix,
	const char **data, size_t *bytes)
{
	struct reading r = {.p = p, .output = name, .suffix = suffix};
	enum autopar_status st = write_output(&r, try_explain);

	*data = st == AUTOPAR_OK ? r.text.s : NULL;
	*bytes = st == AUTOPAR_OK ? r.text.len : 0;
	return st;
}

enum autopar_status autopar_plan_file(struct autopar_plan *p, const char *output, const char *path)
{
	struct reading r = {.p = p, .output = output, .path = path};

	return write_output(&r, try_file);
}

enum autopar_status autopar_plan_memory(struct autopar_plan *p, const char *output, const char *suffix,
	const char **data, size_t *bytes)
{
	struct reading r = {.p = p, .output = output, .suffix = suffix};
	enum autopar_status st = write_output(&r, try_memory);

	*data = st == AUTOPAR_OK ? r.text.s : NULL;
	*bytes = st == AUTOPAR_OK ? r.text.len : 0;
	return st;
}
