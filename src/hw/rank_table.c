/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/rank_table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"

enum { NAME_BYTES = 64 };

static void note_status(struct ap_rank_table *t, enum ap_status st)
{
	if (t->status == AP_OK)
		t->status = st;
}

void ap_rank_table_fault(
	struct ap_rank_table *t, const struct ap_jv *v, const char *check, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note_status(t, ap_json_reportv(t->ctx, t->doc, v, AP_ERROR, AP_MEANING, NULL, check, fmt, ap));
	va_end(ap);
}

void ap_rank_table_warn(
	struct ap_rank_table *t, const struct ap_jv *v, const char *check, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note_status(t, ap_json_reportv(t->ctx, t->doc, v, AP_WARNING, AP_OK, NULL, check, fmt, ap));
	va_end(ap);
}

void ap_rank_table_note(
	struct ap_rank_table *t, const struct ap_jv *v, const char *check, const char *text)
{
	note_status(t, ap_json_report(t->ctx, t->doc, v, AP_NOTE, AP_OK, NULL, check, "%s", text));
}

bool ap_rank_table_int(struct ap_rank_table *t, const struct ap_jv *obj, const char *key,
	int64_t lo, int64_t hi, bool optional, int64_t *r)
{
	const struct ap_jv *v = ap_jv_get(obj, key);
	int64_t n = lo;
	bool good;

	if (!v) {
		if (!optional)
			ap_rank_table_fault(t, obj, "key-missing", "no \"%s\"", key);
		return optional;
	}
	if (ap_jv_type(v) == AP_JSTRING)
		good = ap_parse_int(ap_jv_str(v), lo, hi, &n);
	else
		good = ap_jv_int(t->doc, v, &n) && n >= lo && n <= hi;
	if (good)
		*r = n;
	else
		ap_rank_table_fault(t, v, "id-integer",
			"%s must be an integer from %" PRId64 " to %" PRId64 ", in decimal digits",
			key, lo, hi);
	return good;
}

const struct ap_jv *ap_rank_table_list(
	struct ap_rank_table *t, const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *list;
	enum ap_status st = ap_json_get_arr(t->ctx, t->doc, obj, key, &list);

	note_status(t, st);
	if (st != AP_OK)
		return NULL;
	if (!ap_jv_first(list)) {
		ap_rank_table_fault(t, list, "list-empty", "%s is empty", key);
		return NULL;
	}
	return list;
}

void ap_rank_table_count(struct ap_rank_table *t, const struct ap_jv *obj, const char *key,
	size_t n, const char *what)
{
	int64_t said = (int64_t)n;

	if (ap_rank_table_int(t, obj, key, 1, AP_MAX_DEVICES, true, &said) && said != (int64_t)n)
		ap_rank_table_fault(t, ap_jv_get(obj, key), "count-match",
			"%s is %" PRId64 ", but there are %zu %s", key, said, n, what);
}

const char *ap_rank_table_name(
	struct ap_rank_table *t, const struct ap_jv *obj, const char *key, const char *check)
{
	const struct ap_jv *v = ap_jv_get(obj, key);
	const char *name = "";
	int64_t n;

	if (!v) {
		ap_rank_table_fault(t, obj, "key-missing", "no \"%s\"", key);
		return NULL;
	}
	if (ap_jv_type(v) == AP_JSTRING)
		name = ap_jv_str(v);
	else if (ap_jv_int(t->doc, v, &n))
		name = ap_arena_printf(t->ctx->arena, "%" PRId64, n);
	if (!*name || strlen(name) > NAME_BYTES) {
		ap_rank_table_fault(t, v, check, "%s must be a string of 1 to %d bytes", key,
			NAME_BYTES);
		return NULL;
	}
	return name;
}

const char *ap_rank_table_text(struct ap_rank_table *t, const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *v = ap_jv_get(obj, key);

	if (!v)
		return "";
	if (ap_jv_type(v) == AP_JSTRING)
		return ap_jv_str(v);
	ap_rank_table_fault(t, v, "key-type", "%s must be a string", key);
	return "";
}

bool ap_rank_table_is_object(struct ap_rank_table *t, const struct ap_jv *v, const char *what)
{
	if (ap_jv_type(v) == AP_JOBJECT)
		return true;
	ap_rank_table_fault(t, v, "key-type", "%s must be an object", what);
	return false;
}

void ap_rank_table_check_status(struct ap_rank_table *t)
{
	const char *status = ap_rank_table_text(t, t->root, "status");

	if (strcmp(status, "completed") != 0)
		ap_rank_table_warn(t, *status ? ap_jv_get(t->root, "status") : t->root,
			"status-completed", "status \"%s\"; HCCL waits until it is \"completed\"",
			ap_diag_name(t->ctx->diag, status));
}

struct ap_card *ap_rank_table_card(struct ap_rank_table *t, const struct ap_jv *device,
	const struct ap_jv *ranked, uint32_t server)
{
	struct ap_card c = {.server = server, .super_device_id = -1, .ip = "", .at = device};
	const struct ap_jv *ip = ap_jv_get(device, "device_ip");
	bool good = true;

	good &= ap_rank_table_int(
		t, device, "device_id", 0, t->last_device_id, false, &c.device_id);
	if (ranked)
		good &= ap_rank_table_int(
			t, ranked, "rank_id", 0, AP_MAX_DEVICES - 1, false, &c.rank);
	if (ip && ap_jv_type(ip) != AP_JSTRING)
		ap_rank_table_fault(t, ip, "key-type", "device_ip must be a string");
	else if (ip)
		c.ip = ap_jv_str(ip);
	if (!good)
		return NULL;
	AP_PUSH(t->ctx->arena, t->cards, c);
	return &t->cards.v[t->cards.n - 1];
}

/* Says where the first of two stands that must differ. */
static void clash(struct ap_rank_table *t, const struct ap_card *first,
	const struct ap_card *second, const char *check, const char *text)
{
	ap_rank_table_fault(t, second->at, check, "%s", text);
	ap_rank_table_note(t, first->at, check, "it is first here");
}

/* The card of each rank, where ranks are 0..n-1 (one beyond leaves a gap below). */
static const struct ap_card **by_rank(struct ap_rank_table *t)
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
		ap_rank_table_fault(t, t->root, "rank-gap",
			"%zu cards, but no rank %zu%s; ranks must be 0 to %zu", n, gap,
			missing > 1 ? " (and more are missing)" : "", n - 1);
	return card;
}

static void check_device_ids(struct ap_rank_table *t)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	struct ap_map *seen = ap_map_create(t->ctx->scratch);
	uint32_t *first = AP_NEW_N(t->ctx->scratch, uint32_t, t->cards.n);

	for (uint32_t i = 0; i < t->cards.n; i++) {
		const struct ap_card *c = &t->cards.v[i];
		int64_t key[2] = {c->server, c->device_id};
		bool fresh;
		ap_id id = ap_map_put(seen, key, sizeof key, &fresh);

		if (fresh)
			first[id] = i;
		else
			clash(t, &t->cards.v[first[id]], c, "device-unique",
				ap_arena_printf(t->ctx->arena,
					"device_id %" PRId64 " is given twice on server \"%s\"",
					c->device_id,
					ap_diag_name(t->ctx->diag, t->servers.v[c->server])));
	}
	ap_arena_release(t->ctx->scratch, mark);
}

/* Numbers devices in their super pods where the table does not. */
static void number_in_pods(struct ap_rank_table *t, struct ap_topo *topo, struct ap_place *place)
{
	int64_t *n = AP_NEW_N(t->ctx->arena, int64_t, topo->pod.n);

	for (uint32_t r = 0; r < topo->ndev; r++) {
		uint32_t pod = topo->pod.of[place[r].server];

		if (place[r].super_device_id < 0)
			place[r].super_device_id = n[pod]++;
	}
}

/* Servers in order of their lowest ranks. */
static void place_ranks(
	struct ap_rank_table *t, const struct ap_card *const *card, struct ap_topo *topo)
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
	ap_rank_table_place_tier(t, &t->pod, number, topo, &topo->pod);
	ap_rank_table_place_tier(t, &t->cluster, number, topo, &topo->cluster);
	if (topo->pod.n)
		number_in_pods(t, topo, place);
}

/* Are the ids of the devices of a job over several clusters numbers in the job, or in servers? */
static bool ids_are_job_wide(struct ap_rank_table *t)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	struct ap_map *seen = ap_map_create(t->ctx->scratch);
	bool fresh = t->job_wide_ids && t->servers.n > 1;

	for (size_t i = 0; i < t->cards.n && fresh; i++)
		ap_map_put(seen, &t->cards.v[i].device_id, sizeof t->cards.v[i].device_id, &fresh);
	ap_arena_release(t->ctx->scratch, mark);
	return fresh;
}

/* What is legal, but worth a word. */
static void remark_shape(struct ap_rank_table *t, const struct ap_topo *topo)
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
		ap_rank_table_warn(t, t->root, "server-equal",
			"the servers do not hold equal numbers of cards");
	if (changes >= topo->nserver)
		ap_rank_table_note(t, t->root, "rank-contiguous",
			"the ranks of a server do not follow one another; groups are priced as "
			"they lie");
	if (topo->ndev > AP_MINDSPORE_DEVICES)
		ap_rank_table_note(t, t->root, "device-limit",
			"MindSpore itself runs at most 4096 devices");
}

enum ap_status ap_rank_table_finish(
	struct ap_rank_table *t, const char *sha256, const struct ap_topo **out)
{
	struct ap_topo *topo = AP_NEW(t->ctx->arena, struct ap_topo);
	const struct ap_card **card;

	if (t->cards.n > AP_MAX_DEVICES)
		return ap_json_report(t->ctx, t->doc, t->root, AP_ERROR, AP_MEANING, NULL,
			"device-count", "%zu cards; at most %d are planned for", t->cards.n,
			AP_MAX_DEVICES);
	check_device_ids(t);
	ap_rank_table_check_ips(t);
	card = by_rank(t);
	AP_TRY(t->status);
	*topo = (struct ap_topo){
		.name = ap_file_base(ap_json_file(t->doc)),
		.sha256 = sha256,
		.form = t->form,
		.chip_info = t->chip_info,
		.ndev = (uint32_t)t->cards.n,
		.job_wide_ids = ids_are_job_wide(t),
	};
	place_ranks(t, card, topo);
	remark_shape(t, topo);
	*out = topo;
	return t->status;
}
