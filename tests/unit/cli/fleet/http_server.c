/* SPDX-License-Identifier: MIT */
/* Serving HTTP while all places are taken: active clients are served, silent ones are evicted. No
 * client's deadline expires here. */
#include "cli/fleet/http_server.h"
#include "cli/ui/message.h"

#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <stdint.h>

#define HOUR_MS 3600000
#define CROWD   (2 * CW_HTTP_CLIENTS)

/* Defined in main.c, which is not in the library; messages are ignored here. */
void cw_cli_error(const char *fmt, ...)
{
    (void)fmt;
}

static char *make_word(void *arg, size_t *out_len)
{
    char *word = strdup(arg);

    *out_len = word ? strlen(word) : 0;
    return word;
}

static const struct cw_http_path paths[] = {{"/word", "text/plain", make_word}, {NULL, NULL, NULL}};
static char word[] = "it is served";
static struct cw_http_server server = {.path = paths, .arg = word, .timeout_ms = HOUR_MS};
static volatile sig_atomic_t has_ended;
static pthread_t thread;
static unsigned port;

static void *serve(void *arg)
{
    sigset_t mask;

    (void)arg;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    sigdelset(&mask, SIGUSR1);
    cr_expect_eq(cw_http_serve(&server, &has_ended, &mask), 0);
    return NULL;
}

static void on_end(int number)
{
    (void)number;
    has_ended = 1;
}

static void start(void)
{
    struct sigaction end = {.sa_handler = on_end};
    sigset_t usr1;
    char bound[64];

    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    sigaction(SIGUSR1, &end, NULL);
    cr_assert_eq(cw_http_listen(&server, "127.0.0.1:0", 0, bound, sizeof(bound)), 0);
    cr_assert_eq(sscanf(bound, "127.0.0.1:%u", &port), 1);
    cr_assert_eq(pthread_create(&thread, NULL, serve, NULL), 0);
}

static void stop(void)
{
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    cw_http_close(&server);
}

static int connect_to(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void ask(int fd)
{
    static const char request[] = "GET /word HTTP/1.1\r\n\r\n";

    cr_assert_eq(write(fd, request, sizeof(request) - 1), (ssize_t)sizeof(request) - 1);
}

/* The server has said all, and the client stays. */
static void expect_word_and_stay(int fd)
{
    char got[1024];
    size_t len = 0;
    ssize_t n;

    while (len < sizeof(got) - 1 && (n = read(fd, got + len, sizeof(got) - 1 - len)) > 0)
        len += (size_t)n;
    got[len] = '\0';
    cr_expect(strstr(got, "HTTP/1.1 200 OK\r\n") == got, "got %s", got);
    cr_expect(strstr(got, word) != NULL, "got %s", got);
}

static void expect_word(int fd)
{
    expect_word_and_stay(fd);
    close(fd);
}

TestSuite(http_server, .init = start, .fini = stop);

Test(http_server, silent_clients_give_way)
{
    int crowd[CROWD], asking;
    char byte;

    for (int i = 0; i < CROWD; i++)
        crowd[i] = connect_to();
    asking = connect_to();
    ask(asking);
    expect_word(asking);
    /* The first were evicted; the last are still connected and get an answer to their request. */
    cr_expect_leq(read(crowd[0], &byte, 1), 0);
    ask(crowd[CROWD - 1]);
    expect_word(crowd[CROWD - 1]);
    for (int i = 0; i < CROWD - 1; i++)
        close(crowd[i]);
}

Test(http_server, who_has_the_answer_gives_way_before_who_has_begun_to_ask)
{
    int answered = connect_to(), half[CW_HTTP_CLIENTS - 1], asking;

    ask(answered);
    expect_word_and_stay(answered);
    for (int i = 0; i < CW_HTTP_CLIENTS - 1; i++) {
        half[i] = connect_to();
        cr_assert_eq(write(half[i], "GET /wo", 7), 7);
    }
    asking = connect_to();
    ask(asking);
    expect_word(asking);
    for (int i = 0; i < CW_HTTP_CLIENTS - 1; i++) {
        cr_assert_eq(write(half[i], "rd HTTP/1.1\r\n\r\n", 15), 15);
        expect_word(half[i]);
    }
    close(answered);
}
