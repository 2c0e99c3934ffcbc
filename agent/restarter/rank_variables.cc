#include "agent/restarter/rank_variables.h"

#include "absl/strings/str_cat.h"
#include "rendezvous/placement/placement_variables.h"
#include "rendezvous/placement/torch_variables.h"

namespace hvd::agent::restarter {
namespace {

// By these hvd.init() finds the agent, and takes a process for a worker. The command is none: its
// hvd.init() finds the other ranks by torchrun's variables, as in a job of torchrun.
constexpr const char* kOfWorkers[] = {"HOROVOD_AGENT_SOCKET", "HOROVOD_WORKER_ID",
                                      "HOROVOD_WORKER_WORD", "HOROVOD_ELASTIC"};

// If the launcher has not said it: an agent of --join does not know the limits of its job.
constexpr char kMostRestarts[] = "20";

rendezvous::placement::TorchGroup GroupOf(const RankInWorld& world) {
  rendezvous::placement::TorchGroup group;
  const int size = static_cast<int>(world.places.size());
  for (int first = 0; first < size; first += world.places[first].local_size) {
    if (first <= world.rank) group.group_rank = group.groups;
    ++group.groups;
  }
  return group;
}

}  // namespace

Environment RankVariables(const Environment& own, const RankInWorld& world) {
  Environment variables = own;
  for (const char* const name : kOfWorkers) variables.erase(name);
  const rendezvous::placement::Placement& place = world.places[world.rank];
  for (const auto& [name, value] : rendezvous::placement::PlacementVariables(place)) {
    variables[name] = value;
  }
  for (const auto& [name, value] : rendezvous::placement::TorchVariables(place, GroupOf(world))) {
    variables[name] = value;
  }
  variables["MASTER_ADDR"] = world.store_address;
  variables["MASTER_PORT"] = absl::StrCat(world.store_port);
  // Not "horovod-", which would say that a worker has started the process.
  variables["TORCHELASTIC_RUN_ID"] = absl::StrCat("restarted-", world.job);
  variables["TORCHELASTIC_RESTART_COUNT"] = absl::StrCat(world.epoch - 1);
  variables.emplace("TORCHELASTIC_MAX_RESTARTS", kMostRestarts);
  return variables;
}

}  // namespace hvd::agent::restarter
