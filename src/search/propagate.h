/* SPDX-License-Identifier: Apache-2.0 */
/* The engine that goes outward from what is fixed. */
#ifndef AP_SEARCH_PROPAGATE_H
#define AP_SEARCH_PROPAGATE_H

#endif
