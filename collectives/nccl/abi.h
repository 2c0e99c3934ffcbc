// The binary interfaces (ABI) of NCCL and of the CUDA driver, as far as they are used here.
// Declared independently, from the public documentation, so that the tree builds where neither is
// installed. Both interfaces are stable: NCCL's from 2.14 on within libnccl.so.2, the driver's from
// CUDA 11 on within libcuda.so.1.
#ifndef COLLECTIVES_NCCL_ABI_H_
#define COLLECTIVES_NCCL_ABI_H_

#include <cstddef>
#include <cstdint>

namespace hvd::collectives::nccl {

// ---- NCCL ----

enum class NcclResult : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
  kTimeout = 8,  // from 2.30 on
};

enum class NcclType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};

// Values from 5 on are made by pre_mul_sum_create.
enum class NcclOp : int { kSum = 0, kProduct = 1, kMax = 2, kMin = 3, kAverage = 4 };

inline constexpr int kNcclScalarOnHost = 1;  // the factor is in host memory, read during the call

struct NcclUniqueId {
  char internal[128];
};

struct NcclComm;  // opaque

// The configuration in the layout of 2.14. Later libraries recognise it by `size` and `version`,
// and use their defaults for fields that were added later.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21400;
  int blocking = 0;
};
static_assert(sizeof(NcclConfig) == 24);

inline constexpr int kOldestNccl = 21400;        // 2.14.0: non-blocking communicators
inline constexpr int kFirstSharingNccl = 23000;  // 2.30.0: ranks may share a GPU, if enabled

// ---- CUDA driver ----

enum class CudaResult : int { kSuccess = 0, kOutOfMemory = 2, kNotReady = 600 };
enum class CudaPointerAttribute : int { kDevice = 9 };

// Opaque. The CUDA runtime's cudaStream_t and cudaEvent_t are pointers to the last two.
struct CudaContext;
struct CudaStream;
struct CudaEvent;
using CudaAddress = unsigned long long;  // NOLINT(runtime/int): the interface's type
using CudaDevice = int;

struct CudaUuid {
  char bytes[16];
};

inline constexpr unsigned kCudaStreamNonBlocking = 1;
inline constexpr unsigned kCudaEventDisableTiming = 2;

// ---- Function tables ----

struct NcclFunctions {
  NcclResult (*get_version)(int* version);
  NcclResult (*get_unique_id)(NcclUniqueId* id);
  NcclResult (*comm_init_rank_config)(NcclComm** comm, int ranks, NcclUniqueId id, int rank,
                                      NcclConfig* config);
  NcclResult (*comm_finalize)(NcclComm* comm);
  NcclResult (*comm_destroy)(NcclComm* comm);
  NcclResult (*comm_abort)(NcclComm* comm);
  NcclResult (*comm_get_async_error)(NcclComm* comm, NcclResult* error);
  const char* (*get_error_string)(NcclResult result);
  const char* (*get_last_error)(NcclComm* comm);
  NcclResult (*red_op_create_pre_mul_sum)(NcclOp* op, void* factor, NcclType type, int residence,
                                          NcclComm* comm);
  NcclResult (*red_op_destroy)(NcclOp op, NcclComm* comm);
  NcclResult (*all_reduce)(const void* in, void* out, size_t count, NcclType type, NcclOp op,
                           NcclComm* comm, CudaStream* stream);
  NcclResult (*broadcast)(const void* in, void* out, size_t count, NcclType type, int root,
                          NcclComm* comm, CudaStream* stream);
  NcclResult (*reduce)(const void* in, void* out, size_t count, NcclType type, NcclOp op, int root,
                       NcclComm* comm, CudaStream* stream);
  NcclResult (*all_gather)(const void* in, void* out, size_t count, NcclType type, NcclComm* comm,
                           CudaStream* stream);
  NcclResult (*reduce_scatter)(const void* in, void* out, size_t count, NcclType type, NcclOp op,
                               NcclComm* comm, CudaStream* stream);
  NcclResult (*send)(const void* in, size_t count, NcclType type, int peer, NcclComm* comm,
                     CudaStream* stream);
  NcclResult (*recv)(void* out, size_t count, NcclType type, int peer, NcclComm* comm,
                     CudaStream* stream);
  NcclResult (*group_start)();
  NcclResult (*group_end)();
};

struct CudaFunctions {
  CudaResult (*init)(unsigned flags);
  CudaResult (*get_error_string)(CudaResult error, const char** text);
  CudaResult (*device_get_count)(int* count);
  CudaResult (*device_get_uuid)(CudaUuid* uuid, CudaDevice device);
  CudaResult (*primary_context_retain)(CudaContext** context, CudaDevice device);
  CudaResult (*primary_context_release)(CudaDevice device);
  CudaResult (*context_push)(CudaContext* context);
  CudaResult (*context_pop)(CudaContext** context);
  CudaResult (*context_get_device)(CudaDevice* device);
  CudaResult (*stream_create)(CudaStream** stream, unsigned flags);
  CudaResult (*stream_destroy)(CudaStream* stream);
  CudaResult (*stream_get_context)(CudaStream* stream, CudaContext** context);
  CudaResult (*stream_synchronize)(CudaStream* stream);
  CudaResult (*stream_wait_event)(CudaStream* stream, CudaEvent* event, unsigned flags);
  CudaResult (*event_create)(CudaEvent** event, unsigned flags);
  CudaResult (*event_destroy)(CudaEvent* event);
  CudaResult (*event_record)(CudaEvent* event, CudaStream* stream);
  CudaResult (*event_query)(CudaEvent* event);
  CudaResult (*pointer_get_attribute)(void* value, CudaPointerAttribute attribute,
                                      CudaAddress address);
  CudaResult (*memory_allocate)(CudaAddress* memory, size_t bytes);
  CudaResult (*memory_free)(CudaAddress memory);
  CudaResult (*host_allocate)(void** memory, size_t bytes, unsigned flags);
  CudaResult (*host_free)(void* memory);
  CudaResult (*host_register)(void* memory, size_t bytes, unsigned flags);
  CudaResult (*host_unregister)(void* memory);
  CudaResult (*copy_to_host)(void* to, CudaAddress from, size_t bytes, CudaStream* stream);
  CudaResult (*copy_from_host)(CudaAddress to, const void* from, size_t bytes, CudaStream* stream);
  CudaResult (*copy_on_device)(CudaAddress to, CudaAddress from, size_t bytes, CudaStream* stream);
};

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_ABI_H_
