// What ranks show each other before they make a NCCL communicator: whether they can, and that they
// belong here. Pure.
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
  std::string problem;  // why not
  std::string gpu;      // who it is, kGpuBytes
  std::string id;       // rank 0's: sizeof(NcclUniqueId) bytes
  // Whether this rank's NCCL takes several ranks with one GPU; it does only if all ranks' do.
  bool shares_gpus = false;
};

// The hello of rank group.rank, signed with group.secret. Keys of an exchange serve once an epoch,
// so a hello overheard is worth nothing.
std::string EncodeHello(const GroupInfo& group, const NcclHello& hello);

// All ranks' hellos, in rank order, as the one id to connect with; every rank comes to the same
// verdict, except for who can't read the others' signatures.
//   PermissionDenied: a rank does not know the epoch's secret.   Unimplemented: a rank can't take
//   part, has another NCCL than rank 0, or the GPU of an earlier rank
//   where not all share theirs; names it and says why.
absl::StatusOr<NcclUniqueId> JudgeHellos(const GroupInfo& group,
                                         absl::Span<const std::string> hellos);

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_CAPABILITY_EXCHANGE_H_
