/* SPDX-License-Identifier: Apache-2.0 */
/* The default number of threads. */
#ifndef AP_API_PROCESSORS_H
#define AP_API_PROCESSORS_H

/* Processors that this process may run on, 1 to 256; 1 if unknown. */
int ap_processors(void);

#endif
