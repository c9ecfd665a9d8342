/* SPDX-License-Identifier: MIT */
/* See sim_site.h. CUSIM_SITES=1 counts them for the report.
 *
 * Guarded by sim.lock. dladdr takes the loader's lock under it: a program with a thread that calls
 * the driver from a constructor could stand still.
 */
#include "sim_site.h"

#include "sim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define MAX_SITES 4096

static struct site {
    unsigned index;
    const void *address;
    unsigned long long calls;
} sites[MAX_SITES];
static size_t nsites;

void sim_site_name(const void *address, char out[SIM_SITE])
{
    Dl_info info;
    const char *slash;

    out[0] = '\0';
    if (!dladdr(address, &info))
        return;
    slash = strrchr(info.dli_fname, '/');
    snprintf(out, SIM_SITE, "%s+0x%zx", slash ? slash + 1 : info.dli_fname,
             (size_t)((uintptr_t)address - (uintptr_t)info.dli_fbase));
}

void sim_site_count(unsigned index, const void *address)
{
    size_t i = 0;

    while (i < nsites && (sites[i].index != index || sites[i].address != address))
        i++;
    if (i == MAX_SITES)
        return;
    sites[i].index = index;
    sites[i].address = address;
    sites[i].calls++;
    nsites += i == nsites;
}

void sim_site_visit(void (*visit)(unsigned, const char *, unsigned long long, void *),
                    void *argument)
{
    char name[SIM_SITE];

    for (size_t i = 0; i < nsites; i++) {
        sim_site_name(sites[i].address, name);
        visit(sites[i].index, name, sites[i].calls, argument);
    }
}
