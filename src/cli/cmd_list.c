/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/cmd.h"
#include "cli/help.h"
#include "cli/models.h"
#include "cli/run.h"
#include "cost/optimizer.h"
#include "hw/builtin.h"
#include "hw/chip.h"
#include "rule/describe.h"
#include "search/engine.h"

/* Lists all (name NULL), or shows the one of that name; false where there is none. w: an array that is open
 * on out, where JSON is wanted, else NULL. */
typedef bool list_fn(struct ap_run *run, const char *name, struct ap_str *out, struct ap_jw *w);

static void write_strings(struct ap_jw *w, const char *key, const char *const *v, int n)
{
	ap_jw_key(w, key);
	ap_jw_arr_flat(w);
	for (int i = 0; i < n; i++)
		ap_jw_str(w, v[i]);
	ap_jw_end(w);
}

/* The text of a JSON file as a value. */
static void write_file(struct ap_run *run, struct ap_jw *w, const char *text)
{
	size_t len = strlen(text);

	while (len && strchr(" \n\t", text[len - 1]))
		len--;
	ap_jw_raw(w, ap_arena_strndup(run->ctx.arena, text, len));
}

static bool list_chips(struct ap_run *run, const char *name, struct ap_str *out, struct ap_jw *w)
{
	const struct ap_chip *chip;
	const char *each, *text;

	if (name) {
		if (ap_chip_get(&run->ctx, name, &chip) != AP_OK)
			return false;
		for (size_t i = 0; (each = ap_chip_at(i, &text)); i++)
			if (!strcmp(each, chip->name) && w)
				write_file(run, w, text);
			else if (!strcmp(each, chip->name))
				ap_str_add(out, text);
		return true;
	}
	for (size_t i = 0; (each = ap_chip_at(i, NULL)); i++) {
		if (ap_chip_get(&run->ctx, each, &chip) != AP_OK)
			return false;
		if (w) {
			ap_jw_obj_flat(w);
			ap_jw_kstr(w, "name", each);
			write_strings(w, "aliases", chip->alias, chip->nalias);
			ap_jw_end(w);
			continue;
		}
		ap_str_add(out, each);
		for (int a = 0; a < chip->nalias; a++)
			ap_str_addf(out, " %s", chip->alias[a]);
		ap_str_addc(out, '\n');
	}
	return true;
}

static bool list_software(struct ap_run *run, const char *name, struct ap_str *out, struct ap_jw *w)
{
	bool found = !name;

	for (const struct ap_builtin *b = ap_builtin_software; b->name; b++) {
		if (!name && w) {
			ap_jw_obj_flat(w);
			ap_jw_kstr(w, "name", b->name);
			ap_jw_end(w);
		} else if (w && !strcmp(name, b->name))
			write_file(run, w, b->text);
		else if (!name)
			ap_str_addf(out, "%s\n", b->name);
		else if (!strcmp(name, b->name))
			ap_str_add(out, b->text);
		found |= name && !strcmp(name, b->name);
	}
	return found;
}

static bool list_engines(struct ap_run *run, const char *name, struct ap_str *out, struct ap_jw *w)
{
	const struct ap_engine *e;
	bool found = !name;

	(void)run;
	for (size_t i = 0; (e = ap_engine_at(i)); i++)
		if (!name || !strcmp(name, e->name)) {
			found = true;
			if (!w) {
				ap_str_addf(out, "%-22s %s\n", e->name, e->help);
				continue;
			}
			ap_jw_obj_flat(w);
			ap_jw_kstr(w, "name", e->name);
			ap_jw_kstr(w, "help", e->help);
			ap_jw_end(w);
		}
	return found;
}

static bool list_optimizers(struct ap_run *run, const char *name, struct ap_str *out, struct ap_jw *w)
{
	const struct ap_optimizer *o;
	bool found = !name;

	(void)run;
	for (size_t i = 0; (o = ap_optimizer_at(i)); i++) {
		if (name && strcmp(name, o->name) != 0)
			continue;
		found = true;
		if (!w) {
			ap_str_addf(out, "%-22s %d state%s of %d bytes an element: %s\n", o->name,
				o->nstate,
				o->nstate == 1 ? "" : "s", o->state_bytes, o->prefixes);
			continue;
		}
		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "name", o->name);
		ap_jw_kint(w, "states", o->nstate);
		ap_jw_kint(w, "state_bytes", o->state_bytes);
		ap_jw_kstr(w, "prefixes", o->prefixes);
		ap_jw_end(w);
	}
	return found;
}

static bool list_settings(struct ap_run *run, const char *name, struct ap_str *out, struct ap_jw *w)
{
	(void)run;
	return ap_help_settings(name, out, w);
}

/* A type is listed once, by the first of its rows. */
static bool is_listed(const struct ap_op_row *row)
{
	return ap_op_next(NULL, row->name) == row && !ap_op_unsupported(row->name);
}

/* Also those of which only the name is known. */
static void list_all_operators(struct ap_str *out)
{
	const struct ap_op_row *row;
	const char *type, *reason;

	for (size_t i = 0; (row = ap_op_at(i)); i++)
		if (is_listed(row))
			ap_str_addf(out, "%-34s %s\n", row->name, row->doc);
	for (size_t i = 0; ap_op_unsupported_at(i, &type, &reason); i++)
		ap_str_addf(out, "%-34s not planned with: %s\n", type, reason);
}

static void write_unplanned(struct ap_jw *w, const char *type, const char *reason)
{
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "name", type);
	ap_jw_kbool(w, "planned", false);
	ap_jw_kstr(w, "reason", reason);
	ap_jw_end(w);
}

static void write_operator(struct ap_jw *w, const struct ap_op_row *row)
{
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "name", row->name);
	ap_jw_kbool(w, "planned", true);
	ap_jw_kstr(w, "doc", row->doc);
	ap_jw_end(w);
}

static void write_all_operators(struct ap_jw *w)
{
	const struct ap_op_row *row;
	const char *type, *reason;

	for (size_t i = 0; (row = ap_op_at(i)); i++)
		if (is_listed(row))
			write_operator(w, row);
	for (size_t i = 0; ap_op_unsupported_at(i, &type, &reason); i++)
		write_unplanned(w, type, reason);
}

/* All that its rows hold, beside the text that explains them. */
static void write_one_operator(struct ap_run *run, struct ap_jw *w, const char *type)
{
	const struct ap_op_row *first = ap_op_next(NULL, type);
	const char *old, *now;
	struct ap_str text;

	ap_str_init(&text, run->ctx.arena);
	ap_op_describe(type, &text);
	ap_jw_obj(w);
	ap_jw_kstr(w, "name", first->name);
	ap_jw_kbool(w, "planned", true);
	ap_jw_kstr(w, "doc", first->doc);
	ap_jw_kstr(w, "family", ap_op_family(first));
	ap_jw_key(w, "aliases");
	ap_jw_arr_flat(w);
	for (size_t i = 0; ap_op_alias_at(i, &old, &now); i++)
		if (!strcmp(now, type))
			ap_jw_str(w, old);
	ap_jw_end(w);
	ap_jw_kstr(w, "source", first->source);
	ap_jw_key(w, "rows");
	ap_jw_arr(w);
	for (const struct ap_op_row *row = first; row; row = ap_op_next(row, type)) {
		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "rule", row->rule);
		ap_jw_kstr(w, "when", row->when);
		ap_jw_kstr(w, "doc", row->doc);
		ap_jw_knum(w, "flops", row->flops);
		ap_jw_knum(w, "backward", row->backward);
		ap_jw_kstr(w, "save", row->save);
		ap_jw_kstr(w, "grad", row->grad);
		ap_jw_kstr(w, "types", row->types);
		ap_jw_kstr(w, "dev", row->dev);
		ap_jw_kstr(w, "left", row->left);
		ap_jw_kstr(w, "legal", row->legal);
		ap_jw_kstr(w, "strategy", row->strategy);
		ap_jw_end(w);
	}
	ap_jw_end(w);
	ap_jw_kstr(w, "text", text.s);
	ap_jw_end(w);
}

static bool list_operators(struct ap_run *run, const char *name, struct ap_str *out, struct ap_jw *w)
{
	const char *near = NULL, *type = name ? ap_op_canonical(name, &near) : NULL;

	if (!name && w)
		write_all_operators(w);
	else if (!name)
		list_all_operators(out);
	else if (type && w)
		write_one_operator(run, w, type);
	else if (!type && w && ap_op_unsupported(name))
		write_unplanned(w, name, ap_op_unsupported(name));
	else if (type)
		ap_op_describe(type, out);
	else if (ap_op_unsupported(name))
		ap_str_addf(out, "%s: known, but not planned with: %s\n", name,
			ap_op_unsupported(name));
	else if (near)
		ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"there is no operator \"%s\"; did you mean \"%s\"?", name, near);
	return !name || type || ap_op_unsupported(name);
}

static const struct {
	const char *name;
	list_fn *list;
} topics[] = {
	{"chips", list_chips},
	{"engines", list_engines},
	{"models", ap_models_list},
	{"operators", list_operators},
	{"optimizers", list_optimizers},
	{"settings", list_settings},
	{"software", list_software},
};

enum ap_status ap_cmd_list(struct ap_run *run)
{
	const char *topic = run->cli->arg[0];
	const char *name = run->cli->narg > 1 ? run->cli->arg[1] : NULL;
	struct ap_str out;
	struct ap_jw w;

	ap_str_init(&out, run->ctx.arena);
	if (run->set->json) {
		ap_jw_str_init(&w, &out, 2);
		ap_jw_arr(&w);
	}
	for (size_t i = 0; i < AP_COUNT(topics); i++) {
		if (strcmp(topics[i].name, topic) != 0)
			continue;
		if (topics[i].list(run, name, &out, run->set->json ? &w : NULL)) {
			if (run->set->json) {
				ap_jw_end(&w);
				ap_jw_finish(&w);
			}
			return ap_stdout_write(&run->ctx, out.s, out.len);
		}
		AP_TRY(ap_diag_status(run->ctx.diag));
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"there is no \"%s\" among the %s; see `autopar-plan list %s`", name, topic,
			topic);
	}
	return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
		"list: \"%s\" is not accepted; expected one of chips, engines, models, operators, "
		"optimizers, settings, software", topic);
}
