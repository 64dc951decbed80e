/* SPDX-License-Identifier: Apache-2.0 */
/* What every module is handed, always as first argument. No module has state of its own. */
#ifndef AP_BASE_CTX_H
#define AP_BASE_CTX_H

#include <signal.h>
#include <stdint.h>

#include "autopar/status.h"

struct ap_arena;
struct ap_diag;

typedef uint32_t ap_id; /* index into one of the flat arrays of an artefact */
#define AP_NONE UINT32_MAX

struct ap_ctx {
	struct ap_arena *arena; /* lives as long as the run */
	struct ap_arena *scratch; /* taken by mark, given back by release */
	struct ap_diag *diag; /* where messages go */
	int jobs; /* threads that may be used, >= 1; never changes a result */
	const volatile sig_atomic_t *stop; /* non-zero: stop soon; NULL: never */
	void (*phase)(void *user, const char *name); /* told what begins; NULL: nobody asks */
	void *phase_user;
	const char *helpers; /* folder of the programs that may be started; NULL: beside the running
			      * program, or where they are installed */
};

/* Leave the function with the status of x unless it is AP_OK. */
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

/* Tells the caller what begins now, in words of static storage, and so what has ended. Never from a
 * thread of its own. */
static inline void ap_ctx_phase(const struct ap_ctx *ctx, const char *name)
{
	if (ctx->phase)
		ctx->phase(ctx->phase_user, name);
}

#endif
