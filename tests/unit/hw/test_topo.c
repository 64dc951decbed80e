/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/file.h"
#include "base/json_write.h"
#include "base/str.h"
#include "base/vec.h"
#include "hw/hccl.h"
#include "hw_test.h"

static enum ap_status load_file(const char *name, const struct ap_topo **out)
{
	char *text;
	size_t len;

	AP_TRY(ap_file_read(&ctx, ap_arena_printf(ctx.arena, "%s/%s", AP_SOURCE_ROOT "/tests/bad/rank_table", name),
		AP_FILE_MAX_BYTES, &text, &len));
	return load(text, out);
}

#define CARD(device, ip, rank) \
	"{\"device_id\": \"" #device "\", \"device_ip\": \"" ip "\", \"rank_id\": \"" #rank "\"}"

/* Two servers of two cards; ranks run 2 3 on the server that is listed first. */
static const char four[] =
	"{\"version\": \"1.0\", \"server_count\": \"2\", \"status\": \"completed\", \"server_list\": ["
	"{\"server_id\": \"b\", \"device\": [" CARD(1, "192.168.0.4", 3) ", "
	CARD(0, "192.168.0.3", 2) "]},"
	"{\"server_id\": \"a\", \"device\": [" CARD(5, "192.168.0.1", 0) ", "
	CARD(4, "192.168.0.2", 1) "]}]}";

TEST_FIXTURE(setup, teardown)

START_TEST(form_1_0)
{
	const struct ap_topo *t = NULL;

	ck_assert_int_eq(load(four, &t), AP_OK);
	ck_assert_str_eq(t->name, "table.json");
	ck_assert_str_eq(t->sha256, "0123");
	ck_assert_str_eq(t->form, "1.0");
	ck_assert_str_eq(t->chip_info, "");
	ck_assert_uint_eq(t->ndev, 4);
	ck_assert_uint_eq(t->nserver, 2);
	ck_assert_str_eq(t->server[0], "a"); /* holds rank 0 */
	ck_assert_str_eq(t->server[1], "b");
	ck_assert_int_eq(t->place[0].device_id, 5);
	ck_assert_int_eq(t->place[2].device_id, 0);
	ck_assert_uint_eq(t->place[2].server, 1);
	ck_assert_str_eq(t->place[3].device_ip, "192.168.0.4");
	ck_assert_uint_eq(t->first[1], 2);
	ck_assert_uint_eq(t->place[2].next, 3);
	ck_assert_uint_eq(t->place[3].next, AP_NONE);
	ck_assert_int_eq(said(AP_NOTE, NULL) + said(AP_WARNING, NULL) + said(AP_ERROR, NULL), 0);
}
END_TEST

/* The listing of MindSpore's tutorial, trailing comma and all. */
START_TEST(lab_form_as_printed)
{
	const struct ap_topo *t = NULL;

	ck_assert_int_eq(load_file("trailing-comma.json", &t), AP_OK);
	ck_assert_int_eq(said(AP_WARNING, "trailing-comma"), 1);
	ck_assert_int_eq(said(AP_WARNING, NULL), 1);
	ck_assert_str_eq(t->form, "lab");
	ck_assert_str_eq(t->chip_info, "910");
	ck_assert_uint_eq(t->ndev, 8);
	ck_assert_uint_eq(t->nserver, 1);
	ck_assert_str_eq(t->server[0], "10.*.*.*");
	for (int r = 0; r < 8; r++)
		ck_assert_int_eq(t->place[r].device_id, r);
	ck_assert_str_eq(t->place[7].device_ip, "192.4.27.7");
	ck_assert_int_eq(ap_hccl_check(&ctx, t, "910", false), AP_OK);
}
END_TEST

START_TEST(groups_of_a_lab_table_are_joined)
{
	static const char text[] =
		"{\"deploy_mode\": \"lab\", \"status\": \"completed\", \"group_count\": 2,"
		"\"para_plane_nic_location\": \"device\", \"group_list\": ["
		"{\"device_num\": 1, \"server_num\": 1, \"group_name\": \"x\", \"instance_count\": 1,"
		"\"instance_list\": [{\"devices\": [{\"device_id\": 3}], \"rank_id\": 1, \"server_id\": 77}]},"
		"{\"device_num\": 1, \"server_num\": 1, \"group_name\": \"y\", \"instance_count\": \"1\","
		"\"instance_list\": [{\"devices\": [{\"device_id\": \"2\"}], \"rank_id\": \"0\","
		"\"server_id\": \"77\"}]}]}";
	const struct ap_topo *t = NULL;

	ck_assert_int_eq(load(text, &t), AP_OK);
	ck_assert_uint_eq(t->nserver, 1);
	ck_assert_str_eq(t->server[0], "77");
	ck_assert_int_eq(t->place[0].device_id, 2);
	ck_assert_int_eq(t->place[1].device_id, 3);
	ck_assert_int_eq(said(AP_WARNING, NULL), 0);
}
END_TEST

/* One file per check; it trips this check and no other of its level. */
static const struct {
	const char *check;
	enum ap_level level;
	bool loads; /* the fault, if any, is one of HCCL's rules */
} checks[] = {
	{"chip-mixed", AP_ERROR, false},
	{"cluster-id", AP_ERROR, false},
	{"cluster-level", AP_NOTE, true},
	{"cluster-pod", AP_ERROR, false},
	{"cluster-server", AP_ERROR, false},
	{"cluster-unique", AP_ERROR, false},
	{"count-match", AP_ERROR, false},
	{"device-ip", AP_WARNING, true},
	{"device-ip-count", AP_ERROR, false},
	{"device-ip-family", AP_ERROR, false},
	{"device-ip-unique", AP_ERROR, false},
	{"device-unique", AP_ERROR, false},
	{"form-known", AP_ERROR, false},
	{"form-mixed", AP_ERROR, false},
	{"form-read", AP_ERROR, false},
	{"group-unique", AP_ERROR, false},
	{"hccl-cards", AP_ERROR, true},
	{"hccl-device-id", AP_ERROR, true},
	{"hccl-group", AP_ERROR, true},
	{"hccl-module", AP_ERROR, true},
	{"hccl-pair", AP_ERROR, true},
	{"host-ip", AP_ERROR, false},
	{"id-integer", AP_ERROR, false},
	{"instance-device", AP_ERROR, false},
	{"key-missing", AP_ERROR, false},
	{"key-type", AP_ERROR, false},
	{"key-unknown", AP_WARNING, true},
	{"list-empty", AP_ERROR, false},
	{"net-instance", AP_ERROR, false},
	{"net-layer", AP_ERROR, false},
	{"nic-location", AP_ERROR, false},
	{"pod-equal", AP_ERROR, false},
	{"pod-id", AP_ERROR, false},
	{"pod-level", AP_NOTE, true},
	{"pod-name", AP_ERROR, false},
	{"pod-server", AP_ERROR, false},
	{"pod-unique", AP_ERROR, false},
	{"rank-contiguous", AP_NOTE, true},
	{"rank-gap", AP_ERROR, false},
	{"rank-unique", AP_ERROR, false},
	{"server-equal", AP_WARNING, true},
	{"server-id", AP_ERROR, false},
	{"server-masked", AP_WARNING, true},
	{"server-unique", AP_ERROR, false},
	{"status-completed", AP_WARNING, true},
	{"super-device-unique", AP_ERROR, false},
	{"trailing-comma", AP_WARNING, true},
};

enum { NCHECK = AP_COUNT(checks) };

/* The check that a file is for: its name up to the first dot; NCHECK if there is none. */
static int check_of(const char *file)
{
	size_t len = strcspn(file, ".");

	for (int i = 0; i < NCHECK; i++)
		if (strlen(checks[i].check) == len && strncmp(checks[i].check, file, len) == 0)
			return i;
	return NCHECK;
}

/* What a run does with a table: its chip, or an Ascend 910, joins it and holds it to the rules. */
static enum ap_status use(const struct ap_topo *t)
{
	const struct ap_chip *chip = NULL;
	const struct ap_machine *m;

	ck_assert_int_eq(ap_chip_by_info(&ctx, *t->chip_info ? t->chip_info : "910", &chip), AP_OK);
	ck_assert_ptr_nonnull(chip);
	ck_assert_int_eq(ap_machine_make(&ctx, t, chip, &m), AP_OK);
	return ap_hccl_check(&ctx, t, chip->hccl, false);
}

static void check_file(const char *file, int i)
{
	const struct ap_topo *t = NULL;
	enum ap_status st;
	const char *what;

	ctx.diag = ap_diag_create(ctx.arena, false);
	st = load_file(file, &t);
	ck_assert_msg((st == AP_OK) == checks[i].loads, "%s: status %d", file, st);
	if (checks[i].loads && checks[i].level == AP_ERROR)
		st = use(t);
	else if (checks[i].loads && strstr(checks[i].check, "-level"))
		use(t);
	what = ap_diag_text(ctx.diag, 0, NULL, NULL);
	ck_assert_msg(st == (checks[i].level == AP_ERROR ? AP_MEANING : AP_OK), "%s", file);
	ck_assert_msg(said(checks[i].level, checks[i].check) >= 1, "%s: %s", file, what);
	ck_assert_msg(said(checks[i].level, checks[i].check) == said(checks[i].level, NULL), "%s: %s",
		file, what);
	if (checks[i].level == AP_WARNING)
		ck_assert_msg(said(AP_ERROR, NULL) == 0, "%s: %s", file, what);
}

START_TEST(each_bad_table_trips_its_check)
{
	bool met[NCHECK] = {false};
	DIR *dir = opendir(AP_SOURCE_ROOT "/tests/bad/rank_table");
	struct dirent *e;

	ck_assert_ptr_nonnull(dir);
	while ((e = readdir(dir))) {
		int i;

		if (e->d_name[0] == '.')
			continue;
		i = check_of(e->d_name);
		ck_assert_msg(i < NCHECK, "no check for %s", e->d_name);
		check_file(e->d_name, i);
		met[i] = true;
	}
	closedir(dir);
	for (int i = 0; i < NCHECK; i++)
		ck_assert_msg(met[i], "no file for %s", checks[i].check);
}
END_TEST

/* One card with this rank_id. */
static enum ap_status load_rank(const char *rank)
{
	const struct ap_topo *t = NULL;

	return load(ap_arena_printf(ctx.arena, "{\"version\": \"1.0\", \"status\": \"completed\","
		"\"server_list\": [{\"server_id\": \"a\", \"device\": [{\"device_id\": 0,"
		"\"rank_id\": %s}]}]}", rank), &t);
}

START_TEST(ids_are_decimal)
{
	static const char *const good[] = {"\"0\"", "\"00\"", "0", "0.0", "-0", "0e5"};
	static const char *const bad[] = {"\"\"", "\" 0\"", "\"0 \"", "\"+0\"", "\"0x0\"", "\"-1\"",
		"\"-0\"", "\"0e0\"", "\"\\uff10\"", "\"4294967296\"", "\"18446744073709551616\"", "4294967296",
		"1e400", "-1", "3.5", "true", "null", "[]", "{}"};

	for (size_t i = 0; i < AP_COUNT(good); i++)
		ck_assert_msg(load_rank(good[i]) == AP_OK, "%s", good[i]);
	for (size_t i = 0; i < AP_COUNT(bad); i++) {
		ctx.diag = ap_diag_create(ctx.arena, false);
		ck_assert_msg(load_rank(bad[i]) == AP_MEANING, "%s", bad[i]);
		if (strcmp(bad[i], "1e400") != 0) /* no finite number: refused as JSON */
			ck_assert_int_eq(said(AP_ERROR, "id-integer"), 1);
	}
}
END_TEST

START_TEST(messages_say_where_and_what)
{
	const struct ap_topo *t = NULL;
	struct ap_str s;

	ck_assert_int_eq(load_file("rank-unique.json", &t), AP_MEANING);
	ap_str_init(&s, ctx.arena);
	ap_diag_render(ctx.diag, AP_NOTE, 20, &s);
	ck_assert_str_eq(s.s,
		"autopar-plan: error: dir/table.json:7:4: /server_list/0/device/1: "
		"rank 1 is given twice [rank-unique]\n"
		"autopar-plan: note: dir/table.json:6:4: /server_list/0/device/0: "
		"it is first here [rank-unique]\n");

	ctx.diag = ap_diag_create(ctx.arena, false);
	ck_assert_int_eq(load_file("rank-gap.from-one.json", &t), AP_MEANING);
	ck_assert_str_eq(ap_diag_text(ctx.diag, 0, NULL, NULL),
		"2 cards, but no rank 0; ranks must be 0 to 1");

	ctx.diag = ap_diag_create(ctx.arena, false);
	ck_assert_int_eq(load_file("form-read.1.1.json", &t), AP_MEANING);
	ck_assert_str_eq(ap_diag_text(ctx.diag, 0, NULL, NULL),
		"rank tables of form 1.1 are not read: they describe jobs of CPUs beside devices; "
		"those of the forms lab, cloud, 1.0, 1.2, 2.0 are");

	ctx.diag = ap_diag_create(ctx.arena, false);
	ck_assert_int_eq(load_file("count-match.devices.json", &t), AP_MEANING);
	ck_assert_str_eq(ap_diag_text(ctx.diag, 0, NULL, NULL),
		"device_num is 4, but there are 2 instances");
}
END_TEST

START_TEST(all_faults_are_reported)
{
	static const char text[] = "{\"version\": \"1.0\", \"server_count\": 3, \"status\": \"completed\","
		"\"server_list\": [{\"server_id\": \"\", \"device\": []},"
		"{\"server_id\": \"a\", \"device\": [{\"device_id\": 16, \"rank_id\": \"x\"}]}]}";
	const struct ap_topo *t = NULL;

	ck_assert_int_eq(load(text, &t), AP_MEANING);
	ck_assert_int_eq(said(AP_ERROR, "count-match"), 1);
	ck_assert_int_eq(said(AP_ERROR, "server-id"), 1);
	ck_assert_int_eq(said(AP_ERROR, "list-empty"), 1);
	ck_assert_int_eq(said(AP_ERROR, "id-integer"), 2);
}
END_TEST

START_TEST(unknown_keys_are_named_once)
{
	/* what platforms add where they please, and what MindSpore's templates explain */
	static const char extras[] = "{\"version\": \"1.0\", \"status\": \"completed\", \"board_id\": \"0x0\","
		"\"hccl_config_json_spec\": {\"rank_id\": \"what it is\", \"more\": {}}, \"server_list\":"
		"[{\"server_id\": \"a\", \"server_ip\": \"\", \"container_ip\": \"\", \"pod_ip\": \"\","
		"\"hardware_type\": \"x\", \"host_nic_ip\": \"reserve\", \"device\": [{\"device_id\": 0,"
		"\"rank_id\": 0, \"dpu_ip\": \"\", \"numa_id\": \"\", \"eid\": \"\"}]}]}";
	const struct ap_topo *t = NULL;

	ck_assert_int_eq(load(extras, &t), AP_OK);
	ck_assert_int_eq(said(AP_WARNING, NULL), 0);

	ctx.diag = ap_diag_create(ctx.arena, false);
	ck_assert_int_eq(load_file("key-unknown.device.json", &t), AP_OK);
	ck_assert_int_eq(said(AP_WARNING, NULL), 1);
	ck_assert_str_eq(ap_diag_text(ctx.diag, 0, NULL, NULL),
		"unknown key \"devcie_port\"; is \"device_port\" meant? (8 such)");

	/* beside the fault that it leads to */
	ctx.diag = ap_diag_create(ctx.arena, false);
	ck_assert_int_eq(load("{\"version\": \"1.0\", \"status\": \"completed\", \"server_list\":"
		"[{\"server_id\": \"a\", \"devices\": []}]}", &t), AP_MEANING);
	ck_assert_str_eq(ap_diag_text(ctx.diag, 0, NULL, NULL),
		"unknown key \"devices\"; is \"device\" meant?");

	ctx.diag = ap_diag_create(ctx.arena, true);
	ck_assert_int_eq(load_file("key-unknown.json", &t), AP_MEANING);
}
END_TEST

START_TEST(devices_are_of_one_chip)
{
	static const char form[] = "{\"version\": \"1.0\", \"status\": \"completed\", \"server_list\": ["
		"{\"server_id\": \"a\", \"chip_info\": \"%s\", \"device\": [{\"device_id\": 0, \"rank_id\": 0}]},"
		"{\"server_id\": \"b\", \"chip_info\": \"%s\", \"device\": [{\"device_id\": 0, \"rank_id\": 1}]}]}";
	const struct ap_topo *t = NULL;

	ck_assert_int_eq(load(ap_arena_printf(ctx.arena, form, "910B3", "Ascend910b3"), &t), AP_OK);
	ck_assert_str_eq(t->chip_info, "910B3");
	ck_assert_int_eq(load(ap_arena_printf(ctx.arena, form, "910B3", "910B1"), &t), AP_MEANING);
	ck_assert_int_eq(said(AP_ERROR, "chip-mixed"), 1);

	ctx.diag = ap_diag_create(ctx.arena, false);
	ck_assert_int_eq(load_file("chip-mixed.device.json", &t), AP_MEANING);
	ck_assert_str_eq(ap_diag_text(ctx.diag, 0, NULL, NULL),
		"chip_info \"910A\" of device \"7\" of server \"10.0.0.1\", but \"910B3\" of device \"0\" of "
		"server \"10.0.0.1\"; a cluster of different chips is not planned for, only one whose devices are "
		"alike");
}
END_TEST

START_TEST(addresses_are_kept_as_text)
{
	static const char *const ips[] = {"fe80::1%eth0", "[2001:db8::1]", "10.*.*.*", "host-7",
		"\x1b[31m", "999.1.1.1"};
	static const int warned[] = {0, 0, 1, 1, 1, 1};

	for (size_t i = 0; i < AP_COUNT(ips); i++) {
		const struct ap_topo *t = NULL;
		struct ap_str s;
		struct ap_jw w;

		ap_str_init(&s, ctx.arena);
		ap_jw_str_init(&w, &s, 0);
		ap_jw_str(&w, ips[i]);
		ctx.diag = ap_diag_create(ctx.arena, false);
		ck_assert_int_eq(load(ap_arena_printf(ctx.arena, "{\"version\": \"1.0\","
			"\"status\": \"completed\", \"server_list\": [{\"server_id\": \"a\", \"device\":"
			"[{\"device_id\": 0, \"rank_id\": 0, \"device_ip\": %s}]}]}", s.s), &t), AP_OK);
		ck_assert_str_eq(t->place[0].device_ip, ips[i]);
		ck_assert_int_eq(said(AP_WARNING, "device-ip"), warned[i]);
	}
}
END_TEST

START_TEST(strict_refuses_what_is_odd)
{
	const struct ap_topo *t = NULL;

	ctx.diag = ap_diag_create(ctx.arena, true);
	ck_assert_int_eq(load_file("status-completed.json", &t), AP_MEANING);
	ck_assert_int_eq(said(AP_ERROR, "status-completed"), 1);
}
END_TEST

static void append(void *str, const char *bytes, size_t len)
{
	ap_str_addn(str, bytes, len);
}

START_TEST(written_tables_read_back)
{
	static const char *const files[] = {"trailing-comma.json", "rank-contiguous.json",
		"device-ip.missing.json", "server-equal.json"};
	const struct ap_topo *t = NULL, *again = NULL;
	struct ap_str s;

	for (size_t i = 0; i < AP_COUNT(files); i++) {
		ap_str_init(&s, ctx.arena);
		ck_assert_int_eq(load_file(files[i], &t), AP_OK);
		ap_topo_write(t, append, &s);
		ck_assert_int_eq(load(s.s, &again), AP_OK);
		ck_assert_str_eq(again->form, "1.0");
		assert_same(t, again);
	}
	ap_str_init(&s, ctx.arena);
	ck_assert_int_eq(ap_topo_make(&ctx, 3, 2, &t), AP_OK);
	ap_topo_write(t, append, &s);
	ck_assert_str_eq(s.s, "{\n  \"version\": \"1.0\",\n  \"server_count\": \"2\",\n"
		"  \"server_list\": [\n    {\n      \"server_id\": \"server_0\",\n      \"device\": [\n"
		"        {\"device_id\": \"0\", \"rank_id\": \"0\"},\n"
		"        {\"device_id\": \"1\", \"rank_id\": \"1\"}\n      ],\n"
		"      \"host_nic_ip\": \"reserve\"\n    },\n    {\n      \"server_id\": \"server_1\",\n"
		"      \"device\": [\n        {\"device_id\": \"0\", \"rank_id\": \"2\"}\n      ],\n"
		"      \"host_nic_ip\": \"reserve\"\n    }\n  ],\n  \"status\": \"completed\"\n}\n");
}
END_TEST

START_TEST(made_topologies)
{
	const struct ap_topo *t = make_topo(10, 4);

	ck_assert_uint_eq(t->nserver, 3);
	ck_assert_str_eq(t->form, "given");
	ck_assert_str_eq(t->server[2], "server_2");
	ck_assert_uint_eq(t->place[9].server, 2);
	ck_assert_int_eq(t->place[9].device_id, 1);
	ck_assert_uint_eq(t->first[1], 4);
	ck_assert_int_eq(said(AP_NOTE, NULL), 0);
	ck_assert_uint_eq(make_topo(AP_MAX_DEVICES, 8)->nserver, AP_MAX_DEVICES / 8);
	ck_assert_int_eq(said(AP_WARNING, "device-limit"), 1);
	ck_assert_int_eq(ap_topo_make(&ctx, 0, 8, &t), AP_USAGE);
	ck_assert_int_eq(ap_topo_make(&ctx, AP_MAX_DEVICES + 1, 8, &t), AP_USAGE);
	ck_assert_int_eq(ap_topo_make(&ctx, -1, 8, &t), AP_USAGE);
	ck_assert_int_eq(ap_topo_make(&ctx, 8, 0, &t), AP_USAGE);
	ck_assert_int_eq(ap_topo_make(&ctx, INT64_MAX, INT64_MAX, &t), AP_USAGE);
}
END_TEST

/* cards cards, eight a server, listed backwards. */
static const char *large_table(uint32_t cards)
{
	struct ap_str s;
	struct ap_jw w;

	ap_str_init(&s, ctx.arena);
	ap_jw_str_init(&w, &s, 0);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "version", "1.0");
	ap_jw_kstr(&w, "status", "completed");
	ap_jw_key(&w, "server_list");
	ap_jw_arr(&w);
	for (uint32_t r = cards; r-- > 0;) {
		if (r % 8 == 7) {
			ap_jw_obj(&w);
			ap_jw_kstr(&w, "server_id", ap_arena_printf(ctx.arena, "node-%u", r / 8));
			ap_jw_key(&w, "device");
			ap_jw_arr(&w);
		}
		ap_jw_obj(&w);
		ap_jw_kint(&w, "device_id", r % 8);
		ap_jw_kint(&w, "rank_id", r);
		ap_jw_end(&w);
		if (r % 8 == 0) {
			ap_jw_end(&w);
			ap_jw_end(&w);
		}
	}
	ap_jw_end(&w);
	ap_jw_end(&w);
	ap_jw_finish(&w);
	return s.s;
}

START_TEST(large_tables)
{
	const struct ap_topo *t = NULL;

	ck_assert_int_eq(load(large_table(4096), &t), AP_OK);
	assert_same(t, t);
	ck_assert_int_eq(said(AP_NOTE, "device-limit"), 0);
	ck_assert_int_eq(load(large_table(65536), &t), AP_OK);
	ck_assert_uint_eq(t->nserver, 8192);
	ck_assert_str_eq(t->server[8191], "node-8191");
	ck_assert_int_eq(said(AP_NOTE, "device-limit"), 1);
}
END_TEST
