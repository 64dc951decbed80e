/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/topo.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "hw/rank_table.h"

static const struct ap_rank_form forms[] = {
	{"lab", NULL, "deploy_mode", NULL, AP_RANK_LAB, ap_rank_table_parse_lab, NULL},
	{"cloud", NULL, "group_list", "deploy_mode", AP_RANK_CLOUD, ap_rank_table_parse_cloud, NULL},
	{"1.0", "1.0", NULL, NULL, AP_RANK_1_0, ap_rank_table_parse_1_0, NULL},
	{"1.1", "1.1", NULL, NULL, 0, NULL, "they describe jobs of CPUs beside devices"},
	{"1.2", "1.2", NULL, NULL, AP_RANK_1_2, ap_rank_table_parse_1_2, NULL},
	{"2.0", "2.0", NULL, NULL, AP_RANK_2_0, ap_rank_table_parse_2_0, NULL},
};

enum { NFORM = AP_COUNT(forms) };

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
		.ctx = ctx, .doc = doc, .root = ap_json_root(doc), .chip_info = "",
		.last_device_id = AP_LAST_DEVICE_ID};
	const struct ap_jv *version = ap_jv_get(table.root, "version");
	const struct ap_rank_form *form = NULL;

	AP_TRY(find_form(ctx, doc, &form));
	if (!form->parse)
		return ap_json_report(ctx, doc, version ? version : table.root, AP_ERROR,
			AP_MEANING, NULL, "form-read",
			"rank tables of form %s are not read: %s; those of the forms %s are",
			form->name, form->why_not, form_names(ctx, true));
	table.form = form->name;
	ap_rank_table_check_keys(&table, form->top);
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

void ap_topo_link_tier(struct ap_ctx *ctx, struct ap_tier *tier, uint32_t nserver)
{
	uint32_t *first = AP_NEW_N(ctx->arena, uint32_t, tier->n);
	uint32_t *next = AP_NEW_N(ctx->arena, uint32_t, nserver);

	for (uint32_t i = 0; i < tier->n; i++)
		first[i] = AP_NONE;
	for (uint32_t s = nserver; s-- > 0;) {
		next[s] = first[tier->of[s]];
		first[tier->of[s]] = s;
	}
	tier->first = first;
	tier->next = next;
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
		AP_TRY(ap_diag_add(ctx->diag, AP_WARNING, AP_OK, NULL, "device-limit",
			"%" PRId64 " devices; MindSpore itself runs at most %d", ndev,
			AP_MINDSPORE_DEVICES));
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
			.super_device_id = -1,
			.device_ip = "",
		};
	topo->server = server = AP_NEW_N(ctx->arena, const char *, topo->nserver);
	for (uint32_t s = 0; s < topo->nserver; s++)
		server[s] = ap_arena_printf(ctx->arena, "server_%" PRIu32, s);
	topo->first = ap_topo_link(ctx, place, topo->ndev, topo->nserver);
	*out = topo;
	return AP_OK;
}

enum ap_status ap_topo_make_pods(struct ap_ctx *ctx, const struct ap_topo *t, int64_t per_pod,
	const struct ap_topo **out)
{
	struct ap_topo *topo = AP_NEW(ctx->arena, struct ap_topo);
	struct ap_place *place = AP_NEW_N(ctx->arena, struct ap_place, t->ndev);
	uint32_t *of = AP_NEW_N(ctx->arena, uint32_t, t->nserver);
	const char **id;

	*topo = *t;
	for (uint32_t r = 0; r < t->ndev; r++) {
		uint32_t pod = (uint32_t)(r / per_pod);

		place[r] = t->place[r];
		place[r].super_device_id = r % per_pod;
		if (r == t->first[place[r].server])
			of[place[r].server] = pod;
		else if (of[place[r].server] != pod)
			return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, "device-count",
				"super pods of %" PRId64 " devices do not hold whole servers",
				per_pod);
		topo->pod.n = pod + 1;
	}
	topo->place = place;
	topo->pod.of = of;
	topo->pod.id = id = AP_NEW_N(ctx->arena, const char *, topo->pod.n);
	for (uint32_t p = 0; p < topo->pod.n; p++)
		id[p] = ap_arena_printf(ctx->arena, "pod_%" PRIu32, p);
	ap_topo_link_tier(ctx, &topo->pod, t->nserver);
	*out = topo;
	return AP_OK;
}

uint32_t *ap_topo_local_ids(struct ap_arena *arena, const struct ap_topo *t)
{
	uint32_t *local = AP_NEW_N(arena, uint32_t, t->ndev);
	uint32_t *seen = AP_NEW_N(arena, uint32_t, t->nserver); /* ranks met, or the lowest id */

	for (uint32_t s = 0; s < t->nserver && t->job_wide_ids; s++)
		seen[s] = UINT32_MAX;
	for (uint32_t r = 0; r < t->ndev && t->job_wide_ids; r++) {
		uint32_t *least = &seen[t->place[r].server], id = (uint32_t)t->place[r].device_id;

		*least = id < *least ? id : *least;
	}
	for (uint32_t r = 0; r < t->ndev; r++) {
		const struct ap_place *p = &t->place[r];

		if (t->job_wide_ids)
			local[r] = (uint32_t)p->device_id - seen[p->server];
		else if (p->device_id >= 0)
			local[r] = (uint32_t)p->device_id;
		else
			local[r] = seen[p->server]++;
	}
	return local;
}
