/* SPDX-License-Identifier: Apache-2.0 */
#include "search/engine.h"

#include <string.h>

#include "search/engines.h"

static const struct ap_engine engines[] = {
#define ENGINE(name, solve, flags, help) {#name, help, flags, solve},
#include "search/engines.def"
#undef ENGINE
};

const struct ap_engine *ap_engine_at(size_t i)
{
	return i < sizeof engines / sizeof *engines ? &engines[i] : NULL;
}

const struct ap_engine *ap_engine_find(const char *name)
{
	for (size_t i = 0; ap_engine_at(i); i++) {
		if (strcmp(engines[i].name, name) == 0)
			return &engines[i];
	}
	return NULL;
}
