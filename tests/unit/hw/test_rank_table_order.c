/* SPDX-License-Identifier: Apache-2.0 */
/* The order of entries in a rank table has no meaning, in any form; and what is cut short is no table. */
#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "base/vec.h"
#include "hw_test.h"

static uint64_t seed;

/* splitmix64 */
static uint32_t roll(uint32_t n)
{
	uint64_t z = seed += 0x9E3779B97F4A7C15u;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return (uint32_t)((z ^ z >> 31) % n);
}

enum { MAX_SERVERS = 6, MAX_CARDS = 16, MAX_RANKS = MAX_SERVERS * MAX_CARDS };

/* A machine, and the order in which its parts are listed. */
struct machine {
	uint32_t servers, cards, per_pod; /* cards of a server, servers of a pod */
	uint32_t device[MAX_SERVERS][MAX_CARDS], rank[MAX_SERVERS][MAX_CARDS];
	uint32_t server_order[MAX_SERVERS], card_order[MAX_CARDS], rank_order[MAX_RANKS];
};

static void shuffle(uint32_t *v, uint32_t n)
{
	for (uint32_t i = n; i-- > 1;) {
		uint32_t k = roll(i + 1), swap = v[i];

		v[i] = v[k];
		v[k] = swap;
	}
}

static void count_up(uint32_t *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		v[i] = i;
}

static void random_machine(struct machine *m)
{
	uint32_t rank[MAX_RANKS], device[MAX_CARDS];

	m->per_pod = 1 + roll(2);
	m->servers = m->per_pod * (1 + roll(MAX_SERVERS / m->per_pod));
	m->cards = 1 + roll(MAX_CARDS);
	count_up(rank, m->servers * m->cards);
	if (roll(2))
		shuffle(rank, m->servers * m->cards);
	for (uint32_t s = 0; s < m->servers; s++) {
		count_up(device, MAX_CARDS);
		shuffle(device, MAX_CARDS);
		for (uint32_t c = 0; c < m->cards; c++) {
			m->device[s][c] = device[c];
			m->rank[s][c] = rank[s * m->cards + c];
		}
	}
	count_up(m->server_order, m->servers);
	count_up(m->card_order, m->cards);
	count_up(m->rank_order, m->servers * m->cards);
}

static void reorder(struct machine *m)
{
	shuffle(m->server_order, m->servers);
	shuffle(m->card_order, m->cards);
	shuffle(m->rank_order, m->servers * m->cards);
}

/* "10.0.s.d", with rank_id where asked. */
static void add_device(struct ap_str *b, const struct machine *m, uint32_t s, uint32_t c, bool rank)
{
	ap_str_addf(b, "{\"device_id\": \"%u\", \"device_ip\": \"10.0.%u.%u\", \"super_device_id\": \"%u\"",
		m->device[s][c], s, c, s % m->per_pod * MAX_CARDS + c);
	if (rank)
		ap_str_addf(b, ", \"rank_id\": \"%u\"", m->rank[s][c]);
	ap_str_add(b, "}");
}

static void add_pods(struct ap_str *b, const struct machine *m)
{
	bool first = true;

	ap_str_add(b, ", \"super_pod_list\": [");
	for (uint32_t i = 0; i < m->servers; i++) {
		uint32_t s = m->server_order[i];

		if (s % m->per_pod)
			continue;
		ap_str_addf(b, "%s{\"super_pod_id\": \"pod%u\", \"server_list\": [", first ? "" : ", ",
			s / m->per_pod);
		for (uint32_t k = 0; k < m->per_pod; k++)
			ap_str_addf(b, "%s{\"server_id\": \"node%u\"}", k ? ", " : "", s + k);
		ap_str_add(b, "]}");
		first = false;
	}
	ap_str_add(b, "]");
}

static void servers_form(struct ap_str *b, const struct machine *m, const char *version)
{
	ap_str_addf(b, "{\"version\": \"%s\", \"status\": \"completed\", \"server_list\": [", version);
	for (uint32_t i = 0; i < m->servers; i++) {
		uint32_t s = m->server_order[i];

		ap_str_addf(b, "%s{\"server_id\": \"node%u\", \"device\": [", i ? ", " : "", s);
		for (uint32_t c = 0; c < m->cards; c++) {
			ap_str_add(b, c ? ", " : "");
			add_device(b, m, s, m->card_order[c], true);
		}
		ap_str_add(b, "]}");
	}
	ap_str_add(b, "]");
	if (strcmp(version, "1.2") == 0)
		add_pods(b, m);
	ap_str_add(b, "}");
}

static void form_1_0(struct ap_str *b, const struct machine *m)
{
	servers_form(b, m, "1.0");
}

static void form_1_2(struct ap_str *b, const struct machine *m)
{
	servers_form(b, m, "1.2");
}

static void form_lab(struct ap_str *b, const struct machine *m)
{
	uint32_t n = m->servers * m->cards;

	ap_str_addf(b, "{\"status\": \"completed\", \"deploy_mode\": \"lab\", \"group_count\": 1,"
		"\"para_plane_nic_location\": \"device\", \"group_list\": [{\"device_num\": %u,"
		"\"server_num\": %u, \"instance_count\": %u, \"instance_list\": [", n, m->servers, n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t s = m->rank_order[i] / m->cards, c = m->rank_order[i] % m->cards;

		ap_str_addf(b, "%s{\"devices\": [", i ? ", " : "");
		add_device(b, m, s, c, false);
		ap_str_addf(b, "], \"rank_id\": %u, \"server_id\": \"node%u\"}", m->rank[s][c], s);
	}
	ap_str_add(b, "]}]}");
}

static void form_cloud(struct ap_str *b, const struct machine *m)
{
	uint32_t n = m->servers * m->cards;

	ap_str_addf(b, "{\"status\": \"completed\", \"group_list\": [{\"device_count\": %u,"
		"\"instance_count\": %u, \"instance_list\": [", n, n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t s = m->rank_order[i] / m->cards, c = m->rank_order[i] % m->cards;

		ap_str_addf(b, "%s{\"pod_name\": \"%u-%u\", \"server_id\": \"node%u\", \"devices\": [",
			i ? ", " : "", s, c, s);
		add_device(b, m, s, c, false);
		ap_str_add(b, "]}");
	}
	ap_str_add(b, "]}]}");
}

static void form_2_0(struct ap_str *b, const struct machine *m)
{
	uint32_t n = m->servers * m->cards;

	ap_str_addf(b, "{\"status\": \"completed\", \"version\": \"2.0\", \"rank_count\": %u,"
		"\"rank_list\": [", n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t s = m->rank_order[i] / m->cards, c = m->rank_order[i] % m->cards;

		ap_str_addf(b, "%s{\"rank_id\": %u, \"device_id\": %u, \"level_list\": ["
			"{\"net_layer\": 0, \"net_instance_id\": \"node%u\"},"
			"{\"net_layer\": 1, \"net_instance_id\": \"pod%u\"}]}", i ? ", " : "",
			m->rank[s][c], m->device[s][c], s, s / m->per_pod);
	}
	ap_str_add(b, "]}");
}

typedef void form_fn(struct ap_str *b, const struct machine *m);

static const char *write_form(form_fn *form, const struct machine *m)
{
	struct ap_str b;

	ap_str_init(&b, ctx.arena);
	form(&b, m);
	return b.s;
}

static form_fn *const forms[] = {form_1_0, form_1_2, form_lab, form_cloud, form_2_0};

enum { NFORM = AP_COUNT(forms) };

TEST_FIXTURE(setup, teardown)

START_TEST(order_has_no_meaning)
{
	const char *s = getenv("AP_SEED");

	seed = s ? strtoull(s, NULL, 10) : 20250301;
	printf("AP_SEED=%" PRIu64 "\n", seed);
	for (int round = 0; round < 300; round++) {
		const struct ap_topo *t[2] = {NULL, NULL};
		struct machine m;
		form_fn *form = forms[round % NFORM];

		random_machine(&m);
		ck_assert_int_eq(load(write_form(form, &m), &t[0]), AP_OK);
		reorder(&m);
		ck_assert_int_eq(load(write_form(form, &m), &t[1]), AP_OK);
		assert_same(t[0], t[1]);
		ck_assert_uint_eq(t[0]->ndev, m.servers * m.cards);
		ck_assert_uint_eq(t[0]->nserver, m.servers);
		ck_assert_uint_eq(t[0]->pod.n,
			form == form_1_2 || form == form_2_0 ? m.servers / m.per_pod : 0);
		for (uint32_t i = 0; i < m.servers * m.cards && form != form_cloud; i++) {
			uint32_t server = i / m.cards, card = i % m.cards;
			const struct ap_place *p = &t[0]->place[m.rank[server][card]];

			ck_assert_int_eq(p->device_id, m.device[server][card]);
			ck_assert_str_eq(t[0]->server[p->server],
				ap_arena_printf(ctx.arena, "node%u", server));
		}
	}
	ck_assert_int_eq(said(AP_ERROR, NULL), 0);
}
END_TEST

/* No beginning of a table is one. */
START_TEST(tables_cut_short)
{
	struct machine m = {.servers = 2, .cards = 1, .per_pod = 2, .device = {{3}, {5}},
		.rank = {{0}, {1}}, .server_order = {0, 1}, .rank_order = {0, 1}};

	for (int f = 0; f < NFORM; f++) {
		const char *whole = write_form(forms[f], &m);
		const struct ap_topo *t = NULL;

		ck_assert_int_eq(load(whole, &t), AP_OK);
		for (size_t len = 0; len < strlen(whole); len++)
			ck_assert_int_eq(
				load(ap_arena_strndup(ctx.arena, whole, len), &t), AP_SYNTAX);
	}
}
END_TEST

/* JSON of any kind that is no table is told so, and crashes nothing. */
START_TEST(other_json)
{
	static const char *const texts[] = {"null", "true", "0", "\"version\"", "[]", "[[]]", "{}",
		"{\"version\": null}", "{\"version\": 1.0}", "{\"version\": \"\"}",
		"{\"version\": \"1.0\"}", "{\"version\": \"1.2\", \"server_list\": {}}",
		"{\"version\": \"1.2\", \"server_list\": [[]]}",
		"{\"version\": \"1.2\", \"server_list\": [{}], \"super_pod_list\": [{}]}",
		"{\"version\": \"2.0\", \"rank_list\": [{\"level_list\": [{}]}]}",
		"{\"version\": \"2.0\", \"rank_list\": [null]}", "{\"version\": \"2.0\"}",
		"{\"deploy_mode\": \"lab\"}", "{\"group_list\": [{\"instance_list\": [7]}]}",
		"{\"group_list\": 7}",
		"{\"group_list\": [{\"instance_list\": [{\"devices\": [[]], \"server_id\": []}]}]}",
		"{\"deploy_mode\": {}, \"group_list\": [{\"instance_list\": [{\"devices\": 1}]}]}",
		"{\"version\": \"1.0\", \"cluster_list\": [0], \"server_list\": [0]}"};

	for (size_t i = 0; i < AP_COUNT(texts); i++) {
		const struct ap_topo *t = NULL;

		ctx.diag = ap_diag_create(ctx.arena, false);
		ck_assert_msg(load(texts[i], &t) == AP_MEANING, "%s", texts[i]);
		ck_assert_int_ge(said(AP_ERROR, NULL), 1);
	}
}
END_TEST

START_TEST(spellings_of_one_number)
{
	static const char text[] =
		"{\"version\": \"1.0\", \"status\": \"completed\", \"server_list\": [{\"server_id\": \"a\","
		"\"device\": [{\"device_id\": 0, \"rank_id\": \"2\"}, {\"device_id\": 1, \"rank_id\": \"02\"},"
		"{\"device_id\": 2, \"rank_id\": 0}]}]}";
	const struct ap_topo *t = NULL;

	ck_assert_int_eq(load(text, &t), AP_MEANING);
	ck_assert_int_eq(said(AP_ERROR, "rank-unique"), 1);
}
END_TEST

/* Names are printed safely, and long ones are refused or cut. */
START_TEST(hostile_names)
{
	static const char format[] =
		"{\"version\": \"1.0\", \"status\": \"completed\", \"server_list\": [{\"server_id\": \"%s\","
		"\"device\": [{\"device_id\": 0, \"rank_id\": 0, \"device_ip\": \"%s\"},"
		"{\"device_id\": 0, \"rank_id\": 1}]}]}";
	char *huge = ap_arena_alloc(ctx.arena, 70001, 1);
	const struct ap_topo *t = NULL;

	memset(huge, 'x', 70000);
	ck_assert_int_eq(load(ap_arena_printf(ctx.arena, format, "\\u001b[31m", ""), &t), AP_MEANING);
	ck_assert_str_eq(ap_diag_text(ctx.diag, 0, NULL, NULL),
		"device_id 0 is given twice on server \"\\x1b[31m\"");
	ctx.diag = ap_diag_create(ctx.arena, false);
	ck_assert_int_eq(load(ap_arena_printf(ctx.arena, format, huge, ""), &t), AP_MEANING);
	ck_assert_int_eq(said(AP_ERROR, "server-id"), 1);
	ctx.diag = ap_diag_create(ctx.arena, false);
	ck_assert_int_eq(load(ap_arena_printf(ctx.arena, format, "a", huge), &t), AP_MEANING);
	ck_assert_int_eq(said(AP_WARNING, "device-ip"), 1);
	for (size_t i = 0; ap_diag_text(ctx.diag, i, NULL, NULL); i++)
		ck_assert_uint_lt(strlen(ap_diag_text(ctx.diag, i, NULL, NULL)), 200);
}
END_TEST
