/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: what is written of a plan, and that what reads them sees every fault. */
#include "pipe_test.h"
#include "plan/plan.h"
#include "report/trace.h"
#include "trace.h"

#define THREAD(stage, tid, name) \
	"{'name':'thread_name','ph':'M','pid':" stage ",'tid':" tid ",'args':{'name':'" name "'}},"
#define EVENT(stage, tid, ts, dur, cat, args) \
	"{'name':'" cat "','cat':'" cat "','ph':'X','pid':" stage ",'tid':" tid ",'ts':" ts \
	",'dur':" dur ",'args':{" args "}},"
#define PASS(stage, ts, dur, pass) \
	EVENT(stage, "0", ts, dur, "pass", \
		"'pass':'" pass "','part':" stage ",'segment':0,'micro':0")
#define OF_MICRO "'segment':0,'micro':0"

/* Two stages, one micro-batch: 10 us forward, 2 us for a send, 20 us back; 6 us of gradients, 5 us of
 * updates. */
static const char net[] = "{'otherData':{'scheduler':'1f1b','micro_batches':1,"
			  "'step_time_s':7.5e-5,'peak_bytes':[70,50]},'traceEvents':["
	THREAD("0", "0", "passes") THREAD("0", "1", "compute") THREAD("0", "3", "gradients")
	THREAD("0", "5", "to stage 1") THREAD("1", "0", "passes") THREAD("1", "1", "compute")
	THREAD("1", "4", "to stage 0")
	PASS("0", "0", "10", "forward") PASS("0", "44", "20", "backward")
	PASS("1", "12", "10", "forward") PASS("1", "22", "20", "backward")
	EVENT("0", "1", "0", "9", "forward", OF_MICRO)
	EVENT("0", "1", "45", "19", "backward", OF_MICRO)
	EVENT("0", "3", "60", "10", "bucket", "'phase':'gradient'")
	EVENT("0", "1", "70", "5", "optimizer", "")
	EVENT("0", "5", "10", "2", "send", "'from':0,'to':1,'segment':0,'micro':0")
	EVENT("1", "1", "12", "10", "forward", OF_MICRO)
	EVENT("1", "4", "42", "2", "send", "'from':1,'to':0,'segment':0,'micro':0")
	"{'name':'send','cat':'send','ph':'s','pid':0,'tid':5,'ts':10,'id':0},"
	"{'name':'send','cat':'send','ph':'f','pid':1,'tid':0,'ts':12,'id':0,'bp':'e'},"
	"{'name':'memory','ph':'C','pid':0,'tid':0,'ts':0,'args':{'bytes':70}},"
	"{'name':'memory','ph':'C','pid':0,'tid':0,'ts':64,'args':{'bytes':20}},"
	"{'name':'memory','ph':'C','pid':1,'tid':0,'ts':0,'args':{'bytes':50}}]}";

static const char *fault_of(struct ap_ctx *ctx, const char *text, struct trace *t)
{
	const char *fault = trace_read(ctx, "trace.json", text, strlen(text), t);

	return fault ? fault : trace_check(ctx, t);
}

/* The trace with `from` replaced, ' for ". */
static const char *with(struct ap_ctx *ctx, const char *from, const char *to)
{
	const char *at = strstr(net, from);
	char *text;

	ck_assert_msg(at && !strstr(at + 1, from), "\"%s\" is not there once", from);
	text = ap_arena_printf(ctx->arena, "%.*s%s%s", (int)(at - net), net, to, at + strlen(from));
	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	return text;
}

START_TEST(a_step_that_can_be)
{
	struct fixture f;
	struct trace t;
	const char *fault;

	fixture_open(&f, 8, 8, "ascend910a");
	fault = fault_of(&f.ctx, with(&f.ctx, "1f1b", "1f1b"), &t);
	ck_assert_msg(!fault, "%s", fault);
	ck_assert_int_eq(t.npart, 2);
	ck_assert_uint_eq(t.events.n, 11);
	fixture_close(&f);
}
END_TEST

START_TEST(steps_that_cannot_be)
{
	static const struct {
		const char *from, *to, *fault;
	} cases[] = {
		{"'ts':45,'dur':19", "'ts':8,'dur':19", "forward ends at"},
		{"'ts':45,'dur':19", "'ts':43,'dur':19", "outside of its pass"},
		{"'ts':45,'dur':19", "'ts':45,'dur':20", "outside of its pass"},
		{"'ts':45,'dur':19", "'ts':45,'dur':-19", "-19 us long"},
		{"'pass':'backward','part':1", "'pass':'forward','part':1", "is there twice"},
		{"'pass':'backward','part':1", "'pass':'weight','part':1", "expected 2"},
		{"'pid':1,'tid':4,'ts':42", "'pid':1,'tid':4,'ts':41", "a send starts at 41"},
		{"'pid':0,'tid':5,'ts':10,'dur':2", "'pid':0,'tid':5,'ts':10,'dur':2.5",
			"a pass starts at 12"},
		{"'pid':1,'tid':4,'ts':42,'dur':2", "'pid':1,'tid':4,'ts':42,'dur':3",
			"a pass starts at 44"},
		{"'from':1,'to':0", "'from':0,'to':1", "sends micro-batch 0 twice"},
		{"'ts':60,'dur':10", "'ts':60,'dur':11", "gradients come until 71"},
		{"'ts':70,'dur':5", "'ts':64,'dur':5", "gradients come until 70"},
		{"'ts':70,'dur':5", "'ts':70,'dur':4", "ends at 74"},
		{"'pid':1,'tid':0,'ts':12,'id':0", "'pid':1,'tid':0,'ts':12,'id':1", "flow 0"},
		{"'pid':0,'tid':5,'ts':10,'id'", "'pid':0,'tid':5,'ts':11,'id'", "from a send"},
		{"'pid':1,'tid':0,'ts':12,'id'", "'pid':1,'tid':0,'ts':13,'id'", "to a pass"},
		{"'ts':64,'args':{'bytes':20}", "'ts':64,'args':{'bytes':-20}", "-20 bytes"},
		{"'bytes':50", "'bytes':49", "its peak is 50"},
		{"'bytes':50", "'bytes':51", "its peak is 50"},
		{"'to stage 0'", "'to stage x'", "a thread is called"},
		{"{'name':'thread_name','ph':'M','pid':1,'tid':4,'args':{'name':'to stage 0'}},", "",
			"without a name"},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		struct fixture f;
		struct trace t;
		const char *fault;

		fixture_open(&f, 8, 8, "ascend910a");
		fault = fault_of(&f.ctx, with(&f.ctx, cases[i].from, cases[i].to), &t);
		ck_assert_msg(fault && strstr(fault, cases[i].fault), "%s: %s", cases[i].to,
			fault ? fault : "nothing is seen");
		fixture_close(&f);
	}
}
END_TEST

static const char *traced(struct fixture *f, const struct ap_plan *p)
{
	struct ap_str text = new_str(&f->ctx);

	ap_emit_trace(&f->ctx, p, AP_TRACE_FULL, to_str, &text);
	return text.s;
}

static size_t count(const struct trace *t, int64_t stage, int64_t thread, const char *cat)
{
	size_t n = 0;

	for (size_t i = 0; i < t->events.n; i++)
		n += t->events.v[i].stage == stage && t->events.v[i].thread == thread &&
			!strcmp(t->events.v[i].cat, cat);
	return n;
}

/* Four micro-batches through two stages: forward through two operators, back through them. */
START_TEST(a_pipeline)
{
	struct fixture f;
	struct ap_plan p;
	struct trace t;
	const char *fault, *text;

	open_pipe(&f, &p);
	text = traced(&f, &p);
	fault = fault_of(&f.ctx, text, &t);
	ck_assert_msg(!fault, "%s\n%s", fault, text);
	ck_assert_int_eq(t.nstage, 2);
	ck_assert_int_eq(t.nmicro, 4);
	ck_assert_str_eq(t.scheduler, "1f1b");
	ck_assert(t.step_us == p.prediction.step_time_s * 1e6);
	for (int s = 0; s < 2; s++) {
		ck_assert_uint_eq(count(&t, s, TRACE_PASSES, "pass"), 8);
		ck_assert_uint_eq(count(&t, s, TRACE_LINK + 1 - s, "send"), 4);
	}
	ck_assert_uint_eq(count(&t, 0, TRACE_COMPUTE, "optimizer"), 2);
	ck_assert_uint_eq(count(&t, 1, TRACE_COMPUTE, "optimizer"), 1);
	ck_assert_uint_eq(t.flows.n, 16);
	ck_assert_ptr_nonnull(strstr(text, "\"stage 1, ranks 4 to 7\""));
	fixture_close(&f);
}
END_TEST

/* One micro-batch in operators, the third; all passes, sends, updates; peaks as in full. */
START_TEST(in_brief)
{
	struct fixture f;
	struct ap_plan p;
	struct trace t, full;
	struct ap_str text;
	const char *fault;

	open_pipe(&f, &p);
	text = new_str(&f.ctx);
	ap_emit_trace(&f.ctx, &p, AP_TRACE_BRIEF, to_str, &text);
	fault = fault_of(&f.ctx, text.s, &t);
	ck_assert_msg(!fault, "%s\n%s", fault, text.s);
	ck_assert_ptr_null(fault_of(&f.ctx, traced(&f, &p), &full));
	ck_assert_ptr_nonnull(strstr(text.s, "\"in_operators\": 2"));
	for (int s = 0; s < 2; s++) {
		ck_assert_uint_eq(count(&t, s, TRACE_PASSES, "pass"), 8);
		ck_assert_uint_eq(count(&t, s, TRACE_LINK + 1 - s, "send"), 4);
		ck_assert_uint_eq(count(&t, s, TRACE_COMPUTE, "optimizer"),
			count(&full, s, TRACE_COMPUTE, "optimizer"));
		ck_assert_uint_eq(4 * count(&t, s, TRACE_COMPUTE, "forward"),
			count(&full, s, TRACE_COMPUTE, "forward"));
		ck_assert_int_eq(t.peak_bytes[s], full.peak_bytes[s]);
	}
	for (size_t i = 0; i < t.events.n; i++)
		if (!strcmp(t.events.v[i].cat, "forward") || !strcmp(t.events.v[i].cat, "backward"))
			ck_assert_int_eq(t.events.v[i].micro, 2);
	ck_assert_uint_lt(t.samples.n, full.samples.n);
	fixture_close(&f);
}
END_TEST

/* What is compact is still a line an event. */
START_TEST(one_line_an_event)
{
	struct fixture f;
	struct ap_plan p;
	size_t lines = 0, events = 0;

	open_pipe(&f, &p);
	for (const char *c = traced(&f, &p); *c; c++) {
		lines += *c == '\n';
		events += !strncmp(c, "\"ph\"", 4);
	}
	ck_assert_uint_gt(events, 60);
	ck_assert_uint_le(lines, events + 16);
	fixture_close(&f);
}
END_TEST
