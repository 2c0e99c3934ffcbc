#include "rendezvous/etcd/etcd_job_store.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "rendezvous/etcd/etcd_journal.h"
#include "rendezvous/etcd/fake_etcd_test_util.h"
#include "rendezvous/etcd/lease_keeper.h"

namespace hvd::rendezvous::etcd {
namespace {

using Fault = FakeEtcd::Fault;

// Stores on the real clock: with a jumping clock, the lease keeper would run in a busy loop.
class EtcdJobStoreTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<EtcdJobStore>> Open() {
    return EtcdJobStore::Open(std::make_unique<FakeEtcdClient>(etcd_), options_, callbacks_);
  }

  // A job that was served, and its journal.
  std::unique_ptr<EtcdJobStore> Begin() {
    auto store = Open();
    EXPECT_TRUE(store.ok()) << store.status();
    pb::journal::Job job;
    job.set_job_id("job-1");
    EXPECT_TRUE((*store)->SaveIdentity(job).ok());
    EXPECT_TRUE((*store)->OpenJournal("job-1", spec_, now_).ok());
    job.add_addresses("10.0.0.1:7000");
    EXPECT_TRUE((*store)->SaveIdentity(job).ok());
    return *std::move(store);
  }

  std::unique_ptr<journal::Journal> JournalOf(EtcdJobStore& store) {
    auto opened = store.OpenJournal("job-1", spec_, now_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return std::move(opened->journal);
  }

  static std::vector<std::string> HostsOf(journal::Journal& journal) {
    std::vector<std::string> hosts;
    EXPECT_TRUE(journal
                    .Replay([&](const membership::Event& event, absl::Time) {
                      hosts.push_back(std::get<membership::HostLost>(event).host);
                    })
                    .ok());
    return hosts;
  }

  static membership::Event Lost(const std::string& host) {
    membership::HostLost event;
    event.host = host;
    return event;
  }

  int KeysWith(const std::string& text) {
    int count = 0;
    for (const auto& [key, value] : etcd_.All()) count += absl::StrContains(key, text) ? 1 : 0;
    return count;
  }

  FakeEtcd etcd_;
  EtcdJobStore::Options options_{"train", {"10.0.0.1:7000", true}, absl::Seconds(30)};
  CampaignCallbacks callbacks_{[](const std::string&) {}, [] { return false; }};
  policy::JobSpec spec_;
  const absl::Time now_ = absl::FromUnixSeconds(1000);
};

TEST_F(EtcdJobStoreTest, NextDaemon_HasIdentityAndEvents) {
  {
    const auto first = Begin();
    const auto journal = JournalOf(*first);
    journal->Append(Lost("a"), now_);
    journal->Append(Lost("b"), now_);
    EXPECT_TRUE(journal->Sync().ok());
    journal->Append(Lost("c"), now_);
    EXPECT_TRUE(journal->Sync().ok());
    journal->Append(Lost("never synced"), now_);
  }
  const auto second = Open();
  ASSERT_TRUE(second.ok() && (*second)->identity().has_value());
  EXPECT_EQ((*second)->identity()->job_id(), "job-1");
  EXPECT_EQ((*second)->name(), "train in etcd at fake:2379");
  const auto journal = JournalOf(**second);
  EXPECT_EQ(journal->started(), now_);
  EXPECT_EQ(HostsOf(*journal), (std::vector<std::string>{"a", "b", "c"}));
  journal->Append(Lost("d"), now_);
  EXPECT_TRUE(journal->Sync().ok());
  EXPECT_EQ(HostsOf(*journal).size(), 4u);
}

TEST_F(EtcdJobStoreTest, ManyAndLargeEvents_AreSeveralValues) {
  const auto store = Begin();
  const auto journal = JournalOf(*store);
  const std::string large(EtcdJournal::kLargestValue * 2, 'x');
  for (const std::string& host : {std::string("a"), large, std::string("b")}) {
    journal->Append(Lost(host), now_);
  }
  EXPECT_TRUE(journal->Sync().ok());
  EXPECT_EQ(KeysWith("/log/"), 3);
  EXPECT_EQ(HostsOf(*journal), (std::vector<std::string>{"a", large, "b"}));
  EXPECT_TRUE(journal->WantsSnapshot());
}

TEST_F(EtcdJobStoreTest, Snapshot_ReplacesEventsAndTheOneBefore) {
  const std::string state(EtcdJournal::kLargestValue * 2 + 5, 's');
  {
    const auto store = Begin();
    const auto journal = JournalOf(*store);
    journal->Append(Lost("a"), now_);
    EXPECT_TRUE(journal->Sync().ok());
    EXPECT_TRUE(journal->Compact({"small", now_}).ok());
    EXPECT_TRUE(journal->Compact({state, now_ + absl::Seconds(1)}).ok());
    journal->Append(Lost("b"), now_);
    EXPECT_TRUE(journal->Sync().ok());
  }
  EXPECT_EQ(KeysWith("/snap/"), 3);
  EXPECT_EQ(KeysWith("/log/"), 1);
  // Of a daemon that has ended while it wrote one.
  etcd_.Set(JobKeys("train").Chunk(3, 0), "the beginning");
  const auto store = Open();
  const auto journal = JournalOf(**store);
  ASSERT_TRUE(journal->snapshot().has_value());
  EXPECT_EQ(journal->snapshot()->state, state);
  EXPECT_EQ(journal->snapshot()->time, now_ + absl::Seconds(1));
  EXPECT_EQ(HostsOf(*journal), std::vector<std::string>{"b"});
  EXPECT_EQ(KeysWith("/snap/"), 3) << "no other one is left";
}

TEST_F(EtcdJobStoreTest, MissingOrForeignRecord_IsRefused) {
  const JobKeys keys("train");
  { const auto journal = JournalOf(*Begin()); }
  spec_.max_workers = 7;
  EXPECT_TRUE(absl::IsFailedPrecondition((*Open())->OpenJournal("job-1", spec_, now_).status()));
  spec_ = {};
  etcd_.Set(keys.Events(2), "after a gap");
  EXPECT_TRUE(absl::IsDataLoss((*Open())->OpenJournal("job-1", spec_, now_).status()));
  etcd_.Set(keys.Head(), "");
  EXPECT_TRUE(absl::IsDataLoss((*Open())->OpenJournal("job-1", spec_, now_).status()));
  etcd_.Set(keys.Identity(), "no job");
  EXPECT_TRUE(absl::IsDataLoss(Open().status()));
}

TEST_F(EtcdJobStoreTest, LeaseHasEnded_IsReportedAndNothingIsWritten) {
  const auto store = Begin();
  const auto journal = JournalOf(*store);
  absl::Notification lost;
  store->OnLost([&lost](const absl::Status& why) {
    EXPECT_TRUE(absl::IsAborted(why)) << why;
    lost.Notify();
  });
  for (int64_t lease = 1; lease < 10; ++lease) etcd_.Expire(lease);
  lost.WaitForNotification();
  journal->Append(Lost("a"), now_);
  EXPECT_TRUE(absl::IsAborted(journal->Sync()));
  EXPECT_EQ(KeysWith("/log/"), 0);
}

TEST_F(EtcdJobStoreTest, Closed_AnotherMayLeadAtOnce) {
  Begin().reset();
  EXPECT_EQ(KeysWith("/leader"), 0);
}

class CampaignTest : public testing::Test {
 protected:
  absl::StatusOr<Election> Run(bool stands_by, int patience) {
    const CampaignCallbacks callbacks{[this](const std::string& line) { said_.push_back(line); },
                                      [&patience] { return --patience < 0; }};
    return Campaign(client_, keys_, {"me:7000", stands_by}, callbacks, clock_);
  }

  JumpingClock clock_;
  FakeEtcd etcd_;
  FakeEtcdClient client_{etcd_};
  const JobKeys keys_{"train"};
  std::vector<std::string> said_;
};

TEST_F(CampaignTest, NobodyLeads_Wins) {
  const auto election = Run(false, 1);
  ASSERT_TRUE(election.ok()) << election.status();
  EXPECT_EQ(etcd_.All()[keys_.Leader()], "me:7000");
}

TEST_F(CampaignTest, AnswerLost_FindsThatItHasWon) {
  int calls = 0;
  etcd_.Break([&calls] { return ++calls == 2 ? Fault::kAnswerLost : Fault::kNone; });
  EXPECT_TRUE(Run(false, 2).ok());
}

TEST_F(CampaignTest, LeaderHasAnInvalidName_MessageIsOneEscapedLine) {
  etcd_.Set(keys_.Leader(), "\x1b[2J\n" + std::string(1000, 'x'));
  EXPECT_TRUE(absl::IsCancelled(Run(true, 1000).status()));
  ASSERT_EQ(said_.size(), 1);
  EXPECT_TRUE(absl::StrContains(said_[0], "led by \\x1b[2J\\nxx")) << said_[0];
  EXPECT_LT(said_[0].size(), 400);
}

TEST_F(CampaignTest, AnotherLeads_StandsByOrNamesTheLeader) {
  etcd_.Set(keys_.Leader(), "other:7000");
  EXPECT_TRUE(absl::IsCancelled(Run(true, 1000).status())) << "waits until gives_up returns true";
  EXPECT_EQ(said_, std::vector<std::string>{"stands by: the job is led by other:7000"});
  const absl::Status refused = Run(false, 1000).status();
  EXPECT_TRUE(absl::IsAlreadyExists(refused));
  EXPECT_TRUE(absl::StrContains(refused.message(), "led by the daemon at other:7000")) << refused;
}

TEST_F(CampaignTest, Refused_EndsIt_AndAwayDoesNot) {
  etcd_.Break([] { return Fault::kRefused; });
  EXPECT_TRUE(absl::IsInvalidArgument(Run(true, 1000).status()));
  etcd_.Break([] { return Fault::kRequestLost; });
  EXPECT_TRUE(absl::IsCancelled(Run(true, 1000).status()));
  EXPECT_FALSE(said_.empty());
}

// Answers no refresh.
class SilentEtcdClient final : public FakeEtcdClient {
 public:
  SilentEtcdClient(FakeEtcd& etcd, Clock& clock) : FakeEtcdClient(etcd), clock_(clock) {}

  absl::StatusOr<bool> KeepAlive(int64_t, absl::Duration limit) override {
    absl::Mutex mu;
    absl::MutexLock lock(&mu);
    bool never = false;
    clock_.AwaitWithDeadline(mu, absl::Condition(&never), clock_.Now() + limit);
    return absl::DeadlineExceededError("Deadline Exceeded");
  }

 private:
  Clock& clock_;
};

TEST(LeaseKeeperTest, NoMemberAnswers_GivesUpInHalfTheTimeThatAgentsWait) {
  JumpingClock clock;
  FakeEtcd etcd;
  SilentEtcdClient silent(etcd, clock);
  const absl::Time begin = clock.Now();
  Leadership leadership(/*revision=*/1, /*lease=*/1, clock);
  absl::Time end;
  absl::Notification lost;
  leadership.OnLost([&](const absl::Status& why) {
    EXPECT_TRUE(absl::StrContains(why.message(), "has not answered for 15s")) << why;
    end = clock.Now();
    lost.Notify();
  });
  const LeaseKeeper keeper(silent, leadership, JobKeys("train").Leader(), absl::Seconds(30));
  lost.WaitForNotification();
  EXPECT_GE(end - begin, absl::Seconds(15));
  EXPECT_LT(end - begin, absl::Seconds(16));
}

TEST(LeaseScheduleTest, GivesUpInHalfTheTimeThatAgentsWait) {
  const absl::Time now = absl::FromUnixSeconds(1000);
  LeaseSchedule schedule(absl::Seconds(30), now);
  EXPECT_EQ(schedule.next(), now + absl::Seconds(1));
  schedule.Failed(now + absl::Seconds(14));
  EXPECT_FALSE(schedule.IsOver(now + absl::Seconds(14)));
  EXPECT_TRUE(schedule.IsOver(now + absl::Seconds(15)));
  schedule.Refreshed(now + absl::Seconds(14));
  EXPECT_FALSE(schedule.IsOver(now + absl::Seconds(28)));
  EXPECT_FALSE(LeaseSchedule(absl::Seconds(2), now).IsOver(now + absl::Seconds(3)))
      << "there can be no other before";
}

}  // namespace
}  // namespace hvd::rendezvous::etcd
