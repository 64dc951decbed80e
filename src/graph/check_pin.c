/* SPDX-License-Identifier: Apache-2.0 */
/* Pins against the shapes that their operators are bound to. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "graph/load.h"

/* Shape that vector k of a strategy is about; NULL: an empty vector is due. */
static const struct ap_operand *strategy_operand(const struct ap_bound *b, uint32_t k)
{
	char letter;

	if (!*b->row->strategy)
		return &b->in[k];
	letter = b->row->strategy[2 * k];
	if (letter == '-')
		return NULL;
	return letter >= 'o' ? &b->out[letter - 'o'] : &b->in[letter - 'a'];
}

static uint32_t strategy_length(const struct ap_bound *b)
{
	size_t n = strlen(b->row->strategy);

	return n ? (uint32_t)(n / 2 + 1) : b->nin;
}

/* "input 1 ("w")", "result 0": what vector k of a strategy is about. */
static const char *vector_text(struct ap_load *l, const struct ap_node *n, const struct ap_operand *o)
{
	const struct ap_bound *b = &n->bound;

	if (!o)
		return "what the vector stands for";
	if (o >= b->out && o < b->out + b->nout)
		return ap_arena_printf(l->ctx->arena, "result %td", o - b->out);
	return ap_arena_printf(l->ctx->arena, "input %td (\"%s\")", o - b->in,
		ap_load_name(l, b->name[o - b->in]));
}

static bool is_bound(const struct ap_raw_node *n)
{
	return n->n.bound.row != NULL;
}

/* Vector k of a pin has a number for each dimension of o (NULL: none). */
static void vector_length(struct ap_load *l, const struct ap_raw_node *n, const struct ap_jv *at,
	const struct ap_pin *pin, uint32_t k, const struct ap_operand *o)
{
	int rank = o ? o->rank : 0;

	if (pin->v[k].rank != rank)
		ap_load_say(l, AP_CHECK_PIN_LENGTH, ap_load_element(at, k), n->n.name,
			"%d numbers; %s has %d dimensions", pin->v[k].rank,
			vector_text(l, &n->n, o), rank);
}

static bool vectors_wanted(struct ap_load *l, const struct ap_raw_node *n, const struct ap_jv *at,
	uint32_t given, uint32_t wanted)
{
	if (given != wanted)
		ap_load_say(l, AP_CHECK_PIN_LENGTH, at, n->n.name,
			"%" PRIu32 " vectors; %s takes %" PRIu32, given, n->n.type, wanted);
	return given == wanted;
}

static void in_length(struct ap_load *l, const struct ap_raw_node *n)
{
	const struct ap_jv *at = ap_jv_get(n->at, "in_strategy");
	const struct ap_pin *pin = &n->n.in_pin;

	if (vectors_wanted(l, n, at, pin->n, strategy_length(&n->n.bound)))
		for (uint32_t k = 0; k < pin->n; k++)
			vector_length(l, n, at, pin, k, strategy_operand(&n->n.bound, k));
}

static void out_length(struct ap_load *l, const struct ap_raw_node *n)
{
	const struct ap_jv *at = ap_jv_get(n->at, "out_strategy");

	if (vectors_wanted(l, n, at, n->n.out_pin.n, 1))
		vector_length(l, n, at, &n->n.out_pin, 0, &n->n.bound.out[0]);
}

void ap_check_pin_length(struct ap_load *l)
{
	for (size_t i = 0; i < l->nodes.n; i++) {
		const struct ap_raw_node *n = &l->nodes.v[i];

		if (is_bound(n) && n->n.in_pin.n > 0)
			in_length(l, n);
		if (is_bound(n) && n->n.out_pin.n > 0 && ap_rule_deal_factor(&n->n.bound) >= 0)
			out_length(l, n);
	}
}

static void vector_value(struct ap_load *l, const struct ap_raw_node *n, const struct ap_jv *at,
	const struct ap_pin *pin, uint32_t k, const struct ap_operand *o)
{
	for (uint8_t i = 0; i < pin->v[k].rank; i++) {
		int32_t cut = pin->v[k].cut[i];

		if (cut < 1)
			ap_load_say(l, AP_CHECK_PIN_VALUE, ap_load_element(at, i), n->n.name,
				"%s, dimension %d of length %" PRId64 ": %" PRId32
				" parts; at least 1 is needed", vector_text(l, &n->n, o), i,
				o->size[i], cut);
		else if (o->size[i] % cut != 0)
			ap_load_say(l, AP_CHECK_PIN_VALUE, ap_load_element(at, i), n->n.name,
				"%s, dimension %d of length %" PRId64 ": %" PRId32
				" parts; divisors of the length are allowed",
				vector_text(l, &n->n, o), i, o->size[i], cut);
	}
}

void ap_check_pin_value(struct ap_load *l)
{
	for (size_t i = 0; i < l->nodes.n; i++) {
		const struct ap_raw_node *n = &l->nodes.v[i];
		const struct ap_jv *in = ap_jv_get(n->at, "in_strategy");
		const struct ap_jv *out = ap_jv_get(n->at, "out_strategy");

		for (uint32_t k = 0; is_bound(n) && k < n->n.in_pin.n; k++)
			vector_value(l, n, ap_load_element(in, k), &n->n.in_pin, k,
				strategy_operand(&n->n.bound, k));
		if (is_bound(n) && n->n.out_pin.n > 0 && ap_rule_deal_factor(&n->n.bound) >= 0)
			vector_value(l, n, ap_load_element(out, 0), &n->n.out_pin, 0,
				&n->n.bound.out[0]);
	}
}

/* Parts per factor that in_strategy says, of factors that make up a dimension of their own. */
static void pinned_counts(const struct ap_node *n, int64_t count[AP_MAX_FACTOR])
{
	for (int f = 0; f < AP_MAX_FACTOR; f++)
		count[f] = 1;
	for (uint32_t k = 0; k < n->in_pin.n; k++)
		for (uint8_t i = 0; i < n->in_pin.v[k].rank; i++) {
			const struct ap_dim *dim = &strategy_operand(&n->bound, k)->dim[i];

			if (dim->n == 1)
				count[dim->factor[0]] = n->in_pin.v[k].cut[i];
		}
}

/* The result's parts by in_strategy, the partial sums not dealt. */
static void summed_cut(const struct ap_node *n, const int64_t *count, int64_t cut[AP_MAX_RANK])
{
	const struct ap_operand *o = &n->bound.out[0];

	for (uint8_t i = 0; i < o->rank; i++) {
		cut[i] = 1;
		for (uint8_t k = 0; k < o->dim[i].n; k++)
			cut[i] *= count[o->dim[i].factor[k]];
	}
}

static bool out_is(const struct ap_node *n, const int64_t cut[AP_MAX_RANK])
{
	for (uint8_t i = 0; i < n->out_pin.v[0].rank; i++)
		if (n->out_pin.v[0].cut[i] != cut[i])
			return false;
	return true;
}

bool ap_pin_deals(const struct ap_node *n)
{
	int64_t count[AP_MAX_FACTOR], cut[AP_MAX_RANK];
	int f = n->out_pin.n > 0 ? ap_rule_deal_factor(&n->bound) : -1;

	if (f < 0)
		return false;
	pinned_counts(n, count);
	summed_cut(n, count, cut);
	cut[0] *= count[f];
	return count[f] > 1 && out_is(n, cut);
}

static const char *cut_text(struct ap_load *l, const struct ap_operand *o, const int64_t *cut)
{
	struct ap_str s;

	ap_str_init(&s, l->ctx->arena);
	for (uint8_t i = 0; i < o->rank; i++)
		ap_str_addf(&s, "%s%" PRId64, i ? ", " : "[", cut[i]);
	ap_str_addc(&s, ']');
	return s.s;
}

static void out_form(struct ap_load *l, const struct ap_raw_node *n, const struct ap_jv *at, int f)
{
	int64_t count[AP_MAX_FACTOR], cut[AP_MAX_RANK];
	const struct ap_operand *o = &n->n.bound.out[0];
	const char *summed;

	pinned_counts(&n->n, count);
	summed_cut(&n->n, count, cut);
	if (ap_pin_deals(&n->n) || out_is(&n->n, cut))
		return;
	summed = cut_text(l, o, cut);
	cut[0] *= count[f];
	ap_load_say(l, AP_CHECK_PIN_OUT, at, n->n.name,
		"with this in_strategy the result is cut %s, or %s where the partial sums are dealt "
		"along its first dimension", summed, cut_text(l, o, cut));
}

void ap_check_pin_out(struct ap_load *l)
{
	for (size_t i = 0; i < l->nodes.n; i++) {
		const struct ap_raw_node *n = &l->nodes.v[i];
		const struct ap_jv *at = ap_jv_get(n->at, "out_strategy");
		int f;

		if (!is_bound(n) || n->n.out_pin.n == 0)
			continue;
		f = ap_rule_deal_factor(&n->n.bound);
		if (f < 0)
			ap_load_say(l, AP_CHECK_PIN_OUT, at, n->n.name,
				"%s takes no out_strategy; products of two matrices and look-ups "
				"along the first dimension of a table do", n->n.type);
		else if (n->n.in_pin.n == 0)
			ap_load_say(l, AP_CHECK_PIN_OUT, at, n->n.name,
				"out_strategy without an in_strategy");
		else
			out_form(l, n, at, f);
	}
}

void ap_check_pin_view(struct ap_load *l)
{
	for (size_t i = 0; i < l->nodes.n; i++) {
		const struct ap_raw_node *n = &l->nodes.v[i];

		if (is_bound(n) && n->n.in_pin.n > 0 && ap_op_follows(n->n.bound.row))
			ap_load_say(l, AP_CHECK_PIN_VIEW, ap_jv_get(n->at, "in_strategy"),
				n->n.name, "MindSpore's searches give %s the layout of its producer, "
				"whatever its in_strategy; it is planned with all the same", n->n.type);
		if (is_bound(n) && n->n.in_pin.n > 0 && !ap_op_has_strategy(n->n.bound.row))
			ap_load_say(l, AP_CHECK_PIN_VIEW, ap_jv_get(n->at, "in_strategy"),
				n->n.name, "MindSpore refuses an in_strategy of %s, which follows its "
				"neighbours; it is planned with all the same", n->n.type);
	}
}
