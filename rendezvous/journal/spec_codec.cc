#include "rendezvous/journal/spec_codec.h"

#include "base/settings/on_corruption.h"
#include "rendezvous/journal/event_codec.h"

namespace hvd::rendezvous::journal {
namespace {

void Put(const policy::ElasticSpec& from, pb::journal::ElasticSpec& to) {
  const auto& [spares, elastic_timeout, rejoin_timeout, join_delay, drain_grace, budget,
               failures_without_progress, reset_limit, on_corruption, cooldown] = from;
  to.set_spares(spares);
  to.set_elastic_timeout_ns(ToNanoseconds(elastic_timeout));
  to.set_rejoin_timeout_ns(ToNanoseconds(rejoin_timeout));
  to.set_join_delay_ns(ToNanoseconds(join_delay));
  to.set_drain_grace_ns(ToNanoseconds(drain_grace));
  to.set_budget_failures(budget.failures);
  to.set_budget_window_ns(ToNanoseconds(budget.window));
  to.set_failures_without_progress(failures_without_progress);
  if (reset_limit.has_value()) to.set_reset_limit(*reset_limit);
  // Not the default, so that a job's journal of before the option has no other one.
  if (on_corruption != policy::ElasticSpec().on_corruption)
    to.set_on_corruption(static_cast<int32_t>(on_corruption));
  if (cooldown.has_value()) {
    to.mutable_cooldown()->set_shortest_ns(ToNanoseconds(cooldown->shortest));
    to.mutable_cooldown()->set_longest_ns(ToNanoseconds(cooldown->longest));
  }
}

policy::ElasticSpec Get(const pb::journal::ElasticSpec& from) {
  policy::ElasticSpec spec;
  spec.spares = from.spares();
  spec.elastic_timeout = DurationFromNanoseconds(from.elastic_timeout_ns());
  spec.rejoin_timeout = DurationFromNanoseconds(from.rejoin_timeout_ns());
  spec.join_delay = DurationFromNanoseconds(from.join_delay_ns());
  spec.drain_grace = DurationFromNanoseconds(from.drain_grace_ns());
  spec.budget = {from.budget_failures(), DurationFromNanoseconds(from.budget_window_ns())};
  spec.failures_without_progress = from.failures_without_progress();
  // A limit of 0 differs from no limit, so the field has presence.
  if (from.has_reset_limit()) spec.reset_limit = from.reset_limit();
  if (from.has_on_corruption()) spec.on_corruption = settings::OnCorruptionOf(from.on_corruption());
  if (from.has_cooldown()) {
    spec.cooldown = policy::Cooldown{DurationFromNanoseconds(from.cooldown().shortest_ns()),
                                     DurationFromNanoseconds(from.cooldown().longest_ns())};
  }
  return spec;
}

}  // namespace

// Uses structured bindings, so that a new field does not compile until it is added here.
pb::journal::JobSpec ToSpecMessage(const policy::JobSpec& spec) {
  const auto& [min_workers, max_workers, start_workers, elastic, expected_hosts, keep_host_order,
               start_timeout, reattach_timeout, settle_time, failure_grace, encrypt_data] = spec;
  pb::journal::JobSpec message;
  message.set_min_workers(min_workers);
  message.set_max_workers(max_workers);
  message.set_start_workers(start_workers);
  if (elastic.has_value()) Put(*elastic, *message.mutable_elastic());
  for (const membership::HostSlots& host : expected_hosts) {
    pb::HostSlots& added = *message.add_expected_hosts();
    added.set_host(host.host);
    added.set_slots(host.slots);
    added.set_machine(host.machine);
  }
  message.set_keep_host_order(keep_host_order);
  message.set_start_timeout_ns(ToNanoseconds(start_timeout));
  message.set_reattach_timeout_ns(ToNanoseconds(reattach_timeout));
  message.set_settle_time_ns(ToNanoseconds(settle_time));
  message.set_failure_grace_ns(ToNanoseconds(failure_grace));
  message.set_encrypt_data(encrypt_data);
  return message;
}

policy::JobSpec FromSpecMessage(const pb::journal::JobSpec& message) {
  policy::JobSpec spec;
  spec.min_workers = message.min_workers();
  spec.max_workers = message.max_workers();
  spec.start_workers = message.start_workers();
  if (message.has_elastic()) spec.elastic = Get(message.elastic());
  for (const pb::HostSlots& host : message.expected_hosts()) {
    spec.expected_hosts.push_back({host.host(), host.slots(), host.machine()});
  }
  spec.keep_host_order = message.keep_host_order();
  spec.start_timeout = DurationFromNanoseconds(message.start_timeout_ns());
  spec.reattach_timeout = DurationFromNanoseconds(message.reattach_timeout_ns());
  spec.settle_time = DurationFromNanoseconds(message.settle_time_ns());
  spec.failure_grace = DurationFromNanoseconds(message.failure_grace_ns());
  spec.encrypt_data = message.encrypt_data();
  return spec;
}

}  // namespace hvd::rendezvous::journal
