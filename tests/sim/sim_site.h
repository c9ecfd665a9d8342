/* SPDX-License-Identifier: MIT */
/* Where calls come from, as "FILE+0xOFFSET": the return address, in the file that was loaded there.
 */
#ifndef CUSIM_SIM_SITE_H
#define CUSIM_SIM_SITE_H

#define SIM_SITE 300

void sim_site_name(const void *address, char out[SIM_SITE]);
void sim_site_count(unsigned index, const void *address);
void sim_site_visit(void (*visit)(unsigned index, const char *site, unsigned long long calls,
                                  void *argument),
                    void *argument);

#endif
