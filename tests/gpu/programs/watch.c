/* SPDX-License-Identifier: MIT */
/*
 * How much of device 0 all others use at most: a process of its own, because within a program the
 * library answers cuMemGetInfo as if what the pool keeps idle were free. Not a test: ../bench.py
 * runs it beside a program and tells it by lines on standard input
 *
 *   base    from now on this counts as empty; answers "base BYTES", what is free
 *   begin   looks every 200 us from now on; answers "begun"
 *   end     stops looking; answers "peak BYTES": what was used at most, and is beyond the base
 */
#include "cu.h"

#include <poll.h>
#include <unistd.h>

#define LOOK_US 200

static size_t base, least;
static int is_looking;

static size_t free_bytes(void)
{
    size_t available, total;

    MUST(cu.info(&available, &total));
    return available;
}

static void look(void)
{
    size_t available = free_bytes();

    if (available < least)
        least = available;
}

static int has_line(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&input, 1, is_looking ? 0 : -1) > 0;
}

static void obey(const char *line)
{
    if (strcmp(line, "base\n") == 0) {
        base = free_bytes();
        say("base %zu", base);
    } else if (strcmp(line, "begin\n") == 0) {
        least = free_bytes();
        is_looking = 1;
        say("begun");
    } else if (strcmp(line, "end\n") == 0) {
        look();
        is_looking = 0;
        say("peak %zu", base > least ? base - least : 0);
    }
}

int main(void)
{
    char line[64];

    cu_begin();
    setvbuf(stdin, NULL, _IONBF, 0); /* poll knows nothing of what lies in a buffer */
    say("ready");
    for (;;) {
        if (has_line()) {
            if (!fgets(line, sizeof(line), stdin))
                return 0;
            obey(line);
        } else {
            look();
            usleep(LOOK_US);
        }
    }
}
