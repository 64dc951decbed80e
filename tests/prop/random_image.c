/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of images, with windows and statistics; and two of language models' kind. */
#include "random_maker.h"

/* A tensor of four dimensions, or a new input. */
static uint32_t image(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 4, 4);
	int64_t dim[RANK] = {m->batch};

	for (int d = 1; d < RANK; d++)
		dim[d] = maker_small_length(m);
	return x == NONE ? maker_add_input(m, 'f', RANK, dim) : x;
}

struct windows {
	int64_t kernel[2], stride[2], count[2];
	bool same;
};

/* Windows over the last two dimensions of x; poolings mostly without overlap. */
static struct windows windows(struct maker *m, const struct tensor *x, bool pool)
{
	struct windows w = {.same = maker_one_in(m, 2)};

	for (int i = 0; i < 2; i++) {
		int64_t size = x->dim[2 + i], most = size < 4 ? size : 4;

		w.stride[i] = 1 + maker_below(m, 3);
		w.kernel[i] = 1 + maker_below(m, (uint64_t)most);
		if (pool && !maker_one_in(m, 3))
			w.stride[i] = w.kernel[i];
		w.count[i] = w.same ? (size + w.stride[i] - 1) / w.stride[i]
				    : (size - w.kernel[i]) / w.stride[i] + 1;
	}
	return w;
}

static const char *attributes(struct maker *m, const struct windows *w, const char *strides,
	const char *more)
{
	return ap_arena_printf(m->ctx->arena, "\"kernel_size\":[%" PRId64 ",%" PRId64 "],\"%s\":[%"
		PRId64 ",%" PRId64 "],\"pad_mode\":\"%s\"%s", w->kernel[0], w->kernel[1], strides,
		w->stride[0], w->stride[1], w->same ? "same" : "valid", more);
}

bool random_conv(struct maker *m)
{
	uint32_t x = image(m), in[2] = {x, NONE};
	struct tensor t = m->tensor[x];
	struct windows w = windows(m, &t, false);
	int64_t group = maker_one_in(m, 3) ? t.dim[1] : 1;
	int64_t weight[RANK] = {group * (group > 1 ? 2 : maker_small_length(m)), t.dim[1] / group,
		w.kernel[0], w.kernel[1]};
	int64_t result[RANK] = {t.dim[0], weight[0], w.count[0], w.count[1]};

	in[1] = maker_operand(m, t.type, RANK, weight);
	return maker_add_op(m, "Conv2D",
		attributes(m, &w, "stride", ap_arena_printf(m->ctx->arena, ",\"group\":%" PRId64,
			group)),
		in, 2, maker_add_tensor(m, t.type, RANK, result));
}

bool random_pool(struct maker *m)
{
	uint32_t x = image(m);
	struct tensor t = m->tensor[x];
	struct windows w = windows(m, &t, true);
	int64_t result[RANK] = {t.dim[0], t.dim[1], w.count[0], w.count[1]};

	return maker_add_op(m, maker_one_in(m, 2) ? "MaxPool" : "AvgPool",
		attributes(m, &w, "strides", ""), &x, 1,
		maker_add_tensor(m, t.type, RANK, result));
}

bool random_batch_norm(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 2, 4), in[5] = {x}, first;
	int64_t channels;

	if (x == NONE)
		return false;
	channels = m->tensor[x].dim[1];
	for (int i = 1; i < 5; i++)
		in[i] = maker_operand(m, 'f', 1, &channels);
	first = maker_add_like(m, x);
	for (int i = 0; i < 4 && maker_one_in(m, 2); i++)
		maker_add_tensor(m, 'f', 1, &channels);
	return maker_add_op(m, "BatchNorm",
		maker_one_in(m, 4) ? "" : "\"is_training\":true", in, 5, first);
}

bool random_rms_norm(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 1, 4), in[2] = {x};

	if (x == NONE)
		return false;
	in[1] = maker_operand(m, 'f', 1, &m->tensor[x].dim[m->tensor[x].rank - 1]);
	return maker_add_op(m, "RmsNorm", "", in, 2, maker_add_like(m, x));
}

bool random_sparse_loss(struct maker *m)
{
	uint32_t x = maker_pick(m, true, 2, 2), in[2] = {x};

	if (x == NONE)
		return false;
	in[1] = maker_add_input(m, 'i', 1, m->tensor[x].dim);
	return maker_add_op(m, "SparseSoftmaxCrossEntropyWithLogits", "", in, 2,
		maker_add_tensor(m, m->tensor[x].type, 0, NULL));
}
