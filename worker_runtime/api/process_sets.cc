#include "worker_runtime/api/process_sets.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/crypto.h"
#include "base/status_macros.h"
#include "worker_runtime/api/registration_rounds.h"
#include "worker_runtime/negotiation/stall.h"
#include "worker_runtime/negotiation/tensor_signature.h"

namespace hvd::worker_runtime::api {
namespace {

std::string ListText(const std::vector<int>& ranks) {
  return absl::StrCat("[", absl::StrJoin(ranks, ", "), "]");
}

// "rank 0 wants to ..., ranks 1 and 2 want to ..."
std::string WhoWantsWhat(const std::vector<std::string>& wishes) {
  std::vector<std::pair<std::string, std::vector<int>>> variants;
  for (size_t rank = 0; rank < wishes.size(); ++rank) {
    auto same = [&](const auto& variant) { return variant.first == wishes[rank]; };
    auto found = std::find_if(variants.begin(), variants.end(), same);
    if (found == variants.end()) found = variants.insert(found, {wishes[rank], {}});
    found->second.push_back(static_cast<int>(rank));
  }
  constexpr size_t kMostVariants = 8;
  variants.resize(std::min(variants.size(), kMostVariants));
  return absl::StrJoin(variants, ", ", [](std::string* out, const auto& variant) {
    absl::StrAppend(out, negotiation::RanksText(variant.second),
                    variant.second.size() == 1 ? " wants to " : " want to ", variant.first);
  });
}

// The operation's name as it is shown: "Allreduce".
std::string Capitalized(negotiation::OpKind op) {
  std::string name(negotiation::NameOf(op));
  name[0] = absl::ascii_toupper(static_cast<unsigned char>(name[0]));
  return name;
}

// Wraps `on_stall` for a set's engine: translates the ranks in a report from ranks of the set to
// ranks of the world, and adds the set to the operations' names.
std::function<void(const negotiation::StallReport&)> InTheWorld(
    int32_t id, std::vector<int> ranks,
    std::function<void(const negotiation::StallReport&)> on_stall) {
  return [=](negotiation::StallReport report) {
    for (negotiation::StalledGroup& group : report.waiting) {
      absl::StrAppend(&group.what, " of process set ", id);
      for (int& rank : group.missing) rank = ranks[rank];
    }
    on_stall(report);
  };
}

int IndexOf(const std::vector<int>& ranks, int rank) {
  const auto found = std::lower_bound(ranks.begin(), ranks.end(), rank);
  return found != ranks.end() && *found == rank ? static_cast<int>(found - ranks.begin()) : -1;
}

}  // namespace

ProcessSets::ProcessSets(Dependencies dependencies,
                         std::shared_ptr<collectives::peer::PeerPort> port)
    : deps_(std::move(dependencies)), port_(std::move(port)) {}

absl::Status ProcessSets::Agree(const std::string& wish) {
  ASSIGN_OR_RETURN(const std::vector<std::string> wishes,
                   GatherTexts(*deps_.group.engine(), deps_.world.size(), wish));
  const bool agreed = std::all_of(wishes.begin(), wishes.end(),
                                  [&](const std::string& other) { return other == wish; });
  if (agreed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("Mismatched process sets: ", WhoWantsWhat(wishes)));
}

absl::Status ProcessSets::CheckRanks(const std::vector<int>& ranks) const {
  const int size = deps_.world.size();
  if (ranks.empty()) return absl::InvalidArgumentError("A process set needs at least one rank.");
  for (int rank : ranks) {
    if (rank >= 0 && rank < size) continue;
    return absl::InvalidArgumentError(absl::StrCat("Process set ", ListText(ranks),
                                                   ": there is no rank ", rank, " in a world of ",
                                                   size, "."));
  }
  const auto twice = std::adjacent_find(ranks.begin(), ranks.end());
  if (twice == ranks.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("Process set ", ListText(ranks), ": rank ", *twice, " is named twice."));
}

int32_t ProcessSets::Find(const std::vector<int>& ranks) const {
  if (ranks.size() == static_cast<size_t>(deps_.world.size())) return 0;
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, set] : sets_) {
    if (set.ranks == ranks) return id;
  }
  return -1;
}

absl::Status ProcessSets::Add(std::vector<int> ranks, int32_t* id) {
  absl::MutexLock registration(&registration_mutex_);
  std::sort(ranks.begin(), ranks.end());
  RETURN_IF_ERROR(Agree(absl::StrCat("add ", ListText(ranks))));
  // All ranks have the same arguments now, so they take the same branches below without further
  // messages.
  RETURN_IF_ERROR(CheckRanks(ranks));
  *id = Find(ranks);
  if (*id >= 0) return absl::AlreadyExistsError("Attempted to add a duplicate process set");
  // Used up even if connecting fails: all ranks count the same calls, so that the ids stay equal.
  *id = next_id_++;
  Set set{ranks, nullptr};
  RegistrationRounds rounds(*deps_.group.engine(), deps_.world.size(), ranks);
  absl::Status connected;
  if (const int own_rank = IndexOf(ranks, deps_.world.rank()); own_rank >= 0) {
    auto group = Connect(*id, ranks, own_rank, rounds);
    connected = group.status();
    if (group.ok()) set.group = *std::move(group);
  }
  RETURN_IF_ERROR(rounds.Finish(connected));
  // The engine starts only after all members have connected: a member that gives up before closes
  // its connections, which a running engine would report as a lost rank.
  if (set.group != nullptr) set.group->Start(OptionsOf(*id, ranks), deps_.devices);
  absl::MutexLock lock(&mutex_);
  // Abort may have come before the set was in sets_.
  if (set.group != nullptr && !over_.ok()) set.group->engine()->Abort(over_);
  sets_.emplace(*id, std::move(set));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<collectives::peer::PeerPort>> ProcessSets::PortOfSets() {
  if (port_ != nullptr) return port_;
  return collectives::peer::PeerPort::Open(deps_.world.self().address);
}

absl::StatusOr<std::unique_ptr<group::ConnectedGroup>> ProcessSets::Connect(
    int32_t id, const std::vector<int>& ranks, int own_rank, collectives::KeyExchange& keys) {
  // The set's secret is derived from the world's, so a connection of one set can't be passed off
  // as one of another.
  const session::WorkerWorld& world = deps_.world;
  collectives::GroupInfo group{world.epoch,
                               own_rank,
                               static_cast<int>(ranks.size()),
                               world.self().address,
                               HmacSha256(world.secret, absl::StrCat("process set ", id)),
                               deps_.tls,
                               id};
  // A rank that can't listen takes part in the round all the same, with an empty port: the other
  // members would wait for it otherwise.
  absl::StatusOr<std::shared_ptr<collectives::peer::PeerPort>> port = PortOfSets();
  const std::string number = port.ok() ? absl::StrCat((*port)->number()) : "";
  ASSIGN_OR_RETURN(const std::vector<std::string> ports,
                   keys.AllGather("port", number, deps_.bounds.timeout));
  RETURN_IF_ERROR(port.status());
  group.port = *std::move(port);
  ASSIGN_OR_RETURN(const std::vector<session::Peer> peers, world.members->Get());
  group::ControlRoot root{peers[ranks.front()].address, 0};
  if (!absl::SimpleAtoi(ports.front(), &root.port)) {
    return absl::UnavailableError(absl::StrCat("rank ", ranks.front(), " can't listen"));
  }
  return group::ConnectedGroup::Connect(group, deps_.backend, keys, root, deps_.bounds);
}

engine::EngineOptions ProcessSets::OptionsOf(int32_t id, const std::vector<int>& ranks) const {
  engine::EngineOptions options = deps_.options;
  options.ranks_note = absl::StrCat(" (ranks of process set ", id, ", which has the world's ",
                                    negotiation::RanksText(ranks), ")");
  options.on_end = [on_broken = deps_.on_broken, ranks](const absl::Status& why, bool left,
                                                        std::optional<int> unreached) {
    // A set ends cleanly when it is removed, which is no failure, or when a rank leaves the world,
    // which the world's engine handles.
    if (unreached.has_value()) unreached = ranks[*unreached];
    if (!left) on_broken(why, unreached);
  };
  // The world's own engine reports that; a set has no commits.
  options.on_world_changing = nullptr;
  if (options.on_stall) options.on_stall = InTheWorld(id, ranks, options.on_stall);
  options.process_set = id;
  return options;
}

absl::Status ProcessSets::Remove(int32_t id) {
  absl::MutexLock registration(&registration_mutex_);
  RETURN_IF_ERROR(Agree(absl::StrCat("remove process set ", id)));
  // Destroyed at the end, without mutex_: the shutdown of its engine waits for the peers.
  Set removed;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = sets_.find(id);
    if (found == sets_.end()) {
      return absl::NotFoundError(absl::StrCat("There is no process set ", id, " to remove."));
    }
    removed = std::move(found->second);
    sets_.erase(found);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<engine::Engine>> ProcessSets::Prepare(
    int32_t id, std::vector<negotiation::SignaturePtr>& requests) const {
  if (requests.empty()) return absl::InvalidArgumentError("there is nothing to submit");
  const std::string op = Capitalized(requests.front()->op);
  absl::MutexLock lock(&mutex_);
  const auto found = sets_.find(id);
  if (found == sets_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(op, ": there is no process set ", id, " now; register it before it is used"));
  }
  const Set& set = found->second;
  if (set.group == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(op, ": rank ", deps_.world.rank(), " is not in process set ", id,
                     ", whose ranks are ", absl::StrJoin(set.ranks, ", ")));
  }
  for (negotiation::SignaturePtr& request : requests) {
    if (Has(request->op, negotiation::OpTrait::kWorldOnly)) {
      return absl::InvalidArgumentError(absl::StrCat(op, " is for the global process set only."));
    }
    if (!Has(request->op, negotiation::OpTrait::kHasRoot)) continue;
    const int root = IndexOf(set.ranks, request->root_rank);
    if (root < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          NameOf(request->op), ": root rank ", request->root_rank,
          " is not in the process set, whose ranks are ", absl::StrJoin(set.ranks, ", ")));
    }
    negotiation::TensorSignature translated = *request;
    translated.root_rank = root;
    request = std::make_shared<const negotiation::TensorSignature>(std::move(translated));
  }
  return set.group->engine();
}

void ProcessSets::Abort(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  over_.Update(why);
  for (const auto& [id, set] : sets_) {
    if (set.group != nullptr) set.group->engine()->Abort(why);
  }
}

void ProcessSets::Close() {
  absl::MutexLock registration(&registration_mutex_);
  port_.reset();
  // Destroyed without mutex_; see Remove.
  std::map<int32_t, Set> sets;
  {
    absl::MutexLock lock(&mutex_);
    sets.swap(sets_);
  }
}

}  // namespace hvd::worker_runtime::api
