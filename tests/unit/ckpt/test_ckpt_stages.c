/* SPDX-License-Identifier: Apache-2.0 */
/* Strategy checkpoints of pipelines: stage files, the merged file, and back. */
#include "base/vec.h"
#include "ckpt/ckpt.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/ckpt_make.h"
#include "ckpt/ckpt_match.h"
#include "ckpt/ckpt_pb.h"
#include "plan/plan.h"
#include "pipe_test.h"

static struct ap_str pb_of(struct fixture *f, const struct ap_ckpt *c)
{
	struct ap_str s = new_str(&f->ctx);

	ap_ckpt_write_pb(&f->ctx, c, to_str, &s);
	return s;
}

static const char *json_of(struct fixture *f, const struct ap_ckpt *c)
{
	struct ap_str s = new_str(&f->ctx);

	ap_ckpt_write_json(c, to_str, &s);
	return s.s;
}

static struct ap_ckpt read_pb(struct fixture *f, const char *name, const struct ap_str *bytes)
{
	struct ap_ckpt c;

	ck_assert_int_eq(ap_ckpt_read(&f->ctx, name, bytes->s, bytes->len, false, &c), AP_OK);
	return c;
}

static void open_stages(struct fixture *f, struct ap_plan *p, struct ap_ckpt stage[2])
{
	open_pipe(f, p);
	for (int32_t s = 0; s < 2; s++)
		ap_ckpt_of_stage(&f->ctx, p, s, false, &stage[s]);
}

static void check_names(const struct ap_ckpt *c, size_t nitem, const char *const *item, size_t nlayout,
	const char *const *layout)
{
	ck_assert_uint_eq(c->nitem, nitem);
	for (size_t i = 0; i < nitem; i++)
		ck_assert_str_eq(c->item[i].node_name, item[i]);
	ck_assert_uint_eq(c->nlayout, nlayout);
	for (size_t i = 0; i < nlayout; i++)
		ck_assert_str_eq(c->layout[i].param_name, layout[i]);
}

START_TEST(each_stage_writes_what_is_its_own)
{
	static const char *const items0[] = {"BiasAdd_fc1.bias", "MatMul_fc1.weight"};
	static const char *const layouts0[] = {"accu_grads.fc1.bias", "accu_grads.fc1.weight",
		"fc1.bias", "fc1.weight", "moments.fc1.bias", "moments.fc1.weight"};
	static const char *const items1[] = {"MatMul_fc2.weight"};
	static const char *const layouts1[] = {"accu_grads.fc2.weight", "fc2.weight",
		"moments.fc2.weight"};
	struct ap_ckpt stage[2];
	struct ap_plan plan;
	struct fixture f;

	open_stages(&f, &plan, stage);
	check_names(&stage[0], 2, items0, 6, layouts0);
	check_names(&stage[1], 1, items1, 3, layouts1);
	ck_assert_uint_eq(stage[0].item[1].stage, 0);
	ck_assert_uint_eq(stage[1].item[0].stage, 1);
	ck_assert_int_eq(stage[0].layout[3].dev_matrix.v[0], 2); /* of the four devices of a stage */
	ck_assert_int_eq(stage[0].layout[3].dev_matrix.v[1], 2);
	ck_assert_int_eq(stage[1].layout[1].dev_matrix.v[0], 4);
	fixture_close(&f);
}
END_TEST

#define SHARED_NET(trainable) \
	"{'schema':'autopar-graph/1','name':'shared'," \
	"'inputs':[{'name':'x','shape':[64,32],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'table','shape':[32,16],'dtype':'float32','trainable':" trainable "}]," \
	"'operators':[" \
	"{'name':'up','type':'MatMul','inputs':['x','table'],'outputs':[{'name':'h'}]}," \
	"{'name':'down','type':'MatMul','inputs':['h','table'],'outputs':[{'name':'y'}]," \
	"'attrs':{'transpose_b':true}}," \
	"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

/* The operator that reads another stage's parameter keeps its strategy; the parameter is its owner's. */
START_LOOP_TEST(shared_parameters_lie_in_their_own_stage, 2)
{
	static const char *const nets[] = {SHARED_NET("true"), SHARED_NET("false")};
	static const char *const items[] = {"MatMul_table"};
	static const char *const layouts[] = {"accu_grads.table", "moments.table", "table"};
	bool frozen = _i;
	struct ap_ckpt stage[2];
	struct ap_plan plan;
	struct fixture f;

	open_pipe_of(&f, nets[_i], &plan);
	for (int32_t s = 0; s < 2; s++)
		ap_ckpt_of_stage(&f.ctx, &plan, s, frozen, &stage[s]);
	check_names(&stage[0], 1, items, frozen ? 1 : 3, frozen ? layouts + 2 : layouts);
	check_names(&stage[1], 1, items, 0, NULL);
	ck_assert_int_eq(stage[0].item[0].strategy[0].v[0], 2);
	ck_assert_int_eq(stage[1].item[0].strategy[0].v[0], 4);
	fixture_close(&f);
}
END_TEST

#define CAST_NET \
	"{'schema':'autopar-graph/1','name':'cast'," \
	"'inputs':[{'name':'x','shape':[64,32],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'in','shape':[32,16],'dtype':'float32'}," \
	"{'name':'out','shape':[16,8],'dtype':'float16'}],'operators':[" \
	"{'name':'up','type':'MatMul','inputs':['x','in'],'outputs':[{'name':'h'}]}," \
	"{'name':'wide','type':'Cast','inputs':['out'],'outputs':[{'name':'w'}]," \
	"'attrs':{'dst_type':'float32'}}," \
	"{'name':'down','type':'MatMul','inputs':['h','w'],'outputs':[{'name':'y'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

/* A weight that is cast in one stage and used in the next. */
START_TEST(weights_that_are_cast_before_they_are_sent)
{
	static const char *const items[][2] = {{"Cast_out", "MatMul_in"}, {"MatMul_out"}};
	static const char *const layouts[] = {"accu_grads.in", "accu_grads.out", "in", "moments.in",
		"moments.out", "out"};
	struct ap_ckpt stage[2];
	struct ap_plan plan;
	struct fixture f;

	open_pipe_of(&f, CAST_NET, &plan);
	for (int32_t s = 0; s < 2; s++)
		ap_ckpt_of_stage(&f.ctx, &plan, s, false, &stage[s]);
	check_names(&stage[0], 2, items[0], 6, layouts);
	check_names(&stage[1], 1, items[1], 0, NULL);
	fixture_close(&f);
}
END_TEST

/* A pipeline accumulates, whatever the number of micro-batches. */
START_TEST(pipelines_accumulate_gradients)
{
	struct ap_plan plan;
	struct ap_ckpt c;
	struct fixture f;

	open_pipe(&f, &plan);
	f.step.micro_batches = 1;
	ap_ckpt_of_stage(&f.ctx, &plan, 1, false, &c);
	ck_assert_str_eq(c.layout[0].param_name, "accu_grads.fc2.weight");
	fixture_close(&f);
}
END_TEST

/* Length-delimited fields of a message, read here without the program's reader. */
struct wire {
	const uint8_t *at, *end;
};

static size_t varint(struct wire *w)
{
	size_t v = 0;

	for (int shift = 0;; shift += 7) {
		v |= (size_t)(*w->at & 0x7f) << shift;
		if (!(*w->at++ & 0x80))
			return v;
	}
}

static void add_varint(struct ap_str *out, size_t v)
{
	for (; v >= 0x80; v >>= 7)
		ap_str_addc(out, (char)(0x80 | (v & 0x7f)));
	ap_str_addc(out, (char)v);
}

static void add_field(struct ap_str *out, char tag, const void *bytes, size_t len)
{
	ap_str_addc(out, tag);
	add_varint(out, len);
	ap_str_addn(out, bytes, len);
}

/* A layout item with "<stage>-" before its name. */
static void add_prefixed(struct fixture *f, struct ap_str *out, struct wire item, int stage)
{
	struct ap_str body = new_str(&f->ctx);
	const char *name;
	size_t len;

	ck_assert_int_eq(*item.at++, 0x0a);
	len = varint(&item);
	name = ap_arena_printf(f->ctx.arena, "%d-%.*s", stage, (int)len, (const char *)item.at);
	add_field(&body, 0x0a, name, strlen(name));
	item.at += len;
	ap_str_addn(&body, (const char *)item.at, (size_t)(item.end - item.at));
	add_field(out, 0x1a, body.s, body.len);
}

/* What merge_pipeline_strategys() makes of stage files, from their bytes. */
static struct ap_str merged_by_hand(struct fixture *f, const struct ap_str *file, int n)
{
	struct ap_str out = new_str(&f->ctx), layouts = new_str(&f->ctx);

	ap_str_addn(&out, "\x08\x01", 2);
	for (int s = 0; s < n; s++) {
		struct wire w = {(const uint8_t *)file[s].s + 2, (const uint8_t *)file[s].s + file[s].len};

		while (w.at < w.end) {
			uint8_t tag = *w.at++;
			size_t len = varint(&w);

			if (tag == 0x12)
				add_field(&out, 0x12, w.at, len);
			else
				add_prefixed(f, &layouts, (struct wire){w.at, w.at + len}, s);
			w.at += len;
		}
	}
	ap_str_addn(&out, layouts.s, layouts.len);
	return out;
}

START_TEST(merged_bytes_are_the_stages_concatenated)
{
	struct ap_str file[2], expected, got;
	struct ap_ckpt stage[2], merged;
	struct ap_plan plan;
	struct fixture f;

	open_stages(&f, &plan, stage);
	for (int s = 0; s < 2; s++)
		file[s] = pb_of(&f, &stage[s]);
	expected = merged_by_hand(&f, file, 2);
	ap_ckpt_of_plan(&f.ctx, &plan, false, &merged);
	got = pb_of(&f, &merged);
	ck_assert_uint_eq(got.len, expected.len);
	ck_assert_mem_eq(got.s, expected.s, got.len);
	fixture_close(&f);
}
END_TEST

/* Twelve stages: by number, not as text. */
START_TEST(stages_are_merged_in_the_order_of_their_numbers)
{
	enum { N = 12 };
	struct ap_ckpt stage[2], part[N], merged, *back;
	struct ap_str file[N], got, expected;
	struct ap_ckpt_item item[N];
	struct ap_plan plan;
	struct fixture f;
	uint32_t n;

	open_stages(&f, &plan, stage);
	for (uint32_t s = 0; s < N; s++) {
		item[s] = stage[1].item[0];
		item[s].stage = s;
		part[s] = stage[1];
		part[s].item = &item[s];
		file[s] = pb_of(&f, &part[s]);
	}
	part[0] = part[N - 1];
	part[N - 1] = stage[1];
	part[N - 1].item = &item[0];
	ck_assert_int_eq(ap_ckpt_merge(&f.ctx, N, part, &merged), AP_OK);
	got = pb_of(&f, &merged);
	expected = merged_by_hand(&f, file, N);
	ck_assert_uint_eq(got.len, expected.len);
	ck_assert_mem_eq(got.s, expected.s, got.len);
	ck_assert_int_eq(ap_ckpt_split(&f.ctx, &merged, &n, &back), AP_OK);
	ck_assert_uint_eq(n, N);
	for (uint32_t s = 0; s < N; s++) {
		got = pb_of(&f, &back[s]);
		ck_assert_uint_eq(got.len, file[s].len);
		ck_assert_mem_eq(got.s, file[s].s, got.len);
	}
	fixture_close(&f);
}
END_TEST

START_TEST(stage_files_come_back_from_both_forms)
{
	struct ap_ckpt stage[2], merged, from_pb, from_json, *back;
	struct ap_plan plan;
	struct fixture f;
	struct ap_str pb;
	const char *json;
	uint32_t n;

	open_stages(&f, &plan, stage);
	ap_ckpt_of_plan(&f.ctx, &plan, false, &merged);
	pb = pb_of(&f, &merged);
	from_pb = read_pb(&f, "a", &pb);
	ck_assert(ap_ckpt_is_merged(&from_pb));
	ck_assert(!ap_ckpt_is_merged(&stage[1]));
	json = json_of(&f, &merged);
	ck_assert_ptr_nonnull(strstr(json, "\"1-moments.fc2.weight\":"));
	ck_assert_int_eq(ap_ckpt_read(&f.ctx, "a.json", json, strlen(json), true, &from_json), AP_OK);
	ck_assert_int_eq(ap_ckpt_split(&f.ctx, &from_pb, &n, &back), AP_OK);
	ck_assert_uint_eq(n, 2);
	ck_assert_mem_eq(pb_of(&f, &back[1]).s, pb_of(&f, &stage[1]).s, pb_of(&f, &stage[1]).len);
	ck_assert_int_eq(ap_ckpt_split(&f.ctx, &from_json, &n, &back), AP_OK);
	for (int s = 0; s < 2; s++)
		ck_assert_str_eq(json_of(&f, &back[s]), json_of(&f, &stage[s]));
	fixture_close(&f);
}
END_TEST

/* Protobuf keeps both items of a key, JSON the last stage's. */
START_TEST(equal_keys_of_two_stages)
{
	struct ap_ckpt stage[2], merged, back;
	struct ap_ckpt_item item;
	struct ap_plan plan;
	struct fixture f;
	struct ap_str pb;
	const char *json;

	open_stages(&f, &plan, stage);
	item = stage[1].item[0];
	item.node_name = "MatMul_fc1.weight";
	stage[1].item = &item;
	ck_assert_int_eq(ap_ckpt_merge(&f.ctx, 2, stage, &merged), AP_OK);
	pb = pb_of(&f, &merged);
	back = read_pb(&f, "a", &pb);
	ck_assert_uint_eq(back.nitem, 3);
	json = json_of(&f, &merged);
	ck_assert_int_eq(ap_ckpt_read(&f.ctx, "a.json", json, strlen(json), true, &back), AP_OK);
	ck_assert_uint_eq(back.nitem, 2);
	ck_assert_uint_eq(back.item[1].stage, 1);
	ck_assert_int_eq(back.item[1].strategy[0].v[0], 4);
	fixture_close(&f);
}
END_TEST

/* The plan with both products cut by the batch. */
static void pipe_again(struct fixture *f, struct ap_plan *out)
{
	const int32_t **counts = AP_NEW_N(f->ctx.arena, const int32_t *, f->graph->nnode);

	for (ap_id i = 0; i < f->graph->nnode; i++)
		counts[i] = pipe_counts(f, i, f->graph->node[i].param != AP_NONE ? "m=4" : "");
	ap_plan_make(&f->ctx, f->graph, f->machine, &f->step, counts, INT64_C(1) << 34, out);
}

/* A weight that operators of two stages read: the merged JSON file keeps the last one's item, of all of them. */
START_TEST(one_item_serves_the_stages_that_share_its_key)
{
	const int32_t *const *counts;
	struct ap_plan plan;
	struct ap_ckpt merged, back;
	struct fixture f;
	const char *json;

	open_pipe_of(&f, SHARED_NET("true"), &plan);
	pipe_again(&f, &plan);
	ap_ckpt_of_plan(&f.ctx, &plan, false, &merged);
	json = json_of(&f, &merged);
	ck_assert_int_eq(ap_ckpt_read(&f.ctx, "a.json", json, strlen(json), true, &back), AP_OK);
	ck_assert_uint_eq(back.nitem, 1);
	ck_assert_uint_eq(back.item[0].stage, 1);
	ck_assert_int_eq(ap_ckpt_counts(&f.ctx, &back, f.graph, f.machine->ndev, &f.step, &counts), AP_OK);
	for (ap_id i = 0; i < f.graph->nnode; i++)
		if (f.graph->node[i].param != AP_NONE)
			ck_assert_int_eq(counts[i][0], 4);
	fixture_close(&f);
}
END_TEST

START_TEST(every_rank_may_have_written_its_file)
{
	struct ap_ckpt stage[2], part[4], merged, once;
	struct ap_plan plan;
	struct fixture f;

	open_stages(&f, &plan, stage);
	for (int i = 0; i < 4; i++)
		part[i] = stage[i % 2];
	ck_assert_int_eq(ap_ckpt_merge(&f.ctx, 4, part, &merged), AP_OK);
	ap_ckpt_of_plan(&f.ctx, &plan, false, &once);
	ck_assert_uint_eq(merged.nitem, 3);
	ck_assert_str_eq(json_of(&f, &merged), json_of(&f, &once));
	fixture_close(&f);
}
END_TEST

/* What cannot be merged: which part is put in place of which, and what is said. */
enum { GOOD, OTHER_STAGE, OTHER_CUT, OTHER_DEVICES, EMPTY, MERGED };
static const struct {
	int what;
	const char *says;
} unmergeable[] = {
	{OTHER_STAGE, "pipeline stages 0 and 2; expected all from 0 on"},
	{OTHER_CUT, "is of stage 0, as a is, but says something else"},
	{OTHER_DEVICES, "is for 8 devices, stage 0 for 4"},
	{EMPTY, "holds no operator with a trainable parameter; MindSpore refuses to merge it"},
	{MERGED, "is a merged file; expected one of a stage"},
};

static const int64_t eight[] = {8};

static void spoil(struct fixture *f, int what, struct ap_ckpt stage[2])
{
	struct ap_ckpt_layout *layout = ap_arena_memdup(f->ctx.arena, stage[1].layout,
		stage[1].nlayout * sizeof *layout);
	struct ap_ckpt_item *item = ap_arena_memdup(f->ctx.arena, stage[1].item, sizeof *item);

	item->stage = what == OTHER_STAGE ? 2 : what == OTHER_CUT ? 0 : 1;
	for (uint32_t i = 0; i < stage[1].nlayout && what == OTHER_DEVICES; i++)
		layout[i].dev_matrix = (struct ap_ckpt_vec){1, eight};
	stage[0].file = "a";
	stage[1].file = "b";
	stage[1].item = item;
	stage[1].layout = layout;
	if (what == EMPTY)
		stage[1].nlayout = 0;
}

START_LOOP_TEST(what_cannot_be_merged, AP_COUNT(unmergeable))
{
	struct ap_ckpt stage[2], merged;
	struct ap_plan plan;
	struct fixture f;

	open_stages(&f, &plan, stage);
	spoil(&f, unmergeable[_i].what, stage);
	if (unmergeable[_i].what == MERGED)
		ap_ckpt_of_plan(&f.ctx, &plan, false, &stage[1]);
	ck_assert_int_eq(ap_ckpt_merge(&f.ctx, 2, stage, &merged), AP_MEANING);
	ck_assert_uint_eq(ap_diag_count(f.ctx.diag, AP_ERROR), 1);
	ck_assert_str_eq(last_message(&f.ctx, NULL), unmergeable[_i].says);
	fixture_close(&f);
}
END_TEST

static enum ap_status counts_of(struct fixture *f, const struct ap_ckpt *c, bool some,
	const int32_t *const **counts)
{
	return (some ? ap_ckpt_counts_some : ap_ckpt_counts)(&f->ctx, c, f->graph, f->machine->ndev,
		&f->step, counts);
}

START_TEST(counts_come_back_from_the_merged_file)
{
	const int32_t *const *counts;
	struct ap_plan plan;
	struct ap_ckpt c;
	struct fixture f;
	ap_id down;

	open_pipe(&f, &plan);
	down = fixture_node(&f, "down");
	ap_ckpt_of_plan(&f.ctx, &plan, false, &c);
	ck_assert_int_eq(counts_of(&f, &c, false, &counts), AP_OK);
	for (ap_id i = 0; i < f.graph->nnode; i++)
		ck_assert_int_eq(counts[i] != NULL, plan.op[i].in_checkpoint);
	ck_assert_mem_eq(counts[down], plan.op[down].place.count, 3 * sizeof(int32_t));
	fixture_close(&f);
}
END_TEST

/* One stage's file is not the whole, but enough to start from. */
START_TEST(counts_of_one_stage)
{
	const int32_t *const *counts;
	struct ap_ckpt stage[2];
	struct ap_plan plan;
	struct fixture f;

	open_stages(&f, &plan, stage);
	ck_assert_int_eq(counts_of(&f, &stage[1], true, &counts), AP_OK);
	ck_assert_ptr_nonnull(counts[fixture_node(&f, "down")]);
	ck_assert_ptr_null(counts[fixture_node(&f, "up")]);
	ck_assert_int_eq(counts_of(&f, &stage[1], false, &counts), AP_MEANING);
	ck_assert_str_eq(last_message(&f.ctx, NULL),
		"holds 1 pipeline stage, stage 1; expected all of 2, from 0 on");
	fixture_close(&f);
}
END_TEST

/* Stages of items that are not those of the pipeline or of the operator. */
static const struct {
	uint32_t first, second; /* of BiasAdd and MatMul of stage 0; down stays in stage 1 */
	const char *says;
} misplaced[] = {
	{0, 1, "is in stage 0, strategy \"MatMul_fc1.weight\" in stage 1"},
	{1, 0, "is in stage 0, strategy \"BiasAdd_fc1.bias\" in stage 1"},
	{0, 2, "holds 3 pipeline stages, the last one stage 2; expected all of 2, from 0 on"},
};

START_LOOP_TEST(stages_that_contradict_the_plan, AP_COUNT(misplaced))
{
	const int32_t *const *counts;
	struct ap_ckpt_item item[3];
	struct ap_plan plan;
	struct ap_ckpt c;
	struct fixture f;

	open_pipe(&f, &plan);
	ap_ckpt_of_plan(&f.ctx, &plan, false, &c);
	memcpy(item, c.item, sizeof item);
	item[0].stage = misplaced[_i].first;
	item[1].stage = misplaced[_i].second;
	c.item = item;
	ck_assert_int_eq(counts_of(&f, &c, false, &counts), AP_MEANING);
	ck_assert_str_eq(last_message(&f.ctx, NULL), misplaced[_i].says);
	fixture_close(&f);
}
END_TEST

START_TEST(files_that_are_half_merged)
{
	struct ap_ckpt stage[2], merged, back;
	struct ap_ckpt_layout layout[9];
	struct ap_plan plan;
	struct fixture f;
	struct ap_str pb;

	open_stages(&f, &plan, stage);
	ap_ckpt_of_plan(&f.ctx, &plan, false, &merged);
	memcpy(layout, merged.layout, sizeof layout);
	layout[8].param_name = "fc2.weight";
	merged.layout = layout;
	pb = pb_of(&f, &merged);
	ck_assert_int_eq(ap_ckpt_read(&f.ctx, "a", pb.s, pb.len, false, &back), AP_MEANING);
	ck_assert_str_eq(last_message(&f.ctx, NULL), "layout \"0-accu_grads.fc1.bias\" names a pipeline "
		"stage, layout \"fc2.weight\" none");
	merged.layout = stage[1].layout;
	merged.nlayout = stage[1].nlayout;
	pb = pb_of(&f, &merged);
	ck_assert_int_eq(ap_ckpt_read(&f.ctx, "a", pb.s, pb.len, false, &back), AP_MEANING);
	ck_assert_str_eq(last_message(&f.ctx, NULL),
		"holds operators of stages 0 and 1, and layouts that name no stage");
	fixture_close(&f);
}
END_TEST
