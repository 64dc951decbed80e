/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/rank_table.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"

struct ap_card {
	int64_t rank, device_id;
	int64_t super_device_id; /* -1: none */
	uint32_t server;        /* index into the table's servers */
	const char *ip;         /* as written; "" if missing */
	const struct ap_jv *at; /* location for messages */
};

/* Super pods or clusters while reading. */
struct rank_tier {
	const char **v; /* ids */
	size_t n, cap;
	uint32_t *of; /* [servers] index, AP_NONE if unknown; NULL: no such tier */
};

struct rank_table {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	const struct ap_jv *root;
	const char *form, *chip_info;
	int64_t last_device_id;
	bool needs_ips;        /* devices need addresses: the network is used */
	bool job_wide_ids;     /* device_id may count over the whole job */
	enum ap_status status; /* first fault; reading continues to find others */
	AP_VEC(struct ap_card) cards;
	AP_VEC(const char *) servers; /* ids */
	struct rank_tier pod, cluster;
};

/* Kinds of root objects, for the table of keys. */
enum rank_top { AP_RANK_1_0, AP_RANK_1_2, AP_RANK_2_0, AP_RANK_LAB, AP_RANK_CLOUD };

/* A form: recognised by its version (NULL: none), a key that it has and one that it lacks. parse
 * NULL: not supported, for the reason why_not. */
struct rank_form {
	const char *name, *version, *has, *lacks;
	enum rank_top top; /* if parse is set */
	void (*parse)(struct rank_table *t);
	const char *why_not;
};

enum { NAME_BYTES = 64 };

static void note_status(struct rank_table *t, enum ap_status st)
{
	if (t->status == AP_OK)
		t->status = st;
}

/* Reports a fault at v; updates t->status. */
__attribute__((format(printf, 4, 5))) static void fault(struct rank_table *t, const struct ap_jv *v,
	const char *check, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note_status(t, ap_json_reportv(t->ctx, t->doc, v, AP_ERROR, AP_MEANING, NULL, check, fmt, ap));
	va_end(ap);
}

/* Warns of something odd but readable. */
__attribute__((format(printf, 4, 5))) static void warn(struct rank_table *t, const struct ap_jv *v,
	const char *check, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note_status(t, ap_json_reportv(t->ctx, t->doc, v, AP_WARNING, AP_OK, NULL, check, fmt, ap));
	va_end(ap);
}

/* A name from the table, safe to print. */
static const char *shown(struct rank_table *t, const char *name)
{
	return ap_diag_name(t->ctx->diag, name);
}

/* Reports a note. */
static void note(
	struct rank_table *t, const struct ap_jv *v, const char *check, const char *text)
{
	note_status(t, ap_json_report(t->ctx, t->doc, v, AP_NOTE, AP_OK, NULL, check, "%s", text));
}

/* Reads an integer member in [lo, hi], a number or decimal digits in a string. Returns false after
 * reporting a fault; if optional, absence is none, and *r is unchanged. */
static bool read_int(struct rank_table *t, const struct ap_jv *obj, const char *key,
	int64_t lo, int64_t hi, bool optional, int64_t *r)
{
	const struct ap_jv *v = ap_jv_get(obj, key);
	int64_t n = lo;
	bool good;

	if (!v) {
		if (!optional)
			fault(t, obj, "key-missing", "no \"%s\"", key);
		return optional;
	}
	if (ap_jv_type(v) == AP_JSTRING)
		good = ap_parse_int(ap_jv_str(v), lo, hi, &n);
	else
		good = ap_jv_int(t->doc, v, &n) && n >= lo && n <= hi;
	if (good)
		*r = n;
	else
		fault(t, v, "id-integer",
			"%s must be an integer from %" PRId64 " to %" PRId64 ", in decimal digits",
			key, lo, hi);
	return good;
}

/* A member that is a non-empty array; NULL after a report. */
static const struct ap_jv *read_list(struct rank_table *t, const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *list;
	enum ap_status st = ap_json_get_arr(t->ctx, t->doc, obj, key, &list);

	note_status(t, st);
	if (st != AP_OK)
		return NULL;
	if (!ap_jv_first(list)) {
		fault(t, list, "list-empty", "%s is empty", key);
		return NULL;
	}
	return list;
}

/* Reports a member `key` that is present and differs from n, the number of `what`. */
static void check_count(struct rank_table *t, const struct ap_jv *obj, const char *key,
	size_t n, const char *what)
{
	int64_t said = (int64_t)n;

	if (read_int(t, obj, key, 1, AP_MAX_DEVICES, true, &said) && said != (int64_t)n)
		fault(t, ap_jv_get(obj, key), "count-match",
			"%s is %" PRId64 ", but there are %zu %s", key, said, n, what);
}

/* Member `key` of obj as a name of 1 to 64 bytes, or an integer as digits; NULL after a report by
 * `check`. */
static const char *read_name(
	struct rank_table *t, const struct ap_jv *obj, const char *key, const char *check)
{
	const struct ap_jv *v = ap_jv_get(obj, key);
	const char *name = "";
	int64_t n;

	if (!v) {
		fault(t, obj, "key-missing", "no \"%s\"", key);
		return NULL;
	}
	if (ap_jv_type(v) == AP_JSTRING)
		name = ap_jv_str(v);
	else if (ap_jv_int(t->doc, v, &n))
		name = ap_arena_printf(t->ctx->arena, "%" PRId64, n);
	if (!*name || strlen(name) > NAME_BYTES) {
		fault(t, v, check, "%s must be a string of 1 to %d bytes", key,
			NAME_BYTES);
		return NULL;
	}
	return name;
}

/* A string member; "" if missing. */
static const char *read_text(struct rank_table *t, const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *v = ap_jv_get(obj, key);

	if (!v)
		return "";
	if (ap_jv_type(v) == AP_JSTRING)
		return ap_jv_str(v);
	fault(t, v, "key-type", "%s must be a string", key);
	return "";
}

/* Is v an object? Reports if not. */
static bool is_object(struct rank_table *t, const struct ap_jv *v, const char *what)
{
	if (ap_jv_type(v) == AP_JOBJECT)
		return true;
	fault(t, v, "key-type", "%s must be an object", what);
	return false;
}

/* Warns unless the table is "completed". */
static void check_status(struct rank_table *t)
{
	const char *status = read_text(t, t->root, "status");

	if (strcmp(status, "completed") != 0)
		warn(t, *status ? ap_jv_get(t->root, "status") : t->root,
			"status-completed", "status \"%s\"; HCCL waits until it is \"completed\"",
			shown(t, status));
}

/* Adds a card: device_id and device_ip from device, rank_id from ranked (NULL: set later). */
static struct ap_card *add_card(struct rank_table *t, const struct ap_jv *device,
	const struct ap_jv *ranked, uint32_t server)
{
	struct ap_card c = {.server = server, .super_device_id = -1, .ip = "", .at = device};
	const struct ap_jv *ip = ap_jv_get(device, "device_ip");
	bool good = true;

	good &= read_int(t, device, "device_id", 0, t->last_device_id, false, &c.device_id);
	if (ranked)
		good &= read_int(t, ranked, "rank_id", 0, AP_MAX_DEVICES - 1, false, &c.rank);
	if (ip && ap_jv_type(ip) != AP_JSTRING)
		fault(t, ip, "key-type", "device_ip must be a string");
	else if (ip)
		c.ip = ap_jv_str(ip);
	if (!good)
		return NULL;
	AP_PUSH(t->ctx->arena, t->cards, c);
	return &t->cards.v[t->cards.n - 1];
}

/* Reports a duplicate, with a note at the first. */
static void clash(struct rank_table *t, const struct ap_card *first,
	const struct ap_card *second, const char *check, const char *text)
{
	fault(t, second->at, check, "%s", text);
	note(t, first->at, check, "it is first here");
}

/* The card of each rank; reports repeated and missing ranks of 0..n-1. */
static const struct ap_card **by_rank(struct rank_table *t)
{
	size_t n = t->cards.n, missing = 0, gap = 0, twice = 0;
	const struct ap_card **card = AP_NEW_N(t->ctx->arena, const struct ap_card *, n);

	for (size_t i = 0; i < n; i++) {
		const struct ap_card *c = &t->cards.v[i];

		if (c->rank >= (int64_t)n)
			continue;
		if (!card[c->rank]) {
			card[c->rank] = c;
			continue;
		}
		twice++;
		clash(t, card[c->rank], c, "rank-unique",
			ap_arena_printf(t->ctx->arena, "rank %" PRId64 " is given twice", c->rank));
	}
	for (size_t r = n; r-- > 0;)
		if (!card[r]) {
			missing++;
			gap = r;
		}
	if (missing > twice)
		fault(t, t->root, "rank-gap",
			"%zu cards, but no rank %zu%s; ranks must be 0 to %zu", n, gap,
			missing > 1 ? " (and more are missing)" : "", n - 1);
	return card;
}

/* Orders pods or clusters by rank; number: topo's index of each server of the table. */
static void place_tier(struct rank_table *t, const struct rank_tier *tier,
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

/* Numbers servers by lowest rank. */
static void place_ranks(
	struct rank_table *t, const struct ap_card *const *card, struct ap_topo *topo)
{
	struct ap_place *place = AP_NEW_N(t->ctx->arena, struct ap_place, topo->ndev);
	const char **server = AP_NEW_N(t->ctx->arena, const char *, t->servers.n);
	uint32_t *number = AP_NEW_N(t->ctx->arena, uint32_t, t->servers.n);

	for (size_t s = 0; s < t->servers.n; s++)
		number[s] = AP_NONE;
	for (uint32_t r = 0; r < topo->ndev; r++) {
		uint32_t s = card[r]->server;

		if (number[s] == AP_NONE) {
			server[topo->nserver] = t->servers.v[s];
			number[s] = topo->nserver++;
		}
		place[r] = (struct ap_place){
			.server = number[s],
			.device_id = (int32_t)card[r]->device_id,
			.super_device_id = card[r]->super_device_id,
			.device_ip = card[r]->ip,
		};
	}
	topo->place = place;
	topo->server = server;
	topo->first = ap_topo_link(t->ctx, place, topo->ndev, topo->nserver);
	place_tier(t, &t->pod, number, topo, &topo->pod);
	place_tier(t, &t->cluster, number, topo, &topo->cluster);
	if (topo->pod.n) {
		int64_t *n = AP_NEW_N(t->ctx->arena, int64_t, topo->pod.n);

		/* number devices in super pods that the table does not number */
		for (uint32_t r = 0; r < topo->ndev; r++) {
			uint32_t pod = topo->pod.of[place[r].server];

			if (place[r].super_device_id < 0)
				place[r].super_device_id = n[pod]++;
		}
	}
}

/* Remarks on legal but unusual tables. */
static void remark_shape(struct rank_table *t, const struct ap_topo *topo)
{
	uint32_t changes = 0, cards = 0;
	bool equal = true;

	for (uint32_t r = 1; r < topo->ndev; r++)
		changes += topo->place[r].server != topo->place[r - 1].server;
	for (uint32_t s = 0; s < topo->nserver; s++) {
		uint32_t n = 0;

		for (uint32_t r = topo->first[s]; r != AP_NONE; r = topo->place[r].next)
			n++;
		equal &= !s || n == cards;
		cards = n;
	}
	if (!equal)
		warn(t, t->root, "server-equal",
			"the servers do not hold equal numbers of cards");
	if (changes >= topo->nserver)
		note(t, t->root, "rank-contiguous",
			"the ranks of a server do not follow one another; groups are priced as "
			"they lie");
	if (topo->ndev > AP_MINDSPORE_DEVICES)
		note(t, t->root, "device-limit",
			"MindSpore itself runs at most 4096 devices");
}

enum family { OTHER = 0, IPV4 = 4, IPV6 = 6 };

/* Brackets and a zone ("[fe80::1%eth0]") are not part of the address. */
static enum family family_of(struct ap_arena *arena, const char *s, size_t len)
{
	unsigned char binary[sizeof(struct in6_addr)];
	char *text;

	if (len > 1 && s[0] == '[' && s[len - 1] == ']') {
		s++;
		len -= 2;
	}
	text = ap_arena_strndup(arena, s, len);
	if (inet_pton(AF_INET, text, binary) == 1)
		return IPV4;
	text[strcspn(text, "%")] = '\0';
	return inet_pton(AF_INET6, text, binary) == 1 ? IPV6 : OTHER;
}

/* Checks device addresses: present, IP, unique, equal in number and family. */
static void check_ips(struct rank_table *t)
{
	struct ap_arena *scratch = t->ctx->scratch;
	struct ap_mark mark = ap_arena_mark(scratch);
	struct ap_map *seen = ap_map_create(scratch);
	size_t missing = 0, other = 0, per_card = 0;
	enum family common = OTHER;
	const struct ap_card *first_other = NULL;

	for (size_t i = 0; i < t->cards.n; i++) {
		const struct ap_card *c = &t->cards.v[i];
		const struct ap_jv *at = ap_jv_get(c->at, "device_ip");
		size_t count = 0, len;

		for (const char *s = c->ip; *s; s += len + (s[len] == ','), count++) {
			enum family family;
			bool fresh;

			len = strcspn(s, ",");
			family = family_of(scratch, s, len);
			if (family == OTHER) {
				if (!other++)
					first_other = c;
				continue;
			}
			ap_map_put(seen, s, len, &fresh);
			if (!fresh)
				fault(t, at, "device-ip-unique", "device_ip \"%s\" is given twice",
					shown(t, ap_arena_strndup(scratch, s, len)));
			if (common != OTHER && family != common)
				fault(t, at, "device-ip-family",
					"an IPv%d address, but others are IPv%d", family, common);
			else
				common = family;
		}
		missing += !count;
		if (!per_card)
			per_card = count;
		else if (count && count != per_card)
			fault(t, at, "device-ip-count", "%zu addresses, but other devices have %zu", count,
				per_card);
	}
	if (missing && t->needs_ips)
		warn(t, t->root, "device-ip",
			"%zu of %zu devices have no device_ip; HCCL needs one between servers",
			missing, t->cards.n);
	if (other)
		warn(t, ap_jv_get(first_other->at, "device_ip"), "device-ip",
			"\"%s\" is no IP address, and is kept as text (%zu such)",
			shown(t, first_other->ip), other);
	ap_arena_release(scratch, mark);
}

/* Makes the checks common to all forms, then the topology. */
static enum ap_status finish(
	struct rank_table *t, const char *sha256, const struct ap_topo **out)
{
	struct ap_topo *topo = AP_NEW(t->ctx->arena, struct ap_topo);
	const struct ap_card **card;
	struct ap_mark mark;
	struct ap_map *seen, *ids;
	uint32_t *first;
	/* do device ids count over the job (if unique), or per server? */
	bool job_wide = t->job_wide_ids && t->servers.n > 1;

	if (t->cards.n > AP_MAX_DEVICES)
		return ap_json_report(t->ctx, t->doc, t->root, AP_ERROR, AP_MEANING, NULL,
			"device-count", "%zu cards; at most %d are planned for", t->cards.n,
			AP_MAX_DEVICES);
	mark = ap_arena_mark(t->ctx->scratch);
	seen = ap_map_create(t->ctx->scratch);
	ids = ap_map_create(t->ctx->scratch);
	first = AP_NEW_N(t->ctx->scratch, uint32_t, t->cards.n);
	for (uint32_t i = 0; i < t->cards.n; i++) {
		const struct ap_card *c = &t->cards.v[i];
		int64_t key[2] = {c->server, c->device_id};
		bool fresh;
		ap_id id = ap_map_put(seen, key, sizeof key, &fresh);

		if (job_wide)
			ap_map_put(ids, &c->device_id, sizeof c->device_id, &job_wide);
		if (fresh)
			first[id] = i;
		else
			clash(t, &t->cards.v[first[id]], c, "device-unique",
				ap_arena_printf(t->ctx->arena,
					"device_id %" PRId64 " is given twice on server \"%s\"",
					c->device_id, shown(t, t->servers.v[c->server])));
	}
	ap_arena_release(t->ctx->scratch, mark);
	check_ips(t);
	card = by_rank(t);
	AP_TRY(t->status);
	*topo = (struct ap_topo){
		.name = ap_file_base(ap_json_file(t->doc)),
		.sha256 = sha256,
		.form = t->form,
		.chip_info = t->chip_info,
		.ndev = (uint32_t)t->cards.n,
		.job_wide_ids = job_wide,
	};
	place_ranks(t, card, topo);
	remark_shape(t, topo);
	*out = topo;
	return t->status;
}

/* Objects of all forms, first those of enum rank_top. HCCL ignores unknown keys, so a misspelt one
 * is a warning. */
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

/* Keys that platforms and templates add anywhere. */
#define ANYWHERE "chip_info", "board_id", "server_ip", "container_ip", "pod_ip", "pod_name", \
	"hardware_type", "hccl_config_json_spec"
#define NETWORK "para_plane_nic_location", "para_plane_nic_name", "para_plane_nic_num"
#define PORTS "device_port", "host_port", "backup_device_ip", "backup_device_port", "super_device_id", \
	"dpu_ip", "eid", "numa_id"

static const struct {
	const char *name; /* "server"; NULL: the root */
	const char *id; /* key of its id; NULL: none */
	const char *keys[24];
	struct {
		const char *key;
		enum kind kind;
	} lists[3]; /* of nested objects */
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
	struct rank_table *t;
	struct ap_map *seen; /* unknown keys by kind and name */
	AP_VEC(struct unknown) unknown;
	const struct ap_jv *chip; /* the first chip_info */
	const char *chip_of; /* the object that has it */
	bool mixed; /* a different one was found */
};

/* An object and its enclosing objects. */
struct inside {
	const struct ap_jv *obj;
	enum kind kind;
	const struct inside *up; /* NULL: the root */
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

/* Skips the prefix of a chip name: Ascend910B3 or 910B3, in any case. */
static const char *bare(const char *chip)
{
	static const char maker[] = "ascend";

	return chip + (strncasecmp(chip, maker, strlen(maker)) ? 0 : strlen(maker));
}

static void read_chip(struct walk *w, const struct inside *in, const struct ap_jv *v)
{
	const char *chip = read_text(w->t, in->obj, "chip_info");
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
	fault(w->t, v, "chip-mixed", "chip_info \"%s\" of %s, but \"%s\" of %s; a cluster of "
		"different chips is not planned for, only one whose devices are alike",
		ap_diag_name(diag, chip), name_of(w, in), ap_diag_name(diag, w->t->chip_info), w->chip_of);
	note(w->t, w->chip, "chip-mixed", "the other chip_info is here");
}

/* Recursion is as deep as the forms. */
static void walk_object(struct walk *w, const struct inside *in)
{
	for (const struct ap_jv *v = ap_jv_first(in->obj); v; v = ap_jv_next(v)) {
		if (!ap_json_is_known(v, kinds[in->kind].keys))
			add_unknown(w, v, in->kind);
		else if (!strcmp(ap_jv_key(v), "chip_info"))
			read_chip(w, in, v);
		for (int i = 0; i < 3 && kinds[in->kind].lists[i].key; i++) {
			struct inside each = {.kind = kinds[in->kind].lists[i].kind, .up = in};

			if (ap_jv_type(v) != AP_JARRAY || strcmp(ap_jv_key(v), kinds[in->kind].lists[i].key))
				continue;
			for (each.obj = ap_jv_first(v); each.obj; each.obj = ap_jv_next(each.obj))
				if (ap_jv_type(each.obj) == AP_JOBJECT)
					walk_object(w, &each);
		}
	}
}

/* Walks the whole table: warns of unknown keys, once per kind of object, and reads chip_info of any
 * object into t->chip_info. Reports two that differ. */
static void check_keys(struct rank_table *t, enum rank_top top)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	struct walk w = {.t = t, .seen = ap_map_create(t->ctx->scratch)};

	walk_object(&w, &(struct inside){t->root, (enum kind)top, NULL});
	for (size_t i = 0; i < w.unknown.n; i++)
		note_status(t, ap_json_unknown(t->ctx, t->doc, w.unknown.v[i].first,
			kinds[w.unknown.v[i].kind].keys, w.unknown.v[i].n));
	ap_arena_release(t->ctx->scratch, mark);
}

static const struct tier_kind {
	const char *list, *id, *what;
	const char *check_id, *check_unique, *check_server;
} pods = {"super_pod_list", "super_pod_id", "super pod", "pod-id", "pod-unique", "pod-server"},
  clusters = {"cluster_list", "cluster_id", "cluster", "cluster-id", "cluster-unique",
	  "cluster-server"};

/* Adds a pod or cluster; false if it has no unique name. */
static bool add_tier(struct rank_table *t, const struct tier_kind *k, struct ap_map *names,
	const struct ap_jv *obj, struct rank_tier *tier)
{
	const char *id = read_name(t, obj, k->id, k->check_id);
	bool fresh;

	if (!id)
		return false;
	ap_map_put_str(names, id, &fresh);
	if (!fresh) {
		fault(t, ap_jv_get(obj, k->id), k->check_unique,
			"%s \"%s\" is listed twice", k->what, shown(t, id));
		return false;
	}
	AP_PUSH(t->ctx->arena, *tier, id);
	return true;
}

static void add_server(struct rank_table *t, const struct tier_kind *k, const struct ap_map *ids,
	const struct ap_jv *obj, struct rank_tier *tier)
{
	const char *id = read_name(t, obj, "server_id", "server-id");
	const struct ap_jv *at = ap_jv_get(obj, "server_id");
	ap_id server = id ? ap_map_get_str(ids, id) : AP_NONE;

	if (!id)
		return;
	if (server == AP_NONE)
		fault(t, at, k->check_server,
			"no server \"%s\" in the table's server_list", shown(t, id));
	else if (tier->of[server] != AP_NONE)
		fault(t, at, k->check_server, "server \"%s\" is already in %s \"%s\"",
			shown(t, id), k->what, shown(t, tier->v[tier->of[server]]));
	else
		tier->of[server] = (uint32_t)tier->n - 1;
}

static void read_tier(struct rank_table *t, const struct tier_kind *k, const struct ap_map *ids,
	struct rank_tier *tier)
{
	const struct ap_jv *list;
	struct ap_map *names;

	if (!ap_jv_get(t->root, k->list))
		return;
	list = read_list(t, t->root, k->list);
	if (!list)
		return;
	tier->of = AP_NEW_N(t->ctx->arena, uint32_t, t->servers.n);
	for (size_t s = 0; s < t->servers.n; s++)
		tier->of[s] = AP_NONE;
	names = ap_map_create(t->ctx->arena);
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		const struct ap_jv *servers;

		if (!is_object(t, v, "an entry") || !add_tier(t, k, names, v, tier))
			continue;
		servers = read_list(t, v, "server_list");
		for (const struct ap_jv *s = servers ? ap_jv_first(servers) : NULL; s;
			s = ap_jv_next(s))
			if (is_object(t, s, "a server"))
				add_server(t, k, ids, s, tier);
	}
	for (size_t s = 0; s < t->servers.n && t->status == AP_OK; s++)
		if (tier->of[s] == AP_NONE)
			fault(t, list, k->check_server, "server \"%s\" is in no %s",
				shown(t, t->servers.v[s]), k->what);
}

/* Reads super_pod_list (if with_pods) and cluster_list, if present: objects with a name and a
 * server_list of names in ids, whose ids are server indices. Every server must be in exactly one of
 * each. */
static void tiers(struct rank_table *t, const struct ap_map *ids, bool with_pods)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	uint32_t *n, *cluster; /* per pod: servers; its cluster, from 1 */

	if (with_pods)
		read_tier(t, &pods, ids, &t->pod);
	read_tier(t, &clusters, ids, &t->cluster);
	n = AP_NEW_N(t->ctx->scratch, uint32_t, t->pod.n + 1);
	cluster = AP_NEW_N(t->ctx->scratch, uint32_t, t->pod.n + 1);
	for (size_t s = 0; s < t->servers.n && t->status == AP_OK && t->pod.of; s++)
		n[t->pod.of[s]]++;
	for (size_t p = 1; p < t->pod.n && t->status == AP_OK && t->pod.of; p++)
		if (n[p] != n[0])
			fault(t, ap_jv_get(t->root, pods.list), "pod-equal", /* required by HCCL */
				"super pod \"%s\" holds %" PRIu32 " servers, but \"%s\" holds %"
				PRIu32, shown(t, t->pod.v[p]), n[p], shown(t, t->pod.v[0]), n[0]);
	for (size_t s = 0; s < t->servers.n && t->status == AP_OK && t->pod.of && t->cluster.of; s++) {
		uint32_t *c = &cluster[t->pod.of[s]], is = t->cluster.of[s] + 1;

		if (*c && *c != is)
			fault(t, ap_jv_get(t->root, clusters.list), "cluster-pod",
				"super pod \"%s\" lies in two clusters", shown(t, t->pod.v[t->pod.of[s]]));
		*c = is;
	}
	ap_arena_release(t->ctx->scratch, mark);
}

enum { NODE, SUPER_POD_ID, NLAYER = 8 }; /* network layers; those above SUPER_POD_ID are unused */

struct lists {
	struct rank_table *t;
	struct ap_map *nodes, *pods;
	const struct ap_jv *with_pod, *without_pod;
};

/* Reads a rank's instance in each layer, NULL if none. Returns false after a report. */
static bool read_layers(
	struct rank_table *t, const struct ap_jv *list, const char *name[NLAYER])
{
	bool good = true;

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		int64_t layer = 0;
		const char *id;

		if (!is_object(t, v, "a level") ||
			!read_int(t, v, "net_layer", 0, NLAYER - 1, false, &layer)) {
			good = false;
			continue;
		}
		id = read_name(t, v, "net_instance_id", "net-instance");
		if (id && name[layer])
			fault(t, v, "net-layer", "net_layer %d is given twice",
				(int)layer);
		good &= id && !name[layer];
		name[layer] = id;
	}
	return good;
}

static void parse_rank(struct lists *x, const struct ap_jv *rank)
{
	struct rank_table *t = x->t;
	const struct ap_jv *list = read_list(t, rank, "level_list");
	const char *name[NLAYER] = {NULL};
	int64_t ignored;
	uint32_t node;
	bool fresh;

	read_int(t, rank, "local_id", 0, AP_MAX_DEVICES - 1, true, &ignored);
	if (!list || !read_layers(t, list, name))
		return;
	if (!name[NODE]) {
		fault(t, list, "net-layer", "no net_layer 0, which tells the node");
		return;
	}
	node = ap_map_put_str(x->nodes, name[NODE], &fresh);
	if (fresh) {
		AP_PUSH(t->ctx->arena, t->servers, name[NODE]);
		t->pod.of[node] = AP_NONE;
	}
	*(name[SUPER_POD_ID] ? &x->with_pod : &x->without_pod) = rank;
	if (name[SUPER_POD_ID]) {
		ap_id pod = ap_map_put_str(x->pods, name[SUPER_POD_ID], &fresh);

		if (fresh)
			AP_PUSH(t->ctx->arena, t->pod, name[SUPER_POD_ID]);
		if (t->pod.of[node] == AP_NONE)
			t->pod.of[node] = pod;
		else if (t->pod.of[node] != pod)
			fault(t, rank, "net-layer",
				"in \"%s\" at net_layer 1, but others of its node \"%s\" are not",
				shown(t, name[SUPER_POD_ID]), shown(t, t->servers.v[node]));
	}
	add_card(t, rank, rank, node);
}

static void parse_2_0(struct rank_table *t)
{
	struct lists x = {.t = t, .nodes = ap_map_create(t->ctx->arena),
		.pods = ap_map_create(t->ctx->arena)};
	const struct ap_jv *ranks;

	check_status(t);
	t->last_device_id = AP_MAX_DEVICES - 1;
	ranks = read_list(t, t->root, "rank_list");
	if (!ranks)
		return;
	t->pod.of = AP_NEW_N(t->ctx->arena, uint32_t, ap_jv_count(ranks));
	check_count(t, t->root, "rank_count", ap_jv_count(ranks), "ranks");
	for (const struct ap_jv *v = ap_jv_first(ranks); v; v = ap_jv_next(v))
		if (is_object(t, v, "a rank"))
			parse_rank(&x, v);
	if (x.with_pod && x.without_pod)
		fault(t, x.without_pod, "net-layer",
			"no net_layer 1 here, but other ranks have one; all or none must");
	if (!x.with_pod)
		t->pod.of = NULL;
}

/* Adds a server; its id in the map is its index. Documents mask addresses ("10.*.*.*"), so equal
 * masked ids are no clash: later ones get a key that no table can contain. */
static bool add_listed_server(
	struct rank_table *t, struct ap_map *ids, const struct ap_jv *obj, uint32_t *number)
{
	const char *id = read_name(t, obj, "server_id", "server-id");
	const struct ap_jv *at = ap_jv_get(obj, "server_id");
	bool fresh;

	if (!id)
		return false;
	*number = ap_map_put_str(ids, id, &fresh);
	if (!fresh && !strchr(id, '*')) {
		fault(t, at, "server-unique", "server \"%s\" is listed twice", shown(t, id));
		return false;
	}
	if (!fresh) {
		struct {
			char nul[4];
			uint32_t n;
		} key = {"", (uint32_t)t->servers.n};

		*number = ap_map_put(ids, &key, sizeof key, NULL);
		warn(t, at, "server-masked",
			"masked server id \"%s\" again; taken for another server", shown(t, id));
	}
	AP_PUSH(t->ctx->arena, t->servers, id);
	return true;
}

static void parse_server(struct rank_table *t, struct ap_map *ids, const struct ap_jv *server,
	bool in_pod)
{
	const struct ap_jv *devices;
	uint32_t number = 0;
	bool named = add_listed_server(t, ids, server, &number);

	devices = read_list(t, server, "device");
	for (const struct ap_jv *d = devices ? ap_jv_first(devices) : NULL; d; d = ap_jv_next(d))
		if (is_object(t, d, "a device") && named) {
			struct ap_card *card;
			int64_t id = -1;
			static const char *const ports[] = {"device_port", "host_port",
				"backup_device_port"};
			int64_t ignored;

			for (size_t i = 0; i < AP_COUNT(ports); i++)
				read_int(t, d, ports[i], 1, 65535, true, &ignored);
			if (in_pod)
				read_int(t, d, "super_device_id", 0, UINT32_MAX, false, &id);
			card = add_card(t, d, d, number);
			if (card)
				card->super_device_id = id;
		}
}

static void parse_servers(struct rank_table *t, struct ap_map *ids, bool in_pod)
{
	const struct ap_jv *servers;
	const struct ap_jv *with = NULL, *without = NULL;

	check_status(t);
	t->job_wide_ids = ap_jv_get(t->root, "cluster_list") != NULL;
	if (t->job_wide_ids)
		t->last_device_id = AP_MAX_DEVICES - 1;
	servers = read_list(t, t->root, "server_list");
	if (!servers)
		return;
	check_count(t, t->root, "server_count", ap_jv_count(servers), "servers");
	for (const struct ap_jv *s = ap_jv_first(servers); s; s = ap_jv_next(s))
		if (is_object(t, s, "a server"))
			parse_server(t, ids, s, in_pod);
	/* host_ip makes the host's cards the network: all servers have it, or none */
	for (const struct ap_jv *s = ap_jv_first(servers); s; s = ap_jv_next(s))
		if (ap_jv_get(s, "host_ip"))
			with = s;
		else
			without = s;
	if (with && without)
		fault(t, without, "host-ip",
			"no \"host_ip\" here, but other servers have one; all or none must");
	t->needs_ips = t->servers.n > 1;
}

static void parse_1_0(struct rank_table *t)
{
	struct ap_map *ids = ap_map_create(t->ctx->arena);

	parse_servers(t, ids, false);
	tiers(t, ids, false);
}

static void parse_1_2(struct rank_table *t)
{
	struct ap_map *ids = ap_map_create(t->ctx->arena);

	parse_servers(t, ids, ap_jv_get(t->root, "super_pod_list") != NULL);
	tiers(t, ids, true);
	if (t->status == AP_OK && t->pod.of) {
		struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
		struct ap_map *seen = ap_map_create(t->ctx->scratch);

		/* super_device_id is unique in its super pod */
		for (size_t i = 0; i < t->cards.n; i++) {
			const struct ap_card *c = &t->cards.v[i];
			int64_t key[2] = {t->pod.of[c->server], c->super_device_id};
			bool fresh;

			ap_map_put(seen, key, sizeof key, &fresh);
			if (!fresh)
				fault(t, ap_jv_get(c->at, "super_device_id"),
					"super-device-unique",
					"super_device_id is given twice in super pod \"%s\"",
					shown(t, t->pod.v[key[0]]));
		}
		ap_arena_release(t->ctx->scratch, mark);
	}
	if (t->pod.of)
		t->needs_ips = t->pod.n > 1; /* a single pod has its own links */
}

/* State while groups are read. */
struct groups {
	struct rank_table *t;
	struct ap_map *servers, *names, *pods; /* of all groups */
};

static void require_keys(
	struct rank_table *t, const struct ap_jv *group, const char *const *needed)
{
	for (; *needed; needed++)
		if (!ap_jv_get(group, *needed))
			fault(t, group, "key-missing", "no \"%s\"", *needed);
}

static bool find_server(struct groups *x, const struct ap_jv *instance, uint32_t *number)
{
	const char *id = read_name(x->t, instance, "server_id", "server-id");
	bool fresh;

	if (!id)
		return false;
	*number = ap_map_put_str(x->servers, id, &fresh);
	if (fresh)
		AP_PUSH(x->t->ctx->arena, x->t->servers, id);
	return true;
}

static void parse_groups(struct groups *x, void (*parse)(struct groups *x, const struct ap_jv *group))
{
	struct rank_table *t = x->t;
	const struct ap_jv *groups;

	x->servers = ap_map_create(t->ctx->arena);
	x->names = ap_map_create(t->ctx->arena);
	x->pods = ap_map_create(t->ctx->arena);
	check_status(t);
	groups = read_list(t, t->root, "group_list");
	if (!groups)
		return;
	check_count(t, t->root, "group_count", ap_jv_count(groups), "groups");
	for (const struct ap_jv *g = ap_jv_first(groups); g; g = ap_jv_next(g))
		if (is_object(t, g, "a group")) {
			const char *name = read_text(t, g, "group_name");
			bool fresh;

			ap_map_put_str(x->names, name, &fresh);
			if (!fresh)
				fault(t, ap_jv_get(g, "group_name"), "group-unique",
					"group \"%s\" is listed twice", shown(t, name));
			parse(x, g);
		}
	t->needs_ips = t->servers.n > 1;
}

/* ---- lab: an instance is a card with its rank ---- */

static void parse_lab_group(struct groups *x, const struct ap_jv *group)
{
	static const char *const needed[] = {"device_num", "server_num", "instance_count", NULL};
	struct rank_table *t = x->t;
	struct ap_map *here = ap_map_create(t->ctx->arena); /* servers of this group */
	const struct ap_jv *instances = read_list(t, group, "instance_list");

	require_keys(t, group, needed);
	if (!instances)
		return;
	for (const struct ap_jv *v = ap_jv_first(instances); v; v = ap_jv_next(v)) {
		const struct ap_jv *devices;
		uint32_t server;

		if (!is_object(t, v, "an instance"))
			continue;
		devices = read_list(t, v, "devices");
		if (!find_server(x, v, &server) || !devices)
			continue;
		ap_map_put(here, &server, sizeof server, NULL);
		if (ap_jv_count(devices) != 1)
			fault(t, devices, "instance-device",
				"%zu devices; an instance has one, that its rank_id is for",
				ap_jv_count(devices));
		else if (is_object(t, ap_jv_first(devices), "a device"))
			add_card(t, ap_jv_first(devices), v, server);
	}
	check_count(t, group, "device_num", ap_jv_count(instances), "instances");
	check_count(t, group, "instance_count", ap_jv_count(instances), "instances");
	if (t->status == AP_OK)
		check_count(t, group, "server_num", ap_map_size(here), "different server_id");
}

static void parse_lab(struct rank_table *t)
{
	const struct ap_jv *nic = ap_jv_get(t->root, "para_plane_nic_location");
	struct groups x = {.t = t};

	if (!nic)
		fault(t, t->root, "key-missing", "no \"para_plane_nic_location\"");
	else if (strcmp(read_text(t, t->root, "para_plane_nic_location"), "device") != 0)
		fault(
			t, nic, "nic-location", "para_plane_nic_location must be \"device\"");
	parse_groups(&x, parse_lab_group);
}

/* ---- cloud: an instance is a container of cards; their order gives ranks ---- */

static void parse_cloud_group(struct groups *x, const struct ap_jv *group)
{
	static const char *const needed[] = {"device_count", "instance_count", NULL};
	struct rank_table *t = x->t;
	const struct ap_jv *instances = read_list(t, group, "instance_list");
	size_t devices = 0;

	require_keys(t, group, needed);
	if (!instances)
		return;
	for (const struct ap_jv *v = ap_jv_first(instances); v; v = ap_jv_next(v)) {
		const struct ap_jv *list;
		const char *pod;
		uint32_t server;
		bool fresh = true;

		if (!is_object(t, v, "an instance"))
			continue;
		pod = read_text(t, v, "pod_name");
		list = read_list(t, v, "devices");
		if (*pod)
			ap_map_put_str(x->pods, pod, &fresh);
		if (!fresh)
			fault(t, ap_jv_get(v, "pod_name"), "pod-name", "pod_name \"%s\" is given twice",
				shown(t, pod));
		if (!find_server(x, v, &server) || !list)
			continue;
		for (const struct ap_jv *d = ap_jv_first(list); d; d = ap_jv_next(d))
			if (is_object(t, d, "a device"))
				add_card(t, d, NULL, server);
		devices += ap_jv_count(list);
	}
	check_count(t, group, "instance_count", ap_jv_count(instances), "instances");
	if (t->status == AP_OK)
		check_count(t, group, "device_count", devices, "devices");
}

struct ordered_server {
	const char *id;
	uint32_t server;
};

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct ordered_server *)a)->id, ((const struct ordered_server *)b)->id);
}

/* Sort key: position of the server by name, then device. */
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

static void parse_cloud(struct rank_table *t)
{
	struct groups x = {.t = t};

	parse_groups(&x, parse_cloud_group);
	if (t->cards.n) {
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
}

static const struct rank_form forms[] = {
	{"lab", NULL, "deploy_mode", NULL, AP_RANK_LAB, parse_lab, NULL},
	{"cloud", NULL, "group_list", "deploy_mode", AP_RANK_CLOUD, parse_cloud, NULL},
	{"1.0", "1.0", NULL, NULL, AP_RANK_1_0, parse_1_0, NULL},
	{"1.1", "1.1", NULL, NULL, 0, NULL, "they describe jobs of CPUs beside devices"},
	{"1.2", "1.2", NULL, NULL, AP_RANK_1_2, parse_1_2, NULL},
	{"2.0", "2.0", NULL, NULL, AP_RANK_2_0, parse_2_0, NULL},
};

static bool recognise(const struct rank_form *f, const struct ap_jv *root)
{
	const struct ap_jv *v = ap_jv_get(root, "version");

	if (!f->version != !v || (v && (ap_jv_type(v) != AP_JSTRING || strcmp(ap_jv_str(v), f->version))))
		return false;
	return (!f->has || ap_jv_get(root, f->has)) && (!f->lacks || !ap_jv_get(root, f->lacks));
}

/* "lab, 1.0": names of all forms, or of readable ones. */
static const char *form_names(struct ap_ctx *ctx, bool readable)
{
	struct ap_str b;

	ap_str_init(&b, ctx->arena);
	for (size_t i = 0; i < AP_COUNT(forms); i++)
		if (forms[i].parse || !readable)
			ap_str_addf(&b, "%s%s", b.len ? ", " : "", forms[i].name);
	return b.s;
}

/* Finds the form, or reports what the document is instead. */
static enum ap_status find_form(
	struct ap_ctx *ctx, const struct ap_json *doc, const struct rank_form **out)
{
	const struct ap_jv *root = ap_json_root(doc), *at = root;
	const struct ap_jv *schema = ap_jv_get(root, "schema"),
			   *version = ap_jv_get(root, "version");
	const char *known = form_names(ctx, false), *text;

	if (ap_jv_type(root) != AP_JOBJECT)
		return ap_json_report(ctx, doc, root, AP_ERROR, AP_MEANING, NULL, "form-known",
			"a rank table is an object");
	if (ap_jv_get(root, "server_list") && ap_jv_get(root, "group_list"))
		return ap_json_report(ctx, doc, root, AP_ERROR, AP_MEANING, NULL, "form-mixed",
			"both \"server_list\" and \"group_list\": the table mixes two forms");
	for (size_t i = 0; i < AP_COUNT(forms); i++)
		if (recognise(&forms[i], root)) {
			*out = &forms[i];
			return AP_OK;
		}
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

enum ap_status ap_topo_load(struct ap_ctx *ctx, const struct ap_json *doc, const char *sha256,
	const struct ap_topo **out)
{
	struct rank_table table = {
		.ctx = ctx, .doc = doc, .root = ap_json_root(doc), .chip_info = "",
		.last_device_id = AP_LAST_DEVICE_ID};
	const struct ap_jv *version = ap_jv_get(table.root, "version");
	const struct rank_form *form = NULL;

	AP_TRY(find_form(ctx, doc, &form));
	if (!form->parse)
		return ap_json_report(ctx, doc, version ? version : table.root, AP_ERROR,
			AP_MEANING, NULL, "form-read",
			"rank tables of form %s are not read: %s; those of the forms %s are",
			form->name, form->why_not, form_names(ctx, true));
	table.form = form->name;
	check_keys(&table, form->top);
	form->parse(&table);
	AP_TRY(table.status);
	return finish(&table, sha256, out);
}
