/* SPDX-License-Identifier: Apache-2.0 */
#include "server_test.h"

TEST_FIXTURE(setup, teardown)

START_TEST(as_a_terminal_shows_it)
{
	const struct ap_server *s = server_of("matrix_switch.txt");

	ck_assert_str_eq(s->form, "nvidia-smi topo -m");
	ck_assert_uint_eq(s->ndev, 4);
	ck_assert_str_eq(s->chip, "h100-80"); /* by the names above */
	ck_assert_str_eq(s->direct, "nvlink");
	ck_assert_uint_eq(s->links[0 * 4 + 3], 18);
	ck_assert_uint_eq(s->ncard, 2); /* the third is behind no device's switch */
	ck_assert_double_eq(s->cards_Bps, 0);
	ck_assert_double_eq(s->pcie_Bps, 0);
}
END_TEST

/* Two tools describe the same machine alike. */
START_TEST(as_nccl_has_it)
{
	const struct ap_server *a = server_of("matrix_cube.txt"), *b = server_of("cube.xml");

	ck_assert_uint_eq(a->ndev, 8);
	for (int i = 0; i < 64; i++) {
		ck_assert_uint_eq(a->links[i], b->links[i]);
		ck_assert_int_eq(a->near[i] == AP_NEAR_LINK && a->links[i], b->near[i] == AP_NEAR_LINK);
	}
}
END_TEST

START_TEST(ascend)
{
	const struct ap_server *s = server_of("matrix_910a.txt");

	ck_assert_str_eq(s->form, "npu-smi info -t topo");
	ck_assert_str_eq(s->direct, "hccs");
	ck_assert_uint_eq(s->near[0 * 8 + 3], AP_NEAR_LINK);
	ck_assert_uint_eq(s->near[0 * 8 + 4], AP_NEAR_SYSTEM);
	ck_assert_uint_eq(server_of("matrix_910b.txt")->near[0 * 8 + 7], AP_NEAR_LINK);
}
END_TEST

START_TEST(words)
{
	static const struct { const char *word; enum ap_near near; uint32_t links; } cases[] = {
		{"NV1", AP_NEAR_LINK, 1},
		{"NV18", AP_NEAR_LINK, 18},
		{"PIX", AP_NEAR_SWITCH, 0},
		{"PXB", AP_NEAR_SWITCH, 0},
		{"PHB", AP_NEAR_HOST, 0},
		{"NODE", AP_NEAR_HOST, 0},
		{"SYS", AP_NEAR_SYSTEM, 0},
		{"SOC", AP_NEAR_SYSTEM, 0},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		const struct ap_server *s = NULL;
		const char *text = ap_arena_printf(ctx.arena, "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\n"
			"GPU0\t X \t%s\tSYS\t0-3\nGPU1\t%s\t X \tSYS\t0-3\nmlx5_0\tSYS\tSYS\t X\n", cases[i].word,
			cases[i].word);

		ck_assert_int_eq(read_server("m.txt", text, strlen(text), &s), AP_OK);
		ck_assert_uint_eq(s->near[1], cases[i].near);
		ck_assert_uint_eq(s->links[2], cases[i].links);
		ck_assert_uint_eq(s->ncard, 1);
	}
}
END_TEST

START_TEST(one_device)
{
	static const char text[] = "        GPU0    CPU Affinity    NUMA Affinity\nGPU0     X      0-23            N/A\n";
	const struct ap_server *s = NULL;

	ck_assert_int_eq(read_server("m.txt", text, strlen(text), &s), AP_OK);
	ck_assert_uint_eq(s->ndev, 1);
}
END_TEST

#define HEAD "\tGPU0\tGPU1\tCPU Affinity\n"

START_TEST(faults)
{
	static const struct { const char *text, *says; } cases[] = {
		{"", "has no line that begins with GPU0"},
		{"GPU0 X\n", "has no line that begins with GPU0"},
		{HEAD "GPU0\tX\tNV2\n", "row GPU1 is missing"},
		{HEAD "GPU0\tX\n", "m.txt:2:1: row GPU0 has 1 words behind its name; expected one for each of 2 columns"},
		{HEAD "GPU0\tX\tNV2\nGPU0\tX\tNV2\n", "stands twice"},
		{HEAD "GPU0\tX\tNV2\nGPU1\tNV3\tX\n", "m.txt:3:6: \"NV3\" in row GPU1; the row of that column"},
		{HEAD "GPU0\tNV2\tX\nGPU1\tNV2\tX\n", "X stands where a device meets itself"},
		{HEAD "GPU0\tX\tX\nGPU1\tX\tX\n", "X stands where a device meets itself"},
		{HEAD "GPU0\tX\tNV\nGPU1\tNV\tX\n", "\"NV\" says nothing of links"},
		{HEAD "GPU0\tX\tNV0\nGPU1\tNV0\tX\n", "\"NV0\" says nothing"},
		{HEAD "GPU0\tX\tNV99999999999\n", "says nothing"},
		{HEAD "GPU0\tX\tSYS\nGPU1\tSYS\tX\nGPU2\tSYS\tSYS\n", "there is no such column"},
		{"\tGPU0\tGPU2\tCPU Affinity\n", "expected GPU1 here"},
		{"\tGPU0\tNIC0\tGPU1\tCPU Affinity\n", "devices come first"},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		const struct ap_server *s = NULL;
		struct ap_ctx own = ap_diag_apart(&ctx);
		struct ap_str text;

		ck_assert_msg(ap_server_read_matrix(&own, "m.txt", cases[i].text, strlen(cases[i].text), &s) ==
			AP_SYNTAX, "%s", cases[i].text);
		ap_str_init(&text, ctx.arena);
		ap_diag_render(own.diag, AP_ERROR, 9, &text);
		ck_assert_msg(strstr(text.s, cases[i].says) != NULL, "%s", text.s);
	}
}
END_TEST
