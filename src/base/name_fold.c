/* SPDX-License-Identifier: Apache-2.0 */
#include "base/name_fold.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

#define DIGITS "0123456789"

enum {
	MOST_DIGITS = 18, /* longer digit strings are text */
	MOST_SLOTS = 32, /* numbers per name; later ones are text */
	MOST_PIECES = 12 /* ranges listed, then ".." */
};

struct ids {
	uint32_t *v;
	size_t n, cap;
};

struct folds {
	struct ap_name_fold *v;
	size_t n, cap;
};

/* Items of one pattern: names equal but for their numbers, the slots. */
struct family {
	struct ap_ctx *ctx;
	const struct ap_name_item *item;
	const uint32_t *member; /* item of each member */
	uint32_t n, nslot;
	int64_t *value; /* [n][nslot] */
	uint32_t *rest; /* [n][nslot + 1] ids; equal if all slots from here on are equal */
	struct digits {
		int least, most; /* digits written */
		bool padded; /* some have leading zeros */
	} *digits; /* [nslot] */
	const char **text; /* [nslot] text in the folded name */
	struct folds *out;
};

/* Splits a name into numbers and the text between. Zeroed except s. */
struct scan {
	const char *s;
	size_t len;
	bool number;
	uint32_t slot; /* index of the number */
};

static bool next_piece(struct scan *p)
{
	size_t digits;

	p->s += p->len;
	p->slot += p->number;
	digits = strspn(p->s, DIGITS);
	p->number = digits > 0 && digits <= MOST_DIGITS && p->slot < MOST_SLOTS;
	p->len = digits ? digits : strcspn(p->s, DIGITS);
	return *p->s;
}

static void read_slots(struct family *f, uint32_t m)
{
	struct scan at = {.s = f->item[f->member[m]].name};

	while (next_piece(&at)) {
		int64_t value = 0;
		struct digits *d;

		if (!at.number)
			continue;
		for (size_t i = 0; i < at.len; i++)
			value = value * 10 + (at.s[i] - '0');
		f->value[(size_t)m * f->nslot + at.slot] = value;
		d = &f->digits[at.slot];
		d->least = !d->least || (int)at.len < d->least ? (int)at.len : d->least;
		d->most = (int)at.len > d->most ? (int)at.len : d->most;
		d->padded |= at.len > 1 && *at.s == '0';
	}
}

static int64_t value_of(const struct family *f, uint32_t m, uint32_t slot)
{
	return f->value[(size_t)m * f->nslot + slot];
}

static uint32_t rest_of(const struct family *f, uint32_t m, uint32_t slot)
{
	return f->rest[(size_t)m * (f->nslot + 1) + slot];
}

static int compare_values(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static const char *range_text(struct family *f, const int64_t *v, size_t n, int width)
{
	struct ap_str out;
	size_t pieces = 0;

	ap_str_init(&out, f->ctx->arena);
	if (n > 1)
		ap_str_addc(&out, '[');
	for (size_t i = 0; i < n;) {
		size_t last = i + 1; /* last of the arithmetic progression from i */

		while (last + 1 < n && v[last + 1] - v[last] == v[i + 1] - v[i])
			last++;
		if (last >= n || last < i + 2)
			last = i;
		if (pieces++)
			ap_str_addc(&out, ',');
		if (pieces > MOST_PIECES) {
			ap_str_add(&out, "..");
			break;
		}
		ap_str_addf(&out, "%0*" PRId64, width, v[i]);
		if (last > i)
			ap_str_addf(&out, "-%0*" PRId64, width, v[last]);
		if (last > i && v[i + 1] - v[i] > 1)
			ap_str_addf(&out, "/%" PRId64, v[i + 1] - v[i]);
		i = last + 1;
	}
	if (n > 1)
		ap_str_addc(&out, ']');
	return out.s;
}

/* Text for the values of a slot. */
static const char *slot_text(struct family *f, const struct ids *members, uint32_t slot)
{
	const struct digits *digits = &f->digits[slot];
	struct ap_mark mark = ap_arena_mark(f->ctx->scratch);
	int64_t *v = ap_arena_alloc_raw(f->ctx->scratch, members->n, sizeof *v);
	size_t n = 0;
	const char *text;

	for (size_t i = 0; i < members->n; i++)
		v[i] = value_of(f, members->v[i], slot);
	qsort(v, members->n, sizeof *v, compare_values);
	for (size_t i = 0; i < members->n; i++)
		if (!n || v[n - 1] != v[i])
			v[n++] = v[i];
	text = digits->padded && digits->least < digits->most
		? "*"
		: range_text(f, v, n, digits->padded ? digits->most : 0);
	ap_arena_release(f->ctx->scratch, mark);
	return text;
}

static void emit(struct family *f, const struct ids *members)
{
	uint32_t *item = ap_arena_alloc_raw(f->ctx->arena, members->n, sizeof *item);
	struct scan at = {0};
	struct ap_str name;

	for (size_t i = 0; i < members->n; i++)
		item[i] = f->member[members->v[i]];
	at.s = f->item[item[0]].name;
	ap_str_init(&name, f->ctx->arena);
	while (next_piece(&at))
		if (at.number)
			ap_str_add(&name, f->text[at.slot]);
		else
			ap_str_addn(&name, at.s, at.len);
	AP_PUSH(f->ctx->arena, *f->out, ((struct ap_name_fold){name.s, (uint32_t)members->n, item}));
}

/* Emits one fold if values of a slot never share a rest: a later slot is listed if it combines
 * freely with those listed before, else it is "*". */
static void blur(struct family *f, const struct ids *members, uint32_t slot)
{
	uint32_t *shown = AP_NEW_N(f->ctx->scratch, uint32_t, members->n);
	size_t nshown = 1;

	for (; slot < f->nslot; slot++) {
		struct ap_map *values = ap_map_create(f->ctx->scratch);
		struct ap_map *pairs = ap_map_create(f->ctx->scratch);
		uint32_t *pair = AP_NEW_N(f->ctx->scratch, uint32_t, members->n);

		for (size_t i = 0; i < members->n; i++) {
			int64_t value = value_of(f, members->v[i], slot);
			const int64_t key[] = {shown[i], value};

			ap_map_put(values, &value, sizeof value, NULL);
			pair[i] = ap_map_put(pairs, key, sizeof key, NULL);
		}
		f->text[slot] = "*";
		if (ap_map_size(pairs) != nshown * ap_map_size(values))
			continue;
		f->text[slot] = slot_text(f, members, slot);
		nshown = ap_map_size(pairs);
		shown = pair;
	}
	emit(f, members);
}

/* The values of a slot, grouped by their sets of rests. */
struct parts {
	uint32_t nvalue, nclass;
	struct ids *of_value; /* members */
	uint32_t *class_of; /* equal for equal sets */
	bool disjoint; /* no rest occurs with two values */
};

static void part(struct family *f, const struct ids *members, uint32_t slot, struct parts *p)
{
	struct ap_arena *a = f->ctx->scratch;
	struct ap_map *values = ap_map_create(a), *sets = ap_map_create(a);
	struct ap_map *rests = ap_map_create(a);
	size_t total = 0;

	*p = (struct parts){.of_value = AP_NEW_N(a, struct ids, members->n)};
	for (size_t i = 0; i < members->n; i++) {
		int64_t value = value_of(f, members->v[i], slot);
		uint32_t rest = rest_of(f, members->v[i], slot + 1);
		ap_id id = ap_map_put(values, &value, sizeof value, NULL);

		AP_PUSH(a, p->of_value[id], members->v[i]);
		ap_map_put(rests, &rest, sizeof rest, NULL);
	}
	p->nvalue = (uint32_t)ap_map_size(values);
	p->class_of = AP_NEW_N(a, uint32_t, p->nvalue);
	for (uint32_t v = 0; v < p->nvalue; v++) {
		const struct ids *own = &p->of_value[v];
		uint32_t *set = AP_NEW_N(a, uint32_t, own->n);
		size_t n = 0;

		for (size_t i = 0; i < own->n; i++)
			set[i] = rest_of(f, own->v[i], slot + 1);
		qsort(set, own->n, sizeof *set, compare_ids);
		for (size_t i = 0; i < own->n; i++)
			if (!n || set[n - 1] != set[i])
				set[n++] = set[i];
		p->class_of[v] = ap_map_put(sets, set, n * sizeof *set, NULL);
		total += n;
	}
	p->nclass = (uint32_t)ap_map_size(sets);
	p->disjoint = p->nvalue > 1 && total == ap_map_size(rests);
}

/* Splits members, in which all combinations of the slots before `slot` occur, into folds. */
static void split(struct family *f, const struct ids *members, uint32_t slot)
{
	struct ap_mark mark = ap_arena_mark(f->ctx->scratch);
	struct parts p;

	if (slot == f->nslot) {
		emit(f, members);
		return;
	}
	part(f, members, slot, &p);
	if (p.disjoint && p.nclass > 1) {
		blur(f, members, slot);
		ap_arena_release(f->ctx->scratch, mark);
		return;
	}
	for (uint32_t c = 0; c < p.nclass; c++) {
		struct ids own = {0};

		for (uint32_t v = 0; v < p.nvalue; v++)
			for (size_t i = 0; p.class_of[v] == c && i < p.of_value[v].n; i++)
				AP_PUSH(f->ctx->scratch, own, p.of_value[v].v[i]);
		qsort(own.v, own.n, sizeof *own.v, compare_ids);
		f->text[slot] = slot_text(f, &own, slot);
		split(f, &own, slot + 1);
	}
	ap_arena_release(f->ctx->scratch, mark);
}

static void fold_family(struct ap_ctx *ctx, const struct ap_name_item *item,
	const struct ids *own, struct folds *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_arena *a = ctx->scratch;
	struct ids all = {0};
	struct family f = {.ctx = ctx, .item = item, .member = own->v, .n = (uint32_t)own->n,
		.out = out};

	for (struct scan at = {.s = item[own->v[0]].name}; next_piece(&at);)
		f.nslot += at.number;
	f.value = AP_NEW_N(a, int64_t, (size_t)f.n * f.nslot);
	f.rest = AP_NEW_N(a, uint32_t, (size_t)f.n * (f.nslot + 1));
	f.digits = AP_NEW_N(a, struct digits, f.nslot);
	f.text = AP_NEW_N(a, const char *, f.nslot);
	for (uint32_t m = 0; m < f.n; m++) {
		read_slots(&f, m);
		AP_PUSH(a, all, m);
	}
	for (uint32_t slot = f.nslot; slot-- > 0;) {
		struct ap_map *seen = ap_map_create(f.ctx->scratch);

		for (uint32_t m = 0; m < f.n; m++) {
			const int64_t key[] = {value_of(&f, m, slot), rest_of(&f, m, slot + 1)};

			f.rest[(size_t)m * (f.nslot + 1) + slot] =
				ap_map_put(seen, key, sizeof key, NULL);
		}
	}
	split(&f, &all, 0);
	ap_arena_release(ctx->scratch, mark);
}

static int by_first_item(const void *a, const void *b)
{
	return compare_ids(((const struct ap_name_fold *)a)->item, ((const struct ap_name_fold *)b)->item);
}

uint32_t ap_name_folds(struct ap_ctx *ctx, uint32_t n, const struct ap_name_item *item,
	const struct ap_name_fold **out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ids *family = AP_NEW_N(ctx->scratch, struct ids, n);
	struct ap_map *patterns;
	struct folds folds = {0};
	uint32_t nfamily;
	struct ap_str key;

	ap_str_init(&key, ctx->scratch);
	patterns = ap_map_create(ctx->scratch);
	for (uint32_t i = 0; i < n; i++) {
		struct scan at = {.s = item[i].name};

		/* key: the name with NUL for each number, two NULs, then `same` */
		key.len = 0;
		while (next_piece(&at))
			ap_str_addn(&key, at.number ? "" : at.s, at.number ? 1 : at.len);
		ap_str_addn(&key, "\0", 2);
		ap_str_add(&key, item[i].same);
		AP_PUSH(ctx->scratch, family[ap_map_put(patterns, key.s, key.len, NULL)], i);
	}
	nfamily = (uint32_t)ap_map_size(patterns);
	for (uint32_t i = 0; i < nfamily; i++)
		fold_family(ctx, item, &family[i], &folds);
	if (folds.n)
		qsort(folds.v, folds.n, sizeof *folds.v, by_first_item);
	ap_arena_release(ctx->scratch, mark);
	*out = folds.v;
	return (uint32_t)folds.n;
}
