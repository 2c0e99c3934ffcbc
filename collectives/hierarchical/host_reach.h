// Whether ranks that take each other for neighbours are: virtual machines that were copied while
// they ran have all the same marks.
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
// lives. It takes nothing.
class HostDoor {
 public:
  // Closed if none is to be had; such a door can't be reached.
  static HostDoor Open();

  // Letters and digits; empty: closed.
  const std::string& name() const { return name_; }

  // Whether the door of this name can be reached from here.
  static bool CanReach(absl::string_view name);

 private:
  Fd socket_;
  std::string name_;
};

// An exchange of keys in which each rank also says whether it reaches the first one.
class ReachExchange : public KeyExchange {
 public:
  ReachExchange(KeyExchange& keys, bool reaches) : keys_(keys), reaches_(reaches) {}

  //   Unimplemented, on all ranks: not all of them do.   Otherwise as KeyExchange.
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override;

 private:
  KeyExchange& keys_;
  const bool reaches_;
};

}  // namespace hvd::collectives::hierarchical

#endif  // COLLECTIVES_HIERARCHICAL_HOST_REACH_H_
