/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which keys the objects of a rank table have, a row for each kind of object, and what of them is said of
 * chips. HCCL ignores what it does not know; so a misspelt key is a warning.
 */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/vec.h"
#include "hw/rank_table.h"

/* Objects of all forms; the first are those of enum ap_rank_top. */
enum kind {
	SERVER = AP_RANK_CLOUD + 1,
	POD,
	CLUSTER,
	MEMBER,
	DEVICE,
	LAB_GROUP,
	LAB_INSTANCE,
	CLOUD_GROUP,
	CLOUD_INSTANCE,
	CARD,
	RANK,
	LEVEL,
	ADDRESS,
	NKIND
};

/* What platforms and templates add, wherever they please. */
#define ANYWHERE "chip_info", "board_id", "server_ip", "container_ip", "pod_ip", "pod_name", \
	"hardware_type", "hccl_config_json_spec"
#define NETWORK "para_plane_nic_location", "para_plane_nic_name", "para_plane_nic_num"
#define PORTS "device_port", "host_port", "backup_device_ip", "backup_device_port", "super_device_id", \
	"dpu_ip", "eid", "numa_id"

static const struct {
	const char *name; /* "server"; NULL: the table */
	const char *id; /* key of what it is called by; NULL: none */
	const char *keys[24];
	struct {
		const char *key;
		enum kind kind;
	} lists[3]; /* of further objects */
} kinds[NKIND] = {
	[AP_RANK_1_0] = {NULL, NULL,
		{"version", "status", "server_count", "server_list", "cluster_list", ANYWHERE},
		{{"server_list", SERVER}, {"cluster_list", CLUSTER}}},
	[AP_RANK_1_2] = {NULL, NULL, {"version", "status", "server_count", "server_list", "cluster_list",
		"super_pod_list", ANYWHERE},
		{{"server_list", SERVER}, {"super_pod_list", POD}, {"cluster_list", CLUSTER}}},
	[AP_RANK_2_0] = {NULL, NULL, {"version", "status", "rank_count", "rank_list", ANYWHERE},
		{{"rank_list", RANK}}},
	[AP_RANK_LAB] = {NULL, NULL,
		{"status", "deploy_mode", "group_count", "group_list", NETWORK, ANYWHERE},
		{{"group_list", LAB_GROUP}}},
	[AP_RANK_CLOUD] = {NULL, NULL, {"status", "group_count", "group_list", NETWORK, ANYWHERE},
		{{"group_list", CLOUD_GROUP}}},
	[SERVER] = {"server", "server_id", {"server_id", "device", "host_nic_ip", "host_ip", ANYWHERE},
		{{"device", DEVICE}}},
	[POD] = {"super pod", "super_pod_id", {"super_pod_id", "server_list", ANYWHERE},
		{{"server_list", MEMBER}}},
	[CLUSTER] = {"cluster", "cluster_id",
		{"cluster_id", "network_type", "az_id", "region_id", "server_list", ANYWHERE},
		{{"server_list", MEMBER}}},
	[MEMBER] = {"server", "server_id", {"server_id", ANYWHERE}},
	[DEVICE] = {"device", "device_id", {"device_id", "device_ip", "rank_id", PORTS, ANYWHERE}},
	[LAB_GROUP] = {"group", "group_name",
		{"group_name", "device_num", "server_num", "instance_count", "instance_list", ANYWHERE},
		{{"instance_list", LAB_INSTANCE}}},
	[LAB_INSTANCE] = {"server", "server_id", {"server_id", "rank_id", "devices", ANYWHERE},
		{{"devices", CARD}}},
	[CLOUD_GROUP] = {"group", "group_name",
		{"group_name", "device_count", "instance_count", "instance_list", ANYWHERE},
		{{"instance_list", CLOUD_INSTANCE}}},
	[CLOUD_INSTANCE] = {"server", "server_id", {"server_id", "devices", ANYWHERE}, {{"devices", CARD}}},
	[CARD] = {"device", "device_id", {"device_id", "device_ip", PORTS, ANYWHERE}},
	[RANK] = {"rank", "rank_id",
		{"rank_id", "local_id", "device_id", "device_ip", "level_list", PORTS, ANYWHERE},
		{{"level_list", LEVEL}}},
	[LEVEL] = {"level", NULL,
		{"net_layer", "net_instance_id", "net_type", "net_attr", "rank_addr_list", ANYWHERE},
		{{"rank_addr_list", ADDRESS}}},
	[ADDRESS] = {"address", NULL, {"addr", "addr_type", "ports", "plane_id", ANYWHERE}},
};

struct unknown {
	const struct ap_jv *first;
	enum kind kind;
	size_t n;
};

struct walk {
	struct ap_rank_table *t;
	struct ap_map *seen; /* keys of unknown, by kind and name */
	AP_VEC(struct unknown) unknown;
	const struct ap_jv *chip; /* the first chip_info */
	const char *chip_of; /* what it is said of */
	bool mixed; /* another was met */
};

/* An object, and those that it lies in. */
struct inside {
	const struct ap_jv *obj;
	enum kind kind;
	const struct inside *up; /* NULL: this is the table */
};

static void add_unknown(struct walk *w, const struct ap_jv *v, enum kind kind)
{
	struct ap_arena *arena = w->t->ctx->scratch;
	const char *key = ap_arena_printf(arena, "%d %s", (int)kind, ap_jv_key(v));
	bool fresh;
	ap_id id = ap_map_put_str(w->seen, key, &fresh);

	if (fresh)
		AP_PUSH(arena, w->unknown, ((struct unknown){v, kind, 0}));
	w->unknown.v[id].n++;
}

/* `server "10.0.0.1"`, `device "3" of server "10.0.0.1"`. */
static const char *name_of(struct walk *w, const struct inside *in)
{
	const struct ap_jv *id = kinds[in->kind].id ? ap_jv_get(in->obj, kinds[in->kind].id) : NULL;
	struct ap_ctx *ctx = w->t->ctx;
	const char *name = kinds[in->kind].name;
	int64_t n;

	if (!name)
		return "the table";
	if (id && ap_jv_type(id) == AP_JSTRING)
		name = ap_arena_printf(ctx->arena, "%s \"%s\"", name, ap_diag_name(ctx->diag, ap_jv_str(id)));
	else if (id && ap_jv_int(w->t->doc, id, &n))
		name = ap_arena_printf(ctx->arena, "%s \"%" PRId64 "\"", name, n);
	if (in->kind == DEVICE || in->kind == CARD || in->kind == LEVEL || in->kind == ADDRESS)
		name = ap_arena_printf(ctx->arena, "%s of %s", name, name_of(w, in->up));
	return name;
}

/* A chip is called Ascend910B3 and 910B3, in letters of either case. */
static const char *bare(const char *chip)
{
	static const char maker[] = "ascend";

	return chip + (strncasecmp(chip, maker, strlen(maker)) ? 0 : strlen(maker));
}

static void read_chip(struct walk *w, const struct inside *in, const struct ap_jv *v)
{
	const char *chip = ap_rank_table_text(w->t, in->obj, "chip_info");
	struct ap_diag *diag = w->t->ctx->diag;

	if (!*chip)
		return;
	if (!w->chip) {
		w->t->chip_info = chip;
		w->chip = v;
		w->chip_of = name_of(w, in);
		return;
	}
	if (w->mixed || !strcasecmp(bare(chip), bare(w->t->chip_info)))
		return;
	w->mixed = true;
	ap_rank_table_fault(w->t, v, "chip-mixed", "chip_info \"%s\" of %s, but \"%s\" of %s; a cluster of "
		"different chips is not planned for, only one whose devices are alike",
		ap_diag_name(diag, chip), name_of(w, in), ap_diag_name(diag, w->t->chip_info), w->chip_of);
	ap_rank_table_note(w->t, w->chip, "chip-mixed", "the other chip_info is here");
}

static void walk_object(struct walk *w, const struct inside *in);

static void walk_list(struct walk *w, const struct inside *in, const struct ap_jv *list, enum kind kind)
{
	for (const struct ap_jv *v = ap_jv_type(list) == AP_JARRAY ? ap_jv_first(list) : NULL; v;
		v = ap_jv_next(v))
		if (ap_jv_type(v) == AP_JOBJECT)
			walk_object(w, &(struct inside){v, kind, in});
}

/* As deep as the forms are. */
static void walk_object(struct walk *w, const struct inside *in)
{
	for (const struct ap_jv *v = ap_jv_first(in->obj); v; v = ap_jv_next(v)) {
		if (!ap_json_is_known(v, kinds[in->kind].keys))
			add_unknown(w, v, in->kind);
		else if (!strcmp(ap_jv_key(v), "chip_info"))
			read_chip(w, in, v);
		for (int i = 0; i < 3 && kinds[in->kind].lists[i].key; i++)
			if (!strcmp(ap_jv_key(v), kinds[in->kind].lists[i].key))
				walk_list(w, in, v, kinds[in->kind].lists[i].kind);
	}
}

void ap_rank_table_check_keys(struct ap_rank_table *t, enum ap_rank_top top)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	struct walk w = {.t = t, .seen = ap_map_create(t->ctx->scratch)};

	walk_object(&w, &(struct inside){t->root, (enum kind)top, NULL});
	for (size_t i = 0; i < w.unknown.n; i++) {
		const struct unknown *u = &w.unknown.v[i];
		enum ap_status st = ap_json_unknown(t->ctx, t->doc, u->first, kinds[u->kind].keys, u->n);

		if (t->status == AP_OK)
			t->status = st;
	}
	ap_arena_release(t->ctx->scratch, mark);
}
