/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of Ascend's collective library for the devices of a job, by chip family. */
#include "hw/hccl.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"

/* Ascend 910: legal sets of four devices, as masks: a group of four, or two pairs i and i + 4. */
static const uint8_t fours[] = {
	0x0F, /* 0 1 2 3 */
	0xF0, /* 4 5 6 7 */
	0x33, /* 0 1 4 5 */
	0x55, /* 0 2 4 6 */
	0x99, /* 0 3 4 7 */
	0x66, /* 1 2 5 6 */
	0xAA, /* 1 3 5 7 */
	0xCC, /* 2 3 6 7 */
};

struct rules {
	struct ap_ctx *ctx;
	const struct ap_topo *t;
	const struct family *family;
	enum ap_level level;
	enum ap_status status; /* of the first fault */
};

/* The devices of a job on one server. */
struct server {
	struct rules *x;
	uint32_t index, cards;
	unsigned ids; /* mask of devices within the family's range */
};

static void fault(const struct server *s, const char *check, const char *text)
{
	struct rules *x = s->x;
	struct ap_where where = {.file = *x->t->name ? x->t->name : NULL};
	enum ap_status st = ap_diag_add(x->ctx->diag, x->level, AP_MEANING, &where, check,
		"server \"%s\": %s", ap_diag_name(x->ctx->diag, x->t->server[s->index]), text);

	if (x->status == AP_OK)
		x->status = st;
}

/* Reports "device ids 0, 1, 4; rule", with the first 16 ids. */
static void fault_ids(const struct server *s, const char *check, const char *rule)
{
	const struct ap_topo *t = s->x->t;
	struct ap_str b;
	int n = 0;

	ap_str_init(&b, s->x->ctx->arena);
	for (uint32_t r = t->first[s->index]; r != AP_NONE && n < 16; r = t->place[r].next, n++)
		ap_str_addf(&b, "%s%" PRId32, n ? ", " : "device ids ", t->place[r].device_id);
	ap_str_addf(&b, "%s; %s", n == 16 && s->cards > 16 ? ", ..." : "", rule);
	fault(s, check, b.s);
}

static void fault_cards(const struct server *s, const char *rule)
{
	fault(s, "hccl-cards",
		ap_arena_printf(s->x->ctx->arena, "%" PRIu32 " card%s; %s", s->cards,
			s->cards == 1 ? "" : "s", rule));
}

/* ---- Ascend 910: two groups of four ---- */

static void count_910(const struct server *s)
{
	uint32_t n = s->cards;

	if (s->x->t->nserver > 1 && n != 8)
		fault_cards(s, "HCCL on Ascend 910 takes 8 on each of several servers");
	else if (s->x->t->nserver == 1 && n != 1 && n != 2 && n != 4 && n != 8)
		fault_cards(s, "HCCL on Ascend 910 takes 1, 2, 4 or 8 on one server");
}

static void set_910(const struct server *s)
{
	bool legal = s->cards != 4;

	for (size_t i = 0; i < sizeof fours; i++)
		legal |= s->ids == fours[i];
	if (s->cards == 2 && s->ids & 0xF0 && s->ids & 0x0F)
		fault_ids(s, "hccl-group",
			"HCCL on Ascend 910 takes two inside 0-3 or inside 4-7");
	else if (!legal)
		fault_ids(s, "hccl-group",
			"HCCL on Ascend 910 takes 0-3, 4-7, or two pairs i and i + 4");
}

/* ---- Ascend 910B: servers of 8, or of 16 in two modules ---- */

static void set_910b(const struct server *s)
{
	unsigned low = s->ids & 0xFF, high = s->ids >> 8;

	if (low && high && low != high)
		fault_ids(s, "hccl-module",
			"HCCL on Ascend 910B takes devices of both modules, 0-7 and 8-15, only "
			"in pairs i and i + 8");
}

/* ---- Atlas A3: devices 2 i and 2 i + 1 are the dies of one NPU ---- */

static void count_910_93(const struct server *s)
{
	if (s->cards > 1 && s->cards % 2)
		fault_cards(s, "HCCL on Atlas A3 takes 1 or an even number up to 16 on a server");
}

static void set_910_93(const struct server *s)
{
	unsigned even = s->ids & 0x5555, odd = s->ids >> 1 & 0x5555;

	if (s->cards % 2 == 0 && even != odd)
		fault_ids(s, "hccl-pair",
			"HCCL on Atlas A3 takes both devices, 2 i and 2 i + 1, of each NPU");
}

static const struct family {
	const char *name, *title;
	uint32_t devices; /* per server */
	void (*count)(const struct server *s); /* NULL: any number */
	void (*set)(const struct server *s); /* of ids in range */
} families[] = {
	{"910", "Ascend 910", 8, count_910, set_910},
	{"910b", "Ascend 910B", 16, NULL, set_910b},
	{"910_93", "Atlas A3", 16, count_910_93, set_910_93},
};

static const struct family *find(const char *name)
{
	for (size_t i = 0; i < AP_COUNT(families); i++)
		if (strcmp(families[i].name, name) == 0)
			return &families[i];
	return NULL;
}

bool ap_hccl_known(const char *family)
{
	return find(family) != NULL;
}

static void check_server(struct rules *x, uint32_t server, const uint32_t *local)
{
	struct server s = {.x = x, .index = server};
	bool in_range = true;

	for (uint32_t r = x->t->first[server]; r != AP_NONE; r = x->t->place[r].next) {
		s.cards++;
		if (local[r] < x->family->devices)
			s.ids |= 1u << local[r];
		else
			in_range = false;
	}
	if (x->family->count)
		x->family->count(&s);
	if (in_range)
		x->family->set(&s);
	else
		fault_ids(&s, "hccl-device-id",
			ap_arena_printf(x->ctx->arena, "a server of %s has 0 to %" PRIu32,
				x->family->title, x->family->devices - 1));
}

enum ap_status ap_hccl_check(
	struct ap_ctx *ctx, const struct ap_topo *t, const char *family, bool as_warning)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct rules x = {ctx, t, find(family), as_warning ? AP_WARNING : AP_ERROR, AP_OK};
	const uint32_t *local;

	if (!x.family)
		return AP_OK;
	local = ap_topo_local_ids(ctx->scratch, t);
	for (uint32_t s = 0; s < t->nserver; s++)
		check_server(&x, s, local);
	ap_arena_release(ctx->scratch, mark);
	return x.status;
}
