/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the graph as read, before binding. */
#include "graph/check.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "rule/deal.h"
#include "rule/op.h"

static void check_graph_empty(struct ap_load *l)
{
	if (l->nodes.n == 0 && !l->incomplete)
		ap_load_say(l, AP_CHECK_GRAPH_EMPTY,
			ap_jv_get(ap_json_root(l->doc), "operators"), NULL,
			"there are no operators");
}

static const char *const kinds[] = {"an input", "a parameter", "a constant", "a result"};

static const struct ap_jv *name_at(const struct ap_jv *v)
{
	return ap_jv_type(v) == AP_JOBJECT ? ap_jv_get(v, "name") : v;
}

static ap_id producer(const struct ap_load *l, const struct ap_raw_node *n, uint16_t k)
{
	return n->in[k] == AP_NONE ? AP_NONE : l->tensors.v[n->in[k]].t.producer;
}

/* Also indexes tensors by name. */
static void check_tensor_unique(struct ap_load *l)
{
	l->by_name = AP_NEW_N(l->ctx->arena, ap_id, l->tensors.n);
	for (size_t i = 0; i < l->tensors.n; i++) {
		struct ap_raw_tensor *t = &l->tensors.v[i];
		bool fresh;
		ap_id id = ap_map_put_str(l->names, t->t.name, &fresh);

		if (fresh) {
			l->by_name[id] = (ap_id)i;
		} else if (*t->t.name) {
			const struct ap_raw_tensor *first = &l->tensors.v[l->by_name[id]];
			const char *name = ap_load_name(l, t->t.name);

			if (t->t.kind == AP_TENSOR_ACT && first->t.kind == AP_TENSOR_ACT)
				ap_load_say(l, AP_CHECK_TENSOR_UNIQUE, name_at(t->at),
					l->nodes.v[t->t.producer].n.name,
					"tensor \"%s\" is a result of operator \"%s\" too", name,
					ap_load_name(l, l->nodes.v[first->t.producer].n.name));
			else
				ap_load_say(l, AP_CHECK_TENSOR_UNIQUE, name_at(t->at), NULL,
					"tensor \"%s\" is %s and %s", name, kinds[first->t.kind],
					kinds[t->t.kind]);
		}
	}
}

static void check_operator_unique(struct ap_load *l)
{
	struct ap_map *names = ap_map_create(l->ctx->arena);

	for (size_t i = 0; i < l->nodes.n; i++) {
		const struct ap_raw_node *n = &l->nodes.v[i];
		bool fresh;

		ap_map_put_str(names, n->n.name, &fresh);
		if (!fresh && *n->n.name)
			ap_load_say(l, AP_CHECK_OPERATOR_UNIQUE, name_at(n->at), n->n.name,
				"the name is used twice");
	}
}

static void check_shape_size(struct ap_load *l)
{
	for (size_t i = 0; i < l->tensors.n; i++) {
		struct ap_raw_tensor *t = &l->tensors.v[i];
		int64_t n;

		if (t->t.shape.rank == AP_RANK_UNKNOWN)
			continue;
		if (ap_product(t->said.dim, t->said.rank, &n) && n <= AP_MAX_ELEMENTS)
			continue;
		t->t.shape.rank = AP_RANK_UNKNOWN;
		t->sound = false;
		ap_load_say(l, AP_CHECK_SHAPE_SIZE, ap_jv_get(t->at, "shape"),
			t->t.producer == AP_NONE ? NULL : l->nodes.v[t->t.producer].n.name,
			"the element count of tensor \"%s\" overflows; at most 2^53 elements are "
			"supported", ap_load_name(l, t->t.name));
	}
}

/* The batch is the shortest of the inputs' batch dimensions; the others must be multiples of it
 * (batch and sequence in one dimension). */
static void check_batch_dim(struct ap_load *l)
{
	for (size_t i = 0; i < l->tensors.n; i++) {
		struct ap_raw_tensor *t = &l->tensors.v[i];
		int64_t n;

		if (t->batch_dim < 0 || !t->sound)
			continue;
		if (t->batch_dim >= t->said.rank) {
			ap_load_say(l, AP_CHECK_BATCH_DIM, ap_jv_get(t->at, "batch_dim"), NULL,
				"input \"%s\" has %d dimensions; batch_dim is %" PRId64,
				ap_load_name(l, t->t.name), t->said.rank, t->batch_dim);
			continue;
		}
		n = t->said.dim[t->batch_dim];
		t->t.batch = (uint8_t)(1 << t->batch_dim);
		t->t.batch_outer[t->batch_dim] = 1;
		if (l->batch == 0 || n < l->batch)
			l->batch = n;
	}
	for (size_t i = 0; i < l->tensors.n; i++) {
		const struct ap_raw_tensor *t = &l->tensors.v[i];

		if (t->t.batch && t->said.dim[t->batch_dim] % l->batch != 0)
			ap_load_say(l, AP_CHECK_BATCH_DIM, ap_jv_get(t->at, "batch_dim"), NULL,
				"the batch of input \"%s\" is %" PRId64 ", another input's is "
				"%" PRId64, ap_load_name(l, t->t.name),
				t->said.dim[t->batch_dim], l->batch);
	}
}

static void say_unknown(struct ap_load *l, const struct ap_raw_node *n, const char *near)
{
	const char *reason = ap_op_unsupported(n->n.type), *type = ap_load_name(l, n->n.type);
	const struct ap_jv *at = ap_jv_get(n->at, "type");

	if (reason)
		ap_load_say(l, AP_CHECK_OPERATOR_KNOWN, at, n->n.name,
			"operator type \"%s\" is known but not planned with: %s; --unknown-operators "
			"batch-parallel takes it for an unknown one", type, reason);
	else if (near)
		ap_load_say(l, AP_CHECK_OPERATOR_KNOWN, at, n->n.name,
			"operator type \"%s\" is unknown; did you mean \"%s\"?", type, near);
	else
		ap_load_say(l, AP_CHECK_OPERATOR_KNOWN, at, n->n.name,
			"operator type \"%s\" is unknown; --unknown-operators batch-parallel plans with "
			"it as MindSpore does", type);
}

static void check_operator_known(struct ap_load *l)
{
	struct ap_map *told = ap_map_create(l->ctx->arena);

	for (size_t i = 0; i < l->nodes.n; i++) {
		struct ap_raw_node *n = &l->nodes.v[i];
		const char *near = NULL;

		if (!*n->n.type && !n->sound)
			continue;
		n->rows = ap_op_canonical(n->n.type, &near);
		if (n->rows) {
			n->n.type = n->rows;
		} else if (l->params && l->params->unknown_batch_parallel) {
			bool fresh;

			n->rows = ap_op_unknown(n->n.type);
			ap_map_put_str(told, n->n.type, &fresh);
			if (fresh)
				ap_load_say(l, AP_CHECK_OPERATOR_ASSUMED, ap_jv_get(n->at, "type"),
					n->n.name,
					"no rule is known for operator type \"%s\"; it is planned with "
					"as MindSpore does: %s", ap_load_name(l, n->n.type),
					strcmp(n->rows, AP_OP_UNCUT) == 0 ? "nothing of it is cut"
					: "dimension 0 of all inputs and results is cut among all devices, "
					"or nothing is");
		} else {
			n->sound = false;
			say_unknown(l, n, near);
		}
	}
}

static void check_edge_known(struct ap_load *l)
{
	for (size_t i = 0; i < l->nodes.n; i++) {
		struct ap_raw_node *n = &l->nodes.v[i];

		for (uint16_t k = 0; k < n->nin; k++) {
			n->in[k] = ap_load_tensor(l, n->operand[k]);
			if (n->in[k] != AP_NONE)
				continue;
			n->sound = false;
			if (l->incomplete)
				continue;
			ap_load_say(l, AP_CHECK_EDGE_KNOWN,
				ap_load_element(ap_jv_get(n->at, "inputs"), n->slot[k]), n->n.name,
				"no tensor \"%s\"", ap_load_name(l, n->operand[k]));
		}
		for (uint16_t k = 0; k < n->nafter; k++) {
			n->after[k] = ap_load_tensor(l, n->after_name[k]);
			if (n->after[k] == AP_NONE && !l->incomplete)
				ap_load_say(l, AP_CHECK_EDGE_KNOWN,
					ap_load_element(ap_jv_get(n->at, "after"), k), n->n.name,
					"no tensor \"%s\"", ap_load_name(l, n->after_name[k]));
		}
	}
}

static void check_output_known(struct ap_load *l)
{
	for (size_t i = 0; i < l->outputs.n && !l->incomplete; i++)
		if (ap_load_tensor(l, ap_jv_str(l->outputs.v[i])) == AP_NONE)
			ap_load_say(l, AP_CHECK_OUTPUT_KNOWN, l->outputs.v[i], NULL,
				"no tensor \"%s\"", ap_load_name(l, ap_jv_str(l->outputs.v[i])));
}

#define MAX_GRAPH_BYTES (INT64_C(1) << 57) /* with states, copies and pipeline buffers, sums stay
		below 2^63 */

/* A tensor counts once, plus once per operator that reads it and may hold a copy. */
static void check_graph_size(struct ap_load *l)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	int64_t *times = AP_NEW_N(l->ctx->scratch, int64_t, l->tensors.n), total = 0, largest = 0;
	size_t at = 0;
	bool fits = true;
	char size[32];

	for (size_t i = 0; i < l->nodes.n; i++)
		for (uint16_t k = 0; k < l->nodes.v[i].nin; k++)
			if (l->nodes.v[i].in[k] != AP_NONE)
				times[l->nodes.v[i].in[k]]++;
	for (size_t i = 0; i < l->tensors.n; i++) {
		const struct ap_shape *s = &l->tensors.v[i].t.shape;
		int64_t bytes = 0;

		if (s->rank != AP_RANK_UNKNOWN && s->dtype != AP_DTYPE_COUNT &&
			!(ap_product(s->dim, s->rank, &bytes) &&
				ap_mul(bytes, ap_dtype_bytes(s->dtype), &bytes)))
			bytes = INT64_MAX;
		fits = fits && ap_mul(bytes, 1 + times[i], &times[i]) && ap_add(total, times[i], &total) &&
			total <= MAX_GRAPH_BYTES;
		if (bytes > largest) {
			largest = bytes;
			at = i;
		}
	}
	if (!fits)
		ap_load_say(l, AP_CHECK_GRAPH_SIZE, l->tensors.v[at].at, NULL,
			"all tensors together, each once more for every reader, have more than 2^57 bytes; "
			"the largest, \"%s\", has %s", ap_load_name(l, l->tensors.v[at].t.name),
			ap_format_bytes(largest, size));
	ap_arena_release(l->ctx->scratch, mark);
}

static bool *mark_used(struct ap_load *l)
{
	bool *used = AP_NEW_N(l->ctx->scratch, bool, l->tensors.n);

	for (size_t i = 0; i < l->outputs.n; i++)
		used[ap_load_tensor(l, ap_jv_str(l->outputs.v[i]))] = true;
	return used;
}

static void check_tensor_unused(struct ap_load *l)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	bool *used = mark_used(l);

	for (size_t i = 0; i < l->nodes.n; i++)
		for (uint16_t k = 0; k < l->nodes.v[i].nin; k++)
			used[l->nodes.v[i].in[k]] = true;
	for (size_t i = 0; i < l->tensors.n; i++)
		if (!used[i] && l->tensors.v[i].t.kind != AP_TENSOR_ACT)
			ap_load_say(l, AP_CHECK_TENSOR_UNUSED, l->tensors.v[i].at, NULL,
				"tensor \"%s\" is never used", ap_load_name(l, l->tensors.v[i].t.name));
	ap_arena_release(l->ctx->scratch, mark);
}

static void check_operator_unused(struct ap_load *l)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	bool *used = mark_used(l), *reached = AP_NEW_N(l->ctx->scratch, bool, l->nodes.n);

	for (size_t i = l->nodes.n; i-- > 0;) { /* mark what outputs depend on */
		const struct ap_raw_node *n = &l->nodes.v[l->order[i]];

		for (uint16_t k = 0; k < n->nout; k++)
			reached[l->order[i]] |= used[n->out[k]];
		for (uint16_t k = 0; reached[l->order[i]] && k < n->nin; k++)
			used[n->in[k]] = true;
	}
	for (size_t i = 0; i < l->nodes.n; i++)
		if (!reached[i])
			ap_load_say(l, AP_CHECK_OPERATOR_UNUSED, l->nodes.v[i].at,
				l->nodes.v[i].n.name, "no output of the graph depends on the operator");
	ap_arena_release(l->ctx->scratch, mark);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Bytes above ASCII are letters, which Python names may contain. */
static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

bool ap_instance_is_path(const char *instance)
{
	const char *p = instance;

	for (;; p++) { /* a name or, after one, an index */
		if (is_letter(*p))
			while (is_letter(*p) || is_digit(*p))
				p++;
		else if (p > instance && is_digit(*p))
			while (is_digit(*p))
				p++;
		else
			return false;
		if (*p != '.')
			return !*p;
	}
}

static void check_instance_path(struct ap_load *l)
{
	for (size_t i = 0; i < l->nodes.n; i++) {
		const struct ap_raw_node *n = &l->nodes.v[i];
		const char *instance = n->n.instance;

		if (instance && *instance && !ap_instance_is_path(instance))
			ap_load_say(l, AP_CHECK_INSTANCE_PATH, ap_jv_get(n->at, "instance"), n->n.name,
				"\"%s\" is no attribute of Python; \"matmul\" or \"list.0\" is "
				"expected, \"\" where no attribute holds it",
				ap_load_name(l, instance));
	}
}

static bool same_pin(const struct ap_pin *a, const struct ap_pin *b)
{
	if (a->n != b->n)
		return false;
	for (uint32_t k = 0; k < a->n; k++)
		if (a->v[k].rank != b->v[k].rank ||
			memcmp(a->v[k].cut, b->v[k].cut, a->v[k].rank * sizeof *a->v[k].cut) != 0)
			return false;
	return true;
}

static void check_instance_shared(struct ap_load *l)
{
	struct ap_mark scratch = ap_arena_mark(l->ctx->scratch);
	struct ap_map *primitives = ap_map_create(l->ctx->scratch);
	ap_id *first = AP_NEW_N(l->ctx->scratch, ap_id, l->nodes.n);

	for (size_t i = 0; i < l->nodes.n; i++) {
		const struct ap_node *n = &l->nodes.v[i].n, *other;
		bool fresh;
		ap_id id;

		if (!n->instance || !*n->instance)
			continue;
		id = ap_map_put_str(primitives, ap_arena_printf(l->ctx->scratch, "%s/%s", n->cell,
			n->instance), &fresh);
		if (fresh)
			first[id] = (ap_id)i;
		other = &l->nodes.v[first[id]].n;
		if (!same_pin(&n->in_pin, &other->in_pin) || !same_pin(&n->out_pin, &other->out_pin))
			ap_load_say(l, AP_CHECK_INSTANCE_SHARED, l->nodes.v[i].at, n->name,
				"it is one primitive with \"%s\", but is not pinned alike; shard() is of "
				"both", ap_load_name(l, other->name));
	}
	ap_arena_release(l->ctx->scratch, scratch);
}

/* The operand that vector k of a strategy cuts; NULL: the vector must be empty. */
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

/* "input 1 ("w")" or "result 0": the tensor that vector k of a strategy cuts. */
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

/* Checks that vector k of a pin has a number per dimension of o (NULL: none). */
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

static void check_pin_length(struct ap_load *l)
{
	for (size_t i = 0; i < l->nodes.n; i++) {
		const struct ap_raw_node *n = &l->nodes.v[i];

		if (is_bound(n) && n->n.in_pin.n > 0) {
			const struct ap_jv *at = ap_jv_get(n->at, "in_strategy");
			const struct ap_pin *pin = &n->n.in_pin;
			size_t letters = strlen(n->n.bound.row->strategy);

			if (vectors_wanted(l, n, at, pin->n,
				letters ? (uint32_t)(letters / 2 + 1) : n->n.bound.nin))
				for (uint32_t k = 0; k < pin->n; k++)
					vector_length(l, n, at, pin, k, strategy_operand(&n->n.bound, k));
		}
		if (is_bound(n) && n->n.out_pin.n > 0 && ap_rule_deal_factor(&n->n.bound) >= 0) {
			const struct ap_jv *at = ap_jv_get(n->at, "out_strategy");

			if (vectors_wanted(l, n, at, n->n.out_pin.n, 1))
				vector_length(l, n, at, &n->n.out_pin, 0, &n->n.bound.out[0]);
		}
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

static void check_pin_value(struct ap_load *l)
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

/* Parts per factor given by in_strategy, for factors that are a whole dimension. */
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

/* Parts of the result by in_strategy, if partial sums are not dealt. */
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

static void check_pin_out(struct ap_load *l)
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

static void check_pin_view(struct ap_load *l)
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

enum { NAMES_TOLD = 10 };
#define BFS_BUDGET (INT64_C(1) << 24) /* edges visited to find the shortest cycle */

/* Edges from producers to consumers: successors of v are edge[first[v] .. first[v + 1]). */
struct successors {
	uint32_t n;
	uint32_t *first;
	ap_id *edge;
};

/* What a node waits for, k from 0: operands, then what it runs behind; AP_NONE: nothing. */
static ap_id waits_for(const struct ap_load *l, const struct ap_raw_node *n, uint32_t k)
{
	ap_id after;

	if (k < n->nin)
		return producer(l, n, (uint16_t)k);
	after = n->after[k - n->nin];
	return after == AP_NONE ? AP_NONE : l->tensors.v[after].t.producer;
}

/* Each operand slot is an edge; those of a producer ascend by consumer. O(nodes + slots). */
static struct successors make_successors(struct ap_load *l)
{
	struct successors s = {.n = (uint32_t)l->nodes.n};
	uint32_t *at;

	s.first = AP_NEW_N(l->ctx->scratch, uint32_t, s.n + 1);
	at = AP_NEW_N(l->ctx->scratch, uint32_t, s.n + 1);
	for (uint32_t i = 0; i < s.n; i++)
		for (uint32_t k = 0; k < (uint32_t)l->nodes.v[i].nin + l->nodes.v[i].nafter; k++)
			if (waits_for(l, &l->nodes.v[i], k) != AP_NONE)
				s.first[waits_for(l, &l->nodes.v[i], k) + 1]++;
	for (uint32_t i = 0; i < s.n; i++)
		s.first[i + 1] += s.first[i];
	s.edge = AP_NEW_N(l->ctx->scratch, ap_id, s.first[s.n]);
	memcpy(at, s.first, (s.n + 1) * sizeof *at);
	for (uint32_t i = 0; i < s.n; i++)
		for (uint32_t k = 0; k < (uint32_t)l->nodes.v[i].nin + l->nodes.v[i].nafter; k++)
			if (waits_for(l, &l->nodes.v[i], k) != AP_NONE)
				s.edge[at[waits_for(l, &l->nodes.v[i], k)]++] = i;
	return s;
}

struct heap { /* smallest id first */
	ap_id *v;
	uint32_t n;
};

static void swap(ap_id *a, ap_id *b)
{
	ap_id t = *a;

	*a = *b;
	*b = t;
}

static void heap_push(struct heap *h, ap_id x)
{
	uint32_t i = h->n++;

	h->v[i] = x;
	for (; i > 0 && h->v[i] < h->v[(i - 1) / 2]; i = (i - 1) / 2)
		swap(&h->v[i], &h->v[(i - 1) / 2]);
}

static ap_id heap_pop(struct heap *h)
{
	ap_id top = h->v[0];
	uint32_t i = 0, least;

	h->v[0] = h->v[--h->n];
	for (;; i = least) {
		least = i;
		for (uint32_t c = 2 * i + 1; c <= 2 * i + 2 && c < h->n; c++)
			if (h->v[c] < h->v[least])
				least = c;
		if (least == i)
			return top;
		swap(&h->v[i], &h->v[least]);
	}
}

/* Fills order (Kahn's algorithm); returns the number of nodes placed. waits[v]: operands of v not
 * yet produced, 0 for placed nodes. O((nodes + slots) log nodes). */
static uint32_t kahn(struct ap_load *l, const struct successors *s, uint32_t *waits, ap_id *order)
{
	struct heap ready = {AP_NEW_N(l->ctx->scratch, ap_id, s->n), 0};
	uint32_t placed = 0;

	for (uint32_t e = 0; e < s->first[s->n]; e++)
		waits[s->edge[e]]++;
	for (uint32_t i = 0; i < s->n; i++)
		if (waits[i] == 0)
			heap_push(&ready, i);
	while (ready.n > 0) {
		ap_id v = heap_pop(&ready);

		order[placed++] = v;
		for (uint32_t e = s->first[v]; e < s->first[v + 1]; e++)
			if (--waits[s->edge[e]] == 0)
				heap_push(&ready, s->edge[e]);
	}
	return placed;
}

struct search {
	const struct successors *s;
	const uint32_t *waits; /* 0: not on any cycle */
	ap_id *queue, *from; /* from: predecessor on the path from the start */
	uint32_t *seen; /* start + 1 of the last search that reached it */
	int64_t budget;
};

/* Length of the shortest cycle through start, if shorter than most; else 0. */
static uint32_t cycle_through(struct search *q, ap_id start, uint32_t most)
{
	uint32_t head = 0, tail = 0, depth = 1, level_end = 1;

	q->queue[tail++] = start;
	while (head < tail && depth < most) {
		ap_id v = q->queue[head++];

		for (uint32_t e = q->s->first[v]; e < q->s->first[v + 1]; e++) {
			ap_id w = q->s->edge[e];

			q->budget--;
			if (w == start) {
				q->from[start] = v;
				return depth;
			}
			if (!q->waits[w] || q->seen[w] == start + 1)
				continue;
			q->seen[w] = start + 1;
			q->from[w] = v;
			q->queue[tail++] = w;
		}
		if (head == level_end) {
			level_end = tail;
			depth++;
		}
	}
	return 0;
}

/* Finds the shortest cycle within the budget; cycle[0] is the start of the search. */
static uint32_t find_cycle(struct ap_load *l, const struct successors *s, const uint32_t *waits,
	ap_id *cycle)
{
	struct ap_arena *a = l->ctx->scratch;
	struct search q = {s, waits, AP_NEW_N(a, ap_id, s->n), AP_NEW_N(a, ap_id, s->n),
		AP_NEW_N(a, uint32_t, s->n), BFS_BUDGET};
	uint32_t best = 0;

	for (ap_id v = 0; v < s->n && (q.budget > 0 || best == 0) && best != 1; v++) {
		uint32_t n = waits[v] ? cycle_through(&q, v, best ? best : s->n + 1) : 0;

		if (n == 0)
			continue;
		best = n;
		cycle[0] = v; /* the last node, and so the first */
		for (uint32_t i = n; i-- > 0;)
			cycle[i] = q.from[cycle[(i + 1) % n]];
	}
	return best;
}

static void check_edge_cycle(struct ap_load *l)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	ap_id *order = AP_NEW_N(l->ctx->arena, ap_id, l->nodes.n);
	struct successors s = make_successors(l);
	uint32_t *waits = AP_NEW_N(l->ctx->scratch, uint32_t, s.n);

	if (kahn(l, &s, waits, order) == s.n) {
		l->order = order;
	} else {
		ap_id *cycle = AP_NEW_N(l->ctx->scratch, ap_id, s.n);
		uint32_t n = find_cycle(l, &s, waits, cycle);
		const struct ap_raw_node *first = &l->nodes.v[cycle[0]];
		struct ap_str text;

		ap_str_init(&text, l->ctx->scratch);
		for (uint32_t i = 0; i <= n && i < NAMES_TOLD; i++)
			ap_str_addf(&text, "%s%s", i ? " -> " : "",
				ap_load_name(l, l->nodes.v[cycle[i % n]].n.name));
		if (n >= NAMES_TOLD)
			ap_str_addf(&text, " -> ... (%u operators)", n);
		ap_load_say(l, AP_CHECK_EDGE_CYCLE, first->at, first->n.name, "cycle: %s", text.s);
	}
	ap_arena_release(l->ctx->scratch, mark);
}

static void check_cell_unique(struct ap_load *l)
{
	struct ap_map *names = ap_map_create(l->ctx->arena);

	for (size_t i = 0; i < l->cells.n; i++) {
		const struct ap_raw_cell *c = &l->cells.v[i];
		bool fresh;

		ap_map_put_str(names, c->c.name, &fresh);
		if (!fresh && *c->c.name)
			ap_load_say(l, AP_CHECK_CELL_UNIQUE, ap_jv_get(c->at, "name"), NULL,
				"cell \"%s\" stands there twice", ap_load_name(l, c->c.name));
	}
}

static void check_cell_known(struct ap_load *l)
{
	struct ap_map *cells = ap_map_create(l->ctx->arena);

	if (l->cells.n == 0 || l->incomplete)
		return;
	for (size_t i = 0; i < l->nodes.n; i++)
		ap_cell_note(cells, l->nodes.v[i].n.cell);
	for (size_t i = 0; i < l->cells.n; i++) {
		const struct ap_raw_cell *c = &l->cells.v[i];

		if (*c->c.name && ap_map_get_str(cells, c->c.name) == AP_NONE)
			ap_load_say(l, AP_CHECK_CELL_KNOWN, ap_jv_get(c->at, "name"), NULL,
				"no operator is in a cell \"%s\"%s", ap_load_name(l, c->c.name),
				ap_cell_meant(l->ctx, cells, c->c.name));
	}
}

static const struct {
	uint64_t needs; /* mask of checks that must not have failed */
	void (*run)(struct ap_load *l);
} checks[] = {
#define CHECK(id, name, level, needs, run, text) {needs, run},
#include "graph/checks.def"
#undef CHECK
};

void ap_load_check(struct ap_load *l, enum ap_check first, enum ap_check last)
{
	for (int c = (int)first; c <= (int)last; c++)
		if (checks[c].run && !(checks[c].needs & l->failed))
			checks[c].run(l);
}
