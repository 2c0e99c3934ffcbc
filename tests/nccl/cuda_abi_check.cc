// Does not compile unless what collectives/nccl/abi.h declares of CUDA's driver is what the real
// header says. There is nothing to run.
#include <cuda.h>

#include "collectives/nccl/abi.h"
#include "tests/nccl/abi_asserts.h"

using namespace hvd::collectives::nccl;

SAME_VALUE(CudaResult::kSuccess, CUDA_SUCCESS);
SAME_VALUE(CudaResult::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SAME_VALUE(CudaResult::kNotReady, CUDA_ERROR_NOT_READY);
SAME_VALUE(kCudaStreamNonBlocking, CU_STREAM_NON_BLOCKING);
SAME_VALUE(kCudaEventDisableTiming, CU_EVENT_DISABLE_TIMING);

SAME_LAYOUT(CudaResult, CUresult);
SAME_VALUE(CudaPointerAttribute::kDevice, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);

SAME_LAYOUT(CudaPointerAttribute, CUpointer_attribute);
SAME_LAYOUT(CudaUuid, CUuuid);
SAME_LAYOUT(CudaAddress, CUdeviceptr);
SAME_LAYOUT(CudaDevice, CUdevice);

IS(CUstream, CudaStream*);
IS(CUresult, CudaResult);
IS(CUcontext, CudaContext*);
IS(CUevent, CudaEvent*);
IS(CUuuid, CudaUuid);
IS(CUpointer_attribute, CudaPointerAttribute);

SAME_SIGNATURE(CudaFunctions, init, cuInit);
SAME_SIGNATURE(CudaFunctions, get_error_string, cuGetErrorString);
SAME_SIGNATURE(CudaFunctions, device_get_count, cuDeviceGetCount);
SAME_SIGNATURE(CudaFunctions, device_get_uuid, cuDeviceGetUuid);
SAME_SIGNATURE(CudaFunctions, primary_context_retain, cuDevicePrimaryCtxRetain);
SAME_SIGNATURE(CudaFunctions, primary_context_release, cuDevicePrimaryCtxRelease);
SAME_SIGNATURE(CudaFunctions, context_push, cuCtxPushCurrent);
SAME_SIGNATURE(CudaFunctions, context_pop, cuCtxPopCurrent);
SAME_SIGNATURE(CudaFunctions, context_get_device, cuCtxGetDevice);
SAME_SIGNATURE(CudaFunctions, stream_create, cuStreamCreate);
SAME_SIGNATURE(CudaFunctions, stream_destroy, cuStreamDestroy);
SAME_SIGNATURE(CudaFunctions, stream_get_context, cuStreamGetCtx);
SAME_SIGNATURE(CudaFunctions, stream_synchronize, cuStreamSynchronize);
SAME_SIGNATURE(CudaFunctions, stream_wait_event, cuStreamWaitEvent);
SAME_SIGNATURE(CudaFunctions, event_create, cuEventCreate);
SAME_SIGNATURE(CudaFunctions, event_destroy, cuEventDestroy);
SAME_SIGNATURE(CudaFunctions, event_record, cuEventRecord);
SAME_SIGNATURE(CudaFunctions, event_query, cuEventQuery);
SAME_SIGNATURE(CudaFunctions, pointer_get_attribute, cuPointerGetAttribute);
SAME_SIGNATURE(CudaFunctions, memory_allocate, cuMemAlloc);
SAME_SIGNATURE(CudaFunctions, memory_free, cuMemFree);
SAME_SIGNATURE(CudaFunctions, host_allocate, cuMemHostAlloc);
SAME_SIGNATURE(CudaFunctions, host_free, cuMemFreeHost);
SAME_SIGNATURE(CudaFunctions, host_register, cuMemHostRegister);
SAME_SIGNATURE(CudaFunctions, host_unregister, cuMemHostUnregister);
SAME_SIGNATURE(CudaFunctions, copy_to_host, cuMemcpyDtoHAsync);
SAME_SIGNATURE(CudaFunctions, copy_from_host, cuMemcpyHtoDAsync);
SAME_SIGNATURE(CudaFunctions, copy_on_device, cuMemcpyDtoDAsync);
static_assert(sizeof(CudaFunctions) == 28 * sizeof(void*));
