/* SPDX-License-Identifier: Apache-2.0 */
/* A mixture of experts: a router gives each token to some of many equal feed-forward parts and adds what
 * they return, weighted; one more part may see every token. What varies between Mixtral, Qwen, DeepSeek and
 * GPT-OSS is a field here. */
#ifndef AP_MODEL_EXPERTS_H
#define AP_MODEL_EXPERTS_H

#include "model/activation.h"
#include "model/model.h"

/* How tokens get to their experts. */
enum ap_experts_way {
	AP_EXPERTS_MOVED, /* MoeDispatch and MoeCombine, as dispatchers of other software do it; what the last
	                     product reads is weighted, as Megatron does since core 0.12 */
	AP_EXPERTS_MASKED, /* a product with a mask of places, and one back */
	AP_EXPERTS_GATHERED /* rows looked up there and back, at the places of TopKRouter: operators that
	                       MindSpore cuts, of samples with all of their tokens */
};

enum ap_experts_score {
	AP_EXPERTS_SOFTMAX, /* over all experts */
	AP_EXPERTS_SIGMOID
};

/* Parameters, behind the prefix of the part; ".weight" and ".bias" follow. */
struct ap_experts_names {
	const char *router; /* "gate" */
	const char *selection_bias; /* whole: "gate.e_score_correction_bias" */
	const char *experts, *gate, *up, *down; /* "experts", "gate_proj", ...; no up: it is in one tensor
	                                           with gate, the columns of a unit side by side */
	const char *shared; /* prefix of the shared expert, whose products are gate, up, down as well */
	const char *shared_gate;
	bool bare; /* of experts: the tensor is "experts.gate", its bias "experts.gate_bias" */
};

struct ap_experts {
	const struct ap_experts_names *names;
	enum ap_experts_way way;
	int64_t count; /* experts; 0: there are none */
	int64_t active; /* experts of a token */
	int64_t inner; /* units of an expert */
	int64_t shared_inner; /* units of the shared expert; 0: there is none */
	bool shared_gate; /* what it returns is weighted by a sigmoid of its own */
	bool shared_beside; /* of AP_EXPERTS_MOVED: its wide products run while tokens are under way to the
	                       others, its narrow one on their way back; else all of it behind them */
	int64_t groups, groups_active; /* a token's experts are in so many of the groups; 0: anywhere */
	enum ap_experts_score score;
	bool selection_bias; /* added to scores where experts are chosen, not to weights; not trained */
	bool rescale; /* a token's weights are divided by their sum */
	double capacity; /* places of an expert as a multiple of its fair share; 0: as many as it takes,
	                    and MoeDispatch says how uneven experts usually are */
	enum ap_model_activation activation;
	bool bias; /* of the router and of the experts' products */
};

/*
 * The part on rows [B*S,H] of samples tokens = [B,S,H]: rows. scope and param are prefixes of operators
 * and parameters. Parameters: router, experts (one tensor [E,in,out] for all experts), shared expert, as
 * names and flags say.
 */
ap_id ap_model_experts(struct ap_model *m, const struct ap_experts *e, const char *scope, const char *param,
	ap_id rows, struct ap_shape tokens);

#endif
