// A test fixture with a membership machine and a small vocabulary: worker w is the process with
// worker id w (rank w - 1) and incarnation 100 * w, unless stated otherwise; host "a" has agent
// incarnation 'a'.
#ifndef RENDEZVOUS_MEMBERSHIP_TESTING_MEMBERSHIP_FIXTURE_H_
#define RENDEZVOUS_MEMBERSHIP_TESTING_MEMBERSHIP_FIXTURE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rendezvous/membership/membership.h"

namespace hvd::rendezvous::membership {

// Keeps the answers by call number. A call that is answered twice fails the test.
class MembershipFixture : public testing::Test {
 protected:
  using Effects = std::vector<Effect>;

  // A job on these hosts, with as many workers as slots.
  void NewJob(std::vector<HostSlots> hosts);
  // The same, hosts attached: the workers have been started.
  void StartJob(std::vector<HostSlots> hosts);
  // The same, and all workers are in epoch 1.
  void RunJob(std::vector<HostSlots> hosts);

  Effects Apply(const Event& event);
  // Time passes; a tick comes at its end.
  Effects Advance(absl::Duration duration);

  Effects Attach(const std::string& host, int slots);
  Effects Lose(const std::string& host, const std::string& reason = "gone");
  Effects Exit(int worker, int code);
  Effects Kill(int worker, int signal);

  // Each returns the number of its call.
  int Join(int worker, int last_epoch = 0, int incarnation = 0);
  int Watch(int worker, int epoch, int incarnation = 0);
  int Exchange(int worker, int epoch, const std::string& key, const std::string& value,
               int incarnation = 0);
  int Finish(int worker, int epoch, int incarnation = 0);
  int FailWith(int worker, int epoch, const std::string& failure, bool caused_by_peer = false);

  bool IsParked(int call) const { return answers_.count(call) == 0; }
  // REQUIRES: the call was answered with this kind.
  absl::Status StatusOf(int call) const { return Answer<ReplyStatus>(call).status; }
  World WorldOf(int call) const { return *Answer<ReplyWorld>(call).world; }
  ReplyWatch WatchOf(int call) const { return Answer<ReplyWatch>(call); }
  std::vector<std::string> ValuesOf(int call) const { return *Answer<ReplyExchange>(call).values; }

  // The effects of one kind.
  template <typename Kind>
  static std::vector<Kind> Only(const Effects& effects) {
    std::vector<Kind> found;
    for (const Effect& effect : effects) {
      if (const auto* kind = std::get_if<Kind>(&effect)) found.push_back(*kind);
    }
    return found;
  }

  // The verdict, once JobFinished has come.
  const std::optional<Verdict>& verdict() const { return verdict_; }
  Membership& machine() { return *machine_; }
  absl::Time now() const { return now_; }
  policy::JobSpec& spec() { return spec_; }

 private:
  static WorkerKey Key(int worker, int incarnation);
  void Record(const Effect& effect);
  template <typename Kind>
  Kind Answer(int call) const {
    const auto answer = answers_.find(call);
    if (answer == answers_.end()) {
      ADD_FAILURE() << "call " << call << " is parked";
      return Kind();
    }
    const Kind* kind = std::get_if<Kind>(&answer->second);
    if (kind == nullptr) ADD_FAILURE() << "call " << call << " was answered in another way";
    return kind == nullptr ? Kind() : *kind;
  }

  policy::JobSpec spec_;
  absl::Time now_ = absl::UnixEpoch();
  std::unique_ptr<Membership> machine_;
  int calls_ = 0;
  std::map<int, Effect> answers_;
  std::optional<Verdict> verdict_;
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_TESTING_MEMBERSHIP_FIXTURE_H_
