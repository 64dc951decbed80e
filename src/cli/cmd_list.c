/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/diag.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/models.h"
#include "cli/run.h"
#include "cli/settings.h"
#include "cost/optimizer.h"
#include "hw/builtin.h"
#include "hw/chip.h"
#include "rule/describe.h"
#include "search/engine.h"

/* Lists all (name NULL), or shows the one of that name; false where there is none. */
typedef bool list_fn(struct ap_run *run, const char *name, struct ap_str *out);

static bool list_chips(struct ap_run *run, const char *name, struct ap_str *out)
{
	const struct ap_chip *chip;
	const char *each, *text;

	if (name) {
		if (ap_chip_get(&run->ctx, name, &chip) != AP_OK)
			return false;
		for (size_t i = 0; (each = ap_chip_at(i, &text)); i++)
			if (!strcmp(each, chip->name))
				ap_str_add(out, text);
		return true;
	}
	for (size_t i = 0; (each = ap_chip_at(i, NULL)); i++) {
		if (ap_chip_get(&run->ctx, each, &chip) != AP_OK)
			return false;
		ap_str_add(out, each);
		for (int a = 0; a < chip->nalias; a++)
			ap_str_addf(out, " %s", chip->alias[a]);
		ap_str_addc(out, '\n');
	}
	return true;
}

static bool list_software(struct ap_run *run, const char *name, struct ap_str *out)
{
	bool found = !name;

	(void)run;
	for (const struct ap_builtin *b = ap_builtin_software; b->name; b++) {
		if (!name)
			ap_str_addf(out, "%s\n", b->name);
		else if (!strcmp(name, b->name))
			ap_str_add(out, b->text);
		found |= name && !strcmp(name, b->name);
	}
	return found;
}

static bool list_engines(struct ap_run *run, const char *name, struct ap_str *out)
{
	const struct ap_engine *e;
	bool found = !name;

	(void)run;
	for (size_t i = 0; (e = ap_engine_at(i)); i++)
		if (!name || !strcmp(name, e->name)) {
			ap_str_addf(out, "%-22s %s\n", e->name, e->help);
			found = true;
		}
	return found;
}

static bool list_optimizers(struct ap_run *run, const char *name, struct ap_str *out)
{
	const struct ap_optimizer *o;
	bool found = !name;

	(void)run;
	for (size_t i = 0; (o = ap_optimizer_at(i)); i++)
		if (!name || !strcmp(name, o->name)) {
			ap_str_addf(out, "%-22s %d state%s of %d bytes an element: %s\n", o->name,
				o->nstate, o->nstate == 1 ? "" : "s", o->state_bytes, o->prefixes);
			found = true;
		}
	return found;
}

static bool list_settings(struct ap_run *run, const char *name, struct ap_str *out)
{
	return run->opt->json ? ap_settings_json(name, out)
			      : ap_settings_text(run->ctx.arena, name, out);
}

/* Also those of which only the name is known. */
static void list_all_operators(struct ap_str *out)
{
	const struct ap_op_row *row;
	const char *last = "", *type, *reason;

	for (size_t i = 0; (row = ap_op_at(i)); i++) {
		if (strcmp(row->name, last) != 0 && !ap_op_unsupported(row->name))
			ap_str_addf(out, "%-34s %s\n", row->name, row->doc);
		last = row->name;
	}
	for (size_t i = 0; ap_op_unsupported_at(i, &type, &reason); i++)
		ap_str_addf(out, "%-34s not planned with: %s\n", type, reason);
}

static bool list_operators(struct ap_run *run, const char *name, struct ap_str *out)
{
	const char *near = NULL, *type = name ? ap_op_canonical(name, &near) : NULL;

	if (!name)
		list_all_operators(out);
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
	{"models", ap_models_text},
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

	ap_str_init(&out, run->ctx.arena);
	for (size_t i = 0; i < sizeof topics / sizeof *topics; i++) {
		if (strcmp(topics[i].name, topic) != 0)
			continue;
		if (topics[i].list(run, name, &out))
			return ap_stdout_write(&run->ctx, out.s, out.len);
		AP_TRY(ap_diag_status(run->ctx.diag));
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"there is no \"%s\" among the %s; see `autopar-plan list %s`", name, topic,
			topic);
	}
	return ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
		"list: \"%s\" is not accepted; expected one of chips, engines, models, operators, "
		"optimizers, settings, software", topic);
}
