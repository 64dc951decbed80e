/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/topo.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "hw/rank_table.h"

static const struct ap_rank_form forms[] = {
	{"lab", NULL, "deploy_mode", NULL, ap_rank_table_parse_lab},
	{"cloud", NULL, "group_list", "deploy_mode", NULL},
	{"1.0", "1.0", NULL, NULL, ap_rank_table_parse_1_0},
	{"1.1", "1.1", NULL, NULL, NULL},
	{"1.2", "1.2", NULL, NULL, NULL},
	{"2.0", "2.0", NULL, NULL, NULL},
};

enum { NFORM = sizeof forms / sizeof *forms };

static bool recognise(const struct ap_rank_form *f, const struct ap_jv *root)
{
	const struct ap_jv *v = ap_jv_get(root, "version");

	if (!f->version != !v)
		return false;
	if (v && (ap_jv_type(v) != AP_JSTRING || strcmp(ap_jv_str(v), f->version) != 0))
		return false;
	return (!f->has || ap_jv_get(root, f->has)) && (!f->lacks || !ap_jv_get(root, f->lacks));
}

/* "lab, 1.0": all forms, or those that can be read. */
static const char *form_names(struct ap_ctx *ctx, bool readable)
{
	struct ap_str b;

	ap_str_init(&b, ctx->arena);
	for (int i = 0; i < NFORM; i++)
		if (forms[i].parse || !readable)
			ap_str_addf(&b, "%s%s", b.len ? ", " : "", forms[i].name);
	return b.s;
}

/* Says what a document is that is no rank table of any form. */
static enum ap_status no_form(struct ap_ctx *ctx, const struct ap_json *doc)
{
	const struct ap_jv *root = ap_json_root(doc), *at = root;
	const struct ap_jv *schema = ap_jv_get(root, "schema"),
			   *version = ap_jv_get(root, "version");
	const char *known = form_names(ctx, false), *text;

	if (schema && ap_jv_type(schema) == AP_JSTRING)
		text = ap_arena_printf(ctx->arena,
			"this is a file of schema \"%s\", not a rank table", ap_jv_str(schema));
	else if (ap_jv_get(root, "operators"))
		text = "this looks like an operator graph, not like a rank table";
	else if (!version)
		text = ap_arena_printf(ctx->arena,
			"no form of a rank table has neither \"version\" nor "
			"\"deploy_mode\" nor \"group_list\"; known forms: %s",
			known);
	else if (ap_jv_type(at = version) == AP_JSTRING)
		text = ap_arena_printf(ctx->arena, "unknown version \"%s\"; known forms: %s",
			ap_diag_name(ctx->diag, ap_jv_str(version)), known);
	else
		text = "version must be a string, such as \"1.0\"";
	return ap_json_report(ctx, doc, at, AP_ERROR, AP_MEANING, NULL, "form-known", "%s", text);
}

static enum ap_status find_form(
	struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_rank_form **out)
{
	const struct ap_jv *root = ap_json_root(doc);

	if (ap_jv_type(root) != AP_JOBJECT)
		return ap_json_report(ctx, doc, root, AP_ERROR, AP_MEANING, NULL, "form-known",
			"a rank table is an object");
	if (ap_jv_get(root, "server_list") && ap_jv_get(root, "group_list"))
		return ap_json_report(ctx, doc, root, AP_ERROR, AP_MEANING, NULL, "form-mixed",
			"both \"server_list\" and \"group_list\": the table mixes two forms");
	for (int i = 0; i < NFORM; i++)
		if (recognise(&forms[i], root)) {
			*out = &forms[i];
			return AP_OK;
		}
	return no_form(ctx, doc);
}

enum ap_status ap_topo_load(struct ap_ctx *ctx, const struct ap_json *doc, const char *sha256,
	const struct ap_topo **out)
{
	struct ap_rank_table table = {
		.ctx = ctx, .doc = doc, .root = ap_json_root(doc), .chip_info = ""};
	const struct ap_jv *version = ap_jv_get(table.root, "version");
	const struct ap_rank_form *form = NULL;

	AP_TRY(find_form(ctx, doc, &form));
	if (!form->parse)
		return ap_json_report(ctx, doc, version ? version : table.root, AP_ERROR,
			AP_MEANING, NULL, "form-read",
			"rank tables of form %s are not read; those of the forms %s are",
			form->name, form_names(ctx, true));
	table.form = form->name;
	form->parse(&table);
	AP_TRY(table.status);
	return ap_rank_table_finish(&table, sha256, out);
}

const uint32_t *ap_topo_link(
	struct ap_ctx *ctx, struct ap_place *place, uint32_t ndev, uint32_t nserver)
{
	uint32_t *first = AP_NEW_N(ctx->arena, uint32_t, nserver);

	for (uint32_t s = 0; s < nserver; s++)
		first[s] = AP_NONE;
	for (uint32_t r = ndev; r-- > 0;) {
		place[r].next = first[place[r].server];
		first[place[r].server] = r;
	}
	return first;
}

enum ap_status ap_topo_make(
	struct ap_ctx *ctx, int64_t ndev, int64_t per_server, const struct ap_topo **out)
{
	struct ap_topo *topo;
	struct ap_place *place;
	const char **server;

	if (ndev < 1 || ndev > AP_MAX_DEVICES)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, "device-count",
			"%" PRId64 " devices; expected 1 to %d", ndev, AP_MAX_DEVICES);
	if (per_server < 1 || per_server > AP_MAX_DEVICES)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, "device-count",
			"%" PRId64 " devices on a server; expected 1 to %d", per_server,
			AP_MAX_DEVICES);
	if (ndev > AP_MINDSPORE_DEVICES)
		ap_diag_add(ctx->diag, AP_NOTE, AP_OK, NULL, "device-limit",
			"MindSpore itself runs at most %d devices", AP_MINDSPORE_DEVICES);
	topo = AP_NEW(ctx->arena, struct ap_topo);
	*topo = (struct ap_topo){
		.name = "",
		.sha256 = "",
		.form = "given",
		.chip_info = "",
		.ndev = (uint32_t)ndev,
		.nserver = (uint32_t)((ndev + per_server - 1) / per_server),
	};
	topo->place = place = AP_NEW_N(ctx->arena, struct ap_place, ndev);
	for (uint32_t r = 0; r < topo->ndev; r++)
		place[r] = (struct ap_place){
			.server = (uint32_t)(r / per_server),
			.device_id = (int32_t)(r % per_server),
			.device_ip = "",
		};
	topo->server = server = AP_NEW_N(ctx->arena, const char *, topo->nserver);
	for (uint32_t s = 0; s < topo->nserver; s++)
		server[s] = ap_arena_printf(ctx->arena, "server_%" PRIu32, s);
	topo->first = ap_topo_link(ctx, place, topo->ndev, topo->nserver);
	*out = topo;
	return AP_OK;
}

/* Integers of form 1.0 are strings. */
static void write_int(struct ap_jw *w, const char *key, int64_t v)
{
	char digits[24];

	snprintf(digits, sizeof digits, "%" PRId64, v);
	ap_jw_kstr(w, key, digits);
}

static void write_server(struct ap_jw *w, const struct ap_topo *t, uint32_t s)
{
	ap_jw_obj(w);
	ap_jw_kstr(w, "server_id", t->server[s]);
	ap_jw_key(w, "device");
	ap_jw_arr(w);
	for (uint32_t r = t->first[s]; r != AP_NONE; r = t->place[r].next) {
		ap_jw_obj_flat(w);
		write_int(w, "device_id", t->place[r].device_id);
		if (*t->place[r].device_ip)
			ap_jw_kstr(w, "device_ip", t->place[r].device_ip);
		write_int(w, "rank_id", r);
		ap_jw_end(w);
	}
	ap_jw_end(w);
	ap_jw_kstr(w, "host_nic_ip", "reserve");
	ap_jw_end(w);
}

void ap_topo_write(const struct ap_topo *t, ap_write_fn *write, void *user)
{
	struct ap_jw w;

	ap_jw_init(&w, write, user, 2);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "version", "1.0");
	write_int(&w, "server_count", t->nserver);
	ap_jw_key(&w, "server_list");
	ap_jw_arr(&w);
	for (uint32_t s = 0; s < t->nserver; s++)
		write_server(&w, t, s);
	ap_jw_end(&w);
	ap_jw_kstr(&w, "status", "completed");
	ap_jw_end(&w);
	ap_jw_finish(&w);
}
