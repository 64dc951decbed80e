/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a dump: header, parameters, sub-graphs, and comments with data. */
#include "import/ir_parse.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/foreign.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "import/ir_read.h"
#include "import/ir_value.h"

struct parse {
	struct ap_ir_read r;
	struct ap_ir *ir;
	struct {
		struct ap_ir_node *v;
		size_t n, most;
	} nodes; /* of all sub-graphs, in order */
	struct ap_ir_func *func; /* open sub-graph, or NULL */
	struct ap_map *names; /* of sub-graphs */
	bool commenting; /* inside a multi-line comment */
	bool partial;
};

enum { COMMENT_INDENT = 8 };

const struct ap_ir_value *ap_ir_attr(const struct ap_ir_attrs *attrs, const char *key)
{
	for (size_t i = 0; i < attrs->n; i++)
		if (!strcmp(attrs->v[i].key, key))
			return &attrs->v[i].value;
	return NULL;
}

const struct ap_ir_node *ap_ir_node(const struct ap_ir_func *f, int64_t id)
{
	size_t lo = 0, hi = f->nodes.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (f->nodes.v[mid].id == id)
			return &f->nodes.v[mid];
		if (f->nodes.v[mid].id >= 0 && f->nodes.v[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

size_t ap_ir_most_bytes(const struct ap_ir *ir)
{
	return AP_IR_SPARE_BYTES + AP_IR_MOST_COPIES * ir->bytes;
}

static void open_func(struct parse *p, const char *name)
{
	struct ap_ir_func f = {.line = p->r.line, .name = name, .nodes.v = p->nodes.v + p->nodes.n};

	AP_PUSH(p->r.ctx->arena, p->ir->funcs, f);
	p->func = &p->ir->funcs.v[p->ir->funcs.n - 1];
}

/* Detects a second piece without header. told: was this seen before? */
static bool begins_anew(struct parse *p, bool told)
{
	if (!told || p->ir->headed)
		return false;
	p->ir->anew = p->r.line;
	p->r.p = p->r.end;
	return true;
}

/* Reads " parent: [subgraph @outer](%para1_x, %para2_y) {". */
static bool read_func_params(struct parse *p)
{
	struct ap_ir_read *r = &p->r;
	AP_VEC(const char *) params = {0};
	struct ap_ir_value v;

	ap_ir_blanks(r);
	if (ap_ir_take(r, "parent:"))
		ap_ir_pass(r, "(");
	if (!ap_ir_need(r, "("))
		return false;
	while (!ap_ir_take(r, ")")) {
		ap_ir_space(r);
		if (params.n && ap_ir_take(r, ","))
			ap_ir_space(r);
		if (!ap_ir_at(r, "%para"))
			return ap_ir_expected(r, "a parameter of the sub-graph");
		if (!ap_ir_read_value(r, true, &v))
			return false;
		AP_PUSH(r->ctx->arena, params, v.s);
		p->func->bytes += strlen(v.s);
		ap_ir_blanks(r);
	}
	p->func->nparam = (uint32_t)params.n;
	p->func->param = params.v;
	ap_ir_blanks(r);
	return ap_ir_need(r, "{");
}

/* Reads "%para1_x: <Tensor[Float32], (32, 64)>  :  has_default". */
static bool read_param(struct parse *p)
{
	struct ap_ir_read *r = &p->r;
	struct ap_ir_param param = {.line = r->line};
	const char *from = ++r->p, *rest;

	if (begins_anew(p, p->ir->funcs.n > 0))
		return true;
	while (r->p < r->end && *r->p != '\n' && !ap_ir_at(r, ": <") && !ap_ir_at(r, " : <"))
		r->p++;
	param.name = ap_ir_copy(r, from, (size_t)(r->p - from));
	ap_ir_blanks(r);
	if (!ap_ir_need(r, ":") || !ap_ir_read_type(r, &param.type))
		return false;
	rest = ap_ir_until(r, "");
	param.has_default = strstr(rest, "has_default") != NULL;
	AP_PUSH(r->ctx->arena, p->ir->params, param);
	return true;
}

/* Reads "%3(label) = "; the label may contain anything but ") = ". */
static bool read_head(struct ap_ir_read *r, struct ap_ir_node *out)
{
	const char *from;

	out->id = -1;
	out->label = "";
	if (!ap_ir_take(r, "%"))
		return true;
	out->id = ap_ir_digits(r);
	if (out->id < 0)
		return ap_ir_expected(r, "the number of a node");
	if (ap_ir_take(r, "(")) {
		for (from = r->p; r->p < r->end && *r->p != '\n'; r->p++)
			if (ap_ir_at(r, ") = "))
				break;
		out->label = ap_ir_copy(r, from, (size_t)(r->p - from));
		if (!ap_ir_take(r, ") = "))
			return ap_ir_expected(r, "\") = \" behind the node's label");
		return true;
	}
	ap_ir_blanks(r);
	return ap_ir_need(r, "= ");
}

static bool read_operator(struct ap_ir_read *r, struct ap_ir_node *out)
{
	const char *targets;

	if (ap_ir_take(r, "call ") || *r->p == '%' || *r->p == '$') {
		if (!ap_ir_read_value(r, true, &out->callee))
			return false;
		return !ap_ir_at(r, "[") || ap_ir_balanced(r, &targets);
	}
	out->listed = ap_ir_take(r, "PrimFunc_");
	out->prim = ap_ir_until(r, "(");
	return *out->prim || ap_ir_expected(r, "the name of a primitive");
}

/* Reads "key: value, key: value}" after the brace. */
static bool read_attrs(struct ap_ir_read *r, struct ap_ir_attrs *out)
{
	AP_VEC(struct ap_ir_attr) list = {0};
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);

	for (;;) {
		struct ap_ir_attr a;

		ap_ir_space(r);
		if (ap_ir_take(r, "}"))
			break;
		if (list.n && ap_ir_take(r, ","))
			ap_ir_space(r);
		a.key = ap_ir_until(r, ":,{}()[] ");
		ap_ir_blanks(r);
		if (!*a.key || !ap_ir_take(r, ":"))
			return ap_ir_expected(r, "an attribute and \":\"");
		if (!ap_ir_read_value(r, false, &a.value))
			return false;
		AP_PUSH(r->ctx->scratch, list, a);
	}
	out->n = (uint32_t)list.n;
	out->v = ap_ir_keep(r, mark, list.v, list.n * sizeof *list.v);
	return true;
}

/* Reads "{instance name: x}", "{in_strategy: ..}", "primitive_attrs: {..}" and the like. */
static bool read_named_attrs(struct ap_ir_read *r, struct ap_ir_node *out)
{
	struct {
		const char *name;
		struct ap_ir_attrs *list;
	} rows[] = {{"{", &out->derived}, {"primitive_attrs:", &out->prim_attrs},
		{"cnode_attrs:", &out->node_attrs}, {"cnode_primal_attrs:", &out->primal_attrs}};

	if (ap_ir_take(r, "{instance name:")) {
		ap_ir_blanks(r);
		out->instance = ap_ir_until(r, "}");
		return ap_ir_need(r, "}");
	}
	for (size_t i = 0; i < AP_COUNT(rows); i++)
		if (ap_ir_take(r, rows[i].name)) {
			ap_ir_blanks(r);
			return (!i || ap_ir_need(r, "{")) && read_attrs(r, rows[i].list);
		}
	return ap_ir_expected(r, "attributes, or the types of the node");
}

static bool read_type_line(struct ap_ir_read *r, struct ap_ir_node *out)
{
	const struct ap_ir_type *t;
	uint32_t n;

	r->p++;
	ap_ir_blanks(r);
	if (!ap_ir_read_types(r, &n, &out->in_type))
		return false;
	if (n != out->nin)
		return ap_ir_fault(r, r->line, AP_MEANING, "%" PRIu32 " types for %" PRIu32
			" operands of \"%s\"", n, out->nin,
			ap_diag_name(r->ctx->diag, out->prim ? out->prim : "call"));
	out->typed = true;
	ap_ir_blanks(r);
	if (!ap_ir_take(r, "->"))
		return true;
	ap_ir_blanks(r);
	if (!ap_ir_read_types(r, &n, &t))
		return false;
	if (n != 1)
		return ap_ir_fault(r, r->line, AP_SYNTAX, "expected one type of the result");
	out->out = *t;
	return true;
}

/* Moves to attributes or types of the node on the next line; false if there are none. */
static bool go_on(struct ap_ir_read *r)
{
	struct ap_ir_read ahead = *r;

	if (ap_ir_at(&ahead, "#"))
		ap_ir_skip_line(&ahead);
	ap_ir_space(&ahead);
	if (!ap_ir_at(&ahead, ":") && !ap_ir_at(&ahead, "{"))
		return false;
	r->p = ahead.p;
	r->line = ahead.line;
	return true;
}

/* Reads a node with attributes and types. */
static bool read_node(struct ap_ir_read *r, struct ap_ir_node *out)
{
	const char *from = r->p;

	*out = (struct ap_ir_node){.line = r->line,
		.out = {.form = AP_IR_TYPE_OTHER, .dtype = AP_DTYPE_COUNT}};
	if (!read_head(r, out) || r->p == r->end)
		return ap_ir_expected(r, "an operator");
	if (!read_operator(r, out) || !ap_ir_need(r, "(") ||
		!ap_ir_read_values(r, true, ')', &out->nin, &out->in))
		return false;
	while (!out->typed) {
		ap_ir_blanks(r);
		if (r->p == r->end || *r->p == '\n' || *r->p == '#') {
			if (!go_on(r))
				break;
		} else if (*r->p == ':') {
			if (!read_type_line(r, out))
				return false;
		} else if (!read_named_attrs(r, out)) {
			return false;
		}
	}
	ap_ir_blanks(r);
	if (r->p < r->end && *r->p != '\n' && *r->p != '#')
		return ap_ir_expected(r, "the end of the line");
	out->bytes = (size_t)(r->p - from);
	return true;
}

static bool add_node(struct parse *p)
{
	struct ap_ir_read *r = &p->r;
	struct ap_ir_node n;
	const struct ap_ir_node *last;

	if (!read_node(r, &n))
		return false;
	if (!p->func)
		open_func(p, "");
	last = p->func->nodes.n ? &p->func->nodes.v[p->func->nodes.n - 1] : NULL;
	if (last && last->id < 0)
		return ap_ir_fault(r, n.line, AP_MEANING, "a node behind Return");
	if (last && n.id >= 0 && n.id <= last->id && !*p->func->name) {
		p->ir->anew = n.line;
		r->p = r->end;
		return true;
	}
	if (last && n.id >= 0 && n.id <= last->id)
		return ap_ir_fault(r, n.line, AP_MEANING, "%%%" PRId64 " does not come after %%%" PRId64,
			n.id, last->id);
	assert(p->nodes.n < p->nodes.most);
	p->nodes.v[p->nodes.n++] = n;
	p->func->nodes.n++;
	p->func->bytes += n.bytes;
	r->piece = p->partial;
	return true;
}

/* Reads the number after a word, skipping blanks and signs. */
static void note_count(const char *text, const char *word, int64_t *count)
{
	const char *at = strstr(text, word);

	if (!at || *count >= 0)
		return;
	at += strlen(word);
	at += strspn(at, "s :");
	if (!ap_parse_int(at, 0, INT32_MAX, count))
		*count = -1;
}

static void note_scope(struct parse *p, const char *text, const char *word, bool full)
{
	const char *at = strstr(text, word);
	size_t n;
	struct ap_ir_node *node;

	if (!at || !p->func || !p->func->nodes.n)
		return;
	at += strlen(word);
	n = strlen(at);
	while (n && strchr(" )\r", at[n - 1]))
		n--;
	node = &p->func->nodes.v[p->func->nodes.n - 1];
	node->scope = ap_ir_copy(&p->r, at, n);
	node->bytes += n;
	p->func->bytes += n;
	node->full = full;
}

/* Reads a line that begins with #, or an operator's name in old dumps. */
static void read_comment(struct parse *p)
{
	struct ap_mark mark = ap_arena_mark(p->r.ctx->scratch);
	const char *from = p->r.p, *text, *at, *entry;

	ap_ir_pass(&p->r, "");
	text = ap_arena_strndup(p->r.ctx->scratch, from, (size_t)(p->r.p - from));
	at = text + strcspn(text, "IFfSse@");
	if (!strncmp(at, "Fullname with scope: (", 22) || !strncmp(at, "full_name_with_scope", 20))
		note_scope(p, text, ": (", true);
	else if (!strncmp(at, "Scope: (", 8) || !strncmp(at, "scope: (", 8))
		note_scope(p, text, ": (", false);
	p->commenting = !strncmp(text, "# Comment:", 10);
	entry = p->func ? NULL : strstr(text, "IR entry");
	if (entry && (entry = strchr(entry, '@'))) {
		p->ir->entry = ap_ir_copy(&p->r, entry + 1, strcspn(entry + 1, " \r"));
		p->ir->headed = true;
	}
	if (!p->func)
		note_count(text, "Total subgraph", &p->ir->said_funcs);
	ap_arena_release(p->r.ctx->scratch, mark);
}

static bool in_header(struct parse *p)
{
	struct ap_ir_read *r = &p->r;
	const char *text;

	if (ap_ir_at(r, "%para"))
		return read_param(p);
	if (ap_ir_take(r, "subgraph @")) {
		const char *name = ap_ir_until(&p->r, " (");
		bool fresh;

		/* the sub-graph's header up to the brace */
		ap_map_put_str(p->names, name, &fresh);
		if (begins_anew(p, !fresh))
			return true;
		open_func(p, name);
		if (read_func_params(p))
			return true;
		p->ir->funcs.n--;
		p->func = NULL;
		return false;
	}
	text = ap_ir_until(r, "");
	note_count(text, "Total number of cnodes", &p->ir->said_nodes);
	return true;
}

/* Reads a line between nodes of a sub-graph. */
static bool in_body(struct parse *p)
{
	struct ap_ir_read *r = &p->r;

	if (ap_ir_take(r, "}")) {
		p->func->closed = true;
		p->func->end = r->line;
		p->func = NULL;
		return true;
	}
	if (ap_ir_at(r, ":")) { /* more types, of the device or symbolic; names in old dumps */
		if (ap_ir_at(r, ": full_name_with_scope"))
			read_comment(p);
		return true;
	}
	if (!*p->func->name) /* outside braces, other lines are ignored */
		return in_header(p);
	return ap_ir_expected(r, "a node, a comment or \"}\"");
}

/* Does a node begin here? */
static bool at_node(const struct ap_ir_read *r)
{
	if (ap_ir_at(r, "Return(") || ap_ir_at(r, "return(")) /* lower case up to 1.5 */
		return true;
	return r->end - r->p > 1 && *r->p == '%' && r->p[1] >= '0' && r->p[1] <= '9';
}

static bool read_line(struct parse *p)
{
	struct ap_ir_read *r = &p->r;
	const char *from = r->p;

	ap_ir_blanks(r);
	if (r->p == r->end || *r->p == '\n')
		return true;
	if (p->commenting && r->p - from >= COMMENT_INDENT && *r->p != '#')
		return true;
	p->commenting = false;
	if (*r->p == '#') {
		read_comment(p);
		return true;
	}
	if (at_node(r))
		return add_node(p);
	if (p->func && !*p->func->name && ap_ir_at(r, "subgraph @")) {
		p->func->end = r->line;
		p->func = NULL;
	}
	if (ap_ir_at(r, "...")) {
		p->ir->gap = p->ir->gap ? p->ir->gap : r->line;
		return true;
	}
	return p->func ? in_body(p) : in_header(p);
}

static enum ap_status check_dump(struct parse *p, const char *text)
{
	const struct ap_ir *ir = p->ir;
	const char *other = ir->funcs.n || ir->headed ? NULL : ap_foreign(p->r.ctx, text, ir->bytes);

	if (other)
		ap_ir_fault(&p->r, 0, AP_SYNTAX, "%s; expected a MindSpore IR dump here", other);
	else if (!ir->funcs.n)
		ap_ir_fault(&p->r, ir->lines, AP_SYNTAX, ir->headed
			? "the dump ends before its first sub-graph"
			: "holds no node of a MindSpore IR dump; expected a text file that begins with "
			"\"# IR entry: @\"");
	return p->r.status;
}

static enum ap_status check_text(struct ap_ir_read *r)
{
	const char *text = r->p, *nul = memchr(text, '\0', (size_t)(r->end - text));
	size_t bad = 0;
	int64_t line = 1;

	if (!nul && ap_str_utf8(text, (size_t)(r->end - text), &bad))
		return AP_OK;
	for (const char *p = text, *end = nul ? nul : text + bad; p < end; p++)
		line += *p == '\n';
	ap_ir_fault(r, line, AP_SYNTAX, "is no text in UTF-8; expected a MindSpore IR dump");
	return r->status;
}

enum ap_status ap_ir_parse(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	bool partial, struct ap_ir *out)
{
	struct parse p = {.ir = out, .partial = partial,
		.r = {.ctx = ctx, .file = file, .p = text, .end = text + len, .line = 1}};

	*out = (struct ap_ir){.file = file, .bytes = len, .said_funcs = -1, .said_nodes = -1};
	AP_TRY(check_text(&p.r));
	p.names = ap_map_create(ctx->arena);
	for (struct ap_ir_read ahead = p.r; ahead.p < ahead.end; ap_ir_skip_line(&ahead)) {
		ap_ir_blanks(&ahead);
		p.nodes.most += at_node(&ahead); /* upper bound of the number of nodes */
	}
	p.nodes.v = ap_arena_alloc_raw(ctx->arena, p.nodes.most, sizeof *p.nodes.v);
	while (p.r.p < p.r.end && read_line(&p))
		ap_ir_skip_line(&p.r);
	out->lines = p.r.line;
	if (p.func)
		p.func->end = p.r.line;
	if (p.r.ended)
		p.r.status = AP_OK;
	return p.r.status != AP_OK ? p.r.status : check_dump(&p, text);
}
