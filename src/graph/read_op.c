/* SPDX-License-Identifier: Apache-2.0 */
/* Operators as they stand in the document. */
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "graph/load.h"

static const char *const op_keys[] = {"name", "type", "inputs", "outputs", "attrs", "cell",
	"instance", "in_strategy", "out_strategy", "stage", "segment", "recompute", "cross_batch", "fusion",
	"time_s", NULL};

/* Names of the operands; null stands for an optional one left out. */
static bool read_operands(struct ap_load *l, const struct ap_jv *arr, struct ap_raw_node *n)
{
	size_t count = ap_jv_count(arr), at = 0;
	bool sound = true;

	if (count > AP_MAX_OPERAND) {
		ap_load_say(l, AP_CHECK_OPERATOR_INPUTS, arr, n->n.name,
			"%zu operands; at most %d are supported", count, AP_MAX_OPERAND);
		return false;
	}
	n->operand = AP_NEW_N(l->ctx->arena, const char *, count);
	n->slot = AP_NEW_N(l->ctx->arena, uint16_t, count);
	n->in = AP_NEW_N(l->ctx->arena, ap_id, count);
	for (const struct ap_jv *v = ap_jv_first(arr); v; v = ap_jv_next(v), at++) {
		if (ap_jv_type(v) == AP_JNULL)
			continue;
		if (ap_jv_type(v) != AP_JSTRING) {
			ap_load_say(l, AP_CHECK_KEY_TYPE, v, n->n.name,
				"expected the name of a tensor, or null for an operand left out");
			sound = false;
			continue;
		}
		n->slot[n->nin] = (uint16_t)at;
		n->operand[n->nin++] = ap_jv_str(v);
	}
	return sound;
}

static void read_results(struct ap_load *l, const struct ap_jv *arr, struct ap_raw_node *n)
{
	size_t count = ap_jv_count(arr);

	if (count == 0 || count > AP_MAX_OPERAND) {
		ap_load_say(l, AP_CHECK_OPERATOR_OUTPUTS, arr, n->n.name,
			"%zu results are declared; 1 to %d are expected", count, AP_MAX_OPERAND);
		return;
	}
	n->out = AP_NEW_N(l->ctx->arena, ap_id, count);
	for (const struct ap_jv *v = ap_jv_first(arr); v; v = ap_jv_next(v), n->nout++) {
		n->out[n->nout] = (ap_id)l->tensors.n;
		ap_load_read_tensor(l, v, AP_TENSOR_ACT, (ap_id)l->nodes.n, n->nout);
		n->sound &= l->tensors.v[l->tensors.n - 1].sound;
	}
}

static bool read_vector(struct ap_load *l, const struct ap_jv *v, uint8_t *rank, int32_t *cut,
	const char *oper)
{
	int64_t *num;
	size_t n;

	if (ap_jv_type(v) != AP_JARRAY) {
		ap_load_say(l, AP_CHECK_KEY_TYPE, v, oper, "expected an array of integers");
		return false;
	}
	if (!ap_load_ok(l, ap_json_ints(l->ctx, l->doc, v, INT32_MIN, INT32_MAX, &num, &n)))
		return false;
	if (n > AP_MAX_RANK) {
		ap_load_say(l, AP_CHECK_PIN_LENGTH, v, oper, "%zu numbers; at most %d are expected",
			n, AP_MAX_RANK);
		return false;
	}
	*rank = (uint8_t)n;
	for (size_t i = 0; i < n; i++)
		cut[i] = (int32_t)num[i];
	return true;
}

static struct ap_pin read_pin(struct ap_load *l, const struct ap_jv *op, const char *key,
	const char *oper)
{
	const struct ap_jv *arr = NULL;
	struct ap_pin pin = {0};
	uint32_t i = 0;

	if (!ap_load_ok(l, ap_json_opt_arr(l->ctx, l->doc, op, key, &arr)) || !arr)
		return pin;
	pin.v = ap_arena_alloc(l->ctx->arena, ap_jv_count(arr), sizeof *pin.v);
	for (const struct ap_jv *v = ap_jv_first(arr); v; v = ap_jv_next(v), i++)
		if (!read_vector(l, v, &pin.v[i].rank, pin.v[i].cut, oper))
			return (struct ap_pin){0};
	if (i == 0)
		ap_load_say(l, AP_CHECK_PIN_LENGTH, arr, oper,
			"no vectors; one for each operand is expected");
	pin.n = i;
	return pin;
}

static void read_time(struct ap_load *l, const struct ap_jv *op, struct ap_node *n)
{
	static const char *const keys[] = {"forward", "backward", "share", NULL};
	const struct ap_jv *t = NULL;

	n->measured_share = 1;
	if (!ap_load_ok(l, ap_json_opt_obj(l->ctx, l->doc, op, "time_s", &t)) || !t)
		return;
	ap_load_ok(l, ap_json_known(l->ctx, l->doc, t, keys));
	n->measured = ap_load_ok(l, ap_json_get_num(l->ctx, l->doc, t, "forward", 0, 1e9,
		&n->measured_forward_s));
	ap_load_ok(l, ap_json_opt_num(l->ctx, l->doc, t, "backward", 0, 1e9,
		&n->measured_backward_s));
	ap_load_ok(l, ap_json_opt_num(l->ctx, l->doc, t, "share", 1e-9, 1, &n->measured_share));
}

static void read_options(struct ap_load *l, const struct ap_jv *v, struct ap_node *n)
{
	int64_t stage = -1, segment = -1, fusion = -1;
	bool recompute = false;

	ap_load_ok(l, ap_json_opt_str(l->ctx, l->doc, v, "cell", &n->cell));
	ap_load_ok(l, ap_json_opt_str(l->ctx, l->doc, v, "instance", &n->instance));
	ap_load_ok(l, ap_json_opt_int(l->ctx, l->doc, v, "stage", 0, INT32_MAX, &stage));
	ap_load_ok(l, ap_json_opt_int(l->ctx, l->doc, v, "segment", 0, INT32_MAX, &segment));
	ap_load_ok(l, ap_json_opt_int(l->ctx, l->doc, v, "fusion", 0, INT32_MAX, &fusion));
	ap_load_ok(l, ap_json_opt_bool(l->ctx, l->doc, v, "recompute", &recompute));
	ap_load_ok(l, ap_json_opt_bool(l->ctx, l->doc, v, "cross_batch", &n->cross_batch));
	n->recompute = (int8_t)(ap_jv_get(v, "recompute") ? recompute : -1);
	n->stage = (int32_t)stage;
	n->segment = (int32_t)segment;
	n->peer = -1;
	n->in_cell = n->recompute_cell = AP_NONE;
	n->fusion = (int32_t)fusion;
	n->in_pin = read_pin(l, v, "in_strategy", n->name);
	n->out_pin = read_pin(l, v, "out_strategy", n->name);
	read_time(l, v, n);
}

static void read_lists(struct ap_load *l, const struct ap_jv *v, struct ap_raw_node *n)
{
	const struct ap_jv *in = NULL, *out = NULL, *attrs = NULL;

	if (!ap_load_ok(l, ap_json_get_arr(l->ctx, l->doc, v, "inputs", &in)) ||
		!read_operands(l, in, n))
		n->sound = false;
	if (ap_load_ok(l, ap_json_get_arr(l->ctx, l->doc, v, "outputs", &out)))
		read_results(l, out, n);
	if (!n->out) {
		n->sound = false;
		l->incomplete = true;
	}
	if (!ap_load_ok(l, ap_json_opt_obj(l->ctx, l->doc, v, "attrs", &attrs)))
		n->sound = false;
	if (attrs)
		ap_load_read_attrs(l, attrs, &n->n);
}

void ap_load_read_op(struct ap_load *l, const struct ap_jv *v)
{
	struct ap_raw_node n = {.at = v, .sound = true};
	struct ap_ctx *ctx = l->ctx;

	n.n.name = n.n.type = "";
	n.n.param = AP_NONE;
	if (!ap_load_ok(l, ap_json_get_str(ctx, l->doc, v, "name", &n.n.name)))
		n.sound = false;
	else if (!*n.n.name)
		ap_load_say(l, AP_CHECK_NAME_EMPTY, ap_jv_get(v, "name"), NULL,
			"the name of an operator is empty");
	if (ap_jv_type(v) == AP_JOBJECT) {
		n.sound &= ap_load_ok(l, ap_json_get_str(ctx, l->doc, v, "type", &n.n.type));
		ap_load_ok(l, ap_json_known(ctx, l->doc, v, op_keys));
		read_lists(l, v, &n);
		read_options(l, v, &n.n);
	} else {
		l->incomplete = true;
	}
	if (!n.n.cell)
		n.n.cell = ap_graph_cell(ctx, n.n.name);
	AP_PUSH(ctx->scratch, l->nodes, n);
}
