/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives of a row, read off its rule. */
#include <string.h>

#include "rule/describe.h"
#include "rule/expand.h"

/* Sets of what may be cut: letters a..z, the dimensions of "*", those that an attribute names. */
enum { STAR = 26, AXES = 27 };

static uint32_t bit(int i)
{
	return UINT32_C(1) << i;
}

/* Attributes in brackets that name dimensions of a "*"; others name dimensions of an operand that
 * has only these. */
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

/* What operands have and may be cut; the lengths of windows are not. */
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

/* Results whose parts are combined. False when there are none. */
static bool add_forward(const struct ap_op_row *row, const struct ap_rule *r, struct ap_str *out)
{
	bool any = false;

	for (unsigned o = 0; o < r->nout; o++) {
		uint32_t lacks = cut_set(r) & ~tensor_set(r, &r->out[o], false);

		if (!lacks || !is_computed(r, o))
			continue;
		ap_describe_label(out, any ? NULL : "forward");
		ap_str_addf(out, "AllReduce (%s) of result %u over ", reductions[row->reduce], o);
		add_set(out, r, lacks);
		any = true;
	}
	if (any && ap_op_deals_usually(row)) {
		ap_describe_label(out, NULL);
		ap_str_add(out, "mindspore: ReduceScatter along dimension 0 where the indices are whole and "
			"the parts divide it");
	}
	if (any && ap_op_takes_cross_batch(row)) {
		ap_describe_label(out, NULL);
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
	ap_describe_label(out, any ? NULL : "forward");
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

/* What the gradient of each operand is summed over. */
static void add_lacking(const struct ap_op_row *row, const struct ap_rule *r, struct ap_str *out)
{
	const char *semicolon = "";

	for (unsigned i = 0; i < r->nin; i++) {
		uint32_t lacks = cut_set(r) & ~tensor_set(r, &r->in[i], true);

		if (!takes_gradient(row, i) || r->in[i].whole || (!lacks && !is_broadcast(r, i)))
			continue;
		ap_str_addf(out, "%s operand %u over ", semicolon, i);
		add_set(out, r, lacks);
		if (is_broadcast(r, i))
			ap_str_addf(out, "%swhat it is broadcast along", lacks ? " and " : "");
		semicolon = ";";
	}
	if (!*semicolon)
		ap_str_add(out, " none");
}

static void add_backward(const struct ap_op_row *row, const struct ap_rule *r, bool forward,
	struct ap_str *out)
{
	if (!*row->grad) {
		ap_describe_label(out, "backward");
		ap_str_add(out, "none");
		return;
	}
	ap_describe_label(out, "backward");
	ap_str_add(out, "mindspore: ");
	ap_str_add(out, forward ? "AllReduce (sum) of the results' gradients over the same" : "none");
	if (r->window)
		ap_str_add(out, "; the exchange reversed");
	ap_describe_label(out, NULL);
	ap_str_add(out, "generic: AllReduce (sum) of the gradient of");
	add_lacking(row, r, out);
	if (r->window)
		ap_str_add(out, "; the exchange reversed");
	ap_describe_label(out, "gradient");
	ap_str_add(out, "mindspore: of a parameter over all devices that hold the same slice");
	ap_describe_label(out, NULL);
	ap_str_add(out, "generic: of a parameter as of any other operand");
}

static void expander_comm(const struct ap_op_row *row, const struct ap_expander *e,
	struct ap_str *out)
{
	ap_describe_label(out, "forward");
	if (*e->lacks)
		ap_str_addf(out, "AllReduce (%s) of the results over %s", reductions[row->reduce],
			e->lacks);
	else
		ap_str_add(out, "none");
	ap_describe_label(out, "backward");
	if (!*row->grad) {
		ap_str_add(out, "none");
		return;
	}
	ap_str_addf(out, "mindspore: %s", *e->lacks ?
		"AllReduce (sum) of the results' gradients over the same" : "none");
	ap_describe_label(out, NULL);
	ap_str_add(out, "generic: AllReduce (sum) of an operand's gradient over what is cut and "
		"it lacks");
	ap_describe_label(out, "gradient");
	ap_str_add(out, "mindspore: of a parameter over all devices that hold the same slice");
	ap_describe_label(out, NULL);
	ap_str_add(out, "generic: of a parameter as of any other operand");
}

void ap_op_describe_comm(const struct ap_op_row *row, struct ap_str *out)
{
	struct ap_rule r;
	bool forward;
	size_t at;

	ap_rule_parse(row->rule, &r, &at);
	if (r.expander.len) {
		expander_comm(row, ap_expander_find(r.expander), out);
		return;
	}
	forward = add_forward(row, &r, out);
	add_halos(&r, forward, out);
	if (!forward && !r.window) {
		ap_describe_label(out, "forward");
		ap_str_add(out, "none");
	}
	add_backward(row, &r, forward, out);
}
