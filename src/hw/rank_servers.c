/* SPDX-License-Identifier: Apache-2.0 */
/* Rank tables that list servers: versions 1.0 and 1.2. */
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "hw/rank_table.h"

/*
 * Numbers a server; its id in the map is its number. Documents mask addresses ("10.*.*.*"), so equal
 * masked ids are no clash: the later ones are in the map by a key that no table can hold.
 */
static bool add_server(
	struct ap_rank_table *t, struct ap_map *ids, const struct ap_jv *obj, uint32_t *number)
{
	const char *id = ap_rank_table_name(t, obj, "server_id", "server-id");
	const struct ap_jv *at = ap_jv_get(obj, "server_id");
	bool fresh;

	if (!id)
		return false;
	*number = ap_map_put_str(ids, id, &fresh);
	if (!fresh && !strchr(id, '*')) {
		ap_rank_table_fault(t, at, "server-unique", "server \"%s\" is listed twice",
			ap_diag_name(t->ctx->diag, id));
		return false;
	}
	if (!fresh) {
		struct {
			char nul[4];
			uint32_t n;
		} key = {"", (uint32_t)t->servers.n};

		*number = ap_map_put(ids, &key, sizeof key, NULL);
		ap_rank_table_warn(t, at, "server-masked",
			"masked server id \"%s\" again; taken for another server",
			ap_diag_name(t->ctx->diag, id));
	}
	AP_PUSH(t->ctx->arena, t->servers, id);
	return true;
}

static void check_ports(struct ap_rank_table *t, const struct ap_jv *device)
{
	static const char *const ports[] = {"device_port", "host_port", "backup_device_port"};
	int64_t ignored;

	for (size_t i = 0; i < AP_COUNT(ports); i++)
		ap_rank_table_int(t, device, ports[i], 1, 65535, true, &ignored);
}

static void parse_device(
	struct ap_rank_table *t, const struct ap_jv *device, uint32_t server, bool in_pod)
{
	struct ap_card *card;
	int64_t id = -1;

	check_ports(t, device);
	if (in_pod)
		ap_rank_table_int(t, device, "super_device_id", 0, UINT32_MAX, false, &id);
	card = ap_rank_table_card(t, device, device, server);
	if (card)
		card->super_device_id = id;
}

static void parse_server(struct ap_rank_table *t, struct ap_map *ids, const struct ap_jv *server,
	bool in_pod)
{
	const struct ap_jv *devices;
	uint32_t number = 0;
	bool named = add_server(t, ids, server, &number);

	devices = ap_rank_table_list(t, server, "device");
	for (const struct ap_jv *d = devices ? ap_jv_first(devices) : NULL; d; d = ap_jv_next(d))
		if (ap_rank_table_is_object(t, d, "a device") && named)
			parse_device(t, d, number, in_pod);
}

/* A server's host_ip makes the host's cards the network: all servers have it, or none. */
static void check_host_ips(struct ap_rank_table *t, const struct ap_jv *servers)
{
	const struct ap_jv *with = NULL, *without = NULL;

	for (const struct ap_jv *s = ap_jv_first(servers); s; s = ap_jv_next(s))
		if (ap_jv_get(s, "host_ip"))
			with = s;
		else
			without = s;
	if (with && without)
		ap_rank_table_fault(t, without, "host-ip",
			"no \"host_ip\" here, but other servers have one; all or none must");
}

static void parse_servers(struct ap_rank_table *t, struct ap_map *ids, bool in_pod)
{
	const struct ap_jv *servers;

	ap_rank_table_check_status(t);
	t->job_wide_ids = ap_jv_get(t->root, "cluster_list") != NULL;
	if (t->job_wide_ids)
		t->last_device_id = AP_MAX_DEVICES - 1;
	servers = ap_rank_table_list(t, t->root, "server_list");
	if (!servers)
		return;
	ap_rank_table_count(t, t->root, "server_count", ap_jv_count(servers), "servers");
	for (const struct ap_jv *s = ap_jv_first(servers); s; s = ap_jv_next(s))
		if (ap_rank_table_is_object(t, s, "a server"))
			parse_server(t, ids, s, in_pod);
	check_host_ips(t, servers);
	t->needs_ips = t->servers.n > 1;
}

void ap_rank_table_parse_1_0(struct ap_rank_table *t)
{
	struct ap_map *ids = ap_map_create(t->ctx->arena);

	parse_servers(t, ids, false);
	ap_rank_table_tiers(t, ids, false);
}

/* The number that a device has in its super pod is its own there. */
static void check_super_ids(struct ap_rank_table *t)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	struct ap_map *seen = ap_map_create(t->ctx->scratch);

	for (size_t i = 0; i < t->cards.n; i++) {
		const struct ap_card *c = &t->cards.v[i];
		int64_t key[2] = {t->pod.of[c->server], c->super_device_id};
		bool fresh;

		ap_map_put(seen, key, sizeof key, &fresh);
		if (!fresh)
			ap_rank_table_fault(t, ap_jv_get(c->at, "super_device_id"),
				"super-device-unique",
				"super_device_id is given twice in super pod \"%s\"",
				ap_diag_name(t->ctx->diag, t->pod.v[key[0]]));
	}
	ap_arena_release(t->ctx->scratch, mark);
}

void ap_rank_table_parse_1_2(struct ap_rank_table *t)
{
	struct ap_map *ids = ap_map_create(t->ctx->arena);

	parse_servers(t, ids, ap_jv_get(t->root, "super_pod_list") != NULL);
	ap_rank_table_tiers(t, ids, true);
	if (t->status == AP_OK && t->pod.of)
		check_super_ids(t);
	if (t->pod.of)
		t->needs_ips = t->pod.n > 1; /* inside one they have its links */
}
