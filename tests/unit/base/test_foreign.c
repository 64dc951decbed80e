/* SPDX-License-Identifier: Apache-2.0 */
#include "base/foreign.h"

#include "base/json.h"
#include "unit.h"

static const struct {
	const char *text;
	const char *says; /* a part of it; NULL: nothing is known of it */
} files[] = {
	{"worker-0 slots=8\nworker-1 slots=8\n", "hostfile"},
	{"# two hosts\r\n\r\n10.0.0.1 slots=4 max_slots=4\r\n10.0.0.2 slots=4 # last\r\n", "--topology"},
	{"node1:8\nnode2:8\nnode3:8", "hostfile"},
	{"a slots=8\nb slots=4\n", "hostfile"},
	{"192.168.*.1 slots=8\n192.168.*.2 slots=8\n", "hostfile"},
	{"gpu[001-003,007],login1\n8(x4),2\n", "hostfile"},
	{"SLURM_JOB_NODELIST=n[1-2]\nSLURM_TASKS_PER_NODE=8(x2)\n", "hostfile"},
	{"10.0.0.1\n10.0.0.2\n", "hostfile"},
	{"gpu[001-003,007]\n", "hostfile"},
	{"<?xml version=\"1.0\"?>\n<!-- a > b -->\n<system version=\"1\"><cpu numaid=\"0\"/></system>", "XML of NCCL"},
	{"<system version=\"1\">\n</system>\n", "<system>"},
	{"\n <topology>\n</topology>", "not NCCL's"},
	{"<graphs version=\"1\"/>", "is XML of NCCL"},
	{"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "is XML (<svg>)"},
	{"\xef\xbb\xbf<a/>", "is XML (<a>)"},
	{"\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-31\n", "matrix of links"},
	{"GPU 0: NVIDIA A10 (UUID: GPU-0)\n\t\x1b[4mGPU0\tCPU Affinity\x1b[0m\nGPU0\t X \t0-31\n", "matrix of links"},
	{"           NPU0       NPU1       CPU Affinity\nNPU0       X          HCCS\n", "matrix of links"},
	{"address_0=192.168.100.101\nnetmask_0=255.255.255.0\n", "hccn.conf"},
	{"[server]\ncount = 2\n", "INI or TOML"},
	{"; note\nkey=value\n", "INI or TOML"},
	{"server_list:\n  - id: 1\n", "YAML"},
	{"---\na: 1\n", "YAML"},
	{"- a\n- b\n", "YAML"},
	{"host: 4\n", "YAML"},
	{"\x1f\x8b\x08\x00", "gzip"},
	{"PK\x03\x04", "zip"},
	{"", NULL},
	{"\n\n", NULL},
	{"{\"a\": 1}", NULL},
	{"{a: 1}", NULL},
	{"[1, 2]", NULL},
	{"[true]", NULL},
	{"[[8, 1]]", NULL},
	{"null", NULL},
	{"\"text\"", NULL},
	{"data_parallel", NULL},
	{"hello world\n", NULL},
	{"< 3", NULL},
	{"\x0a\x10\x08\x01\x12\x0cMatMul-w", NULL}, /* protobuf */
	{"# IR entry: @net\nsubgraph attr:\n", NULL},
};

START_TEST(what_a_text_is)
{
	struct ap_ctx ctx = ctx_create(false);

	for (size_t i = 0; i < AP_COUNT(files); i++) {
		const char *what = ap_foreign(&ctx, files[i].text, strlen(files[i].text));

		if (files[i].says)
			ck_assert_msg(what && strstr(what, files[i].says), "%s: %s", files[i].text, what);
		else
			ck_assert_msg(!what, "%s: %s", files[i].text, what);
	}
	ctx_destroy(&ctx);
}
END_TEST

/* Where JSON is wanted it is said instead of what a parser makes of the first byte; valid JSON is never
 * taken for another format. */
START_TEST(json_says_it)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;

	ck_assert_int_eq(ap_json_parse(&ctx, "hosts", files[0].text, strlen(files[0].text), 0, &doc), AP_SYNTAX);
	ck_contains(messages(&ctx), "autopar-plan: error: hosts: is a hostfile");
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_ERROR), 1);
	ck_assert_int_eq(ap_json_parse(&ctx, "x", "\"node1\"", 7, 0, &doc), AP_OK);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(texts_of_machines)
{
	static const struct { const char *text; enum ap_machine_text is; } cases[] = {
		{"<?xml version=\"1.0\"?>\n<system version=\"1\"/>", AP_TEXT_NCCL_XML},
		{"<graphs version=\"1\"/>", AP_TEXT_NCCL_XML},
		{"<svg/>", AP_TEXT_OTHER},
		{"\tGPU0\tGPU1\tCPU Affinity\n", AP_TEXT_LINK_MATRIX},
		{"           NPU0       NPU1       CPU Affinity\nNPU0       X          HCCS\n", AP_TEXT_LINK_MATRIX},
		{"GPU0 slots=8\nGPU1 slots=8\n", AP_TEXT_HOSTS},
		{"node1:8\n", AP_TEXT_HOSTS},
		{"a:8,b:4\n", AP_TEXT_HOSTS},
		{"a:8,b:x\n", AP_TEXT_OTHER},
		{"node[01-16]", AP_TEXT_HOSTS},
		{"node1: 8\n", AP_TEXT_OTHER},
		{"{}", AP_TEXT_OTHER},
		{"", AP_TEXT_OTHER},
	};
	struct ap_ctx ctx = ctx_create(false);

	for (size_t i = 0; i < AP_COUNT(cases); i++)
		ck_assert_msg(ap_foreign_machine(&ctx, cases[i].text, strlen(cases[i].text)) == cases[i].is, "%s",
			cases[i].text);
	ctx_destroy(&ctx);
}
END_TEST
