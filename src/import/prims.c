/* SPDX-License-Identifier: Apache-2.0 */
#include "import/prims.h"

#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "rule/attr.h"
#include "rule/rule.h"

static const struct {
	const char *name, *operands;
} rows[] = {
#define PRIM(name, operands) {#name, operands},
#include "import/prims.def"
};

struct ap_prims {
	struct ap_map *names; /* ids of rows */
	struct {
		uint32_t n;
		struct ap_prim_slot *v;
	} *slots;
};

/* Parses "gamma", "bias?", ":axis@". */
static void parse_slot(struct ap_arena *a, const char *text, size_t n, struct ap_prim_slot *slot)
{
	slot->constant = *text == ':';
	text += slot->constant;
	n -= slot->constant;
	while (n && strchr("@?*#!", text[n - 1])) {
		char mark = text[--n];

		slot->always |= mark == '@';
		slot->optional |= mark == '?';
		slot->many |= mark == '*';
		slot->number |= mark == '#';
		slot->fixed |= mark == '!';
	}
	slot->name = ap_arena_strndup(a, text, n);
}

struct ap_prims *ap_prims_create(struct ap_ctx *ctx)
{
	size_t n = AP_COUNT(rows);
	struct ap_prims *p = AP_NEW(ctx->arena, struct ap_prims);

	p->names = ap_map_create(ctx->arena);
	p->slots = ap_arena_alloc(ctx->arena, n, sizeof *p->slots);
	for (size_t i = 0; i < n; i++) {
		const char *s = rows[i].operands;

		ap_map_put_str(p->names, rows[i].name, NULL);
		p->slots[i].v = AP_NEW_N(ctx->arena, struct ap_prim_slot, strlen(s) / 2 + 1);
		for (size_t len; *(s += strspn(s, " ")); s += len) {
			len = strcspn(s, " ");
			parse_slot(ctx->arena, s, len, &p->slots[i].v[p->slots[i].n++]);
		}
	}
	return p;
}

const struct ap_prim_slot *ap_prim_slots(const struct ap_prims *p, const char *prim, uint32_t *n)
{
	ap_id id = ap_map_get_str(p->names, prim);

	*n = id == AP_NONE ? 0 : p->slots[id].n;
	return id == AP_NONE ? NULL : p->slots[id].v;
}

const char *ap_prim_at(size_t i, const char **operands)
{
	if (i >= AP_COUNT(rows))
		return NULL;
	*operands = rows[i].operands;
	return rows[i].name;
}

const char *ap_prim_number(const char *attribute, int64_t i)
{
	static const struct {
		const char *attribute;
		int64_t i;
		const char *text;
	} numbers[] = {
#define NUMBER(attribute, i, text) {#attribute, i, text},
#include "import/prims.def"
	};

	for (size_t k = 0; k < AP_COUNT(numbers); k++)
		if (numbers[k].i == i && !strcmp(numbers[k].attribute, attribute))
			return numbers[k].text;
	return NULL;
}

const char *ap_prim_attr(const char *name)
{
	static const struct {
		const char *old, *now;
	} renamed[] = {
#define RENAMED(old, now) {#old, #now},
#include "import/prims.def"
	};

	for (size_t k = 0; k < AP_COUNT(renamed); k++)
		if (!strcmp(renamed[k].old, name))
			return renamed[k].now;
	return name;
}

bool ap_prim_ignores(const char *type, const char *attribute)
{
	static const struct {
		const char *types, *attribute;
	} ignored[] = {
#define IGNORED(types, attribute) {types, #attribute},
#include "import/prims.def"
	};

	for (size_t k = 0; k < AP_COUNT(ignored); k++)
		if (!strcmp(ignored[k].attribute, attribute) && ap_attr_concerns(ignored[k].types, type))
			return true;
	return false;
}
