/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of a rank table that are read, one parser each. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "hw/rank_table.h"

static bool is_object(struct ap_rank_table *t, const struct ap_jv *v, const char *what)
{
	if (ap_jv_type(v) == AP_JOBJECT)
		return true;
	ap_rank_table_fault(t, v, "key-type", "%s must be an object", what);
	return false;
}

/* A string member that may be missing; "" then. */
static const char *opt_str(struct ap_rank_table *t, const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *v = ap_jv_get(obj, key);

	if (!v)
		return "";
	if (ap_jv_type(v) == AP_JSTRING)
		return ap_jv_str(v);
	ap_rank_table_fault(t, v, "key-type", "%s must be a string", key);
	return "";
}

static void check_status(struct ap_rank_table *t)
{
	const char *status = opt_str(t, t->root, "status");

	if (strcmp(status, "completed") != 0)
		ap_rank_table_warn(t, *status ? ap_jv_get(t->root, "status") : t->root,
			"status-completed", "status \"%s\"; HCCL waits until it is \"completed\"",
			ap_diag_name(t->ctx->diag, status));
}

/* ---- version 1.0: servers that hold devices ---- */

/* Numbers a server. Documents mask addresses ("10.*.*.*"), so equal masked ids are no clash. */
static bool add_server(
	struct ap_rank_table *t, struct ap_map *ids, const struct ap_jv *obj, uint32_t *number)
{
	const char *id = ap_rank_table_server_id(t, obj);
	const struct ap_jv *at = ap_jv_get(obj, "server_id");
	bool fresh;

	if (!id)
		return false;
	ap_map_put_str(ids, id, &fresh);
	if (!fresh && !strchr(id, '*')) {
		ap_rank_table_fault(t, at, "server-unique", "server \"%s\" is listed twice",
			ap_diag_name(t->ctx->diag, id));
		return false;
	}
	if (!fresh)
		ap_rank_table_warn(t, at, "server-masked",
			"masked server id \"%s\" again; taken for another server",
			ap_diag_name(t->ctx->diag, id));
	*number = (uint32_t)t->servers.n;
	AP_PUSH(t->ctx->arena, t->servers, id);
	return true;
}

static void check_ports(struct ap_rank_table *t, const struct ap_jv *device)
{
	static const char *const ports[] = {"device_port", "host_port", "backup_device_port"};
	int64_t ignored;

	for (size_t i = 0; i < sizeof ports / sizeof *ports; i++)
		ap_rank_table_int(t, device, ports[i], 1, 65535, true, &ignored);
}

static void parse_server(struct ap_rank_table *t, struct ap_map *ids, const struct ap_jv *server)
{
	const struct ap_jv *devices;
	uint32_t number = 0;
	bool named = add_server(t, ids, server, &number);

	devices = ap_rank_table_list(t, server, "device");
	for (const struct ap_jv *d = devices ? ap_jv_first(devices) : NULL; d; d = ap_jv_next(d))
		if (is_object(t, d, "a device") && named) {
			check_ports(t, d);
			ap_rank_table_card(t, d, d, number);
		}
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

static void check_cluster(
	struct ap_rank_table *t, const struct ap_map *ids, const struct ap_jv *cluster)
{
	const struct ap_jv *servers;

	if (!is_object(t, cluster, "a cluster"))
		return;
	servers = ap_rank_table_list(t, cluster, "server_list");
	for (const struct ap_jv *s = servers ? ap_jv_first(servers) : NULL; s; s = ap_jv_next(s)) {
		const char *id = is_object(t, s, "a server") ? ap_rank_table_server_id(t, s) : NULL;

		if (id && ap_map_get_str(ids, id) == AP_NONE)
			ap_rank_table_fault(t, ap_jv_get(s, "server_id"), "cluster-server",
				"no server \"%s\" in the table's server_list",
				ap_diag_name(t->ctx->diag, id));
	}
}

static void check_clusters(struct ap_rank_table *t, const struct ap_map *ids)
{
	const struct ap_jv *clusters;

	if (!t->job_wide_ids)
		return;
	clusters = ap_rank_table_list(t, t->root, "cluster_list");
	for (const struct ap_jv *c = clusters ? ap_jv_first(clusters) : NULL; c; c = ap_jv_next(c))
		check_cluster(t, ids, c);
	ap_json_report(t->ctx, t->doc, clusters, AP_NOTE, AP_OK, NULL, "cluster-level",
		"the network between clusters is taken for that between servers");
}

void ap_rank_table_parse_1_0(struct ap_rank_table *t)
{
	struct ap_map *ids = ap_map_create(t->ctx->arena);
	const struct ap_jv *servers;

	check_status(t);
	t->chip_info = opt_str(t, t->root, "chip_info");
	t->job_wide_ids = ap_jv_get(t->root, "cluster_list") != NULL;
	servers = ap_rank_table_list(t, t->root, "server_list");
	if (!servers)
		return;
	ap_rank_table_count(t, t->root, "server_count", ap_jv_count(servers), "servers");
	for (const struct ap_jv *s = ap_jv_first(servers); s; s = ap_jv_next(s))
		if (is_object(t, s, "a server"))
			parse_server(t, ids, s);
	check_host_ips(t, servers);
	check_clusters(t, ids);
}

/* ---- lab: groups of instances of one card each ---- */

static void parse_instance(struct ap_rank_table *t, struct ap_map *ids, struct ap_map *here,
	const struct ap_jv *instance)
{
	const struct ap_jv *devices = ap_rank_table_list(t, instance, "devices");
	const char *id = ap_rank_table_server_id(t, instance);
	uint32_t server;
	bool fresh;

	if (!devices || !id)
		return;
	server = ap_map_put_str(ids, id, &fresh);
	if (fresh)
		AP_PUSH(t->ctx->arena, t->servers, id);
	ap_map_put_str(here, id, NULL);
	if (ap_jv_count(devices) != 1)
		ap_rank_table_fault(t, devices, "instance-device",
			"%zu devices; an instance has one, that its rank_id is for",
			ap_jv_count(devices));
	else if (is_object(t, ap_jv_first(devices), "a device"))
		ap_rank_table_card(t, ap_jv_first(devices), instance, server);
}

static void parse_group(struct ap_rank_table *t, struct ap_map *ids, const struct ap_jv *group)
{
	struct ap_map *here = ap_map_create(t->ctx->arena); /* servers of this group */
	const struct ap_jv *instances = ap_rank_table_list(t, group, "instance_list");
	static const char *const needed[] = {"device_num", "server_num", "instance_count"};

	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if (!ap_jv_get(group, needed[i]))
			ap_rank_table_fault(t, group, "key-missing", "no \"%s\"", needed[i]);
	if (!instances)
		return;
	for (const struct ap_jv *v = ap_jv_first(instances); v; v = ap_jv_next(v))
		if (is_object(t, v, "an instance"))
			parse_instance(t, ids, here, v);
	ap_rank_table_count(t, group, "device_num", ap_jv_count(instances), "instances");
	ap_rank_table_count(t, group, "instance_count", ap_jv_count(instances), "instances");
	if (t->status == AP_OK)
		ap_rank_table_count(
			t, group, "server_num", ap_map_size(here), "different server_id");
}

static void check_group_name(
	struct ap_rank_table *t, struct ap_map *names, const struct ap_jv *group)
{
	const char *name = opt_str(t, group, "group_name");
	bool fresh;

	ap_map_put_str(names, name, &fresh);
	if (!fresh)
		ap_rank_table_fault(t, ap_jv_get(group, "group_name"), "group-unique",
			"group \"%s\" is listed twice", ap_diag_name(t->ctx->diag, name));
}

void ap_rank_table_parse_lab(struct ap_rank_table *t)
{
	struct ap_map *ids = ap_map_create(t->ctx->arena), *names = ap_map_create(t->ctx->arena);
	const struct ap_jv *groups, *nic = ap_jv_get(t->root, "para_plane_nic_location");

	check_status(t);
	t->chip_info = opt_str(t, t->root, "chip_info");
	if (!nic)
		ap_rank_table_fault(t, t->root, "key-missing", "no \"para_plane_nic_location\"");
	else if (strcmp(opt_str(t, t->root, "para_plane_nic_location"), "device") != 0)
		ap_rank_table_fault(
			t, nic, "nic-location", "para_plane_nic_location must be \"device\"");
	groups = ap_rank_table_list(t, t->root, "group_list");
	if (!groups)
		return;
	ap_rank_table_count(t, t->root, "group_count", ap_jv_count(groups), "groups");
	for (const struct ap_jv *g = ap_jv_first(groups); g; g = ap_jv_next(g))
		if (is_object(t, g, "a group")) {
			check_group_name(t, names, g);
			parse_group(t, ids, g);
		}
}
