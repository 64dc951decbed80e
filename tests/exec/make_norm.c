/* SPDX-License-Identifier: Apache-2.0 */
/* Random norms and softmax. */
#include "make_parts.h"

#include <string.h>

void ex_make_softmax(struct ex_sample *s)
{
	ex_add_any(s, "float32", 4);
	if (!ex_once_in(s, 3))
		ex_add_axis(s, "axis", s->in[0].rank);
}

/* One dimension, or the first and the last. */
void ex_make_l2_normalize(struct ex_sample *s)
{
	ex_add_any(s, "float32", 4);
	if (s->in[0].rank > 2 && ex_once_in(s, 3))
		ex_add_list(s, "axis", 2, (const int64_t[]){0, -1});
	else if (!ex_once_in(s, 3))
		ex_add_axis(s, "axis", s->in[0].rank);
}

/* Operands with the extents of the dimensions of operand 0 from `first` on. */
static void add_scales(struct ex_sample *s, int first, int n)
{
	for (int i = 0; i < n; i++)
		ex_add_in(s, "float32", (uint8_t)(s->in[0].rank - first), s->in[0].dim + first);
}

void ex_make_layer_norm(struct ex_sample *s)
{
	int64_t size[AP_MAX_RANK] = {0};
	uint8_t rank = (uint8_t)(2 + ex_draw(s, 4));
	int params = 1;

	ex_draw_shape(s, rank, 600, size);
	ex_add_in(s, "float32", rank, size);
	if (!ex_once_in(s, 4))
		ex_add_axis(s, "begin_norm_axis", rank);
	if (!ex_once_in(s, 4)) {
		params = (int)ex_draw(s, rank);
		ex_add_int(s, "begin_params_axis", ex_once_in(s, 2) ? params : params - rank);
	}
	add_scales(s, params, 2);
	s->nout = 3;
}

void ex_make_rms_norm(struct ex_sample *s)
{
	ex_add_any(s, "float32", 4);
	add_scales(s, s->in[0].rank - 1 - (int)ex_draw(s, s->in[0].rank < 3 ? s->in[0].rank : 3), 1);
	s->nout = 2;
}

void ex_make_group_norm(struct ex_sample *s)
{
	static const int64_t groups[] = {1, 2, 3};
	int64_t size[AP_MAX_RANK] = {0}, n = groups[ex_draw(s, 3)];
	uint8_t rank = (uint8_t)(2 + ex_draw(s, 4));

	ex_draw_shape(s, rank, 250, size);
	size[1] *= n;
	ex_add_in(s, "float32", rank, size);
	for (int i = 0; i < 2; i++)
		if (ex_once_in(s, 3))
			ex_skip_in(s);
		else
			ex_add_in(s, "float32", 1, size + 1);
	ex_add_int(s, "num_groups", n);
	s->nout = 3;
}

/* Statistics of the batch, or given ones; with results that are only kept for the backward pass. */
void ex_make_batch_norm(struct ex_sample *s)
{
	int64_t size[AP_MAX_RANK] = {0};
	uint8_t rank = (uint8_t)(ex_once_in(s, 2) ? 4 : 2);
	bool training = !ex_once_in(s, 3);

	ex_draw_shape(s, rank, 500, size);
	ex_add_in(s, "float32", rank, size);
	for (int i = 0; i < 4; i++)
		ex_add_in(s, "float32", 1, size + 1);
	if (training || ex_once_in(s, 2))
		ex_add_bool(s, "is_training", training);
	s->nout = training && ex_once_in(s, 2) ? 3 : 5;
}
