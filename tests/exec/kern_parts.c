/* SPDX-License-Identifier: Apache-2.0 */
#include "kern_parts.h"

#include <string.h>

#include "rule/attr.h"

bool ex_each(const struct ex_job *j, ex_element_fn *element)
{
	for (unsigned r = 0; r < j->nout; r++) {
		int64_t at[AP_MAX_RANK] = {0};

		for (unsigned i = 0; i < j->nin; i++)
			if (!ex_broadcasts(&j->in[i], &j->out[r].box))
				return false;
		do
			ex_put(&j->out[r], at, element(j, r, at));
		while (ex_step(&j->out[r].box, at));
	}
	return true;
}

ex_id ex_operand(const struct ex_job *j, unsigned i, const int64_t *at)
{
	return ex_get_broadcast(&j->in[i], at, j->out[0].box.rank);
}

static bool inside(const struct ex_source *s)
{
	for (int d = 0; d < s->t->box.rank; d++)
		if (s->at[d] < 0 || s->at[d] >= s->t->box.size[d])
			return false;
	return true;
}

bool ex_carry(const struct ex_job *j, ex_source_fn *from)
{
	for (unsigned r = 0; r < j->nout; r++) {
		int64_t at[AP_MAX_RANK] = {0};

		do {
			struct ex_source s = {.t = &j->in[0]};

			memcpy(s.at, at, sizeof s.at);
			from(j, r, at, &s);
			if (s.t && !inside(&s))
				return false;
			ex_put(&j->out[r], at, s.t ? ex_get(s.t, s.at) : 0);
		} while (ex_step(&j->out[r].box, at));
	}
	return true;
}

int64_t ex_listed(const struct ex_job *j, const char *name, unsigned i)
{
	return ap_attr_get(j->attrs, name)->list[i];
}

bool ex_begins(const struct ex_job *j, const char *text)
{
	return strncmp(j->type, text, strlen(text)) == 0;
}

bool ex_ends(const struct ex_job *j, const char *text)
{
	size_t n = strlen(j->type), m = strlen(text);

	return n >= m && strcmp(j->type + n - m, text) == 0;
}
