/* SPDX-License-Identifier: Apache-2.0 */
/* Servers as NCCL, nvidia-smi and npu-smi describe them: checked, converted, planned for; what is converted is a
 * rank table. */
#include "fuzz.h"

#include "base/vec.h"

static const char *word(size_t i)
{
	static const char *const words[] = {"<system>", "</system>", "<cpu ", "</cpu>", "<pci ", "</pci>", "<gpu ", "<nic>",
		"<net ", "<nvlink ", "<xgmi ", "/>", "<!--", "-->", "<!DOCTYPE a [<!ENTITY b \"c\">]>", "&b;", "<![CDATA[",
		"busid=\"0000:01:00.0\"", "class=\"0x030200\"", "class=\"0x020700\"", "vendor=\"0x10de\"", "device=\"0x2330\"",
		"link_speed=\"16 GT/s\"", "link_width=\"16\"", "dev=\"0\"", "sm=\"80\"", "count=\"12\"", "host_hash=\"0x1\"",
		"target=\"fffffff:ffff:ff\"", "tclass=\"0x068000\"", "speed=\"400000\"", "\tGPU0\tGPU1\tCPU Affinity\n",
		"\tNPU0\tNPU1\tCPU Affinity\n", "GPU0\t X \tNV18\n", "GPU1\tNV18\t X \n", "NPU1", "NIC0", "mlx5_0", "NV4",
		"HCCS", "HCCS_SW", "SIO", "PIX", "PXB", "PHB", "NODE", "SYS", " X ", "\x1b[4m", "H100 80GB HBM3", "910B3"};

	return i < AP_COUNT(words) ? words[i] : NULL;
}

static int try_input(const uint8_t *data, size_t size)
{
	fuzz_file("in.txt", data, size);
	(void)fuzz_run("check in.txt");
	if (fuzz_run("convert in.txt out.json --device-num 8") == AP_OK)
		fuzz_must("check out.json --no-hccl-rules");
	(void)fuzz_run("search pair.json in.txt --device-num 8 --no-hccl-rules --chip a100-80 --executor generic -q");
	(void)fuzz_run("search pair.json --topology in.txt --no-hccl-rules --chip ascend910b3 -q --plan-out plan.json");
	return 0;
}

FUZZ_TARGET(server, word, try_input)
