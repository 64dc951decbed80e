/* SPDX-License-Identifier: Apache-2.0 */
/* Operators share a class only where nothing that a price depends on tells them apart. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "cost/task.h"
#include "fixture.h"
#include "harness.h"
#include "table/joint.h"

struct field {
	const char *name;
	size_t at, size;
	bool counts; /* a price depends on it: it is part of the signature */
};

#define FIELD(type, name, counts) \
	{#name, offsetof(struct type, name), sizeof((struct type *)0)->name, counts}

static const struct field task_fields[] = {
	FIELD(ap_task, bound, false), /* its content is */
	FIELD(ap_task, backward, true),
	FIELD(ap_task, once, true),
	FIELD(ap_task, float8, true),
	FIELD(ap_task, joins, true),
	FIELD(ap_task, part, true),
	FIELD(ap_task, strided, true),
	FIELD(ap_task, stage, true),
	FIELD(ap_task, peer, true),
	FIELD(ap_task, block, true),
	FIELD(ap_task, across, true),
	FIELD(ap_task, received, false), /* follows from the row */
	FIELD(ap_task, in_flight, true),
	FIELD(ap_task, weight_share, false), /* of the simulation */
	FIELD(ap_task, waits, true),
	FIELD(ap_task, late, true),
	FIELD(ap_task, recomputed, true),
	FIELD(ap_task, keep_comm, true),
	FIELD(ap_task, recompute_sets, true),
	FIELD(ap_task, like, false),
	FIELD(ap_task, recompute_set, false), /* a name */
	FIELD(ap_task, cross_batch, true),
	FIELD(ap_task, imbalance, true),
	FIELD(ap_task, measured, true),
	FIELD(ap_task, measured_forward_s, true),
	FIELD(ap_task, measured_backward_s, true),
	FIELD(ap_task, in, false),
	FIELD(ap_task, out, false),
};

static const struct field operand_fields[] = {
	FIELD(ap_task_operand, kind, true),
	FIELD(ap_task_operand, grad, true),
	FIELD(ap_task_operand, owner, true),
	FIELD(ap_task_operand, trainable, true),
	FIELD(ap_task_operand, shardable, true),
	FIELD(ap_task_operand, regather, true),
	FIELD(ap_task_operand, alone, true),
	FIELD(ap_task_operand, unfused, true),
	FIELD(ap_task_operand, gradients_bytes, true),
	FIELD(ap_task_operand, weights_bytes, true),
	FIELD(ap_task_operand, updated, true),
	FIELD(ap_task_operand, kept, true),
	FIELD(ap_task_operand, again, true),
	FIELD(ap_task_operand, beside, true),
	FIELD(ap_task_operand, fused, true),
	FIELD(ap_task_operand, cast, true),
	FIELD(ap_task_operand, float8_readers, true),
	FIELD(ap_task_operand, float8_only, true),
	FIELD(ap_task_operand, float8_copy, true),
	FIELD(ap_task_operand, twin, true),
	FIELD(ap_task_operand, batch, true),
	FIELD(ap_task_operand, uneven, true),
	FIELD(ap_task_operand, share, true),
	FIELD(ap_task_operand, arrival, true),
	FIELD(ap_task_operand, sharers, false),
	FIELD(ap_task_operand, sharer, false),
	FIELD(ap_task_operand, apart, false),
};

static const struct field result_fields[] = {
	FIELD(ap_task_result, kept, true),
	FIELD(ap_task_result, lent, true),
	FIELD(ap_task_result, sliced, true),
	FIELD(ap_task_result, again, true),
	FIELD(ap_task_result, needed, true),
	FIELD(ap_task_result, fused, true),
	FIELD(ap_task_result, float8, true),
	FIELD(ap_task_result, grad, true),
	FIELD(ap_task_result, uneven, true),
	FIELD(ap_task_result, batch, true),
};

static const struct field bound_fields[] = {
	FIELD(ap_bound, row, true),
	FIELD(ap_bound, nfactor, false), /* with its arrays, below */
	FIELD(ap_bound, factor, false),
	FIELD(ap_bound, ndev, false),
	FIELD(ap_bound, dev, true),
	FIELD(ap_bound, left, true),
	FIELD(ap_bound, dealt, true),
	FIELD(ap_bound, dealt_rows, true),
	FIELD(ap_bound, dealt_beside, true),
	FIELD(ap_bound, rounds, true),
	FIELD(ap_bound, swaps, true),
	FIELD(ap_bound, round, true),
	FIELD(ap_bound, heads, true),
	FIELD(ap_bound, even, true),
	FIELD(ap_bound, flops, true),
	FIELD(ap_bound, nwindow, false),
	FIELD(ap_bound, window, false),
	FIELD(ap_bound, nin, false),
	FIELD(ap_bound, nout, false),
	FIELD(ap_bound, in, false),
	FIELD(ap_bound, out, false),
	FIELD(ap_bound, name, false), /* for messages */
};

static const struct field factor_fields[] = {
	FIELD(ap_factor, letter, false), /* for messages */
	FIELD(ap_factor, flags, true),
	FIELD(ap_factor, size, true),
};

static const struct field tensor_fields[] = {
	FIELD(ap_operand, rank, false), /* with its arrays */
	FIELD(ap_operand, dtype, true),
	FIELD(ap_operand, saved, true),
	FIELD(ap_operand, differentiable, true),
	FIELD(ap_operand, silent, true),
	FIELD(ap_operand, factors, false), /* those of dim */
	FIELD(ap_operand, size, true),
	FIELD(ap_operand, dim, false),
};

static const struct field window_fields[] = {
	FIELD(ap_window, operand, true),
	FIELD(ap_window, dim, true),
	FIELD(ap_window, factor, true),
	FIELD(ap_window, inside, true),
	FIELD(ap_window, transposed, true),
	FIELD(ap_window, size, true),
	FIELD(ap_window, count, true),
	FIELD(ap_window, kernel, true),
	FIELD(ap_window, stride, true),
	FIELD(ap_window, before, true),
	FIELD(ap_window, after, true),
};

/* A task of a convolution that is free to be changed. */
struct free_task {
	struct fixture f;
	struct ap_task task;
	struct ap_bound bound;
	struct ap_operand in[4], out[4];
	struct ap_task_operand use[4];
	struct ap_task_result made[4];
};

#define CONVOLUTION \
	"{'schema':'autopar-graph/1','name':'convolution'," \
	"'inputs':[{'name':'x','shape':[4,8,16,16],'dtype':'float16','batch_dim':0}]," \
	"'parameters':[{'name':'w','shape':[8,8,3,3],'dtype':'float16'}]," \
	"'operators':[" \
	"{'name':'c','type':'Conv2D','inputs':['x','w'],'outputs':[{'name':'y'}]," \
	"'attrs':{'kernel_size':3,'pad_mode':'same','out_channel':8}}," \
	"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

static void open_task(struct free_task *x)
{
	const struct ap_task *task;

	fixture_open(&x->f, 8, 8, "a100-80");
	fixture_graph(&x->f, CONVOLUTION);
	ap_tasks_make(&x->f.ctx, x->f.graph, &x->f.step, &task);
	x->task = task[fixture_node(&x->f, "c")];
	x->bound = *x->task.bound;
	ck_assert_uint_eq(x->bound.nin, 2);
	ck_assert_uint_eq(x->bound.nout, 1);
	ck_assert_uint_gt(x->bound.nwindow, 0);
	memcpy(x->in, x->bound.in, x->bound.nin * sizeof *x->in);
	memcpy(x->out, x->bound.out, x->bound.nout * sizeof *x->out);
	memcpy(x->use, x->task.in, x->bound.nin * sizeof *x->use);
	memcpy(x->made, x->task.out, x->bound.nout * sizeof *x->made);
	x->bound.in = x->in;
	x->bound.out = x->out;
	x->task.bound = &x->bound;
	x->task.in = x->use;
	x->task.out = x->made;
}

static bool same_class(struct free_task *x, const void *was, size_t len)
{
	size_t now_len;
	const void *now = ap_task_signature(&x->f.ctx, &x->task, &now_len);

	return now_len == len && memcmp(now, was, len) == 0;
}

/* Changes the first byte of each field of what lies at `part`. */
static void perturb(struct free_task *x, void *part, const struct field *field, size_t n)
{
	size_t len;
	const void *was = ap_task_signature(&x->f.ctx, &x->task, &len);

	for (size_t i = 0; i < n; i++) {
		char *byte = (char *)part + field[i].at;
		char before = *byte;

		if (!field[i].counts)
			continue;
		*byte ^= 1;
		ck_assert_msg(!same_class(x, was, len), "%s does not tell tasks apart", field[i].name);
		*byte = before;
		ck_assert_msg(same_class(x, was, len), "%s", field[i].name);
	}
}

START_TEST(every_field_tells_tasks_apart)
{
	struct free_task x;

	open_task(&x);
	perturb(&x, &x.task, task_fields, AP_COUNT(task_fields));
	perturb(&x, &x.use[0], operand_fields, AP_COUNT(operand_fields));
	perturb(&x, &x.use[1], operand_fields, AP_COUNT(operand_fields) - 4); /* no input arrives there */
	perturb(&x, &x.made[0], result_fields, AP_COUNT(result_fields));
	perturb(&x, &x.bound, bound_fields, AP_COUNT(bound_fields));
	for (int f = 0; f < x.bound.nfactor; f++)
		perturb(&x, &x.bound.factor[f], factor_fields, AP_COUNT(factor_fields));
	for (int w = 0; w < x.bound.nwindow; w++)
		perturb(&x, &x.bound.window[w], window_fields, AP_COUNT(window_fields));
	for (int i = 0; i < x.bound.nin; i++)
		perturb(&x, &x.in[i], tensor_fields, AP_COUNT(tensor_fields));
	perturb(&x, &x.out[0], tensor_fields, AP_COUNT(tensor_fields));
	fixture_close(&x.f);
}
END_TEST

/* Of every dimension the factors, and of every array the length. */
START_TEST(every_length_tells_tasks_apart)
{
	struct free_task x;
	const void *was;
	size_t len;

	open_task(&x);
	was = ap_task_signature(&x.f.ctx, &x.task, &len);
	for (int i = 0; i < x.bound.nin; i++)
		for (int d = 0; d < x.in[i].rank; d++) {
			struct ap_dim dim = x.in[i].dim[d];

			x.in[i].dim[d].factor[0] ^= 1;
			ck_assert(dim.n == 0 || !same_class(&x, was, len));
			x.in[i].dim[d] = dim;
			x.in[i].dim[d].n ^= 1;
			ck_assert(!same_class(&x, was, len));
			x.in[i].dim[d] = dim;
		}
	x.bound.nfactor--;
	ck_assert(!same_class(&x, was, len));
	x.bound.nfactor++;
	x.bound.nwindow--;
	ck_assert(!same_class(&x, was, len));
	x.bound.nwindow++;
	x.bound.nin--;
	ck_assert(!same_class(&x, was, len));
	x.bound.nin++;
	ck_assert(same_class(&x, was, len));
	fixture_close(&x.f);
}
END_TEST

/* A field that is added to a struct has to be added here, and to the signature if it counts. */
static void expect_all(const char *type, size_t size, const struct field *field, size_t n)
{
	size_t end = 0;

	for (size_t i = 0; i < n; i++) {
		ck_assert_msg(field[i].at - end < 8, "%s has a field before %s", type, field[i].name);
		end = field[i].at + field[i].size;
	}
	ck_assert_msg(size - end < 8, "%s has a field at its end", type);
}

#define EXPECT_ALL(type, fields) expect_all(#type, sizeof(struct type), fields, AP_COUNT(fields))

START_TEST(no_field_is_forgotten)
{
	EXPECT_ALL(ap_task, task_fields);
	EXPECT_ALL(ap_task_operand, operand_fields);
	EXPECT_ALL(ap_task_result, result_fields);
	EXPECT_ALL(ap_bound, bound_fields);
	EXPECT_ALL(ap_factor, factor_fields);
	EXPECT_ALL(ap_operand, tensor_fields);
	EXPECT_ALL(ap_window, window_fields);
}
END_TEST

/* Flows are keys byte by byte, so that what lies between their fields has to be the same. */
static void note_flow(void *user, const struct ap_joint *j)
{
	struct ap_flow want;

	(void)user;
	if (j->type != AP_BOND_FLOW)
		return;
	memset(&want, 0, sizeof want);
	want.rank = j->flow.rank;
	want.dtype = j->flow.dtype;
	want.grad = j->flow.grad;
	want.kept = j->flow.kept;
	want.again = j->flow.again;
	want.once = j->flow.once;
	want.float8 = j->flow.float8;
	want.beside = j->flow.beside;
	want.fused = j->flow.fused;
	want.uneven = j->flow.uneven;
	want.imbalance = j->flow.imbalance;
	want.shown = j->flow.shown;
	want.share = j->flow.share;
	want.sharers = j->flow.sharers;
	want.sets = j->flow.sets;
	want.in_flight = j->flow.in_flight;
	want.block = j->flow.block;
	want.sent = j->flow.sent;
	want.from_stage = j->flow.from_stage;
	want.to_stage = j->flow.to_stage;
	memcpy(want.size, j->flow.size, sizeof want.size);
	ck_assert_mem_eq(&want, &j->flow, sizeof want);
}

START_TEST(equal_flows_have_equal_bytes)
{
	const struct ap_task *task;
	struct fixture f;

	fixture_open(&f, 8, 8, "a100-80");
	fixture_graph(&f, FIXTURE_PAIR);
	ap_tasks_make(&f.ctx, f.graph, &f.step, &task);
	ap_joints_each(&f.ctx, f.graph, task, &f.step, note_flow, NULL);
	fixture_close(&f);
}
END_TEST
