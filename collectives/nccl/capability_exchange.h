// The capability exchange of ranks before they make a NCCL communicator: whether each can take
// part, and that it belongs to the group. Pure.
#ifndef COLLECTIVES_NCCL_CAPABILITY_EXCHANGE_H_
#define COLLECTIVES_NCCL_CAPABILITY_EXCHANGE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collectives/nccl/abi.h"
#include "collectives/types.h"

namespace hvd::collectives::nccl {

inline constexpr size_t kGpuBytes = 32;

struct NcclHello {
  int version = 0;      // of NCCL; 0: this rank can't take part
  std::string problem;  // the reason if it can't
  std::string gpu;      // its identity, kGpuBytes
  std::string id;       // rank 0's: sizeof(NcclUniqueId) bytes
  // Whether this rank's NCCL supports several ranks on one GPU; it does so only if all ranks' do.
  bool shares_gpus = false;
};

// The hello of rank group.rank, signed with group.secret. Keys of an exchange serve once an epoch,
// so an intercepted hello is useless.
std::string EncodeHello(const GroupInfo& group, const NcclHello& hello);

// Checks all ranks' hellos, in rank order; returns the one id to connect with. Every rank gets the
// same result, except a rank that can't verify the others' signatures.
// Errors:
//   - PermissionDenied: a rank does not know the epoch's secret.
//   - Unimplemented: a rank can't take part, has another NCCL than rank 0, or the GPU of an earlier
//     rank where not all share theirs; names it and the reason.
absl::StatusOr<NcclUniqueId> CheckHellos(const GroupInfo& group,
                                         absl::Span<const std::string> hellos);

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_CAPABILITY_EXCHANGE_H_
