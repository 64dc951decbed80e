/* SPDX-License-Identifier: Apache-2.0 */
/* The solve functions named in engines.def. */
#ifndef AP_SEARCH_ENGINES_H
#define AP_SEARCH_ENGINES_H

#include "search/engine.h"

#define ENGINE(name, solve, flags, help) \
	void solve(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_budget *budget, \
		struct ap_choice *out);
#include "search/engines.def"
#undef ENGINE

#endif
