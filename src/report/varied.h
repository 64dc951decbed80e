/* SPDX-License-Identifier: Apache-2.0 */
/* Which plan is best where a number is another: as text, as autopar-vary/1, and as a plot. */
#ifndef AP_REPORT_VARIED_H
#define AP_REPORT_VARIED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/ctx.h"

struct ap_str;

struct ap_varied_plan {
	const char *words; /* "dp=8,tp=4", "dp=8,tp=4 but for 12 operators" */
	int64_t memory_bytes; /* at the first value at which it was found */
};

struct ap_varied_point { /* a value at which was searched */
	double value;
	uint32_t plan; /* the best one there of all that were found; AP_NONE: none fits */
	const double *step_s; /* [nplan] of all plans there; INFINITY: it does not fit there */
	double own_s; /* of the plan that the search there found by itself; INFINITY: it found none */
	double found_at; /* the value at which the best one was found first */
	double bound_s; /* no plan has a shorter step there; 0: not known */
	double rate; /* samples per second of the best; 0: not known */
	const char *why; /* there is no plan; NULL: there is one */
};

struct ap_varied_interval { /* values between which one plan is best */
	double from, to; /* were searched, both; they may be equal */
	uint32_t plan; /* AP_NONE: none fits */
	double from_s, to_s; /* its steps there */
	bool proven; /* no plan is faster anywhere within, by more than `within` */
	double margin; /* by how much one could be at most, as a share of its step; NAN: not known */
	double gap; /* by how much it is above a bound of its searches at most, likewise */
	uint32_t searches; /* from `from` to `to` */
	const char *why; /* there is no plan; NULL: there is one */
};

struct ap_varied {
	const char *key; /* as the user spelled it: "ib.bandwidth" */
	const char *what; /* "levels.ib.bandwidth_Bps of chip a100-80" */
	const char *unit; /* "B/s", "s", "B", "FLOP/s"; "" and others: a plain number */
	double base; /* what it is without --vary; 0: not known */
	double from, to;
	bool in_steps; /* values were tried one by one, and plans of two are not compared */
	double within; /* share of a step, for `proven` */
	uint32_t nplan;
	const struct ap_varied_plan *plan; /* in the order of the values at which they are best first */
	uint32_t npoint;
	const struct ap_varied_point *point; /* ascending */
	uint32_t ninterval;
	const struct ap_varied_interval *interval; /* ascending */
	uint32_t nopen; /* of two neighbouring intervals, gaps between them that were not narrowed down */
	uint64_t work; /* inner steps of all searches */
	bool complete; /* not stopped */
};

/* "18.27 GB/s", "0.731", "24 GiB": four digits. In arena. */
const char *ap_varied_value(struct ap_arena *arena, const char *unit, double value);

/* "A" .. "Z", "A1", ..: what plans are called. In arena. */
const char *ap_varied_letter(struct ap_arena *arena, uint32_t plan);

void ap_varied_write(struct ap_ctx *ctx, const struct ap_varied *v, bool json, struct ap_str *out);

/* An SVG: the value from left to right, in proportion, and up the step of each plan that is best
 * somewhere; the best drawn strong, ends of intervals as lines, the bound dotted. Names from files are
 * not in it. */
void ap_varied_plot(struct ap_ctx *ctx, const struct ap_varied *v, struct ap_str *out);

#endif
