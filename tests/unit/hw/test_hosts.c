/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/hosts.h"

#include <inttypes.h>

#include "base/file.h"
#include "base/str.h"
#include "base/vec.h"
#include "hw_test.h"

TEST_FIXTURE(setup, teardown)

/* Hosts as "name:slots ". */
static const char *shown(const struct ap_hosts *h)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	for (uint32_t i = 0; i < h->n; i++)
		ap_str_addf(&s, "%s:%" PRIu32 " ", h->name[i], h->slots[i]);
	return s.s;
}

static enum ap_status read_hosts(const char *text, const struct ap_hosts **out)
{
	return ap_hosts_read(&ctx, "dir/hosts", text, strlen(text), "0123", out);
}

START_TEST(lists)
{
	static const struct { const char *text, *hosts; } cases[] = {
		{"node1 slots=8\nnode2 slots=4 max_slots=8\n", "node1:8 node2:4 "},
		{"node1:8\nnode2:4", "node1:8 node2:4 "},
		{"# two\r\n\r\n  10.0.0.1 slots=8\r\n10.0.0.2\t slots=8 # last\r\n", "10.0.0.1:8 10.0.0.2:8 "},
		{"192.168.*.1 slots=8\n192.168.*.2 slots=8\n", "192.168.*.1:8 192.168.*.2:8 "},
		{"job-a-master-0\njob-a-worker-0", "job-a-master-0:0 job-a-worker-0:0 "},
		{"node[01-04]", "node01:0 node02:0 node03:0 node04:0 "},
		{"gpu[001-003,007],login1", "gpu001:0 gpu002:0 gpu003:0 gpu007:0 login1:0 "},
		{"rack[1-2]node[1-2]", "rack1node1:0 rack1node2:0 rack2node1:0 rack2node2:0 "},
		{"a100-[0,9-11]", "a100-0:0 a100-9:0 a100-10:0 a100-11:0 "},
		{"n[1-2].site slots=4", "n1.site:4 n2.site:4 "},
		{"n[1-2]:4 ifname=ib0", "n1:4 n2:4 "},
		{"a1:8,b1:4", "a1:8 b1:4 "},
		{"a1,b[1-2]:4,c1:2", "a1:0 b1:4 b2:4 c1:2 "},
		{"a1:2,b1 slots=4", "a1:2 b1:4 "},
		{"n[9-10]\n8(x2)\n", "n9:8 n10:8 "},
		{"n[1-5]\n8(x4),2\n", "n1:8 n2:8 n3:8 n4:8 n5:2 "},
		{"a1\nb1\n2,4\n", "a1:2 b1:4 "},
		{"n1\nn1\nn2\nn1\n", "n1:3 n2:1 "},
		{"SLURM_JOB_ID=4\nSLURM_JOB_NODELIST='n[1-2]'\nSLURM_TASKS_PER_NODE=4(x2)\n", "n1:4 n2:4 "},
		{"export SLURM_NODELIST=\"n7\"\n", "n7:0 "},
		{"\xef\xbb\xbfn1 slots=2\n", "n1:2 "},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		const struct ap_hosts *h = NULL;

		ck_assert_msg(read_hosts(cases[i].text, &h) == AP_OK, "%s", cases[i].text);
		ck_assert_str_eq(shown(h), cases[i].hosts);
	}
	ck_assert_int_eq(said(AP_NOTE, NULL) + said(AP_WARNING, NULL) + said(AP_ERROR, NULL), 0);
}
END_TEST

START_TEST(faults)
{
	static const struct { const char *text; enum ap_status st; const char *says; } cases[] = {
		{"", AP_MEANING, "names no host"},
		{"# nothing\n", AP_MEANING, "names no host"},
		{"n1 slots=0\n", AP_SYNTAX, "1:10: expected one number of slots"},
		{"n1 slots=8x\n", AP_SYNTAX, "expected one number"},
		{"n1 slots=8 slots=8\n", AP_SYNTAX, "expected one number"},
		{"n1:8 slots=8\n", AP_SYNTAX, "expected one number"},
		{"n1:\n", AP_SYNTAX, "expected a number of slots"},
		{"n1 8\n", AP_SYNTAX, "KEY=VALUE"},
		{"n1\nn[1-2\n", AP_SYNTAX, "2:6: expected ]"},
		{"n[]\n", AP_SYNTAX, "expected a number"},
		{"n[5-2]\n", AP_SYNTAX, "not below the first"},
		{"n[1-]\n", AP_SYNTAX, "not below the first"},
		{"n[99999999999]\n", AP_SYNTAX, "at most nine digits"},
		{"n1,,n2\n", AP_SYNTAX, "expected the name"},
		{",n1\n", AP_SYNTAX, "expected the name"},
		{"n[1-2]/x\n", AP_SYNTAX, "does not belong"},
		{"n1 slots=8\nn1 slots=8\n", AP_MEANING, "stands twice"},
		{"n1\nn1 slots=8\n", AP_MEANING, "stands twice"},
		{"n1 slots=8\n8\n", AP_MEANING, "one of both"},
		{"n[1-4]\n8(x3)\n", AP_MEANING, "slots of 3 hosts, but 4 are named"},
		{"n[1-4]\n8(x5)\n", AP_MEANING, "more than the 4 hosts"},
		{"n1\n8(x\n", AP_SYNTAX, "how many hosts"},
		{"n1\n(x2)\n", AP_SYNTAX, "numbers of slots"},
		{"n[0-99999999]\n", AP_LIMIT, "1048576"},
		{"n[0-9999][0-9999]\n", AP_LIMIT, "1048576"},
		{"n[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]\n", AP_LIMIT, "1048576"},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		const struct ap_hosts *h = NULL;
		struct ap_ctx own = ap_diag_apart(&ctx);
		struct ap_str text;

		ck_assert_msg(ap_hosts_read(&own, "hosts", cases[i].text, strlen(cases[i].text), "", &h) ==
			cases[i].st, "%s", cases[i].text);
		ap_str_init(&text, ctx.arena);
		ap_diag_render(own.diag, AP_ERROR, 9, &text);
		ck_assert_msg(strstr(text.s, cases[i].says) != NULL, "%s: %s", cases[i].text, text.s);
	}
}
END_TEST

/* Repeated hosts are slots, and so many are no more than hosts may be. */
START_TEST(short_texts_that_mean_much)
{
	const struct ap_hosts *h = NULL;
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	for (int i = 0; i < 64; i++)
		ap_str_add(&s, "n[0-99999]\n");
	ck_assert_int_eq(ap_hosts_read(&ctx, "hosts", s.s, s.len, "", &h), AP_LIMIT);
	ap_str_init(&s, ctx.arena);
	for (int i = 0; i < 1000; i++)
		ap_str_add(&s, "[0]");
	ck_assert_int_eq(ap_hosts_read(&ctx, "hosts", s.s, s.len, "", &h), AP_LIMIT);
}
END_TEST

START_TEST(ranks)
{
	const struct ap_hosts *h = NULL;
	const struct ap_topo *t = NULL;

	ck_assert_int_eq(read_hosts("b slots=2\na slots=3\n", &h), AP_OK);
	ck_assert_int_eq(ap_hosts_topo(&ctx, h, 0, &t), AP_OK);
	ck_assert_str_eq(t->name, "hosts");
	ck_assert_str_eq(t->sha256, "0123");
	ck_assert_str_eq(t->form, "hostfile");
	ck_assert_uint_eq(t->ndev, 5);
	ck_assert_uint_eq(t->nserver, 2);
	ck_assert_str_eq(t->server[0], "b"); /* in the file's order */
	ck_assert_uint_eq(t->first[1], 2);
	ck_assert_uint_eq(t->place[4].server, 1);
	ck_assert_int_eq(t->place[4].device_id, 2);
	ck_assert_uint_eq(t->place[1].next, AP_NONE);

	ck_assert_int_eq(read_hosts("n[1-3]", &h), AP_OK);
	ck_assert_int_eq(ap_hosts_topo(&ctx, h, 8, &t), AP_OK);
	ck_assert_uint_eq(t->ndev, 24);
	ck_assert_int_eq(ap_hosts_topo(&ctx, h, 0, &t), AP_USAGE);
	ck_assert_int_eq(ap_hosts_topo(&ctx, h, AP_MAX_DEVICES, &t), AP_LIMIT);
}
END_TEST

/* As a rank table, written and read back, the same machine. */
START_TEST(as_a_rank_table)
{
	const struct ap_hosts *h = NULL;
	const struct ap_topo *t = NULL, *back = NULL;
	struct ap_str s;

	ck_assert_int_eq(read_hosts("n[1-3] slots=4\nlast slots=4\n", &h), AP_OK);
	ck_assert_int_eq(ap_hosts_topo(&ctx, h, 0, &t), AP_OK);
	ap_str_init(&s, ctx.arena);
	ap_topo_write(t, ap_str_take, &s);
	ck_assert_int_eq(load(s.s, &back), AP_OK);
	assert_same(t, back);
}
END_TEST
