/* SPDX-License-Identifier: Apache-2.0 */
#include "import/onnx_read.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"

enum {
	WINDOW_BYTES = 64 << 10,
	MOST_NAME = 64 << 10,
	MOST_RAW = 8 * AP_ONNX_MOST_VALUES, /* bytes of a tensor that are kept */
	MOST_NESTED = 16, /* graphs */
	MOST_RANK = 64
};

enum wire_type { VARINT, FIXED64, BYTES, GROUP, GROUP_END, FIXED32 };

struct wire {
	struct ap_ctx *ctx;
	const struct ap_onnx_source *from;
	int fd; /* -1: text */
	uint64_t size, at; /* of the file; the next byte */
	uint64_t start, held; /* what the window holds */
	unsigned char *window;
	size_t kept;
	int depth; /* graphs around */
	enum ap_status status;
};

struct field {
	uint32_t number;
	enum wire_type type;
	uint64_t value; /* of what is not BYTES */
	uint64_t end; /* of the field */
	uint64_t stop; /* of the message */
};

static void __attribute__((format(printf, 3, 4)))
fail(struct wire *w, enum ap_status st, const char *fmt, ...)
{
	va_list ap;

	if (w->status != AP_OK)
		return;
	va_start(ap, fmt);
	w->status = ap_diag_addv(w->ctx->diag, AP_ERROR, st, &(struct ap_where){.file = w->from->file}, NULL,
		fmt, ap);
	va_end(ap);
}

/* Fills the window from the next byte on. */
static void fill(struct wire *w)
{
	size_t got = 0;

	while (got < WINDOW_BYTES) {
		ssize_t n = pread(w->fd, w->window + got, WINDOW_BYTES - got, (off_t)(w->at + got));

		if (n == 0)
			break;
		if (n > 0) {
			got += (size_t)n;
		} else if (errno != EINTR) {
			fail(w, AP_IO, "cannot read: %s", strerror(errno));
			break;
		}
	}
	w->start = w->at;
	w->held = got;
}

/* Copies the next bytes; the caller knows that they are within the message. */
static void take(struct wire *w, void *into, size_t n)
{
	char *to = into;

	while (n && w->status == AP_OK) {
		size_t part;

		if (w->at < w->start || w->at >= w->start + w->held) {
			fill(w);
			if (!w->held)
				fail(w, AP_IO, "changed while it was read");
		}
		if (w->status != AP_OK)
			break;
		part = (size_t)(w->start + w->held - w->at);
		part = part < n ? part : n;
		memcpy(to, w->window + (w->at - w->start), part);
		w->at += part;
		to += part;
		n -= part;
	}
	memset(to, 0, n);
}

static uint64_t varint(struct wire *w, uint64_t stop)
{
	uint64_t value = 0, from = w->at;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		unsigned char byte = 0;

		if (w->at >= stop) {
			fail(w, AP_SYNTAX, "ends within a number at byte %" PRIu64 ": the file is cut, or no "
				"model of ONNX", w->at);
			return 0;
		}
		take(w, &byte, 1);
		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	fail(w, AP_SYNTAX, "has a number of more than 64 bits at byte %" PRIu64 "; it is no model of ONNX",
		from);
	return 0;
}

static uint64_t fixed(struct wire *w, uint64_t stop, size_t bytes)
{
	unsigned char b[8] = {0};
	uint64_t value = 0;

	if (stop - w->at < bytes) {
		fail(w, AP_SYNTAX,
			"ends within a number at byte %" PRIu64 ": the file is cut, or no model of "
			"ONNX",
			w->at);
		return 0;
	}
	take(w, b, bytes);
	for (size_t i = 0; i < bytes; i++)
		value |= (uint64_t)b[i] << (8 * i);
	return value;
}

static struct field message(const struct wire *w, uint64_t stop)
{
	return (struct field){.end = w->at, .stop = stop};
}

/* The next field of a message. What the last one had and nobody read is skipped. False at the end, or if
 * anything failed. */
static bool next(struct wire *w, struct field *f)
{
	uint64_t tag, len;

	if (w->status != AP_OK)
		return false;
	w->at = f->end;
	if (w->at >= f->stop)
		return false;
	tag = varint(w, f->stop);
	f->number = tag >> 3 > UINT32_MAX ? UINT32_MAX : (uint32_t)(tag >> 3);
	f->type = (enum wire_type)(tag & 7);
	f->value = 0;
	switch (f->type) {
	case VARINT:
		f->value = varint(w, f->stop);
		break;
	case FIXED64:
		f->value = fixed(w, f->stop, 8);
		break;
	case FIXED32:
		f->value = fixed(w, f->stop, 4);
		break;
	case BYTES:
		len = varint(w, f->stop);
		if (w->status == AP_OK && len > f->stop - w->at)
			fail(w, AP_SYNTAX, "has a field of %" PRIu64 " bytes at byte %" PRIu64 ", where %"
				PRIu64 " are left: the file is cut, or no model of ONNX", len, w->at,
				f->stop - w->at);
		f->end = w->at + len;
		break;
	default:
		fail(w, AP_SYNTAX,
			"has a field of an unknown kind at byte %" PRIu64 "; it is no model of ONNX",
			w->at);
	}
	if (f->type != BYTES)
		f->end = w->at;
	if (w->status == AP_OK && !f->number)
		fail(w, AP_SYNTAX, "has a field without a number at byte %" PRIu64 "; it is no model of ONNX",
			w->at);
	return w->status == AP_OK;
}

/* Accounts for what is kept. */
static bool keep(struct wire *w, size_t bytes)
{
	w->kept += bytes;
	if (w->kept > w->from->most)
		fail(w, AP_LIMIT, "larger than the limit of %zu bytes, without the weights", w->from->most);
	return w->status == AP_OK;
}

static const char *text(struct wire *w, const struct field *f)
{
	uint64_t len = f->end - w->at;
	size_t bad;
	char *s;

	if (f->type != BYTES)
		return "";
	if (len > MOST_NAME) {
		fail(w, AP_SYNTAX, "has a name of %" PRIu64 " bytes at byte %" PRIu64 "; at most %d are "
			"expected", len, w->at, MOST_NAME);
		return "";
	}
	if (!keep(w, (size_t)len + 1))
		return "";
	s = ap_arena_alloc(w->ctx->arena, (size_t)len + 1, 1);
	take(w, s, (size_t)len);
	if (w->status == AP_OK && (!ap_str_utf8(s, (size_t)len, &bad) || strlen(s) != len))
		fail(w, AP_SYNTAX, "has a name that is not UTF-8 before byte %" PRIu64, w->at);
	return w->status == AP_OK ? s : "";
}

struct ints {
	int64_t *v;
	size_t n, cap;
};

struct reals {
	double *v;
	size_t n, cap;
};

struct texts {
	const char **v;
	size_t n, cap;
};

/* Repeated integers, packed or not; above `most`, their number alone is right. */
static void add_ints(struct wire *w, const struct field *f, size_t most, struct ints *out)
{
	if (f->type == VARINT && ++out->n <= most) {
		out->n--;
		AP_PUSH(w->ctx->arena, *out, (int64_t)f->value);
	}
	while (f->type == BYTES && w->status == AP_OK && w->at < f->end) {
		int64_t v;

		if (out->n >= most) {
			out->n = SIZE_MAX / 2; /* the rest is skipped by its length */
			return;
		}
		v = (int64_t)varint(w, f->end);
		AP_PUSH(w->ctx->arena, *out, v);
	}
}

static double real(uint64_t bits, size_t bytes)
{
	uint32_t narrow = (uint32_t)bits;
	double d;
	float f;

	if (bytes == 4) {
		memcpy(&f, &narrow, sizeof f);
		return f;
	}
	memcpy(&d, &bits, sizeof d);
	return d;
}

static void add_reals(struct wire *w, const struct field *f, size_t bytes, size_t most, struct reals *out)
{
	if (f->type == FIXED32 || f->type == FIXED64) {
		if (out->n < most)
			AP_PUSH(w->ctx->arena, *out, real(f->value, bytes));
		return;
	}
	while (f->type == BYTES && w->status == AP_OK && w->at < f->end) {
		double v;

		if (out->n >= most || (f->end - w->at) / bytes > most) {
			out->n = SIZE_MAX / 2; /* the rest is skipped by its length */
			return;
		}
		v = real(fixed(w, f->end, bytes), bytes);
		AP_PUSH(w->ctx->arena, *out, v);
	}
}

/* ---- tensors ---- */

static double half(uint16_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double v = exponent == 31 ? (fraction ? NAN : INFINITY)
		: exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);

	return bits >> 15 ? -v : v;
}

static double brain(uint16_t bits)
{
	return real((uint64_t)bits << 16, 4);
}

/* Numbers of TensorProto.DataType. */
enum {
	FLOAT = 1, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE, UINT32, UINT64,
	COMPLEX64, COMPLEX128, BFLOAT16
};

static const struct { /* how a type lies in raw_data */
	uint8_t bytes;
	bool real, is_signed;
} layouts[] = {
	[FLOAT] = {4, true, true}, [UINT8] = {1, false, false}, [INT8] = {1, false, true},
	[UINT16] = {2, false, false}, [INT16] = {2, false, true}, [INT32] = {4, false, true},
	[INT64] = {8, false, true}, [BOOL] = {1, false, false}, [FLOAT16] = {2, true, true},
	[DOUBLE] = {8, true, true}, [UINT32] = {4, false, false}, [UINT64] = {8, false, true},
	[BFLOAT16] = {2, true, true},
};

struct contents { /* of a tensor, as far as it is kept */
	unsigned char *raw;
	size_t nraw;
	struct ints ints; /* int32_data, int64_data, uint64_data */
	struct reals reals; /* float_data, double_data */
	uint64_t at; /* of raw_data */
	bool elsewhere;
};

static double real_of_bits(uint64_t bits, int64_t type)
{
	return type == FLOAT16 ? half((uint16_t)bits) : type == BFLOAT16 ? brain((uint16_t)bits)
		: real(bits, layouts[type].bytes);
}

static int64_t int_of_bits(uint64_t bits, int64_t type)
{
	unsigned unused = 64 - 8u * layouts[type].bytes;
	uint64_t sign = UINT64_C(1) << (63 - unused);

	return layouts[type].is_signed && unused && (bits & sign) ? (int64_t)(bits - 2 * sign)
									: (int64_t)bits;
}

/* Makes values of a tensor's contents, where all are there. */
static const struct ap_onnx_numbers *numbers_of(struct wire *w, const struct ap_onnx_tensor *t,
	const struct contents *c)
{
	struct ap_onnx_numbers *out;
	int64_t count, *ints;
	double *reals;
	size_t bytes;

	if (c->elsewhere || t->type < 1 || t->type > BFLOAT16 || !layouts[t->type].bytes ||
		!ap_product(t->dim, t->rank, &count) || count < 0 || count > AP_ONNX_MOST_VALUES)
		return NULL;
	bytes = layouts[t->type].bytes;
	out = AP_NEW(w->ctx->arena, struct ap_onnx_numbers);
	ints = AP_NEW_N(w->ctx->arena, int64_t, count + 1);
	reals = AP_NEW_N(w->ctx->arena, double, count + 1);
	out->n = (uint32_t)count;
	for (size_t i = 0; i < (size_t)count; i++) {
		uint64_t bits = 0;

		if (c->raw) {
			if (c->nraw != (size_t)count * bytes)
				return NULL;
			for (size_t k = 0; k < bytes; k++)
				bits |= (uint64_t)c->raw[i * bytes + k] << (8 * k);
		} else if (c->reals.n == (size_t)count) {
			reals[i] = c->reals.v[i];
			continue;
		} else if (c->ints.n == (size_t)count) {
			bits = (uint64_t)c->ints.v[i];
			bits &= bytes < 8 ? (UINT64_C(1) << (8 * bytes)) - 1 : UINT64_MAX;
		} else {
			return NULL;
		}
		if (layouts[t->type].real)
			reals[i] = real_of_bits(bits, t->type);
		else
			ints[i] = int_of_bits(bits, t->type);
	}
	if (layouts[t->type].real)
		out->f = reals;
	else
		out->i = ints;
	return keep(w, out->n * sizeof *ints) ? out : NULL;
}

static void tensor(struct wire *w, const struct field *in, struct ap_onnx_tensor *out)
{
	struct field f = message(w, in->end);
	struct contents c = {0};
	struct ints dims = {0};

	*out = (struct ap_onnx_tensor){.name = ""};
	while (next(w, &f)) {
		switch (f.number) {
		case 1:
			add_ints(w, &f, MOST_RANK, &dims);
			break;
		case 2:
			out->type = (int64_t)f.value;
			break;
		case 4:
			add_reals(w, &f, 4, AP_ONNX_MOST_VALUES, &c.reals);
			break;
		case 5:
		case 7:
		case 11:
			add_ints(w, &f, AP_ONNX_MOST_VALUES, &c.ints);
			break;
		case 8:
			out->name = text(w, &f);
			break;
		case 9:
			c.at = f.type == BYTES ? w->at : 0;
			if (f.type == BYTES && f.end - w->at <= MOST_RAW && keep(w, f.end - w->at)) {
				c.nraw = (size_t)(f.end - w->at);
				c.raw = ap_arena_alloc(w->ctx->arena, c.nraw + 1, 1);
				take(w, c.raw, c.nraw);
			} else {
				c.elsewhere = true;
			}
			break;
		case 10:
			add_reals(w, &f, 8, AP_ONNX_MOST_VALUES, &c.reals);
			break;
		case 14:
			c.elsewhere |= f.value == 1;
			break;
		default:
			break;
		}
	}
	if (dims.n > MOST_RANK)
		fail(w, AP_MEANING, "tensor \"%s\" has more than %d dimensions",
			ap_diag_name(w->ctx->diag, out->name), MOST_RANK);
	out->rank = dims.n > MOST_RANK ? 0 : (uint32_t)dims.n;
	out->dim = dims.v;
	if (w->status == AP_OK)
		out->values = numbers_of(w, out, &c);
	out->at = c.at;
}

/* ---- graphs ---- */

static void graph(struct wire *w, const struct field *in, struct ap_onnx_graph *out);

static void attribute(struct wire *w, const struct field *in, struct ap_onnx_attr *out)
{
	struct field f = message(w, in->end);
	struct ap_onnx_graph *g;
	struct ap_onnx_tensor *t;
	struct reals reals = {0};
	struct ints ints = {0};

	*out = (struct ap_onnx_attr){.name = ""};
	while (next(w, &f)) {
		switch (f.number) {
		case 1:
			out->name = text(w, &f);
			break;
		case 2:
			out->f = real(f.value, 4);
			break;
		case 3:
			out->i = (int64_t)f.value;
			break;
		case 4:
			/* bytes that may be no text, such as a kernel's program */
			if (f.type == BYTES && f.end - w->at <= MOST_NAME && keep(w, f.end - w->at)) {
				char *s = ap_arena_alloc(w->ctx->arena, f.end - w->at + 1, 1);

				take(w, s, f.end - w->at);
				out->s = s;
			}
			break;
		case 5:
			t = AP_NEW(w->ctx->arena, struct ap_onnx_tensor);
			tensor(w, &f, t);
			out->tensor = t;
			break;
		case 6:
			if (w->depth >= MOST_NESTED) {
				fail(w, AP_LIMIT,
					"has graphs in graphs, %d deep, at byte %" PRIu64 "; at most %d "
					"are expected",
					w->depth + 1, w->at, MOST_NESTED);
				break;
			}
			g = AP_NEW(w->ctx->arena, struct ap_onnx_graph);
			w->depth++;
			graph(w, &f, g);
			w->depth--;
			out->graph = g;
			break;
		case 7:
			add_reals(w, &f, 4, AP_ONNX_MOST_VALUES, &reals);
			break;
		case 8:
			add_ints(w, &f, AP_ONNX_MOST_VALUES, &ints);
			break;
		case 21:
			out->of = text(w, &f);
			break;
		default:
			break;
		}
	}
	if (ints.n <= AP_ONNX_MOST_VALUES && keep(w, ints.n * sizeof *ints.v)) {
		out->nints = (uint32_t)ints.n;
		out->ints = ints.v;
	}
	if (reals.n <= AP_ONNX_MOST_VALUES && keep(w, reals.n * sizeof *reals.v)) {
		out->nfloats = (uint32_t)reals.n;
		out->floats = reals.v;
	}
}

struct attrs {
	struct ap_onnx_attr *v;
	size_t n, cap;
};

/* The cell of a node, of torch's list of scopes: "['', 'layer1', 'layer1.0.conv1', 'conv2d_3']". */
static const char *cell_of_scopes(struct wire *w, const char *scopes)
{
	const char *part[2] = {"", ""}; /* the last but one, the last */
	size_t len[2] = {0, 0};

	while ((scopes = strchr(scopes, '\''))) {
		const char *end = strchr(scopes + 1, '\'');

		if (!end)
			break;
		part[0] = part[1];
		len[0] = len[1];
		part[1] = scopes + 1;
		len[1] = (size_t)(end - scopes - 1);
		scopes = end + 1;
	}
	return ap_arena_strndup(w->ctx->arena, part[0], len[0]);
}

/* StringStringEntryProto */
static void entry(struct wire *w, const struct field *in, const char **key, const char **value)
{
	struct field f = message(w, in->end);

	*key = *value = "";
	while (next(w, &f))
		if (f.number == 1)
			*key = text(w, &f);
		else if (f.number == 2 && !strcmp(*key, "pkg.torch.onnx.name_scopes"))
			*value = text(w, &f);
}

static void node(struct wire *w, const struct field *in, struct ap_onnx_node *out)
{
	struct field f = message(w, in->end);
	struct texts ins = {0}, outs = {0};
	struct attrs attrs = {0};
	struct ap_onnx_attr attr;
	const char *key, *value;

	*out = (struct ap_onnx_node){.name = "", .type = "", .domain = ""};
	while (next(w, &f)) {
		switch (f.number) {
		case 1:
			AP_PUSH(w->ctx->arena, ins, text(w, &f));
			break;
		case 2:
			AP_PUSH(w->ctx->arena, outs, text(w, &f));
			break;
		case 3:
			out->name = text(w, &f);
			break;
		case 4:
			out->type = text(w, &f);
			break;
		case 5:
			attribute(w, &f, &attr);
			if (keep(w, sizeof attr))
				AP_PUSH(w->ctx->arena, attrs, attr);
			break;
		case 7:
			out->domain = text(w, &f);
			break;
		case 9:
			entry(w, &f, &key, &value);
			if (*value)
				out->cell = cell_of_scopes(w, value);
			break;
		default:
			break;
		}
	}
	if (!strcmp(out->domain, "ai.onnx"))
		out->domain = "";
	out->nin = (uint32_t)ins.n;
	out->in = ins.v;
	out->nout = (uint32_t)outs.n;
	out->out = outs.v;
	out->nattr = (uint32_t)attrs.n;
	out->attr = attrs.v;
}

static void nodes(struct wire *w, const struct field *f, struct ap_onnx_nodes *out)
{
	struct ap_onnx_node n;

	node(w, f, &n);
	if (keep(w, sizeof n))
		AP_PUSH(w->ctx->arena, *out, n);
}

struct dims {
	struct ap_onnx_dim *v;
	size_t n, cap;
};

/* TensorShapeProto */
static void shape(struct wire *w, const struct field *in, struct dims *out)
{
	struct field f = message(w, in->end);

	while (next(w, &f)) {
		struct ap_onnx_dim d = {.length = -1};

		if (f.number == 1 && f.type == BYTES) {
			struct field g = message(w, f.end);

			while (next(w, &g))
				if (g.number == 1)
					d.length = (int64_t)g.value;
				else if (g.number == 2)
					d.symbol = text(w, &g);
			if (keep(w, sizeof d))
				AP_PUSH(w->ctx->arena, *out, d);
		}
	}
}

/* ValueInfoProto with its TypeProto of a tensor. */
static void value(struct wire *w, const struct field *in, struct ap_onnx_values *out)
{
	struct field f = message(w, in->end);
	struct ap_onnx_value v = {.name = ""};
	struct dims dims = {0};

	while (next(w, &f)) {
		if (f.number == 1)
			v.name = text(w, &f);
		if (f.number == 2 && f.type == BYTES) {
			struct field type = message(w, f.end);

			while (next(w, &type)) {
				struct field t = message(w, type.end);

				if (type.number != 1 || type.type != BYTES)
					continue;
				while (next(w, &t))
					if (t.number == 1) {
						v.type = (int64_t)t.value;
					} else if (t.number == 2 && t.type == BYTES) {
						v.shaped = true;
						shape(w, &t, &dims);
					}
			}
		}
	}
	v.rank = (uint32_t)dims.n;
	v.dim = dims.v;
	if (keep(w, sizeof v))
		AP_PUSH(w->ctx->arena, *out, v);
}

static void graph(struct wire *w, const struct field *in, struct ap_onnx_graph *out)
{
	struct field f = message(w, in->end);
	struct ap_onnx_tensor t;

	*out = (struct ap_onnx_graph){.name = ""};
	while (next(w, &f)) {
		if (f.type != BYTES)
			continue;
		switch (f.number) {
		case 1:
			nodes(w, &f, &out->nodes);
			break;
		case 2:
			out->name = text(w, &f);
			break;
		case 5:
			tensor(w, &f, &t);
			if (keep(w, sizeof t))
				AP_PUSH(w->ctx->arena, out->initializers, t);
			break;
		case 11:
			value(w, &f, &out->inputs);
			break;
		case 12:
			value(w, &f, &out->outputs);
			break;
		case 13:
			value(w, &f, &out->values);
			break;
		default:
			break;
		}
	}
}

static void function(struct wire *w, const struct field *in, struct ap_onnx_function *out)
{
	struct field f = message(w, in->end);
	struct texts ins = {0}, outs = {0};
	struct attrs attrs = {0};
	struct ap_onnx_attr attr;

	*out = (struct ap_onnx_function){.name = "", .domain = ""};
	while (next(w, &f)) {
		switch (f.number) {
		case 1:
			out->name = text(w, &f);
			break;
		case 4:
			AP_PUSH(w->ctx->arena, ins, text(w, &f));
			break;
		case 5:
			AP_PUSH(w->ctx->arena, outs, text(w, &f));
			break;
		case 7:
			nodes(w, &f, &out->nodes);
			break;
		case 10:
			out->domain = text(w, &f);
			break;
		case 11:
			attribute(w, &f, &attr);
			if (keep(w, sizeof attr))
				AP_PUSH(w->ctx->arena, attrs, attr);
			break;
		default:
			break;
		}
	}
	out->nin = (uint32_t)ins.n;
	out->in = ins.v;
	out->nout = (uint32_t)outs.n;
	out->out = outs.v;
	out->nattr = (uint32_t)attrs.n;
	out->attr = attrs.v;
}

/* OperatorSetIdProto: the version of ai.onnx. */
static void opset(struct wire *w, const struct field *in, int64_t *version)
{
	struct field f = message(w, in->end);
	const char *domain = "";
	int64_t v = 0;

	while (next(w, &f))
		if (f.number == 1)
			domain = text(w, &f);
		else if (f.number == 2)
			v = (int64_t)f.value;
	if (!*domain || !strcmp(domain, "ai.onnx"))
		*version = v;
}

static void model(struct wire *w, struct ap_onnx *out)
{
	struct field f = message(w, w->size);
	struct ap_onnx_function fn;
	bool any = false;

	while (next(w, &f)) {
		switch (f.number) {
		case 1:
			out->ir_version = (int64_t)f.value;
			break;
		case 2:
			out->producer = text(w, &f);
			break;
		case 7:
			if (f.type != BYTES)
				break;
			any = true;
			graph(w, &f, &out->graph);
			break;
		case 8:
			opset(w, &f, &out->opset);
			break;
		case 25:
			function(w, &f, &fn);
			if (keep(w, sizeof fn))
				AP_PUSH(w->ctx->arena, out->functions, fn);
			break;
		default:
			break;
		}
	}
	if (w->status == AP_OK && !any)
		fail(w, AP_SYNTAX, "has no graph: the file is cut, or no model of ONNX");
}

static void open_file(struct wire *w)
{
	struct stat st;

	w->fd = open(
		w->from->file, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* does not wait for a FIFO's writer */
	if (w->fd < 0 || fstat(w->fd, &st))
		fail(w, AP_IO, "cannot open: %s", strerror(errno));
	else if (!S_ISREG(st.st_mode))
		fail(w, AP_IO, "is not a regular file (use - for standard input)");
	else
		w->size = (uint64_t)st.st_size;
}

/* Element i of a tensor; false if it cannot be read. */
static bool element(struct wire *w, const struct ap_onnx_tensor *t, uint64_t i, unsigned char *out)
{
	size_t bytes = layouts[t->type].bytes;

	if (t->at > w->size || (w->size - t->at) / bytes <= i)
		return false;
	w->at = t->at + i * bytes;
	if (w->at < w->start || w->at + bytes > w->start + w->held) {
		if (w->fd < 0 || pread(w->fd, out, bytes, (off_t)w->at) != (ssize_t)bytes)
			return false;
		return true;
	}
	memcpy(out, w->window + (w->at - w->start), bytes);
	return true;
}

bool ap_onnx_is_turned(struct ap_ctx *ctx, const struct ap_onnx_source *from, const struct ap_onnx_tensor *a,
	const struct ap_onnx_tensor *b)
{
	enum { SAMPLES = 64 };
	static const uint64_t step = 2654435761u; /* a prime beyond any row */
	struct wire w = {.ctx = ctx, .from = from, .fd = -1, .size = from->len};
	unsigned char x[8] = {0}, y[8] = {0}, first[8] = {0};
	uint64_t count;
	bool same, differ = false;

	if (a->rank != 2 || b->rank != 2 || a->type != b->type || !a->at || !b->at || a->type < 1 ||
		a->type > BFLOAT16 || !layouts[a->type].bytes || a->dim[0] < 1 || a->dim[1] < 1 ||
		a->dim[0] > INT32_MAX || a->dim[1] > INT32_MAX || a->dim[0] != b->dim[1] ||
		a->dim[1] != b->dim[0])
		return false;
	if (from->text) {
		w.window = (unsigned char *)(uintptr_t)from->text;
		w.held = from->len;
	} else {
		open_file(&w);
	}
	count = (uint64_t)a->dim[0] * (uint64_t)a->dim[1];
	same = w.status == AP_OK;
	for (uint64_t i = 0; same && i < SAMPLES; i++) {
		uint64_t at = i * step % count, row = at / (uint64_t)a->dim[1],
			 column = at % (uint64_t)a->dim[1];

		same = element(&w, a, at, x) && element(&w, b, column * (uint64_t)b->dim[1] + row, y) &&
			!memcmp(x, y, sizeof x);
		if (i == 0)
			memcpy(first, x, sizeof x);
		differ |= memcmp(first, x, sizeof x) != 0;
	}
	if (w.fd >= 0)
		close(w.fd);
	return same && differ;
}

static void read_all(void *user)
{
	struct wire *w = ((void **)user)[0];

	model(w, ((void **)user)[1]);
}

static void close_file(void *user)
{
	struct wire *w = ((void **)user)[0];

	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

enum ap_status ap_onnx_read(struct ap_ctx *ctx, const struct ap_onnx_source *from, struct ap_onnx *out)
{
	struct wire w = {.ctx = ctx, .from = from, .fd = -1, .size = from->len};
	void *both[] = {&w, out};
	struct ap_refusal refusal;
	bool room;

	*out = (struct ap_onnx){.file = from->file, .producer = ""};
	if (from->text) {
		/* the window is the text itself, which nobody writes to */
		w.window = (unsigned char *)(uintptr_t)from->text;
		w.held = from->len;
	} else {
		open_file(&w);
		w.window = w.status == AP_OK ? ap_arena_alloc_raw(ctx->scratch, WINDOW_BYTES, 1) : NULL;
	}
	room = w.status != AP_OK || ap_arena_try(ctx->arena, read_all, close_file, both, &refusal);
	close_file(both);
	if (!room)
		ap_arena_refuse(&refusal);
	return w.status;
}

/* A varint within len bytes; false if it is cut. */
static bool short_varint(const char *s, size_t len, size_t *at, uint64_t *v)
{
	*v = 0;
	for (unsigned shift = 0; *at < len && shift < 64; shift += 7) {
		unsigned char byte = (unsigned char)s[(*at)++];

		*v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

bool ap_onnx_begins(const char *text, size_t len)
{
	/* The fields of a model come in their order from any tool: a version, a number; texts that name the
	 * tool; the graph. Operator sets (8) may stand before it. */
	uint64_t tag, v;
	size_t at = 0;
	bool versioned = false;

	while (at < len) {
		if (!short_varint(text, len, &at, &tag))
			return false;
		if (tag == (7 << 3 | BYTES) || tag == (8 << 3 | BYTES))
			return versioned;
		if (!short_varint(text, len, &at, &v))
			return false;
		if (tag == (1 << 3 | VARINT)) {
			if (v < 1 || v > 1000)
				return false;
			versioned = true;
		} else if (tag == (2 << 3 | BYTES) || tag == (3 << 3 | BYTES) || tag == (4 << 3 | BYTES) ||
			tag == (6 << 3 | BYTES)) {
			if (v > len - at)
				return versioned && tag == (6 << 3 | BYTES);
			at += (size_t)v;
		} else if (tag != (5 << 3 | VARINT)) {
			return false;
		}
	}
	return false;
}
