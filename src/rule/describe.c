/* SPDX-License-Identifier: Apache-2.0 */
#include "rule/describe.h"

#include <string.h>

#include "base/num.h"
#include "base/vec.h"
#include "rule/expand.h"

void ap_describe_label(struct ap_str *out, const char *label)
{
	ap_str_addf(out, "\n  %-13s", label ? label : "");
}

/* A set of words in the order they came. */
struct words {
	struct ap_name v[32];
	unsigned n;
};

static void add_word(struct words *w, const char *s, size_t len)
{
	for (unsigned i = 0; i < w->n; i++)
		if (w->v[i].len == len && memcmp(w->v[i].s, s, len) == 0)
			return;
	if (len && w->n < AP_COUNT(w->v))
		w->v[w->n++] = (struct ap_name){s, len};
}

/* Words parted by blanks. */
static void add_words(struct words *w, const char *s)
{
	while (*s) {
		add_word(w, s, strcspn(s, " "));
		s += strcspn(s, " ");
		s += *s == ' ';
	}
}

/* The other conditions are of operands and results. */
static bool names_attr(const char *name, size_t len)
{
	static const char *const others[] = {"outputs", "given", "absent"};

	for (size_t i = 0; i < AP_COUNT(others); i++)
		if (len == strlen(others[i]) && strncmp(name, others[i], len) == 0)
			return false;
	return true;
}

static void condition_attrs(struct words *w, const char *when)
{
	while (*when) {
		const char *name = when + (*when == '!');
		size_t len = strcspn(name, " =?");

		if (names_attr(name, len))
			add_word(w, name, len);
		when = strstr(when, " & ");
		when = when ? when + 3 : "";
	}
}

static void type_attrs(struct words *w, const char *types)
{
	const char *results = strchr(types, ':');

	if (strchr(results, 'C'))
		add_words(w, "dst_type");
	if (strchr(results, 'D'))
		add_words(w, "dtype output_type");
	else if (strchr(results, 'i'))
		add_words(w, "output_type");
}

/* Attributes that a row reads. */
static void row_attrs(struct words *w, const struct ap_op_row *row)
{
	struct ap_rule r;
	size_t at;

	ap_rule_parse(row->rule, &r, &at);
	condition_attrs(w, row->when);
	for (uint8_t i = 0; i < r.naxis; i++)
		add_word(w, r.axis[i].attr.s, r.axis[i].attr.len);
	for (uint8_t i = 0; i < r.nequation; i++)
		add_word(w, r.equation[i].attr.s, r.equation[i].attr.len);
	if (r.window)
		add_words(w, "kernel_size stride strides dilation pad_mode pad");
	if (r.expander.len)
		add_words(w, ap_expander_find(r.expander)->attrs);
	if (ap_op_takes_cross_batch(row))
		add_words(w, "cross_batch");
	type_attrs(w, row->types);
}

static void show_attr(struct ap_str *out, const char *type, struct ap_name name)
{
	struct ap_attr_alias a;

	ap_str_addf(out, "%.*s", (int)name.len, name.s);
	for (size_t i = 0; ap_attr_alias_at(i, &a); i++)
		if (strlen(a.now) == name.len && memcmp(a.now, name.s, name.len) == 0 &&
			ap_attr_concerns(a.operators, type))
			ap_str_addf(out, " (or %s)", a.old);
}

static void show_attrs(struct ap_str *out, const char *type)
{
	const char *operators, *name;
	struct ap_attr_refusal refusal;
	struct words w = {.n = 0};

	for (const struct ap_op_row *row = NULL; (row = ap_op_next(row, type));)
		row_attrs(&w, row);
	if (w.n)
		ap_describe_label(out, "attributes");
	for (unsigned i = 0; i < w.n; i++) {
		ap_str_add(out, i ? ", " : "");
		show_attr(out, type, w.v[i]);
	}
	for (size_t i = 0; ap_attr_refusal_at(i, &operators, &name, &refusal); i++) {
		if (!ap_attr_concerns(operators, type))
			continue;
		ap_describe_label(out, "refused");
		ap_str_addf(out, "%s%s%s: %s", name, *refusal.allowed ? " but " : "",
			refusal.allowed, refusal.reason);
	}
}

static void show_aliases(struct ap_str *out, const char *type)
{
	const char *old, *now, *comma = "";

	for (size_t i = 0; ap_op_alias_at(i, &old, &now); i++) {
		if (strcmp(now, type) != 0)
			continue;
		if (!*comma)
			ap_describe_label(out, "aliases");
		ap_str_addf(out, "%s%s", comma, old);
		comma = ", ";
	}
}

static void show_vectors(struct ap_str *out, const struct ap_op_row *row)
{
	ap_describe_label(out, "shard()");
	if (!ap_op_has_strategy(row))
		ap_str_add(out, "takes no strategy: the operator follows its neighbours");
	else if (!*row->strategy)
		ap_str_addf(out, "a vector for each operand%s", ap_op_follows(row) ?
			"; searches of MindSpore give it its producer's layout all the same" : "");
	for (const char *p = row->strategy; *p; p += p[1] ? 2 : 1) {
		ap_str_add(out, p > row->strategy ? ", " : "");
		if (*p == '-')
			ap_str_add(out, "an empty vector");
		else
			ap_str_addf(out, "a vector for %s %d", *p >= 'o' ? "result" : "operand",
				*p >= 'o' ? *p - 'o' : *p - 'a');
	}
	if (!ap_op_deal_letter(row))
		return;
	ap_describe_label(out, "out_strategy");
	if (!ap_op_deals_usually(row)) {
		ap_str_addf(out, "deals the partial sums over %c along dimension 0 of the result "
			"(ReduceScatter)", ap_op_deal_letter(row));
		return;
	}
	ap_str_addf(out, "deals the partial sums over %c along dimension 0 of the result (ReduceScatter),",
		ap_op_deal_letter(row));
	ap_describe_label(out, NULL);
	ap_str_add(out, "or does not (AllReduce); where none is said, MindSpore deals them where the "
		"indices are whole");
	ap_describe_label(out, NULL);
	ap_str_add(out, "and the parts divide their dimension 0");
}

static const char *type_text(char code, bool result)
{
	switch (code) {
	case 'T':
		return result ? "that type" : "one type";
	case 'R':
		return result ? "that type" : "one floating type";
	case 'f':
		return "floating";
	case 'z':
		return "floating or complex";
	case 'i':
		return "integer";
	case '8':
		return "int8";
	case 'b':
		return "bool";
	case 'm':
		return "as declared";
	case 'C':
		return "as dst_type says";
	case 'D':
		return "as dtype or output_type says, else that type";
	case 'c':
		return "complex";
	case 'r':
		return "floating";
	case '=':
		return "that of the operand";
	default:
		return "any";
	}
}

/* One word for operands or results that follow one another and are alike. */
static void show_codes(struct ap_str *out, const char *codes, bool result)
{
	for (size_t i = 0; codes[i] && codes[i] != ':'; i++)
		if (i == 0 || codes[i] != codes[i - 1])
			ap_str_addf(out, "%s%s", i ? ", " : "", type_text(codes[i], result));
}

static void show_types(struct ap_str *out, const struct ap_op_row *row)
{
	ap_describe_label(out, "types");
	show_codes(out, row->types, false);
	ap_str_add(out, " -> ");
	show_codes(out, strchr(row->types, ':') + 1, true);
}

static const char *const units[] = {
	[AP_OP_CUBE] = "on the matrix unit",
	[AP_OP_VECTOR] = "on the vector unit",
	[AP_OP_MEMORY] = "beside the bytes moved",
	[AP_OP_VIEW] = "and no bytes moved",
	[AP_OP_LINK] = "between two stages",
};

static void show_work(struct ap_str *out, const struct ap_op_row *row)
{
	char flops[32], backward[32];

	ap_describe_label(out, "work");
	ap_str_addf(out, "%s FLOPs a point %s, backward %s times as much",
		ap_format_double(row->flops, flops), units[row->unit],
		ap_format_double(row->backward, backward));
	for (const char *p = row->save; *p; p++) {
		if (*p == '*')
			continue;
		if (p == row->save)
			ap_describe_label(out, "saved");
		ap_str_addf(out, "%s%s %d", p > row->save ? ", " : "",
			*p >= 'o' ? "result" : "operand", *p >= 'o' ? *p - 'o' : *p - 'a');
	}
}

/* Letters that may be cut, and those that stay whole. */
static void show_letters(struct ap_str *out, const struct ap_rule *r)
{
	const char *comma = "";

	for (int i = 0; i < AP_LETTERS; i++)
		if (r->frozen >> i & 1) {
			if (!*comma)
				ap_describe_label(out, "whole");
			ap_str_addf(out, "%s%c", comma, 'a' + i);
			comma = ", ";
		}
	for (uint8_t i = 0; i < r->naxis; i++)
		if (r->axis[i].frozen) {
			if (!*comma)
				ap_describe_label(out, "whole");
			ap_str_addf(out, "%s[%.*s]", comma, (int)r->axis[i].attr.len,
				r->axis[i].attr.s);
			comma = ", ";
		}
	for (int i = 0; i < AP_LETTERS; i++)
		if ((r->lookup & ~r->frozen) >> i & 1) {
			ap_describe_label(out, "masked");
			ap_str_addf(out, "%c: a part gives zero for what it does not hold", 'a' + i);
		}
}

static void show_order(struct ap_str *out, const struct ap_op_row *row)
{
	ap_describe_label(out, "dev_matrix");
	ap_str_addf(out, "%s%s", *row->dev ? "in the order " : "in order of appearance", row->dev);
	if (*row->left == '*')
		ap_str_add(out, ", the repetition first");
	else if (*row->left)
		ap_str_addf(out, ", the repetition last, but first where %s is cut", row->left);
	else
		ap_str_add(out, ", the repetition last");
}

static void show_row(struct ap_str *out, const struct ap_op_row *first, const struct ap_op_row *row)
{
	struct ap_rule r;
	size_t at;

	ap_rule_parse(row->rule, &r, &at);
	ap_str_addc(out, '\n');
	ap_describe_label(out, "rule");
	ap_str_add(out, row->rule);
	if (strcmp(row->doc, first->doc) != 0) {
		ap_describe_label(out, "computes");
		ap_str_add(out, row->doc);
	}
	if (*row->when) {
		ap_describe_label(out, "when");
		ap_str_add(out, row->when);
	}
	if (r.expander.len) {
		ap_describe_label(out, "may be cut");
		ap_str_add(out, ap_expander_find(r.expander)->says);
	}
	show_letters(out, &r);
	if (*row->legal) {
		ap_describe_label(out, "condition");
		ap_str_addf(out, "%s: %s", row->legal, ap_legal_says(row->legal));
	}
	show_types(out, row);
	show_order(out, row);
	ap_op_describe_comm(row, out);
	show_work(out, row);
}

void ap_op_describe(const char *type, struct ap_str *out)
{
	const struct ap_op_row *first = ap_op_next(NULL, type);

	ap_str_addf(out, "%s: %s", first->name, first->doc);
	ap_describe_label(out, "family");
	ap_str_add(out, ap_op_family(first));
	show_aliases(out, type);
	ap_describe_label(out, "source");
	ap_str_add(out, first->source);
	show_attrs(out, type);
	show_vectors(out, first);
	ap_op_describe_batch(first, out);
	if (ap_op_is_fallback(first)) {
		ap_describe_label(out, "MindSpore");
		ap_str_add(out, "has no rule of its own: dimension 0 by all devices of the stage where "
			"they divide it,");
		ap_describe_label(out, NULL);
		ap_str_add(out, "of operand 0 and result 0, else whole; below is what --executor generic may "
			"cut");
	}
	for (const struct ap_op_row *row = first; row; row = ap_op_next(row, type))
		show_row(out, first, row);
	ap_str_addc(out, '\n');
}
