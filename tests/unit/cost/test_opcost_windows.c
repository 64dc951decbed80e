/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and normalisation over a batch: collectives, seconds and bytes worked out by hand. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "cost/comms.h"
#include "cost/cost.h"
#include "cost/move.h"
#include "cost/opcost.h"
#include "cost/task.h"
#include "hw/coll.h"
#include "shard/layout.h"
#include "fixture.h"
#include "harness.h"

#define NET(training) \
	"{'schema':'autopar-graph/1','name':'net'," \
	"'inputs':[{'name':'x','shape':[32,64,56,56],'dtype':'float16','batch_dim':0}]," \
	"'parameters':[{'name':'b0','shape':[56],'dtype':'float16'}," \
	"{'name':'w','shape':[128,64,3,3],'dtype':'float16'}," \
	"{'name':'gamma','shape':[128],'dtype':'float32'}," \
	"{'name':'beta','shape':[128],'dtype':'float32'}," \
	"{'name':'mean','shape':[128],'dtype':'float32','trainable':false}," \
	"{'name':'variance','shape':[128],'dtype':'float32','trainable':false}]," \
	"'operators':[" \
	"{'name':'add','type':'Add','inputs':['x','b0'],'outputs':[{'name':'x0'}]}," \
	"{'name':'conv','type':'Conv2D','inputs':['x0','w'],'outputs':[{'name':'y'}]," \
	"'attrs':{'pad_mode':'same'}}," \
	"{'name':'bn','type':'BatchNorm','inputs':['y','gamma','beta','mean','variance']," \
	"'outputs':[{'name':'z'}],'attrs':{'is_training':" training "}}," \
	"{'name':'loss','type':'ReduceMean','inputs':['z'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

static const char *const phases[] = {"forward", "backward", "gradient", "optimizer", "recompute"};

/* Counts and placement of an operator, and its task. */
static const struct ap_task *place(struct fixture *f, const char *name, const char *cut,
	struct ap_placement *p)
{
	ap_id node = fixture_node(f, name);
	int32_t count[AP_MAX_FACTOR];
	const struct ap_task *tasks;

	ap_tasks_make(&f->ctx, f->graph, &f->step, &tasks);
	fixture_counts(f, node, cut, count);
	ap_placement_make(&f->graph->node[node].bound, count, f->machine->ndev, p);
	return &tasks[node];
}

static void write_comm(void *user, const struct ap_comm *c)
{
	struct ap_str *s = user;

	ap_str_addf(s, "%s%s %s %lld", s->len ? "; " : "", phases[c->phase], ap_coll_name(c->kind),
		(long long)c->bytes);
	for (int k = 0; k < c->axes.n; k++)
		ap_str_addf(s, " %dx%d", c->axes.axis[k].size, c->axes.axis[k].stride);
}

/* "partial 0 4x1; forward AllReduce 512 4x1; ...", ranks and stride of each axis. */
static const char *derived(struct fixture *f, const char *name, const char *cut)
{
	struct ap_placement p;
	const struct ap_task *t = place(f, name, cut, &p);
	struct ap_str s;

	ap_str_init(&s, f->ctx.arena);
	for (int i = 0; i < t->bound->nin; i++) {
		struct ap_axes partial;

		ap_gradient_partial(t, i, &p, &f->step, &partial);
		for (int k = 0; k < partial.n; k++)
			ap_str_addf(&s, "%spartial %d %dx%d", s.len ? "; " : "", i, partial.axis[k].size,
				partial.axis[k].stride);
	}
	ap_comms_derive(t, &p, &f->step, write_comm, &s);
	return s.s;
}

static void expect(const char *graph, const char *node, const char *cut, const char *mindspore,
	const char *generic)
{
	for (int e = 0; e < 2; e++) {
		struct fixture f;

		fixture_open(&f, 4, 4, "a100-80");
		f.step.gradient_fp32_sync = false;
		f.step.executor = e ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE;
		fixture_graph(&f, graph);
		ck_assert_str_eq(derived(&f, node, cut), e ? generic : mindspore);
		fixture_close(&f);
	}
}

#define WEIGHT "gradient AllReduce 147456" /* 128 * 64 * 9 * 2 */

/* A row: 32 * 64 * 56 * 2 = 229376. */
START_TEST(parts_of_space_exchange_halos)
{
	const char *four = "forward NeighborExchange 458752 4x1; "
		"backward NeighborExchange 458752 4x1; " WEIGHT " 4x1";
	const char *two = "forward NeighborExchange 229376 2x2; "
		"backward NeighborExchange 229376 2x2; " WEIGHT;
	/* a row of half the width, then a column with the row that came */
	const char *corner = "forward NeighborExchange 114688 2x2; "
		"backward NeighborExchange 114688 2x2; "
		"forward NeighborExchange 118784 2x1; "
		"backward NeighborExchange 118784 2x1; " WEIGHT " 4x1";
	char repeats[256], once[256];

	snprintf(repeats, sizeof repeats, "%s 4x1", two);
	snprintf(once, sizeof once, "%s 2x2", two);
	expect(NET("true"), "conv", "h=4", four, four);
	expect(NET("true"), "conv", "h=2", repeats, once);
	expect(NET("true"), "conv", "h=2 w=2", corner, corner);
}
END_TEST

START_TEST(channels_of_a_convolution)
{
	expect(NET("true"), "conv", "n=4", WEIGHT " 4x1", WEIGHT " 4x1");
	/* 32 * 128 * 56 * 56 * 2 */
	expect(NET("true"), "conv", "c=4",
		"forward AllReduce 25690112 4x1; backward AllReduce 25690112 4x1",
		"forward AllReduce 25690112 4x1");
	expect(NET("true"), "conv", "d=4", "", "partial 0 4x1");
}
END_TEST

/* Mean and variance of 128 channels, in MindSpore over repeats, too; on the way back the two sums that
 * the gradient needs. The moving averages are no trainable parameters. */
START_TEST(statistics_over_the_cut_batch)
{
	const char *cut = "forward AllReduce 512 4x1; backward AllReduce 512 4x1; "
		"forward AllReduce 512 4x1; backward AllReduce 512 4x1; "
		"gradient AllReduce 512 4x1; gradient AllReduce 512 4x1";
	const char *parameters = "gradient AllReduce 512 4x1; gradient AllReduce 512 4x1";

	expect(NET("true"), "bn", "b=4", cut, cut);
	expect(NET("true"), "bn", "b=2 A=2", cut, cut);
	expect(NET("true"), "bn", "b=2", cut,
		"forward AllReduce 512 2x2; backward AllReduce 512 2x2; "
		"forward AllReduce 512 2x2; backward AllReduce 512 2x2; "
		"gradient AllReduce 512 2x2; gradient AllReduce 512 2x2");
	expect(NET("true"), "bn", "c=2",
		"forward AllReduce 256 2x1; backward AllReduce 256 2x1; "
		"forward AllReduce 256 2x1; backward AllReduce 256 2x1; "
		"gradient AllReduce 256 2x1; gradient AllReduce 256 2x1", "");
	expect(NET("true"), "bn", "", cut, "");
	expect(NET("true"), "bn", "c=4", "", "");
	expect(NET("false"), "bn", "b=4", parameters, parameters);
	expect(NET("false"), "bn", "c=4", "", "");
}
END_TEST

START_TEST(statistics_without_training)
{
	struct fixture f;

	fixture_open(&f, 4, 4, "a100-80");
	f.step.training = false;
	f.step.optimizer = NULL;
	fixture_graph(&f, NET("true"));
	ck_assert_str_eq(derived(&f, "bn", "b=4"),
		"forward AllReduce 512 4x1; forward AllReduce 512 4x1");
	fixture_close(&f);
}
END_TEST

static void near(double got, double want)
{
	ck_assert_msg(fabs(got - want) <= 1e-12 * fabs(want), "got %.17g, want %.17g", got, want);
}

/* Figures of the a100-80 profile as in test_costs.c: 5 us a kernel, 261.94 TF with half extents 144,
 * 144, 112, 1529.25 GB/s of memory, 30 us a collective, NVLink 228 GB/s with 3.4 us. */
static double product_s(double m, double n, double k)
{
	return 5e-6 + 2 * (m + 144) * (n + 144) * (k + 112) / (312e12 * 0.87 * 0.955);
}

static double copy_s(double bytes)
{
	return 5e-6 + 2 * bytes / (2039e9 * 0.75);
}

START_TEST(a_convolution_is_a_product)
{
	const double halo = 16 * 64 * 29 * 56 * 2; /* a row more than the slice of 28 */
	struct ap_placement p;
	struct ap_op_cost c;
	struct fixture f;
	const struct ap_task *t;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, NET("true"));
	t = place(&f, "conv", "n=2 h=2", &p);
	ap_op_cost_make(ap_pricer_create(f.ctx.arena, f.machine, &f.step), t, &p, &c);
	/* m = 16 * 28 * 56 places, n = 128 channels, k = 64 * 9 */
	near(c.forward_s, product_s(25088, 128, 576) + copy_s(halo));
	near(c.backward_s, product_s(25088, 576, 128) + product_s(576, 128, 25088) + copy_s(halo));
	near(c.forward_comm_s, 30e-6 + 3.4e-6 + 16 * 64 * 56 * 2 / (300e9 * 0.76));
	near(c.backward_comm_s, c.forward_comm_s);
	ck_assert_int_eq(c.weight_bytes, 147456);
	/* the result, which the norm keeps, and the operand with its halo */
	ck_assert_int_eq(c.activation_bytes, 16 * 128 * 28 * 56 * 2 + (int64_t)halo);
	/* gradients of the result, of the operand, and of its copy */
	ck_assert_int_eq(c.temporary_bytes,
		16 * 128 * 28 * 56 * 2 + 16 * 64 * 28 * 56 * 2 + (int64_t)halo);
	t = place(&f, "conv", "n=4", &p);
	ap_op_cost_make(ap_pricer_create(f.ctx.arena, f.machine, &f.step), t, &p, &c);
	near(c.forward_s, product_s(8 * 56 * 56, 128, 576));
	ck_assert_double_eq(c.forward_comm_s + c.backward_comm_s, 0);
	ck_assert_int_eq(c.activation_bytes, 8 * 128 * 56 * 56 * 2);
	fixture_close(&f);
}
END_TEST

/* Moving averages are weights without gradient and optimizer states. */
START_TEST(moving_averages)
{
	struct ap_placement p;
	struct ap_op_cost c;
	struct fixture f;
	const struct ap_task *t;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, NET("true"));
	t = place(&f, "bn", "b=4", &p);
	ap_op_cost_make(ap_pricer_create(f.ctx.arena, f.machine, &f.step), t, &p, &c);
	ck_assert_int_eq(c.weight_bytes, 4 * 512);
	ck_assert_int_eq(c.gradient_bytes, 2 * 512);
	ck_assert_int_eq(c.optimizer_bytes, 2 * 2 * 512);
	/* statistics are kept, the normalised result is not */
	ck_assert_int_eq(c.activation_bytes, 2 * 512);
	fixture_close(&f);
}
END_TEST
