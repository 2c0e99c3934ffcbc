#include "collectives/gloo/gloo_backend.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/net/tcp_socket.h"
#include "base/status_macros.h"
#include "collectives/gloo/gloo_glue.h"
#include "collectives/gloo/gloo_links.h"
#include "collectives/links/links_backend.h"
#include "collectives/links/links_communicator.h"
#include "collectives/peer_proof.h"
#include "gloo/transport/address.h"
#include "gloo/transport/context.h"
#include "gloo/transport/pair.h"
#include "gloo/transport/tcp/device.h"

namespace hvd::collectives::gloo {
namespace {

using Context = ::gloo::transport::Context;

constexpr char kMeshKey[] = "gloo-mesh";
constexpr char kProtocol[] = "gloo mesh";

// Errors: those of MakeGlooBackend.
absl::StatusOr<std::shared_ptr<Context>> MakeContext(const GroupInfo& group,
                                                     absl::Duration timeout) {
  // Gloo's CreateDevice has undefined behaviour if the address can't be resolved, and leaks memory
  // if it can't be bound, so the address is tried first.
  RETURN_IF_ERROR(net::ListenOnAnyPort(group.address).status());
  std::shared_ptr<Context> context;
  RETURN_IF_ERROR(GlooCall([&] {
    const auto device = ::gloo::transport::tcp::CreateDevice(group.address.c_str());
    context = device->createContext(group.rank, group.size);
    context->setTimeout(GlooTimeout(timeout));
    for (int peer = 0; peer < group.size; ++peer) {
      if (peer != group.rank) context->createPair(peer);
    }
  }));
  return context;
}

// The addresses at which this rank awaits each peer, in rank order; its own is empty. All have the
// same length, but for that one.
std::vector<std::string> AddressesOf(Context& context) {
  std::vector<std::string> addresses(context.size);
  for (int peer = 0; peer < context.size; ++peer) {
    if (peer == context.rank) continue;
    const std::vector<char> bytes = context.getPair(peer)->address().bytes();
    addresses[peer].assign(bytes.begin(), bytes.end());
  }
  return addresses;
}

ProofSubject SubjectOf(const GroupInfo& group, int from, absl::string_view addresses) {
  return {kProtocol, group.epoch, group.size, from, kEveryRank, addresses};
}

// What a rank publishes: a proof, and its addresses one after the other.
std::string EntryOf(const GroupInfo& group, const std::vector<std::string>& addresses) {
  std::string joined;
  for (const std::string& address : addresses) joined += address;
  return MakeProof(group.secret, SubjectOf(group, group.rank, joined)) + joined;
}

// The address in `entry`, rank `from`'s, for this rank.
// Errors:
//   - PermissionDenied: that rank does not know the secret, or the entry is malformed.
absl::StatusOr<std::vector<char>> AddressFor(const GroupInfo& group, int from,
                                             absl::string_view entry) {
  const absl::string_view proof = entry.substr(0, kProofBytes);
  const absl::string_view addresses = entry.substr(proof.size());
  const size_t others = static_cast<size_t>(group.size) - 1;
  if (!CheckProof(group.secret, SubjectOf(group, from, addresses), proof) ||
      addresses.size() % others != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("rank ", from, " does not know the secret of this group"));
  }
  const size_t length = addresses.size() / others;
  // A rank's own place is left out.
  const size_t place = static_cast<size_t>(group.rank < from ? group.rank : group.rank - 1);
  const absl::string_view address = addresses.substr(place * length, length);
  return std::vector<char>(address.begin(), address.end());
}

absl::Status ConnectPairs(const GroupInfo& group, const std::vector<std::string>& entries,
                          Context& context, absl::Time deadline) {
  std::vector<std::vector<char>> addresses(group.size);
  for (int peer = 0; peer < group.size; ++peer) {
    if (peer == group.rank) continue;
    ASSIGN_OR_RETURN(addresses[peer], AddressFor(group, peer, entries[peer]));
  }
  for (int peer = 0; peer < group.size; ++peer) {
    if (peer == group.rank) continue;
    const absl::Status connected =
        GlooCall([&] { context.getPair(peer)->connect(addresses[peer]); });
    if (connected.ok()) continue;
    if (Clock::Real().Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat("no connection in time from rank ", peer));
    }
    return absl::UnavailableError(
        absl::StrCat("can't connect to rank ", peer, ": ", connected.message()));
  }
  return absl::OkStatus();
}

class GlooBackend : public links::LinksBackend {
 public:
  GlooBackend() : LinksBackend("gloo") {}

 private:
  absl::Status Check(const GroupInfo& group) const override {
    if (group.tls == nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "Gloo's connections can't be encrypted: HOROVOD_CPU_OPERATIONS=tcp can");
  }

  absl::StatusOr<std::unique_ptr<MeshCommunicator>> ConnectPeers(
      const GroupInfo& group, KeyExchange& keys, const WaitBounds& bounds) override {
    const absl::Time deadline = Clock::Real().Now() + bounds.timeout;
    ScopedSigpipeBlock no_sigpipe;  // the threads that are started here inherit the mask
    ASSIGN_OR_RETURN(const std::shared_ptr<Context> context, MakeContext(group, bounds.timeout));
    ASSIGN_OR_RETURN(const std::vector<std::string> entries,
                     keys.AllGather(kMeshKey, EntryOf(group, AddressesOf(*context)),
                                    deadline - Clock::Real().Now()));
    RETURN_IF_ERROR(ConnectPairs(group, entries, *context, deadline));
    auto connections = std::make_shared<GlooLinks>(context, group.rank, group.size);
    RETURN_IF_ERROR(connections->Begin());
    std::vector<int> all(group.size);
    std::iota(all.begin(), all.end(), 0);
    return std::make_unique<links::LinksCommunicator>(
        group.epoch, links::Peers(connections, std::move(all)), links::kMostDirectRanks);
  }
};

}  // namespace

std::unique_ptr<MeshBackend> MakeGlooBackend() { return std::make_unique<GlooBackend>(); }

}  // namespace hvd::collectives::gloo
