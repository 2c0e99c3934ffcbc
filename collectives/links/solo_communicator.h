// The communicator of a group of one rank, whose operations are local copies.
#ifndef COLLECTIVES_LINKS_SOLO_COMMUNICATOR_H_
#define COLLECTIVES_LINKS_SOLO_COMMUNICATOR_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "collectives/communicator.h"

namespace hvd::collectives::links {

// `name` is that of its backend. REQUIRES: group.size == 1.
std::unique_ptr<Communicator> MakeSoloCommunicator(absl::string_view name, const GroupInfo& group);

}  // namespace hvd::collectives::links

#endif  // COLLECTIVES_LINKS_SOLO_COMMUNICATOR_H_
