#include "rendezvous/journal/file_journal.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/version.h"
#include "gtest/gtest.h"
#include "proto/journal.pb.h"
#include "rendezvous/journal/batches.h"
#include "rendezvous/journal/file_journal_test_util.h"
#include "rendezvous/journal/record_file.h"
#include "tests/support/full_disk.h"

namespace hvd::rendezvous::journal {
namespace {

// A batch with one event, as the file has it.
std::string BatchOf(uint64_t number, const pb::journal::Event& event) {
  std::string contents;
  AddToBatch(event.SerializeAsString(), contents);
  return EncodeBatch(number, contents);
}

TEST_F(FileJournalTest, Replay_GivesWhatWasSynced_InOrder_AcrossOpenings) {
  Fill({1, 2});
  auto journal = Open();
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_EQ(Calls(**journal), (std::vector<uint64_t>{1, 2}));
  (*journal)->Append(membership::CallCancelled{membership::CallId(3)}, kStart + absl::Seconds(3));
  ASSERT_TRUE((*journal)->Sync().ok());
  journal = Open();
  EXPECT_EQ(Calls(**journal), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ((*journal)->bytes_cut(), 0);
}

TEST_F(FileJournalTest, Append_WithoutSync_IsNotKept) {
  {
    auto journal = Open();
    (*journal)->Append(membership::CallCancelled{membership::CallId(1)}, kStart);
  }
  EXPECT_TRUE(Calls(**Open()).empty());
}

TEST_F(FileJournalTest, Started_IsTheFirstOpenings) {
  ASSERT_TRUE(Open().ok());
  const auto later = FileJournal::Open(*folder_, "job", spec_, kStart + absl::Hours(1));
  EXPECT_EQ((*later)->started(), kStart);
}

TEST_F(FileJournalTest, File_IsTheOwnersAlone) {
  ASSERT_TRUE(Open().ok());
  struct stat info = {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

// How it may be torn: batches_test.
TEST_F(FileJournalTest, LastSyncHasZerosInside_IsCutOffAndAppendsContinue) {
  Fill({1});
  const std::string whole = Contents();
  Fill({2, 3});  // one Sync
  std::string torn = Contents();
  torn.replace(whole.size() + 40, 8, 8, '\0');
  SetContents(torn);
  auto journal = Open();
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_EQ((*journal)->bytes_cut(), static_cast<int64_t>(torn.size() - whole.size()));
  EXPECT_EQ(Contents(), whole);
  (*journal)->Append(membership::CallCancelled{membership::CallId(4)}, kStart + absl::Seconds(2));
  ASSERT_TRUE((*journal)->Sync().ok());
  EXPECT_EQ(Calls(**Open()), (std::vector<uint64_t>{1, 4}));
}

TEST_F(FileJournalTest, ZerosInsideAnEarlierSync_DataLoss_WithPlaceAndAdvice) {
  Fill({1});
  const size_t begin = Contents().size();
  Fill({2});
  Fill({3});
  std::string damaged = Contents();
  damaged.replace(begin + 40, 4, 4, '\0');
  SetContents(damaged);
  const std::string message(Open().status().message());
  EXPECT_TRUE(absl::StrContains(
      message, absl::StrCat(path_, " is damaged at byte ", begin, ", and no crash does that; put")))
      << message;
  EXPECT_EQ(Contents(), damaged);
}

TEST_F(FileJournalTest, TornLastRecord_OthersAreKeptAndAppendsContinue) {
  Fill({1});
  const size_t whole = Contents().size();
  Fill({2});  // appends
  const std::string contents = Contents();
  for (size_t size = whole; size < contents.size(); ++size) {
    SetContents(contents.substr(0, size));
    auto journal = Open();
    ASSERT_TRUE(journal.ok()) << journal.status();
    EXPECT_EQ((*journal)->bytes_cut(), static_cast<int64_t>(size - whole));
    EXPECT_EQ(Calls(**journal), std::vector<uint64_t>{1});
    (*journal)->Append(membership::CallCancelled{membership::CallId(3)}, kStart + absl::Seconds(2));
    ASSERT_TRUE((*journal)->Sync().ok());
    EXPECT_EQ(Calls(**Open()), (std::vector<uint64_t>{1, 3}));
  }
}

TEST_F(FileJournalTest, TornFirstRecord_DataLoss_NeverStartsANewJournal) {
  ASSERT_TRUE(Open().ok());
  const std::string contents = Contents();
  for (size_t size = 1; size < contents.size(); ++size) {
    SetContents(contents.substr(0, size));
    EXPECT_EQ(Open().status().code(), absl::StatusCode::kDataLoss) << size;
    EXPECT_EQ(Contents(), contents.substr(0, size));
  }
}

TEST_F(FileJournalTest, EmptyFile_StartsANewJournal) {
  ASSERT_TRUE(Open().ok());
  const std::string contents = Contents();
  SetContents("");
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Contents(), contents);
}

TEST_F(FileJournalTest, ZerosAtTheEnd_AreCutOff) {
  Fill({1});
  const std::string contents = Contents();
  SetContents(contents + std::string(5000, '\0'));
  auto journal = Open();
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_EQ((*journal)->bytes_cut(), 5000);
  EXPECT_EQ(Contents(), contents);
}

TEST_F(FileJournalTest, AnyByteFlipped_DataLoss_AndTheFileIsLeftAlone) {
  Fill({1, 2});
  const std::string contents = Contents();
  for (size_t i = 0; i < contents.size(); ++i) {
    std::string damaged = contents;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    SetContents(damaged);
    const absl::Status status = Open().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << i << ": " << status;
    EXPECT_TRUE(absl::StrContains(status.message(), path_)) << status;
    EXPECT_EQ(Contents(), damaged);
  }
}

TEST_F(FileJournalTest, NoJournal_DataLoss) {
  SetContents("#!/bin/sh\nexec true\n");
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(FileJournalTest, RecordsOfAnUnknownKind_DataLoss) {
  ASSERT_TRUE(Open().ok());
  SetContents(Contents() + BatchOf(1, pb::journal::Event()));
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(FileJournalTest, OtherVersionOrFormat_FailedPreconditionAndSaysWhich) {
  pb::journal::Header header;
  header.set_format(3);
  header.set_version("0.0.1");
  header.set_job_id("job");
  SetContents(EncodeRecord(header.SerializeAsString()));
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(Open().status().message(), "0.0.1")) << Open().status();
}

// Of the formats before, those with a snapshot have it in bytes that are not understood any more.
TEST_F(FileJournalTest, FormatAlone_DecidesWhatIsRead) {
  const auto open = [this](uint32_t format, bool with_snapshot) {
    pb::journal::Header header;
    EXPECT_TRUE(Open().ok());
    const std::string contents = Contents();
    const auto record = FirstRecord(contents);
    EXPECT_TRUE(header.ParseFromString(std::string(**record)));
    header.set_format(format);
    header.clear_snapshot();
    if (with_snapshot) header.mutable_snapshot()->set_job("state");
    SetContents(EncodeRecord(header.SerializeAsString()));
    const absl::Status status = Open().status();
    std::filesystem::remove(path_);
    return status;
  };
  for (const uint32_t format : {2, 3}) {
    EXPECT_EQ(open(format, false), absl::OkStatus());
    EXPECT_EQ(open(format, true).code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_EQ(open(4, true), absl::OkStatus());
  EXPECT_EQ(open(5, false).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(open(5, false).message(),
                                absl::StrCat("(format 5), this is ", kVersion, " (format 4)")));
}

TEST_F(FileJournalTest, OtherJobOrOptions_FailedPrecondition) {
  ASSERT_TRUE(Open("job").ok());
  EXPECT_EQ(Open("another").status().code(), absl::StatusCode::kFailedPrecondition);
  spec_.max_workers = 2;
  EXPECT_EQ(Open("job").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(FileJournalTest, LargeValues_Survive) {
  const std::string value(1 << 20, 'v');
  {
    auto journal = Open();
    for (int i = 0; i < 3; ++i) {
      (*journal)->Append(
          membership::ExchangeRequested{membership::CallId(1), {}, Epoch(1), "key", value}, kStart);
    }
    ASSERT_TRUE((*journal)->Sync().ok());
  }
  int found = 0;
  ASSERT_TRUE((*Open())
                  ->Replay([&](const membership::Event& event, absl::Time) {
                    found += std::get<membership::ExchangeRequested>(event).value == value ? 1 : 0;
                  })
                  .ok());
  EXPECT_EQ(found, 3);
}

TEST_F(FileJournalTest, OtherFileInItsPlace_InvalidArgument_AndItIsUnchanged) {
  const std::string target = path_ + ".target";
  ASSERT_EQ(symlink(target.c_str(), path_.c_str()), 0);
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(target));
}

TEST_F(FileJournalTest, Sync_NoRoom_FailsForGood_AndWhatWasThereStays) {
  Fill({1});
  auto journal = Open();
  ASSERT_EQ(Calls(**journal).size(), 1u);
  (*journal)->Append(membership::CallCancelled{membership::CallId(2)}, kStart);
  auto disk = std::make_unique<FullDisk>(Contents().size() + 3);  // not even a whole batch
  const absl::Status full = (*journal)->Sync();
  disk.reset();
  EXPECT_EQ(full.code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(absl::StrContains(full.message(), path_)) << full;
  (*journal)->Append(membership::CallCancelled{membership::CallId(3)}, kStart);
  EXPECT_EQ((*journal)->Sync(), full);
  EXPECT_EQ(Calls(**Open()), std::vector<uint64_t>{1});
}

}  // namespace
}  // namespace hvd::rendezvous::journal
