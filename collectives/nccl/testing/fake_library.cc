// Shared libraries with the right symbols, for tests of the loader. Only the version can be called.
#define EXPORT extern "C" __attribute__((visibility("default")))
#define STUB(name) \
  EXPORT int name() { return 1; }

#ifdef FAKE_NCCL_VERSION
EXPORT int ncclGetVersion(int* version) {
  *version = FAKE_NCCL_VERSION;
  return 0;
}
#endif

#ifdef FAKE_IS_COMPLETE
STUB(ncclGetUniqueId)
STUB(ncclCommInitRankConfig)
STUB(ncclCommFinalize)
STUB(ncclCommDestroy)
STUB(ncclCommAbort)
STUB(ncclCommGetAsyncError)
STUB(ncclGetErrorString)
STUB(ncclGetLastError)
STUB(ncclRedOpCreatePreMulSum)
STUB(ncclRedOpDestroy)
STUB(ncclAllReduce)
STUB(ncclBroadcast)
STUB(ncclReduce)
STUB(ncclAllGather)
STUB(ncclReduceScatter)
STUB(ncclSend)
STUB(ncclRecv)
STUB(ncclGroupStart)
STUB(ncclGroupEnd)
STUB(cuInit)
STUB(cuGetErrorString)
STUB(cuDeviceGetCount)
STUB(cuDeviceGetUuid)
STUB(cuDevicePrimaryCtxRetain)
STUB(cuDevicePrimaryCtxRelease_v2)
STUB(cuCtxPushCurrent_v2)
STUB(cuCtxPopCurrent_v2)
STUB(cuCtxGetDevice)
STUB(cuStreamCreate)
STUB(cuStreamDestroy_v2)
STUB(cuStreamGetCtx)
STUB(cuStreamSynchronize)
STUB(cuStreamWaitEvent)
STUB(cuEventCreate)
STUB(cuEventDestroy_v2)
STUB(cuEventRecord)
STUB(cuEventQuery)
STUB(cuPointerGetAttribute)
STUB(cuMemAlloc_v2)
STUB(cuMemFree_v2)
STUB(cuMemHostAlloc)
STUB(cuMemFreeHost)
STUB(cuMemHostRegister_v2)
STUB(cuMemHostUnregister)
STUB(cuMemcpyDtoHAsync_v2)
STUB(cuMemcpyHtoDAsync_v2)
STUB(cuMemcpyDtoDAsync_v2)
#endif
