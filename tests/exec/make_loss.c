/* SPDX-License-Identifier: Apache-2.0 */
/* Random losses. */
#include "make_parts.h"

static void add_logits(struct ex_sample *s)
{
	int64_t size[2];

	ex_draw_shape(s, 2, 200, size);
	ex_add_in(s, "float32", 2, size);
}

void ex_make_loss_by_labels(struct ex_sample *s)
{
	add_logits(s);
	ex_add_alike(s, "float32", 0);
	s->nout = 2;
}

void ex_make_loss_by_classes(struct ex_sample *s)
{
	unsigned labels;

	add_logits(s);
	labels = ex_add_in(s, "int32", 1, s->in[0].dim);
	s->draw[labels] = EX_DRAW_INDEX;
	s->limit[labels] = s->in[0].dim[1];
	ex_add_flag(s, "is_grad");
}

void ex_make_loss_sums(struct ex_sample *s)
{
	unsigned labels;

	add_logits(s);
	labels = ex_add_in(s, "int32", 1, s->in[0].dim);
	s->draw[labels] = EX_DRAW_INDEX;
	s->limit[labels] = s->in[0].dim[1];
	ex_add_in(s, "float32", 1, s->in[0].dim);
	s->nout = 2;
}

void ex_make_loss_of_each(struct ex_sample *s)
{
	ex_add_any(s, "float32", 3);
	ex_add_alike(s, "float32", 0);
}

void ex_make_dropout(struct ex_sample *s)
{
	ex_add_any(s, "float32", 3);
	ex_add_float(s, "keep_prob", 0.5);
	ex_add_int(s, "Seed0", 1 + ex_draw(s, 100));
	s->nout = 2;
}
