#include "rendezvous/snapshot/fields.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/snapshot.pb.h"

namespace hvd::rendezvous::snapshot {
namespace {

using ::testing::ElementsAre;

// Each of these is kept as a message that a snapshot has.
struct Drain {
  absl::Time since = absl::FromUnixNanos(1600000000123456789);
  absl::Time deadline = absl::InfiniteFuture();
  std::string reason = std::string("\xFF\0x", 3);
  bool overran = true;

  template <typename Fields>
  void Keep(Fields& fields) {
    auto& [since, deadline, reason, overran] = *this;
    fields("since_ns", since, "deadline_ns", deadline, "reason", reason, "overran", overran);
  }
};

struct Host {
  std::optional<Incarnation> agent = Incarnation(std::numeric_limits<uint64_t>::max());
  std::optional<Incarnation> away;
  std::optional<Drain> drain = Drain();
  absl::Time away_until = absl::InfinitePast();
  int live = -7;

  template <typename Fields>
  void Keep(Fields& fields) {
    auto& [agent, away, drain, away_until, live] = *this;
    fields("agent", agent, "away", away, "drain", drain, "away_until_ns", away_until, "live", live);
  }
};

template <typename Message, typename T>
Message Written(T value) {
  Message message;
  FieldWriter writer(&message);
  KeepParts(writer, value);
  return message;
}

template <typename T>
T Read(const google::protobuf::Message& message, T value) {
  FieldReader reader(message);
  KeepParts(reader, value);
  return value;
}

TEST(FieldsTest, ScalarsAndParts_ComeBackAsTheyWere) {
  const auto message = Written<pb::journal::Host>(Host());
  Host other;
  other.agent.reset();
  other.away = Incarnation(5);
  other.drain->reason = "other";
  other.drain->since = other.drain->deadline = other.away_until = absl::UnixEpoch();
  other.drain->overran = false;
  other.live = 0;
  const Host back = Read(message, other);
  EXPECT_EQ(back.agent, Host().agent);
  EXPECT_EQ(back.away, std::nullopt);
  EXPECT_EQ(back.away_until, absl::InfinitePast());
  EXPECT_EQ(back.live, -7);
  ASSERT_TRUE(back.drain.has_value());
  EXPECT_EQ(back.drain->since, Drain().since);
  EXPECT_EQ(back.drain->deadline, absl::InfiniteFuture());
  EXPECT_EQ(back.drain->reason, Drain().reason);
  EXPECT_TRUE(back.drain->overran);
}

// So a field can be added to what earlier snapshots lack.
TEST(FieldsTest, WhatAMessageLacks_StaysAsItWas) {
  const Drain back = Read(pb::journal::Drain(), Drain());
  EXPECT_EQ(back.since, Drain().since);
  EXPECT_EQ(back.reason, Drain().reason);
  EXPECT_TRUE(back.overran);
}

TEST(FieldsTest, ZeroThatWasWritten_IsRead) {
  Drain zero;
  zero.since = absl::UnixEpoch();
  zero.overran = false;
  zero.reason.clear();
  const Drain back = Read(Written<pb::journal::Drain>(zero), Drain());
  EXPECT_EQ(back.since, absl::UnixEpoch());
  EXPECT_FALSE(back.overran);
  EXPECT_EQ(back.reason, "");
}

struct Rounds {
  absl::Status closed = absl::NotFoundError("no such thing");
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("closed", closed);
  }
};

struct Health {
  int failures = 3;
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("failures", failures);
  }
};

struct Slots {
  std::map<std::pair<std::string, int>, Health> slots = {{{"h", 1}, {}}, {{"i", 0}, {}}};
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("slots", slots);
  }
};

TEST(FieldsTest, StatusMapAndPair_ComeBackAsTheyWere) {
  Rounds open;
  open.closed = absl::OkStatus();
  EXPECT_EQ(Read(Written<pb::journal::ExchangeRounds>(Rounds()), open).closed, Rounds().closed);
  EXPECT_TRUE(Read(Written<pb::journal::ExchangeRounds>(open), Rounds()).closed.ok());
  Slots other;
  other.slots = {{{"old", 9}, {1}}};
  const Slots back = Read(Written<pb::journal::SlotHealth>(Slots()), other);
  ASSERT_EQ(back.slots.size(), 2u);
  EXPECT_EQ(back.slots.at({"i", 0}).failures, 3);
}

TEST(FieldsTest, HasNumbersInRange_LooksIntoAllParts) {
  Slots slots;
  EXPECT_TRUE(HasNumbersInRange(Written<pb::journal::SlotHealth>(slots)));
  slots.slots.at({"i", 0}).failures = 1 << 30;
  EXPECT_TRUE(HasNumbersInRange(Written<pb::journal::SlotHealth>(slots)));
  slots.slots.at({"i", 0}).failures = std::numeric_limits<int>::max();
  EXPECT_FALSE(HasNumbersInRange(Written<pb::journal::SlotHealth>(slots)));
  slots.slots.at({"i", 0}).failures = std::numeric_limits<int>::min();
  EXPECT_FALSE(HasNumbersInRange(Written<pb::journal::SlotHealth>(slots)));
}

struct Lists {
  std::array<uint64_t, 3> counts = {7, 8, 9};
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("counts", counts);
  }
};

struct Sets {
  std::set<Incarnation> superseded = {Incarnation(5), Incarnation(6)};
  std::vector<std::string> stderr_tail = {"a", ""};
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("superseded", superseded, "stderr_tail", stderr_tail);
  }
};

struct Shared {
  std::shared_ptr<const std::vector<std::string>> values;
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("values", values);
  }
};

TEST(FieldsTest, Sequences_ComeBackAsTheyWere) {
  EXPECT_THAT(Read(Written<pb::journal::JobHistory>(Lists()), Lists{{0, 0, 0}}).counts,
              ElementsAre(7, 8, 9));
  const Sets back = Read(Written<pb::journal::Worker>(Sets()), Sets{{Incarnation(1)}, {"old"}});
  EXPECT_EQ(back.superseded, Sets().superseded);
  EXPECT_THAT(back.stderr_tail, ElementsAre("a", ""));
  Shared shared{std::make_shared<const std::vector<std::string>>(1, "v")};
  EXPECT_THAT(*Read(Written<pb::journal::Round>(shared), Shared()).values, ElementsAre("v"));
  EXPECT_EQ(Read(Written<pb::journal::Round>(Shared()), Shared()).values, nullptr);
}

TEST(FieldsDeathTest, UnknownField_IsABug) {
  EXPECT_DEATH(Written<pb::journal::Leaving>(Health()), "has no field failures");
}

}  // namespace
}  // namespace hvd::rendezvous::snapshot
