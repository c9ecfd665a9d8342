/* SPDX-License-Identifier: MIT */
/* Signals by name, and which are refused; as a value of DUMP_SIGNAL. */
#include "base/signal_name.h"

#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>

#include "base/options/options.h"

static void expect_print(int number, const char *wanted)
{
    char text[32];
    struct cw_out out;

    cw_out_init(&out, -1, text, sizeof(text) - 1);
    cw_signal_print(number, &out);
    text[out.len] = '\0';
    cr_expect_str_eq(text, wanted);
}

Test(signal_name, names_and_numbers_are_taken)
{
    cr_expect_eq(cw_signal_parse("USR1"), SIGUSR1);
    cr_expect_eq(cw_signal_parse("SIGUSR2"), SIGUSR2);
    cr_expect_eq(cw_signal_parse("sighup"), SIGHUP);
    cr_expect_eq(cw_signal_parse("12"), 12);
    cr_expect_eq(cw_signal_parse("RTMIN"), SIGRTMIN);
    cr_expect_eq(cw_signal_parse("SIGRTMIN+3"), SIGRTMIN + 3);
    cr_expect_eq(cw_signal_parse("64"), SIGRTMAX);
}

Test(signal_name, what_cannot_be_caught_or_means_a_fault_is_refused)
{
    static const char *const bad[] = {"KILL", "STOP", "SEGV", "SIGSEGV", "SIGABRT", "BUS",
                                      "FPE",  "ILL",  "TRAP", "SYS",     "9",       "11",
                                      "19",   "32",   "33",   "65",      "0"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        cr_expect_eq(cw_signal_parse(bad[i]), 0, "%s", bad[i]);
}

Test(signal_name, what_is_no_name_is_refused)
{
    static const char *const bad[] = {"",         "SIG",      "USR",   "USR11",
                                      "-1",       "RTMIN+99", "RTMAX", "RTMIN-1",
                                      "RTMIN+3x", "RTMIN+",   "10 ",   "1000000000000"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        cr_expect_eq(cw_signal_parse(bad[i]), 0, "%s", bad[i]);
}

Test(signal_name, printed_names_parse_back)
{
    expect_print(SIGUSR1, "USR1");
    expect_print(SIGRTMIN, "RTMIN");
    expect_print(SIGRTMIN + 3, "RTMIN+3");
    for (int number = 1; number <= SIGRTMAX; number++) {
        char text[16];

        snprintf(text, sizeof(text), "%d", number);
        cr_expect(cw_signal_parse(text) == 0 || cw_signal_parse(text) == number);
    }
}

Test(signal_name, the_option_says_what_it_takes)
{
    struct cw_options options;
    char why[CW_OPTION_LINE_MAX];

    cw_options_parse(NULL, 1, &options, NULL);
    cr_expect_eq(cw_options_set(&options, "DUMP_SIGNAL", "rtmin+2", why, sizeof(why)), 0);
    cr_expect_eq(options.dump_signal, SIGRTMIN + 2);
    cr_expect_eq(cw_options_set(&options, "DUMP_SIGNAL", "KILL", why, sizeof(why)), -1);
    cr_expect_str_eq(why, "'KILL' is not off, or a signal that a program can safely catch, by name "
                          "or number (USR1, SIGUSR2, RTMIN+3)");
    cr_expect_eq(options.dump_signal, SIGRTMIN + 2);
    cr_expect_eq(cw_options_set(&options, "DUMP_SIGNAL", "off", why, sizeof(why)), 0);
    cr_expect_eq(options.dump_signal, 0);
}
