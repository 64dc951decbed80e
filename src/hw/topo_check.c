/* SPDX-License-Identifier: Apache-2.0 */
/* What the collective library of the Ascend 910 demands of the cards of a job. */
#include <inttypes.h>

#include "base/arena.h"
#include "base/str.h"
#include "hw/topo.h"

/* Legal sets of four device ids, bit per id: one group of four, or two pairs i and i + 4. */
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
	enum ap_level level;
	enum ap_status status; /* of the first fault */
};

static void fault(struct rules *x, const char *check, uint32_t server, const char *text)
{
	struct ap_where where = {.file = *x->t->name ? x->t->name : NULL};
	enum ap_status st = ap_diag_add(x->ctx->diag, x->level, AP_MEANING, &where, check,
		"server \"%s\": %s", ap_diag_name(x->ctx->diag, x->t->server[server]), text);

	if (x->status == AP_OK)
		x->status = st;
}

/* "0, 1, 4": device ids of a server, the first few of them. */
static const char *ids_text(struct rules *x, uint32_t server)
{
	const struct ap_topo *t = x->t;
	struct ap_str b;
	int n = 0;

	ap_str_init(&b, x->ctx->arena);
	for (uint32_t r = t->first[server]; r != AP_NONE && n < 16; r = t->place[r].next, n++)
		ap_str_addf(&b, "%s%" PRId32, n ? ", " : "", t->place[r].device_id);
	if (n == 16)
		ap_str_add(&b, ", ...");
	return b.s;
}

static bool legal_count(const struct ap_topo *t, uint32_t cards)
{
	return t->nserver > 1 ? cards == 8 : cards == 1 || cards == 2 || cards == 4 || cards == 8;
}

static bool legal_set(uint32_t cards, unsigned ids)
{
	if (cards == 2)
		return !(ids & 0xF0) || !(ids & 0x0F);
	for (size_t i = 0; cards == 4 && i < sizeof fours; i++)
		if (ids == fours[i])
			return true;
	return cards != 4;
}

static void check_count(struct rules *x, uint32_t server, uint32_t cards)
{
	const char *legal =
		x->t->nserver > 1 ? "8 on each of several servers" : "1, 2, 4 or 8 on one server";

	if (!legal_count(x->t, cards))
		fault(x, "hccl-cards", server,
			ap_arena_printf(x->ctx->arena,
				"%" PRIu32 " cards; HCCL on Ascend 910 takes %s", cards, legal));
}

static void check_ids(struct rules *x, uint32_t server, uint32_t cards, unsigned ids, bool in_range)
{
	const char *legal =
		cards == 2 ? "two inside 0-3 or inside 4-7" : "0-3, 4-7, or two pairs i and i + 4";

	if (!in_range)
		fault(x, "hccl-device-id", server,
			ap_arena_printf(x->ctx->arena,
				"device ids %s; an Ascend 910 server has 0 to 7",
				ids_text(x, server)));
	else if (!legal_set(cards, ids))
		fault(x, "hccl-group", server,
			ap_arena_printf(x->ctx->arena, "device ids %s; HCCL on Ascend 910 takes %s",
				ids_text(x, server), legal));
}

static void check_server(struct rules *x, uint32_t server)
{
	uint32_t cards = 0;
	unsigned ids = 0;
	bool in_range = true;

	for (uint32_t r = x->t->first[server]; r != AP_NONE; r = x->t->place[r].next) {
		int32_t id = x->t->place[r].device_id;

		cards++;
		if (id < 0 || id > 7)
			in_range = false;
		else
			ids |= 1u << id;
	}
	check_count(x, server, cards);
	check_ids(x, server, cards, ids, in_range);
}

enum ap_status ap_topo_check_910(struct ap_ctx *ctx, const struct ap_topo *t, bool as_warning)
{
	struct rules x = {ctx, t, as_warning ? AP_WARNING : AP_ERROR, AP_OK};

	for (uint32_t s = 0; s < t->nserver; s++)
		check_server(&x, s);
	return x.status;
}
