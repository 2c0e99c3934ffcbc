#include "collectives/hierarchical/hierarchical_backend.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collectives/hierarchical/hierarchical_communicator.h"
#include "collectives/hierarchical/host_exchange.h"
#include "collectives/hierarchical/host_layout.h"

namespace hvd {
namespace {

constexpr char kHostsKey[] = "hierarchical-hosts";
constexpr char kLocalKey[] = "hierarchical-local";
constexpr char kOutcomeKey[] = "hierarchical-outcome";
constexpr absl::string_view kConnected = "connected";

// What a rank shows: its options, one character each, then its host's identity.
std::string EncodeEntry(const HierarchyOptions& options, absl::string_view identity) {
  return absl::StrCat(options.allreduce ? "1" : "0", options.allgather ? "1" : "0", identity);
}

// The identity; takes away from `options` what that rank does not want.
std::string DecodeEntry(absl::string_view entry, HierarchyOptions& options) {
  if (entry.size() < 2) return "";
  options.allreduce &= entry[0] == '1';
  options.allgather &= entry[1] == '1';
  return std::string(entry.substr(2));
}

class HierarchicalBackend : public Backend {
 public:
  HierarchicalBackend(std::string host_identity, const HierarchyOptions& options,
                      std::unique_ptr<Backend> local, std::unique_ptr<MeshBackend> across)
      : host_identity_(std::move(host_identity)),
        options_(options),
        local_(std::move(local)),
        across_(std::move(across)) {}

  absl::string_view name() const override { return "hierarchical"; }

  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group, KeyExchange& keys,
                                                        const WaitBounds& bounds) override {
    RETURN_IF_ERROR(CheckRank(group));
    if (group.size == 1) return across_->Connect(group, keys, bounds);
    const Bounds left(bounds);
    ASSIGN_OR_RETURN(
        const std::vector<std::string> entries,
        keys.AllGather(kHostsKey, EncodeEntry(options_, host_identity_), left.Now().timeout));
    if (entries.size() != static_cast<size_t>(group.size)) {
      return absl::InternalError("the key exchange gave another number of ranks");
    }
    HierarchyOptions options;
    std::vector<std::string> identities;
    identities.reserve(entries.size());
    for (const std::string& entry : entries) identities.push_back(DecodeEntry(entry, options));
    const HostLayout layout = LayOutHosts(identities, group.rank);
    if (layout.AllApart()) return across_->Connect(group, keys, left.Now());
    if (!layout.OneHost()) return ConnectBoth(group, layout, options, keys, left);
    auto local = local_->Connect(group, keys, left.Now());
    if (!absl::IsUnimplemented(local.status())) return local;
    return across_->Connect(group, keys, left.Now());
  }

 private:
  // What is left of a caller's bounds.
  class Bounds {
   public:
    explicit Bounds(const WaitBounds& whole)
        : whole_(whole), deadline_(Clock::Real().Now() + whole.timeout) {}
    WaitBounds Now() const {
      return {std::max(deadline_ - Clock::Real().Now(), absl::ZeroDuration()), whole_.cancellation};
    }

   private:
    const WaitBounds whole_;
    const absl::Time deadline_;
  };

  // The mesh comes first: it finds strangers and missing ranks on every rank alike.
  absl::StatusOr<std::unique_ptr<Communicator>> ConnectBoth(const GroupInfo& group,
                                                            const HostLayout& layout,
                                                            const HierarchyOptions& options,
                                                            KeyExchange& keys, const Bounds& left) {
    ASSIGN_OR_RETURN(std::unique_ptr<MeshCommunicator> mesh,
                     across_->ConnectMesh(group, keys, left.Now()));
    GroupInfo host = group;
    host.rank = layout.index;
    host.size = static_cast<int>(layout.members().size());
    HostExchange host_keys(keys, kLocalKey, layout.members());
    auto local = local_->Connect(host, host_keys, left.Now());
    RETURN_IF_ERROR(host_keys.Finish(left.Now().timeout));
    ASSIGN_OR_RETURN(const std::vector<std::string> outcomes,
                     keys.AllGather(kOutcomeKey, local.ok() ? kConnected : "", left.Now().timeout));
    const auto connected = [](const std::string& outcome) { return outcome == kConnected; };
    if (!std::all_of(outcomes.begin(), outcomes.end(), connected)) return mesh;
    return std::make_unique<HierarchicalCommunicator>(group, layout, options, *std::move(local),
                                                      std::move(mesh));
  }

  const std::string host_identity_;
  const HierarchyOptions options_;
  const std::unique_ptr<Backend> local_;
  const std::unique_ptr<MeshBackend> across_;
};

}  // namespace

std::unique_ptr<Backend> MakeHierarchicalBackend(std::string host_identity,
                                                 const HierarchyOptions& options,
                                                 std::unique_ptr<Backend> local,
                                                 std::unique_ptr<MeshBackend> across) {
  return std::make_unique<HierarchicalBackend>(std::move(host_identity), options, std::move(local),
                                               std::move(across));
}

}  // namespace hvd
