/* SPDX-License-Identifier: Apache-2.0 */
/* What goes from one stage of a pipeline to another: bytes, directions, seconds. */
#include "base/arena.h"
#include "base/str.h"
#include "cost/comms.h"
#include "cost/cost.h"
#include "cost/move.h"
#include "cost/opcost.h"
#include "hw/coll.h"
#include "rule/bind.h"
#include "shard/layout.h"
#include "fixture.h"
#include "harness.h"

/* An operator of this type on [16,8] float32 of the batch, on 16 devices of which 4 are a stage. */
struct sending {
	struct fixture f;
	struct ap_bound bound;
	struct ap_task task;
	struct ap_task_operand in;
	struct ap_task_result out;
};

static void open_sending(struct sending *s, const char *type, int32_t stage, int32_t peer)
{
	static const struct ap_attrs none;
	const struct ap_shape shape = {.rank = 2, .dtype = AP_FLOAT32, .dim = {16, 8}};
	const struct ap_bind_in in = {.type = type, .attrs = &none, .nin = 1, .in = &shape};
	struct ap_bind_fault fault;

	fixture_open(&s->f, 16, 8, "ascend910a");
	ap_machine_staged(&s->f.ctx, s->f.machine, 4, &s->f.machine);
	s->f.step.micro_batches = 2;
	ck_assert_int_eq(ap_rule_bind(&s->f.ctx, &in, &s->bound, &fault), AP_OK);
	s->bound.factor[0].flags |= AP_FACTOR_BATCH;
	s->in = (struct ap_task_operand){.kind = AP_TENSOR_ACT, .grad = true, .batch = 1};
	s->out = (struct ap_task_result){.grad = true, .batch = 1};
	s->task = (struct ap_task){.bound = &s->bound, .backward = true, .stage = stage, .peer = peer,
		.in_flight = 1, .in = &s->in, .out = &s->out};
}

static void place(struct sending *s, int32_t rows, int32_t columns, struct ap_placement *p)
{
	const int32_t count[AP_MAX_FACTOR] = {rows, columns};

	ap_placement_make(&s->bound, count, s->f.machine->ndev, p);
}

static void write_comm(void *user, const struct ap_comm *c)
{
	struct ap_str *s = user;

	ap_str_addf(s, "%s%s %s %lld %d>%d", s->len ? "; " : "",
		c->phase == AP_PHASE_FORWARD ? "forward" : "backward", ap_coll_name(c->kind),
		(long long)c->bytes, c->from_stage, c->to_stage);
	ck_assert_int_eq(c->axes.n, 0);
	ck_assert_int_eq(c->result, 0);
	ck_assert_int_eq(c->operand, -1);
}

static const char *derived(struct sending *s, int32_t rows, int32_t columns)
{
	struct ap_placement p;
	struct ap_str text;

	place(s, rows, columns, &p);
	ap_str_init(&text, s->f.ctx.arena);
	ap_comms_derive(&s->task, &p, &s->f.step, write_comm, &text);
	return text.s;
}

START_TEST(slices_go_and_gradients_come_back)
{
	struct sending s;

	open_sending(&s, "Send", 1, 2);
	ck_assert_str_eq(derived(&s, 1, 1), "forward Send 256 1>2; backward Send 256 2>1");
	ck_assert_str_eq(derived(&s, 2, 2), "forward Send 64 1>2; backward Send 64 2>1");
	s.out.batch = 0; /* a parameter, whole */
	ck_assert_str_eq(derived(&s, 1, 4), "forward Send 128 1>2; backward Send 128 2>1");
	s.out.grad = s.in.grad = false;
	ck_assert_str_eq(derived(&s, 1, 4), "forward Send 128 1>2");
	fixture_close(&s.f);
	open_sending(&s, "Receive", 2, 1); /* the sender's side has it all */
	ck_assert_str_eq(derived(&s, 2, 2), "");
	fixture_close(&s.f);
}
END_TEST

/* The gradient of a parameter, 16-bit and added up over micro-batches, travels as float32, and not where
 * that is not wanted or each micro-batch sends its own. */
START_TEST(sums_come_back_wide)
{
	struct ap_operand half;
	struct sending s;

	open_sending(&s, "Send", 1, 2);
	half = s.bound.out[0];
	half.dtype = AP_FLOAT16;
	s.bound.in = s.bound.out = &half;
	s.out.batch = s.in.batch = 0;
	s.task.once = true;
	ck_assert_str_eq(derived(&s, 1, 4), "forward Send 64 1>2; backward Send 64 2>1");
	s.f.step.executor = AP_EXECUTOR_GENERIC;
	ck_assert_str_eq(derived(&s, 1, 4), "forward Send 64 1>2; backward Send 128 2>1");
	s.f.step.gradient_fp32_sync = false;
	ck_assert_str_eq(derived(&s, 1, 4), "forward Send 64 1>2; backward Send 64 2>1");
	s.f.step.gradient_fp32_sync = true;
	s.task.once = false;
	ck_assert_str_eq(derived(&s, 1, 4), "forward Send 64 1>2; backward Send 64 2>1");
	fixture_close(&s.f);
}
END_TEST

#define ASSERT_CLOSE(a, b) ck_assert_double_eq_tol((a) / (b), 1, 1e-12)

START_TEST(seconds_are_of_the_links)
{
	struct sending s;
	struct ap_pricer *pr;
	struct ap_placement p;
	struct ap_op_cost c;
	const char *algorithm = NULL;
	const struct ap_comm send = {.kind = AP_COLL_SEND, .bytes = 64, .to_stage = 1};
	const double bus_s = 10e-6 + 1e-6 + 64 / (0.7 * 64e9 / 4);
	const double nic_s = 10e-6 + 1.5e-6 + 64 / (0.7 * 12.5e9);

	open_sending(&s, "Send", 0, 1);
	pr = ap_pricer_create(s.f.ctx.arena, s.f.machine, &s.f.step);
	ASSERT_CLOSE(ap_comm_time_s(pr, &send, &algorithm), bus_s);
	ck_assert_str_eq(algorithm, "point to point");
	place(&s, 2, 2, &p);
	ap_op_cost_make(pr, &s.task, &p, &c); /* for each of two micro-batches */
	ASSERT_CLOSE(c.forward_comm_s, 2 * bus_s);
	ASSERT_CLOSE(c.backward_comm_s, 2 * bus_s);
	ck_assert_double_eq(c.forward_s + c.backward_s, 0);
	s.task.stage = 1;
	s.task.peer = 2;
	ap_op_cost_make(pr, &s.task, &p, &c);
	ASSERT_CLOSE(c.forward_comm_s, 2 * nic_s);
	s.task.once = true; /* a parameter */
	ap_op_cost_make(pr, &s.task, &p, &c);
	ASSERT_CLOSE(c.forward_comm_s, nic_s);
	ASSERT_CLOSE(c.backward_comm_s, nic_s);
	fixture_close(&s.f);
}
END_TEST

/* A parameter that another stage owns: there for the whole step, with the sum of its gradients, on each
 * device its slice of 16 x 8 elements of four bytes. */
START_TEST(received_parameters_are_held)
{
	struct sending s;
	struct ap_pricer *pr;
	struct ap_placement p;
	struct ap_op_cost c;

	open_sending(&s, "Receive", 2, 1);
	pr = ap_pricer_create(s.f.ctx.arena, s.f.machine, &s.f.step);
	place(&s, 1, 4, &p);
	ap_op_cost_make(pr, &s.task, &p, &c);
	ck_assert_int_eq(c.activation_bytes + c.gradient_bytes, 0);
	s.out.batch = s.in.batch = 0;
	s.task.once = true;
	for (int kept = 0; kept < 2; kept++) {
		s.out.kept = kept;
		ap_op_cost_make(pr, &s.task, &p, &c);
		ck_assert_int_eq(c.activation_bytes, 128);
		ck_assert_int_eq(c.gradient_bytes, 128);
	}
	s.out.grad = false;
	ap_op_cost_make(pr, &s.task, &p, &c);
	ck_assert_int_eq(c.activation_bytes, 128);
	ck_assert_int_eq(c.gradient_bytes, 0);
	fixture_close(&s.f);
}
END_TEST
