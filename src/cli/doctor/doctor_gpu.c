/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden doctor --gpu`: a child that exists for nothing else calls the driver, and tells by a
 * pipe what each device is and each fact. Whatever becomes of it, the command goes on: it says
 * which fact the child did not survive, or did not come back from in time.
 */
#include "cli/doctor/doctor.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/doctor/gpu_driver.h"
#include "cli/doctor/gpu_facts.h"

#define LIMIT_S 60
#define MIB     ((size_t)1 << 20)

/* ---- the child ---- */

/* From the child to the command: one record each, in this order. */
enum word { DEVICE, FACT, NOTHING };

struct message {
    enum word word;
    struct cw_doctor_gpu device;
    size_t fact; /* of FACT: its number */
    enum cw_verdict verdict;
    char text[256], way_out[128];
};

static void tell(int to, const struct message *message)
{
    if (write(to, message, sizeof(*message)) != (ssize_t)sizeof(*message))
        _exit(1);
}

static void CW_PRINTF(3, 4) tell_nothing(int to, const char *way_out, const char *fmt, ...)
{
    struct message message = {.word = NOTHING, .verdict = CW_VERDICT_PROBLEM};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message.text, sizeof(message.text), fmt, ap);
    va_end(ap);
    snprintf(message.way_out, sizeof(message.way_out), "%s", way_out);
    tell(to, &message);
    _exit(0);
}

/* Numbers of CUdevice_attribute. */
#define INTEGRATED     18
#define MANAGED_MEMORY 83

static int ask(const struct cw_gpu_driver *driver, int attribute, int ordinal)
{
    int value = 0;

    return driver->attribute(&value, attribute, ordinal) == 0 ? value : 0;
}

static void tell_device(int to, const struct cw_gpu_driver *driver, int ordinal)
{
    struct message message = {.word = DEVICE};
    struct cw_doctor_gpu *device = &message.device;
    size_t total = 0;

    device->ordinal = ordinal;
    if (driver->name(device->name, (int)sizeof(device->name), ordinal) != 0)
        snprintf(device->name, sizeof(device->name), "a device without a name");
    if (driver->bus(device->bus, (int)sizeof(device->bus), ordinal) != 0)
        device->bus[0] = '\0';
    if (driver->total(&total, ordinal) == 0)
        device->total = total;
    driver->version(&device->driver);
    cw_device_properties_ask(driver->attribute, ordinal, &device->properties);
    device->integrated = ask(driver, INTEGRATED, ordinal);
    device->managed = ask(driver, MANAGED_MEMORY, ordinal);
    tell(to, &message);
}

static void tell_fact(int to, const struct cw_gpu_driver *driver, size_t i)
{
    struct message message = {.word = FACT, .fact = i};
    struct cw_gpu_fact fact;

    cw_gpu_fact_ask(driver, i, &fact);
    message.verdict = fact.verdict;
    snprintf(message.text, sizeof(message.text), "%s", fact.text);
    snprintf(message.way_out, sizeof(message.way_out), "%s", fact.way_out ? fact.way_out : "");
    tell(to, &message);
}

static void begin(int to, struct cw_gpu_driver *driver)
{
    const char *why = "";
    int code, count = 0;

    if (cw_gpu_driver_open(driver, &why) != 0)
        tell_nothing(to, "run 'cuwarden doctor' without --gpu, which looks for it",
                     "there is no driver to ask: %s", why);
    code = driver->init(0);
    if (code != 0)
        tell_nothing(to,
                     "run 'cuwarden doctor' without --gpu, and see whether nvidia-smi lists a GPU",
                     "the driver does not start: cuInit returns %d%s", code,
                     code == 100 ? " (no device)" : "");
    if (driver->count(&count) != 0 || count < 1)
        tell_nothing(to, "see whether nvidia-smi lists a GPU", "the driver has no device");
    for (int i = 0; i < count; i++)
        tell_device(to, driver, i);
    code = driver->retain(&driver->context, 0);
    if (code == 0)
        code = driver->set(driver->context);
    if (code != 0)
        tell_nothing(to, "see whether other programs run on device 0",
                     "no context on device 0: the driver returns %d", code);
}

static void run_child(int to)
{
    struct cw_gpu_driver driver;

    signal(SIGALRM, SIG_DFL);
    alarm(LIMIT_S);
    begin(to, &driver);
    for (size_t i = 0; i < cw_gpu_facts(); i++)
        tell_fact(to, &driver, i);
    _exit(0); /* a driver that hangs in its teardown is not ours to wait for */
}

/* ---- the command ---- */

static void add_device(struct cw_doctor *doctor, const struct cw_doctor_gpu *device)
{
    struct cw_doctor_gpu *grown = reallocarray(doctor->gpu, doctor->gpus + 1, sizeof(*doctor->gpu));
    const struct cw_device_properties *has = &device->properties;

    if (grown) {
        grown[doctor->gpus++] = *device;
        doctor->gpu = grown;
    }
    cw_doctor_ok(
        doctor,
        "%d: %s, compute capability %u.%u, %u multiprocessors, %zu MiB, driver of CUDA %d.%d",
        device->ordinal, device->name, has->capability_major, has->capability_minor,
        has->multiprocessors, (size_t)device->total / MIB, device->driver / 1000,
        device->driver % 1000 / 10);
    cw_doctor_ok(doctor, "%d: at %s, %u MHz, memory %u MHz on %u bits, unified addressing: %s%s",
                 device->ordinal, *device->bus ? device->bus : "an unknown place",
                 has->clock_khz / 1000, has->memory_clock_khz / 1000, has->memory_bus_bits,
                 has->has_unified_addressing ? "yes" : "no",
                 device->integrated ? ", integrated" : "");
    if (device->integrated)
        cw_doctor_warn(doctor, "set CUWARDEN_LIMIT, such as 80%",
                       "%d: its memory is the host's, and no control group counts what CUDA "
                       "takes: only a limit keeps a program from taking all of it",
                       device->ordinal);
}

static void add(struct cw_doctor *doctor, const struct message *message)
{
    const char *way_out = *message->way_out ? message->way_out : NULL;

    if (message->verdict == CW_VERDICT_OK)
        cw_doctor_ok(doctor, "%s", message->text);
    else if (message->verdict == CW_VERDICT_WARNING)
        cw_doctor_warn(doctor, way_out, "%s", message->text);
    else
        cw_doctor_problem(doctor, way_out, "%s", message->text);
}

/* How many facts came to an end; -1: the child has said that there is nothing to ask. */
static int listen_to(struct cw_doctor *doctor, int from)
{
    struct message message;
    int facts = 0;

    while (read(from, &message, sizeof(message)) == (ssize_t)sizeof(message)) {
        doctor->check = message.word == FACT ? cw_gpu_fact_name(message.fact) : "gpu";
        if (message.word == DEVICE)
            add_device(doctor, &message.device);
        else
            add(doctor, &message);
        facts += message.word == FACT;
        if (message.word == NOTHING)
            return -1;
    }
    return facts;
}

static void judge_end(struct cw_doctor *doctor, int facts, int status)
{
    doctor->check = "gpu";
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        cw_doctor_problem(doctor, "set CUWARDEN_MODE=track, and tell us",
                          "fact %d of %zu has no answer after %d s: the driver hangs", facts + 1,
                          cw_gpu_facts(), LIMIT_S);
    else if (WIFSIGNALED(status))
        cw_doctor_problem(doctor, "set CUWARDEN_MODE=track, and tell us",
                          "fact %d of %zu ended the process that asked it: %s", facts + 1,
                          cw_gpu_facts(), strsignal(WTERMSIG(status)));
    else if (status != 0 || facts < (int)cw_gpu_facts())
        cw_doctor_problem(doctor, "try again, and tell us", "only %d of %zu facts were asked",
                          facts, cw_gpu_facts());
}

void cw_doctor_check_gpu(struct cw_doctor *doctor)
{
    int ends[2], status = 0, facts;
    pid_t child;

    doctor->check = "gpu";
    if (dlsym(RTLD_DEFAULT, "cuwarden_table_1")) {
        cw_doctor_problem(doctor, "unset LD_PRELOAD",
                          "the command itself runs under cuwarden, so the driver cannot be asked");
        return;
    }
    if (pipe(ends) != 0 || (child = fork()) < 0) {
        cw_doctor_problem(doctor, "try again", "no process could be made to ask the driver");
        return;
    }
    if (child == 0) {
        close(ends[0]);
        run_child(ends[1]);
    }
    close(ends[1]);
    facts = listen_to(doctor, ends[0]);
    close(ends[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (facts >= 0)
        judge_end(doctor, facts, status);
}
