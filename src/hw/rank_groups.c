/* SPDX-License-Identifier: Apache-2.0 */
/* Rank tables that list groups of instances: the lab and the cloud form, which have no version. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "hw/rank_table.h"

/* What is known while groups are read. */
struct groups {
	struct ap_rank_table *t;
	struct ap_map *servers, *names, *pods; /* of all groups */
};

static void check_name(struct groups *x, const struct ap_jv *group)
{
	const char *name = ap_rank_table_text(x->t, group, "group_name");
	bool fresh;

	ap_map_put_str(x->names, name, &fresh);
	if (!fresh)
		ap_rank_table_fault(x->t, ap_jv_get(group, "group_name"), "group-unique",
			"group \"%s\" is listed twice", ap_diag_name(x->t->ctx->diag, name));
}

static void check_keys(
	struct ap_rank_table *t, const struct ap_jv *group, const char *const *needed)
{
	for (; *needed; needed++)
		if (!ap_jv_get(group, *needed))
			ap_rank_table_fault(t, group, "key-missing", "no \"%s\"", *needed);
}

static bool find_server(struct groups *x, const struct ap_jv *instance, uint32_t *number)
{
	const char *id = ap_rank_table_name(x->t, instance, "server_id", "server-id");
	bool fresh;

	if (!id)
		return false;
	*number = ap_map_put_str(x->servers, id, &fresh);
	if (fresh)
		AP_PUSH(x->t->ctx->arena, x->t->servers, id);
	return true;
}

typedef void group_fn(struct groups *x, const struct ap_jv *group);

static void parse_groups(struct groups *x, group_fn *parse)
{
	struct ap_rank_table *t = x->t;
	const struct ap_jv *groups;

	x->servers = ap_map_create(t->ctx->arena);
	x->names = ap_map_create(t->ctx->arena);
	x->pods = ap_map_create(t->ctx->arena);
	ap_rank_table_check_status(t);
	groups = ap_rank_table_list(t, t->root, "group_list");
	if (!groups)
		return;
	ap_rank_table_count(t, t->root, "group_count", ap_jv_count(groups), "groups");
	for (const struct ap_jv *g = ap_jv_first(groups); g; g = ap_jv_next(g))
		if (ap_rank_table_is_object(t, g, "a group")) {
			check_name(x, g);
			parse(x, g);
		}
	t->needs_ips = t->servers.n > 1;
}

/* ---- lab: an instance is a card, and has its rank ---- */

static void parse_lab_instance(struct groups *x, struct ap_map *here, const struct ap_jv *instance)
{
	struct ap_rank_table *t = x->t;
	const struct ap_jv *devices = ap_rank_table_list(t, instance, "devices");
	uint32_t server;

	if (!find_server(x, instance, &server) || !devices)
		return;
	ap_map_put(here, &server, sizeof server, NULL);
	if (ap_jv_count(devices) != 1)
		ap_rank_table_fault(t, devices, "instance-device",
			"%zu devices; an instance has one, that its rank_id is for",
			ap_jv_count(devices));
	else if (ap_rank_table_is_object(t, ap_jv_first(devices), "a device"))
		ap_rank_table_card(t, ap_jv_first(devices), instance, server);
}

static void parse_lab_group(struct groups *x, const struct ap_jv *group)
{
	static const char *const needed[] = {"device_num", "server_num", "instance_count", NULL};
	struct ap_rank_table *t = x->t;
	struct ap_map *here = ap_map_create(t->ctx->arena); /* servers of this group */
	const struct ap_jv *instances = ap_rank_table_list(t, group, "instance_list");

	check_keys(t, group, needed);
	if (!instances)
		return;
	for (const struct ap_jv *v = ap_jv_first(instances); v; v = ap_jv_next(v))
		if (ap_rank_table_is_object(t, v, "an instance"))
			parse_lab_instance(x, here, v);
	ap_rank_table_count(t, group, "device_num", ap_jv_count(instances), "instances");
	ap_rank_table_count(t, group, "instance_count", ap_jv_count(instances), "instances");
	if (t->status == AP_OK)
		ap_rank_table_count(
			t, group, "server_num", ap_map_size(here), "different server_id");
}

void ap_rank_table_parse_lab(struct ap_rank_table *t)
{
	const struct ap_jv *nic = ap_jv_get(t->root, "para_plane_nic_location");
	struct groups x = {.t = t};

	if (!nic)
		ap_rank_table_fault(t, t->root, "key-missing", "no \"para_plane_nic_location\"");
	else if (strcmp(ap_rank_table_text(t, t->root, "para_plane_nic_location"), "device") != 0)
		ap_rank_table_fault(
			t, nic, "nic-location", "para_plane_nic_location must be \"device\"");
	parse_groups(&x, parse_lab_group);
}

/* ---- cloud: an instance is a container with some cards, and ranks follow from the order ---- */

/* Returns the number of its devices. */
static size_t parse_cloud_instance(struct groups *x, const struct ap_jv *instance)
{
	struct ap_rank_table *t = x->t;
	const char *pod = ap_rank_table_text(t, instance, "pod_name");
	const struct ap_jv *devices = ap_rank_table_list(t, instance, "devices");
	uint32_t server;
	bool fresh = true;

	if (*pod)
		ap_map_put_str(x->pods, pod, &fresh);
	if (!fresh)
		ap_rank_table_fault(t, ap_jv_get(instance, "pod_name"), "pod-name",
			"pod_name \"%s\" is given twice", ap_diag_name(t->ctx->diag, pod));
	if (!find_server(x, instance, &server) || !devices)
		return 0;
	for (const struct ap_jv *d = ap_jv_first(devices); d; d = ap_jv_next(d))
		if (ap_rank_table_is_object(t, d, "a device"))
			ap_rank_table_card(t, d, NULL, server);
	return ap_jv_count(devices);
}

static void parse_cloud_group(struct groups *x, const struct ap_jv *group)
{
	static const char *const needed[] = {"device_count", "instance_count", NULL};
	const struct ap_jv *instances = ap_rank_table_list(x->t, group, "instance_list");
	size_t devices = 0;

	check_keys(x->t, group, needed);
	if (!instances)
		return;
	for (const struct ap_jv *v = ap_jv_first(instances); v; v = ap_jv_next(v))
		if (ap_rank_table_is_object(x->t, v, "an instance"))
			devices += parse_cloud_instance(x, v);
	ap_rank_table_count(
		x->t, group, "instance_count", ap_jv_count(instances), "instances");
	if (x->t->status == AP_OK)
		ap_rank_table_count(x->t, group, "device_count", devices, "devices");
}

struct ordered_server {
	const char *id;
	uint32_t server;
};

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct ordered_server *)a)->id, ((const struct ordered_server *)b)->id);
}

/* A card by the place of its server in the order of names, then by device. */
struct ordered_card {
	int64_t key;
	uint32_t card;
};

static int by_key(const void *a, const void *b)
{
	const struct ordered_card *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->card < y->card ? -1 : x->card > y->card;
}

static void assign_ranks(struct ap_rank_table *t)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	struct ordered_server *server =
		AP_NEW_N(t->ctx->scratch, struct ordered_server, t->servers.n);
	struct ordered_card *card = AP_NEW_N(t->ctx->scratch, struct ordered_card, t->cards.n);
	int64_t *place = AP_NEW_N(t->ctx->scratch, int64_t, t->servers.n);

	for (uint32_t s = 0; s < t->servers.n; s++)
		server[s] = (struct ordered_server){t->servers.v[s], s};
	qsort(server, t->servers.n, sizeof *server, by_id);
	for (uint32_t i = 0; i < t->servers.n; i++)
		place[server[i].server] = i;
	for (uint32_t i = 0; i < t->cards.n; i++)
		card[i] = (struct ordered_card){
			place[t->cards.v[i].server] * AP_MAX_DEVICES + t->cards.v[i].device_id, i};
	qsort(card, t->cards.n, sizeof *card, by_key);
	for (uint32_t i = 0; i < t->cards.n; i++)
		t->cards.v[card[i].card].rank = i;
	ap_arena_release(t->ctx->scratch, mark);
}

void ap_rank_table_parse_cloud(struct ap_rank_table *t)
{
	struct groups x = {.t = t};

	parse_groups(&x, parse_cloud_group);
	if (t->cards.n)
		assign_ranks(t);
}
