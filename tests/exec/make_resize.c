/* SPDX-License-Identifier: Apache-2.0 */
/* Random pictures and their new size. */
#include "make_parts.h"

/* The size as an attribute, or as an operand beside a declared result. */
void ex_make_resize(struct ex_sample *s)
{
	int64_t size[4];
	unsigned i;

	ex_draw_shape(s, 4, 600, size);
	ex_add_in(s, "float32", 4, size);
	size[2] = 1 + ex_draw(s, 9);
	size[3] = 1 + ex_draw(s, 9);
	if (ex_once_in(s, 2)) {
		ex_add_list(s, "size", 2, size + 2);
	} else {
		i = ex_add_in(s, "int32", 1, (const int64_t[]){2});
		s->draw[i] = EX_DRAW_INDEX;
		s->limit[i] = 9;
		s->nout = 1;
		s->declared[0] = s->in[0];
		s->declared[0].dim[2] = size[2];
		s->declared[0].dim[3] = size[3];
	}
	ex_add_flag(s, ex_once_in(s, 2) ? "align_corners" : "half_pixel_centers");
}
