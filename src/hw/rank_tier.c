/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of servers: super pods and clusters. */
#include <inttypes.h>

#include "base/arena.h"
#include "base/vec.h"
#include "hw/rank_table.h"

static const struct kind {
	const char *list, *id, *what;
	const char *check_id, *check_unique, *check_server;
} pods = {"super_pod_list", "super_pod_id", "super pod", "pod-id", "pod-unique", "pod-server"},
  clusters = {"cluster_list", "cluster_id", "cluster", "cluster-id", "cluster-unique",
	  "cluster-server"};

/* Numbers one pod or cluster; false where it has no name of its own. */
static bool add_tier(struct ap_rank_table *t, const struct kind *k, struct ap_map *names,
	const struct ap_jv *obj, struct ap_rank_tier *tier)
{
	const char *id = ap_rank_table_name(t, obj, k->id, k->check_id);
	bool fresh;

	if (!id)
		return false;
	ap_map_put_str(names, id, &fresh);
	if (!fresh) {
		ap_rank_table_fault(t, ap_jv_get(obj, k->id), k->check_unique,
			"%s \"%s\" is listed twice", k->what, ap_diag_name(t->ctx->diag, id));
		return false;
	}
	AP_PUSH(t->ctx->arena, *tier, id);
	return true;
}

static void add_server(struct ap_rank_table *t, const struct kind *k, const struct ap_map *ids,
	const struct ap_jv *obj, struct ap_rank_tier *tier)
{
	const char *id = ap_rank_table_name(t, obj, "server_id", "server-id");
	const struct ap_jv *at = ap_jv_get(obj, "server_id");
	ap_id server = id ? ap_map_get_str(ids, id) : AP_NONE;

	if (!id)
		return;
	if (server == AP_NONE)
		ap_rank_table_fault(t, at, k->check_server,
			"no server \"%s\" in the table's server_list",
			ap_diag_name(t->ctx->diag, id));
	else if (tier->of[server] != AP_NONE)
		ap_rank_table_fault(t, at, k->check_server, "server \"%s\" is already in %s \"%s\"",
			ap_diag_name(t->ctx->diag, id), k->what,
			ap_diag_name(t->ctx->diag, tier->v[tier->of[server]]));
	else
		tier->of[server] = (uint32_t)tier->n - 1;
}

static void parse_tier(struct ap_rank_table *t, const struct kind *k, const struct ap_map *ids,
	const struct ap_jv *list, struct ap_rank_tier *tier)
{
	struct ap_map *names = ap_map_create(t->ctx->arena);

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		const struct ap_jv *servers;

		if (!ap_rank_table_is_object(t, v, "an entry") || !add_tier(t, k, names, v, tier))
			continue;
		servers = ap_rank_table_list(t, v, "server_list");
		for (const struct ap_jv *s = servers ? ap_jv_first(servers) : NULL; s;
			s = ap_jv_next(s))
			if (ap_rank_table_is_object(t, s, "a server"))
				add_server(t, k, ids, s, tier);
	}
}

static void check_cover(
	struct ap_rank_table *t, const struct kind *k, const struct ap_jv *list,
	const struct ap_rank_tier *tier)
{
	for (size_t s = 0; s < t->servers.n && t->status == AP_OK; s++)
		if (tier->of[s] == AP_NONE)
			ap_rank_table_fault(t, list, k->check_server, "server \"%s\" is in no %s",
				ap_diag_name(t->ctx->diag, t->servers.v[s]), k->what);
}

static void read_tier(struct ap_rank_table *t, const struct kind *k, const struct ap_map *ids,
	struct ap_rank_tier *tier)
{
	const struct ap_jv *list;

	if (!ap_jv_get(t->root, k->list))
		return;
	list = ap_rank_table_list(t, t->root, k->list);
	if (!list)
		return;
	tier->of = AP_NEW_N(t->ctx->arena, uint32_t, t->servers.n);
	for (size_t s = 0; s < t->servers.n; s++)
		tier->of[s] = AP_NONE;
	parse_tier(t, k, ids, list, tier);
	check_cover(t, k, list, tier);
}

/* HCCL takes super pods of equal numbers of servers only. */
static void check_equal(struct ap_rank_table *t)
{
	uint32_t *n = AP_NEW_N(t->ctx->scratch, uint32_t, t->pod.n + 1);

	for (size_t s = 0; s < t->servers.n; s++)
		n[t->pod.of[s]]++;
	for (size_t p = 1; p < t->pod.n; p++)
		if (n[p] != n[0]) {
			ap_rank_table_fault(t, ap_jv_get(t->root, pods.list), "pod-equal",
				"super pod \"%s\" holds %" PRIu32 " servers, but \"%s\" holds %"
				PRIu32, ap_diag_name(t->ctx->diag, t->pod.v[p]), n[p],
				ap_diag_name(t->ctx->diag, t->pod.v[0]), n[0]);
			return;
		}
}

static void check_nesting(struct ap_rank_table *t)
{
	uint32_t *cluster = AP_NEW_N(t->ctx->scratch, uint32_t, t->pod.n + 1); /* from 1 */

	for (size_t s = 0; s < t->servers.n; s++) {
		uint32_t *c = &cluster[t->pod.of[s]], is = t->cluster.of[s] + 1;

		if (*c && *c != is) {
			ap_rank_table_fault(t, ap_jv_get(t->root, clusters.list), "cluster-pod",
				"super pod \"%s\" lies in two clusters",
				ap_diag_name(t->ctx->diag, t->pod.v[t->pod.of[s]]));
			return;
		}
		*c = is;
	}
}

void ap_rank_table_tiers(struct ap_rank_table *t, const struct ap_map *ids, bool with_pods)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);

	if (with_pods)
		read_tier(t, &pods, ids, &t->pod);
	read_tier(t, &clusters, ids, &t->cluster);
	if (t->status == AP_OK && t->pod.of)
		check_equal(t);
	if (t->status == AP_OK && t->pod.of && t->cluster.of)
		check_nesting(t);
	ap_arena_release(t->ctx->scratch, mark);
}

void ap_rank_table_place_tier(struct ap_rank_table *t, const struct ap_rank_tier *tier,
	const uint32_t *number, const struct ap_topo *topo, struct ap_tier *out)
{
	uint32_t *of, *renumber;
	const char **id;

	if (!tier->of)
		return;
	out->of = of = AP_NEW_N(t->ctx->arena, uint32_t, topo->nserver);
	out->id = id = AP_NEW_N(t->ctx->arena, const char *, tier->n);
	renumber = AP_NEW_N(t->ctx->arena, uint32_t, tier->n); /* from 1 */
	for (size_t s = 0; s < t->servers.n; s++)
		of[number[s]] = tier->of[s];
	for (uint32_t s = 0; s < topo->nserver; s++) {
		uint32_t *n = &renumber[of[s]];

		if (!*n) {
			id[out->n++] = tier->v[of[s]];
			*n = out->n;
		}
		of[s] = *n - 1;
	}
	ap_topo_link_tier(t->ctx, out, topo->nserver);
}
