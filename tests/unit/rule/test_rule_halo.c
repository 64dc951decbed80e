/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions executed in integers, whole and on virtual ranks: each part has its slice, gets the
 * rows that the halo says from the parts above and below, then the columns from those beside it, and
 * convolves what it then has. Parts together must be the uncut result.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "rule/legal.h"
#include "rule/window.h"
#include "harness.h"
#include "rule_fixture.h"

enum { MOST = 64 };

/* ck_assert for inner loops: Check notes every call of its own, which costs a system call. */
#define REQUIRE(x) \
	do { \
		if (!(x)) \
			ck_abort_msg("'%s' does not hold", #x); \
	} while (0)

/* A two-dimensional piece of a tensor, of which the first element is [top][left] of the whole. */
struct piece {
	int64_t top, left, height, width;
	int64_t *v;
};

static uint32_t draw(uint64_t *state, uint32_t n)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32) % n;
}

static struct piece make(int64_t top, int64_t left, int64_t height, int64_t width)
{
	size_t n = (size_t)(height * width);

	return (struct piece){top, left, height, width, AP_NEW_N(ctx.arena, int64_t, n)};
}

static int64_t *at(const struct piece *p, int64_t y, int64_t x)
{
	REQUIRE(y >= p->top && y < p->top + p->height && x >= p->left && x < p->left + p->width);
	return &p->v[(y - p->top) * p->width + x - p->left];
}

/* The elements of src that lie in dst. */
static void take(const struct piece *dst, const struct piece *src)
{
	for (int64_t y = src->top; y < src->top + src->height; y++)
		for (int64_t x = src->left; x < src->left + src->width; x++)
			if (y >= dst->top && y < dst->top + dst->height && x >= dst->left &&
				x < dst->left + dst->width)
				*at(dst, y, x) = *at(src, y, x);
}

struct conv {
	struct ap_bound b;
	const struct ap_window *h, *w;
	int64_t kernel[2], dilation[2];
	struct piece x, weight, y;
};

/* Windows first..last of a piece; reading beyond the piece, but inside the operand, is an error. */
static void convolve(const struct conv *c, const struct piece *x, const struct piece *y)
{
	for (int64_t i = y->top; i < y->top + y->height; i++)
		for (int64_t j = y->left; j < y->left + y->width; j++)
			for (int64_t k = 0; k < c->kernel[0] * c->kernel[1]; k++) {
				int64_t r = k / c->kernel[1], s = k % c->kernel[1];
				int64_t row = i * c->h->stride - c->h->before + r * c->dilation[0];
				int64_t col = j * c->w->stride - c->w->before + s * c->dilation[1];

				if (row >= 0 && row < c->h->size && col >= 0 && col < c->w->size)
					*at(y, i, j) += *at(x, row, col) * *at(&c->weight, r, s);
			}
}

/* Slice p of q: rows and columns that a rank holds. */
static struct piece slice(const struct conv *c, int64_t p, int64_t parts_h, int64_t q,
	int64_t parts_w)
{
	int64_t height = c->h->size / parts_h, width = c->w->size / parts_w;
	struct piece own = make(p * height, q * width, height, width);

	take(&own, &c->x);
	return own;
}

/* All ranks at once: every piece grows by its halo, from the piece before and the one after it. */
static void exchange(struct piece *piece, const struct ap_window *w, int64_t parts, int step,
	int lines, bool rows)
{
	struct piece grown[MOST];

	for (int line = 0; line < lines; line++)
		for (int64_t p = 0; p < parts; p++) {
			int i = rows ? (int)p * step + line : line * step + (int)p;
			int before = rows ? i - step : i - 1, after = rows ? i + step : i + 1;
			struct ap_halo h = ap_window_halo(w, parts, p);
			struct piece *own = &piece[i];

			h.before = h.before > 0 ? h.before : 0;
			h.after = h.after > 0 ? h.after : 0;
			grown[i] = rows ? make(own->top - h.before, own->left,
				own->height + h.before + h.after, own->width)
				: make(own->top, own->left - h.before, own->height,
					own->width + h.before + h.after);
			take(&grown[i], own);
			if (p > 0)
				take(&grown[i], &piece[before]);
			if (p < parts - 1)
				take(&grown[i], &piece[after]);
		}
	memcpy(piece, grown, sizeof *piece * (size_t)(parts * lines));
}

static bool legal(const struct conv *c, int64_t parts_h, int64_t parts_w)
{
	int32_t count[AP_MAX_FACTOR];

	for (uint8_t f = 0; f < c->b.nfactor; f++)
		count[f] = f == c->h->factor ? (int32_t)parts_h
			: f == c->w->factor ? (int32_t)parts_w : 1;
	return ap_rule_legal(&c->b, count, parts_h * parts_w, true, NULL);
}

static void run_cut(const struct conv *c, int64_t parts_h, int64_t parts_w)
{
	int n = (int)(parts_h * parts_w), pw = (int)parts_w, ph = (int)parts_h;
	int64_t height = c->h->count / parts_h, width = c->w->count / parts_w;
	struct piece x[MOST];

	for (int i = 0; i < n; i++)
		x[i] = slice(c, i / pw, parts_h, i % pw, parts_w);
	exchange(x, c->h, parts_h, pw, pw, true);
	exchange(x, c->w, parts_w, pw, ph, false);
	for (int i = 0; i < n; i++) {
		struct piece y = make(i / pw * height, i % pw * width, height, width);

		convolve(c, &x[i], &y);
		for (int64_t r = y.top; r < y.top + height; r++)
			for (int64_t s = y.left; s < y.left + width; s++)
				REQUIRE(*at(&y, r, s) == *at(&c->y, r, s));
	}
}

static void fill(struct piece *p, uint64_t *rng)
{
	for (int64_t i = 0; i < p->height * p->width; i++)
		p->v[i] = (int64_t)draw(rng, 1000) + 1;
}

/* False where the attributes fit no window. */
static bool draw_conv(struct conv *c, uint64_t *rng, bool pool)
{
	static const char *const modes[] = {"same", "pad", "valid"};
	int64_t size[2], stride[2];
	int mode = (int)draw(rng, pool ? 1 : 3), big = mode == 1 ? 4 : 1;
	char shapes[128], attrs[256];
	struct ap_bind_fault fault;

	for (int i = 0; i < 2; i++) {
		size[i] = 1 + draw(rng, 24);
		stride[i] = 1 + draw(rng, 3);
		c->kernel[i] = 1 + draw(rng, pool ? (uint32_t)stride[i] : 5);
		c->dilation[i] = pool ? 1 : 1 + draw(rng, 2);
	}
	snprintf(shapes, sizeof shapes, "float32[1,1,%" PRId64 ",%" PRId64 "]%s", size[0], size[1],
		pool ? "" : " float32[1,1,1,1]");
	if (!pool)
		snprintf(strrchr(shapes, '['), 64, "[1,1,%" PRId64 ",%" PRId64 "]", c->kernel[0],
			c->kernel[1]);
	snprintf(attrs, sizeof attrs, "kernel_size=%" PRId64 ",%" PRId64 " strides=%" PRId64
		",%" PRId64 " dilation=%" PRId64 ",%" PRId64 " pad_mode=%s pad=%u,%u,%u,%u",
		c->kernel[0], c->kernel[1], stride[0], stride[1], c->dilation[0], c->dilation[1],
		modes[mode], draw(rng, (uint32_t)big), draw(rng, (uint32_t)big),
		draw(rng, (uint32_t)big), draw(rng, (uint32_t)big));
	if (bind_text(pool ? "MaxPool" : "Conv2D", shapes, attrs, "", &c->b, &fault) != AP_OK)
		return false;
	c->h = &c->b.window[0];
	c->w = &c->b.window[1];
	c->x = make(0, 0, size[0], size[1]);
	c->weight = make(0, 0, c->kernel[0], c->kernel[1]);
	c->y = make(0, 0, c->h->count, c->w->count);
	fill(&c->x, rng);
	fill(&c->weight, rng);
	convolve(c, &c->x, &c->y);
	return true;
}

TEST_FIXTURE(fixture_setup, fixture_teardown)

/* Poolings run as sums of weighted elements, too: what they read is what matters. */
START_TEST(cut_convolutions_give_the_uncut_result)
{
	const char *given = getenv("AP_SEED");
	uint64_t rng = (given ? strtoull(given, NULL, 10) : 20240607) | 1;
	int run[2] = {0, 0}, both = 0;

	printf("AP_SEED=%" PRIu64 "\n", rng);
	for (int round = 0; round < 4000; round++) {
		struct ap_mark mark = ap_arena_mark(ctx.arena);
		bool pool = round % 4 == 0;
		struct conv c = {0};

		if (draw_conv(&c, &rng, pool))
			for (int64_t ph = 1; ph <= 8; ph++)
				for (int64_t pw = 1; pw <= 8; pw++)
					if (ph * pw > 1 && legal(&c, ph, pw)) {
						run_cut(&c, ph, pw);
						run[pool]++;
						both += ph > 1 && pw > 1 && c.h->kernel > c.h->stride &&
							c.w->kernel > c.w->stride;
					}
		ap_arena_release(ctx.arena, mark);
	}
	ck_assert_int_gt(run[0], 500);
	ck_assert_int_gt(run[1], 200);
	ck_assert_int_gt(both, 50); /* with corners */
}
END_TEST
