/* SPDX-License-Identifier: Apache-2.0 */
/* What the suites of this layer share: a run context, and messages by check. */
#ifndef AP_TESTS_HW_TEST_H
#define AP_TESTS_HW_TEST_H

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "harness.h"
#include "hw/machine.h"
#include "hw/rank_table.h"

static struct ap_ctx ctx;

static inline void setup(void)
{
	ctx = (struct ap_ctx){.arena = ap_arena_create(0, NULL, NULL),
		.scratch = ap_arena_create(0, NULL, NULL),
		.jobs = 1};
	ctx.diag = ap_diag_create(ctx.arena, false);
}

static inline void teardown(void)
{
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(ctx.arena);
}

/* Number of messages of this level and check (NULL: any). */
static inline int said(enum ap_level level, const char *check)
{
	enum ap_level l;
	const char *c;
	int n = 0;

	for (size_t i = 0; ap_diag_text(ctx.diag, i, &l, &c); i++)
		n += l == level && (!check || (c && strcmp(c, check) == 0));
	return n;
}

/* A rank table from text. */
static inline enum ap_status load(const char *text, const struct ap_topo **out)
{
	struct ap_json *doc;

	AP_TRY(ap_json_parse(&ctx, "dir/table.json", text, strlen(text), AP_JSON_TRAILING_COMMA,
		&doc));
	return ap_topo_load(&ctx, doc, "0123", out);
}

static inline void assert_same(const struct ap_topo *a, const struct ap_topo *b)
{
	ck_assert_uint_eq(a->ndev, b->ndev);
	ck_assert_uint_eq(a->nserver, b->nserver);
	ck_assert_uint_eq(a->pod.n, b->pod.n);
	ck_assert_uint_eq(a->cluster.n, b->cluster.n);
	ck_assert_str_eq(a->chip_info, b->chip_info);
	ck_assert_int_eq(a->job_wide_ids, b->job_wide_ids);
	for (uint32_t s = 0; s < a->nserver; s++) {
		ck_assert_str_eq(a->server[s], b->server[s]);
		if (a->pod.n)
			ck_assert_str_eq(a->pod.id[a->pod.of[s]], b->pod.id[b->pod.of[s]]);
		if (a->cluster.n)
			ck_assert_str_eq(
				a->cluster.id[a->cluster.of[s]], b->cluster.id[b->cluster.of[s]]);
	}
	for (uint32_t r = 0; r < a->ndev; r++) {
		ck_assert_uint_eq(a->place[r].server, b->place[r].server);
		ck_assert_int_eq(a->place[r].device_id, b->place[r].device_id);
		ck_assert_int_eq(a->place[r].super_device_id, b->place[r].super_device_id);
		ck_assert_str_eq(a->place[r].device_ip, b->place[r].device_ip);
	}
}

static inline const struct ap_topo *make_topo(int64_t ndev, int64_t per_server)
{
	const struct ap_topo *topo = NULL;

	ck_assert_int_eq(ap_topo_make(&ctx, ndev, per_server, &topo), AP_OK);
	return topo;
}

static inline const struct ap_chip *get_chip(const char *name)
{
	const struct ap_chip *chip = NULL;

	ck_assert_int_eq(ap_chip_get(&ctx, name, &chip), AP_OK);
	return chip;
}

static inline const struct ap_machine *make_machine(
	int64_t ndev, int64_t per_server, const char *chip)
{
	const struct ap_machine *m = NULL;

	ck_assert_int_eq(
		ap_machine_make(&ctx, make_topo(ndev, per_server), get_chip(chip), &m), AP_OK);
	return m;
}

#endif
