#include "rendezvous/daemon/changed_options.h"

#include <optional>
#include <tuple>
#include <utility>

namespace hvd::rendezvous::daemon {
namespace {

// Collects the names of options whose values differ.
class Comparison {
 public:
  template <typename Value>
  void Compare(const char* option, const Value& then, const Value& now) {
    if (!(then == now)) changed_.emplace_back(option);
  }

  std::vector<std::string> Take() { return std::move(changed_); }

 private:
  std::vector<std::string> changed_;
};

int NumProc(const policy::JobSpec& spec) {
  return spec.elastic.has_value() ? spec.start_workers : spec.max_workers;
}

std::vector<std::tuple<std::string, int, std::string>> HostsOf(const policy::JobSpec& spec) {
  std::vector<std::tuple<std::string, int, std::string>> hosts;
  for (const auto& [host, slots, machine] : spec.expected_hosts) {
    hosts.emplace_back(host, slots, machine);
  }
  return hosts;
}

std::optional<std::pair<absl::Duration, absl::Duration>> CooldownOf(
    const policy::ElasticSpec& spec) {
  if (!spec.cooldown.has_value()) return std::nullopt;
  return std::make_pair(spec.cooldown->shortest, spec.cooldown->longest);
}

// Uses structured bindings, so that a new field does not compile until it is added here.
void CompareElastic(const policy::ElasticSpec& then, const policy::ElasticSpec& now,
                    Comparison* comparison) {
  const auto& [spares, elastic_timeout, rejoin_timeout, join_delay, drain_grace, budget,
               failures_without_progress, reset_limit, on_corruption, cooldown] = then;
  comparison->Compare("--spares", spares, now.spares);
  comparison->Compare("--elastic-timeout", elastic_timeout, now.elastic_timeout);
  comparison->Compare("the rejoin timeout", rejoin_timeout, now.rejoin_timeout);
  comparison->Compare("--join-delay", join_delay, now.join_delay);
  comparison->Compare("--grace", drain_grace, now.drain_grace);
  comparison->Compare("--max-failures", std::make_pair(budget.failures, budget.window),
                      std::make_pair(now.budget.failures, now.budget.window));
  comparison->Compare("--max-failures-in-a-row", failures_without_progress,
                      now.failures_without_progress);
  comparison->Compare("--reset-limit", reset_limit, now.reset_limit);
  comparison->Compare("--on-corruption or HOROVOD_ON_CORRUPTION", on_corruption, now.on_corruption);
  comparison->Compare("--blacklist-cooldown-range", CooldownOf(then), CooldownOf(now));
}

}  // namespace

std::vector<std::string> ChangedOptions(const policy::JobSpec& then, const policy::JobSpec& now) {
  const auto& [min_workers, max_workers, start_workers, elastic, expected_hosts, keep_host_order,
               start_timeout, reattach_timeout, settle_time, failure_grace, encrypt_data] = then;
  Comparison comparison;
  comparison.Compare("--np", NumProc(then), NumProc(now));
  if (elastic.has_value() && now.elastic.has_value()) {
    comparison.Compare("--min-np", min_workers, now.min_workers);
    comparison.Compare("--max-np", max_workers, now.max_workers);
    CompareElastic(*elastic, *now.elastic, &comparison);
  } else {
    comparison.Compare("--min-np or --max-np (only one of the two jobs is elastic)",
                       elastic.has_value(), now.elastic.has_value());
  }
  comparison.Compare("--hosts", HostsOf(then), HostsOf(now));
  comparison.Compare("--keep-host-order", keep_host_order, now.keep_host_order);
  comparison.Compare("--start-timeout", start_timeout, now.start_timeout);
  comparison.Compare("--reattach-timeout", reattach_timeout, now.reattach_timeout);
  comparison.Compare("the settle time", settle_time, now.settle_time);
  comparison.Compare("the grace after a failure", failure_grace, now.failure_grace);
  comparison.Compare("--encrypt-data or HOROVOD_ENCRYPT_DATA", encrypt_data, now.encrypt_data);
  return comparison.Take();
}

}  // namespace hvd::rendezvous::daemon
