/* SPDX-License-Identifier: MIT */
/* Findings. See finding.h. */
#include "cli/run/finding.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

uint64_t cw_finding_key(const struct cw_site_place *place)
{
    uint64_t key = CW_HASH_SEED;

    for (unsigned i = 0; i < place->calls; i++)
        key = cw_hash_mix(cw_hash_add_text(key, place->call[i]), i);
    return key;
}

/* ---- the table ---- */

static int are_equal(const struct cw_run_finding *a, const struct cw_run_finding *b)
{
    return a->kind == b->kind && a->code == b->code && a->key == b->key;
}

/* That of an equal finding, or a free one. There is room. */
static uint32_t *find_slot(const struct cw_run_findings *findings,
                           const struct cw_run_finding *finding)
{
    size_t mask = 2 * findings->room - 1;
    size_t at = (size_t)cw_hash_mix(cw_hash_mix(finding->key, finding->kind),
                                    (uint64_t)(uint32_t)finding->code);

    for (at &= mask; findings->slot[at] != 0; at = (at + 1) & mask)
        if (are_equal(&findings->finding[findings->slot[at] - 1], finding))
            break;
    return &findings->slot[at];
}

static void fill_slots(struct cw_run_findings *findings)
{
    memset(findings->slot, 0, 2 * findings->room * sizeof(*findings->slot));
    for (size_t i = 0; i < findings->count; i++)
        *find_slot(findings, &findings->finding[i]) = (uint32_t)(i + 1);
}

/* For one more; 0, or -1 if out of memory. */
static int make_room(struct cw_run_findings *findings)
{
    size_t room = findings->room ? 2 * findings->room : 16;
    struct cw_run_finding *finding;
    uint32_t *slot;

    if (findings->count < findings->room)
        return 0;
    finding = reallocarray(findings->finding, room, sizeof(*finding));
    if (!finding)
        return -1;
    findings->finding = finding;
    slot = reallocarray(findings->slot, 2 * room, sizeof(*slot));
    if (!slot)
        return -1;
    findings->slot = slot;
    findings->room = room;
    fill_slots(findings);
    return 0;
}

/* ---- merging ---- */

/* A weight never becomes less: see cw_findings_name. That of an error is its kind's. */
static void add_to(struct cw_run_finding *to, const struct cw_run_finding *from)
{
    to->site = from->site;
    to->count += from->count;
    to->blocks += from->blocks;
    to->slope += from->slope;
    if (from->kind == CW_FOUND_OOM) {
        to->bytes = from->bytes > to->bytes ? from->bytes : to->bytes;
        to->weight = (double)to->bytes;
        return;
    }
    to->bytes += from->bytes;
    if (from->kind != CW_FOUND_FATAL && from->kind != CW_FOUND_INVALID_FREE)
        to->weight += from->weight;
}

struct cw_run_finding *cw_findings_merge(struct cw_run_findings *findings,
                                         const struct cw_run_finding *from)
{
    uint32_t *slot;

    if (make_room(findings) != 0)
        return NULL;
    slot = find_slot(findings, from);
    if (*slot == 0) {
        findings->finding[findings->count++] = *from;
        *slot = (uint32_t)findings->count;
    } else {
        add_to(&findings->finding[*slot - 1], from);
    }
    return &findings->finding[*slot - 1];
}

/* ---- those that are shown ---- */

unsigned cw_findings_rank(const struct cw_run_findings *findings, enum cw_finding_kind kind,
                          struct cw_run_finding *most[CW_FINDINGS_SHOWN])
{
    unsigned count = 0;

    for (size_t i = 0; i < findings->count; i++) {
        struct cw_run_finding *finding = &findings->finding[i];
        unsigned at = count;

        if (finding->kind != kind)
            continue;
        for (; at > 0 && finding->weight > most[at - 1]->weight; at--)
            if (at < CW_FINDINGS_SHOWN)
                most[at] = most[at - 1];
        if (at < CW_FINDINGS_SHOWN)
            most[at] = finding;
        count += count < CW_FINDINGS_SHOWN;
    }
    return count;
}

static int name(struct cw_run_finding *finding, const struct cw_report_model *model)
{
    const struct cw_snapshot_site *site = cw_report_site(model, finding->site);

    if (!site || finding->place)
        return 0;
    finding->place = calloc(1, sizeof(*finding->place));
    if (!finding->place)
        return -1;
    cw_site_place_find(model, site, finding->place);
    return 0;
}

/* What comes to be among them has grown by this model, and so has a site of it. */
int cw_findings_name(struct cw_run_findings *findings, const struct cw_report_model *model)
{
    struct cw_run_finding *shown[CW_FINDINGS_SHOWN];
    int rc = 0;

    for (unsigned kind = 0; kind < CW_FOUND_KINDS; kind++) {
        unsigned count = cw_findings_rank(findings, (enum cw_finding_kind)kind, shown);

        for (unsigned i = 0; i < count; i++)
            rc |= name(shown[i], model);
    }
    for (size_t i = 0; i < findings->count; i++)
        findings->finding[i].site = CW_SITE_NONE;
    return rc;
}

/* ---- the end ---- */

void cw_findings_drop(struct cw_run_findings *findings, enum cw_finding_kind kind)
{
    size_t kept = 0;

    for (size_t i = 0; i < findings->count; i++)
        if (findings->finding[i].kind != kind)
            findings->finding[kept++] = findings->finding[i];
        else
            free(findings->finding[i].place);
    findings->count = kept;
    if (findings->room != 0)
        fill_slots(findings);
}

void cw_findings_free(struct cw_run_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        free(findings->finding[i].place);
    free(findings->finding);
    free(findings->slot);
    *findings = (struct cw_run_findings){.count = 0};
}
