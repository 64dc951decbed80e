/* SPDX-License-Identifier: Apache-2.0 */
/* The group file of one rank. */
#include "emit/groups.h"
#include "pipe_test.h"

static const char *ranks_text(struct ap_ctx *ctx, const int64_t *rank, uint32_t n)
{
	struct ap_str s = new_str(ctx);

	for (uint32_t i = 0; i < n; i++)
		ap_str_addf(&s, "%s%lld", i ? " " : "", (long long)rank[i]);
	return s.s;
}

static const char *groups_text(struct ap_ctx *ctx, const struct ap_groups *g)
{
	struct ap_str s = new_str(ctx);

	for (uint32_t i = 0; i < g->n; i++)
		ap_str_addf(&s, "%s%s", i ? ", " : "", ranks_text(ctx, g->group[i].rank, g->group[i].n));
	return s.s;
}

/*
 * Stage 0: x arrives in four parts and is wanted in two, up's result is gathered for bias, i goes to
 * stage 1; then gradients of bias, which all have, and of the weight, which pairs have. Stage 1: i
 * comes, y is gathered for the loss, and all have the weight.
 */
static const struct {
	int64_t rank;
	const char *groups, *restore;
} expected[] = {
	{0, "0 1, 0 2, 0 4, 0 1 2 3", "0 2"},
	{3, "2 3, 1 3, 3 7, 0 1 2 3", "1 3"},
	{5, "1 5, 4 5 6 7", "4 5 6 7"},
};

START_TEST(groups_of_a_rank)
{
	struct ap_groups g;
	struct ap_plan plan;
	struct fixture f;

	open_pipe(&f, &plan);
	ap_groups_of_plan(&f.ctx, &plan, expected[_i].rank, &g);
	ck_assert_str_eq(ranks_text(&f.ctx, g.restore, g.nrestore), expected[_i].restore);
	ck_assert_str_eq(groups_text(&f.ctx, &g), expected[_i].groups);
	fixture_close(&f);
}
END_TEST

/* Names tell the number of ranks, and differ with them; all ranks have the library's name. */
START_TEST(names_of_groups)
{
	struct ap_groups g, again;
	struct ap_plan plan;
	struct fixture f;

	open_pipe(&f, &plan);
	ap_groups_of_plan(&f.ctx, &plan, 0, &g);
	ck_assert_int_eq(strncmp(g.group[0].name, "2-", 2), 0);
	ck_assert_int_eq(strncmp(g.group[3].name, "4-", 2), 0);
	for (uint32_t i = 0; i < g.n; i++) {
		ck_assert_uint_eq(strspn(g.group[i].name + 2, "0123456789"), strlen(g.group[i].name + 2));
		for (uint32_t j = 0; j < i; j++)
			ck_assert_str_ne(g.group[i].name, g.group[j].name);
	}
	ap_groups_of_plan(&f.ctx, &plan, 1, &again);
	ck_assert_str_eq(again.group[0].name, g.group[0].name); /* {0, 1} of both */
	fixture_close(&f);
}
END_TEST

/* A weight that is dealt to all that hold it leaves nobody to load from. */
START_TEST(dealt_weights_are_no_copies)
{
	struct ap_plan_param param[3];
	struct ap_groups g;
	struct ap_plan plan;
	struct fixture f;

	open_pipe(&f, &plan);
	memcpy(param, plan.param, sizeof param);
	plan.param = param;
	for (int i = 0; i < 3; i++)
		if (plan.graph->node[param[i].node].stage == 1)
			param[i].shard.shards = 4;
	ap_groups_of_plan(&f.ctx, &plan, 6, &g);
	ck_assert_str_eq(ranks_text(&f.ctx, g.restore, g.nrestore), "6");
	for (int i = 0; i < 3; i++)
		if (plan.graph->node[param[i].node].stage == 1)
			param[i].shard.shards = 2; /* to 4 and 5, and to 6 and 7 */
	ap_groups_of_plan(&f.ctx, &plan, 6, &g);
	ck_assert_str_eq(ranks_text(&f.ctx, g.restore, g.nrestore), "4 6");
	fixture_close(&f);
}
END_TEST

/* ParallelGroupMap: items of a name and ranks, then the ranks to restore from. */
START_TEST(bytes_of_the_file)
{
	static const int64_t pair[] = {0, 4}, restore[] = {300};
	static const struct ap_group_ranks group = {"2-7", 2, pair};
	static const struct ap_groups groups = {1, &group, 1, restore};
	static const char bytes[] = "\x0a\x0b\x0a\x03" "2-7" "\x12\x04\x08\x00\x08\x04"
		"\x12\x03\x08\xac\x02";
	struct ap_ctx ctx = new_ctx();
	struct ap_str s = new_str(&ctx);

	ap_groups_write(&ctx, &groups, to_str, &s);
	ck_assert_uint_eq(s.len, sizeof bytes - 1);
	ck_assert_mem_eq(s.s, bytes, s.len);
	free_ctx(&ctx);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		groups_of_a_rank,
		names_of_groups,
		dealt_weights_are_no_copies,
		bytes_of_the_file,
	};
	const int loops[sizeof tests / sizeof *tests] = {sizeof expected / sizeof *expected};

	return run_tests("groups", tests, loops, sizeof tests / sizeof *tests);
}
