/* SPDX-License-Identifier: MIT */
/* Maps buffers of OpenGL's for CUDA, gives some back and keeps others: shown apart, in no sum. */
#include "victim.h"

#include "cusim.h"

/* cudaGL.h needs OpenGL's headers. */
CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource *out, unsigned int buffer,
                                    unsigned int flags);

static CUgraphicsResource register_buffer(size_t bytes)
{
    CUgraphicsResource resource;

    MUST(cuGraphicsGLRegisterBuffer(&resource, cusim_gl_buffer(bytes), 0));
    return resource;
}

static NOINLINE void map_buffers(CUgraphicsResource *resources, unsigned n)
{
    MUST(cuGraphicsMapResources(n, resources, NULL));
}

static CUdeviceptr address_of(CUgraphicsResource resource)
{
    CUdeviceptr address = 0;
    size_t bytes = 0;

    MUST(cuGraphicsResourceGetMappedPointer(&address, &bytes, resource));
    MUST(cuMemsetD8(address, 1, bytes));
    return address;
}

/* Each frame maps them and gives them back, as programs do that draw. */
static void draw(CUgraphicsResource *resources, unsigned n)
{
    for (int frame = 0; frame < 3; frame++) {
        map_buffers(resources, n);
        for (unsigned i = 0; i < n; i++)
            address_of(resources[i]);
        MUST(cuGraphicsUnmapResources(n, resources, NULL));
    }
}

static void be_refused(CUgraphicsResource *resources)
{
    CUgraphicsResource twice[] = {resources[0], resources[0]}, none = NULL;

    say("unmapped: %d", cuGraphicsUnmapResources(2, resources, NULL));
    map_buffers(resources, 1);
    say("mapped: %d", cuGraphicsMapResources(2, resources, NULL));
    say("twice: %d", cuGraphicsUnmapResources(2, twice, NULL));
    say("half: %d", cuGraphicsUnmapResources(2, resources, NULL));
    say("none: %d %d", cuGraphicsUnregisterResource(none), cuGraphicsMapResources(1, &none, NULL));
    say("freed: %d", cuMemFree(address_of(resources[0])));
    MUST(cuGraphicsUnmapResources(1, resources, NULL));
}

static NOINLINE void end_with_context(void)
{
    CUgraphicsResource resource;
    CUcontext context;

    MUST(cuCtxCreate_v2(&context, 0, 0));
    resource = register_buffer(12288);
    MUST(cuGraphicsMapResources(1, &resource, NULL));
    address_of(resource);
    MUST(cuCtxDestroy(context));
}

static NOINLINE void keep(void)
{
    CUgraphicsResource kept[] = {register_buffer(1 << 20), register_buffer(4096)};

    MUST(cuGraphicsMapResources(2, kept, NULL));
    address_of(kept[0]); /* the size of the other one is never asked for */
}

int main(void)
{
    CUgraphicsResource drawn[2];

    use_device(0);
    drawn[0] = register_buffer(65536);
    drawn[1] = register_buffer(4 << 20);
    draw(drawn, 2);
    be_refused(drawn);
    map_buffers(drawn, 2);
    MUST(cuGraphicsUnregisterResource(drawn[0])); /* mapped as it is */
    MUST(cuGraphicsUnmapResources(1, &drawn[1], NULL));
    end_with_context();
    keep();
    say("expect leaked_bytes=0 leaked_blocks=0 leak_sites=0 allocs=0 frees=0 failed=0 "
        "peak_bytes=0");
    say("json kind('graphics') == (2, 1048576) and r['kinds']['graphics']['allocs'] == 12");
    say("json live('keep') == (2, 1048576) and site('keep')['class'] == 'imported'");
    say("json site('keep')['api'] == 'cuGraphicsMapResources'");
    say("json site('end_with_context')['reclaimed'] == {'count': 1, 'bytes': 12288}");
    say("report ^==[0-9]+== IMPORTS  1\\.0 MiB in 2 blocks, not counted as leaked");
    return 0;
}
