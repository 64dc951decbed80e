/* SPDX-License-Identifier: Apache-2.0 */
/* Operators and the Python objects that they are: a primitive is an attribute of its cell. */
#include <string.h>

#include "base/arena.h"
#include "graph/load.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Bytes above ASCII are letters of other alphabets, which names in Python may have. */
static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

/* A name, or behind another one an index; *s is moved to its end. */
static bool take_part(const char **s, bool first)
{
	const char *p = *s;

	if (!is_letter(*p) && (first || !is_digit(*p)))
		return false;
	if (is_letter(*p))
		while (is_letter(*p) || is_digit(*p))
			p++;
	else
		while (is_digit(*p))
			p++;
	*s = p;
	return true;
}

bool ap_instance_is_path(const char *instance)
{
	const char *p = instance;

	if (!take_part(&p, true))
		return false;
	while (*p == '.') {
		p++;
		if (!take_part(&p, false))
			return false;
	}
	return !*p;
}

void ap_check_instance_path(struct ap_load *l)
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

void ap_check_instance_shared(struct ap_load *l)
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
