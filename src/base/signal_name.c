/* SPDX-License-Identifier: MIT */
/* Names of signals. See signal_name.h. The table is constant; no lock. */
#include "base/signal_name.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"

static const struct {
    const char *name;
    int number;
} signals[] = {
    {"HUP", SIGHUP},   {"INT", SIGINT},     {"QUIT", SIGQUIT}, {"USR1", SIGUSR1},
    {"USR2", SIGUSR2}, {"ALRM", SIGALRM},   {"TERM", SIGTERM}, {"CONT", SIGCONT},
    {"URG", SIGURG},   {"XCPU", SIGXCPU},   {"PROF", SIGPROF}, {"VTALRM", SIGVTALRM},
    {"IO", SIGIO},     {"WINCH", SIGWINCH}, {"PWR", SIGPWR},
};

#define RTMIN "RTMIN"

static int is_real_time(int number)
{
    return number >= SIGRTMIN && number <= SIGRTMAX;
}

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* The text after `start`, or NULL if the text does not begin with it. */
static const char *after(const char *text, const char *start)
{
    for (; *start != '\0'; start++, text++)
        if (upper(*text) != *start)
            return NULL;
    return text;
}

/* Three digits at most, so nothing overflows. -1: no number. */
static int small_number(const char *text)
{
    int number = 0;
    size_t len = strlen(text);

    if (len == 0 || len > 3)
        return -1;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        number = number * 10 + (*text - '0');
    }
    return number;
}

static int by_number(int number)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(signals); i++)
        if (signals[i].number == number)
            return number;
    return is_real_time(number) ? number : 0;
}

static int real_time(const char *rest)
{
    int offset = *rest == '\0' ? 0 : *rest == '+' ? small_number(rest + 1) : -1;

    return offset >= 0 && is_real_time(SIGRTMIN + offset) ? SIGRTMIN + offset : 0;
}

int cw_signal_parse(const char *text)
{
    const char *rest = after(text, "SIG");

    if (small_number(text) >= 0)
        return by_number(small_number(text));
    if (rest != NULL)
        text = rest;
    rest = after(text, RTMIN);
    if (rest != NULL)
        return real_time(rest);
    for (size_t i = 0; i < CW_ARRAY_LEN(signals); i++) {
        rest = after(text, signals[i].name);
        if (rest != NULL && *rest == '\0')
            return signals[i].number;
    }
    return 0;
}

void cw_signal_print(int number, struct cw_out *out)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(signals); i++) {
        if (signals[i].number == number) {
            cw_out_string(out, signals[i].name);
            return;
        }
    }
    cw_out_string(out, RTMIN);
    if (number > SIGRTMIN)
        cw_out_printf(out, "+%d", number - SIGRTMIN);
}
