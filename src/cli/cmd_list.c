/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/models.h"
#include "cli/run.h"
#include "cost/optimizer.h"
#include "hw/builtin.h"
#include "hw/chip.h"
#include "rule/rule.h"
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
	size_t before = out->len;

	ap_settings_text(run->ctx.arena, name, out);
	return out->len > before;
}

static const char *unit_text(enum ap_op_unit unit)
{
	switch (unit) {
	case AP_OP_CUBE:
		return "matrix unit";
	case AP_OP_VECTOR:
		return "vector unit";
	case AP_OP_MEMORY:
		return "memory only";
	case AP_OP_VIEW:
		break;
	}
	return "no work";
}

static void show_operator(const struct ap_op_row *row, struct ap_str *out)
{
	char flops[32], backward[32];

	ap_str_addf(out, "%s: %s\n  rule      %s\n", row->name, row->doc, row->rule);
	if (*row->when)
		ap_str_addf(out, "  when      %s\n", row->when);
	ap_str_addf(out, "  work      %s FLOPs a point on the %s, backward %s times as much\n",
		ap_format_double(row->flops, flops), unit_text(row->unit),
		ap_format_double(row->backward, backward));
	if (*row->save)
		ap_str_addf(out, "  saved     %s\n", row->save);
	if (*row->dev)
		ap_str_addf(out, "  dev       %s\n", row->dev);
	if (*row->left)
		ap_str_addf(out, "  left      %s\n", row->left);
	if (*row->legal)
		ap_str_addf(out, "  legal     %s\n", row->legal);
	ap_str_addf(out, "  source    %s\n", row->source);
}

static bool list_operators(struct ap_run *run, const char *name, struct ap_str *out)
{
	const char *near = NULL, *canonical = name ? ap_op_canonical(name, &near) : NULL;
	const struct ap_op_row *row;
	const char *last = "";

	for (size_t i = 0; (row = ap_op_at(i)); i++) {
		if (canonical && !strcmp(row->name, canonical))
			show_operator(row, out);
		else if (!name && strcmp(row->name, last) != 0)
			ap_str_addf(out, "%-32s %s\n", row->name, row->doc);
		last = row->name;
	}
	if (name && !canonical && near)
		ap_diag_add(run->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"there is no operator \"%s\"; did you mean \"%s\"?", name, near);
	return !name || canonical;
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
