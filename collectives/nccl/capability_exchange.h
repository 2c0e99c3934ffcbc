// The capability exchange before a NCCL communicator is made: each rank publishes whether it can
// take part, with a proof of its membership. Pure.
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

struct Capabilities {
  int version = 0;      // of NCCL; 0: this rank can't take part
  std::string problem;  // the reason if it can't
  std::string gpu;      // the identity of this rank's GPU, kGpuBytes
  std::string id;       // sizeof(NcclUniqueId) bytes; used from rank 0 only
  // Whether this rank's NCCL lets several ranks share one GPU. All ranks' NCCL must do so.
  bool shares_gpus = false;
  int visible_gpus = 0;  // how many GPUs this rank could choose from
};

// The message of rank group.rank, authenticated with group.secret. The key of an exchange can be
// used once per epoch, so an intercepted message can't be replayed.
std::string EncodeCapabilities(const GroupInfo& group, const Capabilities& hello);

// Checks the messages of all ranks, in rank order; returns rank 0's id, for connecting. All ranks
// get the same result, except for a rank that does not know the secret.
// Errors:
//   - PermissionDenied: a rank does not know the epoch's secret.
//   - Unimplemented: a rank can't take part, has another version of NCCL than rank 0, or has the
//     same GPU as an earlier rank although not all ranks may share theirs. Names the rank and the
//     reason.
absl::StatusOr<NcclUniqueId> CheckCapabilities(const GroupInfo& group,
                                               absl::Span<const std::string> hellos);

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_CAPABILITY_EXCHANGE_H_
