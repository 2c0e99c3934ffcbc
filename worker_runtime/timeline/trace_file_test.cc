#include "worker_runtime/timeline/trace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/timeline/chunk.h"
#include "worker_runtime/timeline/timeline_test_util.h"

namespace hvd::worker_runtime::timeline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr absl::Duration kPatience = absl::Minutes(1);

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string ChunkOf(const std::string& activity) {
  TimelineEvent event;
  event.kind = EventKind::kActivity;
  event.activity = activity;
  event.begin = absl::UnixEpoch();
  std::deque<TimelineEvent> events = {event};
  return EncodeChunk(events, {}, 0);
}

class TraceFileTest : public ::testing::Test {
 protected:
  std::unique_ptr<TraceFile> Open() {
    auto file = TraceFile::Open(path_, {"here", "there"}, absl::UnixEpoch());
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }

  const std::string path_ = ::testing::TempDir() + "trace.json";
};

TEST_F(TraceFileTest, Add_OfAllRanksLast_ClosesAValidFile) {
  auto file = Open();
  file->Add(0, ChunkOf("FIRST"), false);
  file->Add(1, ChunkOf("OTHER"), true);
  file->Add(0, ChunkOf("SECOND"), true);
  EXPECT_TRUE(file->AwaitClosed(kPatience).ok());
  const std::string text = Read(path_);
  for (const char* name : {"FIRST", "OTHER", "SECOND"}) EXPECT_THAT(text, HasSubstr(name));
  EXPECT_THAT(text, Not(HasSubstr("LAST_EVENTS_MISSING")));
  EXPECT_THAT(ParseTrace(text), Not(SizeIs(0)));
}

TEST_F(TraceFileTest, Close_WithoutARanksLast_SaysSoInAValidFile) {
  auto file = Open();
  file->Add(0, ChunkOf("FIRST"), true);
  EXPECT_EQ(file->AwaitClosed(absl::ZeroDuration()).code(), absl::StatusCode::kDeadlineExceeded);
  file->Close();
  EXPECT_TRUE(file->AwaitClosed(kPatience).ok());
  const std::string text = Read(path_);
  EXPECT_THAT(text, HasSubstr("LAST_EVENTS_MISSING"));
  EXPECT_THAT(ParseTrace(text), Not(SizeIs(0)));
}

TEST_F(TraceFileTest, Add_OfAnUnreadableChunk_IsNotedInAValidFile) {
  auto file = Open();
  file->Add(1, "nonsense", false);
  file->Close();
  EXPECT_TRUE(file->AwaitClosed(kPatience).ok());
  EXPECT_THAT(Read(path_), HasSubstr("CHUNKS_UNREADABLE"));
  EXPECT_THAT(ParseTrace(Read(path_)), Not(SizeIs(0)));
}

TEST_F(TraceFileTest, Add_BeyondTheBound_DropsAndSaysHowMuch) {
  auto file = Open();
  // The first may be taken by the writer before the next ones come.
  for (int i = 0; i < 3; ++i) file->Add(0, std::string(40 << 20, '\xff'), false);
  file->Add(0, std::string(65 << 20, '\xff'), false);
  file->Close();
  EXPECT_TRUE(file->AwaitClosed(kPatience).ok());
  EXPECT_THAT(Read(path_), HasSubstr("CHUNKS_DROPPED"));
}

TEST_F(TraceFileTest, Open_InNoDirectory_FailsNamingTheFile) {
  const auto file = TraceFile::Open("/nowhere/at/all.json", {"here"}, absl::UnixEpoch());
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("/nowhere/at/all.json"));
}

TEST_F(TraceFileTest, AwaitClosed_OnAFullDisk_SaysSo) {
  std::vector<std::string> lost;
  auto file = TraceFile::Open(
      "/dev/full", {"here"}, absl::UnixEpoch(),
      [&lost](const absl::Status& why) { lost.push_back(std::string(why.message())); });
  ASSERT_TRUE(file.ok());
  (*file)->Add(0, ChunkOf("FIRST"), false);
  (*file)->Close();
  EXPECT_EQ((*file)->AwaitClosed(kPatience).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(lost, ::testing::ElementsAre("the timeline's file '/dev/full' is not complete: No "
                                           "space left on device"));
}

// A pipe without a reader stands for a hung disk: closing the file must not block.
TEST_F(TraceFileTest, Destructor_NotRead_DoesNotHang) {
  unlink(path_.c_str());
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  auto file = Open();
  for (int i = 0; i < 10000; ++i) file->Add(0, ChunkOf("FIRST"), false);
  file.reset();
  char c = 0;
  EXPECT_EQ(read(reader, &c, 1), 1);
  close(reader);
  unlink(path_.c_str());
}

TEST_F(TraceFileTest, Open_APipeThatNobodyReads_FailsAtOnce) {
  unlink(path_.c_str());
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(TraceFile::Open(path_, {"here"}, absl::UnixEpoch()).status().code(),
            absl::StatusCode::kInvalidArgument);
  unlink(path_.c_str());
}

TEST(TracePathOfTest, LaterWorlds_HaveTheirEpochBeforeTheExtension) {
  EXPECT_EQ(TracePathOf("/a/t.json", 1), "/a/t.json");
  EXPECT_EQ(TracePathOf("/a/t.json", 3), "/a/t.epoch3.json");
  EXPECT_EQ(TracePathOf("/a.b/t", 2), "/a.b/t.epoch2");
  EXPECT_EQ(TracePathOf("/a/.hidden", 2), "/a/.hidden.epoch2");
}

}  // namespace
}  // namespace hvd::worker_runtime::timeline
