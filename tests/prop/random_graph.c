/* SPDX-License-Identifier: Apache-2.0 */
#include "random_maker.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"

#define BETWEEN ",\n" /* items of a list; nowhere in one */

uint32_t maker_below(struct maker *m, uint64_t n)
{
	return (uint32_t)random_below(m->seed, n);
}

bool maker_one_in(struct maker *m, uint32_t n)
{
	return maker_below(m, n) == 0;
}

int64_t maker_small_length(struct maker *m)
{
	static const int64_t lengths[] = {2, 3, 4, 5, 6, 8, 10, 12, 16, 24};

	return lengths[maker_below(m, AP_COUNT(lengths))];
}

static int64_t feature_length(struct maker *m)
{
	return maker_small_length(m) * m->wide;
}

static bool is_real(const struct tensor *t)
{
	return t->type != 'i';
}

uint32_t maker_add_tensor(struct maker *m, char type, int rank, const int64_t *dim)
{
	struct tensor *t = &m->tensor[m->ntensor];

	ck_assert_uint_lt(m->ntensor, MAX_TENSORS);
	*t = (struct tensor){.type = type, .rank = rank};
	for (int d = 0; d < rank; d++)
		t->dim[d] = dim[d];
	return m->ntensor++;
}

uint32_t maker_add_like(struct maker *m, uint32_t x)
{
	struct tensor t = m->tensor[x];

	return maker_add_tensor(m, t.type, t.rank, t.dim);
}

static void write_dims(struct ap_str *s, const int64_t *dim, int n)
{
	for (int d = 0; d < n; d++)
		ap_str_addf(s, d ? ",%" PRId64 : "%" PRId64, dim[d]);
}

static void write_type(struct ap_str *s, const struct tensor *t)
{
	ap_str_addf(s, "\"shape\":[");
	write_dims(s, t->dim, t->rank);
	ap_str_addf(s, "],\"dtype\":\"%s\"",
		t->type == 'f' ? "float32" : t->type == 'h' ? "float16" : "int32");
}

static void declare_as(struct ap_str *list, uint32_t id, const struct tensor *stored, const char *more)
{
	ap_str_addf(list, "%s{\"name\":\"t%u\",", list->len ? BETWEEN : "", id);
	write_type(list, stored);
	ap_str_addf(list, "%s}", more);
}

static void declare(struct maker *m, struct ap_str *list, uint32_t id, const char *more)
{
	declare_as(list, id, &m->tensor[id], more);
}

uint32_t maker_add_input(struct maker *m, char type, int rank, const int64_t *dim)
{
	uint32_t id = maker_add_tensor(m, type, rank, dim);

	declare(m, &m->inputs, id, dim[0] == m->batch ? ",\"batch_dim\":0" : "");
	return id;
}

/* In its own type, or cast from another one by who reads it. */
static void declare_parameter(struct maker *m, uint32_t id, const char *more)
{
	struct tensor stored = m->tensor[id];
	bool half = stored.type == 'h';

	if (!is_real(&stored) || !maker_one_in(m, 4)) {
		declare(m, &m->parameters, id, more);
		return;
	}
	stored.type = half ? 'f' : 'h';
	declare_as(&m->parameters, id, &stored, ap_arena_printf(m->ctx->arena, ",\"read_as\":\"%s\"%s",
		half ? "float16" : "float32", more));
}

static uint32_t add_parameter(struct maker *m, char type, int rank, const int64_t *dim)
{
	uint32_t id = maker_add_tensor(m, type, rank, dim);

	m->tensor[id].parameter = true;
	if (maker_one_in(m, 10))
		declare(m, &m->constants, id, "");
	else if (maker_one_in(m, 8))
		declare_parameter(m, id, ",\"trainable\":false");
	else
		declare_parameter(m, id,
			maker_one_in(m, 8) ? ",\"parallel_optimizer\":false" : "");
	return id;
}

static void write_operands(struct maker *m, struct ap_str *s, const uint32_t *in, int n)
{
	for (int i = 0; i < n; i++) {
		ap_str_add(s, i ? "," : "");
		if (in[i] == NONE) {
			ap_str_add(s, "null");
			continue;
		}
		ap_str_addf(s, "\"t%u\"", in[i]);
		m->tensor[in[i]].uses++;
	}
}

bool maker_add_op(struct maker *m, const char *type, const char *attrs, const uint32_t *in, int nin,
	uint32_t first)
{
	struct ap_str s;

	ck_assert_uint_lt(m->nop, MAX_OPS);
	ap_str_init(&s, m->ctx->arena);
	ap_str_addf(&s, "{\"name\":\"%s%u\",\"type\":\"%s\",\"inputs\":[", type, m->nop, type);
	write_operands(m, &s, in, nin);
	ap_str_addf(&s, "],\"attrs\":{%s},\"outputs\":[", attrs);
	for (uint32_t o = first; o < m->ntensor; o++) {
		ap_str_addf(&s, "%s{\"name\":\"t%u\"", o > first ? "," : "", o);
		if (maker_one_in(m, 2)) {
			ap_str_addc(&s, ',');
			write_type(&s, &m->tensor[o]);
		}
		ap_str_addc(&s, '}');
	}
	ap_str_add(&s, "]}");
	m->op[m->nop++] = s.s;
	return true;
}

uint32_t maker_pick(struct maker *m, bool real, int lo, int hi)
{
	for (int tries = 0; tries < 16; tries++) {
		uint32_t id = m->ntensor - 1 - maker_below(m, 1 + maker_below(m, m->ntensor - m->base));
		const struct tensor *t = &m->tensor[id];

		if (is_real(t) == real && t->rank >= lo && t->rank <= hi &&
			(!t->parameter || maker_one_in(m, 8)))
			return id;
	}
	return NONE;
}

static bool has_shape(const struct tensor *t, char type, int rank, const int64_t *dim)
{
	if (t->type != type || t->rank != rank)
		return false;
	for (int d = 0; d < rank; d++)
		if (dim[d] && dim[d] != t->dim[d])
			return false;
	return true;
}

uint32_t maker_operand(struct maker *m, char type, int rank, const int64_t *dim)
{
	uint32_t start = m->base + maker_below(m, m->ntensor - m->base);
	int64_t full[RANK];

	for (uint32_t id = start; id < m->ntensor && !maker_one_in(m, 3); id++)
		if (has_shape(&m->tensor[id], type, rank, dim))
			return id;
	for (int d = 0; d < rank; d++)
		full[d] = dim[d] ? dim[d] : feature_length(m);
	return add_parameter(m, type, rank, full);
}

/* Tensors that grow again and again would become too large for any graph. */
static bool is_huge(const int64_t *dim, int rank)
{
	double elements = 1;

	for (int d = 0; d < rank; d++)
		elements *= (double)dim[d];
	return elements > 0x1p40;
}

static bool product(struct maker *m, const char *type, int lo, int hi)
{
	uint32_t x = maker_pick(m, true, lo, hi), in[2];
	bool ta = maker_one_in(m, 4), tb = maker_one_in(m, 2);
	int64_t dim[RANK];
	struct tensor t;
	int r;

	if (x == NONE)
		return false;
	t = m->tensor[x];
	r = t.rank;
	for (int d = 0; d < r - 2; d++)
		dim[d] = t.dim[d];
	dim[r - 2 + tb] = t.dim[r - 1 - ta];
	dim[r - 1 - tb] = 0;
	in[0] = x;
	in[1] = maker_operand(m, t.type, r, dim);
	dim[r - 2] = t.dim[r - 2 + ta];
	dim[r - 1] = m->tensor[in[1]].dim[r - 1 - tb];
	if (is_huge(dim, r))
		return false;
	return maker_add_op(m, type,
		ap_arena_printf(m->ctx->arena, "\"transpose_a\":%s,\"transpose_b\":%s",
			ta ? "true" : "false", tb ? "true" : "false"),
		in, 2, maker_add_tensor(m, t.type, r, dim));
}

static bool matmul(struct maker *m)
{
	return product(m, "MatMul", 2, 2);
}

static bool batch_matmul(struct maker *m)
{
	return product(m, "BatchMatMul", 3, 4);
}

static bool bias_add(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 2, 4), in[2];

	if (x == NONE)
		return false;
	in[0] = x;
	in[1] = maker_operand(m, m->tensor[x].type, 1, &m->tensor[x].dim[1]);
	return maker_add_op(m, "BiasAdd", "", in, 2, maker_add_like(m, x));
}

static bool binary(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 0, 4), in[2];
	int64_t dim[RANK];
	struct tensor t;
	int r;

	if (x == NONE)
		return false;
	t = m->tensor[x];
	r = maker_one_in(m, 2) ? t.rank : (int)maker_below(m, (uint64_t)t.rank + 1);
	for (int d = 0; d < r; d++)
		dim[d] = maker_one_in(m, 6) ? 1 : t.dim[t.rank - r + d];
	in[0] = in[1] = x;
	in[maker_below(m, 2)] = maker_operand(m, t.type, r, dim);
	return maker_add_op(m, maker_one_in(m, 2) ? "Add" : "Mul", "", in, 2, maker_add_like(m, x));
}

static bool unary(struct maker *m)
{
	static const char *const types[] = {"ReLU", "GeLU", "Tanh"};
	uint32_t x = maker_pick(m, true, 0, 4);

	return x != NONE && maker_add_op(m, types[maker_below(m, 3)], "", &x, 1, maker_add_like(m, x));
}

static bool cast(struct maker *m)
{
	uint32_t x = maker_pick(m, !maker_one_in(m, 4), 0, 4), y;

	if (x == NONE)
		return false;
	y = maker_add_like(m, x);
	m->tensor[y].type = m->tensor[x].type == 'f' ? 'h' : 'f';
	return maker_add_op(m, "Cast",
		m->tensor[y].type == 'f' ? "\"dst_type\":\"float32\"" : "\"dst_type\":\"float16\"",
		&x, 1, y);
}

static bool softmax(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 1, 4);

	if (x == NONE)
		return false;
	return maker_add_op(m, "Softmax",
		maker_one_in(m, 2) ? "" : ap_arena_printf(m->ctx->arena, "\"axis\":%u",
					    maker_below(m, (uint64_t)m->tensor[x].rank)),
		&x, 1, maker_add_like(m, x));
}

static bool dropout(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 1, 4);

	return x != NONE && maker_add_op(m, "Dropout", "\"keep_prob\":0.9", &x, 1, maker_add_like(m, x));
}

static bool layer_norm(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 2, 4), in[3], first;
	struct tensor t;
	int axis;

	if (x == NONE)
		return false;
	t = m->tensor[x];
	axis = 1 + (int)maker_below(m, (uint64_t)t.rank - 1);
	in[0] = x;
	in[1] = maker_operand(m, 'f', t.rank - axis, t.dim + axis);
	in[2] = maker_operand(m, 'f', t.rank - axis, t.dim + axis);
	first = maker_add_like(m, x);
	for (int d = axis; d < t.rank; d++)
		t.dim[d] = 1;
	for (int i = 0; i < 2; i++)
		maker_add_tensor(m, 'f', t.rank, t.dim);
	return maker_add_op(m, "LayerNorm",
		ap_arena_printf(m->ctx->arena, "\"begin_norm_axis\":%d,\"begin_params_axis\":%d",
			axis, axis),
		in, 3, first);
}

static bool reduce_over(struct maker *m, uint32_t x, uint32_t axes, bool keep)
{
	static const char *const types[] = {"ReduceSum", "ReduceMean", "ReduceMax"};
	struct tensor t = m->tensor[x], out = {.type = t.type};
	struct ap_str attrs;

	ap_str_init(&attrs, m->ctx->arena);
	ap_str_addf(&attrs, "\"keep_dims\":%s,\"axis\":[", keep ? "true" : "false");
	for (int d = 0, n = 0; d < t.rank; d++) {
		if (axes >> d & 1)
			ap_str_addf(&attrs, n++ ? ",%d" : "%d", d);
		if (keep || !(axes >> d & 1))
			out.dim[out.rank++] = axes >> d & 1 ? 1 : t.dim[d];
	}
	ap_str_addc(&attrs, ']');
	return maker_add_op(m, types[maker_below(m, 3)], attrs.s, &x, 1,
		maker_add_tensor(m, out.type, out.rank, out.dim));
}

static bool reduce(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 1, 4);

	return x != NONE && reduce_over(m, x,
		1 + maker_below(m, (UINT64_C(1) << m->tensor[x].rank) - 1), maker_one_in(m, 2));
}

static int64_t random_divisor(struct maker *m, int64_t n)
{
	int64_t d = maker_small_length(m);

	while (n % d)
		d = d % 2 ? 1 : d / 2;
	return d;
}

/* Two neighbours become one, one becomes two, or two become other two. */
static bool reshape(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 1, 4);
	struct tensor t, out;
	struct ap_str attrs;
	int at;
	bool merge, split;

	if (x == NONE)
		return false;
	t = m->tensor[x];
	at = (int)maker_below(m, (uint64_t)t.rank);
	merge = at + 1 < t.rank;
	split = !merge || maker_one_in(m, 3);
	if (t.rank == RANK && split && !merge)
		return false;
	out = (struct tensor){.type = t.type};
	for (int d = 0; d < t.rank; d++)
		out.dim[out.rank++] = t.dim[d];
	if (merge) {
		out.dim[at] *= out.dim[at + 1];
		for (int d = at + 1; d < t.rank - 1; d++)
			out.dim[d] = out.dim[d + 1];
		out.rank--;
	}
	if (split) {
		int64_t part = random_divisor(m, out.dim[at]);

		for (int d = out.rank++; d > at; d--)
			out.dim[d] = out.dim[d - 1];
		out.dim[at + 1] = out.dim[at] / part;
		out.dim[at] = part;
	}
	ap_str_init(&attrs, m->ctx->arena);
	ap_str_add(&attrs, "\"shape\":[");
	write_dims(&attrs, out.dim, out.rank);
	ap_str_addc(&attrs, ']');
	return maker_add_op(m, "Reshape", attrs.s, &x, 1, maker_add_tensor(m, t.type, out.rank, out.dim));
}

static bool flatten(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 2, 4);
	int64_t dim[2] = {0, 1};

	if (x == NONE)
		return false;
	dim[0] = m->tensor[x].dim[0];
	for (int d = 1; d < m->tensor[x].rank; d++)
		dim[1] *= m->tensor[x].dim[d];
	return maker_add_op(m, "Flatten", "", &x, 1, maker_add_tensor(m, m->tensor[x].type, 2, dim));
}

static bool transpose(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 2, 4);
	int64_t perm[RANK] = {0, 1, 2, 3}, dim[RANK];
	struct ap_str attrs;
	struct tensor t;

	if (x == NONE)
		return false;
	t = m->tensor[x];
	for (int d = t.rank - 1; d > 0; d--) {
		uint32_t other = maker_below(m, (uint64_t)d + 1);
		int64_t swap = perm[d];

		perm[d] = perm[other];
		perm[other] = swap;
	}
	for (int d = 0; d < t.rank; d++)
		dim[d] = t.dim[perm[d]];
	ap_str_init(&attrs, m->ctx->arena);
	ap_str_add(&attrs, "\"perm\":[");
	write_dims(&attrs, perm, t.rank);
	ap_str_addc(&attrs, ']');
	return maker_add_op(m, "Transpose", attrs.s, &x, 1, maker_add_tensor(m, t.type, t.rank, dim));
}

static uint32_t indices(struct maker *m)
{
	uint32_t ids = maker_pick(m, false, 1, 2);
	int64_t dim[2] = {m->batch, maker_small_length(m)};

	return ids == NONE ? maker_add_input(m, 'i', 1 + (int)maker_below(m, 2), dim) : ids;
}

static bool gather(struct maker *m)
{
	uint32_t ids = indices(m), in[2];
	int rank = maker_one_in(m, 3) ? 1 : 2, r = m->tensor[ids].rank;
	int64_t any[2] = {0, 0}, dim[RANK];

	in[0] = maker_operand(m, maker_one_in(m, 4) ? 'h' : 'f', rank, any);
	in[1] = ids;
	for (int d = 0; d < r; d++)
		dim[d] = m->tensor[ids].dim[d];
	if (rank == 2)
		dim[r++] = m->tensor[in[0]].dim[1];
	return maker_add_op(m, "Gather", "", in, 2, maker_add_tensor(m, m->tensor[in[0]].type, r, dim));
}

static bool one_hot(struct maker *m)
{
	uint32_t in[3] = {indices(m), maker_operand(m, 'f', 0, NULL), maker_operand(m, 'f', 0, NULL)};
	struct tensor t = m->tensor[in[0]];

	t.dim[t.rank] = maker_small_length(m);
	return maker_add_op(m, "OneHot",
		ap_arena_printf(m->ctx->arena, "\"depth\":%" PRId64, t.dim[t.rank]), in, 3,
		maker_add_tensor(m, 'f', t.rank + 1, t.dim));
}

static bool cross_entropy(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 2, 2), in[2], first;

	if (x == NONE)
		return false;
	in[0] = x;
	in[1] = maker_one_in(m, 2) ? maker_operand(m, m->tensor[x].type, 2, m->tensor[x].dim)
			     : maker_add_input(m, m->tensor[x].type, 2, m->tensor[x].dim);
	first = maker_add_tensor(m, m->tensor[x].type, 1, m->tensor[x].dim);
	maker_add_like(m, x);
	return maker_add_op(m, "SoftmaxCrossEntropyWithLogits", "", in, 2, first);
}

/* BSH with fewer heads of keys than of queries in some, or BNSD. */
static bool attention(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 3, 4), in[3];
	struct tensor t;
	int64_t heads, groups = 1;

	if (x == NONE)
		return false;
	t = m->tensor[x];
	heads = t.rank == 4 ? t.dim[1] : random_divisor(m, t.dim[2]);
	in[0] = x;
	if (t.rank == 3 && maker_one_in(m, 2))
		groups = random_divisor(m, heads);
	t.dim[2] = t.rank == 3 ? t.dim[2] / groups : 0;
	if (t.rank == 3 && maker_one_in(m, 2))
		t.dim[1] = 0;
	in[1] = maker_operand(m, t.type, t.rank, t.dim);
	in[2] = maker_operand(m, t.type, t.rank, m->tensor[in[1]].dim);
	return maker_add_op(m, "FlashAttentionScore",
		ap_arena_printf(m->ctx->arena, "\"head_num\":%" PRId64 ",\"input_layout\":\"%s\"",
			heads, t.rank == 4 ? "BNSD" : "BSH"),
		in, 3, maker_add_like(m, x));
}

static bool (*const operators[])(struct maker *m) = {matmul, matmul, matmul, batch_matmul,
	bias_add, binary, binary, unary, cast, softmax, dropout, layer_norm, reduce, reshape, reshape,
	flatten, transpose, gather, one_hot, cross_entropy, attention, random_conv, random_conv,
	random_pool, random_batch_norm, random_rms_norm, random_sparse_loss, random_concat,
	random_joined, random_split, random_slice, random_new_dim, random_repeat, random_choice};

/* One part, with a loss or without; AP_NONE without. */
static uint32_t add_part(struct maker *m, uint32_t nop)
{
	int64_t dim[RANK] = {m->batch};
	int rank = 2 + (int)maker_below(m, 2);
	uint32_t end = m->nop + nop, x = NONE;

	for (int d = 1; d < rank; d++)
		dim[d] = d < rank - 1 ? maker_small_length(m) : feature_length(m);
	m->base = m->ntensor;
	maker_add_input(m, maker_one_in(m, 8) ? 'h' : 'f', rank, dim);
	while (m->nop < end)
		operators[maker_below(m, AP_COUNT(operators))](m);
	for (uint32_t id = m->base; id < m->ntensor; id++)
		if (is_real(&m->tensor[id]) && !m->tensor[id].parameter && !m->tensor[id].uses)
			x = id;
	if (x == NONE || maker_one_in(m, 10))
		return NONE;
	reduce_over(m, x, (1u << m->tensor[x].rank) - 1, false);
	return m->ntensor - 1;
}

/* Text from *at up to the next between, which *at then follows; NULL at the end. */
static const char *cut_off(struct ap_ctx *ctx, const char **at, const char *between)
{
	const char *start = *at, *end = strstr(start, between);
	size_t len = end ? (size_t)(end - start) : strlen(start);

	*at = end ? end + strlen(between) : start + len;
	return len > 0 ? ap_arena_strndup(ctx->arena, start, len) : NULL;
}

static const char *shuffle(struct ap_ctx *ctx, uint64_t *seed, const char *list)
{
	const char *item[MAX_TENSORS], *one;
	struct ap_str s;
	uint32_t n = 0;

	while ((one = cut_off(ctx, &list, BETWEEN)))
		item[n++] = one;
	ap_str_init(&s, ctx->arena);
	for (; n > 0; n--) {
		uint32_t k = (uint32_t)random_below(seed, n);

		ap_str_addf(&s, "%s%s", s.len ? BETWEEN : "", item[k]);
		item[k] = item[n - 1];
	}
	return s.s;
}

/* Other names of tensors, which are t0 and so on, and of operators. */
static const char *rename_all(struct ap_ctx *ctx, const char *text)
{
	static const char before[] = "{\"name\":\"", behind[] = "\",\"type\":";
	struct ap_str s;
	uint32_t nop = 0;
	const char *line;

	ap_str_init(&s, ctx->arena);
	while ((line = cut_off(ctx, &text, "\n"))) {
		const char *type = strstr(line, behind);

		if (type) {
			ap_str_addf(&s, "%sn%u", before, nop++);
			line = type;
		}
		for (; *line; line++) {
			char *end;

			ap_str_addc(&s, *line);
			if (line[0] != '"' || line[1] != 't' || !(line[2] >= '0' && line[2] <= '9'))
				continue;
			ap_str_addf(&s, "other%lu", (strtoul(line + 2, &end, 10) * 37 + 11) % MAX_TENSORS);
			line = end - 1;
		}
		ap_str_addc(&s, '\n');
	}
	return s.s;
}

/* seed: of another order and other names; NULL: as it was made. */
static const char *write_graph(struct maker *m, uint32_t loss, bool part, uint64_t *seed)
{
	const char *list[] = {m->inputs.s, m->parameters.s, m->constants.s, NULL};
	uint32_t nout = 0;
	struct ap_str s;

	ap_str_init(&s, m->ctx->arena);
	for (uint32_t i = 0; i < m->nop; i++)
		ap_str_addf(&s, "%s%s", i ? BETWEEN : "", m->op[i]);
	list[3] = s.s;
	for (size_t i = 0; seed && i < AP_COUNT(list); i++)
		list[i] = shuffle(m->ctx, seed, list[i]);
	ap_str_init(&s, m->ctx->arena);
	ap_str_addf(&s, "{\"schema\":\"autopar-graph/1\",\"name\":\"random\",\n\"inputs\":[%s],\n"
			"\"parameters\":[%s],\n\"constants\":[%s],\n\"operators\":[\n%s],\n\"outputs\":[",
		list[0], list[1], list[2], list[3]);
	if (loss != NONE)
		ap_str_addf(&s, nout++ ? ",\"t%u\"" : "\"t%u\"", loss);
	for (uint32_t id = 0; id < m->ntensor && !(part && nout); id++)
		if (!m->tensor[id].uses && !m->tensor[id].parameter && id != loss)
			ap_str_addf(&s, nout++ ? ",\"t%u\"" : "\"t%u\"", id);
	ap_str_add(&s, "]}\n");
	return seed ? rename_all(m->ctx, s.s) : s.s;
}

void random_graph(struct ap_ctx *ctx, uint64_t *seed, uint32_t most, struct random_graph *out)
{
	struct maker *m = AP_NEW(ctx->arena, struct maker);
	uint32_t nop, loss;
	uint64_t other; /* what is drawn next does not depend on it */

	m->ctx = ctx;
	m->seed = seed;
	m->batch = maker_small_length(m);
	m->wide = (int64_t[]){1, 16, 256}[maker_below(m, 3)];
	ap_str_init(&m->inputs, ctx->arena);
	ap_str_init(&m->parameters, ctx->arena);
	ap_str_init(&m->constants, ctx->arena);
	nop = 2 + maker_below(m, most - 2);
	if (nop > 4 && maker_one_in(m, 3)) {
		add_part(m, nop / 2 - 1);
		nop -= nop / 2;
	}
	loss = add_part(m, nop);
	out->batch = m->batch;
	other = *seed;
	out->text = write_graph(m, loss, false, NULL);
	out->reordered = write_graph(m, loss, false, &other);
	out->part = write_graph(m, loss, true, NULL);
	out->part_reordered = write_graph(m, loss, true, &other);
}
