#include "rendezvous/etcd/fenced_writer.h"

#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rendezvous/etcd/fake_etcd_test_util.h"
#include "rendezvous/etcd/reading.h"

namespace hvd::rendezvous::etcd {
namespace {

using Fault = FakeEtcd::Fault;

class FencedWriterTest : public testing::Test {
 protected:
  // As if another daemon had campaigned with success.
  Leadership& Elect() {
    etcdserverpb::TxnRequest request;
    auto& put = *request.add_success()->mutable_request_put();
    put.set_key(keys_.Leader());
    put.set_lease(++leases_);
    etcd_.Expire(leases_ - 1);
    const int64_t revision = etcd_.Txn(request)->header().revision();
    leaders_.push_back(std::make_unique<Leadership>(revision, leases_, clock_));
    return *leaders_.back();
  }

  std::unique_ptr<FencedWriter> WriterOf(Leadership& leadership) {
    const auto tail = ReadKey(client_, leadership, keys_.Tail());
    return std::make_unique<FencedWriter>(
        client_, keys_, leadership, tail->value_or(""),
        [this](const std::string& line) { said_.push_back(line); });
  }

  JumpingClock clock_;
  FakeEtcd etcd_;
  FakeEtcdClient client_{etcd_};
  const JobKeys keys_{"job"};
  int64_t leases_ = 100;
  std::vector<std::unique_ptr<Leadership>> leaders_;
  std::vector<std::string> said_;
};

TEST_F(FencedWriterTest, Keys_OrderIsThatOfNumbers) {
  EXPECT_LT(keys_.Events(9), keys_.Events(10));
  EXPECT_LT(keys_.Events(~uint64_t{0}), keys_.EventsFrom(1).end);
  EXPECT_LT(keys_.Chunk(3, 99), keys_.ChunksOf(3).end);
  EXPECT_LE(keys_.SnapshotsBefore(3).end, keys_.Chunk(3, 0));
  EXPECT_GT(keys_.SnapshotsAfter(3).begin, keys_.Chunk(3, 99));
  EXPECT_LE(keys_.SnapshotsAfter(3).begin, keys_.Chunk(4, 0));
}

TEST_F(FencedWriterTest, ReadIsDenied_EndsAndNamesThePrefix) {
  Leadership& leadership = Elect();
  int calls = 0;
  etcd_.Break([&] {
    if (++calls == 100) leadership.Lose(absl::AbortedError("still reads"));
    return Fault::kRefused;
  });
  const absl::Status key = ReadKey(client_, leadership, keys_.Tail()).status();
  EXPECT_EQ(key, absl::InvalidArgumentError(
                     "--etcd: etcd at fake:2379 refuses to read /horovod/job/tail: permission "
                     "denied; the user needs the right to read and write all keys with the prefix "
                     "/horovod/job/"));
  const absl::Status range =
      ReadRange(client_, leadership, keys_.EventsFrom(1),
                [](const etcdserverpb::KeyValue&) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsInvalidArgument(range)) << range;
}

// Answers every read with the same page, of which it says that more follows.
class EndlessClient : public FakeEtcdClient {
 public:
  using FakeEtcdClient::FakeEtcdClient;
  absl::StatusOr<etcdserverpb::RangeResponse> Range(const etcdserverpb::RangeRequest&,
                                                    absl::Duration) override {
    etcdserverpb::RangeResponse page;
    page.add_kvs()->set_key(key);
    page.set_more(true);
    return page;
  }
  std::string key;
};

TEST_F(FencedWriterTest, StoreThatAnswersOtherKeys_EndsTheRead) {
  Leadership& leadership = Elect();
  EndlessClient client(etcd_);
  const KeyRange range = keys_.EventsFrom(1);
  for (const std::string& key : {range.begin, range.end, std::string("a")}) {
    client.key = key;
    int visits = 0;
    const absl::Status read =
        ReadRange(client, leadership, range, [&visits](const etcdserverpb::KeyValue&) {
          return ++visits < 9 ? absl::OkStatus() : absl::OutOfRangeError("no end");
        });
    EXPECT_TRUE(absl::IsDataLoss(read)) << read;
  }
}

TEST_F(FencedWriterTest, AfterAnotherLeader_NothingIsWritten) {
  Leadership& first = Elect();
  const auto old = WriterOf(first);
  EXPECT_TRUE(old->Write({Put("a", "1")}).ok());
  const auto young = WriterOf(Elect());
  EXPECT_EQ(old->Write({Put("a", "2")}).code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(first.state().ok());
  EXPECT_EQ(etcd_.All()["a"], "1");
  EXPECT_TRUE(young->Write({Put("a", "3")}).ok());
  EXPECT_EQ(etcd_.All()["a"], "3");
}

TEST_F(FencedWriterTest, LostAnswer_IsWrittenOnce) {
  const auto writer = WriterOf(Elect());
  int calls = 0;
  etcd_.Break([&calls] { return ++calls == 1 ? Fault::kAnswerLost : Fault::kNone; });
  EXPECT_TRUE(writer->Write({Put("a", "1")}).ok());
  EXPECT_TRUE(writer->Write({Put("a", "2")}).ok());
  EXPECT_EQ(etcd_.All()["a"], "2");
}

TEST_F(FencedWriterTest, LateRequest_HasNoEffect) {
  const auto writer = WriterOf(Elect());
  int calls = 0;
  etcd_.Break([&calls] { return ++calls == 1 ? Fault::kRequestLate : Fault::kNone; });
  EXPECT_TRUE(writer->Write({Put("a", "1")}).ok());
  EXPECT_TRUE(writer->Write({Put("a", "2")}).ok());
  etcd_.ArriveLate();
  EXPECT_EQ(etcd_.All()["a"], "2");
}

TEST_F(FencedWriterTest, Away_WaitsAndLogs_UntilTheLeadershipIsLost) {
  Leadership& leadership = Elect();
  const auto writer = WriterOf(leadership);
  int calls = 0;
  etcd_.Break([&] {
    if (++calls == 200) leadership.Lose(absl::AbortedError("the lease"));
    return Fault::kNoSpace;
  });
  EXPECT_EQ(writer->Write({Put("a", "1")}), absl::AbortedError("the lease"));
  ASSERT_EQ(said_.size(), 2u) << "after 3 s, and 30 s later";
  EXPECT_NE(said_[0].find("database space exceeded (free some"), std::string::npos) << said_[0];
  EXPECT_EQ(etcd_.All().count("a"), 0u);
}

TEST_F(FencedWriterTest, ShortAbsence_IsNotLogged_LongAbsenceIsLoggedAtItsEnd) {
  const auto writer = WriterOf(Elect());
  int calls = 0;
  etcd_.Break([&calls] { return ++calls < 5 ? Fault::kRequestLost : Fault::kNone; });
  EXPECT_TRUE(writer->Write({Put("a", "1")}).ok());
  EXPECT_TRUE(said_.empty());
  calls = -20;
  EXPECT_TRUE(writer->Write({Put("a", "2")}).ok());
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_NE(said_[1].find("works again"), std::string::npos) << said_[1];
}

TEST_F(FencedWriterTest, ForGoodRefused_IsInternal) {
  const auto writer = WriterOf(Elect());
  etcd_.Break([] { return Fault::kRefused; });
  EXPECT_EQ(writer->Write({Put("a", "1")}).code(), absl::StatusCode::kInternal);
}

// With lost, delayed and repeated requests: every confirmed write is there once and in order, and
// no write of a former leader follows its successor's first write.
TEST_F(FencedWriterTest, RandomFaults_HistoryIsThatOfOneLeaderAfterAnother) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const JobKeys keys("job");
    etcd_.Break(nullptr);
    etcd_.Expire(0);  // all that the seed before has left
    std::vector<std::pair<int, std::unique_ptr<FencedWriter>>> writers;
    std::vector<std::string> confirmed;
    uint64_t number = 1;
    int leader = 0;
    for (int step = 0; step < 60; ++step) {
      if (writers.empty() || random() % 10 == 0) {
        etcd_.Break(nullptr);
        writers.emplace_back(++leader, WriterOf(Elect()));
        // A new leader reads how far the others have come.
        while (etcd_.All().count(keys.Events(number)) > 0) {
          const std::string found = etcd_.All()[keys.Events(number)];
          if (number > confirmed.size()) confirmed.push_back(found);
          ++number;
        }
      }
      int left = 6;  // or it might never succeed
      etcd_.Break([&] { return --left == 0 ? Fault::kNone : static_cast<Fault>(random() % 4); });
      // A former leader thinks that it is at the same place.
      auto& [who, writer] =
          writers[random() % 3 == 0 ? random() % writers.size() : writers.size() - 1];
      const std::string value = std::to_string(who) + ":" + std::to_string(step);
      const absl::Status written = writer->Write({Put(keys.Events(number), value)});
      if (random() % 4 == 0) etcd_.ArriveLate();
      EXPECT_EQ(written.ok(), who == leader) << "seed " << seed;
      if (!written.ok()) continue;
      confirmed.push_back(value);
      ++number;
    }
    etcd_.ArriveLate();
    const auto all = etcd_.All();
    for (uint64_t i = 1; i <= confirmed.size(); ++i) {
      ASSERT_EQ(all.at(keys.Events(i)), confirmed[i - 1]) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace hvd::rendezvous::etcd
