/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocol of autopar-plan and autopar-plan-glpk over a stream socket, the latter's standard input,
 * on one machine and so in its byte order. The program answers one request after another and ends
 * with the stream.
 *
 *   request  ap_lp_request, double cost[columns], double right[rows], uint8_t loose[rows],
 *            int32_t row[1 + cells], int32_t column[1 + cells], double value[1 + cells]
 *   reply    ap_lp_reply, double x[columns], double dual[rows]
 */
#ifndef AP_ILP_LP_WIRE_H
#define AP_ILP_LP_WIRE_H

#include <stdint.h>

#define AP_LP_PROGRAM "autopar-plan-glpk"
#define AP_LP_REQUEST UINT64_C(0x61706c7071000001) /* the last digits are the version */
#define AP_LP_REPLY UINT64_C(0x61706c7061000001)

struct ap_lp_request {
	uint64_t magic;
	uint64_t columns, rows, cells;
	uint64_t iterations, bytes; /* limits; 0: none */
};

struct ap_lp_reply {
	uint64_t magic;
	uint64_t end; /* an enum ap_lp_end up to STOPPED */
	uint64_t iterations;
};

#endif
