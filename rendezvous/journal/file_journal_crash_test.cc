// A test that the journal survives a crash of the machine at any call that writes it, in every
// state in which the disk may be then.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rendezvous/journal/file_journal.h"
#include "tests/support/recorded_disk.h"

namespace hvd::rendezvous::journal {
namespace {

constexpr int kJobs = 6;
constexpr int kSteps = 25;
constexpr int kStatesOfCall = 3;
constexpr int kDamages = 300;

const absl::Time kStart = absl::FromUnixSeconds(1600000000);

// A journal whose n-th event is the cancelled call n. A snapshot has the number of those that it
// replaces.
class Job {
 public:
  explicit Job(const os::PrivateFolder& folder) : folder_(folder) {}

  // Errors: those of FileJournal::Open.
  absl::Status Open() {
    auto opened = FileJournal::Open(folder_, "job", {}, kStart);
    if (!opened.ok()) return opened.status();
    journal_ = *std::move(opened);
    return absl::OkStatus();
  }

  // Reads the events from the first on. Returns how many there are; -1 if one is not as it was
  // appended.
  int64_t Read() {
    uint64_t last = 0;
    const auto snapshot = journal_->snapshot();
    if (snapshot.has_value() && !absl::SimpleAtoi(snapshot->state, &last)) return -1;
    bool as_appended = true;
    const absl::Status read = journal_->Replay([&](const membership::Event& event, absl::Time) {
      const auto* call = std::get_if<membership::CallCancelled>(&event);
      as_appended = as_appended && call != nullptr && call->call.value() == last + 1;
      ++last;
    });
    appended_ = read.ok() && as_appended ? static_cast<int64_t>(last) : -1;
    return appended_;
  }

  // Returns the number of events that are durable from now on.
  int64_t AppendAndSync(int64_t events) {
    for (; events > 0; --events) {
      ++appended_;
      journal_->Append(
          membership::CallCancelled{membership::CallId(static_cast<uint64_t>(appended_))}, kStart);
    }
    EXPECT_TRUE(journal_->Sync().ok());
    return appended_;
  }

  void Compact() { EXPECT_TRUE(journal_->Compact({absl::StrCat(appended_), kStart}).ok()); }

  int64_t appended() const { return appended_; }

 private:
  const os::PrivateFolder& folder_;
  std::unique_ptr<FileJournal> journal_;
  int64_t appended_ = 0;
};

// A folder of its own for a test.
class JournalCrashTest : public testing::Test {
 protected:
  std::unique_ptr<os::PrivateFolder> NewFolder(const std::string& name) {
    const std::filesystem::path path = root_ / name;
    std::filesystem::remove_all(path);
    return *os::PrivateFolder::Open(path);
  }
  ~JournalCrashTest() override { std::filesystem::remove_all(root_); }

 private:
  const std::filesystem::path root_ = [] {
    std::string path = testing::TempDir() + "/journal_crash_XXXXXX";
    return std::filesystem::path(mkdtemp(path.data()));
  }();
};

void Put(const RecordedDisk::Files& files, const os::PrivateFolder& folder) {
  for (const auto& [name, contents] : files) {
    std::ofstream(folder.PathOf(name), std::ios::binary) << contents;
    ASSERT_EQ(chmod(folder.PathOf(name).c_str(), 0600), 0);
  }
}

// What a daemon after the crash finds.
void ExpectAfterCrash(const os::PrivateFolder& folder, const RecordedDisk::Files& files,
                      int64_t durable, int64_t appended) {
  Put(files, folder);
  Job next(folder);
  const absl::Status opened = next.Open();
  ASSERT_TRUE(opened.ok()) << opened;
  const int64_t found = next.Read();
  EXPECT_GE(found, durable);
  EXPECT_LE(found, appended);
  // It goes on from there, over another restart.
  next.AppendAndSync(2);
  Job again(folder);
  const absl::Status reopened = again.Open();
  ASSERT_TRUE(reopened.ok()) << reopened;
  EXPECT_EQ(again.Read(), found + 2);
}

// One sector is lost, at a wrong place, or has a wrong bit.
void Damage(std::string& contents, std::mt19937& random) {
  constexpr size_t kSector = 512;
  const auto sector = [&] { return random() % (contents.size() / kSector) * kSector; };
  const size_t at = sector();
  switch (random() % 3) {
    case 0:
      contents.replace(at, kSector, kSector, '\0');
      break;
    case 1:
      contents.replace(at, kSector, contents.substr(sector(), kSector));
      break;
    default:
      contents[at + random() % kSector] ^= static_cast<char>(1 << random() % 8);
  }
}

TEST_F(JournalCrashTest, DiskThatLies_IsNoticed_OrTheEndIsMissing_ButNoEventIsWrong) {
  const auto folder = NewFolder("disk");
  RecordedDisk disk(folder->path());
  Job job(*folder);
  ASSERT_TRUE(job.Open().ok());
  for (int i = 0; i < 100; ++i) job.AppendAndSync(1 + i % 5);
  job.Compact();
  for (int i = 0; i < 100; ++i) job.AppendAndSync(1 + i % 5);
  int noticed = 0;
  for (unsigned seed = 0; seed < kDamages && !HasFailure(); ++seed) {
    std::mt19937 random(seed);
    RecordedDisk::Files files = disk.AfterCrash(disk.calls(), random);
    Damage(files["journal"], random);
    const auto left = NewFolder("left");
    Put(files, *left);
    Job next(*left);
    if (!next.Open().ok()) {
      ++noticed;
      continue;
    }
    const int64_t found = next.Read();
    EXPECT_TRUE(found >= 0 && found <= job.appended()) << found << ", seed " << seed;
  }
  EXPECT_GT(noticed, kDamages / 2);
}

TEST_F(JournalCrashTest, AtEachCall_EventsThatWereSyncedRemain_AndAreFollowedByNoOthers) {
  for (unsigned seed = 0; seed < kJobs && !HasFailure(); ++seed) {
    std::mt19937 random(seed);
    const auto folder = NewFolder("disk");
    std::map<size_t, int64_t> durable;   // by number of calls: events that are from then on
    std::map<size_t, int64_t> appended;  // by number of calls: events that may be
    RecordedDisk disk(folder->path());
    Job job(*folder);
    ASSERT_TRUE(job.Open().ok());
    durable[0] = appended[0] = 0;
    for (int step = 0; step < kSteps; ++step) {
      const auto dice = random() % 10;
      if (dice == 0) job.Compact();
      if (dice > 0) {
        const int64_t events = static_cast<int64_t>(dice == 1 ? random() % 200 : 1 + random() % 4);
        appended[disk.calls()] = job.appended() + events;
        durable[disk.calls()] = job.AppendAndSync(events);
      }
      durable[disk.calls()] = job.appended();
    }
    for (size_t calls = 0; calls <= disk.calls(); ++calls) {
      const int64_t least = std::prev(durable.upper_bound(calls))->second;
      const int64_t most = std::prev(appended.upper_bound(calls))->second;
      for (int state = 0; state < kStatesOfCall && !HasFailure(); ++state) {
        SCOPED_TRACE(absl::StrCat("seed ", seed, ", call ", calls, " of ", disk.calls()));
        const RecordedDisk::Files left = disk.AfterCrash(calls, random);
        ExpectAfterCrash(*NewFolder("left"), left, least, most);
      }
    }
  }
}

}  // namespace
}  // namespace hvd::rendezvous::journal
