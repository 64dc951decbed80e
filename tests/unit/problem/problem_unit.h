/* SPDX-License-Identifier: Apache-2.0 */
/* Problems from short texts, in which ' stands for ". */
#ifndef PROBLEM_UNIT_H
#define PROBLEM_UNIT_H

#include "problem/problem.h"
#include "unit.h"

static inline enum ap_status try_problem(struct ap_ctx *ctx, const char *text,
	const struct ap_problem **out)
{
	struct ap_json *doc;
	char *json = ap_arena_strdup(ctx->arena, text);
	for (char *c = json; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	ck_assert_int_eq(ap_json_parse(ctx, "p.json", json, strlen(json), 0, &doc), AP_OK);
	return ap_problem_load(ctx, doc, out);
}

static inline const struct ap_problem *load_problem(struct ap_ctx *ctx, const char *text)
{
	const struct ap_problem *p = NULL;
	ck_assert_msg(try_problem(ctx, text, &p) == AP_OK, "%s", messages(ctx));
	return p;
}

static inline void append_text(void *user, const char *bytes, size_t len)
{
	ap_str_addn(user, bytes, len);
}

typedef void write_problem_fn(const struct ap_problem *p, ap_write_fn *write, void *user);

static inline const char *written(struct ap_ctx *ctx, const struct ap_problem *p,
	write_problem_fn *write)
{
	struct ap_str text;
	ap_str_init(&text, ctx->arena);
	write(p, append_text, &text);
	return text.s;
}

#endif
