/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* madvise() */

#include "base/arena.h"

#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGN = 16, CHUNK_MIN = 32 << 10, CHUNK_MAX = 4 << 20, HUGE_PAGE = 2 << 20 };
enum { FEW_BYTES = 128 << 10 }; /* cost less in page faults than a huge page does */
enum { SPARE_MAX = 32 << 20, SPARE_PART = 16 };
enum { CHUNK_PART = 64 }; /* of a budget, for chunks: there are many arenas */
enum { PRINTED_BYTES = 256 }; /* longer texts are printed twice */
enum { MAP_BYTES = 128 << 10 }; /* larger chunks bypass malloc(), which may not return them to the system */

struct chunk {
	struct chunk *prev;
	size_t size, used; /* bytes of data */
	alignas(ALIGN) unsigned char data[];
};

struct guard { /* a running ap_arena_try() */
	struct guard *outer;
	pthread_t thread;
	jmp_buf env;
	struct ap_refusal refusal;
};

struct pool { /* shared by all arenas of a budget */
	size_t budget; /* 0: no limit */
	atomic_size_t bytes; /* held now */
	struct ap_arena *newest;
	uint64_t born; /* of the newest there ever was */
	pthread_mutex_t lock; /* for guards, and for the list of arenas */
	struct guard *guards; /* of all threads, innermost first */
};

struct ap_arena {
	struct chunk *last; /* NULL: empty */
	struct chunk *spare; /* released chunks, largest first: fresh pages are expensive */
	size_t spare_bytes;
	struct ap_arena *like; /* inherits the spare chunks; may be NULL */
	struct ap_arena *owner; /* destroys it; NULL: nobody */
	struct ap_arena *older, *newer; /* in the pool */
	uint64_t born; /* counts arenas of the pool */
	pthread_t thread; /* that created it */
	size_t bytes; /* held now */
	struct pool own, *pool;
	ap_oom_fn *oom;
	void *user;
};

static void die(void *user, size_t wanted)
{
	(void)user;
	fprintf(stderr, "autopar-plan: error: out of memory (%zu bytes)\n", wanted);
	abort();
}

static void guard_remove(struct pool *pool, const struct guard *g)
{
	struct guard **at = &pool->guards;

	pthread_mutex_lock(&pool->lock);
	while (*at != g)
		at = &(*at)->outer;
	*at = g->outer;
	pthread_mutex_unlock(&pool->lock);
}

_Noreturn __attribute__((noinline)) void ap_arena_refuse(const struct ap_refusal *r)
{
	struct pool *pool = r->arena->pool;
	struct guard *g;

	pthread_mutex_lock(&pool->lock);
	for (g = pool->guards; g && !pthread_equal(g->thread, pthread_self()); g = g->outer)
		;
	pthread_mutex_unlock(&pool->lock);
	if (g) {
		g->refusal = *r;
		longjmp(g->env, 1);
	}
	r->arena->oom(r->arena->user, r->wanted);
	abort();
}

static _Noreturn void out_of_memory(struct ap_arena *a, size_t wanted)
{
	ap_arena_refuse(&(struct ap_refusal){a, wanted});
}

/* The newest arena of this thread that was created since; NULL: there is none. */
static struct ap_arena *younger(struct pool *pool, uint64_t born)
{
	struct ap_arena *x;

	pthread_mutex_lock(&pool->lock);
	for (x = pool->newest; x && x->born > born && !pthread_equal(x->thread, pthread_self()); x = x->older)
		;
	pthread_mutex_unlock(&pool->lock);
	return x && x->born > born ? x : NULL;
}

bool ap_arena_try(struct ap_arena *a, void (*part)(void *user), void (*undo)(void *user), void *user,
	struct ap_refusal *out)
{
	struct pool *pool = a->pool;
	struct guard g;
	uint64_t before;

	pthread_mutex_lock(&pool->lock);
	before = pool->born;
	g.thread = pthread_self();
	g.outer = pool->guards;
	pool->guards = &g;
	pthread_mutex_unlock(&pool->lock);
	if (setjmp(g.env) == 0) {
		part(user);
		guard_remove(pool, &g);
		return true;
	}
	guard_remove(pool, &g);
	*out = g.refusal;
	if (undo)
		undo(user);
	for (struct ap_arena *x; (x = younger(pool, before)) != NULL;)
		ap_arena_destroy(x);
	return false;
}

/* pool NULL: creates one. */
static struct ap_arena *create(struct pool *pool, size_t budget_bytes, ap_oom_fn *oom, void *user)
{
	struct ap_arena *a = malloc(sizeof *a);

	if (!oom)
		oom = die;
	if (!a && pool)
		ap_arena_refuse(&(struct ap_refusal){pool->newest, sizeof *a});
	if (!a) {
		oom(user, sizeof *a);
		abort();
	}
	*a = (struct ap_arena){.own.budget = budget_bytes, .oom = oom, .user = user};
	a->pool = pool ? pool : &a->own;
	if (!pool)
		pthread_mutex_init(&a->own.lock, NULL);
	a->thread = pthread_self();
	pthread_mutex_lock(&a->pool->lock);
	a->born = ++a->pool->born;
	a->older = a->pool->newest;
	if (a->older)
		a->older->newer = a;
	a->pool->newest = a;
	pthread_mutex_unlock(&a->pool->lock);
	return a;
}

struct ap_arena *ap_arena_create(size_t budget_bytes, ap_oom_fn *oom, void *user)
{
	return create(NULL, budget_bytes, oom, user);
}

static void chunk_free(struct ap_arena *a, struct chunk *c)
{
	a->bytes -= sizeof *c + c->size;
	atomic_fetch_sub_explicit(&a->pool->bytes, sizeof *c + c->size, memory_order_relaxed);
	if (sizeof *c + c->size >= MAP_BYTES)
		(void)munmap(c, sizeof *c + c->size);
	else
		free(c);
}

static void spare_drop(struct ap_arena *a)
{
	while (a->spare) {
		struct chunk *c = a->spare;

		a->spare = c->prev;
		chunk_free(a, c);
	}
	a->spare_bytes = 0;
}

/* Keeps an unused chunk, or frees it if there are enough. */
static void spare_keep(struct ap_arena *a, struct chunk *c)
{
	struct chunk **at = &a->spare;
	/* spare chunks are unavailable to other arenas of the budget */
	size_t part = a->pool->budget / SPARE_PART, most = part && part < SPARE_MAX ? part : SPARE_MAX;

	if (a->spare_bytes + c->size > most) {
		chunk_free(a, c);
		return;
	}
	while (*at && (*at)->size > c->size)
		at = &(*at)->prev;
	c->prev = *at;
	*at = c;
	a->spare_bytes += c->size;
}

/* Takes the largest spare chunk; there must be one. */
static struct chunk *spare_take(struct ap_arena *a)
{
	struct chunk *c = a->spare;

	a->spare = c->prev;
	a->spare_bytes -= c->size;
	return c;
}

/* Gives the largest spare chunk to another arena of the pool. */
static void spare_give(struct ap_arena *from, struct ap_arena *to)
{
	struct chunk *c = spare_take(from);

	from->bytes -= sizeof *c + c->size;
	to->bytes += sizeof *c + c->size;
	spare_keep(to, c);
}

struct ap_arena *ap_arena_create_like(struct ap_arena *a)
{
	struct ap_arena *other = create(a->pool, 0, a->oom, a->user);

	other->like = a;
	if (a->spare)
		spare_give(a, other);
	return other;
}

void ap_arena_own(struct ap_arena *owner, struct ap_arena *a)
{
	assert(owner->pool == a->pool && owner != a);
	pthread_mutex_lock(&a->pool->lock);
	a->owner = owner;
	pthread_mutex_unlock(&a->pool->lock);
}

/* The newest arena that a owns; NULL: there is none. */
static struct ap_arena *owned_by(const struct ap_arena *a)
{
	struct ap_arena *x;

	pthread_mutex_lock(&a->pool->lock);
	for (x = a->pool->newest; x && x->owner != a; x = x->older)
		;
	pthread_mutex_unlock(&a->pool->lock);
	return x;
}

void ap_arena_destroy(struct ap_arena *a)
{
	if (!a)
		return;
	for (struct ap_arena *x; (x = owned_by(a)) != NULL;)
		ap_arena_destroy(x);
	ap_arena_release(a, (struct ap_mark){0});
	while (a->like && a->spare)
		spare_give(a, a->like);
	spare_drop(a);
	pthread_mutex_lock(&a->pool->lock);
	if (a->newer)
		a->newer->older = a->older;
	else
		a->pool->newest = a->older;
	if (a->older)
		a->older->newer = a->newer;
	pthread_mutex_unlock(&a->pool->lock);
	if (a->pool == &a->own)
		pthread_mutex_destroy(&a->own.lock);
	free(a);
}

/* Bytes of data that fit in the budget as one more chunk. */
static size_t room(const struct ap_arena *a)
{
	size_t held = atomic_load_explicit(&a->pool->bytes, memory_order_relaxed) +
		sizeof(struct chunk);

	return a->pool->budget > held ? a->pool->budget - held : 0;
}

/* Size of data of a new chunk for need bytes; 0 if over budget. */
static size_t chunk_size(const struct ap_arena *a, size_t need)
{
	size_t size = a->bytes < CHUNK_MIN ? CHUNK_MIN : a->bytes, part = a->pool->budget / CHUNK_PART;
	size_t most = part && part < CHUNK_MAX ? part : CHUNK_MAX;

	if (size > most)
		size = most > CHUNK_MIN ? most : CHUNK_MIN;
	if (size < need)
		size = need;
	if (a->bytes >= FEW_BYTES && size <= HUGE_PAGE - sizeof(struct chunk) && most > HUGE_PAGE)
		size = HUGE_PAGE - sizeof(struct chunk);
	else if (size >= HUGE_PAGE && size < SIZE_MAX - 2 * HUGE_PAGE)
		size = ((size + sizeof(struct chunk) + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1)) -
			sizeof(struct chunk);
	if (a->pool->budget && size > room(a))
		size = room(a);
	return size >= need ? size : 0;
}

/* Aligns whole huge pages and requests them: page faults are expensive. */
static void *chunk_pages(size_t bytes)
{
	bool whole = bytes % HUGE_PAGE == 0; /* aligned to a huge page; the excess is unmapped */
	size_t more = whole ? HUGE_PAGE : 0, before;
	unsigned char *p;

	if (bytes < MAP_BYTES)
		return malloc(bytes);
	if (bytes + more < bytes)
		return NULL;
	p = mmap(NULL, bytes + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (!whole)
		return p;
	before = (HUGE_PAGE - ((uintptr_t)p & (HUGE_PAGE - 1))) & (HUGE_PAGE - 1);
	if (before)
		(void)munmap(p, before);
	(void)munmap(p + before + bytes, HUGE_PAGE - before);
	p += before;
#ifdef MADV_HUGEPAGE
	(void)madvise(p, bytes, MADV_HUGEPAGE);
#endif
	return p;
}

/* Not inlined: rare. */
static __attribute__((noinline)) void chunk_add(struct ap_arena *a, size_t need)
{
	struct chunk *c;

	if (a->spare && a->spare->size >= need) {
		c = spare_take(a);
	} else {
		size_t size;

		if (a->pool->budget)
			spare_drop(a);
		size = chunk_size(a, need);
		c = size ? chunk_pages(sizeof *c + size) : NULL;
		if (!c)
			out_of_memory(a, need);
		c->size = size;
		a->bytes += sizeof *c + size;
		atomic_fetch_add_explicit(&a->pool->bytes, sizeof *c + size,
			memory_order_relaxed);
	}
	c->used = 0;
	c->prev = a->last;
	a->last = c;
}

void *ap_arena_alloc_raw(struct ap_arena *a, size_t count, size_t size)
{
	size_t need;
	struct chunk *c;

	if (__builtin_mul_overflow(count, size, &need) || need > SIZE_MAX / 2)
		out_of_memory(a, SIZE_MAX);
	need = need ? (need + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN;
	if (!a->last || a->last->size - a->last->used < need)
		chunk_add(a, need);
	c = a->last;
	c->used += need;
	return c->data + (c->used - need);
}

void *ap_arena_alloc(struct ap_arena *a, size_t count, size_t size)
{
	void *p = ap_arena_alloc_raw(a, count, size);

	return memset(p, 0, count * size);
}

void *ap_arena_memdup(struct ap_arena *a, const void *p, size_t bytes)
{
	void *copy = ap_arena_alloc_raw(a, bytes, 1);

	return bytes ? memcpy(copy, p, bytes) : copy;
}

char *ap_arena_strndup(struct ap_arena *a, const char *s, size_t len)
{
	char *copy = ap_arena_alloc_raw(a, len + 1, 1);

	if (len)
		memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

char *ap_arena_strdup(struct ap_arena *a, const char *s)
{
	return ap_arena_strndup(a, s, strlen(s));
}

char *ap_arena_printf(struct ap_arena *a, const char *fmt, ...)
{
	char few[PRINTED_BYTES], *s;
	va_list ap;
	int len;

	assert(fmt);
	va_start(ap, fmt);
	len = vsnprintf(few, sizeof few, fmt, ap);
	va_end(ap);
	assert(len >= 0);
	if ((size_t)len < sizeof few)
		return ap_arena_strndup(a, few, (size_t)len);
	s = ap_arena_alloc_raw(a, (size_t)len + 1, 1);
	va_start(ap, fmt);
	vsnprintf(s, (size_t)len + 1, fmt, ap);
	va_end(ap);
	return s;
}

struct ap_mark ap_arena_mark(const struct ap_arena *a)
{
	return (struct ap_mark){.chunk = a->last, .used = a->last ? a->last->used : 0};
}

void ap_arena_release(struct ap_arena *a, struct ap_mark m)
{
	while (a->last != m.chunk) {
		struct chunk *c = a->last;

		assert(c); /* the mark is of this arena and not yet released */
		a->last = c->prev;
		spare_keep(a, c);
	}
	if (a->last)
		a->last->used = m.used;
}

size_t ap_arena_bytes(const struct ap_arena *a)
{
	return a->bytes;
}
