"""What TensorFlow and CUPTI wrote on machines where GPUs could not be profiled, as people reported it."""

# As TensorFlow and its users wrote them.
PREFIX = "2020-07-23 10:58:44.299258: E tensorflow/core/profiler/internal/gpu/cupti_tracer.cc:1441] "
SUBSCRIBE = f"{PREFIX}function cupti_interface_->Subscribe( &subscriber_, (CUpti_CallbackFunc)ApiCallback, this)failed with error "
RECORDED = {
    f"{SUBSCRIBE}CUPTI_ERROR_INSUFFICIENT_PRIVILEGES": "privileges",
    "2019-07-22 01:03:59.967085: W tensorflow/core/profiler/lib/profiler_session.cc:182] Encountered error while starting "
    "profiler: Unavailable: CUPTI error: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES": "privileges",
    "host0: Insufficient privilege to run libcupti (you need root permission).": "privileges",
    f"{SUBSCRIBE}CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED": "other_profiler",
    f"{SUBSCRIBE}CUPTI_ERROR_MAX_LIMIT_REACHED": "other_profiler",
    f"{PREFIX}function cupti_interface_->EnableCallback( 0 , subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, cbid)failed with error "
    "CUPTI_ERROR_INVALID_PARAMETER": "cupti",
    "2021-01-01 00:00:00.000000: W tensorflow/stream_executor/platform/default/dso_loader.cc:60] Could not load dynamic library "
    "'libcupti.so.11.0'; dlerror: libcupti.so.11.0: cannot open shared object file: No such file or directory": "libcupti",
    "host0: Failed to load libcupti (is it installed and accessible?)": "libcupti",
    "host0: No GPU detected.": "no_gpu",
    "Detected GPU events dropped on host0: Profiler has collected 1048576 driver events and 1048576 device events. 1234 events "
    "dropped because total device(activity) events reaches max;": "dropped",
    "W0000 00:00:1700000000.000000 1 gpu_device.cc:2342] Cannot dlopen some GPU libraries. Please make sure the missing libraries "
    "mentioned above are installed properly if you would like to use GPU.": "libraries",
    "E0000 00:00:1700000000.000000 1 cuda_driver.cc:310] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is "
    "detected": "no_driver",
    "I tensorflow/tsl/cuda/cudart_stub.cc:28] Could not find cuda drivers on your machine, GPU will not be used.": "no_driver",
    f"{SUBSCRIBE}CUPTI_ERROR_HARDWARE_BUSY": "cupti_busy",
    "kernel version 470.57.2 does not match DSO version 470.63.1 -- cannot find working devices in this configuration": "driver_version",
    "Another profiling session active.": "another_session",
    "E rocm_tracer.cc:100] function roctracer_enable_domain_callback failed with error": "rocm",
}
HARMLESS = [
    "2020-07-23 10:58:44.165413: I tensorflow/core/profiler/lib/profiler_session.cc:164] Profiler session started.",
    "I tensorflow/stream_executor/platform/default/dso_loader.cc:48] Successfully opened dynamic library libcupti.so.10.1",
    "I tensorflow/core/profiler/internal/gpu/cupti_tracer.cc:1391] Profiler found 2 GPUs",
    "Epoch 1/2 - loss: 0.4 - failed samples: 3",
    "I0000 port.cc:153] oneDNN custom operations are on.",
]
