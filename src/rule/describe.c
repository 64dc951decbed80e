/* SPDX-License-Identifier: Apache-2.0 */
/* Describes in words where MindSpore's batch strategy cuts operators. */
#include "rule/describe.h"

#include <string.h>

#include "base/num.h"
#include "base/vec.h"
#include "rule/attr.h"
#include "rule/batch.h"
#include "rule/bind.h"
#include "rule/deal.h"
#include "rule/expand.h"
#include "rule/legal.h"
#include "rule/notation.h"
#include "rule/op.h"

/* Starts a line " label "; label NULL continues the previous one. */
static void describe_label(struct ap_str *out, const char *label)
{
	ap_str_addf(out, "\n  %-13s", label ? label : "");
}

/* A set of words in order of insertion. */
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

/* Adds words separated by blanks. */
static void add_words(struct words *w, const char *s)
{
	while (*s) {
		add_word(w, s, strcspn(s, " "));
		s += strcspn(s, " ");
		s += *s == ' ';
	}
}

/* Is a condition about an attribute, rather than operands or results? */
static bool names_attr(const char *name, size_t len)
{
	static const char *const others[] = {"outputs", "given", "absent"};

	for (size_t i = 0; i < AP_COUNT(others); i++)
		if (len == strlen(others[i]) && strncmp(name, others[i], len) == 0)
			return false;
	return true;
}

/* Collects the attributes that a row reads. */
static void row_attrs(struct words *w, const struct ap_op_row *row)
{
	struct ap_rule r;
	size_t at;
	const char *when;
	const char *types, *results;

	ap_rule_parse(row->rule, &r, &at);
	when = row->when;
	while (*when) {
		const char *name = when + (*when == '!');
		size_t len = strcspn(name, " =?");

		if (names_attr(name, len))
			add_word(w, name, len);
		when = strstr(when, " & ");
		when = when ? when + 3 : "";
	}
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
	types = row->types;
	results = strchr(types, ':');
	if (strchr(results, 'C'))
		add_words(w, "dst_type");
	if (strchr(results, 'D'))
		add_words(w, "dtype output_type");
	else if (strchr(results, 'i'))
		add_words(w, "output_type");
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

static void show_vectors(struct ap_str *out, const struct ap_op_row *row)
{
	describe_label(out, "shard()");
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
	describe_label(out, "out_strategy");
	if (!ap_op_deals_usually(row)) {
		ap_str_addf(out, "deals the partial sums over %c along dimension 0 of the result "
			"(ReduceScatter)", ap_op_deal_letter(row));
		return;
	}
	ap_str_addf(out, "deals the partial sums over %c along dimension 0 of the result (ReduceScatter),",
		ap_op_deal_letter(row));
	describe_label(out, NULL);
	ap_str_add(out, "or does not (AllReduce); where none is said, MindSpore deals them where the "
		"indices are whole");
	describe_label(out, NULL);
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

/* Lists types, merging equal neighbours. */
static void show_codes(struct ap_str *out, const char *codes, bool result)
{
	for (size_t i = 0; codes[i] && codes[i] != ':'; i++)
		if (i == 0 || codes[i] != codes[i - 1])
			ap_str_addf(out, "%s%s", i ? ", " : "", type_text(codes[i], result));
}

static void show_types(struct ap_str *out, const struct ap_op_row *row)
{
	describe_label(out, "types");
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

	describe_label(out, "work");
	ap_str_addf(out, "%s FLOPs a point %s, backward %s times as much",
		ap_format_double(row->flops, flops), units[row->unit],
		ap_format_double(row->backward, backward));
	for (const char *p = row->save; *p; p++) {
		if (*p == '*')
			continue;
		if (p == row->save)
			describe_label(out, "saved");
		ap_str_addf(out, "%s%s %d", p > row->save ? ", " : "",
			*p >= 'o' ? "result" : "operand", *p >= 'o' ? *p - 'o' : *p - 'a');
	}
}

static void show_order(struct ap_str *out, const struct ap_op_row *row)
{
	describe_label(out, "dev_matrix");
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
	const char *comma = "";

	ap_rule_parse(row->rule, &r, &at);
	ap_str_addc(out, '\n');
	describe_label(out, "rule");
	ap_str_add(out, row->rule);
	if (strcmp(row->doc, first->doc) != 0) {
		describe_label(out, "computes");
		ap_str_add(out, row->doc);
	}
	if (*row->when) {
		describe_label(out, "when");
		ap_str_add(out, row->when);
	}
	if (r.expander.len) {
		describe_label(out, "may be cut");
		ap_str_add(out, ap_expander_find(r.expander)->says);
	}
	/* letters that stay whole */
	for (int i = 0; i < AP_LETTERS; i++)
		if (r.frozen >> i & 1) {
			if (!*comma)
				describe_label(out, "whole");
			ap_str_addf(out, "%s%c", comma, 'a' + i);
			comma = ", ";
		}
	for (uint8_t i = 0; i < r.naxis; i++)
		if (r.axis[i].frozen) {
			if (!*comma)
				describe_label(out, "whole");
			ap_str_addf(out, "%s[%.*s]", comma, (int)r.axis[i].attr.len,
				r.axis[i].attr.s);
			comma = ", ";
		}
	for (int i = 0; i < AP_LETTERS; i++)
		if ((r.lookup & ~r.frozen) >> i & 1) {
			describe_label(out, "masked");
			ap_str_addf(out, "%c: a part gives zero for what it does not hold", 'a' + i);
		}
	if (*row->legal) {
		describe_label(out, "condition");
		ap_str_addf(out, "%s: %s", row->legal, ap_legal_says(row->legal));
	}
	show_types(out, row);
	show_order(out, row);
	ap_op_describe_comm(row, out);
	show_work(out, row);
}

static void show_named(struct ap_str *out, const char *p)
{
	const char *comma = "";

	for (; *p >= 'a' && *p <= 'n'; p += p[1] == '/' ? 3 : 1) {
		if (p[1] == '/')
			ap_str_addf(out, "%s%c of operand %d", comma, p[2], *p - 'a');
		else
			ap_str_addf(out, "%sdimension 0 of operand %d", comma, *p - 'a');
		comma = ", ";
	}
	if (!*comma)
		ap_str_add(out, "nothing");
}

static void show_where(struct ap_str *out, const char *notation)
{
	switch (*notation) {
	case '*':
		ap_str_add(out, "dimension 0 of every operand");
		break;
	case '~':
		ap_str_add(out, "dimension 0 of operands that are not of length 1 there, in line at the "
			"right");
		break;
	case '#':
		ap_str_add(out, "dimension 0 of the operands of most dimensions; of two the first alone");
		break;
	default:
		show_named(out, notation);
	}
}

/* A line about where it is cut in semi_auto_parallel without a strategy. */
static void op_describe_batch(const struct ap_op_row *row, struct ap_str *out)
{
	const char *notation = ap_op_batch_notation(row);

	describe_label(out, "semi_auto");
	if (!ap_op_has_strategy(row) || ap_op_follows(row)) {
		ap_str_add(out, "lies as its neighbours");
		return;
	}
	ap_str_add(out, "cuts ");
	show_where(out, notation ? notation : "a");
	if (!notation)
		return;
	if (strchr(notation, '&'))
		ap_str_add(out, ", and what is cut along with it");
	if (strchr(notation, '?'))
		ap_str_add(out, ", or nothing where that stays whole");
	if (strchr(notation, '='))
		ap_str_add(out, ", by all devices or not at all");
	if (strchr(notation, '!'))
		ap_str_add(out, ", as the data comes");
}

void ap_op_describe(const char *type, struct ap_str *out)
{
	const struct ap_op_row *first = ap_op_next(NULL, type);
	const char *operators, *name;
	struct ap_attr_refusal refusal;
	struct words w = {.n = 0};
	const char *old, *now;
	const char *comma = "";

	ap_str_addf(out, "%s: %s", first->name, first->doc);
	describe_label(out, "family");
	ap_str_add(out, ap_op_family(first));
	for (size_t i = 0; ap_op_alias_at(i, &old, &now); i++) {
		if (strcmp(now, type) != 0)
			continue;
		if (!*comma)
			describe_label(out, "aliases");
		ap_str_addf(out, "%s%s", comma, old);
		comma = ", ";
	}
	describe_label(out, "source");
	ap_str_add(out, first->source);
	for (const struct ap_op_row *row = NULL; (row = ap_op_next(row, type));)
		row_attrs(&w, row);
	if (w.n)
		describe_label(out, "attributes");
	for (unsigned i = 0; i < w.n; i++) {
		ap_str_add(out, i ? ", " : "");
		show_attr(out, type, w.v[i]);
	}
	for (size_t i = 0; ap_attr_refusal_at(i, &operators, &name, &refusal); i++) {
		if (!ap_attr_concerns(operators, type))
			continue;
		describe_label(out, "refused");
		ap_str_addf(out, "%s%s%s: %s", name, *refusal.allowed ? " but " : "",
			refusal.allowed, refusal.reason);
	}
	show_vectors(out, first);
	op_describe_batch(first, out);
	if (ap_op_is_fallback(first)) {
		describe_label(out, "MindSpore");
		ap_str_add(out, "has no rule of its own: dimension 0 by all devices of the stage where "
			"they divide it,");
		describe_label(out, NULL);
		ap_str_add(out, "of operand 0 and result 0, else whole; below is what --executor generic may "
			"cut");
	}
	for (const struct ap_op_row *row = first; row; row = ap_op_next(row, type))
		show_row(out, first, row);
	ap_str_addc(out, '\n');
}

/* Sets of what can be cut: letters a..z, the dimensions of "*", those an attribute names. */
enum { STAR = 26, AXES = 27 };

static uint32_t bit(int i)
{
	return UINT32_C(1) << i;
}

/* Attributes in brackets that name dimensions of "*"; others name dimensions of an operand that has
 * only these. */
static uint32_t starred_axes(const struct ap_rule *r)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < r->nin; i++)
		for (uint8_t k = 0; k < r->in[i].nterm && r->in[i].star; k++)
			if (r->in[i].term[k].kind == AP_TERM_AXIS)
				mask |= bit(AXES + r->in[i].term[k].axis);
	return mask;
}

static uint32_t term_set(const struct ap_term *t, uint32_t starred)
{
	uint32_t mask = 0;

	for (uint8_t k = 0; k < t->n; k++)
		mask |= bit(t->letter[k] - 'a');
	if (t->kind == AP_TERM_STAR)
		mask |= bit(STAR);
	if (t->kind == AP_TERM_AXIS)
		mask |= bit(AXES + t->axis) & starred;
	return mask;
}

static uint32_t tensor_set(const struct ap_rule *r, const struct ap_tensor_rule *t, bool operand)
{
	uint32_t starred = starred_axes(r), mask = 0;

	for (uint8_t k = 0; k < t->nterm; k++)
		mask |= term_set(&t->term[k], starred);
	return mask & bit(STAR) && operand ? mask | starred : mask;
}

/* Everything in operands that can be cut; not lengths of windows. */
static uint32_t cut_set(const struct ap_rule *r)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < r->nin; i++)
		mask |= tensor_set(r, &r->in[i], true);
	for (uint8_t i = 0; i < r->naxis; i++)
		if (r->axis[i].frozen)
			mask &= ~bit(AXES + i);
	return mask & ~r->frozen & ~r->window;
}

/* "k, *, [axis]" */
static void add_set(struct ap_str *out, const struct ap_rule *r, uint32_t mask)
{
	const char *comma = "";

	for (int i = 0; i < STAR; i++)
		if (mask >> i & 1) {
			ap_str_addf(out, "%s%c", comma, 'a' + i);
			comma = ", ";
		}
	if (mask >> STAR & 1) {
		ap_str_addf(out, "%s*", comma);
		comma = ", ";
	}
	for (uint8_t i = 0; i < r->naxis; i++)
		if (mask >> (AXES + i) & 1) {
			ap_str_addf(out, "%s[%.*s]", comma, (int)r->axis[i].attr.len,
				r->axis[i].attr.s);
			comma = ", ";
		}
}

static const char *const reductions[] = {
	[AP_REDUCE_SUM] = "sum",
	[AP_REDUCE_MEAN] = "sum, divided by the parts",
	[AP_REDUCE_MAX] = "maximum",
	[AP_REDUCE_MIN] = "minimum",
	[AP_REDUCE_PROD] = "product",
};

static bool is_computed(const struct ap_rule *r, unsigned o)
{
	for (uint8_t k = 0; k < r->out[o].nterm; k++)
		if (r->out[o].term[k].kind != AP_TERM_FIXED)
			return o < r->nmade;
	return r->out[o].nterm == 0 && o < r->nmade;
}

/* Lists results whose parts are combined. Returns false if there are none. */
static bool add_forward(const struct ap_op_row *row, const struct ap_rule *r, struct ap_str *out)
{
	bool any = false;

	for (unsigned o = 0; o < r->nout; o++) {
		uint32_t lacks = cut_set(r) & ~tensor_set(r, &r->out[o], false);

		if (!lacks || !is_computed(r, o))
			continue;
		describe_label(out, any ? NULL : "forward");
		ap_str_addf(out, "AllReduce (%s) of result %u over ", reductions[row->reduce], o);
		add_set(out, r, lacks);
		any = true;
	}
	if (any && ap_op_deals_usually(row)) {
		describe_label(out, NULL);
		ap_str_add(out, "mindspore: ReduceScatter along dimension 0 where the indices are whole and "
			"the parts divide it");
	}
	if (any && ap_op_takes_cross_batch(row)) {
		describe_label(out, NULL);
		ap_str_addf(out, "none with cross_batch%s", row->reduce == AP_REDUCE_MEAN ?
			" where the batch alone is cut, among all devices" : "");
	}
	return any;
}

static void add_halos(const struct ap_rule *r, bool any, struct ap_str *out)
{
	const char *comma = "";

	if (!r->window)
		return;
	describe_label(out, any ? NULL : "forward");
	ap_str_add(out, "NeighborExchange of operand 0 along ");
	for (uint8_t k = 0; k < r->in[0].nterm; k++)
		if (r->in[0].term[k].window || r->out[0].term[k].window) {
			ap_str_addf(out, "%s%c", comma, r->in[0].term[k].letter[0]);
			comma = ", ";
		}
	ap_str_add(out, ", where windows reach into the next part");
}

static bool takes_gradient(const struct ap_op_row *row, unsigned i)
{
	return *row->grad == '*' || (i < 'o' - 'a' && strchr(row->grad, 'a' + (int)i));
}

static bool is_broadcast(const struct ap_rule *r, unsigned i)
{
	unsigned stars = 0;

	for (unsigned k = 0; k < r->nin; k++)
		stars += r->in[k].star;
	for (uint8_t k = 0; k < r->in[i].nterm; k++)
		if (r->in[i].term[k].broadcast)
			return true;
	return r->in[i].star && stars > 1;
}

static void expander_comm(const struct ap_op_row *row, const struct ap_expander *e,
	struct ap_str *out)
{
	describe_label(out, "forward");
	if (*e->lacks)
		ap_str_addf(out, "AllReduce (%s) of the results over %s", reductions[row->reduce],
			e->lacks);
	else
		ap_str_add(out, "none");
	describe_label(out, "backward");
	if (!*row->grad) {
		ap_str_add(out, "none");
		return;
	}
	ap_str_addf(out, "mindspore: %s", *e->lacks ?
		"AllReduce (sum) of the results' gradients over the same" : "none");
	describe_label(out, NULL);
	ap_str_add(out, "generic: sum, on its way back, of an operand's gradient over what is cut and "
		"it lacks");
	describe_label(out, "gradient");
	ap_str_add(out, "mindspore: of a parameter over all devices that hold the same slice");
	describe_label(out, NULL);
	ap_str_add(out, "generic: of a parameter as of any other operand");
}

void ap_op_describe_comm(const struct ap_op_row *row, struct ap_str *out)
{
	struct ap_rule r;
	bool forward;
	size_t at;
	const char *semicolon = "";

	ap_rule_parse(row->rule, &r, &at);
	if (r.expander.len) {
		expander_comm(row, ap_expander_find(r.expander), out);
		return;
	}
	forward = add_forward(row, &r, out);
	add_halos(&r, forward, out);
	if (!forward && !r.window) {
		describe_label(out, "forward");
		ap_str_add(out, "none");
	}
	if (!*row->grad) {
		describe_label(out, "backward");
		ap_str_add(out, "none");
		return;
	}
	describe_label(out, "backward");
	ap_str_add(out, "mindspore: ");
	ap_str_add(out, forward ? "AllReduce (sum) of the results' gradients over the same" : "none");
	if (r.window)
		ap_str_add(out, "; the exchange reversed");
	describe_label(out, NULL);
	ap_str_add(out, "generic: sum, on its way back, of the gradient of");
	/* what each operand's gradient is summed over */
	for (unsigned i = 0; i < r.nin; i++) {
		uint32_t lacks = cut_set(&r) & ~tensor_set(&r, &r.in[i], true);

		if (!takes_gradient(row, i) || r.in[i].whole || (!lacks && !is_broadcast(&r, i)))
			continue;
		ap_str_addf(out, "%s operand %u over ", semicolon, i);
		add_set(out, &r, lacks);
		if (is_broadcast(&r, i))
			ap_str_addf(out, "%swhat it is broadcast along", lacks ? " and " : "");
		semicolon = ";";
	}
	if (!*semicolon)
		ap_str_add(out, " none");
	if (r.window)
		ap_str_add(out, "; the exchange reversed");
	describe_label(out, "gradient");
	ap_str_add(out, "mindspore: of a parameter over all devices that hold the same slice");
	describe_label(out, NULL);
	ap_str_add(out, "generic: of a parameter as of any other operand");
}
