/* SPDX-License-Identifier: Apache-2.0 */
/* Which measurements are nearest to a run: held against the table itself. */
#include "hw/measured.h"

#include "base/vec.h"
#include "hw_test.h"

TEST_FIXTURE(setup, teardown)

static const struct ap_measured rows[] = {
#define MEASURED(chip, software, network, times, step_percent) {chip, software, network, times, step_percent},
#include "hw/measured.def"
#undef MEASURED
};

START_TEST(what_was_measured_is_found)
{
	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		bool is_like = false;
		const struct ap_measured *m = ap_measured_nearest(rows[i].chip, rows[i].software,
			rows[i].network, &is_like);

		ck_assert(is_like);
		ck_assert_str_eq(m->chip, rows[i].chip);
		ck_assert_str_eq(m->software, rows[i].software);
		ck_assert_str_eq(m->network, rows[i].network);
		ck_assert_int_eq(m->times, rows[i].times);
		ck_assert_int_ge(m->times, 1);
		ck_assert_int_eq(m->step_percent, rows[i].step_percent);
	}
}
END_TEST

/* Software before network before chip, of equal ones the most; nothing where only one of the last two is. */
START_TEST(what_was_not_is_near_its_software)
{
	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		const struct ap_measured *m;
		bool is_like = true;

		m = ap_measured_nearest("nobodys-chip", rows[i].software, rows[i].network, &is_like);
		ck_assert(!is_like);
		ck_assert_str_eq(m->software, rows[i].software);
		ck_assert_str_eq(m->network, rows[i].network);
		ck_assert_int_ge(m->times, rows[i].times);
		m = ap_measured_nearest(rows[i].chip, "nobodys", rows[i].network, &is_like);
		ck_assert(!is_like);
		ck_assert_str_eq(m->chip, rows[i].chip);
		ck_assert_str_eq(m->network, rows[i].network);
		ck_assert_ptr_null(ap_measured_nearest(rows[i].chip, "nobodys", "none", &is_like));
		ck_assert_ptr_null(ap_measured_nearest("nobodys-chip", "nobodys", rows[i].network, &is_like));
		m = ap_measured_nearest("nobodys-chip", rows[i].software, "none", &is_like);
		ck_assert(!is_like);
		ck_assert_str_eq(m->software, rows[i].software);
	}
}
END_TEST

START_TEST(steps_of_a_chip)
{
	ck_assert_int_eq(ap_measured_steps("a100-80"), 57 + 33 + 9);
	ck_assert_int_eq(ap_measured_steps("h20-96"), 0);
}
END_TEST
