/* SPDX-License-Identifier: MIT */
/*
 * Opens plugins with RTLD_DEEPBIND and calls their int work(void): deepbind_host WORD... FILE...
 *   now, lazy    how they are bound
 *   plain        without RTLD_DEEPBIND
 *   again        each is unloaded, and loaded and called once more
 *   threads      each in a thread of its own, at once, while others open plugins and call
 *   fork         the work is done in a child, too
 *   quick        ends by _exit
 * Says how the plugin's memory is protected afterwards.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int flags = RTLD_NOW | RTLD_DEEPBIND;
static int is_again, has_threads, is_forking, is_quick;

static int is_word(const char *word)
{
    if (strcmp(word, "now") == 0)
        flags = (flags & ~RTLD_LAZY) | RTLD_NOW;
    else if (strcmp(word, "lazy") == 0)
        flags = (flags & ~RTLD_NOW) | RTLD_LAZY;
    else if (strcmp(word, "plain") == 0)
        flags &= ~RTLD_DEEPBIND;
    else if (strcmp(word, "again") == 0)
        is_again = 1;
    else if (strcmp(word, "threads") == 0)
        has_threads = 1;
    else if (strcmp(word, "fork") == 0)
        is_forking = 1;
    else if (strcmp(word, "quick") == 0)
        is_quick = 1;
    else
        return 0;
    return 1;
}

static void say_protection(const char *file)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    const char *slash = strrchr(file, '/');
    char line[4096], rights[8];

    printf("%s:", slash ? slash + 1 : file);
    while (maps && fgets(line, sizeof(line), maps))
        if (strstr(line, slash ? slash : file) && sscanf(line, "%*s %7s", rights) == 1)
            printf(" %s", rights);
    puts("");
    if (maps)
        fclose(maps);
}

static void *run(void *arg)
{
    const char *file = arg;

    for (int i = 0; i <= is_again; i++) {
        void *plugin = dlopen(file, flags);
        int (*work)(void) = plugin ? (int (*)(void))dlsym(plugin, "work") : NULL;

        if (work == NULL) {
            puts(dlerror());
            return NULL;
        }
        if (is_forking && fork() == 0)
            exit(work());
        if (has_threads) { /* what it says would be in no order */
            if (work() < 42)
                abort();
        } else {
            printf("it says %d\n", work());
            if (i == 0)
                say_protection(file);
        }
        if (is_again)
            dlclose(plugin);
    }
    return NULL;
}

static void run_at_once(char **files, int count)
{
    pthread_t thread[64];
    int most = count < 64 ? count : 64;

    for (int i = 0; i < most; i++)
        if (pthread_create(&thread[i], NULL, run, files[i]) != 0)
            abort();
    for (int i = 0; i < most; i++)
        pthread_join(thread[i], NULL);
    printf("%d threads are done\n", most);
}

int main(int argc, char **argv)
{
    int i = 1, status;

    while (i < argc && is_word(argv[i]))
        i++;
    if (has_threads)
        run_at_once(argv + i, argc - i);
    for (; !has_threads && i < argc; i++)
        run(argv[i]);
    while (wait(&status) > 0)
        printf("a child ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    fflush(stdout);
    if (is_quick)
        _exit(0);
    return 0;
}
