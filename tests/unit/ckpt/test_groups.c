/* SPDX-License-Identifier: Apache-2.0 */
/* The group file of one rank. */
#include "base/vec.h"
#include "ckpt/groups.h"
#include "plan/plan.h"
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

START_LOOP_TEST(groups_of_a_rank, AP_COUNT(expected))
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

/* What is written is read again, also without a group. */
START_LOOP_TEST(read_again, AP_COUNT(expected))
{
	struct ap_groups g, again;
	struct ap_plan plan;
	struct fixture f;
	struct ap_str s;

	open_pipe(&f, &plan);
	ap_groups_of_plan(&f.ctx, &plan, expected[_i].rank, &g);
	for (int all = 1; all >= 0; all--, g.n = 0) {
		s = new_str(&f.ctx);
		ap_groups_write(&f.ctx, &g, to_str, &s);
		ck_assert(ap_groups_look_like(s.s, s.len));
		ck_assert_int_eq(ap_groups_read(&f.ctx, "groups", s.s, s.len, &again), AP_OK);
		ck_assert_str_eq(groups_text(&f.ctx, &again), all ? expected[_i].groups : "");
		ck_assert_str_eq(ranks_text(&f.ctx, again.restore, again.nrestore), expected[_i].restore);
		for (uint32_t i = 0; i < g.n; i++)
			ck_assert_str_eq(again.group[i].name, g.group[i].name);
	}
	fixture_close(&f);
}
END_TEST

#define TWO "\x0a\x0b\x0a\x03" "2-7" "\x12\x04\x08\x00\x08\x04"
#define DOWN "\x0a\x0b\x0a\x03" "2-7" "\x12\x04\x08\x04\x08\x00"
#define NOBODY "\x0a\x07\x0a\x03" "2-7" "\x12\x00"
#define RESTORE "\x12\x02\x08\x00"

static const struct {
	const char *bytes;
	size_t len;
	const char *says; /* NULL: nothing is wrong */
} bad[] = {
#define BYTES(s) s, sizeof s - 1
	{BYTES(TWO RESTORE), NULL},
	{BYTES(TWO TWO RESTORE), "two groups are called \"2-7\""},
	{BYTES(DOWN RESTORE), "group \"2-7\": its ranks should ascend, at least one"},
	{BYTES(NOBODY RESTORE), "group \"2-7\": its ranks should ascend, at least one"},
	{BYTES(TWO "\x12\x00"), "ckpt_restore_rank_list: ranks should ascend, at least one; MindSpore's "
		"restore_group_info_list() refuses an empty list"},
	{BYTES(TWO), "ckpt_restore_rank_list"},
	{BYTES("\x0a\x03\x0a\x01" "a" RESTORE), "parallel_group_ranks"},
};

START_LOOP_TEST(faults, AP_COUNT(bad))
{
	struct ap_ctx ctx = new_ctx();
	struct ap_groups g;
	enum ap_status st = ap_groups_read(&ctx, "groups", bad[_i].bytes, bad[_i].len, &g);
	const char *said = last_message(&ctx, NULL);

	ck_assert_int_eq(st == AP_OK, !bad[_i].says);
	ck_assert_msg(strstr(said, bad[_i].says ? bad[_i].says : "") != NULL, "%s", said);
	free_ctx(&ctx);
}
END_TEST

/* A strategy checkpoint begins with a number; text, and what is too short, is neither. */
START_TEST(other_files)
{
	static const char ckpt[] = "\x08\x01\x12\x02\x08\x00", items[] = "\x12\x05\x0a\x03" "abc";

	ck_assert(!ap_groups_look_like(ckpt, sizeof ckpt - 1));
	ck_assert(!ap_groups_look_like(items, sizeof items - 1));
	ck_assert(!ap_groups_look_like("\x0a", 1));
	ck_assert(!ap_groups_look_like("\x12\x80", 2));
	ck_assert(!ap_groups_look_like("", 0));
}
END_TEST
