/* SPDX-License-Identifier: Apache-2.0 */
#include "api/catalogue.h"

#include <inttypes.h>
#include <string.h>

#include "api/files.h"
#include "api/model.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/optimizer.h"
#include "graph/graph.h"
#include "hw/builtin.h"
#include "hw/chip.h"
#include "hw/constant.h"
#include "hw/measured.h"
#include "rule/describe.h"
#include "rule/op.h"
#include "search/engine.h"

/* Lists all entries (name NULL), or shows the one named; false if there is none. w: an open array
 * for JSON output on out, or NULL for text. */
typedef bool list_fn(struct ap_ctx *ctx, const struct ap_settings *set, const char *name,
	struct ap_str *out, struct ap_jw *w);

static void write_strings(struct ap_jw *w, const char *key, const char *const *v, int n)
{
	ap_jw_karr_flat(w, key);
	for (int i = 0; i < n; i++)
		ap_jw_str(w, v[i]);
	ap_jw_end(w);
}

/* Writes the text of a JSON file as a value. */
static void write_file(struct ap_ctx *ctx, struct ap_jw *w, const char *text)
{
	size_t len = strlen(text);

	while (len && strchr(" \n\t", text[len - 1]))
		len--;
	ap_jw_raw(w, ap_arena_strndup(ctx->arena, text, len));
}

/* Is a number of a chip one that was measured on it, or fitted to what was? */
static bool is_measured(const struct ap_chip *chip, const char *path)
{
	static const char *const words[] = {"measured", "fitted", "achieved", "bus bandwidth"};
	const char *text = ap_source_of(chip->sources, path);
	enum ap_basis basis = ap_basis_of(text);

	for (size_t i = 0; i < AP_COUNT(words); i++)
		if ((basis == AP_BASIS_PUBLISHED || basis == AP_BASIS_FITTED) && strstr(text, words[i]))
			return true;
	return false;
}

/* What was measured on a chip and published: products of matrices, exchanges over its links, steps of
 * training. */
struct measurements {
	bool products, links;
	int steps;
};

static struct measurements measurements_of(struct ap_ctx *ctx, const struct ap_chip *chip)
{
	struct measurements m = {.steps = ap_measured_steps(chip->name)};

	m.products = is_measured(chip, "efficiency.matmul") || is_measured(chip, "efficiency.matmul_float8");
	for (int l = 0; l < chip->nlevel; l++)
		m.links |= is_measured(chip,
			ap_arena_printf(ctx->arena, "levels.%s.efficiency", chip->level[l].name));
	return m;
}

/* Appends "measured: products, 99 steps". */
static void add_measurements(const struct measurements *m, struct ap_str *out)
{
	const char *join;

	ap_str_add(out, m->products || m->links || m->steps ? "measured: " : "nothing measured");
	if (m->products)
		ap_str_add(out, "products");
	join = m->products ? ", " : "";
	if (m->links)
		ap_str_addf(out, "%slinks", join);
	join = m->products || m->links ? ", " : "";
	if (m->steps)
		ap_str_addf(out, "%s%d steps", join, m->steps);
}

static bool list_chips(struct ap_ctx *ctx, const struct ap_settings *set, const char *name,
	struct ap_str *out, struct ap_jw *w)
{
	const struct ap_chip *chip;
	const char *each, *text;

	(void)set;
	if (name) {
		if (ap_chip_get(ctx, name, &chip) != AP_OK)
			return false;
		for (size_t i = 0; (each = ap_chip_at(i, &text)); i++)
			if (!strcmp(each, chip->name) && w)
				write_file(ctx, w, text);
			else if (!strcmp(each, chip->name))
				ap_str_add(out, text);
		return true;
	}
	for (size_t i = 0; (each = ap_chip_at(i, NULL)); i++) {
		struct measurements m;

		if (ap_chip_get(ctx, each, &chip) != AP_OK)
			return false;
		m = measurements_of(ctx, chip);
		if (w) {
			ap_jw_obj_flat(w);
			ap_jw_kstr(w, "name", each);
			write_strings(w, "aliases", chip->alias, chip->nalias);
			ap_jw_kbool(w, "measured_products", m.products);
			ap_jw_kbool(w, "measured_links", m.links);
			ap_jw_kint(w, "measured_steps", m.steps);
			ap_jw_end(w);
			continue;
		}
		ap_str_add(out, each);
		for (int a = 0; a < chip->nalias; a++)
			ap_str_addf(out, " %s", chip->alias[a]);
		ap_str_add(out, ": ");
		add_measurements(&m, out);
		ap_str_addc(out, '\n');
	}
	return true;
}

/* Writes what a profile is for, and its numbers, a line each, with their units and where they are from. */
static void show_software(struct ap_ctx *ctx, const struct ap_software *software, struct ap_str *out)
{
	static const char *const heads[] = {"for", "measured in"};
	const char *const said[] = {software->versions, software->dates};
	struct ap_software copy = *software;
	size_t count[AP_BASIS_ASSUMED + 1] = {0};
	struct ap_constant *list;
	size_t n = ap_software_constants(ctx->arena, &copy, &list);

	ap_str_add(out, software->name);
	for (int a = 0; a < software->nalias; a++)
		ap_str_addf(out, " %s", software->alias[a]);
	ap_str_addc(out, '\n');
	for (size_t i = 0; i < AP_COUNT(heads); i++)
		if (*said[i])
			ap_str_addf(out, "%s: %s\n", heads[i], said[i]);
	for (size_t i = 0; i < n; i++) {
		const char *text = ap_source_of(software->sources, list[i].path);
		char value[32];

		if (!text)
			continue; /* it is not stated */
		ap_format_double(ap_constant_get(&list[i]), value);
		ap_str_addf(out, "%-22s %12s %-10s %s\n", list[i].path, value, list[i].unit, text);
		count[ap_basis_of(text)]++;
	}
	for (int i = 0; i < AP_CHAIN_COUNT; i++)
		if (software->chains & 1u << i)
			ap_str_addf(out, "in one kernel: %s\n", ap_chain_name((enum ap_chain)i));
	ap_str_addf(out, "%-22s %12s %-10s %s\n", "attention", software->attention
		? ap_attention_name(software->attention) : "unknown", "kernel",
		ap_source_of(software->sources, "attention") ? ap_source_of(software->sources, "attention") :
			"");
	ap_str_addf(out, "numbers: %zu published, %zu fitted, %zu assumed\n", count[AP_BASIS_PUBLISHED],
		count[AP_BASIS_FITTED], count[AP_BASIS_ASSUMED]);
}

static bool list_software(struct ap_ctx *ctx, const struct ap_settings *set, const char *name,
	struct ap_str *out, struct ap_jw *w)
{
	bool found = !name;

	(void)set;
	for (const struct ap_builtin *b = ap_builtin_software; b->name; b++) {
		const struct ap_software *software;
		bool is;

		if (ap_software_get(ctx, b->name, &software) != AP_OK)
			return false;
		is = name && !strcmp(name, b->name);
		for (int a = 0; name && a < software->nalias; a++)
			is |= !strcmp(name, software->alias[a]);
		if (!name && w) {
			ap_jw_obj_flat(w);
			ap_jw_kstr(w, "name", b->name);
			write_strings(w, "aliases", software->alias, software->nalias);
			ap_jw_end(w);
		} else if (w && is)
			write_file(ctx, w, b->text);
		else if (!name) {
			ap_str_add(out, b->name);
			for (int a = 0; a < software->nalias; a++)
				ap_str_addf(out, " %s", software->alias[a]);
			ap_str_addc(out, '\n');
		} else if (is)
			show_software(ctx, software, out);
		found |= is;
	}
	return found;
}

static bool list_engines(struct ap_ctx *ctx, const struct ap_settings *set, const char *name,
	struct ap_str *out, struct ap_jw *w)
{
	const struct ap_engine *e;
	bool found = !name;

	(void)ctx;
	(void)set;
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

static bool list_optimizers(struct ap_ctx *ctx, const struct ap_settings *set, const char *name,
	struct ap_str *out, struct ap_jw *w)
{
	const struct ap_optimizer *o;
	bool found = !name;

	(void)ctx;
	(void)set;
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

/* A type with several rows is listed once. */
static bool is_listed(const struct ap_op_row *row)
{
	return ap_op_next(NULL, row->name) == row && !ap_op_unsupported(row->name);
}

/* Includes the types that are only known by name. */
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

static void write_all_operators(struct ap_jw *w)
{
	const struct ap_op_row *row;
	const char *type, *reason;

	for (size_t i = 0; (row = ap_op_at(i)); i++)
		if (is_listed(row)) {
			ap_jw_obj_flat(w);
			ap_jw_kstr(w, "name", row->name);
			ap_jw_kbool(w, "planned", true);
			ap_jw_kstr(w, "doc", row->doc);
			ap_jw_end(w);
		}
	for (size_t i = 0; ap_op_unsupported_at(i, &type, &reason); i++)
		write_unplanned(w, type, reason);
}

/* Writes all data of a type's rows, without the explaining text. */
static void write_one_operator(struct ap_ctx *ctx, struct ap_jw *w, const char *type)
{
	const struct ap_op_row *first = ap_op_next(NULL, type);
	const char *old, *now;
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	ap_op_describe(type, &text);
	ap_jw_obj(w);
	ap_jw_kstr(w, "name", first->name);
	ap_jw_kbool(w, "planned", true);
	ap_jw_kstr(w, "doc", first->doc);
	ap_jw_kstr(w, "family", ap_op_family(first));
	ap_jw_karr_flat(w, "aliases");
	for (size_t i = 0; ap_op_alias_at(i, &old, &now); i++)
		if (!strcmp(now, type))
			ap_jw_str(w, old);
	ap_jw_end(w);
	ap_jw_kstr(w, "source", first->source);
	ap_jw_karr(w, "rows");
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

static bool list_operators(struct ap_ctx *ctx, const struct ap_settings *set, const char *name,
	struct ap_str *out, struct ap_jw *w)
{
	const char *near = NULL, *type = name ? ap_op_canonical(name, &near) : NULL;

	(void)set;
	if (!name && w)
		write_all_operators(w);
	else if (!name)
		list_all_operators(out);
	else if (type && w)
		write_one_operator(ctx, w, type);
	else if (!type && w && ap_op_unsupported(name))
		write_unplanned(w, name, ap_op_unsupported(name));
	else if (type)
		ap_op_describe(type, out);
	else if (ap_op_unsupported(name))
		ap_str_addf(out, "%s: known, but not planned with: %s\n", name,
			ap_op_unsupported(name));
	else if (near)
		ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"there is no operator \"%s\"; did you mean \"%s\"?", name, near);
	return !name || type || ap_op_unsupported(name);
}

/* Drops notes and warnings of the graph: `check` reports them. */
static enum ap_status load_model(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	const struct ap_graph **g)
{
	const struct ap_graph_params params = {0};
	struct ap_where where = {.file = path};
	struct ap_ctx quiet = ap_diag_apart(ctx);
	struct ap_input in;
	struct ap_json *doc;
	enum ap_status st;

	AP_TRY(ap_input_read(ctx, set, path, &in));
	st = ap_input_json(&quiet, &in, 0, &doc);
	if (st == AP_OK)
		st = ap_graph_load(&quiet, doc, "", &params, g);
	return st == AP_OK ? AP_OK
		: ap_diag_add(ctx->diag, AP_ERROR, st, &where, NULL,
			"is no operator graph; `autopar-plan check` says why");
}

static bool list_models(struct ap_ctx *ctx, const struct ap_settings *set, const char *name,
	struct ap_str *out, struct ap_jw *w)
{
	struct ap_model_names names;
	bool found = !name;

	if (ap_models_find(ctx, &names) != AP_OK)
		return false;
	for (size_t i = 0; i < names.n; i++) {
		const char *path = ap_arena_printf(ctx->arena, "%s/%s.json", ap_models_folder(ctx->arena),
			names.v[i]);
		const struct ap_graph *g;

		if (name && strcmp(name, names.v[i]) != 0)
			continue;
		if (load_model(ctx, set, path, &g) != AP_OK)
			return false;
		found = true;
		if (w) {
			ap_jw_obj_flat(w);
			ap_jw_kstr(w, "name", ap_diag_name(ctx->diag, names.v[i]));
			ap_jw_kint(w, "operators", g->nnode);
			ap_jw_kint(w, "parameter_elements", g->parameters);
			ap_jw_kstr(w, "file", ap_diag_path(ctx->diag, path));
			ap_jw_end(w);
			continue;
		}
		ap_str_addf(out, "%-22s %6" PRIu32 " operators, %15" PRId64 " parameter elements\n",
			ap_diag_name(ctx->diag, names.v[i]), g->nnode, g->parameters);
		if (name)
			ap_str_addf(out, "  file      %s\n", ap_diag_path(ctx->diag, path));
	}
	return found;
}

/* Writes the dimensions that a family reads, with the values they have where they are not given. */
static void write_dimensions(struct ap_ctx *ctx, const char *family, struct ap_str *out, struct ap_jw *w)
{
	if (w)
		ap_jw_kobj(w, "dimensions");
	for (int i = 0; i < AP_SET_COUNT; i++) {
		const struct ap_setting_row *row = ap_setting_at(i);
		const char *standard;

		if (!ap_model_reads(ctx->arena, family, (enum ap_setting_id)i, &standard))
			continue;
		if (!w) {
			ap_str_addf(out, standard ? "  %-20s %s\n" : "  %s\n",
				ap_option_spelling(ctx->arena, "--", row), standard);
			continue;
		}
		ap_jw_key(w, row->key);
		if (!standard)
			ap_jw_null(w);
		else if (row->type == AP_SET_INT || row->type == AP_SET_NUM)
			ap_jw_raw(w, standard);
		else
			ap_jw_str(w, standard);
	}
	if (w)
		ap_jw_end(w);
}

static bool list_families(struct ap_ctx *ctx, const struct ap_settings *set, const char *name,
	struct ap_str *out, struct ap_jw *w)
{
	const char *each, *help;
	bool found = !name;

	(void)set;
	for (size_t i = 0; (each = ap_model_name_at(i, &help)); i++) {
		if (name && strcmp(name, each) != 0)
			continue;
		found = true;
		if (w) {
			ap_jw_obj(w);
			ap_jw_kstr(w, "name", each);
			ap_jw_kstr(w, "help", help);
		} else {
			ap_str_addf(out, "%-22s %s\n", each, help);
		}
		if (name || w)
			write_dimensions(ctx, each, out, w);
		if (w)
			ap_jw_end(w);
	}
	return found;
}

static const struct {
	const char *name;
	list_fn *list;
} topics[] = {
	{"chips", list_chips},
	{"engines", list_engines},
	{"families", list_families},
	{"models", list_models},
	{"operators", list_operators},
	{"optimizers", list_optimizers},
	{"software", list_software},
};

bool ap_catalogue(struct ap_ctx *ctx, const struct ap_settings *set, const char *topic, const char *name,
	struct ap_str *out, struct ap_jw *w, bool *known)
{
	*known = false;
	for (size_t i = 0; i < AP_COUNT(topics); i++) {
		*known = !strcmp(topics[i].name, topic);
		if (*known)
			return topics[i].list(ctx, set, name, out, w);
	}
	return false;
}
