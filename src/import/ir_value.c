/* SPDX-License-Identifier: Apache-2.0 */
/* Reads constants and references: I64(-1), "NCHW", (I64(0), I64(1)), Tensor(shape=[], ..), %3,
 * @sub-graph. */
#include "import/ir_value.h"

#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/vec.h"
#include "import/dtype.h"

static bool is_number_type(const char *s)
{
	static const char *const head[] = {"Bool", "I", "U", "F", "BF", "Int", "UInt", "Float", "BFloat"};
	size_t n = strcspn(s, "0123456789");

	for (size_t i = 0; i < AP_COUNT(head); i++)
		if (strlen(head[i]) == n && !strncmp(s, head[i], n))
			return s[n + strspn(s + n, "0123456789")] == '\0' && (s[n] || i == 0);
	return false;
}

/* Classifies a word: number, truth value, none, string. */
static void judge_word(struct ap_ir_value *v, bool operand)
{
	const char *s = v->s;

	v->kind = AP_IR_WORD;
	v->of = "";
	if (ap_parse_int(s, INT64_MIN, INT64_MAX, &v->i)) {
		v->kind = AP_IR_INT;
		v->f = (double)v->i;
	} else if (ap_parse_double(s, &v->f)) {
		v->kind = AP_IR_FLOAT;
	} else if (!strcmp(s, "true") || !strcmp(s, "True") || !strcmp(s, "false") || !strcmp(s, "False")) {
		v->kind = AP_IR_BOOL;
		v->i = *s == 't' || *s == 'T';
	} else if (!strcmp(s, "None") || !strcmp(s, "Null")) {
		v->kind = AP_IR_NONE;
	} else if (operand && (!strcmp(s, "U") || !strcmp(s, "IO"))) {
		v->kind = AP_IR_MONAD;
	}
}

static bool read_string(struct ap_ir_read *r, struct ap_ir_value *out)
{
	const char *from = ++r->p;

	for (; r->p < r->end && *r->p != '\n'; r->p++)
		if (*r->p == '"' && (r->p + 1 == r->end || strchr(",)}] \n", r->p[1]))) {
			*out = (struct ap_ir_value){.kind = AP_IR_WORD, .of = "",
				.s = ap_ir_copy(r, from, (size_t)(r->p - from))};
			r->p++;
			return true;
		}
	return ap_ir_fault(r, r->line, AP_SYNTAX, "a string that begins here does not end");
}

/* Reads "[2, 3]" after "shape=", and the word after "dtype=". */
static bool read_tensor(struct ap_ir_read *r, const char *text, struct ap_ir_value *out)
{
	const char *shape = strstr(text, "shape="), *dtype = strstr(text, "dtype=");
	struct ap_ir_read in = {.ctx = r->ctx, .file = r->file, .line = r->line};

	*out = (struct ap_ir_value){.kind = AP_IR_TENSOR, .s = text, .of = ""};
	if (!shape || !dtype)
		return ap_ir_fault(r, r->line, AP_SYNTAX,
			"a constant tensor has no shape and element type");
	in.p = shape + strlen("shape=");
	in.end = text + strlen(text);
	if (!ap_ir_take(&in, "[") || !ap_ir_read_values(&in, false, ']', &out->n, &out->v)) {
		r->status = in.status;
		return ap_ir_fault(r, r->line, AP_SYNTAX, "the shape of a constant tensor is not understood");
	}
	in.p = dtype + strlen("dtype=");
	out->of = ap_ir_until(&in, ",)");
	return true;
}

/* Reads a word and any brackets after it: Bool(1), UMonad[U], Tensor(..), NameSpace[..]. */
static bool read_word(struct ap_ir_read *r, bool operand, struct ap_ir_value *out)
{
	const char *word, *rest;
	char next;
	size_t n;

	word = ap_ir_until(r, "([{,)]}");
	next = r->p < r->end ? *r->p : '\0';
	if (next == '(' || next == '[' || next == '{') {
		if (!ap_ir_balanced(r, &rest))
			return false;
		if (next == '(' && !strcmp(word, "Tensor"))
			return read_tensor(r, rest, out);
		if (next == '(' && is_number_type(word)) {
			*out = (struct ap_ir_value){.s = ap_ir_copy(r, rest + 1, strlen(rest) - 2)};
			judge_word(out, false);
			if (!strcmp(word, "Bool") && (out->kind == AP_IR_BOOL || out->kind == AP_IR_INT))
				out->kind = AP_IR_BOOL;
			else if (out->kind == AP_IR_WORD) /* inf, nan */
				out->kind = AP_IR_FLOAT;
			out->of = word;
			return true;
		}
		*out = (struct ap_ir_value){.s = ap_arena_printf(r->ctx->arena, "%s%s", word, rest),
			.kind = !strcmp(word, "UMonad") || !strcmp(word, "IOMonad") ? AP_IR_MONAD
				: AP_IR_OTHER};
		if (next == '(' || operand)
			return true;
		word = out->s;
	}
	n = strlen(word);
	while (n && (word[n - 1] == ' ' || word[n - 1] == '\r' || word[n - 1] == '\t'))
		n--;
	word = ap_ir_copy(r, word, n);
	if (!*word)
		return ap_ir_expected(r, "a value");
	*out = (struct ap_ir_value){.s = word};
	judge_word(out, operand);
	return true;
}

void ap_ir_measure_list(struct ap_ir_value *list)
{
	list->size = 1;
	list->depth = 1;
	for (uint32_t i = 0; i < list->n; i++) {
		uint32_t size = list->size + list->v[i].size;

		list->size = size > AP_IR_MOST_PARTS ? AP_IR_MOST_PARTS + 1 : size;
		if (list->v[i].depth >= list->depth)
			list->depth = list->v[i].depth + 1;
	}
}

static bool read_list(struct ap_ir_read *r, bool operand, struct ap_ir_value *out)
{
	char close = *r->p == '(' ? ')' : ']';
	bool ok;

	if (r->depth == AP_IR_MOST_NESTED)
		return ap_ir_fault(r, r->line, AP_LIMIT, "lists are nested too deep");
	r->p++;
	r->depth++;
	*out = (struct ap_ir_value){.kind = AP_IR_LIST, .s = "", .of = ""};
	ok = ap_ir_read_values(r, operand, close, &out->n, &out->v);
	r->depth--;
	ap_ir_measure_list(out);
	return ok;
}

/* Reads "%3" or "%para3_name"; names end with the operand. */
static bool read_reference(struct ap_ir_read *r, struct ap_ir_value *out)
{
	*out = (struct ap_ir_value){.s = "", .of = ""};
	r->p++;
	if (ap_ir_at(r, "para")) {
		out->kind = AP_IR_PARAM;
		out->s = ap_ir_until(r, ",)(");
		return true;
	}
	out->kind = AP_IR_NODE;
	out->i = ap_ir_digits(r);
	return out->i >= 0 || ap_ir_expected(r, "the number of a node");
}

/* Reads "$(@sub-graph:label)". */
static bool read_free(struct ap_ir_read *r, struct ap_ir_value *out)
{
	*out = (struct ap_ir_value){.kind = AP_IR_FREE};
	if (!ap_ir_need(r, "$(@"))
		return false;
	out->of = ap_ir_until(r, ":)");
	if (!ap_ir_need(r, ":"))
		return false;
	out->s = ap_ir_until(r, ")");
	return ap_ir_need(r, ")");
}

static bool read_any(struct ap_ir_read *r, bool operand, struct ap_ir_value *out)
{
	ap_ir_space(r);
	if (r->p == r->end)
		return ap_ir_expected(r, "a value");
	switch (*r->p) {
	case '(':
	case '[':
		return read_list(r, operand, out);
	case '{':
		*out = (struct ap_ir_value){.kind = AP_IR_OTHER, .of = ""};
		return ap_ir_balanced(r, &out->s);
	case '"':
		return read_string(r, out);
	case '%':
		return read_reference(r, out);
	case '$':
		return read_free(r, out);
	case '@':
		r->p++;
		*out = (struct ap_ir_value){.kind = AP_IR_FUNC, .s = ap_ir_until(r, ",)("), .of = ""};
		return true;
	default:
		return read_word(r, operand, out);
	}
}

bool ap_ir_read_value(struct ap_ir_read *r, bool operand, struct ap_ir_value *out)
{
	if (!read_any(r, operand, out))
		return false;
	out->size = out->size ? out->size : 1;
	out->s = out->s ? out->s : "";
	out->of = out->of ? out->of : "";
	return true;
}

bool ap_ir_read_values(struct ap_ir_read *r, bool operand, char close, uint32_t *n,
	const struct ap_ir_value **out)
{
	char what[] = "\",\" or \")\"";
	AP_VEC(struct ap_ir_value) list = {0};
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);

	what[7] = close;
	for (;;) {
		struct ap_ir_value v;

		ap_ir_space(r);
		if (r->p < r->end && *r->p == close)
			break;
		if (list.n && !ap_ir_take(r, ","))
			return ap_ir_expected(r, what);
		ap_ir_space(r);
		if (r->p < r->end && *r->p == close)
			break;
		if (!ap_ir_read_value(r, operand, &v))
			return false;
		AP_PUSH(r->ctx->scratch, list, v);
	}
	r->p++;
	*n = (uint32_t)list.n;
	*out = ap_ir_keep(r, mark, list.v, list.n * sizeof *list.v);
	return true;
}

/* Reads types in the syntax since 1.1: <Tensor[Float32], (32, 64)>, <Tensor[Float32]x(32, 64)>,
 * <Tensor[Float32]x[const vector][32, 64]>, <Ref[Tensor[Float32]], (8), ref_key=w>,
 * <Tuple[Tensor[Float32]*2,Int64], TupleShape((8), (8), NoShape)>, <Dynamic Tuple[element: Int64]>,
 * <UMonad, NoShape>, <null>. */
enum { MOST_ALIKE = 1 << 16, MOST_WORD = 24 }; /* elements of a tuple; bytes of a type name */

static const char word_ends[] = "[](){}<>,* ";

/* Reads up to one of `ends`; truncated: no type name is so long. */
static void read_type_word(struct ap_ir_read *r, const char *ends, char word[MOST_WORD])
{
	const char *from = r->p;
	size_t n;

	ap_ir_pass(r, ends);
	n = (size_t)(r->p - from);
	n = n < MOST_WORD ? n : MOST_WORD - 1;
	memcpy(word, from, n);
	word[n] = '\0';
}

/* Skips to one of `ends`, and over a bracket that is one of these. */
static bool pass_rest(struct ap_ir_read *r, const char *ends)
{
	const char *text;

	ap_ir_pass(r, ends);
	return r->p == r->end || !strchr("([{", *r->p) || ap_ir_balanced(r, &text);
}

static bool read_shapes(struct ap_ir_read *r, struct ap_ir_type *t);

static bool read_shape(struct ap_ir_read *r, struct ap_ir_type *t)
{
	char word[MOST_WORD];

	ap_ir_take(r, "[const vector]");
	if (ap_ir_at(r, "(") || ap_ir_at(r, "[")) {
		int64_t dim[AP_MAX_RANK], length;
		size_t rank = 0;

		/* "(32, 64)", "[32, 64]"; t NULL: discarded */
		for (r->p++; !ap_ir_take(r, ")") && !ap_ir_take(r, "]"); ap_ir_blanks(r)) {
			bool negative = ap_ir_take(r, "-"), told = false;
			int64_t n = 0;

			/* a length; -1 if named, -2 if even the rank is unknown */
			for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++) {
				n = n < INT32_MAX ? n * 10 + (*r->p - '0') : n;
				told = true;
			}
			ap_ir_pass(r, ",)]");
			length = !told ? -1 : negative ? -n : n;
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
	read_type_word(r, word_ends, word);
	if (!strcmp(word, "TupleShape") || !strcmp(word, "ListShape"))
		return ap_ir_need(r, "(") && read_shapes(r, t);
	return pass_rest(r, ",)>([{");
}

/* Reads shapes of a tuple's elements, up to the closing bracket. */
static bool read_shapes(struct ap_ir_read *r, struct ap_ir_type *t)
{
	struct ap_ir_type *element = t && t->form == AP_IR_TYPE_TUPLE
		? (struct ap_ir_type *)t->v : NULL; /* made by read_elements() */
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

static bool read_elements(struct ap_ir_read *r, struct ap_ir_type *out);

static bool read_form(struct ap_ir_read *r, struct ap_ir_type *out);

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
			read_type_word(r, ")],>", element);
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

/* Reads "Tensor[Float32]", "Tuple[..]", "Func"; a tuple of unknown length cannot be planned. */
static bool read_form(struct ap_ir_read *r, struct ap_ir_type *out)
{
	bool dynamic = ap_ir_take(r, "Dynamic "), ok = true;
	char word[MOST_WORD];
	const char *text;

	read_type_word(r, word_ends, word);
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

/* Reads what follows the form: shapes, the parameter's name; skips the rest. */
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
