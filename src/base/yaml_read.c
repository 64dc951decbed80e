/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml_read.h"

#include <string.h>
#include <yaml.h>

#include "base/json_write.h"
#include "base/str.h"
#include "base/vec.h"

enum { MOST_VALUES = 1 << 16, MOST_DEPTH = 64 };

/* A document on its way to JSON text, in which each value has the line and column of the YAML text. */
struct making {
	struct ap_ctx *ctx;
	const char *file;
	yaml_document_t *doc;
	struct ap_str text;
	size_t line, line_start; /* of the text so far */
	size_t values;
};

static enum ap_status fault(struct making *m, enum ap_status st, const yaml_mark_t *at, const char *text)
{
	return ap_diag_add(m->ctx->diag, AP_ERROR, st, &(struct ap_where){.file = m->file,
		.line = (int64_t)at->line + 1, .col = (int64_t)at->column + 1}, NULL, "%s", text);
}

static void place(struct making *m, const yaml_mark_t *at)
{
	while (m->line < at->line) {
		ap_str_addc(&m->text, '\n');
		m->line++;
		m->line_start = m->text.len;
	}
	while (m->line == at->line && m->text.len - m->line_start < at->column)
		ap_str_addc(&m->text, ' ');
}

static void quote(struct making *m, const char *s)
{
	struct ap_jw w;

	ap_jw_str_init(&w, &m->text, 0);
	ap_jw_str(&w, s);
}

static bool is_one_of(const char *s, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(s, *words))
			return true;
	return false;
}

static size_t digits(const char *s)
{
	return strspn(s, "0123456789");
}

/* As JSON writes numbers. */
static bool is_number(const char *s)
{
	size_t n;

	s += *s == '-';
	n = digits(s);
	if (!n || (n > 1 && *s == '0'))
		return false;
	s += n;
	if (*s == '.') {
		n = digits(++s);
		if (!n)
			return false;
		s += n;
	}
	if (*s == 'e' || *s == 'E') {
		s += 1 + (s[1] == '-' || s[1] == '+');
		n = digits(s);
		if (!n)
			return false;
		s += n;
	}
	return !*s;
}

static void scalar(struct making *m, const yaml_node_t *n)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
	static const char *const yes[] = {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On",
		"ON", NULL};
	static const char *const no[] = {"false", "False", "FALSE", "no", "No", "NO", "off", "Off",
		"OFF", NULL};
	const char *s = (const char *)n->data.scalar.value;
	bool plain = n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

	if (plain && is_one_of(s, nulls))
		ap_str_add(&m->text, "null");
	else if (plain && is_one_of(s, yes))
		ap_str_add(&m->text, "true");
	else if (plain && is_one_of(s, no))
		ap_str_add(&m->text, "false");
	else if (plain && is_number(s))
		ap_str_add(&m->text, s);
	else
		quote(m, s);
}

static enum ap_status value(struct making *m, int id, int depth);

static const char *key_of(const struct making *m, const yaml_node_pair_t *p)
{
	const yaml_node_t *key = yaml_document_get_node(m->doc, p->key);

	return key->type == YAML_SCALAR_NODE ? (const char *)key->data.scalar.value : NULL;
}

static bool has_key(const struct making *m, const yaml_node_t *n, const char *name)
{
	for (const yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top; p++)
		if (key_of(m, p) && !strcmp(key_of(m, p), name))
			return true;
	return false;
}

/* The members of a mapping, without those that another one has, into which it is merged. */
static enum ap_status members(struct making *m, const yaml_node_t *n, const yaml_node_t *into, int depth,
	bool *any)
{
	for (const yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top; p++) {
		const yaml_node_t *key = yaml_document_get_node(m->doc, p->key);
		const yaml_node_t *v = yaml_document_get_node(m->doc, p->value);
		const char *name = key_of(m, p);

		if (!name)
			return fault(m, AP_MEANING, &key->start_mark, "expected a word as the key");
		if (into && has_key(m, into, name))
			continue;
		if (!strcmp(name, "<<") && v->type == YAML_MAPPING_NODE && !into) {
			AP_TRY(members(m, v, n, depth, any));
			continue;
		}
		ap_str_add(&m->text, *any ? "," : "");
		*any = true;
		place(m, &key->start_mark);
		quote(m, name);
		ap_str_addc(&m->text, ':');
		AP_TRY(value(m, p->value, depth));
	}
	return AP_OK;
}

static enum ap_status value(struct making *m, int id, int depth)
{
	const yaml_node_t *n = yaml_document_get_node(m->doc, id);
	bool any = false;

	if (depth > MOST_DEPTH)
		return fault(m, AP_LIMIT, &n->start_mark,
			"nests deeper than 64 levels, or is an alias of what it is part of");
	if (++m->values > MOST_VALUES)
		return fault(m, AP_LIMIT, &n->start_mark,
			"aliases make more than 65536 values of the file");
	place(m, &n->start_mark);
	switch (n->type) {
	case YAML_SCALAR_NODE:
		scalar(m, n);
		break;
	case YAML_SEQUENCE_NODE:
		ap_str_addc(&m->text, '[');
		for (const yaml_node_item_t *i = n->data.sequence.items.start;
			i < n->data.sequence.items.top; i++, any = true) {
			ap_str_add(&m->text, any ? "," : "");
			AP_TRY(value(m, *i, depth + 1));
		}
		ap_str_addc(&m->text, ']');
		break;
	case YAML_MAPPING_NODE:
		ap_str_addc(&m->text, '{');
		AP_TRY(members(m, n, NULL, depth + 1, &any));
		ap_str_addc(&m->text, '}');
		break;
	case YAML_NO_NODE:
		ap_str_add(&m->text, "null");
		break;
	}
	return AP_OK;
}

static enum ap_status no_yaml(struct making *m, const yaml_parser_t *p)
{
	struct ap_where where = {.file = m->file, .line = (int64_t)p->problem_mark.line + 1,
		.col = (int64_t)p->problem_mark.column + 1};

	if (p->error == YAML_READER_ERROR) { /* has an offset only */
		where.line = where.col = 0;
		return ap_diag_add(m->ctx->diag, AP_ERROR, AP_SYNTAX, &where, NULL,
			"is no YAML: byte %zu: %s", p->problem_offset, p->problem ? p->problem : "unknown");
	}
	return ap_diag_add(m->ctx->diag, AP_ERROR, AP_SYNTAX, &where, NULL, "is no YAML: %s",
		p->problem ? p->problem : "unknown");
}

enum ap_status ap_yaml_parse(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	struct ap_json **out)
{
	struct making m = {.ctx = ctx, .file = file};
	yaml_parser_t parser;
	yaml_document_t doc;
	enum ap_status st;

	if (len > AP_YAML_MOST_BYTES)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, &(struct ap_where){.file = file}, NULL,
			"%zu bytes of YAML; at most %d are read", len, AP_YAML_MOST_BYTES);
	ap_str_init(&m.text, ctx->arena);
	if (!yaml_parser_initialize(&parser))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, &(struct ap_where){.file = file}, NULL,
			"memory ran out");
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	if (!yaml_parser_load(&parser, &doc)) {
		st = no_yaml(&m, &parser);
		yaml_parser_delete(&parser);
		return st;
	}
	m.doc = &doc;
	if (yaml_document_get_root_node(&doc))
		st = value(&m, 1, 0);
	else
		st = ap_diag_add(ctx->diag, AP_ERROR, AP_SYNTAX, &(struct ap_where){.file = file}, NULL,
			"is empty");
	yaml_document_delete(&doc);
	yaml_parser_delete(&parser);
	return st != AP_OK ? st : ap_json_parse(ctx, file, m.text.s, m.text.len, 0, out);
}
