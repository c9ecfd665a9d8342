# SPDX-License-Identifier: MIT
"""What a module says where there is a driver and no device: each thing that is tried, and what it raises.
`run_absent.py cupy|rmm|nvidia.dali|jax`"""
import importlib
import sys


def ways_of_cupy(cupy):
    runtime = cupy.cuda.runtime
    return {"driver": runtime.driverGetVersion, "devices": runtime.getDeviceCount, "memory": lambda: runtime.malloc(4096),
            "array": lambda: cupy.zeros(1000), "free": lambda: runtime.free(4096)}


def ways_of_rmm(rmm):
    gpu = importlib.import_module("rmm._cuda.gpu")
    return {"driver": gpu.driverGetVersion, "devices": gpu.getDeviceCount, "memory": lambda: rmm.DeviceBuffer(size=4096),
            "stream": lambda: rmm.DeviceBuffer(size=4096, stream=rmm.pylibrmm.stream.Stream())}


def ways_of_dali(dali):
    def run():
        pipe = dali.Pipeline(batch_size=1, num_threads=1, device_id=0)
        with pipe:
            pipe.set_outputs(dali.fn.random.uniform(device="gpu", shape=[4]))
        pipe.build()
        return pipe.run()
    return {"driver": dali.backend.GetCudaVersion, "memory": run}


def ways_of_jax(jax):
    versions = importlib.import_module("jax_cuda12_plugin._versions")
    return {"driver": versions.cuda_runtime_get_version, "devices": versions.cuda_device_count, "backend": jax.default_backend,
            "memory": lambda: jax.device_put(1.0, jax.devices("cuda")[0]), "elsewhere": lambda: float(jax.numpy.arange(10.0).sum())}


WAYS = {"cupy": ways_of_cupy, "rmm": ways_of_rmm, "nvidia.dali": ways_of_dali, "jax": ways_of_jax}
for name, way in WAYS[sys.argv[1]](importlib.import_module(sys.argv[1])).items():
    try:
        print(name, "gives", way())
    except Exception as error:  # whatever it is, the library is not to change it
        print(name, "raises", type(error).__module__, type(error).__qualname__, getattr(error, "status", ""), str(error))
