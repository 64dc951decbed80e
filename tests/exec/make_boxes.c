/* SPDX-License-Identifier: Apache-2.0 */
/* Random boxes and pictures, divergences and masks. */
#include "make_parts.h"

#include <string.h>

/* As many boxes of either kind where they belong together. */
void ex_make_boxes(struct ex_sample *s)
{
	int64_t size[2] = {ex_length(s), 4};

	ex_add_in(s, "float32", 2, size);
	if (strcmp(s->type, "IOU") == 0)
		size[0] = ex_length(s);
	ex_add_in(s, "float32", 2, size);
}

static int64_t little(struct ex_sample *s)
{
	return 1 + ex_draw(s, 4);
}

void ex_make_crop(struct ex_sample *s)
{
	int64_t n = ex_length(s), size[] = {little(s), little(s)};
	int64_t pictures[] = {little(s), 3, 2, little(s)};
	unsigned of;

	ex_add_in(s, ex_once_in(s, 2) ? "float16" : "float32", 4, pictures);
	ex_add_in(s, "float32", 2, (int64_t[]){n, 4});
	of = ex_add_in(s, "int32", 1, &n);
	s->draw[of] = EX_DRAW_INDEX;
	s->limit[of] = s->in[0].dim[0];
	ex_add_list(s, "crop_size", 2, size);
}

void ex_make_align(struct ex_sample *s)
{
	ex_add_in(s, "float32", 4, (int64_t[]){little(s), ex_length(s), 3, 2});
	ex_add_in(s, "float32", 2, (int64_t[]){little(s), 5});
	ex_add_int(s, "pooled_height", little(s));
	ex_add_int(s, "pooled_width", little(s));
}

void ex_make_grid(struct ex_sample *s)
{
	int64_t n = little(s);

	ex_add_in(s, "float32", 4, (int64_t[]){n, little(s), 3, 2});
	ex_add_in(s, "float32", 4, (int64_t[]){n, little(s), ex_length(s), 2});
}

void ex_make_divergence(struct ex_sample *s)
{
	static const char *const how[] = {"none", "sum", "batchmean", "mean"};
	int64_t i = ex_draw(s, 5);

	ex_add_any(s, "float32", 3);
	ex_add_alike(s, "float32", 0);
	if (i < 4)
		ex_add_text(s, "reduction", how[i]);
}

void ex_make_dropout_ext(struct ex_sample *s)
{
	ex_add_any(s, "float32", 3);
	for (int i = 0; i < 2 && ex_once_in(s, 2); i++) {
		unsigned k = ex_add_in(s, "int64", 0, NULL);

		s->draw[k] = EX_DRAW_INDEX;
		s->limit[k] = 100;
	}
	s->nout = 2;
}

void ex_make_dropout_mask(struct ex_sample *s)
{
	unsigned mask;

	ex_add_any(s, "float32", 3);
	mask = ex_add_in(s, "uint8", 1, (int64_t[]){16});
	s->draw[mask] = EX_DRAW_INDEX;
	s->limit[mask] = 256;
	if (ex_once_in(s, 2))
		ex_add_in(s, "float32", 0, NULL);
}

void ex_make_mask(struct ex_sample *s)
{
	ex_add_int(s, "Seed0", 1 + ex_draw(s, 100));
	s->nout = 1;
	s->declared[0] = (struct ap_shape){.rank = 1, .dtype = AP_UINT8, .dim = {16}};
}
