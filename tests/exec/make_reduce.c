/* SPDX-License-Identifier: Apache-2.0 */
/* Random reductions, and operators along lines. */
#include "make_parts.h"

#include <string.h>

static bool ends(const struct ex_sample *s, const char *text)
{
	size_t n = strlen(s->type), m = strlen(text);

	return n >= m && strcmp(s->type + n - m, text) == 0;
}

static void tie(struct ex_sample *s)
{
	if (s->ties)
		s->draw[0] = EX_DRAW_SMALL;
}

/* Some dimensions in any order, each from the front or the back; none at times, which means all. */
static void add_axes(struct ex_sample *s, const char *name, int rank)
{
	int64_t v[AP_MAX_RANK];
	uint32_t n = 0;

	for (int d = 0; d < rank; d++)
		if (ex_once_in(s, 2)) {
			uint32_t at = (uint32_t)ex_draw(s, n + 1);

			memmove(v + at + 1, v + at, (n++ - at) * sizeof *v);
			v[at] = ex_once_in(s, 2) ? d : d - rank;
		}
	if (n > 0 || ex_once_in(s, 2))
		ex_add_list(s, name, n, v);
}

static void add_reduced(struct ex_sample *s, const char *dtype)
{
	bool ext = ends(s, "Ext");

	ex_add_any(s, dtype, 4);
	add_axes(s, ext ? "dim" : "axis", s->in[0].rank);
	ex_add_flag(s, ext ? "keepdim" : "keep_dims");
	if (ext && ex_once_in(s, 4))
		ex_add_text(s, "dtype", "float16");
	if (strcmp(s->type, "ReduceSum") == 0)
		ex_add_flag(s, "skip_mode");
	if (ex_once_in(s, 2))
		ex_add_bool(s, "cross_batch", true);
}

void ex_make_reduce(struct ex_sample *s)
{
	add_reduced(s, "float32");
	tie(s);
}

void ex_make_largest(struct ex_sample *s)
{
	ex_add_any(s, "float32", 4);
	tie(s);
}

void ex_make_reduce_logic(struct ex_sample *s)
{
	add_reduced(s, "bool");
	s->draw[0] = EX_DRAW_BOOL;
}

/* One dimension; its place alone, or with the value, or the value first. */
void ex_make_extreme(struct ex_sample *s)
{
	bool dim = ends(s, "Dim"), valued = ends(s, "WithValue");

	ex_add_any(s, "float32", 4);
	if (dim || !ex_once_in(s, 3))
		ex_add_axis(s, dim ? "dim" : "axis", s->in[0].rank);
	if (dim || valued)
		ex_add_flag(s, dim ? "keepdim" : "keep_dims");
	else if (ex_once_in(s, 2))
		ex_add_text(s, "output_type", "int64");
	s->nout = dim || valued ? 2 : 1;
	tie(s);
}

void ex_make_running(struct ex_sample *s)
{
	bool sum = strncmp(s->type, "Cum", 3) == 0 && !strstr(s->type, "max") &&
		!strstr(s->type, "min");

	ex_add_any(s, "float32", 3);
	ex_add_axis(s, ends(s, "Ext") ? "dim" : "axis", s->in[0].rank);
	if (sum && !ends(s, "Ext")) {
		ex_add_flag(s, "exclusive");
		ex_add_flag(s, "reverse");
	}
	s->nout = sum ? 1 : 2;
	tie(s);
}

void ex_make_sort(struct ex_sample *s)
{
	ex_add_any(s, "float32", 3);
	if (!ex_once_in(s, 3))
		ex_add_axis(s, ends(s, "Ext") ? "dim" : "axis", s->in[0].rank);
	ex_add_flag(s, "descending");
	s->nout = 2;
	tie(s);
}
