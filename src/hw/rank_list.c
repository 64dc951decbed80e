/* SPDX-License-Identifier: Apache-2.0 */
/* Rank tables that list ranks with the networks they are in: version 2.0. */
#include "base/arena.h"
#include "base/vec.h"
#include "hw/rank_table.h"

enum { NODE, POD, NLAYER = 8 }; /* layers of networks; those above POD are not used */

struct lists {
	struct ap_rank_table *t;
	struct ap_map *nodes, *pods;
	const struct ap_jv *with_pod, *without_pod;
};

/* The instance of each layer that a rank is in; NULL where it is in none. False after a report. */
static bool read_layers(
	struct ap_rank_table *t, const struct ap_jv *list, const char *name[NLAYER])
{
	bool good = true;

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		int64_t layer = 0;
		const char *id;

		if (!ap_rank_table_is_object(t, v, "a level") ||
			!ap_rank_table_int(t, v, "net_layer", 0, NLAYER - 1, false, &layer)) {
			good = false;
			continue;
		}
		id = ap_rank_table_name(t, v, "net_instance_id", "net-instance");
		if (id && name[layer])
			ap_rank_table_fault(t, v, "net-layer", "net_layer %d is given twice",
				(int)layer);
		good &= id && !name[layer];
		name[layer] = id;
	}
	return good;
}

static void put_in_pod(struct lists *x, const struct ap_jv *rank, const char *name, uint32_t node)
{
	struct ap_rank_table *t = x->t;
	bool fresh;
	uint32_t pod;

	*(name ? &x->with_pod : &x->without_pod) = rank;
	if (!name)
		return;
	pod = ap_map_put_str(x->pods, name, &fresh);
	if (fresh)
		AP_PUSH(t->ctx->arena, t->pod, name);
	if (t->pod.of[node] == AP_NONE)
		t->pod.of[node] = pod;
	else if (t->pod.of[node] != pod)
		ap_rank_table_fault(t, rank, "net-layer",
			"in \"%s\" at net_layer 1, but others of its node \"%s\" are not",
			ap_diag_name(t->ctx->diag, name),
			ap_diag_name(t->ctx->diag, t->servers.v[node]));
}

static void parse_rank(struct lists *x, const struct ap_jv *rank)
{
	struct ap_rank_table *t = x->t;
	const struct ap_jv *list = ap_rank_table_list(t, rank, "level_list");
	const char *name[NLAYER] = {NULL};
	int64_t ignored;
	uint32_t node;
	bool fresh;

	ap_rank_table_int(t, rank, "local_id", 0, AP_MAX_DEVICES - 1, true, &ignored);
	if (!list)
		return;
	if (!read_layers(t, list, name))
		return;
	if (!name[NODE]) {
		ap_rank_table_fault(t, list, "net-layer", "no net_layer 0, which tells the node");
		return;
	}
	node = ap_map_put_str(x->nodes, name[NODE], &fresh);
	if (fresh) {
		AP_PUSH(t->ctx->arena, t->servers, name[NODE]);
		t->pod.of[node] = AP_NONE;
	}
	put_in_pod(x, rank, name[POD], node);
	ap_rank_table_card(t, rank, rank, node);
}

void ap_rank_table_parse_2_0(struct ap_rank_table *t)
{
	struct lists x = {.t = t, .nodes = ap_map_create(t->ctx->arena),
		.pods = ap_map_create(t->ctx->arena)};
	const struct ap_jv *ranks;

	ap_rank_table_check_status(t);
	t->last_device_id = AP_MAX_DEVICES - 1;
	ranks = ap_rank_table_list(t, t->root, "rank_list");
	if (!ranks)
		return;
	t->pod.of = AP_NEW_N(t->ctx->arena, uint32_t, ap_jv_count(ranks));
	ap_rank_table_count(t, t->root, "rank_count", ap_jv_count(ranks), "ranks");
	for (const struct ap_jv *v = ap_jv_first(ranks); v; v = ap_jv_next(v))
		if (ap_rank_table_is_object(t, v, "a rank"))
			parse_rank(&x, v);
	if (x.with_pod && x.without_pod)
		ap_rank_table_fault(t, x.without_pod, "net-layer",
			"no net_layer 1 here, but other ranks have one; all or none must");
	if (!x.with_pod)
		t->pod.of = NULL;
}
