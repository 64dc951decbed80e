/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/optimizer.h"

#include <assert.h>
#include <string.h>

#include "base/vec.h"

static const struct ap_optimizer table[] = {
#define OPTIMIZER(name, prefixes, nstate, bytes, whole) {name, prefixes, nstate, bytes, whole},
#include "cost/optimizer.def"
#undef OPTIMIZER
};

const struct ap_optimizer *ap_optimizer_at(size_t i)
{
	return i < AP_COUNT(table) ? &table[i] : NULL;
}

const struct ap_optimizer *ap_optimizer_find(const char *name)
{
	for (size_t i = 0; i < AP_COUNT(table); i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

const char *ap_optimizer_prefix(const struct ap_optimizer *o, int i, char buf[32])
{
	const char *s = o->prefixes;
	size_t len;

	assert(i >= 0 && i < o->nstate);
	for (; i > 0; i--)
		s = strchr(s, ' ') + 1;
	len = strcspn(s, " ");
	assert(len < 32);
	memcpy(buf, s, len);
	buf[len] = '\0';
	return buf;
}
