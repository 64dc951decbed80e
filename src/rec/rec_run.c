/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "rec/rec_parts.h"

enum { SWEEPS = 16, PASSES = 12, POLL = 1024 };

bool ap_rec_spent(const struct ap_rec *r)
{
	return (ap_ctx_stopped(r->ctx) && r->work >= r->patience) ||
		(r->most_work > 0 && r->work > r->most_work);
}

/* All that the decision on u depends on. */
static size_t surroundings(struct ap_rec *r, ap_id u)
{
	uint32_t *k = r->key;

	*k++ = r->view->cls[u];
	*k++ = r->pick[u];
	for (uint32_t s = r->first[u]; s < r->first[u + 1]; s++) {
		*k++ = r->side[s].cls << 1 | r->side[s].is_v;
		*k++ = r->pick[r->side[s].other];
	}
	return (size_t)(k - r->key) * sizeof *k;
}

static uint32_t best_state(struct ap_rec *r, ap_id u)
{
	const struct ap_rec_view *v = r->view;
	struct ap_rec_list list = v->beside(v->self, v->cls[u], r->pick[u]);
	uint32_t best = r->pick[u];
	struct ap_rec_score least = ap_rec_weigh(r, u, best);

	for (uint32_t i = 0; i < list.n; i++) {
		struct ap_rec_score score = ap_rec_weigh(r, u, list.state[i]);

		if (ap_rec_less(&score, &least)) {
			least = score;
			best = list.state[i];
		}
	}
	return best;
}

static uint32_t decide(struct ap_rec *r, ap_id u)
{
	size_t len = surroundings(r, u);
	bool fresh;
	ap_id id = ap_map_put(r->memo, r->key, len, &fresh);

	if (fresh)
		AP_PUSH(r->ctx->scratch, r->answer, best_state(r, u));
	return r->answer.v[id];
}

static bool move_node(struct ap_rec *r, ap_id u)
{
	uint32_t state = decide(r, u);

	r->dirty[u] = false;
	if (state == r->pick[u])
		return false;
	r->pick[u] = state;
	for (uint32_t s = r->first[u]; s < r->first[u + 1]; s++)
		r->dirty[r->side[s].other] = true;
	return true;
}

/* One node at a time, forward and backward by turns. True where something moved. */
static bool sweep(struct ap_rec *r)
{
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
	uint32_t n = r->view->n;
	bool moved = true, any = false;

	r->memo = ap_map_create(r->ctx->scratch);
	r->answer.v = NULL;
	r->answer.n = r->answer.cap = 0;
	memset(r->dirty, true, n * sizeof *r->dirty);
	for (int pass = 0; pass < SWEEPS && moved; pass++) {
		moved = false;
		for (uint32_t i = 0; i < n && !(i % POLL == 0 && ap_rec_spent(r)); i++) {
			ap_id u = pass % 2 ? n - 1 - i : i;

			moved |= r->dirty[u] && move_node(r, u);
		}
		any |= moved;
	}
	ap_arena_release(r->ctx->scratch, mark);
	return any;
}

/* A level that moved nothing would do so again. */
static void cut_levels(struct ap_rec *r, struct ap_rec_score *total)
{
	const struct ap_rec_view *v = r->view;
	bool moved = true;

	for (uint32_t l = 0; l < v->nlevel && !ap_rec_spent(r); l++)
		if (moved || v->prime[l] != v->prime[l - 1])
			moved = ap_rec_pass(r, v->prime[l], false, total);
}

void ap_rec_run(struct ap_rec *r, struct ap_rec_rates rates)
{
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);
	struct ap_rec_score total;
	int still = 0;

	r->rates = rates;
	ap_rec_reset(r);
	ap_rec_open_passes(r);
	total = ap_rec_total(r, NULL);
	cut_levels(r, &total);
	for (int i = 0; i < PASSES && still < 2 && !ap_rec_spent(r); i++) {
		bool moved = ap_rec_pass(r, 0, i % 2 == 0, &total);

		if (!moved && sweep(r)) {
			moved = true;
			total = ap_rec_total(r, NULL);
		}
		still = moved ? 0 : still + 1;
	}
	ap_arena_release(r->ctx->scratch, mark);
}
