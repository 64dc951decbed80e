/* SPDX-License-Identifier: Apache-2.0 */
/* What each form of a rank table says of the machine, and what is left of it in another form. */
#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "hw/hccl.h"
#include "hw/rank_table.h"
#include "hw_test.h"

/* Names are ordered as strings: node_1, node_10, node_2. */
static const char cloud[] =
	"{\"status\": \"completed\", \"group_count\": \"2\", \"group_list\": ["
	"{\"group_name\": \"a\", \"instance_count\": \"2\", \"device_count\": \"3\", \"instance_list\": ["
	"{\"pod_name\": \"p2\", \"server_id\": \"node_2\", \"devices\": ["
	"{\"device_id\": \"4\", \"device_ip\": \"10.0.2.4\"}]},"
	"{\"pod_name\": \"p1\", \"server_id\": \"node_10\", \"devices\": ["
	"{\"device_id\": \"10\", \"device_ip\": \"10.0.1.10\"},"
	"{\"device_id\": \"9\", \"device_ip\": \"10.0.1.9\"}]}]},"
	"{\"group_name\": \"b\", \"instance_count\": 2, \"device_count\": 2, \"instance_list\": ["
	"{\"pod_name\": \"p3\", \"server_id\": \"node_2\", \"devices\": ["
	"{\"device_id\": 3, \"device_ip\": \"10.0.2.3\"}]},"
	"{\"pod_name\": \"p0\", \"server_id\": \"node_1\", \"devices\": ["
	"{\"device_id\": \"7\", \"device_ip\": \"10.0.0.7\"}]}]}]}";

TEST_FIXTURE(setup, teardown)

START_TEST(cloud_ranks_follow_names_and_devices)
{
	static const struct {
		const char *server;
		int device;
	} expected[] = {{"node_1", 7}, {"node_10", 9}, {"node_10", 10}, {"node_2", 3}, {"node_2", 4}};
	const struct ap_topo *t = NULL;

	ck_assert_int_eq(load(cloud, &t), AP_OK);
	ck_assert_str_eq(t->form, "cloud");
	ck_assert_uint_eq(t->ndev, 5);
	ck_assert_uint_eq(t->nserver, 3);
	for (uint32_t r = 0; r < 5; r++) {
		ck_assert_str_eq(t->server[t->place[r].server], expected[r].server);
		ck_assert_int_eq(t->place[r].device_id, expected[r].device);
	}
	ck_assert_int_eq(said(AP_WARNING, "server-equal"), 1);
	ck_assert_int_eq(said(AP_WARNING, NULL), 1);
}
END_TEST

/* HCCL's template 2, by its values. */
START_TEST(cloud_as_documented)
{
	static const char text[] =
		"{\"status\": \"completed\", \"group_count\": \"1\", \"group_list\": [{\"group_name\":"
		"\"hccl_world_group\", \"instance_count\": \"2\", \"device_count\": \"2\","
		"\"instance_list\": [{\"pod_name\": \"tf-bae41\", \"server_id\": \"node_0\", \"devices\":"
		"[{\"device_id\": \"0\", \"device_ip\": \"192.168.1.8\"}]}, {\"pod_name\": \"tf-tbdf1\","
		"\"server_id\": \"node_1\", \"devices\": [{\"device_id\": \"1\", \"device_ip\":"
		"\"192.168.1.9\"}]}]}]}";
	const struct ap_topo *t = NULL;

	ck_assert_int_eq(load(text, &t), AP_OK);
	ck_assert_uint_eq(t->ndev, 2);
	ck_assert_str_eq(t->server[0], "node_0");
	ck_assert_str_eq(t->place[1].device_ip, "192.168.1.9");
	ck_assert_int_eq(t->place[1].device_id, 1);
	ck_assert_int_eq(said(AP_WARNING, NULL), 0);
}
END_TEST

/* A table of version 1.2: servers of two devices, in pods[] (a letter each; NULL: no pods). */
static const char *pods_table(const char *pods, const char *sites, bool addresses)
{
	size_t n = strlen(pods ? pods : sites);
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	ap_str_add(&s, "{\"version\": \"1.2\", \"status\": \"completed\", \"chip_info\": \"910C\","
		"\"server_list\": [");
	for (size_t i = n; i-- > 0;) { /* backwards: order has no meaning */
		ap_str_addf(&s, "{\"server_id\": \"s%zu\", \"device\": [", i);
		for (int d = 0; d < 2; d++)
			ap_str_addf(&s, "{\"device_id\": \"%d\", \"super_device_id\": \"%zu\","
				"\"device_ip\": \"%s\", \"rank_id\": %zu}%s", d, 1000 + 2 * i + d,
				addresses ? ap_arena_printf(ctx.arena, "10.0.%zu.%d", i, d) : "",
				2 * i + d, d ? "" : ",");
		ap_str_addf(&s, "]}%s", i ? "," : "]");
	}
	for (int k = 0; k < 2; k++) {
		const char *of = k ? sites : pods, *what = k ? "cluster" : "super_pod";

		if (!of)
			continue;
		ap_str_addf(&s, ", \"%s_list\": [", what);
		for (char c = 'z', first = 1; c >= 'a'; c--) {
			bool started = false;

			for (size_t i = 0; i < n; i++) {
				if (of[i] != c)
					continue;
				if (started)
					ap_str_add(&s, ", ");
				else
					ap_str_addf(&s, "%s{\"%s_id\": \"%c\", \"server_list\": [",
						first ? "" : ", ", what, c);
				ap_str_addf(&s, "{\"server_id\": \"s%zu\"}", i);
				started = true;
				first = 0;
			}
			if (started)
				ap_str_add(&s, "]}");
		}
		ap_str_add(&s, "]");
	}
	ap_str_add(&s, "}");
	return s.s;
}

START_TEST(super_pods)
{
	static const uint32_t of[] = {0, 1, 0, 1};
	const struct ap_topo *t = NULL;

	ck_assert_int_eq(load(pods_table("cbcb", NULL, true), &t), AP_OK);
	ck_assert_str_eq(t->form, "1.2");
	ck_assert_uint_eq(t->ndev, 8);
	ck_assert_uint_eq(t->pod.n, 2);
	ck_assert_str_eq(t->pod.id[0], "c"); /* holds rank 0 */
	ck_assert_str_eq(t->pod.id[1], "b");
	ck_assert_mem_eq(t->pod.of, of, sizeof of);
	ck_assert_uint_eq(t->pod.first[1], 1);
	ck_assert_uint_eq(t->pod.next[1], 3);
	ck_assert_uint_eq(t->pod.next[3], AP_NONE);
	ck_assert_uint_eq(t->cluster.n, 0);
	ck_assert_int_eq(t->place[5].super_device_id, 1005);
	ck_assert_int_eq(said(AP_WARNING, NULL) + said(AP_NOTE, NULL), 0);
}
END_TEST

/* Without super_pod_list the servers are plain ones, whatever else the table says. */
START_TEST(plain_servers_of_version_1_2)
{
	static const char text[] =
		"{\"version\": \"1.2\", \"status\": \"completed\", \"server_list\": [{\"server_id\":"
		"\"a\", \"device\": [{\"device_id\": \"0\", \"super_device_id\": \"\", \"rank_id\": \"0\"}]}]}";
	const struct ap_topo *t = NULL;

	ck_assert_int_eq(load(text, &t), AP_OK);
	ck_assert_str_eq(t->form, "1.2");
	ck_assert_uint_eq(t->pod.n, 0);
	ck_assert_int_eq(t->place[0].super_device_id, -1);
}
END_TEST

/* Devices of one super pod need no addresses; those of two do. */
START_TEST(addresses_are_for_the_network)
{
	const struct ap_topo *t = NULL;

	ck_assert_int_eq(load(pods_table("aaa", NULL, false), &t), AP_OK);
	ck_assert_int_eq(said(AP_WARNING, NULL), 0);
	ck_assert_int_eq(load(pods_table("aabb", NULL, false), &t), AP_OK);
	ck_assert_int_eq(said(AP_WARNING, "device-ip"), 1);
	ctx.diag = ap_diag_create(ctx.arena, false);
	ck_assert_int_eq(load(pods_table(NULL, "aa", false), &t), AP_OK);
	ck_assert_int_eq(said(AP_WARNING, "device-ip"), 1);
}
END_TEST

START_TEST(super_device_ids_repeat_in_other_pods_only)
{
	const char *text = pods_table("ab", NULL, true);
	char *same = ap_arena_strdup(ctx.arena, text), *at = strstr(same, "1002");
	const struct ap_topo *t = NULL;

	memcpy(at, "1000", 4);
	ck_assert_int_eq(load(same, &t), AP_OK);
	same = ap_arena_strdup(ctx.arena, pods_table("aa", NULL, true));
	memcpy(strstr(same, "1002"), "1000", 4);
	ck_assert_int_eq(load(same, &t), AP_MEANING);
	ck_assert_int_eq(said(AP_ERROR, "super-device-unique"), 1);
}
END_TEST

START_TEST(clusters_hold_super_pods)
{
	static const uint32_t of[] = {0, 0, 1, 1};
	const struct ap_topo *t = NULL;

	ck_assert_int_eq(load(pods_table("abcd", "xxyy", true), &t), AP_OK);
	ck_assert_uint_eq(t->pod.n, 4);
	ck_assert_uint_eq(t->cluster.n, 2);
	ck_assert_mem_eq(t->cluster.of, of, sizeof of);
	ck_assert_str_eq(t->cluster.id[1], "y");
	ck_assert_int_eq(load(pods_table("aabb", "xyxy", true), &t), AP_MEANING);
	ck_assert_int_eq(said(AP_ERROR, "cluster-pod"), 1);
}
END_TEST

/* Two sites of four devices, numbered over the whole job or in each server. */
static const char *sites(bool job_wide)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	ap_str_add(&s, "{\"version\": \"1.0\", \"status\": \"completed\", \"server_list\": [");
	for (int i = 0; i < 2; i++) {
		ap_str_addf(&s, "%s{\"server_id\": \"server_%d\", \"device\": [", i ? "," : "", i);
		for (int d = 0; d < 20; d++)
			ap_str_addf(&s, "%s{\"device_id\": \"%d\", \"rank_id\": \"%d\"}",
				d ? "," : "", job_wide ? 20 * i + d : d, 20 * i + d);
		ap_str_add(&s, "]}");
	}
	ap_str_add(&s, "], \"cluster_list\": ["
		"{\"cluster_id\": \"c0\", \"server_list\": [{\"server_id\": \"server_0\"}]},"
		"{\"cluster_id\": \"c1\", \"server_list\": [{\"server_id\": \"server_1\"}]}]}");
	return s.s;
}

START_TEST(ids_over_the_whole_job)
{
	const struct ap_topo *t = NULL;

	for (int wide = 0; wide < 2; wide++) {
		const uint32_t *local;

		ck_assert_int_eq(load(sites(wide), &t), AP_OK);
		ck_assert_uint_eq(t->cluster.n, 2);
		ck_assert_int_eq(t->job_wide_ids, wide);
		ck_assert_int_eq(t->place[27].device_id, wide ? 27 : 7);
		local = ap_topo_local_ids(ctx.arena, t);
		for (uint32_t r = 0; r < 40; r++)
			ck_assert_uint_eq(local[r], r % 20);
	}
}
END_TEST

/* A rank of version 2.0: node and, where it has one, pod. */
static void add_rank(struct ap_str *s, int rank, int device, const char *node, const char *pod)
{
	ap_str_addf(s, "%s{\"rank_id\": %d, \"local_id\": %d, \"device_id\": %d, \"level_list\": [",
		rank ? "," : "", rank, device, device);
	if (pod)
		ap_str_addf(s, "{\"net_layer\": 1, \"net_instance_id\": \"%s\", \"net_type\": \"CLOS\","
			"\"rank_addr_list\": [{\"addr_type\": \"EID\", \"addr\": \"00%d\"}]},", pod, rank);
	ap_str_addf(s, "{\"net_layer\": 3, \"net_instance_id\": \"all\"},"
		"{\"net_layer\": 0, \"net_instance_id\": \"%s\", \"net_type\": \"TOPO_FILE_DESC\"}]}", node);
}

static const char *list_table(bool pods)
{
	static const char *const node[] = {"r1", "r0", "r1", "r0", "r2", "r2"};
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	ap_str_add(&s, "{\"status\": \"completed\", \"version\": \"2.0\", \"rank_count\": 6,"
		"\"rank_list\": [");
	for (int r = 0; r < 6; r++)
		add_rank(&s, r, 40 + r, node[r], !pods ? NULL : r < 4 ? "az0" : "az1");
	ap_str_add(&s, "]}");
	return s.s;
}

START_TEST(ranks_and_their_networks)
{
	static const uint32_t server[] = {0, 1, 0, 1, 2, 2}, of[] = {0, 0, 1};
	const struct ap_topo *t = NULL;

	ck_assert_int_eq(load(list_table(true), &t), AP_OK);
	ck_assert_str_eq(t->form, "2.0");
	ck_assert_uint_eq(t->nserver, 3);
	ck_assert_str_eq(t->server[0], "r1");
	for (int r = 0; r < 6; r++) {
		ck_assert_uint_eq(t->place[r].server, server[r]);
		ck_assert_int_eq(t->place[r].device_id, 40 + r);
	}
	ck_assert_uint_eq(t->pod.n, 2);
	ck_assert_mem_eq(t->pod.of, of, sizeof of);
	ck_assert_str_eq(t->pod.id[1], "az1");
	ck_assert_int_eq(t->place[3].super_device_id, 3); /* counted here */
	ck_assert_int_eq(t->place[5].super_device_id, 1);
	ck_assert_int_eq(said(AP_WARNING, NULL), 0);
	ck_assert_int_eq(load(list_table(false), &t), AP_OK);
	ck_assert_uint_eq(t->pod.n, 0);
	ck_assert_int_eq(t->place[3].super_device_id, -1);
}
END_TEST

START_TEST(made_super_pods)
{
	const struct ap_topo *t = NULL, *plain = make_topo(20, 4);

	ck_assert_int_eq(ap_topo_make_pods(&ctx, plain, 8, &t), AP_OK);
	ck_assert_uint_eq(t->pod.n, 3);
	ck_assert_uint_eq(t->pod.of[4], 2);
	ck_assert_str_eq(t->pod.id[2], "pod_2");
	ck_assert_int_eq(t->place[13].super_device_id, 5);
	ck_assert_uint_eq(t->pod.next[2], 3);
	ck_assert_uint_eq(plain->pod.n, 0);
	ck_assert_int_eq(ap_topo_make_pods(&ctx, plain, 20, &t), AP_OK);
	ck_assert_uint_eq(t->pod.n, 1);
	ck_assert_int_eq(ap_topo_make_pods(&ctx, plain, 6, &t), AP_USAGE);
	ck_assert_int_eq(said(AP_ERROR, "device-count"), 1);
}
END_TEST

static void append(void *str, const char *bytes, size_t len)
{
	ap_str_addn(str, bytes, len);
}

/* Every form, as it comes back from the file that `convert` makes of it. */
START_TEST(every_form_is_kept)
{
	const char *const tables[] = {cloud, pods_table("cbcb", NULL, true),
		pods_table("abcd", "xxyy", true), pods_table(NULL, "xy", true), sites(true), sites(false)};
	static const char *const form[] = {"1.0", "1.2", "1.2", "1.0", "1.0", "1.0"};

	for (size_t i = 0; i < AP_COUNT(tables); i++) {
		const struct ap_topo *t = NULL, *again = NULL;
		struct ap_str s;

		ck_assert_int_eq(load(tables[i], &t), AP_OK);
		ap_str_init(&s, ctx.arena);
		ap_topo_write(t, append, &s);
		ck_assert_int_eq(load(s.s, &again), AP_OK);
		ck_assert_str_eq(again->form, form[i]);
		assert_same(t, again);
	}
}
END_TEST

static enum ap_status losses(const char *text)
{
	const struct ap_topo *t = NULL;
	struct ap_json *doc;

	ctx.diag = ap_diag_create(ctx.arena, false);
	ck_assert_int_eq(ap_json_parse(&ctx, "t.json", text, strlen(text), 0, &doc), AP_OK);
	ck_assert_int_eq(ap_topo_load(&ctx, doc, "", &t), AP_OK);
	ctx.diag = ap_diag_create(ctx.arena, false);
	return ap_topo_write_losses(&ctx, doc, t);
}

START_TEST(what_is_not_kept_is_told)
{
	static const char ports[] =
		"{\"version\": \"1.0\", \"status\": \"completed\", \"server_list\": [{\"server_id\": \"a\","
		"\"host_ip\": \"10.0.0.1\", \"device\": [{\"device_id\": 0, \"rank_id\": 0,"
		"\"device_port\": 16666}]}]}";

	ck_assert_int_eq(losses(pods_table("ab", NULL, true)), AP_OK);
	ck_assert_ptr_null(ap_diag_text(ctx.diag, 0, NULL, NULL));
	ck_assert_int_eq(losses(ports), AP_OK);
	ck_assert_str_eq(ap_diag_text(ctx.diag, 0, NULL, NULL),
		"not kept, for the planner has no use for it: host_ip, device_port");
	ck_assert_int_eq(said(AP_WARNING, "convert-lost"), 1);
	ck_assert_int_eq(losses(list_table(false)), AP_MEANING);
	ck_assert_int_eq(said(AP_ERROR, "convert-id"), 1);
}
END_TEST

/* Two servers of one super pod, with numbers that a real machine gave them. */
START_TEST(a_table_from_a_log)
{
	static const char text[] =
		"{\"version\": \"1.2\", \"server_count\": \"2\", \"status\": \"completed\","
		"\"server_list\": [{\"device\": [{\"device_id\": \"3\", \"device_ip\": \"192.23.3.196\","
		"\"super_device_id\": \"98369551\", \"rank_id\": \"0\"}], \"server_id\": \"172.22.0.188\"},"
		"{\"device\": [{\"device_id\": \"3\", \"device_ip\": \"192.45.3.196\","
		"\"super_device_id\": \"190644239\", \"rank_id\": \"1\"}], \"server_id\": \"172.22.0.212\"}],"
		"\"super_pod_list\": [{\"super_pod_id\": \"11\", \"server_list\": ["
		"{\"server_id\": \"172.22.0.188\"}, {\"server_id\": \"172.22.0.212\"}]}]}";
	const struct ap_topo *t = NULL;
	const struct ap_machine *m = NULL;

	ck_assert_int_eq(load(text, &t), AP_OK);
	ck_assert_int_eq(t->place[1].super_device_id, 190644239);
	ck_assert_str_eq(t->pod.id[0], "11");
	ck_assert_int_eq(ap_hccl_check(&ctx, t, "910_93", false), AP_OK);
	ck_assert_int_eq(ap_machine_make(&ctx, t, get_chip("910C"), &m), AP_OK);
	ck_assert_int_eq(m->nlevel, 1);
	ck_assert_str_eq(m->level[0].name, "pod");
	ck_assert_ptr_null(ap_diag_text(ctx.diag, 0, NULL, NULL));
}
END_TEST
