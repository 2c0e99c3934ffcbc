#include "collectives/hierarchical/hierarchical_backend.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cancellation_watch.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collectives/communicator_key_exchange.h"
#include "collectives/hierarchical/hierarchical_communicator.h"
#include "collectives/hierarchical/host_exchange.h"
#include "collectives/hierarchical/host_layout.h"
#include "collectives/hierarchical/host_reach.h"

namespace hvd::collectives::hierarchical {
namespace {

constexpr char kHostsKey[] = "hierarchical-hosts";
constexpr char kLocalKey[] = "hierarchical-local";
constexpr char kOutcomeKey[] = "hierarchical-outcome";
constexpr char kReachKey[] = "hierarchical-reach";
constexpr absl::string_view kConnected = "connected";

// Up to this size of the group the daemon sends every rank the entries of all others. For larger
// groups that would be too much data; see ConnectLarge.
constexpr int kLargeGroup = 64;

// A rank's entry in the key exchange: one character per option, the host's identity, a line break,
// the name of the rank's HostReach.
std::string EncodeEntry(const HierarchyOptions& options, absl::string_view identity,
                        absl::string_view reach) {
  return absl::StrCat(options.allreduce ? "1" : "0", options.allgather ? "1" : "0", identity, "\n",
                      reach);
}

struct Entry {
  std::string identity, reach;
};

// Switches off those of `options` that the rank has switched off.
Entry DecodeEntry(absl::string_view entry, HierarchyOptions& options) {
  const size_t identity_end = entry.rfind('\n');
  if (identity_end == absl::string_view::npos || identity_end < 2) return {};
  options.allreduce &= entry[0] == '1';
  options.allgather &= entry[1] == '1';
  return {std::string(entry.substr(2, identity_end - 2)),
          std::string(entry.substr(identity_end + 1))};
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
    const HostReach reach = host_identity_.empty() ? HostReach() : HostReach::Open();
    if (group.size > kLargeGroup) return ConnectLarge(group, reach, keys, left);
    ASSIGN_OR_RETURN(const std::vector<std::string> entries,
                     keys.AllGather(kHostsKey, OwnEntry(reach), left.Now().timeout));
    if (entries.size() != static_cast<size_t>(group.size)) {
      return absl::InternalError("the key exchange has not returned one value per rank");
    }
    const Layout layout = LayOut(entries, group.rank);
    if (layout.hosts.AllApart()) return across_->Connect(group, keys, left.Now());
    if (layout.hosts.OneHost()) return ConnectHost(group, layout.reaches_first, keys, left);
    ASSIGN_OR_RETURN(std::unique_ptr<MeshCommunicator> mesh,
                     across_->ConnectMesh(group, keys, left.Now()));
    return AddHosts(group, layout, std::move(mesh), keys, left);
  }

 private:
  // A caller's bounds, reduced by the time that has passed.
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

  struct Layout {
    HostLayout hosts;
    HierarchyOptions options;
    bool reaches_first = false;  // whether this rank reaches the first rank of its host
  };

  std::string OwnEntry(const HostReach& reach) const {
    return EncodeEntry(options_, host_identity_, reach.name());
  }

  static Layout LayOut(const std::vector<std::string>& entries, int rank) {
    Layout layout;
    std::vector<std::string> identities, names;
    for (const std::string& entry : entries) {
      Entry shown = DecodeEntry(entry, layout.options);
      identities.push_back(std::move(shown.identity));
      names.push_back(std::move(shown.reach));
    }
    layout.hosts = LayOutHosts(identities, rank);
    layout.reaches_first = layout.hosts.members().size() > 1 &&
                           HostReach::CanReach(names[layout.hosts.members().front()]);
    return layout;
  }

  // Connects a group that is on one host. ReachExchange makes `local` return Unimplemented on all
  // ranks if any of them can't reach the first one, so all ranks take the same branch.
  absl::StatusOr<std::unique_ptr<Communicator>> ConnectHost(const GroupInfo& group,
                                                            bool reaches_first, KeyExchange& keys,
                                                            const Bounds& left) {
    ReachExchange host_keys(keys, reaches_first);
    auto local = local_->Connect(group, host_keys, left.Now());
    if (!absl::IsUnimplemented(local.status())) return local;
    return across_->Connect(group, keys, left.Now());
  }

  // Connects a large group. The daemon only compares the identities: its answer tells whether all
  // ranks share a host. If not, the ranks exchange their entries over the mesh.
  absl::StatusOr<std::unique_ptr<Communicator>> ConnectLarge(const GroupInfo& group,
                                                             const HostReach& reach,
                                                             KeyExchange& keys,
                                                             const Bounds& left) {
    ASSIGN_OR_RETURN(const KeyExchange::Selected hosts,
                     keys.Gather(kHostsKey, host_identity_, {}, left.Now().timeout));
    if (hosts.all_equal && !host_identity_.empty()) {
      ASSIGN_OR_RETURN(const KeyExchange::Selected names,
                       keys.Gather(kReachKey, reach.name(), {0}, left.Now().timeout));
      return ConnectHost(group, HostReach::CanReach(names.values[0]), keys, left);
    }
    ASSIGN_OR_RETURN(std::unique_ptr<MeshCommunicator> mesh,
                     across_->ConnectMesh(group, keys, left.Now()));
    ASSIGN_OR_RETURN(const Layout layout, LayOutOver(*mesh, reach, left));
    if (layout.hosts.AllApart()) return mesh;
    return AddHosts(group, layout, std::move(mesh), keys, left);
  }

  absl::StatusOr<Layout> LayOutOver(MeshCommunicator& mesh, const HostReach& reach,
                                    const Bounds& left) {
    const WaitBounds bounds = left.Now();
    const CancellationWatch watch(bounds.cancellation,
                                  [&mesh](const absl::Status& why) { mesh.Abort(why.message()); });
    const auto entries =
        CommunicatorKeyExchange(mesh).AllGather(kHostsKey, OwnEntry(reach), bounds.timeout);
    if (entries.ok()) return LayOut(*entries, mesh.rank());
    if (bounds.cancellation != nullptr) RETURN_IF_ERROR(bounds.cancellation->status());
    return entries.status();
  }

  // Adds the host's communicator to the mesh, which is connected first because it detects strangers
  // and missing ranks on all ranks alike. Every rank takes part in both rounds of `keys`, even if
  // it is alone on its host or `local` has failed; otherwise the other ranks would wait. The last
  // round decides: either all ranks use the hierarchy or all use the mesh alone.
  absl::StatusOr<std::unique_ptr<Communicator>> AddHosts(const GroupInfo& group,
                                                         const Layout& layout,
                                                         std::unique_ptr<MeshCommunicator> mesh,
                                                         KeyExchange& keys, const Bounds& left) {
    GroupInfo host = group;
    host.rank = layout.hosts.index;
    host.size = static_cast<int>(layout.hosts.members().size());
    HostExchange host_keys(keys, kLocalKey, layout.hosts.members());
    ReachExchange reach_keys(host_keys, host.size == 1 || layout.reaches_first);
    auto local = local_->Connect(host, reach_keys, left.Now());
    RETURN_IF_ERROR(host_keys.Finish(left.Now().timeout));
    ASSIGN_OR_RETURN(
        const KeyExchange::Selected outcomes,
        keys.Gather(kOutcomeKey, local.ok() ? kConnected : "", {}, left.Now().timeout));
    if (!local.ok() || !outcomes.all_equal) return mesh;
    return std::make_unique<HierarchicalCommunicator>(group, layout.hosts, layout.options,
                                                      *std::move(local), std::move(mesh));
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

}  // namespace hvd::collectives::hierarchical
