/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/constant.h"
#include "hw/device.h"
#include "hw/profile_write.h"
#include "server_test.h"

TEST_FIXTURE(setup, teardown)

static const char *levels(const char *file, const char *chip)
{
	return levels_of(join(server_of(file), chip));
}

/* Rates: links of 25 GB/s; PCIe 3.0 x16 16 GB/s, 4.0 32; of NCCL: three quarters of PCIe, 6 GB/s and 16 GB/s from
 * a processor to others. Networks: the server's cards, shared. */
START_TEST(levels_of_servers)
{
	static const struct { const char *file, *chip, *levels; } cases[] = {
		{"switch.xml", "h100-80", "nvlink switch 0 450 0.76, ib nic 0 25 0.9"},
		{"switch.xml", "h800-80", "nvlink switch 0 450 0.76, ib nic 0 25 0.9"},
		{"cube.xml", "v100-16", "nvlink mesh 0 25 0.9 of 1 1 4 4 4 4 6, ib nic 0 6.25 0.9"},
		{"classes.xml", "a100-80", "nvlink switch 0 300 0.76, ib nic 0 6.25 0.9"},
		{"pcie.xml", "a100-80", "host switch 2 32 0.75, sys bus 0 32 1, ib nic 0 25 0.9"},
		{"matrix_switch.txt", "h100-80", "nvlink switch 0 450 0.76, ib nic 0 6.25 0.9"},
		{"matrix_cube.txt", "v100-32", "nvlink mesh 0 25 0.9 of 1 1 4 4 4 4 6, ib nic 0 6.25 0.9"},
		{"matrix_pairs.txt", "a100-80", "nvlink mesh 2 100 0.76, host switch 0 16 0.75, ib nic 0 25 0.9"},
		{"matrix_910a.txt", "ascend910a", "hccs mesh 4 30 0.7, pcie bus 0 64 0.7, roce nic 0 12.5 0.7"},
		{"xgmi.xml", "mi300x-192", "xgmi mesh 0 64 0.75, ib nic 0 50 0.9"},
		{"matrix_pairs.txt", "h100-pcie-80", "nvlink mesh 2 100 0.824, pcie switch 0 64 0.75, ib nic 0 25 0.9"},
		{"pcie.xml", "l40s-48", "host switch 2 32 0.75, sys bus 0 32 1, ib nic 0 12.5 0.9"},
		{"matrix_910b.txt", "ascend910b3", "hccs mesh 0 28 0.7, roce nic 0 25 0.7"},
		{"matrix_910a.txt", "ascend910b3", "hccs mesh 4 28 0.7, sys bus 0 12 1, roce nic 0 25 0.7"},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++)
		ck_assert_str_eq(levels(cases[i].file, cases[i].chip), cases[i].levels);
	ck_assert_int_eq(said(AP_WARNING, "topology-chip"), 2); /* h800 and l40s for files that say h100 and a100 */
	ck_assert_int_eq(said(AP_NOTE, "topology-links"), 1); /* classes.xml */
	ck_assert_int_eq(said(AP_ERROR, NULL), 0);
}
END_TEST

/* A server of the size that the profile has anyway is the profile's machine. */
START_TEST(as_the_profile_has_it)
{
	static const char head[] = "<system><cpu arch=\"x86_64\" vendor=\"GenuineIntel\" modelid=\"143\">";
	const struct ap_chip *chip, *was = get_chip("h100-80");
	const struct ap_machine *a, *b;
	const struct ap_server *s = NULL;
	struct ap_str text;

	ap_str_init(&text, ctx.arena);
	ap_str_add(&text, head);
	for (int i = 0; i < 8; i++)
		ap_str_addf(&text, "<pci busid=\"0000:0%d:00.0\" class=\"0x030200\" vendor=\"0x10de\" "
			"device=\"0x2330\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"%d\" sm=\"90\">"
			"<nvlink target=\"fffffff:ffff:ff\" count=\"18\" tclass=\"0x068000\"/></gpu></pci><nic><net "
			"name=\"n\" dev=\"%d\" speed=\"400000\"/></nic>", i, i, i);
	ap_str_add(&text, "</cpu></system>");
	ck_assert_int_eq(read_server("t.xml", text.s, text.len, &s), AP_OK);
	chip = join(s, "h100-80");
	ck_assert_int_eq(ap_machine_make(&ctx, make_topo(32, 8), was, &a), AP_OK);
	ck_assert_int_eq(ap_machine_make(&ctx, make_topo(32, 8), chip, &b), AP_OK);
	ck_assert_int_eq(a->nlevel, b->nlevel);
	for (int l = 0; l < a->nlevel; l++) {
		ck_assert_int_eq(a->level[l].kind, b->level[l].kind);
		ck_assert_double_eq(a->level[l].bandwidth_Bps, b->level[l].bandwidth_Bps);
		ck_assert_double_eq(a->level[l].efficiency, b->level[l].efficiency);
		ck_assert_double_eq(a->level[l].latency_s, b->level[l].latency_s);
		ck_assert_uint_eq(a->ranks[l], b->ranks[l]);
	}
	ck_assert_int_eq(said(AP_NOTE, NULL) + said(AP_WARNING, NULL), 0);
}
END_TEST

/* The chip as it is joined can be written, read back, and says where its links are from. */
START_TEST(written_as_a_profile)
{
	const char *const files[][2] = {{"switch.xml", "h100-80"}, {"cube.xml", "v100-16"}, {"pcie.xml", "a100-80"},
		{"matrix_pairs.txt", "a100-80"}, {"matrix_910a.txt", "ascend910b3"}, {"classes.xml", "gb200-186"}};

	for (size_t i = 0; i < AP_COUNT(files); i++) {
		const struct ap_chip *chip = join(server_of(files[i][0]), files[i][1]);
		struct ap_chip back;
		struct ap_json *doc;
		struct ap_str text;

		ap_str_init(&text, ctx.arena);
		ap_chip_write(chip, &text);
		ck_assert_int_eq(ap_json_parse(&ctx, "c.json", text.s, text.len, 0, &doc), AP_OK);
		ck_assert_int_eq(ap_chip_parse(&ctx, doc, &back), AP_OK);
		ck_assert_str_eq(levels_of(chip), levels_of(&back));
		ck_assert_int_eq(chip->server_devices, server_of(files[i][0])->ndev);
		for (int l = 0; l < chip->nlevel; l++)
			ck_assert_ptr_nonnull(ap_source_of(chip->sources, ap_arena_printf(ctx.arena,
				"levels.%s.bandwidth_Bps", chip->level[l].name)));
	}
	ck_assert_str_eq(ap_source_of(join(server_of("switch.xml"), "h100-80")->sources, "levels.nvlink.bandwidth_Bps"),
		"switch.xml, NCCL XML: 18 links of 25 GB/s of each device to switches");
}
END_TEST

/* Links of a pod join the devices of its servers, too: no slower level comes between. */
START_TEST(pods_keep_their_links)
{
	ck_assert_str_eq(levels("classes.xml", "gb200-186"), "nvlink switch 0 900 0.7, ib nic 0 6.25 0.9");
}
END_TEST

/* Blocks are of consecutive devices; links that lie otherwise are left out, and said. */
START_TEST(links_across)
{
	static const char text[] = "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\nGPU0\tX\tPHB\tNV4\tPHB\nGPU1\tPHB\tX\tPHB\tNV4\n"
		"GPU2\tNV4\tPHB\tX\tPHB\nGPU3\tPHB\tNV4\tPHB\tX\n";
	const struct ap_server *s = NULL;

	ck_assert_int_eq(read_server("m.txt", text, strlen(text), &s), AP_OK);
	ck_assert_str_eq(levels_of(join(s, "a100-80")), "host switch 0 16 0.75, ib nic 0 25 0.9");
	ck_assert_int_eq(said(AP_WARNING, "topology-links"), 1);
}
END_TEST

START_TEST(chips_that_cannot_be_joined_so)
{
	const char *const cases[][2] = {{"matrix_910b.txt", "h100-80"}, {"xgmi.xml", "a100-80"},
		{"switch.xml", "mi300x"}, {"switch.xml", "ascend910b3"},
		{"matrix_910b.txt", "ascend910b4-pcie"}};
	const struct ap_chip *out = NULL;

	for (size_t i = 0; i < AP_COUNT(cases); i++)
		ck_assert_int_eq(ap_server_chip(&ctx, server_of(cases[i][0]), get_chip(cases[i][1]), &out),
			AP_MEANING);
	ck_assert_int_eq(said(AP_ERROR, "topology-chip"), AP_COUNT(cases));
}
END_TEST

START_TEST(profiles_of_servers)
{
	struct ap_server s = {.name = "t", .chip = "h200-141", .generation = 90};
	const char *profile;

	ck_assert_int_eq(ap_server_profile(&ctx, &s, &profile), AP_OK);
	ck_assert_str_eq(profile, "h200-141");
	ck_assert_int_eq(said(AP_NOTE, NULL), 0);
	s.chip = "";
	ck_assert_int_eq(ap_server_profile(&ctx, &s, &profile), AP_OK);
	ck_assert_str_eq(profile, "h100-80");
	ck_assert_int_eq(said(AP_NOTE, "topology-chip"), 1); /* it may be an H200 */
	s.generation = 61;
	ck_assert_int_eq(ap_server_profile(&ctx, &s, &profile), AP_OK);
	ck_assert_str_eq(profile, "");
}
END_TEST

/* Every row names a profile that there is; of a device the links are not fewer than its profile's rate says. */
START_TEST(rows_of_devices)
{
	const struct ap_generation *g;
	const struct ap_device *d;

	for (size_t i = 0; (d = ap_device_at(i)); i++) {
		ck_assert_ptr_nonnull(get_chip(d->profile));
		ck_assert_str_eq(get_chip(d->profile)->name, d->profile);
		ck_assert_int_eq(d->generation != 0, ap_generation_of(d->generation) != NULL);
		ck_assert_str_eq(ap_device_in_text(d->name, strlen(d->name))->name, d->name);
	}
	for (size_t i = 0; (g = ap_generation_at(i)); i++) {
		ck_assert(g->share > 0 && g->share <= 1 && g->link_Bps > 1e9);
		if (!g->profile)
			continue;
		d = ap_device_of_profile(g->profile);
		ck_assert_int_eq(d->generation, g->id);
	}
	ck_assert_str_eq(ap_device_in_text("GPU 0: NVIDIA H100 80GB HBM3 (UUID", 34)->profile, "h100-80");
	ck_assert_str_eq(ap_device_in_text("| 0  910B4-1 |", 14)->profile, "ascend910b4-1");
	ck_assert_ptr_null(ap_device_in_text("H1000 80GB HBM3", 15));
	ck_assert_double_eq(ap_card_Bps(0x15b3, 0x1021), 50e9);
	ck_assert_double_eq(ap_card_Bps(0x8086, 1), 0);
}
END_TEST

/* A profile may have six levels: those of a server's file go where there is room. */
START_TEST(profiles_of_many_levels)
{
	const struct ap_server *s = server_of("classes.xml");
	struct ap_chip many = *get_chip("ascend910c");
	const struct ap_chip *out = NULL;
	const struct ap_machine *m = NULL;

	many.hccl = "";
	many.name = "many";
	many.nlevel = 6;
	many.level[5] = many.level[3];
	many.level[4] = many.level[2];
	many.level[3] = many.level[2] = many.level[1];
	many.level[3].span = 64;
	many.level[2].span = 32;
	ck_assert_int_eq(ap_server_chip(&ctx, s, &many, &out), AP_OK);
	ck_assert_int_le(out->nlevel, 6);
	ck_assert_int_eq(ap_machine_make(&ctx, make_topo(16, 4), out, &m), AP_OK);
}
END_TEST
