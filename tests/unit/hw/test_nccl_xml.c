/* SPDX-License-Identifier: Apache-2.0 */
#include "server_test.h"

TEST_FIXTURE(setup, teardown)

static enum ap_status read_text(const char *text, const struct ap_server **out)
{
	return ap_server_read_xml(&ctx, "t.xml", text, strlen(text), out);
}

START_TEST(devices_behind_a_switch)
{
	const struct ap_server *s = server_of("switch.xml");

	ck_assert_str_eq(s->name, "switch.xml");
	ck_assert_str_eq(s->form, "NCCL XML");
	ck_assert_uint_eq(s->ndev, 4);
	ck_assert_str_eq(s->chip, "h100-80");
	ck_assert_int_eq(s->generation, 90);
	ck_assert_str_eq(s->direct, "nvlink");
	ck_assert_uint_eq(s->switch_links, 18);
	ck_assert_double_eq(s->pcie_Bps, 64e9); /* 32 GT/s, 16 lanes */
	ck_assert_double_eq(s->processor_Bps, 22e9); /* SRP_QPI_BW */
	ck_assert_uint_eq(s->ncard, 2); /* not eth0, which is behind no switch with a device */
	ck_assert_double_eq(s->cards_Bps, 100e9);
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 4; k++)
			ck_assert_uint_eq(s->near[i * 4 + k], i == k ? AP_NEAR_SWITCH : AP_NEAR_LINK);
}
END_TEST

START_TEST(devices_in_a_cube)
{
	const struct ap_server *s = server_of("cube.xml");

	ck_assert_uint_eq(s->ndev, 8);
	ck_assert_str_eq(s->chip, "v100-16");
	ck_assert_uint_eq(s->switch_links, 0);
	ck_assert_uint_eq(s->links[0 * 8 + 3], 2); /* the target is written in capitals */
	ck_assert_uint_eq(s->links[3 * 8 + 0], 2);
	ck_assert_uint_eq(s->links[0 * 8 + 7], 0);
	ck_assert_uint_eq(s->near[0 * 8 + 4], AP_NEAR_LINK);
	ck_assert_uint_eq(s->near[0 * 8 + 5], AP_NEAR_SYSTEM);
	ck_assert_double_eq(s->pcie_Bps, 16e9);
	ck_assert_double_eq(s->processor_Bps, 6e9); /* BDW_QPI_BW */
	ck_assert_uint_eq(s->ncard, 4);
	ck_assert_double_eq(s->cards_Bps, 50e9); /* ConnectX-4, by its id */
}
END_TEST

START_TEST(classes_alone)
{
	const struct ap_server *s = server_of("classes.xml");

	ck_assert_uint_eq(s->ndev, 4);
	ck_assert_str_eq(s->chip, "");
	ck_assert_int_eq(s->generation, 0);
	ck_assert_ptr_null(s->direct);
	ck_assert_uint_eq(s->ncard, 2);
	ck_assert_double_eq(s->cards_Bps, 0); /* no speed, no id */
	ck_assert_uint_eq(s->near[0 * 4 + 1], AP_NEAR_SWITCH); /* by address, not by place in the file */
	ck_assert_uint_eq(s->near[1 * 4 + 2], AP_NEAR_SYSTEM);
}
END_TEST

START_TEST(no_links)
{
	const struct ap_server *s = server_of("pcie.xml");

	ck_assert_str_eq(s->chip, "a100-80");
	ck_assert_str_eq(s->direct, "nvlink");
	ck_assert_uint_eq(s->near[0 * 4 + 1], AP_NEAR_HOST);
	ck_assert_uint_eq(s->near[0 * 4 + 2], AP_NEAR_SYSTEM);
	ck_assert_uint_eq(s->ncard, 0);
	ck_assert_double_eq(s->processor_Bps, 16e9); /* AMD_BW */
}
END_TEST

#define PCI(bus, rest) "<pci busid=\"" bus "\" class=\"0x030200\" " rest
#define GPU(bus, dev, sm, links) PCI(bus, "vendor=\"0x10de\" device=\"0x1\">") "<gpu dev=\"" dev "\" sm=\"" sm "\">" \
	links "</gpu></pci>"
#define SYSTEM(inside) "<system version=\"1\"><cpu numaid=\"0\">" inside "</cpu></system>"

START_TEST(order_of_devices)
{
	static const char numbered[] = SYSTEM(
		GPU("0000:01:00.0", "1", "80", "<nvlink target=\"0000:03:00.0\" count=\"4\" tclass=\"0x030200\"/>")
		GPU("0000:02:00.0", "2", "80", "")
		GPU("0000:03:00.0", "0", "80", "<nvlink target=\"0000:01:00.0\" count=\"4\" tclass=\"0x030200\"/>"));
	const struct ap_server *s = NULL;

	ck_assert_int_eq(read_text(numbered, &s), AP_OK);
	ck_assert_uint_eq(s->links[0 * 3 + 1], 4); /* dev 0 and 1 */
	ck_assert_uint_eq(s->links[0 * 3 + 2], 0);
	ck_assert_int_eq(s->generation, 80);
	ck_assert_str_eq(s->chip, ""); /* no such id */
}
END_TEST

/* A link that one end alone has is none; one to itself neither (a cloud's file has such). */
START_TEST(links_without_another_end)
{
	const struct ap_server *s = NULL;

	ck_assert_int_eq(read_text(SYSTEM(
		GPU("0000:01:00.0", "0", "80", "<nvlink target=\"0000:02:00.0\" count=\"4\" tclass=\"0x030200\"/>"
			"<nvlink target=\"0000:01:00.0\" count=\"12\" tclass=\"0x030200\"/>")
		GPU("0000:02:00.0", "1", "80", "<nvlink target=\"0000:07:00.0\" count=\"4\" tclass=\"0x030200\"/>")),
		&s), AP_OK);
	ck_assert_uint_eq(s->links[0 * 2 + 1], 0);
	ck_assert_uint_eq(s->near[0 * 2 + 1], AP_NEAR_HOST);
	ck_assert_uint_eq(s->switch_links, 0);
}
END_TEST

START_TEST(speeds_of_slots)
{
	static const struct { const char *rest; double Bps; } cases[] = {
		{"link_speed=\"16 GT/s\" link_width=\"16\"/>", 32e9},
		{"link_speed=\"16.0 GT/s PCIe\" link_width=\"8\"/>", 16e9},
		{"link_speed=\"2.5 GT/s\" link_width=\"1\"/>", 2.5e9 / 8},
		{"link_speed=\"8 GT/s\" link_width=\"0\"/>", 16e9}, /* as NCCL reads it */
		{"link_speed=\"\" link_width=\"0\"/>", 0},
		{"link_speed=\"Unknown\" link_width=\"16\"/>", 0},
		{"link_speed=\"nan GT/s\" link_width=\"16\"/>", 0},
		{"link_speed=\"1e300 GT/s\" link_width=\"16\"/>", 0},
		{"/>", 0},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		const struct ap_server *s = NULL;

		ck_assert_int_eq(read_text(ap_arena_printf(ctx.arena, SYSTEM(PCI("0000:01:00.0", "%s")),
			cases[i].rest), &s), AP_OK);
		ck_assert_double_eq(s->pcie_Bps, cases[i].Bps);
		ck_assert_uint_eq(s->ndev, 1);
	}
}
END_TEST

START_TEST(faults)
{
	static const struct { const char *text; enum ap_status st; const char *says; } cases[] = {
		{"<system version=\"1\"/>", AP_MEANING, "holds no device"},
		{SYSTEM("<pci busid=\"0000:00:16.0\"/>"), AP_MEANING, "NCCL_TOPO_DUMP_FILE"},
		{SYSTEM("<pci busid=\"0000:00:16.0\" class=\"0x020000\"/>"), AP_MEANING, "holds no device"},
		{"<graphs version=\"1\"/>", AP_MEANING, "NCCL_GRAPH_DUMP_FILE"},
		{"<svg/>", AP_MEANING, "expected <system>"},
		{SYSTEM(GPU("0000:01:00.0", "0", "80", "") GPU("0000:02:00.0", "0", "80", "")), AP_MEANING,
			"dev=\"0\" is that of another"},
		{SYSTEM(GPU("0000:01:00.0", "0", "80", "") GPU("0000:01:00.0", "1", "80", "")), AP_MEANING,
			"busid=\"0000:01:00.0\" is that of another"},
		{SYSTEM(GPU("0000:01:00.0", "0", "80", "") GPU("0000:02:00.0", "1", "90", "")), AP_MEANING,
			"another kind"},
		{SYSTEM(GPU("0000:01:00.0", "0", "80", "<nvlink target=\"0000:02:00.0\" count=\"-1\"/>")), AP_MEANING,
			"count is expected"},
		{"<system><cpu host_hash=\"0x1\">" PCI("0000:01:00.0", "/>") "</cpu><cpu host_hash=\"0x2\">"
			PCI("0000:02:00.0", "/>") "</cpu></system>", AP_MEANING, "another host"},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		const struct ap_server *s = NULL;
		struct ap_ctx own = ap_diag_apart(&ctx);
		struct ap_str text;

		ck_assert_msg(ap_server_read_xml(&own, "t.xml", cases[i].text, strlen(cases[i].text), &s) ==
			cases[i].st, "%s", cases[i].text);
		ap_str_init(&text, ctx.arena);
		ap_diag_render(own.diag, AP_ERROR, 9, &text);
		ck_assert_msg(strstr(text.s, cases[i].says) && strstr(text.s, "t.xml:1:"), "%s", text.s);
	}
}
END_TEST

START_TEST(more_devices_than_a_server_has)
{
	const struct ap_server *s = NULL;
	struct ap_str text;

	for (int n = AP_MOST_SERVER_DEVICES; n <= AP_MOST_SERVER_DEVICES + 1; n++) {
		ap_str_init(&text, ctx.arena);
		ap_str_add(&text, "<system><cpu>");
		for (int i = 0; i < n; i++)
			ap_str_addf(&text, PCI("%04x:01:00.0", "/>"), i);
		ap_str_add(&text, "</cpu></system>");
		ck_assert_int_eq(read_text(text.s, &s), n > AP_MOST_SERVER_DEVICES ? AP_LIMIT : AP_OK);
	}
	ck_assert_uint_eq(s->ndev, AP_MOST_SERVER_DEVICES);
}
END_TEST
