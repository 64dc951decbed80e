/* SPDX-License-Identifier: Apache-2.0 */
/* Predicted over measured seconds as a picture. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include "rows.h"

/* Both in powers of ten; the lines beside the diagonal are 25 % off. */
void write_svg(const char *path, struct ap_arena *arena, const struct table *t);

#endif
