// The base class of backends whose communicators are LinksCommunicators.
#ifndef COLLECTIVES_LINKS_LINKS_BACKEND_H_
#define COLLECTIVES_LINKS_LINKS_BACKEND_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "collectives/mesh.h"

namespace hvd::collectives::links {

// In groups of up to this size all ranks are linked with all others from the start.
inline constexpr int kMostDirectRanks = 16;

class LinksBackend : public MeshBackend {
 public:
  absl::string_view name() const final { return name_; }
  // A group of one rank has no links.
  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group, KeyExchange& keys,
                                                        const WaitBounds& bounds) final;
  absl::StatusOr<std::unique_ptr<MeshCommunicator>> ConnectMesh(const GroupInfo& group,
                                                                KeyExchange& keys,
                                                                const WaitBounds& bounds) final;

 protected:
  // `name`: a literal.
  explicit LinksBackend(const char* name) : name_(name) {}

 private:
  // Errors:
  //   - InvalidArgument: the group is not one that this backend can connect.
  virtual absl::Status Check(const GroupInfo& group) const { return absl::OkStatus(); }
  // `group` has passed Check, and has several ranks. Errors as in Connect.
  virtual absl::StatusOr<std::unique_ptr<MeshCommunicator>> ConnectPeers(
      const GroupInfo& group, KeyExchange& keys, const WaitBounds& bounds) = 0;

  const char* const name_;
};

}  // namespace hvd::collectives::links

#endif  // COLLECTIVES_LINKS_LINKS_BACKEND_H_
