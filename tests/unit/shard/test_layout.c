/* SPDX-License-Identifier: Apache-2.0 */
#include "bound.h"
#include "base/vec.h"
#include "harness.h"
#include "hw/group.h"
#include "shard/layout.h"

static void check_map(const struct ap_placement *p, const struct ap_operand *t,
	const struct ap_dev_matrix *dev, const char *want)
{
	int32_t map[AP_MAX_RANK];

	ck_assert(ap_tensor_map(p, t, dev, map));
	check_list("tensor map", map, t->rank, want);
}

static void check_group(const struct ap_axes *axes, int64_t rank, const char *want)
{
	int64_t group[64];
	int32_t small[64];
	int n = (int)ap_axes_size(axes);

	ap_axes_group(axes, rank, group);
	for (int i = 0; i < n; i++)
		small[i] = (int32_t)group[i];
	check_list("group", small, n, want);
}

static void check_layout(const struct ap_placement *p, const struct ap_operand *t, const char *want)
{
	struct ap_layout l;
	int32_t flat[2 * AP_MAX_RANK];

	ck_assert(ap_layout_make(p, t, &l));
	for (int d = 0; d < l.rank; d++) {
		flat[2 * d] = l.dim[d].cut;
		flat[2 * d + 1] = l.dim[d].stride;
	}
	check_list("layout (cut stride)..", flat, 2 * l.rank, want);
}

/* Formats 1.5, first worked example. */
START_TEST(matmul_2_2_1_repeats_right)
{
	struct made m;
	struct ap_placement p;
	struct ap_dev_matrix dev;
	struct ap_axes axes;
	struct ap_layout w;
	int64_t slice[2];

	make_bound(&m, "mk,kn->mn", "m128 k64 n32", "");
	ap_placement_make(&m.b, (int32_t[]){2, 2, 1}, 8, &p);
	ck_assert_int_eq(p.repeat, 2);
	ck_assert(!p.left);
	ap_dev_matrix_raw(&p, &dev);
	check_list("raw", dev.axis, dev.n, "2 2 1 2");
	check_map(&p, &m.b.in[0], &dev, "3 2");
	check_map(&p, &m.b.in[1], &dev, "2 1");
	check_map(&p, &m.b.out[0], &dev, "3 1");
	ap_dev_matrix_standard(&p, &dev);
	check_list("standard", dev.axis, dev.n, "2 2 2");
	check_map(&p, &m.b.in[0], &dev, "2 1");
	check_map(&p, &m.b.in[1], &dev, "1 -1");
	check_map(&p, &m.b.out[0], &dev, "2 -1");
	check_layout(&p, &m.b.in[0], "2 4 2 2");
	check_layout(&p, &m.b.in[1], "2 2 1 0");
	ap_placement_replicas(&p, &m.b.in[1], &axes);
	check_group(&axes, 0, "0 1 4 5");
	check_group(&axes, 6, "2 3 6 7");
	ck_assert(ap_layout_make(&p, &m.b.in[1], &w));
	ap_layout_slice(&w, m.b.in[1].size, slice);
	ck_assert_int_eq(slice[0], 32);
	ck_assert_int_eq(slice[1], 32);
}
END_TEST

/* The second: no repeat, the weight's columns cut in two. */
START_TEST(matmul_4_1_2_fills_the_devices)
{
	struct made m;
	struct ap_placement p;
	struct ap_dev_matrix dev;
	struct ap_axes axes;

	make_bound(&m, "mk,kn->mn", "m128 k64 n32", "");
	ap_placement_make(&m.b, (int32_t[]){4, 1, 2}, 8, &p);
	ck_assert_int_eq(p.repeat, 1);
	ap_dev_matrix_raw(&p, &dev);
	check_list("raw", dev.axis, dev.n, "4 1 2");
	check_map(&p, &m.b.in[1], &dev, "1 0");
	ap_dev_matrix_standard(&p, &dev);
	check_list("standard", dev.axis, dev.n, "4 2");
	check_map(&p, &m.b.in[0], &dev, "1 -1");
	check_map(&p, &m.b.in[1], &dev, "-1 0");
	check_map(&p, &m.b.out[0], &dev, "1 0");
	ap_placement_replicas(&p, &m.b.in[1], &axes);
	check_group(&axes, 0, "0 2 4 6");
	check_group(&axes, 7, "1 3 5 7");
	ap_placement_axes(&p, 1u << 2, false, &axes);
	check_group(&axes, 5, "4 5");
}
END_TEST

START_TEST(bias_add_follows_the_columns)
{
	struct made m;
	struct ap_placement p;
	struct ap_dev_matrix dev;

	make_bound(&m, "mn,n->mn", "m128 n32", "");
	ap_placement_make(&m.b, (int32_t[]){4, 2}, 8, &p);
	ap_dev_matrix_standard(&p, &dev);
	check_list("standard", dev.axis, dev.n, "4 2");
	check_map(&p, &m.b.in[1], &dev, "0");
}
END_TEST

/* The third. */
START_TEST(layer_norm_8_1)
{
	struct made m;
	struct ap_placement p;
	struct ap_dev_matrix dev;
	struct ap_axes axes;

	make_bound(&m, "bh,h,h->bh,b1,b1", "b128 h64!", "");
	ap_placement_make(&m.b, (int32_t[]){8, 1}, 8, &p);
	ap_dev_matrix_raw(&p, &dev);
	check_list("raw", dev.axis, dev.n, "8 1");
	ap_dev_matrix_standard(&p, &dev);
	check_list("standard", dev.axis, dev.n, "8");
	check_map(&p, &m.b.in[0], &dev, "0 -1");
	check_map(&p, &m.b.in[1], &dev, "-1");
	check_map(&p, &m.b.out[1], &dev, "0 -1");
	ap_placement_replicas(&p, &m.b.in[1], &axes);
	check_group(&axes, 3, "0 1 2 3 4 5 6 7");
	ap_placement_replicas(&p, &m.b.in[0], &axes);
	ck_assert_int_eq(axes.n, 0);
}
END_TEST

/* Gather: the repeat goes left when the looked-up axis is cut, right otherwise. */
START_TEST(gather_repeats_left_when_its_axis_is_cut)
{
	struct made m;
	struct ap_placement p;
	struct ap_dev_matrix dev;
	struct ap_axes axes;

	make_bound(&m, "vd,bs->bsd", "b16 s8 v100 d64", "v");
	ap_placement_make(&m.b, (int32_t[]){1, 1, 4, 1}, 8, &p);
	ck_assert(p.left);
	ck_assert_int_eq(p.repeat_stride, 4);
	ap_dev_matrix_raw(&p, &dev);
	check_list("raw", dev.axis, dev.n, "2 1 1 4 1");
	check_map(&p, &m.b.in[0], &dev, "1 0");
	ap_dev_matrix_standard(&p, &dev);
	check_list("standard", dev.axis, dev.n, "2 4");
	check_map(&p, &m.b.in[0], &dev, "0 -1");
	check_layout(&p, &m.b.in[0], "4 1 1 0");
	ap_placement_replicas(&p, &m.b.in[0], &axes);
	check_group(&axes, 1, "1 5");

	ap_placement_make(&m.b, (int32_t[]){4, 1, 1, 1}, 8, &p);
	ck_assert(!p.left);
	ap_dev_matrix_standard(&p, &dev);
	check_list("standard", dev.axis, dev.n, "4 2");
	check_layout(&p, &m.b.in[1], "4 2 1 0");
}
END_TEST

START_TEST(virtual_dataset_always_repeats_left)
{
	struct made m;
	struct ap_placement p;
	struct ap_dev_matrix dev;

	make_bound(&m, "bs->bs", "b2 s8", "*");
	ap_placement_make(&m.b, (int32_t[]){2, 1}, 24, &p);
	ap_dev_matrix_standard(&p, &dev);
	check_list("standard", dev.axis, dev.n, "12 2");
	ap_placement_make(&m.b, (int32_t[]){1, 1}, 24, &p);
	ap_dev_matrix_raw(&p, &dev);
	check_list("raw", dev.axis, dev.n, "24 1 1");
}
END_TEST

START_TEST(nothing_cut_on_one_device_is_the_matrix_of_one)
{
	struct made m;
	struct ap_placement p;
	struct ap_dev_matrix dev;
	struct ap_layout l;

	make_bound(&m, "m->m", "m7", "");
	ap_placement_make(&m.b, (int32_t[]){1}, 1, &p);
	ap_dev_matrix_standard(&p, &dev);
	check_list("standard", dev.axis, dev.n, "1");
	check_map(&p, &m.b.in[0], &dev, "-1");
	ck_assert(ap_layout_make(&p, &m.b.in[0], &l));
	ck_assert(ap_layout_is_whole(&l));

	make_bound(&m, "->", "", "");
	ap_placement_make(&m.b, NULL, 8, &p);
	ap_dev_matrix_raw(&p, &dev);
	check_list("scalar", dev.axis, dev.n, "8");
	ck_assert(ap_layout_make(&p, &m.b.in[0], &l));
	ck_assert_int_eq(ap_layout_parts(&l), 1);
}
END_TEST

START_TEST(composed_dimensions_merge_adjacent_axes)
{
	struct made m;
	struct ap_placement p;
	struct ap_layout l;
	struct ap_dev_matrix dev;
	int32_t map[AP_MAX_RANK], cut[AP_MAX_RANK];

	make_bound(&m, "bsh->(bs)h", "b2 s6 h4", "");
	ap_placement_make(&m.b, (int32_t[]){2, 3, 2}, 24, &p);
	check_layout(&p, &m.b.in[0], "2 12 3 4 2 2");
	check_layout(&p, &m.b.out[0], "6 4 2 2");
	ap_strategy_vector(&p, &m.b.out[0], cut);
	check_list("strategy", cut, 2, "6 2");
	ap_dev_matrix_standard(&p, &dev);
	check_list("standard", dev.axis, dev.n, "2 3 2 2");
	ck_assert(!ap_tensor_map(&p, &m.b.out[0], &dev, map));
	ck_assert(ap_layout_make(&p, &m.b.out[0], &l));
	ap_layout_dev_matrix(&l, 24, &dev, map);
	check_list("own", dev.axis, dev.n, "6 2 2");
	check_list("own map", map, 2, "2 1");

	make_bound(&m, "bsh->(bh)s", "b2 s6 h4", "");
	ap_placement_make(&m.b, (int32_t[]){2, 3, 2}, 24, &p);
	ck_assert(!ap_layout_make(&p, &m.b.out[0], &l));
	ap_placement_make(&m.b, (int32_t[]){2, 1, 2}, 24, &p);
	check_layout(&p, &m.b.out[0], "4 6 1 0");
}
END_TEST

static struct ap_layout layout2(int cut0, int stride0, int cut1, int stride1)
{
	struct ap_layout l = {.rank = 2};

	l.dim[0] = (struct ap_cut_dim){cut0, stride0};
	l.dim[1] = (struct ap_cut_dim){cut1, stride1};
	return l;
}

START_TEST(bare_layouts_get_the_coarsest_dev_matrix)
{
	static const struct {
		int cut0, stride0, cut1, stride1;
		int64_t ndev;
		const char *dev, *map;
	} row[] = {
		{1, 0, 1, 0, 1, "1", "-1 -1"},
		{1, 0, 1, 0, 24, "24", "-1 -1"},
		{8, 1, 1, 0, 8, "8", "0 -1"},
		{2, 1, 1, 0, 8, "4 2", "0 -1"},
		{2, 4, 1, 0, 8, "2 4", "1 -1"},
		{2, 2, 1, 0, 8, "2 2 2", "1 -1"},
		{2, 1, 3, 2, 24, "4 3 2", "0 1"},
		{3, 8, 4, 1, 24, "3 2 4", "2 0"},
		{2, 12, 3, 1, 24, "2 4 3", "2 0"},
	};

	for (size_t i = 0; i < AP_COUNT(row); i++) {
		struct ap_layout l =
			layout2(row[i].cut0, row[i].stride0, row[i].cut1, row[i].stride1);
		struct ap_dev_matrix dev;
		int32_t map[AP_MAX_RANK];

		ap_layout_dev_matrix(&l, row[i].ndev, &dev, map);
		check_list("dev", dev.axis, dev.n, row[i].dev);
		check_list("map", map, 2, row[i].map);
	}
}
END_TEST

START_TEST(equality_is_of_every_cut_and_stride)
{
	struct ap_layout a = layout2(2, 4, 2, 1), b = layout2(2, 4, 2, 2);

	ck_assert(ap_layout_equal(&a, &a));
	ck_assert(!ap_layout_equal(&a, &b));
	ck_assert_int_eq(ap_layout_parts(&a), 4);
	ck_assert(!ap_layout_is_whole(&a));
	ck_assert_uint_eq(sizeof a, 4 + 8 * AP_MAX_RANK);
}
END_TEST

/* The part of dimension d that a rank holds, by dev_matrix and tensor_map. */
static int64_t part_by_map(const struct ap_dev_matrix *dev, int32_t axis, int64_t rank)
{
	int64_t stride = 1;

	if (axis < 0)
		return 0;
	for (int i = 0; i < axis; i++)
		stride *= dev->axis[dev->n - 1 - i];
	return rank / stride % dev->axis[dev->n - 1 - axis];
}

static int64_t part(const struct ap_cut_dim *dim, int64_t rank)
{
	return dim->cut == 1 ? 0 : rank / dim->stride % dim->cut;
}

static void check_forms(const struct ap_placement *p, const struct ap_operand *t)
{
	struct ap_dev_matrix raw, standard, own;
	int32_t rmap[AP_MAX_RANK], smap[AP_MAX_RANK], omap[AP_MAX_RANK];
	struct ap_layout l;

	REQUIRE(ap_layout_make(p, t, &l));
	ap_dev_matrix_raw(p, &raw);
	ap_dev_matrix_standard(p, &standard);
	REQUIRE(ap_tensor_map(p, t, &raw, rmap));
	REQUIRE(ap_tensor_map(p, t, &standard, smap));
	ap_layout_dev_matrix(&l, p->ndev, &own, omap);
	for (int64_t r = 0; r < p->ndev; r++)
		for (int d = 0; d < t->rank; d++) {
			int64_t want = part(&l.dim[d], r);

			REQUIRE(part_by_map(&raw, rmap[d], r) == want);
			REQUIRE(part_by_map(&standard, smap[d], r) == want);
			REQUIRE(part_by_map(&own, omap[d], r) == want);
		}
}

static bool same_slice(const struct ap_layout *l, int64_t a, int64_t b)
{
	for (int d = 0; d < l->rank; d++)
		if (part(&l->dim[d], a) != part(&l->dim[d], b))
			return false;
	return true;
}

static void check_replicas(const struct ap_placement *p, const struct ap_operand *t)
{
	struct ap_layout l;
	struct ap_axes axes;
	int64_t group[64];

	REQUIRE(ap_layout_make(p, t, &l));
	ap_placement_replicas(p, t, &axes);
	for (int64_t r = 0; r < p->ndev; r++) {
		int64_t n = 0;

		ap_axes_group(&axes, r, group);
		for (int64_t o = 0; o < p->ndev; o++)
			if (same_slice(&l, r, o))
				REQUIRE(group[n++] == o);
		REQUIRE(n == ap_axes_size(&axes));
	}
}

/* All forms of a placement say the same, on every rank, for random counts. */
START_TEST(forms_agree_on_every_rank)
{
	uint64_t seed = random_seed("forms_agree_on_every_rank");
	static const int64_t ndevs[] = {1, 2, 6, 8, 12, 24, 60};
	struct made m;

	make_bound(&m, "mk,kn,1n->mn,m", "k3600 m3600 n3600", "k");
	for (int round = 0; round < 500; round++) {
		int64_t ndev = ndevs[random_next(&seed) % 7], left = ndev;
		int32_t count[3];
		struct ap_placement p;

		for (int f = 0; f < 3; f++) {
			do
				count[f] = (int32_t)(random_next(&seed) % (uint64_t)left) + 1;
			while (left % count[f]);
			left /= count[f];
		}
		ap_placement_make(&m.b, count, ndev, &p);
		for (int i = 0; i < m.b.nin + m.b.nout; i++) {
			check_forms(&p, &m.t[i]);
			check_replicas(&p, &m.t[i]);
		}
	}
}
END_TEST
