#include "rendezvous/journal/event_codec.h"

#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "rendezvous/journal/spec_codec.h"

namespace hvd::rendezvous::journal {
namespace {

const membership::WorkerKey kWorker{WorkerId(3), Incarnation(0xFFFFFFFFFFFFFFFF)};
const std::string kBytes("\xFF\0 not text", 11);
constexpr absl::Duration kTime = absl::Milliseconds(1234);

// One event of each kind, with no field at its default.
std::vector<membership::Event> AllEvents() {
  return {membership::HostJoined{{"h1", 4, "m"},
                                 Incarnation(9),
                                 {WorkerId(1), WorkerId(2)},
                                 "10.0.0.1:80",
                                 "10.0.0.1:81",
                                 CommitId(3, 12)},
          membership::HostLost{"h1", Incarnation(9), kBytes},
          membership::HostsDiscovered{{{"h1", 4}, {"h2", 2}}, true},
          membership::HostDraining{"h1", absl::InfiniteDuration(), "spot", true},
          membership::Restarted{},
          membership::WorkerStarted{WorkerId(3), 77},
          membership::WorkerDying{WorkerId(3)},
          membership::WorkerExited{
              WorkerId(3), 5, 9, true, true, {"line", kBytes}, "no such file", "why", "unknown"},
          membership::JoinRequested{membership::CallId(8), kWorker, Epoch(2), "10.0.0.1", 4711,
                                    true, 12, true, kBytes, 7, kTime, true, 1, true},
          membership::WatchRequested{membership::CallId(8), kWorker, Epoch(2), true},
          membership::ExchangeRequested{membership::CallId(8), kWorker, Epoch(2), "key", kBytes},
          membership::Reported{membership::CallId(8), kWorker, Epoch(2), true, kBytes, true,
                               CommitId(3, 12), true},
          membership::ProgressReported{membership::CallId(8), kWorker, Epoch(2), 12,
                                       absl::Milliseconds(1234), CommitId(1, 7),
                                       membership::Checkpoints{CommitId(1, 7), absl::Seconds(3),
                                                               "/c/checkpoint-7-w1.hvd", "full"}},
          membership::StallReported{membership::CallId(8),
                                    kWorker,
                                    Epoch(2),
                                    absl::Seconds(60),
                                    true,
                                    {{"allreduce 'a'", {1, 2}}, {kBytes, {3}}}},
          membership::WorkerSampled{WorkerId(3), "is at a.py:1 in f", {"a.py:1 in f", kBytes}},
          membership::CallCancelled{membership::CallId(8)},
          membership::StopRequested{"Ctrl-C", 130, absl::Milliseconds(1500), true, true},
          membership::Tick{},
          membership::LimitsChanged{2, 3},
          membership::CommitKept{"h1", 12, "no answer"},
          membership::CommitLeft{"h1", CommitId(3, 12)}};
}

// The same, without the kinds and fields that were added after the first version of format 4.
std::vector<membership::Event> FirstEvents() {
  std::vector<membership::Event> events = AllEvents();
  std::get<membership::HostJoined>(events[0]).host.machine.clear();
  events.pop_back();
  events.pop_back();
  std::get<membership::HostJoined>(events[0]).store_address.clear();
  std::get<membership::HostJoined>(events[0]).commit_address.clear();
  std::get<membership::HostJoined>(events[0]).commit = 0;
  std::get<membership::HostDraining>(events[3]).at_once = false;
  std::get<membership::Reported>(events[11]).commit = 0;
  std::get<membership::Reported>(events[11]).ends_job = false;
  std::get<membership::ProgressReported>(events[12]).began_with.reset();
  std::get<membership::ProgressReported>(events[12]).checkpoints.reset();
  std::get<membership::HostsDiscovered>(events[2]).is_offer = false;
  std::get<membership::WorkerExited>(events[7]).unknown_end.clear();
  std::get<membership::JoinRequested>(events[8]).caused_by_peer = false;
  std::get<membership::JoinRequested>(events[8]).unreached.reset();
  std::get<membership::JoinRequested>(events[8]).starts_anew = false;
  std::get<membership::StopRequested>(events[16]).keeps_world = false;
  std::get<membership::StopRequested>(events[16]).at_commit = false;
  return events;
}

// testdata/events_format_4.txt: a line of hexadecimal digits for each of FirstEvents. A line that
// has to change makes journals unreadable.
TEST(EventCodecTest, EveryKind_IsReadAsItWasWrittenWithFormat4) {
  const std::vector<membership::Event> events = FirstEvents();
  std::ifstream file("rendezvous/journal/testdata/events_format_4.txt");
  std::string line;
  for (const membership::Event& event : events) {
    ASSERT_TRUE(std::getline(file, line)) << event.index();
    pb::journal::Event message;
    ASSERT_TRUE(message.ParseFromString(absl::HexStringToBytes(line)));
    const std::optional<membership::Event> back = FromMessage(message);
    ASSERT_TRUE(back.has_value()) << event.index();
    const absl::Time time = TimeFromNanoseconds(message.time_ns());
    EXPECT_EQ(absl::BytesToHexString(ToMessage(event, time).SerializeAsString()), line)
        << event.index();
    EXPECT_EQ(absl::BytesToHexString(ToMessage(*back, time).SerializeAsString()), line)
        << event.index();
  }
  EXPECT_FALSE(std::getline(file, line)) << line;
}

TEST(EventCodecTest, EveryKind_SurvivesWithAllItsFields) {
  const std::vector<membership::Event> events = AllEvents();
  ASSERT_EQ(events.size(), std::variant_size_v<membership::Event>);
  const absl::Time time = absl::FromUnixNanos(1600000000123456789);
  for (size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(events[i].index(), i);
    pb::journal::Event message;
    ASSERT_TRUE(message.ParseFromString(ToMessage(events[i], time).SerializeAsString()));
    EXPECT_EQ(TimeFromNanoseconds(message.time_ns()), time);
    const std::optional<membership::Event> back = FromMessage(message);
    ASSERT_TRUE(back.has_value()) << i;
    EXPECT_EQ(back->index(), i);
    // Nothing got lost on the way back, or this would not be the same.
    EXPECT_EQ(ToMessage(*back, time).SerializeAsString(), message.SerializeAsString()) << i;
  }
}

// Whether every field of a message, including nested ones, is set, so that every field of the event
// was written.
void ExpectEveryFieldSet(const google::protobuf::Message& message) {
  const auto* const descriptor = message.GetDescriptor();
  const auto* const reflection = message.GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const auto* const field = descriptor->field(i);
    if (field->is_repeated()) {
      EXPECT_GT(reflection->FieldSize(message, field), 0) << field->full_name();
    } else {
      EXPECT_TRUE(reflection->HasField(message, field)) << field->full_name();
      if (field->message_type() != nullptr) {
        ExpectEveryFieldSet(reflection->GetMessage(message, field));
      }
    }
  }
}

TEST(EventCodecTest, EveryField_IsWritten) {
  for (const membership::Event& event : AllEvents()) {
    const pb::journal::Event message = ToMessage(event, absl::UnixEpoch());
    const auto* const reflection = message.GetReflection();
    const auto* const kind = reflection->GetOneofFieldDescriptor(
        message, message.GetDescriptor()->FindOneofByName("kind"));
    if (kind->message_type() != nullptr) {
      ExpectEveryFieldSet(reflection->GetMessage(message, kind));
    }
  }
}

TEST(EventCodecTest, NoKind_IsRejected) {
  EXPECT_FALSE(FromMessage(pb::journal::Event()).has_value());
}

policy::JobSpec UnusualSpec() {
  policy::JobSpec spec;
  spec.min_workers = 2;
  spec.max_workers = 5;
  spec.start_workers = 3;
  spec.expected_hosts = {{"h1", 4, "m"}, {"h2", 1}};
  spec.start_timeout = absl::Seconds(1);
  spec.reattach_timeout = absl::InfiniteDuration();
  spec.settle_time = absl::Seconds(2);
  spec.failure_grace = absl::Seconds(3);
  spec.encrypt_data = true;
  spec.keep_host_order = true;
  policy::ElasticSpec& elastic = spec.elastic.emplace();
  elastic.spares = 1;
  elastic.on_corruption = settings::OnCorruption::kEnd;
  elastic.elastic_timeout = absl::Seconds(4);
  elastic.rejoin_timeout = absl::Seconds(5);
  elastic.join_delay = absl::Seconds(6);
  elastic.drain_grace = absl::Seconds(7);
  elastic.budget = {8, absl::Seconds(9)};
  elastic.failures_without_progress = 10;
  elastic.reset_limit = 11;
  elastic.cooldown = policy::Cooldown{absl::Seconds(12), absl::Seconds(13)};
  return spec;
}

TEST(EventCodecTest, Spec_SurvivesWithAllItsFields) {
  const pb::journal::JobSpec message = ToSpecMessage(UnusualSpec());
  ExpectEveryFieldSet(message);
  const policy::JobSpec back = FromSpecMessage(message);
  EXPECT_EQ(ToSpecMessage(back).SerializeAsString(), message.SerializeAsString());
  EXPECT_EQ(back.reattach_timeout, absl::InfiniteDuration());
  EXPECT_EQ(back.expected_hosts[0].machine, "m");
  EXPECT_EQ(back.expected_hosts[1].machine, "");
}

TEST(EventCodecTest, Spec_AbsentFields_StayAbsent) {
  EXPECT_FALSE(FromSpecMessage(ToSpecMessage(policy::JobSpec())).elastic.has_value());
  policy::JobSpec spec;
  spec.elastic.emplace();
  const policy::JobSpec back = FromSpecMessage(ToSpecMessage(spec));
  ASSERT_TRUE(back.elastic.has_value());
  EXPECT_FALSE(back.elastic->reset_limit.has_value());
  EXPECT_FALSE(back.elastic->cooldown.has_value());
}

}  // namespace
}  // namespace hvd::rendezvous::journal
