// Does not compile unless what collectives/nccl/abi.h declares of NCCL is what the real header
// says. There is nothing to run.
#include <nccl.h>

#include <cstddef>

#include "collectives/nccl/abi.h"
#include "tests/nccl/abi_asserts.h"

using namespace hvd::collectives::nccl;

SAME_VALUE(NcclResult::kSuccess, ncclSuccess);
SAME_VALUE(NcclResult::kUnhandledCudaError, ncclUnhandledCudaError);
SAME_VALUE(NcclResult::kSystemError, ncclSystemError);
SAME_VALUE(NcclResult::kInternalError, ncclInternalError);
SAME_VALUE(NcclResult::kInvalidArgument, ncclInvalidArgument);
SAME_VALUE(NcclResult::kInvalidUsage, ncclInvalidUsage);
SAME_VALUE(NcclResult::kRemoteError, ncclRemoteError);
SAME_VALUE(NcclResult::kInProgress, ncclInProgress);
#if NCCL_VERSION_CODE >= 23000
SAME_VALUE(NcclResult::kTimeout, ncclTimeout);
SAME_VALUE(9, ncclNumResults);  // else there is one that abi.h does not know
#else
SAME_VALUE(8, ncclNumResults);
#endif

SAME_VALUE(NcclType::kInt8, ncclInt8);
SAME_VALUE(NcclType::kUint8, ncclUint8);
SAME_VALUE(NcclType::kInt32, ncclInt32);
SAME_VALUE(NcclType::kUint32, ncclUint32);
SAME_VALUE(NcclType::kInt64, ncclInt64);
SAME_VALUE(NcclType::kUint64, ncclUint64);
SAME_VALUE(NcclType::kFloat16, ncclFloat16);
SAME_VALUE(NcclType::kFloat32, ncclFloat32);
SAME_VALUE(NcclType::kFloat64, ncclFloat64);
SAME_VALUE(NcclType::kBfloat16, ncclBfloat16);

SAME_VALUE(NcclOp::kSum, ncclSum);
SAME_VALUE(NcclOp::kProduct, ncclProd);
SAME_VALUE(NcclOp::kMax, ncclMax);
SAME_VALUE(NcclOp::kMin, ncclMin);
SAME_VALUE(NcclOp::kAverage, ncclAvg);
SAME_VALUE(5, ncclNumOps);
SAME_VALUE(kNcclScalarOnHost, ncclScalarHostImmediate);

SAME_LAYOUT(NcclResult, ncclResult_t);
SAME_LAYOUT(NcclType, ncclDataType_t);
SAME_LAYOUT(NcclOp, ncclRedOp_t);
SAME_LAYOUT(NcclUniqueId, ncclUniqueId);

// The head of the configuration, which is all that a library is shown.
static_assert(offsetof(NcclConfig, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(NcclConfig, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(NcclConfig, blocking) == offsetof(ncclConfig_t, blocking));
constexpr ncclConfig_t kTheirConfig = NCCL_CONFIG_INITIALIZER;
static_assert(NcclConfig().magic == kTheirConfig.magic);
static_assert(NcclConfig().version == NCCL_VERSION(2, 14, 0) &&
              kOldestNccl == NCCL_VERSION(2, 14, 0));
static_assert(NCCL_VERSION_CODE >= kOldestNccl);

IS(ncclResult_t, NcclResult);
IS(ncclDataType_t, NcclType);
IS(ncclRedOp_t, NcclOp);
IS(ncclUniqueId, NcclUniqueId);
IS(ncclConfig_t, NcclConfig);
IS(ncclComm_t, NcclComm*);
IS(ncclScalarResidence_t, int);
IS(cudaStream_t, CudaStream*);  // a CUstream as well

SAME_SIGNATURE(NcclFunctions, get_version, ncclGetVersion);
SAME_SIGNATURE(NcclFunctions, get_unique_id, ncclGetUniqueId);
SAME_SIGNATURE(NcclFunctions, comm_init_rank_config, ncclCommInitRankConfig);
SAME_SIGNATURE(NcclFunctions, comm_finalize, ncclCommFinalize);
SAME_SIGNATURE(NcclFunctions, comm_destroy, ncclCommDestroy);
SAME_SIGNATURE(NcclFunctions, comm_abort, ncclCommAbort);
SAME_SIGNATURE(NcclFunctions, comm_get_async_error, ncclCommGetAsyncError);
SAME_SIGNATURE(NcclFunctions, get_error_string, ncclGetErrorString);
SAME_SIGNATURE(NcclFunctions, get_last_error, ncclGetLastError);
SAME_SIGNATURE(NcclFunctions, red_op_create_pre_mul_sum, ncclRedOpCreatePreMulSum);
SAME_SIGNATURE(NcclFunctions, red_op_destroy, ncclRedOpDestroy);
SAME_SIGNATURE(NcclFunctions, all_reduce, ncclAllReduce);
SAME_SIGNATURE(NcclFunctions, broadcast, ncclBroadcast);
SAME_SIGNATURE(NcclFunctions, reduce, ncclReduce);
SAME_SIGNATURE(NcclFunctions, all_gather, ncclAllGather);
SAME_SIGNATURE(NcclFunctions, reduce_scatter, ncclReduceScatter);
SAME_SIGNATURE(NcclFunctions, send, ncclSend);
SAME_SIGNATURE(NcclFunctions, recv, ncclRecv);
SAME_SIGNATURE(NcclFunctions, group_start, ncclGroupStart);
SAME_SIGNATURE(NcclFunctions, group_end, ncclGroupEnd);
// Another one needs a row above.
static_assert(sizeof(NcclFunctions) == 20 * sizeof(void*));
