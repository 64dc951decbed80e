/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types, as dumps since 1.1 write them: <Tensor[Float32], (32, 64)>, <Tensor[Float32]x(32, 64)>,
 * <Tensor[Float32]x[const vector][32, 64]>, <Ref[Tensor[Float32]], (8), ref_key=w>,
 * <Tuple[Tensor[Float32]*2,Int64], TupleShape((8), (8), NoShape)>, <Dynamic Tuple[element: Int64]>,
 * <UMonad, NoShape>, <null>.
 */
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "import/dtype.h"
#include "import/ir_read.h"

enum { MOST_ALIKE = 1 << 16, MOST_WORD = 24 }; /* elements of a tuple; a name of a type */

static const char word_ends[] = "[](){}<>,* ";

/* What stands here up to one of `ends`; cut where no type has so long a name. */
static void read_word(struct ap_ir_read *r, const char *ends, char word[MOST_WORD])
{
	const char *from = r->p;
	size_t n;

	ap_ir_pass(r, ends);
	n = (size_t)(r->p - from);
	n = n < MOST_WORD ? n : MOST_WORD - 1;
	memcpy(word, from, n);
	word[n] = '\0';
}

/* A length; -1 where it is a name, -2 where not even the rank is known. */
static int64_t read_length(struct ap_ir_read *r)
{
	bool negative = ap_ir_take(r, "-"), told = false;
	int64_t n = 0;

	for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++) {
		n = n < INT32_MAX ? n * 10 + (*r->p - '0') : n;
		told = true;
	}
	ap_ir_pass(r, ",)]");
	return !told ? -1 : negative ? -n : n;
}

/* "(32, 64)", "[32, 64]"; t NULL: of nobody. */
static bool read_lengths(struct ap_ir_read *r, struct ap_ir_type *t)
{
	int64_t dim[AP_MAX_RANK], length;
	size_t rank = 0;

	for (r->p++; !ap_ir_take(r, ")") && !ap_ir_take(r, "]"); ap_ir_blanks(r)) {
		length = read_length(r);
		if (rank < AP_MAX_RANK)
			dim[rank] = length;
		rank += rank < UINT8_MAX;
		if (!ap_ir_take(r, ",") && !ap_ir_at(r, ")") && !ap_ir_at(r, "]"))
			return ap_ir_expected(r, "\",\" or \")\"");
	}
	if (!t || t->form != AP_IR_TYPE_TENSOR)
		return true;
	t->shaped = true;
	t->rank = (uint8_t)rank;
	t->dim = ap_arena_memdup(r->ctx->arena, dim,
		(rank < AP_MAX_RANK ? rank : AP_MAX_RANK) * sizeof *dim);
	return true;
}

/* Over what has nothing to say, up to one of `ends`, and over what a bracket among these opens. */
static bool pass_rest(struct ap_ir_read *r, const char *ends)
{
	const char *text;

	ap_ir_pass(r, ends);
	return r->p == r->end || !strchr("([{", *r->p) || ap_ir_balanced(r, &text);
}

static bool read_shape(struct ap_ir_read *r, struct ap_ir_type *t);

/* Shapes of a tuple's elements, up to what closes them. */
static bool read_shapes(struct ap_ir_read *r, struct ap_ir_type *t)
{
	struct ap_ir_type *element = t && t->form == AP_IR_TYPE_TUPLE
		? (struct ap_ir_type *)t->v : NULL; /* made by us */
	bool ok = true;

	if (r->depth == AP_IR_MOST_NESTED)
		return ap_ir_fault(r, r->line, AP_LIMIT, "types are nested too deep");
	r->depth++;
	for (uint32_t i = 0; ok && !ap_ir_take(r, ")"); i++) {
		ok = read_shape(r, element && i < t->n ? &element[i] : NULL);
		ap_ir_blanks(r);
		if (ok && !ap_ir_take(r, ",") && !ap_ir_at(r, ")"))
			ok = ap_ir_expected(r, "\",\" or \")\"");
		ap_ir_blanks(r);
	}
	r->depth--;
	return ok;
}

static bool read_shape(struct ap_ir_read *r, struct ap_ir_type *t)
{
	char word[MOST_WORD];

	ap_ir_take(r, "[const vector]");
	if (ap_ir_at(r, "(") || ap_ir_at(r, "["))
		return read_lengths(r, t);
	read_word(r, word_ends, word);
	if (!strcmp(word, "TupleShape") || !strcmp(word, "ListShape"))
		return ap_ir_need(r, "(") && read_shapes(r, t);
	return pass_rest(r, ",)>([{");
}

static bool read_form(struct ap_ir_read *r, struct ap_ir_type *out);

static bool read_elements(struct ap_ir_read *r, struct ap_ir_type *out)
{
	AP_VEC(struct ap_ir_type) list = {0};
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);

	while (!ap_ir_take(r, "]")) {
		struct ap_ir_type t;
		int64_t times = 1;

		if (!read_form(r, &t))
			return false;
		if (ap_ir_take(r, "*"))
			times = ap_ir_digits(r);
		if (times < 1 || times + (int64_t)list.n > MOST_ALIKE)
			return ap_ir_fault(r, r->line, AP_SYNTAX, "a tuple has an odd number of elements");
		while (times--)
			AP_PUSH(r->ctx->scratch, list, t);
		ap_ir_take(r, ",");
		ap_ir_blanks(r);
		if (r->p == r->end || *r->p == '\n')
			return ap_ir_expected(r, "\"]\"");
	}
	*out = (struct ap_ir_type){.form = AP_IR_TYPE_TUPLE, .dtype = AP_DTYPE_COUNT,
		.n = (uint32_t)list.n, .v = ap_ir_keep(r, mark, list.v, list.n * sizeof *list.v)};
	return true;
}

static bool read_inner(struct ap_ir_read *r, const char *word, struct ap_ir_type *out)
{
	char open = *r->p, close[2] = {open == '(' ? ')' : ']', '\0'}, element[MOST_WORD];
	const char *text;

	if (!strcmp(word, "Tensor") || !strcmp(word, "Ref")) {
		r->p++;
		if (!strcmp(word, "Ref")) {
			if (!read_form(r, out))
				return false;
			out->ref = true;
		} else {
			read_word(r, ")],>", element);
			*out = (struct ap_ir_type){.form = AP_IR_TYPE_TENSOR,
				.dtype = ap_import_dtype(element)};
		}
		return ap_ir_need(r, close);
	}
	if (open == '[' && (!strcmp(word, "Tuple") || !strcmp(word, "List"))) {
		r->p++;
		return read_elements(r, out);
	}
	return ap_ir_balanced(r, &text);
}

/* "Tensor[Float32]", "Tuple[..]", "Func"; a tuple of unknown length is like no tuple that can be planned. */
static bool read_form(struct ap_ir_read *r, struct ap_ir_type *out)
{
	bool dynamic = ap_ir_take(r, "Dynamic "), ok = true;
	char word[MOST_WORD];
	const char *text;

	read_word(r, word_ends, word);
	*out = (struct ap_ir_type){.form = AP_IR_TYPE_OTHER, .dtype = AP_DTYPE_COUNT,
		.monad = !strcmp(word, "UMonad") || !strcmp(word, "IOMonad")};
	if (r->depth == AP_IR_MOST_NESTED)
		return ap_ir_fault(r, r->line, AP_LIMIT, "types are nested too deep");
	if (r->p < r->end && (*r->p == '[' || *r->p == '(')) {
		r->depth++;
		ok = dynamic ? ap_ir_balanced(r, &text) : read_inner(r, word, out);
		r->depth--;
	}
	if (ok && !*word)
		return ap_ir_expected(r, "a type");
	return ok;
}

/* What follows the form: shapes, the parameter's name; the rest is nothing to us. */
static bool read_rest(struct ap_ir_read *r, struct ap_ir_type *out)
{
	if (ap_ir_take(r, "x"))
		return read_shape(r, out);
	r->p++;
	ap_ir_blanks(r);
	if (ap_ir_at(r, "(") || ap_ir_at(r, "TupleShape(") || ap_ir_at(r, "ListShape("))
		return read_shape(r, out);
	if (ap_ir_take(r, "ref_key=")) {
		ap_ir_take(r, ":");
		out->ref_key = ap_ir_until(r, ",>");
		return true;
	}
	return pass_rest(r, ",>([{");
}

bool ap_ir_read_type(struct ap_ir_read *r, struct ap_ir_type *out)
{
	ap_ir_space(r);
	if (!ap_ir_need(r, "<"))
		return false;
	if (ap_ir_take(r, "null>")) {
		*out = (struct ap_ir_type){.form = AP_IR_TYPE_NULL, .dtype = AP_DTYPE_COUNT};
		return true;
	}
	if (!read_form(r, out))
		return false;
	while (r->p < r->end && (*r->p == 'x' || *r->p == ','))
		if (!read_rest(r, out))
			return false;
	return ap_ir_need(r, ">");
}

bool ap_ir_read_types(struct ap_ir_read *r, uint32_t *n, const struct ap_ir_type **out)
{
	AP_VEC(struct ap_ir_type) list = {0};
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);

	if (!ap_ir_need(r, "("))
		return false;
	for (;;) {
		struct ap_ir_type t;

		ap_ir_space(r);
		if (ap_ir_take(r, ")"))
			break;
		if (list.n && !ap_ir_need(r, ","))
			return false;
		if (!ap_ir_read_type(r, &t))
			return false;
		AP_PUSH(r->ctx->scratch, list, t);
	}
	*n = (uint32_t)list.n;
	*out = ap_ir_keep(r, mark, list.v, list.n * sizeof *list.v);
	return true;
}
