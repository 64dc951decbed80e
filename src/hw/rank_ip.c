/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device addresses. They are opaque to the planner (real files mask them, "10.*.*.*"), so what is
 * no IP address gets a warning, and only true addresses must differ.
 */
#include <arpa/inet.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "hw/rank_table.h"

enum family { OTHER = 0, IPV4 = 4, IPV6 = 6 };

/* What was seen so far. */
struct ips {
	struct ap_rank_table *t;
	struct ap_map *seen;
	size_t missing, other, per_card;
	enum family family;
	const struct ap_card *first_other, *first_card;
};

/* Brackets and a zone ("[fe80::1%eth0]") are no part of the address. */
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

static void check_ip(struct ips *x, const struct ap_card *c, const char *s, size_t len)
{
	enum family family = family_of(x->t->ctx->scratch, s, len);
	const struct ap_jv *at = ap_jv_get(c->at, "device_ip");
	bool fresh;

	if (family == OTHER) {
		if (!x->other++)
			x->first_other = c;
		return;
	}
	ap_map_put(x->seen, s, len, &fresh);
	if (!fresh)
		ap_rank_table_fault(x->t, at, "device-ip-unique", "device_ip \"%s\" is given twice",
			ap_diag_name(
				x->t->ctx->diag, ap_arena_strndup(x->t->ctx->scratch, s, len)));
	if (x->family != OTHER && family != x->family)
		ap_rank_table_fault(x->t, at, "device-ip-family",
			"an IPv%d address, but others are IPv%d", family, x->family);
	else
		x->family = family;
}

static void check_card(struct ips *x, const struct ap_card *c)
{
	const char *s = c->ip;
	size_t count = 0;

	if (!*s) {
		x->missing++;
		return;
	}
	for (size_t len; *s; s += len + (s[len] == ','), count++) {
		len = strcspn(s, ",");
		check_ip(x, c, s, len);
	}
	if (!x->first_card) {
		x->first_card = c;
		x->per_card = count;
	} else if (count != x->per_card) {
		ap_rank_table_fault(x->t, ap_jv_get(c->at, "device_ip"), "device-ip-count",
			"%zu addresses, but other devices have %zu", count, x->per_card);
	}
}

void ap_rank_table_check_ips(struct ap_rank_table *t)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	struct ips x = {.t = t, .seen = ap_map_create(t->ctx->scratch)};

	for (size_t i = 0; i < t->cards.n; i++)
		check_card(&x, &t->cards.v[i]);
	if (x.missing && t->needs_ips)
		ap_rank_table_warn(t, t->root, "device-ip",
			"%zu of %zu devices have no device_ip; HCCL needs one between servers",
			x.missing, t->cards.n);
	if (x.other)
		ap_rank_table_warn(t, ap_jv_get(x.first_other->at, "device_ip"), "device-ip",
			"\"%s\" is no IP address, and is kept as text (%zu such)",
			ap_diag_name(t->ctx->diag, x.first_other->ip), x.other);
	ap_arena_release(t->ctx->scratch, mark);
}
