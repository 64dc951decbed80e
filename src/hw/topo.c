/* SPDX-License-Identifier: Apache-2.0 */
/* Writes rank tables. */
#include "hw/topo.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"

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
	uint32_t *seen = AP_NEW_N(arena, uint32_t, t->nserver); /* number of ranks met, or the lowest id */

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

const char *ap_topo_what(const struct ap_topo *t)
{
	return strcmp(t->form, "hostfile") == 0 ? t->form : "rank table";
}

/* Versions 1.0 and 1.2 have integers as strings. */
static void write_int(struct ap_jw *w, const char *key, int64_t v)
{
	char digits[24];

	snprintf(digits, sizeof digits, "%" PRId64, v);
	ap_jw_kstr(w, key, digits);
}

static void write_tier(struct ap_jw *w, const struct ap_topo *t, const struct ap_tier *tier,
	const char *list, const char *id)
{
	if (!tier->n)
		return;
	ap_jw_karr(w, list);
	for (uint32_t i = 0; i < tier->n; i++) {
		ap_jw_obj(w);
		ap_jw_kstr(w, id, tier->id[i]);
		ap_jw_karr(w, "server_list");
		for (uint32_t s = tier->first[i]; s != AP_NONE; s = tier->next[s]) {
			ap_jw_obj_flat(w);
			ap_jw_kstr(w, "server_id", t->server[s]);
			ap_jw_end(w);
		}
		ap_jw_end(w);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

void ap_topo_write(const struct ap_topo *t, ap_write_fn *write, void *user)
{
	struct ap_jw w;

	ap_jw_init(&w, write, user, 2);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "version", t->pod.n ? "1.2" : "1.0");
	if (*t->chip_info)
		ap_jw_kstr(&w, "chip_info", t->chip_info);
	write_int(&w, "server_count", t->nserver);
	ap_jw_karr(&w, "server_list");
	for (uint32_t s = 0; s < t->nserver; s++) {
		ap_jw_obj(&w);
		ap_jw_kstr(&w, "server_id", t->server[s]);
		ap_jw_karr(&w, "device");
		for (uint32_t r = t->first[s]; r != AP_NONE; r = t->place[r].next) {
			const struct ap_place *p = &t->place[r];

			ap_jw_obj_flat(&w);
			write_int(&w, "device_id", p->device_id);
			if (t->pod.n)
				write_int(&w, "super_device_id", p->super_device_id);
			if (*p->device_ip)
				ap_jw_kstr(&w, "device_ip", p->device_ip);
			write_int(&w, "rank_id", r);
			ap_jw_end(&w);
		}
		ap_jw_end(&w);
		ap_jw_kstr(&w, "host_nic_ip", "reserve");
		ap_jw_end(&w);
	}
	ap_jw_end(&w);
	write_tier(&w, t, &t->pod, "super_pod_list", "super_pod_id");
	write_tier(&w, t, &t->cluster, "cluster_list", "cluster_id");
	ap_jw_kstr(&w, "status", "completed");
	ap_jw_end(&w);
	ap_jw_finish(&w);
}

/* Keys of rank tables that the planner does not use. */
static const char *const lost_keys[] = {"host_ip", "server_ip", "container_ip", "pod_ip",
	"hardware_type", "device_port", "host_port", "backup_device_ip", "backup_device_port", "dpu_ip",
	"eid", "numa_id", "network_type", "az_id", "region_id", "pod_name", "rank_addr_list",
	"net_attr"};

enum { NLOST = AP_COUNT(lost_keys) };

static void mark_lost(const struct ap_jv *v, bool lost[NLOST])
{
	for (const struct ap_jv *m = ap_jv_first(v); m; m = ap_jv_next(m)) {
		for (int i = 0; ap_jv_key(m) && i < NLOST; i++)
			lost[i] |= strcmp(ap_jv_key(m), lost_keys[i]) == 0;
		mark_lost(m, lost);
	}
}

enum ap_status ap_topo_write_losses(
	struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_topo *t)
{
	bool lost[NLOST] = {false};
	struct ap_str keys;

	/* version 1.0 device ids count per server, unless there is a cluster_list */
	for (uint32_t r = 0; r < t->ndev && !t->cluster.n; r++)
		if (t->place[r].device_id > AP_LAST_DEVICE_ID)
			return ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING,
				&(struct ap_where){.file = doc ? ap_json_file(doc) : t->name}, "convert-id",
				"a device_id is above %d, which version 1.0 does not have",
				AP_LAST_DEVICE_ID);
	if (!doc)
		return AP_OK;
	if (t->pod.n && ap_jv_get(ap_json_root(doc), "rank_list"))
		AP_TRY(ap_json_report(ctx, doc, NULL, AP_WARNING, AP_OK, NULL, "convert-made",
			"super_device_id counts the devices of each super pod; version 2.0 has "
			"none"));
	mark_lost(ap_json_root(doc), lost);
	ap_str_init(&keys, ctx->arena);
	for (int i = 0; i < NLOST; i++)
		if (lost[i])
			ap_str_addf(&keys, "%s%s", keys.len ? ", " : "", lost_keys[i]);
	if (!keys.len)
		return AP_OK;
	return ap_json_report(ctx, doc, NULL, AP_WARNING, AP_OK, NULL, "convert-lost",
		"not kept, for the planner has no use for it: %s", keys.s);
}
