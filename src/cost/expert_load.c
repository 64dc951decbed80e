/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/expert_load.h"

#include <math.h>

double ap_expert_load(double imbalance, int64_t experts, int64_t parts)
{
	if (imbalance <= 1 || parts <= 1 || experts <= 1)
		return 1;
	return fmin((double)parts, 1 + (imbalance - 1) * sqrt((double)(parts - 1) / (double)(experts - 1)));
}

/* That none of k things out of n is one of x among them. */
static double none_of(double x, double n, int64_t k)
{
	double p = 1;

	for (int64_t i = 0; i < k && p > 0; i++)
		p *= fmax(0, 1 - x / (n - (double)i));
	return p;
}

/* C(n, k); without a library's logarithms, so that it is the same everywhere. */
static double choose(int64_t n, int64_t k)
{
	double c = 1;

	for (int64_t i = 0; i < k; i++)
		c = c * (double)(n - i) / (double)(i + 1);
	return c;
}

/* That a part of w groups has none of a token's experts. */
static double groups_without(const struct ap_expert_choice *c, int64_t w)
{
	int64_t a = c->groups_active, most = w < a ? w : a;
	double each = (double)c->experts / (double)c->groups, p = 0;

	for (int64_t j = a > c->groups - w ? a - (c->groups - w) : 0; j <= most; j++)
		p += choose(w, j) * choose(c->groups - w, a - j) / choose(c->groups, a) *
			none_of((double)j * each, (double)a * each, c->active);
	return p;
}

double ap_expert_parts(const struct ap_expert_choice *c, int64_t parts)
{
	double n = (double)parts, experts = (double)c->experts;

	if (parts <= 1)
		return 1;
	if (c->groups > c->groups_active && c->groups % parts == 0)
		return n * (1 - groups_without(c, c->groups / parts));
	if (c->groups > c->groups_active && parts % c->groups == 0) {
		double share = (double)c->groups_active / (double)c->groups;

		return n * share * (1 - none_of(experts / n, share * experts, c->active));
	}
	return n * (1 - none_of(experts / n, experts, c->active));
}
