// The check that ranks with the same host identity share a kernel. Virtual machines that were
// cloned while they ran have the same identity, but no shared memory.
#ifndef COLLECTIVES_HIERARCHICAL_HOST_REACH_H_
#define COLLECTIVES_HIERARCHICAL_HOST_REACH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/fd.h"
#include "collectives/key_exchange.h"

namespace hvd::collectives::hierarchical {

// A socket that processes of this kernel and network namespace can reach, as long as this object
// lives. It accepts nothing.
class HostReach {
 public:
  // Closed if no socket can be made; then it can't be reached.
  static HostReach Open();

  // Letters and digits; empty: closed.
  const std::string& name() const { return name_; }

  // Whether the one of this name can be reached from here.
  static bool CanReach(absl::string_view name);

 private:
  Fd socket_;
  std::string name_;
};

// A key exchange in which each rank also publishes whether it reaches the first one.
class ReachExchange : public KeyExchange {
 public:
  ReachExchange(KeyExchange& keys, bool reaches) : keys_(keys), reaches_(reaches) {}

  // Errors:
  //   - Unimplemented: not all ranks reach it; the same on all ranks.
  //   - Others: those of KeyExchange.
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override;

 private:
  KeyExchange& keys_;
  const bool reaches_;
};

}  // namespace hvd::collectives::hierarchical

#endif  // COLLECTIVES_HIERARCHICAL_HOST_REACH_H_
