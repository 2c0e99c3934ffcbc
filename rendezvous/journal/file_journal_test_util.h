// A fixture for tests: a journal in a temporary file, and the bytes of that file.
#ifndef RENDEZVOUS_JOURNAL_FILE_JOURNAL_TEST_UTIL_H_
#define RENDEZVOUS_JOURNAL_FILE_JOURNAL_TEST_UTIL_H_

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rendezvous/journal/file_journal.h"

namespace hvd::rendezvous::journal {

inline const absl::Time kStart = absl::FromUnixNanos(1600000000123456789);

class FileJournalTest : public testing::Test {
 protected:
  ~FileJournalTest() override { std::filesystem::remove_all(folder_->path()); }

  absl::StatusOr<std::unique_ptr<FileJournal>> Open(const std::string& job = "job") {
    return FileJournal::Open(*folder_, job, spec_, kStart);
  }

  // A journal with these calls cancelled, one second after another.
  void Fill(const std::vector<uint64_t>& calls) {
    auto journal = Open();
    ASSERT_TRUE(journal.ok()) << journal.status();
    absl::Time time = kStart;
    for (const uint64_t call : calls) {
      (*journal)->Append(membership::CallCancelled{membership::CallId(call)},
                         time += absl::Seconds(1));
    }
    ASSERT_TRUE((*journal)->Sync().ok());
  }

  // The calls cancelled in a journal.
  static std::vector<uint64_t> Calls(FileJournal& journal) {
    std::vector<uint64_t> calls;
    const absl::Status status =
        journal.Replay([&](const membership::Event& event, absl::Time time) {
          calls.push_back(std::get<membership::CallCancelled>(event).call.value());
          EXPECT_EQ(time, kStart + absl::Seconds(calls.size()));
        });
    EXPECT_TRUE(status.ok()) << status;
    return calls;
  }

  std::string Contents(const std::string& suffix = "") const {
    std::ostringstream text;
    text << std::ifstream(path_ + suffix, std::ios::binary).rdbuf();
    return text.str();
  }
  void SetContents(const std::string& contents, const std::string& suffix = "") const {
    std::ofstream(path_ + suffix, std::ios::binary | std::ios::trunc) << contents;
    ASSERT_EQ(chmod((path_ + suffix).c_str(), 0600), 0);
  }

  const std::unique_ptr<os::PrivateFolder> folder_ =
      *os::PrivateFolder::Open(testing::TempDir() + "/file_journal_" + std::to_string(getpid()));
  const std::string path_ = folder_->PathOf("journal");
  policy::JobSpec spec_;
};

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_FILE_JOURNAL_TEST_UTIL_H_
