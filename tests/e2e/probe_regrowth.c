/* SPDX-License-Identifier: MIT */
/* Prints what a live file knows of blocks that were replaced by larger ones, a line for each place:
 * "regrowth API: resizes copied factor-sum chains first largest". */
#include <fcntl.h>
#include <stdio.h>

#include "live/live_copy.h"

int main(int argc, char **argv)
{
    struct cw_live_copy image;
    char why[256] = "no such file";
    int fd = open(argc == 2 ? argv[1] : "", O_RDONLY);

    if (fd < 0 || cw_live_copy_read(fd, &image, why, sizeof(why)) != 0) {
        fprintf(stderr, "probe: %s\n", why);
        return 99;
    }
    for (uint32_t i = 1; i < cw_view_count(&image.view, CW_TABLE_REGROWTH); i++) {
        const struct cw_live_regrowth *record = cw_view_regrowth(&image.view, i);
        const struct cw_live_site *site = cw_view_site(&image.view, record->site);

        printf("regrowth %s: %ju %ju %ju %ju %ju %ju\n", cw_view_text(&image.view, site->api),
               (uintmax_t)record->resizes, (uintmax_t)record->copied_bytes,
               (uintmax_t)record->factor_sum, (uintmax_t)record->chains,
               (uintmax_t)record->first_bytes, (uintmax_t)record->largest_bytes);
    }
    cw_live_copy_free(&image);
    return 0;
}
