/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"
#include "cost/optimizer.h"
#include "diff/diff.h"
#include "pipeline/schedule.h"
#include "route/route.h"
#include "search/engine.h"

/* Name i of a NULL-terminated list; NULL past its end. */
static const char *pick(const char *const *list, size_t i)
{
	while (i && *list) {
		list++;
		i--;
	}
	return *list;
}

const char *ap_choices_color(size_t i)
{
	static const char *const names[] = {"auto", "always", "never", NULL};

	return pick(names, i);
}

const char *ap_choices_communi(size_t i)
{
	static const char *const names[] = {"all_group_parallel", "same_server_group_parallel",
		"no_group_parallel", NULL};

	return pick(names, i);
}

const char *ap_choices_context_mode(size_t i)
{
	static const char *const names[] = {"graph", "!pynative: nothing runs in parallel in it", NULL};

	return pick(names, i);
}

const char *ap_choices_detail(size_t i)
{
	static const char *const names[] = {"fold", "full", NULL}; /* enum ap_pic_detail */

	return pick(names, i);
}

const char *ap_choices_device_target(size_t i)
{
	static const char *const names[] = {"Ascend", "GPU", "CPU", NULL};

	return pick(names, i);
}

const char *ap_choices_executor(size_t i)
{
	const struct ap_route *row = ap_route_at(i);

	return row ? row->name : NULL;
}

const char *ap_choices_format(size_t i)
{
	const struct ap_diff_writer *row = ap_diff_writer_at(i);

	return row ? row->name : NULL;
}

const char *ap_choices_fusion(size_t i)
{
	static const char *const names[] = {"auto", "size", "index", NULL};

	return pick(names, i);
}

const char *ap_choices_fusion_size(size_t i)
{
	static const char *const names[] = {"auto", "size",
		"!index: MindSpore has it for AllReduces alone", NULL};

	return pick(names, i);
}

const char *ap_choices_optimizer_level(size_t i)
{
	static const char *const names[] = {"level1", "level2", "level3", NULL};

	return pick(names, i);
}

const char *ap_choices_recompute(size_t i)
{
	static const char *const names[] = {"none", "selective", "full", NULL}; /* enum ap_recompute */

	return pick(names, i);
}

const char *ap_choices_scheduler(size_t i)
{
#define CHUNKS ": the sequence is not cut into chunks that follow one another"
	static const char *const others[] = {"!seqpipe" CHUNKS, "!seqvpp" CHUNKS,
		"!seqsmartvpp" CHUNKS, NULL};
#undef CHUNKS
	size_t rows = 0;

	while (ap_scheduler_at(rows))
		rows++;
	return i < rows ? ap_scheduler_at(i)->name : pick(others, i - rows);
}

const char *ap_choices_parallel_mode(size_t i)
{
	static const char *const names[] = {"auto_parallel", "data_parallel", "semi_auto_parallel",
		"hybrid_parallel", "stand_alone", NULL};

	return pick(names, i);
}

const char *ap_choices_run_phase(size_t i)
{
	static const char *const names[] = {"training", "inference", NULL};

	return pick(names, i);
}

const char *ap_choices_search_mode(size_t i)
{
	static const char *const later[] = {"!integer_programming", NULL};
	size_t engines = 0;

	if (!i)
		return "auto";
	while (ap_engine_at(engines))
		engines++;
	return i <= engines ? ap_engine_at(i - 1)->name : pick(later, i - 1 - engines);
}

const char *ap_choices_unknown_operators(size_t i)
{
	static const char *const names[] = {"error", "batch-parallel", NULL};

	return pick(names, i);
}

const char *ap_choices_optimizer(size_t i)
{
	const struct ap_optimizer *row = ap_optimizer_at(i);

	return row ? row->name : NULL;
}
