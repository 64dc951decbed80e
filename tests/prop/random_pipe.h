/* SPDX-License-Identifier: Apache-2.0 */
/* A random pipeline out of a trial: its graph staged, its machine shared out, its step with a schedule. */
#ifndef RANDOM_PIPE_H
#define RANDOM_PIPE_H

#include "trial.h"

/* Bits of enum ap_recompute. */
unsigned random_kinds(struct trial *t);

/* In most trials the operators are in layers, numbered cells: one after the other, some in none, and in a few
 * trials in turns. Before random_recompute(). */
void random_layers(struct trial *t);

/* Random operators are recomputed, as a setting or by their own flags. Before random_pipe(). */
void random_recompute(struct trial *t);

/* How gradients and weights are put together, any way there is. */
void random_fusion(struct trial *t);

/* False where the graph or the machine is too small: nothing is changed then. */
bool random_pipe(struct trial *t);

/* Of stages with unequal numbers of devices. */
bool random_pipe_unequal(struct trial *t);

/* Of stages that run forward and backward passes as one. */
bool random_pipe_beside(struct trial *t);

#endif
