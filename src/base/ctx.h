/* SPDX-License-Identifier: Apache-2.0 */
/* Passed to every function, first. Modules have no state of their own. */
#ifndef AP_BASE_CTX_H
#define AP_BASE_CTX_H

#include <signal.h>
#include <stdint.h>

#include "autopar/status.h"

struct ap_arena;
struct ap_diag;

typedef uint32_t ap_id; /* index into one of the flat arrays of an artefact */
#define AP_NONE UINT32_MAX

struct ap_progress { /* of a search; what is not known keeps its value */
	double best_s; /* step of the best plan so far; 0: not known */
	double bound_s; /* no step of what is searched is under it; 0: not known; negative: no longer */
	double done; /* share of the phase; negative: not known */
};

struct ap_ctx {
	struct ap_arena *arena; /* lives for the whole run */
	struct ap_arena *scratch; /* released by mark */
	struct ap_diag *diag; /* sink of messages */
	int jobs; /* most threads to use, >= 1; never changes a result */
	const volatile sig_atomic_t *stop; /* non-zero: stop soon; may be NULL */
	void (*phase)(void *user, const char *name); /* called at the start of each phase; may be NULL */
	void *phase_user;
	/* called when more is known; may be NULL */
	void (*progress)(void *user, const struct ap_progress *p);
	const char *helpers; /* folder of programs to start; NULL: next to the running program,
			or where installed */
};

/* Returns the status of x unless it is AP_OK. */
#define AP_TRY(x) \
	do { \
		enum ap_status ap_try_status_ = (x); \
		if (ap_try_status_ != AP_OK) \
			return ap_try_status_; \
	} while (0)

static inline int ap_ctx_stopped(const struct ap_ctx *ctx)
{
	return ctx->stop && *ctx->stop;
}

/* Tells the caller that a phase begins, which ends the last; name is static. Main thread only. */
static inline void ap_ctx_phase(const struct ap_ctx *ctx, const char *name)
{
	if (ctx->phase)
		ctx->phase(ctx->phase_user, name);
}

/* Tells the caller how far a search is. Main thread only. */
static inline void ap_ctx_progress(const struct ap_ctx *ctx, double best_s, double bound_s, double done)
{
	const struct ap_progress p = {best_s, bound_s, done};

	if (ctx->progress)
		ctx->progress(ctx->phase_user, &p);
}

#endif
