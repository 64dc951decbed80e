/* SPDX-License-Identifier: Apache-2.0 */
/* The engine that tries every combination. */
#ifndef AP_SEARCH_BRUTE_H
#define AP_SEARCH_BRUTE_H

#endif
