/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of different widths. */
#include "make_parts.h"

#include <string.h>

/* Scale and offset of each of the last dimension, or one for all. */
void ex_make_by_scale(struct ex_sample *s)
{
	bool must = strcmp(s->type, "Dequant") == 0;
	int64_t last;

	ex_add_any(s, strcmp(s->type, "AntiQuant") == 0 ? "int8" : must ? "int32" : "float16", 4);
	last = s->in[0].dim[s->in[0].rank - 1];
	for (int i = 0; i < (must ? 1 : 2); i++)
		if (!must && ex_once_in(s, 3))
			ex_skip_in(s);
		else
			ex_add_in(s, "float32", 1, ex_once_in(s, 3) ? (const int64_t[]){1} : &last);
	if (must || strcmp(s->type, "AntiQuant") == 0)
		ex_add_text(s, "dtype", "float16");
}

void ex_make_dynamic(struct ex_sample *s)
{
	ex_add_any(s, "float16", 3);
	if (ex_once_in(s, 2))
		ex_add_in(s, "float32", 1, &s->in[0].dim[s->in[0].rank - 1]);
	s->nout = 2;
}

/* Two numbers, or two for each channel. */
void ex_make_range(struct ex_sample *s)
{
	bool channels = strstr(s->type, "Channel");
	int64_t one = 1, size[AP_MAX_RANK] = {0};
	int axis = 1;

	ex_draw_shape(s, 3, 300, size);
	ex_add_in(s, "float32", 3, size);
	if (channels && ex_once_in(s, 2)) {
		axis = (int)ex_draw(s, 3);
		ex_add_int(s, "channel_axis", axis);
	}
	for (int i = 0; i < 2; i++)
		ex_add_in(s, "float32", 1, channels ? &size[axis] : &one);
	s->nout = strncmp(s->type, "MinMax", 6) == 0 ? 2 : 1;
}
