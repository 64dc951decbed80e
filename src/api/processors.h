/* SPDX-License-Identifier: Apache-2.0 */
/* How many threads are worth while, where nobody says. */
#ifndef AP_API_PROCESSORS_H
#define AP_API_PROCESSORS_H

/* Processors that this process may run on, 1 to 256; 1 where that cannot be known. */
int ap_processors(void);

#endif
