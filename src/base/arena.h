/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: memory grouped by lifetime. Allocation never returns NULL: when memory or the budget runs
 * out, the thread's innermost ap_arena_try() ends or, if there is none, the arena's out-of-memory
 * hook is called, which must not return (the program: message and exit 7; tests: longjmp). Not
 * thread-safe: one arena per thread; arenas of one budget may be created in several. */
#ifndef AP_BASE_ARENA_H
#define AP_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct ap_arena;

/* Called when memory runs out; must not return. wanted: bytes of the failed request. */
typedef void ap_oom_fn(void *user, size_t wanted);

/* A new empty arena of at most budget_bytes (0: no limit). Destroy with ap_arena_destroy().
 * oom NULL: a line on stderr and abort(). */
struct ap_arena *ap_arena_create(size_t budget_bytes, ap_oom_fn *oom, void *user);

/* A new empty arena with the hook and budget of another, which must outlive it. The budget limits
 * their sum; threads that reach it at once may exceed it by a chunk each. Spare chunks pass between
 * the two at creation and destruction, so these must happen where the other is in use. */
struct ap_arena *ap_arena_create_like(struct ap_arena *a);

/* Frees everything, owned arenas included; accepts NULL. */
void ap_arena_destroy(struct ap_arena *a);

/* Makes owner destroy a, which has the same budget. */
void ap_arena_own(struct ap_arena *owner, struct ap_arena *a);

/* A failed request. */
struct ap_refusal {
	struct ap_arena *arena;
	size_t wanted;
};

/* Runs part(user). Returns false if memory ran out in this thread, in a or another arena of its
 * budget. Then arenas that it created meanwhile are destroyed, after undo(user), if not NULL, released
 * other resources; other arenas are untouched, so data may be half changed. Tries nest. */
bool ap_arena_try(struct ap_arena *a, void (*part)(void *user), void (*undo)(void *user), void *user,
	struct ap_refusal *out);

/* Acts as if the request had failed here. */
_Noreturn void ap_arena_refuse(const struct ap_refusal *r);

/* count * size zeroed bytes, 16-byte aligned; overflow of the product counts as out of memory. */
void *ap_arena_alloc(struct ap_arena *a, size_t count, size_t size);

/* The same without zeroing, for large tables that are filled anyway. */
void *ap_arena_alloc_raw(struct ap_arena *a, size_t count, size_t size);

/* Copies kept in the arena; the string forms are NUL-terminated. */
void *ap_arena_memdup(struct ap_arena *a, const void *p, size_t bytes);
char *ap_arena_strdup(struct ap_arena *a, const char *s);
char *ap_arena_strndup(struct ap_arena *a, const char *s, size_t len);
char *ap_arena_printf(struct ap_arena *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* A point in the arena's history; release() frees what was allocated after it. */
struct ap_mark {
	void *chunk;
	size_t used;
};
struct ap_mark ap_arena_mark(const struct ap_arena *a);
void ap_arena_release(struct ap_arena *a, struct ap_mark m);

/* Bytes currently held from the system. */
size_t ap_arena_bytes(const struct ap_arena *a);

#define AP_NEW(a, T) ((T *)ap_arena_alloc((a), 1, sizeof(T)))
#define AP_NEW_N(a, T, n) ((T *)ap_arena_alloc((a), (size_t)(n), sizeof(T)))

#endif
