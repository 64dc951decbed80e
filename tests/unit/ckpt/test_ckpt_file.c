/* SPDX-License-Identifier: Apache-2.0 */
/* The two forms of the strategy checkpoint: exact bytes, readers, round trip, damaged files. */
#include <stdio.h>
#include <unistd.h>

#include "base/vec.h"
#include "ckpt/ckpt.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/ckpt_pb.h"
#include "emit_test.h"

#define VEC(...) \
	{sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__}}
#define MINUS_ONE "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"

/* MatMul x[128,64] . w[64,32] cut ((2,2),(2,1)) on 8 devices, optimizer shards on all replicas. */
static const struct ap_ckpt_vec worked_strategy[] = {VEC(2, 2), VEC(2, 1)};
static const struct ap_ckpt_item worked_item = {"MatMul_net.fc1.weight", 0, 2, worked_strategy};
static const struct ap_ckpt_vec worked_map = VEC(1, -1);
static const struct ap_ckpt_layout worked_layout = {
	.param_name = "net.fc1.weight",
	.dev_matrix = VEC(2, 2, 2),
	.nmap = 1,
	.tensor_map = &worked_map,
	.weight_step = 1,
	.weight_size = -1,
	.tensor_shape = VEC(64, 32),
	.has_shape = true,
};
static const struct ap_ckpt worked = {
	.current_stage = 1,
	.nitem = 1,
	.item = &worked_item,
	.nlayout = 1,
	.layout = &worked_layout,
};

static const char worked_pb[] =
	"\x08\x01"
	"\x12\x27\x0A\x15MatMul_net.fc1.weight"
	"\x12\x0E\x08\x00\x12\x04\x08\x02\x08\x02\x12\x04\x08\x02\x08\x01"
	"\x1A\x3C\x0A\x0Enet.fc1.weight"
	"\x12\x2A\x0A\x06\x08\x02\x08\x02\x08\x02"
	"\x12\x0D\x08\x01\x08" MINUS_ONE "\x1A\x00\x22\x00\x28\x00\x30\x01\x38" MINUS_ONE;

static const char worked_json[] =
	"{\"current_stage\":1,\"parallel_layout_item\":{\"net.fc1.weight\":{\"dev_matrix\":[2,2,2],"
	"\"field\":0,\"opt_weight_shard_size\":-1,\"opt_weight_shard_step\":1,"
	"\"tensor_map\":[1,-1],\"tensor_shape\":[64,32]}},"
	"\"parallel_strategy_item\":{\"MatMul_net.fc1.weight\":{"
	"\"parallel_strategy\":[[2,2],[2,1]],\"stage\":0}}}\n";

static struct ap_str as_pb(struct ap_ctx *ctx, const struct ap_ckpt *c)
{
	struct ap_str s = new_str(ctx);

	ap_ckpt_write_pb(ctx, c, to_str, &s);
	return s;
}

static struct ap_str as_json(struct ap_ctx *ctx, const struct ap_ckpt *c)
{
	struct ap_str s = new_str(ctx);

	ap_ckpt_write_json(c, to_str, &s);
	return s;
}

START_TEST(worked_example_in_protobuf)
{
	struct ap_ctx ctx = new_ctx();
	struct ap_str s = as_pb(&ctx, &worked);

	ck_assert_uint_eq(s.len, sizeof worked_pb - 1);
	ck_assert_mem_eq(s.s, worked_pb, s.len);
	free_ctx(&ctx);
}
END_TEST

START_TEST(worked_example_in_json)
{
	struct ap_ctx ctx = new_ctx();

	ck_assert_str_eq(as_json(&ctx, &worked).s, worked_json);
	free_ctx(&ctx);
}
END_TEST

START_TEST(nothing_to_save)
{
	struct ap_ctx ctx = new_ctx();
	struct ap_ckpt empty = {.current_stage = 1}, back;

	ck_assert_str_eq(as_json(&ctx, &empty).s,
		"{\"current_stage\":1,\"parallel_layout_item\":{},"
		"\"parallel_strategy_item\":{}}\n");
	ck_assert_uint_eq(as_pb(&ctx, &empty).len, 2);
	ck_assert_int_eq(ap_ckpt_read(&ctx, "a", "\x08\x01", 2, false, &back), AP_OK);
	ck_assert_uint_eq(back.nitem + back.nlayout, 0);
	free_ctx(&ctx);
}
END_TEST

static void check_worked(const struct ap_ckpt *c)
{
	const struct ap_ckpt_layout *l = c->layout;

	ck_assert_uint_eq(c->current_stage, 1);
	ck_assert_uint_eq(c->nitem, 1);
	ck_assert_str_eq(c->item->node_name, "MatMul_net.fc1.weight");
	ck_assert_uint_eq(c->item->stage, 0);
	ck_assert_uint_eq(c->item->n, 2);
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(c->item->strategy[i].n, 2);
		ck_assert_mem_eq(c->item->strategy[i].v, worked_strategy[i].v, 2 * sizeof(int64_t));
	}
	ck_assert_uint_eq(c->nlayout, 1);
	ck_assert_str_eq(l->param_name, "net.fc1.weight");
	ck_assert_uint_eq(l->dev_matrix.n, 3);
	ck_assert_mem_eq(l->dev_matrix.v, worked_layout.dev_matrix.v, 3 * sizeof(int64_t));
	ck_assert_uint_eq(l->nmap, 1);
	ck_assert_uint_eq(l->tensor_map->n, 2);
	ck_assert_int_eq(l->tensor_map->v[0], 1);
	ck_assert_int_eq(l->tensor_map->v[1], -1);
	ck_assert_uint_eq(l->param_split_shape.n + l->indices_offset.n, 0);
	ck_assert_int_eq(l->field, 0);
	ck_assert_int_eq(l->weight_step, 1);
	ck_assert_int_eq(l->weight_size, -1);
}

START_TEST(both_forms_are_read)
{
	struct ap_ctx ctx = new_ctx();
	struct ap_ckpt c;

	ck_assert_int_eq(
		ap_ckpt_read(&ctx, "a.ckpt", worked_pb, sizeof worked_pb - 1, false, &c), AP_OK);
	check_worked(&c);
	ck_assert(!c.layout->has_shape);
	ck_assert_int_eq(
		ap_ckpt_read(&ctx, "a.json", worked_json, sizeof worked_json - 1, true, &c), AP_OK);
	check_worked(&c);
	ck_assert(c.layout->has_shape);
	ck_assert_uint_eq(c.layout->tensor_shape.n, 2);
	ck_assert_int_eq(c.layout->tensor_shape.v[0], 64);
	ck_assert_int_eq(c.layout->tensor_shape.v[1], 32);
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_WARNING), 0);
	free_ctx(&ctx);
}
END_TEST

/* Everything that the struct can hold: uneven split, scalars, stages, several vectors. */
START_TEST(round_trip_of_everything)
{
	const struct ap_ckpt_vec many[] = {VEC(8, 1), {0, NULL}, VEC(2, 2, 1)};
	const struct ap_ckpt_item items[] = {{"Gather_a", 3, 3, many}, {"Mul_\xC3\xA9\"\\", 3}};
	const struct ap_ckpt_vec maps[] = {VEC(0, 2, -1), {0, NULL}};
	const struct ap_ckpt_layout layouts[] = {
		{"3-a", VEC(2, 4, 2), 1, &maps[0], VEC(30, 70), VEC(0, 30), 39, 0, 0, VEC(2, 2, 9),
			true},
		{"3-b", VEC(16), 1, &maps[1], {0}, {0}, 0, 1, 4, {0}, true},
	};
	const struct ap_ckpt c = {"x", 7, 2, items, 2, layouts};
	struct ap_ctx ctx = new_ctx();
	struct ap_str pb = as_pb(&ctx, &c), json = as_json(&ctx, &c), again;
	struct ap_ckpt back;

	ck_assert_int_eq(ap_ckpt_read(&ctx, "a.json", json.s, json.len, true, &back), AP_OK);
	again = as_pb(&ctx, &back);
	ck_assert_uint_eq(again.len, pb.len);
	ck_assert_mem_eq(again.s, pb.s, pb.len);
	ck_assert_int_eq(ap_ckpt_read(&ctx, "a", pb.s, pb.len, false, &back), AP_OK);
	again = as_pb(&ctx, &back);
	ck_assert_uint_eq(again.len, pb.len);
	ck_assert_mem_eq(again.s, pb.s, pb.len);
	free_ctx(&ctx);
}
END_TEST

/* Several axes on one dimension: protobuf has a message per dimension, JSON the expanded map. */
START_TEST(nested_tensor_map)
{
	const struct ap_ckpt_vec maps[] = {VEC(2, 1), VEC(-1)};
	const struct ap_ckpt_layout layout = {.param_name = "w", .dev_matrix = VEC(2, 4, 1),
		.nmap = 2, .tensor_map = maps, .tensor_shape = VEC(64, 5), .has_shape = true};
	const struct ap_ckpt c = {.current_stage = 1, .nlayout = 1, .layout = &layout};
	struct ap_ctx ctx = new_ctx();
	struct ap_str pb = as_pb(&ctx, &c), again;
	struct ap_ckpt back;

	ck_assert_ptr_nonnull(strstr(as_json(&ctx, &c).s,
		"\"tensor_map\":[2,1,-1],\"tensor_shape\":[2,32,5]"));
	ck_assert_int_eq(ap_ckpt_read(&ctx, "a", pb.s, pb.len, false, &back), AP_OK);
	ck_assert_uint_eq(back.layout->nmap, 2);
	again = as_pb(&ctx, &back);
	ck_assert_uint_eq(again.len, pb.len);
	ck_assert_mem_eq(again.s, pb.s, pb.len);
	free_ctx(&ctx);
}
END_TEST

START_TEST(items_come_out_sorted)
{
	const struct ap_ckpt_item items[] = {{"b"}, {"B"}, {"a", 1}, {"a", 0}, {"\xC3\xA9"}};
	const struct ap_ckpt c = {.current_stage = 1, .nitem = 5, .item = items};
	struct ap_ctx ctx = new_ctx();
	struct ap_str pb = as_pb(&ctx, &c);
	struct ap_ckpt back;

	ck_assert_int_eq(ap_ckpt_read(&ctx, "a", pb.s, pb.len, false, &back), AP_OK);
	ck_assert_str_eq(back.item[0].node_name, "B");
	ck_assert_str_eq(back.item[1].node_name, "a");
	ck_assert_uint_eq(back.item[1].stage, 0);
	ck_assert_uint_eq(back.item[2].stage, 1);
	ck_assert_str_eq(back.item[3].node_name, "b");
	ck_assert_str_eq(back.item[4].node_name, "\xC3\xA9");
	free_ctx(&ctx);
}
END_TEST

/* ---- files that are wrong ---- */

static const struct bad {
	const char *text;
	size_t len;
	bool json;
	enum ap_status st;
	const char *says;
} bad[] = {
#define PB(text, st, says) {text, sizeof text - 1, false, st, says}
#define JSON(text, st, says) {text, sizeof text - 1, true, st, says}
	PB("", AP_SYNTAX, "empty"),
	JSON("", AP_SYNTAX, "empty"),
	PB(" \n{\"current_stage\":1}", AP_SYNTAX, "is JSON"),
	JSON("\x08\x01\x12\x02\x0A\x00", AP_SYNTAX, ""),
	PB("\x08", AP_SYNTAX, "byte 1: a number that does not end"),
	PB("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02", AP_SYNTAX, "does not end"),
	PB("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", AP_SYNTAX, "does not end"),
	PB("\x12\xFF\xFF\xFF\xFF\x0F", AP_SYNTAX, "longer than what is left"),
	PB("\x12\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", AP_SYNTAX, "longer than what is left"),
	PB("\x00\x01", AP_SYNTAX, "byte 0: a field number out of range"),
	PB("\x08\x01\x2B\x2C", AP_SYNTAX, "wire type"),
	PB("\x08\x01\x2F\x00", AP_SYNTAX, "wire type"),
	PB("\x0A\x01\x01", AP_SYNTAX, "byte 2: a field of the wrong type"),
	PB("\x08\x01\x10\x01", AP_SYNTAX, "wrong type"),
	PB("\x08\x01\x12\x04\x12\x02\x08\x00", AP_SYNTAX,
		"byte 4: ParallelStrategyItem without its required node_name"),
	PB("\x08\x01\x12\x05\x0A\x01m\x12\x00", AP_SYNTAX,
		"ParallelStrategys without its required stage"),
	PB("\x08\x01\x12\x03\x0A\x01m", AP_SYNTAX, "required parallel_strategys"),
	PB("\x12\x07\x0A\x01m\x12\x02\x08\x00", AP_SYNTAX, "required current_stage"),
	PB("\x08\x01\x12\x07\x0A\x01\xFF\x12\x02\x08\x00", AP_MEANING, "node_name is not UTF-8"),
	PB("\x08\x01\x12\x08\x0A\x02m\x00\x12\x02\x08\x00", AP_MEANING, "node_name holds a NUL"),
	PB("\x08\x01\x12\x0F\x0A\x01m\x12\x0A\x08\x00\x12\x06\x0A\x04\x08\x01\x08\xFF", AP_SYNTAX,
		"packed"),
	PB("\x08\x01\x12\x0B\x0A\x01m\x12\x06\x08\x00\x12\x02\x08\x00", AP_MEANING,
		"vector 0 cuts dimension 0 into 0 parts"),
	PB("\x08\x01\x12\x0B\x0A\x01m\x12\x06\x08\xFF\xFF\xFF\xFF\x0F", AP_MEANING,
		"stage 4294967295"),
	PB("\x08\xFF\xFF\xFF\xFF\x0F", AP_MEANING, "current_stage 4294967295"),
	PB("\x08\x01\x12\x07\x0A\x01m\x12\x02\x08\x00\x12\x07\x0A\x01m\x12\x02\x08\x00", AP_MEANING,
		"\"m\" is there twice"),
	PB("\x08\x01\x12\x1D\x0A\x01m\x12\x18\x08\x00\x12\x14"
	   "\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01",
		AP_MEANING, "10 dimensions; at most 8"),
	PB("\x08\x01\x1A\x0B\x0A\x01p\x12\x06\x28\x00\x30\x00\x38\x00", AP_MEANING,
		"0 dev_matrix, 0 tensor_map"),
	PB("\x08\x01\x1A\x09\x0A\x01p\x12\x04\x28\x00\x30\x00", AP_SYNTAX,
		"required opt_weight_shard_size"),
#define LAYOUT(members) \
	"{\"current_stage\":1,\"parallel_strategy_item\":{},\"parallel_layout_item\":" \
	"{\"p\":{" members "}}}"
#define REST ",\"field\":0,\"opt_weight_shard_step\":0,\"opt_weight_shard_size\":0"
	JSON("{}", AP_MEANING, "current_stage"),
	JSON("[]", AP_MEANING, "object"),
	JSON("{\"current_stage\":1,\"parallel_strategy_item\":{}}", AP_MEANING,
		"parallel_layout_item"),
	JSON("{\"current_stage\":1,\"parallel_strategy_item\":{\"m\":{\"stage\":-1,"
	     "\"parallel_strategy\":[]}},\"parallel_layout_item\":{}}", AP_MEANING, ""),
	JSON("{\"current_stage\":1,\"parallel_strategy_item\":{\"m\":{\"stage\":0,"
	     "\"parallel_strategy\":[[1],2]}},\"parallel_layout_item\":{}}", AP_MEANING, "array"),
	JSON("{\"current_stage\":1,\"parallel_strategy_item\":{\"m\":{\"stage\":0,"
	     "\"parallel_strategy\":[[1.5]]}},\"parallel_layout_item\":{}}", AP_MEANING, "1.5"),
	JSON("{\"current_stage\":0,\"parallel_strategy_item\":{},"
	     "\"parallel_out_strategy_item\":{}}", AP_MEANING, "operator-strategy file"),
	JSON(LAYOUT("\"dev_matrix\":[8],\"tensor_map\":[0]"), AP_MEANING, "field"),
	JSON(LAYOUT("\"dev_matrix\":[],\"tensor_map\":[-1]" REST), AP_MEANING, "0 axes"),
	JSON(LAYOUT("\"dev_matrix\":[2,0],\"tensor_map\":[-1]" REST), AP_MEANING, "size 0"),
	JSON(LAYOUT("\"dev_matrix\":[2097152],\"tensor_map\":[-1]" REST), AP_MEANING,
		"more than 1048576"),
	JSON(LAYOUT("\"dev_matrix\":[4294967295,4294967295,4294967295],\"tensor_map\":[-1]" REST),
		AP_MEANING, "more than 1048576"),
	JSON(LAYOUT("\"dev_matrix\":[2,2],\"tensor_map\":[2]" REST), AP_MEANING, "names axis 2"),
	JSON(LAYOUT("\"dev_matrix\":[2,2],\"tensor_map\":[-2]" REST), AP_MEANING, "names axis -2"),
	JSON(LAYOUT("\"dev_matrix\":[2,2],\"tensor_map\":[1,1]" REST), AP_MEANING, "axis 1 twice"),
	JSON(LAYOUT("\"dev_matrix\":[2],\"tensor_map\":[0],\"tensor_shape\":[4,4]" REST),
		AP_MEANING, "1 entries for a tensor_shape of 2"),
	JSON(LAYOUT("\"dev_matrix\":[2],\"tensor_map\":[0],\"tensor_shape\":[5]" REST), AP_MEANING,
		"2 parts of dimension 0, which is 5"),
	JSON(LAYOUT("\"dev_matrix\":[2],\"tensor_map\":[0],\"param_split_shape\":[5]" REST),
		AP_MEANING, "1 values of param_split_shape, 0 of indices_offset"),
	JSON(LAYOUT("\"dev_matrix\":[2],\"tensor_map\":[0],\"field\":0,\"opt_weight_shard_step\":1,"
		    "\"opt_weight_shard_size\":0"), AP_MEANING, "do not go together"),
	JSON("{\"current_stage\":1,\"parallel_strategy_item\":{},\"parallel_layout_item\":{"
	     "\"p\":{\"dev_matrix\":[2],\"tensor_map\":[0]" REST "},"
	     "\"q\":{\"dev_matrix\":[4],\"tensor_map\":[0]" REST "}}}", AP_MEANING,
		"\"p\" is for 2 devices, layout \"q\" for 4"),
	JSON("{\"current_stage\":1,\"parallel_strategy_item\":{},\"parallel_layout_item\":{"
	     "\"0-a-b\":{\"dev_matrix\":[2],\"tensor_map\":[0]" REST "}}}", AP_MEANING,
		"more than one '-'"),
};

START_LOOP_TEST(bad_files, AP_COUNT(bad))
{
	const struct bad *b = &bad[_i];
	struct ap_ctx ctx = new_ctx();
	struct ap_ckpt c;

	ck_assert_int_eq(ap_ckpt_read(&ctx, "f", b->text, b->len, b->json, &c), b->st);
	ck_assert_uint_ge(ap_diag_count(ctx.diag, AP_ERROR), 1);
	ck_assert_int_eq(ap_diag_status(ctx.diag), b->st);
	ck_assert_msg(strstr(last_message(&ctx, NULL), b->says), "\"%s\" lacks \"%s\"",
		last_message(&ctx, NULL), b->says);
	free_ctx(&ctx);
}
END_TEST

/* A prefix is a file only where it ends between two of the outermost fields. */
START_TEST(prefixes)
{
	for (size_t len = 0; len < sizeof worked_pb - 1; len++) {
		struct ap_ctx ctx = new_ctx();
		struct ap_ckpt c;
		bool border = len == 2 || len == 2 + 41;

		ck_assert_int_eq(ap_ckpt_read(&ctx, "f", worked_pb, len, false, &c),
			border ? AP_OK : AP_SYNTAX);
		free_ctx(&ctx);
	}
	for (size_t len = 0; len < sizeof worked_json - 2; len++) {
		struct ap_ctx ctx = new_ctx();
		struct ap_ckpt c;

		ck_assert_int_eq(ap_ckpt_read(&ctx, "f", ap_arena_strndup(ctx.arena, worked_json, len), len,
			true, &c), AP_SYNTAX);
		free_ctx(&ctx);
	}
}
END_TEST

START_TEST(unknown_fields_are_ignored)
{
	static const char more[] = "\x42\x03" "abc" "\x4D\x01\x02\x03\x04" "\x50\x07";
	struct ap_ctx ctx = new_ctx();
	struct ap_str s = new_str(&ctx);
	struct ap_ckpt c;

	ap_str_addn(&s, worked_pb, sizeof worked_pb - 1);
	ap_str_addn(&s, more, sizeof more - 1);
	ck_assert_int_eq(ap_ckpt_read(&ctx, "f", s.s, s.len, false, &c), AP_OK);
	check_worked(&c);
	ck_assert_str_eq(last_message(&ctx, NULL),
		"3 fields that a strategy checkpoint does not have are ignored");
	free_ctx(&ctx);
}
END_TEST

START_TEST(packed_numbers_are_read)
{
	static const char text[] =
		"\x08\x01\x12\x0F\x0A\x01m\x12\x0A\x08\x00\x12\x06\x0A\x04\x08\x01\x80\x02";
	struct ap_ctx ctx = new_ctx();
	struct ap_ckpt c;

	ck_assert_int_eq(ap_ckpt_read(&ctx, "f", text, sizeof text - 1, false, &c), AP_OK);
	ck_assert_uint_eq(c.item->strategy->n, 3);
	ck_assert_int_eq(c.item->strategy->v[0], 8);
	ck_assert_int_eq(c.item->strategy->v[2], 256);
	free_ctx(&ctx);
}
END_TEST

/* Random and damaged bytes: a message or a checkpoint, never a crash. */
START_TEST(noise)
{
	uint64_t random = seed_of_run();

	for (int round = 0; round < 20000; round++) {
		struct ap_ctx ctx = new_ctx();
		bool json = round & 1;
		char bytes[512];
		size_t len = json ? sizeof worked_json - 1 : sizeof worked_pb - 1;
		struct ap_ckpt c;
		enum ap_status st;

		memcpy(bytes, json ? worked_json : worked_pb, len);
		for (uint64_t k = next_random(&random) % 4 + 1; k; k--)
			bytes[next_random(&random) % len] ^= (char)(1 << next_random(&random) % 8);
		if (round % 8 == 0)
			for (size_t i = 0; i < len; i++)
				bytes[i] = (char)next_random(&random);
		bytes[len] = '\0';
		st = ap_ckpt_read(&ctx, "f", bytes, len, json, &c);
		ck_assert(st == AP_OK || st == AP_SYNTAX || st == AP_MEANING);
		ck_assert_int_eq(st, ap_diag_status(ctx.diag));
		if (st == AP_OK) {
			as_pb(&ctx, &c);
			as_json(&ctx, &c);
		}
		free_ctx(&ctx);
	}
}
END_TEST

/* Google's own reader, where it is installed, with our schema. */
START_TEST(protoc_reads_it)
{
	static const char expected[] =
		"current_stage: 1\nparallel_strategy_item {\n"
		"  node_name: \"MatMul_net.fc1.weight\"\n"
		"  parallel_strategys {\n    stage: 0\n    parallel_strategy {\n      dim: 2\n"
		"      dim: 2\n    }\n    parallel_strategy {\n"
		"      dim: 2\n      dim: 1\n    }\n  }\n}\n"
		"parallel_layout_item {\n  param_name: \"net.fc1.weight\"\n  parallel_layouts {\n"
		"    dev_matrix {\n      dim: 2\n      dim: 2\n      dim: 2\n    }\n"
		"    tensor_map {\n"
		"      dim: 1\n      dim: -1\n    }\n    param_split_shape {\n    }\n"
		"    indices_offset {\n    }\n    field: 0\n    opt_weight_shard_step: 1\n"
		"    opt_weight_shard_size: -1\n  }\n}\n";
	static const char command[] =
		"protoc --decode=mindspore.straspb.ParallelStrategyMap "
		"--proto_path='" AP_SOURCE_ROOT "/proto' node_strategy.proto <";
	struct ap_ctx ctx = new_ctx();
	struct ap_str s = as_pb(&ctx, &worked);
	char path[] = "/tmp/ap_test_XXXXXX", got[2048];
	const char *line;
	size_t len;
	FILE *pipe;
	int fd;

	if (system("command -v protoc >/dev/null 2>&1") != 0) {
		free_ctx(&ctx);
		return;
	}
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, s.s, s.len), (ssize_t)s.len);
	close(fd);
	line = ap_arena_printf(ctx.arena, "%s%s", command, path);
	pipe = popen(line, "r");
	ck_assert_ptr_nonnull(pipe);
	len = fread(got, 1, sizeof got - 1, pipe);
	got[len] = '\0';
	ck_assert_int_eq(pclose(pipe), 0);
	unlink(path);
	ck_assert_str_eq(got, expected);
	free_ctx(&ctx);
}
END_TEST
