#include "base/console/output_sink.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/full_disk.h"

namespace hvd::console {
namespace {

using ::testing::HasSubstr;

// Two pipes in place of stdout and stderr.
class OutputSinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    ASSERT_EQ(pipe2(out_, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(err_, O_CLOEXEC), 0);
  }
  void TearDown() override {
    sink_.reset();
    for (int fd : {out_[0], out_[1], err_[0], err_[1]}) close(fd);
  }

  void Make(OutputSinkOptions options = {}) {
    options.stdout_fd = out_[1];
    options.stderr_fd = err_[1];
    sink_ = std::make_unique<OutputSink>(std::move(options));
  }
  void Drain() {
    absl::Notification drained;
    sink_->NotifyDrained([&] { drained.Notify(); });
    drained.WaitForNotification();
  }
  // Reads the contents of the pipe, which must have at least one byte.
  static std::string Read(int fd) {
    std::string text(1 << 16, '\0');
    text.resize(std::max<ssize_t>(0, read(fd, text.data(), text.size())));
    return text;
  }
  // Makes the writing thread find its pipe full.
  void Clog() {
    fcntl(out_[1], F_SETPIPE_SZ, 4096);
    sink_->Write(0, false, std::string(100000, 'x'));
  }

  int out_[2];
  int err_[2];
  std::unique_ptr<OutputSink> sink_;
};

TEST_F(OutputSinkTest, PrefixesEachStream) {
  Make();
  sink_->Write(0, false, "hello\n");
  sink_->Write(1, false, "50%\r");
  sink_->Write(1, true, "oops\n");
  sink_->Say("horovodrun: word\n");
  Drain();
  EXPECT_EQ(Read(out_[0]), "[0]<stdout>:hello\n[1]<stdout>:50%\r");
  EXPECT_EQ(Read(err_[0]), "[1]<stderr>:oops\nhorovodrun: word\n");
}

TEST_F(OutputSinkTest, LineThatIsNotShown_GoesToItsFileOnly) {
  const std::string folder = ::testing::TempDir() + "/hidden";
  OutputSinkOptions options;
  options.files = *RankFiles::Create(folder, 2);
  Make(std::move(options));
  sink_->Write(1, false, "hidden\n", "", /*shown=*/false);
  sink_->Write(0, false, "shown\n");
  Drain();
  EXPECT_EQ(Read(out_[0]), "[0]<stdout>:shown\n");
  std::stringstream file;
  file << std::ifstream(folder + "/rank.1/stdout").rdbuf();
  EXPECT_EQ(file.str(), "[1]<stdout>:hidden\n");
  sink_.reset();
  std::filesystem::remove_all(folder);
}

TEST_F(OutputSinkTest, AnyBytesPass) {
  Make();
  const std::string bytes("\xff\x00\xc3(\n", 5);
  sink_->Write(0, false, bytes);
  Drain();
  EXPECT_EQ(Read(out_[0]), "[0]<stdout>:" + bytes);
}

TEST_F(OutputSinkTest, LineWithoutEndGetsOne) {
  Make();
  sink_->Write(0, false, "partial");
  sink_->Write(1, false, "next\n");
  Drain();
  EXPECT_EQ(Read(out_[0]), "[0]<stdout>:partial\n[1]<stdout>:next\n");
}

TEST_F(OutputSinkTest, TimestampComesFirst) {
  setenv("TZ", "UTC", 1);
  OutputSinkOptions options;
  options.timestamps = true;
  options.wall_now = [] { return absl::FromUnixSeconds(1795254813); };
  Make(std::move(options));
  sink_->Write(1, false, "text\n");
  Drain();
  EXPECT_EQ(Read(out_[0]), "Sat Nov 21 09:53:33 2026[1]<stdout>:text\n");
}

TEST_F(OutputSinkTest, Json_IsForWorkersAndTheLauncherAlike) {
  OutputSinkOptions options;
  options.json = true;
  options.wall_now = [] { return absl::FromUnixSeconds(1795254813); };
  Make(std::move(options));
  sink_->Write(1, false, "partial", "a");
  sink_->Say("horovodrun: word\n");
  Drain();
  const std::string time = R"({"time":"2026-11-21T09:53:33.000000Z",)";
  EXPECT_EQ(Read(out_[0]),
            time + R"("rank":1,"host":"a","stream":"stdout","text":"partial"})" + "\n");
  EXPECT_EQ(
      Read(err_[0]),
      time + R"("rank":null,"host":null,"stream":"horovodrun","text":"horovodrun: word"})" + "\n");
}

TEST_F(OutputSinkTest, FilesGetPrefixedCopies) {
  std::string directory = ::testing::TempDir() + "/output_sink.XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  OutputSinkOptions options;
  options.files = *RankFiles::Create(directory, 1);
  Make(std::move(options));
  sink_->Write(0, true, "partial");
  sink_->Say("not in the file\n");
  Drain();
  std::ostringstream text;
  text << std::ifstream(directory + "/rank.0/stderr").rdbuf();
  EXPECT_EQ(text.str(), "[0]<stderr>:partial");
  EXPECT_EQ(Read(err_[0]), "[0]<stderr>:partial\nnot in the file\n");
  std::filesystem::remove_all(directory);
}

TEST_F(OutputSinkTest, FileErrorIsReportedOnceAndConsoleContinues) {
  std::string directory = ::testing::TempDir() + "/output_sink.XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  OutputSinkOptions options;
  options.files = *RankFiles::Create(directory, 1);
  const FullDisk full;
  Make(std::move(options));
  sink_->Write(0, false, "a\n");
  sink_->Write(0, false, "b\n");
  Drain();
  EXPECT_EQ(Read(out_[0]), "[0]<stdout>:a\n[0]<stdout>:b\n");
  const std::string said = Read(err_[0]);
  EXPECT_THAT(said, HasSubstr("File too large"));
  EXPECT_EQ(said.find("File too large"), said.rfind("File too large"));
  std::filesystem::remove_all(directory);
}

TEST_F(OutputSinkTest, LostReaderIsReportedOnceAndOtherStreamContinues) {
  Make();
  int calls = 0;
  sink_->OnBroken([&](bool is_stderr, int error) {
    ++calls;
    EXPECT_FALSE(is_stderr);
    EXPECT_EQ(error, EPIPE);
  });
  close(out_[0]);
  sink_->Write(0, false, "a\n");
  sink_->Write(0, false, "b\n");
  sink_->Write(0, true, "c\n");
  Drain();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(Read(err_[0]), "[0]<stderr>:c\n");
  out_[0] = open("/dev/null", O_RDONLY);
}

TEST_F(OutputSinkTest, FullBacklogHoldsTheWriterUntilRead) {
  OutputSinkOptions options;
  options.max_backlog_bytes = 1;
  Make(std::move(options));
  Clog();
  absl::Notification written;
  std::thread writer([&] {
    sink_->Write(1, false, "held\n");
    sink_->Write(1, false, "last\n");
    written.Notify();
  });
  EXPECT_TRUE(sink_->HasBacklog());
  std::string all;
  while (all.find("last\n") == std::string::npos) all += Read(out_[0]);
  EXPECT_THAT(all, HasSubstr("xxx\n[1]<stdout>:held\n[1]<stdout>:last\n"));
  writer.join();
  EXPECT_TRUE(written.HasBeenNotified());
}

TEST_F(OutputSinkTest, StatusLine_IsErasedForOtherWordsAndDrawnAfterThem) {
  OutputSinkOptions options;
  options.has_status_line = true;
  Make(std::move(options));
  sink_->SetStatus("one");
  EXPECT_EQ(Read(err_[0]), "\rone\x1b[J\r");
  sink_->SetStatus("one");
  sink_->Say("word\n");
  Drain();
  sink_->SetStatus("");
  sink_->Say("last\n");
  Drain();
  const std::string all = Read(err_[0]);
  EXPECT_EQ(all.find("\r\x1b[Jword\n\rone\x1b[J\r"), 0u) << all;
  EXPECT_EQ(all.substr(all.size() - 8), "\x1b[Jlast\n") << all;
}

TEST_F(OutputSinkTest, StatusLine_StdoutElsewhere_StaysWhereItIs) {
  OutputSinkOptions options;
  options.has_status_line = true;
  Make(std::move(options));
  sink_->SetStatus("one");
  EXPECT_EQ(Read(err_[0]), "\rone\x1b[J\r");
  sink_->Write(0, false, "hello\n");
  Drain();
  EXPECT_EQ(Read(out_[0]), "[0]<stdout>:hello\n");
  sink_.reset();
  EXPECT_EQ(Read(err_[0]), "\r\x1b[J");
}

TEST_F(OutputSinkTest, StatusLine_NotAskedFor_IsNotThere) {
  Make();
  EXPECT_FALSE(sink_->has_status_line());
  sink_->SetStatus("one");
  sink_->Say("word\n");
  Drain();
  EXPECT_EQ(Read(err_[0]), "word\n");
}

TEST_F(OutputSinkTest, StatusLine_NobodyReads_HoldsNobodyUp) {
  OutputSinkOptions options;
  options.has_status_line = true;
  Make(std::move(options));
  fcntl(err_[1], F_SETPIPE_SZ, 4096);
  for (int i = 0; i < 1000; ++i) sink_->SetStatus(std::to_string(i));
  sink_->Say(std::string(10000, 'x') + "\n");
  EXPECT_TRUE(sink_->HasBacklog());
  for (int i = 0; i < 1000; ++i) sink_->SetStatus(std::to_string(i));
  sink_.reset();
}

TEST_F(OutputSinkTest, AwaitDrained_NobodyReads_GivesUp) {
  OutputSinkOptions options;
  Make(std::move(options));
  EXPECT_TRUE(sink_->AwaitDrained(absl::InfiniteDuration()));
  Clog();
  sink_->Say("held\n");
  EXPECT_FALSE(sink_->AwaitDrained(absl::ZeroDuration()));
  sink_->Abandon();
  EXPECT_TRUE(sink_->AwaitDrained(absl::InfiniteDuration()));
  Drain();
}

TEST_F(OutputSinkTest, Abandon_MessagesOfTheLauncherAreStillWritten) {
  Make();
  Clog();
  sink_->Say("before\n");
  sink_->Write(0, true, "held\n");
  sink_->Abandon();
  sink_->Say("after\n");
  sink_->Write(0, true, "dropped\n");
  sink_.reset();
  EXPECT_EQ(Read(err_[0]), "before\nafter\n");
}

TEST_F(OutputSinkTest, AbandonReleasesEverybody) {
  OutputSinkOptions options;
  options.max_backlog_bytes = 1;
  Make(std::move(options));
  Clog();
  absl::Notification drained;
  std::thread writer([&] { sink_->Write(1, false, "held\n"); });
  sink_->NotifyDrained([&] { drained.Notify(); });
  sink_->Abandon();
  writer.join();
  drained.WaitForNotification();
  sink_->Write(0, false, "dropped\n");
  sink_->Say("dropped\n");
  Drain();
}

}  // namespace
}  // namespace hvd::console
