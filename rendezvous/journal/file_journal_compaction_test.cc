// Compaction of a journal's file: a snapshot in the place of the events before it.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rendezvous/journal/file_journal_test_util.h"

namespace hvd::rendezvous::journal {
namespace {

class FileJournalCompactionTest : public FileJournalTest {
 protected:
  // In the place of all that is in the journal.
  void Compact(const std::string& state) {
    auto journal = Open();
    ASSERT_TRUE(journal.ok()) << journal.status();
    ASSERT_TRUE((*journal)->Compact({state, kStart + absl::Hours(1)}).ok());
  }

  static std::string State(const FileJournal& journal) {
    return journal.snapshot().has_value() ? journal.snapshot()->state : "none";
  }
};

TEST_F(FileJournalCompactionTest, Compact_ReplacesAllEvents_AndAppendsContinue) {
  Fill({1, 2, 3});
  auto journal = Open();
  EXPECT_EQ(State(**journal), "none");
  ASSERT_TRUE((*journal)->Compact({"state of 3", kStart + absl::Seconds(3)}).ok());
  (*journal)->Append(membership::CallCancelled{membership::CallId(4)}, kStart + absl::Seconds(1));
  ASSERT_TRUE((*journal)->Sync().ok());
  for (int opening = 0; opening < 2; ++opening) {
    journal = Open();
    ASSERT_TRUE(journal.ok()) << journal.status();
    EXPECT_EQ(State(**journal), "state of 3");
    EXPECT_EQ((*journal)->snapshot()->time, kStart + absl::Seconds(3));
    EXPECT_EQ((*journal)->started(), kStart);
    EXPECT_EQ(Calls(**journal), std::vector<uint64_t>{4});
  }
  EXPECT_EQ(Open("another").status().code(), absl::StatusCode::kFailedPrecondition);
}

// The states of the folder during a compaction: the old file and any prefix of the new one, or the
// new file.
TEST_F(FileJournalCompactionTest, KilledAnywhereInCompact_AllThatWasAcknowledgedIsThere) {
  Fill({1, 2});
  const std::string before = Contents();
  Compact("state of 2");
  const std::string after = Contents();
  for (size_t size = 0; size <= after.size(); ++size) {
    SetContents(before);
    SetContents(after.substr(0, size), ".new");
    auto journal = Open();
    ASSERT_TRUE(journal.ok()) << size << journal.status();
    EXPECT_EQ(State(**journal), "none");
    EXPECT_EQ(Calls(**journal), (std::vector<uint64_t>{1, 2}));
    EXPECT_EQ(access((path_ + ".new").c_str(), F_OK), -1);
  }
  SetContents(after);
  EXPECT_EQ(State(**Open()), "state of 2");
}

TEST_F(FileJournalCompactionTest, CutAnywhereAfterASnapshot_SnapshotAndWholeEventsAreThere) {
  Fill({1, 2});
  Compact("state of 2");
  const size_t snapshot = Contents().size();
  Fill({1});
  const size_t one = Contents().size();
  {
    auto journal = Open();
    (*journal)->Append(membership::CallCancelled{membership::CallId(2)}, kStart + absl::Seconds(2));
    ASSERT_TRUE((*journal)->Sync().ok());
  }
  const std::string contents = Contents();
  for (size_t size = 1; size <= contents.size(); ++size) {
    SetContents(contents.substr(0, size));
    auto journal = Open();
    if (size < snapshot) {  // no crash does that
      EXPECT_EQ(journal.status().code(), absl::StatusCode::kDataLoss) << size;
      continue;
    }
    ASSERT_TRUE(journal.ok()) << size << journal.status();
    EXPECT_EQ(State(**journal), "state of 2");
    const size_t events = size == contents.size() ? 2 : size >= one ? 1 : 0;
    EXPECT_EQ(Calls(**journal).size(), events) << size;
  }
}

TEST_F(FileJournalCompactionTest, AnyByteOfASnapshotFlipped_DataLoss) {
  Compact("state");
  const std::string contents = Contents();
  for (size_t i = 0; i < contents.size(); ++i) {
    std::string damaged = contents;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    SetContents(damaged);
    EXPECT_EQ(Open().status().code(), absl::StatusCode::kDataLoss) << i;
  }
}

TEST_F(FileJournalCompactionTest, WantsSnapshot_KeepsTheFileBounded) {
  auto journal = Open();
  size_t largest = 0;
  int compactions = 0;
  const std::string state(FileJournal::kLeastEvents, 's');
  for (int i = 0; i < 700; ++i) {
    (*journal)->Append(
        membership::ExchangeRequested{
            membership::CallId(1), {}, Epoch(1), "k", std::string(20000, 'v')},
        kStart);
    ASSERT_TRUE((*journal)->Sync().ok());
    largest = std::max(largest, Contents().size());
    if (!(*journal)->WantsSnapshot()) continue;
    ++compactions;
    ASSERT_TRUE((*journal)->Compact({state, kStart}).ok());
    EXPECT_FALSE((*journal)->WantsSnapshot());
  }
  EXPECT_GE(compactions, 5);
  EXPECT_LT(largest, 3 * state.size() + FileJournal::kLeastEvents);
}

TEST_F(FileJournalCompactionTest, Compact_WriteFails_KeepsTheJournalAndRetriesLater) {
  Fill({1});
  auto journal = Open();
  ASSERT_EQ(mkdir((path_ + ".new").c_str(), 0700), 0);  // in the new file's place
  const absl::Status status = (*journal)->Compact({"state", kStart});
  rmdir((path_ + ".new").c_str());
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(State(**journal), "none");
  (*journal)->Append(membership::CallCancelled{membership::CallId(2)}, kStart + absl::Seconds(2));
  ASSERT_TRUE((*journal)->Sync().ok());
  EXPECT_EQ(Calls(**Open()), (std::vector<uint64_t>{1, 2}));
  ASSERT_TRUE((*journal)->Compact({"state", kStart}).ok());
  EXPECT_EQ(State(**Open()), "state");
}

}  // namespace
}  // namespace hvd::rendezvous::journal
