/* SPDX-License-Identifier: MIT */
/* Findings of the checks. See doctor.h. */
#include "cli/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/printable.h"

static void add(struct cw_doctor *doctor, enum cw_verdict verdict, const char *way_out,
                const char *fmt, va_list ap)
{
    struct cw_finding *grown =
        reallocarray(doctor->finding, doctor->findings + 1, sizeof(*doctor->finding));
    struct cw_finding *finding;

    doctor->count[verdict]++;
    if (!grown)
        return;
    doctor->finding = grown;
    finding = &grown[doctor->findings];
    *finding = (struct cw_finding){.check = doctor->check, .verdict = verdict};
    if (vasprintf(&finding->text, fmt, ap) < 0)
        return;
    (void)cw_printable_clean_string(finding->text);
    finding->way_out = way_out ? strdup(way_out) : NULL;
    if (finding->way_out)
        (void)cw_printable_clean_string(finding->way_out);
    doctor->findings++;
}

void cw_doctor_ok(struct cw_doctor *doctor, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add(doctor, CW_VERDICT_OK, NULL, fmt, ap);
    va_end(ap);
}

void cw_doctor_warn(struct cw_doctor *doctor, const char *way_out, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add(doctor, CW_VERDICT_WARNING, way_out, fmt, ap);
    va_end(ap);
}

void cw_doctor_problem(struct cw_doctor *doctor, const char *way_out, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add(doctor, CW_VERDICT_PROBLEM, way_out, fmt, ap);
    va_end(ap);
}

void cw_doctor_run(struct cw_doctor *doctor, const struct cw_check *checks, size_t count)
{
    doctor->is_over = 0;
    for (size_t i = 0; i < count && !doctor->is_over; i++) {
        doctor->check = checks[i].name;
        checks[i].run(doctor);
    }
}

void cw_doctor_free(struct cw_doctor *doctor)
{
    for (size_t i = 0; i < doctor->findings; i++) {
        free(doctor->finding[i].text);
        free(doctor->finding[i].way_out);
    }
    free(doctor->finding);
    free(doctor->gpu);
    cw_needed_free(doctor->needed);
    cw_program_file_free(&doctor->program);
    cw_loader_destroy(&doctor->loader);
}
