/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of devices (chips/NAME.json, "autopar-chip/1") and of software overheads
 * (chips/software/NAME.json, "autopar-software/1"), built into the program or read from a file.
 * Every number has its source next to it. */
#ifndef AP_HW_CHIP_H
#define AP_HW_CHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ctx.h"
#include "base/dtype.h"
#include "base/json.h"
#include "hw/curve.h"

enum ap_unit { AP_UNIT_CUBE, AP_UNIT_VECTOR, AP_UNIT_MEMORY, AP_UNIT_COUNT };

enum ap_link { /* how ranks at one level share bandwidth */
	AP_LINK_SWITCH, /* each rank has bandwidth_Bps, whatever the group */
	AP_LINK_MESH, /* links of bandwidth_Bps each: a group of g ranks uses g - 1, or as given by links */
	AP_LINK_BUS, /* the block's ranks share bandwidth_Bps */
	AP_LINK_NIC /* one network card of bandwidth_Bps per rank; g ranks of a group on a server
			use g cards, shared with concurrent groups */
};

enum ap_within { /* what contains each block of a level */
	AP_WITHIN_SERVER,
	AP_WITHIN_POD, /* a super pod; the server if there are none */
	AP_WITHIN_CLUSTER, /* a site; the machine if there is one only */
	AP_WITHIN_MACHINE
};

#define AP_MAX_LEVELS 7 /* six from a profile, one between clusters */

struct ap_link_level {
	const char *name; /* "hccs", "pcie", "roce", "nvlink", ... */
	enum ap_link kind;
	enum ap_within within;
	uint32_t span; /* devices of a server per block; 0: everything it is within */
	const double *links; /* mesh: used by a group of 2, 3, ... ranks; NULL: g - 1 */
	int nlinks; /* larger groups use the last */
	double bandwidth_Bps; /* per direction, see kind */
	double latency_s; /* per step between neighbours */
	double efficiency; /* achievable share of bandwidth, (0, 1] */
};

/* Kernels that compute attention as one, by age. */
enum ap_attention_kernel {
	AP_ATTENTION_UNKNOWN,
	AP_ATTENTION_FLASH_1, /* FlashAttention of 2022, and Triton's of 2023 */
	AP_ATTENTION_FLASH_2, /* of 2023, torch's scaled_dot_product_attention */
	AP_ATTENTION_FLASH_3, /* of 2024, cuDNN's since */
	AP_ATTENTION_NPU, /* npu_fusion_attention, FlashAttentionScore of CANN */
	AP_ATTENTION_COUNT
};

struct ap_attention_rate { /* of sequences much longer than half */
	double forward, backward; /* shares of the matrix unit's peak; 0: nothing is known */
	double half; /* keys at which rates are half of that; 0: they are the same for all */
};

struct ap_profile_source { /* says where a number is from */
	const char *path; /* of the number, or of an object of numbers: see hw/constant.h */
	const char *text;
};
struct ap_profile_sources { /* in the order of the profile */
	const struct ap_profile_source *v;
	int n;
};

struct ap_chip {
	const char *name;
	const char *file; /* base name of the file, or "NAME.json" for a built-in one */
	const char *sha256; /* of the profile's text */
	double peak_flops[AP_UNIT_COUNT][AP_DTYPE_COUNT]; /* FLOP/s dense; 0: unit lacks the type */
	double fixed_s[AP_UNIT_COUNT]; /* launch and drain per kernel */
	double matmul_efficiency; /* share of peak for large shapes */
	double matmul_float8_efficiency; /* the same of operands in 8 bits; where not said, as others */
	double sustained; /* what of it holds where long runs bring the device to its power limit */
	int row_bytes; /* rows of matrices in a batch of products are multiples of it, or the products run
	                  on the vector unit, in float32; 0: any do */
	double matmul_half[3]; /* extents m, n, k that alone halve the efficiency */
	struct ap_attention_rate attention[AP_ATTENTION_COUNT];
	double vector_efficiency;
	double memory_Bps, memory_efficiency;
	int64_t memory_bytes; /* of the device */
	int64_t usable_bytes; /* for a job */
	double collective_fixed_s; /* start of each collective call */
	int nlevel; /* inner to outer; the last is the whole machine */
	struct ap_link_level level[AP_MAX_LEVELS];
	int ncurve;
	const struct ap_curve *curve; /* measured collectives, which stand before what links say */
	int64_t server_devices; /* per server, without a rank table */
	int64_t pod_devices; /* per super pod, without a rank table; 0: no pods */
	const char *hccl; /* family of HCCL rules, see ap_hccl_check(); "": none */
	int nalias;
	const char *const *alias; /* other names, such as chip_info of rank tables; lower case */
	struct ap_profile_sources sources;
};

/* How gradients of weights are added to those of the micro-batches before. */
enum ap_gradient_sum {
	AP_SUM_UNKNOWN, /* not charged */
	AP_SUM_FUSED, /* by the kernel that makes them, which reads the sum at its end */
	AP_SUM_APART /* by a kernel of its own */
};

/* Operators that are computed in one kernel where they follow one another: names of a profile's chains. */
#define AP_CHAINS(X) \
	X(BIAS_ACTIVATION, "bias+activation") \
	X(BIAS_DROPOUT_ADD, "bias+dropout+add") \
	X(SOFTMAX, "scale+mask+softmax") \
	X(NORM, "norm") /* with the casts around it */ \
	X(ROTARY, "rotary") \
	X(GATE, "swiglu") \
	X(CAST, "cast") /* with what is computed element by element before or behind it */ \
	X(LOSS, "loss") /* sums of a cross entropy: its logits are read three times */ \
	X(COMPILER, "compiler") /* all of a layer that is computed element by element or by rows */ \
	X(STRIDES, "strides") /* attention reads and writes dimensions in any order */ \
	X(PRODUCTS, "products") /* of one activation: query, key and value, gate and up */
enum ap_chain {
#define CHAIN(id, name) AP_CHAIN_##id,
	AP_CHAINS(CHAIN)
#undef CHAIN
	AP_CHAIN_COUNT
};

struct ap_software { /* framework behaviour, independent of the machine */
	const char *name;
	const char *file, *sha256;
	int nalias;
	const char *const *alias; /* other names, lower case */
	double gradient_exposed; /* share of gradient exchange not hidden by the backward pass */
	double overlap_slowdown; /* >= 1: slowdown of compute next to a collective */
	int master_bytes; /* per element of a 16-bit trainable parameter: full-precision copy */
	int gradient_bytes; /* per element of a 16-bit parameter's gradient buffer */
	enum ap_gradient_sum gradient_sum;
	enum ap_attention_kernel attention;
	uint32_t chains; /* a bit for each enum ap_chain that it has */
	/* Times as long as the chip's profile says that kernels, and collectives and sends, take: of profiles
	 * of one's own, for what a machine or a software does otherwise as a whole. */
	double kernel_slowdown, collective_slowdown;
	double product_slowdown; /* >= 1: of products beside what gathers the next weights */
	double gather_overlap; /* share of a gather for a product that runs beside it where these overlap */
	int gathers_held; /* 1: what is gathered for products is held for their backward pass; 0: it is
	                     gathered again */
	double metric_passes; /* over the logits, in their type, by what is measured beside the loss */
	double launch_s; /* seconds between kernels that the host starts; 0: it is always ahead */
	int gradient_copy_bytes; /* per element of a gradient held in 16 bits: the optimizer's copy in 32 */
	int64_t context_bytes; /* runtime, library workspaces */
	int64_t comm_buffer_bytes; /* collective library buffers */
	/* Mean errors of predictions, in per cent of what was measured; 0: nothing was. */
	double step_error, memory_error;
	double memory_within; /* what nine of ten errors of memory are within; 0 as well */
	const char *versions; /* of the software that it stands for, in words; "": nothing is said */
	const char *dates; /* of the runs that it was fitted to: "2021 to 2022"; "": nothing is said */
	struct ap_profile_sources sources;
};

/* Names as profiles spell them: "switch"; "server"; "flash-1" (NULL: unknown); "fused" (NULL: unknown). */
const char *ap_link_name(enum ap_link kind);
const char *ap_within_name(enum ap_within within);
const char *ap_attention_name(enum ap_attention_kernel kernel);
const char *ap_gradient_sum_name(enum ap_gradient_sum sum);
const char *ap_chain_name(enum ap_chain chain);

/* Rates of the chip's attention with a software's kernel: of the newest that the chip has and that is no
 * newer, else of its oldest; zeros if the chip has none. */
struct ap_attention_rate ap_chip_attention(const struct ap_chip *chip, enum ap_attention_kernel kernel);

/* The chip as a software drives it: with the software's kernel_slowdown and collective_slowdown in its
 * rates and latencies. The chip itself where both are 1; else in arena. */
const struct ap_chip *ap_chip_driven(struct ap_arena *arena, const struct ap_chip *chip,
	const struct ap_software *software);

/* Gets the built-in profile of a name or alias, ignoring case, or, if name ends in ".json", the
 * file; of software also that of a year, "megatron@2022": of the profiles whose names begin so, the one
 * whose dates hold it. Returns AP_USAGE with the known names and the nearest if unknown. */
enum ap_status ap_chip_get(struct ap_ctx *ctx, const char *name, const struct ap_chip **out);
enum ap_status ap_software_get(struct ap_ctx *ctx, const char *name,
	const struct ap_software **out);

/* The built-in profile with this rank-table chip_info ("910") as alias; NULL if there is none. */
enum ap_status ap_chip_by_info(struct ap_ctx *ctx, const char *chip_info,
	const struct ap_chip **out);

/* Notes which card was taken where a name is that of a whole family of Ascend chips (hccl: "910b",
 * "Ascend910B"), of which there are several, and how fast each is. */
enum ap_status ap_chip_note_family(struct ap_ctx *ctx, const char *name, const struct ap_chip *chip);

/* Parse a profile from a document: check every number's range, with located messages. */
enum ap_status ap_chip_parse(struct ap_ctx *ctx, const struct ap_json *doc, struct ap_chip *out);
enum ap_status ap_software_parse(struct ap_ctx *ctx, const struct ap_json *doc,
	struct ap_software *out);

/* Name and JSON text of built-in chip i; NULL past the end. */
const char *ap_chip_at(size_t i, const char **text);

#endif
