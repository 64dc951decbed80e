/* SPDX-License-Identifier: Apache-2.0 */
/* Rank tables: checked, converted, planned for; what is converted is a rank table again. */
#include "fuzz.h"

#include "base/vec.h"

static const char *word(size_t i)
{
	static const char *const words[] = {"group_list", "server_list", "rank_list", "node_list", "cluster_list",
		"super_pod_list", "board_id", "chip_info", "deploy_mode", "group_count", "group_name", "instance_count",
		"device_count", "instance_list", "devices", "device_id", "device_ip", "rank_id", "server_id",
		"para_plane_nic_location", "para_plane_nic_name", "para_plane_nic_num", "status", "version", "1.0", "1.2",
		"2.0", "completed", "device", "host", "lab", "super_device_id", "super_pod_id", "server_count",
		"level_list", "rank_addr_list", "910", "910B", "0x0020", "lab", "192.168.100.101"};

	return i < AP_COUNT(words) ? words[i] : NULL;
}

static int try_input(const uint8_t *data, size_t size)
{
	enum ap_status st;

	fuzz_file("in.json", data, size);
	(void)fuzz_run("check in.json");
	st = fuzz_run("check in.json --no-hccl-rules");
	if (st == AP_SYNTAX || st == AP_LIMIT)
		return 0;
	if (fuzz_run("convert in.json out.json") == AP_OK)
		fuzz_must("check out.json --no-hccl-rules");
	(void)fuzz_run("search pair.json in.json --no-hccl-rules --chip ascend910b -q --plan-out plan.json");
	(void)fuzz_run("search pair.json in.json --pipeline-stages 2 --micro-batches 2 --no-hccl-rules --chip ascend910a -q");
	return 0;
}

FUZZ_TARGET(rank_table, word, try_input)
