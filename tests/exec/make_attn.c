/* SPDX-License-Identifier: Apache-2.0 */
/* Random attention. */
#include "make_parts.h"

#include <string.h>

struct extents { /* of an attention */
	int64_t b, s, t, n, g, d; /* batch, queries, keys, heads of keys, of queries for each, head */
};

static struct extents draw_extents(struct ex_sample *s)
{
	static const int64_t lengths[] = {1, 2, 2, 3, 4, 6};
	struct extents x = {.b = lengths[ex_draw(s, 5)], .s = lengths[1 + ex_draw(s, 5)],
		.t = lengths[1 + ex_draw(s, 5)], .n = lengths[ex_draw(s, 6)],
		.g = 1 + (ex_once_in(s, 2) ? ex_draw(s, 3) : 0), .d = 2};

	while (x.n > 1 && x.b * x.n * x.g * x.s * x.t > 500)
		x.n /= 2;
	while (x.b > 1 && x.b * x.n * x.g * x.s * x.t > 500)
		x.b /= 2;
	return x;
}

/* A tensor of heads in this layout. */
static void add_heads(struct ex_sample *s, const char *layout, const struct extents *x, bool keys)
{
	int64_t heads = keys ? x->n : x->n * x->g, size[AP_MAX_RANK];
	uint8_t rank = 0;

	for (; layout[rank]; rank++)
		switch (layout[rank]) {
		case 'B':
			size[rank] = x->b;
			break;
		case 'N':
			size[rank] = heads;
			break;
		case 'D':
			size[rank] = x->d;
			break;
		case 'H':
			size[rank] = heads * x->d;
			break;
		case 'T':
			size[rank] = x->b * (keys ? x->t : x->s);
			break;
		default:
			size[rank] = keys ? x->t : x->s;
		}
	ex_add_in(s, "float16", rank, size);
}

static void add_optional(struct ex_sample *s, const char *dtype, bool wanted, uint8_t rank,
	const int64_t *size)
{
	unsigned i;

	if (!wanted) {
		ex_skip_in(s);
		return;
	}
	i = ex_add_in(s, dtype, rank, size);
	if (strcmp(dtype, "uint8") == 0) {
		s->draw[i] = EX_DRAW_INDEX;
		s->limit[i] = 256;
	}
}

static int64_t one_or(struct ex_sample *s, int64_t n)
{
	return ex_once_in(s, 3) ? 1 : n;
}

/* Of a fixed size where the mask follows from places, and for packed sequences. */
static void add_mask(struct ex_sample *s, const struct extents *x, int64_t mode, bool packed)
{
	int64_t heads = x->n * x->g;

	if (mode > 1)
		add_optional(s, "uint8", true, 2, (int64_t[]){4, 4});
	else if (packed)
		add_optional(s, "uint8", true, 2, (int64_t[]){x->b * x->s, x->b * x->t});
	else if (ex_once_in(s, 2))
		add_optional(s, "uint8", mode, 2, (int64_t[]){x->s, x->t});
	else
		add_optional(s, "uint8", true, 4, (int64_t[]){one_or(s, x->b), one_or(s, heads), x->s,
			x->t});
	if (s->slot[s->nin - 1] == 6)
		s->draw[s->nin - 1] = EX_DRAW_BOOL;
}

/* Ends of packed sequences: equal for the queries, drawn for the keys. */
static void add_ends(struct ex_sample *s, const struct extents *x)
{
	int64_t q[4], k[4], taken = 0;

	for (int64_t i = 0; i < x->b; i++) {
		q[i] = (i + 1) * x->s;
		taken += i + 1 < x->b ? 1 + ex_draw(s, x->t) : 0;
		k[i] = i + 1 < x->b ? taken : x->b * x->t;
	}
	ex_add_list(s, "actual_seq_qlen", (uint32_t)x->b, q);
	ex_add_list(s, "actual_seq_kvlen", (uint32_t)x->b, k);
}

void ex_make_flash(struct ex_sample *s)
{
	static const char *const layouts[] = {"BSH", "SBH", "BNSD", "BSND", "TND", "TH"};
	struct extents x = draw_extents(s);
	const char *layout = layouts[ex_draw(s, 6)];
	bool packed = *layout == 'T', shifted = ex_once_in(s, 3), dropped = ex_once_in(s, 3);
	int64_t mode = ex_draw(s, 5), heads = x.n * x.g, longest = x.b * x.t;

	add_heads(s, layout, &x, false);
	add_heads(s, layout, &x, true);
	if (!packed && strchr(layout, 'D') && ex_once_in(s, 2))
		x.d = 3 - 2 * ex_draw(s, 2);
	add_heads(s, layout, &x, true);
	add_optional(s, "float16", shifted, 4, packed ? (int64_t[]){x.b, heads, x.s, longest} :
		(int64_t[]){one_or(s, x.b), one_or(s, heads), x.s, x.t});
	if (packed)
		add_optional(s, "uint8", dropped, 1, (int64_t[]){(heads * x.b * x.s * longest + 7) / 8});
	else
		add_optional(s, "uint8", dropped, 4, (int64_t[]){x.b, heads, x.s, (x.t + 7) / 8});
	ex_skip_in(s);
	add_mask(s, &x, mode, packed);
	ex_add_int(s, "head_num", heads);
	if (strcmp(layout, "BSH") != 0 || ex_once_in(s, 2))
		ex_add_text(s, "input_layout", layout);
	if (mode || ex_once_in(s, 2))
		ex_add_int(s, "sparse_mode", mode);
	if (mode == 4 || ex_once_in(s, 3))
		ex_add_int(s, "pre_tokens", 1 + ex_draw(s, 3));
	if (mode == 4 || ex_once_in(s, 3))
		ex_add_int(s, "next_tokens", ex_draw(s, 2));
	if (packed && (shifted || !ex_once_in(s, 4)))
		add_ends(s, &x);
	if (!ex_once_in(s, 3))
		ex_add_float(s, "scale_value", 0.125);
	if (dropped)
		ex_add_float(s, "keep_prob", 0.75);
	s->nout = ex_once_in(s, 2) ? 1 : 4;
}

static void index_below(struct ex_sample *s, int64_t limit)
{
	s->draw[s->nin - 1] = EX_DRAW_INDEX;
	s->limit[s->nin - 1] = limit;
}

/* Lengths of each batch, or one of all. */
static void add_lengths(struct ex_sample *s, int64_t batches, int64_t most)
{
	bool wanted = ex_once_in(s, 2);

	add_optional(s, "int64", wanted, 1, (int64_t[]){one_or(s, batches)});
	if (wanted)
		index_below(s, most + 1);
}

/* A mask of queries and keys, with or without batches in front; one of fixed size with a mode. */
static void add_infer_mask(struct ex_sample *s, const struct extents *x, int64_t mode)
{
	int64_t forms[][4] = {{x->s, x->t}, {one_or(s, x->b), x->s, x->t},
		{one_or(s, x->b), 1, x->s, x->t}};
	int64_t form = ex_draw(s, 3);

	if (mode > 1)
		add_optional(s, "bool", true, 2, (int64_t[]){4, 4});
	else
		add_optional(s, "bool", ex_once_in(s, 2), (uint8_t)(2 + form), forms[form]);
	if (s->in[s->nin - 1].dtype == AP_BOOL)
		s->draw[s->nin - 1] = EX_DRAW_BOOL;
}

static void add_infer_attrs(struct ex_sample *s, const struct extents *x, const char *layout)
{
	ex_add_int(s, "num_heads", x->n * x->g);
	if (ex_once_in(s, 2))
		ex_add_int(s, "num_key_value_heads", x->n);
	if (strcmp(layout, "BSH") != 0 || ex_once_in(s, 2))
		ex_add_text(s, "input_layout", layout);
	ex_add_float(s, "scale_value", 0.5);
}

void ex_make_prompt(struct ex_sample *s)
{
	static const char *const layouts[] = {"BSH", "BNSD", "BSND"};
	bool fused = *s->type == 'F';
	struct extents x = draw_extents(s);
	const char *layout = layouts[ex_draw(s, fused ? 3 : 2)];
	int64_t mode = ex_draw(s, 5), shift[] = {one_or(s, x.b), one_or(s, x.n * x.g), x.s, x.t};

	for (int i = 0; i < 3; i++)
		add_heads(s, layout, &x, i > 0);
	if (fused)
		add_optional(s, "float16", ex_once_in(s, 2), 4, shift);
	add_infer_mask(s, &x, mode);
	add_lengths(s, x.b, x.s);
	add_lengths(s, x.b, x.t);
	if (!fused)
		add_optional(s, "float16", ex_once_in(s, 2), 4, shift);
	ex_add_int(s, "sparse_mode", mode);
	if (mode == 4) {
		ex_add_int(s, "pre_tokens", 1 + ex_draw(s, 3));
		ex_add_int(s, "next_tokens", ex_draw(s, 2));
	}
	add_infer_attrs(s, &x, layout);
	s->nout = fused && ex_once_in(s, 2) ? 2 : 1;
}

void ex_make_incre(struct ex_sample *s)
{
	struct extents x = draw_extents(s);
	const char *layout = ex_once_in(s, 2) ? "BSH" : "BNSD";
	int64_t form = ex_draw(s, 3), mask[4] = {one_or(s, x.b), 1, 1, x.t};

	x.s = 1;
	mask[1 + form] = x.t;
	for (int i = 0; i < 3; i++)
		add_heads(s, layout, &x, i > 0);
	add_optional(s, "bool", ex_once_in(s, 2), (uint8_t)(2 + form), mask);
	if (s->in[s->nin - 1].dtype == AP_BOOL)
		s->draw[s->nin - 1] = EX_DRAW_BOOL;
	add_lengths(s, x.b, x.t);
	add_optional(s, "float16", ex_once_in(s, 2), 4,
		(int64_t[]){one_or(s, x.b), one_or(s, x.n * x.g), 1, x.t});
	add_infer_attrs(s, &x, layout);
}

/* Blocks of two rows. */
void ex_make_paged(struct ex_sample *s)
{
	struct extents x = draw_extents(s);
	int64_t blocks = 1 + ex_draw(s, 6), each = 1 + ex_draw(s, 3);

	x.s = 1 + ex_draw(s, 2);
	add_heads(s, "BSH", &x, false);
	for (int i = 0; i < 2; i++)
		ex_add_in(s, "float16", 4, (int64_t[]){blocks, 2, x.n, x.d});
	ex_add_in(s, "int32", 2, (int64_t[]){x.b, each});
	index_below(s, blocks);
	ex_add_in(s, "int32", 1, (int64_t[]){x.b});
	index_below(s, 2 * each + 1);
	if (strcmp(s->type, "PagedAttentionMask") == 0)
		ex_add_in(s, "float16", 4, (int64_t[]){one_or(s, x.b), one_or(s, x.n * x.g), x.s,
			2 * each});
	ex_add_int(s, "head_num", x.n * x.g);
	ex_add_int(s, "kv_head_num", x.n);
}

/* An even last dimension; cosines and sines may repeat over the others. */
void ex_make_rotary(struct ex_sample *s)
{
	int64_t size[AP_MAX_RANK];
	uint8_t rank = (uint8_t)(2 + ex_draw(s, 3));

	ex_draw_shape(s, (uint8_t)(rank - 1), 150, size);
	size[rank - 1] = 2 + 2 * ex_draw(s, 2);
	ex_add_in(s, "float32", rank, size);
	for (int i = 0; i < 2; i++) {
		unsigned k = ex_add_narrow(s, "float32", 0);

		if (s->in[k].rank == 0)
			s->in[k].rank = 1;
		s->in[k].dim[s->in[k].rank - 1] = size[rank - 1];
	}
	ex_add_int(s, "mode", ex_draw(s, 2));
}
