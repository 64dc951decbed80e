/* SPDX-License-Identifier: Apache-2.0 */
/* The orders named in schedulers.def. */
#ifndef AP_PIPELINE_SCHEDULE_ORDERS_H
#define AP_PIPELINE_SCHEDULE_ORDERS_H

#include "pipeline/schedule.h"

#define SCHEDULER(name, order, refuses, splits, vee, least, most, help) \
	struct ap_schedule_slot *order(struct ap_arena *arena, int32_t nstage, int32_t nsegment, \
		int32_t stage, int32_t nmicro);
#include "pipeline/schedulers.def"
#undef SCHEDULER

#endif
