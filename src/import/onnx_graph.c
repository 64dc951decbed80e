/* SPDX-License-Identifier: Apache-2.0 */
#include "import/onnx_graph.h"

#include <assert.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "rule/binding.h"

#define LOSS_CELL "_loss_fn"

/* ---- the loss ---- */

static const struct ap_shape *shape_of(const struct ap_onnx_walk *w, ap_id id)
{
	return &ap_onnx_val(w, id)->shape;
}

static ap_id emit(struct ap_onnx_walk *w, const char *name, const char *type, uint32_t nin, const ap_id *in,
	uint32_t nattr, const struct ap_attr *attr, uint32_t nout)
{
	ap_id id = ap_onnx_emit(w, type, nin, in, nattr, attr, nout);

	if (id != AP_NONE && ap_onnx_maker(w, id)) {
		ap_onnx_maker(w, id)->cell = LOSS_CELL;
		ap_onnx_val(w, id)->name = name;
	}
	return id;
}

static ap_id reduced(struct ap_onnx_walk *w, const char *name, const char *type, ap_id x, bool keep)
{
	return emit(w, name, type, AP_IN(x), AP_ATTRS(AP_INTS_ATTR("axis", (int64_t[]){-1}, 1),
		AP_FLAG_ATTR("keep_dims", keep)), 1);
}

static ap_id wide(struct ap_onnx_walk *w, ap_id x)
{
	return x == AP_NONE || shape_of(w, x)->dtype == AP_FLOAT32
		? x
		: emit(w, "logits.float32", "Cast", AP_IN(x), AP_ATTRS(AP_TEXT_ATTR("dst_type", "float32")),
				1);
}

static ap_id in_shape(struct ap_onnx_walk *w, const char *name, ap_id x, uint8_t rank, const int64_t *dim)
{
	const struct ap_shape *s = shape_of(w, x);

	return s->rank == rank && !memcmp(s->dim, dim, rank * sizeof *dim) ? x
		: emit(w, name, "Reshape", AP_IN(x), AP_ATTRS(AP_INTS_ATTR("shape", dim, rank)), 1);
}

static ap_id expanded(struct ap_onnx_walk *w, ap_id x, ap_id labels)
{
	ap_id on = ap_onnx_scalar(w, AP_FLOAT32, 1), off = ap_onnx_scalar(w, AP_FLOAT32, 0), sum, hot, y;

	x = wide(w, x);
	if (x == AP_NONE)
		return x;
	y = reduced(w, "logits.max", "ReduceMax", x, true);
	y = emit(w, "logits.shifted", "Sub", AP_IN(x, y), AP_NO_ATTRS, 1);
	y = emit(w, "exp", "Exp", AP_IN(y), AP_NO_ATTRS, 1);
	sum = reduced(w, "exp.sum", "ReduceSum", y, true);
	y = emit(w, "softmax", "Div", AP_IN(y, sum), AP_NO_ATTRS, 1);
	hot = emit(w, "one_hot", "OneHot", AP_IN(labels, on, off), AP_ATTRS(
		AP_INT_ATTR("depth", shape_of(w, x)->dim[1]), AP_INTS_ATTR("axis", (int64_t[]){-1}, 1)), 1);
	y = emit(w, "softmax.log", "Log", AP_IN(y), AP_NO_ATTRS, 1);
	y = emit(w, "chosen", "Mul", AP_IN(y, hot), AP_NO_ATTRS, 1);
	y = reduced(w, "likelihood", "ReduceSum", y, false);
	y = emit(w, "losses", "Mul", AP_IN(ap_onnx_scalar(w, AP_FLOAT32, -1), y), AP_NO_ATTRS, 1);
	return reduced(w, "loss", "ReduceMean", y, false);
}

static ap_id by_one_operator(struct ap_onnx_walk *w, ap_id x, ap_id labels)
{
	bool kernel = w->params->loss == AP_ONNX_LOSS_KERNEL;

	x = kernel ? x : wide(w, x);
	x = emit(w, "loss", "SparseSoftmaxCrossEntropyWithLogits", AP_IN(x, labels), AP_NO_ATTRS, 1);
	if (x != AP_NONE && shape_of(w, x)->dtype != AP_FLOAT32) {
		ap_onnx_val(w, x)->name = "loss.narrow";
		x = emit(w, "loss", "Cast", AP_IN(x), AP_ATTRS(AP_TEXT_ATTR("dst_type", "float32")), 1);
	}
	return x;
}

static ap_id by_sums(struct ap_onnx_walk *w, ap_id x, ap_id labels)
{
	ap_id max, sums, log;

	x = wide(w, x);
	max = reduced(w, "logits.max", "ReduceMax", x, false);
	sums = emit(w, "exp.sum", "CrossEntropySums", AP_IN(x, labels, max), AP_NO_ATTRS, 2);
	if (sums == AP_NONE)
		return sums;
	log = emit(w, "sum.log", "Log", AP_IN(sums), AP_NO_ATTRS, 1);
	log = emit(w, "losses", "Sub", AP_IN(log, sums + 1), AP_NO_ATTRS, 1);
	return reduced(w, "loss", "ReduceMean", log, false);
}

/* An input for what the network should have said. */
static ap_id target(struct ap_onnx_walk *w, const char *name, struct ap_shape shape)
{
	ap_id id = ap_onnx_add(w, (struct ap_onnx_val){.kind = AP_ONNX_INPUT, .name = name, .shape = shape,
		.base = AP_NONE, .op = AP_NONE});

	return id;
}

/* The mean of squares of what differs from a target. */
static ap_id by_squares(struct ap_onnx_walk *w, ap_id x)
{
	struct ap_shape s = *shape_of(w, x);

	s.dtype = AP_FLOAT32;
	x = emit(w, "difference", "Sub", AP_IN(wide(w, x), target(w, "target", s)), AP_NO_ATTRS, 1);
	x = emit(w, "squares", "Square", AP_IN(x), AP_NO_ATTRS, 1);
	return emit(w, "loss", "ReduceMean", AP_IN(x), AP_ATTRS(AP_FLAG_ATTR("keep_dims", false)), 1);
}

/* The scores that a softmax at the end is made of: the loss has its own. */
static ap_id scores_of(const struct ap_onnx_walk *w, ap_id x, const char **left)
{
	const struct ap_onnx_made *op = ap_onnx_maker(w, x);

	*left = "";
	if (op && (!strcmp(op->type, "Softmax") || !strcmp(op->type, "LogSoftmax"))) {
		*left = op->type;
		return op->in[0];
	}
	return x;
}

enum ap_status ap_onnx_add_loss(struct ap_onnx_walk *w)
{
	static ap_id (*const ways[])(struct ap_onnx_walk *w, ap_id x, ap_id labels) = {
		[AP_ONNX_LOSS_EXPANDED] = expanded, [AP_ONNX_LOSS_FUSED] = by_one_operator,
		[AP_ONNX_LOSS_KERNEL] = by_one_operator, [AP_ONNX_LOSS_VOCABULARY_PARALLEL] = by_sums};
	const struct ap_where where = {.file = w->model->file};
	struct ap_shape s, labels = {.dtype = AP_INT32};
	const char *left, *what;
	ap_id x, y;
	int64_t rows;

	w->node = NULL;
	w->failed = false;
	if (!w->outputs.n)
		return ap_diag_add(w->ctx->diag, AP_ERROR, AP_MEANING, &where, "onnx-output",
			"has no output that depends on an input");
	x = w->outputs.v[0];
	if (shape_of(w, x)->rank == 0) {
		w->outputs.n = 1;
		return AP_OK; /* the export has a loss of its own */
	}
	x = scores_of(w, x, &left);
	s = *shape_of(w, x);
	while (s.rank > 2 && s.dim[s.rank - 1] == 1) /* pictures of one point */
		s.rank--;
	if (!ap_dtype_is_float(s.dtype))
		return ap_diag_add(w->ctx->diag, AP_ERROR, AP_MEANING, &where, "onnx-output",
			"the first output is no number with a fraction, so that no loss can stand behind it");
	if (s.rank == 2 || s.rank == 3) {
		rows = s.rank == 3 ? s.dim[0] * s.dim[1] : s.dim[0];
		labels.rank = (uint8_t)(s.rank - 1);
		memcpy(labels.dim, s.dim, labels.rank * sizeof *labels.dim);
		if (s.rank == 2 && w->batch_to > 0 && rows > w->batch_to && rows % w->batch_to == 0) {
			labels.rank = 2;
			labels.dim[0] = w->batch_to;
			labels.dim[1] = rows / w->batch_to;
		}
		y = target(w, "label", labels);
		x = in_shape(w, "logits", x, 2, (int64_t[]){rows, s.dim[s.rank - 1]});
		y = in_shape(w, "label.rows", y, 1, &rows);
		y = x == AP_NONE || y == AP_NONE ? AP_NONE : ways[w->params->loss](w, x, y);
		what = "a cross entropy of classes";
	} else {
		y = by_squares(w, x);
		what = "a mean of squares";
	}
	if (y == AP_NONE)
		return ap_diag_add(w->ctx->diag, AP_ERROR, AP_MEANING, &where, "onnx-output",
			"no loss fits behind an output of shape %s",
			ap_shape_text(w->ctx->arena, s.dim, s.rank));
	AP_TRY(ap_diag_add(w->ctx->diag, AP_NOTE, AP_OK, &where, "onnx-loss",
		"%s stands behind the output \"%s\"%s%s%s%s", what,
		ap_diag_name(w->ctx->diag, ap_onnx_val(w, w->outputs.v[0])->name),
		*left ? ", in the place of its " : "", left,
		w->outputs.n > 1 ? "; other outputs are left out" : "", ""));
	w->outputs.v[0] = y;
	w->outputs.n = 1;
	return AP_OK;
}

/* ---- cells ---- */

struct naming {
	struct ap_onnx_walk *w;
	struct ap_import *g;
	struct ap_map *ops, *tensors, *bases;
	AP_VEC(uint32_t) numbers; /* by id of bases */
	const char *layer; /* the layer that the last parameter belongs to */
};

/* The cell of a node's name as torch writes it, "/layer1/layer1.0/conv1/Conv": scopes that repeat the one
 * around them count once. NULL if the name has no scopes. */
static const char *cell_of_name(struct ap_ctx *ctx, const char *name)
{
	const char *end = strrchr(name, '/');
	const char *last = "";
	struct ap_str cell;

	if (*name != '/' || end == name)
		return NULL;
	ap_str_init(&cell, ctx->arena);
	for (const char *s = name + 1; s < end;) {
		size_t len = strcspn(s, "/"), prefix = strlen(last);
		char *part = ap_arena_strndup(ctx->arena, s, len);

		if (prefix && !strncmp(part, last, prefix) && part[prefix] == '.')
			ap_str_add(&cell, part + prefix);
		else
			ap_str_addf(&cell, "%s%s", cell.len ? "." : "", part);
		last = part;
		s += len + (s[len] == '/');
	}
	return cell.s;
}

/* A parameter's name without its last part; NULL if that is all. */
static const char *cell_of_param(struct ap_ctx *ctx, const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && dot > name && !strpbrk(name, "/:")
		? ap_arena_strndup(ctx->arena, name, (size_t)(dot - name))
		: NULL;
}

/* The outermost numbered cell around a cell, "encoder.layer.3"; the cell where none is numbered. */
static const char *layer_of(struct ap_ctx *ctx, const char *cell)
{
	for (const char *s = cell; *s;) {
		size_t len = strcspn(s, ".");

		if (len && strspn(s, "0123456789") >= len && s > cell)
			return ap_arena_strndup(ctx->arena, cell, (size_t)(s - cell) + len);
		s += len + (s[len] == '.');
	}
	return "";
}

static const char *cell_of(struct naming *n, const struct ap_onnx_made *op)
{
	struct ap_ctx *ctx = n->w->ctx;
	const char *cell = op->cell;

	if (!cell && op->node)
		cell = cell_of_name(ctx, op->node->name);
	for (uint32_t i = 0; !cell && i < op->nin; i++) {
		const struct ap_onnx_val *v = op->in[i] == AP_NONE ? NULL : ap_onnx_val(n->w, op->in[i]);

		if (v && v->kind == AP_ONNX_WEIGHT && v->name && (cell = cell_of_param(ctx, v->name)))
			n->layer = layer_of(ctx, cell);
	}
	return cell ? cell : n->layer;
}

/* ---- names ---- */

static const char *unique(struct naming *n, struct ap_map *taken, const char *name)
{
	bool fresh;
	ap_id id;

	(void)ap_map_put_str(taken, name, &fresh);
	while (!fresh) {
		id = ap_map_put_str(n->bases, name, &fresh);
		if (fresh)
			AP_PUSH(n->w->ctx->arena, n->numbers, 1);
		name = ap_arena_printf(n->w->ctx->arena, "%s.%" PRIu32, ap_map_key(n->bases, id, NULL),
			++n->numbers.v[id]);
		(void)ap_map_put_str(taken, name, &fresh);
	}
	return name;
}

static const char *name_of_op(struct naming *n, const struct ap_onnx_made *op, const char *cell)
{
	struct ap_arena *a = n->w->ctx->arena;
	struct ap_str path;

	if (op->node && *op->node->name) {
		const char *name = op->node->name, *last;

		while (*name == '/')
			name++;
		last = strrchr(name, '/');
		last = last ? last + 1 : name;
		/* a step of several, or a chain that is one: its own type */
		if (!strncmp(last, op->node->type, strlen(op->node->type)) &&
			strcmp(op->node->type, op->type))
			return unique(n, n->ops,
				ap_arena_printf(a, "%.*s%s", (int)(last - name), name, op->type));
		return unique(n, n->ops, *name ? name : op->type);
	}
	ap_str_init(&path, a);
	for (const char *s = cell; *s; s++)
		ap_str_addc(&path, *s == '.' ? '/' : *s);
	return unique(n, n->ops, ap_arena_printf(a, "%s%s%s", path.s, path.len ? "/" : "", op->type));
}

static bool is_frozen(const struct ap_onnx_walk *w, const char *name)
{
	for (size_t i = 0; i < w->params->nfrozen; i++)
		if (!fnmatch(w->params->frozen[i], name, 0))
			return true;
	return false;
}

/* The tensor of a value in the graph. One without a name is called after what it belongs to. */
static ap_id tensor_of(struct naming *n, ap_id id, const char *owner, uint32_t number)
{
	struct ap_onnx_val *v = ap_onnx_val(n->w, id);
	struct ap_import_tensor t = {.shaped = true, .shape = v->shape, .read_as = AP_DTYPE_COUNT};

	if (v->tensor != AP_NONE)
		return v->tensor;
	t.name = unique(n, n->tensors, v->name ? v->name
		: ap_arena_printf(n->w->ctx->arena, "%s.%" PRIu32, owner, number));
	switch (v->kind) {
	case AP_ONNX_INPUT:
		t.kind = AP_TENSOR_INPUT;
		t.batch = v->shape.rank && v->shape.dim[0] == n->w->batch_to;
		break;
	case AP_ONNX_WEIGHT:
		t.kind = AP_TENSOR_PARAM;
		t.learned = !v->state && !is_frozen(n->w, t.name);
		break;
	case AP_ONNX_CONST:
		t.kind = AP_TENSOR_CONST;
		break;
	default:
		t.kind = AP_TENSOR_ACT;
	}
	AP_PUSH(n->w->ctx->arena, n->g->tensors, t);
	return v->tensor = (ap_id)(n->g->tensors.n - 1);
}

static void add_op(struct naming *n, const struct ap_onnx_made *from)
{
	struct ap_arena *a = n->w->ctx->arena;
	struct ap_import_op op = {.type = from->type,
		.nin = from->nin,
		.nout = from->nout,
		.attrs = from->attrs,
		.stage = -1,
		.segment = -1,
		.fusion = -1,
		.recompute = -1};
	ap_id *in = AP_NEW_N(a, ap_id, from->nin + 1);

	op.cell = cell_of(n, from);
	op.name = name_of_op(n, from, op.cell);
	if (!*op.cell)
		op.cell = NULL;
	for (uint32_t i = 0; i < from->nin; i++)
		in[i] = from->in[i] == AP_NONE ? AP_NONE : tensor_of(n, from->in[i], op.name, i);
	op.in = in;
	op.out = ap_onnx_val(n->w, from->out)->tensor; /* the others follow it */
	AP_PUSH(a, n->g->ops, op);
}

/* Is it a name that somebody gave to a network, and not one that exporters give to all of them? */
static bool says_something(const char *name)
{
	static const char *const all[] = {
		"", "torch_jit", "torch-jit-export", "main_graph", "main", "tf2onnx", "graph"};

	for (size_t i = 0; i < AP_COUNT(all); i++)
		if (!strcmp(all[i], name))
			return false;
	return true;
}

/* Reserves the names of the model, then all results in a row, as operators want theirs. */
enum ap_status ap_onnx_graph_make(struct ap_onnx_walk *w, struct ap_import *out)
{
	struct ap_arena *a = w->ctx->arena;
	struct naming n = {.w = w, .g = out, .ops = ap_map_create(a), .tensors = ap_map_create(a),
		.bases = ap_map_create(a), .layer = ""};
	const char *name = ap_file_base(w->model->file);
	size_t len = strcspn(name, ".");

	*out = (struct ap_import){.name = says_something(w->model->graph.name) ? w->model->graph.name
		: ap_arena_strndup(a, name, len ? len : 1)};
	ap_onnx_drop_unread(w);
	AP_RESERVE(a, out->tensors, w->vals.n);
	AP_RESERVE(a, out->ops, w->ops.n);
	for (size_t i = 0; i < w->ops.n; i++)
		if (!w->ops.v[i].gone)
			for (uint32_t k = 0; k < w->ops.v[i].nout; k++)
				(void)tensor_of(&n, w->ops.v[i].out + k, w->ops.v[i].type, (uint32_t)i);
	for (size_t i = 0; i < w->ops.n; i++)
		if (!w->ops.v[i].gone)
			add_op(&n, &w->ops.v[i]);
	for (size_t i = 0; i < w->outputs.n; i++)
		AP_PUSH(a, out->outputs, ap_onnx_val(w, w->outputs.v[i])->tensor);
	if (!out->ops.n)
		return ap_diag_add(w->ctx->diag, AP_ERROR, AP_MEANING,
			&(struct ap_where){.file = w->model->file}, "onnx-output",
			"computes nothing from its inputs");
	return AP_OK;
}
