#include "rendezvous/membership/testing/membership_fixture.h"

#include <algorithm>
#include <utility>

namespace hvd::rendezvous::membership {

void MembershipFixture::NewJob(std::vector<HostSlots> hosts) {
  int slots = 0;
  for (const HostSlots& host : hosts) slots += host.slots;
  spec_.min_workers = spec_.max_workers = slots;
  spec_.expected_hosts = std::move(hosts);
  machine_ = std::make_unique<Membership>(spec_, now_);
}

void MembershipFixture::StartJob(std::vector<HostSlots> hosts) {
  NewJob(hosts);
  for (const HostSlots& host : hosts) Attach(host.host, host.slots);
}

void MembershipFixture::RunJob(std::vector<HostSlots> hosts) {
  StartJob(std::move(hosts));
  for (int worker = 1; worker <= spec_.max_workers; ++worker) Join(worker);
  ASSERT_EQ(machine_->Describe().epoch, Epoch(1));
}

MembershipFixture::Effects MembershipFixture::Apply(const Event& event) {
  Effects effects = machine_->Apply(event, now_);
  for (const Effect& effect : effects) Record(effect);
  EXPECT_EQ(machine_->Check(), "");
  return effects;
}

void MembershipFixture::Record(const Effect& effect) {
  if (const auto* end = std::get_if<JobFinished>(&effect)) {
    EXPECT_FALSE(verdict_.has_value()) << "the job finished twice";
    verdict_ = end->verdict;
  }
  std::optional<CallId> call;
  if (const auto* reply = std::get_if<ReplyWorld>(&effect)) call = reply->call;
  if (const auto* reply = std::get_if<ReplyWatch>(&effect)) call = reply->call;
  if (const auto* reply = std::get_if<ReplyExchange>(&effect)) call = reply->call;
  if (const auto* reply = std::get_if<ReplyStatus>(&effect)) call = reply->call;
  if (!call.has_value()) return;
  const bool is_first = answers_.emplace(static_cast<int>(call->value()), effect).second;
  EXPECT_TRUE(is_first) << "call " << *call << " was answered twice";
}

MembershipFixture::Effects MembershipFixture::Advance(absl::Duration duration) {
  now_ += duration;
  return Apply(Tick{});
}

MembershipFixture::Effects MembershipFixture::Attach(const std::string& host, int slots) {
  return Apply(HostJoined{{host, slots}, Incarnation(static_cast<uint64_t>(host[0]))});
}

MembershipFixture::Effects MembershipFixture::Lose(const std::string& host,
                                                   const std::string& reason) {
  return Apply(HostLost{host, Incarnation(static_cast<uint64_t>(host[0])), reason});
}

MembershipFixture::Effects MembershipFixture::Exit(int worker, int code) {
  WorkerExited exited;
  exited.worker = WorkerId(worker);
  exited.exit_code = code;
  return Apply(exited);
}

MembershipFixture::Effects MembershipFixture::Kill(int worker, int signal) {
  WorkerExited exited;
  exited.worker = WorkerId(worker);
  exited.signal = signal;
  return Apply(exited);
}

WorkerKey MembershipFixture::Key(int worker, int incarnation) {
  return {WorkerId(worker), Incarnation(incarnation == 0 ? 100 * worker : incarnation)};
}

int MembershipFixture::Join(int worker, int last_epoch, int incarnation) {
  Apply(JoinRequested{CallId(++calls_), Key(worker, incarnation), Epoch(last_epoch), "10.0.0.1",
                      4000 + worker});
  return calls_;
}

int MembershipFixture::Watch(int worker, int epoch, int incarnation) {
  Apply(WatchRequested{CallId(++calls_), Key(worker, incarnation), Epoch(epoch)});
  return calls_;
}

int MembershipFixture::Exchange(int worker, int epoch, const std::string& key,
                                const std::string& value, int incarnation) {
  Apply(ExchangeRequested{CallId(++calls_), Key(worker, incarnation), Epoch(epoch), key, value});
  return calls_;
}

int MembershipFixture::Finish(int worker, int epoch, int incarnation) {
  Apply(Reported{CallId(++calls_), Key(worker, incarnation), Epoch(epoch), true, "", false});
  return calls_;
}

int MembershipFixture::FailWith(int worker, int epoch, const std::string& failure,
                                bool caused_by_peer) {
  Apply(Reported{CallId(++calls_), Key(worker, 0), Epoch(epoch), false, failure, caused_by_peer});
  return calls_;
}

}  // namespace hvd::rendezvous::membership
