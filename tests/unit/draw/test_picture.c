/* SPDX-License-Identifier: Apache-2.0 */
/* What is drawn of a picture: repetition, boxes, frames, and that nothing is lost. */
#include <inttypes.h>

#include "base/vec.h"
#include "draw/dot.h"
#include "draw/picture_columns.h"
#include "draw/picture_view.h"
#include "emit_test.h"

/* A picture that is made operator by operator. */
struct maker {
	struct ap_ctx *ctx;
	AP_VEC(struct ap_pic_node) nodes;
	AP_VEC(struct ap_pic_edge) edges, later; /* later: from inputs, which come after the operators */
};

static uint32_t add(struct maker *m, const char *key)
{
	struct ap_pic_node node = {.type = key, .key = key, .cell = "", .cut = "", .slice = "",
		.comms = "", .time_s = 1};

	node.name = ap_arena_printf(m->ctx->arena, "op%zu", m->nodes.n);
	AP_PUSH(m->ctx->arena, m->nodes, node);
	return (uint32_t)m->nodes.n - 1;
}

static void move(struct maker *m, uint32_t from, uint32_t to, const char *moves)
{
	struct ap_pic_edge edge = {from, to, "t", moves, 8, *moves ? 1 : 0};

	AP_PUSH(m->ctx->arena, m->edges, edge);
}

static void join(struct maker *m, uint32_t from, uint32_t to)
{
	move(m, from, to, "");
}

static uint32_t after(struct maker *m, uint32_t from, const char *key)
{
	uint32_t to = add(m, key);

	join(m, from, to);
	return to;
}

static void read_input(struct maker *m, uint32_t to, const char *tensor)
{
	struct ap_pic_edge edge = {0, to, tensor, "", 0, 0};

	AP_PUSH(m->ctx->arena, m->later, edge);
}

static struct ap_picture finish(struct maker *m)
{
	uint32_t n = (uint32_t)m->nodes.n;

	for (size_t i = 0; i < m->later.n; i++) {
		struct ap_pic_node node = {.name = m->later.v[i].tensor, .type = "Input",
			.kind = AP_PIC_INPUT, .cell = "", .cut = "", .slice = "", .comms = "",
			.key = ""};

		m->later.v[i].from = (uint32_t)m->nodes.n;
		AP_PUSH(m->ctx->arena, m->nodes, node);
		AP_PUSH(m->ctx->arena, m->edges, m->later.v[i]);
	}
	return (struct ap_picture){"t", "", (uint32_t)m->nodes.n, n, m->nodes.v,
		(uint32_t)m->edges.n, m->edges.v};
}

/* x -> norm -> product -> sum with x */
static uint32_t add_layer(struct maker *m, uint32_t x, const char *product)
{
	uint32_t sum = after(m, after(m, after(m, x, "norm"), product), "sum");

	join(m, x, sum);
	return sum;
}

static uint32_t add_layers(struct maker *m, uint32_t x, int n, const char *product)
{
	while (n-- > 0)
		x = add_layer(m, x, product);
	return x;
}

/* "[first+length]xcopies" of each loop, with its parent's place where it has one. */
static const char *loops_of(struct ap_ctx *ctx, const struct ap_picture *pic)
{
	struct ap_str text = new_str(ctx);
	struct ap_pic_fold f;

	ap_pic_fold_make(ctx, pic, &f);
	for (uint32_t l = 0; l < f.nloop; l++) {
		const struct ap_pic_loop *loop = &f.loop[l];

		ap_str_addf(&text, "%s%u+%u%s%u", l ? " " : "", (unsigned)loop->first,
			(unsigned)loop->length, loop->chained ? "x" : "=", (unsigned)loop->copies);
		if (loop->parent != AP_NONE)
			ap_str_addf(&text, "in%u", (unsigned)loop->parent);
	}
	return text.s;
}

/* Stages of receive, layers and send; the ends have an operator more. */
static void make_stages(struct maker *m, int stages, int layers)
{
	uint32_t x = add(m, "embed");
	size_t first = 0;

	for (int s = 0; s < stages; s++) {
		x = s ? after(m, x, "receive") : x;
		x = add_layers(m, x, layers, "product");
		x = s + 1 < stages ? after(m, x, "send") : after(m, x, "loss");
		for (; first < m->nodes.n; first++)
			m->nodes.v[first].part = ap_arena_printf(m->ctx->arena, "stage %d", s);
	}
}

static void make_eight_stages(struct maker *m)
{
	make_stages(m, 8, 5);
}

static void make_two_stages(struct maker *m)
{
	make_stages(m, 2, 5);
}

static void make_layers(struct maker *m)
{
	after(m, add_layers(m, add(m, "embed"), 40, "product"), "loss");
}

static void make_other_ends(struct maker *m)
{
	uint32_t x = add_layer(m, add(m, "embed"), "first product");

	add_layer(m, add_layers(m, x, 38, "product"), "last product");
}

static void make_towers(struct maker *m)
{
	uint32_t a = add_layers(m, add(m, "left"), 6, "product");
	uint32_t b = add_layers(m, add(m, "right"), 5, "product");

	join(m, b, after(m, a, "loss"));
}

static void make_turns(struct maker *m) /* two towers, operator by operator */
{
	uint32_t a = add(m, "left"), b = add(m, "right");

	for (int i = 0; i < 9; i++) {
		a = after(m, a, "product");
		b = after(m, b, "sum");
	}
}

static void make_nested(struct maker *m)
{
	uint32_t x = add(m, "embed");

	for (int i = 0; i < 3; i++)
		x = after(m, add_layers(m, x, 4, "product"), "down");
}

static void make_masked(struct maker *m)
{
	uint32_t mask = add(m, "mask"), x = add(m, "embed");

	for (int i = 0; i < 10; i++) {
		x = after(m, after(m, x, "norm"), "masked");
		join(m, mask, x);
	}
}

static void make_moved(struct maker *m) /* what the first reads is redistributed, and in the sixth */
{
	uint32_t x = add(m, "embed");

	for (int i = 0; i < 10; i++) {
		uint32_t norm = add(m, "norm");

		move(m, x, norm, i ? "" : "AllGather");
		x = add(m, "product");
		move(m, norm, x, i == 5 ? "Slice" : "");
	}
}

static void make_aside(struct maker *m)
{
	uint32_t look[5], all;

	for (int i = 0; i < 5; i++) {
		uint32_t gather = add(m, "gather");

		read_input(m, gather, ap_arena_printf(m->ctx->arena, "ids%d", i));
		look[i] = after(m, gather, "reshape");
	}
	all = add(m, "concat");
	for (int i = 0; i < 5; i++)
		join(m, look[i], all);
}

static void make_three_aside(struct maker *m) /* query, key, value */
{
	uint32_t x = add(m, "norm");

	for (int i = 0; i < 3; i++)
		after(m, after(m, after(m, after(m, x, "a"), "b"), "c"), "d");
}

static void make_crossed(struct maker *m) /* equal operators that read from another place each time */
{
	uint32_t down[6], x = add(m, "embed");

	for (int i = 0; i < 6; i++) {
		down[i] = x = after(m, x, "down");
		x = after(m, x, "pool");
	}
	for (int i = 6; i-- > 0;) {
		x = after(m, after(m, x, "up"), "join");
		join(m, down[i], x);
	}
}

static void make_cells(struct maker *m) /* a sum like a layer's comes before the first layer */
{
	uint32_t x = after(m, after(m, add(m, "embed"), "product"), "sum");

	for (int i = 0; i < 6; i++) {
		x = add_layer(m, x, "product");
		for (uint32_t k = x - 2; k <= x; k++)
			m->nodes.v[k].cell = ap_arena_printf(m->ctx->arena, "net.layers.%d", i);
	}
	for (uint32_t k = 0; k < 3; k++)
		m->nodes.v[k].cell = "embed";
}

static void make_pair(struct maker *m)
{
	uint32_t x = add(m, "embed");

	for (int i = 0; i < 2; i++)
		x = after(m, add_layer(m, add_layer(m, x, "product"), "other product"), "relu");
}

static void make_chain(struct maker *m)
{
	uint32_t x = add(m, "product");

	read_input(m, x, "x");
	for (int i = 1; i < 10000; i++)
		x = after(m, x, "product");
}

static void make_far(struct maker *m) /* each reads of the one before the last */
{
	uint32_t a = add(m, "left"), b = add(m, "right");

	for (int i = 0; i < 9; i++) {
		uint32_t c = after(m, a, "product");

		a = b;
		b = c;
	}
}

static void make_plain(struct maker *m) /* nothing repeats often enough */
{
	uint32_t x = add(m, "a");

	x = after(m, after(m, after(m, after(m, x, "b"), "b"), "b"), "c");
	add_layers(m, x, 2, "product");
}

static const struct made {
	void (*make)(struct maker *m);
	const char *loops;
	uint32_t boxes; /* with notes */
} made[] = {
	{make_layers, "1+3x40", 5},
	{make_other_ends, "4+3x38", 10},
	{make_towers, "20+3x5 1+3x6", 7}, /* the layers are the same */
	{make_turns, "2+2x9", 4},
	{make_nested, "1+13x3 1+3x4in0", 5},
	{make_masked, "2+2x10", 4},
	{make_moved, "12+2x4 1+2x5", 7},
	{make_aside, "0+2=5", 4},
	{make_three_aside, "", 13},
	{make_crossed, "1+2x6", 15},
	{make_cells, "3+3x6", 6},
	{make_pair, "1+7x2", 8},
	{make_chain, "0+1x10000", 2},
	{make_far, "", 11},
	{make_plain, "", 11},
	/* embed; layers as in stage 1; send | receive; norm, product, sum; send | receive; layers as in
	   stage 1; loss */
	{make_eight_stages, "17+17x6 120+3x5 18+3x5in0 1+3x5", 11},
	{make_two_stages, "18+3x5 1+3x5", 8},
};

START_LOOP_TEST(repetition, AP_COUNT(made))
{
	struct ap_ctx ctx = new_ctx();
	struct maker m = {.ctx = &ctx};
	struct ap_picture pic;
	struct ap_pic_view view;

	made[_i].make(&m);
	pic = finish(&m);
	ck_assert_str_eq(loops_of(&ctx, &pic), made[_i].loops);
	ap_pic_view_make(&ctx, &pic, AP_PIC_FOLD, &view);
	ck_assert_uint_eq(view.nbox, made[_i].boxes);
	free_ctx(&ctx);
}
END_TEST

static const struct ap_pic_line *line_between(const struct ap_pic_view *v, uint32_t from, uint32_t to,
	bool again)
{
	for (uint32_t i = 0; i < v->nline; i++)
		if (v->line[i].from == from && v->line[i].to == to && v->line[i].again == again)
			return &v->line[i];
	return NULL;
}

START_TEST(lines_of_layers)
{
	struct ap_ctx ctx = new_ctx();
	struct maker m = {.ctx = &ctx};
	struct ap_pic_view v;
	struct ap_picture pic;

	make_layers(&m);
	pic = finish(&m);
	ap_pic_view_make(&ctx, &pic, AP_PIC_FOLD, &v);
	ck_assert_uint_eq(v.nline, 7);
	ck_assert_uint_eq(line_between(&v, 0, 1, false)->count, 1); /* embed to norm */
	ck_assert_uint_eq(line_between(&v, 0, 3, false)->count, 1);
	ck_assert_uint_eq(line_between(&v, 1, 2, false)->count, 40);
	ck_assert_uint_eq(line_between(&v, 2, 3, false)->count, 40);
	ck_assert_uint_eq(line_between(&v, 3, 1, true)->count, 39);
	ck_assert_uint_eq(line_between(&v, 3, 3, true)->count, 39);
	ck_assert_uint_eq(line_between(&v, 3, 4, false)->count, 1); /* to the loss */
	ck_assert_uint_eq(v.nframe, 1);
	ck_assert_str_eq(v.frame[0].label, "x 40");
	ck_assert_uint_eq(v.box[2].operators, 40);
	ck_assert_double_eq(v.box[2].time_s, 40);
	ck_assert_uint_eq(v.box[2].nrank, 1);
	ck_assert_uint_eq(v.box[2].rank[0], 2);
	free_ctx(&ctx);
}
END_TEST

START_TEST(stages_alike_are_one)
{
	struct ap_ctx ctx = new_ctx();
	struct maker m = {.ctx = &ctx};
	struct ap_pic_view v;
	struct ap_picture pic;
	uint32_t parts = 0;

	make_eight_stages(&m);
	pic = finish(&m);
	ap_pic_view_make(&ctx, &pic, AP_PIC_FOLD, &v);
	for (uint32_t i = 0; i < v.nframe; i++) {
		static const char *const labels[] = {"stage 0", "stage 1 to stage 6, alike", "stage 7"};
		static const uint32_t operators[] = {17, 17, 17}, all[] = {17, 6 * 17, 17};

		if (!v.frame[i].part)
			continue;
		ck_assert_str_eq(v.frame[i].label, labels[parts]);
		ck_assert_uint_eq(v.frame[i].operators, operators[parts]);
		ck_assert_uint_eq(v.frame[i].all, all[parts]);
		parts++;
	}
	ck_assert_uint_eq(parts, 3);
	ck_assert_int_eq(
		v.box[1].kind, AP_BOX_GROUP); /* the layers of stage 0, where those of stage 1 are drawn */
	ck_assert_str_eq(v.box[1].title, "x 5, as in stage 1 to stage 6, alike");
	ck_assert_uint_eq(v.box[1].operators, 15);
	free_ctx(&ctx);
}
END_TEST

/* Cells that are cut alike throughout are a box each where there are many; others show what they cut. */
START_TEST(what_is_cut_alike_is_a_box)
{
	struct ap_ctx ctx = new_ctx();
	struct maker m = {.ctx = &ctx};
	struct ap_pic_view v;
	struct ap_picture pic;
	uint32_t x = add(&m, "embed"), groups = 0;

	for (int cell = 0; cell < 10; cell++) {
		size_t first = m.nodes.n;

		for (int i = 0; i < 4; i++)
			x = after(&m, x, ap_arena_printf(ctx.arena, "op %d", cell * 4 + i));
		for (size_t i = first; i < m.nodes.n; i++) {
			m.nodes.v[i].cell = ap_arena_printf(ctx.arena, "net.cell%d", cell);
			m.nodes.v[i].cut_in[AP_DIMENSION_BATCH] = 8;
			m.nodes.v[i].cut_in[AP_DIMENSION_HIDDEN] = cell == 4 && i == first + 1 ? 4 : 1;
		}
	}
	pic = finish(&m);
	ap_pic_view_make(&ctx, &pic, AP_PIC_FOLD, &v);
	ck_assert_uint_le(v.nbox, 24);
	for (uint32_t b = 0; b < v.nbox; b++) {
		groups += v.box[b].kind == AP_BOX_GROUP;
		if (v.box[b].kind == AP_BOX_GROUP)
			ck_assert_str_ne(v.box[b].title, "cell4");
	}
	ck_assert_uint_ge(groups, 5);
	free_ctx(&ctx);
}
END_TEST

START_TEST(first_redistribution_is_told_apart)
{
	struct ap_ctx ctx = new_ctx();
	struct maker m = {.ctx = &ctx};
	struct ap_pic_view v;
	struct ap_picture pic;

	make_moved(&m);
	pic = finish(&m);
	ap_pic_view_make(&ctx, &pic, AP_PIC_FOLD, &v);
	ck_assert_str_eq(line_between(&v, 0, 1, false)->first->moves, "AllGather");
	ck_assert_uint_eq(line_between(&v, 0, 1, false)->moved.n, 1);
	ck_assert_uint_eq(line_between(&v, 2, 1, true)->moved.n, 0);
	ck_assert_str_eq(line_between(&v, 3, 4, false)->first->moves, "Slice");
	free_ctx(&ctx);
}
END_TEST

START_TEST(notes_of_copies)
{
	struct ap_ctx ctx = new_ctx();
	struct maker m = {.ctx = &ctx};
	struct ap_pic_view v;
	struct ap_picture pic;

	make_aside(&m);
	pic = finish(&m);
	ap_pic_view_make(&ctx, &pic, AP_PIC_FOLD, &v);
	ck_assert_uint_eq(v.nnote, 1);
	ck_assert_int_eq(v.box[3].kind, AP_BOX_NOTE);
	ck_assert_uint_eq(v.box[3].operators, 5); /* ids0 and four more */
	ck_assert_str_eq(v.frame[0].label, "x 5 side by side");
	ap_pic_view_make(&ctx, &pic, AP_PIC_FULL, &v);
	ck_assert_uint_eq(v.nnote, 5);
	ck_assert_uint_eq(v.nbox, 16);
	free_ctx(&ctx);
}
END_TEST

START_TEST(frames_of_cells)
{
	struct ap_ctx ctx = new_ctx();
	struct maker m = {.ctx = &ctx};
	struct ap_pic_view v;
	struct ap_picture pic;

	make_cells(&m);
	pic = finish(&m);
	ap_pic_view_make(&ctx, &pic, AP_PIC_FOLD, &v);
	ck_assert_uint_eq(v.nframe, 3);
	ck_assert_str_eq(v.frame[0].label, "embed");
	ck_assert_str_eq(v.frame[1].label, "net.layers");
	ck_assert_uint_eq(v.frame[1].operators, 18);
	ck_assert_str_eq(v.frame[2].label, "x 6: 0 to 5");
	ck_assert_uint_eq(v.frame[2].parent, 1);
	ck_assert_uint_eq(v.frame[2].operators, 3);
	ck_assert_uint_eq(v.frame[2].all, 18);
	free_ctx(&ctx);
}
END_TEST

/* Views and operators by element join what they alone read of, when there are many boxes. */
START_TEST(chains)
{
	struct ap_ctx ctx = new_ctx();
	struct maker m = {.ctx = &ctx};
	struct ap_pic_view v;
	struct ap_picture pic;
	uint32_t x = add(&m, "Embed"), reshape, relu;

	for (int i = 0; i < 50; i++) { /* keys that differ: nothing folds */
		const char *key = ap_arena_printf(ctx.arena, "MatMul%d", i);

		x = after(&m, x, key);
		m.nodes.v[x].type = "MatMul";
		m.nodes.v[x].time_s = 5;
	}
	reshape = after(&m, x, "Reshape");
	relu = after(&m, reshape, "ReLU");
	m.nodes.v[0].time_s = 9;
	x = after(&m, relu, "Softmax");
	after(&m, relu, "ReLU");
	reshape = add(&m, "Reshape");
	move(&m, x, reshape, "AllGather");
	pic = finish(&m);
	ap_pic_view_make(&ctx, &pic, AP_PIC_FOLD, &v);
	ck_assert_uint_eq(v.nbox, 54);
	ck_assert_int_eq(v.box[50].kind, AP_BOX_CHAIN);
	ck_assert_uint_eq(v.box[50].nmember, 3);
	ck_assert_uint_eq(v.box[50].member[2], relu);
	ck_assert_uint_eq(v.box_of[reshape], 53); /* something is redistributed before it */
	ck_assert_uint_eq(v.box[0].rank[0], 1);
	free_ctx(&ctx);
}
END_TEST

/* Every operator in one box, every redistribution at one line or in one box, few boxes. */
static void check_all_there(const struct ap_picture *pic, const struct ap_pic_view *v, bool few)
{
	uint32_t operators = 0, members = 0, drawn = 0, moved = 0, moves = 0;

	for (uint32_t b = 0; b < v->nbox - v->nnote; b++) {
		operators += v->box[b].operators;
		members += v->box[b].nmember;
		moved += v->box[b].inside.n;
		for (uint32_t k = 0; k < v->box[b].nmember; k++)
			ck_assert_uint_eq(v->box_of[v->box[b].member[k]], b);
		ck_assert(v->box[b].frame == AP_NONE || v->box[b].frame < v->nframe);
	}
	for (uint32_t i = 0; i < pic->noperator; i++) {
		ck_assert_uint_eq(v->box_of[i], v->box_of[v->fold.stand[i]]);
		ck_assert_str_eq(pic->node[i].key, pic->node[v->fold.stand[i]].key);
		drawn += v->fold.stand[i] == i;
	}
	for (uint32_t i = 0; i < v->nline; i++)
		moved += v->line[i].moved.n;
	for (uint32_t e = 0; e < pic->nedge; e++)
		moves += *pic->edge[e].moves != '\0';
	ck_assert_uint_eq(operators, pic->noperator);
	ck_assert_uint_eq(members, drawn);
	ck_assert_uint_eq(moved, moves);
	if (few)
		ck_assert_uint_lt(v->nbox, AP_PIC_MOST_BOXES);
	else
		ck_assert_uint_eq(v->nbox - v->nnote, pic->noperator);
}

static const char *random_cell(struct maker *m, uint64_t *random)
{
	static const char *const cells[] = {"", "a", "a.b", "a.b.c", "a.d", "e", "e.f", "..", "a..b"};
	uint64_t i = next_random(random) % 24;

	return i < 9 ? cells[i] : ap_arena_printf(m->ctx->arena, "net.%" PRIu64, i / 4);
}

/* Stretches that come several times, with a mistake here and there. */
static void make_random(struct maker *m, uint64_t *random)
{
	static const char *const keys[] = {"Reshape", "ReLU", "MatMul", "Add", "Softmax", "BiasAdd"};
	uint64_t blocks = next_random(random) % 40 + 1;

	add(m, "begin");
	while (blocks-- > 0) {
		uint64_t length = next_random(random) % 8 + 1, copies = next_random(random) % 12 + 1;
		uint64_t block = *random;

		for (uint64_t c = 0; c < copies; c++) {
			uint64_t same = block | 1;

			for (uint64_t k = 0; k < length; k++) {
				uint64_t r = next_random(next_random(random) % 200 ? &same : random);
				uint32_t x = add(m, keys[r % 6]);

				m->nodes.v[x].cell = random_cell(m, &same);
				move(m, x - 1, x, r >> 8 & 7 ? "" : "AllGather");
				if (r >> 16 & 1)
					join(m, x - (uint32_t)((r >> 20) % 9) % x - 1, x);
				if (!(r >> 30 & 3))
					read_input(m, x, "mask");
			}
		}
	}
}

START_TEST(nothing_is_lost)
{
	uint64_t random = seed_of_run();

	for (int i = 0; i < 300; i++) {
		struct ap_ctx ctx = new_ctx();
		struct maker m = {.ctx = &ctx};
		struct ap_picture pic;
		struct ap_pic_view v;

		make_random(&m, &random);
		pic = finish(&m);
		ap_pic_view_make(&ctx, &pic, AP_PIC_FULL, &v);
		check_all_there(&pic, &v, false);
		ap_pic_view_make(&ctx, &pic, AP_PIC_FOLD, &v);
		check_all_there(&pic, &v, true);
		free_ctx(&ctx);
	}
}
END_TEST

/* Neither cells nor repetition, and inputs everywhere. */
START_TEST(thousands_that_differ)
{
	struct ap_ctx ctx = new_ctx();
	struct maker m = {.ctx = &ctx};
	struct ap_pic_view v;
	struct ap_picture pic;

	add(&m, "begin");
	for (uint32_t i = 1; i < 5000; i++) {
		after(&m, i - 1, ap_arena_printf(ctx.arena, "key%u", (unsigned)i));
		m.nodes.v[i].cut_in[AP_DIMENSION_BATCH] = i % 2 + 1;
		read_input(&m, i, ap_arena_printf(ctx.arena, "x%u", (unsigned)i));
	}
	pic = finish(&m);
	ap_pic_view_make(&ctx, &pic, AP_PIC_FOLD, &v);
	check_all_there(&pic, &v, true);
	ck_assert_uint_gt(v.nbox, 50);
	free_ctx(&ctx);
}
END_TEST

START_TEST(hundreds_of_inputs)
{
	struct ap_ctx ctx = new_ctx();
	struct maker m = {.ctx = &ctx};
	struct ap_pic_view v;
	struct ap_picture pic;
	uint32_t x = add(&m, "Concat");

	for (uint32_t i = 0; i < 300; i++)
		read_input(&m, x, ap_arena_printf(ctx.arena, "x%u", (unsigned)i));
	pic = finish(&m);
	ap_pic_view_make(&ctx, &pic, AP_PIC_FOLD, &v);
	ck_assert_uint_eq(v.nnote, 9);
	ck_assert_uint_eq(v.box[9].operators, 292);
	free_ctx(&ctx);
}
END_TEST

/* Neighbours that are cut alike, feed one another and take little are a box; what is redistributed, takes much or
 * is cut otherwise stays one. */
START_TEST(neighbours_alike_are_a_box)
{
	struct ap_ctx ctx = new_ctx();
	struct maker m = {.ctx = &ctx};
	struct ap_pic_view v;
	struct ap_picture pic;
	uint32_t x = add(&m, "embed"), group = 0;

	for (int i = 1; i < 60; i++) {
		uint32_t from = x;

		x = add(&m, ap_arena_printf(ctx.arena, "op %d", i));
		move(&m, from, x, i == 30 ? "AllGather" : "");
		m.nodes.v[x].cut_in[AP_DIMENSION_BATCH] = i < 40 ? 8 : 4;
		m.nodes.v[x].time_s = i == 20 ? 1000 : i < 10 ? 100 : 0.1;
		m.edges.v[m.edges.n - 1].time_s = 0;
	}
	pic = finish(&m);
	ap_pic_view_make(&ctx, &pic, AP_PIC_FOLD, &v);
	/* the ten that take most are boxes, as is the first, which is cut otherwise: then 10 to 19, 21 to 29, 30 to
	 * 39 and 40 to 59 */
	ck_assert_uint_eq(v.nbox, 11 + 4);
	for (uint32_t b = 0; b < v.nbox; b++) {
		static const uint32_t members[] = {10, 9, 10, 20};

		if (v.box[b].kind == AP_BOX_GROUP)
			ck_assert_uint_eq(v.box[b].nmember, members[group++]);
	}
	ck_assert_uint_eq(group, 4);
	free_ctx(&ctx);
}
END_TEST

/* A layer cut otherwise than those that follow is told of by the number of its operators that differ. */
START_TEST(a_layer_almost_as_others)
{
	struct ap_ctx ctx = new_ctx();
	struct maker m = {.ctx = &ctx};
	struct ap_pic_view v;
	struct ap_picture pic;
	uint32_t x = add(&m, "embed"), found = 0;

	for (int layer = 0; layer < 50; layer++)
		for (int i = 0; i < 30; i++) {
			x = after(&m, x, ap_arena_printf(ctx.arena, "op%d", i));
			m.nodes.v[x].cell = ap_arena_printf(ctx.arena, "net.%d", layer);
			m.nodes.v[x].cut_in[AP_DIMENSION_BATCH] = layer || i > 2 ? 8 : 4;
			m.nodes.v[x].cut_in[AP_DIMENSION_HIDDEN] = i % 2 ? 2 : 1;
			if (!layer && i <= 2)
				m.nodes.v[x].key = ap_arena_printf(ctx.arena, "other%d", i);
		}
	pic = finish(&m);
	ap_pic_view_make(&ctx, &pic, AP_PIC_FOLD, &v);
	for (uint32_t b = 0; b < v.nbox; b++)
		found += v.box[b].title && !strcmp(v.box[b].title,
						   "net.0, 3 of 30 cut otherwise than in x 49: net.1 to net.49");
	ck_assert_uint_eq(found, 1);
	free_ctx(&ctx);
}
END_TEST

static const struct ap_pic_size page = {2000, 1500}, endless = {1e9, 1e9};

static struct ap_pic_columns columns_of(
	struct ap_ctx *ctx, const struct ap_pic_view *v, const struct ap_pic_size *most)
{
	struct ap_pic_size *box = AP_NEW_N(ctx->scratch, struct ap_pic_size, v->nbox),
			   *label = AP_NEW_N(ctx->scratch, struct ap_pic_size, v->nframe);
	struct ap_pic_columns columns;

	for (uint32_t i = 0; i < v->nbox; i++)
		box[i] = (struct ap_pic_size){150, 60 + 7 * (i % 9)};
	for (uint32_t i = 0; i < v->nframe; i++)
		label[i] = (struct ap_pic_size){100, 13};
	ap_pic_columns_make(ctx, v, box, label, most, &columns);
	return columns;
}

START_TEST(a_long_chain_in_columns)
{
	struct ap_ctx ctx = new_ctx();
	struct maker m = {.ctx = &ctx};
	struct ap_pic_columns columns;
	struct ap_pic_view v;
	struct ap_picture pic;
	uint32_t x = add(&m, "begin"), loose = 0;

	for (int i = 1; i < 60; i++)
		x = after(&m, x, ap_arena_printf(ctx.arena, "op %d", i));
	pic = finish(&m);
	ap_pic_view_make(&ctx, &pic, AP_PIC_FULL, &v);
	columns = columns_of(&ctx, &v, &endless);
	ck_assert_uint_eq(columns.ncut, 0);
	ck_assert_double_gt(columns.height, 60 * 100);
	columns = columns_of(&ctx, &v, &page);
	ck_assert_uint_ge(columns.ncut, 3); /* columns of at most 1500 points */
	ck_assert_double_lt(columns.height, 1.1 * page.height);
	ck_assert_double_lt(columns.width, page.width);
	for (uint32_t i = 0; i < v.nline; i++)
		loose += columns.loose[i];
	ck_assert_uint_eq(loose, columns.ncut);
	free_ctx(&ctx);
}
END_TEST

/* Columns make a picture no taller, and only lines between boxes are loose. */
START_TEST(random_columns)
{
	uint64_t random = seed_of_run();
	uint32_t several = 0;

	for (int i = 0; i < 100; i++) {
		struct ap_ctx ctx = new_ctx();
		struct maker m = {.ctx = &ctx};
		struct ap_pic_columns whole, columns;
		struct ap_picture pic;
		struct ap_pic_view v;

		make_random(&m, &random);
		pic = finish(&m);
		ap_pic_view_make(&ctx, &pic, AP_PIC_FOLD, &v);
		whole = columns_of(&ctx, &v, &endless);
		columns = columns_of(&ctx, &v, &page);
		ck_assert_uint_eq(whole.ncut, 0);
		ck_assert_double_le(columns.height, whole.height);
		ck_assert(columns.ncut || columns.height == whole.height);
		several += columns.ncut > 0;
		for (uint32_t k = 0; k < v.nline; k++)
			ck_assert(!columns.loose[k] ||
				(columns.ncut && v.box[v.line[k].from].kind != AP_BOX_NOTE &&
					v.line[k].from != v.line[k].to));
		free_ctx(&ctx);
	}
	ck_assert_uint_ge(several, 20);
}
END_TEST

/* Memory that was used before changes nothing. */
START_TEST(same_text_again)
{
	struct ap_ctx ctx = new_ctx();
	struct maker m = {.ctx = &ctx};
	uint64_t random = seed_of_run();
	const char *a, *b;
	struct ap_picture pic;
	uint32_t n;
	size_t len;

	make_random(&m, &random);
	pic = finish(&m);
	ck_assert_int_eq(ap_emit_dot(&ctx, &pic, AP_PIC_FOLD, &a, &len, &n), AP_OK);
	memset(ap_arena_alloc(ctx.scratch, 1, 100000), 0xA5, 100000);
	ck_assert_int_eq(ap_emit_dot(&ctx, &pic, AP_PIC_FOLD, &b, &len, &n), AP_OK);
	ck_assert_str_eq(a, b);
	ck_assert_uint_gt(n, 1);
	free_ctx(&ctx);
}
END_TEST
